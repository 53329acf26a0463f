//! Explores every interleaving of the lock-free parts. Run with
//! `RUSTFLAGS="--cfg loom" cargo test -p domesday-scheduler --release --test loom`.
#![cfg(loom)]

use domesday_scheduler::gate::Gate;
use domesday_scheduler::idle::{Idle, Wake};
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

/// An enumeration finds the frontier full while the only permit returns: whatever the order, somebody
/// runs it again.
#[test]
fn a_returning_permit_resumes_what_parks_meanwhile() {
    loom::model(|| {
        let gate = Arc::new(Gate::new(1));
        assert!(gate.try_acquire());
        let releaser = thread::spawn({
            let gate = Arc::clone(&gate);
            move || gate.release()
        });
        let (took, own) = if gate.try_acquire() { (true, None) } else { (false, gate.park('e')) };
        let resumed = releaser.join().unwrap();
        assert_eq!(u8::from(took) + u8::from(own.is_some()) + u8::from(resumed.is_some()), 1);
    });
}

/// Two enumerations park while a permit returns. One of them is resumed; it leaves without taking the
/// permit, passes its turn on, and so the other is resumed as well.
#[test]
fn a_turn_that_is_not_needed_is_passed_on() {
    loom::model(|| {
        let gate = Arc::new(Gate::new(1));
        assert!(gate.try_acquire());
        assert_eq!(gate.park(0), None);
        let resumed = Arc::new(AtomicUsize::new(0));
        let drain = |gate: &Gate<i32>, mut next: Option<i32>, resumed: &AtomicUsize| {
            while next.is_some() {
                resumed.fetch_add(1, Ordering::Relaxed);
                next = gate.pass_on();
            }
        };
        let releaser = thread::spawn({
            let (gate, resumed) = (Arc::clone(&gate), Arc::clone(&resumed));
            move || drain(&gate, gate.release(), &resumed)
        });
        drain(&gate, gate.park(1), &resumed);
        releaser.join().unwrap();
        assert_eq!(resumed.load(Ordering::Relaxed), 2);
    });
}

/// A thread that may block for a permit gets one.
#[test]
fn a_blocked_thread_is_woken() {
    loom::model(|| {
        let gate = Arc::new(Gate::<()>::new(1));
        assert!(gate.try_acquire());
        let blocked = thread::spawn({
            let gate = Arc::clone(&gate);
            move || gate.acquire()
        });
        assert!(gate.release().is_none());
        blocked.join().unwrap();
        assert_eq!(gate.budget().in_use(), 1);
    });
}

/// Two permits, three takers: never more than two at once.
#[test]
fn the_budget_is_never_overdrawn() {
    loom::model(|| {
        let gate = Arc::new(Gate::<()>::new(2));
        let takers: Vec<_> = (0..2)
            .map(|_| {
                let gate = Arc::clone(&gate);
                thread::spawn(move || {
                    let took = gate.try_acquire();
                    assert!(gate.budget().in_use() <= 2);
                    if took {
                        assert!(gate.release().is_none());
                    }
                })
            })
            .collect();
        assert!(gate.try_acquire() || gate.budget().capacity() == 2);
        takers.into_iter().for_each(|taker| taker.join().unwrap());
    });
}

/// The executor in small: threads that take tasks or sleep, tasks that arrive at any time, and an end that
/// reaches every thread. A lost wake-up would be a deadlock, which loom reports.
#[test]
fn no_task_is_pushed_unseen_and_the_end_reaches_everyone() {
    loom::model(|| {
        let idle = Arc::new(Idle::default());
        let queue = Arc::new(Mutex::new(0));
        let done = Arc::new(AtomicUsize::new(0));
        const TASKS: usize = 2;
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let (idle, queue, done) = (Arc::clone(&idle), Arc::clone(&queue), Arc::clone(&done));
                thread::spawn(move || {
                    let take = || {
                        let mut queue = queue.lock().unwrap();
                        *queue = match *queue {
                            0 => return None,
                            waiting => waiting - 1,
                        };
                        Some(())
                    };
                    loop {
                        let found = take().map_or_else(|| idle.sleep(take), Wake::Found);
                        match found {
                            Wake::Found(()) => {
                                if done.fetch_add(1, Ordering::AcqRel) + 1 == TASKS {
                                    idle.close();
                                }
                            }
                            Wake::Retry => {}
                            Wake::Closed => return,
                        }
                    }
                })
            })
            .collect();
        for _ in 0..TASKS {
            *queue.lock().unwrap() += 1;
            idle.notify();
        }
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        assert_eq!(done.load(Ordering::Acquire), TASKS);
    });
}
