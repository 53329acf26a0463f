//! Results of classification: staged under (task, claim), moved to where readers look by the one
//! transaction that completes the task. Events.

use std::collections::BTreeMap;

use domesday_model::{
    DatasourceId, FindingId, Fingerprint, JobId, ObjectKey, ObjectReport, Position, Score, Span, TaskId,
};
use rusqlite::{Connection, params};

use super::{Fence, Result, origins, tasks};
use crate::decide::tasks::{FencedTask, first_of_claims};
use crate::error::StoreError;
use crate::queries::statement;
use crate::types::*;
use crate::values::staged::{Staged, StagedFinding, StagedObject, StagedTable, decoding_steps, staged};
use crate::values::{damaged, from_json, location, to_json};

pub(super) const FILE: &str = queries_of!("results");

impl Staged {
    fn insert(&self, c: &Connection, task: FencedTask, id: TaskId, sequence: i64) -> Result<()> {
        match self {
            Staged::Finding(finding) => insert_finding(c, task, id, sequence, finding),
            Staged::Object(object) => insert_staged_object(c, task, id, sequence, object),
            Staged::Table(table) => insert_table(c, task, id, sequence, table),
        }
    }
}

fn insert_finding(
    c: &Connection,
    task: FencedTask,
    id: TaskId,
    sequence: i64,
    staged: &StagedFinding,
) -> Result<()> {
    const FINDING: &str = statement(FILE, "upsert_finding");
    const OCCURRENCE: &str = statement(FILE, "insert_occurrence");
    let finding = staged.id(task.datasource);
    c.prepare_cached(FINDING)?.execute(params![
        finding.0,
        task.datasource.0,
        staged.key.0,
        staged.nested.0,
        staged.rule,
        staged.fingerprint,
        staged.category.as_str(),
        staged.score.0,
        staged.preview,
    ])?;
    c.prepare_cached(OCCURRENCE)?.execute(params![
        task.job.0,
        id.0,
        sequence,
        finding.0,
        staged.score.0,
        staged.reasons,
        staged.span.0.cast_signed(),
        staged.span.1.cast_signed(),
        staged.position.0.cast_signed(),
        staged.position.1.cast_signed(),
        staged.decoding,
        staged.version,
        staged.row,
    ])?;
    Ok(())
}

fn insert_staged_object(
    c: &Connection,
    task: FencedTask,
    id: TaskId,
    sequence: i64,
    object: &StagedObject,
) -> Result<()> {
    const OBJECT: &str = statement(FILE, "insert_object_scan");
    c.prepare_cached(OBJECT)?.execute(params![
        task.job.0,
        id.0,
        sequence,
        object.key.0,
        object.nested.0,
        object.status,
        object.reason,
        object.detail,
        object.overflow.cast_signed(),
    ])?;
    Ok(())
}

fn insert_table(
    c: &Connection,
    task: FencedTask,
    id: TaskId,
    sequence: i64,
    table: &StagedTable,
) -> Result<()> {
    const TABLE: &str = statement(FILE, "insert_table_observation");
    c.prepare_cached(TABLE)?.execute(params![
        task.job.0,
        id.0,
        sequence,
        task.datasource.0,
        table.key.0,
        table.nested.0,
        table.part.0,
        to_json(&table.shape)?,
        table.rows.cast_signed(),
        table.is_sample,
        table.sketches,
    ])?;
    Ok(())
}

pub(super) fn stage(c: &Connection, claim: &Claim, first_sequence: u64, batch: &ResultBatch) -> Result<()> {
    const STAGE: &str = statement(FILE, "stage_result");
    for (sequence, result) in (first_sequence..).zip(staged(batch)) {
        let key = (claim.task.0, claim.claim.0, sequence.cast_signed());
        let attachment = match &result {
            Staged::Table(table) => Some(&table.sketches),
            Staged::Finding(_) | Staged::Object(_) => None,
        };
        c.prepare_cached(STAGE)?.execute(params![key.0, key.1, key.2, to_json(&result)?, attachment])?;
    }
    Ok(())
}

/// Completes tasks, each for itself: one that is refused leaves nothing behind, and the others go on.
pub(super) fn complete(c: &Connection, fence: Fence, completions: &[Completion]) -> Result<Vec<Result<()>>> {
    let mut answers: Vec<Result<()>> =
        completions.iter().map(|completion| Err(StoreError::LostClaim(completion.claim.task))).collect();
    for (at, completion) in first_of_claims(completions) {
        answers[at] = match complete_one(c, fence, completion) {
            Err(error) if !matches!(error, StoreError::LostClaim(_) | StoreError::Gap { .. }) => {
                return Err(error);
            }
            answer => answer,
        };
    }
    Ok(answers)
}

/// Refuses before it writes.
fn complete_one(c: &Connection, fence: Fence, completion: &Completion) -> Result<()> {
    const COUNT: &str = statement(FILE, "count_staged_results");
    const STAGED: &str = statement(FILE, "staged_results");
    let Completion { claim, first_sequence, batch, totals, untraced } = completion;
    let task = fence.check(c, claim)?;
    let key = params![claim.task.0, claim.claim.0];
    let (expected, found): (i64, i64) =
        (c.prepare_cached(COUNT)?.query_row(key, |row| row.get(0))?, first_sequence.cast_signed());
    // A staged batch that never arrived must not become findings that nobody misses.
    if expected != found {
        return Err(StoreError::Gap { task: claim.task, expected, found });
    }
    let mut found = Found::default();
    let mut statement = c.prepare_cached(STAGED)?;
    let mut rows = statement.query(key)?;
    while let Some(row) = rows.next()? {
        let (sequence, body): (i64, String) = (row.get(0)?, row.get(1)?);
        let mut result: Staged = from_json(&body, "staged result")?;
        if let Staged::Table(table) = &mut result {
            table.sketches = row.get(2)?;
        }
        result.insert(c, task, claim.task, sequence)?;
        found.note(&result, sequence);
    }
    for (sequence, result) in (first_sequence.cast_signed()..).zip(staged(batch)) {
        result.insert(c, task, claim.task, sequence)?;
        found.note(&result, sequence);
    }
    found.insert(c, task, claim.task)?;
    origins::ask(c, task, untraced)?;
    clear_staged(c, claim.task)?;
    tasks::complete(c, claim.task, *totals)
}

/// Objects with findings or observations, each with the sequence of its first.
#[derive(Default)]
struct Found(BTreeMap<ObjectKey, i64>);

impl Found {
    fn note(&mut self, result: &Staged, sequence: i64) {
        let key = match result {
            Staged::Finding(finding) => &finding.key,
            Staged::Table(table) => &table.part,
            Staged::Object(_) => return,
        };
        if !self.0.contains_key(key) {
            self.0.insert(key.clone(), sequence);
        }
    }

    /// Gives each a row, unless it has one: when all that the task says of objects is there.
    fn insert(&self, c: &Connection, task: FencedTask, id: TaskId) -> Result<()> {
        const FOUND: &str = statement(FILE, "insert_found_object");
        let mut insert = c.prepare_cached(FOUND)?;
        for (key, sequence) in &self.0 {
            insert.execute(params![task.job.0, id.0, sequence, key.0])?;
        }
        Ok(())
    }
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
pub(super) fn insert_object(
    c: &Connection,
    task: FencedTask,
    id: TaskId,
    sequence: i64,
    report: &ObjectReport,
) -> Result<()> {
    insert_staged_object(c, task, id, sequence, &StagedObject::of(report))
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
            payload: from_json(&payload, "event payload")?,
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
        location: location(row.get(2)?, &nested)?,
        rule: row.get(4)?,
        category: category.parse().map_err(|_| damaged("category"))?,
        score: Score(row.get(6)?),
        reasons: row.get(7)?,
        fingerprint: Fingerprint(row.get(8)?),
        preview: row.get(9)?,
        span: Span { start: unsigned(row, 10)?, end: unsigned(row, 11)? },
        position: Position { line: unsigned(row, 12)?, column: unsigned(row, 13)? },
        decoding: decoding_steps(&decoding),
        row: row.get::<_, Option<String>>(15)?.map(Into::into),
        origin: origins::origin_from(row, 16)?,
    })
}

fn unsigned(row: &rusqlite::Row<'_>, column: usize) -> Result<u64> {
    Ok(row.get::<_, i64>(column)?.cast_unsigned())
}
