//! Units and their records: staging, commit, resumption, fan-out.
//!
//! A unit that fits one batch is inserted COMMITTED with its records. A larger one collects records
//! under a STAGING row that no reader looks behind, and one update of that row makes all of them
//! visible. A crash anywhere leaves either no unit, a staging one to resume, or a committed one to skip. Of a
//! container that comes in pages, it leaves those that were committed, and the point where the next one begins.

use domesday_model::{ByTaskType, JobStatus, ObjectKey, Reason, TaskId, UnitId, UnitRecord, UnitStatus};
use rusqlite::{Connection, params};
use serde_json::json;

use super::kept::Committed;
use super::rows::Statements;
use super::{Result, jobs, origins, queries, records, results, targets, tasks};
use crate::decide::fan_out::{FAN_OUT_UNITS_MAX, Waiting, packed, plan};
use crate::decide::pages::{LastPage, is_next};
use crate::decide::sessions::session_checkpoint;
use crate::decide::tasks::FencedTask;
use crate::decide::units::{Batch, FANNED_ALL, Totals};
use crate::error::StoreError;
use crate::queries::statement;
use crate::types::*;

/// The last page of a container.
fn last_page(c: &Connection, task: FencedTask, key: &ObjectKey) -> Result<Option<UnitState>> {
    const LAST: &str = statement(queries::ENUMERATION, "last_page");
    c.one(LAST, params![task.origin.0, key.0])
}

/// Commits units that were listed, or failed; those that are new in the book.
pub(super) fn commit(
    c: &Connection,
    claim: &Claim,
    task: FencedTask,
    listings: Vec<UnitListing>,
) -> Result<Vec<Committed>> {
    let units: Vec<Option<UnitId>> =
        listings.iter().map(|listing| commit_one(c, claim.task, task, listing)).collect::<Result<_>>()?;
    let new = units.iter().zip(&listings).filter_map(|(unit, listing)| match &listing.outcome {
        UnitOutcome::Listed(records) => Some(((*unit)?, records.as_slice())),
        UnitOutcome::Failed { .. } => None,
    });
    records::insert_whole(c, new)?;
    if let Some(batch) = Batch::of_units(claim, &listings)? {
        record_batch(c, claim.task, task, &batch)?;
        if batch.has_listed() {
            c.change(statement(queries::TASKS, "note_listed"), [claim.task.0])?;
        }
    }
    targets::persist(c, task, listings.iter().flat_map(|listing| &listing.targets))?;
    let committed = units.into_iter().zip(listings).filter_map(|(unit, listing)| match listing.outcome {
        UnitOutcome::Listed(records) => Some(Committed { unit: unit?, key: listing.key, records }),
        UnitOutcome::Failed { .. } => None,
    });
    Ok(committed.collect())
}

/// Before a task is completed: refused if it leaves a container listed in part. What a half's sibling has
/// open is its own.
pub(super) fn check_none_open(c: &Connection, id: TaskId, task: FencedTask) -> Result<()> {
    const OPEN: &str = statement(queries::ENUMERATION, "open_units");
    let open: Vec<ObjectKey> = c.all(OPEN, [task.origin.0])?;
    if open.is_empty() {
        return Ok(());
    }
    let own = if task.origin == id { None } else { Some(tasks::containers(c, id)?) };
    match open.iter().any(|key| own.as_ref().is_none_or(|own| own.contains(key))) {
        true => Err(StoreError::OpenUnit(id)),
        false => Ok(()),
    }
}

/// Commits one unit that was listed, or failed; its id, if it is new: then its records are still to be inserted.
/// Repeating it changes nothing.
fn commit_one(c: &Connection, id: TaskId, task: FencedTask, listing: &UnitListing) -> Result<Option<UnitId>> {
    // The first page needs none before it: whether it is there, its own row tells.
    if listing.page != 0 {
        let last = last_page(c, task, &listing.key)?.map(|last| LastPage::of(&last));
        if !is_next(id, last, listing.page)? {
            return Ok(None);
        }
    }
    match &listing.outcome {
        UnitOutcome::Listed(records) => {
            let totals = Totals::of(records);
            let unit = insert_unit(c, task, listing, UnitStatus::Committed, &totals, totals.fanned_out())?;
            match unit {
                Some(unit) => insert_skips(c, unit, &totals)?,
                None => replace_staging(c, task, &listing.key, records, &totals)?,
            }
            Ok(unit)
        }
        UnitOutcome::Failed { reason, detail } => {
            let unit = insert_unit(c, task, listing, UnitStatus::Failed, &Totals::default(), FANNED_ALL)?;
            if unit.is_none() {
                fail_staging(c, task, &listing.key, *reason, detail)?;
            }
            Ok(unit)
        }
    }
}

fn fail_staging(
    c: &Connection,
    task: FencedTask,
    key: &ObjectKey,
    reason: Reason,
    detail: &str,
) -> Result<()> {
    const FAIL: &str = statement(queries::ENUMERATION, "fail_staging_unit");
    c.change(FAIL, params![task.origin.0, key.0, reason.as_str(), detail]).map(drop)
}

/// Gives up a container, from where its listing is; one that has ended stays as it is.
pub(super) fn give_up(c: &Connection, id: TaskId, task: FencedTask, mut failed: UnitListing) -> Result<()> {
    failed.page = match last_page(c, task, &failed.key)? {
        Some(last) if LastPage::of(&last).is_open => last.page + 1,
        _ => 0,
    };
    commit_one(c, id, task, &failed)?;
    Ok(())
}

/// A container that an earlier claim began in batches, and that now came whole in one: the listing takes
/// the place of what was staged. A unit that is committed or failed stays as it is.
fn replace_staging(
    c: &Connection,
    task: FencedTask,
    key: &ObjectKey,
    records: &[UnitRecord],
    totals: &Totals,
) -> Result<()> {
    const COMMIT: &str = statement(queries::ENUMERATION, "commit_staged_unit");
    let Some((unit, _)) = staging(c, task, key)? else { return Ok(()) };
    clear(c, task, unit)?;
    records::insert_whole(c, [(unit, records)])?;
    insert_skips(c, unit, totals)?;
    add_totals(c, unit, totals)?;
    c.change(COMMIT, [unit.0, task.origin.0]).map(drop)
}

/// The staging unit of this key, with its next sequence number.
fn staging(c: &Connection, task: FencedTask, key: &ObjectKey) -> Result<Option<(UnitId, i64)>> {
    const STAGING: &str = statement(queries::ENUMERATION, "staging_unit");
    let staging: Option<(i64, i64)> = c.one(STAGING, params![task.origin.0, key.0])?;
    Ok(staging.map(|(unit, next)| (UnitId(unit), next)))
}

fn add_totals(c: &Connection, unit: UnitId, totals: &Totals) -> Result<()> {
    const ADD: &str = statement(queries::ENUMERATION, "add_unit_totals");
    let Totals { records, containers, objects, skipped, unchanged, bytes, .. } = *totals;
    c.change(ADD, [unit.0, records, containers, objects, skipped, unchanged, bytes]).map(drop)
}

fn insert_unit(
    c: &Connection,
    task: FencedTask,
    listing: &UnitListing,
    status: UnitStatus,
    totals: &Totals,
    fanned_out: i64,
) -> Result<Option<UnitId>> {
    const INSERT: &str = statement(queries::ENUMERATION, "insert_unit");
    let failed = match &listing.outcome {
        UnitOutcome::Listed(_) => None,
        UnitOutcome::Failed { reason, detail } => Some((*reason, detail)),
    };
    let parameters = params![
        task.origin.0,
        task.job.0,
        task.session.0,
        listing.key.0,
        listing.page,
        status.as_str(),
        failed.map(|(reason, _)| reason.as_str()),
        failed.map(|(_, detail)| detail),
        totals.records,
        totals.containers,
        totals.objects,
        totals.skipped,
        totals.unchanged,
        totals.bytes,
        listing.resume_point,
        fanned_out,
    ];
    Ok((c.change(INSERT, parameters)? == 1).then(|| UnitId(c.last_insert_rowid())))
}

fn insert_skips(c: &Connection, unit: UnitId, totals: &Totals) -> Result<()> {
    const SKIPS: &str = statement(queries::ENUMERATION, "add_unit_skips");
    for (reason, count) in &totals.reasons {
        c.change(SKIPS, params![unit.0, reason.as_str(), count])?;
    }
    Ok(())
}

pub(super) fn stage(c: &Connection, claim: &Claim, task: FencedTask, batch: &StageBatch) -> Result<UnitId> {
    let empty = UnitListing::whole(batch.key.clone(), Vec::new());
    let inserted = insert_unit(c, task, &empty, UnitStatus::Staging, &Totals::default(), 0)?;
    let (unit, next) = match inserted {
        Some(unit) => (unit, 0),
        None => staging(c, task, &batch.key)?.ok_or(StoreError::LostClaim(claim.task))?,
    };
    // A batch whose answer was lost may come again: what is there is there.
    if batch.first_sequence < next {
        return Ok(unit);
    }
    if batch.first_sequence > next {
        return Err(StoreError::Gap { task: claim.task, expected: next, found: batch.first_sequence });
    }
    let totals = Totals::of(&batch.records);
    records::insert_part(c, unit, batch.first_sequence, &batch.records)?;
    insert_skips(c, unit, &totals)?;
    add_totals(c, unit, &totals)?;
    record_batch(c, claim.task, task, &Batch::of_part(claim, batch)?)?;
    targets::persist(c, task, &batch.targets)?;
    Ok(unit)
}

pub(super) fn commit_staged(c: &Connection, claim: &Claim, task: FencedTask, unit: UnitId) -> Result<()> {
    const COMMIT: &str = statement(queries::ENUMERATION, "commit_staged_unit");
    const COMMITTED: &str = statement(queries::ENUMERATION, "unit_is_committed");
    let of = [unit.0, task.origin.0];
    match c.change(COMMIT, of)? == 1 || c.only(COMMITTED, of)? {
        true => Ok(()),
        false => Err(StoreError::LostClaim(claim.task)),
    }
}

pub(super) fn clear(c: &Connection, task: FencedTask, unit: UnitId) -> Result<()> {
    const TOTALS: &str = statement(queries::ENUMERATION, "clear_unit_totals");
    const RECORDS: &str = statement(queries::ENUMERATION, "clear_unit_records");
    const SKIPS: &str = statement(queries::ENUMERATION, "clear_unit_skips");
    // Only a staging unit of this task: a committed one stays as it is.
    if c.change(TOTALS, [unit.0, task.origin.0])? == 1 {
        c.change(RECORDS, [unit.0])?;
        c.change(SKIPS, [unit.0])?;
    }
    Ok(())
}

pub(super) fn fail_open(c: &Connection, origin: TaskId, error: &str) -> Result<()> {
    const STAGING: &str = statement(queries::ENUMERATION, "fail_open_units_of_task");
    const PAGES: &str = statement(queries::ENUMERATION, "fail_open_pages_of_task");
    [STAGING, PAGES].iter().try_for_each(|sql| c.change(sql, params![origin.0, error]).map(drop))
}

/// One row of `enumeration_batches` per commit, with the session's checkpoint derived from it.
pub(super) fn record_batch(c: &Connection, id: TaskId, task: FencedTask, batch: &Batch) -> Result<()> {
    const PROGRESS: &str = statement(queries::TASKS, "note_progress");
    const BATCH: &str = statement(queries::ENUMERATION, "insert_batch");
    const CHECKPOINT: &str = statement(queries::SESSIONS, "save_checkpoint");
    const TOUCH: &str = statement(queries::ENUMERATION, "touch_session");
    let Batch { status, items, checkpoint, error } = batch;
    c.change(PROGRESS, [id.0])?;
    c.change(BATCH, params![task.session.0, status.as_str(), checkpoint, items, error])?;
    let id: i64 = c.only(CHECKPOINT, [&session_checkpoint(task.session), checkpoint])?;
    c.change(TOUCH, [task.session.0, id])?;
    results::event(c, task.job, "BatchCommitted", json!({ "session": task.session, "items": items }))
}

// ── fan-out ────────────────────────────────────────────────────────────────────────────────────────

pub(super) fn fan_out(c: &Connection, lease: &JobLease, policy: FanOutPolicy) -> Result<FanOutReport> {
    const PENDING: &str = statement(queries::TASKS, "pending_count");
    const UNITS: &str = statement(queries::ENUMERATION, "units_to_fan_out");
    const MARK: &str = statement(queries::ENUMERATION, "mark_fanned_out");
    // Of a job that ends or pauses, what waits stays where it is; a resumed one finds it again.
    if jobs::fence(c, lease)?.owned.status != JobStatus::Running {
        return Ok(FanOutReport::default());
    }
    let mut pending = ByTaskType::default();
    for (task_type, _) in packed() {
        let parameters = params![lease.job.0, task_type.as_str(), policy.ready_low];
        pending[task_type] = c.only(PENDING, parameters)?;
    }
    let waiting: Vec<Waiting> = c.all(UNITS, params![lease.job.0, FAN_OUT_UNITS_MAX])?;
    let mut plan = plan(lease.job, &waiting, policy, &pending);
    for task in &plan.tasks {
        tasks::insert(c, task)?;
    }
    for (unit, bit) in &plan.covered {
        c.change(MARK, [unit.0, *bit])?;
    }
    origins::fan_out(c, lease.job, &mut plan.report)?;
    Ok(plan.report)
}
