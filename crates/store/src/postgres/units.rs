//! Units and their records: staging, commit, resumption, fan-out.
//!
//! A unit that fits one batch is inserted COMMITTED with its records. A larger one collects records
//! under a STAGING row that no reader looks behind, and one update of that row makes all of them
//! visible. A crash anywhere leaves either no unit, a staging one to resume, or a committed one to skip. Of a
//! container that comes in pages, it leaves those that were committed, and the point where the next one begins.

use std::collections::HashMap;

use domesday_model::{ByTaskType, JobStatus, ObjectKey, Reason, TaskId, UnitId, UnitRecord, UnitStatus};
use serde_json::json;
use tokio_postgres::Row;

use super::pool::Call;
use super::rows::{all_of, column, get, only, text};
use super::transaction::{Tx, params};
use super::{Result, jobs, origins, queries, results, targets, tasks};
use crate::decide::fan_out::{FAN_OUT_UNITS_MAX, Waiting, packed, plan};
use crate::decide::pages::{LastPage, first_pages, is_next};
use crate::decide::tasks::FencedTask;
use crate::decide::units::{Batch, FANNED_ALL, Totals};
use crate::error::StoreError;
use crate::queries::statement;
use crate::types::*;

/// Records of one statement: the server puts them away while the next ones are on their way.
const RECORDS_AT_ONCE: usize = 1_024;

const COMMIT_STAGED: &str = statement(queries::ENUMERATION, "commit_staged_unit");

// ── units listed whole ─────────────────────────────────────────────────────────────────────────────

pub(super) async fn commit(tx: &mut Tx<'_>, claim: &Claim, listings: &[UnitListing]) -> Result<()> {
    let calls = [tasks::fence_call(tx, claim), insert_call(claim.task, listings)?];
    let [fence, inserted] = tx.query_all(calls).await?;
    let task = tasks::fenced(claim, &fence)?;
    commit_records(tx, claim.task, task, listings, &inserted).await?;
    if let Some(batch) = Batch::of_units(claim, listings)? {
        if batch.has_listed() {
            tx.run(statement(queries::TASKS, "note_listed"), params![claim.task.0]);
        }
        record_batch(tx, claim.task, task, batch);
    }
    targets::persist(tx, task, listings.iter().flat_map(|listing| &listing.targets)).await
}

/// The same before the task is completed: refused if it leaves a container listed in part.
pub(super) async fn commit_last(tx: &mut Tx<'_>, claim: &Claim, listings: &[UnitListing]) -> Result<()> {
    let calls =
        [tasks::fence_call(tx, claim), insert_call(claim.task, listings)?, open_units_call(claim.task)];
    let [fence, inserted, open] = tx.query_all(calls).await?;
    let task = tasks::fenced(claim, &fence)?;
    commit_records(tx, claim.task, task, listings, &inserted).await?;
    if let Some(batch) = Batch::of_units(claim, listings)? {
        record_batch(tx, claim.task, task, batch);
    }
    targets::persist(tx, task, listings.iter().flat_map(|listing| &listing.targets)).await?;
    // Only this claim lists the task's containers: what was not open before is not open now.
    if open.is_empty() {
        return Ok(());
    }
    let [open] = tx.query_all([open_units_call(claim.task)]).await?;
    let open: Vec<ObjectKey> = all_of(&open)?;
    let own = if task.origin == claim.task { None } else { Some(tasks::containers(tx, claim.task).await?) };
    match open.iter().any(|key| own.as_ref().is_none_or(|own| own.contains(key))) {
        true => Err(StoreError::OpenUnit(claim.task)),
        false => Ok(()),
    }
}

fn open_units_call(task: TaskId) -> Call {
    const OPEN: &str = statement(queries::ENUMERATION, "open_units");
    Call { sql: OPEN, params: params![task.0] }
}

/// Inserts the rows of units that are new; answers which those are.
fn insert_call(task: TaskId, listings: &[UnitListing]) -> Result<Call> {
    const INSERT: &str = statement(queries::ENUMERATION, "insert_units");
    struct New<'a> {
        status: UnitStatus,
        failed: Option<(Reason, &'a str)>,
        totals: Totals,
        fanned_out: i64,
    }
    let new = column(listings, |listing| match &listing.outcome {
        UnitOutcome::Listed(records) => {
            let totals = Totals::of(records);
            let fanned_out = totals.fanned_out();
            New { status: UnitStatus::Committed, failed: None, totals, fanned_out }
        }
        UnitOutcome::Failed { reason, detail } => New {
            status: UnitStatus::Failed,
            failed: Some((*reason, detail)),
            totals: Totals::default(),
            fanned_out: FANNED_ALL,
        },
    });
    let params = params![
        task.0,
        column(listings, |listing| listing.key.0.clone()),
        column(listings, |listing| listing.page),
        first_pages(task, listings)?,
        column(&new, |unit| unit.status.as_str()),
        column(&new, |unit| unit.failed.map(|(reason, _)| reason.as_str())),
        column(&new, |unit| unit.failed.map(|(_, detail)| text(detail))),
        column(&new, |unit| unit.totals.records),
        column(&new, |unit| unit.totals.containers),
        column(&new, |unit| unit.totals.objects),
        column(&new, |unit| unit.totals.skipped),
        column(&new, |unit| unit.totals.unchanged),
        column(&new, |unit| unit.totals.bytes),
        column(listings, |listing| listing.resume_point.as_ref().map(|point| point.as_bytes().to_vec())),
        column(&new, |unit| unit.fanned_out),
    ];
    Ok(Call { sql: INSERT, params })
}

/// Gives the units that are new their records. Of those that are not, what is staged is replaced or fails;
/// what is committed or failed stays as it is, and pages that leave a gap are refused. Repeating it changes
/// nothing.
async fn commit_records(
    tx: &mut Tx<'_>,
    id: TaskId,
    task: FencedTask,
    listings: &[UnitListing],
    inserted: &[Row],
) -> Result<()> {
    let mut units = HashMap::with_capacity(inserted.len());
    for row in inserted {
        units.insert((get::<&[u8]>(row, 1)?, get::<i64>(row, 2)?), UnitId(get(row, 0)?));
    }
    let (mut new, mut known) = (Vec::new(), Vec::new());
    for listing in listings {
        // Of two listings of one page, the first is the one that was inserted.
        match units.remove(&(&listing.key.0[..], listing.page)) {
            Some(unit) => new.push((unit, 0, listed(listing))),
            None => known.push(listing),
        }
    }
    insert_records(tx, &new);
    replace_staging(tx, id, task, &known).await
}

fn listed(listing: &UnitListing) -> &[UnitRecord] {
    match &listing.outcome {
        UnitOutcome::Listed(records) => records,
        UnitOutcome::Failed { .. } => &[],
    }
}

/// Containers that an earlier claim began in batches, and that now came whole in one, or failed.
async fn replace_staging(
    tx: &mut Tx<'_>,
    id: TaskId,
    task: FencedTask,
    listings: &[&UnitListing],
) -> Result<()> {
    const FAIL: &str = statement(queries::ENUMERATION, "fail_staging_unit");
    if listings.is_empty() {
        return Ok(());
    }
    let keys = || column(listings, |listing| listing.key.0.clone());
    let [rows, last] = tx.query_all([staging_call(id, keys()), last_pages_call(id, keys())]).await?;
    let last = last_pages(&last)?;
    for listing in listings.iter().filter(|listing| listing.page != 0) {
        is_next(id, last.get(&listing.key).copied(), listing.page)?;
    }
    for row in rows.iter() {
        let (unit, key): (i64, &[u8]) = (get(row, 0)?, get(row, 1)?);
        let Some(listing) = listings.iter().find(|listing| listing.key.0 == key && listing.page == 0) else {
            continue;
        };
        match &listing.outcome {
            UnitOutcome::Listed(records) => {
                clear(tx, task, UnitId(unit));
                insert_records(tx, &[(UnitId(unit), 0, records)]);
                add_totals(tx, UnitId(unit), &Totals::of(records));
                tx.run(COMMIT_STAGED, params![unit, task.origin.0]);
            }
            UnitOutcome::Failed { reason, detail } => {
                tx.run(FAIL, params![unit, reason.as_str(), text(detail)]);
            }
        }
    }
    Ok(())
}

/// Locks the staging units of these keys; answers with id, key and next sequence number.
fn staging_call(task: TaskId, keys: Vec<Vec<u8>>) -> Call {
    const STAGING: &str = statement(queries::ENUMERATION, "staging_units");
    Call { sql: STAGING, params: params![task.0, keys] }
}

/// Asks for the last page of each of these containers.
fn last_pages_call(task: TaskId, keys: Vec<Vec<u8>>) -> Call {
    const LAST: &str = statement(queries::ENUMERATION, "last_pages");
    Call { sql: LAST, params: params![task.0, keys] }
}

fn last_pages(rows: &[Row]) -> Result<HashMap<ObjectKey, LastPage>> {
    let states: Vec<UnitState> = all_of(rows)?;
    Ok(states.into_iter().map(|state| (state.key.clone(), LastPage::of(&state))).collect())
}

/// Gives up containers, from where the listing of each is; those that have ended stay as they are.
pub(super) async fn give_up(
    tx: &mut Tx<'_>,
    id: TaskId,
    task: FencedTask,
    mut failed: Vec<UnitListing>,
) -> Result<()> {
    let keys = column(&failed, |listing| listing.key.0.clone());
    let [last] = tx.query_all([last_pages_call(id, keys)]).await?;
    let last = last_pages(&last)?;
    for listing in &mut failed {
        listing.page = match last.get(&listing.key) {
            Some(last) if last.is_open => last.page + 1,
            _ => 0,
        };
    }
    let [inserted] = tx.query_all([insert_call(id, &failed)?]).await?;
    commit_records(tx, id, task, &failed, &inserted).await
}

fn add_totals(tx: &mut Tx<'_>, unit: UnitId, totals: &Totals) {
    const ADD: &str = statement(queries::ENUMERATION, "add_unit_totals");
    let Totals { records, containers, objects, skipped, unchanged, bytes, .. } = *totals;
    tx.run(ADD, params![unit.0, records, containers, objects, skipped, unchanged, bytes]);
}

/// Queues records of units, each from a sequence number on, and the reasons of those left out.
///
/// Not by COPY, although that is faster: a server that waits for rows keeps what the transaction has locked, however
/// long its process is suspended, and no time limit of a session ends that.
fn insert_records(tx: &mut Tx<'_>, units: &[(UnitId, i64, &[UnitRecord])]) {
    const RECORDS: &str = statement(queries::ENUMERATION, "insert_records");
    const SKIPS: &str = statement(queries::ENUMERATION, "add_unit_skips");
    let rows: Vec<(i64, i64, &UnitRecord)> = units
        .iter()
        .flat_map(|(unit, first, records)| {
            (*first..).zip(*records).map(|(sequence, record)| (unit.0, sequence, record))
        })
        .collect();
    for rows in rows.chunks(RECORDS_AT_ONCE) {
        let params = params![
            column(rows, |(unit, ..)| *unit),
            column(rows, |(_, sequence, _)| *sequence),
            column(rows, |(.., record)| record.kind.code() as i16),
            column(rows, |(.., record)| record.name.clone()),
            column(rows, |(.., record)| ObjectKey::hash128(&record.name).to_vec()),
            column(rows, |(.., record)| record.size.cast_signed()),
            column(rows, |(.., record)| record.marks.mtime_ns),
            column(rows, |(.., record)| record.marks.ctime_ns),
            column(rows, |(.., record)| record.marks.inode.cast_signed()),
            seldom(rows, |(.., record)| record.marks.tag.as_ref().map(|tag| tag.to_vec())),
            seldom(rows, |(.., record)| record.reason.map(Reason::as_str)),
            seldom(rows, |(.., record)| record.metadata.as_deref().map(text)),
        ];
        tx.run(RECORDS, params);
    }
    let (mut ids, mut reasons, mut counts) = (Vec::new(), Vec::new(), Vec::new());
    for (unit, _, records) in units {
        for (reason, count) in Totals::of(records).reasons {
            ids.push(unit.0);
            reasons.push(reason.as_str());
            counts.push(count);
        }
    }
    if !ids.is_empty() {
        tx.run(SKIPS, params![ids, reasons, counts]);
    }
}

/// A column that most lists have nothing in: then it is not sent, and each row has NULL there.
fn seldom<'a, T, U>(things: &'a [T], value: impl FnMut(&'a T) -> Option<U>) -> Option<Vec<Option<U>>> {
    let values = column(things, value);
    values.iter().any(Option::is_some).then_some(values)
}

// ── units listed in batches ────────────────────────────────────────────────────────────────────────

pub(super) async fn stage(tx: &mut Tx<'_>, claim: &Claim, batch: &StageBatch) -> Result<UnitId> {
    let calls = [
        tasks::fence_call(tx, claim),
        insert_staging_call(claim.task, &batch.key),
        staging_call(claim.task, vec![batch.key.0.clone()]),
    ];
    let [fence, _, staging] = tx.query_all(calls).await?;
    let task = tasks::fenced(claim, &fence)?;
    let row = staging.first().ok_or(StoreError::LostClaim(claim.task))?;
    let (unit, next): (UnitId, i64) = (UnitId(get(row, 0)?), get(row, 2)?);
    // A batch whose answer was lost may come again: what is there is there.
    if batch.first_sequence < next {
        return Ok(unit);
    }
    if batch.first_sequence > next {
        return Err(StoreError::Gap { task: claim.task, expected: next, found: batch.first_sequence });
    }
    insert_records(tx, &[(unit, next, &batch.records)]);
    add_totals(tx, unit, &Totals::of(&batch.records));
    record_batch(tx, claim.task, task, Batch::of_part(claim, batch)?);
    targets::persist(tx, task, &batch.targets).await?;
    Ok(unit)
}

fn insert_staging_call(task: TaskId, key: &ObjectKey) -> Call {
    const INSERT: &str = statement(queries::ENUMERATION, "insert_units");
    let none = || vec![None::<&'static str>];
    let zero = || vec![0_i64];
    let status = vec![UnitStatus::Staging.as_str()];
    let params = params![
        task.0,
        vec![key.0.clone()],
        zero(),
        zero(),
        status,
        none(),
        none(),
        zero(),
        zero(),
        zero(),
        zero(),
        zero(),
        zero(),
        vec![None::<Vec<u8>>],
        zero(),
    ];
    Call { sql: INSERT, params }
}

pub(super) async fn commit_staged(tx: &mut Tx<'_>, claim: &Claim, unit: UnitId) -> Result<()> {
    const COMMITTED: &str = statement(queries::ENUMERATION, "unit_is_committed");
    let task = tasks::fence(tx, claim).await?;
    tx.wakes_everyone();
    let calls = [COMMIT_STAGED, COMMITTED].map(|sql| Call { sql, params: params![unit.0, task.origin.0] });
    let [_, rows] = tx.query_last(calls).await?;
    match get(only(&rows)?, 0)? {
        true => Ok(()),
        false => Err(StoreError::LostClaim(claim.task)),
    }
}

pub(super) fn clear(tx: &mut Tx<'_>, task: FencedTask, unit: UnitId) {
    const CLEAR: &str = statement(queries::ENUMERATION, "clear_unit");
    tx.run(CLEAR, params![unit.0, task.origin.0]);
}

pub(super) fn fail_open(tx: &mut Tx<'_>, origin: TaskId, error: &str) {
    const STAGING: &str = statement(queries::ENUMERATION, "fail_open_units_of_task");
    const PAGES: &str = statement(queries::ENUMERATION, "fail_open_pages_of_task");
    for sql in [STAGING, PAGES] {
        tx.run(sql, params![origin.0, text(error)]);
    }
}

/// One row of `enumeration_batches` per commit; the session's checkpoint is that of its last.
pub(super) fn record_batch(tx: &mut Tx<'_>, id: TaskId, task: FencedTask, batch: Batch) {
    const PROGRESS: &str = statement(queries::TASKS, "note_progress");
    const BATCH: &str = statement(queries::ENUMERATION, "insert_batch");
    const TOUCH: &str = statement(queries::ENUMERATION, "touch_session");
    let Batch { status, items, checkpoint, error } = batch;
    tx.run(PROGRESS, params![id.0]);
    let error = error.as_deref().map(text);
    tx.run(BATCH, params![task.session.0, status.as_str(), checkpoint, items, error]);
    tx.run(TOUCH, params![task.session.0]);
    let payload = json!({ "session": task.session, "items": items });
    results::event(tx, task.job, "BatchCommitted", &payload);
}

// ── fan-out ────────────────────────────────────────────────────────────────────────────────────────

pub(super) async fn fan_out(tx: &mut Tx<'_>, lease: &JobLease, policy: FanOutPolicy) -> Result<FanOutReport> {
    const PENDING: &str = statement(queries::TASKS, "pending_counts");
    const UNITS: &str = statement(queries::ENUMERATION, "units_to_fan_out");
    const MARK: &str = statement(queries::ENUMERATION, "mark_fanned_out");
    let types: Vec<&str> = packed().map(|(task_type, _)| task_type.as_str()).collect();
    let calls = [
        jobs::fence_call(lease),
        Call { sql: PENDING, params: params![lease.job.0, i64::from(policy.ready_low), types] },
        Call { sql: UNITS, params: params![lease.job.0, i64::from(FAN_OUT_UNITS_MAX)] },
        origins::sessions_call(lease.job),
    ];
    let [fence, pending, waiting, untraced] = tx.query_all(calls).await?;
    // Of a job that ends or pauses, what waits stays where it is; a resumed one finds it again.
    if jobs::fenced(lease, &fence)?.owned.status != JobStatus::Running {
        return Ok(FanOutReport::default());
    }
    let mut ready = ByTaskType::default();
    for ((task_type, _), row) in packed().zip(pending.iter()) {
        ready[task_type] = get(row, 0)?;
    }
    let waiting: Vec<Waiting> = all_of(&waiting)?;
    let mut plan = plan(lease.job, &waiting, policy, &ready);
    if !plan.covered.is_empty() {
        tasks::insert(tx, &plan.tasks)?;
        let units = column(&plan.covered, |(unit, _)| unit.0);
        tx.run(MARK, params![units, column(&plan.covered, |(_, bit)| *bit)]);
    }
    origins::fan_out(tx, lease.job, &untraced, &mut plan.report)?;
    Ok(plan.report)
}
