//! The numbers that metrics are made of. Nothing is decided by them, so relaxed order is enough.

use std::array;
use std::ops::Index;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use domesday_model::times::{BUCKETS, Times, bucket};
use domesday_scheduler::{KIND_SLOTS, KindSlot};
use parking_lot::Mutex;

/// What kinds of data sources are called that have no slot of their own.
const OTHER_KINDS: &str = "other";

/// A number that goes up, or, as a gauge, also down.
#[derive(Debug, Default)]
pub struct Number(AtomicU64);

impl Number {
    pub(crate) fn add(&self, by: u64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }

    pub(crate) fn set(&self, to: u64) {
        self.0.store(to, Ordering::Relaxed);
    }

    /// One more, until what is returned is dropped.
    pub(crate) fn held(&self) -> HeldOne<'_> {
        self.add(1);
        HeldOne(self)
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One of what a gauge counts.
pub(crate) struct HeldOne<'a>(&'a Number);

impl Drop for HeldOne<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Durations in buckets, see [`domesday_model::times`]. For what takes at least as long as a call: a batch of a
/// listing, a write, a claim.
#[derive(Debug, Default)]
pub struct Histogram {
    nanos: Number,
    buckets: [Number; BUCKETS],
}

impl Histogram {
    pub(crate) fn observe(&self, time: Duration) {
        self.nanos.add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        self.buckets[bucket(time)].add(1);
    }

    /// Observes how long a call takes, whatever its outcome.
    pub(crate) async fn timed<T>(&self, call: impl Future<Output = T>) -> T {
        let begun = Instant::now();
        let out = call.await;
        self.observe(begun.elapsed());
        out
    }

    pub fn get(&self) -> Times {
        Times { buckets: array::from_fn(|at| self.buckets[at].get()), nanos: self.nanos.get() }
    }
}

/// One for each kind of data source.
#[derive(Debug, Default)]
pub struct ByKind<T>([T; KIND_SLOTS]);

impl<T> Index<KindSlot> for ByKind<T> {
    type Output = T;

    fn index(&self, kind: KindSlot) -> &T {
        &self.0[kind.index()]
    }
}

/// The kinds of data sources that were met, each with its slot. There are few, and they are named by the program:
/// those beyond the last slot share the first one.
#[derive(Debug, Default)]
pub struct Kinds(Mutex<Vec<String>>);

impl Kinds {
    pub(crate) fn slot(&self, kind: &str) -> KindSlot {
        let mut known = self.0.lock();
        let at = known.iter().position(|name| name == kind).unwrap_or_else(|| {
            if known.len() + 1 < KIND_SLOTS {
                known.push(kind.to_owned());
                known.len() - 1
            } else {
                KIND_SLOTS
            }
        });
        KindSlot::new(at + 1)
    }

    /// Every slot in use, with the name of its kind.
    pub fn iter(&self) -> impl Iterator<Item = (KindSlot, String)> {
        let named = self.0.lock().clone();
        let names = std::iter::once(OTHER_KINDS.to_owned()).chain(named);
        names.enumerate().map(|(index, name)| (KindSlot::new(index), name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_keep_their_slots_and_the_last_ones_share_one() {
        let kinds = Kinds::default();
        let (git, url) = (kinds.slot("git"), kinds.slot("url"));
        assert_ne!(git, url);
        assert_eq!((kinds.slot("git"), kinds.slot("url")), (git, url));
        let names = |kinds: &Kinds| kinds.iter().map(|(_, name)| name).collect::<Vec<_>>();
        assert_eq!(names(&kinds), ["other", "git", "url"]);
        let many: Vec<KindSlot> = (0..KIND_SLOTS).map(|n| kinds.slot(&n.to_string())).collect();
        assert_eq!(many.last(), Some(&KindSlot::default()), "what has no slot of its own");
        assert_eq!(names(&kinds).len(), KIND_SLOTS);
        assert_eq!(kinds.slot("git"), git);
    }

    #[tokio::test]
    async fn a_call_is_observed_and_a_gauge_goes_down_again() {
        let histogram = Histogram::default();
        assert_eq!(histogram.timed(std::future::ready(7)).await, 7);
        assert_eq!(histogram.get().count(), 1);
        histogram.observe(Duration::from_secs(3));
        let times = histogram.get();
        assert_eq!((times.count(), times.total() >= Duration::from_secs(3)), (2, true));
        let gauge = Number::default();
        let (one, two) = (gauge.held(), gauge.held());
        assert_eq!(gauge.get(), 2);
        drop((one, two));
        assert_eq!(gauge.get(), 0);
    }
}
