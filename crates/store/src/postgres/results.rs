//! Results of classification: staged under (task, claim), moved to where readers look by the one
//! transaction that completes the task. Events.

use domesday_model::{DatasourceId, JobId, ObjectReport, TaskId};
use tokio_postgres::Row;

use super::jobs::ENUMERATION;
use super::pool::{Call, Param};
use super::rows::{column, get, only, text};
use super::transaction::{Tx, params};
use super::{Result, tasks};
use crate::error::StoreError;
use crate::staged::{Staged, StagedFinding, StagedObject, staged};
use crate::statement::statement;
use crate::types::*;
use crate::values::from_json;

pub(super) const FILE: &str = include_str!("queries/results.sql");

/// What positions of events are given to at once, at most: bounds how long other readers wait.
const NUMBERED_MAX: u32 = 65_536;

pub(super) async fn stage(
    tx: &mut Tx<'_>,
    claim: &Claim,
    first_sequence: u64,
    batch: &ResultBatch,
) -> Result<()> {
    let task = tasks::fence(tx, claim).await?;
    stage_batch(tx, claim, task.datasource, first_sequence, batch);
    Ok(())
}

fn stage_batch(
    tx: &mut Tx<'_>,
    claim: &Claim,
    datasource: DatasourceId,
    first_sequence: u64,
    batch: &ResultBatch,
) {
    const FINDINGS: &str = statement(FILE, "stage_findings");
    const OBJECTS: &str = statement(FILE, "stage_objects");
    let (mut findings, mut objects) = (Vec::new(), Vec::new());
    for (sequence, result) in (first_sequence.cast_signed()..).zip(staged(batch)) {
        match result {
            Staged::Finding(finding) => findings.push((sequence, finding)),
            Staged::Object(object) => objects.push((sequence, object)),
        }
    }
    let under = || params![claim.task.0, claim.claim.0];
    if !findings.is_empty() {
        tx.run(FINDINGS, [under(), finding_columns(&findings, datasource)].into_iter().flatten().collect());
    }
    if !objects.is_empty() {
        tx.run(OBJECTS, [under(), object_columns(&objects)].into_iter().flatten().collect());
    }
}

fn finding_columns(findings: &[(i64, StagedFinding)], datasource: DatasourceId) -> Vec<Param> {
    params![
        column(findings, |(sequence, _)| *sequence),
        column(findings, |(_, finding)| finding.id(datasource).0.to_vec()),
        column(findings, |(_, finding)| finding.key.0.clone()),
        column(findings, |(_, finding)| finding.nested.0.clone()),
        column(findings, |(_, finding)| text(&finding.rule)),
        column(findings, |(_, finding)| finding.fingerprint.to_vec()),
        column(findings, |(_, finding)| finding.category.as_str()),
        column(findings, |(_, finding)| i16::from(finding.score.0)),
        column(findings, |(_, finding)| text(&finding.preview)),
        column(findings, |(_, finding)| text(&finding.reasons)),
        column(findings, |(_, finding)| finding.span.0.cast_signed()),
        column(findings, |(_, finding)| finding.span.1.cast_signed()),
        column(findings, |(_, finding)| finding.position.0.cast_signed()),
        column(findings, |(_, finding)| finding.position.1.cast_signed()),
        column(findings, |(_, finding)| text(&finding.decoding)),
        column(findings, |(_, finding)| finding.version.clone()),
    ]
}

fn object_columns(objects: &[(i64, StagedObject)]) -> Vec<Param> {
    params![
        column(objects, |(sequence, _)| *sequence),
        column(objects, |(_, object)| object.key.0.clone()),
        column(objects, |(_, object)| object.nested.0.clone()),
        column(objects, |(_, object)| object.status.clone()),
        column(objects, |(_, object)| object.reason.clone()),
        column(objects, |(_, object)| text(&object.detail)),
        column(objects, |(_, object)| object.overflow.cast_signed()),
    ]
}

pub(super) async fn complete(
    tx: &mut Tx<'_>,
    claim: &Claim,
    first_sequence: u64,
    batch: &ResultBatch,
    totals: TaskTotals,
) -> Result<()> {
    const COUNT: &str = statement(FILE, "count_staged");
    const FINDINGS: &str = statement(FILE, "publish_findings");
    const OCCURRENCES: &str = statement(FILE, "publish_occurrences");
    const OBJECTS: &str = statement(FILE, "publish_objects");
    let count = Call { sql: COUNT, params: params![claim.task.0, claim.claim.0] };
    let calls = [tasks::fence_call(tx, claim), count];
    let [fence, count] = tx.query_all(calls).await?;
    let task = tasks::fenced(claim, &fence)?;
    // A staged batch that never arrived must not become findings that nobody misses.
    let (expected, found): (i64, i64) = (get(only(&count)?, 0)?, first_sequence.cast_signed());
    if expected != found {
        return Err(StoreError::Gap { task: claim.task, expected, found });
    }
    if expected > 0 || !batch.is_empty() {
        stage_batch(tx, claim, task.datasource, first_sequence, batch);
        let under = |with: i64| params![claim.task.0, claim.claim.0, with];
        tx.run(FINDINGS, under(task.datasource.0));
        tx.run(OCCURRENCES, under(task.job.0));
        tx.run(OBJECTS, under(task.job.0));
    }
    clear_staged(tx, claim.task);
    tasks::complete(tx, claim.task, totals);
    Ok(())
}

/// Staged rows of a task that no claim will complete, whoever staged them.
pub(super) fn clear_staged(tx: &mut Tx<'_>, task: TaskId) {
    const CLEAR: &str = statement(FILE, "clear_staged");
    tx.run(CLEAR, params![task.0]);
}

/// Object rows that no worker wrote.
pub(super) fn insert_objects(tx: &mut Tx<'_>, job: JobId, task: TaskId, reports: &[ObjectReport]) {
    const INSERT: &str = statement(FILE, "insert_object_scans");
    let objects: Vec<_> = (0..).zip(reports.iter().map(StagedObject::of)).collect();
    if !objects.is_empty() {
        tx.run(INSERT, [params![job.0, task.0], object_columns(&objects)].into_iter().flatten().collect());
    }
}

pub(super) async fn sweep(tx: &mut Tx<'_>, max: u32) -> Result<u64> {
    const FINDINGS: &str = statement(FILE, "sweep_staged_findings");
    const OBJECTS: &str = statement(FILE, "sweep_staged_objects");
    const RECORDS: &str = statement(ENUMERATION, "sweep_failed_units");
    let calls = [FINDINGS, OBJECTS, RECORDS].map(|sql| Call { sql, params: params![i64::from(max)] });
    Ok(tx.query_last(calls).await?.iter().map(|rows| rows.len() as u64).sum())
}

// ── events ─────────────────────────────────────────────────────────────────────────────────────────

/// Writes an event in the transaction that makes it true.
pub(super) fn event(tx: &mut Tx<'_>, job: JobId, kind: &'static str, payload: &serde_json::Value) {
    const INSERT: &str = statement(FILE, "insert_event");
    tx.run(INSERT, params![job.0, kind, payload.to_string()]);
}

/// Gives positions to what has become visible, and reads on from the consumer's.
pub(super) async fn events(tx: &mut Tx<'_>, consumer: &str, max: u32) -> Result<Vec<Event>> {
    const LOCK: &str = statement(FILE, "lock_event_positions");
    const NUMBER: &str = statement(FILE, "number_events");
    const NEXT: &str = statement(FILE, "next_events");
    let calls = [
        Call { sql: LOCK, params: Vec::new() },
        Call { sql: NUMBER, params: params![i64::from(max.min(NUMBERED_MAX))] },
        Call { sql: NEXT, params: params![consumer.to_owned(), i64::from(max)] },
    ];
    let [_, _, rows] = tx.query_last(calls).await?;
    rows.iter().map(event_row).collect()
}

fn event_row(row: &Row) -> Result<Event> {
    Ok(Event {
        id: get(row, 0)?,
        job: JobId(get(row, 1)?),
        kind: get(row, 2)?,
        payload: from_json(get(row, 3)?, "event payload")?,
    })
}

pub(super) fn acknowledge(tx: &mut Tx<'_>, consumer: &str, position: i64) {
    const SET: &str = statement(FILE, "acknowledge");
    const PRUNE: &str = statement(FILE, "prune_events");
    tx.run(SET, params![consumer.to_owned(), position]);
    tx.run(PRUNE, Vec::new());
}
