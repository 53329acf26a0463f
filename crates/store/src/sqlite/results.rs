//! Results of classification: staged under (task, claim), moved to where readers look by the one
//! transaction that completes the task. Events.

use std::collections::BTreeMap;

use domesday_model::{JobId, ObjectKey, ObjectReport, TaskId};
use rusqlite::{Connection, params};

use super::rows::Statements;
use super::{Fence, Result, origins, queries, tasks};
use crate::decide::tasks::{FencedTask, first_of_claims};
use crate::error::StoreError;
use crate::queries::statement;
use crate::types::*;
use crate::values::staged::{Staged, StagedFinding, StagedObject, StagedTable, staged};
use crate::values::{from_json, to_json};

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
    const FINDING: &str = statement(queries::RESULTS, "upsert_finding");
    const OCCURRENCE: &str = statement(queries::RESULTS, "insert_occurrence");
    let finding = staged.id(task.datasource);
    let parameters = params![
        finding.0,
        task.datasource.0,
        staged.key.0,
        staged.nested.0,
        staged.rule,
        staged.fingerprint,
        staged.category.as_str(),
        staged.score.0,
        staged.preview,
    ];
    c.change(FINDING, parameters)?;
    let parameters = params![
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
        staged.suppressed.as_ref().map(|(by, _)| by),
        staged.suppressed.as_ref().map(|(_, count)| count.cast_signed()),
    ];
    c.change(OCCURRENCE, parameters).map(drop)
}

fn insert_staged_object(
    c: &Connection,
    task: FencedTask,
    id: TaskId,
    sequence: i64,
    object: &StagedObject,
) -> Result<()> {
    const OBJECT: &str = statement(queries::RESULTS, "insert_object_scan");
    let parameters = params![
        task.job.0,
        id.0,
        sequence,
        object.key.0,
        object.nested.0,
        object.status,
        object.reason,
        object.detail,
        object.overflow.cast_signed(),
    ];
    c.change(OBJECT, parameters).map(drop)
}

fn insert_table(
    c: &Connection,
    task: FencedTask,
    id: TaskId,
    sequence: i64,
    table: &StagedTable,
) -> Result<()> {
    const TABLE: &str = statement(queries::RESULTS, "insert_table_observation");
    let parameters = params![
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
    ];
    c.change(TABLE, parameters).map(drop)
}

pub(super) fn stage(c: &Connection, claim: &Claim, first_sequence: u64, batch: &ResultBatch) -> Result<()> {
    const STAGE: &str = statement(queries::RESULTS, "stage_result");
    for (sequence, result) in (first_sequence..).zip(staged(batch)) {
        let key = (claim.task.0, claim.claim.0, sequence.cast_signed());
        let attachment = match &result {
            Staged::Table(table) => Some(&table.sketches),
            Staged::Finding(_) | Staged::Object(_) => None,
        };
        c.change(STAGE, params![key.0, key.1, key.2, to_json(&result)?, attachment])?;
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
    const COUNT: &str = statement(queries::RESULTS, "count_staged_results");
    const STAGED: &str = statement(queries::RESULTS, "staged_results");
    let Completion { claim, first_sequence, batch, totals, untraced, replaces } = completion;
    let task = fence.check(c, claim)?;
    let key = params![claim.task.0, claim.claim.0];
    let (expected, found): (i64, i64) = (c.only(COUNT, key)?, first_sequence.cast_signed());
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
    replace_earlier(c, task, claim.task, replaces)?;
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
        const FOUND: &str = statement(queries::RESULTS, "insert_found_object");
        let mut insert = c.prepare_cached(FOUND)?;
        for (key, sequence) in &self.0 {
            insert.execute(params![task.job.0, id.0, sequence, key.0])?;
        }
        Ok(())
    }
}

/// Of objects that were read more than once in a job the results of one reading stay: the new one's, unless it failed
/// outright and an earlier one had not.
pub(super) fn replace_earlier<'a>(
    c: &Connection,
    task: FencedTask,
    id: TaskId,
    objects: impl IntoIterator<Item = &'a ObjectKey>,
) -> Result<()> {
    const EARLIER: &str = statement(queries::RESULTS, "earlier_results");
    const FAILED: &str = statement(queries::RESULTS, "object_has_failed");
    const FAILURES: &str = statement(queries::RESULTS, "take_over_failures");
    for key in objects {
        let earlier: Vec<(i64, bool)> = c.all(EARLIER, params![task.job.0, key.0, id.0, task.session.0])?;
        let got_farther = earlier.iter().any(|(_, got_something)| *got_something);
        if got_farther && c.only(FAILED, params![task.job.0, key.0, id.0])? {
            for (earlier, _) in earlier {
                c.change(FAILURES, [earlier, id.0])?;
            }
            forget(c, task.job, id.0, key)?;
        } else {
            earlier.into_iter().try_for_each(|(earlier, _)| forget(c, task.job, earlier, key))?;
        }
    }
    Ok(())
}

/// Forgets what a task says of an object and of what is inside it.
fn forget(c: &Connection, job: JobId, task: i64, key: &ObjectKey) -> Result<()> {
    const OCCURRENCES: &str = statement(queries::RESULTS, "forget_occurrences_of_object");
    const TABLES: &str = statement(queries::RESULTS, "forget_tables_of_object");
    const SCANS: &str = statement(queries::RESULTS, "forget_scans_of_object");
    [OCCURRENCES, TABLES, SCANS]
        .iter()
        .try_for_each(|sql| c.change(sql, params![job.0, task, key.0]).map(drop))
}

/// Staged rows of a task that no claim will complete, whoever staged them.
pub(super) fn clear_staged(c: &Connection, task: TaskId) -> Result<()> {
    const CLEAR: &str = statement(queries::RESULTS, "clear_staged_results");
    c.change(CLEAR, [task.0]).map(drop)
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
    const INSERT: &str = statement(queries::RESULTS, "insert_event");
    c.change(INSERT, params![job.0, kind, payload.to_string()]).map(drop)
}
