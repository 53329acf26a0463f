//! Chunked reading gives what reading whole gives.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use domesday_content::{ObjectError, ReadAt};
use domesday_engine::{LOOKAHEAD, LOOKBEHIND};
use domesday_model::{Position, Reason};
use proptest::prelude::*;

use super::support::*;
use crate::reader::{End, Filled, GROWTH_MAX, SizedReader};

/// Text with keys in it, longer than the overlap, so that small chunks cut it many times.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z ]{1,30}",
        2 => "[\u{e9}\u{20ac}\u{1f600} ]{1,6}",
        2 => Just("\n".to_owned()),
        3 => (0usize..1000).prop_map(|n| format!(" {} ", key(n))),
    ];
    (proptest::collection::vec(piece, 1..40), 0..3 * (LOOKAHEAD + LOOKBEHIND) / 2).prop_map(
        |(pieces, len)| {
            let mut text = String::new();
            for piece in pieces.iter().cycle() {
                text.push_str(piece);
                if text.len() > len {
                    break;
                }
            }
            // A fixed beginning, so that the guess of the encoding does not depend on chance.
            format!("plain text of some kind: {text}")
        },
    )
}

fn utf16(text: &str, big: bool, bom: bool) -> Vec<u8> {
    let mark = bom.then_some(0xfeff);
    let units = mark.into_iter().chain(text.encode_utf16());
    units.flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn any_chunk_size_gives_the_same_findings(text in text(), chunk in 500usize..20_000, threads in 1usize..4) {
        let bodies = || vec![
            Body::bytes(text.as_bytes()),
            Body::stream(text.as_bytes()),
            Body::stream([b"\xef\xbb\xbf", text.as_bytes()].concat()),
            Body::bytes(utf16(&text, false, true)),
            Body::stream(utf16(&text, true, true)),
            Body::bytes(gzip(text.as_bytes())),
        ];
        let whole = Survey::new(1).cap(usize::MAX).run(bodies());
        let chunked = Survey::new(threads).cap(usize::MAX).chunk(chunk).run(bodies());
        prop_assert_eq!(&chunked, &whole);
        prop_assert!(whole.reports.is_empty());

        let positions = |n: usize| {
            let of = move |f: &&domesday_model::FindingDraft| f.location.key.as_bytes() == format!("o{n}").as_bytes();
            whole.findings.iter().filter(of).map(|f| (f.position, f.fingerprint)).collect::<Vec<_>>()
        };
        for n in 1..6 {
            prop_assert_eq!(positions(n), positions(0), "object {}", n);
        }
        for finding in &whole.findings {
            let raw: Vec<u8> = match finding.location.key.as_bytes() {
                b"o2" => [b"\xef\xbb\xbf", text.as_bytes()].concat(),
                b"o3" => utf16(&text, false, true),
                b"o4" => utf16(&text, true, true),
                _ => text.clone().into_bytes(),
            };
            let value = &raw[finding.span.start as usize..finding.span.end as usize];
            let value: Vec<u8> = value.iter().copied().filter(|&byte| byte != 0).collect();
            prop_assert!(value.starts_with(b"KEY-q"), "the span is in the raw bytes");
        }
    }
}

#[test]
fn positions_and_decoding_are_told() {
    let text = format!("\u{20ac}\u{20ac} \n\u{e9} {}\n", key(5));
    let outcome =
        Survey::new(1).run(vec![Body::bytes(utf16(&text, false, true)), Body::bytes(gzip(text.as_bytes()))]);
    let [wide, packed] = &outcome.findings[..] else { panic!("two findings, not {:?}", outcome.findings) };
    assert_eq!(wide.position, Position { line: 2, column: 3 });
    assert_eq!((wide.span.start, wide.span.end), (2 + 2 * 6, 2 + 2 * 18));
    assert_eq!(wide.decoding[..], ["utf-16le"]);
    assert_eq!(packed.decoding[..], ["gzip"]);
    assert_eq!(packed.position, wide.position);
    assert_eq!(wide.fingerprint, packed.fingerprint);
}

#[test]
fn a_value_is_the_same_however_it_is_written() {
    // `a line that holds KEY-q0000005 in its middle`
    let encoded = b"data: YSBsaW5lIHRoYXQgaG9sZHMgS0VZLXEwMDAwMDA1IGluIGl0cyBtaWRkbGU=\n";
    let outcome = Survey::new(1).run(vec![Body::bytes(key(5).into_bytes()), Body::bytes(gzip(encoded))]);
    let [plain, hidden] = &outcome.findings[..] else { panic!("two findings, not {:?}", outcome.findings) };
    assert_eq!((hidden.fingerprint, &hidden.preview), (plain.fingerprint, &plain.preview));
    assert_eq!(hidden.decoding[..], ["gzip", "base64"]);
}

#[test]
fn a_very_long_line_is_one_line() {
    let mut text = noise(3 << 20);
    text.extend_from_slice(format!(" {}", key(1)).as_bytes());
    let outcome = Survey::new(2).chunk(64 << 10).run(vec![Body::bytes(text)]);
    assert_eq!(outcome.findings[0].position, Position { line: 1, column: (3 << 20) + 2 });
}

#[test]
fn an_object_that_shrank_is_partial_and_what_was_read_counts() {
    let outcome = Survey::new(1).run(vec![Body::Short(key(1).into_bytes().into())]);
    assert_eq!(outcome.reported(), [("o0".to_owned(), "partial", Some(Reason::Changed))]);
    assert_eq!((outcome.findings.len(), outcome.totals.incomplete), (1, 1));
}

#[test]
fn an_object_that_grows_for_ever_is_left() {
    let mut reader = SizedReader::new(Box::new(std::io::repeat(b'x')), Some(10));
    let mut buffer = vec![0; 4 << 20];
    let mut read = 0;
    let error = loop {
        let filled = reader.fill(&mut buffer);
        read += filled.len as u64;
        match filled.end {
            End::NotYet => {}
            End::Reached => panic!("it has no end"),
            End::Flawed(error) => break error,
        }
    };
    assert_eq!(error.reason, Reason::Changed);
    assert!(read > GROWTH_MAX && read <= GROWTH_MAX + 10 + buffer.len() as u64);
}

#[test]
fn the_end_of_a_small_file_is_not_read_twice() {
    struct Once(Option<&'static [u8]>);
    impl std::io::Read for Once {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            let bytes = self.0.take().expect("one read was enough");
            buf[..bytes.len()].copy_from_slice(bytes);
            Ok(bytes.len())
        }
    }
    let mut reader = SizedReader::new(Box::new(Once(Some(b"small"))), Some(5));
    let filled = reader.fill(&mut [0; 64]);
    assert!(filled.len == 5 && matches!(filled.end, End::Reached));
}

/// Tells a size, or that it is no longer what it was, and counts how often it is asked.
struct Asked(AtomicUsize, Option<u64>);

impl ReadAt for Asked {
    fn read_at(&self, _: &mut [u8], _: u64) -> std::io::Result<usize> {
        unreachable!("only its size is asked for")
    }

    fn size(&self) -> std::io::Result<u64> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let changed = || std::io::Error::other(ObjectError::new(Reason::Changed, "no longer a file"));
        self.1.ok_or_else(changed)
    }
}

/// Reads what was listed with a size into a buffer: how many bytes came, and how often the size was asked for.
fn read_listed(content: &'static [u8], listed: u64, now: Option<u64>, room: usize) -> (Filled, usize) {
    let object = Arc::new(Asked(AtomicUsize::new(0), now));
    let reader = SizedReader::new(Box::new(content), Some(listed));
    let mut reader = reader.proven_by(Some(Arc::clone(&object) as Arc<dyn ReadAt>));
    let filled = reader.fill(&mut vec![0; room]);
    assert!(now.is_none() || reader.size() == now);
    (filled, object.0.load(Ordering::Relaxed))
}

#[test]
fn a_listed_size_is_asked_for_again_unless_the_first_read_proves_it() {
    for (listed, room, asked) in [(5, 64, 0), (3, 64, 1), (9, 64, 1), (0, 64, 1), (5, 6, 0)] {
        let (filled, count) = read_listed(b"small", listed, Some(5), room);
        assert!(filled.len == 5 && matches!(filled.end, End::Reached), "listed with {listed}");
        assert_eq!(count, asked, "listed with {listed}");
    }
    // A buffer that is full proves nothing.
    let (filled, count) = read_listed(b"small and larger", 5, Some(16), 5);
    assert!(filled.len == 5 && matches!(filled.end, End::NotYet) && count == 1);
}

#[test]
fn what_took_an_objects_place_is_told_by_the_first_read() {
    let (filled, _) = read_listed(b"", 5, None, 64);
    assert!(matches!(filled.end, End::Flawed(error) if error.reason == Reason::Changed));
}
