//! How much the heap grows: an allocator that counts, and ends the process at once where a single allocation is absurd.
//!
//! It counts what Rust allocates, on all threads. Memory of libraries written in C (SQLite, lzma, zstd) it does not see;
//! the limit of the whole process holds for these.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes of one allocation, at most: 256 MiB. What asks for more has believed a size that the input declares.
const ALLOCATION_MAX: usize = 256 << 20;

/// Bytes allocated now.
static LIVE: AtomicUsize = AtomicUsize::new(0);
/// The most since [`begin`].
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// Bytes allocated at [`begin`].
static BASE: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counting. A process that runs targets names it as its global allocator.
pub struct Counting;

impl Counting {
    fn grow(bytes: usize) {
        let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
        PEAK.fetch_max(live, Relaxed);
    }
}

// SAFETY: every call is handed to the system's allocator as it came; the counters are beside it.
unsafe impl GlobalAlloc for Counting {
    // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is the system allocator's.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > ALLOCATION_MAX {
            std::process::abort();
        }
        Counting::grow(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is the system allocator's.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() > ALLOCATION_MAX {
            std::process::abort();
        }
        Counting::grow(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is the system allocator's.
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }

    // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is the system allocator's.
    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size > ALLOCATION_MAX {
            std::process::abort();
        }
        // The old bytes are still there while they are copied.
        Counting::grow(size);
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(place, layout, size) }
    }
}

/// Counts from here on.
pub fn begin() {
    let live = LIVE.load(Relaxed);
    BASE.store(live, Relaxed);
    PEAK.store(live, Relaxed);
}

/// Bytes that the heap has grown by since [`begin`], at its largest.
pub fn taken() -> usize {
    PEAK.load(Relaxed).saturating_sub(BASE.load(Relaxed))
}
