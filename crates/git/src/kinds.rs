//! What the paths of blobs make of them: source code, samples. Blobs are scanned by their ids, and rules that find
//! too much in source code have to know that they are in it.
//!
//! A blob counts by every path that it has in the chosen commits: it is source code only if it is at all of them. So the
//! order of commits does not matter, and one that comes later can only take that away. What nothing leads to is neither,
//! and where a part of the history cannot be read, so is everything: another path may be there.
//!
//! A tree is compared with the one that the commit before had in its place, and only what differs is looked up. A byte
//! is held for each object of the packs.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use domesday_model::VersionMarks;
use domesday_scheduler::PathKind;
use serde::{Deserialize, Serialize};

use super::config::{GitConfig, Selection};
use super::error::GitError;
use super::id::{ObjectId, ObjectKind};
use super::parse::{EntryKind, TreeEntry, tree_entries};
use super::repository::Repository;
use super::staged;
use super::store::ObjectStore;
use super::store::pack::Pack;

// What is held of an object: of a blob, whether it has a path, and one that is not of source code, or not of a
// sample; of a tree, by the kinds of folders, in which it was met; of a commit, whether it was met.
const MET: u8 = 1;
const NOT_CODE: u8 = 1 << 1;
const NOT_SAMPLE: u8 = 1 << 2;
const IN_FOLDERS: u32 = 3;
const COMMIT: u8 = 1 << 7;

/// Submodules of one repository that are named, at most.
const SUBMODULES_MAX: usize = 10_000;
/// What stands for the rest.
const MORE_SUBMODULES: &[u8] = b"...";
/// Bytes of the path of a submodule, at most.
const PATH_LEN_MAX: usize = 4_096;

/// What is known of a repository's blobs.
pub(super) struct BlobKinds {
    packs: Arc<Vec<Arc<Pack>>>,
    /// By pack and place in its order of ids.
    packed: Vec<Vec<u8>>,
    /// Those of objects that no pack has, whether they are anywhere else or not.
    loose: HashMap<ObjectId, u8>,
    /// Commits and trees that are not there or not what their names say: what they lead to is not known.
    unread: Vec<ObjectId>,
    /// Paths at which a commit of another repository is.
    submodules: BTreeSet<Vec<u8>>,
    /// Whether all paths are known.
    is_whole: bool,
}

/// A tree to be gone through.
struct Step {
    tree: ObjectId,
    /// Another that was at the same path.
    before: Option<ObjectId>,
    folder: PathKind,
    /// The folder in the trail.
    at: usize,
}

/// The names of the folders that were gone into, of which a path is put together only where one is needed.
struct Trail {
    names: Vec<u8>,
    /// Each with the number of the folder it is in, and where its name ends; the first is the root.
    folders: Vec<(usize, usize)>,
}

impl Default for Trail {
    fn default() -> Trail {
        Trail::below(b"")
    }
}

impl Trail {
    /// Below a folder with this path.
    fn below(path: &[u8]) -> Trail {
        Trail { names: path.to_vec(), folders: vec![(0, path.len())] }
    }

    /// The number of a folder in the one of this number.
    fn enter(&mut self, inside: usize, name: &[u8]) -> usize {
        self.names.extend_from_slice(name);
        self.folders.push((inside, self.names.len()));
        self.folders.len() - 1
    }

    /// The path of what has this name in a folder; of a longer one than [`PATH_LEN_MAX`] the end.
    fn path(&self, mut folder: usize, name: &[u8]) -> Vec<u8> {
        let mut path: Vec<u8> = name.iter().rev().copied().take(PATH_LEN_MAX).collect();
        loop {
            let (inside, end) = self.folders[folder];
            let start = if folder == 0 { 0 } else { self.folders[folder - 1].1 };
            if end > start && path.len() < PATH_LEN_MAX {
                path.push(b'/');
                path.extend(self.names[start..end].iter().rev());
            }
            if folder == 0 {
                break;
            }
            folder = inside;
        }
        path.truncate(PATH_LEN_MAX);
        path.reverse();
        path
    }
}

impl BlobKinds {
    /// Goes through the trees of what is chosen; `roots` are those of a part of the history.
    pub fn new(repository: &Repository, config: &GitConfig, roots: Vec<ObjectId>) -> BlobKinds {
        let packs = repository.store.packs();
        let packed = packs.iter().map(|pack| vec![0; pack.index.count() as usize]).collect();
        let mut kinds = BlobKinds {
            packs,
            packed,
            loose: HashMap::new(),
            unread: Vec::new(),
            submodules: BTreeSet::new(),
            is_whole: true,
        };
        let read = match config.selection() {
            Selection::Everything => kinds.history(repository),
            Selection::Staged => {
                let read = kinds.staged(repository);
                // Of a part that is to be committed their histories are none.
                kinds.submodules.clear();
                read
            }
            Selection::Reachable { .. } | Selection::Range { .. } => {
                let mut before = None;
                roots.into_iter().try_for_each(|root| kinds.root(repository, root, &mut before))
            }
        };
        kinds.is_whole &= read.is_ok();
        if config.uncommitted {
            // A staged file may have a path that no commit has. Of an index that cannot be read no file counts as
            // staged, so that all of them are listed with their own paths.
            let _ = kinds.staged(repository);
        }
        kinds
    }

    /// What the history or the index leads to and the repository has not, or has under a wrong name.
    pub fn take_missing(&mut self, store: &ObjectStore) -> Result<Vec<ObjectId>, GitError> {
        let mut missing = std::mem::take(&mut self.unread);
        for id in self.loose.keys() {
            if store.find_known(id)?.is_none() {
                missing.push(*id);
            }
        }
        missing.sort_unstable();
        missing.dedup();
        Ok(missing)
    }

    /// The paths of submodules, in order.
    pub fn submodules(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.submodules.iter()
    }

    pub fn of(&self, id: &ObjectId) -> PathKind {
        if !self.is_whole {
            return PathKind::default();
        }
        let known = match self.place(id) {
            Ok(Some((pack, position))) => self.packed[pack][position],
            Ok(None) => self.loose.get(id).copied().unwrap_or_default(),
            Err(_) => 0,
        };
        let every = |other: u8| known & (MET | other) == MET;
        PathKind { code: every(NOT_CODE), sample: every(NOT_SAMPLE) }
    }

    /// Whether a tree or the index has this object as a blob.
    pub fn is_blob(&self, id: &ObjectId) -> bool {
        let known = match self.place(id) {
            Ok(Some((pack, position))) => self.packed[pack][position],
            _ => self.loose.get(id).copied().unwrap_or_default(),
        };
        known & MET != 0
    }

    /// The same of the object at a place in the order of a pack's ids.
    pub fn is_blob_at(&self, pack: usize, position: u32) -> bool {
        self.packed
            .get(pack)
            .and_then(|pack| pack.get(position as usize))
            .is_some_and(|known| known & MET != 0)
    }

    /// All that references lead to.
    fn history(&mut self, repository: &Repository) -> Result<(), GitError> {
        let (mut pending, mut before) = (Vec::new(), None);
        for tip in repository.tips()? {
            let Some(peeled) = self.readable(&tip, repository.peel(&tip))? else { continue };
            match peeled {
                (_, id, ObjectKind::Commit) => pending.push(id),
                (_, id, ObjectKind::Tree) => self.root(repository, id, &mut before)?,
                (_, id, ObjectKind::Blob) => self.add(&id, PathKind::default())?,
                (_, _, ObjectKind::Tag) => {}
            }
        }
        while let Some(id) = pending.pop() {
            let met = self.slot(&id)?;
            if *met & COMMIT != 0 {
                continue;
            }
            *met |= COMMIT;
            let read = repository.commit(&id, |commit| (commit.tree, commit.parents));
            let Some((tree, parents)) = self.readable(&id, read)?.flatten() else {
                self.is_whole = false;
                continue;
            };
            pending.extend(parents);
            self.root(repository, tree, &mut before)?;
        }
        Ok(())
    }

    fn staged(&mut self, repository: &Repository) -> Result<(), GitError> {
        let mut folders = Vec::new();
        staged::each_entry(repository, |entry| {
            match entry.kind {
                EntryKind::Blob => self.add(&entry.id, PathKind::of(entry.path))?,
                EntryKind::Tree => {
                    folders.push((entry.id, PathKind::of(entry.path), Trail::below(entry.path)))
                }
                EntryKind::Submodule => self.note_submodule(&Trail::default(), 0, entry.path),
            }
            Ok(())
        })?;
        folders
            .into_iter()
            .try_for_each(|(tree, folder, trail)| self.trees(repository, tree, None, folder, trail))
    }

    /// Goes through the tree of a commit; `before` is that of the commit before.
    fn root(
        &mut self,
        repository: &Repository,
        root: ObjectId,
        before: &mut Option<ObjectId>,
    ) -> Result<(), GitError> {
        self.trees(repository, root, before.replace(root), PathKind::default(), Trail::default())
    }

    /// Goes through a tree and all in it.
    fn trees(
        &mut self,
        repository: &Repository,
        tree: ObjectId,
        before: Option<ObjectId>,
        folder: PathKind,
        mut trail: Trail,
    ) -> Result<(), GitError> {
        let mut pending = Vec::new();
        if self.enter(&tree, folder)? {
            pending.push(Step { tree, before, folder, at: 0 });
        }
        while let Some(Step { tree, before, folder, at }) = pending.pop() {
            let mut read =
                |tree: ObjectId| self.readable(&tree, repository.tree_data(&tree)).map(Option::flatten);
            let Some(data) = read(tree)? else {
                self.is_whole = false;
                continue;
            };
            let before = before.map(read).transpose()?.flatten();
            let entries = |data| tree_entries(tree, data, repository.store.hash);
            let mut old =
                entries(before.as_deref().map_or(&[][..], |data| data)).map_while(Result::ok).peekable();
            for entry in entries(&data) {
                let entry = entry?;
                while old.next_if(|old| in_order(old, &entry) == Ordering::Less).is_some() {}
                let old = old.next_if(|old| in_order(old, &entry) == Ordering::Equal);
                if old.as_ref().is_some_and(|old| old.id == entry.id && old.kind == entry.kind) {
                    continue;
                }
                match entry.kind {
                    EntryKind::Blob => self.add(&entry.id, folder.or(PathKind::of_name(entry.name)))?,
                    EntryKind::Tree => {
                        let folder = folder.or(PathKind::of_folder(entry.name));
                        if self.enter(&entry.id, folder)? {
                            let before = old.map(|old| old.id);
                            let at = trail.enter(at, entry.name);
                            pending.push(Step { tree: entry.id, before, folder, at });
                        }
                    }
                    EntryKind::Submodule => self.note_submodule(&trail, at, entry.name),
                }
            }
        }
        Ok(())
    }

    fn note_submodule(&mut self, trail: &Trail, folder: usize, name: &[u8]) {
        let path = trail.path(folder, name);
        if !self.submodules.contains(&path) {
            let is_full = self.submodules.len() >= SUBMODULES_MAX;
            self.submodules.insert(if is_full { MORE_SUBMODULES.to_vec() } else { path });
        }
    }

    /// What was read, unless it is not there or not what its name says: that is noted, and the rest is gone through.
    fn readable<T>(&mut self, id: &ObjectId, read: Result<T, GitError>) -> Result<Option<T>, GitError> {
        match read {
            Ok(read) => return Ok(Some(read)),
            Err(GitError::Missing(missing)) => self.unread.push(missing),
            Err(GitError::Mismatch { .. }) => self.unread.push(*id),
            Err(error) => return Err(error),
        }
        self.is_whole = false;
        Ok(None)
    }

    /// Notes a path of a blob.
    fn add(&mut self, id: &ObjectId, kind: PathKind) -> Result<(), GitError> {
        let code = if kind.code { 0 } else { NOT_CODE };
        let sample = if kind.sample { 0 } else { NOT_SAMPLE };
        *self.slot(id)? |= MET | code | sample;
        Ok(())
    }

    /// Whether a tree is to be gone through, because it was not met yet in a folder that says no more of it.
    fn enter(&mut self, id: &ObjectId, folder: PathKind) -> Result<bool, GitError> {
        let kind = u32::from(folder.code) | u32::from(folder.sample) << 1;
        let no_more: u8 = (0..4).filter(|less| less & !kind == 0).map(|less| 1 << (IN_FOLDERS + less)).sum();
        let met = self.slot(id)?;
        let is_new = *met & no_more == 0;
        *met |= 1 << (IN_FOLDERS + kind);
        Ok(is_new)
    }

    fn slot(&mut self, id: &ObjectId) -> Result<&mut u8, GitError> {
        Ok(match self.place(id)? {
            Some((pack, position)) => &mut self.packed[pack][position],
            None => self.loose.entry(*id).or_default(),
        })
    }

    /// The first pack that has an object, and its place there.
    fn place(&self, id: &ObjectId) -> Result<Option<(usize, usize)>, GitError> {
        for (number, pack) in self.packs.iter().enumerate() {
            if let Some(position) = pack.index.position(id)? {
                return Ok(Some((number, position as usize)));
            }
        }
        Ok(None)
    }
}

/// How git sorts the entries of a tree: folders as if their names ended with a slash.
fn in_order(one: &TreeEntry<'_>, other: &TreeEntry<'_>) -> Ordering {
    let len = one.name.len().min(other.name.len());
    let next = |entry: &TreeEntry<'_>| {
        entry.name.get(len).copied().or((entry.kind == EntryKind::Tree).then_some(b'/'))
    };
    one.name[..len].cmp(&other.name[..len]).then_with(|| next(one).cmp(&next(other)))
}

/// What is written down of a blob.
#[derive(Serialize, Deserialize)]
struct Note {
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    code: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    sample: bool,
}

/// A record's metadata for a blob of that kind.
pub(super) fn metadata(kind: PathKind) -> Option<Box<str>> {
    let note = Note { code: kind.code, sample: kind.sample };
    (kind != PathKind::default())
        .then(|| serde_json::to_string(&note).expect("two flags can be written as JSON").into())
}

/// The kind that the metadata tell.
pub(super) fn kind_of(metadata: Option<&str>) -> PathKind {
    let note = metadata.and_then(|text| serde_json::from_str(text).ok());
    note.map_or(PathKind::default(), |Note { code, sample }| PathKind { code, sample })
}

/// An id and what is made of its blob tell versions apart: at a new path, more may be found in the same bytes.
pub(super) fn marks(id: &ObjectId, metadata: Option<&str>) -> VersionMarks {
    VersionMarks::tagged(&[id.as_bytes(), metadata.unwrap_or_default().as_bytes()].concat())
}
