//! What the book costs: time, rows and bytes, for whoever asks where a scan's time went. Nothing is decided by it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::thread::{Pid, gettid};
use rustix::time::{ClockId, clock_gettime};

/// What the book has cost so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spent {
    /// In which the writer had a transaction open.
    pub writing: Duration,
    /// Of the writer and of readers, on processors.
    pub cpu: Duration,
    /// Inserted, updated and deleted.
    pub rows: u64,
    /// Handed to the system by the writer, log and book, where the system tells.
    pub bytes: Option<u64>,
}

/// [`Spent`] while it grows. Relaxed: each is only ever shown.
#[derive(Default)]
pub(super) struct Meter {
    writing_ns: AtomicU64,
    cpu_ns: AtomicU64,
    rows: AtomicU64,
    writer: OnceLock<Pid>,
}

impl Meter {
    /// To be called by the writer when it begins.
    pub fn is_writer(&self) {
        let _ = self.writer.set(gettid());
    }

    /// A transaction of the writer.
    pub fn write<T>(&self, f: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let done = self.read(f);
        self.writing_ns.fetch_add(nanos(begun.elapsed()), Ordering::Relaxed);
        done
    }

    /// A transaction of a reader, which may wait for whoever takes its rows.
    pub fn read<T>(&self, f: impl FnOnce() -> T) -> T {
        let before = on_cpu();
        let done = f();
        self.cpu_ns.fetch_add(nanos(on_cpu().saturating_sub(before)), Ordering::Relaxed);
        done
    }

    pub fn add_rows(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }

    pub fn spent(&self) -> Spent {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Spent {
            writing: Duration::from_nanos(get(&self.writing_ns)),
            cpu: Duration::from_nanos(get(&self.cpu_ns)),
            rows: get(&self.rows),
            bytes: self.writer.get().and_then(|writer| written(*writer)),
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Processor time of this thread.
fn on_cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Bytes that a thread of this process has written to files. Linux counts them anyway.
fn written(thread: Pid) -> Option<u64> {
    let path = format!("/proc/self/task/{}/io", thread.as_raw_nonzero());
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| line.strip_prefix("wchar: "))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_spent_adds_up() {
        let meter = Meter::default();
        assert_eq!(meter.spent(), Spent::default());
        meter.is_writer();
        let file = tempfile::tempfile().unwrap();
        let before = meter.spent().bytes;
        meter.write(|| std::io::Write::write_all(&mut &file, &[7; 5_000]).unwrap());
        meter.add_rows(3);
        let spent = meter.spent();
        assert_eq!(spent.rows, 3);
        assert!(spent.writing > Duration::ZERO && spent.cpu > Duration::ZERO);
        if let (Some(before), Some(after)) = (before, spent.bytes) {
            assert!(after - before >= 5_000, "{before} {after}");
        }
    }
}
