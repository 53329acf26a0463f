//! An object that is read chunk by chunk: what the next chunk takes over from the last, and how reading goes on from a
//! place in the middle.

use std::sync::Arc;

use domesday_content::{Encoding, ObjectError, ReadAt, UnsupportedFormat, Utf16Decoder};
use domesday_engine::{LOOKAHEAD, LOOKBEHIND};

use crate::checkpoint::Recorder;
use crate::object::ObjectRef;
use crate::packet::Moved;
use crate::pieces::Pieces;
use crate::position::{Place, Units};
use crate::reader::{End, Filled, SizedReader, Utf16Reader};
use crate::scan::ChunkPlace;
use crate::separated::Sampler;

/// An object that is being read: where the next chunk begins, and what it takes over from the last.
pub struct ChunkStream {
    reader: SizedReader,
    units: Units,
    /// Of the first byte that is not accepted yet.
    pub(crate) place: Place,
    /// Bytes already read that the next chunk begins with.
    carry: Vec<u8>,
    /// How many of them are context only.
    prefix_len: usize,
    /// The object at any place, until the first chunk was cut.
    pub(crate) random: Option<Arc<dyn ReadAt>>,
    /// For a file of separated values, once its first chunk has shown it to be one.
    pub(crate) sampler: Option<Box<Sampler>>,
    /// The format of a stream that is not read, which may say further on that it is encrypted.
    pub(crate) not_read: Option<UnsupportedFormat>,
    /// For a very large object: says how far it was scanned.
    pub(crate) recorder: Option<Box<Recorder>>,
}

impl ChunkStream {
    pub(crate) fn new(reader: SizedReader, units: Units, bom_len: usize) -> Self {
        let place = Place::start(bom_len);
        let carry = Vec::new();
        ChunkStream {
            reader,
            units,
            place,
            carry,
            prefix_len: 0,
            random: None,
            sampler: None,
            not_read: None,
            recorder: None,
        }
    }

    /// Text that goes on at `place`, which the context `before` comes before.
    fn resumed(reader: SizedReader, units: Units, place: Place, before: Vec<u8>) -> Self {
        let prefix_len = before.len();
        ChunkStream { place, carry: before, prefix_len, ..ChunkStream::new(reader, units, 0) }
    }

    /// What an object of plain text has from a place on that is not near its beginning.
    pub(crate) fn from_place(
        bytes: &Arc<dyn ReadAt>,
        size: u64,
        place: Place,
        moved: &Moved,
    ) -> Result<Self, ObjectError> {
        let from = place.offset - LOOKBEHIND as u64;
        let mut reader = SizedReader::resumed(Arc::clone(bytes), size, from).counted_by(moved);
        let mut before = vec![0; LOOKBEHIND];
        match reader.fill(&mut before).end {
            End::Flawed(error) => Err(error),
            End::NotYet | End::Reached => Ok(ChunkStream::resumed(reader, Units::Bytes, place, before)),
        }
    }

    /// The same of UTF-16. The place is at the beginning of a character, so that a new decoder goes on from there.
    pub(crate) fn from_place_in_utf16(
        bytes: &Arc<dyn ReadAt>,
        size: u64,
        place: Place,
        moved: &Moved,
        encoding: Encoding,
    ) -> Result<Self, ObjectError> {
        let decoder = || Utf16Decoder::new(encoding).expect("the encoding is UTF-16");
        // Each unit is a byte of text at least; a pair that is cut in two at the beginning is cut off below.
        let from = place.offset - 2 * (LOOKBEHIND as u64 + 1);
        let mut reader = SizedReader::resumed(Arc::clone(bytes), size, from).counted_by(moved);
        let mut raw = vec![0; 2 * (LOOKBEHIND + 1)];
        if let End::Flawed(error) = reader.fill(&mut raw).end {
            return Err(error);
        }
        let mut before = Vec::new();
        decoder().decode(&raw, true, &mut before);
        before.drain(..before.len() - LOOKBEHIND);
        let reader = SizedReader::unbounded(Utf16Reader::new(reader, decoder()));
        Ok(ChunkStream::resumed(reader, Units::Utf16, place, before))
    }

    /// The pieces that the rest of the object can be read in, if it is large.
    pub(crate) fn pieces(&mut self, buffer_len: usize, threads: usize) -> Option<Pieces> {
        let random = self.random.take().filter(|_| self.sampler.is_none())?;
        let pieces = Pieces::new(random, self.reader.size()?, self.place, buffer_len, threads)?;
        Some(pieces.recorded_by(self.recorder.take()))
    }

    pub(crate) fn fill(&mut self, buffer: &mut [u8]) -> Filled {
        let (head, room) = buffer.split_at_mut(self.carry.len());
        head.copy_from_slice(&self.carry);
        let filled = self.reader.fill(room);
        Filled { len: head.len() + filled.len, ..filled }
    }

    /// Chunks overlap, so that what is said in few bytes is whole in one of them.
    pub(crate) fn look_for_encryption(&self, obj: &ObjectRef, bytes: &[u8]) {
        if let Some(format) = self.not_read.map(|format| format.seen_with(bytes))
            && format.is_encrypted()
        {
            obj.not_read(format);
        }
    }

    /// Cuts the chunk that `bytes` are, and moves on to the next one unless this is the last. `name` is the
    /// object's.
    pub(crate) fn cut(&mut self, name: &[u8], bytes: &[u8], last: bool) -> ChunkPlace {
        let accept_end = if last { bytes.len() } else { self.units.boundary(bytes, bytes.len() - LOOKAHEAD) };
        if self.carry.is_empty() {
            self.sampler = Sampler::new(name, bytes, last);
        }
        if let Some(sampler) = &mut self.sampler {
            sampler.feed(&bytes[self.prefix_len..accept_end]);
        }
        let chunk = ChunkPlace {
            place: self.place,
            len: bytes.len() as u32,
            prefix_len: self.prefix_len as u32,
            accept_end: accept_end as u32,
            units: self.units,
        };
        if !last {
            self.place = self.place.advance(&bytes[self.prefix_len..accept_end], self.units);
            self.prefix_len = LOOKBEHIND.min(accept_end);
            self.carry.clear();
            self.carry.extend_from_slice(&bytes[accept_end - self.prefix_len..]);
        }
        chunk
    }
}
