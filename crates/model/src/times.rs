//! Durations counted in buckets with fixed bounds: a histogram that threads can keep apart and add up.
//!
//! The bounds are the same everywhere, so that histograms of threads, processes and stages can be added and compared.
//! Nothing here reads a clock.

use std::time::Duration;

/// Upper bounds of the buckets, inclusive, with the names that they have in the text format of Prometheus (seconds).
pub const BOUNDS: [(Duration, &str); 12] = [
    (Duration::from_micros(100), "0.0001"),
    (Duration::from_micros(500), "0.0005"),
    (Duration::from_millis(1), "0.001"),
    (Duration::from_millis(5), "0.005"),
    (Duration::from_millis(25), "0.025"),
    (Duration::from_millis(100), "0.1"),
    (Duration::from_millis(250), "0.25"),
    (Duration::from_millis(500), "0.5"),
    (Duration::from_secs(1), "1"),
    (Duration::from_millis(2_500), "2.5"),
    (Duration::from_secs(10), "10"),
    (Duration::from_secs(60), "60"),
];

/// One for each bound, and one for what is longer than all.
pub const BUCKETS: usize = BOUNDS.len() + 1;

/// Which bucket a duration is counted in. The shortest are the most, so they are found first.
#[inline]
pub fn bucket(time: Duration) -> usize {
    BOUNDS.iter().position(|(bound, _)| time <= *bound).unwrap_or(BOUNDS.len())
}

/// A histogram at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Times {
    /// How many fell into each bucket.
    pub buckets: [u64; BUCKETS],
    pub nanos: u64,
}

impl Times {
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// All of them together.
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.nanos)
    }

    pub fn add(&mut self, other: &Times) {
        self.nanos = self.nanos.wrapping_add(other.nanos);
        self.buckets.iter_mut().zip(other.buckets).for_each(|(mine, more)| *mine += more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_rise_and_are_named_for_what_they_are() {
        assert!(BOUNDS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (index, (bound, name)) in BOUNDS.iter().enumerate() {
            assert_eq!(name.parse::<f64>().unwrap(), bound.as_secs_f64());
            assert_eq!(bucket(*bound), index, "a bound is part of its bucket");
            assert_eq!(bucket(*bound + Duration::from_nanos(1)), index + 1);
        }
        assert_eq!(bucket(Duration::ZERO), 0);
    }

    #[test]
    fn histograms_add_up() {
        let mut all = Times::default();
        for time in [Duration::from_micros(7), Duration::from_secs(2), Duration::from_secs(3_600)] {
            let mut one = Times { nanos: time.as_nanos() as u64, ..Times::default() };
            one.buckets[bucket(time)] = 1;
            all.add(&one);
        }
        assert_eq!((all.count(), all.buckets[0], all.buckets[BUCKETS - 1]), (3, 1, 1));
        assert_eq!(all.total(), Duration::from_nanos(3_602_000_007_000));
    }
}
