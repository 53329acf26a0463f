//! Real processes of the `domesday` binary on a real database: orchestrators, workers and commands.
//!
//! Each process has a log of its own in one folder. Every process ends with whoever started it: when it is
//! dropped, and by the kernel when the test is killed. Every wait is bounded. It must know nothing of what
//! the processes do with each other: they meet in the database, and so do tests.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::wait;

/// How long a command may take, or a process to end that was asked to.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The variable with the fleet's fingerprint key.
pub const KEY_VARIABLE: &str = "DOMESDAY_TEST_FINGERPRINT_KEY";
/// Lines of a log that are shown of a process that ended on its own.
const LOG_TAIL: usize = 20;

/// What all processes of a fleet have in common.
pub struct Fleet {
    binary: PathBuf,
    /// Logs and whatever else the processes leave.
    folder: PathBuf,
    store: String,
    /// The value of the fingerprint key, for the environment of its processes.
    key: String,
    /// The lease time as an argument, such as `3s`.
    lease: String,
    commands: AtomicU64,
}

impl Fleet {
    /// A fleet of this binary on the database at `store`; its logs go into `folder`.
    pub fn new(binary: &Path, folder: &Path, store: &str, key: &str, lease: Duration) -> Fleet {
        fs::create_dir_all(folder).unwrap();
        Fleet {
            binary: binary.to_owned(),
            folder: folder.to_owned(),
            store: store.to_owned(),
            key: key.to_owned(),
            lease: format!("{}s", lease.as_secs().max(1)),
            commands: AtomicU64::new(0),
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The binary in this fleet's surroundings. The kernel kills it when the thread that starts it ends,
    /// however that ends.
    pub fn command<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(&self.binary).args(arguments);
        command.current_dir(&self.folder).stdin(Stdio::null()).env_clear();
        command.env("HOME", self.folder.join("home")).env("NO_COLOR", "1");
        command.env("DOMESDAY_STORE", &self.store).env(KEY_VARIABLE, &self.key);
        command
    }

    /// Runs a command of the fleet to its end.
    pub fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Answer {
        self.finish(self.command(arguments))
    }

    /// Runs it with more in its surroundings.
    pub fn finish(&self, mut command: Command) -> Answer {
        let number = self.commands.fetch_add(1, Ordering::Relaxed);
        let place = |kind: &str| self.folder.join(format!("command-{number}.{kind}"));
        // Files, not pipes: nobody need read them while it runs.
        let (out, err) = (File::create(place("out")).unwrap(), File::create(place("err")).unwrap());
        let what = format!("{command:?}");
        let mut child = command.stdout(out).stderr(err).spawn().unwrap();
        let ended = wait_for(&mut child, PATIENCE);
        if ended.is_none() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let read = |kind: &str| String::from_utf8_lossy(&fs::read(place(kind)).unwrap()).into_owned();
        let answer =
            Answer { what, code: ended.and_then(|status| status.code()), out: read("out"), err: read("err") };
        if answer.code == Some(0) {
            let _ = (fs::remove_file(place("out")), fs::remove_file(place("err")));
        }
        answer
    }

    /// Starts an orchestrator; `name` is that of its log.
    pub fn orchestrator(&self, name: &str, group: &str, more: &[&str]) -> Process {
        let fixed = ["orchestrator", "--node-group", group, "--lease", &self.lease];
        self.start(name, self.command(fixed.iter().chain(more)))
    }

    /// Starts a worker; `name` is that of its log.
    pub fn worker(&self, name: &str, group: &str, more: &[&str]) -> Process {
        let key = format!("env:{KEY_VARIABLE}");
        let fixed = ["worker", "--node-group", group, "--fingerprint-key", &key, "--lease", &self.lease];
        self.start(name, self.command(fixed.iter().chain(more)))
    }

    /// Starts a process that goes on; what it says is added to its log.
    pub fn start(&self, name: &str, mut command: Command) -> Process {
        let log = self.folder.join(format!("{name}.log"));
        let file = OpenOptions::new().create(true).append(true).open(&log).unwrap();
        command.stdout(file.try_clone().unwrap()).stderr(file);
        Process { name: name.to_owned(), log, child: command.spawn().unwrap() }
    }
}

/// How a command ended, and what it said.
#[derive(Clone, Debug)]
pub struct Answer {
    pub what: String,
    /// `None` when it was stopped for taking too long.
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Answer {
    /// What it said, of one that must have succeeded.
    #[track_caller]
    pub fn ok(self) -> String {
        self.exits(0)
    }

    /// What it said, of one that must have ended with this code.
    #[track_caller]
    pub fn exits(self, code: i32) -> String {
        let Answer { what, code: found, out, err } = self;
        assert_eq!(found, Some(code), "{what}\n{out}\n{err}");
        out
    }
}

/// A process that goes on until it is ended.
pub struct Process {
    name: String,
    log: PathBuf,
    child: Child,
}

impl Process {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Why it must not have ended, if it did: for a message.
    pub fn ended_by_itself(&mut self) -> Option<String> {
        let status = self.ended()?;
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(LOG_TAIL)..].join("\n");
        Some(format!("{} ended with {status}:\n{tail}", self.name))
    }

    pub fn signal(&self, signal: Signal) {
        // One that ended meanwhile needs none: it is a zombie until it is waited for, never someone else.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Stops it where it is.
    pub fn suspend(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    /// Asks it to end and waits; `None` when it does not.
    pub fn terminate(&mut self) -> Option<ExitStatus> {
        self.signal(Signal::TERM);
        wait_for(&mut self.child, PATIENCE)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Whether a process was ended by this signal.
pub fn ended_by(status: ExitStatus, signal: Signal) -> bool {
    status.signal() == Some(signal.as_raw())
}

fn wait_for(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    wait::until(patience, || child.try_wait().unwrap()).map(|(_, status)| status)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet(folder: &Path) -> Fleet {
        Fleet::new(Path::new("/bin/sh"), folder, "postgresql://nowhere/x", "k", Duration::from_secs(3))
    }

    #[test]
    fn a_command_has_the_fleets_surroundings_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let fleet = fleet(folder.path());
        let answer = fleet.run(["-c", "echo $DOMESDAY_STORE $PATH_OF_NO_ONE; echo said >&2; exit 3"]);
        assert_eq!((answer.code, answer.err.as_str()), (Some(3), "said\n"));
        assert_eq!(answer.out, "postgresql://nowhere/x\n");
    }

    #[test]
    fn a_process_ends_when_it_is_dropped_and_keeps_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let fleet = fleet(folder.path());
        let mut process = fleet.start("p", fleet.command(["-c", "echo begun; while :; do :; done"]));
        let begun = wait::until(PATIENCE, || process.log().contains("begun").then_some(()));
        assert!(begun.is_some() && process.ended_by_itself().is_none());
        process.suspend();
        process.go_on();
        let status = process.terminate().unwrap();
        assert!(ended_by(status, Signal::TERM));
        assert!(process.ended_by_itself().unwrap().contains("begun"));
        let id = process.id();
        drop(process);
        assert!(!Path::new(&format!("/proc/{id}")).exists());
    }
}
