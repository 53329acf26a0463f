//! Measures the engine on a folder: the trigger pass alone, then the whole scan; then the scan of repetitive
//! input, which no text should be much slower than. Times are those of the thread where the system tells
//! them, so that a busy machine disturbs them less.
//!
//! `cargo run --release --example throughput -p domesday-engine -- <folder>`

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domesday_engine::{Chunk, RuleSet, Scanner, Scratch};

/// Bytes read into memory, at most.
const CORPUS_MAX: usize = 500_000_000;
/// Rules listed.
const TOP: usize = 20;
/// Bytes of repetitive input.
const HOSTILE_LEN: usize = 64 << 20;
/// Times that the folder is scanned; the first also compiles regexes.
const ROUNDS: usize = 3;

fn main() {
    let Some(folder) = std::env::args().nth(1) else {
        eprintln!("usage: throughput <folder>");
        std::process::exit(2);
    };
    let mut files = Vec::new();
    let mut total = 0;
    read_folder(Path::new(&folder), &mut files, &mut total);
    println!("{} files, {:.1} MB", files.len(), total as f64 / 1e6);

    let started = Instant::now();
    let rules = match RuleSet::builtin() {
        Ok(rules) => Arc::new(rules),
        Err(errors) => {
            eprintln!("{errors}");
            std::process::exit(1);
        }
    };
    let loaded = started.elapsed();
    let scanner = Scanner::new(rules.clone());
    println!(
        "{} rules, loaded in {loaded:.1?}, scanner in {:.1?}",
        rules.rules().len(),
        started.elapsed() - loaded
    );

    let mut scratch = Scratch::new();
    for _ in 0..ROUNDS {
        let started = Clock::now();
        let hits: usize = files.iter().map(|file| scanner.count_hits(file, &mut scratch)).sum();
        report("trigger pass", total, started, &format!("{hits} hits"));
    }
    let mut matches = Vec::new();
    let mut per_rule = Vec::new();
    for _ in 0..ROUNDS {
        per_rule = vec![0usize; rules.rules().len()];
        scratch = Scratch::new();
        let started = Clock::now();
        for file in &files {
            scanner.scan(&Chunk::whole(file, b""), &mut scratch, &mut matches);
            for found in matches.drain(..) {
                per_rule[found.rule as usize] += 1;
            }
        }
        let found: usize = per_rule.iter().sum();
        let detail = format!("{found} matches, {} window bytes", scratch.window_bytes());
        report("full scan", total, started, &detail);
    }

    let mut order: Vec<usize> = (0..per_rule.len()).filter(|&rule| per_rule[rule] > 0).collect();
    order.sort_by_key(|&rule| std::cmp::Reverse(per_rule[rule]));
    for rule in order.into_iter().take(TOP) {
        println!("{:8} {}", per_rule[rule], rules.rules()[rule].id);
    }
    let mut order: Vec<(usize, u64)> = scratch.window_bytes_by_rule().enumerate().collect();
    order.sort_by_key(|&(_, bytes)| std::cmp::Reverse(bytes));
    println!("window bytes by rule:");
    for (rule, bytes) in order.into_iter().filter(|&(_, bytes)| bytes > 0).take(TOP) {
        println!("{bytes:10} {}", rules.rules()[rule].id);
    }
    scan_hostile(&scanner);
}

fn report(what: &str, bytes: usize, started: Clock, detail: &str) {
    let elapsed = started.elapsed();
    println!("{what}: {elapsed:.2?}, {:.0} MB/s, {detail}", bytes as f64 / 1e6 / elapsed.as_secs_f64());
}

/// When something began: in processor time of this thread, or else by the wall.
struct Clock {
    on_cpu: Option<Duration>,
    wall: Instant,
}

impl Clock {
    fn now() -> Clock {
        Clock { on_cpu: on_cpu(), wall: Instant::now() }
    }

    fn elapsed(&self) -> Duration {
        match (self.on_cpu, on_cpu()) {
            (Some(from), Some(to)) => to.saturating_sub(from),
            _ => self.wall.elapsed(),
        }
    }
}

/// The first number of Linux's `schedstat` is the thread's time on a processor in nanoseconds.
fn on_cpu() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
}

/// Texts that are all trigger, or that have none at all.
fn scan_hostile(scanner: &Scanner) {
    let repeated =
        |unit: &str| unit.as_bytes().iter().copied().cycle().take(HOSTILE_LEN).collect::<Vec<u8>>();
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let texts: [(&str, Vec<u8>); 8] = [
        ("digits", repeated("1234567890")),
        ("digits in fours", repeated("4111 1111 ")),
        ("`@`", repeated("@")),
        ("`key=`", repeated("key=")),
        ("`password=`", repeated("password=")),
        ("mail addresses", repeated("ann@acme.com,")),
        ("base64", (0..HOSTILE_LEN).map(|_| BASE64[usize::from(random() & 63)]).collect()),
        ("random bytes", (0..HOSTILE_LEN).map(|_| random()).collect()),
    ];
    let mut matches = Vec::new();
    for (name, text) in &texts {
        let mut scratch = Scratch::new();
        let started = Clock::now();
        // In pieces, as an object of that size would be scanned.
        for piece in text.chunks(1 << 20) {
            scanner.scan(&Chunk::whole(piece, b""), &mut scratch, &mut matches);
        }
        report(name, text.len(), started, &format!("{} matches", matches.len()));
        matches.clear();
    }
}

fn read_folder(folder: &Path, files: &mut Vec<Vec<u8>>, total: &mut usize) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if *total >= CORPUS_MAX {
            return;
        }
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            read_folder(&path, files, total);
        } else if let Ok(bytes) = std::fs::read(&path) {
            *total += bytes.len();
            files.push(bytes);
        }
    }
}
