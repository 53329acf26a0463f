//! `bench threads`: the tree scanned with one thread and with two, and on one processor and on two.
//!
//! The first says what a second scan thread is worth on a machine that is there anyway: listing and the book use its
//! other processors already while one thread scans. The second says how the whole scan scales.

use anyhow::Result;

use super::process::{Series, TASKSET, Timed, alternate, peer};
use super::table::Target::AtLeast;
use super::tree::{scan_anew, scan_anew_by};
use super::{Rows, Setup};

pub const ABOUT: &str = "`domesday scan <tree> --state <new> --jobs 1` and `--jobs 2` in turn: what else runs in a \
    scan (listing, the store's writer) has threads of its own in both, and with one scan thread a processor to itself. \
    Then everything on one processor (`taskset -c 0 … --jobs 1`) and on two (`taskset -c 0,1 … --jobs 2`) in turn. \
    Medians.";

/// How many times as fast twice as much is to be.
const SPEEDUP_MIN: f64 = 1.8;

pub fn run(setup: &Setup, rows: &mut Rows) -> Result<()> {
    let (binary, tree) = (setup.binary()?, setup.tree()?);
    let one = || scan_anew(&setup.folder, binary, tree, &["--jobs", "1"]);
    let two = || scan_anew(&setup.folder, binary, tree, &["--jobs", "2"]);
    let [one, two] = alternate(setup.options.rounds, [Some(&one as _), Some(&two as _)])?;
    compare(rows, ["one scan thread", "two scan threads"], [&one, &two]);
    if peer(TASKSET).is_none() {
        rows.missing("two processors beside one", "taskset is not installed");
        return Ok(());
    }
    let on = |processors: &str, jobs: &str| {
        let timed = Timed::on_processors(&setup.folder, processors, binary);
        scan_anew_by(timed, &setup.folder, tree, &["--jobs", jobs])
    };
    let (one, two) = (|| on("0", "1"), || on("0,1", "2"));
    let [one, two] = alternate(setup.options.rounds, [Some(&one as _), Some(&two as _)])?;
    compare(rows, ["one processor", "two processors"], [&one, &two]);
    Ok(())
}

fn compare(rows: &mut Rows, [less, more]: [&str; 2], [one, two]: [&Series; 2]) {
    rows.add(less, one.seconds(), "s");
    rows.add(more, two.seconds(), "s");
    rows.add(format!("{less}, processor time"), one.cpu_seconds(), "s");
    rows.add(format!("{more}, processor time"), two.cpu_seconds(), "s");
    let speedup = one.seconds() / two.seconds();
    rows.judge(format!("{more} beside {less}"), speedup, "times", AtLeast(SPEEDUP_MIN));
}
