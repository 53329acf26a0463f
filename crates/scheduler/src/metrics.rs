//! Counters of the executor: each thread writes its own, padded so that no two share a cache line;
//! readers add them up. They steer nothing, so relaxed order is enough.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

macro_rules! metrics {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Live totals over all threads.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct Metrics { $($(#[$doc])* pub $name: u64,)* }

        /// One thread's counters.
        #[derive(Default)]
        #[repr(align(128))]
        pub(crate) struct WorkerMetrics { $(pub(crate) $name: Counter,)* }

        impl Metrics {
            pub(crate) fn sum<'a>(workers: impl IntoIterator<Item = &'a WorkerMetrics>) -> Metrics {
                let mut total = Metrics::default();
                for worker in workers {
                    $(total.$name += worker.$name.get();)*
                }
                total
            }
        }
    };
}

metrics! {
    /// Steps of enumeration: at most one batch each.
    enumerate_count,
    /// Objects handed to fetch, nested ones included.
    objects_discovered,
    /// Times a full frontier parked an enumeration, or made a nested object run under its parent's permit.
    enumerate_backpressure,
    /// Chunks read.
    fetch_sync_count,
    /// Bytes handed to scans, overlap included.
    bytes_fetched,
    /// Chunks scanned.
    scan_count,
    /// Bytes scanned, overlap excluded.
    bytes_scanned,
    /// Objects whose last task is done.
    objects_completed,
    /// Nanoseconds spent opening, reading and unpacking.
    read_ns,
    /// Nanoseconds spent matching.
    match_ns,
}

impl Metrics {
    /// Time spent opening, reading and unpacking, over all threads.
    pub fn read_time(&self) -> Duration {
        Duration::from_nanos(self.read_ns)
    }

    /// Time spent matching, over all threads.
    pub fn match_time(&self) -> Duration {
        Duration::from_nanos(self.match_ns)
    }
}

/// A counter that only its own thread increases, so that no locked instruction is needed.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    pub(crate) fn add_time(&self, elapsed: Duration) {
        self.add(elapsed.as_nanos() as u64);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
