//! Looks for texts that are slow to scan: hostile ones that were thought of, and for every rule its examples and its
//! triggers over and over. Prints the slowest with their rate; times are those of the thread where the system tells
//! them.
//!
//! `cargo run --release --example hostile -p domesday-engine [-- <part of a name>]`

#[path = "../tests/hostile/texts.rs"]
mod texts;

use std::sync::Arc;
use std::time::{Duration, Instant};

use domesday_engine::{Chunk, LOOKAHEAD, LOOKBEHIND, RuleSet, Scanner, Scratch};
use domesday_model::Score;

/// Bytes of a text.
const LEN: usize = 1 << 20;
/// Bytes of a text that is made of one rule.
const RULE_LEN: usize = 1 << 17;
/// Bytes of a chunk.
const CHUNK: usize = 256 << 10;
/// Time that a text is scanned for, at least: the system counts in steps of some milliseconds.
const ENOUGH: Duration = Duration::from_millis(20);
/// Texts of rules that are listed.
const TOP: usize = 40;

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let rules = Arc::new(RuleSet::builtin().unwrap_or_else(|errors| panic!("{errors}")));
    let scanner = Scanner::with_floor(Arc::clone(&rules), Score::MEDIUM);
    for (name, text) in texts::all(LEN).filter(|(name, _)| name.contains(&wanted)) {
        println!("{:8.1} MB/s  {name}", rate(&scanner, &text()));
    }
    let of_rules = texts::of_rules(rules.rules(), RULE_LEN).filter(|(name, _)| name.contains(&wanted));
    let mut rates: Vec<_> = of_rules.map(|(name, text)| (rate(&scanner, &text()), name)).collect();
    rates.sort_by(|a, b| a.0.total_cmp(&b.0));
    println!("of {} texts made of rules the slowest are", rates.len());
    for (rate, name) in rates.iter().take(TOP) {
        println!("{rate:8.1} MB/s  {name}");
    }
}

/// Megabytes a second, once regexes are compiled and their automata built; in chunks, as an object is scanned.
fn rate(scanner: &Scanner, text: &[u8]) -> f64 {
    let mut scratch = Scratch::new();
    scan(scanner, &text[..text.len() / 16], &mut scratch);
    let started = Clock::now();
    let mut bytes = 0;
    while started.elapsed() < ENOUGH {
        scan(scanner, text, &mut scratch);
        bytes += text.len();
    }
    bytes as f64 / 1e6 / started.elapsed().as_secs_f64()
}

fn scan(scanner: &Scanner, text: &[u8], scratch: &mut Scratch) {
    let mut matches = Vec::new();
    for start in (0..text.len()).step_by(CHUNK) {
        let from = start.saturating_sub(LOOKBEHIND);
        let end = (start + CHUNK).min(text.len());
        let to = (end + LOOKAHEAD).min(text.len());
        let chunk = Chunk { bytes: &text[from..to], accept: start - from..end - from, path: b"" };
        scanner.scan(&chunk, scratch, &mut matches);
        matches.clear();
    }
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
