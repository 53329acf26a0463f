//! Measures the engine on a folder: the trigger pass alone, then the whole scan.
//!
//! `cargo run --release --example throughput -p domesday-engine -- <folder>`

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use domesday_engine::{Chunk, RuleSet, Scanner, Scratch};

/// Bytes read into memory, at most.
const CORPUS_MAX: usize = 500_000_000;
/// Rules listed.
const TOP: usize = 20;

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
    let started = Instant::now();
    let hits: usize = files.iter().map(|file| scanner.count_hits(file, &mut scratch)).sum();
    report("trigger pass", total, started, &format!("{hits} hits"));

    let mut matches = Vec::new();
    let mut per_rule = vec![0usize; rules.rules().len()];
    let started = Instant::now();
    for file in &files {
        scanner.scan(&Chunk::whole(file, b""), &mut scratch, &mut matches);
        for found in matches.drain(..) {
            per_rule[found.rule as usize] += 1;
        }
    }
    let found: usize = per_rule.iter().sum();
    report("full scan", total, started, &format!("{found} matches, {} window bytes", scratch.window_bytes()));

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
}

fn report(what: &str, bytes: usize, started: Instant, detail: &str) {
    let elapsed = started.elapsed();
    println!("{what}: {elapsed:.2?}, {:.0} MB/s, {detail}", bytes as f64 / 1e6 / elapsed.as_secs_f64());
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
