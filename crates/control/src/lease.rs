//! A process's own view of its lease. The book decides; this makes sure that the process renews in time
//! whatever else it does, and stops before the book's lease can have expired, on a clock that counts
//! suspension.
//!
//! The heartbeat has an OS thread, a runtime and, where the book is a server, a connection of its own: work
//! that blocks or fills the main runtime cannot cost the lease.
//!
//! Crash argument: the time a lease is held is counted from before the call that renewed it, so this side
//! gives it up no later than the book does. What is written after that is refused by the fences, not by this.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domesday_model::ProcessId;
use domesday_store::{LeaseStore, Load, Process, StoreError};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use crate::metrics::Metrics;
use crate::outage::Outage;
use crate::stop::{Stop, StopSignal};
use crate::{ControlError, NewId};

/// Renewals per lease time: two may fail before the lease does.
const RENEWALS_PER_LEASE: u32 = 3;
/// How often, at least, a renewal that failed is tried again before the next one is due.
const TRIES_PER_RENEWAL: u32 = 4;
/// How long ending a lease may take; after that it runs out by itself.
const RELEASE_MAX: Duration = Duration::from_secs(5);

pub(crate) fn renewal_interval(lease: Duration) -> Duration {
    lease / RENEWALS_PER_LEASE
}

/// Time since boot, suspension included.
pub(crate) fn boot_time() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(now.tv_sec.try_into().unwrap_or(0), now.tv_nsec.try_into().unwrap_or(0))
}

type OpenFuture<S> = Pin<Box<dyn Future<Output = Result<Arc<S>, StoreError>> + Send>>;
type Open<S> = dyn Fn() -> OpenFuture<S> + Send + Sync;

/// The book as a service uses it, and the heartbeat's own way to it. `S` is what the service may do with it, as
/// in `Book<dyn WorkerStore>`.
pub struct Book<S: ?Sized> {
    pub store: Arc<S>,
    own: Arc<Open<S>>,
}

impl<S: ?Sized + Send + Sync + 'static> Book<S> {
    /// One handle for all: the embedded book has one writer anyway.
    pub fn shared(store: Arc<S>) -> Book<S> {
        let handle = Arc::clone(&store);
        Book { store, own: Arc::new(move || Box::pin(std::future::ready(Ok(Arc::clone(&handle))))) }
    }

    /// The heartbeat opens a handle of its own, on its own thread and runtime.
    pub fn with_own<F, R>(store: Arc<S>, open: F) -> Book<S>
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<Arc<S>, StoreError>> + Send + 'static,
    {
        Book { store, own: Arc::new(move || Box::pin(open())) }
    }

    /// The same book for a service that may do less: `book.narrow::<dyn WorkerStore>(|store| store)`.
    pub fn narrow<T: ?Sized + Send + Sync + 'static>(self, narrow: fn(Arc<S>) -> Arc<T>) -> Book<T> {
        let Book { store, own } = self;
        Book::with_own(narrow(store), move || {
            let opened = own();
            async move { Ok(narrow(opened.await?)) }
        })
    }
}

/// What a role does with each heartbeat, beside renewing.
#[async_trait]
pub(crate) trait Duty<S: ?Sized>: Send + Sync + 'static {
    fn load(&self) -> Load;
    /// A failure that can be retried is retried with the next heartbeat.
    async fn beat(&self, store: &S, id: ProcessId) -> Result<(), StoreError>;
}

/// How a lease is taken and kept.
#[derive(Clone)]
pub(crate) struct Terms {
    /// Who takes it; a fresh id is put in with each try.
    pub process: Process,
    pub lease: Duration,
    /// Whether to wait for a book that does not answer, however long that takes.
    pub is_patient: bool,
    pub new_id: NewId,
}

/// How it stands with a lease.
#[derive(Clone, Debug)]
enum State {
    Held,
    Lost,
    /// For good: trying again will not help.
    Failed(Arc<StoreError>),
}

/// A lease that is held. Dropping it lets it run out, as a crash would; [`Lease::end`] ends it at once.
pub(crate) struct Lease {
    pub id: ProcessId,
    state: watch::Receiver<State>,
    end: StopSignal,
    release: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
}

impl<S: ?Sized> Drop for Heart<S> {
    fn drop(&mut self) {
        self.metrics.lease_lost();
    }
}

impl Lease {
    /// Takes a lease and keeps it; `None` when asked to stop before there was one.
    pub async fn begin<S: ?Sized + LeaseStore + 'static>(
        book: &Book<S>,
        terms: Terms,
        duty: Arc<dyn Duty<S>>,
        metrics: Arc<Metrics>,
        stop: &mut Stop,
    ) -> Result<Option<Lease>, ControlError> {
        let (end, ending) = StopSignal::new();
        let (began, begun) = oneshot::channel();
        let (release, released) = oneshot::channel();
        let (done, ended) = oneshot::channel();
        let open = Arc::clone(&book.own);
        let heartbeat = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => {
                    let heart = Heart { terms, duty, metrics, ending };
                    runtime.block_on(heart.live(&*open, began, released));
                }
                Err(error) => drop(began.send(Err(ControlError::Heartbeat(error)))),
            }
            // Whoever waited may be gone.
            let _ = done.send(());
        };
        let thread = std::thread::Builder::new().name("heartbeat".into());
        thread.spawn(heartbeat).map_err(ControlError::Heartbeat)?;
        let begun = tokio::select! {
            begun = begun => begun,
            () = stop.asked() => {
                end.stop();
                return Ok(None);
            }
        };
        match begun {
            Ok(begun) => {
                let (id, state) = begun?;
                Ok(Some(Lease { id, state, end, release, ended }))
            }
            Err(_) => Err(ControlError::Heartbeat(std::io::Error::other("the heartbeat ended"))),
        }
    }

    /// Returns when the lease is lost, or can be renewed no more.
    pub fn lost(&self) -> impl Future<Output = ControlError> + use<> {
        let mut state = self.state.clone();
        async move {
            match state.wait_for(|state| !matches!(state, State::Held)).await.as_deref() {
                Ok(State::Failed(error)) => ControlError::LeaseRefused(Arc::clone(error)),
                _ => ControlError::LeaseLost,
            }
        }
    }

    /// Ends the lease at once, as far as the book can be reached: whoever waits for it need not.
    pub async fn end(self) {
        let _ = self.release.send(());
        self.end.stop();
        let _ = self.ended.await;
    }
}

/// The thread's side of a lease.
struct Heart<S: ?Sized> {
    terms: Terms,
    duty: Arc<dyn Duty<S>>,
    metrics: Arc<Metrics>,
    ending: Stop,
}

type Begun = Result<(ProcessId, watch::Receiver<State>), ControlError>;

impl<S: ?Sized + LeaseStore + 'static> Heart<S> {
    async fn live(mut self, open: &Open<S>, began: oneshot::Sender<Begun>, released: oneshot::Receiver<()>) {
        let (store, id, held_since) = match self.begin(open).await {
            Ok(Some(begun)) => begun,
            Ok(None) => return,
            Err(error) => return drop(began.send(Err(error.into()))),
        };
        let (state, shown) = watch::channel(State::Held);
        self.metrics.lease_renewed();
        let heard = began.send(Ok((id, shown))).is_ok();
        if heard {
            let outcome = self.keep(store.as_ref(), id, held_since).await;
            state.send_replace(outcome);
            self.ending.asked_or_gone().await;
        }
        // Nobody to tell means that whoever began this has gone on: then the lease is nobody's.
        if !heard || released.await.is_ok() {
            match timeout(RELEASE_MAX, store.release(self.terms.process.role, id)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "the lease could not be ended; it runs out"),
                Err(_) => tracing::warn!("the lease could not be ended in time; it runs out"),
            }
        }
    }

    /// Opens the book and registers, until that works.
    async fn begin(&mut self, open: &Open<S>) -> Result<Option<(Arc<S>, ProcessId, Duration)>, StoreError> {
        let mut outage = Outage::default();
        let mut opened = None;
        loop {
            let tried = self.register(open, &mut opened).await;
            match tried {
                Ok((id, held_since)) => {
                    return Ok(opened.map(|store| (store, id, held_since)));
                }
                Err(error) if error.is_retryable() && self.terms.is_patient => {
                    self.metrics.store_errors.add(1);
                    if outage.is_worth_a_line() {
                        tracing::warn!(%error, "no lease yet; trying again");
                    }
                }
                Err(error) => return Err(error),
            }
            tokio::select! {
                () = self.ending.asked_or_gone() => return Ok(None),
                () = tokio::time::sleep(outage.next_wait()) => {}
            }
        }
    }

    /// One try, under an id of its own: an earlier one whose answer was lost is a process that never lived.
    async fn register(
        &self,
        open: &Open<S>,
        opened: &mut Option<Arc<S>>,
    ) -> Result<(ProcessId, Duration), StoreError> {
        let store = match opened {
            Some(store) => store,
            None => opened.insert(open().await?),
        };
        let id = (self.terms.new_id)();
        let held_since = boot_time();
        store.register(&Process { id, ..self.terms.process.clone() }, self.terms.lease).await?;
        Ok((id, held_since))
    }

    /// Renews until asked to end, or until the lease is no longer this process's.
    async fn keep(&mut self, store: &S, id: ProcessId, mut held_since: Duration) -> State {
        let lease = self.terms.lease;
        let mut outage = Outage::default();
        let mut pause = renewal_interval(lease);
        loop {
            tokio::select! {
                () = self.ending.asked_or_gone() => return State::Held,
                () = tokio::time::sleep(pause) => {}
            }
            let asked_at = boot_time();
            let left = lease.saturating_sub(asked_at.saturating_sub(held_since));
            if left.is_zero() {
                return State::Lost;
            }
            let role = self.terms.process.role;
            let renewal = timeout(left, store.renew(role, id, lease, self.duty.load())).await;
            let renewed = match renewal {
                Err(_) | Ok(Ok(false)) => return State::Lost,
                Ok(Ok(true)) => {
                    held_since = asked_at;
                    self.metrics.lease_renewed();
                    timeout(lease, self.duty.beat(store, id)).await.unwrap_or(Ok(()))
                }
                Ok(Err(error)) => Err(error),
            };
            pause = match renewed {
                Ok(()) => {
                    outage.reset();
                    renewal_interval(lease)
                }
                Err(error) if error.is_retryable() => {
                    self.metrics.store_errors.add(1);
                    if outage.is_worth_a_line() {
                        tracing::warn!(process_id = %id, %error, "heartbeat failed; trying again");
                    }
                    // Often enough that a book that is back is not missed, and never longer than what is left of
                    // the lease: giving it up must come in time.
                    outage.next_wait().min(renewal_interval(lease) / TRIES_PER_RENEWAL).min(left)
                }
                Err(error) => return State::Failed(Arc::new(error)),
            };
        }
    }
}
