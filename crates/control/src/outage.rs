//! An outage of the book: how long to wait before the next try, and which of the failures are worth a line in the log.

use std::time::Duration;

use domesday_model::Backoff;

/// The waits between two tries.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
/// Complaints about one outage are written for its first tries, and then for one in so many.
const COMPLAIN_EACH: u32 = 16;
const COMPLAIN_FIRST: u32 = 2;

/// The tries that failed in a row.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    failed: u32,
}

impl Outage {
    /// Counts a try that failed; how long to wait before the next one.
    pub fn next_wait(&mut self) -> Duration {
        self.failed = self.failed.saturating_add(1);
        BACKOFF.after(self.failed)
    }

    /// Whether this failure is worth a line in the log: the beginning of an outage, and a reminder now and
    /// then.
    pub fn is_worth_a_line(&self) -> bool {
        self.failed < COMPLAIN_FIRST || self.failed.is_multiple_of(COMPLAIN_EACH)
    }

    pub fn reset(&mut self) {
        self.failed = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_start_over() {
        let mut outage = Outage::default();
        let waits: Vec<Duration> = (0..40).map(|_| outage.next_wait()).collect();
        let first = BACKOFF.longest_after(1);
        assert!(waits[0] >= first / 2 && waits[0] <= first);
        assert!(waits[3] > waits[0], "half of eight times is more than once");
        outage.reset();
        assert!(outage.next_wait() <= first);
    }

    #[test]
    fn an_outage_does_not_fill_the_log() {
        let mut outage = Outage::default();
        let lines = (0..160).filter(|_| {
            let line = outage.is_worth_a_line();
            outage.next_wait();
            line
        });
        assert!((4..=14).contains(&lines.count()));
    }
}
