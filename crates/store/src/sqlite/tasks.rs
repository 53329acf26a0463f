//! Tasks: the fence, claims, giving back, the reaper.

use std::time::Duration;

use domesday_model::{
    ClaimId, DatasourceId, EnumerationSessionId, JobId, ListedObject, ObjectKey, ProcessId, Reason,
    RecordKind, TaskId, TaskPayload, TaskType, VersionMarks,
};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::json;

use super::jobs::ENUMERATION;
use super::{Fence, Result, origins, results, units};
use crate::decide::tasks::{
    Abandoned, CONTAINERS, Claimed, Failures, Fate, FencedTask, NewTask, RecordKinds, failures, fates,
    objects_given_up, record_kinds,
};
use crate::decide::units::Batch;
use crate::error::StoreError;
use crate::queries::statement;
use crate::types::*;
use crate::values::{self, from_json, millis, to_json};

pub(super) const FILE: &str = queries_of!("tasks");

pub(super) const FENCE: Fence = Fence(statement(FILE, "fence"));
#[cfg(feature = "conformance")]
pub(super) const NO_FENCE: Fence = Fence(statement(FILE, "no_fence"));

impl Fence {
    /// Locks the task under this claim, or refuses. Every write of results calls this first, in its
    /// own transaction; SQLite's one writer makes the check and the write one step.
    pub fn check(self, c: &Connection, claim: &Claim) -> Result<FencedTask> {
        c.prepare_cached(self.0)?
            .query_row(params![claim.task.0, claim.claim.0], |row| {
                Ok(FencedTask {
                    job: JobId(row.get(0)?),
                    session: EnumerationSessionId(row.get(1)?),
                    datasource: DatasourceId(row.get(2)?),
                    origin: TaskId(row.get(3)?),
                })
            })
            .optional()?
            .ok_or(StoreError::LostClaim(claim.task))
    }
}

/// Inserts a task with its `TaskCreated` event. Called by the fan-out, by the start of a session and by
/// the split of a task, and by nothing else.
pub(super) fn insert(c: &Connection, task: &NewTask) -> Result<TaskId> {
    const INSERT: &str = statement(FILE, "insert_task");
    c.prepare_cached(INSERT)?.execute(params![
        task.job.0,
        task.datasource.0,
        task.session.0,
        task.origin.map(|origin| origin.0),
        task.task_type.as_str(),
        task.priority,
        to_json(&task.payload)?,
        task.abandonments,
    ])?;
    let id = TaskId(c.last_insert_rowid());
    results::event(c, task.job, "TaskCreated", json!({ "task": id, "type": task.task_type.as_str() }))?;
    Ok(id)
}

// ── claiming ───────────────────────────────────────────────────────────────────────────────────────

pub(super) fn claim(
    c: &Connection,
    worker: ProcessId,
    node_group: &str,
    task_type: TaskType,
    max: u32,
) -> Result<Vec<WorkPacket>> {
    const JOBS: &str = statement(FILE, "running_jobs");
    let jobs: Vec<i64> = {
        let mut statement = c.prepare_cached(JOBS)?;
        let rows = statement.query_map(params![node_group, worker.0], |row| row.get(0))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    let mut packets = Vec::new();
    // Round-robin: one task of each job in turn, so that a large job does not starve a small one.
    while packets.len() < max as usize {
        let before = packets.len();
        for &job in &jobs {
            if packets.len() == max as usize {
                break;
            }
            let Some(task) = next_task(c, worker, job, task_type)? else { continue };
            match claim_one(c, worker, task)? {
                Some(packet) => packets.push(packet),
                // The task is there, so it is the worker whose lease expired.
                None => return Ok(packets),
            }
        }
        if packets.len() == before {
            break;
        }
    }
    Ok(packets)
}

fn next_task(c: &Connection, worker: ProcessId, job: i64, task_type: TaskType) -> Result<Option<i64>> {
    const NEXT: &str = statement(FILE, "next_task");
    let parameters = params![job, task_type.as_str(), worker.0];
    Ok(c.prepare_cached(NEXT)?.query_row(parameters, |row| row.get(0)).optional()?)
}

fn claim_one(c: &Connection, worker: ProcessId, task: i64) -> Result<Option<WorkPacket>> {
    const CLAIM: &str = statement(FILE, "claim_task");
    const CONTEXT: &str = statement(FILE, "packet_context");
    let claimed =
        c.prepare_cached(CLAIM)?.query_row(params![task, worker.0], |row| Ok(claimed_row(row))).optional()?;
    let Some(mut claimed) = claimed.transpose()? else { return Ok(None) };
    let parameters = params![claimed.datasource.0, claimed.job.0, claimed.session.0];
    let (name, configuration): (String, String) =
        c.prepare_cached(CONTEXT)?.query_row(parameters, |row| {
            claimed.base = base(row, 2)?;
            Ok((row.get(0)?, row.get(1)?))
        })?;
    claimed.packet(&name, &values::configuration(&configuration)?).map(Some)
}

fn claimed_row(row: &Row<'_>) -> Result<Claimed> {
    let task_type: String = row.get(4)?;
    let payload: String = row.get(5)?;
    Ok(Claimed {
        claim: Claim { task: TaskId(row.get(0)?), claim: ClaimId(row.get(1)?) },
        job: JobId(row.get(2)?),
        session: EnumerationSessionId(row.get(3)?),
        task_type: values::task_type(&task_type)?,
        payload: values::payload(&payload)?,
        failures: row.get(6)?,
        datasource: DatasourceId(row.get(7)?),
        base: None,
    })
}

/// Columns: id, job_id, started_at; all empty where there is none.
fn base(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<Base>> {
    let session: Option<i64> = row.get(first)?;
    let base = |session| {
        Ok(Base {
            session: EnumerationSessionId(session),
            job: JobId(row.get(first + 1)?),
            started_at_ms: row.get(first + 2)?,
        })
    };
    session.map(base).transpose()
}

/// Columns: id, name, kind, configuration.
pub(super) fn datasource_row(row: &Row<'_>) -> Result<Datasource> {
    let configuration: String = row.get(3)?;
    Ok(Datasource {
        id: DatasourceId(row.get(0)?),
        name: row.get(1)?,
        kind: row.get(2)?,
        configuration: from_json(&configuration, "data source configuration")?,
    })
}

/// The records of these kinds that a payload's ranges cover.
pub(super) fn records(
    c: &Connection,
    payload: &TaskPayload,
    kinds: RecordKinds,
) -> Result<Vec<ListedObject>> {
    const RECORDS: &str = statement(FILE, "packet_records");
    let ranges = match payload {
        TaskPayload::PathsToScan(paths) => {
            return Ok(paths.iter().cloned().map(ListedObject::by_key).collect());
        }
        TaskPayload::UntracedObjects => return Ok(Vec::new()),
        TaskPayload::UnitRanges(ranges) => ranges,
    };
    let mut objects = Vec::new();
    let mut statement = c.prepare_cached(RECORDS)?;
    for range in ranges {
        let [a, b, c, d] = kinds.map(RecordKind::code);
        let mut rows = statement.query(params![range.unit.0, range.from, range.to, a, b, c, d])?;
        let mut container = None;
        while let Some(row) = rows.next()? {
            // A range is of one unit, and that of one container.
            let container = match &container {
                Some(container) => container,
                None => container.insert(ObjectKey(row.get(0)?)),
            };
            let name = row.get_ref(1)?.as_blob().map_err(|_| values::damaged("name"))?;
            objects.push(ListedObject {
                key: container.join(name),
                size: row.get::<_, i64>(2)?.cast_unsigned(),
                marks: VersionMarks {
                    mtime_ns: row.get(3)?,
                    ctime_ns: row.get(4)?,
                    inode: row.get::<_, i64>(5)?.cast_unsigned(),
                    tag: row.get(6)?,
                },
                kind: values::record_kind(row.get(7)?)?,
                metadata: row.get::<_, Option<String>>(8)?.map(Into::into),
            });
        }
    }
    Ok(objects)
}

/// The containers that an enumeration task is about.
pub(super) fn containers(c: &Connection, task: TaskId) -> Result<Vec<ObjectKey>> {
    let (_, payload) = payload(c, task)?;
    let containers = records(c, &payload, CONTAINERS)?;
    Ok(containers.into_iter().map(|container| container.key).collect())
}

// ── ending ─────────────────────────────────────────────────────────────────────────────────────────

pub(super) fn complete(c: &Connection, task: TaskId, totals: TaskTotals) -> Result<()> {
    const COMPLETE: &str = statement(FILE, "complete_task");
    c.prepare_cached(COMPLETE)?.execute(params![
        task.0,
        totals.objects.cast_signed(),
        totals.nested.cast_signed(),
        totals.bytes.cast_signed()
    ])?;
    Ok(())
}

pub(super) fn give_back(c: &Connection, claim: &Claim, task: FencedTask, how: &GiveBack) -> Result<()> {
    const RETURN: &str = statement(FILE, "return_task");
    const RETRY: &str = statement(FILE, "retry_task");
    const WAIT: &str = statement(FILE, "wait_task");
    const FAIL: &str = statement(FILE, "fail_task");
    match how {
        GiveBack::Returned => c.prepare_cached(RETURN)?.execute([claim.task.0])?,
        GiveBack::Retry { error, after } => {
            c.prepare_cached(RETRY)?.execute(params![claim.task.0, error, millis(*after)])?
        }
        GiveBack::Wait { after, why } => {
            wait(c, task, *after, why)?;
            c.prepare_cached(WAIT)?.execute(params![claim.task.0, millis(*after)])?
        }
        GiveBack::Failed { error } => {
            let (task_type, payload) = payload(c, claim.task)?;
            let given_up = records(c, &payload, record_kinds(task_type))?;
            name_failures(c, task, claim.task, task_type, given_up, Reason::ReadError, error)?;
            // Units of a task that was never split are all its own; a half must not touch its sibling's.
            if task.origin == claim.task {
                units::fail_open(c, task.origin, error)?;
            }
            c.prepare_cached(FAIL)?.execute(params![claim.task.0, error])?
        }
    };
    results::clear_staged(c, claim.task)
}

/// The session waits until the source may be asked again: its silence is no stall.
fn wait(c: &Connection, task: FencedTask, after: Duration, why: &str) -> Result<()> {
    const NOTE: &str = statement(ENUMERATION, "note_waiting");
    let until: i64 =
        c.prepare_cached(NOTE)?.query_row(params![task.session.0, millis(after)], |row| row.get(0))?;
    let payload = json!({ "session": task.session, "until_ms": until, "why": why });
    results::event(c, task.job, "SessionWaiting", payload)
}

fn payload(c: &Connection, task: TaskId) -> Result<(TaskType, TaskPayload)> {
    const PAYLOAD: &str = statement(FILE, "task_payload");
    let (task_type, payload): (String, String) =
        c.prepare_cached(PAYLOAD)?.query_row([task.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok((values::task_type(&task_type)?, values::payload(&payload)?))
}

/// Makes what a task leaves undone failures by name: its objects, or those of its containers that are
/// not committed.
fn name_failures(
    c: &Connection,
    task: FencedTask,
    id: TaskId,
    task_type: TaskType,
    given_up: Vec<ListedObject>,
    reason: Reason,
    detail: &str,
) -> Result<()> {
    match failures(task_type, given_up, reason, detail) {
        Failures::Objects(reports) => (0..)
            .zip(&reports)
            .try_for_each(|(sequence, report)| results::insert_object(c, task, id, sequence, report)),
        Failures::Containers(undone) => {
            let batch = Batch::of_failed_task(id, &undone, detail)?;
            undone.into_iter().try_for_each(|unit| units::give_up(c, id, task, unit))?;
            match batch {
                Some(batch) => units::record_batch(c, id, task, &batch),
                None => Ok(()),
            }
        }
    }
}

pub(super) fn is_done(c: &Connection, claim: &Claim) -> Result<bool> {
    const DONE: &str = statement(FILE, "task_done_under_claim");
    Ok(c.prepare_cached(DONE)?.query_row(params![claim.task.0, claim.claim.0], |row| row.get(0))?)
}

// ── the reaper ─────────────────────────────────────────────────────────────────────────────────────

pub(super) fn reap(c: &Connection, node_group: &str, deadline: Duration) -> Result<ReapReport> {
    const ABANDONED: &str = statement(FILE, "abandoned_tasks");
    const ABANDON: &str = statement(FILE, "abandon_task");
    let abandoned: Vec<Abandoned> = {
        let mut statement = c.prepare_cached(ABANDONED)?;
        let rows =
            statement.query_map(params![node_group, millis(deadline)], |row| Ok(abandoned_row(row)))?;
        rows.map(|row| row?).collect::<Result<_>>()?
    };
    let mut report = ReapReport::default();
    for (task, fate) in abandoned.iter().zip(fates(&abandoned)) {
        match fate {
            Fate::Split(halves) => {
                split(c, task, &halves)?;
                report.split += 1;
            }
            Fate::Poisoned => {
                poison(c, task)?;
                report.poisoned += 1;
            }
            Fate::Returned { wait_ms } => {
                c.prepare_cached(ABANDON)?.execute(params![task.id.0, task.claim.0, wait_ms])?;
                report.returned += 1;
            }
        }
    }
    Ok(report)
}

fn split(c: &Connection, task: &Abandoned, halves: &[NewTask]) -> Result<()> {
    const SPLIT: &str = statement(FILE, "split_task");
    if c.prepare_cached(SPLIT)?.execute(params![task.id.0, task.claim.0])? == 0 {
        return Ok(());
    }
    halves.iter().try_for_each(|half| insert(c, half).map(|_| ()))
}

/// Gives up what is left of a task that ends every worker: its one object or container becomes a named
/// failure, and the task is done.
fn poison(c: &Connection, task: &Abandoned) -> Result<()> {
    const POISON: &str = statement(FILE, "poison_task");
    let given_up = records(c, &task.payload, record_kinds(task.task_type))?;
    let count = objects_given_up(task.task_type, &given_up);
    if c.prepare_cached(POISON)?.execute(params![task.id.0, task.claim.0, count])? == 0 {
        return Ok(());
    }
    if task.payload == TaskPayload::UntracedObjects {
        origins::give_up(c, task.session)?;
    }
    let detail = task.poisoned_detail();
    name_failures(c, task.fenced(), task.id, task.task_type, given_up, Reason::Poisoned, &detail)
}

fn abandoned_row(row: &Row<'_>) -> Result<Abandoned> {
    let task_type: String = row.get(5)?;
    let payload: String = row.get(7)?;
    Ok(Abandoned {
        id: TaskId(row.get(0)?),
        job: JobId(row.get(1)?),
        datasource: DatasourceId(row.get(2)?),
        session: EnumerationSessionId(row.get(3)?),
        origin: row.get::<_, Option<i64>>(4)?.map(TaskId),
        task_type: values::task_type(&task_type)?,
        priority: row.get(6)?,
        payload: values::payload(&payload)?,
        abandonments: row.get(8)?,
        claim: ClaimId(row.get(9)?),
        worker: row.get::<_, Option<Vec<u8>>>(10)?.unwrap_or_default(),
    })
}
