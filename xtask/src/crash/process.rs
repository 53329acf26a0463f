//! One start of the real binary, and how it ended: by itself, by a failpoint, or by a kill from outside.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A start that takes longer is stuck.
const HANG: Duration = Duration::from_secs(180);
/// What the binary says on standard error before a failpoint ends it.
const FAILPOINT_MARK: &str = "failpoint ";
/// The exit code for wrong usage and fatal errors; every other one comes with a report.
const EXIT_FATAL: i32 = 2;

/// The binary ends itself the nth time a verb comes to a stage of its write.
#[derive(Clone, Debug)]
pub struct Failpoint {
    pub verb: &'static str,
    pub stage: &'static str,
    pub nth: u64,
}

/// How a start is disturbed: a signal from outside after so long, if no failpoint ended it before.
#[derive(Clone, Debug)]
pub struct Disturbance {
    pub failpoint: Option<Failpoint>,
    pub after: Duration,
    pub signal: Signal,
}

pub enum Ended {
    /// The verb of the failpoint, or `None` for a kill from outside.
    Killed(Option<String>),
    /// By itself, with a report.
    Reported { code: i32, after: Duration },
    /// By itself, without one, or not at all: what it said.
    Failed(String),
}

/// The command that is run again and again.
pub struct Scan {
    pub binary: PathBuf,
    /// What is scanned, and with which options.
    pub arguments: Vec<OsString>,
    pub environment: Vec<(&'static str, String)>,
    /// Whether what is scanned has tables.
    pub has_catalog: bool,
}

/// What of a catalogue's entry is another in every scan.
const OF_THIS_SCAN: [&str; 2] = ["job", "as_of"];

impl Scan {
    /// Every column of every table, as the catalogue of the last scan has it.
    pub fn catalog(&self, state: &Path) -> Result<Value> {
        if !self.has_catalog {
            return Ok(Value::Null);
        }
        let mut command = Command::new(&self.binary);
        command.args(["catalog", "--all", "--level", "low", "--format", "json", "--state"]).arg(state);
        let answer = command.output().context("cannot run the catalogue")?;
        if !answer.status.success() {
            bail!("the catalogue failed: {}", String::from_utf8_lossy(&answer.stderr));
        }
        let mut columns: Value =
            serde_json::from_slice(&answer.stdout).context("the catalogue is not JSON")?;
        for column in columns.as_array_mut().context("the catalogue is no list")? {
            let column = column.as_object_mut().context("a column is no object")?;
            column.retain(|name, _| !OF_THIS_SCAN.contains(&name.as_str()));
        }
        Ok(columns)
    }

    /// Everything is read, whatever an earlier start had read.
    pub fn run(&self, state: &Path, report: &Path, disturbance: Option<&Disturbance>) -> Result<Ended> {
        self.start(state, report, &["--rescan"], disturbance)
    }

    /// Undisturbed, and from where the last one ended.
    pub fn again(&self, state: &Path, report: &Path) -> Result<Ended> {
        self.start(state, report, &[], None)
    }

    fn start(
        &self,
        state: &Path,
        report: &Path,
        flags: &[&str],
        disturbance: Option<&Disturbance>,
    ) -> Result<Ended> {
        let mut command = Command::new(&self.binary);
        command.args(["scan", "--quiet", "--format", "json", "--output"]).arg(report);
        command.arg("--state").arg(state).args(flags).args(&self.arguments);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
            .env_remove("DOMESDAY_FAILPOINT")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        if let Some(Failpoint { verb, stage, nth }) = disturbance.and_then(|it| it.failpoint.as_ref()) {
            command.env("DOMESDAY_FAILPOINT", format!("{verb}:{stage}:{nth}"));
        }
        let begun = Instant::now();
        let mut child = command.spawn().context("cannot start the binary")?;
        // Standard error ends with the process, however that ends: its end is what is waited for.
        let mut stderr = child.stderr.take().context("standard error is piped")?;
        let (tell, wait) = mpsc::channel();
        std::thread::spawn(move || {
            let mut said = Vec::new();
            let _ = stderr.read_to_end(&mut said);
            let _ = tell.send(String::from_utf8_lossy(&said).into_owned());
        });
        let mut ended = None;
        if let Some(Disturbance { after, signal, .. }) = disturbance {
            ended = wait.recv_timeout(*after).ok();
            if ended.is_none() {
                kill_process(Pid::from_child(&child), *signal).context("cannot signal the binary")?;
            }
        }
        let ended = ended.or_else(|| wait.recv_timeout(HANG).ok());
        let is_stuck = ended.is_none();
        if is_stuck {
            child.kill().context("cannot kill the binary")?;
        }
        let status = child.wait().context("cannot wait for the binary")?;
        let said = ended.or_else(|| wait.recv().ok()).unwrap_or_default();
        if is_stuck {
            return Ok(Ended::Failed(format!("did not end within {} s: {said}", HANG.as_secs())));
        }
        Ok(match (status.code(), status.signal()) {
            (Some(EXIT_FATAL), _) => Ended::Failed(format!("fatal error: {said}")),
            (Some(code), _) => Ended::Reported { code, after: begun.elapsed() },
            (_, Some(signal)) if signal == Signal::KILL.as_raw() => {
                let verb = said.lines().find_map(|line| line.strip_prefix(FAILPOINT_MARK));
                Ended::Killed(verb.map(str::to_owned))
            }
            _ => Ended::Failed(format!("{status}: {said}")),
        })
    }
}
