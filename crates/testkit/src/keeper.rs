//! The shell that keeps a server of a test's own: it starts the server in a folder, does what its standard input says,
//! and stops the server and removes the folder when that ends. So the server ends with whoever holds it, also when that
//! is a static, and also when the test process is killed.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use parking_lot::Mutex;

/// `nobody` on the systems this runs on: servers refuse to be the superuser's.
pub(crate) const UNPRIVILEGED: u32 = 65_534;

pub(crate) struct Keeper {
    folder: PathBuf,
    shell: Child,
    /// A line for each order.
    answers: Mutex<BufReader<ChildStdout>>,
}

impl Keeper {
    /// Runs a script with `programs`, the folder and `options` as its arguments; `None` if the server does not start.
    /// The script writes the server's words into `log` in the folder, and answers each order with `done` or `failed`.
    pub fn start(
        script: &str,
        programs: &Path,
        folder: PathBuf,
        options: impl IntoIterator<Item = OsString>,
    ) -> Option<Keeper> {
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(programs).arg(&folder).args(options);
        command.current_dir(&folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        if rustix::process::geteuid().is_root() {
            chown(&folder, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
            command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
        }
        let mut shell = command.spawn().unwrap();
        let answers = Mutex::new(BufReader::new(shell.stdout.take().expect("its output is piped")));
        let keeper = Keeper { folder, shell, answers };
        if keeper.has_done() {
            return Some(keeper);
        }
        eprintln!("the server of {} did not start:\n{}", programs.display(), keeper.log());
        None
    }

    pub fn order(&self, order: &str) {
        let mut orders = self.shell.stdin.as_ref().expect("its input is piped");
        writeln!(orders, "{order}").unwrap();
        assert!(self.has_done(), "the server does not obey `{order}`:\n{}", self.log());
    }

    /// Waits for the answer, for which the script itself waits a minute at most.
    fn has_done(&self) -> bool {
        let mut answer = String::new();
        self.answers.lock().read_line(&mut answer).unwrap();
        answer.trim() == "done"
    }

    /// What the server says of itself.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // The shell stops the server and removes the folder; nothing is left to tell of.
        let _ = self.shell.wait();
    }
}
