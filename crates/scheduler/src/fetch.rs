//! Reading objects, chunk by chunk.
//!
//! The first chunk is read into the thread's own buffer. If it is the whole object, as for nearly all
//! files, it is scanned there and then, while it is in the cache: one open, one read, one scan. Otherwise
//! it travels in a pooled buffer to a `Scan` of its own, and the rest of the object to the next
//! `FetchSync`; when no buffer is free the chunk is scanned where it is, so no thread ever waits for one. What is left
//! of a large file after its first chunk is read in pieces ([`crate::pieces`]).
//!
//! # Overlap
//! A chunk's bytes are: `LOOKBEHIND` bytes of context, the accepted bytes, `LOOKAHEAD` bytes. Only matches
//! that start in the accepted bytes count, and the next chunk's accepted bytes begin where these end. So
//! each byte is accepted once, with all the context that a match starting there can need, whatever the
//! chunk size.

use std::io::{Cursor, Read};
use std::sync::Arc;
use std::time::Instant;

use domesday_content::{
    Encoding, Format, HEAD_LEN, Input, ObjectError, ReadAt, Utf16Decoder, detect, detect_seekable, recognise,
};
use domesday_engine::{LOOKAHEAD, LOOKBEHIND};
use domesday_model::Location;

use crate::checkpoint::Recorder;
use crate::executor::WorkerCtx;
use crate::object::{ObjectCtx, ObjectRef};
use crate::opened::{DeltaReuse, OpenBytes, Opened};
use crate::pieces::Pieces;
use crate::position::{Place, Units};
use crate::reader::{End, Filled, SizedReader, Utf16Reader};
use crate::rows::TableStream;
use crate::stream::ChunkStream;
use crate::tables::TablesWalk;
use crate::task::{BufferedChunk, Task};

// The first read of an object fills a buffer unless the object ends, and shows all of its head.
const _: () = assert!(LOOKBEHIND + LOOKAHEAD >= HEAD_LEN);

/// What a `FetchSync` goes on from.
pub enum Fetch {
    /// An object of the source, to be opened.
    Open,
    /// An entry of an archive.
    Entry(Box<OpenBytes>),
    /// An object in the middle.
    Continue(Box<ChunkStream>),
    /// A piece of a large object, by its number.
    Piece(Arc<Pieces>, u64),
    /// A table in the middle.
    Rows(Box<TableStream>),
    /// An object of several tables in the middle.
    Tables(Box<TablesWalk>),
}

/// Who reads the chunks after the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pace {
    /// The next task.
    Spawn,
    /// This one: the object's bytes are in the way of somebody else's.
    Inline,
}

impl WorkerCtx {
    pub(crate) fn fetch(&mut self, obj: ObjectRef, fetch: Fetch) {
        if obj.packet().is_cancelled() {
            return;
        }
        match fetch {
            Fetch::Open => self.open(&obj),
            Fetch::Entry(opened) => self.fetch_object(&obj, *opened, Pace::Spawn),
            Fetch::Continue(stream) => self.fetch_chunks(&obj, *stream, Pace::Spawn),
            Fetch::Piece(pieces, piece) => self.fetch_piece(&obj, &pieces, piece),
            Fetch::Rows(stream) => self.fetch_rows(&obj, stream),
            Fetch::Tables(walk) => self.fetch_tables(&obj, walk, Pace::Spawn),
        }
    }

    /// Opens an object of the source, and reads its beginning.
    fn open(&mut self, obj: &ObjectRef) {
        let descriptor = obj.descriptor().expect("only objects of the source are opened by it");
        obj.packet().moved.add(1);
        match self.timed(obj, || obj.packet().source.open(descriptor)) {
            Ok(Opened::Bytes(opened)) => self.fetch_object(obj, opened, Pace::Spawn),
            Ok(Opened::Rows { table, rows }) => {
                let table = Arc::new(Location { key: table, nested: Vec::new() });
                let stream = Box::new(TableStream::new(obj, table, rows));
                self.fetch_rows(obj, stream);
            }
            Ok(Opened::Tables(tables)) => {
                let (budget, depth) = obj.budget(descriptor.size_hint);
                let walk = Box::new(TablesWalk::new(tables, budget, depth + 1));
                self.fetch_tables(obj, walk, Pace::Spawn);
            }
            Err(error) => obj.flaw(0, error),
        }
    }

    /// Reads the beginning of an object, and sees from it what the object is.
    pub(crate) fn fetch_object(&mut self, obj: &ObjectRef, opened: OpenBytes, pace: Pace) {
        let OpenBytes { reader, random, size, delta_reuse } = opened;
        if let Some(bytes) = random.as_deref().and_then(ReadAt::in_memory)
            && bytes.len() < self.shared().buffer_len
            && self.scan_in_memory(obj, bytes, delta_reuse.as_ref())
        {
            return;
        }
        let mut reader =
            SizedReader::new(reader, size).proven_by(random.clone()).counted_by(&obj.packet().moved);
        let mut buffer = self.take_buffer();
        let filled = self.timed(obj, || reader.fill(&mut buffer));
        let size = reader.size();
        let bytes = &buffer[..filled.len];
        match format(bytes, &filled.end, random.as_deref()) {
            Some(format) => {
                let input = match random {
                    Some(random) => Input::Seekable(random),
                    None => {
                        Input::Stream(Box::new(Cursor::new(bytes.to_vec()).chain(rest(reader, filled.end))))
                    }
                };
                self.give_buffer(buffer);
                self.open_container(obj, input, format, size, pace);
            }
            None => self.fetch_text(obj, (reader, random), buffer, filled, Vec::new(), pace),
        }
    }

    /// Scans an object where it lies, if it is text that need not be decoded.
    fn scan_in_memory(&mut self, obj: &ObjectRef, bytes: &[u8], reuse: Option<&DeltaReuse>) -> bool {
        let is_plain = Encoding::detect(&bytes[..bytes.len().min(HEAD_LEN)]) == (Encoding::Bytes, 0);
        if bytes.is_empty() || !is_plain || format(bytes, &End::Reached, Some(&Whole(bytes))).is_some() {
            return false;
        }
        if let Some(format) = recognise(bytes, Some(&Whole(bytes))) {
            obj.not_read(format);
        }
        let stream = ChunkStream::new(SizedReader::unbounded(std::io::empty()), Units::Bytes, 0);
        self.scan_last(obj, stream, bytes, End::Reached, reuse);
        true
    }

    /// Reads bytes that came out of a compressor around the whole object, or turned out to be no container.
    pub(crate) fn fetch_unpacked(
        &mut self,
        obj: &ObjectRef,
        reader: Box<dyn Read + Send>,
        size: Option<u64>,
        chain: Vec<&'static str>,
        pace: Pace,
    ) {
        let mut reader = SizedReader::new(reader, size).counted_by(&obj.packet().moved);
        let mut buffer = self.take_buffer();
        let filled = self.timed(obj, || reader.fill(&mut buffer));
        self.fetch_text(obj, (reader, None), buffer, filled, chain, pace);
    }

    /// Goes on with an object that is no container, once its first bytes are in `buffer`.
    fn fetch_text(
        &mut self,
        obj: &ObjectRef,
        (reader, random): (SizedReader, Option<Arc<dyn ReadAt>>),
        mut buffer: Box<[u8]>,
        mut filled: Filled,
        mut chain: Vec<&'static str>,
        pace: Pace,
    ) {
        let bytes = &buffer[..filled.len];
        let not_read = match &filled.end {
            End::Reached => recognise(bytes, Some(&Whole(bytes))),
            _ => recognise(bytes, random.as_deref()),
        };
        if let Some(format) = not_read {
            obj.not_read(format);
        }
        let (encoding, bom_len) = Encoding::detect(&bytes[..filled.len.min(HEAD_LEN)]);
        let is_plain = chain.is_empty() && pace == Pace::Spawn && matches!(filled.end, End::NotYet);
        if let Some(name) = encoding.name() {
            chain.push(name);
        }
        if !chain.is_empty() {
            obj.set_decoding(chain);
        }
        let mut recorder = None;
        if let (true, Some(random), Some(size)) = (is_plain, &random, reader.size())
            && let Some((begun, place)) =
                Recorder::begin(obj, random, size, self.shared().checkpoint_distance)
        {
            recorder = Some(Box::new(begun));
            if let Some(place) = place {
                self.give_buffer(buffer);
                return self.fetch_from(obj, (random, size), encoding, place, recorder);
            }
        }
        if let Some(decoder) = Utf16Decoder::new(encoding) {
            let raw = Cursor::new(buffer[bom_len..filled.len].to_vec()).chain(rest(reader, filled.end));
            self.give_buffer(buffer);
            let reader = SizedReader::unbounded(Utf16Reader::new(raw, decoder));
            let mut stream = ChunkStream::new(reader, Units::Utf16, bom_len);
            stream.recorder = recorder;
            return self.fetch_chunks(obj, stream, pace);
        }
        if bom_len > 0 {
            buffer.copy_within(bom_len..filled.len, 0);
            filled.len -= bom_len;
        }
        let mut stream = ChunkStream::new(reader, Units::Bytes, bom_len);
        stream.not_read = not_read.filter(|_| random.is_none());
        (stream.random, stream.recorder) = (random, recorder);
        if let Some(stream) = self.send_chunk(obj, stream, buffer, filled, pace) {
            self.fetch_chunks(obj, stream, pace);
        }
    }

    /// Reads the next chunk of an object; and those after it, if it is read inline.
    fn fetch_chunks(&mut self, obj: &ObjectRef, mut stream: ChunkStream, pace: Pace) {
        loop {
            if obj.packet().is_cancelled() {
                return;
            }
            let mut buffer = self.take_buffer();
            let filled = self.timed(obj, || stream.fill(&mut buffer));
            match self.send_chunk(obj, stream, buffer, filled, pace) {
                Some(next) => stream = next,
                None => return,
            }
        }
    }

    /// Has the chunk in `buffer` scanned and the rest of the object fetched. Gives the rest back when the
    /// caller is to fetch it.
    fn send_chunk(
        &mut self,
        obj: &ObjectRef,
        mut stream: ChunkStream,
        mut buffer: Box<[u8]>,
        filled: Filled,
        pace: Pace,
    ) -> Option<ChunkStream> {
        if !matches!(filled.end, End::NotYet) {
            self.scan_last(obj, stream, &buffer[..filled.len], filled.end, None);
            self.give_buffer(buffer);
            return None;
        }
        self.count_fetched(filled.len);
        stream.look_for_encryption(obj, &buffer[..filled.len]);
        let chunk = stream.cut(obj.name(), &buffer[..filled.len], false);
        if stream.sampler.is_some() {
            stream.recorder = None;
        }
        if let Some(recorder) = &mut stream.recorder {
            // Before anything behind it is read: a checkpoint has all that comes before its place.
            let (len, found) = self.search_chunk(obj, &buffer, chunk, None);
            recorder.add(obj, stream.place, len, &found);
            obj.add_part(len, found);
            self.give_buffer(buffer);
            self.fetch_on(obj, stream);
            return None;
        }
        let rest = match pace {
            Pace::Inline => Some(stream),
            // Before the scan, which this thread does next: others can read on meanwhile.
            Pace::Spawn => {
                self.fetch_on(obj, stream);
                None
            }
        };
        match self.shared().buffers.try_take() {
            Some(mut handle) => {
                handle.swap(&mut buffer);
                let chunk = Box::new(BufferedChunk { buffer: handle, place: chunk });
                self.spawn(Task::Scan { obj: Arc::clone(obj), chunk });
            }
            None => self.scan_chunk(obj, &buffer, chunk),
        }
        self.give_buffer(buffer);
        rest
    }

    /// Leaves what follows to others: in pieces, or to whoever takes the next task.
    fn fetch_on(&mut self, obj: &ObjectRef, mut stream: ChunkStream) {
        let shared = self.shared();
        match stream.pieces(shared.buffer_len, shared.stealers.len()) {
            Some(pieces) => self.begin_pieces(obj, pieces),
            None => {
                let fetch = Fetch::Continue(Box::new(stream));
                self.spawn(Task::FetchSync { obj: Arc::clone(obj), fetch });
            }
        }
    }

    /// Goes on with an object where its last scan was.
    fn fetch_from(
        &mut self,
        obj: &ObjectRef,
        (random, size): (&Arc<dyn ReadAt>, u64),
        encoding: Encoding,
        place: Place,
        recorder: Option<Box<Recorder>>,
    ) {
        let moved = &obj.packet().moved;
        let stream = self.timed(obj, || match encoding {
            Encoding::Bytes => ChunkStream::from_place(random, size, place, moved),
            encoding => ChunkStream::from_place_in_utf16(random, size, place, moved, encoding),
        });
        match stream {
            Ok(mut stream) => {
                // In pieces again, if it can be and what is left is worth it.
                stream.random = (encoding == Encoding::Bytes).then(|| Arc::clone(random));
                stream.recorder = recorder;
                self.fetch_on(obj, stream);
            }
            Err(error) => obj.flaw(place.offset, error),
        }
    }

    /// Scans the last chunk of an object.
    fn scan_last(
        &mut self,
        obj: &ObjectRef,
        mut stream: ChunkStream,
        bytes: &[u8],
        end: End,
        reuse: Option<&DeltaReuse>,
    ) {
        self.count_fetched(bytes.len());
        stream.look_for_encryption(obj, bytes);
        let chunk = stream.cut(obj.name(), bytes, true);
        if !bytes.is_empty() {
            self.scan_reusing(obj, bytes, chunk, reuse);
        }
        if let Some(sampler) = stream.sampler {
            self.finish_sample(obj, *sampler, matches!(end, End::Reached));
        }
        if let End::Flawed(error) = end {
            obj.flaw(chunk.place.offset + u64::from(chunk.len), error);
        }
    }

    pub(crate) fn count_fetched(&self, len: usize) {
        let metrics = self.metrics();
        metrics.fetch_sync_count.add(1);
        metrics.bytes_fetched.add(len as u64);
    }

    /// A step of opening, reading or unpacking an object.
    pub(crate) fn timed<T>(&self, obj: &ObjectCtx, read: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let out = read();
        self.metrics().read.add(obj.packet().kind, started.elapsed());
        out
    }
}

/// What the object is that begins with `bytes`, if it is a container. Self-extracting archives are
/// recognised by their end.
fn format(bytes: &[u8], end: &End, random: Option<&dyn ReadAt>) -> Option<Format> {
    let head = &bytes[..bytes.len().min(HEAD_LEN)];
    match random {
        None => detect(head),
        Some(_) if matches!(end, End::Reached) => detect_seekable(head, &Whole(bytes)).unwrap_or(None),
        Some(random) => detect_seekable(head, random).unwrap_or(None),
    }
}

/// An object that was read whole: its end need not be read again.
struct Whole<'a>(&'a [u8]);

impl ReadAt for Whole<'_> {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> std::io::Result<usize> {
        self.0.read_at(buf, offset)
    }

    fn size(&self) -> std::io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}

/// What follows the bytes that were already read. A flaw that was met is met again after them.
fn rest(reader: SizedReader, end: End) -> Box<dyn Read + Send> {
    match end {
        End::NotYet => Box::new(reader),
        End::Reached => Box::new(std::io::empty()),
        End::Flawed(error) => Box::new(Flawed(error)),
    }
}

struct Flawed(ObjectError);

impl Read for Flawed {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other(self.0.clone()))
    }
}
