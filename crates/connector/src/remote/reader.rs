//! An object's bytes from the first to the last.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use domesday_content::ObjectError;
use domesday_scheduler::OpenBytes;

use super::budget::{DEMAND_LEN, PART_LEN, PARTS};
use super::part::{Object, Part, Pending, Whole};
use super::random::RandomReader;

/// How far an object must have been read before its next parts are asked for ahead: 1 MiB. The first chunk tells
/// the scan core what the object is, and an archive is read on at other places.
const READ_ON: u64 = 1 << 20;
/// Parts of one object under way at once, beside the one that is being read.
const PARTS_AHEAD: usize = 4;

/// Opens an object whose beginning has come, or is asked for now.
pub(super) fn open(object: Arc<Object>, first: Option<Part>) -> Result<OpenBytes, ObjectError> {
    let Part { bytes, is_short, mut whole } = match first {
        Some(first) => first,
        None => demand(&object, first_range(&object), &Whole::default())?,
    };
    let len = bytes.len() as u64;
    whole.size = whole.size.or(is_short.then_some(len));
    let size = whole.size;
    let random = size.map(|size| {
        Arc::new(RandomReader::new(Arc::clone(&object), size, whole.clone(), bytes.clone())) as _
    });
    let reader = ObjectReader { object, whole, read: 0, asked: len, current: bytes, ahead: VecDeque::new() };
    Ok(OpenBytes { reader: Box::new(reader), random, size, delta_reuse: None })
}

/// An object that was listed as empty: there is nothing to ask for.
pub(super) fn open_empty() -> OpenBytes {
    OpenBytes::stream(Box::new(io::empty()), Some(0))
}

/// What the first request for an object asks for.
pub(super) fn first_range(object: &Object) -> Range<u64> {
    0..object.listed.map_or(PART_LEN, |listed| listed.size.min(PART_LEN))
}

/// Fetches what a thread needs now: the whole range if there is room, else a piece of it.
fn demand(object: &Arc<Object>, range: Range<u64>, whole: &Whole) -> Result<Part, ObjectError> {
    let room = PARTS.try_take(range.end - range.start);
    let end = if room.is_some() { range.end } else { range.end.min(range.start + DEMAND_LEN) };
    object.begin(range.start..end, whole, room.into_iter().collect())?.wait()
}

pub(super) struct ObjectReader {
    object: Arc<Object>,
    whole: Whole,
    /// Bytes handed out.
    read: u64,
    /// Bytes asked for, those that came included.
    asked: u64,
    current: Bytes,
    ahead: VecDeque<Pending>,
}

impl Read for ObjectReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.current.is_empty() && !buf.is_empty() {
            self.current = self.next_part().map_err(io::Error::other)?;
        }
        let len = self.current.len().min(buf.len());
        self.current.copy_to_slice(&mut buf[..len]);
        self.read += len as u64;
        if self.read >= READ_ON {
            self.ask_ahead().map_err(io::Error::other)?;
        }
        Ok(len)
    }
}

impl ObjectReader {
    /// Of an object whose size is known, from an offset on.
    pub fn resumed(object: Arc<Object>, whole: Whole, offset: u64) -> ObjectReader {
        ObjectReader {
            object,
            whole,
            read: offset,
            asked: offset,
            current: Bytes::new(),
            ahead: VecDeque::new(),
        }
    }

    /// The part that comes next; an empty one at the end.
    fn next_part(&mut self) -> Result<Bytes, ObjectError> {
        if let Some(pending) = self.ahead.pop_front() {
            return Ok(pending.wait()?.bytes);
        }
        let range = self.next_range();
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let part = demand(&self.object, range, &self.whole)?;
        self.asked += part.bytes.len() as u64;
        Ok(part.bytes)
    }

    fn ask_ahead(&mut self) -> Result<(), ObjectError> {
        while self.whole.size.is_some() && self.ahead.len() < PARTS_AHEAD {
            let range = self.next_range();
            if range.is_empty() {
                break;
            }
            let Some(room) = PARTS.try_take(range.end - range.start) else { break };
            self.asked = range.end;
            self.ahead.push_back(self.object.begin(range, &self.whole, vec![room])?);
        }
        Ok(())
    }

    fn next_range(&self) -> Range<u64> {
        let end = self.asked.saturating_add(PART_LEN);
        self.asked..self.whole.size.map_or(end, |size| end.min(size))
    }
}
