//! `bench tree`: a source tree scanned into a new book, beside the floor (ripgrep for one literal) and the fastest
//! peer; one small file; and the tree scanned again where nothing changed, beside a listing with the same attributes.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::process::{self, Ran, SCANNED, Series, Timed, alternate};
use super::table::Target::{AtLeast, AtMost};
use super::{Rows, Setup};

pub const ABOUT: &str = "`domesday scan <tree> --state <new> --quiet --format jsonl --output <file>`, \
    `rg -uuu -c 'AKIA[0-9A-Z]{16}' <tree>` and `kingfisher scan <tree> --no-validate --no-update-check -q --format json -o <file>` \
    in turn; the same of one small file; and the first command again on the same state, beside \
    `find <tree> -printf '%s %T@ %C@ %i\\n'`. Medians; memory is the most of all rounds.";

/// Rounds of a file that takes milliseconds, for each of the tree.
const SMALL_ROUNDS: u64 = 4;
const SMALL_NAME: &str = "settings.py";
const SMALL: &str = "import os\n\nDEBUG = False\nALLOWED_HOSTS = [\"localhost\"]\nTIME_ZONE = \"UTC\"\n\
    DATABASE = os.environ.get(\"DATABASE\", \"shop\")\n";

pub fn run(setup: &Setup, rows: &mut Rows) -> Result<()> {
    let bench = Bench {
        setup,
        binary: setup.binary()?,
        ripgrep: process::peer("rg"),
        kingfisher: process::peer("kingfisher"),
    };
    bench.whole(rows)?;
    bench.small(rows)?;
    bench.unchanged(rows)
}

struct Bench<'s> {
    setup: &'s Setup,
    binary: &'s Path,
    ripgrep: Option<PathBuf>,
    kingfisher: Option<PathBuf>,
}

impl Bench<'_> {
    fn whole(&self, rows: &mut Rows) -> Result<()> {
        let (tree, folder) = (self.setup.tree()?, &self.setup.folder);
        let ours = || scan_anew(folder, self.binary, tree, &[]);
        let floor = self.ripgrep.as_ref().map(|rg| move || process::ripgrep(folder, rg, tree));
        let peer = self.kingfisher.as_ref().map(|peer| move || process::kingfisher(folder, peer, tree));
        let contenders =
            [Some(&ours as _), floor.as_ref().map(|run| run as _), peer.as_ref().map(|run| run as _)];
        let [ours, floor, peer] = alternate(self.setup.options.rounds, contenders)?;
        rows.add("domesday scan", ours.seconds(), "s");
        rows.add("domesday scan, time on processors", ours.cpu_seconds(), "s");
        rows.judge("domesday scan, memory", ours.peak_mib(), "MiB", AtMost(200.0));
        rows.add("findings", findings(folder)? as f64, "findings");
        match floor.last() {
            None => rows.missing("ripgrep", "rg is not installed"),
            Some(_) => {
                rows.add("ripgrep", floor.seconds(), "s");
                rows.judge("of ripgrep's time", ours.seconds() / floor.seconds(), "times", AtMost(3.0));
            }
        }
        match peer.last() {
            None => rows.missing("kingfisher", "it is not installed"),
            Some(_) => {
                rows.add("kingfisher", peer.seconds(), "s");
                rows.add("kingfisher, memory", peer.peak_mib(), "MiB");
                rows.judge("as fast as kingfisher", peer.seconds() / ours.seconds(), "times", AtLeast(6.0));
            }
        }
        Ok(())
    }

    fn small(&self, rows: &mut Rows) -> Result<()> {
        let folder = &self.setup.folder;
        let file = folder.join(SMALL_NAME);
        std::fs::write(&file, SMALL).with_context(|| format!("cannot write {}", file.display()))?;
        let ours = || scan_anew(folder, self.binary, &file, &[]);
        let peer = self.kingfisher.as_ref().map(|peer| || process::kingfisher(folder, peer, &file));
        let contenders = [Some(&ours as _), peer.as_ref().map(|run| run as _)];
        let [ours, peer] = alternate(SMALL_ROUNDS * self.setup.options.rounds, contenders)?;
        rows.judge("one small file", 1e3 * ours.seconds(), "ms", AtMost(60.0));
        rows.add("one small file, memory", ours.peak_mib(), "MiB");
        match peer.last() {
            None => rows.missing("one small file, kingfisher", "it is not installed"),
            Some(_) => {
                rows.add("one small file, kingfisher", 1e3 * peer.seconds(), "ms");
                let share = ours.seconds() / peer.seconds();
                rows.judge("one small file, of kingfisher's time", share, "times", AtMost(0.1));
            }
        }
        Ok(())
    }

    fn unchanged(&self, rows: &mut Rows) -> Result<()> {
        let (tree, folder) = (self.setup.tree()?, &self.setup.folder);
        scan_anew(folder, self.binary, tree, &[])?;
        let again = || scan(Timed::new(folder, self.binary), folder, tree, &[]);
        let listing = || {
            let mut find = Timed::new(folder, "find");
            find.command.arg(tree).args(["-printf", "%s %T@ %C@ %i\\n"]);
            find.run(&[0])
        };
        let [again, listing]: [Series; 2] =
            alternate(self.setup.options.rounds, [Some(&again as _), Some(&listing as _)])?;
        rows.add("scan again, nothing changed", again.seconds(), "s");
        rows.add("find", listing.seconds(), "s");
        rows.judge("scan again, of find's time", again.seconds() / listing.seconds(), "times", AtMost(2.5));
        Ok(())
    }
}

/// A scan into a new book.
pub fn scan_anew(folder: &Path, binary: &Path, target: &Path, options: &[&str]) -> Result<Ran> {
    scan_anew_by(Timed::new(folder, binary), folder, target, options)
}

/// The same, by a program that is begun in its own way.
pub fn scan_anew_by(timed: Timed, folder: &Path, target: &Path, options: &[&str]) -> Result<Ran> {
    let state = folder.join("state");
    if state.exists() {
        std::fs::remove_dir_all(&state).with_context(|| format!("cannot remove {}", state.display()))?;
    }
    scan(timed, folder, target, options)
}

/// A scan into the book that is there.
fn scan(mut timed: Timed, folder: &Path, target: &Path, options: &[&str]) -> Result<Ran> {
    timed.command.arg("scan").arg(target).arg("--state").arg(folder.join("state"));
    timed.command.args(["--quiet", "--format", "jsonl", "--output"]).arg(folder.join("findings.jsonl"));
    timed.command.args(options);
    timed.run(SCANNED)
}

/// How many the last scan reported.
fn findings(folder: &Path) -> Result<usize> {
    let report = std::fs::read_to_string(folder.join("findings.jsonl")).context("cannot read the report")?;
    Ok(report.lines().filter(|line| !line.starts_with(r#"{"summary":"#)).count())
}
