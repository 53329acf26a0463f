//! A large object that several threads read at once.
//!
//! After its first chunk, an object of known size that can be read at any place is cut into pieces of a chunk each.
//! What is found in a piece depends only on its bytes and the overlap around it, so any thread reads and scans any
//! piece, in its own buffer. Only lines need what came before: a piece counts its own, and its findings wait until
//! all pieces before it have ended. So an object's results are added in order, and are those of one thread.
//!
//! At most one piece per thread is in work, and none is begun further than [`PIECES_AHEAD_MAX`] beyond the first one
//! that has not ended: what waits is bounded, however slow one piece is. What is left after the last whole piece, and
//! what the object has grown by, is read like the chunks of any object.
//!
//! Of a piece that could not be read whole, what there is of it is added, and nothing after it: as of an object that is
//! read from front to back.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use domesday_content::{ObjectError, ReadAt};
use domesday_engine::{LOOKAHEAD, LOOKBEHIND};
use parking_lot::Mutex;

use crate::checkpoint::Recorder;
use crate::executor::WorkerCtx;
use crate::fetch::Fetch;
use crate::object::ObjectRef;
use crate::occurrences::Tally;
use crate::packet::Moved;
use crate::position::{Place, Units};
use crate::reader::{End, Filled, SizedReader};
use crate::scan::ChunkPlace;
use crate::stream::ChunkStream;
use crate::task::Task;

/// Pieces of the smallest object that is read so: for fewer it is not worth the while.
const PIECES_MIN: u64 = 4;
/// How far beyond the first piece that has not ended another one is begun.
const PIECES_AHEAD_MAX: u64 = 64;

pub struct Pieces {
    bytes: Arc<dyn ReadAt>,
    /// Of the object when it was opened.
    size: u64,
    /// Where the first piece begins: there are at least [`LOOKBEHIND`] bytes of text before it.
    start: u64,
    /// Of every piece, without overlap.
    piece_len: u64,
    /// Those after which [`LOOKAHEAD`] bytes follow.
    count: u64,
    /// Pieces in work, at most.
    threads: usize,
    state: Mutex<State>,
}

struct State {
    /// Pieces handed out.
    begun: u64,
    in_work: usize,
    /// The first piece that has not ended, and where it begins.
    next: u64,
    place: Place,
    /// Pieces that ended before others in front of them did.
    waiting: BTreeMap<u64, Scanned>,
    recorder: Option<Box<Recorder>>,
}

/// A piece that was read and scanned.
struct Scanned {
    /// Bytes of it; 0 when scanning it panicked.
    len: u64,
    /// With lines and columns counted from the beginning of the piece.
    found: Vec<Tally>,
    /// Where it ends, counted so; `None` when it was not read to its end.
    end: Option<Place>,
}

/// What to do when a piece has ended.
enum Next {
    Begin(Range<u64>),
    /// All have ended; the rest of the object begins here.
    Rest(Place),
}

impl Pieces {
    /// Of what follows `place`, if it is worth it.
    pub(crate) fn new(
        bytes: Arc<dyn ReadAt>,
        size: u64,
        place: Place,
        buffer_len: usize,
        threads: usize,
    ) -> Option<Pieces> {
        let start = place.offset;
        let piece_len = (buffer_len - LOOKBEHIND - LOOKAHEAD) as u64;
        let count = size.saturating_sub(LOOKAHEAD as u64).saturating_sub(start) / piece_len;
        let state = State { begun: 0, in_work: 0, next: 0, place, waiting: BTreeMap::new(), recorder: None };
        let is_worth_it = count >= PIECES_MIN && start >= LOOKBEHIND as u64 && bytes.is_near();
        is_worth_it.then(|| Pieces {
            bytes,
            size,
            start,
            piece_len,
            count,
            threads,
            state: Mutex::new(state),
        })
    }

    /// Has it said how far the object was scanned.
    pub(crate) fn recorded_by(mut self, recorder: Option<Box<Recorder>>) -> Pieces {
        self.state.get_mut().recorder = recorder;
        self
    }

    fn start_of(&self, piece: u64) -> u64 {
        self.start + piece * self.piece_len
    }

    /// Notes the end of a piece, and adds what no longer waits for a piece before it: with its length, and with where it
    /// ends if it was read to there. That is under the lock, for checkpoints are told in their order, too.
    fn end(
        &self,
        piece: u64,
        scanned: Scanned,
        mut add: impl FnMut(u64, Vec<Tally>, Option<(Place, &mut Recorder)>),
    ) -> Next {
        let state = &mut *self.state.lock();
        state.in_work -= 1;
        if scanned.end.is_none() {
            state.begun = self.count;
        }
        state.waiting.insert(piece, scanned);
        while let next = state.next
            && let Some(Scanned { len, found, end }) = state.waiting.remove(&next)
        {
            let found = located(found, state.place);
            let end = end.map(|end| state.place.then(end));
            add(len, found, end.zip(state.recorder.as_deref_mut()));
            let Some(end) = end else { break };
            state.place = end;
            state.next += 1;
        }
        if state.next == self.count { Next::Rest(state.place) } else { Next::Begin(state.hand_out(self)) }
    }

    fn begin(&self) -> Range<u64> {
        self.state.lock().hand_out(self)
    }

    /// Reads from an offset on.
    fn reader(&self, offset: u64) -> SizedReader {
        SizedReader::resumed(Arc::clone(&self.bytes), self.size, offset)
    }

    /// What is left when all pieces have ended.
    fn rest(&self, place: Place, moved: &Moved) -> Result<ChunkStream, ObjectError> {
        ChunkStream::from_place(&self.bytes, self.size, place, moved)
    }
}

impl State {
    /// Pieces to begin now.
    fn hand_out(&mut self, pieces: &Pieces) -> Range<u64> {
        let first = self.begun;
        let allowed = pieces.count.min(self.next + PIECES_AHEAD_MAX);
        let free = pieces.threads.saturating_sub(self.in_work) as u64;
        self.begun = allowed.min(first + free).max(first);
        self.in_work += (self.begun - first) as usize;
        first..self.begun
    }
}

/// Findings whose lines and columns were counted from `place` on.
fn located(mut found: Vec<Tally>, place: Place) -> Vec<Tally> {
    for kept in found.iter_mut().flat_map(|tally| &mut tally.kept) {
        let position = &mut kept.draft.position;
        *position = place
            .then(Place { offset: place.offset, line: position.line, column: position.column })
            .position();
    }
    found
}

impl WorkerCtx {
    /// Begins with the pieces of an object.
    pub(crate) fn begin_pieces(&mut self, obj: &ObjectRef, pieces: Pieces) {
        let pieces = Arc::new(pieces);
        self.spawn_pieces(obj, &pieces, pieces.begin());
    }

    fn spawn_pieces(&mut self, obj: &ObjectRef, pieces: &Arc<Pieces>, which: Range<u64>) {
        // The first one on top of the stack: others wait for it.
        for piece in which.rev() {
            let fetch = Fetch::Piece(Arc::clone(pieces), piece);
            self.spawn(Task::FetchSync { obj: Arc::clone(obj), fetch });
        }
    }

    /// Reads and scans one piece.
    pub(crate) fn fetch_piece(&mut self, obj: &ObjectRef, pieces: &Arc<Pieces>, piece: u64) {
        let mut buffer = self.take_buffer();
        let from = pieces.start_of(piece) - LOOKBEHIND as u64;
        let mut reader = pieces.reader(from).counted_by(&obj.packet().moved);
        let filled = self.timed(obj, || reader.fill(&mut buffer));
        let scanned = self.scan_piece(obj, pieces.start_of(piece), &buffer, filled);
        self.give_buffer(buffer);
        let add = |len, found: Vec<Tally>, recorded: Option<(Place, &mut Recorder)>| {
            if let Some((end, recorder)) = recorded {
                recorder.add(obj, end, len, &found);
            }
            obj.add_part(len, found);
        };
        match pieces.end(piece, scanned, add) {
            Next::Begin(which) => self.spawn_pieces(obj, pieces, which),
            Next::Rest(place) => match self.timed(obj, || pieces.rest(place, &obj.packet().moved)) {
                Ok(stream) => {
                    let fetch = Fetch::Continue(Box::new(stream));
                    self.spawn(Task::FetchSync { obj: Arc::clone(obj), fetch });
                }
                Err(error) => obj.flaw(place.offset, error),
            },
        }
    }

    fn scan_piece(&mut self, obj: &ObjectRef, start: u64, buffer: &[u8], filled: Filled) -> Scanned {
        self.count_fetched(filled.len);
        let is_whole = matches!(filled.end, End::NotYet);
        let accept_end = if is_whole { filled.len - LOOKAHEAD } else { filled.len.max(LOOKBEHIND) };
        if let End::Flawed(error) = filled.end {
            obj.flaw(start + (accept_end - LOOKBEHIND) as u64, error);
        }
        let place = Place { offset: start, ..Place::start(0) };
        let chunk = ChunkPlace {
            place,
            len: filled.len as u32,
            prefix_len: LOOKBEHIND as u32,
            accept_end: accept_end as u32,
            units: Units::Bytes,
        };
        if filled.len <= LOOKBEHIND {
            return Scanned { len: 0, found: Vec::new(), end: None };
        }
        let accepted = &buffer[LOOKBEHIND..accept_end];
        let (len, found) = self.search_chunk(obj, buffer, chunk, None);
        let end = is_whole.then(|| place.advance(accepted, Units::Bytes));
        Scanned { len, found, end }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    const LEN: usize = 100;

    fn pieces(count: usize, threads: usize) -> Option<Pieces> {
        let size = (LOOKBEHIND + count * LEN + LOOKAHEAD) as u64;
        let place = Place { offset: LOOKBEHIND as u64, ..Place::start(0) };
        Pieces::new(Arc::new(Vec::new()), size, place, LEN + LOOKBEHIND + LOOKAHEAD, threads)
    }

    /// Ends a piece of one line; the bytes that were added by that, and the pieces that are begun.
    fn end(pieces: &Pieces, piece: u64, is_whole: bool) -> (u64, Option<Range<u64>>) {
        let end = is_whole.then(|| Place { offset: pieces.start_of(piece + 1), line: 2, column: 1 });
        let mut added = 0;
        match pieces.end(piece, Scanned { len: LEN as u64, found: Vec::new(), end }, |len, _, _| added += len)
        {
            Next::Begin(which) => (added, Some(which)),
            Next::Rest(place) => {
                assert_eq!((place.line, place.offset), (pieces.count + 1, pieces.start_of(pieces.count)));
                (added, None)
            }
        }
    }

    #[test]
    fn what_ends_early_waits_and_the_rest_comes_last() {
        let pieces = pieces(4, 3).unwrap();
        assert_eq!(pieces.begin(), 0..3);
        assert_eq!(end(&pieces, 1, true), (0, Some(3..4)));
        assert_eq!(end(&pieces, 3, true), (0, Some(4..4)));
        assert_eq!(end(&pieces, 0, true), (200, Some(4..4)));
        assert_eq!(end(&pieces, 2, true), (200, None));
    }

    #[test]
    fn a_slow_piece_is_not_run_away_from() {
        let pieces = pieces(1000, 2).unwrap();
        assert_eq!(pieces.begin(), 0..2);
        for piece in 1..PIECES_AHEAD_MAX - 1 {
            assert_eq!(end(&pieces, piece, true), (0, Some(piece + 1..piece + 2)));
        }
        let last = PIECES_AHEAD_MAX - 1;
        assert_eq!(end(&pieces, last, true), (0, Some(last + 1..last + 1)));
        assert_eq!(end(&pieces, 0, true), (100 * PIECES_AHEAD_MAX, Some(last + 1..last + 3)));
    }

    #[test]
    fn nothing_comes_after_a_piece_that_was_cut_short() {
        let pieces = pieces(100, 2).unwrap();
        assert_eq!(pieces.begin(), 0..2);
        assert_eq!(end(&pieces, 1, false), (0, Some(100..100)));
        assert_eq!(end(&pieces, 0, true), (200, Some(100..100)));
    }

    #[test]
    fn a_small_object_is_not_cut() {
        assert!(pieces(PIECES_MIN as usize - 1, 2).is_none());
        assert!(pieces(PIECES_MIN as usize, 2).is_some());
    }
}
