//! Counting permits without locks, and parking what found none.
//!
//! [`CountBudget`] is the count. [`Gate`] adds the promise that nothing parked is forgotten: whoever
//! gives a permit back also resumes somebody who waits for one. It must not know tasks or objects, so
//! that loom can explore it (`tests/loom.rs`).
//!
//! # Why no wake-up is lost
//! The parker first publishes itself (`waiting + 1`), then looks at the budget. The releaser first
//! gives the permit back, then looks at `waiting`. A `SeqCst` fence stands between the two steps on
//! both sides, so at least one of them sees the other: either the releaser resumes the parked item, or
//! the parker takes it back itself.

use std::collections::VecDeque;

use crate::sync::{AtomicUsize, Condvar, Mutex, Ordering, fence, lock, wait};

/// A bounded count of permits.
pub struct CountBudget {
    in_use: AtomicUsize,
    capacity: usize,
}

impl CountBudget {
    /// At least one permit, or nothing could ever run.
    pub fn new(capacity: usize) -> Self {
        CountBudget { in_use: AtomicUsize::new(0), capacity: capacity.max(1) }
    }

    pub fn try_acquire(&self) -> bool {
        let mut seen = self.in_use.load(Ordering::Relaxed);
        while seen < self.capacity {
            match self.in_use.compare_exchange_weak(seen, seen + 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    pub fn release(&self) {
        let before = self.in_use.fetch_sub(1, Ordering::Release);
        debug_assert!(before > 0, "a permit was released twice");
    }

    pub fn in_use(&self) -> usize {
        self.in_use.load(Ordering::Relaxed)
    }

    pub fn capacity(&self) -> usize {
        self.capacity
    }

    pub fn available(&self) -> usize {
        self.capacity.saturating_sub(self.in_use())
    }
}

/// A budget with a waiting room. Items that found no permit are parked in it in order of arrival;
/// threads that may block wait beside them.
pub struct Gate<T> {
    budget: CountBudget,
    /// Parked items and blocked threads; written under the lock, read without it.
    waiting: AtomicUsize,
    room: Mutex<Room<T>>,
    released: Condvar,
}

struct Room<T> {
    parked: VecDeque<T>,
    blocked: usize,
}

impl<T> Gate<T> {
    pub fn new(capacity: usize) -> Self {
        Gate {
            budget: CountBudget::new(capacity),
            waiting: AtomicUsize::new(0),
            room: Mutex::new(Room { parked: VecDeque::new(), blocked: 0 }),
            released: Condvar::new(),
        }
    }

    pub fn budget(&self) -> &CountBudget {
        &self.budget
    }

    /// How many items and threads wait for a permit.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Takes a permit if one is free; never blocks.
    pub fn try_acquire(&self) -> bool {
        self.budget.try_acquire()
    }

    /// Takes a permit, blocking until one is free.
    pub fn acquire(&self) {
        if self.budget.try_acquire() {
            return;
        }
        let mut room = lock(&self.room);
        room.blocked += 1;
        self.waiting.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        while !self.budget.try_acquire() {
            room = wait(&self.released, room);
        }
        room.blocked -= 1;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Parks an item until a permit returns. If one returned meanwhile, an item (the longest waiting,
    /// not necessarily this one) comes straight back, and the caller must run it.
    #[must_use = "the returned item is no longer parked"]
    pub fn park(&self, item: T) -> Option<T> {
        {
            let mut room = lock(&self.room);
            room.parked.push_back(item);
            self.waiting.fetch_add(1, Ordering::Relaxed);
        }
        self.pass_on()
    }

    /// Gives a permit back. The returned item may try again and must be run.
    #[must_use = "the returned item is no longer parked"]
    pub fn release(&self) -> Option<T> {
        self.budget.release();
        self.pass_on()
    }

    /// Unparks an item if a permit is free. Whoever was resumed and then leaves without taking a
    /// permit (its packet was cancelled, say) calls this, so that its turn goes to the next.
    #[must_use = "the returned item is no longer parked"]
    pub fn pass_on(&self) -> Option<T> {
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) == 0 || self.budget.available() == 0 {
            return None;
        }
        let mut room = lock(&self.room);
        if room.blocked > 0 {
            self.released.notify_one();
        }
        let item = room.parked.pop_front()?;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        Some(item)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn a_parked_item_returns_with_the_permit() {
        let gate = Gate::new(1);
        assert!(gate.try_acquire() && !gate.try_acquire());
        assert_eq!(gate.park('a'), None);
        assert_eq!(gate.park('b'), None);
        assert_eq!(gate.release(), Some('a'));
        assert_eq!(gate.pass_on(), Some('b'), "a left without taking the permit");
        assert_eq!(gate.park('c'), Some('c'), "a permit is free");
        assert_eq!((gate.budget().available(), gate.budget().in_use()), (1, 0));
    }

    #[test]
    fn a_blocked_thread_goes_on_when_a_permit_returns() {
        let gate = Gate::<()>::new(1);
        assert!(gate.try_acquire());
        std::thread::scope(|scope| {
            let blocked = scope.spawn(|| gate.acquire());
            while lock(&gate.room).blocked == 0 {
                std::thread::yield_now();
            }
            assert!(gate.release().is_none());
            blocked.join().unwrap();
        });
        assert_eq!(gate.budget().in_use(), 1);
    }
}
