//! The fuzzer: libFuzzer on one of the targets, which the environment names.

#![no_main]

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use domesday_fuzz_targets::servers::is_contained;
use domesday_fuzz_targets::{Counting, Target, find};
use libfuzzer_sys::fuzz_target;
use rustix::time::{ClockId, clock_gettime};

/// Counts what an input takes, so that one that takes too much is a crash.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The variable that names the target.
const TARGET: &str = "DOMESDAY_FUZZ_TARGET";

static CHOSEN: LazyLock<&'static Target> = LazyLock::new(|| {
    // libFuzzer's hook ends the process at any panic.
    let aborting = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !is_contained(panic) {
            aborting(panic);
        }
    }));
    let name = std::env::var(TARGET).unwrap_or_default();
    find(&name).unwrap_or_else(|| panic!("`{name}` is no target: set {TARGET}"))
});

/// Inputs run so far: the first ones also set up what all of them use.
static RUN: AtomicU64 = AtomicU64::new(0);
/// Microseconds of the slowest input, and bytes of the one that took the most memory.
static SLOWEST: AtomicU64 = AtomicU64::new(0);
static LARGEST: AtomicU64 = AtomicU64::new(0);
const SET_UP: u64 = 10;

/// Microseconds that this process has had of processors, all threads together: on a busy machine a clock tells nothing.
fn processor_time() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000
}

fuzz_target!(|input: &[u8]| {
    let begun = processor_time();
    let taken = CHOSEN.run(input) as u64;
    let took = processor_time() - begun;
    if RUN.fetch_add(1, Relaxed) < SET_UP {
        return;
    }
    // `cargo xtask fuzz` reads the last of these lines.
    if SLOWEST.fetch_max(took, Relaxed) < took {
        eprintln!("slowest: {took} us, {} bytes", input.len());
    }
    if LARGEST.fetch_max(taken, Relaxed) < taken {
        eprintln!("largest: {taken} bytes of {} bytes", input.len());
    }
});
