//! What the user leaves out: `exclude` patterns, and `.domesdayignore` files in any folder, with the
//! syntax of `.gitignore`. A file deeper in the tree overrules one above it; `exclude` overrules all.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use domesday_connector::ConnectorError;
use domesday_model::{ObjectKey, Reason, TrustContent};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use parking_lot::Mutex;

use super::config::{FilesystemConfig, KIND};
use super::open::Root;

/// The file that narrows a scan from inside the tree.
pub(super) const IGNORE_FILE: &str = ".domesdayignore";
/// Folders whose patterns are remembered; beyond that all are forgotten and read again.
const CACHED_FOLDERS_MAX: usize = 2_048;
/// An ignore file's bytes that are read.
const IGNORE_FILE_MAX: u64 = 1 << 20;

/// The ignore files that apply inside a folder, the topmost first: how many bytes of a key lead to the
/// file's folder, and its patterns.
type Applying = Arc<Vec<(usize, Arc<Gitignore>)>>;

pub(super) struct Ignores {
    exclude: Arc<Gitignore>,
    reads_files: bool,
    /// A folder without a file of its own shares what applies in the one above it.
    folders: Mutex<HashMap<ObjectKey, Applying>>,
}

/// The patterns that apply inside one folder.
pub(super) struct FolderIgnores {
    exclude: Arc<Gitignore>,
    files: Applying,
}

impl Ignores {
    /// Files in a tree that is not trusted do not count.
    pub fn new(config: &FilesystemConfig, trust: TrustContent) -> Result<Ignores, ConnectorError> {
        let mut builder = GitignoreBuilder::new("");
        for pattern in &config.exclude {
            builder.add_line(None, pattern).map_err(|error| ConnectorError::Configuration {
                kind: KIND,
                detail: format!("field `exclude`: {error}"),
            })?;
        }
        let exclude = builder.build().map_err(|error| ConnectorError::Configuration {
            kind: KIND,
            detail: format!("field `exclude`: {error}"),
        })?;
        let reads_files = trust != TrustContent::No;
        Ok(Ignores { exclude: Arc::new(exclude), reads_files, folders: Mutex::default() })
    }

    /// Goes up to the nearest folder that is remembered, mostly the parent, and down again to `folder`, which is
    /// open as `opened`: however deep the tree is, a folder costs one look.
    pub fn for_folder(&self, root: &Root, folder: &ObjectKey, opened: BorrowedFd<'_>) -> FolderIgnores {
        let mut files = Applying::default();
        if !self.reads_files {
            return FolderIgnores { exclude: Arc::clone(&self.exclude), files };
        }
        let mut unknown = Vec::new();
        let mut at = Some(folder.clone());
        while let Some(key) = at {
            if let Some(known) = self.folders.lock().get(&key) {
                files = Arc::clone(known);
                break;
            }
            at = key.parent();
            unknown.push(key);
        }
        for key in unknown.into_iter().rev() {
            let file = match key == *folder {
                true => root.open_file_in(opened, IGNORE_FILE.as_bytes()),
                false => root.open_file(&key.join(IGNORE_FILE.as_bytes())),
            };
            if let Some(patterns) = file.ok().and_then(read_ignore_file) {
                let leading = if key.as_bytes().is_empty() { 0 } else { key.as_bytes().len() + 1 };
                Arc::make_mut(&mut files).push((leading, Arc::new(patterns)));
            }
            let mut folders = self.folders.lock();
            if folders.len() >= CACHED_FOLDERS_MAX {
                folders.clear();
            }
            folders.insert(key, Arc::clone(&files));
        }
        FolderIgnores { exclude: Arc::clone(&self.exclude), files }
    }
}

impl FolderIgnores {
    /// What leaves out this entry of a folder, if anything does: who scans, or a file in the tree.
    pub fn excludes(&self, folder: &ObjectKey, name: &[u8], is_folder: bool) -> Option<Reason> {
        if self.exclude.is_empty() && self.files.is_empty() {
            return None;
        }
        let key = folder.join(name);
        let own = std::iter::once((0, self.exclude.as_ref(), Reason::Excluded));
        let files = self.files.iter().rev();
        let files = files.map(|(leading, patterns)| (*leading, patterns.as_ref(), Reason::Ignored));
        for (leading, patterns, reason) in own.chain(files) {
            match matched(patterns, &key.as_bytes()[leading..], is_folder) {
                Match::Ignore(()) => return Some(reason),
                Match::Whitelist(()) => return None,
                Match::None => {}
            }
        }
        None
    }
}

fn matched(patterns: &Gitignore, key: &[u8], is_folder: bool) -> Match<()> {
    if patterns.is_empty() {
        return Match::None;
    }
    patterns.matched(Path::new(OsStr::from_bytes(key)), is_folder).map(|_| ())
}

fn read_ignore_file(file: File) -> Option<Gitignore> {
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
    builder.build().ok()
}
