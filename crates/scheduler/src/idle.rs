//! How executor threads sleep when there is nothing to do, and are woken when there is.
//!
//! A thread that found no task announces itself as a sleeper, looks at every queue once more, and only
//! then sleeps. A thread that pushed a task looks for sleepers afterwards. With a `SeqCst` fence
//! between the two steps on both sides, a task cannot be pushed unseen while all threads fall asleep.
//! This module must not know tasks or queues, so that loom can explore it (`tests/loom.rs`).

use crate::sync::{AtomicUsize, Condvar, Mutex, Ordering, fence, lock, wait};

/// What a thread that wanted to sleep does next.
#[derive(Debug, PartialEq, Eq)]
pub enum Wake<T> {
    /// Work turned up on the last look.
    Found(T),
    /// Somebody pushed work: look again.
    Retry,
    /// The executor has been closed: no work will come.
    Closed,
}

pub struct Idle {
    /// Threads that announced themselves and have not been given a wake-up.
    sleepers: AtomicUsize,
    state: Mutex<State>,
    woken: Condvar,
}

struct State {
    /// Wake-ups given and not yet taken.
    wakeups: usize,
    closed: bool,
}

impl Default for Idle {
    fn default() -> Self {
        Idle {
            sleepers: AtomicUsize::new(0),
            state: Mutex::new(State { wakeups: 0, closed: false }),
            woken: Condvar::new(),
        }
    }
}

impl Idle {
    /// Sleeps until woken, unless `last_look` finds work after this thread has announced itself.
    pub fn sleep<T>(&self, last_look: impl FnOnce() -> Option<T>) -> Wake<T> {
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let found = last_look();
        let mut state = lock(&self.state);
        if let Some(work) = found {
            // A wake-up given meanwhile is left to another sleeper, for its work may be other work.
            // Sleepers and wake-ups together are the threads in here, so one of the two is not zero.
            if self.sleepers.load(Ordering::Relaxed) > 0 {
                self.sleepers.fetch_sub(1, Ordering::Relaxed);
            } else {
                state.wakeups -= 1;
            }
            return Wake::Found(work);
        }
        loop {
            if state.closed {
                return Wake::Closed;
            }
            if state.wakeups > 0 {
                state.wakeups -= 1;
                return Wake::Retry;
            }
            state = wait(&self.woken, state);
        }
    }

    /// Wakes one sleeper, if there is one. To be called after the work was pushed.
    pub fn notify(&self) {
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut state = lock(&self.state);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.sleepers.fetch_sub(1, Ordering::Relaxed);
            state.wakeups += 1;
            drop(state);
            self.woken.notify_one();
        }
    }

    /// Sends every thread home; those that are busy leave when they next want to sleep.
    pub fn close(&self) {
        lock(&self.state).closed = true;
        self.woken.notify_all();
    }
}
