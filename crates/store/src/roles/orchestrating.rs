//! What an orchestrator does: owns jobs, executes their commands, starts sessions, fans units out, reaps,
//! fires schedules and relays events. Given to orchestrators and to the enumeration coordinator.
//!
//! Every write for a job is fenced by the job's lease: it fails with [`crate::StoreError::LostLease`] once the lease
//! is someone else's. An orchestrator cannot write results; only [`super::WorkerStore`] has those verbs.

use std::time::Duration;

use async_trait::async_trait;
use domesday_model::{CheckpointId, EnumerationSessionId, JobStatus, ProcessId, Retries};

use super::{ComposerStore, LeaseStore, Result};
use crate::types::*;

#[async_trait]
pub trait OrchestratorStore: LeaseStore + ComposerStore {
    /// TaskAssigner: takes the oldest QUEUED job of the group, or one whose owner's lease expired. An
    /// orchestrator whose own lease expired gets nothing.
    async fn claim_job(
        &self,
        orchestrator: ProcessId,
        node_group: &str,
        lease: Duration,
    ) -> Result<Option<OwnedJob>>;
    /// Renews the leases of all jobs of this orchestrator in one statement, and tells what is pending.
    async fn renew_jobs(&self, orchestrator: ProcessId, lease: Duration) -> Result<Vec<OwnedJob>>;
    /// Executes the pending commands of a job and clears exactly those; `None` when nothing changed.
    async fn execute_commands(&self, lease: &JobLease) -> Result<Option<OwnedJob>>;
    /// Executes commands of jobs that have no owner (QUEUED, PAUSED); how many jobs changed.
    async fn execute_unowned_commands(&self, node_group: &str) -> Result<u64>;
    /// Starts an enumeration session with its root task for each data source that has none, and
    /// resumes the sessions that had stopped. Only a RUNNING job starts anything.
    async fn start_sessions(&self, lease: &JobLease) -> Result<u64>;
    /// The same for one data source of the job: its session, whether that is new, resumed or under way.
    /// [`crate::StoreError::Missing`] when the job has no such source, or does not run and has no session for it.
    async fn open_session(&self, lease: &JobLease, datasource: &str) -> Result<EnumerationSessionId>;
    /// Turns committed units of a RUNNING job into next-stage tasks.
    async fn fan_out(&self, lease: &JobLease, policy: FanOutPolicy) -> Result<FanOutReport>;
    /// Ends the job if its sessions were started and nothing is staged, un-fanned, pending or running. Objects that
    /// could not be read for a reason that may pass are read again first, as often and after such waits as `retries`
    /// says.
    async fn complete_job(&self, lease: &JobLease, retries: Retries) -> Result<Option<JobStatus>>;
    /// Moves PAUSING to PAUSED and CANCELLING to CANCELLED once no task of the job runs.
    async fn settle_job(&self, lease: &JobLease) -> Result<Option<JobStatus>>;
    /// Returns, splits or gives up the tasks of workers whose lease expired, and those without progress
    /// for `deadline` although their worker lives.
    async fn reap_tasks(&self, node_group: &str, deadline: Duration) -> Result<ReapReport>;
    /// Marks sessions without progress for `threshold` STALLED, unless they wait for a rate limit.
    async fn reap_sessions(&self, node_group: &str, threshold: Duration) -> Result<u64>;
    /// Deletes staged rows of lost claims and failed units, at most `max` of each; how many went.
    async fn sweep(&self, max: u32) -> Result<u64>;
    /// Starts the job of a firing, once however many ask: false when someone else did, or when the
    /// template has changed meanwhile.
    async fn fire(&self, firing: Firing) -> Result<bool>;
    /// The next events for a consumer, in order.
    async fn events(&self, consumer: &str, max: u32) -> Result<Vec<Event>>;
    /// Records how far a consumer is, and prunes what every consumer has.
    async fn acknowledge(&self, consumer: &str, position: i64) -> Result<()>;
    /// Saves a checkpoint in place of the one that its target had. That of a session follows from its batches, and
    /// is refused ([`crate::StoreError::Refused`]).
    async fn save_checkpoint(&self, target: &str, data: &serde_json::Value) -> Result<CheckpointId>;
    /// Whether there was one.
    async fn delete_checkpoint(&self, target: &str) -> Result<bool>;
}
