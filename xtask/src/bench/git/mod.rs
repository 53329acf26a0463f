//! `bench git`: a long history scanned whole into a new book, beside git's own way of handing out the same objects, and
//! beside the fastest peer.

mod history;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::process::{self, Ran, Timed, alternate};
use super::table::Target::{AtLeast, AtMost};
use super::tree::scan_anew;
use super::{Rows, Setup, output};

pub const ABOUT: &str = "`domesday scan <repository> --state <new> --quiet --format jsonl --output <file>`, \
    `git cat-file --batch-all-objects --batch --unordered` and `kingfisher scan <repository> --no-validate \
    --no-update-check -q --format json -o <file>` in turn, on a history made of the releases of packages. Medians.";

/// Where benchmarks keep their material, below the user's cache folder.
const MATERIAL: &str = "domesday-bench";

pub fn run(setup: &Setup, rows: &mut Rows) -> Result<()> {
    let cache = process::cache().context("there is no cache folder; set XDG_CACHE_HOME")?.join(MATERIAL);
    std::fs::create_dir_all(&cache).with_context(|| format!("cannot make {}", cache.display()))?;
    let repository = history::prepare(&cache)?;
    describe(&repository, rows)?;
    let (binary, folder) = (setup.binary()?, &setup.folder);
    let ours = || scan_anew(folder, binary, &repository, &[]);
    let git = || cat_file(folder, &repository);
    let kingfisher = process::peer("kingfisher");
    let peer = kingfisher.as_ref().map(|peer| || process::kingfisher(folder, peer, &repository));
    let contenders = [Some(&ours as _), Some(&git as _), peer.as_ref().map(|run| run as _)];
    let [ours, git, peer] = alternate(setup.options.rounds, contenders)?;
    rows.add("domesday scan", ours.seconds(), "s");
    rows.add("domesday scan, time on processors", ours.cpu_seconds(), "s");
    rows.add("domesday scan, memory", ours.peak_mib(), "MiB");
    rows.add("git cat-file", git.seconds(), "s");
    rows.judge("of git cat-file's time", ours.seconds() / git.seconds(), "times", AtMost(0.6));
    match peer.last() {
        None => rows.missing("kingfisher", "it is not installed"),
        Some(_) => {
            rows.add("kingfisher", peer.seconds(), "s");
            rows.judge("as fast as kingfisher", peer.seconds() / ours.seconds(), "times", AtLeast(7.0));
        }
    }
    Ok(())
}

/// How much the repository holds.
fn describe(repository: &Path, rows: &mut Rows) -> Result<()> {
    let mut list = Command::new("git");
    list.current_dir(repository).args(["cat-file", "--batch-all-objects", "--unordered"]);
    let objects = output(list.arg("--batch-check=%(objecttype) %(objectsize)"))?;
    let (mut commits, mut blobs, mut bytes) = (0u64, 0u64, 0u64);
    for line in objects.lines() {
        match line.split_once(' ') {
            Some(("commit", _)) => commits += 1,
            Some(("blob", size)) => {
                blobs += 1;
                bytes += size.parse::<u64>().context("git names no size")?;
            }
            _ => {}
        }
    }
    rows.add("commits", commits as f64, "commits");
    rows.add("blobs", blobs as f64, "blobs");
    rows.add("blobs, together", bytes as f64 / 1e6, "MB");
    Ok(())
}

/// Decodes every object once, and hands it out.
fn cat_file(folder: &Path, repository: &Path) -> Result<Ran> {
    let mut timed = Timed::new(folder, "git");
    timed.command.current_dir(repository);
    timed.command.args(["cat-file", "--batch-all-objects", "--batch", "--unordered"]);
    timed.run(&[0])
}
