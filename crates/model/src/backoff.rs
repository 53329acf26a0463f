//! Back-off: how long to wait before something that failed is tried again.
//!
//! Each wait is twice as long as the one before, up to a limit, and a part of it is left to chance (jitter), so that
//! processes that lost the same server do not come back to it together. This module computes durations. It reads no
//! clock and does not wait.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// The waits between attempts at one thing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backoff {
    first: Duration,
    max: Duration,
}

impl Backoff {
    /// `first` is the wait after one failed attempt, `max` the longest wait.
    pub const fn new(first: Duration, max: Duration) -> Backoff {
        Backoff { first, max }
    }

    /// The wait after so many failed attempts in a row, with jitter.
    pub fn after(self, failed: u32) -> Duration {
        jitter(self.longest_after(failed))
    }

    /// The same without jitter: the longest wait that [`Backoff::after`] returns.
    pub fn longest_after(self, failed: u32) -> Duration {
        let doublings = failed.saturating_sub(1);
        self.first.saturating_mul(2u32.saturating_pow(doublings)).min(self.max)
    }
}

/// How often something that may pass is tried, and after which waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retries {
    /// Attempts in all, the first one included.
    pub attempts: u32,
    pub wait: Backoff,
}

impl Retries {
    /// One attempt.
    pub const NONE: Retries = Retries { attempts: 1, wait: Backoff::new(Duration::ZERO, Duration::ZERO) };

    /// Whether an attempt that fails after so many that failed is not the last one.
    pub fn has_more(self, failed: u32) -> bool {
        failed.saturating_add(1) < self.attempts
    }
}

/// Half to all of `wait`, at random.
pub fn jitter(wait: Duration) -> Duration {
    let random = RandomState::new().hash_one(()) % 1_000;
    wait / 2 + wait.mul_f64(random as f64 / 2_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit() {
        let backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
        let longest =
            [0, 1, 2, 3, 6, 7, 40, u32::MAX].map(|failed| backoff.longest_after(failed).as_millis());
        assert_eq!(longest, [100, 100, 200, 400, 3_200, 5_000, 5_000, 5_000]);
    }

    #[test]
    fn jitter_leaves_half_to_all_of_a_wait() {
        let second = Duration::from_secs(1);
        let waits: Vec<Duration> = (0..100).map(|_| jitter(second)).collect();
        assert!(waits.iter().all(|wait| (second / 2..=second).contains(wait)), "{waits:?}");
        assert!(waits.iter().any(|wait| *wait != waits[0]), "{waits:?}");
        let backoff = Backoff::new(second, second);
        assert!((second / 2..=second).contains(&backoff.after(3)));
    }
}
