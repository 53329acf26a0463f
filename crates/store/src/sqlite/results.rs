//! Results of classification: staged under (task, claim), moved to where readers look by the one
//! transaction that completes the task. Events.

use domesday_model::{
    Category, DatasourceId, FindingDraft, FindingId, Fingerprint, JobId, Location, ObjectKey, ObjectReport,
    ObjectStatus, Position, Reason, Score, Span, TaskId, VersionMarks,
};
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use super::Result;
use super::error::damaged;
use super::tasks::{self, FencedTask};
use crate::error::StoreError;
use crate::statement::statement;
use crate::types::*;

pub(super) const FILE: &str = include_str!("queries/results.sql");

/// A result as it waits in `staged_results`. It has exactly what the visible tables have: no raw value.
#[derive(Serialize, Deserialize)]
enum Staged {
    Finding {
        key: ObjectKey,
        nested: ObjectKey,
        rule: String,
        category: Category,
        score: Score,
        reasons: String,
        fingerprint: [u8; 16],
        preview: String,
        span: (u64, u64),
        position: (u64, u64),
        decoding: String,
        version: Option<String>,
    },
    Object {
        key: ObjectKey,
        nested: ObjectKey,
        status: String,
        reason: Option<String>,
        detail: String,
        overflow: u64,
    },
}

/// Separates the steps of a decoding chain in its column.
const DECODING_SEPARATOR: &str = ",";

pub(super) fn decoding_steps(column: &str) -> Vec<String> {
    column.split(DECODING_SEPARATOR).filter(|step| !step.is_empty()).map(str::to_owned).collect()
}

impl Staged {
    fn finding(draft: &FindingDraft, version: Option<&VersionMarks>) -> Staged {
        Staged::Finding {
            key: draft.location.key.clone(),
            nested: ObjectKey(draft.location.nested_bytes()),
            rule: draft.rule.to_string(),
            category: draft.category,
            score: draft.score,
            reasons: draft.reasons.clone(),
            fingerprint: draft.fingerprint.0,
            preview: draft.preview.clone(),
            span: (draft.span.start, draft.span.end),
            position: (draft.position.line, draft.position.column),
            decoding: draft.decoding.join(DECODING_SEPARATOR),
            version: version.map(|marks| format!("{}:{}:{}", marks.mtime_ns, marks.ctime_ns, marks.inode)),
        }
    }

    fn object(report: &ObjectReport) -> Staged {
        Staged::Object {
            key: report.location.key.clone(),
            nested: ObjectKey(report.location.nested_bytes()),
            status: report.status.as_str().to_owned(),
            reason: report.reason.map(|reason| reason.as_str().to_owned()),
            detail: report.detail.clone(),
            overflow: report.overflow,
        }
    }

    fn insert(&self, c: &Connection, task: FencedTask, id: TaskId, sequence: i64) -> Result<()> {
        const FINDING: &str = statement(FILE, "upsert_finding");
        const OCCURRENCE: &str = statement(FILE, "insert_occurrence");
        const OBJECT: &str = statement(FILE, "insert_object_scan");
        match self {
            Staged::Finding {
                key,
                nested,
                rule,
                category,
                score,
                reasons,
                fingerprint,
                preview,
                span,
                position,
                decoding,
                version,
            } => {
                let finding = finding_id(task.datasource, key, nested, rule, fingerprint);
                c.prepare_cached(FINDING)?.execute(params![
                    finding.0,
                    task.datasource.0,
                    key.0,
                    nested.0,
                    rule,
                    fingerprint,
                    category.as_str(),
                    score.0,
                    preview,
                ])?;
                c.prepare_cached(OCCURRENCE)?.execute(params![
                    task.job.0,
                    id.0,
                    sequence,
                    finding.0,
                    score.0,
                    reasons,
                    span.0.cast_signed(),
                    span.1.cast_signed(),
                    position.0.cast_signed(),
                    position.1.cast_signed(),
                    decoding,
                    version,
                ])?;
            }
            Staged::Object { key, nested, status, reason, detail, overflow } => {
                c.prepare_cached(OBJECT)?.execute(params![
                    task.job.0,
                    id.0,
                    sequence,
                    key.0,
                    nested.0,
                    status,
                    reason,
                    detail,
                    overflow.cast_signed(),
                ])?;
            }
        }
        Ok(())
    }
}

/// The identity of a finding: what it was found in, by which rule, and the value's fingerprint.
fn finding_id(
    datasource: DatasourceId,
    key: &ObjectKey,
    nested: &ObjectKey,
    rule: &str,
    fingerprint: &[u8; 16],
) -> FindingId {
    let mut hasher = blake3::Hasher::new();
    for part in [&datasource.0.to_be_bytes()[..], &key.0, &nested.0, rule.as_bytes(), fingerprint] {
        hasher.update(&(part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    let mut id = [0; 16];
    id.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    FindingId(id)
}

fn staged(batch: &ResultBatch) -> impl Iterator<Item = Staged> + '_ {
    let finding = |draft| Staged::finding(draft, batch.versions.get(&draft.location.key));
    batch.findings.iter().map(finding).chain(batch.objects.iter().map(Staged::object))
}

pub(super) fn stage(c: &Connection, claim: &Claim, first_sequence: u64, batch: &ResultBatch) -> Result<()> {
    const STAGE: &str = statement(FILE, "stage_result");
    for (sequence, result) in (first_sequence..).zip(staged(batch)) {
        let body = serde_json::to_string(&result).map_err(|error| StoreError::Backend(error.to_string()))?;
        c.prepare_cached(STAGE)?.execute(params![
            claim.task.0,
            claim.claim.0,
            sequence.cast_signed(),
            body
        ])?;
    }
    Ok(())
}

pub(super) fn complete(
    c: &Connection,
    claim: &Claim,
    task: FencedTask,
    first_sequence: u64,
    batch: &ResultBatch,
    totals: TaskTotals,
) -> Result<()> {
    const STAGED: &str = statement(FILE, "staged_results");
    let mut staged_before = 0;
    {
        let mut statement = c.prepare_cached(STAGED)?;
        let mut rows = statement.query(params![claim.task.0, claim.claim.0])?;
        while let Some(row) = rows.next()? {
            let (sequence, body): (i64, String) = (row.get(0)?, row.get(1)?);
            let result: Staged = serde_json::from_str(&body).map_err(|_| damaged("staged result"))?;
            result.insert(c, task, claim.task, sequence)?;
            staged_before += 1;
        }
    }
    // A staged batch that never arrived must not become findings that nobody misses.
    if staged_before != first_sequence.cast_signed() {
        let found = first_sequence.cast_signed();
        return Err(StoreError::Gap { task: claim.task, expected: staged_before, found });
    }
    for (sequence, result) in (first_sequence..).zip(staged(batch)) {
        result.insert(c, task, claim.task, sequence.cast_signed())?;
    }
    clear_staged(c, claim.task)?;
    tasks::complete(c, claim.task, totals)
}

/// Staged rows of a task that no claim will complete, whoever staged them.
pub(super) fn clear_staged(c: &Connection, task: TaskId) -> Result<()> {
    const CLEAR: &str = statement(FILE, "clear_staged_results");
    c.prepare_cached(CLEAR)?.execute([task.0])?;
    Ok(())
}

pub(super) fn sweep(c: &Connection, max: u32) -> Result<u64> {
    const STAGED: &str = statement(FILE, "sweep_staged_results");
    const UNITS: &str = statement(super::jobs::ENUMERATION, "sweep_failed_units");
    let staged = c.prepare_cached(STAGED)?.execute([max])?;
    let records = c.prepare_cached(UNITS)?.execute([max])?;
    Ok((staged + records) as u64)
}

/// An object row that no worker wrote.
pub(super) fn object(key: &ObjectKey, status: ObjectStatus, reason: Reason, detail: &str) -> ObjectReport {
    let location = Location { key: key.clone(), nested: Vec::new() };
    ObjectReport { location, status, reason: Some(reason), detail: detail.to_owned(), overflow: 0 }
}

pub(super) fn insert_object(
    c: &Connection,
    task: FencedTask,
    id: TaskId,
    sequence: i64,
    report: &ObjectReport,
) -> Result<()> {
    Staged::object(report).insert(c, task, id, sequence)
}

// ── events ─────────────────────────────────────────────────────────────────────────────────────────

/// Writes an event in the transaction that makes it true.
pub(super) fn event(c: &Connection, job: JobId, kind: &str, payload: serde_json::Value) -> Result<()> {
    const INSERT: &str = statement(FILE, "insert_event");
    c.prepare_cached(INSERT)?.execute(params![job.0, kind, payload.to_string()])?;
    Ok(())
}

pub(super) fn events(c: &Connection, consumer: &str, max: u32) -> Result<Vec<Event>> {
    const NEXT: &str = statement(FILE, "next_events");
    let mut statement = c.prepare_cached(NEXT)?;
    let mut rows = statement.query(params![consumer, max])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        let payload: String = row.get(3)?;
        events.push(Event {
            id: row.get(0)?,
            job: JobId(row.get(1)?),
            kind: row.get(2)?,
            payload: serde_json::from_str(&payload).map_err(|_| damaged("event payload"))?,
        });
    }
    Ok(events)
}

pub(super) fn acknowledge(c: &Connection, consumer: &str, position: i64) -> Result<()> {
    const ADD: &str = statement(FILE, "add_consumer");
    const SET: &str = statement(FILE, "acknowledge");
    const PRUNE: &str = statement(FILE, "prune_events");
    c.prepare_cached(ADD)?.execute([consumer])?;
    c.prepare_cached(SET)?.execute(params![consumer, position])?;
    c.prepare_cached(PRUNE)?.execute([])?;
    Ok(())
}

/// Columns as in the statement `occurrences`.
pub(super) fn occurrence(row: &rusqlite::Row<'_>) -> Result<Occurrence> {
    let nested: Vec<u8> = row.get(3)?;
    let category: String = row.get(5)?;
    let decoding: String = row.get(14)?;
    Ok(Occurrence {
        finding: FindingId(row.get(0)?),
        datasource: DatasourceId(row.get(1)?),
        location: Location {
            key: ObjectKey(row.get(2)?),
            nested: Location::parse_nested(&nested).ok_or_else(|| damaged("nested path"))?,
        },
        rule: row.get(4)?,
        category: category.parse().map_err(|_| damaged("category"))?,
        score: Score(row.get(6)?),
        reasons: row.get(7)?,
        fingerprint: Fingerprint(row.get(8)?),
        preview: row.get(9)?,
        span: Span { start: unsigned(row, 10)?, end: unsigned(row, 11)? },
        position: Position { line: unsigned(row, 12)?, column: unsigned(row, 13)? },
        decoding: decoding_steps(&decoding),
    })
}

pub(super) fn unsigned(row: &rusqlite::Row<'_>, column: usize) -> Result<u64> {
    Ok(row.get::<_, i64>(column)?.cast_unsigned())
}
