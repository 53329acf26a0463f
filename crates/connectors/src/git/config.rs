//! The configuration of a `git` data source. Its fields' comments are their manual.

use std::path::PathBuf;

use domesday_connector::ConnectorError;
use serde::{Deserialize, Serialize};

use super::remote::RemoteUrl;

/// The kind, as data sources name it.
pub const KIND: &str = "git";

/// What to scan of a repository. Without any selection it is everything its object database has: the
/// history of all references, and what no reference leads to any more.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GitConfig {
    /// The absolute path of the repository: a folder with `.git`, a bare one, a worktree or a submodule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// The address of a remote repository, in place of `path`: `https`, `ssh` or `file`, without a password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
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
    /// Not for this kind: files as they are on disk are scanned as a `filesystem`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub worktree: bool,
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
        let config = GitConfig::deserialize(value).map_err(|error| wrong(error.to_string()))?;
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
            (None, Some(url)) => drop(RemoteUrl::parse(url).map_err(|error| error.to_string())?),
            _ => return Err("give either the `path` or the `url` of a repository".to_owned()),
        }
        if self.worktree {
            return Err("`worktree`: scan the folder as a `filesystem` data source".to_owned());
        }
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

#[cfg(test)]
mod tests {
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
        let range = GitConfig { range: Some("a..".to_owned()), ..GitConfig::new("/r".into()) };
        assert_eq!(range.selection(), Selection::Range { from: "a", to: "HEAD" });
    }
}
