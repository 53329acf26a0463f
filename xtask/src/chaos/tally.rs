//! What a run counts, and how it says it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

/// What a process says when the book refused a late write of it.
const REFUSED: &[&str] = &["claim lost; results refused", "job changed by another; looking again"];
/// What it says when it noticed in time, and did not even try.
const DROPPED: &[&str] = &["packet dropped with the lease"];

#[derive(Default)]
pub struct Tally {
    pub rounds: u64,
    pub kills: u64,
    pub stops: u64,
    pub suspensions: u64,
    pub pauses: u64,
    pub resets_before: u64,
    pub resets_after: u64,
    pub lost: u64,
    pub duplicated: u64,
    pub samples: u64,
    /// Times a child job changed its owner.
    pub takeovers: u64,
    /// The longest time from a job's submission until an idle fleet began with it.
    pub slowest_start: Duration,
    /// The longest time from a pause until nothing ran.
    pub slowest_pause: Duration,
    /// The longest recovery, by what it was from.
    recoveries: BTreeMap<&'static str, (u64, Duration)>,
    pub offences: Vec<String>,
}

impl Tally {
    pub fn recovered(&mut self, from: &'static str, took: Duration) {
        let (count, longest) = self.recoveries.entry(from).or_default();
        *count += 1;
        *longest = took.max(*longest);
    }

    pub fn print(&self, starts: u64, ended: u64, late: Late, took: Duration) {
        println!("chaos: recoveries, and the longest");
        for (from, (count, longest)) in &self.recoveries {
            println!("{count:>8}  {:>6.2} s  {from}", longest.as_secs_f64());
        }
        let longest = self.recoveries.values().map(|(_, longest)| *longest).max().unwrap_or_default();
        println!(
            "chaos: {} rounds in {} s: {} kills, {starts} process starts, {ended} ended by themselves, {} database stops, \
             {} suspensions, {} pauses (quiet after {:.2} s at most), {} + {} resets before and after COMMIT, \
             {} owners changed, {} samples, jobs began after {:.2} s at most",
            self.rounds,
            took.as_secs(),
            self.kills,
            self.stops,
            self.suspensions,
            self.pauses,
            self.slowest_pause.as_secs_f64(),
            self.resets_before,
            self.resets_after,
            self.takeovers,
            self.samples,
            self.slowest_start.as_secs_f64(),
        );
        println!(
            "chaos: {} late writes refused, {} packets dropped in time, {} lost, {} duplicated, longest recovery {:.2} s, {} offences",
            late.refused,
            late.dropped,
            self.lost,
            self.duplicated,
            longest.as_secs_f64(),
            self.offences.len()
        );
    }
}

/// What became of work under a lease that was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Late {
    /// Late writes that the book refused.
    pub refused: u64,
    /// Work that the process itself dropped.
    pub dropped: u64,
}

/// By what the processes say in their logs.
pub fn late(folder: &Path) -> Result<Late> {
    let mut late = Late::default();
    for entry in std::fs::read_dir(folder).context("cannot read the folder of logs")? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "log") {
            let log = String::from_utf8_lossy(&std::fs::read(&path)?).into_owned();
            let lines_with = |words: &[&str]| {
                log.lines().filter(|line| words.iter().any(|word| line.contains(word))).count() as u64
            };
            late.refused += lines_with(REFUSED);
            late.dropped += lines_with(DROPPED);
        }
    }
    Ok(late)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_work_is_counted_over_all_logs() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("a.log", "x\n{\"message\":\"claim lost; results refused\"}\n");
        write("b.log", "job changed by another; looking again\npacket dropped with the lease\n");
        write("c.txt", "claim lost; results refused\n");
        assert_eq!(late(folder.path()).unwrap(), Late { refused: 2, dropped: 1 });
    }
}
