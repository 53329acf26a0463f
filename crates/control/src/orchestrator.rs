//! The orchestrator: claims jobs of its node group, keeps their leases, executes their commands, fans
//! their units out, reaps what dead workers left, fires schedules, and notices when a job is done.
//!
//! One lease is one tenure; an orchestrator that lost its lease forgets what it owned and begins another
//! under a new id. Leases are renewed by the heartbeat, whatever takes long here.
//!
//! Crash argument: it holds nothing that matters. Every change goes through a verb fenced by the job's
//! version; an orchestrator that lost a job gets `LostLease`, forgets the job, and has changed nothing. A
//! verb whose answer was lost shows in the next look at what the book says is owned.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domesday_model::backoff::jitter;
use domesday_model::{
    EnumerationSessionId, JobId, JobStatus, MasterJobId, ProcessId, Retries, SessionStatus, TaskType,
};
use domesday_store::{
    FanOutPolicy, FanOutReport, GroupState, Load, OrchestratorStore, OwnedJob, Process, Profile, ReapReport,
    Role, SessionFilter, StoreError,
};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::firing::fire_due;
use crate::lease::{Book, Duty, Lease, Terms, renewal_interval};
use crate::metrics::{CommitCall, Metrics};
use crate::outage::Outage;
use crate::relay::log_events;
use crate::stop::Stop;
use crate::{ControlError, NewId};

/// Jobs one orchestrator owns at once, at most.
const OWNED_MAX: usize = 64;
/// Jobs claimed at once, so that others who woke up at the same time get some, too.
const CLAIMS_PER_TURN: usize = 2;
/// The least time between two turns that claim.
const CLAIM_INTERVAL: Duration = Duration::from_millis(100);
/// And so much more for each job that is owned already: whoever has fewer comes first.
const CLAIM_INTERVAL_PER_JOB: Duration = Duration::from_millis(10);
/// Rows one sweep deletes of each kind.
const SWEEP_MAX: u32 = 10_000;
/// The least time between two looks at what is owned and what is asked of it.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Sessions counted at once.
const SESSIONS_PAGE: u32 = 500;
/// How soon after a claim abandoned tasks are looked for: the job may be one that was taken over.
const REAP_SOON: Duration = Duration::from_secs(1);
/// Between two tenures, so that trouble that comes at once does not come in a tight loop.
const TENURE_PAUSE: Duration = Duration::from_millis(200);

#[derive(Clone, Debug)]
pub struct OrchestratorConfig {
    pub node_group: String,
    pub lease: Duration,
    /// How often to look for abandoned tasks and stalled sessions.
    pub reap_interval: Duration,
    /// A running task without progress for this long is taken from its worker.
    pub task_deadline: Duration,
    /// A session without progress for this long is stalled.
    pub stall_threshold: Duration,
    pub fan_out: FanOutPolicy,
    /// How often an object is read that the source did not give, or not whole, for a reason that may pass.
    pub retries: Retries,
    /// What the orchestrator says of itself.
    pub profile: Profile,
    /// Whether to start the jobs of schedules.
    pub fires_schedules: bool,
    /// Whether to wait for a book that does not answer, and to begin anew when the lease is lost. A process
    /// whose user waits rather ends.
    pub is_patient: bool,
}

pub struct Orchestrator {
    book: Book<dyn OrchestratorStore>,
    new_id: NewId,
    config: OrchestratorConfig,
    metrics: Arc<Metrics>,
    /// Counts jobs that ended or paused, for whoever waits for one.
    settled: watch::Sender<u64>,
}

/// What an orchestrator does with each heartbeat: renews the leases of all its jobs, in one statement.
struct OrchestratorDuty {
    lease: Duration,
    metrics: Arc<Metrics>,
}

#[async_trait]
impl Duty<dyn OrchestratorStore> for OrchestratorDuty {
    fn load(&self) -> Load {
        let owned = u32::try_from(self.metrics.jobs_owned.get()).unwrap_or(u32::MAX);
        Load { running: owned, ..Load::default() }
    }

    async fn beat(&self, store: &dyn OrchestratorStore, id: ProcessId) -> Result<(), StoreError> {
        if self.metrics.jobs_owned.get() > 0 {
            store.renew_jobs(id, self.lease).await?;
        }
        Ok(())
    }
}

impl Orchestrator {
    pub fn new(
        book: Book<dyn OrchestratorStore>,
        new_id: NewId,
        config: OrchestratorConfig,
        metrics: Arc<Metrics>,
    ) -> Orchestrator {
        Orchestrator { book, new_id, config, metrics, settled: watch::channel(0).0 }
    }

    /// Changes whenever a job of this orchestrator comes to rest.
    pub fn settled(&self) -> watch::Receiver<u64> {
        self.settled.subscribe()
    }

    /// Runs until asked to stop; the jobs it owned are free at once.
    pub async fn run(self, mut stop: Stop) -> Result<(), ControlError> {
        loop {
            match self.tenure(&mut stop).await {
                Ok(()) => return Ok(()),
                Err(error) if self.config.is_patient && error.is_passing() => {
                    tracing::warn!(reason = %error, "tenure ended; beginning another");
                }
                Err(error) => return Err(error),
            }
            tokio::select! {
                () = stop.asked() => return Ok(()),
                () = tokio::time::sleep(jitter(TENURE_PAUSE)) => {}
            }
        }
    }

    /// From one lease's beginning to its end; everything owned under it is forgotten then.
    async fn tenure(&self, stop: &mut Stop) -> Result<(), ControlError> {
        let config = &self.config;
        self.metrics.jobs_owned.set(0);
        let mut process = Process::new(ProcessId([0; 16]), Role::Orchestrator, config.node_group.clone());
        process.profile = config.profile.clone();
        self.metrics.begin(&process, config.lease);
        let new_id = Arc::clone(&self.new_id);
        let terms = Terms { process, lease: config.lease, is_patient: config.is_patient, new_id };
        let duty = OrchestratorDuty { lease: config.lease, metrics: Arc::clone(&self.metrics) };
        let begun = Lease::begin(&self.book, terms, Arc::new(duty), Arc::clone(&self.metrics), stop).await?;
        let Some(lease) = begun else { return Ok(()) };
        self.metrics.sessions.add(1);
        tracing::info!(orchestrator_id = %lease.id, node_group = config.node_group, "tenure begun");
        let mut tenure = Tenure::new(self, lease.id);
        let served = tokio::select! {
            served = tenure.serve(stop) => served,
            // A verb that is dropped here is refused by its fence, or was in time.
            error = lease.lost() => Err(error),
        };
        self.metrics.jobs_owned.set(0);
        tracing::info!(orchestrator_id = %lease.id, "tenure ended");
        lease.end().await;
        served
    }
}

/// What an orchestrator knows under one lease, and when it looks at what.
struct Tenure<'a> {
    services: &'a Orchestrator,
    store: &'a dyn OrchestratorStore,
    config: &'a OrchestratorConfig,
    id: ProcessId,
    owned: BTreeMap<JobId, OwnedJob>,
    /// Sessions of owned jobs whose end was counted.
    ended: HashSet<EnumerationSessionId>,
    claim_at: Instant,
    looked_at: Instant,
    look_at: Instant,
    reap_at: Instant,
    fire_at: Instant,
    /// Something was owned since the last reaping: there may be something to clean up.
    is_busy: bool,
}

impl<'a> Tenure<'a> {
    fn new(services: &'a Orchestrator, id: ProcessId) -> Tenure<'a> {
        let now = Instant::now();
        Tenure {
            services,
            store: services.book.store.as_ref(),
            config: &services.config,
            id,
            owned: BTreeMap::new(),
            ended: HashSet::new(),
            claim_at: now,
            looked_at: now,
            look_at: now,
            reap_at: now,
            fire_at: now,
            is_busy: true,
        }
    }

    async fn serve(&mut self, stop: &mut Stop) -> Result<(), ControlError> {
        let mut changes = self.store.changes();
        let mut outage = Outage::default();
        while !stop.is_asked() {
            changes.mark_unchanged();
            let wait_until = match self.turn().await {
                Ok(()) => {
                    outage.reset();
                    self.next_turn()
                }
                Err(error) if error.is_retryable() && self.config.is_patient => {
                    self.services.metrics.store_errors.add(1);
                    if outage.is_worth_a_line() {
                        tracing::warn!(orchestrator_id = %self.id, %error, "the book does not answer; trying again");
                    }
                    tokio::select! {
                        () = stop.asked() => break,
                        () = tokio::time::sleep(outage.next_wait()) => continue,
                    }
                }
                Err(error) => return Err(error.into()),
            };
            tokio::select! {
                () = stop.asked() => {}
                _ = changes.changed() => {
                    let now = Instant::now();
                    self.claim_at = self.claim_at.min(now + self.claim_pause());
                    self.look_at = self.look_at.min(self.looked_at + LOOK_INTERVAL);
                }
                () = tokio::time::sleep_until(wait_until) => {}
            }
        }
        Ok(())
    }

    /// Does what is due. A verb that fails ends the turn; the next one looks at everything anew.
    async fn turn(&mut self) -> Result<(), StoreError> {
        if Instant::now() >= self.look_at {
            self.look().await?;
        }
        if Instant::now() >= self.reap_at {
            self.reap().await?;
        }
        if self.config.fires_schedules && Instant::now() >= self.fire_at {
            self.fire().await;
        }
        if Instant::now() >= self.claim_at {
            self.claim().await?;
        }
        let advanced = self.advance().await;
        self.services.metrics.jobs_owned.set(self.owned.len() as u64);
        advanced
    }

    fn next_turn(&self) -> Instant {
        let fire_at = if self.config.fires_schedules { self.fire_at } else { self.look_at };
        self.look_at.min(self.reap_at).min(self.claim_at).min(fire_at)
    }

    /// The pause between two claims: jittered, and the longer the more is owned.
    fn claim_pause(&self) -> Duration {
        jitter(CLAIM_INTERVAL + CLAIM_INTERVAL_PER_JOB * u32::try_from(self.owned.len()).unwrap_or(u32::MAX))
    }

    /// What the book says is owned and what is asked of it. What is new here was claimed without an answer;
    /// what is missing is someone else's.
    async fn look(&mut self) -> Result<(), StoreError> {
        self.store.execute_unowned_commands(&self.config.node_group).await?;
        let renewed = self.store.renew_jobs(self.id, self.config.lease).await?;
        let known = std::mem::take(&mut self.owned);
        self.owned = renewed.into_iter().map(|job| (job.lease.job, job)).collect();
        for job in known.keys().filter(|job| !self.owned.contains_key(job)) {
            tracing::warn!(orchestrator_id = %self.id, job_id = %job, "job no longer owned");
        }
        for job in self.jobs() {
            if !known.contains_key(&job.lease.job) {
                self.resume_sessions(&job).await?;
            }
        }
        self.count_sessions().await?;
        self.look_at_group().await;
        self.looked_at = Instant::now();
        self.look_at = self.looked_at + renewal_interval(self.config.lease);
        Ok(())
    }

    /// Counts the sessions of owned jobs, and the end of each once.
    async fn count_sessions(&mut self) -> Result<(), StoreError> {
        let (mut running, mut ended) = (0, HashSet::new());
        for master in self.owned.values().map(|job| job.master_job).collect::<BTreeSet<_>>() {
            let filter = SessionFilter { master: Some(master), ..SessionFilter::default() };
            let mut after = None;
            loop {
                let page = self.store.sessions(filter.clone(), after, SESSIONS_PAGE).await?;
                let Some(last) = page.last() else { break };
                after = Some(last.id);
                for session in &page {
                    match session.completed_at_ms {
                        None => running += 1,
                        Some(at) => {
                            ended.insert(session.id);
                            if !self.ended.contains(&session.id) {
                                let took = u64::try_from(at - session.started_at_ms).unwrap_or(0);
                                let has_failed = session.status == SessionStatus::Failed;
                                self.services.metrics.session_ended(Duration::from_millis(took), has_failed);
                            }
                        }
                    }
                }
            }
        }
        self.ended = ended;
        self.services.metrics.enumerations_running.set(running);
        Ok(())
    }

    /// What waits in the node group, for whoever watches it. Trouble with that is no reason to leave jobs alone. A process
    /// whose user waits is watched by nobody.
    async fn look_at_group(&self) {
        if !self.config.is_patient {
            return;
        }
        let node_group = &self.config.node_group;
        match self.store.fleet().await {
            Ok(fleet) => {
                let found = fleet.groups.into_iter().find(|group| group.node_group == *node_group);
                let nothing = || GroupState { node_group: node_group.clone(), ..GroupState::default() };
                self.services.metrics.saw_group(found.unwrap_or_else(nothing));
            }
            Err(error) => {
                self.services.metrics.store_errors.add(1);
                tracing::warn!(orchestrator_id = %self.id, %error, "the node group was not looked at");
            }
        }
    }

    async fn reap(&mut self) -> Result<(), StoreError> {
        self.reap_at = Instant::now() + self.config.reap_interval;
        self.is_busy |= !self.owned.is_empty();
        if !std::mem::take(&mut self.is_busy) {
            return Ok(());
        }
        let group = &self.config.node_group;
        let reaped = self.store.reap_tasks(group, self.config.task_deadline).await?;
        if reaped != ReapReport::default() {
            self.services.metrics.reaped(&reaped);
            tracing::info!(orchestrator_id = %self.id, ?reaped, "tasks of ended workers");
        }
        let stalled = self.store.reap_sessions(group, self.config.stall_threshold).await?;
        if stalled > 0 {
            tracing::warn!(orchestrator_id = %self.id, stalled, "sessions without progress; resuming them");
            for job in self.jobs() {
                self.resume_sessions(&job).await?;
            }
        }
        self.store.sweep(SWEEP_MAX).await?;
        log_events(self.store).await?;
        Ok(())
    }

    /// Trouble with schedules is no reason to leave jobs alone.
    async fn fire(&mut self) {
        let at_most = renewal_interval(self.config.lease);
        let pause = match fire_due(self.store, &self.services.metrics).await {
            Ok(pause) => pause.map_or(at_most, |pause| pause.min(at_most)),
            Err(error) => {
                self.services.metrics.store_errors.add(1);
                tracing::warn!(orchestrator_id = %self.id, %error, "schedules were not looked at");
                at_most
            }
        };
        self.fire_at = Instant::now() + pause;
    }

    async fn claim(&mut self) -> Result<(), StoreError> {
        self.claim_at = Instant::now() + renewal_interval(self.config.lease);
        for _ in 0..CLAIMS_PER_TURN {
            if self.owned.len() >= OWNED_MAX {
                break;
            }
            let claim = self.store.claim_job(self.id, &self.config.node_group, self.config.lease);
            let claimed = self.services.metrics.job_claims.timed(claim).await?;
            let Some(job) = claimed else { return Ok(()) };
            tracing::info!(orchestrator_id = %self.id, job_id = %job.lease.job, status = %job.status, "job claimed");
            self.services.metrics.jobs_claimed.add(1);
            self.owned.insert(job.lease.job, job.clone());
            // The heartbeat keeps it from now on.
            self.services.metrics.jobs_owned.set(self.owned.len() as u64);
            self.reap_at = self.reap_at.min(Instant::now() + REAP_SOON);
            self.resume_sessions(&job).await?;
        }
        // There may be more.
        self.claim_at = Instant::now() + self.claim_pause();
        Ok(())
    }

    /// A new owner resumes the sessions there are, and starts the others.
    async fn resume_sessions(&mut self, job: &OwnedJob) -> Result<(), StoreError> {
        if job.status != JobStatus::Running {
            return Ok(());
        }
        let started = self.store.start_sessions(&job.lease).await;
        let metrics = &self.services.metrics;
        match &started {
            Ok(roots) => metrics.fanned_out[TaskType::ROOT].add(*roots),
            Err(_) => metrics.enqueue_failures.add(1),
        }
        if let Err(error) = &started
            && error.is_retryable()
        {
            // Not known: the next look finds it as a new one, and comes back here.
            self.owned.remove(&job.lease.job);
            self.look_at = Instant::now();
        }
        self.keep_or_forget(job.lease.job, started.map(|_| ()))
    }

    /// Does for each job what its state asks for. Trouble with one does not hold up the others.
    async fn advance(&mut self) -> Result<(), StoreError> {
        let mut advanced = Ok(());
        for job in self.jobs() {
            let id = job.lease.job;
            let one = self.advance_one(job).await;
            advanced = advanced.and(self.keep_or_forget(id, one));
        }
        advanced
    }

    async fn advance_one(&mut self, mut job: OwnedJob) -> Result<(), StoreError> {
        if !job.pending.is_empty()
            && let Some(changed) = self.store.execute_commands(&job.lease).await?
        {
            tracing::info!(orchestrator_id = %self.id, job_id = %job.lease.job, status = %changed.status, "commands executed");
            self.owned.insert(changed.lease.job, changed.clone());
            job = changed;
        }
        let settled = match job.status {
            JobStatus::Running => {
                let metrics = &self.services.metrics;
                let fan_out = self.store.fan_out(&job.lease, self.config.fan_out);
                let report = metrics.commits(CommitCall::FanOut).timed(fan_out).await;
                let report = report.inspect_err(|_| self.services.metrics.enqueue_failures.add(1))?;
                // What was just fanned out is open: asking whether the job is done can wait.
                if report != FanOutReport::default() {
                    self.services.metrics.fanned_out(&report);
                    return Ok(());
                }
                self.store.complete_job(&job.lease, self.config.retries).await?
            }
            _ => self.store.settle_job(&job.lease).await?,
        };
        if let Some(status) = settled {
            self.rest(job.lease.job, job.master_job, status);
        }
        Ok(())
    }

    fn rest(&mut self, job: JobId, master: MasterJobId, status: JobStatus) {
        tracing::info!(orchestrator_id = %self.id, job_id = %job, %master, %status, "job at rest");
        self.owned.remove(&job);
        self.is_busy = true;
        self.services.settled.send_modify(|count| *count += 1);
    }

    fn jobs(&self) -> Vec<OwnedJob> {
        self.owned.values().cloned().collect()
    }

    fn keep_or_forget(&mut self, job: JobId, outcome: Result<(), StoreError>) -> Result<(), StoreError> {
        match outcome {
            // Someone else's, or this one's under another version: its own last change, whose answer was lost.
            Err(StoreError::LostLease(_)) => {
                self.services.metrics.writes_refused.add(1);
                tracing::warn!(orchestrator_id = %self.id, job_id = %job, "job changed by another; looking again");
                self.owned.remove(&job);
                self.look_at = self.look_at.min(Instant::now() + LOOK_INTERVAL);
                self.services.settled.send_modify(|count| *count += 1);
                Ok(())
            }
            Err(error) => {
                tracing::debug!(orchestrator_id = %self.id, job_id = %job, %error, "not advanced");
                Err(error)
            }
            Ok(()) => Ok(()),
        }
    }
}
