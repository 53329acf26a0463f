//! Sessions, batches and checkpoints, as people look at them. What they say is written by the commits of units.

use domesday_model::{BatchId, CheckpointId, EnumerationSessionId, JobId, MasterJobId, SessionStatus};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;

use super::Result;
use crate::decide::sessions::check_own_checkpoint;
use crate::queries::statement;
use crate::types::*;
use crate::values::{self, from_json};

pub(super) const FILE: &str = queries_of!("sessions");

pub(super) fn sessions(
    c: &Connection,
    filter: &SessionFilter,
    after: Option<EnumerationSessionId>,
    max: u32,
) -> Result<Vec<SessionInfo>> {
    const SESSIONS: &str = statement(FILE, "sessions");
    let mut statement = c.prepare_cached(SESSIONS)?;
    let parameters = params![
        after.map_or(0, |id| id.0),
        filter.master.map(|master| master.0),
        filter.status.map(SessionStatus::as_str),
        filter.active_only,
        max,
    ];
    let rows = statement.query_map(parameters, |row| Ok(session(row)))?;
    let mut sessions = rows.map(|row| row?).collect::<Result<Vec<_>>>()?;
    for session in &mut sessions {
        session.metrics = metrics(c, session.id)?;
    }
    Ok(sessions)
}

/// Columns as in the statement `sessions`.
fn session(row: &Row<'_>) -> Result<SessionInfo> {
    let (configuration, status): (String, String) = (row.get(6)?, row.get(7)?);
    let has_checkpoint = row.get::<_, Option<i64>>(13)?.is_some();
    Ok(SessionInfo {
        id: EnumerationSessionId(row.get(0)?),
        job: JobId(row.get(1)?),
        master: MasterJobId(row.get(2)?),
        node_group: row.get(3)?,
        datasource: row.get(4)?,
        source_type: row.get(5)?,
        configuration: from_json(&configuration, "session configuration")?,
        status: values::session_status(&status)?,
        failure_reason: row.get(8)?,
        waiting_until_ms: row.get(9)?,
        started_at_ms: row.get(10)?,
        completed_at_ms: row.get(11)?,
        last_update_ms: row.get(12)?,
        last_checkpoint: has_checkpoint.then(|| checkpoint_from(row, 13)).transpose()?,
        metrics: SessionMetrics::default(),
        is_enumerated: row.get(17)?,
    })
}

fn metrics(c: &Connection, session: EnumerationSessionId) -> Result<SessionMetrics> {
    const METRICS: &str = statement(FILE, "session_metrics");
    Ok(c.prepare_cached(METRICS)?.query_row([session.0], |row| {
        Ok(SessionMetrics {
            total_batches: unsigned(row, 0)?,
            failed_batches: unsigned(row, 1)?,
            items_found: unsigned(row, 2)?,
            items_processed: unsigned(row, 3)?,
        })
    })?)
}

pub(super) fn batch(c: &Connection, id: BatchId) -> Result<Option<BatchInfo>> {
    const BATCH: &str = statement(FILE, "batch");
    c.prepare_cached(BATCH)?.query_row([id.0], |row| Ok(batch_info(row))).optional()?.transpose()
}

pub(super) fn batches(
    c: &Connection,
    session: EnumerationSessionId,
    after: Option<BatchId>,
    max: u32,
) -> Result<Vec<BatchInfo>> {
    const BATCHES: &str = statement(FILE, "batches");
    let mut statement = c.prepare_cached(BATCHES)?;
    let before = after.map_or(i64::MAX, |id| id.0);
    let rows = statement.query_map(params![session.0, before, max], |row| Ok(batch_info(row)))?;
    rows.map(|row| row?).collect()
}

/// Columns as in the statement `batch`.
fn batch_info(row: &Row<'_>) -> Result<BatchInfo> {
    let (status, checkpoint): (String, Option<String>) = (row.get(2)?, row.get(3)?);
    Ok(BatchInfo {
        id: BatchId(row.get(0)?),
        session: EnumerationSessionId(row.get(1)?),
        status: values::batch_status(&status)?,
        checkpoint: checkpoint.map(|data| from_json(&data, "checkpoint")).transpose()?,
        expected_items: unsigned(row, 4)?,
        items_processed: unsigned(row, 5)?,
        error_details: row.get(6)?,
        started_at_ms: row.get(7)?,
        completed_at_ms: row.get(8)?,
    })
}

// ── checkpoints ────────────────────────────────────────────────────────────────────────────────────

pub(super) fn checkpoint(c: &Connection, id: CheckpointId) -> Result<Option<Checkpoint>> {
    const GET: &str = statement(FILE, "checkpoint");
    c.prepare_cached(GET)?.query_row([id.0], |row| Ok(checkpoint_from(row, 0))).optional()?.transpose()
}

pub(super) fn checkpoint_of(c: &Connection, target: &str) -> Result<Option<Checkpoint>> {
    const GET: &str = statement(FILE, "checkpoint_of");
    c.prepare_cached(GET)?.query_row([target], |row| Ok(checkpoint_from(row, 0))).optional()?.transpose()
}

pub(super) fn save_checkpoint(c: &Connection, target: &str, data: &Value) -> Result<CheckpointId> {
    const SAVE: &str = statement(FILE, "save_checkpoint");
    check_own_checkpoint(target)?;
    let id = c.prepare_cached(SAVE)?.query_row(params![target, data.to_string()], |row| row.get(0))?;
    Ok(CheckpointId(id))
}

pub(super) fn delete_checkpoint(c: &Connection, target: &str) -> Result<bool> {
    const DELETE: &str = statement(FILE, "delete_checkpoint");
    check_own_checkpoint(target)?;
    Ok(c.prepare_cached(DELETE)?.execute([target])? == 1)
}

/// Four columns from this one on: id, target, data, updated_at.
fn checkpoint_from(row: &Row<'_>, first: usize) -> Result<Checkpoint> {
    let data: String = row.get(first + 2)?;
    Ok(Checkpoint {
        id: CheckpointId(row.get(first)?),
        target: row.get(first + 1)?,
        data: from_json(&data, "checkpoint")?,
        updated_at_ms: row.get(first + 3)?,
    })
}

fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::cast_unsigned)
}
