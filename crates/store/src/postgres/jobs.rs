//! Jobs, their leases and commands; processes; sessions as a whole; completion.

use std::time::Duration;

use domesday_model::{
    Command, DatasourceId, DatasourceSpec, EnumerationSessionId, JobConfiguration, JobId, JobStatus,
    MasterJobId, ProcessId, SessionStatus, TaskType,
};
use serde_json::json;
use tokio_postgres::Row;

use super::pool::Call;
use super::rows::{column, get, only, text, wide};
use super::transaction::{Tx, params};
use super::{Result, results, targets, tasks};
use crate::decide;
use crate::decide::jobs::{ChildJob, Executed};
use crate::decide::prior::scan_key;
use crate::decide::targets::Known;
use crate::decide::tasks::NewTask;
use crate::error::StoreError;
use crate::queries::statement;
use crate::types::*;
use crate::values::{self, millis, to_json};

pub(super) const FILE: &str = queries_of!("jobs");
pub(super) const ENUMERATION: &str = queries_of!("enumeration");

pub(super) const PUT_RULE_SET: &str = statement(FILE, "put_rule_set");
pub(super) const RULE_SET: &str = statement(FILE, "rule_set");
pub(super) const UNFINISHED: &str = statement(FILE, "unfinished");
pub(super) const MASTER_JOB: &str = statement(FILE, "master_job");
pub(super) const STOPPING: &str = statement(FILE, "stopping_jobs");
pub(super) const MASTER_JOBS: &str = statement(FILE, "master_jobs");

pub(super) async fn submit(tx: &mut Tx<'_>, job: &NewMasterJob) -> Result<()> {
    const MASTER: &str = statement(FILE, "insert_master_job");
    const DATASOURCES: &str = statement(FILE, "upsert_datasources");
    const JOBS: &str = statement(FILE, "insert_jobs");
    let id = job.id.0.to_vec();
    let template = job.template.clone();
    let master = params![id.clone(), job.request_key.to_vec(), text(&job.description), template];
    tx.wakes_before_it_returns();
    if tx.change(MASTER, master).await? == 0 {
        return Ok(());
    }
    let sources: &[DatasourceSpec] = &job.configuration.datasources;
    tx.run(
        DATASOURCES,
        params![
            column(sources, |source| source.name.clone()),
            column(sources, |source| source.kind.clone()),
            column(sources, |source| source.node_group.clone()),
            column(sources, |source| source.concurrency_limit.map(i64::from)),
            column(sources, |source| source.configuration.to_string()),
            column(sources, |source| source.worker_label.clone()),
            column(sources, |source| source.credential.clone()),
        ],
    );
    let (mut groups, mut shares) = (Vec::new(), Vec::new());
    for (group, share) in decide::jobs::child_jobs(&job.configuration) {
        groups.push(group.to_owned());
        shares.push(to_json(&share)?);
    }
    let key = job.configuration.fingerprint_key.clone();
    tx.run(JOBS, params![id, groups, shares, job.priority, key]);
    Ok(())
}

pub(super) fn mark_reported(tx: &mut Tx<'_>, master: MasterJobId) {
    const REPORTED: &str = statement(FILE, "mark_reported");
    tx.run(REPORTED, params![master.0.to_vec()]);
}

pub(super) async fn append_command(tx: &mut Tx<'_>, master: MasterJobId, command: Command) -> Result<u64> {
    const APPEND: &str = statement(FILE, "append_command");
    tx.wakes_before_it_returns();
    tx.change(APPEND, params![master.0.to_vec(), command.as_str()]).await
}

// ── processes ──────────────────────────────────────────────────────────────────────────────────────

pub(super) fn register(tx: &mut Tx<'_>, process: &Process, lease: Duration) {
    const WORKER: &str = statement(FILE, "register_worker");
    const ORCHESTRATOR: &str = statement(FILE, "register_orchestrator");
    let sql = match process.role {
        Role::Worker => WORKER,
        Role::Orchestrator => ORCHESTRATOR,
    };
    let Profile { host, version, slots, labels, fingerprint_key } = &process.profile;
    tx.run(
        sql,
        params![
            process.id.0.to_vec(),
            process.node_group.clone(),
            millis(lease),
            text(host),
            text(version),
            i64::from(*slots),
            column(labels, |label| text(label)),
            fingerprint_key.clone(),
        ],
    );
}

pub(super) async fn renew(
    tx: &mut Tx<'_>,
    role: Role,
    id: ProcessId,
    lease: Duration,
    load: Load,
) -> Result<bool> {
    const WORKER: &str = statement(FILE, "renew_worker");
    const ORCHESTRATOR: &str = statement(FILE, "renew_orchestrator");
    let sql = match role {
        Role::Worker => WORKER,
        Role::Orchestrator => ORCHESTRATOR,
    };
    let params = params![
        id.0.to_vec(),
        millis(lease),
        i64::from(load.running),
        load.objects.cast_signed(),
        load.bytes.cast_signed(),
        load.findings.cast_signed(),
        load.objects_per_second.cast_signed(),
        load.bytes_per_second.cast_signed(),
    ];
    let call = Call { sql, params };
    let [renewed] = tx.query_last([call]).await?;
    Ok(renewed.changed == 1)
}

pub(super) fn release(tx: &mut Tx<'_>, role: Role, id: ProcessId) {
    const WORKER: &str = statement(FILE, "release_worker");
    const ORCHESTRATOR: &str = statement(FILE, "release_orchestrator");
    const JOBS: &str = statement(FILE, "release_jobs");
    match role {
        Role::Worker => tx.run(WORKER, params![id.0.to_vec()]),
        Role::Orchestrator => {
            tx.run(JOBS, params![id.0.to_vec()]);
            tx.run(ORCHESTRATOR, params![id.0.to_vec()]);
        }
    }
}

// ── leases and commands ────────────────────────────────────────────────────────────────────────────

pub(super) async fn claim_job(
    tx: &mut Tx<'_>,
    orchestrator: ProcessId,
    node_group: &str,
    lease: Duration,
) -> Result<Option<OwnedJob>> {
    const CLAIM: &str = statement(FILE, "claim_job");
    let params = params![orchestrator.0.to_vec(), node_group.to_owned(), millis(lease)];
    let rows = tx.query(CLAIM, params).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let job = owned_job(row)?;
    let payload = json!({ "orchestrator": orchestrator.to_string(), "status": job.status.as_str() });
    results::event(tx, job.lease.job, "JobClaimed", &payload);
    Ok(Some(job))
}

pub(super) async fn renew_jobs(
    tx: &mut Tx<'_>,
    orchestrator: ProcessId,
    lease: Duration,
) -> Result<Vec<OwnedJob>> {
    const RENEW: &str = statement(FILE, "renew_jobs");
    let call = Call { sql: RENEW, params: params![orchestrator.0.to_vec(), millis(lease)] };
    let [rows] = tx.query_last([call]).await?;
    let mut jobs = rows.iter().map(owned_job).collect::<Result<Vec<_>>>()?;
    jobs.sort_unstable_by_key(|job| job.lease.job);
    Ok(jobs)
}

pub(super) async fn execute_commands(tx: &mut Tx<'_>, lease: &JobLease) -> Result<Option<OwnedJob>> {
    let job = fence(tx, lease).await?.owned;
    apply_commands(tx, job).await
}

pub(super) async fn execute_unowned_commands(tx: &mut Tx<'_>, node_group: &str) -> Result<u64> {
    const UNOWNED: &str = statement(FILE, "unowned_with_commands");
    let rows = tx.query(UNOWNED, params![node_group.to_owned()]).await?;
    let mut changed = 0;
    for row in rows.iter() {
        if let Some(job) = apply_commands(tx, owned_job(row)?).await? {
            changed += 1;
            // No owner, so no running task: what was to be waited for is already so.
            settle(tx, &job).await?;
        }
    }
    Ok(changed)
}

/// The status change and the clearing of what was executed are one write.
async fn apply_commands(tx: &mut Tx<'_>, job: OwnedJob) -> Result<Option<OwnedJob>> {
    const CANCEL: &str = statement(tasks::FILE, "cancel_tasks");
    const FAIL_UNITS: &str = statement(ENUMERATION, "fail_open_units");
    const END_SESSIONS: &str = statement(ENUMERATION, "cancel_sessions");
    const SET_PENDING: &str = statement(FILE, "set_pending_commands");
    let JobLease { job: id, version } = job.lease;
    let (status, pending) = match decide::jobs::execute_commands(&job) {
        Executed::Nothing => return Ok(None),
        Executed::Cleared(pending) => {
            tx.run(SET_PENDING, params![id.0, version, to_json(&pending)?]);
            return Ok(None);
        }
        Executed::Changed(status, pending) => (status, pending),
    };
    close(tx, id);
    if status == JobStatus::Cancelling {
        tx.run(CANCEL, params![id.0]);
        tx.run(FAIL_UNITS, params![id.0]);
        tx.run(END_SESSIONS, params![id.0]);
    }
    let lease = set_status(tx, &job.lease, job.status, status, Some(&pending), None).await?;
    Ok(Some(OwnedJob { lease, status, pending, ..job }))
}

pub(super) async fn settle_job(tx: &mut Tx<'_>, lease: &JobLease) -> Result<Option<JobStatus>> {
    let job = fence(tx, lease).await?.owned;
    settle(tx, &job).await
}

async fn settle(tx: &mut Tx<'_>, job: &OwnedJob) -> Result<Option<JobStatus>> {
    const RUNNING: &str = statement(FILE, "job_has_running_tasks");
    let Some(settled) = decide::jobs::settles_to(job.status) else { return Ok(None) };
    let id = job.lease.job;
    // A look first, which disturbs nobody; what counts is the look once no claim can come in between.
    if get(only(&tx.query(RUNNING, params![id.0]).await?)?, 0)? {
        return Ok(None);
    }
    close(tx, id);
    if get(only(&tx.query(RUNNING, params![id.0]).await?)?, 0)? {
        return Ok(None);
    }
    set_status(tx, &job.lease, job.status, settled, None, None).await?;
    Ok(Some(settled))
}

pub(super) async fn complete_job(tx: &mut Tx<'_>, lease: &JobLease) -> Result<Option<JobStatus>> {
    const ENDED: &str = statement(ENUMERATION, "ended_sessions");
    const OBSTACLES: &str = statement(FILE, "job_obstacles");
    const OUTCOME: &str = statement(FILE, "job_outcome");
    let id = lease.job.0;
    let blocked = |rows: &[Row]| get::<bool>(only(rows)?, 0);
    let look = |sql| Call { sql, params: params![id] };
    let obstacles_call = || Call { sql: OBSTACLES, params: params![id, TaskType::Tracing.as_str()] };
    let [fence, ended, obstacles] = tx.query_all([fence_call(lease), look(ENDED), obstacles_call()]).await?;
    let job = fenced(lease, &fence)?.owned;
    end_sessions(tx, lease.job, &ended)?;
    if job.status != JobStatus::Running || blocked(&obstacles)? {
        return Ok(None);
    }
    // Only a job that seems to be done keeps claims and splits out while it is looked at again.
    close(tx, lease.job);
    let [obstacles, outcome] = tx.query_all([obstacles_call(), look(OUTCOME)]).await?;
    if blocked(&obstacles)? {
        return Ok(None);
    }
    let row = only(&outcome)?;
    let (status, reason) = decide::jobs::job_outcome(get(row, 0)?, get(row, 1)?, get(row, 2)?);
    set_status(tx, lease, job.status, status, None, reason).await?;
    Ok(Some(status))
}

/// Queues the lock that a change of status needs.
fn close(tx: &mut Tx<'_>, job: JobId) {
    const CLOSE: &str = statement(FILE, "close_job");
    tx.run(CLOSE, params![job.0]);
}

// ── sessions ───────────────────────────────────────────────────────────────────────────────────────

/// Of all data sources of the job, or only of one.
pub(super) async fn start_sessions(tx: &mut Tx<'_>, lease: &JobLease, only: Option<&str>) -> Result<u64> {
    const SESSIONS: &str = statement(ENUMERATION, "insert_sessions");
    const RESUME: &str = statement(ENUMERATION, "resume_stopped_sessions");
    let job = fence(tx, lease).await?;
    if job.owned.status != JobStatus::Running {
        return Ok(0);
    }
    tx.run(RESUME, params![lease.job.0, only.map(str::to_owned)]);
    let sources: Vec<&DatasourceSpec> = job
        .configuration
        .datasources
        .iter()
        .filter(|source| only.is_none_or(|name| source.name == name))
        .collect();
    let scan_keys = sources.iter().map(|source| Ok(scan_key(&job.configuration, source)?.to_vec()));
    let scan_keys = scan_keys.collect::<Result<Vec<_>>>()?;
    let rows = tx
        .query(
            SESSIONS,
            params![
                lease.job.0,
                column(&sources, |source| source.name.clone()),
                column(&sources, |source| source.kind.clone()),
                column(&sources, |source| source.configuration.to_string()),
                scan_keys,
                job.configuration.incremental,
            ],
        )
        .await?;
    let mut sessions = rows
        .iter()
        .map(|row| {
            let known = Known::datasource(get(row, 1)?, get(row, 2)?, get(row, 3)?);
            Ok((EnumerationSessionId(get(row, 0)?), known))
        })
        .collect::<Result<Vec<_>>>()?;
    sessions.sort_unstable_by_key(|(session, _)| *session);
    let root =
        |(session, known): &(_, Known)| NewTask::root(lease.job, DatasourceId(known.target_id), *session);
    let roots = column(&sessions, root);
    tasks::insert(tx, &roots)?;
    targets::put(tx, lease.job, &sessions);
    Ok(roots.len() as u64)
}

pub(super) async fn open_session(
    tx: &mut Tx<'_>,
    lease: &JobLease,
    datasource: &str,
) -> Result<EnumerationSessionId> {
    const SESSION: &str = statement(ENUMERATION, "session_of_datasource");
    start_sessions(tx, lease, Some(datasource)).await?;
    let rows = tx.query(SESSION, params![lease.job.0, datasource.to_owned()]).await?;
    match rows.first() {
        Some(row) => Ok(EnumerationSessionId(get(row, 0)?)),
        None => Err(StoreError::Missing { kind: "session of data source", name: datasource.to_owned() }),
    }
}

/// Ends the sessions of which nothing is left to enumerate.
fn end_sessions(tx: &mut Tx<'_>, job: JobId, ended: &[Row]) -> Result<()> {
    const END: &str = statement(ENUMERATION, "end_session");
    for row in ended {
        let (session, from): (i64, &str) = (get(row, 0)?, get(row, 1)?);
        let from = values::session_status(from)?;
        let (status, reason) =
            decide::sessions::session_outcome(from, get(row, 2)?, get(row, 3)?, get(row, 4)?)?;
        tx.run(END, params![session, status.as_str(), reason]);
        if status != SessionStatus::Failed {
            targets::note_scan(tx, job, session);
        }
        let payload = json!({ "session": session, "status": status.as_str() });
        results::event(tx, job, "SessionEnded", &payload);
    }
    Ok(())
}

pub(super) async fn reap_sessions(tx: &mut Tx<'_>, node_group: &str, threshold: Duration) -> Result<u64> {
    const STALL: &str = statement(ENUMERATION, "stall_sessions");
    let call = Call { sql: STALL, params: params![node_group.to_owned(), millis(threshold)] };
    let [stalled] = tx.query_last([call]).await?;
    Ok(stalled.changed)
}

// ── shared ─────────────────────────────────────────────────────────────────────────────────────────

/// What a lease holder may act on.
pub(super) struct FencedJob {
    pub owned: OwnedJob,
    pub configuration: JobConfiguration,
}

/// The orchestrator's fence, to be sent together with what only reads.
pub(super) fn fence_call(lease: &JobLease) -> Call {
    const OWNED: &str = statement(FILE, "owned_job");
    Call { sql: OWNED, params: params![lease.job.0, lease.version] }
}

/// What the fence answered: the job is as the lease says, or nothing is written.
pub(super) fn fenced(lease: &JobLease, rows: &[Row]) -> Result<FencedJob> {
    let row = rows.first().ok_or(StoreError::LostLease(lease.job))?;
    Ok(FencedJob { owned: owned_job(row)?, configuration: values::configuration(get(row, 5)?)? })
}

async fn fence(tx: &mut Tx<'_>, lease: &JobLease) -> Result<FencedJob> {
    let [rows] = tx.query_all([fence_call(lease)]).await?;
    fenced(lease, &rows)
}

pub(super) async fn set_status(
    tx: &mut Tx<'_>,
    lease: &JobLease,
    from: JobStatus,
    to: JobStatus,
    pending: Option<&[Command]>,
    reason: Option<String>,
) -> Result<JobLease> {
    const SET: &str = statement(FILE, "set_job_status");
    let to = from.transition(to)?;
    let pending = pending.map(|pending| to_json(&pending)).transpose()?;
    let params = params![lease.job.0, lease.version, to.as_str(), pending, reason];
    if tx.change(SET, params).await? == 0 {
        return Err(StoreError::LostLease(lease.job));
    }
    let payload = json!({ "from": from.as_str(), "to": to.as_str() });
    results::event(tx, lease.job, "JobStatusChanged", &payload);
    Ok(JobLease { version: lease.version + 1, ..*lease })
}

/// Columns: id, version, master_job_id, status, master_pending_commands.
pub(super) fn owned_job(row: &Row) -> Result<OwnedJob> {
    Ok(OwnedJob {
        lease: JobLease { job: JobId(get(row, 0)?), version: get(row, 1)? },
        master_job: MasterJobId(wide(row, 2)?),
        status: values::job_status(get(row, 3)?)?,
        pending: values::commands(get(row, 4)?)?,
    })
}

/// Columns: id, description, created_at, status, failure_reason, finished_at.
pub(super) fn master_jobs(rows: &[Row]) -> Result<Vec<MasterJob>> {
    let child = |row: &Row| {
        Ok(ChildJob {
            master: MasterJobId(wide(row, 0)?),
            description: get(row, 1)?,
            created_at_ms: get(row, 2)?,
            status: values::job_status(get(row, 3)?)?,
            failure_reason: get(row, 4)?,
            finished_at_ms: get(row, 5)?,
        })
    };
    Ok(decide::jobs::fold_master_jobs(rows.iter().map(child).collect::<Result<Vec<_>>>()?))
}
