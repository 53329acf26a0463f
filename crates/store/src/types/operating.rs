//! The fleet as people look at it: jobs, tasks, processes, queues.

use domesday_model::{
    Command, EnumerationSessionId, JobId, JobStatus, MasterJobId, ProcessId, TaskId, TaskPayload, TaskStatus,
    TaskType,
};

use super::{Load, Profile, TaskTotals};

/// A child job as its group sees it, with live progress.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChildJobState {
    pub job: JobId,
    pub node_group: String,
    pub status: JobStatus,
    pub pending: Vec<Command>,
    pub failure_reason: Option<String>,
    /// Who owns it, and for how many milliseconds more unless it renews.
    pub owner: Option<(ProcessId, i64)>,
    /// Live workers of the group that have the job's fingerprint key.
    pub workers: u64,
    pub created_at_ms: i64,
    pub started_at_ms: Option<i64>,
    pub finished_at_ms: Option<i64>,
    /// Why a task waits for its source before it is tried again, if one does.
    pub waiting_why: Option<String>,
    pub progress: JobProgress,
}

/// How far a job is, folded from its tasks and units.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct JobProgress {
    pub objects_listed: u64,
    pub bytes_listed: u64,
    /// As they were when they were last scanned, and clean: not read again.
    pub objects_unchanged: u64,
    pub objects_done: u64,
    pub bytes_done: u64,
    pub tasks_pending: u64,
    pub tasks_running: u64,
    pub tasks_done: u64,
    pub tasks_failed: u64,
    /// No enumeration task is open and no unit waits to be fanned out.
    pub listing_done: bool,
    /// Until when a source of the job is left alone, the latest of them; `None` when none is.
    pub waiting_until_ms: Option<i64>,
}

/// Which tasks to list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskFilter {
    pub master: Option<MasterJobId>,
    pub status: Option<TaskStatus>,
    pub task_type: Option<TaskType>,
    pub session: Option<EnumerationSessionId>,
    /// Only those behind this one.
    pub after: Option<TaskId>,
}

/// A task, for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskInfo {
    pub id: TaskId,
    pub job: JobId,
    pub master: MasterJobId,
    pub node_group: String,
    pub datasource: String,
    pub task_type: TaskType,
    pub status: TaskStatus,
    pub payload: TaskPayload,
    pub worker: Option<ProcessId>,
    pub failures: u32,
    pub abandonments: u32,
    pub last_error: Option<String>,
    pub not_before_ms: i64,
    pub progress_at_ms: Option<i64>,
    pub created_at_ms: i64,
    pub finished_at_ms: Option<i64>,
    pub totals: TaskTotals,
}

/// Of what the failures are tried again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retry {
    Task(TaskId),
    AllOf(MasterJobId),
}

/// Which containers and objects are tried again, of those that could not be listed or read whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RetryScope {
    /// Those whose reason may pass by itself ([`domesday_model::Reason::may_pass`]).
    Passing,
    /// All: somebody has removed the reason.
    All,
}

/// What is tried again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Retried {
    /// Failed tasks, with all that they cover.
    pub tasks: u64,
    /// Containers that could not be listed, or not to their end.
    pub containers: u64,
    /// Objects that were not read, or not whole.
    pub objects: u64,
}

impl Retried {
    pub fn is_empty(self) -> bool {
        self == Retried::default()
    }
}

impl std::ops::AddAssign for Retried {
    fn add_assign(&mut self, other: Retried) {
        self.tasks += other.tasks;
        self.containers += other.containers;
        self.objects += other.objects;
    }
}

/// The fleet at one moment, by the database's clock.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fleet {
    pub now_ms: i64,
    /// Live processes, and those that ended within the last hour, by group and start.
    pub orchestrators: Vec<ProcessState>,
    pub workers: Vec<ProcessState>,
    pub groups: Vec<GroupState>,
}

/// A process as the book knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessState {
    pub id: ProcessId,
    pub node_group: String,
    pub profile: Profile,
    pub load: Load,
    pub started_at_ms: i64,
    /// Milliseconds until its lease ends; not positive when it has.
    pub lease_ms: i64,
    /// Jobs it owns (an orchestrator).
    pub jobs: u64,
}

/// A node group's queues.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GroupState {
    pub node_group: String,
    pub jobs_queued: u64,
    pub jobs_running: u64,
    pub jobs_paused: u64,
    /// Open jobs with a command that was not executed yet.
    pub jobs_commanded: u64,
    /// Of open jobs.
    pub tasks_pending: u64,
    pub tasks_running: u64,
    pub tasks_failed: u64,
    /// Milliseconds that the oldest pending task of a running job has waited.
    pub oldest_pending_ms: Option<i64>,
    /// Running tasks whose worker's lease has expired: the reaper has not been there.
    pub tasks_orphaned: u64,
}

/// What one bounded step of pruning did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PruneReport {
    /// Master jobs removed whole.
    pub jobs: u64,
    pub rows: u64,
    /// Nothing was left to do.
    pub done: bool,
}
