//! The bounded pool of chunk buffers. A buffer returns when its handle drops, wherever that happens;
//! an empty pool is the back-pressure that makes a reader scan its chunk itself.
//!
//! Buffers are zeroed once, when made, and reused as they are: how much of one is filled travels with
//! the task, so no byte of another object is ever looked at.

use std::sync::Arc;

use parking_lot::Mutex;

/// The largest buffer, overlap included: 4 MiB.
pub const BUFFER_LEN_MAX: usize = 4 << 20;

/// A pool of at most `count` buffers of one length, made when first needed.
pub struct BufferPool {
    buffer_len: usize,
    count: usize,
    state: Mutex<PoolState>,
}

#[derive(Default)]
struct PoolState {
    free: Vec<Box<[u8]>>,
    made: usize,
}

impl BufferPool {
    pub fn new(buffer_len: usize, count: usize) -> Arc<BufferPool> {
        assert!(buffer_len <= BUFFER_LEN_MAX, "the chunk size is clamped to what a buffer holds");
        Arc::new(BufferPool { buffer_len, count, state: Mutex::default() })
    }

    /// A free buffer, or `None` when all are in use; never blocks for one.
    pub fn try_take(self: &Arc<Self>) -> Option<TsBufferHandle> {
        let mut state = self.state.lock();
        let bytes = match state.free.pop() {
            Some(bytes) => bytes,
            None if state.made < self.count => {
                state.made += 1;
                drop(state);
                new_buffer(self.buffer_len)
            }
            None => return None,
        };
        Some(TsBufferHandle { bytes, pool: Arc::clone(self) })
    }

    /// Buffers made so far: never more than the pool's bound.
    pub fn made(&self) -> usize {
        self.state.lock().made
    }

    /// Buffers in use, and how many there may be.
    pub fn in_use(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.made - state.free.len(), self.count)
    }

    /// Buffers at rest in the pool.
    pub fn free(&self) -> usize {
        self.state.lock().free.len()
    }
}

pub(crate) fn new_buffer(len: usize) -> Box<[u8]> {
    vec![0; len].into_boxed_slice()
}

/// A pooled buffer, moved from thread to thread with its task; it returns to its pool on drop.
pub struct TsBufferHandle {
    bytes: Box<[u8]>,
    pool: Arc<BufferPool>,
}

impl TsBufferHandle {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Exchanges the memory with that of a buffer of the same length, so that a filled private buffer
    /// can travel without being copied.
    pub(crate) fn swap(&mut self, other: &mut Box<[u8]>) {
        debug_assert_eq!(self.bytes.len(), other.len());
        std::mem::swap(&mut self.bytes, other);
    }
}

impl Drop for TsBufferHandle {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.pool.state.lock().free.push(bytes);
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn the_pool_makes_no_more_than_its_bound_and_reuses() {
        let pool = BufferPool::new(16, 2);
        let (a, b) = (pool.try_take().unwrap(), pool.try_take().unwrap());
        assert!(pool.try_take().is_none());
        drop(a);
        let c = pool.try_take().unwrap();
        assert!(pool.try_take().is_none());
        assert_eq!(pool.in_use(), (2, 2));
        drop((b, c));
        assert_eq!(pool.in_use(), (0, 2));
        assert_eq!((pool.made(), pool.free()), (2, 2));
    }
}
