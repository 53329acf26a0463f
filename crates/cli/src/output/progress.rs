//! One line on standard error while a scan runs, and no trace of it afterwards.
//!
//! Silent unless standard error is a terminal, so that logs and pipes never hold it. The line is made
//! by a function of the snapshot and the pace, which is all there is to test.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::human::{bytes, count, counted, duration};

/// Draws a second; a snapshot that comes earlier waits for the next draw.
const DRAWS_PER_SECOND: u8 = 10;
/// The pace is that of about this long, so that one slow object neither hides nor fakes progress.
const PACE_MEMORY: Duration = Duration::from_secs(5);
/// No estimate before this much time: the first moments say little.
const ESTIMATE_AFTER: Duration = Duration::from_secs(2);

/// A scan at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProgressSnapshot {
    pub objects_done: u64,
    pub objects_listed: u64,
    pub bytes_done: u64,
    /// Bytes of the listed objects, by their listed size.
    pub bytes_listed: u64,
    pub findings: u64,
    /// Whether `objects_listed` and `bytes_listed` are final.
    pub listing_done: bool,
    /// How long a source is still left alone, and why.
    pub waiting: Option<(Duration, Arc<str>)>,
    /// Since the scan began here; a resumed scan begins with work already done.
    pub elapsed: Duration,
}

/// Shows snapshots. Dropping it clears the line.
pub struct Progress {
    bar: Option<ProgressBar>,
    pace: Pace,
    /// Where there is no line, waiting is said once when it begins.
    says_waiting: bool,
    was_waiting: bool,
}

impl Progress {
    /// A line on standard error if that is a terminal and the user did not ask for quiet.
    pub fn new(quiet: bool) -> Progress {
        let bar = (!quiet && io::stderr().is_terminal()).then(|| {
            let target = ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND);
            let style =
                ProgressStyle::with_template("{spinner} {wide_msg}").expect("the template is well-formed");
            ProgressBar::with_draw_target(None, target).with_style(style)
        });
        Progress { says_waiting: !quiet && bar.is_none(), bar, pace: Pace::default(), was_waiting: false }
    }

    pub fn update(&mut self, snapshot: &ProgressSnapshot) {
        if let Some(bar) = &self.bar {
            self.pace.update(snapshot);
            bar.set_message(line(snapshot, self.pace.bytes_per_second));
            bar.tick();
        }
        let begins_to_wait = snapshot.waiting.is_some() && !self.was_waiting;
        self.was_waiting = snapshot.waiting.is_some();
        if self.says_waiting
            && begins_to_wait
            && let Some(left) = &snapshot.waiting
        {
            crate::say(format_args!("{}", waiting(left)));
        }
    }

    /// Runs something that writes to the terminal, with the line out of its way.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Removes the line for good.
    pub fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

/// A moving average of bytes per second.
#[derive(Default)]
struct Pace {
    last: Option<ProgressSnapshot>,
    bytes_per_second: f64,
}

impl Pace {
    fn update(&mut self, now: &ProgressSnapshot) {
        let Some(last) = &self.last else {
            self.last = Some(now.clone());
            return;
        };
        let seconds = now.elapsed.saturating_sub(last.elapsed).as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        let current = now.bytes_done.saturating_sub(last.bytes_done) as f64 / seconds;
        // Short of its memory an average would still be full of the zero it began with.
        let memory = PACE_MEMORY.min(last.elapsed).as_secs_f64();
        let weight = seconds / (seconds + memory);
        self.bytes_per_second += weight * (current - self.bytes_per_second);
        self.last = Some(now.clone());
    }
}

fn waiting((left, why): &(Duration, Arc<str>)) -> String {
    let left = duration(Duration::from_secs(left.as_secs().max(1)));
    format!("waiting {left} for the source: {}", why.lines().next().unwrap_or_default())
}

fn line(snapshot: &ProgressSnapshot, bytes_per_second: f64) -> String {
    let more = if snapshot.listing_done { "" } else { "+" };
    let mut parts = vec![
        format!("{}/{}{more} objects", count(snapshot.objects_done), count(snapshot.objects_listed)),
        bytes(snapshot.bytes_done),
        format!("{}/s", bytes(bytes_per_second as u64)),
        counted(snapshot.findings, "finding"),
    ];
    parts.extend(snapshot.waiting.as_ref().map(waiting));
    parts.extend(time_left(snapshot, bytes_per_second).map(|left| match left.as_secs() {
        // An estimate has no tenths.
        seconds @ 0..60 => format!("about {seconds} s left"),
        _ => format!("about {} left", duration(left)),
    }));
    parts.join("  ")
}

/// How long the listed bytes will take, once all are listed.
fn time_left(snapshot: &ProgressSnapshot, bytes_per_second: f64) -> Option<Duration> {
    let left = snapshot.bytes_listed.checked_sub(snapshot.bytes_done).filter(|&left| left > 0)?;
    if !snapshot.listing_done || snapshot.elapsed < ESTIMATE_AFTER || bytes_per_second < 1.0 {
        return None;
    }
    Some(Duration::from_secs((left as f64 / bytes_per_second).ceil() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64, bytes_done: u64) -> ProgressSnapshot {
        ProgressSnapshot {
            objects_done: 1204,
            objects_listed: 5678,
            bytes_done,
            bytes_listed: 100 << 20,
            findings: 1,
            listing_done: true,
            waiting: None,
            elapsed: Duration::from_secs(seconds),
        }
    }

    #[test]
    fn the_line_estimates_only_what_is_known() {
        let mib = (1 << 20) as f64;
        let now = at(10, 20 << 20);
        assert_eq!(
            line(&now, 2.0 * mib),
            "1,204/5,678 objects  20.0 MiB  2.0 MiB/s  1 finding  about 40 s left"
        );
        let listing = ProgressSnapshot { listing_done: false, ..now.clone() };
        assert_eq!(line(&listing, 2.0 * mib), "1,204/5,678+ objects  20.0 MiB  2.0 MiB/s  1 finding");
        let left = (Duration::from_millis(61_300), "too many requests".into());
        let waits = ProgressSnapshot { waiting: Some(left), ..listing };
        assert!(
            line(&waits, mib).ends_with("1 finding  waiting 1 min 01 s for the source: too many requests")
        );
        assert_eq!(time_left(&at(1, 20 << 20), mib), None, "too early");
        assert_eq!(time_left(&at(10, 200 << 20), mib), None, "more was read than listed");
        assert_eq!(time_left(&now, 0.0), None, "nothing moves");
    }

    #[test]
    fn the_pace_follows_and_leaves_out_what_a_resumed_scan_began_with() {
        let mut pace = Pace::default();
        for second in 0..60 {
            pace.update(&at(second, (1 << 40) + second * 1000));
        }
        assert!((pace.bytes_per_second - 1000.0).abs() < 1.0, "{}", pace.bytes_per_second);
        for second in 60..120 {
            pace.update(&at(second, (1 << 40) + 60_000 + (second - 59) * 3000));
        }
        assert!((pace.bytes_per_second - 3000.0).abs() < 50.0, "{}", pace.bytes_per_second);
    }

    #[test]
    fn a_pipe_sees_nothing() {
        let mut progress =
            Progress { bar: None, pace: Pace::default(), says_waiting: false, was_waiting: false };
        progress.update(&at(1, 1));
        assert_eq!(progress.suspend(|| 7), 7);
        progress.finish();
        assert!(Progress::new(true).bar.is_none());
    }
}
