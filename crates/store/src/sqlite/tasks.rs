//! Tasks: the fence, claims, giving back, the reaper.

use std::time::Duration;

use domesday_model::{
    EnumerationSessionId, JobId, ListedObject, ObjectKey, ProcessId, Reason, RecordKind, TaskId, TaskPayload,
    TaskType,
};
use rusqlite::{Connection, params};
use serde_json::json;

use super::rows::Statements;
use super::{Fence, Result, origins, queries, results, units};
use crate::decide::tasks::{
    Abandoned, CONTAINERS, Claimed, Failures, Fate, FencedTask, NewTask, RecordKinds, failures, fates,
    objects_given_up, record_kinds,
};
use crate::decide::units::Batch;
use crate::error::StoreError;
use crate::queries::statement;
use crate::rows::{Columns, base, version_marks};
use crate::types::*;
use crate::values::{self, millis, to_json};

pub(super) const FENCE: Fence = Fence(statement(queries::TASKS, "fence"));
#[cfg(feature = "conformance")]
pub(super) const NO_FENCE: Fence = Fence(statement(queries::TASKS, "no_fence"));

impl Fence {
    /// Locks the task under this claim, or refuses. Every write of results calls this first, in its
    /// own transaction; SQLite's one writer makes the check and the write one step.
    pub fn check(self, c: &Connection, claim: &Claim) -> Result<FencedTask> {
        c.one(self.0, [claim.task.0, claim.claim.0])?.ok_or(StoreError::LostClaim(claim.task))
    }
}

/// Inserts a task with its `TaskCreated` event. Called by the fan-out, by the start of a session, by the split of a
/// task and to try again what one could not do, and by nothing else.
pub(super) fn insert(c: &Connection, task: &NewTask) -> Result<TaskId> {
    const INSERT: &str = statement(queries::TASKS, "insert_task");
    let parameters = params![
        task.job.0,
        task.datasource.0,
        task.session.0,
        task.origin.map(|origin| origin.0),
        task.task_type.as_str(),
        task.priority,
        to_json(&task.payload)?,
        task.abandonments,
        task.failures,
        task.wait_ms,
        task.why,
    ];
    c.change(INSERT, parameters)?;
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
    const JOBS: &str = statement(queries::TASKS, "running_jobs");
    let jobs: Vec<i64> = c.all(JOBS, params![node_group, worker.0])?;
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
    const NEXT: &str = statement(queries::TASKS, "next_task");
    c.one(NEXT, params![job, task_type.as_str(), worker.0])
}

fn claim_one(c: &Connection, worker: ProcessId, task: i64) -> Result<Option<WorkPacket>> {
    const CLAIM: &str = statement(queries::TASKS, "claim_task");
    const CONTEXT: &str = statement(queries::TASKS, "packet_context");
    let Some(mut claimed) = c.one::<Claimed>(CLAIM, params![task, worker.0])? else { return Ok(None) };
    let context = [claimed.datasource.0, claimed.job.0, claimed.session.0, task];
    let packet = c.row(CONTEXT, context, |row| {
        claimed.base = base(row, 2)?;
        claimed.has_origin = row.value(5)?;
        claimed.packet(&row.value::<String>(0)?, &row.parsed(1, values::configuration)?)
    })?;
    packet.map(Some).ok_or_else(|| values::damaged("context of a task"))
}

/// The records of these kinds that a payload's ranges cover.
pub(super) fn records(
    c: &Connection,
    payload: &TaskPayload,
    kinds: RecordKinds,
) -> Result<Vec<ListedObject>> {
    const RECORDS: &str = statement(queries::TASKS, "packet_records");
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
                marks: version_marks(row, 3)?,
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
    const COMPLETE: &str = statement(queries::TASKS, "complete_task");
    let TaskTotals { objects, nested, bytes } = totals;
    c.change(COMPLETE, [task.0, objects.cast_signed(), nested.cast_signed(), bytes.cast_signed()]).map(drop)
}

pub(super) fn give_back(c: &Connection, claim: &Claim, task: FencedTask, how: &GiveBack) -> Result<()> {
    const RETURN: &str = statement(queries::TASKS, "return_task");
    const RETRY: &str = statement(queries::TASKS, "retry_task");
    const WAIT: &str = statement(queries::TASKS, "wait_task");
    const FAIL: &str = statement(queries::TASKS, "fail_task");
    match how {
        GiveBack::Returned => c.change(RETURN, [claim.task.0])?,
        GiveBack::Retry { error, after } => c.change(RETRY, params![claim.task.0, error, millis(*after)])?,
        GiveBack::Wait { after, why } => {
            wait(c, task.job, task.session, *after, why)?;
            c.change(WAIT, params![claim.task.0, millis(*after), why])?
        }
        GiveBack::Unavailable { error, after } => {
            wait(c, task.job, task.session, *after, error)?;
            c.change(RETRY, params![claim.task.0, error, millis(*after)])?
        }
        GiveBack::Failed { error } => {
            let (task_type, payload) = payload(c, claim.task)?;
            let given_up = records(c, &payload, record_kinds(task_type))?;
            name_failures(c, task, claim.task, task_type, given_up, Reason::ReadError, error)?;
            // Units of a task that was never split are all its own; a half must not touch its sibling's.
            if task.origin == claim.task {
                units::fail_open(c, task.origin, error)?;
            }
            c.change(FAIL, params![claim.task.0, error])?
        }
    };
    results::clear_staged(c, claim.task)
}

/// The session waits until the source may be asked again: its silence is no stall.
pub(super) fn wait(
    c: &Connection,
    job: JobId,
    session: EnumerationSessionId,
    after: Duration,
    why: &str,
) -> Result<()> {
    const NOTE: &str = statement(queries::ENUMERATION, "note_waiting");
    let until: i64 = c.only(NOTE, [session.0, millis(after)])?;
    let payload = json!({ "session": session, "until_ms": until, "why": why });
    results::event(c, job, "SessionWaiting", payload)
}

pub(super) fn payload(c: &Connection, task: TaskId) -> Result<(TaskType, TaskPayload)> {
    const PAYLOAD: &str = statement(queries::TASKS, "task_payload");
    let (task_type, payload): (String, String) = c.only(PAYLOAD, [task.0])?;
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
        Failures::Objects(reports) => {
            for (sequence, report) in (0..).zip(&reports) {
                results::insert_object(c, task, id, sequence, report)?;
            }
            match task.origin == id {
                true => Ok(()),
                false => {
                    results::replace_earlier(c, task, id, reports.iter().map(|report| &report.location.key))
                }
            }
        }
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

// ── the reaper ─────────────────────────────────────────────────────────────────────────────────────

pub(super) fn reap(c: &Connection, node_group: &str, deadline: Duration) -> Result<ReapReport> {
    const ABANDONED: &str = statement(queries::TASKS, "abandoned_tasks");
    const ABANDON: &str = statement(queries::TASKS, "abandon_task");
    let abandoned: Vec<Abandoned> = c.all(ABANDONED, params![node_group, millis(deadline)])?;
    let mut report = ReapReport::default();
    for (task, fate) in abandoned.iter().zip(fates(&abandoned)) {
        match fate {
            Fate::Split(halves) => {
                split(c, task, halves.as_slice())?;
                report.split += 1;
            }
            Fate::Poisoned => {
                poison(c, task)?;
                report.poisoned += 1;
            }
            Fate::Returned { wait_ms } => {
                c.change(ABANDON, [task.id.0, task.claim.0, wait_ms])?;
                report.returned += 1;
            }
        }
    }
    Ok(report)
}

fn split(c: &Connection, task: &Abandoned, halves: &[NewTask]) -> Result<()> {
    const SPLIT: &str = statement(queries::TASKS, "split_task");
    if c.change(SPLIT, [task.id.0, task.claim.0])? == 0 {
        return Ok(());
    }
    halves.iter().try_for_each(|half| insert(c, half).map(|_| ()))
}

/// Gives up what is left of a task that ends every worker: its one object or container becomes a named
/// failure, and the task is done.
fn poison(c: &Connection, task: &Abandoned) -> Result<()> {
    const POISON: &str = statement(queries::TASKS, "poison_task");
    let given_up = records(c, &task.payload, record_kinds(task.task_type))?;
    let count = objects_given_up(task.task_type, &given_up);
    if c.change(POISON, [task.id.0, task.claim.0, count])? == 0 {
        return Ok(());
    }
    if task.payload == TaskPayload::UntracedObjects {
        origins::give_up(c, task.session)?;
    }
    let detail = task.poisoned_detail();
    name_failures(c, task.fenced(), task.id, task.task_type, given_up, Reason::Poisoned, &detail)
}
