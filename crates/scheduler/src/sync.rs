//! The synchronisation primitives of the lock-free parts: the standard library's, or loom's when
//! their interleavings are explored. Only [`crate::gate`] and [`crate::idle`] may build on it, so that
//! a model stays small enough to be exhaustive. All else locks with `parking_lot`, which knows no poison.

#[cfg(not(loom))]
pub(crate) use std::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicUsize, Ordering, fence},
};

#[cfg(loom)]
pub(crate) use loom::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicUsize, Ordering, fence},
};

/// Locks, whether or not another thread panicked while it held the lock: every critical section of
/// these modules leaves its data whole at each step, so there is nothing for a poison to protect.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Waits, under the same argument.
pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(|poisoned| poisoned.into_inner())
}
