//! `bench threads`: the tree scanned with one thread and with two.

use anyhow::Result;

use super::process::alternate;
use super::table::Target::AtLeast;
use super::tree::scan_anew;
use super::{Rows, Setup};

pub const ABOUT: &str = "`domesday scan <tree> --state <new> --jobs 1` and `--jobs 2` in turn. Medians. What else \
    runs in a scan (listing, the store's writer) has threads of its own in both.";

pub fn run(setup: &Setup, rows: &mut Rows) -> Result<()> {
    let (binary, tree) = (setup.binary()?, setup.tree()?);
    let one = || scan_anew(&setup.folder, binary, tree, &["--jobs", "1"]);
    let two = || scan_anew(&setup.folder, binary, tree, &["--jobs", "2"]);
    let [one, two] = alternate(setup.options.rounds, [Some(&one as _), Some(&two as _)])?;
    rows.add("one thread", one.seconds(), "s");
    rows.add("two threads", two.seconds(), "s");
    rows.add("one thread, time on processors", one.cpu_seconds(), "s");
    rows.add("two threads, time on processors", two.cpu_seconds(), "s");
    rows.judge("throughput with two threads", one.seconds() / two.seconds(), "times", AtLeast(1.8));
    Ok(())
}
