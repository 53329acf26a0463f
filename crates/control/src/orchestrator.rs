//! The orchestrator: claims jobs of its node group, keeps their leases, executes their commands, fans
//! their units out, reaps what dead workers left, and notices when a job is done.
//!
//! Crash argument: it holds nothing that matters. Every change goes through a verb fenced by the job's
//! version; an orchestrator that lost a job gets `LostLease`, forgets the job, and has changed nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use domesday_model::{JobId, JobStatus, MasterJobId, ProcessId};
use domesday_store::{FanOutPolicy, FanOutReport, OwnedJob, Process, Role, Store, StoreError};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::ControlError;
use crate::lease::renewal_interval;
use crate::relay::log_events;
use crate::stop::Stop;

/// Jobs one orchestrator owns at once, at most.
const OWNED_MAX: usize = 64;
/// Rows one sweep deletes of each kind.
const SWEEP_MAX: u32 = 10_000;

#[derive(Clone, Debug)]
pub struct OrchestratorConfig {
    pub node_group: String,
    pub lease: Duration,
    /// How often to look for abandoned tasks, stalled sessions and commands of jobs without owner.
    pub reap_interval: Duration,
    /// A running task without progress for this long is taken from its worker.
    pub task_deadline: Duration,
    /// A session without progress for this long is stalled.
    pub stall_threshold: Duration,
    pub fan_out: FanOutPolicy,
}

pub struct Orchestrator {
    store: Arc<dyn Store>,
    id: ProcessId,
    config: OrchestratorConfig,
    owned: BTreeMap<JobId, OwnedJob>,
    /// Counts jobs that ended or paused, for whoever waits for one.
    settled: watch::Sender<u64>,
}

impl Orchestrator {
    pub fn new(store: Arc<dyn Store>, id: ProcessId, config: OrchestratorConfig) -> Orchestrator {
        Orchestrator { store, id, config, owned: BTreeMap::new(), settled: watch::channel(0).0 }
    }

    /// Changes whenever a job of this orchestrator comes to rest.
    pub fn settled(&self) -> watch::Receiver<u64> {
        self.settled.subscribe()
    }

    /// Runs until asked to stop; the jobs it owned are free at once.
    pub async fn run(mut self, mut stop: Stop) -> Result<(), ControlError> {
        let process =
            Process { id: self.id, role: Role::Orchestrator, node_group: self.config.node_group.clone() };
        self.store.register(&process, self.config.lease).await?;
        let ran = self.serve(&mut stop).await;
        let released = self.store.release(Role::Orchestrator, self.id).await;
        ran?;
        Ok(released?)
    }

    async fn serve(&mut self, stop: &mut Stop) -> Result<(), ControlError> {
        let mut changes = self.store.changes();
        let (mut renew_at, mut reap_at) =
            (Instant::now() + renewal_interval(self.config.lease), Instant::now());
        while !stop.is_asked() {
            changes.mark_unchanged();
            if Instant::now() >= renew_at {
                self.renew().await?;
                renew_at = Instant::now() + renewal_interval(self.config.lease);
            }
            if Instant::now() >= reap_at {
                self.reap().await?;
                reap_at = Instant::now() + self.config.reap_interval;
            }
            self.claim().await?;
            self.advance().await?;
            tokio::select! {
                () = stop.asked() => {}
                _ = changes.changed() => {}
                () = tokio::time::sleep_until(renew_at.min(reap_at)) => {}
            }
        }
        Ok(())
    }

    /// Renews this process's lease and those of all its jobs; what is no longer its own is forgotten.
    async fn renew(&mut self) -> Result<(), ControlError> {
        if !self.store.renew(Role::Orchestrator, self.id, self.config.lease).await? {
            return Err(ControlError::LeaseLost);
        }
        let renewed = self.store.renew_jobs(self.id, self.config.lease).await?;
        self.owned = renewed.into_iter().map(|job| (job.lease.job, job)).collect();
        Ok(())
    }

    async fn reap(&mut self) -> Result<(), ControlError> {
        let group = &self.config.node_group.clone();
        let reaped = self.store.reap_tasks(group, self.config.task_deadline).await?;
        if reaped != domesday_store::ReapReport::default() {
            tracing::info!(?reaped, "tasks of ended workers");
        }
        let stalled = self.store.reap_sessions(group, self.config.stall_threshold).await?;
        if stalled > 0 {
            tracing::warn!(stalled, "sessions without progress; resuming them");
            for job in self.jobs() {
                self.resume_sessions(&job).await?;
            }
        }
        self.store.execute_unowned_commands(group).await?;
        self.store.sweep(SWEEP_MAX).await?;
        log_events(self.store.as_ref()).await?;
        Ok(())
    }

    async fn claim(&mut self) -> Result<(), ControlError> {
        while self.owned.len() < OWNED_MAX {
            let claimed = self.store.claim_job(self.id, &self.config.node_group, self.config.lease).await?;
            let Some(job) = claimed else { break };
            tracing::info!(job_id = %job.lease.job, status = %job.status, "job claimed");
            self.owned.insert(job.lease.job, job.clone());
            self.resume_sessions(&job).await?;
        }
        Ok(())
    }

    /// A new owner resumes the sessions there are, and starts the others.
    async fn resume_sessions(&mut self, job: &OwnedJob) -> Result<(), ControlError> {
        if job.status != JobStatus::Running {
            return Ok(());
        }
        let started = self.store.start_sessions(&job.lease).await;
        self.keep_or_forget(job.lease.job, started.map(|_| ()))
    }

    /// Does for each job what its state asks for.
    async fn advance(&mut self) -> Result<(), ControlError> {
        for job in self.jobs() {
            let id = job.lease.job;
            let advanced = self.advance_one(job).await;
            self.keep_or_forget(id, advanced)?;
        }
        Ok(())
    }

    async fn advance_one(&mut self, mut job: OwnedJob) -> Result<(), StoreError> {
        if !job.pending.is_empty()
            && let Some(changed) = self.store.execute_commands(&job.lease).await?
        {
            self.owned.insert(changed.lease.job, changed.clone());
            job = changed;
        }
        let settled = match job.status {
            JobStatus::Running => {
                let report = self.store.fan_out(&job.lease, self.config.fan_out).await?;
                // What was just fanned out is open: asking whether the job is done can wait.
                if report != FanOutReport::default() {
                    return Ok(());
                }
                self.store.complete_job(&job.lease).await?
            }
            _ => self.store.settle_job(&job.lease).await?,
        };
        if let Some(status) = settled {
            self.rest(job.lease.job, job.master_job, status);
        }
        Ok(())
    }

    fn rest(&mut self, job: JobId, master: MasterJobId, status: JobStatus) {
        tracing::info!(job_id = %job, %master, %status, "job at rest");
        self.owned.remove(&job);
        self.settled.send_modify(|count| *count += 1);
    }

    fn jobs(&self) -> Vec<OwnedJob> {
        self.owned.values().cloned().collect()
    }

    fn keep_or_forget(&mut self, job: JobId, outcome: Result<(), StoreError>) -> Result<(), ControlError> {
        match outcome {
            Err(StoreError::LostLease(_)) => {
                tracing::warn!(job_id = %job, "job taken over by another orchestrator");
                self.owned.remove(&job);
                Ok(())
            }
            Err(error) if error.is_retryable() => {
                tracing::warn!(job_id = %job, %error, "will look again");
                Ok(())
            }
            outcome => Ok(outcome?),
        }
    }
}
