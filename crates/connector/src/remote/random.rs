//! An object's bytes at any place: archives are read from their end.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;
use domesday_content::{ObjectError, ReadAt};
use domesday_model::VersionMarks;
use parking_lot::Mutex;

use super::budget::PARTS;
use super::part::{Object, Whole};
use super::reader::ObjectReader;

/// Bytes asked for at once: 1 MiB, at a multiple of that.
const BLOCK_LEN: u64 = 1 << 20;
/// Bytes asked for when there is no room for a block: 128 KiB.
const BLOCK_LEN_TIGHT: u64 = 128 << 10;
/// Blocks kept of one object.
const BLOCKS_MAX: usize = 8;

pub(super) struct RandomReader {
    object: Arc<Object>,
    size: u64,
    whole: Whole,
    /// Where each begins, the one used last at the back. Held while a block is fetched, so that two who need the
    /// same one fetch it once.
    blocks: Mutex<VecDeque<(u64, Bytes)>>,
}

impl RandomReader {
    /// `head` is the object's beginning, which is there already.
    pub fn new(object: Arc<Object>, size: u64, whole: Whole, head: Bytes) -> RandomReader {
        RandomReader { object, size, whole, blocks: Mutex::new(VecDeque::from([(0, head)])) }
    }

    fn fetch(&self, blocks: &mut VecDeque<(u64, Bytes)>, offset: u64) -> Result<(), ObjectError> {
        let room = PARTS.try_take(BLOCK_LEN);
        if room.is_none() {
            blocks.clear();
        }
        let len = if room.is_some() { BLOCK_LEN } else { BLOCK_LEN_TIGHT };
        let start = offset / len * len;
        let range = start..self.size.min(start + len);
        let part = self.object.begin(range, &self.whole, room.into_iter().collect())?.wait()?;
        if blocks.len() == BLOCKS_MAX {
            blocks.pop_front();
        }
        blocks.push_back((start, part.bytes));
        Ok(())
    }
}

impl ReadAt for RandomReader {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        if offset >= self.size || buf.is_empty() {
            return Ok(0);
        }
        let mut blocks = self.blocks.lock();
        let holds = |(start, bytes): &(u64, Bytes)| (*start..*start + bytes.len() as u64).contains(&offset);
        match blocks.iter().position(holds) {
            Some(index) => {
                if let Some(block) = blocks.remove(index) {
                    blocks.push_back(block);
                }
            }
            None => self.fetch(&mut blocks, offset).map_err(io::Error::other)?,
        }
        let (start, bytes) = blocks.back().expect("the block was found or fetched just now");
        bytes.as_ref().read_at(buf, offset - start)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.size)
    }

    /// Every further answer is of this version, or is refused.
    fn marks(&self) -> io::Result<Option<VersionMarks>> {
        Ok(self.whole.version.as_ref().map(|version| VersionMarks::tagged(version.as_bytes())))
    }

    fn sequential(&self, offset: u64) -> Option<Box<dyn Read + Send>> {
        Some(Box::new(ObjectReader::resumed(Arc::clone(&self.object), self.whole.clone(), offset)))
    }
}
