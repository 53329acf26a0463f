//! The frontier: how many objects are in flight. A permit is taken when an object is handed to fetch
//! and returns when the last task that touches the object drops. A full frontier parks the enumeration
//! with its cursor; it never blocks an executor thread and never drops work.

use std::sync::Arc;

use crate::executor::RunQueue;
use crate::gate::Gate;
use crate::task::Task;

pub struct ObjectFrontier {
    gate: Gate<Task>,
    queue: Arc<RunQueue>,
}

impl ObjectFrontier {
    pub(crate) fn new(capacity: usize, queue: Arc<RunQueue>) -> Arc<Self> {
        Arc::new(ObjectFrontier { gate: Gate::new(capacity), queue })
    }

    /// A permit for one object, if one is free; never blocks.
    pub fn try_acquire_ctx(self: &Arc<Self>) -> Option<Permit> {
        self.gate.try_acquire().then(|| Permit { frontier: Arc::clone(self) })
    }

    /// Waits for a permit. Never on an executor thread: those that give permits back must not wait for one.
    pub fn acquire(self: &Arc<Self>) -> Permit {
        self.gate.acquire();
        Permit { frontier: Arc::clone(self) }
    }

    /// Parks an enumeration until a permit returns.
    pub(crate) fn park(&self, task: Task) {
        self.resume(self.gate.park(task));
    }

    /// Gives a resumed enumeration's turn to the next one. To be called when one ends, for it may not
    /// have needed the permit it was resumed for.
    pub(crate) fn pass_on(&self) {
        self.resume(self.gate.pass_on());
    }

    fn resume(&self, task: Option<Task>) {
        if let Some(task) = task {
            self.queue.inject(task);
        }
    }

    /// Enumerations that are parked until a permit returns.
    pub fn parked(&self) -> usize {
        self.gate.waiting()
    }

    pub fn in_flight(&self) -> usize {
        self.gate.budget().in_use()
    }

    pub fn capacity(&self) -> usize {
        self.gate.budget().capacity()
    }

    pub fn available(&self) -> usize {
        self.gate.budget().available()
    }
}

/// The right of one object to be in flight. Not `Clone`: it is given back once, on drop.
pub struct Permit {
    frontier: Arc<ObjectFrontier>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.frontier.resume(self.frontier.gate.release());
    }
}
