//! Jobs: which child jobs a request makes, what commands do to them, and how they end.

use domesday_model::{Command, JobConfiguration, JobStatus, MasterJobId};

use crate::types::{MasterJob, OwnedJob};

/// Master jobs that one step of pruning takes up, at most: each costs some round trips, whatever its size.
pub(crate) const PRUNED_JOBS_MAX: u32 = 64;

/// The child jobs of a request: each node group with its own share of the configuration.
pub(crate) fn child_jobs(configuration: &JobConfiguration) -> Vec<(&str, JobConfiguration)> {
    let mut groups: Vec<&str> =
        configuration.datasources.iter().map(|source| source.node_group.as_str()).collect();
    groups.sort_unstable();
    groups.dedup();
    let share = |group| {
        let mut share = configuration.clone();
        share.datasources.retain(|source| source.node_group == group);
        (group, share)
    };
    groups.into_iter().map(share).collect()
}

/// What executing the pending commands means for a job.
pub(crate) enum Executed {
    Nothing,
    /// Only the list changes: commands that have nothing to do any more are gone.
    Cleared(Vec<Command>),
    /// A new status, and what is pending then.
    Changed(JobStatus, Vec<Command>),
}

pub(crate) fn execute_commands(job: &OwnedJob) -> Executed {
    let (status, pending) = Command::execute(job.status, &job.pending);
    match status {
        same if same == job.status && pending == job.pending => Executed::Nothing,
        same if same == job.status => Executed::Cleared(pending),
        // A resumed job is queued again, and an orchestrator starts it as it would a new one.
        JobStatus::Queued => Executed::Changed(status, [&[Command::Start], &pending[..]].concat()),
        _ => Executed::Changed(status, pending),
    }
}

/// Where a job goes once none of its tasks runs; `None` when it does not wait for that.
pub(crate) fn settles_to(status: JobStatus) -> Option<JobStatus> {
    match status {
        JobStatus::Pausing => Some(JobStatus::Paused),
        JobStatus::Cancelling => Some(JobStatus::Cancelled),
        _ => None,
    }
}

/// How a job of which nothing is left ends: whether anything was enumerated, whether anything failed, and
/// what the first failure says.
pub(crate) fn job_outcome(
    enumerated: bool,
    problems: bool,
    first: Option<String>,
) -> (JobStatus, Option<String>) {
    match (enumerated, problems) {
        (true, false) => (JobStatus::Completed, None),
        (true, true) => (JobStatus::PartiallyCompleted, None),
        (false, _) => {
            (JobStatus::Failed, Some(first.unwrap_or_else(|| "nothing could be enumerated".into())))
        }
    }
}

/// What a lease holder may act on.
pub(crate) struct FencedJob {
    pub owned: OwnedJob,
    pub configuration: JobConfiguration,
}

/// A child job as far as its master's status is concerned.
pub(crate) struct ChildJob {
    pub master: MasterJobId,
    pub description: String,
    pub created_at_ms: i64,
    pub status: JobStatus,
    pub failure_reason: Option<String>,
    pub finished_at_ms: Option<i64>,
}

/// Master jobs from their child jobs, which come together, in order.
pub(crate) fn fold_master_jobs(children: impl IntoIterator<Item = ChildJob>) -> Vec<MasterJob> {
    let mut jobs: Vec<MasterJob> = Vec::new();
    for child in children {
        match jobs.last_mut() {
            Some(job) if job.id == child.master => {
                job.status = job.status.combine(child.status);
                job.finished_at_ms = job.finished_at_ms.and_then(|a| child.finished_at_ms.map(|b| a.max(b)));
                job.failure_reason = job.failure_reason.take().or(child.failure_reason);
            }
            _ => jobs.push(MasterJob {
                id: child.master,
                description: child.description,
                status: child.status,
                failure_reason: child.failure_reason,
                created_at_ms: child.created_at_ms,
                finished_at_ms: child.finished_at_ms,
            }),
        }
    }
    jobs
}
