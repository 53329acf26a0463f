//! Enumeration sessions: how one ends, and which checkpoint is whose.

use domesday_model::{EnumerationSessionId, SessionStatus};

use super::units::bounded;
use crate::error::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

/// How a session ends of which nothing is left to enumerate, and what the first failure says.
pub(crate) fn session_outcome(
    mut from: SessionStatus,
    committed: bool,
    failed: bool,
    first: Option<&str>,
) -> Result<(SessionStatus, Option<String>)> {
    if from != SessionStatus::InProgress {
        from = from.transition(SessionStatus::InProgress)?;
    }
    let reason = |what: &str| match first {
        Some(first) => bounded(format!("{what}: {first}")),
        None => what.to_owned(),
    };
    let (status, reason) = match (committed, failed) {
        (true, false) => (SessionStatus::Completed, None),
        (true, true) => {
            (SessionStatus::PartiallyCompleted, Some(reason("some containers could not be listed")))
        }
        (false, _) => (SessionStatus::Failed, Some(reason("nothing could be listed"))),
    };
    Ok((from.transition(status)?, reason))
}

/// What the checkpoints of sessions are for.
const SESSION_CHECKPOINT: &str = "session:";

/// The target of a session's checkpoint.
pub(crate) fn session_checkpoint(session: EnumerationSessionId) -> String {
    format!("{SESSION_CHECKPOINT}{session}")
}

/// The session that a checkpoint's target names.
pub(crate) fn checkpoint_session(target: &str) -> Option<EnumerationSessionId> {
    target.strip_prefix(SESSION_CHECKPOINT)?.parse().ok().map(EnumerationSessionId)
}

/// Refuses to write the checkpoint of a session, which follows from its batches.
pub(crate) fn check_own_checkpoint(target: &str) -> Result<()> {
    match target.starts_with(SESSION_CHECKPOINT) {
        true => Err(StoreError::Refused(format!("the checkpoint of {target} follows from its batches"))),
        false => Ok(()),
    }
}
