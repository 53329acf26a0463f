//! Waiting before trying again: exponential, with jitter, so that processes that lost the same database do
//! not come back to it together.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// The first wait after a call that failed.
const FIRST: Duration = Duration::from_millis(100);
/// The longest wait between two tries.
const LONGEST: Duration = Duration::from_secs(5);
/// Complaints about one outage are written for its first tries, and then for one in so many.
const COMPLAIN_EACH: u32 = 16;
const COMPLAIN_FIRST: u32 = 2;

/// How long to wait next, and whether to complain of it.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    tries: u32,
}

impl Backoff {
    /// The next wait: twice the last one, half of it by chance.
    pub fn next(&mut self) -> Duration {
        let wait = FIRST.saturating_mul(2u32.saturating_pow(self.tries)).min(LONGEST);
        self.tries = self.tries.saturating_add(1);
        jitter(wait)
    }

    /// Whether this failure is worth a line in the log: the beginning of an outage, and a reminder now and
    /// then.
    pub fn is_worth_a_line(&self) -> bool {
        self.tries < COMPLAIN_FIRST || self.tries.is_multiple_of(COMPLAIN_EACH)
    }

    pub fn reset(&mut self) {
        self.tries = 0;
    }
}

/// Half to all of `wait`.
pub(crate) fn jitter(wait: Duration) -> Duration {
    let random = RandomState::new().hash_one(()) % 1_000;
    wait / 2 + wait.mul_f64(random as f64 / 2_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit_and_start_over() {
        let mut backoff = Backoff::default();
        let waits: Vec<Duration> = (0..40).map(|_| backoff.next()).collect();
        assert!(waits[0] >= FIRST / 2 && waits[0] <= FIRST);
        assert!(waits[3] > waits[0], "half of eight times is more than once");
        assert!(waits.iter().all(|wait| *wait <= LONGEST) && waits[39] >= LONGEST / 2);
        backoff.reset();
        assert!(backoff.next() <= FIRST);
    }

    #[test]
    fn an_outage_does_not_fill_the_log() {
        let mut backoff = Backoff::default();
        let lines = (0..160).filter(|_| {
            let line = backoff.is_worth_a_line();
            backoff.next();
            line
        });
        assert!((4..=14).contains(&lines.count()));
    }
}
