//! Where objects came from: the commit that brought a blob, and the path it had there.
//!
//! First the history of all references is searched, then, for blobs that are not in it, the commits that
//! no reference leads to any more: what was taken back by force is still in the repository.
//!
//! Commits are gone through parents first, the oldest of those that are ready next, so that the first
//! commit that has a blob is one that brought it. A tree that was seen is not looked at again, whichever
//! commit has it: that leaves, of each commit, what it changed. Per commit some 80 bytes are held, and 16
//! per tree.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use domesday_model::ObjectKey;

use super::error::GitError;
use super::id::{ObjectId, ObjectKind};
use super::listing;
use super::parse::{Commit, EntryKind, Signature, Tag};
use super::repository::Repository;

/// Where an object came from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The path a blob had first; commits and tags have none.
    pub path: Option<ObjectKey>,
    /// The commit that brought a blob; a commit itself; what a tag marks.
    pub commit: ObjectId,
    /// Who wrote the commit or made the tag, as `Name <address>`; empty when it does not say.
    pub author: String,
    /// When, in seconds since 1970.
    pub time: i64,
    /// Whether no reference leads to the commit that brought a blob any more.
    pub is_abandoned: bool,
}

pub(super) fn origins(
    repository: &Repository,
    ids: &[ObjectId],
) -> Result<HashMap<ObjectId, Origin>, GitError> {
    let mut search = Search {
        repository,
        wanted: HashSet::new(),
        found: HashMap::new(),
        trees: HashSet::new(),
        is_abandoned: false,
    };
    for id in ids {
        search.begin(*id)?;
    }
    if !search.wanted.is_empty() {
        search.history(repository.tips()?)?;
    }
    if !search.wanted.is_empty() {
        search.is_abandoned = true;
        search.history(listing::all_commits(repository)?)?;
    }
    Ok(search.found)
}

struct Search<'a> {
    repository: &'a Repository,
    /// Blobs that are not found yet.
    wanted: HashSet<ObjectId>,
    found: HashMap<ObjectId, Origin>,
    /// Trees that were looked at.
    trees: HashSet<u128>,
    /// Commits that no reference leads to are searched. Of what they lead to, anything may be gone.
    is_abandoned: bool,
}

impl Search<'_> {
    /// Commits and tags describe themselves; blobs are searched for.
    fn begin(&mut self, id: ObjectId) -> Result<(), GitError> {
        let store = &self.repository.store;
        let kind = match store.find(&id) {
            Ok(place) => store.describe(&place)?.0,
            Err(GitError::Missing(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        let origin = match kind {
            ObjectKind::Blob => {
                self.wanted.insert(id);
                return Ok(());
            }
            ObjectKind::Tree => return Ok(()),
            ObjectKind::Commit => {
                let object = store.read(&id)?;
                Origin::new(None, id, Commit::parse(&id, &object.data)?.author)
            }
            ObjectKind::Tag => {
                let object = store.read(&id)?;
                let tag = Tag::parse(&id, &object.data)?;
                Origin::new(None, tag.target, tag.tagger)
            }
        };
        self.found.insert(id, origin);
        Ok(())
    }

    fn history(&mut self, tips: Vec<ObjectId>) -> Result<(), GitError> {
        let mut graph = Graph::new(self, tips)?;
        while let Some(commit) = graph.next() {
            self.commit(&commit)?;
            if self.wanted.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// What was read, or nothing where it may be gone.
    fn if_there<T>(&self, read: Result<T, GitError>) -> Result<Option<T>, GitError> {
        match read {
            Err(GitError::Missing(_)) if self.is_abandoned => Ok(None),
            read => read.map(Some),
        }
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
                    EntryKind::Tree => pending.push((entry.id, [&path(), b"/".as_slice()].concat())),
                    EntryKind::Blob if self.wanted.contains(&entry.id) => brought.push((entry.id, path())),
                    _ => {}
                }
                Ok(())
            });
            self.if_there(read)?;
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
                let origin = Origin::new(Some(ObjectKey(path)), *id, author);
                self.found.insert(blob, Origin { is_abandoned: self.is_abandoned, ..origin });
            }
        }
        Ok(())
    }
}

impl Origin {
    fn new(path: Option<ObjectKey>, commit: ObjectId, signature: Option<Signature<'_>>) -> Origin {
        let (author, time) = match signature {
            Some(signature) => (String::from_utf8_lossy(signature.who).into_owned(), signature.time),
            None => (String::new(), 0),
        };
        Origin { path, commit, author, time, is_abandoned: false }
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
    /// The commits that these lead to; what is no commit leads nowhere.
    fn new(search: &Search<'_>, tips: Vec<ObjectId>) -> Result<Graph, GitError> {
        let repository = search.repository;
        let mut graph = Graph { commits: Vec::new(), edges: Vec::new(), ready: BinaryHeap::new() };
        let mut numbers: HashMap<u128, u32> = HashMap::new();
        let mut pending: Vec<(ObjectId, Option<u32>)> = Vec::new();
        for tip in tips {
            match repository.peel(&tip) {
                Ok((_, id, ObjectKind::Commit)) => pending.push((id, None)),
                Ok(_) | Err(GitError::Missing(_)) => {}
                Err(error) => return Err(error),
            }
        }
        while let Some((id, child)) = pending.pop() {
            let number = match numbers.get(&id.short()) {
                Some(number) => *number,
                None => {
                    let number = graph.commits.len() as u32;
                    let read = repository.commit(&id, |commit| (commit.parents, commit.time));
                    let read = search.if_there(read)?.flatten();
                    // What a partial repository has not, it cannot tell of.
                    let Some((parents, time)) = read else { continue };
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
