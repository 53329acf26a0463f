//! What single steps of the executor cost, with one thread and with several at once, for the example `micro`. Only
//! with the feature of that name: it reaches into what nobody else may see.
//!
//! A step is taken on the real queues, frontier and pool, many times in a row; what it needs is made before and
//! dropped after the clock has stopped.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crossbeam_deque::Worker;
use domesday_content::{Limits, ObjectError};
use domesday_engine::{RuleErrors, RuleSet, Scanner};
use domesday_model::{FindingDraft, FingerprintKey, ObjectReport, Score};

use crate::buffer::BufferPool;
use crate::executor::{RunQueue, Shared, WorkerCtx};
use crate::fetch::Fetch;
use crate::frontier::ObjectFrontier;
use crate::metrics::{KindSlot, WorkerMetrics};
use crate::object::{ObjectCtx, ObjectRef};
use crate::opened::{OpenBytes, Opened};
use crate::packet::{LivePackets, Moved, Packet, PacketCtx, PacketOptions, PacketTotals, ResultSink};
use crate::source::{EnumCursor, ObjectDescriptor, ObjectSource};
use crate::task::Task;

/// Steps in a row. The queues of so many tasks fit into a processor's cache.
const BATCH: usize = 1_000;
/// Batches of each step; the median counts.
const BATCHES: usize = 501;
/// Bytes of a pooled buffer; its size makes no difference to who takes it.
const BUFFER_LEN: usize = 4 << 10;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// A thread takes the next task off its own stack.
    Dispatch,
    /// A hold on an object, taken and let go.
    CloneObject,
    /// A fetch on the thread's own stack.
    SpawnFetch,
    /// A task into the queue that belongs to no thread.
    Enqueue,
    Acquire,
    DropPermit,
    /// The one counter of objects that all threads add to.
    Count,
    /// A permit taken and given back.
    Frontier,
    /// A task put into the injector and taken out.
    Injector,
    /// A buffer taken from the pool and given back.
    Buffers,
}

struct Nothing;

impl ObjectSource for Nothing {
    fn enumerate(
        &self,
        cursor: &mut EnumCursor,
        _: usize,
        _: &mut Vec<ObjectDescriptor>,
    ) -> Result<(), ObjectError> {
        *cursor = EnumCursor::Done;
        Ok(())
    }

    fn open(&self, _: &ObjectDescriptor) -> Result<Opened, ObjectError> {
        Ok(Opened::Bytes(OpenBytes::stream(Box::new(std::io::empty()), Some(0))))
    }
}

impl ResultSink for Nothing {
    fn findings(&self, _: Vec<FindingDraft>) {}
    fn object(&self, _: ObjectReport) {}
    fn packet_done(&self, _: PacketTotals) {}
}

/// Threads of an executor that take steps when they are told to, and no tasks of their own accord.
pub struct Rig {
    workers: Vec<WorkerCtx>,
    packet: Arc<PacketCtx>,
    object: ObjectRef,
}

impl Rig {
    pub fn new(threads: usize) -> Result<Rig, RuleErrors> {
        let queue = Arc::new(RunQueue::default());
        let deques: Vec<Worker<Task>> = (0..threads).map(|_| Worker::new_lifo()).collect();
        let shared = Arc::new(Shared {
            // Never full, or the steps would be others.
            frontier: ObjectFrontier::new(1 + threads * BATCH, Arc::clone(&queue)),
            queue,
            buffers: BufferPool::new(BUFFER_LEN, threads),
            buffer_len: BUFFER_LEN,
            checkpoint_distance: u64::MAX,
            stealers: deques.iter().map(Worker::stealer).collect(),
            metrics: (0..threads).map(|_| WorkerMetrics::default()).collect(),
        });
        let limits =
            Limits { max_depth: 1, max_entries: 1, max_unpacked_bytes: 1, max_inflation: 1, max_buffered: 1 };
        let packet = Packet {
            source: Arc::new(Nothing),
            sink: Arc::new(Nothing),
            scanner: Arc::new(Scanner::new(Arc::new(RuleSet::load(&[])?))),
            options: PacketOptions { min_score: Score::MEDIUM, occurrence_cap: 1, limits, reveal: false },
            kind: KindSlot::default(),
            moved: Moved::default(),
        };
        let (packet, _) =
            PacketCtx::new(packet, FingerprintKey::new([0; 32]), Arc::new(LivePackets::default()));
        let permit = shared.frontier.try_acquire_ctx().expect("the frontier has room for one more");
        let object = ObjectCtx::root(Arc::clone(&packet), ObjectDescriptor::default(), permit, None);
        let workers = deques.into_iter().enumerate();
        let workers =
            workers.map(|(index, local)| WorkerCtx::new(Arc::clone(&shared), index, local)).collect();
        Ok(Rig { workers, packet, object })
    }

    /// Nanoseconds of a step for a thread, in the median, while all threads of the rig take it at once.
    pub fn nanos(&mut self, step: Step) -> f64 {
        let barrier = Barrier { threads: self.workers.len(), arrived: AtomicUsize::new(0) };
        let (packet, object, barrier) = (&self.packet, &self.object, &barrier);
        let mut times: Vec<Duration> = std::thread::scope(|scope| {
            let run = |worker| {
                scope.spawn(move || {
                    let bench = Bench { worker, packet, object };
                    bench.batches(step, barrier)
                })
            };
            let threads: Vec<_> = self.workers.iter_mut().map(run).collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("a step does not panic")).collect()
        });
        times.sort_unstable();
        times[times.len() / 2].as_nanos() as f64 / BATCH as f64
    }
}

/// One thread of a rig.
struct Bench<'r> {
    worker: &'r mut WorkerCtx,
    packet: &'r PacketCtx,
    object: &'r ObjectRef,
}

impl Bench<'_> {
    fn batches(mut self, step: Step, barrier: &Barrier) -> Vec<Duration> {
        let mut times = Vec::with_capacity(BATCHES);
        for _ in 0..BATCHES {
            times.push(self.batch(step, barrier));
        }
        times
    }

    fn task(&self) -> Task {
        Task::FetchSync { obj: Arc::clone(self.object), fetch: Fetch::Open }
    }

    fn batch(&mut self, step: Step, barrier: &Barrier) -> Duration {
        let tasks = |bench: &Self| (0..BATCH).map(|_| bench.task()).collect::<Vec<Task>>();
        let frontier = Arc::clone(&self.worker.shared().frontier);
        match step {
            Step::Dispatch => {
                tasks(self).into_iter().for_each(|task| self.worker.spawn(task));
                let mut taken = Vec::with_capacity(BATCH);
                let took = timed(barrier, || (0..BATCH).for_each(|_| taken.extend(self.worker.next_task())));
                assert_eq!(taken.len(), BATCH, "a thread's tasks are on its own stack");
                took
            }
            Step::CloneObject => {
                timed(barrier, || (0..BATCH).for_each(|_| drop(black_box(Arc::clone(self.object)))))
            }
            Step::SpawnFetch => {
                let tasks = tasks(self);
                let took = timed(barrier, || tasks.into_iter().for_each(|task| self.worker.spawn(task)));
                (0..BATCH).for_each(|_| drop(self.worker.next_task()));
                took
            }
            Step::Enqueue => {
                let tasks = tasks(self);
                let queue = Arc::clone(&self.worker.shared().queue);
                let took = timed(barrier, || tasks.into_iter().for_each(|task| queue.inject(task)));
                barrier.wait();
                while self.worker.find_injected().is_some() {}
                took
            }
            Step::Acquire => {
                let mut permits = Vec::with_capacity(BATCH);
                timed(barrier, || permits.extend((0..BATCH).map_while(|_| frontier.try_acquire_ctx())))
            }
            Step::DropPermit => {
                let permits: Vec<_> = (0..BATCH).map_while(|_| frontier.try_acquire_ctx()).collect();
                timed(barrier, || permits.into_iter().for_each(drop))
            }
            Step::Count => timed(barrier, || (0..BATCH).for_each(|_| self.packet.count_completed())),
            Step::Frontier => {
                timed(barrier, || (0..BATCH).for_each(|_| drop(black_box(frontier.try_acquire_ctx()))))
            }
            Step::Injector => {
                let tasks = tasks(self);
                let queue = Arc::clone(&self.worker.shared().queue);
                timed(barrier, || {
                    for task in tasks {
                        queue.inject(task);
                        drop(black_box(self.worker.find_injected()));
                    }
                })
            }
            Step::Buffers => {
                let buffers = Arc::clone(&self.worker.shared().buffers);
                timed(barrier, || (0..BATCH).for_each(|_| drop(black_box(buffers.try_take()))))
            }
        }
    }
}

/// Where threads wait for each other without going to sleep: a batch takes a few microseconds, and who had to be woken
/// first would find the others gone.
struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
}

impl Barrier {
    fn wait(&self) {
        let place = self.arrived.fetch_add(1, Ordering::AcqRel);
        let all = (place / self.threads + 1) * self.threads;
        while self.arrived.load(Ordering::Acquire) < all {
            std::hint::spin_loop();
        }
    }
}

/// How long `f` takes when all begin at once.
fn timed(barrier: &Barrier, f: impl FnOnce()) -> Duration {
    barrier.wait();
    let begun = Instant::now();
    f();
    begun.elapsed()
}
