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

/// One permit, three takers: never two of them inside at once.
#[test]
fn the_budget_is_never_overdrawn() {
    loom::model(|| {
        let gate = Arc::new(Gate::<()>::new(1));
        let inside = Arc::new(AtomicUsize::new(0));
        let enter = |gate: &Gate<()>, inside: &AtomicUsize| {
            if gate.try_acquire() {
                assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                inside.fetch_sub(1, Ordering::Relaxed);
                assert!(gate.release().is_none());
            }
        };
        let takers: Vec<_> = (0..2)
            .map(|_| {
                let (gate, inside) = (Arc::clone(&gate), Arc::clone(&inside));
                thread::spawn(move || enter(&gate, &inside))
            })
            .collect();
        enter(&gate, &inside);
        takers.into_iter().for_each(|taker| taker.join().unwrap());
        assert_eq!(gate.budget().in_use(), 0);
    });
}

/// The executor in small: threads that take tasks or sleep, tasks that arrive at any time, and an end that
/// reaches every thread. A lost wake-up would be a deadlock, which loom reports.
fn executor(workers: usize, tasks: usize) {
    let idle = Arc::new(Idle::default());
    let queue = Arc::new(Mutex::new(0));
    let done = Arc::new(AtomicUsize::new(0));
    let workers: Vec<_> = (0..workers)
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
                    match take().map_or_else(|| idle.sleep(take), Wake::Found) {
                        Wake::Found(()) => {
                            if done.fetch_add(1, Ordering::AcqRel) + 1 == tasks {
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
    for _ in 0..tasks {
        *queue.lock().unwrap() += 1;
        idle.notify();
    }
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    assert_eq!(done.load(Ordering::Acquire), tasks);
}

#[test]
fn no_task_is_pushed_unseen() {
    loom::model(|| executor(1, 2));
}

/// With two workers the interleavings are too many for all of them: those with few preemptions, in which
/// races are known to show.
#[test]
fn the_end_reaches_every_thread() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| executor(2, 2));
}
