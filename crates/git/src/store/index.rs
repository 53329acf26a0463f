//! A pack's index: ids in order, and where each object begins in the pack.
//!
//! A large one is searched in the file and not held in memory: ids are evenly spread, so that where one must
//! be is known within a few dozen entries, and one read of a block around that place nearly always holds it.
//! A small one is read whole at first use, which spares those reads.

use std::path::PathBuf;

use super::file::StoreFile;
use crate::error::GitError;
use crate::id::{HashKind, ObjectId};

const MAGIC: [u8; 8] = [0xff, b't', b'O', b'c', 0, 0, 0, 2];
const FANOUT_LEN: u64 = 256 * 4;
/// Entries read at once while searching.
const SEARCH_BLOCK: u32 = 256;
/// Blocks beside the expected one that are looked at before the search halves what is left: in a large
/// pack, ids lie a block or two from where they are expected.
const NEIGHBOURS: u32 = 3;
/// Bytes read at once while all are read.
const TABLE_BLOCK: usize = 64 << 10;
/// The bit of a 32-bit offset that says the rest is the number of a 64-bit one.
const LARGE: u32 = 1 << 31;

pub(crate) struct PackIndex {
    file: StoreFile,
    hash_len: usize,
    fanout: Box<[u32; 256]>,
    /// Where the ids begin, how far apart they are, and where the offsets begin.
    ids_at: u64,
    stride: u64,
    offsets_at: u64,
    /// `None` in the first version of the format, whose offsets all have 32 bits.
    large_at: Option<u64>,
    large_count: u64,
}

impl PackIndex {
    pub fn open(path: PathBuf, hash: HashKind, hold: bool) -> Result<PackIndex, GitError> {
        let file = StoreFile::open(path, hold)?;
        let mut head = [0; MAGIC.len()];
        file.read_exact_at(&mut head, 0)?;
        let second = head[..4] == MAGIC[..4];
        if second && head != MAGIC {
            return Err(GitError::Unsupported(format!(
                "{} has an index version this release does not read",
                file.path().display()
            )));
        }
        let fanout_at = if second { MAGIC.len() as u64 } else { 0 };
        let mut table = [0; FANOUT_LEN as usize];
        file.read_exact_at(&mut table, fanout_at)?;
        let mut fanout = Box::new([0; 256]);
        for (count, bytes) in fanout.iter_mut().zip(table.chunks_exact(4)) {
            *count = u32_at(bytes, 0);
        }
        if !fanout.is_sorted() {
            return Err(file.corrupt("its fan-out table goes down"));
        }
        let (count, hash_len) = (u64::from(fanout[255]), hash.len() as u64);
        let ids_at = fanout_at + FANOUT_LEN;
        // The two checksums at the end.
        let tables_end = file.len().saturating_sub(2 * hash_len);
        let index = if second {
            let offsets_at = ids_at + count * (hash_len + 4);
            let large_at = offsets_at + count * 4;
            let large_count = tables_end.saturating_sub(large_at) / 8;
            PackIndex {
                file,
                hash_len: hash.len(),
                fanout,
                ids_at,
                stride: hash_len,
                offsets_at,
                large_at: Some(large_at),
                large_count,
            }
        } else {
            // Offset and id side by side.
            PackIndex {
                file,
                hash_len: hash.len(),
                fanout,
                ids_at: ids_at + 4,
                stride: hash_len + 4,
                offsets_at: ids_at,
                large_at: None,
                large_count: 0,
            }
        };
        let needed = index.large_at.unwrap_or(ids_at + count * (hash_len + 4));
        if needed > tables_end {
            return Err(index.file.corrupt("it is too short for the objects it counts"));
        }
        Ok(index)
    }

    /// Bytes of the file.
    pub fn len(&self) -> u64 {
        self.file.len()
    }

    /// Lets it be held in memory from its first use on.
    pub fn hold(&mut self) {
        self.file.hold(0);
    }

    /// So many bytes at `offset`, if they are in memory.
    fn held_at(&self, offset: u64, len: usize) -> Option<&[u8]> {
        self.file.held_from(offset)?.get(..len)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<(), GitError> {
        match self.held_at(offset, buf.len()) {
            Some(bytes) => buf.copy_from_slice(bytes),
            None => self.file.read_exact_at(buf, offset)?,
        }
        Ok(())
    }

    /// How many objects the pack has.
    pub fn count(&self) -> u32 {
        self.fanout[255]
    }

    /// Where in the pack this object begins.
    pub fn find(&self, id: &ObjectId) -> Result<Option<u64>, GitError> {
        match self.position(id)? {
            Some(position) => self.offset(position).map(Some),
            None => Ok(None),
        }
    }

    /// The id's place in the order of ids.
    pub fn position(&self, id: &ObjectId) -> Result<Option<u32>, GitError> {
        let wanted = id.as_bytes();
        if wanted.len() != self.hash_len {
            return Ok(None);
        }
        let first = usize::from(wanted[0]);
        let (mut low, mut high) = (if first == 0 { 0 } else { self.fanout[first - 1] }, self.fanout[first]);
        if low < high
            && let Some(bytes) = self.held_at(
                self.ids_at + u64::from(low) * self.stride,
                self.id_in_block(high - low - 1) + self.hash_len,
            )
        {
            let id_at = |i: u32| &bytes[self.id_in_block(i)..][..self.hash_len];
            let found = bisect(high - low, |i| id_at(i) < wanted);
            return Ok((found < high - low && id_at(found) == wanted).then_some(low + found));
        }
        let mut guess = low + guess_in(high - low, wanted);
        let mut block = [0; SEARCH_BLOCK as usize * (32 + 4)];
        let mut misses = 0;
        while low < high {
            let from = guess.saturating_sub(SEARCH_BLOCK / 2).clamp(low, high - 1);
            let to = from.saturating_add(SEARCH_BLOCK).min(high);
            let bytes = &mut block[..self.id_in_block(to - from - 1) + self.hash_len];
            self.read_at(bytes, self.ids_at + u64::from(from) * self.stride)?;
            let id_at = |i: u32| &bytes[self.id_in_block(i)..][..self.hash_len];
            let beside;
            if wanted < id_at(0) {
                high = from;
                beside = high.saturating_sub(SEARCH_BLOCK / 2);
            } else if wanted > id_at(to - from - 1) {
                low = to;
                beside = low.saturating_add(SEARCH_BLOCK / 2);
            } else {
                let found = bisect(to - from, |i| id_at(i) < wanted);
                return Ok((id_at(found) == wanted).then_some(from + found));
            }
            misses += 1;
            guess = if misses <= NEIGHBOURS { beside } else { low.midpoint(high) };
        }
        Ok(None)
    }

    fn id_in_block(&self, i: u32) -> usize {
        i as usize * self.stride as usize
    }

    pub fn id(&self, position: u32) -> Result<ObjectId, GitError> {
        let mut bytes = [0; 32];
        let bytes = &mut bytes[..self.hash_len];
        self.read_at(bytes, self.ids_at + u64::from(position) * self.stride)?;
        Ok(ObjectId::from_bytes(bytes).expect("a hash's length is an id's length"))
    }

    fn offset(&self, position: u32) -> Result<u64, GitError> {
        let stride = if self.large_at.is_some() { 4 } else { self.stride };
        let mut bytes = [0; 4];
        self.read_at(&mut bytes, self.offsets_at + u64::from(position) * stride)?;
        self.wide_offset(u32::from_be_bytes(bytes))
    }

    fn wide_offset(&self, offset: u32) -> Result<u64, GitError> {
        let Some(large_at) = self.large_at.filter(|_| offset & LARGE != 0) else {
            return Ok(u64::from(offset));
        };
        let number = u64::from(offset & !LARGE);
        if number >= self.large_count {
            return Err(self.file.corrupt("it names a large offset that it does not have"));
        }
        let mut bytes = [0; 8];
        self.read_at(&mut bytes, large_at + number * 8)?;
        Ok(u64::from_be_bytes(bytes))
    }

    /// Calls `each` with every object's place in the pack, in the order of ids.
    pub fn each_offset(&self, mut each: impl FnMut(u64)) -> Result<(), GitError> {
        let stride = if self.large_at.is_some() { 4 } else { self.stride };
        let mut rows = Rows::new(self, self.offsets_at, stride as usize, 4);
        while let Some(row) = rows.next()? {
            each(self.wide_offset(u32_at(row, 0))?);
        }
        Ok(())
    }

    /// Every id, in order.
    pub fn ids(&self) -> Rows<'_> {
        Rows::new(self, self.ids_at, self.stride as usize, self.hash_len)
    }

    /// The ids that begin with this byte, in order.
    pub fn ids_of(&self, first: u8) -> Rows<'_> {
        let before = if first == 0 { 0 } else { self.fanout[usize::from(first) - 1] };
        Rows { before, end: self.fanout[usize::from(first)], ..self.ids() }
    }
}

/// One table of an index, row by row.
pub(crate) struct Rows<'a> {
    index: &'a PackIndex,
    at: u64,
    stride: usize,
    len: usize,
    block: Vec<u8>,
    /// Rows of the block, those of them handed out, and those of the blocks before.
    filled: u32,
    taken: u32,
    before: u32,
    /// Where they end.
    end: u32,
}

impl Rows<'_> {
    fn new(index: &PackIndex, at: u64, stride: usize, len: usize) -> Rows<'_> {
        Rows { index, at, stride, len, block: Vec::new(), filled: 0, taken: 0, before: 0, end: index.count() }
    }

    pub fn next(&mut self) -> Result<Option<&[u8]>, GitError> {
        if self.taken == self.filled {
            self.before += self.filled;
            self.taken = 0;
            self.filled = ((TABLE_BLOCK / self.stride) as u32).min(self.end - self.before);
            if self.filled == 0 {
                return Ok(None);
            }
            // The last row may end where the file does.
            self.block.resize((self.filled as usize - 1) * self.stride + self.len, 0);
            let from = self.at + u64::from(self.before) * self.stride as u64;
            self.index.read_at(&mut self.block, from)?;
        }
        let from = self.taken as usize * self.stride;
        self.taken += 1;
        Ok(Some(&self.block[from..from + self.len]))
    }
}

/// Where among `count` ids that share their first byte this one is expected.
fn guess_in(count: u32, id: &[u8]) -> u32 {
    let fraction = u64::from(u32_at(id, 1));
    ((u64::from(count) * fraction) >> 32) as u32
}

fn bisect(count: u32, is_before: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
