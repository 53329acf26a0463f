//! Waiting for another process, never for ever.
//!
//! What another process does can only be looked at again and again. The pause between two looks is here, and
//! nowhere else: a test that waits for anything but a look has a race in it.

use std::time::{Duration, Instant};

/// The time between two looks.
pub const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Looks until there is something to see, at most for `patience`; how long it took, and what it was.
pub fn until<T>(patience: Duration, mut look: impl FnMut() -> Option<T>) -> Option<(Duration, T)> {
    let begun = Instant::now();
    loop {
        if let Some(seen) = look() {
            return Some((begun.elapsed(), seen));
        }
        if begun.elapsed() >= patience {
            return None;
        }
        pause(LOOK_EVERY);
    }
}

/// Lets others go on for this long.
#[allow(clippy::disallowed_methods, reason = "another process gives no event to wait for")]
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_until_there_is_something_or_patience_ends() {
        let mut looks = 0;
        let seen = until(Duration::from_secs(60), || {
            looks += 1;
            (looks == 3).then_some("seen")
        });
        assert_eq!(seen.map(|(_, seen)| seen), Some("seen"));
        assert!(until(Duration::ZERO, || None::<()>).is_none());
    }
}
