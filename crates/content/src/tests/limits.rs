//! Every budget stops what it is for, with its own reason, and what came before is kept.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use domesday_model::Reason;

use super::fixtures::*;
use super::*;

#[test]
fn depth_is_counted_through_compressors_and_archives() {
    let nested = gzip(&tar(&[("in.zip", &zip(&[("deep", b"x"), ("deeper.gz", &gzip(b"y"))]))]));
    let at = |max_depth| explore(seekable(&nested), &Budget::new(Limits { max_depth, ..LIMITS }, None));
    assert_eq!(at(4).reasons(), []);
    assert_eq!(at(3).errors, [("<gzip>!in.zip!deeper.gz".to_owned(), Reason::DepthLimit)]);
    assert_eq!(at(3).contents(), [("<gzip>!in.zip!deep", &b"x"[..])]);
    assert_eq!(at(2).errors, [("<gzip>!in.zip".to_owned(), Reason::DepthLimit)]);
    assert_eq!(at(1).errors, [(String::new(), Reason::DepthLimit)]);
    assert_eq!(at(0).errors, [(String::new(), Reason::DepthLimit)]);
}

#[test]
fn entries_are_counted_over_all_archives() {
    let inner = tar(&[("1", b"x"), ("2", b"x")]);
    let outer = zip(&[("a.tar", &inner), ("b.tar", &inner)]);
    let at = |max_entries| explore(seekable(&outer), &Budget::new(Limits { max_entries, ..LIMITS }, None));
    assert_eq!((at(6).files.len(), at(6).reasons()), (4, vec![]));
    assert_eq!(at(5).files.len(), 3);
    assert_eq!(at(5).reasons(), [Reason::EntryLimit]);
    assert_eq!(at(2).reasons(), [Reason::EntryLimit, Reason::EntryLimit]);
}

#[test]
fn unpacked_bytes_are_limited_to_the_byte() {
    let packed = gzip(&noise(100_000));
    let at = |max_unpacked_bytes| {
        let budget = Budget::new(Limits { max_unpacked_bytes, ..LIMITS }, None);
        explore(seekable(&packed), &budget)
    };
    assert_eq!(at(100_000).reasons(), []);
    for limit in [0, 1, 512, 99_999] {
        assert_eq!(at(limit).reasons(), [Reason::ByteLimit]);
        assert_eq!(at(limit).files[0].1, &noise(100_000)[..limit as usize]);
    }
}

#[test]
fn inflation_is_limited_against_the_outermost_object() {
    let zeros = vec![0; 40 << 20];
    let bomb = gzip(&gzip(&zeros));
    let budget = Budget::new(Limits { max_inflation: 100, ..LIMITS }, Some(bomb.len() as u64));
    let found = explore(seekable(&bomb), &budget);
    assert_eq!(found.reasons(), [Reason::RatioLimit]);
    assert!(found.files[0].1.len() <= 16 << 20, "stopped soon after the free part");
    // The same from a stream whose size nobody told.
    let found = explore(streamed(&bomb), &Budget::new(Limits { max_inflation: 100, ..LIMITS }, None));
    assert_eq!(found.reasons(), [Reason::RatioLimit]);
    // Small things may inflate as they like.
    let found = explore(
        seekable(&gzip(&zeros[..8 << 20])),
        &Budget::new(Limits { max_inflation: 1, ..LIMITS }, None),
    );
    assert_eq!(found.reasons(), []);
}

/// Many entries over the same data: what makes a small zip unpack to petabytes without nesting.
fn overlapping(data: &Member, entries: u64) -> Vec<u8> {
    let mut bytes = data.local();
    let directory: Vec<u8> = (0..entries).flat_map(|_| data.central(0)).collect();
    let end = zip_end(entries, directory.len() as u64, bytes.len() as u64, false);
    bytes.extend(directory);
    bytes.extend(end);
    bytes
}

#[test]
fn overlapping_entries_are_stopped() {
    let bomb = overlapping(&Member::new("z", 8, &vec![0; 4 << 20]), 1000);
    let found = explore(seekable(&bomb), &Budget::new(Limits { max_inflation: 200, ..LIMITS }, None));
    assert!(found.reasons().iter().all(|&reason| reason == Reason::RatioLimit) && !found.errors.is_empty());
    let total: usize = found.files.iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(total <= (16 << 20).max(bomb.len() * 200), "{total}");

    // Entries that cost input and give nothing: empty stored blocks of deflate.
    let mut nothing = Member::new("n", 8, b"");
    nothing.packed = [[0, 0, 0, 0xff, 0xff].repeat(20_000), vec![1, 0, 0, 0xff, 0xff]].concat();
    let limits = Limits { max_unpacked_bytes: 1 << 20, ..LIMITS };
    let found = explore(seekable(&overlapping(&nothing, 100)), &Budget::new(limits, None));
    assert_eq!(found.reasons().first(), Some(&Reason::ByteLimit));
}

#[test]
fn large_metadata_is_refused_and_not_allocated() {
    let huge = tar_member(b"meta", b'L', b"77777777777\0", b"");
    let found = explore_both(&huge);
    assert_eq!(found.reasons(), [Reason::UnsupportedArchive]);
}

/// Counts what is read from it.
struct Counting<R>(R, Arc<AtomicU64>);

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let got = self.0.read(out)?;
        self.1.fetch_add(got as u64, Relaxed);
        Ok(got)
    }
}

#[test]
fn a_gigabyte_streams_through_without_being_held() {
    const MEMBERS: u64 = 64;
    const MEMBER_LEN: u64 = 16 << 20;
    let member = gzip(&vec![0; MEMBER_LEN as usize]);
    let packed = member.repeat(MEMBERS as usize);
    let read = Arc::new(AtomicU64::new(0));
    let input = Input::Stream(Box::new(Counting(Cursor::new(packed), Arc::clone(&read))));
    let budget = Budget::new(Limits { max_inflation: 2000, ..LIMITS }, None);
    let Ok((_, Unwrapped::Plain(mut reader))) = unwrap(input, None, &budget, 0) else {
        panic!("a stream was expected")
    };
    let (mut total, mut buffer) = (0u64, vec![0; 64 << 10]);
    loop {
        let got = reader.read(&mut buffer).unwrap() as u64;
        total += got;
        // What was read ahead is what could be held: a few buffers.
        let needed = (total / MEMBER_LEN) * member.len() as u64;
        assert!(read.load(Relaxed) <= needed + member.len() as u64 + (256 << 10));
        if got == 0 {
            break;
        }
    }
    assert_eq!(total, MEMBERS * MEMBER_LEN);
    assert_eq!((budget.unpacked(), budget.buffered()), (total, 0));
}
