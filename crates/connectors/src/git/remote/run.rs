//! Running `git` for a remote: what it may do, what it is told, and when it is ended.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{env, thread};

use domesday_connector::credentials::Secret;

use super::RemoteUrl;
use crate::git::error::GitError;

/// How often the size of what is fetched is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Bytes of what `git` says that are kept.
const SAID_MAX: u64 = 4 << 10;
/// The variables in which the user and the token are handed over.
const USER_VARIABLE: &str = "DOMESDAY_GIT_USER";
const TOKEN_VARIABLE: &str = "DOMESDAY_GIT_TOKEN";
/// What `git` asks for the token: a line of shell that names the variables, not their values.
const HELPER: &str = "!f() { test \"$1\" = get && \
    printf 'username=%s\\npassword=%s\\n' \"$DOMESDAY_GIT_USER\" \"$DOMESDAY_GIT_TOKEN\"; }; f";
/// What `git` and the programs it starts need of the surroundings: to be found, to reach the network, and
/// to use the keys of whoever runs this.
const INHERITED: [&str; 16] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
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
const SETTINGS: [&str; 17] = [
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
    // To another host a token must not go.
    "http.followRedirects=false",
    "protocol.allow=never",
    "protocol.https.allow=always",
    "protocol.http.allow=always",
    "protocol.ssh.allow=always",
    "protocol.file.allow=always",
    "protocol.ext.allow=never",
];

/// What `git` authenticates with.
#[derive(Clone, Debug)]
pub struct Token {
    user: String,
    secret: Secret,
}

impl Token {
    /// `user` is what the host wants beside a token; many take any.
    pub fn new(user: impl Into<String>, secret: Secret) -> Result<Token, GitError> {
        let user = user.into();
        // Lines are how the helper's answer is read, and NUL ends a variable.
        if [user.as_bytes(), secret.expose()].concat().iter().any(|byte| b"\n\r\0".contains(byte)) {
            return Err(GitError::Configuration("a user or token for git has a line break in it".to_owned()));
        }
        Ok(Token { user, secret })
    }
}

/// When `git` is ended.
pub(super) struct Limits {
    /// Bytes that the repository may have.
    pub bytes: u64,
    pub time: Duration,
}

/// Runs `git clone` into `repository`, or `git fetch` in it.
pub(super) fn git(
    arguments: &[&str],
    url: &RemoteUrl,
    token: Option<&Token>,
    repository: &Path,
    limits: &Limits,
) -> Result<(), GitError> {
    let mut command = command(url, token)?;
    if arguments[0] == "clone" {
        command.args(arguments).arg(url.as_str()).arg(repository);
    } else {
        command.arg("-C").arg(repository).args(arguments).arg(url.as_str()).arg("+refs/*:refs/*");
    }
    let failed = |detail: String| {
        let what = format!("git {} of {url}", arguments[0]);
        GitError::Io { what, source: io::Error::other(detail) }
    };
    let mut child = command.spawn().map_err(|error| failed(format!("{error}; is git installed?")))?;
    let said = watch(&mut child, repository, limits).map_err(failed)?;
    let status = child.wait().map_err(|error| failed(error.to_string()))?;
    if status.success() { Ok(()) } else { Err(failed(said.replace_token(token))) }
}

fn command(url: &RemoteUrl, token: Option<&Token>) -> Result<Command, GitError> {
    let mut command = Command::new("git");
    command.env_clear();
    command.envs(INHERITED.iter().filter_map(|name| Some((name, env::var_os(name)?))));
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_ASKPASS", "").env("SSH_ASKPASS_REQUIRE", "never");
    command.env("GIT_SSH_COMMAND", "ssh -o BatchMode=yes").env("GIT_NO_REPLACE_OBJECTS", "1");
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    if let Some(token) = token {
        if !url.takes_token() {
            let hint = format!("`url`: a token is sent over https only, not over {}", url.scheme());
            return Err(GitError::Configuration(hint));
        }
        command.arg("-c").arg(format!("credential.{}.helper={HELPER}", url.site()));
        command.env(USER_VARIABLE, &token.user).env(TOKEN_VARIABLE, OsStr::from_bytes(token.secret.expose()));
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    Ok(command)
}

/// What `git` said last.
struct Said(String);

impl Said {
    /// `git` does not repeat a password; a server may.
    fn replace_token(self, token: Option<&Token>) -> String {
        match token {
            Some(token) if !token.secret.expose().is_empty() => {
                self.0.replace(&*String::from_utf8_lossy(token.secret.expose()), "…")
            }
            _ => self.0,
        }
    }
}

/// Waits until `git` has said everything, and ends it when it takes too long or too much.
fn watch(child: &mut Child, repository: &Path, limits: &Limits) -> Result<Said, String> {
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
    loop {
        let over = match receiver.recv_timeout(LOOK_EVERY) {
            Ok(said) => return Ok(Said(said)),
            Err(RecvTimeoutError::Disconnected) => return Ok(Said(String::new())),
            Err(RecvTimeoutError::Timeout) if begun.elapsed() > limits.time => {
                format!("takes more than {} seconds", limits.time.as_secs())
            }
            Err(RecvTimeoutError::Timeout) if super::folder_bytes(repository, 0) > limits.bytes => {
                format!("takes more than the {} bytes that mirrors may have", limits.bytes)
            }
            Err(RecvTimeoutError::Timeout) => continue,
        };
        let _ = child.kill();
        let _ = child.wait();
        return Err(over);
    }
}
