//! Running `git` for a remote: what it may do, what it is told, and when it is ended.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use std::{env, thread};

use domesday_scheduler::waiting;
use rustix::process::{Pid, Signal, kill_process_group};

use super::access::{Authentication, Trust};
use super::url::RemoteUrl;
use crate::error::GitError;

/// How often it is looked whether anybody still waits.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often the size of what is fetched is looked at.
const MEASURE_EVERY: Duration = Duration::from_secs(1);
/// Bytes of what `git` says that are looked at, and those at the end of it that are passed on.
const SAID_MAX: u64 = 64 << 10;
const TOLD_MAX: usize = 1 << 10;
/// What `git` and the programs it starts need of the surroundings: to be found, to reach the network, and
/// to use the keys of whoever runs this.
const INHERITED: [&str; 15] = [
    "PATH",
    "HOME",
    "USER",
    "TMPDIR",
    "SSH_AUTH_SOCK",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "GIT_SSL_CAINFO",
];
const SETTINGS: [&str; 20] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.askPass=",
    "core.attributesFile=/dev/null",
    "credential.helper=",
    "fetch.fsckObjects=false",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    // To another host a secret must not go.
    "http.followRedirects=false",
    // A server that says nothing for minutes is gone.
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=300",
    "protocol.allow=never",
    "protocol.https.allow=always",
    "protocol.http.allow=always",
    "protocol.ssh.allow=always",
    "protocol.git.allow=always",
    "protocol.file.allow=always",
    "protocol.ext.allow=never",
];
/// What `git` says when it is not let in, in lower case.
const DENIED: [&str; 9] = [
    "authentication failed",
    "could not read username",
    "could not read password",
    "terminal prompts disabled",
    "returned error: 401",
    "returned error: 403",
    "permission denied (",
    "permission denied, ",
    "access denied",
];
/// What `ssh` says of a host that it does not know, or that has another key now, in lower case.
const UNKNOWN_HOST: &str = "host key verification failed";
/// What it says when it has taken a key that it did not know.
const ACCEPTED: &str = "Permanently added";
/// What it says of a repository that is not there, or that is hidden from whoever may not read it.
const NOT_FOUND: [&str; 2] = ["repository not found", "' not found"];

/// Somebody waits for what `git` does. When this goes, it is ended.
pub struct Alive(Arc<()>);

/// Tells whether anybody still waits.
pub struct Watch(Weak<()>);

impl Alive {
    pub fn new() -> Alive {
        Alive(Arc::new(()))
    }

    pub fn watch(&self) -> Watch {
        Watch(Arc::downgrade(&self.0))
    }
}

impl Watch {
    pub(super) fn is_over(&self) -> bool {
        self.0.strong_count() == 0 || waiting::is_cancelled()
    }
}

/// One run of `git`.
pub(super) struct Run<'a> {
    pub url: &'a RemoteUrl,
    pub authentication: &'a Authentication,
    pub watch: &'a Watch,
    /// Where it runs: the mirror that is updated, or the folder of all, which is in no repository's worktree.
    pub folder: &'a Path,
    /// The program for `ssh`, as the shell has it.
    pub ssh: &'a str,
    pub trust: &'a Trust,
    /// Where a private key may be for the while.
    pub key_path: PathBuf,
    /// A lock that `git` holds too: should this process be killed, it stays locked until `git` has ended.
    pub lock: &'a File,
    pub limits: Limits,
}

/// When `git` is ended.
pub(super) struct Limits {
    /// What is made, and the bytes that it may have.
    pub size: Option<(PathBuf, u64)>,
    pub time: Duration,
}

impl Run<'_> {
    /// Runs `git` with a command and what it is given; how many lines it wrote.
    pub fn git(&self, name: &str, arguments: &[OsString]) -> Result<usize, GitError> {
        let failed = |detail: String| {
            let what = format!("git {name} of {}", self.url);
            GitError::Io { what, source: io::Error::other(detail) }
        };
        let mut command = self.command()?;
        self.trust.hand_over(&mut command);
        let _key =
            self.authentication.hand_over(&mut command, self.url, self.ssh, self.trust, &self.key_path)?;
        let child = command.arg(name).args(arguments).spawn();
        let mut child = child.map_err(|error| failed(format!("{error}; is git installed?")))?;
        let lines = count_lines(child.stdout.take());
        let said = self.wait(&mut child, failed)?;
        let status = child.wait().map_err(|error| failed(error.to_string()))?;
        if status.success() {
            for line in said.lines().filter(|line| line.contains(ACCEPTED)) {
                tracing::warn!(url = %self.url, "{line}");
            }
            return Ok(lines.join().unwrap_or_default());
        }
        let said = self.authentication.scrub(&said);
        let lower = said.to_lowercase();
        let said = &said[said.ceil_char_boundary(said.len().saturating_sub(TOLD_MAX))..];
        let said = &one_line(said);
        if lower.contains(UNKNOWN_HOST) {
            return Err(GitError::Denied(format!(
                "{}: {said}; its key is not in `known_hosts`, or is another one there: connect once with `ssh` and \
                 compare the key, or set `ssh_host_keys` to `accept_new` to trust the first one that is seen",
                self.url
            )));
        }
        if lower.contains("certificate") && self.url.as_str().starts_with("https") {
            return Err(failed(format!("{said}; name the authority that signed it with `ca_file`")));
        }
        if DENIED.iter().any(|sign| lower.contains(sign)) {
            return Err(GitError::Denied(format!("{}: {said}; {}", self.url, self.authentication.hint())));
        }
        if NOT_FOUND.iter().any(|sign| lower.contains(sign)) {
            return Err(failed(format!("{said}: it is gone, or the credential may not see it")));
        }
        Err(GitError::Unavailable(format!("git {name} of {}: {said}", self.url)))
    }

    fn command(&self) -> Result<Command, GitError> {
        let mut command = Command::new("git");
        command.env_clear();
        command.envs(INHERITED.iter().filter_map(|name| Some((name, env::var_os(name)?))));
        // What it says is looked at.
        command.env("LC_ALL", "C");
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        command.env("GIT_ATTR_NOSYSTEM", "1").env("GIT_NO_REPLACE_OBJECTS", "1");
        command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_ASKPASS", "").env("SSH_ASKPASS_REQUIRE", "never");
        command.env("GIT_CEILING_DIRECTORIES", self.folder.parent().unwrap_or(self.folder));
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        let lock = self.lock.try_clone().map_err(|error| GitError::io(self.folder, error))?;
        command.stdin(lock).stdout(Stdio::piped()).stderr(Stdio::piped());
        // All that it starts is ended with it.
        command.current_dir(self.folder).process_group(0);
        Ok(command)
    }

    /// Waits until `git` has said everything, and ends it when it takes too long or too much, or nobody
    /// waits any more.
    fn wait(&self, child: &mut Child, failed: impl Fn(String) -> GitError) -> Result<String, GitError> {
        let mut errors = child.stderr.take().expect("its errors were asked for");
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut said = Vec::new();
            let _ = errors.by_ref().take(SAID_MAX).read_to_end(&mut said);
            // The rest is read too, lest it waits for a reader.
            let _ = io::copy(&mut errors, &mut io::sink());
            let _ = sender.send(String::from_utf8_lossy(&said).trim().to_owned());
        });
        let begun = Instant::now();
        let mut measured = begun;
        loop {
            match receiver.recv_timeout(LOOK_EVERY) {
                Ok(said) => return Ok(said),
                Err(RecvTimeoutError::Disconnected) => return Ok(String::new()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let mut fits = Ok(());
            if let Some((path, max)) = &self.limits.size
                && measured.elapsed() >= MEASURE_EVERY
            {
                fits = super::check_size(path, *max, self.url);
                measured = Instant::now();
            }
            let over = match fits {
                Err(too_large) => too_large,
                Ok(()) if begun.elapsed() > self.limits.time => {
                    failed(format!("takes more than {} seconds", self.limits.time.as_secs()))
                }
                Ok(()) if self.watch.is_over() => {
                    failed("ended, for nobody waits for it any more".to_owned())
                }
                Ok(()) => continue,
            };
            let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
            let _ = child.wait();
            return Err(over);
        }
    }
}

/// What `git` and the programs it starts say on several lines, on one.
fn one_line(said: &str) -> String {
    said.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

fn count_lines(output: Option<ChildStdout>) -> thread::JoinHandle<usize> {
    thread::spawn(move || {
        let (mut lines, mut buffer) = (0, [0; 4096]);
        let Some(mut output) = output else { return 0 };
        while let Ok(got @ 1..) = output.read(&mut buffer) {
            lines += buffer[..got].iter().filter(|&&byte| byte == b'\n').count();
        }
        lines
    })
}
