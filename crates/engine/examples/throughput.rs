//! Measures the engine on a folder: the trigger pass alone, then the whole scan, at the level that is reported by
//! default. Times are those of the thread where the system tells them, so that a busy machine disturbs them less. Texts
//! that are made to be slow are in the example `texts`.
//!
//! With `triggers` or `scan` behind the folder, only that is done, once: for a profiler that counts instructions.
//!
//! `cargo run --release --example throughput -p domesday-engine -- <folder> [triggers|scan]`

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domesday_engine::{Chunk, RuleSet, Scanner, Scratch};
use domesday_model::Score;

/// Bytes read into memory, at most.
const CORPUS_MAX: usize = 500_000_000;
/// Rules listed.
const TOP: usize = 20;
/// Times that the folder is scanned; the first also compiles regexes.
const ROUNDS: usize = 3;

fn main() {
    let Some(folder) = std::env::args().nth(1) else {
        eprintln!("usage: throughput <folder> [triggers|scan]");
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
    let scanner = Scanner::with_floor(rules.clone(), Score::MEDIUM);
    println!(
        "{} rules, loaded in {loaded:.1?}, scanner in {:.1?}",
        rules.rules().len(),
        started.elapsed() - loaded
    );

    let mut scratch = Scratch::new();
    if let Some(pass) = std::env::args().nth(2) {
        let found: usize = match pass.as_str() {
            "triggers" => {
                let mut hits = Vec::new();
                files.iter().for_each(|file| scanner.count_hits(&file.chunk(), &mut scratch, &mut hits));
                hits.iter().sum::<u64>() as usize
            }
            _ => {
                let mut matches = Vec::new();
                files.iter().for_each(|file| scanner.scan(&file.chunk(), &mut scratch, &mut matches));
                matches.len()
            }
        };
        println!("{pass}: {found}");
        return;
    }
    let mut hits = Vec::new();
    for _ in 0..ROUNDS {
        let started = Clock::now();
        hits.clear();
        files.iter().for_each(|file| scanner.count_hits(&file.chunk(), &mut scratch, &mut hits));
        report("trigger pass", total, started, &format!("{} hits", hits.iter().sum::<u64>()));
    }
    println!("hits by rule:");
    print_top(&rules, &hits);
    let mut matches = Vec::new();
    let mut per_rule: Vec<u64> = Vec::new();
    for _ in 0..ROUNDS {
        per_rule = vec![0; rules.rules().len()];
        scratch = Scratch::new();
        let started = Clock::now();
        for file in &files {
            scanner.scan(&file.chunk(), &mut scratch, &mut matches);
            for found in matches.drain(..) {
                per_rule[found.rule as usize] += 1;
            }
        }
        let found: u64 = per_rule.iter().sum();
        let detail = format!("{found} matches, {} window bytes", scratch.window_bytes());
        report("full scan", total, started, &detail);
    }

    println!("matches by rule:");
    print_top(&rules, &per_rule);
    println!("window bytes by rule:");
    print_top(&rules, &scratch.window_bytes_by_rule().collect::<Vec<_>>());
}

fn print_top(rules: &RuleSet, counts: &[u64]) {
    let mut order: Vec<usize> = (0..counts.len()).filter(|&rule| counts[rule] > 0).collect();
    order.sort_by_key(|&rule| std::cmp::Reverse(counts[rule]));
    for rule in order.into_iter().take(TOP) {
        let id = rules.rules().get(rule).map_or("what may be decoded", |rule| &rule.id);
        println!("{:10} {id}", counts[rule]);
    }
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

struct File {
    path: Vec<u8>,
    bytes: Vec<u8>,
}

impl File {
    fn chunk(&self) -> Chunk<'_> {
        Chunk::whole(&self.bytes, &self.path)
    }
}

fn read_folder(folder: &Path, files: &mut Vec<File>, total: &mut usize) {
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
            files.push(File { path: path.into_os_string().into_encoded_bytes(), bytes });
        }
    }
}
