//! One session of a worker: from the lease it begins with to the lease it ends with. Claims tasks in batches, has their
//! handlers run them, and ends with everything it held done, given back or dropped. It must not know a kind of task.
//!
//! Crash argument: a session that lost its lease drops what it holds. Nothing of it is awaited by the next
//! one, and what still comes late is refused by the fence. Tasks whose claim this process never heard of (the
//! answer was lost) would be kept alive by its own lease: then the session finishes what it has and ends,
//! and the reaper returns them.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use domesday_model::ProcessId;
use domesday_model::backoff::jitter;
use domesday_store::{Process, Role, StoreError, WorkPacket, WorkerStore};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::{Instrument, Span};

use super::held::{Held, WorkerDuty};
use super::window::{Slots, Window, WindowLimits};
use super::{Worker, WorkerConfig};
use crate::ControlError;
use crate::kinds::{self, TaskHandler};
use crate::lease::{Lease, Terms};
use crate::outage::Outage;
use crate::stop::Stop;

/// By which a look for a task that was given back comes after its time, so that the book's clock has come to it, too.
const AGAIN_DELAY: Duration = Duration::from_millis(20);
/// The first wait before looking again for tasks that become ready by time alone; doubled each time.
const POLL_MIN: Duration = Duration::from_secs(1);
/// The longest such wait.
const POLL_MAX: Duration = Duration::from_secs(15);
/// That multiple is doubled with each such claim in a row, so often at most.
const QUIET_DOUBLINGS_MAX: u32 = 6;

/// How a session ended, when nothing is wrong.
pub(crate) enum Ended {
    /// The worker was asked to stop.
    Asked,
    /// The next one is to begin.
    Renewed,
}

pub(crate) struct Session {
    pub worker: Arc<Worker>,
    pub id: ProcessId,
    pub held: Arc<Held>,
    source: Flow,
    core: Flow,
}

/// How packets that share slots come and go.
pub(crate) struct Flow {
    pub window: Mutex<Window>,
    /// Packets in the scan core.
    pub ready: AtomicUsize,
    /// The last claim brought as much as was asked for: there is more.
    pub more: AtomicBool,
    /// When the next task that was given back is to be tried again.
    again_at: Mutex<Option<Instant>>,
}

impl Session {
    /// Runs one session; every packet of it has ended when this returns.
    pub async fn run(worker: &Arc<Worker>, stop: &mut Stop) -> Result<Ended, ControlError> {
        let config = &worker.config;
        let terms = terms(config, worker);
        worker.metrics.begin(&terms.process, terms.lease);
        let held = Arc::new(Held::new(Arc::clone(&worker.metrics)));
        let duty = WorkerDuty::new(Arc::clone(&held), Arc::clone(&worker.core), Arc::clone(&worker.progress));
        let metrics = Arc::clone(&worker.metrics);
        let begun = Lease::begin(&worker.book, terms, Arc::new(duty), metrics, stop);
        let Some(lease) = begun.await? else { return Ok(Ended::Asked) };
        worker.metrics.sessions.add(1);
        tracing::info!(worker_id = %lease.id, node_group = config.node_group, "session begun");
        let kinds = kinds::of_workers();
        let session = Arc::new(Session {
            worker: Arc::clone(worker),
            id: lease.id,
            held,
            source: Flow::new(config.enumerators),
            core: Flow::new(config.packets),
        });
        let work = async {
            let source = session.serve(Slots::Source, &kinds);
            let core = session.serve(Slots::Core, &kinds);
            let (source, core) = tokio::join!(source, core);
            source.and(core)
        };
        let watch = async {
            let why = tokio::select! {
                () = stop.asked() => None,
                error = lease.lost() => Some(error),
            };
            match &why {
                None => session.held.halt(),
                Some(_) => session.held.lose(),
            }
            why
        };
        let served = {
            let (mut work, attending) = (pin!(work), attend(&session, &kinds));
            let mut work = pin!(async {
                tokio::select! {
                    served = &mut work => served,
                    () = attending => Ok(()),
                }
            });
            tokio::select! {
                served = &mut work => served,
                why = watch => {
                    let served = work.await;
                    why.map_or(served, Err)
                }
            }
        };
        tracing::info!(worker_id = %lease.id, "session ended");
        lease.end().await;
        served?;
        Ok(if stop.is_asked() { Ended::Asked } else { Ended::Renewed })
    }

    pub fn store(&self) -> &dyn WorkerStore {
        self.worker.store().as_ref()
    }

    pub fn config(&self) -> &WorkerConfig {
        &self.worker.config
    }

    pub fn flow(&self, slots: Slots) -> &Flow {
        match slots {
            Slots::Source => &self.source,
            Slots::Core => &self.core,
        }
    }

    /// Calls the book until it answers: an outage is waited out, for as long as the lease may be held. After
    /// that it is the call, not the book. Only for calls that do no harm when they are repeated.
    pub async fn ask<T, F>(&self, halt: &Stop, mut call: impl FnMut() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let (begun, mut outage, mut halt) = (Instant::now(), Outage::default(), halt.clone());
        loop {
            let error = match self.held.unless_lost(call()).await {
                Err(error) if error.is_retryable() => error,
                answer => return answer,
            };
            self.worker.metrics.store_errors.add(1);
            let is_over = halt.is_asked() || self.held.is_lost() || begun.elapsed() >= self.config().lease;
            if is_over || !self.config().is_patient {
                return Err(error);
            }
            if outage.is_worth_a_line() {
                tracing::warn!(worker_id = %self.id, %error, "the book does not answer; trying again");
            }
            self.worker.metrics.retries.add(1);
            tokio::select! {
                () = halt.asked() => {}
                () = tokio::time::sleep(outage.next_wait()) => {}
            }
        }
    }

    /// As [`Session::ask`], with a value that the call takes: it is copied only where the call may be repeated.
    pub async fn give<V, T, F>(
        &self,
        halt: &Stop,
        value: V,
        mut call: impl FnMut(V) -> F,
    ) -> Result<T, StoreError>
    where
        V: Clone,
        F: Future<Output = Result<T, StoreError>>,
    {
        if self.config().is_patient {
            return self.ask(halt, || call(value.clone())).await;
        }
        let given = self.held.unless_lost(call(value)).await;
        if given.as_ref().is_err_and(StoreError::is_retryable) {
            self.worker.metrics.store_errors.add(1);
        }
        given
    }

    /// Claims and runs tasks of the kinds that share these slots until closed. A failure ends the others, too; either
    /// way every packet has been given back, dropped or done when this returns.
    async fn serve(
        self: &Arc<Self>,
        slots: Slots,
        kinds: &[Arc<dyn TaskHandler>],
    ) -> Result<(), ControlError> {
        let kinds: Vec<_> = kinds.iter().filter(|kind| kind.slots() == slots).cloned().collect();
        let mut running = JoinSet::new();
        let mut served = self.claim_and_run(slots, &kinds, &mut running).await;
        if served.is_err() {
            self.held.halt();
        }
        while let Some(ended) = running.join_next().await {
            let ended = joined(ended);
            if ended.is_err() {
                self.held.halt();
            }
            served = served.and(ended);
        }
        served
    }

    /// Tasks of the first of these kinds that has any; of one that comes last, only while nothing is held.
    async fn claim(&self, kinds: &[Arc<dyn TaskHandler>], max: u32) -> Result<Vec<Claimed>, StoreError> {
        let group = &self.config().node_group;
        for kind in kinds {
            if kind.comes_last() && !self.held.is_empty() {
                continue;
            }
            let claim = self.store().claim_tasks(self.id, group, kind.task_type(), max);
            let packets = self.worker.metrics.claims[kind.task_type()].timed(claim).await?;
            if !packets.is_empty() {
                return Ok(packets.into_iter().map(|packet| (Arc::clone(kind), packet)).collect());
            }
        }
        Ok(Vec::new())
    }

    /// What is around everything that is done for a packet.
    fn span(&self, packet: &WorkPacket) -> Span {
        tracing::info_span!(
            "task", job_id = %packet.job, task_id = %packet.claim.task, worker_id = %self.id,
            session_id = %packet.session, r#type = packet.task_type.facts().label,
            kind = packet.datasource.kind, datasource = packet.datasource.name
        )
    }

    /// As many tasks at once as the window allows. The next claim is under way while packets run.
    async fn claim_and_run(
        self: &Arc<Self>,
        slots: Slots,
        kinds: &[Arc<dyn TaskHandler>],
        running: &mut JoinSet<Result<(), ControlError>>,
    ) -> Result<(), ControlError> {
        let flow = self.flow(slots);
        let waits_until_empty = kinds.iter().any(|kind| kind.comes_last());
        let mut closing = self.held.closing();
        let mut changes = self.store().changes();
        let (mut looks, mut outage) = (Looks::new(self.config().quiet_max), Outage::default());
        while !closing.is_asked() {
            changes.mark_unchanged();
            let room = flow.room(running.len());
            if room > 0 {
                let asked_at = Instant::now();
                match self.held.unless_lost(self.claim(kinds, room as u32)).await {
                    Ok(claimed) => {
                        outage.reset();
                        looks.brought(claimed.len(), asked_at.elapsed());
                        flow.claimed(claimed.len(), room, slots);
                        for (kind, packet) in claimed {
                            self.worker.metrics.tasks_claimed[packet.task_type].add(1);
                            let span = self.span(&packet);
                            running.spawn(Arc::clone(self).run_packet(kind, packet).instrument(span));
                        }
                    }
                    // Some of the book's tasks may be this session's, and nobody will ever work on them.
                    Err(StoreError::CommitUnknown(error)) if self.config().is_patient => {
                        tracing::warn!(worker_id = %self.id, error, "the answer to a claim was lost");
                        self.worker.metrics.store_errors.add(1);
                        self.held.close();
                        break;
                    }
                    Err(error) if error.is_retryable() && self.config().is_patient => {
                        self.worker.metrics.store_errors.add(1);
                        if outage.is_worth_a_line() {
                            tracing::warn!(worker_id = %self.id, %error, "cannot claim; trying again");
                        }
                        looks.failed(outage.next_wait());
                    }
                    Err(_) if self.held.is_lost() => break,
                    Err(error) => return Err(error.into()),
                }
            }
            let wants = flow.room(running.len()) > 0;
            tokio::select! {
                () = closing.asked() => {}
                Some(ended) = running.join_next() => joined(ended)?,
                // What is new may be ready later.
                () = looks.change(&mut changes), if wants => looks.poll = POLL_MIN,
                () = self.held.emptied(), if wants && waits_until_empty => {}
                () = looks.time(), if wants => looks.polled(),
                () = flow.again(), if wants => {
                    flow.forget_again();
                    looks.poll = POLL_MIN;
                }
            }
        }
        Ok(())
    }
}

impl Flow {
    fn new(limits: WindowLimits) -> Flow {
        Flow {
            window: Mutex::new(Window::new(limits)),
            ready: AtomicUsize::new(0),
            more: AtomicBool::new(false),
            again_at: Mutex::default(),
        }
    }

    /// A task was given back, to be tried again after this.
    pub fn tries_again(&self, after: Duration) {
        // As far off as no clock goes: others will look.
        let Some(at) = Instant::now().checked_add(after.saturating_add(AGAIN_DELAY)) else { return };
        let mut again_at = self.again_at.lock();
        *again_at = Some(again_at.map_or(at, |other| other.min(at)));
    }

    /// It is time to look for a task that was given back.
    async fn again(&self) {
        let again_at = *self.again_at.lock();
        match again_at {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    fn forget_again(&self) {
        *self.again_at.lock() = None;
    }

    fn room(&self, held: usize) -> usize {
        self.window.lock().room(held)
    }

    /// A claim was answered. Who asks a source waits for the book more than for anything else: while there is more to
    /// ask, more is asked at once.
    fn claimed(&self, count: usize, room: usize, slots: Slots) {
        let more = count == room;
        self.more.store(more, Ordering::Relaxed);
        if slots == Slots::Source {
            let mut window = self.window.lock();
            if more { window.grow() } else { window.reset() }
        }
    }

    /// A packet has left the scan core, where `slots` run at once. Whether that was short of packets, and the
    /// size of the window now.
    pub fn left_core(&self, slots: usize) -> (bool, usize) {
        let left = self.ready.fetch_sub(1, Ordering::Relaxed) - 1;
        let mut window = self.window.lock();
        let starved = window.ended(left, slots, self.more.load(Ordering::Relaxed));
        (starved, window.size())
    }
}

/// A task with the handler of its kind.
type Claimed = (Arc<dyn TaskHandler>, WorkPacket);

/// What the kinds do for their packets together; ends when one of them does, which none should.
async fn attend(session: &Arc<Session>, kinds: &[Arc<dyn TaskHandler>]) {
    let mut attending: Vec<_> = kinds.iter().map(|kind| kind.attend(session)).collect();
    poll_fn(|context| {
        let ended = attending.iter_mut().any(|one| one.as_mut().poll(context).is_ready());
        if ended { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// When to look for tasks again.
struct Looks {
    /// Claims in a row that brought nothing.
    empty: u32,
    /// No earlier than this, whatever changes.
    quiet_until: Instant,
    quiet_max: Duration,
    /// And no later than so long from now, for tasks that become ready by time alone.
    poll: Duration,
}

impl Looks {
    fn new(quiet_max: Duration) -> Looks {
        Looks { empty: 0, quiet_until: Instant::now(), quiet_max, poll: POLL_MIN }
    }

    fn brought(&mut self, count: usize, took: Duration) {
        if count > 0 {
            *self = Looks::new(self.quiet_max);
            return;
        }
        // What a process writes wakes it, too: asking as often as it writes would cost as much as writing.
        let quiet = took.saturating_mul(2u32.pow(self.empty.min(QUIET_DOUBLINGS_MAX))).min(self.quiet_max);
        self.quiet_until = Instant::now() + quiet;
        self.empty = self.empty.saturating_add(1);
    }

    fn failed(&mut self, wait: Duration) {
        self.quiet_until = Instant::now() + wait;
        self.poll = wait;
    }

    /// Something changed, and it is time to look.
    async fn change(&self, changes: &mut tokio::sync::watch::Receiver<u64>) {
        if changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep_until(self.quiet_until).await;
    }

    /// It is time to look, although nothing was heard.
    async fn time(&self) {
        tokio::time::sleep(jitter(self.poll)).await;
    }

    fn polled(&mut self) {
        self.poll = (self.poll * 2).clamp(POLL_MIN, POLL_MAX);
    }
}

fn terms(config: &WorkerConfig, worker: &Worker) -> Terms {
    let mut process = Process::new(ProcessId([0; 16]), Role::Worker, config.node_group.clone());
    process.profile = config.profile.clone();
    Terms { process, lease: config.lease, is_patient: config.is_patient, new_id: Arc::clone(&worker.new_id) }
}

fn joined(ended: Result<Result<(), ControlError>, tokio::task::JoinError>) -> Result<(), ControlError> {
    match ended {
        Ok(outcome) => outcome,
        // The packet's claim is still held; the task deadline returns it.
        Err(error) => {
            tracing::error!(%error, "a packet ended abnormally");
            Ok(())
        }
    }
}
