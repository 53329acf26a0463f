//! Who asks: the credential of a remote, fetched each time it is used, and handed to `git` where nobody
//! else sees it.
//!
//! A user and a password, or a token, go through the environment to a credential helper that answers only
//! for the remote's own host, or to a header that is sent to it alone. A key is a file that only its owner
//! can read and that goes when `git` has ended, or when the next one begins.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use domesday_connector::credentials::{Credential, Method, Secret};
use domesday_connector::http::Certificates;
use domesday_connector::{ConnectorError, Host, Surroundings};

use super::RemoteUrl;
use crate::config::SshHostKeys;
use crate::error::GitError;

/// The user beside a token, as GitHub wants it; other hosts take any.
const TOKEN_USER: &str = "x-access-token";
/// The variables in which the user, the secret and the path of a key are handed over.
const USER_VARIABLE: &str = "DOMESDAY_GIT_USER";
const SECRET_VARIABLE: &str = "DOMESDAY_GIT_SECRET";
const KEY_VARIABLE: &str = "DOMESDAY_GIT_KEY";
/// What `git` asks for the secret: a line of shell that names the variables, not their values.
const HELPER: &str = "!f() { test \"$1\" = get && \
    printf 'username=%s\\npassword=%s\\n' \"$DOMESDAY_GIT_USER\" \"$DOMESDAY_GIT_SECRET\"; }; f";
/// How `ssh` is run: it never asks, it does not wait for ever, and leaves no connection behind for others.
const SSH_OPTIONS: &str = "-o BatchMode=yes -o ConnectTimeout=30 \
    -o ServerAliveInterval=30 -o ServerAliveCountMax=4 -o ControlMaster=no -o ControlPath=none";
/// Which keys of servers it takes: in both it notices one that has changed.
const SSH_STRICT: &str = "-o StrictHostKeyChecking=yes";
const SSH_ACCEPT_NEW: &str = "-o StrictHostKeyChecking=accept-new";
/// With a key of its own it uses no other.
const SSH_KEY_OPTIONS: &str = "-o IdentitiesOnly=yes -o IdentityAgent=none -i \"$DOMESDAY_GIT_KEY\"";

/// How the other side is known, beside what the system trusts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trust {
    pub certificates: Certificates,
    pub ssh_host_keys: SshHostKeys,
}

impl Trust {
    /// Tells `git` which certificates to use.
    pub(super) fn hand_over(&self, command: &mut Command) {
        let settings = ["http.sslCAInfo", "http.sslCert", "http.sslKey"];
        for (setting, (_, file)) in settings.into_iter().zip(self.certificates.fields()) {
            if let Some(file) = file {
                command.arg("-c").arg(format!("{setting}={file}"));
            }
        }
    }

    fn ssh_options(&self) -> &'static str {
        match self.ssh_host_keys {
            SshHostKeys::Strict => SSH_STRICT,
            SshHostKeys::AcceptNew => SSH_ACCEPT_NEW,
        }
    }
}

/// How the credential of a remote is had.
pub struct Access {
    /// `None`: a token for https, unless the secret is `user:password`.
    method: Option<Method>,
    natural: Method,
    host: Host,
    surroundings: Surroundings,
}

impl Access {
    /// By `method`, or by what is natural for the address.
    pub fn new(
        url: &RemoteUrl,
        method: Option<Method>,
        surroundings: &Surroundings,
    ) -> Result<Access, GitError> {
        let natural = match (method, &surroundings.credential) {
            (Some(method), _) => method,
            (None, None) => Method::Unauthenticated,
            (None, Some(_)) => url.natural_method()?,
        };
        url.check_method(Some(natural))?;
        Ok(Access { method, natural, host: url.credential_host(), surroundings: surroundings.clone() })
    }

    /// The credential as it is now.
    pub async fn authentication(&self) -> Result<Authentication, ConnectorError> {
        let method = match (self.method, self.natural) {
            (None, Method::Github) => match self.surroundings.secret(&self.host).await? {
                Some(secret) if is_login(&secret) => Method::Basic,
                _ => Method::Github,
            },
            (_, natural) => natural,
        };
        Ok(match self.surroundings.credential(method, &self.host).await? {
            Credential::Github { token } => Authentication::login(TOKEN_USER, &token)?,
            Credential::Basic { user, password } => Authentication::login(&user, &password)?,
            Credential::Bearer { token } => Authentication::Header { token: one_line(&token)? },
            Credential::SshKey { private_key } => Authentication::Key(private_key),
            _ => Authentication::None,
        })
    }
}

/// What `git` authenticates with.
#[derive(Debug)]
pub enum Authentication {
    None,
    Login { user: String, secret: Secret },
    Header { token: Secret },
    Key(Secret),
}

impl Authentication {
    pub fn login(user: &str, secret: &Secret) -> Result<Authentication, GitError> {
        if user.contains(['\n', '\r', '\0']) {
            return Err(GitError::Configuration("a user for git has a line break in it".to_owned()));
        }
        Ok(Authentication::Login { user: user.to_owned(), secret: one_line(secret)? })
    }

    /// Tells `git` how to authenticate. What this returns must live for as long as `git` runs.
    pub(super) fn hand_over(
        &self,
        command: &mut Command,
        url: &RemoteUrl,
        ssh: &str,
        trust: &Trust,
        key_path: &Path,
    ) -> Result<Option<KeyFile>, GitError> {
        let mut ssh_command = format!("{ssh} {SSH_OPTIONS} {}", trust.ssh_options());
        let mut key = None;
        match self {
            Authentication::None => {}
            Authentication::Login { user, secret } => {
                command.arg("-c").arg(format!("credential.{}.helper={HELPER}", url.site()));
                command.env(USER_VARIABLE, user);
                command.env(SECRET_VARIABLE, OsStr::from_bytes(secret.expose()));
            }
            Authentication::Header { token } => {
                let mut header = b"Authorization: Bearer ".to_vec();
                header.extend_from_slice(token.expose());
                command.env("GIT_CONFIG_COUNT", "1");
                command.env("GIT_CONFIG_KEY_0", format!("http.{}/.extraHeader", url.site()));
                command.env("GIT_CONFIG_VALUE_0", OsString::from_vec(header));
            }
            Authentication::Key(secret) => {
                key = Some(KeyFile::write(key_path, secret)?);
                command.env(KEY_VARIABLE, key_path);
                ssh_command = format!("{ssh_command} {SSH_KEY_OPTIONS}");
            }
        }
        command.env("GIT_SSH_COMMAND", ssh_command).env("GIT_SSH_VARIANT", "ssh");
        Ok(key)
    }

    /// Takes the secret out of what was said: `git` does not repeat it, a server may.
    pub(super) fn scrub(&self, said: &str) -> String {
        match self {
            Authentication::Login { secret, .. } | Authentication::Header { token: secret } => {
                said.replace(&*String::from_utf8_lossy(secret.expose()), "…")
            }
            Authentication::None | Authentication::Key(_) => said.to_owned(),
        }
    }

    /// What to do when the remote refuses this.
    pub(super) fn hint(&self) -> &'static str {
        match self {
            Authentication::None => {
                "give the data source a credential that may read it: a token for https, a key for ssh"
            }
            Authentication::Login { user, .. } if user == TOKEN_USER => {
                "the token was refused: it is wrong, has expired, or may not read this repository (what stands alone \
                 before the `@` of an address counts as a token: write USER:PASSWORD@, or give --credential a \
                 `user:password`)"
            }
            _ => "the credential was refused: it is wrong, has expired, or may not read this repository",
        }
    }
}

/// Whether a secret is a user and a password: no host has tokens with a colon in them.
fn is_login(secret: &Secret) -> bool {
    match serde_json::from_slice::<serde_json::Map<_, serde_json::Value>>(secret.expose()) {
        Ok(fields) => fields.contains_key("password"),
        Err(_) => secret.expose().contains(&b':'),
    }
}

/// A secret of one line: lines are how a helper's answer and a header are read, and NUL ends a variable.
fn one_line(secret: &Secret) -> Result<Secret, GitError> {
    let secret = secret.expose().trim_ascii_end();
    if secret.is_empty() || secret.iter().any(|byte| b"\n\r\0".contains(byte)) {
        let detail = "a password or token for git is empty or has a line break in it";
        return Err(GitError::Configuration(detail.to_owned()));
    }
    Ok(Secret::new(secret.to_vec()))
}

/// A private key on disk, for as long as this lives.
pub(super) struct KeyFile(PathBuf);

impl KeyFile {
    fn write(path: &Path, key: &Secret) -> Result<KeyFile, GitError> {
        let failed = |error| GitError::io(path, error);
        super::remove_file(path)?;
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
        let guard = KeyFile(path.to_owned());
        // Without the line break at its end, which some places that keep secrets cut off, it is no key.
        let end: &[u8] = if key.expose().ends_with(b"\n") { b"" } else { b"\n" };
        file.write_all(key.expose()).and_then(|()| file.write_all(end)).map_err(failed)?;
        Ok(guard)
    }
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        // What is left behind is removed by the next one.
        let _ = fs::remove_file(&self.0);
    }
}
