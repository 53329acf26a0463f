//! Units and their records: staging, commit, resumption, fan-out.
//!
//! A unit that fits one batch is inserted COMMITTED with its records. A larger one collects records
//! under a STAGING row that no reader looks behind, and one update of that row makes all of them
//! visible. A crash anywhere leaves either no unit, a staging one to resume, or a committed one to skip. Of a
//! container that comes in pages, it leaves those that were committed, and the point where the next one begins.

use std::ops::Range;

use domesday_model::{
    ByTaskType, DatasourceId, EnumerationSessionId, JobStatus, ObjectKey, Reason, TaskId, UnitId, UnitRecord,
    UnitStatus,
};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::json;

use super::jobs::{self, ENUMERATION as FILE};
use super::kept::Committed;
use super::{Result, origins, records, results, targets, tasks};
use crate::decide::fan_out::{FAN_OUT_UNITS_MAX, Waiting, packed, plan};
use crate::decide::pages::{LastPage, is_next};
use crate::decide::sessions::session_checkpoint;
use crate::decide::tasks::FencedTask;
use crate::decide::units::{Batch, FANNED_ALL, Totals};
use crate::error::StoreError;
use crate::queries::statement;
use crate::types::*;
use crate::values;

pub(super) fn of_task(c: &Connection, claim: &Claim) -> Result<Vec<UnitState>> {
    const UNITS: &str = statement(FILE, "units_of_task");
    let mut statement = c.prepare_cached(UNITS)?;
    let rows = statement.query_map([claim.task.0], |row| Ok(unit_state(row)))?;
    rows.map(|row| row?).collect()
}

/// Columns as in the statement `units_of_task`.
fn unit_state(row: &Row<'_>) -> Result<UnitState> {
    let status: String = row.get(3)?;
    Ok(UnitState {
        unit: UnitId(row.get(0)?),
        key: ObjectKey(row.get(1)?),
        page: row.get(2)?,
        status: values::unit_status(&status)?,
        records: row.get(4)?,
        resume_point: row.get(5)?,
    })
}

/// The last page of a container.
fn last_page(c: &Connection, task: FencedTask, key: &ObjectKey) -> Result<Option<UnitState>> {
    const LAST: &str = statement(FILE, "last_page");
    let last = c
        .prepare_cached(LAST)?
        .query_row(params![task.origin.0, key.0], |row| Ok(unit_state(row)))
        .optional()?;
    last.transpose()
}

pub(super) fn staged_hashes(c: &Connection, unit: UnitId, first_bytes: (u8, u8)) -> Result<Vec<[u8; 16]>> {
    const HASHES: &str = statement(FILE, "staged_hashes");
    let mut statement = c.prepare_cached(HASHES)?;
    let rows = statement.query_map(params![unit.0, [first_bytes.0], [first_bytes.1]], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn listed_names(
    c: &Connection,
    claim: &Claim,
    container: &ObjectKey,
    pages: &Range<i64>,
) -> Result<Vec<Vec<u8>>> {
    const NAMES: &str = statement(FILE, "listed_names");
    let mut statement = c.prepare_cached(NAMES)?;
    let of_pages = params![claim.task.0, container.0, pages.start, pages.end];
    let rows = statement.query_map(of_pages, |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
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
    const OPEN: &str = statement(FILE, "open_units");
    let open: Vec<ObjectKey> = {
        let mut statement = c.prepare_cached(OPEN)?;
        let rows = statement.query_map([task.origin.0], |row| Ok(ObjectKey(row.get(0)?)))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
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
    const FAIL: &str = statement(FILE, "fail_staging_unit");
    c.prepare_cached(FAIL)?.execute(params![task.origin.0, key.0, reason.as_str(), detail])?;
    Ok(())
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
    const COMMIT: &str = statement(FILE, "commit_staged_unit");
    let Some((unit, _)) = staging(c, task, key)? else { return Ok(()) };
    clear(c, task, unit)?;
    records::insert_whole(c, [(unit, records)])?;
    insert_skips(c, unit, totals)?;
    add_totals(c, unit, totals)?;
    c.prepare_cached(COMMIT)?.execute(params![unit.0, task.origin.0])?;
    Ok(())
}

/// The staging unit of this key, with its next sequence number.
fn staging(c: &Connection, task: FencedTask, key: &ObjectKey) -> Result<Option<(UnitId, i64)>> {
    const STAGING: &str = statement(FILE, "staging_unit");
    let row = c
        .prepare_cached(STAGING)?
        .query_row(params![task.origin.0, key.0], |row| Ok((UnitId(row.get(0)?), row.get(1)?)))
        .optional()?;
    Ok(row)
}

fn add_totals(c: &Connection, unit: UnitId, totals: &Totals) -> Result<()> {
    const ADD: &str = statement(FILE, "add_unit_totals");
    c.prepare_cached(ADD)?.execute(params![
        unit.0,
        totals.records,
        totals.containers,
        totals.objects,
        totals.skipped,
        totals.unchanged,
        totals.bytes,
    ])?;
    Ok(())
}

fn insert_unit(
    c: &Connection,
    task: FencedTask,
    listing: &UnitListing,
    status: UnitStatus,
    totals: &Totals,
    fanned_out: i64,
) -> Result<Option<UnitId>> {
    const INSERT: &str = statement(FILE, "insert_unit");
    let failed = match &listing.outcome {
        UnitOutcome::Listed(_) => None,
        UnitOutcome::Failed { reason, detail } => Some((*reason, detail)),
    };
    let inserted = c.prepare_cached(INSERT)?.execute(params![
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
    ])?;
    Ok((inserted == 1).then(|| UnitId(c.last_insert_rowid())))
}

fn insert_skips(c: &Connection, unit: UnitId, totals: &Totals) -> Result<()> {
    const SKIPS: &str = statement(FILE, "add_unit_skips");
    for (reason, count) in &totals.reasons {
        c.prepare_cached(SKIPS)?.execute(params![unit.0, reason.as_str(), count])?;
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
    const COMMIT: &str = statement(FILE, "commit_staged_unit");
    const COMMITTED: &str = statement(FILE, "unit_is_committed");
    if c.prepare_cached(COMMIT)?.execute(params![unit.0, task.origin.0])? == 1
        || c.prepare_cached(COMMITTED)?.query_row(params![unit.0, task.origin.0], |row| row.get(0))?
    {
        return Ok(());
    }
    Err(StoreError::LostClaim(claim.task))
}

pub(super) fn clear(c: &Connection, task: FencedTask, unit: UnitId) -> Result<()> {
    const TOTALS: &str = statement(FILE, "clear_unit_totals");
    const RECORDS: &str = statement(FILE, "clear_unit_records");
    const SKIPS: &str = statement(FILE, "clear_unit_skips");
    // Only a staging unit of this task: a committed one stays as it is.
    if c.prepare_cached(TOTALS)?.execute(params![unit.0, task.origin.0])? == 1 {
        c.prepare_cached(RECORDS)?.execute([unit.0])?;
        c.prepare_cached(SKIPS)?.execute([unit.0])?;
    }
    Ok(())
}

pub(super) fn fail_open(c: &Connection, origin: TaskId, error: &str) -> Result<()> {
    const STAGING: &str = statement(FILE, "fail_open_units_of_task");
    const PAGES: &str = statement(FILE, "fail_open_pages_of_task");
    for sql in [STAGING, PAGES] {
        c.prepare_cached(sql)?.execute(params![origin.0, error])?;
    }
    Ok(())
}

/// One row of `enumeration_batches` per commit, with the session's checkpoint derived from it.
pub(super) fn record_batch(c: &Connection, id: TaskId, task: FencedTask, batch: &Batch) -> Result<()> {
    const PROGRESS: &str = statement(tasks::FILE, "note_progress");
    const BATCH: &str = statement(FILE, "insert_batch");
    const CHECKPOINT: &str = statement(super::sessions::FILE, "save_checkpoint");
    const TOUCH: &str = statement(FILE, "touch_session");
    let Batch { status, items, checkpoint, error } = batch;
    c.prepare_cached(PROGRESS)?.execute([id.0])?;
    c.prepare_cached(BATCH)?.execute(params![task.session.0, status.as_str(), checkpoint, items, error])?;
    let id: i64 = c
        .prepare_cached(CHECKPOINT)?
        .query_row(params![session_checkpoint(task.session), checkpoint], |row| row.get(0))?;
    c.prepare_cached(TOUCH)?.execute(params![task.session.0, id])?;
    results::event(c, task.job, "BatchCommitted", json!({ "session": task.session, "items": items }))
}

// ── fan-out ────────────────────────────────────────────────────────────────────────────────────────

pub(super) fn fan_out(c: &Connection, lease: &JobLease, policy: FanOutPolicy) -> Result<FanOutReport> {
    const PENDING: &str = statement(tasks::FILE, "pending_count");
    const MARK: &str = statement(FILE, "mark_fanned_out");
    // Of a job that ends or pauses, what waits stays where it is; a resumed one finds it again.
    if jobs::fence(c, lease)?.owned.status != JobStatus::Running {
        return Ok(FanOutReport::default());
    }
    let mut pending = ByTaskType::default();
    for (task_type, _) in packed() {
        let parameters = params![lease.job.0, task_type.as_str(), policy.ready_low];
        pending[task_type] = c.prepare_cached(PENDING)?.query_row(parameters, |row| row.get(0))?;
    }
    let mut plan = plan(lease.job, &units_to_fan_out(c, lease)?, policy, &pending);
    for task in &plan.tasks {
        tasks::insert(c, task)?;
    }
    for (unit, bit) in &plan.covered {
        c.prepare_cached(MARK)?.execute(params![unit.0, bit])?;
    }
    origins::fan_out(c, lease.job, &mut plan.report)?;
    Ok(plan.report)
}

fn units_to_fan_out(c: &Connection, lease: &JobLease) -> Result<Vec<Waiting>> {
    const UNITS: &str = statement(FILE, "units_to_fan_out");
    let mut statement = c.prepare_cached(UNITS)?;
    let rows = statement.query_map(params![lease.job.0, FAN_OUT_UNITS_MAX], |row| {
        Ok(Waiting {
            unit: UnitId(row.get(0)?),
            session: EnumerationSessionId(row.get(1)?),
            records: row.get(2)?,
            containers: row.get(3)?,
            objects: row.get(4)?,
            bytes: row.get(5)?,
            fanned_out: row.get(6)?,
            datasource: DatasourceId(row.get(7)?),
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
