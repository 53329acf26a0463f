//! The folders that objects are in, and the packs of each.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::bounds::Bounds;
use crate::error::GitError;
use crate::files::small_file;

/// Folders of objects of one repository, at most: its own and its alternates'.
const FOLDERS_MAX: usize = 64;

/// Folders of objects.
pub struct Folders {
    /// Links resolved, the repository's own first, then those it borrows from, each once, breadth first.
    pub paths: Vec<PathBuf>,
    /// Lists of alternates that name a folder which may not be read.
    pub refused: Vec<(PathBuf, GitError)>,
}

impl Folders {
    pub fn find(objects: &Path, bounds: &Bounds) -> Result<Folders, GitError> {
        let objects = fs::canonicalize(objects).map_err(|error| GitError::io(objects, error))?;
        let mut folders = Folders { paths: vec![objects], refused: Vec::new() };
        let mut at = 0;
        while at < folders.paths.len() {
            folders.add_alternates(&folders.paths[at].clone(), bounds)?;
            at += 1;
        }
        Ok(folders)
    }

    fn add_alternates(&mut self, objects: &Path, bounds: &Bounds) -> Result<(), GitError> {
        let list = objects.join("info/alternates");
        let text = small_file(&list)?.unwrap_or_default();
        for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty() && line[0] != b'#') {
            // As git does it: an alternate that is not there is passed over. What it had is missing, and named.
            let Ok(folder) = fs::canonicalize(objects.join(OsStr::from_bytes(line))) else { continue };
            if let Err(error) = bounds.check(&folder) {
                self.refused.push((list.clone(), error));
            } else if !self.paths.contains(&folder) {
                if self.paths.len() >= FOLDERS_MAX {
                    let detail = format!("more than {FOLDERS_MAX} alternates");
                    return Err(GitError::corrupt(list.display(), detail));
                }
                self.paths.push(folder);
            }
        }
        Ok(())
    }
}

/// The files of packs in a folder, by what their names end with, in order.
#[derive(Default)]
pub(super) struct PackFiles {
    /// Indices that have their packs beside them.
    pub indices: Vec<PathBuf>,
    /// Packs that have no index.
    pub alone: Vec<PathBuf>,
}

impl PackFiles {
    pub fn list(folder: &Path) -> Result<PackFiles, GitError> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(PackFiles::default()),
            Err(error) => return Err(GitError::io(folder, error)),
        };
        let mut files = PackFiles::default();
        for entry in entries {
            let path = entry.map_err(|error| GitError::io(folder, error))?.path();
            match path.extension().map(OsStr::as_bytes) {
                // The pack goes before its index does: one without the other is on its way out.
                Some(b"idx") if path.with_extension("pack").exists() => files.indices.push(path),
                // And it comes before its index does.
                Some(b"pack") if !path.with_extension("idx").exists() => files.alone.push(path),
                _ => {}
            }
        }
        files.indices.sort_unstable();
        Ok(files)
    }
}
