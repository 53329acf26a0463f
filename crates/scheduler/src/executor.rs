//! The threads, their queues, and how a task finds a thread.
//!
//! Each thread has a deque of its own, which it uses as a stack, so that what it does next is what is in
//! its cache; idle threads steal from the other end. What belongs to no thread (new packets, resumed
//! enumerations) goes through the injector. Threads with nothing to do sleep; see [`crate::idle`].
//!
//! A task that panics fails its object and nothing else.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crossbeam_deque::{Injector, Steal, Stealer, Worker};
use domesday_content::ObjectError;
use domesday_engine::{Match, Scratch};
use domesday_model::Reason;
use parking_lot::Mutex;

use crate::buffer::{BufferPool, new_buffer};
use crate::fetch::Fetch;
use crate::frontier::{ObjectFrontier, Permit};
use crate::idle::{Idle, Wake};
use crate::metrics::WorkerMetrics;
use crate::object::ObjectCtx;
use crate::packet::PacketCtx;
use crate::source::{CursorState, EnumCursor, ObjectDescriptor};
use crate::task::{ENUM_BATCH_SIZE, MAX_FETCH_SPAWNS_PER_ENUM, Task};
use crate::waiting::Working;

/// After so many tasks of its own, a thread looks at the injector first, so that a packet which keeps
/// every thread busy cannot keep the others out.
const INJECTOR_TURN: u32 = 64;

/// The queue that belongs to no thread, and the sleepers.
#[derive(Default)]
pub(crate) struct RunQueue {
    injector: Injector<Task>,
    pub(crate) idle: Idle,
}

impl RunQueue {
    /// Tasks that wait here.
    pub(crate) fn len(&self) -> usize {
        self.injector.len()
    }

    pub(crate) fn inject(&self, task: Task) {
        self.injector.push(task);
        self.idle.notify();
    }
}

/// What all threads share.
pub(crate) struct Shared {
    pub(crate) queue: Arc<RunQueue>,
    pub(crate) frontier: Arc<ObjectFrontier>,
    pub(crate) buffers: Arc<BufferPool>,
    pub(crate) buffer_len: usize,
    pub(crate) checkpoint_distance: u64,
    pub(crate) stealers: Vec<Stealer<Task>>,
    pub(crate) metrics: Vec<WorkerMetrics>,
}

/// One thread's own things.
pub(crate) struct WorkerCtx {
    shared: Arc<Shared>,
    index: usize,
    local: Worker<Task>,
    turn: u32,
    pub(crate) scratch: Scratch,
    pub(crate) matches: Vec<Match>,
    /// The buffer that chunks are first read into; taken while in use.
    buffer: Option<Box<[u8]>>,
}

impl WorkerCtx {
    pub(crate) fn new(shared: Arc<Shared>, index: usize, local: Worker<Task>) -> Self {
        let scratch = Scratch::default();
        WorkerCtx { shared, index, local, turn: 0, scratch, matches: Vec::new(), buffer: None }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(crate) fn metrics(&self) -> &WorkerMetrics {
        &self.shared.metrics[self.index]
    }

    /// The thread's buffer; a new one while that is in use further up the stack, or was lost to a panic.
    pub(crate) fn take_buffer(&mut self) -> Box<[u8]> {
        self.buffer.take().unwrap_or_else(|| new_buffer(self.shared.buffer_len))
    }

    pub(crate) fn give_buffer(&mut self, buffer: Box<[u8]>) {
        self.buffer = Some(buffer);
    }

    /// Puts a task on this thread's stack.
    pub(crate) fn spawn(&self, task: Task) {
        self.local.push(task);
        self.shared.queue.idle.notify();
    }

    /// Runs tasks until the executor is closed.
    pub(crate) fn run(mut self) {
        loop {
            let task = match self.next_task() {
                Some(task) => task,
                None => match self.shared.queue.idle.sleep(|| self.find_elsewhere()) {
                    Wake::Found(task) => task,
                    Wake::Retry => continue,
                    Wake::Closed => return,
                },
            };
            self.run_guarded(task);
        }
    }

    pub(crate) fn next_task(&mut self) -> Option<Task> {
        self.turn = self.turn.wrapping_add(1);
        if self.turn.is_multiple_of(INJECTOR_TURN)
            && let Some(task) = self.find_injected()
        {
            return Some(task);
        }
        self.local.pop().or_else(|| self.find_elsewhere())
    }

    pub(crate) fn find_injected(&self) -> Option<Task> {
        retrying(|| self.shared.queue.injector.steal())
    }

    fn find_elsewhere(&self) -> Option<Task> {
        self.find_injected().or_else(|| {
            let stealers = &self.shared.stealers;
            let others = (1..stealers.len()).map(|step| &stealers[(self.index + step) % stealers.len()]);
            let stolen =
                others.into_iter().find_map(|other| retrying(|| other.steal_batch_and_pop(&self.local)));
            if !self.local.is_empty() {
                // While the batch was on its way it was in no queue, and others may have found none.
                self.shared.queue.idle.notify();
            }
            stolen
        })
    }

    fn run_guarded(&mut self, task: Task) {
        let (packet, object) = (Arc::clone(task.packet()), task.object().cloned());
        let _working = Working::for_packet(&packet);
        let panicked = catch_unwind(AssertUnwindSafe(|| self.run_task(task)));
        if let Err(panic) = panicked {
            match object {
                Some(object) => self.blame(&object, &*panic),
                None => {
                    packet.fail(ObjectError::new(
                        Reason::Panicked,
                        format!("listing objects {}", describe(&*panic)),
                    ));
                    self.shared.frontier.pass_on();
                }
            }
        }
    }

    /// Fails an object whose task panicked.
    pub(crate) fn blame(&mut self, object: &ObjectCtx, panic: &(dyn Any + Send)) {
        // Whatever the panic left half done in it must not reach another object.
        self.scratch = Scratch::default();
        // At the very beginning: a panic outranks whatever else is wrong with the object.
        object.flaw(0, ObjectError::new(Reason::Panicked, describe(panic)));
    }

    fn run_task(&mut self, task: Task) {
        match task {
            Task::Enumerate { packet, cursor, rest } => match cursor {
                EnumCursor::Continue(state) if matches!(*state, CursorState::Container(_)) => {
                    self.enumerate_container(state);
                }
                cursor => self.enumerate(packet, cursor, rest),
            },
            Task::FetchSync { obj, fetch } => self.fetch(obj, fetch),
            Task::Scan { obj, chunk } => {
                if !obj.packet().is_cancelled() {
                    self.scan_chunk(&obj, chunk.buffer.bytes(), chunk.place);
                }
            }
        }
    }

    /// Lists the next batch of the source's objects and hands them to fetch, as far as there are permits.
    fn enumerate(&mut self, packet: Arc<PacketCtx>, mut cursor: EnumCursor, mut rest: Vec<ObjectDescriptor>) {
        self.metrics().enumerate_count.add(1);
        if packet.is_cancelled() {
            return self.shared.frontier.pass_on();
        }
        if rest.is_empty()
            && !cursor.is_done()
            && let Err(error) = packet.source.enumerate(&mut cursor, ENUM_BATCH_SIZE, &mut rest)
        {
            packet.fail(error);
            cursor = EnumCursor::Done;
        }
        // Taken from the end and pushed on a stack: the first one listed is the first one fetched.
        let mut ready = Vec::with_capacity(rest.len().min(MAX_FETCH_SPAWNS_PER_ENUM));
        while ready.len() < MAX_FETCH_SPAWNS_PER_ENUM
            && let Some(next) = rest.last()
        {
            let is_rows = next.is_rows;
            if is_rows && !ready.is_empty() {
                break;
            }
            let Some(permit) = self.shared.frontier.try_acquire_ctx() else { break };
            let descriptor = rest.pop().expect("the loop checked that something is left");
            if is_rows {
                return self.fetch_alone(packet, descriptor, permit, cursor, rest);
            }
            ready.push(ObjectCtx::root(Arc::clone(&packet), descriptor, permit, None));
        }
        self.metrics().objects_discovered.add(ready.len() as u64);
        let starved = ready.is_empty() && !rest.is_empty();
        if starved {
            self.metrics().enumerate_backpressure.add(1);
            self.shared.frontier.park(Task::Enumerate { packet, cursor, rest });
        } else if !rest.is_empty() || !cursor.is_done() {
            // Below the objects on the stack: this thread lists on when it has fetched them.
            self.spawn(Task::Enumerate { packet, cursor, rest });
        } else {
            self.shared.frontier.pass_on();
        }
        for obj in ready {
            self.spawn(Task::FetchSync { obj, fetch: Fetch::Open });
        }
    }

    /// Hands a table to fetch, and what comes after it when it is finished. A packet's tables come over one
    /// connection: a thread that opened the next one would wait for the rows of this one to be read, and if all
    /// threads did, nobody would read them.
    fn fetch_alone(
        &mut self,
        packet: Arc<PacketCtx>,
        descriptor: ObjectDescriptor,
        permit: Permit,
        cursor: EnumCursor,
        rest: Vec<ObjectDescriptor>,
    ) {
        self.metrics().objects_discovered.add(1);
        let is_last = rest.is_empty() && cursor.is_done();
        let next = (!is_last).then(|| {
            let task = Task::Enumerate { packet: Arc::clone(&packet), cursor, rest };
            Turn { task: Mutex::new(Some(task)), queue: Arc::clone(&self.shared.queue) }
        });
        let obj = ObjectCtx::root(packet, descriptor, permit, next);
        self.spawn(Task::FetchSync { obj, fetch: Fetch::Open });
        if is_last {
            self.shared.frontier.pass_on();
        }
    }
}

/// A task whose turn comes when this drops.
pub(crate) struct Turn {
    /// Never locked: a mutex lets threads share what none of them looks at.
    task: Mutex<Option<Task>>,
    queue: Arc<RunQueue>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut().take() {
            self.queue.inject(task);
        }
    }
}

fn retrying(mut steal: impl FnMut() -> Steal<Task>) -> Option<Task> {
    loop {
        match steal() {
            Steal::Success(task) => return Some(task),
            Steal::Empty => return None,
            Steal::Retry => {}
        }
    }
}

/// A panic for a report. A message that was put together at run time may quote what was being scanned,
/// so only constant ones are repeated.
fn describe(panic: &(dyn Any + Send)) -> String {
    match panic.downcast_ref::<&'static str>() {
        Some(message) => format!("panicked: {message}"),
        None => "panicked; the message is withheld because it may quote content".to_owned(),
    }
}
