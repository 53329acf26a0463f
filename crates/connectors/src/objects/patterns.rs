//! What the user scans and leaves out: patterns with the syntax of `.gitignore`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use domesday_connector::ConnectorError;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::config::{Kind, ObjectsConfig};

pub(super) struct Patterns {
    include: Gitignore,
    exclude: Gitignore,
}

impl Patterns {
    pub fn new(kind: Kind, config: &ObjectsConfig) -> Result<Patterns, ConnectorError> {
        let include = build(&config.include).map_err(|error| ("include", error));
        let exclude = build(&config.exclude).map_err(|error| ("exclude", error));
        let wrong = |(field, error): (&str, ignore::Error)| ConnectorError::Configuration {
            kind: kind.as_str(),
            detail: format!("field `{field}`: {error}"),
        };
        Ok(Patterns { include: include.map_err(wrong)?, exclude: exclude.map_err(wrong)? })
    }

    /// Whether the object of this key is left out, by itself or with a folder it is in.
    pub fn leave_out(&self, key: &[u8]) -> bool {
        matches(&self.exclude, key, false)
            || (!self.include.is_empty() && !matches(&self.include, key, false))
    }

    /// Whether everything below this prefix, given without its last `/`, is left out. What is included cannot be
    /// told from a folder's name.
    pub fn leave_out_folder(&self, key: &[u8]) -> bool {
        matches(&self.exclude, key, true)
    }
}

fn build(patterns: &[String]) -> Result<Gitignore, ignore::Error> {
    let mut builder = GitignoreBuilder::new("");
    for pattern in patterns {
        builder.add_line(None, pattern)?;
    }
    builder.build()
}

/// Whether a pattern matches the key or a folder above it: as in git, what is in a folder that is matched cannot
/// be taken back by a pattern of its own.
fn matches(patterns: &Gitignore, key: &[u8], is_folder: bool) -> bool {
    if patterns.is_empty() {
        return false;
    }
    let path = |bytes| Path::new(OsStr::from_bytes(bytes));
    let slashes = key.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    let mut folders = slashes.filter(|at| *at > 0);
    folders.any(|at| patterns.matched(path(&key[..at]), true).is_ignore())
        || patterns.matched(path(key), is_folder).is_ignore()
}
