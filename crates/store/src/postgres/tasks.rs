//! Tasks: the fence, claims, giving back, the reaper.

use std::time::Duration;

use domesday_model::{
    JobConfiguration, JobId, ListedObject, ObjectKey, ProcessId, Reason, TaskId, TaskPayload, TaskType,
    UnitRange,
};
use tokio_postgres::Row;

use super::pool::{Call, Param};
use super::rows::{all_of, column, get, only, text};
use super::transaction::{Tx, params};
use super::{Result, origins, queries, results, units};
use crate::decide::retry::RecordAt;
use crate::decide::tasks::{
    Abandoned, CONTAINERS, Claimed, Failures, Fate, FencedTask, NewTask, OBJECTS, RecordKinds, failures,
    fates, objects_given_up, record_kinds,
};
use crate::decide::units::Batch;
use crate::error::StoreError;
use crate::queries::statement;
use crate::rows::{Columns, FromRow, base, version_marks};
use crate::types::*;
use crate::values::{self, millis, to_json};

/// What stands before every write of results.
#[derive(Clone, Copy)]
pub(super) struct Fence {
    task: &'static str,
    completions: &'static str,
}

pub(super) const FENCE: Fence = Fence {
    task: statement(queries::TASKS, "fence"),
    completions: statement(queries::TASKS, "complete_classifications"),
};
#[cfg(feature = "conformance")]
pub(super) const NO_FENCE: Fence = Fence {
    task: statement(queries::TASKS, "no_fence"),
    completions: statement(queries::TASKS, "complete_classifications_without_fence"),
};
pub(super) const PACKET_RECORDS: &str = statement(queries::TASKS, "packet_records");

/// Candidates a claim looks at, of each job and data source, for each task it wants: as many claims may come
/// at the same moment without one going away empty.
const CANDIDATES_PER_TASK: i64 = 16;
/// Candidates beyond the tasks it wants, at most: each costs as much as a tenth of a task.
const CANDIDATES_AHEAD_MAX: i64 = 2_048;
/// Tasks one pass of the reaper takes: its locks are held for as long as the pass takes.
const REAPED_MAX: i64 = 512;

/// The fence, to be sent together with statements that it undoes if it fails.
pub(super) fn fence_call(tx: &Tx<'_>, claim: &Claim) -> Call {
    Call { sql: tx.fence().task, params: params![claim.task.0, claim.claim.0] }
}

/// What the fence answered: the task is locked under this claim, or the write is refused.
pub(super) fn fenced(claim: &Claim, rows: &[Row]) -> Result<FencedTask> {
    let row = rows.first().ok_or(StoreError::LostClaim(claim.task))?;
    FencedTask::from_row(row)
}

pub(super) async fn fence(tx: &mut Tx<'_>, claim: &Claim) -> Result<FencedTask> {
    let call = fence_call(tx, claim);
    let [rows] = tx.query_all([call]).await?;
    fenced(claim, &rows)
}

/// Inserts tasks, each with its `TaskCreated` event.
pub(super) fn insert(tx: &mut Tx<'_>, tasks: &[NewTask]) -> Result<()> {
    const INSERT: &str = statement(queries::TASKS, "insert_tasks");
    if tasks.is_empty() {
        return Ok(());
    }
    let payloads = tasks.iter().map(|task| to_json(&task.payload)).collect::<Result<Vec<String>>>()?;
    tx.run(
        INSERT,
        params![
            column(tasks, |task| task.job.0),
            column(tasks, |task| task.datasource.0),
            column(tasks, |task| task.session.0),
            column(tasks, |task| task.origin.map(|origin| origin.0)),
            column(tasks, |task| task.task_type.as_str()),
            column(tasks, |task| task.priority),
            payloads,
            column(tasks, |task| task.abandonments),
            column(tasks, |task| task.failures),
            column(tasks, |task| task.wait_ms),
            column(tasks, |task| task.why.as_deref().map(text)),
        ],
    );
    Ok(())
}

// ── claiming ───────────────────────────────────────────────────────────────────────────────────────

pub(super) async fn claim(
    tx: &mut Tx<'_>,
    worker: ProcessId,
    node_group: &str,
    task_type: TaskType,
    max: u32,
) -> Result<Vec<WorkPacket>> {
    const LOCK: &str = statement(queries::TASKS, "lock_limited_datasources");
    const CLAIM: &str = statement(queries::TASKS, "claim_tasks");
    let max = i64::from(max);
    let claim = params![
        worker.0.to_vec(),
        node_group.to_owned(),
        task_type.as_str(),
        max,
        (max * CANDIDATES_PER_TASK).min(max + CANDIDATES_AHEAD_MAX),
    ];
    let lock = Call { sql: LOCK, params: params![node_group.to_owned()] };
    let [_, rows] = tx.query_last([lock, Call { sql: CLAIM, params: claim }]).await?;
    let mut configurations: Vec<(JobId, JobConfiguration)> = Vec::new();
    let mut packets = Vec::with_capacity(rows.len());
    for row in rows.iter() {
        let claimed = Claimed { base: base(row, 10)?, has_origin: get(row, 13)?, ..Claimed::from_row(row)? };
        if let Some(configuration) = get::<Option<&str>>(row, 9)? {
            configurations.push((claimed.job, values::configuration(configuration)?));
        }
        let known = configurations.iter().find(|(job, _)| *job == claimed.job);
        let (_, configuration) = known.ok_or_else(|| values::damaged("job configuration"))?;
        packets.push(claimed.packet(get(row, 8)?, configuration)?);
    }
    if !packets.is_empty() {
        tx.wakes_this_process();
    }
    Ok(packets)
}

/// What a payload covers: known already, or to be asked for with [`PACKET_RECORDS`].
pub(super) enum Covered {
    Objects(Vec<ListedObject>),
    Records(Vec<Param>),
}

pub(super) fn covered(payload: &TaskPayload, kinds: RecordKinds) -> Covered {
    match payload {
        TaskPayload::PathsToScan(paths) => {
            Covered::Objects(paths.iter().cloned().map(ListedObject::by_key).collect())
        }
        TaskPayload::UntracedObjects => Covered::Objects(Vec::new()),
        TaskPayload::UnitRanges(ranges) => Covered::Records(params![
            column(ranges, |range: &UnitRange| range.unit.0),
            column(ranges, |range| range.from),
            column(ranges, |range| range.to),
            kinds.map(|kind| kind.code() as i16).to_vec(),
        ]),
    }
}

/// Columns: the unit's key, name, size, mtime_ns, ctime_ns, inode, tag, kind, metadata.
pub(super) fn packet_object(row: &Row) -> Result<ListedObject> {
    Ok(ListedObject {
        key: ObjectKey(get(row, 0)?).join(get(row, 1)?),
        size: row.unsigned(2)?,
        marks: version_marks(row, 3)?,
        kind: values::record_kind(row.number(7)?)?,
        metadata: get::<Option<String>>(row, 8)?.map(Into::into),
    })
}

/// The objects of a task with their places.
pub(super) async fn object_places(tx: &mut Tx<'_>, task: TaskId) -> Result<Vec<RecordAt>> {
    const PAYLOAD: &str = statement(queries::TASKS, "task_payload");
    const SEQUENCES: &str = statement(queries::TASKS, "packet_sequences");
    let rows = tx.query(PAYLOAD, params![task.0]).await?;
    match covered(&values::payload(get(only(&rows)?, 1)?)?, OBJECTS) {
        Covered::Objects(_) => Ok(Vec::new()),
        Covered::Records(params) => all_of(&tx.query(SEQUENCES, params).await?),
    }
}

async fn records(tx: &mut Tx<'_>, payload: &TaskPayload, kinds: RecordKinds) -> Result<Vec<ListedObject>> {
    match covered(payload, kinds) {
        Covered::Objects(objects) => Ok(objects),
        Covered::Records(params) => {
            tx.query(PACKET_RECORDS, params).await?.iter().map(packet_object).collect()
        }
    }
}

/// The containers that an enumeration task is about.
pub(super) async fn containers(tx: &mut Tx<'_>, task: TaskId) -> Result<Vec<ObjectKey>> {
    const PAYLOAD: &str = statement(queries::TASKS, "task_payload");
    let rows = tx.query(PAYLOAD, params![task.0]).await?;
    let payload = values::payload(get(only(&rows)?, 1)?)?;
    let containers = records(tx, &payload, CONTAINERS).await?;
    Ok(containers.into_iter().map(|container| container.key).collect())
}

// ── ending ─────────────────────────────────────────────────────────────────────────────────────────

pub(super) fn complete(tx: &mut Tx<'_>, task: TaskId) {
    const COMPLETE: &str = statement(queries::TASKS, "complete_task");
    tx.run(COMPLETE, params![task.0]);
}

/// The fence and the completion of many tasks, no claim of which comes twice.
pub(super) fn complete_call(tx: &Tx<'_>, completions: &[(usize, &Completion)]) -> Call {
    let params = params![
        column(completions, |(_, completion)| completion.claim.task.0),
        column(completions, |(_, completion)| completion.claim.claim.0),
        column(completions, |(_, completion)| completion.first_sequence.cast_signed()),
        column(completions, |(_, completion)| completion.totals.objects.cast_signed()),
        column(completions, |(_, completion)| completion.totals.nested.cast_signed()),
        column(completions, |(_, completion)| completion.totals.bytes.cast_signed()),
    ];
    Call { sql: tx.fence().completions, params }
}

pub(super) async fn give_back(tx: &mut Tx<'_>, claim: &Claim, how: &GiveBack) -> Result<()> {
    const RETURN: &str = statement(queries::TASKS, "return_task");
    const RETRY: &str = statement(queries::TASKS, "retry_task");
    const NOTE_WAITING: &str = statement(queries::ENUMERATION, "note_waiting");
    const WAIT: &str = statement(queries::TASKS, "wait_task");
    const FAIL: &str = statement(queries::TASKS, "fail_task");
    const PAYLOAD: &str = statement(queries::TASKS, "task_payload");
    let task = fence(tx, claim).await?;
    let id = claim.task.0;
    match how {
        GiveBack::Returned => tx.run(RETURN, params![id]),
        GiveBack::Retry { error, after } => tx.run(RETRY, params![id, text(error), millis(*after)]),
        GiveBack::Wait { after, why } => {
            tx.run(NOTE_WAITING, params![task.session.0, millis(*after), text(why)]);
            tx.run(WAIT, params![id, millis(*after), text(why)]);
        }
        GiveBack::Unavailable { error, after } => {
            tx.run(NOTE_WAITING, params![task.session.0, millis(*after), text(error)]);
            tx.run(RETRY, params![id, text(error), millis(*after)]);
        }
        GiveBack::Failed { error } => {
            let rows = tx.query(PAYLOAD, params![id]).await?;
            let task_type = values::task_type(get(only(&rows)?, 0)?)?;
            let payload = values::payload(get(only(&rows)?, 1)?)?;
            let given_up = records(tx, &payload, record_kinds(task_type)).await?;
            let undone = failures(task_type, given_up, Reason::ReadError, error);
            name_failures(tx, claim.task, task, undone, error).await?;
            // Units of a task that was never split are all its own; a half must not touch its sibling's.
            if task.origin == claim.task {
                units::fail_open(tx, task.origin, error);
            }
            tx.run(FAIL, params![id, text(error)]);
        }
    }
    results::clear_staged(tx, claim.task);
    Ok(())
}

/// Makes what a task leaves undone failures by name: its objects, or those of its containers that are
/// not committed.
async fn name_failures(
    tx: &mut Tx<'_>,
    id: TaskId,
    task: FencedTask,
    undone: Failures,
    detail: &str,
) -> Result<()> {
    match undone {
        Failures::Objects(reports) => {
            results::insert_objects(tx, task.job, id, &reports);
            if task.origin != id {
                results::replace_earlier(tx, id, reports.iter().map(|report| &report.location.key));
            }
        }
        Failures::Containers(listings) => {
            let batch = Batch::of_failed_task(id, &listings, detail)?;
            units::give_up(tx, id, task, listings).await?;
            if let Some(batch) = batch {
                units::record_batch(tx, id, task, batch);
            }
        }
    }
    Ok(())
}

pub(super) async fn renew_progress(tx: &mut Tx<'_>, claims: &[Claim]) -> Result<()> {
    const RENEW: &str = statement(queries::TASKS, "renew_progress");
    let params = params![column(claims, |claim| claim.task.0), column(claims, |claim| claim.claim.0)];
    tx.query_last([Call { sql: RENEW, params }]).await.map(drop)
}

pub(super) async fn are_done(tx: &mut Tx<'_>, claims: &[Claim]) -> Result<Vec<bool>> {
    const DONE: &str = statement(queries::TASKS, "tasks_done_under_claims");
    let params = params![column(claims, |claim| claim.task.0), column(claims, |claim| claim.claim.0)];
    let [rows] = tx.query_last([Call { sql: DONE, params }]).await?;
    let mut done = vec![false; claims.len()];
    for row in rows.iter() {
        let at = usize::try_from(get::<i64>(row, 0)? - 1).ok().and_then(|at| done.get_mut(at));
        *at.ok_or_else(|| values::damaged("place of a claim"))? = true;
    }
    Ok(done)
}

// ── the reaper ─────────────────────────────────────────────────────────────────────────────────────

pub(super) async fn reap(tx: &mut Tx<'_>, node_group: &str, deadline: Duration) -> Result<ReapReport> {
    const ABANDONED: &str = statement(queries::TASKS, "abandoned_tasks");
    const ABANDON: &str = statement(queries::TASKS, "abandon_tasks");
    const SPLIT: &str = statement(queries::TASKS, "split_task");
    let params = params![node_group.to_owned(), millis(deadline), REAPED_MAX];
    let abandoned = tx.query(ABANDONED, params).await?;
    let abandoned: Vec<Abandoned> = all_of(&abandoned)?;
    let mut report = ReapReport::default();
    let (mut returned, mut claims, mut waits) = (Vec::new(), Vec::new(), Vec::new());
    for (task, fate) in abandoned.iter().zip(fates(&abandoned)) {
        match fate {
            Fate::Returned { wait_ms } => {
                returned.push(task.id.0);
                claims.push(task.claim.0);
                waits.push(wait_ms);
            }
            Fate::Split(halves) => {
                tx.run(SPLIT, params![task.id.0, task.claim.0]);
                insert(tx, halves.as_slice())?;
                report.split += 1;
            }
            Fate::Poisoned => {
                poison(tx, task).await?;
                report.poisoned += 1;
            }
        }
    }
    report.returned = returned.len() as u64;
    if !returned.is_empty() {
        tx.run(ABANDON, params![returned, claims, waits]);
    }
    Ok(report)
}

/// Gives up what is left of a task that ends every worker.
async fn poison(tx: &mut Tx<'_>, task: &Abandoned) -> Result<()> {
    const POISON: &str = statement(queries::TASKS, "poison_task");
    let given_up = records(tx, &task.payload, record_kinds(task.task_type)).await?;
    let count = objects_given_up(task.task_type, &given_up);
    tx.run(POISON, params![task.id.0, task.claim.0, count]);
    if task.payload == TaskPayload::UntracedObjects {
        origins::give_up(tx, task.session);
    }
    let detail = task.poisoned_detail();
    let undone = failures(task.task_type, given_up, Reason::Poisoned, &detail);
    name_failures(tx, task.id, task.fenced(), undone, &detail).await
}
