//! Measures the engine on a folder: the trigger pass alone, then the whole scan, at the level that is reported by
//! default. Times are those of the thread, so that a busy machine disturbs them less. Texts that are made to be slow are
//! in the example `texts`.
//!
//! With `triggers` or `scan` behind the folder, only that is done, once: for a profiler that counts instructions.
//!
//! `cargo run --release --example throughput -p domesday-engine -- <folder> [triggers|scan]`

#[path = "corpus/mod.rs"]
mod corpus;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domesday_engine::{RuleSet, Scanner, Scratch};
use domesday_model::Score;

use corpus::on_cpu;

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
    let (files, total) = corpus::read(Path::new(&folder), CORPUS_MAX);
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
        let started = on_cpu();
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
        let started = on_cpu();
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

fn report(what: &str, bytes: usize, started: Duration, detail: &str) {
    let elapsed = on_cpu().saturating_sub(started);
    println!("{what}: {elapsed:.2?}, {:.0} MB/s, {detail}", bytes as f64 / 1e6 / elapsed.as_secs_f64());
}
