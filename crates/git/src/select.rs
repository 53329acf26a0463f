//! Which objects of a repository are to be scanned: what the chosen commits lead to, and what path
//! conditions leave of that.
//!
//! Sets hold 16 bytes of each id. A repository is walked only when something narrows the scan, or when
//! part of it is elsewhere; each tree is read once.

use std::collections::HashSet;
use std::sync::Arc;

use domesday_model::Reason;

use super::conditions::{Blobs, Conditions};
use super::config::{GitConfig, Selection};
use super::error::GitError;
use super::id::{ObjectId, ObjectKind};
use super::parse::EntryKind;
use super::repository::Repository;
use super::staged;

/// Objects that are looked up one by one; beyond that, all that the repository has are gone through.
const FEW_MAX: usize = 100_000;

/// Ids, by their first half.
pub(super) type IdSet = HashSet<u128>;

/// Tells of each object whether it is to be scanned.
pub(super) struct Chosen {
    /// `None`: everything there is.
    ids: Option<IdSet>,
    blobs: Blobs,
}

/// What is to be scanned.
pub(super) struct Selected {
    pub chosen: Arc<Chosen>,
    /// The same as a list, when it is short.
    few: Option<Vec<(ObjectId, ObjectKind)>>,
    /// The trees of the chosen commits, of a part of the history.
    pub roots: Vec<ObjectId>,
    /// What a partial repository leads to and does not have.
    absent: Vec<ObjectId>,
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
        let mut walk = Walk::new(repository);
        let selection = config.selection();
        match selection {
            Selection::Everything if conditions.is_empty() && !repository.partial => {}
            Selection::Everything => {
                walk.commits(&repository.tips()?, &[])?;
                if repository.partial {
                    walk.trees()?;
                }
            }
            Selection::Staged => walk.staged()?,
            Selection::Reachable { .. } | Selection::Range { .. } => {
                let (tips, not) = ends(repository, selection)?;
                walk.range(&tips, &not)?;
            }
        }
        let blobs = match selection {
            _ if conditions.is_empty() => Blobs::All,
            Selection::Staged => conditions.judge_staged(repository)?,
            _ => conditions.judge_trees(repository, &walk.roots)?,
        };
        if selection == Selection::Everything {
            let chosen = Arc::new(Chosen { ids: None, blobs });
            return Ok(Selected { chosen, few: None, roots: Vec::new(), absent: walk.absent });
        }
        let chosen = Arc::new(Chosen { ids: Some(walk.seen), blobs });
        Ok(Selected { chosen, few: walk.few, roots: walk.roots, absent: walk.absent })
    }

    /// The objects one by one, if they are few.
    pub fn take_few(&mut self) -> Option<Vec<(ObjectId, ObjectKind)>> {
        self.few.take()
    }

    /// What is selected and not here.
    pub fn take_absent(&mut self) -> Vec<ObjectId> {
        std::mem::take(&mut self.absent)
    }
}

impl Chosen {
    /// Whether all that is in the repository is chosen, but for blobs that path conditions leave out.
    pub fn is_everything(&self) -> bool {
        self.ids.is_none()
    }

    pub fn judge(&self, id: &ObjectId, kind: Option<ObjectKind>) -> Verdict {
        let short = id.short();
        if self.ids.as_ref().is_some_and(|ids| !ids.contains(&short)) {
            return Verdict::Pass;
        }
        let left_out = kind == Some(ObjectKind::Blob) && self.blobs.leave_out(short);
        if left_out { Verdict::Skip(Reason::Excluded) } else { Verdict::Scan }
    }
}

/// A part of the history that was chosen by its ends.
pub(super) struct Part {
    pub tips: Vec<ObjectId>,
    /// Its commits, and the tags that lead to them.
    pub commits: IdSet,
}

impl Part {
    /// `None` when the whole history was chosen, or none of it.
    pub fn of(repository: &Repository, config: &GitConfig) -> Result<Option<Part>, GitError> {
        let (tips, not) = match config.selection() {
            Selection::Everything | Selection::Staged => return Ok(None),
            selection => ends(repository, selection)?,
        };
        let mut walk = Walk::new(repository);
        walk.commits(&tips, &not)?;
        Ok(Some(Part { tips, commits: walk.seen }))
    }
}

/// Where a part of the history begins, and what it is without.
fn ends(
    repository: &Repository,
    selection: Selection<'_>,
) -> Result<(Vec<ObjectId>, Vec<ObjectId>), GitError> {
    Ok(match selection {
        Selection::Range { from, to } => {
            (resolve_all(repository, "range", [to])?, resolve_all(repository, "range", [from])?)
        }
        Selection::Reachable { from, not } => {
            let tips = match from {
                [] => repository.tips()?,
                names => resolve_all(repository, "refs", names.iter().map(String::as_str))?,
            };
            (tips, resolve_all(repository, "since_commit", not)?)
        }
        Selection::Everything | Selection::Staged => (repository.tips()?, Vec::new()),
    })
}

fn resolve_all<'a>(
    repository: &Repository,
    field: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<ObjectId>, GitError> {
    let resolve = |name| match repository.resolve(name) {
        Err(GitError::Configuration(detail)) => Err(GitError::Configuration(format!("`{field}`: {detail}"))),
        Err(GitError::Missing(id)) => {
            let hint =
                if repository.is_shallow() { "; it is shallow, fetch more of its history" } else { "" };
            Err(GitError::Configuration(format!("`{field}`: commit {id} is not in the repository{hint}")))
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
    /// What is chosen and not here, which only a partial repository may say of itself.
    absent: Vec<ObjectId>,
}

impl<'a> Walk<'a> {
    fn new(repository: &'a Repository) -> Walk<'a> {
        Walk { repository, seen: IdSet::new(), few: Some(Vec::new()), roots: Vec::new(), absent: Vec::new() }
    }

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
        self.absent.clear();
        self.trees()?;
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

    /// Chooses everything in the trees of the chosen commits.
    fn trees(&mut self) -> Result<(), GitError> {
        let roots = std::mem::take(&mut self.roots);
        let outcome = roots.iter().try_for_each(|root| self.tree(*root));
        self.roots = roots;
        outcome
    }

    /// Chooses everything in a tree that was not met before.
    fn tree(&mut self, root: ObjectId) -> Result<(), GitError> {
        let mut pending = vec![root];
        if !self.seen.insert(root.short()) {
            return Ok(());
        }
        while let Some(tree) = pending.pop() {
            if is_absent(self.repository, &tree)? {
                self.absent.push(tree);
                continue;
            }
            self.repository.tree(&tree, |entry| {
                let is_chosen = match entry.kind {
                    EntryKind::Blob => choose(&mut self.seen, &mut self.few, entry.id, ObjectKind::Blob),
                    EntryKind::Tree => {
                        pending.extend(self.seen.insert(entry.id.short()).then_some(entry.id));
                        false
                    }
                    EntryKind::Submodule => false,
                };
                if is_chosen && is_absent(self.repository, &entry.id)? {
                    self.absent.push(entry.id);
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
        staged::each_entry(self.repository, |entry| {
            match entry.kind {
                _ if committed.contains(&entry.id.short()) => {}
                EntryKind::Blob => drop(self.choose(entry.id, ObjectKind::Blob)),
                // A sparse index has folders that nobody changed, or that a merge brought.
                EntryKind::Tree => folders.push(entry.id),
                EntryKind::Submodule => {}
            }
            Ok(())
        })?;
        folders.into_iter().try_for_each(|folder| self.tree(folder))
    }

    fn choose(&mut self, id: ObjectId, kind: ObjectKind) -> bool {
        choose(&mut self.seen, &mut self.few, id, kind)
    }
}

/// Whether a partial repository does without this object. Of others nothing may be absent.
fn is_absent(repository: &Repository, id: &ObjectId) -> Result<bool, GitError> {
    if !repository.partial {
        return Ok(false);
    }
    match repository.store.find(id) {
        Err(GitError::Missing(_)) => Ok(true),
        found => found.map(|_| false),
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
