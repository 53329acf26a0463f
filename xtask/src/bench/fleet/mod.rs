//! `bench fleet`: what a fleet costs and how fast it is, on a local PostgreSQL that writes everything to disk before
//! it answers.

mod placed;

use std::time::Duration;

use anyhow::{Result, bail};
use domesday_testkit::postgres::{Durability, Server, Settings};

use super::process::median;
use super::{Rows, Setup};
use placed::{Bench, Logins, OFTEN, ONCE, ONE_SLOT};

pub const ABOUT: &str = "A fleet on a local PostgreSQL with `fsync` on: the store alone (example `postgres_rates`); the \
    tree by one orchestrator and two single-slot workers beside `domesday scan`; and one worker near the database and \
    100 ms away from it. Medians.";

const STORE: &[&str] = &["--package", "domesday-store", "--example", "postgres_rates"];
/// Added to every round trip of the distant worker.
const DISTANCE: Duration = Duration::from_millis(100);

/// What can be measured, in the order in which it is.
pub const PARTS: [&str; 3] = ["store", "scan", "distance"];

pub fn run(setup: &Setup, rows: &mut Rows) -> Result<()> {
    let options = &setup.options;
    let server = Server::start_with(Settings { durability: Durability::Machine, ..Settings::default() });
    if options.wants_part("store") {
        let url = server.create_database();
        rows.read(&setup.example(STORE, &[&url])?);
    }
    if !options.wants_part("scan") && !options.wants_part("distance") {
        return Ok(());
    }
    let bench = Bench::new(&server, setup.binary()?, &setup.folder, setup.tree()?)?;
    if options.wants_part("scan") {
        against_embedded(&bench, options.rounds, rows)?;
    }
    if options.wants_part("distance") {
        distance(&bench, rows)?;
    }
    Ok(())
}

/// The same tree by one orchestrator and two single-slot workers, and by `domesday scan`.
fn against_embedded(bench: &Bench<'_>, rounds: u64, rows: &mut Rows) -> Result<()> {
    let (mut embedded, mut fleet) = (Vec::new(), Vec::new());
    let mut written = None;
    let near = bench.start(Logins::Owner, &[ONE_SLOT, ONE_SLOT], Duration::ZERO)?;
    for round in 0..=rounds {
        let (scan, job) = (bench.scan()?, near.job(ONCE)?);
        // The first ones warm the page cache.
        if round > 0 {
            embedded.push(scan.as_secs_f64());
            fleet.push(job.wall.as_secs_f64());
            written = Some(job);
        }
    }
    drop(near);
    let mut bound = Vec::new();
    let near = bench.start(Logins::Bound, &[ONE_SLOT, ONE_SLOT], Duration::ZERO)?;
    for round in 0..=rounds {
        let job = near.job(ONCE)?;
        if round > 0 {
            bound.push(job.wall.as_secs_f64());
        }
    }
    let (embedded, fleet, bound) = (median(embedded), median(fleet), median(bound));
    rows.add("scan embedded", embedded, "s");
    rows.add("scan fleet", fleet, "s");
    rows.add("scan fleet difference", fleet - embedded, "s");
    rows.add("scan fleet, of embedded's time", fleet / embedded, "times");
    rows.add("scan fleet, logins bound to a node group", bound, "s");
    rows.add("scan fleet, bound, of the owner's time", bound / fleet, "times");
    let Some(job) = written else { bail!("no job was measured") };
    let per_object = |count: u64| count as f64 / job.objects as f64;
    rows.add("objects", job.objects as f64, "objects");
    rows.add("inserted per object", per_object(job.rows.inserted), "rows");
    rows.add("updated per object", per_object(job.rows.updated), "rows");
    rows.add("deleted per object", per_object(job.rows.deleted), "rows");
    rows.add("log per object", per_object(job.rows.log_bytes), "bytes");
    rows.add("book per object", per_object(job.rows.book_bytes), "bytes");
    rows.add("transactions per 1000 objects", 1_000.0 * per_object(job.rows.commits), "transactions");
    Ok(())
}

/// One single-slot worker, near the database and far from it: the time a short job takes, most of it the way down
/// the tree, level by level; and the throughput of a long one.
fn distance(bench: &Bench<'_>, rows: &mut Rows) -> Result<()> {
    let mut rates = Vec::new();
    for (name, distance) in [("near", Duration::ZERO), ("far", DISTANCE)] {
        let placed = bench.start(Logins::Owner, &[ONE_SLOT], distance)?;
        let (short, long) = (placed.job(ONCE)?, placed.job(OFTEN)?);
        let rate = long.bytes as f64 / long.wall.as_secs_f64();
        rows.add(format!("worker {name}, short job"), short.wall.as_secs_f64(), "s");
        rows.add(format!("worker {name}, throughput"), rate / 1e6, "MB/s");
        let round_trips = 1_000.0 * long.round_trips as f64 / long.objects as f64;
        rows.add(format!("worker {name}, per 1000 objects"), round_trips, "round trips");
        rates.push(rate);
    }
    let [near, far] = rates[..] else { bail!("not both were measured") };
    rows.add("worker far, of near's throughput", 100.0 * far / near, "%");
    Ok(())
}
