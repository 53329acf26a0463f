//! What the examples that measure the engine have in common: files in memory, and the time of a thread.

use std::path::Path;
use std::time::Duration;

use domesday_engine::Chunk;
use rustix::time::{ClockId, clock_gettime};

pub struct File {
    path: Vec<u8>,
    pub bytes: Vec<u8>,
}

impl File {
    pub fn chunk(&self) -> Chunk<'_> {
        Chunk::whole(&self.bytes, &self.path)
    }
}

/// The files below a folder in the order of their paths, until there are `max` bytes; and how many bytes.
pub fn read(folder: &Path, max: usize) -> (Vec<File>, usize) {
    let (mut files, mut total) = (Vec::new(), 0);
    read_into(folder, max, &mut files, &mut total);
    (files, total)
}

fn read_into(folder: &Path, max: usize, files: &mut Vec<File>, total: &mut usize) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if *total >= max {
            return;
        }
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            read_into(&path, max, files, total);
        } else if let Ok(bytes) = std::fs::read(&path) {
            *total += bytes.len();
            files.push(File { path: path.into_os_string().into_encoded_bytes(), bytes });
        }
    }
}

/// Time of this thread on a processor, to the nanosecond: short texts take microseconds.
pub fn on_cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}
