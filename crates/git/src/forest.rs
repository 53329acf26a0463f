//! The objects of one pack in delta order: each before those that are made from it, all that are made
//! from one before the next.
//!
//! The order comes from the index and the entries' heads alone. Of a delta the first bytes are inflated,
//! because only they tell the size of what it makes; of a tree's, not even these. The forest takes 24
//! bytes per object of the pack.

use std::sync::Arc;

use super::error::GitError;
use super::id::{ObjectId, ObjectKind};
use super::store::Inflater;
use super::store::pack::{Content, LOOK_LEN, Pack};

/// Bytes of a pack read at once.
const WINDOW_LEN: usize = 256 << 10;
/// From this distance between entries on, each is read for itself.
const SPARSE_MIN: u64 = 16 << 10;
const NONE: u32 = u32::MAX;
/// The largest offset: 256 TiB.
const OFFSET_MAX: u64 = (1 << 48) - 1;
/// A size that is asked of the pack when it is needed: not known yet, or of 4 GiB and more.
const UNKNOWN: u32 = u32::MAX;

/// An entry of a pack. The kind is `None` for a delta whose base comes later, and for damaged ones. There are as many as
/// objects: an offset has 48 bits, and a size 32.
struct Node {
    offset_low: u32,
    size: u32,
    /// Its place in the order of ids.
    position: u32,
    first_child: u32,
    /// While the forest is built: the base of a delta.
    next_sibling: u32,
    offset_high: u16,
    kind: Option<ObjectKind>,
    state: State,
}

const _: () = assert!(size_of::<Node>() == 24);

impl Node {
    /// An offset that no pack can have becomes another one that none has: opening the object tells.
    fn new(position: u32, offset: u64) -> Node {
        let offset = offset.min(OFFSET_MAX);
        Node {
            offset_low: offset as u32,
            size: 0,
            position,
            first_child: NONE,
            next_sibling: NONE,
            offset_high: (offset >> 32) as u16,
            kind: None,
            state: State::Root,
        }
    }

    fn offset(&self) -> u64 {
        u64::from(self.offset_high) << 32 | u64::from(self.offset_low)
    }

    fn set_size(&mut self, size: u64) {
        self.size = u32::try_from(size).unwrap_or(UNKNOWN);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Root,
    Delta,
    Visited,
}

/// An object as the pack has it.
pub(super) struct PackedObject {
    pub id: ObjectId,
    /// `None` when the pack is damaged there: opening it tells how.
    pub kind: Option<ObjectKind>,
    pub size: u64,
    pub offset: u64,
    /// A pack before this one has an object of the same id.
    pub is_copy: bool,
}

pub(super) struct Forest {
    pack: Arc<Pack>,
    nodes: Vec<Node>,
    /// Ids that packs before this one have, one bit each by position.
    duplicates: Vec<u64>,
    next_root: usize,
    /// What is to be visited, the next last, with the kind of its root.
    stack: Vec<(u32, Option<ObjectKind>)>,
    /// Entries that hang on no root, after all roots were visited.
    next_loose_end: usize,
}

impl Forest {
    /// The forest of `pack`, which tells the objects that one of `before` has, too.
    pub fn new(pack: &Arc<Pack>, before: &[Arc<Pack>]) -> Result<Forest, GitError> {
        Ok(Forest {
            nodes: nodes(pack)?,
            duplicates: duplicates(pack, before)?,
            pack: Arc::clone(pack),
            next_root: 0,
            stack: Vec::new(),
            next_loose_end: 0,
        })
    }

    /// The next object, whatever it is. Trees are left out, unless `is_blob` says that a blob is expected at that
    /// place in the order of ids.
    pub fn next(&mut self, is_blob: impl Fn(u32) -> bool) -> Result<Option<PackedObject>, GitError> {
        while let Some((at, kind)) = self.next_node() {
            let node = &self.nodes[at];
            let word = self.duplicates.get(at_word(node.position));
            let is_copy = word.is_some_and(|word| word & bit(node.position) != 0);
            // Trees are left out, so their ids and sizes are nobody's business.
            if kind == Some(ObjectKind::Tree) && !is_blob(node.position) {
                continue;
            }
            let size = match node.size {
                UNKNOWN => self.pack.size_at(node.offset()).unwrap_or(0),
                size => u64::from(size),
            };
            let id = self.pack.index.id(node.position)?;
            return Ok(Some(PackedObject { id, kind, size, offset: node.offset(), is_copy }));
        }
        Ok(None)
    }

    fn next_node(&mut self) -> Option<(usize, Option<ObjectKind>)> {
        if let Some((at, kind)) = self.stack.pop() {
            return Some(self.visit(at as usize, kind));
        }
        while let Some(node) = self.nodes.get(self.next_root) {
            let (at, kind) = (self.next_root, node.kind);
            self.next_root += 1;
            if node.state == State::Root {
                return Some(self.visit(at, kind));
            }
        }
        // Deltas in a circle, or of an object that is not in the pack.
        while let Some(node) = self.nodes.get_mut(self.next_loose_end) {
            let at = self.next_loose_end;
            self.next_loose_end += 1;
            if node.state != State::Visited {
                node.state = State::Visited;
                return Some((at, None));
            }
        }
        None
    }

    fn visit(&mut self, at: usize, kind: Option<ObjectKind>) -> (usize, Option<ObjectKind>) {
        let node = &mut self.nodes[at];
        node.state = State::Visited;
        if node.next_sibling != NONE {
            self.stack.push((node.next_sibling, kind));
        }
        if node.first_child != NONE {
            self.stack.push((node.first_child, kind));
        }
        (at, kind)
    }
}

/// The entries in the order they have in the pack, with their children.
fn nodes(pack: &Pack) -> Result<Vec<Node>, GitError> {
    let mut nodes = Vec::with_capacity(pack.index.count() as usize);
    pack.index.each_offset(|offset| nodes.push(Node::new(nodes.len() as u32, offset)))?;
    nodes.sort_unstable_by_key(Node::offset);
    let mut window = Window::new(pack, nodes.len());
    let mut inflater = Inflater::new();
    for at in 0..nodes.len() {
        let offset = nodes[at].offset();
        let bytes = window.at(offset)?;
        // An entry that makes no sense is a root without a kind.
        let Ok(head) = pack.head(offset, bytes) else { continue };
        let base = match head.content {
            Content::Whole(kind) => {
                nodes[at].kind = Some(kind);
                nodes[at].set_size(head.size);
                continue;
            }
            Content::DeltaAt(base) => Some(base),
            Content::DeltaOf(id) => pack.index.find(&id)?,
        };
        let base = base.and_then(|base| nodes.binary_search_by_key(&base, Node::offset).ok());
        nodes[at].state = State::Delta;
        nodes[at].kind = base.and_then(|base| nodes[base].kind);
        match nodes[at].kind {
            None | Some(ObjectKind::Tree) => nodes[at].size = UNKNOWN,
            Some(_) => nodes[at].set_size(pack.object_size(&mut inflater, &head, bytes).unwrap_or(0)),
        }
        nodes[at].next_sibling = base.map_or(NONE, |base| base as u32);
    }
    // From the last to the first, so that siblings come in the order of the pack.
    for at in (0..nodes.len()).rev() {
        let base = nodes[at].next_sibling;
        if base != NONE {
            nodes[at].next_sibling = std::mem::replace(&mut nodes[base as usize].first_child, at as u32);
        }
    }
    let bases = || nodes.iter().filter(|node| node.first_child != NONE);
    pack.set_bases(bases().count(), bases().map(Node::offset));
    Ok(nodes)
}

/// Which ids of `pack` others have: both are read in order, side by side.
fn duplicates(pack: &Pack, others: &[Arc<Pack>]) -> Result<Vec<u64>, GitError> {
    if others.is_empty() {
        return Ok(Vec::new());
    }
    let mut bits = vec![0; at_word(pack.index.count()) + 1];
    for other in others {
        let (mut own, mut theirs) = (pack.index.ids(), other.index.ids());
        let mut position = 0;
        let mut one = theirs.next()?;
        while let Some(id) = own.next()? {
            while one.is_some_and(|one| one < id) {
                one = theirs.next()?;
            }
            if one == Some(id) {
                bits[at_word(position)] |= bit(position);
            }
            position += 1;
        }
    }
    Ok(bits)
}

fn at_word(position: u32) -> usize {
    position as usize / 64
}

fn bit(position: u32) -> u64 {
    1 << (position % 64)
}

/// A pack read from front to back.
struct Window<'a> {
    pack: &'a Pack,
    buffer: Vec<u8>,
    start: u64,
    len: usize,
}

impl Window<'_> {
    fn new(pack: &Pack, entries: usize) -> Window<'_> {
        let sparse = pack.len() / (entries as u64).max(1) >= SPARSE_MIN;
        let buffer = vec![0; if sparse { LOOK_LEN } else { WINDOW_LEN }];
        Window { pack, buffer, start: 0, len: 0 }
    }

    /// The bytes from `offset` on: [`LOOK_LEN`] of them, or all there are.
    fn at(&mut self, offset: u64) -> Result<&[u8], GitError> {
        let wanted = offset.saturating_add(LOOK_LEN as u64).min(self.pack.len());
        if offset < self.start || wanted > self.start + self.len as u64 {
            self.start = offset;
            self.len = self.pack.read_at(&mut self.buffer, offset)?;
        }
        let from = (offset - self.start).min(self.len as u64) as usize;
        Ok(&self.buffer[from..self.len.min(from + LOOK_LEN)])
    }
}
