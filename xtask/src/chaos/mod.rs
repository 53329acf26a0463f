//! `cargo xtask chaos`: the proof of the fleet.
//!
//! Real processes of the binary, two node groups with two orchestrators and three workers each, work on a
//! real PostgreSQL. One undisturbed job says what there is to find, and the embedded store must say the same.
//! Then job after job is disturbed: processes are killed and suspended, the database is stopped, connections
//! break in the middle of COMMIT, jobs are paused while everything restarts. Each must leave in the book
//! exactly what the undisturbed one did: nothing lost, nothing twice. At every look, no task is in another
//! node group's hands and each job has one owner.

mod book;
mod cast;
mod outcome;
mod plan;
mod poison;
mod round;
mod tally;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use domesday_testkit::fleet::Fleet;
use domesday_testkit::postgres::{Durability, Server, Settings};
use domesday_testkit::proxy::Proxy;

use crate::crash::content::COUNTED_RULE;
use crate::crash::tree::{self, Shape, Tree};
use crate::workspace::{Build, Workspace};
use book::Book;
use cast::{Cast, GROUPS};
use outcome::Outcome;
use plan::{Planner, Step};
use round::Round;
use tally::Tally;

/// The lease of every process.
const LEASE: Duration = Duration::from_secs(3);
/// How often a process renews it.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How soon an idle fleet begins with a job.
const WAKE_UP: Duration = Duration::from_secs(1);
/// What a slow machine may take beyond two leases: ten processes and a database share its processors.
const ALLOWANCE: Duration = Duration::from_secs(4);
/// A job, or any one wait, that takes longer is stuck.
const HANG: Duration = Duration::from_secs(240);
/// What the proxy adds to every round trip: as much as between neighbouring regions.
const ROUND_TRIP: Duration = Duration::from_millis(5);
const SHAPE: Shape = Shape { files: 6_000, many: 12_000, dense: 1_000, archives: 30 };
/// A poor key, and therefore only for this.
const KEY: &str = "0123456789abcdef0123456789abcdef";
const KEY_FILE: &str = "fingerprint.key";
const TEMPLATE: &str = "everything";

pub struct Options {
    /// How long to go on; at 0 every disturbance has one turn.
    pub minutes: u64,
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { minutes: 0, seed: 1 }
    }
}

/// What a run works with.
struct Chaos<'s> {
    server: &'s Server,
    proxy: &'s Proxy,
    direct: &'s Fleet,
    book: Book<'s>,
    cast: Cast<'s>,
    planner: Planner,
    /// What every job must leave in the book.
    expected: Outcome,
    tally: Tally,
}

pub fn run(options: &Options) -> Result<()> {
    let begun = Instant::now();
    let workspace = Workspace::load()?;
    let folder = workspace.target.join("chaos");
    let logs = folder.join(format!("run-{}", std::process::id()));
    fs::create_dir_all(&logs).with_context(|| format!("cannot make {}", logs.display()))?;
    let ended = run_in(options, &workspace, &folder, &logs, begun);
    match &ended {
        Ok(()) => fs::remove_dir_all(&logs)?,
        Err(_) => println!("chaos: logs and books are kept for a look: {}", logs.display()),
    }
    ended.with_context(|| {
        format!("run again with `cargo xtask chaos --minutes {} --seed {}`", options.minutes, options.seed)
    })
}

fn run_in(
    options: &Options,
    workspace: &Workspace,
    folder: &Path,
    logs: &Path,
    begun: Instant,
) -> Result<()> {
    let trees = GROUPS
        .iter()
        .zip([2 * options.seed, 2 * options.seed + 1])
        .map(|(_, seed)| tree::prepare(folder, seed, SHAPE))
        .collect::<Result<Vec<Tree>>>()?;
    let binary = workspace.build(folder, Build::WithFailpoints)?;
    println!("chaos: trees and binary ready after {} s", begun.elapsed().as_secs());

    let embedded = embedded(&binary, logs, &trees)?;
    let server = Server::start_with(Settings { durability: Durability::Process, ..Settings::default() });
    let proxy = Proxy::start(server.port());
    proxy.set_round_trip(ROUND_TRIP);
    let url = server.create_database();
    let direct = Fleet::new(&binary, logs, &url, KEY, LEASE);
    let proxied = Fleet::new(&binary, logs, &proxy.through(&url), KEY, LEASE);
    compose(&direct, &trees)?;
    let mut chaos = Chaos {
        server: &server,
        proxy: &proxy,
        direct: &direct,
        book: Book::new(&server, &url),
        cast: Cast::start(&direct, &proxied),
        planner: Planner::new(options.seed),
        expected: embedded,
        tally: Tally::default(),
    };
    let took = Round::run(&mut chaos, &mut Vec::new()).context("the undisturbed job")?;
    chaos.check()?;
    println!(
        "chaos: the undisturbed job took {:.1} s and is what the embedded store says",
        took.as_secs_f64()
    );
    chaos.rounds(options, begun)?;
    poison::check(&mut chaos)?;
    chaos.check()?;
    let late = tally::late(logs)?;
    let counts = proxy.counts();
    chaos.tally.resets_before = counts.resets_before;
    chaos.tally.resets_after = counts.resets_after;
    chaos.tally.print(chaos.cast.starts, chaos.cast.ended, late, begun.elapsed());
    Ok(())
}

impl Chaos<'_> {
    /// Rounds until the time is up; without any time until each disturbance had its turn.
    fn rounds(&mut self, options: &Options, begun: Instant) -> Result<()> {
        let until = begun + Duration::from_secs(60 * options.minutes);
        let mut steps: Vec<Step> = if options.minutes == 0 { self.planner.one_of_each() } else { Vec::new() };
        while !steps.is_empty() || Instant::now() < until {
            if steps.is_empty() {
                steps = self.planner.round();
            }
            self.tally.rounds += 1;
            let before = steps.len();
            let took = Round::run(self, &mut steps)?;
            println!(
                "chaos: round {}: {} disturbances, {:.1} s, {} offences so far",
                self.tally.rounds,
                before - steps.len(),
                took.as_secs_f64(),
                self.tally.offences.len()
            );
            if self.tally.lost + self.tally.duplicated > 0 {
                break;
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        match self.tally.offences.as_slice() {
            [] => Ok(()),
            offences => bail!("{} offences:\n  {}", offences.len(), offences.join("\n  ")),
        }
    }
}

/// What a scan of each tree on the embedded store leaves in its book.
fn embedded(binary: &Path, logs: &Path, trees: &[Tree]) -> Result<Outcome> {
    let mut all = Outcome::default();
    let fleet = Fleet::new(binary, logs, "", KEY, LEASE);
    for (group, tree) in GROUPS.iter().zip(trees) {
        let state = logs.join(format!("embedded-{group}"));
        fs::create_dir_all(&state)?;
        let key: PathBuf = state.join(KEY_FILE);
        fs::write(&key, KEY)?;
        fs::set_permissions(&key, PermissionsExt::from_mode(0o600))?;
        let mut scan =
            fleet.command(["scan", "--quiet", "--format", "jsonl", "--output", "/dev/null", "--state"]);
        scan.arg(&state).arg(&tree.path).env_remove("DOMESDAY_STORE");
        let answer = fleet.finish(scan);
        // Cut archives are problems of the tree, and in the book like everything else.
        if !matches!(answer.code, Some(1 | 3)) {
            bail!("the scan on the embedded store failed: {answer:?}");
        }
        let outcome = Outcome::of_embedded(&state, group)?;
        let (found, planted) = (outcome.count_of_rule(COUNTED_RULE), tree.planted);
        if found != planted {
            bail!("the embedded store has {found} of {planted} values of {COUNTED_RULE} in {group}");
        }
        all = all.and(outcome);
    }
    println!("chaos: {} findings, {} problems to find", all.count("finding"), all.count("problem"));
    for total in all.totals() {
        println!("chaos:   {total}");
    }
    Ok(all)
}

/// Makes the book, the data sources and the template.
fn compose(fleet: &Fleet, trees: &[Tree]) -> Result<()> {
    let key = format!("env:{}", domesday_testkit::fleet::KEY_VARIABLE);
    run_all(fleet, &[&["db", "migrate", "--fingerprint-key", &key]])?;
    for (group, tree) in GROUPS.iter().zip(trees) {
        let root = format!("root={}", tree.path.display());
        let source =
            ["datasource", "add", group, "--kind", "filesystem", "--node-group", group, "--set", &root];
        run_all(fleet, &[&source])?;
    }
    run_all(fleet, &[&["template", "add", TEMPLATE, "--datasource", "eu", "--datasource", "us"]])
}

fn run_all(fleet: &Fleet, commands: &[&[&str]]) -> Result<()> {
    for command in commands {
        let answer = fleet.run(*command);
        if answer.code != Some(0) {
            bail!("`domesday {}` failed: {answer:?}", command.join(" "));
        }
    }
    Ok(())
}
