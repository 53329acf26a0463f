//! Sessions, batches, checkpoints and events.

use domesday_model::{BatchId, CheckpointId, EnumerationSessionId, JobId, MasterJobId, SessionStatus};

use super::{Columns, FromRow, Result};
use crate::decide::sessions::session_outcome;
use crate::types::*;
use crate::values::{self, from_json};

/// Columns as in the statement `sessions`, up to the checkpoint's.
pub(crate) fn session(
    row: &impl Columns,
    metrics: SessionMetrics,
    is_enumerated: bool,
) -> Result<SessionInfo> {
    let has_checkpoint = row.value::<Option<i64>>(13)?.is_some();
    Ok(SessionInfo {
        id: EnumerationSessionId(row.value(0)?),
        job: JobId(row.value(1)?),
        master: MasterJobId(row.wide(2)?),
        node_group: row.value(3)?,
        datasource: row.value(4)?,
        source_type: row.value(5)?,
        configuration: row.parsed(6, |text| from_json(text, "session configuration"))?,
        status: row.parsed(7, values::session_status)?,
        failure_reason: row.value(8)?,
        waiting_until_ms: row.value(9)?,
        started_at_ms: row.value(10)?,
        completed_at_ms: row.value(11)?,
        last_update_ms: row.value(12)?,
        last_checkpoint: has_checkpoint.then(|| checkpoint_from(row, 13)).transpose()?,
        metrics,
        is_enumerated,
    })
}

/// A session of which nothing is left to enumerate: how it ends, and why. Columns as in the statement `ended_sessions`.
pub(crate) fn ended_session(row: &impl Columns) -> Result<(i64, SessionStatus, Option<String>)> {
    let first: Option<String> = row.value(4)?;
    let from = row.parsed(1, values::session_status)?;
    let (status, reason) = session_outcome(from, row.value(2)?, row.value(3)?, first.as_deref())?;
    Ok((row.value(0)?, status, reason))
}

/// Four columns from this one on: batches, failed ones, items found, items processed.
pub(crate) fn session_metrics(row: &impl Columns, first: usize) -> Result<SessionMetrics> {
    Ok(SessionMetrics {
        total_batches: row.unsigned(first)?,
        failed_batches: row.unsigned(first + 1)?,
        items_found: row.unsigned(first + 2)?,
        items_processed: row.unsigned(first + 3)?,
    })
}

/// Columns as in the statement `batch`.
impl FromRow for BatchInfo {
    fn from_row(row: &impl Columns) -> Result<BatchInfo> {
        let checkpoint: Option<String> = row.value(3)?;
        Ok(BatchInfo {
            id: BatchId(row.value(0)?),
            session: EnumerationSessionId(row.value(1)?),
            status: row.parsed(2, values::batch_status)?,
            checkpoint: checkpoint.map(|data| from_json(&data, "checkpoint")).transpose()?,
            expected_items: row.unsigned(4)?,
            items_processed: row.unsigned(5)?,
            error_details: row.value(6)?,
            started_at_ms: row.value(7)?,
            completed_at_ms: row.value(8)?,
        })
    }
}

/// Columns: id, target, data, updated_at.
impl FromRow for Checkpoint {
    fn from_row(row: &impl Columns) -> Result<Checkpoint> {
        checkpoint_from(row, 0)
    }
}

/// The same from this one on.
fn checkpoint_from(row: &impl Columns, first: usize) -> Result<Checkpoint> {
    Ok(Checkpoint {
        id: CheckpointId(row.value(first)?),
        target: row.value(first + 1)?,
        data: row.parsed(first + 2, |text| from_json(text, "checkpoint"))?,
        updated_at_ms: row.value(first + 3)?,
    })
}

/// Columns as in the statement `next_events`.
impl FromRow for Event {
    fn from_row(row: &impl Columns) -> Result<Event> {
        Ok(Event {
            id: row.value(0)?,
            job: JobId(row.value(1)?),
            kind: row.value(2)?,
            payload: row.parsed(3, |text| from_json(text, "event payload"))?,
        })
    }
}
