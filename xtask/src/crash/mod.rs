//! `cargo xtask crash`: the proof of recovery.
//!
//! The real binary scans a tree once undisturbed. Then the same command is started again and again and
//! killed each time, by failpoints inside the store's writes and by SIGKILL at any moment, until it is
//! left to run to its end. What it reports must be what the undisturbed scan reported, nothing lost and
//! nothing twice, the catalogue of its tables likewise, and the book must be whole; and so must what a scan reports that goes on from it and reads only
//! what has changed. One such series with a state folder of its own is a round.

mod book;
pub mod content;
pub mod long;
mod plan;
mod process;
pub mod random;
mod report;
pub mod source;
mod tables;
pub mod tree;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::workspace::{Build, Workspace};
use plan::{PATIENCE_AFTER, Planner};
use process::{Ended, Scan};
use report::{Difference, Report};
use source::Kind;
use tree::Shape;

/// Entries of the tree's large folder: far too many for one batch.
const MANY: u64 = 100_000;
/// Files full of values: their results do not fit one batch.
const DENSE: u64 = 6_000;
/// Archives of each kind.
const ARCHIVES: u64 = 60;
/// How much smaller the tree is for sources other than files.
const SMALLER: u64 = 10;
/// The key of all fingerprints; with the same one, two states have the same fingerprints.
const KEY_FILE: &str = "fingerprint.key";

pub struct Options {
    pub kills: u64,
    pub seed: u64,
    /// Ordinary files in the tree; the other parts of it are always the same.
    pub files: u64,
    /// As what kind of source the tree is scanned.
    pub source: Kind,
}

impl Default for Options {
    fn default() -> Options {
        Options { kills: 15, seed: 1, files: 20_000, source: Kind::Files }
    }
}

impl Options {
    /// Sources other than files are smaller: what is proved of the engine and the store is proved with files.
    fn shape(&self) -> Shape {
        match self.source {
            Kind::Files => Shape { files: self.files, many: MANY, dense: DENSE, archives: ARCHIVES },
            _ => Shape {
                files: self.files / SMALLER,
                many: MANY / SMALLER,
                dense: DENSE / SMALLER,
                archives: ARCHIVES / SMALLER,
            },
        }
    }
}

pub fn run(options: &Options) -> Result<()> {
    let begun = Instant::now();
    let workspace = Workspace::load()?;
    let folder = workspace.target.join("crash");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let source = source::prepare(options.source, &folder, options.seed, options.shape())?;
    let scan = Scan {
        binary: workspace.build(&folder, Build::WithFailpoints)?,
        arguments: source.arguments.clone(),
        environment: source.environment.clone(),
        has_catalog: options.source.is_database(),
    };
    println!("crash: {} and binary ready after {} s", options.source.name(), begun.elapsed().as_secs());

    let reference = Reference::make(&scan, &folder.join("reference"), source.planted)?;
    println!(
        "crash: reference: {} findings, objects {}, exit code {}, {:.2} s",
        reference.report.count(),
        reference.report.objects(),
        reference.report.code,
        reference.took.as_secs_f64(),
    );
    let mut harness = Harness {
        planner: Planner::new(options.seed, reference.took),
        reference,
        scan,
        folder,
        tally: Tally::default(),
    };
    while harness.tally.kills < options.kills {
        harness.round(options.kills - harness.tally.kills)?;
    }
    harness.tally.print(begun.elapsed());
    if harness.tally.differing > 0 {
        bail!(
            "{} of {} rounds differ from the undisturbed scan; run again with --source {} --kills {} --seed {} \
             --files {}",
            harness.tally.differing,
            harness.tally.rounds,
            options.source.name(),
            options.kills,
            options.seed,
            options.files
        );
    }
    Ok(())
}

/// The undisturbed scan.
struct Reference {
    report: Report,
    catalog: Value,
    state: PathBuf,
    took: Duration,
}

impl Reference {
    fn make(scan: &Scan, state: &Path, planted: u64) -> Result<Reference> {
        // The first one warms the page cache, so that the second is as fast as those that follow.
        let mut last = None;
        for _ in 0..2 {
            remove(state)?;
            last = Some(scan.run(state, &report_path(state), None)?);
        }
        let (code, took) = match last {
            Some(Ended::Reported { code, after }) => (code, after),
            Some(Ended::Failed(said)) => bail!("the undisturbed scan failed: {said}"),
            Some(Ended::Killed(_)) | None => bail!("the undisturbed scan was killed"),
        };
        let report = Report::read(&report_path(state), code)?;
        let found = report.count_of_rule(content::COUNTED_RULE);
        if found != planted {
            bail!("the undisturbed scan found {found} of {planted} values of {}", content::COUNTED_RULE);
        }
        let offences = book::offences(state)?;
        if !offences.is_empty() {
            bail!("the book of the undisturbed scan is not whole:\n  {}", offences.join("\n  "));
        }
        Ok(Reference { report, catalog: scan.catalog(state)?, state: state.to_owned(), took })
    }
}

struct Harness {
    planner: Planner,
    reference: Reference,
    scan: Scan,
    folder: PathBuf,
    tally: Tally,
}

impl Harness {
    /// Kills one scan at most `left` times, lets it end, and compares.
    fn round(&mut self, left: u64) -> Result<()> {
        self.tally.rounds += 1;
        let state = self.folder.join(format!("round-{}", self.tally.rounds));
        remove(&state)?;
        fs::create_dir(&state)?;
        fs::copy(self.reference.state.join(KEY_FILE), state.join(KEY_FILE)).context("cannot copy the key")?;
        let (kills, before) = (self.planner.kills(left), self.tally.kills);
        let mut abandonments = 0;
        let difference = loop {
            let killed = self.tally.kills - before;
            let disturbance = (killed < kills).then(|| self.planner.next(killed == 0, abandonments));
            self.tally.starts += 1;
            self.tally.patient += u64::from(disturbance.is_some() && abandonments >= PATIENCE_AFTER);
            match self.scan.run(&state, &report_path(&state), disturbance.as_ref())? {
                Ended::Killed(verb) => {
                    let standing = book::standing(&state);
                    abandonments = standing.abandonments;
                    let stage = disturbance.and_then(|it| it.failpoint).map(|failpoint| failpoint.stage);
                    self.tally.kill(verb.zip(stage), standing.phase);
                }
                Ended::Reported { code, .. } => {
                    let report = Report::read(&report_path(&state), code)?;
                    if report.is_final() || disturbance.is_none() {
                        break self.compare(&state, &report)?;
                    }
                    self.tally.interrupts += 1;
                }
                Ended::Failed(said) => {
                    let line = format!("{disturbance:?} ended otherwise: {}", said.trim());
                    break Difference { lines: vec![line], ..Difference::default() };
                }
            }
        };
        let verdict = if difference.is_none() { "same" } else { "DIFFERENT" };
        println!("crash: round {}: {} kills, {verdict}", self.tally.rounds, self.tally.kills - before);
        for line in &difference.lines {
            println!("    {line}");
        }
        if difference.is_none() {
            remove(&state)?;
        } else {
            println!("    kept for a look: {}", state.display());
        }
        self.tally.add(&difference);
        Ok(())
    }

    fn compare(&self, state: &Path, report: &Report) -> Result<Difference> {
        let mut difference = report.difference(&self.reference.report);
        difference.lines.extend(book::offences(state)?);
        report::compare(
            "catalogue",
            &self.scan.catalog(state)?,
            &self.reference.catalog,
            &mut difference.lines,
        );
        // What a scan that goes on from this one says must be the same, though it reads next to nothing.
        let again = match self.scan.again(state, &report_path(state))? {
            Ended::Reported { code, .. } => Report::read(&report_path(state), code)?,
            Ended::Failed(said) => bail!("the scan after it failed: {said}"),
            Ended::Killed(_) => bail!("the scan after it was killed"),
        };
        let expected = self.reference.report.without_amounts();
        Ok(difference.and("scanned again", again.without_amounts().difference(&expected)))
    }
}

/// Beside the state folder, which is the binary's own.
fn report_path(state: &Path) -> PathBuf {
    state.with_extension("json")
}

fn remove(state: &Path) -> Result<()> {
    if state.exists() {
        fs::remove_dir_all(state).with_context(|| format!("cannot remove {}", state.display()))?;
    }
    let report = report_path(state);
    if report.exists() {
        fs::remove_file(&report).with_context(|| format!("cannot remove {}", report.display()))?;
    }
    Ok(())
}

#[derive(Default)]
struct Tally {
    rounds: u64,
    starts: u64,
    kills: u64,
    /// Starts that ended early because they were asked to.
    interrupts: u64,
    /// Starts left alone for longer, because a task had been hit too often.
    patient: u64,
    differing: u64,
    lost: u64,
    duplicated: u64,
    foreign: u64,
    by_place: BTreeMap<String, u64>,
    by_phase: BTreeMap<&'static str, u64>,
}

impl Tally {
    /// `failpoint` is the verb and the stage it was at, if it was not a kill from outside.
    fn kill(&mut self, failpoint: Option<(String, &str)>, phase: &'static str) {
        let place = failpoint.map_or("time".to_owned(), |(verb, stage)| format!("{verb}:{stage}"));
        self.kills += 1;
        *self.by_place.entry(place).or_default() += 1;
        *self.by_phase.entry(phase).or_default() += 1;
    }

    fn add(&mut self, difference: &Difference) {
        self.differing += u64::from(!difference.is_none());
        self.lost += difference.lost;
        self.duplicated += difference.duplicated;
        self.foreign += difference.foreign;
    }

    fn print(&self, took: Duration) {
        println!("crash: kills by place");
        for (place, count) in &self.by_place {
            println!("{count:>8}  {place}");
        }
        println!("crash: kills by what the job was at");
        for (phase, count) in &self.by_phase {
            println!("{count:>8}  {phase}");
        }
        println!(
            "crash: {} kills, {} interrupts, {} rounds, {} starts ({} left alone for longer), {} s: \
             {} findings lost, {} duplicated, {} foreign, {} rounds differ",
            self.kills,
            self.interrupts,
            self.rounds,
            self.starts,
            self.patient,
            took.as_secs(),
            self.lost,
            self.duplicated,
            self.foreign,
            self.differing
        );
    }
}
