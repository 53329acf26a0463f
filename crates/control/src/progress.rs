//! How far a scan is, for showing it. Nothing here decides anything: the book does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Counters that the worker adds to as it goes. Relaxed: each is only ever shown.
#[derive(Debug, Default)]
pub struct Progress {
    pub(crate) objects_listed: AtomicU64,
    pub(crate) bytes_listed: AtomicU64,
    pub(crate) objects_unchanged: AtomicU64,
    pub(crate) objects_done: AtomicU64,
    pub(crate) findings: AtomicU64,
    pub(crate) enumerating: AtomicU64,
    pub(crate) listing_done: AtomicBool,
    /// A source is left alone until then, and why.
    waiting_until: Mutex<Option<(Instant, Arc<str>)>>,
}

/// The counters at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProgressSnapshot {
    pub objects_listed: u64,
    pub bytes_listed: u64,
    /// Since the last scan: not read again.
    pub objects_unchanged: u64,
    pub objects_done: u64,
    pub findings: u64,
    /// No enumeration is under way, as far as this process can see.
    pub listing_done: bool,
    /// How long a source is still left alone, and why.
    pub waiting: Option<(Duration, Arc<str>)>,
}

impl Progress {
    pub fn snapshot(&self) -> ProgressSnapshot {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ProgressSnapshot {
            objects_listed: get(&self.objects_listed),
            bytes_listed: get(&self.bytes_listed),
            objects_unchanged: get(&self.objects_unchanged),
            objects_done: get(&self.objects_done),
            findings: get(&self.findings),
            listing_done: self.listing_done.load(Ordering::Relaxed),
            waiting: self.waiting(),
        }
    }

    /// What earlier processes had done of the same job.
    pub fn start_from(&self, objects_listed: u64, bytes_listed: u64, objects_done: u64) {
        self.objects_listed.store(objects_listed, Ordering::Relaxed);
        self.bytes_listed.store(bytes_listed, Ordering::Relaxed);
        self.objects_done.store(objects_done, Ordering::Relaxed);
    }

    /// A source is left alone for so long.
    pub(crate) fn wait(&self, after: Duration, why: &str) {
        let Some(until) = Instant::now().checked_add(after) else { return };
        let mut waiting = self.waiting_until.lock();
        if waiting.as_ref().is_none_or(|(other, _)| *other < until) {
            *waiting = Some((until, why.into()));
        }
    }

    fn waiting(&self) -> Option<(Duration, Arc<str>)> {
        let (until, why) = self.waiting_until.lock().clone()?;
        Some((until.checked_duration_since(Instant::now())?, why))
    }

    pub(crate) fn add(counter: &AtomicU64, by: u64) {
        counter.fetch_add(by, Ordering::Relaxed);
    }
}
