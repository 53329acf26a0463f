//! The configuration of a `git` data source. Its fields' comments are their manual.

use std::path::PathBuf;

use domesday_connector::credentials::Method;
use domesday_connector::fields::FieldType;
use domesday_connector::http::Certificates;
use domesday_connector::{ConnectorError, parse_configuration};
use serde::{Deserialize, Serialize};

use super::remote::RemoteUrl;

/// The kind, as data sources name it.
pub const KIND: &str = "git";

domesday_connector::configuration! {
    /// What to scan of a repository. Without any selection it is everything its object database has: the
    /// history of all references, and what no reference leads to any more.
    #[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct GitConfig {
        /// The absolute path of the repository: a folder with `.git`, a bare one, a worktree or a submodule.
        #[serde(skip_serializing_if = "Option::is_none", with = "path_bytes")]
        pub path: Option<PathBuf>,
        /// The address of a remote repository, in place of `path`: `https`, `ssh`, `git`, `file` or
        /// `user@host:path`, without a password.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub url: Option<String>,
        /// How the remote is told who asks: `github` (a token in the place of a password, as most hosts take it),
        /// `bearer` (a token in a header), `basic` or `ssh_key`. Left out, a credential is a token for `https`
        /// and a key for `ssh`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub authentication: Option<Method>,
        /// The authorities that may have signed the server's certificate, in PEM. Without it the system's. An absolute
        /// path on the worker.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub ca_file: Option<String>,
        /// A certificate that says who connects, in PEM, where the server asks for one. An absolute path on the worker.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub cert_file: Option<String>,
        /// The private key of `cert_file`, in PEM. An absolute path on the worker.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub key_file: Option<String>,
        /// Which keys of an `ssh` server are accepted: `strict`, those that `known_hosts` of the worker's user has; or
        /// `accept_new`, also that of a server which it does not have, and which is then added. A key that has changed is
        /// never accepted.
        #[serde(skip_serializing_if = "SshHostKeys::is_strict")]
        pub ssh_host_keys: SshHostKeys,
        /// Scan only what these branches, tags or commits lead to.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub refs: Vec<String>,
        /// Scan only what came after this commit; on all references, or on `refs`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub since_commit: Option<String>,
        /// Scan only what `b` of `a..b` leads to and `a` does not.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub range: Option<String>,
        /// Scan only what is staged and not in `HEAD`.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        pub staged: bool,
        /// Beside the history, scan the files of the folder: those of the working tree whose content is not that of
        /// a scanned object, tracked or not, ignored ones too, and the repository's own, such as its configuration,
        /// hooks and logs. A bare repository has only the latter.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        pub uncommitted: bool,
        /// Scan only files whose path matches one of these, with the syntax of `.gitignore` lines. A file
        /// counts by every path it ever had; messages have none, and are scanned.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub paths: Vec<String>,
        /// Leave out files all of whose paths match one of these, with the syntax of `.gitignore` lines.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub exclude: Vec<String>,
        /// Leave out files larger than this, in bytes.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub max_file_size: Option<u64>,
    }
}

/// Which keys of an SSH server are accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SshHostKeys {
    #[default]
    Strict,
    AcceptNew,
}

impl SshHostKeys {
    fn is_strict(&self) -> bool {
        *self == SshHostKeys::Strict
    }
}

impl FieldType for SshHostKeys {
    fn type_name() -> String {
        "`strict` or `accept_new`".to_owned()
    }
}

/// What of the history is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Selection<'a> {
    Everything,
    /// What `from` leads to (all references when empty), without what `not` leads to.
    Reachable {
        from: &'a [String],
        not: Option<&'a str>,
    },
    Range {
        from: &'a str,
        to: &'a str,
    },
    Staged,
}

impl GitConfig {
    pub fn new(path: PathBuf) -> GitConfig {
        GitConfig { path: Some(path), ..GitConfig::default() }
    }

    pub fn parse(value: &serde_json::Value) -> Result<GitConfig, ConnectorError> {
        let wrong = |detail: String| ConnectorError::Configuration { kind: KIND, detail };
        let config: GitConfig = parse_configuration(KIND, value)?;
        config.check().map_err(wrong)?;
        Ok(config)
    }

    fn check(&self) -> Result<(), String> {
        match (&self.path, &self.url) {
            (Some(path), None) if path.is_absolute() => {}
            (Some(path), None) => {
                return Err(format!("`path` must be an absolute path, not `{}`", path.display()));
            }
            (None, Some(_)) if self.staged => return Err("`staged` is for a local repository".to_owned()),
            (None, Some(_)) if self.uncommitted => {
                return Err("`uncommitted` is for a local repository".to_owned());
            }
            (None, Some(url)) => {
                let url = RemoteUrl::parse(url).map_err(|error| error.to_string())?;
                url.check_method(self.authentication).map_err(|error| error.to_string())?;
            }
            _ => return Err("give either the `path` or the `url` of a repository".to_owned()),
        }
        if self.path.is_some() && self.authentication.is_some() {
            return Err("`authentication` is for a remote repository".to_owned());
        }
        let has_certificates = self.certificates() != Certificates::default();
        if self.path.is_some() && (has_certificates || !self.ssh_host_keys.is_strict()) {
            return Err("certificates and `ssh_host_keys` are for a remote repository".to_owned());
        }
        self.certificates().check()?;
        let others = !self.refs.is_empty() || self.since_commit.is_some();
        match &self.range {
            Some(range) if parse_range(range).is_none() => {
                return Err(format!("`range` must be `a..b`, not `{range}`"));
            }
            Some(_) if others => {
                return Err("`range` already says what `refs` and `since_commit` do".to_owned());
            }
            _ => {}
        }
        if self.staged && (others || self.range.is_some()) {
            return Err("`staged` cannot be with `refs`, `since_commit` or `range`".to_owned());
        }
        Ok(())
    }

    /// The certificates that it names.
    pub(super) fn certificates(&self) -> Certificates {
        let Self { ca_file, cert_file, key_file, .. } = self;
        Certificates { ca_file: ca_file.clone(), cert_file: cert_file.clone(), key_file: key_file.clone() }
    }

    pub(super) fn selection(&self) -> Selection<'_> {
        if self.staged {
            return Selection::Staged;
        }
        if let Some((from, to)) = self.range.as_deref().and_then(parse_range) {
            return Selection::Range { from, to };
        }
        if self.refs.is_empty() && self.since_commit.is_none() {
            return Selection::Everything;
        }
        Selection::Reachable { from: &self.refs, not: self.since_commit.as_deref() }
    }
}

/// `a..b`, in which either may be left out for `HEAD`.
fn parse_range(range: &str) -> Option<(&str, &str)> {
    let (from, to) = range.split_once("..")?;
    (!to.starts_with('.') && range != "..").then_some((or_head(from), or_head(to)))
}

fn or_head(name: &str) -> &str {
    if name.is_empty() { "HEAD" } else { name }
}

/// A path in JSON: text where it is UTF-8, else as an object key has it.
mod path_bytes {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};

    use domesday_model::ObjectKey;
    use serde::{Deserializer, Serializer};

    use super::*;

    pub fn serialize<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
        path.as_ref().map(|path| ObjectKey::new(path.as_os_str().as_bytes())).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
        let key = Option::<ObjectKey>::deserialize(deserializer)?;
        Ok(key.map(|key| OsString::from_vec(key.0).into()))
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use serde_json::json;

    use super::*;

    fn refused(value: serde_json::Value) -> String {
        GitConfig::parse(&value).unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (value, field) in [
            (json!({ "path": "relative" }), "`path`"),
            (json!({}), "`path`"),
            (json!({ "path": "/r", "url": "https://example.com/r" }), "`url`"),
            (json!({ "url": "https://user:word@example.com/r" }), "`url`"),
            (json!({ "url": "https://example.com/r", "staged": true }), "`staged`"),
            (json!({ "url": "https://example.com/r", "uncommitted": true }), "`uncommitted`"),
            (json!({ "url": "https://example.com/r", "authentication": "ssh_key" }), "`authentication`"),
            (json!({ "url": "git@example.com:r", "authentication": "basic" }), "`authentication`"),
            (json!({ "url": "https://example.com/r", "authentication": "s3" }), "`authentication`"),
            (json!({ "path": "/r", "authentication": "basic" }), "`authentication`"),
            (json!({ "path": "/r", "ssh_host_keys": "accept_new" }), "`ssh_host_keys`"),
            (json!({ "url": "git@example.com:r", "ssh_host_keys": "any" }), "`ssh_host_keys`"),
            (json!({ "url": "https://example.com/r", "ca_file": "ca.pem" }), "`ca_file`"),
            (json!({ "path": "/r", "worktree": true }), "`worktree`"),
            (json!({ "path": "/r", "range": "a" }), "`range`"),
            (json!({ "path": "/r", "range": "a...b" }), "`range`"),
            (json!({ "path": "/r", "range": ".." }), "`range`"),
            (json!({ "path": "/r", "range": "a..b", "refs": ["main"] }), "`range`"),
            (json!({ "path": "/r", "staged": true, "since_commit": "a" }), "`staged`"),
            (json!({ "path": "/r", "depth": 3 }), "`depth`"),
        ] {
            let message = refused(value);
            assert!(message.contains(field), "{message}");
        }
    }

    #[test]
    fn what_is_said_comes_back() {
        let config = GitConfig {
            refs: vec!["main".to_owned()],
            since_commit: Some("v1".to_owned()),
            ..GitConfig::new("/r".into())
        };
        let json = serde_json::to_value(&config).unwrap();
        assert_eq!(json, json!({ "path": "/r", "refs": ["main"], "since_commit": "v1" }));
        assert_eq!(GitConfig::parse(&json).unwrap(), config);
        let odd = GitConfig::new(OsStr::from_bytes(b"/r\xff").into());
        assert_eq!(GitConfig::parse(&serde_json::to_value(&odd).unwrap()).unwrap(), odd);
        let range = GitConfig { range: Some("a..".to_owned()), ..GitConfig::new("/r".into()) };
        assert_eq!(range.selection(), Selection::Range { from: "a", to: "HEAD" });
    }
}
