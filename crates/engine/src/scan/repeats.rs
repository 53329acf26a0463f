//! Texts that repeat themselves: fillers, dumps of one row, hostile input that is all trigger. What a match is depends on
//! the bytes near it alone, so where all bytes within reach are those of one period before, so are the matches: they
//! are copied and not searched for. This holds for the same reason as a scan in chunks gives the matches of the whole.
//!
//! It must cost nothing elsewhere: a text is asked whether it repeats itself at a few places only.

use std::ops::Range;

use super::Match;
use crate::{LOOKAHEAD, LOOKBEHIND};

/// Bytes of the longest period.
const PERIOD_MAX: usize = 4 * 1024;
/// Bytes of the shortest stretch that is copied: the edges of a shorter one cost more than it saves.
const REPEATED_MIN: usize = 2 * (LOOKBEHIND + LOOKAHEAD);
/// Bytes from one place that is asked to the next. Every stretch that is worth it has one.
const STEP: usize = REPEATED_MIN;
/// Bytes that must come again for a period to be tried.
const SAMPLE: usize = 32;
/// Bytes that are compared at once.
const BLOCK: usize = 256;

/// A part of what is accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    /// To be searched.
    Searched(Range<usize>),
    /// Has the matches of the `period` before it, over and over.
    Repeated { range: Range<usize>, period: usize },
}

/// The parts of `accept`, in order and without gaps.
pub fn pieces(bytes: &[u8], accept: &Range<usize>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut done = accept.start;
    let mut at = accept.start;
    while at + REPEATED_MIN < accept.end {
        let Some((stretch, period)) = stretch_at(bytes, at) else {
            at += STEP;
            continue;
        };
        let start = done.max(stretch.start + LOOKBEHIND) + period;
        let end = accept.end.min(stretch.end.saturating_sub(LOOKAHEAD));
        if start + REPEATED_MIN <= end {
            pieces.push(Piece::Searched(done..start));
            pieces.push(Piece::Repeated { range: start..end, period });
            done = end;
        }
        at = stretch.end.max(at + STEP);
    }
    if done < accept.end || pieces.is_empty() {
        pieces.push(Piece::Searched(done..accept.end));
    }
    pieces
}

/// Adds the matches of a repeated piece to those before it, which are in order.
pub fn copy(matches: &mut Vec<Match>, range: &Range<usize>, period: usize) {
    let first = matches.partition_point(|found| found.span.start < range.start - period);
    let last = matches.len();
    for by in (period..).step_by(period) {
        for at in first..last {
            let start = matches[at].span.start + by;
            if start >= range.end {
                return;
            }
            let mut found = matches[at].clone();
            found.span = start..found.span.end + by;
            matches.push(found);
        }
        if first == last {
            return;
        }
    }
}

/// The stretch from `at` on, and what of it lies before, in which every byte but those of the first period is the same
/// as one period before.
fn stretch_at(bytes: &[u8], at: usize) -> Option<(Range<usize>, usize)> {
    let sample = bytes.get(at..at + SAMPLE)?;
    let ahead = &bytes[at + 1..(at + PERIOD_MAX + SAMPLE).min(bytes.len())];
    let period = memchr::memmem::find(ahead, sample)? + 1;
    let end = at + period + same_prefix(&bytes[at..], &bytes[at + period..]);
    let before = same_suffix(&bytes[..at], &bytes[..at + period]);
    Some((at - before..end, period))
}

/// Bytes that both begin with.
fn same_prefix(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.chunks(BLOCK).zip(b.chunks(BLOCK)).take_while(|(a, b)| a == b).count() * BLOCK;
    let blocks = blocks.min(a.len()).min(b.len());
    blocks + a[blocks..].iter().zip(&b[blocks..]).take_while(|(a, b)| a == b).count()
}

/// Bytes that both end with.
fn same_suffix(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.rchunks(BLOCK).zip(b.rchunks(BLOCK)).take_while(|(a, b)| a == b).count() * BLOCK;
    let blocks = blocks.min(a.len()).min(b.len());
    let (a, b) = (&a[..a.len() - blocks], &b[..b.len() - blocks]);
    blocks + a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `head`, `unit` over and over for `len` bytes, then `tail`.
    fn text(head: &[u8], unit: &[u8], len: usize, tail: &[u8]) -> Vec<u8> {
        let mut text = head.to_vec();
        text.extend(unit.iter().cycle().take(len));
        text.extend(tail);
        text
    }

    fn check(bytes: &[u8], accept: Range<usize>) -> usize {
        let mut at = accept.start;
        let mut repeated = 0;
        for piece in pieces(bytes, &accept) {
            match piece {
                Piece::Searched(range) => {
                    assert_eq!(range.start, at);
                    at = range.end;
                }
                Piece::Repeated { range, period } => {
                    assert_eq!(range.start, at);
                    assert!(range.start - period >= accept.start, "what is copied was searched");
                    let near = range.start - LOOKBEHIND..range.end + LOOKAHEAD;
                    let before = near.start - period..near.end - period;
                    assert!(bytes[near] == bytes[before]);
                    repeated += range.len();
                    at = range.end;
                }
            }
        }
        assert_eq!(at, accept.end);
        repeated
    }

    #[test]
    fn what_repeats_is_found_and_nothing_else() {
        let noise: Vec<u8> =
            (0..200_000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        assert_eq!(check(&noise, 0..noise.len()), 0);
        for unit in ["a", "key=", &"a long line with some words in it\n".repeat(9), &" ".repeat(70)] {
            let text = text(&noise[..90_001], unit.as_bytes(), 500_000, &noise[..70_000]);
            assert!(check(&text, 0..text.len()) > 400_000, "{}", unit.len());
            assert!(check(&text, 200_000..400_000) > 100_000, "{}", unit.len());
        }
    }

    #[test]
    fn matches_are_copied_until_the_end_of_the_piece() {
        let found = |start: usize| Match {
            rule: 1,
            span: start..start + 3,
            score: domesday_model::Score(50),
            reasons: Default::default(),
            decoded: None,
            suppressed: None,
        };
        let mut matches = vec![found(2), found(11), found(14)];
        copy(&mut matches, &(20..37), 10);
        let starts: Vec<_> = matches.iter().map(|found| found.span.clone()).collect();
        assert_eq!(starts, [2..5, 11..14, 14..17, 21..24, 24..27, 31..34, 34..37]);
        let mut none = vec![found(2)];
        copy(&mut none, &(20..1 << 30), 10);
        assert_eq!(none.len(), 1);
    }

    proptest! {
        #[test]
        fn lengths_in_common_are_exact(a in "[ab]{0,4}", n in 0usize..600, b in "[ab]{0,4}", c in "[ab]{0,4}") {
            let (x, y) = (text(a.as_bytes(), b"a", n, b.as_bytes()), text(a.as_bytes(), b"a", n, c.as_bytes()));
            let naive = x.iter().zip(&y).take_while(|(a, b)| a == b).count();
            prop_assert_eq!(same_prefix(&x, &y), naive);
            let (x, y): (Vec<u8>, Vec<u8>) = (x.into_iter().rev().collect(), y.into_iter().rev().collect());
            prop_assert_eq!(same_suffix(&x, &y), naive);
        }
    }
}
