//! A large object gives the same, whether it is read in pieces by several threads or from front to back by one.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use domesday_content::ReadAt;
use domesday_engine::{LOOKAHEAD, LOOKBEHIND};
use domesday_model::{Reason, VersionMarks};
use proptest::prelude::*;

use super::support::*;
use crate::*;

/// Called with the object before each read of it, and where that read is.
pub(super) type OnRead = Box<dyn Fn(&Placed, u64) + Send + Sync>;

/// An object that can be read at any place, and what happens to it meanwhile.
pub(super) struct Placed {
    bytes: Vec<u8>,
    /// What tells its version.
    pub(super) marks: AtomicU64,
    /// What is left of them.
    len: AtomicU64,
    /// What it is said to have.
    size: u64,
    /// Where it can no longer be read.
    pub(super) broken_from: u64,
    is_near: bool,
    on_read: OnRead,
}

impl Placed {
    pub(super) fn new(bytes: impl Into<Vec<u8>>, is_near: bool) -> Placed {
        let bytes = bytes.into();
        let size = bytes.len() as u64;
        let (len, on_read) = (AtomicU64::new(size), Box::new(|_: &Placed, _| ()));
        let marks = AtomicU64::new(1);
        Placed { bytes, marks, len, size, broken_from: u64::MAX, is_near, on_read }
    }

    pub(super) fn on_read(self, on_read: impl Fn(&Placed, u64) + Send + Sync + 'static) -> Placed {
        Placed { on_read: Box::new(on_read), ..self }
    }

    pub(super) fn body(self) -> Vec<Body> {
        vec![Body::Placed(Arc::new(self))]
    }
}

impl ReadAt for Placed {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        (self.on_read)(self, offset);
        let sound = self.broken_from.saturating_sub(offset).min(buf.len() as u64) as usize;
        if sound == 0 {
            return Err(io::Error::other("the disk is gone"));
        }
        self.bytes[..self.len.load(Ordering::SeqCst) as usize].read_at(&mut buf[..sound], offset)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.size)
    }

    fn is_near(&self) -> bool {
        self.is_near
    }

    fn marks(&self) -> io::Result<Option<VersionMarks>> {
        Ok(match self.marks.load(Ordering::SeqCst) {
            0 => None,
            version => Some(VersionMarks::tagged(&version.to_be_bytes())),
        })
    }
}

pub(super) const CHUNK: usize = 1000;

/// Keys, lines and characters of several bytes, so many that the object has about 60 pieces.
pub(super) fn text(seed: u64) -> Vec<u8> {
    let mut text = Vec::new();
    let mut state = seed;
    while text.len() < LOOKBEHIND + LOOKAHEAD + 60 * CHUNK {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let word = match state >> 60 {
            0..4 => format!(" {} ", key((state >> 40) as usize % 1000)),
            4 | 5 => "\n".to_owned(),
            6 => "\u{20ac}\u{1f600}".to_owned(),
            _ => "lorem ipsum ".to_owned(),
        };
        text.extend_from_slice(word.as_bytes());
    }
    text
}

pub(super) fn survey(threads: usize) -> Survey {
    Survey::new(threads).chunk(CHUNK).cap(usize::MAX)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn pieces_give_what_reading_on_gives(
        seed: u64,
        threads in 1usize..6,
        chunk in 300usize..3000,
        bom: bool,
        cap in prop_oneof![Just(3), Just(usize::MAX)],
    ) {
        let text = [if bom { &b"\xef\xbb\xbf"[..] } else { b"" }, &text(seed)].concat();
        let (furthest, again) = (AtomicU64::new(0), Arc::new(AtomicU64::new(0)));
        let count = Arc::clone(&again);
        let near = Placed::new(text.clone(), true).on_read(move |_, offset| {
            let is_again = offset <= furthest.fetch_max(offset, Ordering::Relaxed);
            count.fetch_add(u64::from(is_again), Ordering::Relaxed);
        });
        let far = survey(1).chunk(chunk).cap(cap).run(Placed::new(text.clone(), false).body());
        let pieces = survey(threads).chunk(chunk).cap(cap).run(near.body());
        prop_assert!(pieces == far);
        prop_assert!(!far.findings.is_empty());
        prop_assert!(again.load(Ordering::Relaxed) > 0, "it was read in pieces");
    }

    /// The object ends, goes on or breaks where it should not, for good.
    #[test]
    fn what_is_wrong_with_the_object_is_told_alike(
        seed: u64,
        threads in 1usize..6,
        at in 0u64..80_000,
        kind in 0u32..3,
    ) {
        let placed = |is_near| {
            let mut placed = Placed::new(text(seed), is_near);
            match kind {
                0 => placed.len = AtomicU64::new(at.min(placed.size)),
                1 => placed.size = at.min(placed.size),
                _ => placed.broken_from = at,
            }
            placed.body()
        };
        let (pieces, far) = (survey(threads).run(placed(true)), survey(1).run(placed(false)));
        prop_assert_eq!(&pieces.reports, &far.reports);
        prop_assert!(pieces == far);
    }
}

#[test]
fn an_object_that_shrinks_meanwhile_keeps_what_came_before() {
    let text = text(7);
    let whole = survey(1).run(Placed::new(text.clone(), true).body());
    for left in [40_000, 50_000] {
        let placed = Placed::new(text.clone(), true).on_read(move |placed, offset| {
            if offset > 45_000 {
                placed.len.store(left, Ordering::SeqCst);
            }
        });
        let outcome = survey(3).run(placed.body());
        assert_eq!(outcome.reported(), [("o0".to_owned(), "partial", Some(Reason::Changed))]);
        let found = outcome.findings.len();
        assert_eq!(outcome.findings, whole.findings[..found], "the first ones, and no gap");
        assert!(whole.findings[found].span.end > left, "all of those that were always there");
    }
}

#[test]
fn a_read_that_panics_fails_the_object_alone() {
    let placed = Placed::new(text(8), true).on_read(|_, offset| {
        assert!(offset < 45_000, "read failed badly");
    });
    let bodies = [placed.body(), vec![Body::bytes(key(1))]].concat();
    let outcome = survey(3).run(bodies);
    assert_eq!(outcome.reported(), [("o0".to_owned(), "partial", Some(Reason::Panicked))]);
    assert_eq!(outcome.places().last().map(String::as_str), Some("o1"));
}

#[test]
fn a_cancelled_packet_reads_no_further_pieces() {
    let threads = 3;
    let handle: Arc<OnceLock<PacketHandle>> = Arc::default();
    let reads = Arc::new(AtomicU64::new(0));
    let (cancel, count) = (Arc::clone(&handle), Arc::clone(&reads));
    let placed = Placed::new(text(9), true).on_read(move |_, offset| {
        if offset > 45_000 {
            cancel.wait().cancel();
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    let core = core(CoreConfig { chunk_size: CHUNK, ..CoreConfig::for_threads(threads) });
    let sink = Arc::new(Collector::default());
    let submitted = core.submit(packet(memory(placed.body()), &sink, options()));
    assert!(handle.set(submitted).is_ok());
    core.shutdown();
    let outcome = outcome(&sink);
    assert!(outcome.totals.cancelled && outcome.findings.is_empty());
    let reads = reads.load(Ordering::Relaxed);
    assert!((1..=threads as u64).contains(&reads), "one that each thread was at, not {reads}");
}
