//! Wake-ups between processes: NOTIFY outside of the work's transactions, and polling besides.
//!
//! NOTIFY makes commits come one after the other while it is passed on, so no transaction of the work does
//! it. A verb that changed something tells this process at once, and leaves a note for one background loop,
//! which passes it on, on a connection of its own: the first few at once, since work that goes to and fro
//! between processes waits for each, and in the long run a few times a second, since whoever has much to do
//! need not be told. Only what a user starts is told by its verb, after the commit: that process may end at
//! once. A lost notification costs the time until the next poll, which comes the sooner, the more recently
//! something was heard.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use domesday_model::Backoff;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

use super::Result;
use super::error::store_error;
use super::pool::Pool;

/// The least time between two notifications that a process sends, or listens to, in the long run.
pub(super) const NOTIFY_INTERVAL: Duration = Duration::from_millis(250);
/// How many may come at once after a quiet time.
pub(super) const NOTIFY_BURST: u32 = 32;
/// The pauses between two looks at the book: how soon it is looked at again after something was heard of it, and the
/// longest anyone waits who heard nothing.
const POLL: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(16));

const LISTEN: &str = "LISTEN domesday";
pub(super) const NOTIFY: &str = "NOTIFY domesday";

/// Who is told of a change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Wakes {
    Nobody,
    ThisProcess,
    Everyone,
    /// The verb tells them itself, outside of its transaction, before it returns.
    EveryoneAtOnce,
}

pub(super) struct Waker {
    changes: watch::Sender<u64>,
    shared: Arc<Shared>,
    background: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// This process changed something that others were not told of.
    dirty: Notify,
    /// Another process did.
    heard: Notify,
    /// The server's process that notifies for this one: what it says is known here.
    own: AtomicI32,
}

impl Waker {
    /// Without a `pool` nobody listens: only what this process does is told, and only here.
    pub fn start(pool: Option<Arc<Pool>>) -> Waker {
        let (changes, shared) = (watch::Sender::new(0), Arc::new(Shared::default()));
        let background = pool.map(|pool| tokio::spawn(serve(pool, changes.clone(), Arc::clone(&shared))));
        Waker { changes, shared, background }
    }

    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Something in the book changed, by this process.
    pub fn wake(&self, whom: Wakes) {
        if whom >= Wakes::ThisProcess {
            bump(&self.changes);
        }
        if whom == Wakes::Everyone {
            self.shared.dirty.notify_one();
        }
    }
}

impl Drop for Waker {
    fn drop(&mut self) {
        if let Some(background) = &self.background {
            background.abort();
        }
    }
}

fn bump(changes: &watch::Sender<u64>) {
    changes.send_modify(|count| *count += 1);
}

async fn serve(pool: Arc<Pool>, changes: watch::Sender<u64>, shared: Arc<Shared>) {
    let mut failed = 0;
    loop {
        match listen(&pool, &changes, &shared).await {
            Ok(()) => failed = 0,
            Err(error) => tracing::debug!(%error, "cannot listen for changes; polling"),
        }
        failed += 1;
        // Without a connection there is still the clock.
        sleep(POLL.after(failed)).await;
        bump(&changes);
    }
}

/// Listens, notifies and polls until the connection ends.
async fn listen(pool: &Pool, changes: &watch::Sender<u64>, shared: &Arc<Shared>) -> Result<()> {
    let hears = Arc::clone(shared);
    let (client, driver) = pool
        .target()
        .connect_to_listen(move |process| {
            if process != hears.own.load(Ordering::Relaxed) {
                hears.heard.notify_one();
            }
        })
        .await?;
    let mut driver = tokio::spawn(driver);
    let own = async {
        let row = client.query_one("SELECT pg_backend_pid()", &[]).await?;
        shared.own.store(row.try_get(0)?, Ordering::Relaxed);
        client.batch_execute(LISTEN).await
    };
    own.await.map_err(|error| store_error(&error))?;
    // What happened before anyone listened.
    bump(changes);
    let (mut hearing, mut telling) = (Pace::new(), Pace::new());
    let mut quiet = 1;
    let mut poll_at = Instant::now() + POLL.after(quiet);
    loop {
        tokio::select! {
            _ = &mut driver => return Ok(()),
            () = hearing.turn(&shared.heard) => {
                bump(changes);
                quiet = 1;
                poll_at = Instant::now() + POLL.after(quiet);
            }
            () = telling.turn(&shared.dirty) => {
                client.batch_execute(NOTIFY).await.map_err(|error| store_error(&error))?;
            }
            () = sleep_until(poll_at) => {
                bump(changes);
                quiet += 1;
                poll_at = Instant::now() + POLL.after(quiet);
            }
        }
    }
}

/// At most [`NOTIFY_BURST`] turns at once, and one every [`NOTIFY_INTERVAL`] in the long run.
struct Pace {
    /// When the turns taken so far would have been due at the long run's pace.
    due: Instant,
}

impl Pace {
    fn new() -> Pace {
        Pace { due: Instant::now() }
    }

    /// Waits for a note, and for its turn. What is noted meanwhile is one note, and none is lost when this is
    /// given up half way.
    async fn turn(&mut self, note: &Notify) {
        sleep_until(self.due.checked_sub(NOTIFY_INTERVAL * NOTIFY_BURST).unwrap_or(self.due)).await;
        note.notified().await;
        self.due = self.due.max(Instant::now()) + NOTIFY_INTERVAL;
    }
}
