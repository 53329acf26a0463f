//! Where objects came from: the commit that brought a blob, and the path it had there.
//!
//! First the chosen part of the history is searched, then that of all references, then, for blobs that are
//! in neither, the index, and at last the commits that no reference leads to any more: what was taken back
//! by force is still in the repository. What is damaged or gone is passed over: a finding without its
//! commit is better than none.
//!
//! Commits are gone through parents first, the oldest of those that are ready next, so that the first
//! commit that has a blob is one that brought it. A tree that was seen is not looked at again, whichever
//! commit has it: that leaves, of each commit, what it changed. Per commit some 80 bytes are held, and 16
//! per tree.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use domesday_model::{ObjectKey, Origin};
use domesday_scheduler::Moved;

use super::config::GitConfig;
use super::error::GitError;
use super::id::{ObjectId, ObjectKind};
use super::parse::{Commit, EntryKind, Signature, Tag};
use super::repository::Repository;
use super::select::{IdSet, Part};
use super::{listing, staged};

const MS_PER_SECOND: i64 = 1_000;

/// Where these objects came from; those that nothing leads to are absent.
pub(super) fn origins(
    repository: &Repository,
    config: &GitConfig,
    ids: &[ObjectId],
    moved: &Moved,
) -> Result<HashMap<ObjectId, Origin>, GitError> {
    let mut search = Search {
        repository,
        wanted: ids.iter().copied().collect(),
        found: HashMap::new(),
        trees: HashSet::new(),
        is_abandoned: false,
        moved,
    };
    if config.staged {
        search.staged()?;
    }
    if !search.wanted.is_empty()
        && let Some(part) = Part::of(repository, config)?
    {
        search.history(part.tips, Some(&part.commits))?;
    }
    if !search.wanted.is_empty() {
        search.history(repository.tips()?, None)?;
    }
    if !search.wanted.is_empty() {
        search.staged()?;
    }
    search.describe_rest()?;
    if !search.wanted.is_empty() {
        search.is_abandoned = true;
        search.history(listing::all_commits(repository)?, None)?;
    }
    Ok(search.found)
}

struct Search<'a> {
    repository: &'a Repository,
    /// What is not found yet.
    wanted: HashSet<ObjectId>,
    found: HashMap<ObjectId, Origin>,
    /// Trees that were looked at.
    trees: HashSet<u128>,
    /// Commits that no reference leads to are searched.
    is_abandoned: bool,
    /// Counts the commits that were looked at.
    moved: &'a Moved,
}

impl Search<'_> {
    /// Commits and tags describe themselves.
    fn describe(&mut self, id: &ObjectId) -> Result<(), GitError> {
        let object = self.repository.store.read(id)?;
        let origin = match object.kind {
            ObjectKind::Commit => origin(None, *id, Commit::parse(id, &object.data)?.author),
            ObjectKind::Tag => {
                let tag = Tag::parse(id, &object.data)?;
                origin(None, tag.target, tag.tagger)
            }
            ObjectKind::Blob | ObjectKind::Tree => return Ok(()),
        };
        self.wanted.remove(id);
        self.found.insert(*id, origin);
        Ok(())
    }

    fn describe_wanted(&mut self, id: &ObjectId) -> Result<(), GitError> {
        if self.wanted.contains(id) {
            if_readable(self.describe(id))?;
        }
        Ok(())
    }

    /// Leaves only blobs to be searched for. Not asked before all that references lead to was searched: to tell
    /// what an object is takes a read for each delta of its chain.
    fn describe_rest(&mut self) -> Result<(), GitError> {
        let store = &self.repository.store;
        for id in Vec::from_iter(self.wanted.iter().copied()) {
            let described = store.find(&id).and_then(|place| store.describe(&place));
            let kind = if_readable(described)?.map(|(kind, _)| kind);
            if kind != Some(ObjectKind::Blob) {
                if_readable(self.describe(&id))?;
                self.wanted.remove(&id);
            }
        }
        Ok(())
    }

    fn history(&mut self, tips: Vec<ObjectId>, within: Option<&IdSet>) -> Result<(), GitError> {
        for tip in &tips {
            self.describe_wanted(tip)?;
        }
        let mut graph = Graph::new(self.repository, tips, within)?;
        for commit in &graph.commits {
            self.describe_wanted(&commit.id)?;
        }
        while let Some(commit) = graph.next() {
            self.moved.add(1);
            if_readable(self.commit(&commit))?;
            if self.wanted.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// What is staged has a path, and no commit yet.
    fn staged(&mut self) -> Result<(), GitError> {
        let read = staged::each_entry(self.repository, |entry| {
            if self.wanted.remove(&entry.id) {
                let path = Some(ObjectKey::new(entry.path));
                let (commit, author) = (String::new(), String::new());
                let origin = Origin { path, commit, author, time_ms: 0, is_abandoned: false };
                self.found.insert(entry.id, origin);
            }
            Ok(())
        });
        if_readable(read).map(|_| ())
    }

    fn commit(&mut self, id: &ObjectId) -> Result<(), GitError> {
        let Some(root) = self.repository.commit(id, |commit| commit.tree)? else { return Ok(()) };
        let mut brought = Vec::new();
        // In the order of paths, so that of two the first is taken. Folders are put back to front.
        let mut pending = vec![(root, Vec::new())];
        while let Some((tree, folder)) = pending.pop() {
            if !self.trees.insert(tree.short()) {
                continue;
            }
            let first = pending.len();
            let read = self.repository.tree(&tree, |entry| {
                let path = || [folder.as_slice(), entry.name].concat();
                match entry.kind {
                    EntryKind::Tree if self.trees.contains(&entry.id.short()) => {}
                    EntryKind::Tree => pending.push((entry.id, [&path(), b"/".as_slice()].concat())),
                    EntryKind::Blob if self.wanted.contains(&entry.id) => brought.push((entry.id, path())),
                    _ => {}
                }
                Ok(())
            });
            if_readable(read)?;
            pending[first..].reverse();
        }
        if brought.is_empty() {
            return Ok(());
        }
        brought.sort_unstable();
        let object = self.repository.store.read(id)?;
        for (blob, path) in brought {
            if self.wanted.remove(&blob) {
                let author = Commit::parse(id, &object.data)?.author;
                let origin = origin(Some(ObjectKey(path)), *id, author);
                self.found.insert(blob, Origin { is_abandoned: self.is_abandoned, ..origin });
            }
        }
        Ok(())
    }
}

fn origin(path: Option<ObjectKey>, commit: ObjectId, signature: Option<Signature<'_>>) -> Origin {
    let (author, time) = match signature {
        Some(signature) => (String::from_utf8_lossy(signature.who).into_owned(), signature.time),
        None => (String::new(), 0),
    };
    let time_ms = time.saturating_mul(MS_PER_SECOND);
    Origin { path, commit: commit.to_string(), author, time_ms, is_abandoned: false }
}

/// What was read, or nothing where it is damaged or gone.
fn if_readable<T>(read: Result<T, GitError>) -> Result<Option<T>, GitError> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(GitError::Io { what, source }) => Err(GitError::Io { what, source }),
        Err(_) => Ok(None),
    }
}

/// Commits, parents before children.
struct Graph {
    commits: Vec<Node>,
    /// Child by child, as lists through `next`.
    edges: Vec<Edge>,
    /// Commits all of whose parents were handed out, the oldest first; of two, the one with the lower id.
    ready: BinaryHeap<Reverse<(i64, ObjectId, u32)>>,
}

struct Node {
    id: ObjectId,
    time: i64,
    parents_left: u32,
    first_edge: u32,
}

struct Edge {
    child: u32,
    next: u32,
}

const NO_EDGE: u32 = u32::MAX;

impl Graph {
    /// The commits that these lead to, of those in `within`; what is no commit leads nowhere.
    fn new(repository: &Repository, tips: Vec<ObjectId>, within: Option<&IdSet>) -> Result<Graph, GitError> {
        let mut graph = Graph { commits: Vec::new(), edges: Vec::new(), ready: BinaryHeap::new() };
        let mut numbers: HashMap<u128, u32> = HashMap::new();
        let mut pending: Vec<(ObjectId, Option<u32>)> = Vec::new();
        for tip in tips {
            if let Some((_, id, ObjectKind::Commit)) = if_readable(repository.peel(&tip))? {
                pending.push((id, None));
            }
        }
        while let Some((id, child)) = pending.pop() {
            if within.is_some_and(|within| !within.contains(&id.short())) {
                continue;
            }
            let number = match numbers.get(&id.short()) {
                Some(number) => *number,
                None => {
                    let number = graph.commits.len() as u32;
                    let read = repository.commit(&id, |commit| (commit.parents, commit.time));
                    let Some((parents, time)) = if_readable(read)?.flatten() else { continue };
                    pending.extend(parents.into_iter().map(|parent| (parent, Some(number))));
                    numbers.insert(id.short(), number);
                    graph.commits.push(Node { id, time, parents_left: 0, first_edge: NO_EDGE });
                    number
                }
            };
            if let Some(child) = child {
                let next = std::mem::replace(
                    &mut graph.commits[number as usize].first_edge,
                    graph.edges.len() as u32,
                );
                graph.edges.push(Edge { child, next });
                graph.commits[child as usize].parents_left += 1;
            }
        }
        for number in 0..graph.commits.len() as u32 {
            graph.make_ready(number);
        }
        Ok(graph)
    }

    fn make_ready(&mut self, number: u32) {
        let node = &self.commits[number as usize];
        if node.parents_left == 0 {
            self.ready.push(Reverse((node.time, node.id, number)));
        }
    }

    fn next(&mut self) -> Option<ObjectId> {
        let Reverse((_, id, number)) = self.ready.pop()?;
        let mut at = self.commits[number as usize].first_edge;
        while let Some(edge) = self.edges.get(at as usize) {
            let child = edge.child;
            at = edge.next;
            self.commits[child as usize].parents_left -= 1;
            self.make_ready(child);
        }
        Some(id)
    }
}
