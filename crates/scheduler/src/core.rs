//! The scan core as its users see it: packets in, results out.

use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use crossbeam_deque::{Stealer, Worker};
use domesday_engine::{LOOKAHEAD, LOOKBEHIND};
use domesday_model::FingerprintKey;

use crate::buffer::{BUFFER_LEN_MAX, BufferPool};
use crate::checkpoint::{CHECKPOINT_DISTANCE, checkpointed_size};
use crate::executor::{RunQueue, Shared, WorkerCtx};
use crate::frontier::ObjectFrontier;
use crate::metrics::{BusyTimes, Metrics, Queues, WorkerMetrics};
use crate::packet::{LivePackets, Packet, PacketCtx, PacketHandle};
use crate::source::EnumCursor;
use crate::task::Task;

/// New bytes per chunk, unless set otherwise: 512 KiB. Twice the overlap is read again for each; of a chunk that fills
/// the cache of a processor, more.
pub const CHUNK_SIZE: usize = 512 << 10;
/// The smallest chunk; a smaller setting is raised to it.
pub const CHUNK_SIZE_MIN: usize = 16;
/// The largest chunk: a buffer less the overlap.
pub const CHUNK_SIZE_MAX: usize = BUFFER_LEN_MAX - LOOKBEHIND - LOOKAHEAD;
/// Objects in flight per thread, unless set otherwise.
const FRONTIER_PER_THREAD: usize = 64;
/// Pooled buffers per thread, unless set otherwise. Each thread has one of its own besides.
const BUFFERS_PER_THREAD: usize = 4;
/// Stack of an executor thread, bytes. Archives within archives recurse, to the depth limit.
const STACK_SIZE: usize = 8 << 20;

/// How large the core is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoreConfig {
    pub threads: usize,
    /// Objects in flight.
    pub frontier_capacity: usize,
    /// New bytes per chunk; the overlap comes on top.
    pub chunk_size: usize,
    /// Buffers in the pool.
    pub buffer_count: usize,
    /// Bytes between two checkpoints of a very large object.
    pub checkpoint_distance: u64,
}

impl CoreConfig {
    pub fn for_threads(threads: usize) -> Self {
        let threads = threads.max(1);
        CoreConfig {
            threads,
            frontier_capacity: threads * FRONTIER_PER_THREAD,
            chunk_size: CHUNK_SIZE,
            buffer_count: threads * BUFFERS_PER_THREAD,
            checkpoint_distance: CHECKPOINT_DISTANCE,
        }
    }
}

impl Default for CoreConfig {
    /// One thread per processor.
    fn default() -> Self {
        CoreConfig::for_threads(thread::available_parallelism().map_or(1, NonZeroUsize::get))
    }
}

/// The executor and its threads. Dropping it cancels what is under way; [`ScanCore::shutdown`] finishes
/// it. Neither may happen on an executor thread, so no source or sink may own the core.
pub struct ScanCore {
    shared: Arc<Shared>,
    live: Arc<LivePackets>,
    key: FingerprintKey,
    threads: Vec<JoinHandle<()>>,
}

impl ScanCore {
    /// Starts the threads. Fails when the system refuses one.
    pub fn new(config: CoreConfig, key: FingerprintKey) -> io::Result<ScanCore> {
        let threads = config.threads.max(1);
        let chunk_size = config.chunk_size.clamp(CHUNK_SIZE_MIN, CHUNK_SIZE_MAX);
        let buffer_len = chunk_size + LOOKBEHIND + LOOKAHEAD;
        let queue = Arc::new(RunQueue::default());
        let deques: Vec<Worker<Task>> = (0..threads).map(|_| Worker::new_lifo()).collect();
        let shared = Arc::new(Shared {
            frontier: ObjectFrontier::new(config.frontier_capacity, Arc::clone(&queue)),
            queue,
            buffers: BufferPool::new(buffer_len, config.buffer_count),
            buffer_len,
            checkpoint_distance: config.checkpoint_distance.max(1),
            stealers: deques.iter().map(Worker::stealer).collect(),
            metrics: (0..threads).map(|_| WorkerMetrics::default()).collect(),
        });
        let live = Arc::new(LivePackets::default());
        // Built up in place, so that threads already started are joined when a later one is refused.
        let mut core = ScanCore { shared, live, key, threads: Vec::with_capacity(threads) };
        for (index, local) in deques.into_iter().enumerate() {
            let worker = WorkerCtx::new(Arc::clone(&core.shared), index, local);
            let builder = thread::Builder::new().name(format!("scan-{index}")).stack_size(STACK_SIZE);
            core.threads.push(builder.spawn(move || worker.run())?);
        }
        Ok(core)
    }

    /// Begins a packet. Its results, and its end, go to its sink.
    pub fn submit(&self, packet: Packet) -> PacketHandle {
        let (packet, handle) = PacketCtx::new(packet, self.key.clone(), Arc::clone(&self.live));
        self.shared.queue.inject(Task::Enumerate { packet, cursor: EnumCursor::Start, rest: Vec::new() });
        handle
    }

    #[cfg(test)]
    #[cfg(not(loom))]
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// How many threads scan.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// The smallest object that has checkpoints, in bytes.
    pub fn checkpointed_size(&self) -> u64 {
        checkpointed_size(self.shared.checkpoint_distance)
    }

    pub fn frontier(&self) -> &Arc<ObjectFrontier> {
        &self.shared.frontier
    }

    /// The totals so far, for showing progress.
    pub fn metrics(&self) -> Metrics {
        let mut metrics = Metrics::sum(&self.shared.metrics);
        metrics.objects_completed = self.live.objects_completed.load(Ordering::Relaxed);
        metrics
    }

    /// What the threads were busy with so far. A step that is under way counts when it has ended.
    pub fn busy(&self) -> BusyTimes {
        BusyTimes::sum(&self.shared.metrics)
    }

    /// How much waits at the moment.
    pub fn queues(&self) -> Queues {
        let shared = &self.shared;
        let of_threads: usize = shared.stealers.iter().map(Stealer::len).sum();
        let (buffers, buffers_max) = shared.buffers.in_use();
        Queues {
            tasks: shared.queue.len() + of_threads,
            parked: shared.frontier.parked(),
            buffers,
            buffers_max,
        }
    }

    /// Finishes every packet, then ends the threads. To finish early, cancel the packets first.
    pub fn shutdown(mut self) -> Metrics {
        self.stop();
        self.metrics()
    }

    fn stop(&mut self) {
        self.live.wait();
        self.shared.queue.idle.close();
        for thread in self.threads.drain(..) {
            // Tasks are guarded, so a thread has nothing of its own to panic about; and if it does, the
            // others are joined all the same.
            let _ = thread.join();
        }
    }
}

impl Drop for ScanCore {
    fn drop(&mut self) {
        self.live.abandon();
        self.stop();
    }
}
