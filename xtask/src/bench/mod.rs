//! `cargo xtask bench`: what a fleet costs and how fast it is, on a local PostgreSQL that writes everything to disk
//! before it answers; and in a file of its own, what a long listing costs.
//!
//! It prints figures and judges none. Each is measured beside what it is to be compared with, in the same run.

pub mod databases;
mod fleet;
pub mod listing;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use domesday_testkit::postgres::{Durability, Server, Settings};

use crate::crash::tree::{self, Shape};
use crate::workspace::{Build, Workspace, cargo};
use fleet::{Bench, OFTEN, ONCE, ONE_SLOT};

/// Where a source tree of Linux is kept for benchmarks, below the user's cache folder.
const LINUX: &str = "domesday-bench/linux-source-6.1";
/// In its place where there is none.
const GENERATED: Shape = Shape { files: 60_000, many: 20_000, dense: 2_000, archives: 60 };
/// Runs of each scan; the median counts.
const RUNS: usize = 3;
/// Added to every round trip of the distant worker.
const DISTANCE: Duration = Duration::from_millis(100);

/// What can be measured, in the order in which it is.
pub const PARTS: [&str; 3] = ["store", "scan", "distance"];

#[derive(Default)]
pub struct Options {
    pub tree: Option<PathBuf>,
    /// Of [`PARTS`]; all when none is named.
    pub only: Vec<String>,
}

impl Options {
    fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == part)
    }
}

pub fn run(options: &Options) -> Result<()> {
    let workspace = Workspace::load()?;
    let folder = workspace.target.join("bench");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let tree = match options.tree.clone().or_else(linux) {
        Some(tree) => tree,
        None => tree::prepare(&folder, 1, GENERATED)?.path,
    };
    let binary = workspace.build(&folder, Build::Release)?;
    let server = Server::start_with(Settings { durability: Durability::Machine, ..Settings::default() });
    if options.wants("store") {
        rates(&workspace, &server)?;
    }
    println!("tree {}", tree.display());
    let bench = Bench::new(&server, &binary, &folder, &tree)?;
    if options.wants("scan") {
        against_embedded(&bench)?;
    }
    if options.wants("distance") {
        distance(&bench)?;
    }
    Ok(())
}

fn linux() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(std::env::home_dir()?.join(".cache")))?;
    Some(cache.join(LINUX)).filter(|tree| tree.is_dir())
}

/// Claims, completions and ingestion of the store alone.
fn rates(workspace: &Workspace, server: &Server) -> Result<()> {
    let mut example: Command = cargo(&workspace.root);
    example.args([
        "run",
        "--quiet",
        "--release",
        "--package",
        "domesday-store",
        "--example",
        "postgres_rates",
    ]);
    let status = example.arg("--").arg(server.create_database()).status().context("cannot run cargo")?;
    if !status.success() {
        bail!("the example postgres_rates ended with {status}");
    }
    Ok(())
}

/// The same tree by one orchestrator and two single-slot workers, and by `domesday scan`.
fn against_embedded(bench: &Bench<'_>) -> Result<()> {
    let (mut embedded, mut fleet) = (Vec::new(), Vec::new());
    let mut written = None;
    let near = bench.start(&[ONE_SLOT, ONE_SLOT], Duration::ZERO)?;
    for run in 0..=RUNS {
        let (scan, job) = (bench.scan(run)?, near.job(ONCE)?);
        // The first ones warm the page cache.
        if run > 0 {
            embedded.push(scan);
            fleet.push(job.wall);
            written = Some(job);
        }
    }
    let (embedded, fleet) = (median(embedded), median(fleet));
    println!("scan_embedded {:.2} s", embedded.as_secs_f64());
    println!("scan_fleet {:.2} s", fleet.as_secs_f64());
    println!("scan_fleet_difference {:+.2} s", fleet.as_secs_f64() - embedded.as_secs_f64());
    let Some(job) = written else { bail!("no job was measured") };
    let per_object = |count: u64| count as f64 / job.objects as f64;
    println!("objects {} objects", job.objects);
    println!("rows_inserted_per_object {:.3} rows", per_object(job.rows.inserted));
    println!("rows_updated_per_object {:.3} rows", per_object(job.rows.updated));
    println!("rows_deleted_per_object {:.3} rows", per_object(job.rows.deleted));
    println!("log_bytes_per_object {:.1} bytes", per_object(job.rows.log_bytes));
    println!("book_bytes_per_object {:.1} bytes", per_object(job.rows.book_bytes));
    println!("transactions_per_1000_objects {:.2} transactions", 1_000.0 * per_object(job.rows.commits));
    Ok(())
}

/// One single-slot worker, near the database and far from it: the time a short job takes, most of it the way down
/// the tree, level by level; and the throughput of a long one.
fn distance(bench: &Bench<'_>) -> Result<()> {
    let mut rates = Vec::new();
    for (name, distance) in [("near", Duration::ZERO), ("far", DISTANCE)] {
        let placed = bench.start(&[ONE_SLOT], distance)?;
        let (short, long) = (placed.job(ONCE)?, placed.job(OFTEN)?);
        let rate = long.bytes as f64 / long.wall.as_secs_f64();
        println!("worker_{name}_short_job {:.2} s", short.wall.as_secs_f64());
        println!("worker_{name}_throughput {:.1} MB/s", rate / 1e6);
        println!(
            "worker_{name}_round_trips_per_1000_objects {:.2} round trips",
            1_000.0 * long.round_trips as f64 / long.objects as f64
        );
        rates.push(rate);
    }
    let [near, far] = rates[..] else { bail!("not both were measured") };
    println!("worker_far_share {:.1} %", 100.0 * far / near);
    Ok(())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        let seconds = |times: &[u64]| times.iter().map(|time| Duration::from_secs(*time)).collect();
        assert_eq!(median(seconds(&[9, 1, 2])), Duration::from_secs(2));
        assert_eq!(median(Vec::new()), Duration::ZERO);
    }
}
