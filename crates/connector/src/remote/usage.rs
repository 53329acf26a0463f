//! What this process uses of its limits, and the pauses it makes before it asks a source again: for whoever watches it.
//! Nothing is decided by it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::budget::{AHEAD, AHEAD_MAX, PARTS, PARTS_MAX, REQUESTS, REQUESTS_MAX};

static PAUSES: AtomicU64 = AtomicU64::new(0);
static PAUSED_MS: AtomicU64 = AtomicU64::new(0);

/// Of one process, at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Requests for bytes under way, of [`REQUESTS_MAX`].
    pub requests: usize,
    /// Bytes under way or waiting to be read, of [`AHEAD_MAX`] and [`PARTS_MAX`] together.
    pub bytes: u64,
    /// Requests of any kind that were made again, or are about to be, since the process began.
    pub retries: u64,
    /// How long was paused before them.
    pub paused: Duration,
}

pub fn usage() -> Usage {
    Usage {
        requests: REQUESTS_MAX.saturating_sub(REQUESTS.available_permits()),
        bytes: (AHEAD_MAX + PARTS_MAX).saturating_sub(AHEAD.left() + PARTS.left()),
        retries: PAUSES.load(Ordering::Relaxed),
        paused: Duration::from_millis(PAUSED_MS.load(Ordering::Relaxed)),
    }
}

/// Pauses before a request is made again, and counts that.
pub async fn rest(pause: Duration) {
    PAUSES.fetch_add(1, Ordering::Relaxed);
    PAUSED_MS.fetch_add(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    tokio::time::sleep(pause).await;
}
