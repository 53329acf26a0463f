//! Inflating: what a pack or a loose file holds, from a place in it to its end.
//!
//! Each thread keeps one decompressor and one input buffer; making them costs more than most objects.

use std::cell::RefCell;

use flate2::{Decompress, FlushDecompress, Status};

use super::file::StoreFile;
use crate::error::GitError;

/// Bytes read first: most objects are smaller.
const FIRST_READ: usize = 4 << 10;
/// Bytes read at once after that.
const NEXT_READ: usize = 64 << 10;
/// Room beyond what an object should need: the fast path of the decompressor wants some, and what spills
/// into it betrays an object that is larger than it says.
const SLACK: usize = 512;
/// Room that an object gets first, bytes: 1 MiB. A larger one gets more when it has filled it: until then its size is only
/// what it says.
const FIRST_ROOM: usize = 1 << 20;
/// By what the room of a larger one grows each time.
const ROOM_GROWTH: usize = 4;
/// More than this many times its size no deflated stream has.
const RATIO_MAX: u64 = 1_040;

thread_local! {
    static INFLATER: RefCell<Inflater> = RefCell::new(Inflater::new());
}

/// Calls `with` with this thread's inflater.
pub(super) fn inflater<T>(with: impl FnOnce(&mut Inflater) -> T) -> T {
    INFLATER.with_borrow_mut(with)
}

pub(crate) struct Inflater {
    state: Decompress,
    input: Box<[u8]>,
    /// What the beginning of the input buffer holds.
    held: Option<First>,
    /// Room for a delta's instructions.
    pub(super) instructions: Vec<u8>,
}

/// What [`Inflater::first`] read: file, place and length.
#[derive(Clone, Copy)]
pub(super) struct First {
    file: u64,
    offset: u64,
    len: usize,
}

impl Inflater {
    pub fn new() -> Inflater {
        let input = vec![0; NEXT_READ].into_boxed_slice();
        Inflater { state: Decompress::new(true), input, held: None, instructions: Vec::new() }
    }

    /// The first bytes at `offset`. Asked for the same again, it need not read: a delta's head is looked
    /// at before its base is decoded, and again after.
    pub fn first<'a>(&'a mut self, file: &'a StoreFile, offset: u64) -> Result<&'a [u8], GitError> {
        if let Some(held) = file.held_from(offset) {
            return Ok(&held[..held.len().min(FIRST_READ)]);
        }
        let held = self.held.filter(|held| held.file == file.number() && held.offset == offset);
        let len = match held {
            Some(held) => held.len,
            None => {
                self.held = None;
                let len = file.read_at(&mut self.input[..FIRST_READ], offset)?;
                self.held = Some(First { file: file.number(), offset, len });
                len
            }
        };
        Ok(&self.input[..len])
    }

    /// The room that [`Inflater::whole`] wants at first for `size` bytes.
    pub fn first_room(size: usize) -> usize {
        (size + SLACK).min(FIRST_ROOM)
    }

    /// Puts the whole stream that begins `skip` bytes after `offset` into `out`, which is empty. It must be `size` bytes
    /// inflated.
    pub fn whole(
        &mut self,
        file: &StoreFile,
        offset: u64,
        skip: usize,
        size: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), GitError> {
        if size as u64 > file.len().saturating_sub(offset).saturating_mul(RATIO_MAX) {
            return Err(file.corrupt("an object says it is larger than its file can hold"));
        }
        let held = file.held_from(offset);
        let mut to = match held {
            Some(held) => held.len(),
            None => self.first(file, offset)?.len(),
        };
        let (mut from, mut next) = (skip, offset + to as u64);
        self.state.reset(true);
        // Filled here and not by the decompressor, which would do so with all the room there is.
        out.resize(Inflater::first_room(size), 0);
        let mut made = 0;
        loop {
            if from >= to {
                if held.is_some() {
                    return Err(file.corrupt("an object is cut short"));
                }
                self.held = None;
                // What is deflated is hardly ever larger than what it becomes.
                let want = (size - made + SLACK).clamp(FIRST_READ, NEXT_READ);
                (from, to) = (0, file.read_at(&mut self.input[..want], next)?);
                next += to as u64;
                if to == 0 {
                    return Err(file.corrupt("an object is cut short"));
                }
            }
            let input = match held {
                Some(held) => &held[from..],
                None => &self.input[from..to],
            };
            let before = self.state.total_in();
            // Told that there is room for all of it, the decompressor keeps no copy of the end.
            let status = self.state.decompress(input, &mut out[made..], FlushDecompress::Finish);
            let status = status.map_err(|_| file.corrupt("an object does not inflate"))?;
            from += (self.state.total_in() - before) as usize;
            made = self.state.total_out() as usize;
            if made > size {
                return Err(file.corrupt("an object is larger than it says"));
            }
            match status {
                Status::StreamEnd if made == size => {
                    out.truncate(size);
                    return Ok(());
                }
                Status::StreamEnd => return Err(file.corrupt("an object is smaller than it says")),
                _ if made == out.len() => {
                    let room = out.len().saturating_mul(ROOM_GROWTH).min(size + SLACK);
                    out.reserve_exact(room - made);
                    out.resize(room, 0);
                }
                // Input is left, there is room, and nothing moves.
                Status::BufError if from < to => return Err(file.corrupt("an object does not inflate")),
                _ => {}
            }
        }
    }

    /// The first inflated bytes of a stream that begins at `input`: as many as `out` holds, or fewer.
    pub fn head(&mut self, input: &[u8], out: &mut [u8]) -> Option<usize> {
        self.state.reset(true);
        self.state.decompress(input, out, FlushDecompress::None).ok()?;
        Some(self.state.total_out() as usize)
    }
}
