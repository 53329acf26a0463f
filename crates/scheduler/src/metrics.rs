//! Counters of the executor: each thread writes its own, padded so that no two share a cache line;
//! readers add them up. They steer nothing, so relaxed order is enough.
//!
//! Times are kept apart by the kind of data source, which the core knows as a number only ([`KindSlot`]).

use std::array;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domesday_model::times::{BUCKETS, Times, bucket};

/// Kinds of data sources whose times are kept apart, the first of them for those that have no slot of their own.
pub const KIND_SLOTS: usize = 32;

/// Where the times of one kind of data source are counted. The first slot is that of whoever has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KindSlot(u8);

impl KindSlot {
    pub fn new(index: usize) -> KindSlot {
        KindSlot(if index < KIND_SLOTS { index as u8 } else { 0 })
    }

    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

macro_rules! metrics {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Live totals over all threads.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct Metrics { $($(#[$doc])* pub $name: u64,)* }

        /// One thread's counters.
        #[derive(Default)]
        #[repr(align(128))]
        pub(crate) struct WorkerMetrics {
            $(pub(crate) $name: Counter,)*
            /// Steps of opening, reading and unpacking.
            pub(crate) read: StageTimes,
            /// Chunks and batches of rows that were matched.
            pub(crate) matched: StageTimes,
        }

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
}

/// What the threads were busy with, by the slot of the kind of data source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BusyTimes {
    /// Steps of opening, reading and unpacking.
    pub read: [Times; KIND_SLOTS],
    /// Chunks and batches of rows that were matched.
    pub matched: [Times; KIND_SLOTS],
}

impl BusyTimes {
    pub(crate) fn sum(workers: &[WorkerMetrics]) -> BusyTimes {
        let sum_of = |stage: fn(&WorkerMetrics) -> &StageTimes| {
            array::from_fn(|slot| {
                let mut total = Times::default();
                workers.iter().for_each(|worker| total.add(&stage(worker).0[slot].get()));
                total
            })
        };
        BusyTimes { read: sum_of(|worker| &worker.read), matched: sum_of(|worker| &worker.matched) }
    }
}

/// How many tasks of the core wait, and for what.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Queues {
    /// For a thread.
    pub tasks: usize,
    /// Enumerations, for a permit.
    pub parked: usize,
    /// Buffers that chunks wait in, or are scanned in.
    pub buffers: usize,
    pub buffers_max: usize,
}

/// One thread's times in one stage, by the slot of the kind.
#[derive(Default)]
pub(crate) struct StageTimes([SlotTimes; KIND_SLOTS]);

#[derive(Default)]
struct SlotTimes {
    nanos: Counter,
    buckets: [Counter; BUCKETS],
}

impl StageTimes {
    pub(crate) fn add(&self, kind: KindSlot, elapsed: Duration) {
        let times = &self.0[kind.index()];
        times.nanos.add(elapsed.as_nanos() as u64);
        times.buckets[bucket(elapsed)].add(1);
    }
}

impl SlotTimes {
    fn get(&self) -> Times {
        Times { buckets: array::from_fn(|at| self.buckets[at].get()), nanos: self.nanos.get() }
    }
}

/// A counter that only its own thread increases, so that no locked instruction is needed.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
