//! How much may be under way in one process.

use std::sync::{Arc, LazyLock};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes that one request asks for, at most: 8 MiB.
pub const PART_LEN: u64 = 8 << 20;
/// Bytes asked for outside of the budgets, when a thread needs them and there is no room: 1 MiB.
pub const DEMAND_LEN: u64 = 1 << 20;
/// Bytes of objects that are not opened yet, under way or waiting, in this process: 48 MiB.
pub const AHEAD_MAX: u64 = 48 << 20;
/// Bytes of objects that are being read, under way or waiting, in this process: 64 MiB.
pub const PARTS_MAX: u64 = 64 << 20;
/// Requests for bytes at once, in this process.
pub const REQUESTS_MAX: usize = 64;

/// Bytes are counted in units of 1 KiB, which a semaphore can count.
const UNIT: u64 = 1 << 10;

pub(super) static AHEAD: LazyLock<Bytes> = LazyLock::new(|| Bytes::new(AHEAD_MAX));
pub(super) static PARTS: LazyLock<Bytes> = LazyLock::new(|| Bytes::new(PARTS_MAX));
pub(super) static REQUESTS: Semaphore = Semaphore::const_new(REQUESTS_MAX);

/// A limit on bytes.
#[derive(Clone)]
pub(super) struct Bytes(Arc<Semaphore>);

impl Bytes {
    pub fn new(max: u64) -> Bytes {
        Bytes(Arc::new(Semaphore::new(usize::try_from(max / UNIT).unwrap_or(usize::MAX))))
    }

    /// Bytes that may still be taken.
    pub fn left(&self) -> u64 {
        self.0.available_permits() as u64 * UNIT
    }

    pub fn try_take(&self, len: u64) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0).try_acquire_many_owned(units(len)).ok()
    }

    /// `None` only when the limit is closed, which none is.
    pub async fn take(&self, len: u64) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0).acquire_many_owned(units(len)).await.ok()
    }
}

/// Gives back what a permit holds beyond `len` bytes.
pub(super) fn shrink(permit: &mut OwnedSemaphorePermit, len: u64) {
    let excess = permit.num_permits().saturating_sub(units(len) as usize);
    drop(permit.split(excess));
}

fn units(len: u64) -> u32 {
    u32::try_from(len.div_ceil(UNIT)).unwrap_or(u32::MAX).max(1)
}
