//! What the user leaves out: `exclude` patterns, and `.domesdayignore` files in any folder, with the
//! syntax of `.gitignore`. A file deeper in the tree overrules one above it; `exclude` overrules all.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use domesday_connector::ConnectorError;
use domesday_model::ObjectKey;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::config::{FilesystemConfig, KIND};
use super::open::Root;

/// The file that narrows a scan from inside the tree.
pub(super) const IGNORE_FILE: &str = ".domesdayignore";
/// Folders whose ignore file is remembered; beyond that all are forgotten and read again.
const CACHED_FOLDERS_MAX: usize = 8_192;
/// An ignore file's bytes that are read.
const IGNORE_FILE_MAX: u64 = 1 << 20;

pub(super) struct Ignores {
    exclude: Gitignore,
    /// Per folder its own ignore file, if it has one.
    folders: Mutex<HashMap<ObjectKey, Option<Arc<Gitignore>>>>,
}

/// The patterns that apply inside one folder, the deepest first.
pub(super) struct FolderIgnores<'a> {
    exclude: &'a Gitignore,
    /// Each with the key of the folder its file is in.
    files: Vec<(ObjectKey, Arc<Gitignore>)>,
}

impl Ignores {
    pub fn new(config: &FilesystemConfig) -> Result<Ignores, ConnectorError> {
        let mut builder = GitignoreBuilder::new("");
        for pattern in &config.exclude {
            builder.add_line(None, pattern).map_err(|error| ConnectorError::Configuration {
                kind: KIND,
                detail: format!("`exclude`: {error}"),
            })?;
        }
        let exclude = builder
            .build()
            .map_err(|error| ConnectorError::Configuration { kind: KIND, detail: format!("`exclude`: {error}") })?;
        Ok(Ignores { exclude, folders: Mutex::default() })
    }

    pub fn for_folder(&self, root: &Root, folder: &ObjectKey) -> FolderIgnores<'_> {
        let mut files = Vec::new();
        let mut at = Some(folder.clone());
        while let Some(key) = at {
            if let Some(found) = self.of_folder(root, &key) {
                files.push((key.clone(), found));
            }
            at = key.parent();
        }
        FolderIgnores { exclude: &self.exclude, files }
    }

    fn of_folder(&self, root: &Root, folder: &ObjectKey) -> Option<Arc<Gitignore>> {
        let known = self.folders.lock().unwrap_or_else(PoisonError::into_inner).get(folder).cloned();
        if let Some(known) = known {
            return known;
        }
        let read = read_ignore_file(root, folder);
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        if folders.len() >= CACHED_FOLDERS_MAX {
            folders.clear();
        }
        folders.insert(folder.clone(), read.clone());
        read
    }
}

impl FolderIgnores<'_> {
    /// Whether the user left out the entry of this key.
    pub fn excludes(&self, key: &ObjectKey, is_folder: bool) -> bool {
        match matched(self.exclude, key.as_bytes(), is_folder) {
            Match::Ignore(()) => return true,
            Match::Whitelist(()) => return false,
            Match::None => {}
        }
        for (folder, patterns) in &self.files {
            let prefix = if folder.as_bytes().is_empty() { 0 } else { folder.as_bytes().len() + 1 };
            match matched(patterns, &key.as_bytes()[prefix..], is_folder) {
                Match::Ignore(()) => return true,
                Match::Whitelist(()) => return false,
                Match::None => {}
            }
        }
        false
    }
}

fn matched(patterns: &Gitignore, key: &[u8], is_folder: bool) -> Match<()> {
    if patterns.is_empty() {
        return Match::None;
    }
    patterns.matched(Path::new(OsStr::from_bytes(key)), is_folder).map(|_| ())
}

fn read_ignore_file(root: &Root, folder: &ObjectKey) -> Option<Arc<Gitignore>> {
    let file = root.open_file(&folder.join(IGNORE_FILE.as_bytes())).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    file.take(IGNORE_FILE_MAX).read_to_end(&mut text).ok()?;
    let mut builder = GitignoreBuilder::new("");
    for line in String::from_utf8_lossy(&text).lines() {
        // As git does it: a line that is no pattern is no pattern.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok().map(Arc::new)
}
