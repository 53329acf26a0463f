//! Sessions, batches and checkpoints, as people look at them. What they say is written by the commits of units.

use domesday_model::{BatchId, CheckpointId, EnumerationSessionId, JobId, MasterJobId, SessionStatus};
use serde_json::Value;
use tokio_postgres::Row;

use super::Result;
use super::pool::Call;
use super::rows::{get, only, text, unsigned, wide};
use super::transaction::{Tx, params};
use crate::decide::sessions::{check_own_checkpoint, checkpoint_session};
use crate::queries::statement;
use crate::types::*;
use crate::values::{self, from_json};

pub(super) const FILE: &str = queries_of!("sessions");

pub(super) const BATCH: &str = statement(FILE, "batch");
pub(super) const BATCHES: &str = statement(FILE, "batches");
pub(super) const CHECKPOINT: &str = statement(FILE, "checkpoint");

pub(super) fn page(filter: &SessionFilter, after: Option<EnumerationSessionId>, max: u32) -> Call {
    const SESSIONS: &str = statement(FILE, "sessions");
    let params = params![
        after.map_or(0, |id| id.0),
        filter.master.map(|master| master.0.to_vec()),
        filter.status.map(SessionStatus::as_str),
        filter.active_only,
        i64::from(max),
    ];
    Call { sql: SESSIONS, params }
}

/// Columns as in the statement `sessions`.
pub(super) fn session(row: &Row) -> Result<SessionInfo> {
    let has_checkpoint = get::<Option<i64>>(row, 13)?.is_some();
    Ok(SessionInfo {
        id: EnumerationSessionId(get(row, 0)?),
        job: JobId(get(row, 1)?),
        master: MasterJobId(wide(row, 2)?),
        node_group: get(row, 3)?,
        datasource: get(row, 4)?,
        source_type: get(row, 5)?,
        configuration: from_json(get(row, 6)?, "session configuration")?,
        status: values::session_status(get(row, 7)?)?,
        failure_reason: get(row, 8)?,
        waiting_until_ms: get(row, 9)?,
        started_at_ms: get(row, 10)?,
        completed_at_ms: get(row, 11)?,
        last_update_ms: get(row, 12)?,
        last_checkpoint: has_checkpoint.then(|| checkpoint_from(row, 13)).transpose()?,
        metrics: SessionMetrics {
            total_batches: unsigned(row, 17)?,
            failed_batches: unsigned(row, 18)?,
            items_found: unsigned(row, 19)?,
            items_processed: unsigned(row, 20)?,
        },
        is_enumerated: get(row, 21)?,
    })
}

/// Columns as in the statement `batch`.
pub(super) fn batch_info(row: &Row) -> Result<BatchInfo> {
    let checkpoint: Option<&str> = get(row, 3)?;
    Ok(BatchInfo {
        id: BatchId(get(row, 0)?),
        session: EnumerationSessionId(get(row, 1)?),
        status: values::batch_status(get(row, 2)?)?,
        checkpoint: checkpoint.map(|data| from_json(data, "checkpoint")).transpose()?,
        expected_items: unsigned(row, 4)?,
        items_processed: unsigned(row, 5)?,
        error_details: get(row, 6)?,
        started_at_ms: get(row, 7)?,
        completed_at_ms: get(row, 8)?,
    })
}

// ── checkpoints ────────────────────────────────────────────────────────────────────────────────────

/// A session's is that of its last batch; others were saved.
pub(super) fn checkpoint_of(target: &str) -> Call {
    const SAVED: &str = statement(FILE, "checkpoint_of");
    const OF_SESSION: &str = statement(FILE, "checkpoint_of_session");
    match checkpoint_session(target) {
        Some(session) => Call { sql: OF_SESSION, params: params![session.0] },
        None => Call { sql: SAVED, params: params![text(target)] },
    }
}

pub(super) async fn save_checkpoint(tx: &mut Tx<'_>, target: &str, data: &Value) -> Result<CheckpointId> {
    const SAVE: &str = statement(FILE, "save_checkpoint");
    check_own_checkpoint(target)?;
    let rows = tx.query(SAVE, params![text(target), data.to_string()]).await?;
    Ok(CheckpointId(get(only(&rows)?, 0)?))
}

pub(super) async fn delete_checkpoint(tx: &mut Tx<'_>, target: &str) -> Result<bool> {
    const DELETE: &str = statement(FILE, "delete_checkpoint");
    check_own_checkpoint(target)?;
    Ok(tx.change(DELETE, params![text(target)]).await? == 1)
}

/// Four columns from this one on: id, target, data, updated_at.
pub(super) fn checkpoint_from(row: &Row, first: usize) -> Result<Checkpoint> {
    Ok(Checkpoint {
        id: CheckpointId(get(row, first)?),
        target: get(row, first + 1)?,
        data: from_json(get(row, first + 2)?, "checkpoint")?,
        updated_at_ms: get(row, first + 3)?,
    })
}
