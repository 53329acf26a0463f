//! How fast a source is read: rows and bytes per second, shared by all that this process reads of it.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

use super::config::DatabaseConfig;

/// How much of the time that went by unused may be made up for.
const BURST: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(crate) struct Limits {
    rows: Option<Rate>,
    bytes: Option<Rate>,
}

impl Limits {
    pub fn new(config: &DatabaseConfig) -> Limits {
        Limits { rows: config.rows_per_second.map(Rate::new), bytes: config.bytes_per_second.map(Rate::new) }
    }

    /// Rows that may be handed over at once, so that a slow source gives little often and not much seldom.
    pub fn rows_at_once(&self) -> usize {
        self.rows.as_ref().map_or(usize::MAX, |rate| (rate.per_second / 2).clamp(1, 1 << 20) as usize)
    }

    /// Waits until what was read may have been read.
    pub async fn spend(&self, rows: u64, bytes: u64) {
        let until = [
            self.rows.as_ref().map(|rate| rate.spend(rows)),
            self.bytes.as_ref().map(|rate| rate.spend(bytes)),
        ];
        if let Some(until) = until.into_iter().flatten().max() {
            sleep_until(until).await;
        }
    }
}

struct Rate {
    per_second: u64,
    /// When everything that was spent is paid for. Held for an addition only.
    paid: Mutex<Instant>,
}

impl Rate {
    fn new(per_second: u64) -> Rate {
        Rate { per_second: per_second.max(1), paid: Mutex::new(Instant::now()) }
    }

    /// When this much, after all that was spent before, is paid for.
    fn spend(&self, amount: u64) -> Instant {
        let now = Instant::now();
        let cost = Duration::from_secs_f64(amount as f64 / self.per_second as f64);
        let mut paid = self.paid.lock();
        *paid = (*paid).max(now.checked_sub(BURST).unwrap_or(now)) + cost;
        *paid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_spent_is_paid_for_one_after_another() {
        let rate = Rate::new(100);
        let (begin, first) = (Instant::now(), rate.spend(50));
        let second = rate.spend(100);
        assert_eq!(second - first, Duration::from_secs(1));
        assert!(first <= begin + Duration::from_millis(500));
        let free = Limits::default();
        free.spend(u64::MAX, u64::MAX).await;
        assert_eq!(free.rows_at_once(), usize::MAX);
    }
}
