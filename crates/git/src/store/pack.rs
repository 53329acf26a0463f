//! A pack: objects one after another, whole or as deltas of others.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::HELD_MAX;
use super::delta;
use super::file::StoreFile;
use super::index::PackIndex;
use super::inflate::{Inflater, inflater};
use crate::error::GitError;
use crate::id::{HashKind, ObjectId, ObjectKind};

const HEADER_LEN: u64 = 12;
/// Bytes of an entry from which its head and, for a delta, the size of what it makes can always be told:
/// the head, and the tables that precede the first byte of a deflated stream.
pub(crate) const LOOK_LEN: usize = 1 << 10;

/// Bytes of packs that this process may still hold in memory: 32 MiB in all.
static ROOM: AtomicU64 = AtomicU64::new(32 << 20);

/// A pack that may be held is read whole when there was one read for so many of its bytes: 16 KiB.
const HELD_READ_LEN: u64 = 16 << 10;
/// And so many reads at least: a scan that opens a few objects is done before.
const HELD_READS_MIN: u64 = 64;

/// Some of that room, taken for as long as this lives.
struct Room(u64);

impl Room {
    fn take(bytes: u64) -> Option<Room> {
        let taken = ROOM.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| room.checked_sub(bytes));
        taken.ok().map(|_| Room(bytes))
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        ROOM.fetch_add(self.0, Ordering::Relaxed);
    }
}

pub(crate) struct Pack {
    /// Told apart by number in the cache, for as long as the process lives.
    pub number: u32,
    pub index: PackIndex,
    pub(super) file: Arc<StoreFile>,
    _room: Option<Room>,
    hash: HashKind,
    /// Known once the pack was listed.
    bases: OnceLock<Bases>,
}

/// What an entry is, before it is inflated.
pub(crate) struct EntryHead {
    pub content: Content,
    /// Bytes of what is deflated: of an object, or of a delta's instructions.
    pub size: u64,
    /// Bytes of the head.
    pub len: usize,
}

#[derive(Clone, Copy)]
pub(crate) enum Content {
    Whole(ObjectKind),
    /// A delta of the object that begins there in the same pack.
    DeltaAt(u64),
    DeltaOf(ObjectId),
}

impl Pack {
    /// The pack whose index is at this path.
    pub fn open(index: &Path, number: u32, hash: HashKind, hold: bool) -> Result<Pack, GitError> {
        let mut file = StoreFile::open(index.with_extension("pack"), hold)?;
        let mut header = [0; HEADER_LEN as usize];
        file.read_exact_at(&mut header, 0)?;
        if header[..4] != *b"PACK" || !matches!(header[4..8], [0, 0, 0, 2 | 3]) {
            return Err(file.corrupt("it does not begin as a pack does"));
        }
        let index = PackIndex::open(index.to_path_buf(), hash, hold)?;
        let room = Room::take(file.len()).filter(|_| hold);
        if room.is_some() {
            file.hold((file.len() / HELD_READ_LEN).max(HELD_READS_MIN));
        }
        Ok(Pack { number, index, file: Arc::new(file), _room: room, hash, bases: OnceLock::new() })
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Tells where all the objects begin that others are made from; there are `count` of them.
    pub fn set_bases(&self, count: usize, offsets: impl Iterator<Item = u64>) {
        self.bases.get_or_init(|| Bases::new(count, offsets));
    }

    /// Whether others may be made from the object at `offset`.
    pub(super) fn may_be_base(&self, offset: u64) -> bool {
        self.bases.get().is_none_or(|bases| bases.may_have(offset))
    }

    /// Bytes of the file.
    pub fn len(&self) -> u64 {
        self.file.len()
    }

    /// Reads some of the pack's bytes.
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize, GitError> {
        self.file.read_at(buf, offset)
    }

    pub fn corrupt(&self, detail: impl Into<String>) -> GitError {
        self.file.corrupt(detail)
    }

    /// The head of the entry that begins at `offset` with `bytes`.
    pub fn head(&self, offset: u64, bytes: &[u8]) -> Result<EntryHead, GitError> {
        let head = if offset < HEADER_LEN { None } else { parse_head(offset, bytes, self.hash) };
        head.ok_or_else(|| self.corrupt(format!("no object begins at offset {offset}")))
    }

    /// The size of the object at `offset`, of which `bytes` are the first [`LOOK_LEN`] or all.
    pub fn object_size(&self, inflater: &mut Inflater, head: &EntryHead, bytes: &[u8]) -> Option<u64> {
        if matches!(head.content, Content::Whole(_)) {
            return Some(head.size);
        }
        let mut start = [0; delta::HEAD_MAX];
        let len = inflater.head(bytes.get(head.len..)?, &mut start)?;
        delta::sizes(&mut &start[..len]).map(|(_, size)| size)
    }

    /// The size of the object at `offset`.
    pub fn size_at(&self, offset: u64) -> Result<u64, GitError> {
        let mut bytes = [0; LOOK_LEN];
        let len = self.read_at(&mut bytes, offset)?;
        let head = self.head(offset, &bytes[..len])?;
        inflater(|inflater| self.object_size(inflater, &head, &bytes[..len]))
            .ok_or_else(|| self.corrupt(format!("the delta at offset {offset} has no head")))
    }

    /// The head of the entry at `offset`.
    pub(super) fn begin(&self, inflater: &mut Inflater, offset: u64) -> Result<EntryHead, GitError> {
        self.head(offset, inflater.first(&self.file, offset)?)
    }

    /// Puts what is deflated in the entry at `offset` into `out`, which is empty: bytes that may be held.
    pub(super) fn inflate(
        &self,
        inflater: &mut Inflater,
        offset: u64,
        head: &EntryHead,
        out: &mut Vec<u8>,
    ) -> Result<(), GitError> {
        inflater.whole(&self.file, offset, head.len, self.held_size(offset, head.size)?, out)
    }

    /// A size that may be held in memory.
    pub(super) fn held_size(&self, offset: u64, size: u64) -> Result<usize, GitError> {
        if size > HELD_MAX {
            let what = format!(
                "the object at offset {offset} of {}, or one it is made from,",
                self.path().display()
            );
            return Err(GitError::TooLarge { what, size, max: HELD_MAX });
        }
        Ok(size as usize)
    }
}

/// A set of offsets that takes a byte for each, and now and then says to have one that it has not.
struct Bases {
    bits: Vec<u64>,
    /// By how much a hash is shifted to be the number of a bit.
    shift: u32,
}

impl Bases {
    const BITS_EACH: usize = 8;

    fn new(count: usize, offsets: impl Iterator<Item = u64>) -> Bases {
        let len = count.saturating_mul(Self::BITS_EACH).next_power_of_two().max(u64::BITS as usize);
        let mut bases = Bases { bits: vec![0; len / u64::BITS as usize], shift: u64::BITS - len.ilog2() };
        for offset in offsets {
            let (word, bit) = bases.place(offset);
            bases.bits[word] |= bit;
        }
        bases
    }

    fn may_have(&self, offset: u64) -> bool {
        let (word, bit) = self.place(offset);
        self.bits[word] & bit != 0
    }

    fn place(&self, offset: u64) -> (usize, u64) {
        let number = offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift;
        ((number / u64::from(u64::BITS)) as usize, 1 << (number % u64::from(u64::BITS)))
    }
}

fn parse_head(offset: u64, bytes: &[u8], hash: HashKind) -> Option<EntryHead> {
    let mut rest = bytes.iter();
    let first = *rest.next()?;
    let mut size = u64::from(first & 15);
    let (mut shift, mut more) = (4, first & 0x80 != 0);
    while more {
        let byte = *rest.next()?;
        let part = u64::from(byte & 0x7f);
        if shift >= 64 || part << shift >> shift != part {
            return None;
        }
        size |= part << shift;
        shift += 7;
        more = byte & 0x80 != 0;
    }
    let content = match first >> 4 & 7 {
        1 => Content::Whole(ObjectKind::Commit),
        2 => Content::Whole(ObjectKind::Tree),
        3 => Content::Whole(ObjectKind::Blob),
        4 => Content::Whole(ObjectKind::Tag),
        6 => {
            let mut byte = *rest.next()?;
            let mut back = u64::from(byte & 0x7f);
            while byte & 0x80 != 0 {
                byte = *rest.next()?;
                back = (back + 1).checked_mul(128)? | u64::from(byte & 0x7f);
            }
            // Always backwards, so that such deltas cannot go round in a circle.
            Content::DeltaAt(offset.checked_sub(back).filter(|_| back > 0)?)
        }
        7 => {
            let (id, after) = rest.as_slice().split_at_checked(hash.len())?;
            rest = after.iter();
            Content::DeltaOf(ObjectId::from_bytes(id)?)
        }
        _ => return None,
    };
    Some(EntryHead { content, size, len: bytes.len() - rest.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bases_are_never_missed_and_others_seldom_taken_for_them() {
        for count in [0, 1, 9, 5_000] {
            let offset = |i: u64| 12 + i * 731;
            let bases = Bases::new(count as usize, (0..count).map(offset));
            assert!((0..count).all(|i| bases.may_have(offset(i))));
            let wrong = (count..2 * count).filter(|&i| bases.may_have(offset(i))).count() as u64;
            assert!(wrong * 4 <= count, "{wrong} of {count}");
        }
    }
}
