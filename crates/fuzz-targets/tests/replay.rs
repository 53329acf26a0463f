//! The corpus: every file through its target, on the compiler that the product is built with.
//!
//! What a file may take is asserted in bytes that are counted, and in address space that the process does not get. Time is
//! not measured: a deadline that is many times what any file takes only says which file hangs.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use domesday_fuzz_targets::servers::is_contained;
use domesday_fuzz_targets::{Counting, TARGETS, Target};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Address space of the process, bytes: what the threads' stacks, the rules and the largest input take, with much room.
/// Memory of libraries written in C is held by nothing else.
const ADDRESS_SPACE: u64 = 4 << 30;
/// How long one file may take before it is said to hang: some thousand times what it takes.
const DEADLINE: Duration = Duration::from_secs(120);
/// Files that a target has, at least and at most: each is replayed by every run of the tests.
const FILES: std::ops::RangeInclusive<usize> = 1..=100;
/// Bytes of a file, at most.
const FILE_MAX: u64 = 64 << 10;

#[test]
fn every_file_keeps_the_limits() {
    let whole = getrlimit(Resource::As).maximum;
    setrlimit(Resource::As, Rlimit { current: Some(ADDRESS_SPACE), maximum: whole }).unwrap();
    let panics = count_panics();
    let (begun, watched) = channel::<PathBuf>();
    std::thread::spawn(move || watch(&watched));
    for target in TARGETS {
        for file in files(target) {
            begun.send(file.clone()).unwrap();
            target.run(&fs::read(&file).unwrap());
            // The scan core survives a panic of its own threads; here none may be.
            assert_eq!(panics.load(Ordering::Relaxed), 0, "{} makes {} panic", file.display(), target.name);
        }
    }
}

fn files(target: &Target) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target.name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort_unstable();
    assert!(FILES.contains(&files.len()), "{}: {} files", folder.display(), files.len());
    for file in &files {
        assert!(file.metadata().unwrap().len() <= FILE_MAX, "{} is too large", file.display());
    }
    files
}

/// Panics on any thread, as they are met.
fn count_panics() -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let (met, usual) = (Arc::clone(&count), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        if !is_contained(panic) {
            met.fetch_add(1, Ordering::Relaxed);
            usual(panic);
        }
    }));
    count
}

/// Ends the process when a file takes too long.
fn watch(begun: &std::sync::mpsc::Receiver<PathBuf>) {
    let mut file = PathBuf::new();
    loop {
        match begun.recv_timeout(DEADLINE) {
            Ok(next) => file = next,
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                let _ = writeln!(std::io::stderr(), "{} hangs", file.display());
                std::process::abort();
            }
        }
    }
}

#[test]
fn every_folder_of_the_corpus_has_a_target() {
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(domesday_fuzz_targets::find(&name).is_some(), "no target is called {name}");
    }
    assert!(TARGETS.is_sorted_by_key(|target| target.name));
}
