//! Path conditions: which blobs are left out because of where they are.
//!
//! A blob counts by every path it has in the chosen commits, so a tree is read once per path it has, unless
//! it lies in an excluded folder.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use domesday_model::ObjectKey;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::config::GitConfig;
use super::error::GitError;
use super::id::ObjectId;
use super::parse::EntryKind;
use super::repository::Repository;
use super::select::IdSet;
use super::staged;

/// Trees that are looked at with path conditions, each counted once per path it has: with few objects, a
/// repository can have more paths than anybody could go through.
const TREE_PATHS_MAX: usize = 16_000_000;

/// Bytes of a path, at most, where conditions look at paths; no system that git runs on has longer ones.
const PATH_LEN_MAX: usize = 8_192;

/// What path conditions say about blobs.
pub(super) enum Blobs {
    /// There are none.
    All,
    /// Only these.
    Only(IdSet),
    /// All but these.
    But(IdSet),
}

impl Blobs {
    /// Whether this one is left out.
    pub fn leave_out(&self, id: u128) -> bool {
        match self {
            Blobs::All => false,
            Blobs::Only(kept) => !kept.contains(&id),
            Blobs::But(left_out) => left_out.contains(&id),
        }
    }
}

/// The user's patterns.
pub(super) struct Conditions {
    paths: Option<Gitignore>,
    exclude: Gitignore,
}

impl Conditions {
    pub fn new(config: &GitConfig) -> Result<Conditions, GitError> {
        let paths = (!config.paths.is_empty()).then(|| patterns("paths", &config.paths)).transpose()?;
        Ok(Conditions { paths, exclude: patterns("exclude", &config.exclude)? })
    }

    pub fn is_empty(&self) -> bool {
        self.paths.is_none() && self.exclude.is_empty()
    }

    /// Judges the blobs of these trees by every path they have. A tree is read again for each of its
    /// paths, unless it lies in an excluded folder: there only its ids matter.
    pub fn judge_trees(&self, repository: &Repository, roots: &[ObjectId]) -> Result<Blobs, GitError> {
        let mut tally = Tally::default();
        let mut visited = HashSet::new();
        let mut pending: Vec<(ObjectId, Vec<u8>, bool)> =
            roots.iter().map(|root| (*root, Vec::new(), self.paths.is_none())).collect();
        let mut excluded = Vec::new();
        while let Some((tree, folder, is_inside)) = pending.pop() {
            if !visited.insert(ObjectKey::hash128(&[tree.as_bytes(), &folder].concat())) {
                continue;
            }
            if visited.len() > TREE_PATHS_MAX {
                return Err(GitError::Unsupported(format!(
                    "more than {TREE_PATHS_MAX} folders in its history: scan it without path conditions"
                )));
            }
            repository.tree(&tree, |entry| {
                let mut path = folder.clone();
                if !path.is_empty() {
                    path.push(b'/');
                }
                path.extend_from_slice(entry.name);
                if path.len() > PATH_LEN_MAX {
                    let detail = format!("it is at a path of more than {PATH_LEN_MAX} bytes");
                    return Err(GitError::corrupt(format!("tree {tree}"), detail));
                }
                let is_folder = entry.kind == EntryKind::Tree;
                let is_excluded = matches(&self.exclude, &path, is_folder);
                let is_inside =
                    is_inside || self.paths.as_ref().is_some_and(|paths| matches(paths, &path, is_folder));
                match entry.kind {
                    EntryKind::Tree if is_excluded => excluded.push(entry.id),
                    EntryKind::Tree => pending.push((entry.id, path, is_inside)),
                    EntryKind::Blob => tally.add(&entry.id, is_inside && !is_excluded),
                    EntryKind::Submodule => {}
                }
                Ok(())
            })?;
        }
        let mut visited = IdSet::new();
        // With `paths`, what is not kept is left out anyway.
        while let Some(tree) = excluded.pop().filter(|_| self.paths.is_none()) {
            if visited.insert(tree.short()) {
                repository.tree(&tree, |entry| {
                    match entry.kind {
                        EntryKind::Tree => excluded.push(entry.id),
                        EntryKind::Blob => tally.add(&entry.id, false),
                        EntryKind::Submodule => {}
                    }
                    Ok(())
                })?;
            }
        }
        Ok(self.blobs(tally))
    }

    pub fn judge_staged(&self, repository: &Repository) -> Result<Blobs, GitError> {
        let mut tally = Tally::default();
        staged::each_entry(repository, |entry| {
            // Git refuses paths from the root; the matcher would not take them.
            let path = Path::new(OsStr::from_bytes(entry.path));
            tally.add(&entry.id, path.has_root() || self.keeps(path, false));
            Ok(())
        })?;
        Ok(self.blobs(tally))
    }

    /// Whether the file or folder at this path is to be looked at. Of a folder, `paths` may mean what is
    /// inside.
    pub fn keeps(&self, path: &Path, is_folder: bool) -> bool {
        let has = |paths: &Gitignore| paths.matched_path_or_any_parents(path, is_folder).is_ignore();
        !self.excludes(path, is_folder) && (is_folder || self.paths.as_ref().is_none_or(has))
    }

    /// Whether the file or folder at this path, or one above it, is left out.
    pub fn excludes(&self, path: &Path, is_folder: bool) -> bool {
        self.exclude.matched_path_or_any_parents(path, is_folder).is_ignore()
    }

    fn blobs(&self, mut tally: Tally) -> Blobs {
        if self.paths.is_some() {
            return Blobs::Only(tally.kept);
        }
        tally.left_out.retain(|id| !tally.kept.contains(id));
        Blobs::But(tally.left_out)
    }
}

/// Blobs that have a path that is kept, and such that have one that is not.
#[derive(Default)]
struct Tally {
    kept: IdSet,
    left_out: IdSet,
}

impl Tally {
    fn add(&mut self, id: &ObjectId, is_kept: bool) {
        if is_kept { &mut self.kept } else { &mut self.left_out }.insert(id.short());
    }
}

fn patterns(field: &str, lines: &[String]) -> Result<Gitignore, GitError> {
    let wrong = |error: ignore::Error| GitError::Configuration(format!("`{field}`: {error}"));
    let mut builder = GitignoreBuilder::new("");
    for line in lines {
        builder.add_line(None, line).map_err(wrong)?;
    }
    builder.build().map_err(wrong)
}

fn matches(patterns: &Gitignore, path: &[u8], is_folder: bool) -> bool {
    !patterns.is_empty() && patterns.matched(Path::new(OsStr::from_bytes(path)), is_folder).is_ignore()
}
