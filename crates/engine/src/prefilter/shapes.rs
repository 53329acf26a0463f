//! Shapes: triggers for rules without a literal. Digits are counted in blocks without a branch per byte;
//! only a block with enough of them is looked at closely. Each shape is defined by a function of the
//! bytes near a position alone (`*_at`), so that hits do not depend on where a chunk begins.

use std::ops::Range;

use memchr::memchr_iter;

use super::{Hit, SEGMENT_ALIGN};
use crate::rules::Shape;

/// Bytes whose digits are counted together.
const BLOCK: usize = 32;
/// Digits that are counted from a position on, at most; no rule may ask for more.
const DIGITS_MAX: usize = 32;
/// Bytes that so many digits with single separators take.
const DIGIT_RUN_MAX: usize = 2 * DIGITS_MAX - 1;
/// Bytes of a word that count for `word_digits`, so that it touches two blocks at most.
const SHORT_WORD_MAX: usize = BLOCK;
/// Bytes of a word that count if it is found by its length.
pub const WORD_MAX: usize = 64;
/// Bytes of a word that is found by its length: it holds the first half of an aligned [`STEP`] whole.
pub const LONG_WORD_MIN: usize = STEP + STEP / 2 - 1;
/// Bytes from one sample for long words to the next.
const STEP: usize = 16;
/// Bytes of a hexadecimal run in which colons count.
const HEX_RUN_MAX: usize = 64;
/// Bytes of the longest dotted quad.
const QUAD_MAX: usize = 15;

const _: () = assert!(SEGMENT_ALIGN.is_multiple_of(BLOCK));

fn is_separator(byte: u8) -> bool {
    matches!(byte, b' ' | b'-' | b'.' | b'/')
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_hex_colon(byte: u8) -> bool {
    byte.is_ascii_hexdigit() || byte == b':'
}

fn before(bytes: &[u8], at: usize) -> u8 {
    at.checked_sub(1).map_or(0, |at| bytes[at])
}

/// Digits from `at` on with single separators between, up to [`DIGITS_MAX`]; 0 unless a group of digits
/// starts at `at`.
pub(super) fn digits_at(bytes: &[u8], at: usize) -> usize {
    if before(bytes, at).is_ascii_digit() {
        return 0;
    }
    let (mut count, mut i) = (0, at);
    while count < DIGITS_MAX && i < bytes.len() {
        if bytes[i].is_ascii_digit() {
            count += 1;
            i += 1;
        } else if count > 0 && is_separator(bytes[i]) && bytes.get(i + 1).is_some_and(u8::is_ascii_digit) {
            i += 1;
        } else {
            break;
        }
    }
    count
}

/// Whether four groups of one to three digits with dots between start at `at`.
pub(super) fn quad_at(bytes: &[u8], at: usize) -> bool {
    if before(bytes, at).is_ascii_digit() {
        return false;
    }
    let mut rest = &bytes[at..];
    for group in 0..4 {
        let len = rest.iter().take(4).take_while(|byte| byte.is_ascii_digit()).count();
        if !(1..=3).contains(&len) {
            return false;
        }
        rest = &rest[len..];
        if group < 3 {
            let [b'.', after @ ..] = rest else { return false };
            rest = after;
        }
    }
    true
}

/// A word's first bytes in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Word {
    pub digits: usize,
    pub len: usize,
}

/// The first `max` bytes of the word that starts at `at`; `None` unless one with a letter starts there.
pub(super) fn word_at(bytes: &[u8], at: usize, max: usize) -> Option<Word> {
    if is_word(before(bytes, at)) {
        return None;
    }
    let mut word = Word::default();
    for byte in bytes[at..].iter().take(max).take_while(|byte| byte.is_ascii_alphanumeric()) {
        word.len += 1;
        word.digits += usize::from(byte.is_ascii_digit());
    }
    (word.len > word.digits).then_some(word)
}

/// Colons of the run of hexadecimal digits and colons that starts at `at`, within [`HEX_RUN_MAX`] bytes;
/// 0 unless one starts there, outside a word.
pub(super) fn colons_at(bytes: &[u8], at: usize) -> usize {
    let previous = before(bytes, at);
    if is_word(previous) || previous == b':' {
        return 0;
    }
    let run = bytes[at..].iter().take(HEX_RUN_MAX).take_while(|&&byte| is_hex_colon(byte));
    run.filter(|&&byte| byte == b':').count()
}

/// Whether `at` is an `@` with something before and after it that a mail address can have there.
pub(super) fn at_at(bytes: &[u8], at: usize) -> bool {
    let previous = before(bytes, at);
    bytes[at] == b'@'
        && (previous.is_ascii_alphanumeric() || matches!(previous, b'.' | b'_' | b'%' | b'+' | b'-' | b'"'))
        && bytes.get(at + 1).is_some_and(|next| next.is_ascii_alphanumeric() || *next == b'[')
}

/// Rules of a counted shape, those with the smallest count first.
#[derive(Default)]
struct Counted(Vec<(usize, u32)>);

impl Counted {
    fn add(&mut self, min: u8, rule: u32) {
        self.0.push((min.into(), rule));
        self.0.sort_unstable();
    }

    fn least(&self) -> Option<usize> {
        self.0.first().map(|&(min, _)| min)
    }

    fn push(&self, count: usize, at: usize, hits: &mut Vec<Hit>) {
        let reached = self.0.iter().take_while(|&&(min, _)| min <= count);
        hits.extend(reached.map(|&(_, rule)| Hit { rule, at, len: 1 }));
    }
}

/// Rules of words, with what each asks for.
#[derive(Default)]
struct Words(Vec<(Word, u32)>);

impl Words {
    fn least_digits(&self) -> Option<usize> {
        self.0.iter().map(|(least, _)| least.digits).min()
    }

    fn push(&self, bytes: &[u8], at: usize, max: usize, hits: &mut Vec<Hit>) {
        let Some(word) = word_at(bytes, at, max) else { return };
        for &(least, rule) in &self.0 {
            if word.digits >= least.digits && word.len >= least.len {
                hits.push(Hit { rule, at, len: 1 });
            }
        }
    }
}

/// The shapes of all rules.
#[derive(Default)]
pub struct ShapeIndex {
    digits: Counted,
    words: Words,
    long_words: Words,
    quads: Counted,
    colons: Counted,
    ats: Counted,
}

impl ShapeIndex {
    pub fn add(&mut self, shape: Shape, rule: u32) {
        match shape {
            Shape::Digits { min } => self.digits.add(min, rule),
            Shape::WordDigits { min, len } => {
                let words =
                    if usize::from(len) >= LONG_WORD_MIN { &mut self.long_words } else { &mut self.words };
                words.0.push((Word { digits: min.into(), len: len.into() }, rule));
            }
            Shape::DottedQuad => self.quads.add(1, rule),
            Shape::HexColon { min } => self.colons.add(min, rule),
            Shape::At => self.ats.add(1, rule),
        }
    }

    /// Adds the hits that begin in `segment` or reach into it.
    pub fn find(&self, bytes: &[u8], segment: Range<usize>, hits: &mut Vec<Hit>) {
        self.find_in_digit_blocks(bytes, segment.clone(), hits);
        if !self.long_words.0.is_empty() {
            self.find_long_words(bytes, segment.clone(), hits);
        }
        if self.colons.least().is_some() {
            self.find_colons(bytes, segment.clone(), hits);
        }
        if self.ats.least().is_some() {
            for at in memchr_iter(b'@', &bytes[segment.clone()]).map(|at| segment.start + at) {
                if at_at(bytes, at) {
                    self.ats.push(1, at, hits);
                }
            }
        }
    }

    /// What asks for `n` digits touches two blocks, and then one of them has half of them; or more, and then
    /// it has a block all to itself, with every second byte a digit at least.
    fn find_in_digit_blocks(&self, bytes: &[u8], segment: Range<usize>, hits: &mut Vec<Hit>) {
        let half = |least: Option<usize>| least.map_or(usize::MAX, |least| least.div_ceil(2));
        let digits_from = half(self.digits.least());
        let words_from = half(self.words.least_digits());
        let quads_from = half((!self.quads.0.is_empty()).then_some(4));
        let threshold = digits_from.min(words_from).min(quads_from);
        if threshold == usize::MAX {
            return;
        }
        // Nothing before these positions needs another look.
        let (mut digits_done, mut words_done, mut quads_done) = (0, 0, 0);
        let mut at = segment.start;
        for block in bytes[segment].chunks(BLOCK) {
            let count = count_digits(block);
            let end = at + block.len();
            if count >= threshold {
                if count >= digits_from {
                    let continues = |byte: u8| byte.is_ascii_digit() || is_separator(byte);
                    let start = walk_back(bytes, at, DIGIT_RUN_MAX, continues).max(digits_done);
                    digits_done = end;
                    for at in (start..end).filter(|&at| bytes[at].is_ascii_digit()) {
                        self.digits.push(digits_at(bytes, at), at, hits);
                    }
                }
                if count >= words_from {
                    let start = walk_back(bytes, at, SHORT_WORD_MAX, |byte| byte.is_ascii_alphanumeric()).max(words_done);
                    words_done = end;
                    for at in (start..end).filter(|&at| bytes[at].is_ascii_alphanumeric()) {
                        self.words.push(bytes, at, SHORT_WORD_MAX, hits);
                    }
                }
                if count >= quads_from {
                    let continues = |byte: u8| byte.is_ascii_digit() || byte == b'.';
                    let start = walk_back(bytes, at, QUAD_MAX, continues).max(quads_done);
                    quads_done = end;
                    for at in (start..end).filter(|&at| bytes[at].is_ascii_digit()) {
                        self.quads.push(quad_at(bytes, at).into(), at, hits);
                    }
                }
            }
            at = end;
        }
    }

    fn find_long_words(&self, bytes: &[u8], segment: Range<usize>, hits: &mut Vec<Hit>) {
        let mut done = 0;
        let mut at = segment.start;
        while at < segment.end {
            let Some(&half) = bytes[at..].first_chunk() else { break };
            if at >= done && all_alphanumeric(half) {
                let start = walk_back(bytes, at, WORD_MAX, |byte| byte.is_ascii_alphanumeric());
                let rest = bytes[at..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
                done = at + rest;
                self.long_words.push(bytes, start, WORD_MAX, hits);
            }
            at += STEP;
        }
    }

    fn find_colons(&self, bytes: &[u8], segment: Range<usize>, hits: &mut Vec<Hit>) {
        let mut done = 0;
        for colon in memchr_iter(b':', &bytes[segment.clone()]).map(|at| segment.start + at) {
            let follows = bytes.get(colon + 1).is_some_and(|&byte| is_hex_colon(byte));
            if colon < done || !follows {
                continue;
            }
            let start = walk_back(bytes, colon, HEX_RUN_MAX, is_hex_colon);
            done = colon + 1 + bytes[colon + 1..].iter().take_while(|&&byte| is_hex_colon(byte)).count();
            self.colons.push(colons_at(bytes, start), start, hits);
        }
    }
}

/// Whether all eight bytes are ASCII letters or digits, told in one word: a byte's high bit says that it is
/// in a range, after adding what carries into it from the range's first byte on.
fn all_alphanumeric(bytes: [u8; STEP / 2]) -> bool {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let each = |byte: u8| u64::from_ne_bytes([byte; 8]);
    let word = u64::from_ne_bytes(bytes);
    let in_range = |word: u64, first: u8, last: u8| {
        let low = word & !HIGH;
        (low + each(0x80 - first)) & !(low + each(0x7f - last))
    };
    let letters = in_range(word | each(0x20), b'a', b'z');
    let digits = in_range(word, b'0', b'9');
    (letters | digits) & !word & HIGH == HIGH
}

/// Written so that it compiles to a few vector instructions.
fn count_digits(block: &[u8]) -> usize {
    match block.first_chunk::<BLOCK>() {
        Some(block) => block.iter().map(|byte| u8::from(byte.wrapping_sub(b'0') < 10)).sum::<u8>().into(),
        None => block.iter().filter(|byte| byte.is_ascii_digit()).count(),
    }
}

/// The first of up to `max` bytes before `at` that all continue a run.
fn walk_back(bytes: &[u8], at: usize, max: usize, continues: impl Fn(u8) -> bool) -> usize {
    let run = bytes[..at].iter().rev().take(max).take_while(|&&byte| continues(byte)).count();
    at - run
}
