//! Generated texts, and how the engine fares with them. `rates`: texts that are all trigger, all value or all separator,
//! beside a folder of sources; with a number of seconds, also texts that a search finds ([`search`]). None should take
//! more than 20 times as long per byte as the sources do. `count`: so many passes over one text, for a profiler that
//! counts instructions (`cargo xtask instructions`).
//!
//! Lines are `name value unit`. Times are those of the thread, so that a busy machine disturbs them less.
//!
//! `cargo run --release --example texts -p domesday-engine -- rates <folder> [<seconds> <seed>] | count <text> <passes>`

#[path = "../corpus/mod.rs"]
mod corpus;
mod counted;
mod search;
#[path = "../../tests/hostile/texts/mod.rs"]
mod texts;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use domesday_engine::{Chunk, LOOKAHEAD, LOOKBEHIND, RuleSet, Scanner, Scratch};
use domesday_model::Score;

use corpus::{File, on_cpu};

/// Bytes of sources, at most.
const SOURCES_MAX: usize = 200_000_000;
/// Bytes of each text.
const TEXT_LEN: usize = 4 << 20;
/// What a text is scanned in, as the scan core does it.
const CHUNK: usize = 256 << 10;
/// Passes over the sources; the fastest counts.
const ROUNDS: usize = 3;
/// How much of a text is scanned before, so that its regexes are compiled.
const WARM_LEN: usize = 64 << 10;

/// Bytes of a text whose instructions are counted.
const COUNTED_LEN: usize = 256 << 10;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse::<u64>().ok();
    let done = match words[..] {
        ["rates", folder] => rates(Path::new(folder), None),
        ["rates", folder, seconds, seed] => {
            number(seconds).zip(number(seed)).and_then(|search| rates(Path::new(folder), Some(search)))
        }
        ["count", text, passes] => number(passes).and_then(|passes| count(text, passes)),
        _ => None,
    };
    if done.is_none() {
        eprintln!("usage: texts rates <folder> [<seconds> <seed>] | count <text> <passes>");
        std::process::exit(2);
    }
}

/// How fast texts are scanned, and what a search of so many seconds with a seed finds.
fn rates(folder: &Path, search: Option<(u64, u64)>) -> Option<()> {
    let mut engine = Engine::new();
    let (files, bytes) = corpus::read(folder, SOURCES_MAX);
    let fastest = (0..ROUNDS).map(|_| engine.scan_files(&files)).min()?;
    let sources = bytes as f64 / fastest.as_secs_f64();
    println!("sources_rate {:.1} MB/s", sources / 1e6);
    for (name, unit) in texts::hostile() {
        let rate = engine.rate(&unit.fill(TEXT_LEN), 1);
        println!("{name}_rate {:.1} MB/s", rate / 1e6);
        println!("{name}_factor {:.2} times", sources / rate);
    }
    if let Some((seconds, seed)) = search {
        search::run(&mut engine, Duration::from_secs(seconds), seed, sources);
    }
    Some(())
}

/// So many passes over a text of [`counted`] or [`texts::hostile`]; `None` if there is none of this name.
fn count(name: &str, passes: u64) -> Option<()> {
    let hostile = texts::hostile().into_iter().map(|(name, unit)| (name, "", unit));
    let (_, path, unit) = counted::all().into_iter().chain(hostile).find(|(known, ..)| *known == name)?;
    let (mut engine, text, mut matches) = (Engine::new(), unit.fill(COUNTED_LEN), Vec::new());
    for _ in 0..passes {
        matches.clear();
        engine.scanner.scan(&Chunk::whole(&text, path.as_bytes()), &mut engine.scratch, &mut matches);
    }
    println!("matches {} matches", matches.len());
    Some(())
}

/// The scanner as users have it by default, and how long it takes.
struct Engine {
    scanner: Scanner,
    scratch: Scratch,
}

impl Engine {
    fn new() -> Engine {
        let rules = RuleSet::builtin().unwrap_or_else(|errors| {
            eprintln!("{errors}");
            std::process::exit(1);
        });
        Engine { scanner: Scanner::with_floor(Arc::new(rules), Score::MEDIUM), scratch: Scratch::new() }
    }

    fn scan_files(&mut self, files: &[File]) -> Duration {
        let (begun, mut matches) = (on_cpu(), Vec::new());
        for file in files {
            self.scanner.scan(&file.chunk(), &mut self.scratch, &mut matches);
            matches.clear();
        }
        on_cpu().saturating_sub(begun)
    }

    /// Bytes per second of a text, in the fastest of so many runs.
    fn rate(&mut self, text: &[u8], runs: usize) -> f64 {
        self.scan_text(&text[..text.len().min(WARM_LEN)]);
        let fastest = (0..runs).map(|_| self.scan_text(text)).min().unwrap_or_default();
        text.len() as f64 / fastest.max(Duration::from_nanos(1)).as_secs_f64()
    }

    /// Chunk by chunk, with what lies around each.
    fn scan_text(&mut self, text: &[u8]) -> Duration {
        let (begun, mut matches) = (on_cpu(), Vec::new());
        for start in (0..text.len()).step_by(CHUNK) {
            let (from, end) = (start.saturating_sub(LOOKBEHIND), (start + CHUNK).min(text.len()));
            let bytes = &text[from..(end + LOOKAHEAD).min(text.len())];
            let chunk = Chunk::unnamed(bytes, start - from..end - from);
            self.scanner.scan(&chunk, &mut self.scratch, &mut matches);
            matches.clear();
        }
        on_cpu().saturating_sub(begun)
    }
}
