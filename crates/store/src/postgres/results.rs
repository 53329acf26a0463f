//! Results of classification: staged under (task, claim), moved to where readers look by the one
//! transaction that completes the task. Events.

use domesday_model::{DatasourceId, FindingId, JobId, ObjectKey, ObjectReport, TaskId};

use super::pool::Param;
use super::rows::{column, get, text};
use super::transaction::{Tx, params};
use super::{Result, origins, queries, tasks};
use crate::decide::tasks::first_of_claims;
use crate::error::StoreError;
use crate::queries::statement;
use crate::types::*;
use crate::values::staged::{Staged, StagedFinding, StagedObject, StagedTable, staged};
use crate::values::{damaged, to_json};

/// A finding with its id, and its place among the results of its task.
type Numbered = (i64, FindingId, StagedFinding);

/// Results, each kind with its places among those of its task.
#[derive(Default)]
struct Results {
    findings: Vec<Numbered>,
    objects: Vec<(i64, StagedObject)>,
    tables: Vec<(i64, StagedTable)>,
}

impl Results {
    /// Adds those of a batch, numbered from `first_sequence` on.
    fn add(&mut self, datasource: DatasourceId, first_sequence: u64, batch: &ResultBatch) {
        for (sequence, result) in (first_sequence.cast_signed()..).zip(staged(batch)) {
            match result {
                Staged::Finding(finding) => {
                    self.findings.push((sequence, finding.id(datasource), finding));
                }
                Staged::Object(object) => self.objects.push((sequence, object)),
                Staged::Table(table) => self.tables.push((sequence, table)),
            }
        }
    }
}

pub(super) async fn stage(
    tx: &mut Tx<'_>,
    claim: &Claim,
    first_sequence: u64,
    batch: &ResultBatch,
) -> Result<()> {
    const FINDINGS: &str = statement(queries::RESULTS, "stage_findings");
    const OBJECTS: &str = statement(queries::RESULTS, "stage_objects");
    const TABLES: &str = statement(queries::RESULTS, "stage_tables");
    let task = tasks::fence(tx, claim).await?;
    let mut results = Results::default();
    results.add(task.datasource, first_sequence, batch);
    let Results { findings, objects, tables } = results;
    let under = || params![claim.task.0, claim.claim.0];
    if !findings.is_empty() {
        tx.run(FINDINGS, with(under(), finding_columns(&findings)));
    }
    if !objects.is_empty() {
        tx.run(OBJECTS, with(under(), object_columns(&objects)));
    }
    if !tables.is_empty() {
        tx.run(TABLES, with(under(), table_columns(tables)?));
    }
    Ok(())
}

fn with(mut params: Vec<Param>, more: Vec<Param>) -> Vec<Param> {
    params.extend(more);
    params
}

fn finding_columns(findings: &[Numbered]) -> Vec<Param> {
    params![
        column(findings, |(sequence, _, _)| *sequence),
        column(findings, |(_, id, _)| id.0.to_vec()),
        column(findings, |(_, _, finding)| finding.key.0.clone()),
        column(findings, |(_, _, finding)| finding.nested.0.clone()),
        column(findings, |(_, _, finding)| text(&finding.rule)),
        column(findings, |(_, _, finding)| finding.fingerprint.to_vec()),
        column(findings, |(_, _, finding)| finding.category.as_str()),
        column(findings, |(_, _, finding)| i16::from(finding.score.0)),
        column(findings, |(_, _, finding)| text(&finding.preview)),
        column(findings, |(_, _, finding)| text(&finding.reasons)),
        column(findings, |(_, _, finding)| finding.span.0.cast_signed()),
        column(findings, |(_, _, finding)| finding.span.1.cast_signed()),
        column(findings, |(_, _, finding)| finding.position.0.cast_signed()),
        column(findings, |(_, _, finding)| finding.position.1.cast_signed()),
        column(findings, |(_, _, finding)| text(&finding.decoding)),
        column(findings, |(_, _, finding)| finding.version.clone()),
        column(findings, |(_, _, finding)| finding.row.as_deref().map(text)),
        column(findings, |(_, _, finding)| finding.suppressed.as_ref().map(|(by, _)| text(by))),
        column(findings, |(_, _, finding)| finding.suppressed.as_ref().map(|(_, count)| count.cast_signed())),
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

fn table_columns(mut tables: Vec<(i64, StagedTable)>) -> Result<Vec<Param>> {
    let shapes = tables.iter().map(|(_, table)| to_json(&table.shape)).collect::<Result<Vec<_>>>()?;
    // They are large, and nobody else needs them.
    let sketches: Vec<_> = tables.iter_mut().map(|(_, table)| std::mem::take(&mut table.sketches)).collect();
    Ok(params![
        column(&tables, |(sequence, _)| *sequence),
        column(&tables, |(_, table)| table.key.0.clone()),
        column(&tables, |(_, table)| table.nested.0.clone()),
        column(&tables, |(_, table)| table.part.0.clone()),
        shapes,
        column(&tables, |(_, table)| table.rows.cast_signed()),
        column(&tables, |(_, table)| table.is_sample),
        sketches,
    ])
}

// ── completing ─────────────────────────────────────────────────────────────────────────────────────

/// A task that this transaction completed, and what came with it.
struct Done<'a> {
    completion: &'a Completion,
    job: JobId,
    datasource: DatasourceId,
}

/// Fences and completes all of them in one statement; if none has results, its answer is the commit's.
pub(super) async fn complete(tx: &mut Tx<'_>, completions: &[Completion]) -> Result<Vec<Result<()>>> {
    if completions.is_empty() {
        return Ok(Vec::new());
    }
    tx.wakes_everyone();
    let asked = first_of_claims(completions);
    let call = tasks::complete_call(tx, &asked);
    let no_results = completions.iter().all(|completion| {
        completion.first_sequence == 0
            && completion.batch.is_empty()
            && completion.untraced.is_empty()
            && completion.replaces.is_empty()
    });
    let [rows] = match no_results {
        true => tx.query_last([call]).await?,
        false => tx.query_all([call]).await?,
    };
    let mut answers: Vec<Result<()>> =
        completions.iter().map(|completion| Err(StoreError::LostClaim(completion.claim.task))).collect();
    let mut done = Vec::with_capacity(rows.len());
    for row in rows.iter() {
        let (n, expected): (i64, i64) = (get(row, 0)?, get(row, 3)?);
        let asked = usize::try_from(n - 1).ok().and_then(|at| asked.get(at));
        let (at, completion) = *asked.ok_or_else(|| damaged("place of a completion"))?;
        let found = completion.first_sequence.cast_signed();
        // A staged batch that never arrived must not become findings that nobody misses.
        if expected != found {
            answers[at] = Err(StoreError::Gap { task: completion.claim.task, expected, found });
            continue;
        }
        answers[at] = Ok(());
        done.push(Done { completion, job: JobId(get(row, 1)?), datasource: DatasourceId(get(row, 2)?) });
    }
    if !no_results && !done.is_empty() {
        publish(tx, &done)?;
        for Done { completion, .. } in &done {
            replace_earlier(tx, completion.claim.task, &completion.replaces);
        }
        let untraced = done.iter().flat_map(|Done { completion, .. }| {
            completion.untraced.iter().map(|key| (completion.claim.task, key))
        });
        origins::ask(tx, untraced);
    }
    Ok(answers)
}

/// Makes the results of completed tasks visible: those that were staged, and the last ones.
fn publish(tx: &mut Tx<'_>, done: &[Done<'_>]) -> Result<()> {
    const FINDINGS: &str = statement(queries::RESULTS, "publish_findings");
    const OBJECTS: &str = statement(queries::RESULTS, "publish_objects");
    const TABLES: &str = statement(queries::RESULTS, "publish_tables");
    let mut results = Results::default();
    let (mut findings_of, mut objects_of, mut tables_of) = (Vec::new(), Vec::new(), Vec::new());
    for Done { completion: Completion { claim, first_sequence, batch, .. }, datasource, .. } in done {
        results.add(*datasource, *first_sequence, batch);
        findings_of.resize(results.findings.len(), claim.task.0);
        objects_of.resize(results.objects.len(), claim.task.0);
        tables_of.resize(results.tables.len(), claim.task.0);
    }
    let Results { findings, objects, tables } = results;
    let tasks = || {
        params![
            column(done, |done| done.completion.claim.task.0),
            column(done, |done| done.completion.claim.claim.0),
            column(done, |done| done.job.0),
        ]
    };
    let staged = done.iter().any(|done| done.completion.first_sequence > 0);
    // What is said of objects first: one with findings needs a row only if it has none.
    if staged || !objects.is_empty() {
        tx.run(OBJECTS, with(with(tasks(), params![objects_of]), object_columns(&objects)));
    }
    if staged || !findings.is_empty() {
        let of = params![column(done, |done| done.datasource.0), findings_of];
        tx.run(FINDINGS, with(with(tasks(), of), finding_columns(&findings)));
    }
    if staged || !tables.is_empty() {
        let of = params![column(done, |done| done.datasource.0), tables_of];
        tx.run(TABLES, with(with(tasks(), of), table_columns(tables)?));
    }
    Ok(())
}

/// Of objects that were read more than once in a job the results of one reading stay: the new one's, unless it failed
/// outright and an earlier one had not.
pub(super) fn replace_earlier<'a>(
    tx: &mut Tx<'_>,
    task: TaskId,
    objects: impl IntoIterator<Item = &'a ObjectKey>,
) {
    const REPLACE: &str = statement(queries::RESULTS, "replace_earlier");
    let objects: Vec<Vec<u8>> = objects.into_iter().map(|key| key.0.clone()).collect();
    if !objects.is_empty() {
        tx.run(REPLACE, params![task.0, objects]);
    }
}

/// Staged rows of a task that no claim will complete, whoever staged them.
pub(super) fn clear_staged(tx: &mut Tx<'_>, task: TaskId) {
    const CLEAR: &str = statement(queries::RESULTS, "clear_staged");
    tx.run(CLEAR, params![task.0]);
}

/// Object rows that no worker wrote.
pub(super) fn insert_objects(tx: &mut Tx<'_>, job: JobId, task: TaskId, reports: &[ObjectReport]) {
    const INSERT: &str = statement(queries::RESULTS, "insert_object_scans");
    let objects: Vec<_> = (0..).zip(reports.iter().map(StagedObject::of)).collect();
    if !objects.is_empty() {
        tx.run(INSERT, with(params![job.0, task.0], object_columns(&objects)));
    }
}

// ── events ─────────────────────────────────────────────────────────────────────────────────────────

/// Writes an event in the transaction that makes it true.
pub(super) fn event(tx: &mut Tx<'_>, job: JobId, kind: &'static str, payload: &serde_json::Value) {
    const INSERT: &str = statement(queries::RESULTS, "insert_event");
    tx.run(INSERT, params![job.0, kind, payload.to_string()]);
}
