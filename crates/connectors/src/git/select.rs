//! Which objects of a repository are to be scanned: what the chosen commits lead to, and what path
//! conditions leave of that.
//!
//! Sets hold 16 bytes of each id. A repository is walked only when something narrows the scan; each tree
//! is read once, or once per path it has where conditions look at paths.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use domesday_model::{ObjectKey, Reason};
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::config::{GitConfig, Selection};
use super::error::GitError;
use super::id::{ObjectId, ObjectKind};
use super::parse::EntryKind;
use super::repository::Repository;
use super::staged;

/// Objects that are looked up one by one; beyond that, all that the repository has are gone through.
const FEW_MAX: usize = 100_000;

/// Trees that are looked at with path conditions, each counted once per path it has: with few objects, a
/// repository can have more paths than anybody could go through.
const TREE_PATHS_MAX: usize = 16_000_000;

/// Bytes of a path, at most, where conditions look at paths; no system that git runs on has longer ones.
const PATH_LEN_MAX: usize = 8_192;

/// Ids, by their first half.
type IdSet = HashSet<u128>;

/// What is to be scanned.
pub(super) struct Selected {
    /// `None`: everything there is.
    ids: Option<IdSet>,
    /// The same as a list, when it is short.
    few: Option<Vec<(ObjectId, ObjectKind)>>,
    blobs: Blobs,
}

/// What path conditions say about blobs.
enum Blobs {
    /// There are none.
    All,
    /// Only these.
    Only(IdSet),
    /// All but these.
    But(IdSet),
}

/// What becomes of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Scan,
    /// Seen, and left out by the user.
    Skip(Reason),
    /// Not what was asked for.
    Pass,
}

impl Selected {
    pub fn new(repository: &Repository, config: &GitConfig) -> Result<Selected, GitError> {
        let conditions = Conditions::new(config)?;
        let mut walk = Walk { repository, seen: IdSet::new(), few: Some(Vec::new()), roots: Vec::new() };
        match config.selection() {
            Selection::Everything if conditions.is_empty() => {
                return Ok(Selected { ids: None, few: None, blobs: Blobs::All });
            }
            Selection::Everything => {
                let tips = repository.tips()?;
                walk.commits(&tips, &[])?;
                let blobs = conditions.judge_trees(repository, &walk.roots)?;
                return Ok(Selected { ids: None, few: None, blobs });
            }
            Selection::Staged => walk.staged()?,
            Selection::Reachable { from, not } => {
                let tips = match from {
                    [] => repository.tips()?,
                    names => resolve_all(repository, "refs", names.iter().map(String::as_str))?,
                };
                walk.range(&tips, &resolve_all(repository, "since_commit", not)?)?;
            }
            Selection::Range { from, to } => {
                let tips = resolve_all(repository, "range", [to])?;
                walk.range(&tips, &resolve_all(repository, "range", [from])?)?;
            }
        }
        let blobs = match config.selection() {
            _ if conditions.is_empty() => Blobs::All,
            Selection::Staged => conditions.judge_staged(repository)?,
            _ => conditions.judge_trees(repository, &walk.roots)?,
        };
        Ok(Selected { ids: Some(walk.seen), few: walk.few, blobs })
    }

    /// The objects one by one, if they are few.
    pub fn take_few(&mut self) -> Option<Vec<(ObjectId, ObjectKind)>> {
        self.few.take()
    }

    pub fn judge(&self, id: &ObjectId, kind: Option<ObjectKind>) -> Verdict {
        let short = id.short();
        if self.ids.as_ref().is_some_and(|ids| !ids.contains(&short)) {
            return Verdict::Pass;
        }
        let left_out = kind == Some(ObjectKind::Blob)
            && match &self.blobs {
                Blobs::All => false,
                Blobs::Only(kept) => !kept.contains(&short),
                Blobs::But(left_out) => left_out.contains(&short),
            };
        if left_out { Verdict::Skip(Reason::Excluded) } else { Verdict::Scan }
    }
}

fn resolve_all<'a>(
    repository: &Repository,
    field: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<ObjectId>, GitError> {
    let resolve = |name| match repository.resolve(name) {
        Err(GitError::Configuration(detail)) => Err(GitError::Configuration(format!("`{field}`: {detail}"))),
        Err(GitError::Missing(id)) => {
            Err(GitError::Configuration(format!("`{field}`: commit {id} is not in the repository")))
        }
        resolved => resolved,
    };
    names.into_iter().map(resolve).collect()
}

struct Walk<'a> {
    repository: &'a Repository,
    /// Everything that was met, trees included.
    seen: IdSet,
    /// What was chosen; `None` once it is too much.
    few: Option<Vec<(ObjectId, ObjectKind)>>,
    /// The trees of the chosen commits.
    roots: Vec<ObjectId>,
}

impl Walk<'_> {
    /// What `tips` lead to and `not` does not, as git understands a range: commits exactly; of trees and
    /// blobs, without those of the excluded commits next to the range.
    fn range(&mut self, tips: &[ObjectId], not: &[ObjectId]) -> Result<(), GitError> {
        let borders = self.commits(tips, not)?;
        let few = self.few.take();
        let chosen = std::mem::take(&mut self.seen);
        for border in &borders {
            self.tree(*border)?;
        }
        let theirs = std::mem::replace(&mut self.seen, chosen);
        self.seen.extend(&theirs);
        self.few = few;
        for root in std::mem::take(&mut self.roots) {
            self.tree(root)?;
            self.roots.push(root);
        }
        // What the borders have was only there to be passed over.
        self.seen.retain(|id| !theirs.contains(id));
        Ok(())
    }

    /// Chooses the commits that `tips` lead to and `not` does not, and the tags on the way. The trees of
    /// the excluded commits next to them.
    fn commits(&mut self, tips: &[ObjectId], not: &[ObjectId]) -> Result<Vec<ObjectId>, GitError> {
        let mut excluded = IdSet::new();
        let mut borders = Vec::new();
        let mut pending = Vec::new();
        for id in not {
            let (_, commit, _) = self.repository.peel(id)?;
            borders.extend(self.repository.commit(&commit, |commit| commit.tree)?);
            pending.push(commit);
        }
        while let Some(id) = pending.pop() {
            if excluded.insert(id.short()) {
                self.repository.commit(&id, |commit| pending.extend(&commit.parents))?;
            }
        }
        for tip in tips {
            let (tags, id, kind) = match self.repository.peel(tip) {
                Err(GitError::Missing(_)) if self.repository.partial => continue,
                peeled => peeled?,
            };
            for tag in tags {
                self.choose(tag, ObjectKind::Tag);
            }
            match kind {
                ObjectKind::Commit => pending.push(id),
                ObjectKind::Tree => self.roots.push(id),
                ObjectKind::Blob | ObjectKind::Tag => {
                    self.choose(id, kind);
                }
            }
        }
        while let Some(id) = pending.pop() {
            if excluded.contains(&id.short()) || !self.choose(id, ObjectKind::Commit) {
                continue;
            }
            let mut beyond = Vec::new();
            let tree = self.repository.commit(&id, |commit| {
                for parent in commit.parents {
                    if excluded.contains(&parent.short()) {
                        beyond.push(parent)
                    } else {
                        pending.push(parent)
                    }
                }
                commit.tree
            })?;
            self.roots.extend(tree);
            for parent in beyond {
                borders.extend(self.repository.commit(&parent, |commit| commit.tree)?);
            }
        }
        Ok(borders)
    }

    /// Chooses everything in a tree that was not met before.
    fn tree(&mut self, root: ObjectId) -> Result<(), GitError> {
        let mut pending = vec![root];
        if !self.seen.insert(root.short()) {
            return Ok(());
        }
        while let Some(tree) = pending.pop() {
            self.repository.tree(&tree, |entry| {
                match entry.kind {
                    EntryKind::Tree if self.seen.insert(entry.id.short()) => pending.push(entry.id),
                    EntryKind::Blob => {
                        choose(&mut self.seen, &mut self.few, entry.id, ObjectKind::Blob);
                    }
                    _ => {}
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Chooses what the index has and `HEAD` has not.
    fn staged(&mut self) -> Result<(), GitError> {
        let few = self.few.take();
        if let Some(head) = self.repository.head(&self.repository.git_dir)?
            && let Some(tree) = self.repository.commit(&head, |commit| commit.tree)?
        {
            self.tree(tree)?;
        }
        let committed = std::mem::take(&mut self.seen);
        self.few = few;
        let mut folders = Vec::new();
        staged::each_entry(self.repository, |kind, id, _| {
            match kind {
                EntryKind::Blob if !committed.contains(&id.short()) => {
                    self.choose(id, ObjectKind::Blob);
                }
                // A sparse index has folders that nobody changed, or that a merge brought.
                EntryKind::Tree if !committed.contains(&id.short()) => folders.push(id),
                _ => {}
            }
            Ok(())
        })?;
        folders.into_iter().try_for_each(|folder| self.tree(folder))
    }

    fn choose(&mut self, id: ObjectId, kind: ObjectKind) -> bool {
        choose(&mut self.seen, &mut self.few, id, kind)
    }
}

/// Adds an object; whether it is new.
fn choose(
    seen: &mut IdSet,
    few: &mut Option<Vec<(ObjectId, ObjectKind)>>,
    id: ObjectId,
    kind: ObjectKind,
) -> bool {
    if !seen.insert(id.short()) {
        return false;
    }
    match few {
        Some(list) if list.len() < FEW_MAX => list.push((id, kind)),
        _ => *few = None,
    }
    true
}

/// The user's patterns.
struct Conditions {
    paths: Option<Gitignore>,
    exclude: Gitignore,
}

impl Conditions {
    fn new(config: &GitConfig) -> Result<Conditions, GitError> {
        let paths = (!config.paths.is_empty()).then(|| patterns("paths", &config.paths)).transpose()?;
        Ok(Conditions { paths, exclude: patterns("exclude", &config.exclude)? })
    }

    fn is_empty(&self) -> bool {
        self.paths.is_none() && self.exclude.is_empty()
    }

    /// Judges the blobs of these trees by every path they have. A tree is read again for each of its
    /// paths, unless it lies in an excluded folder: there only its ids matter.
    fn judge_trees(&self, repository: &Repository, roots: &[ObjectId]) -> Result<Blobs, GitError> {
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

    fn judge_staged(&self, repository: &Repository) -> Result<Blobs, GitError> {
        let mut tally = Tally::default();
        staged::each_entry(repository, |_, id, path| {
            let path = Path::new(OsStr::from_bytes(path));
            let is_kept = |paths: &Gitignore| paths.matched_path_or_any_parents(path, false).is_ignore();
            // Git refuses such paths; the matcher would not take them.
            let is_kept =
                path.has_root() || (self.paths.as_ref().is_none_or(is_kept) && !is_kept(&self.exclude));
            tally.add(&id, is_kept);
            Ok(())
        })?;
        Ok(self.blobs(tally))
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
