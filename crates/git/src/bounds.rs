//! What a repository's own files may lead to. A `.git` file, `commondir`, alternates and symbolic links name other
//! folders, so who writes the content chooses them: where it is not trusted, nothing outside of the scanned folder is
//! read.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::GitError;

/// Folders inside each other that are searched for links, at most.
const DEPTH_MAX: usize = 64;

/// The folder that nothing may lead out of; none where all is followed.
pub(super) struct Bounds(Option<PathBuf>);

impl Bounds {
    pub fn new(root: &Path, follow_links_out: bool) -> Result<Bounds, GitError> {
        if follow_links_out {
            return Ok(Bounds(None));
        }
        fs::canonicalize(root).map(|root| Bounds(Some(root))).map_err(|error| GitError::io(root, error))
    }

    /// An error if this path is outside, links resolved. One that leads nowhere leads nowhere out.
    pub fn check(&self, path: &Path) -> Result<(), GitError> {
        let Some(root) = &self.0 else { return Ok(()) };
        match fs::canonicalize(path) {
            Ok(target) if !target.starts_with(root) => Err(GitError::Configuration(format!(
                "`{}` leads to `{}`, which is outside of the scanned folder, and its content is not trusted",
                path.display(),
                target.display()
            ))),
            _ => Ok(()),
        }
    }

    /// The same for a folder and every link below it.
    pub fn check_all(&self, folder: &Path) -> Result<(), GitError> {
        if self.0.is_none() {
            return Ok(());
        }
        self.check(folder)?;
        self.check_links(folder, 0)
    }

    fn check_links(&self, folder: &Path, depth: usize) -> Result<(), GitError> {
        if depth > DEPTH_MAX {
            let detail = format!("more than {DEPTH_MAX} folders inside each other");
            return Err(GitError::corrupt(folder.display(), detail));
        }
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => return Err(GitError::io(folder, error)),
        };
        for entry in entries {
            let entry = entry.map_err(|error| GitError::io(folder, error))?;
            let kind = entry.file_type().map_err(|error| GitError::io(folder, error))?;
            if kind.is_symlink() {
                self.check(&entry.path())?;
            } else if kind.is_dir() {
                self.check_links(&entry.path(), depth + 1)?;
            }
        }
        Ok(())
    }
}
