//! Programs that are measured: ours, the floor and the peer, in turn; their time, and the most memory they had.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Tells what a process and its children used, once they ended.
const TIME: &str = "/usr/bin/time";
/// Keeps a process and its threads to some processors.
pub const TASKSET: &str = "taskset";
/// Where programs to compare with are kept, below the user's cache folder.
const PEERS: &str = "domesday-bench/peers/bin";
/// What a scan ends with: nothing found, something found, not everything read.
pub const SCANNED: &[i32] = &[0, 1, 3];

/// A program to be run and measured.
pub struct Timed {
    pub command: Command,
    /// What the measured program used.
    used: PathBuf,
}

/// What one run took.
#[derive(Clone, Debug)]
pub struct Ran {
    pub wall: Duration,
    /// On processors, in the program and in the kernel for it.
    pub cpu: Duration,
    pub peak_kib: u64,
    pub errors: String,
}

impl Timed {
    /// `folder` is for what was measured.
    pub fn new(folder: &Path, program: impl AsRef<OsStr>) -> Timed {
        let used = folder.join("used");
        let mut command = Command::new(TIME);
        command.arg("-o").arg(&used).args(["-f", "%U %S %M"]).arg(program);
        Timed { command, used }
    }

    /// The same on some processors only, by their numbers as `taskset -c` takes them.
    pub fn on_processors(folder: &Path, processors: &str, program: &Path) -> Timed {
        let mut timed = Timed::new(folder, TASKSET);
        timed.command.args(["-c", processors]).arg(program);
        timed
    }

    /// Runs it to its end, which is to be one of these codes. Its output is not looked at.
    pub fn run(mut self, codes: &[i32]) -> Result<Ran> {
        self.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let begun = Instant::now();
        let output =
            self.command.output().with_context(|| format!("cannot run {TIME}: install package `time`"))?;
        let wall = begun.elapsed();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.code().is_some_and(|code| codes.contains(&code)) {
            bail!("{:?} ended with {}: {errors}", self.command, output.status);
        }
        let text = std::fs::read_to_string(&self.used).context("cannot read what a program used")?;
        let (cpu, peak_kib) = used(&text).with_context(|| format!("{TIME} says `{text}`"))?;
        Ok(Ran { wall, cpu, peak_kib, errors })
    }
}

/// The last line says it; one before it may tell of an exit code.
fn used(text: &str) -> Option<(Duration, u64)> {
    let mut fields = text.lines().last()?.split(' ');
    let mut seconds = || fields.next()?.parse::<f64>().ok();
    let cpu = Duration::from_secs_f64(seconds()? + seconds()?);
    Some((cpu, fields.next()?.parse().ok()?))
}

/// Runs of one program.
#[derive(Default)]
pub struct Series(Vec<Ran>);

impl Series {
    /// Seconds by the clock, in the median.
    pub fn seconds(&self) -> f64 {
        median(self.0.iter().map(|ran| ran.wall.as_secs_f64()).collect())
    }

    /// Seconds on processors, in the median.
    pub fn cpu_seconds(&self) -> f64 {
        median(self.0.iter().map(|ran| ran.cpu.as_secs_f64()).collect())
    }

    /// The most memory of all runs.
    pub fn peak_mib(&self) -> f64 {
        self.0.iter().map(|ran| ran.peak_kib).max().unwrap_or(0) as f64 / 1024.0
    }

    pub fn last(&self) -> Option<&Ran> {
        self.0.last()
    }
}

/// One who takes part in a comparison.
pub type Contender<'a> = &'a dyn Fn() -> Result<Ran>;

/// Runs all in turn, so often; so that what else the machine does falls on all of them. One round more comes first
/// and warms the caches.
pub fn alternate<const N: usize>(rounds: u64, contenders: [Option<Contender<'_>>; N]) -> Result<[Series; N]> {
    let mut series = std::array::from_fn(|_| Series::default());
    for round in 0..=rounds {
        for (contender, series) in contenders.iter().zip(&mut series) {
            let Some(contender) = contender else { continue };
            let ran = contender()?;
            if round > 0 {
                series.0.push(ran);
            }
        }
    }
    Ok(series)
}

pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}

/// The user's cache folder.
pub fn cache() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    named.or_else(|| Some(std::env::home_dir()?.join(".cache")))
}

/// A program to compare with: on the path, or kept for benchmarks. It is never installed from here.
pub fn peer(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let kept = cache().map(|cache| cache.join(PEERS));
    std::env::split_paths(&path).chain(kept).map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// Ripgrep for one literal: the floor, for it reads everything and looks for next to nothing.
pub fn ripgrep(folder: &Path, program: &Path, target: &Path) -> Result<Ran> {
    let mut timed = Timed::new(folder, program);
    timed.command.args(["-uuu", "-c", "AKIA[0-9A-Z]{16}"]).arg(target);
    timed.run(&[0, 1])
}

/// The fastest peer, without asking anybody whether what it finds is valid.
pub fn kingfisher(folder: &Path, program: &Path, target: &Path) -> Result<Ran> {
    let mut timed = Timed::new(folder, program);
    timed.command.arg("scan").arg(target).args([
        "--no-validate",
        "--no-update-check",
        "-q",
        "--format",
        "json",
    ]);
    timed.command.arg("-o").arg(folder.join("peer.json"));
    timed.run(&[0, 1, 3, 200, 205])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![9.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(Vec::new()), 0.0);
    }

    #[test]
    fn what_a_program_used_is_in_the_last_line() {
        let text = "Command exited with non-zero status 1\n1.50 0.25 4096\n";
        assert_eq!(used(text), Some((Duration::from_millis(1_750), 4_096)));
        assert_eq!(used(""), None);
        assert_eq!(used("1.0 many 3"), None);
    }

    #[test]
    fn contenders_take_turns_and_the_first_round_does_not_count() {
        let order = std::cell::RefCell::new(Vec::new());
        let run = |name: char, seconds: u64| {
            order.borrow_mut().push(name);
            let wall = Duration::from_secs(seconds);
            Ok(Ran { wall, cpu: wall, peak_kib: 1024 * seconds, errors: String::new() })
        };
        let (ours, theirs) = (|| run('o', 2), || run('t', 8));
        let [ours, missing, theirs] = alternate(2, [Some(&ours), None, Some(&theirs)]).unwrap();
        assert_eq!(order.into_inner(), ['o', 't', 'o', 't', 'o', 't']);
        assert_eq!((ours.seconds(), theirs.cpu_seconds(), theirs.peak_mib()), (2.0, 8.0, 8.0));
        assert!(missing.last().is_none());
    }
}
