//! Shapes: triggers for rules without a literal. Digits are counted in blocks without a branch per byte;
//! only a block with enough of them is looked at closely. Each shape is defined by a function of the
//! bytes near a position alone (`*_at`), so that hits do not depend on where a chunk begins.

use std::ops::Range;

use memchr::memchr_iter;

use super::{Hit, SEGMENT_ALIGN};
use crate::rules::Shape;
use crate::rules::gate::{GROUP_MAX, Gate};

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

/// Rules of digits, by the length that their first group may have; those with the smallest count first.
struct Groups {
    by_len: [Vec<GroupRule>; GROUP_MAX + 1],
    least: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct GroupRule {
    min: usize,
    rule: u32,
    starts_word: bool,
}

impl Default for Groups {
    fn default() -> Groups {
        Groups { by_len: std::array::from_fn(|_| Vec::new()), least: None }
    }
}

impl Groups {
    fn add(&mut self, min: u8, rule: u32, gate: &Gate) {
        let min = usize::from(min);
        self.least = Some(self.least.map_or(min, |least| least.min(min)));
        for (len, rules) in
            self.by_len.iter_mut().enumerate().filter(|(len, _)| gate.first_group >> len & 1 != 0)
        {
            debug_assert!(len <= GROUP_MAX);
            rules.push(GroupRule { min, rule, starts_word: gate.starts_word });
            rules.sort_unstable();
        }
    }

    /// The hits of a group of `len` digits that starts at `at`.
    fn push(&self, bytes: &[u8], at: usize, len: usize, hits: &mut Vec<Hit>) {
        let rules = &self.by_len[len.min(GROUP_MAX)];
        if rules.is_empty() {
            return;
        }
        let in_word = is_word(before(bytes, at));
        let count = digits_at(bytes, at);
        let reached =
            rules.iter().take_while(|rule| rule.min <= count).filter(|rule| !(in_word && rule.starts_word));
        hits.extend(reached.map(|rule| Hit { rule: rule.rule, at, len: 1 }));
    }
}

/// Rules of words, with what each asks for.
#[derive(Default)]
struct Words(Vec<(Word, Gate, u32)>);

impl Words {
    fn least_digits(&self) -> Option<usize> {
        self.0.iter().map(|(least, ..)| least.digits).min()
    }

    fn push(&self, bytes: &[u8], at: usize, max: usize, hits: &mut Vec<Hit>) {
        let Some(word) = word_at(bytes, at, max) else { return };
        for (least, gate, rule) in &self.0 {
            let enough = word.digits >= least.digits && word.len >= least.len;
            if enough && gate.first_byte[usize::from(bytes[at])] {
                hits.push(Hit { rule: *rule, at, len: 1 });
            }
        }
    }
}

/// Before these positions nothing needs another look.
#[derive(Default)]
struct Done {
    groups: usize,
    words: usize,
}

/// The positions in a block at which a group of digits starts.
#[derive(Clone, Copy)]
struct GroupStarts {
    mask: u32,
    block: usize,
}

impl GroupStarts {
    fn of(bytes: &[u8], block: Range<usize>) -> GroupStarts {
        let digits = match bytes[block.clone()].first_chunk::<BLOCK>() {
            Some(whole) => {
                let (words, _) = whole.as_chunks::<8>();
                words.iter().rev().fold(0, |mask, &word| mask << 8 | digit_mask(word))
            }
            None => {
                let bits = bytes[block.clone()].iter().enumerate();
                bits.fold(0, |mask, (i, byte)| mask | u32::from(byte.is_ascii_digit()) << i)
            }
        };
        let digit_before = u32::from(before(bytes, block.start).is_ascii_digit());
        GroupStarts { mask: digits & !(digits << 1 | digit_before), block: block.start }
    }
}

impl Iterator for GroupStarts {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.mask == 0 {
            return None;
        }
        let at = self.block + self.mask.trailing_zeros() as usize;
        self.mask &= self.mask - 1;
        Some(at)
    }
}

/// The shapes of all rules.
#[derive(Default)]
pub struct ShapeIndex {
    digits: Groups,
    words: Words,
    long_words: Words,
    quads: Counted,
    colons: Counted,
    ats: Counted,
}

impl ShapeIndex {
    pub fn add(&mut self, shape: Shape, rule: u32, gate: &Gate) {
        match shape {
            Shape::Digits { min } => self.digits.add(min, rule, gate),
            Shape::WordDigits { min, len } => {
                let words =
                    if usize::from(len) >= LONG_WORD_MIN { &mut self.long_words } else { &mut self.words };
                words.0.push((Word { digits: min.into(), len: len.into() }, gate.clone(), rule));
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
        let digits_from = half(self.digits.least);
        let words_from = half(self.words.least_digits());
        let quads_from = half((!self.quads.0.is_empty()).then_some(4));
        let threshold = digits_from.min(words_from).min(quads_from);
        if threshold == usize::MAX {
            return;
        }
        let mut done = Done::default();
        let mut at = segment.start;
        for block in bytes[segment].chunks(BLOCK) {
            let count = count_digits(block);
            if count >= threshold {
                let range = at..at + block.len();
                let groups = GroupStarts::of(bytes, range.clone());
                // Half of a quad has one of its dots.
                if count >= digits_from || (count >= quads_from && block.contains(&b'.')) {
                    self.find_groups(bytes, range.clone(), groups, &mut done, hits);
                }
                if count >= words_from {
                    self.find_words(bytes, range, groups, &mut done, hits);
                }
            }
            at += block.len();
        }
    }

    fn find_groups(
        &self,
        bytes: &[u8],
        block: Range<usize>,
        groups: GroupStarts,
        done: &mut Done,
        hits: &mut Vec<Hit>,
    ) {
        let continues = |byte: u8| byte.is_ascii_digit() || is_separator(byte);
        let from = walk_back(bytes, block.start, DIGIT_RUN_MAX, continues).max(done.groups);
        done.groups = block.end;
        let starts_group = |&at: &usize| bytes[at].is_ascii_digit() && !before(bytes, at).is_ascii_digit();
        for at in (from..block.start).filter(starts_group).chain(groups) {
            let len = bytes[at..].iter().take(GROUP_MAX).take_while(|byte| byte.is_ascii_digit()).count();
            self.digits.push(bytes, at, len, hits);
            if bytes.get(at + len) == Some(&b'.') {
                self.quads.push(quad_at(bytes, at).into(), at, hits);
            }
        }
    }

    /// A word with half of its digits in the block has one of its groups of digits there.
    fn find_words(
        &self,
        bytes: &[u8],
        block: Range<usize>,
        groups: GroupStarts,
        done: &mut Done,
        hits: &mut Vec<Hit>,
    ) {
        let first = bytes[block.start].is_ascii_digit().then_some(block.start);
        for at in first.into_iter().chain(groups) {
            let start = walk_back(bytes, at, SHORT_WORD_MAX, |byte| byte.is_ascii_alphanumeric());
            if start >= done.words {
                done.words = start + 1;
                self.words.push(bytes, start, SHORT_WORD_MAX, hits);
            }
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

/// Bit `i` says that byte `i` is a digit. The product moves bit `8 i` to bit `56 + i`, and no two of its
/// terms meet, so nothing carries.
fn digit_mask(bytes: [u8; 8]) -> u32 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let word = u64::from_le_bytes(bytes) ^ u64::from_ne_bytes([b'0'; 8]);
    let not_digit = ((word & LOW) + u64::from_ne_bytes([0x80 - 10; 8])) | word;
    ((((!not_digit & !LOW) >> 7).wrapping_mul(0x0102_0408_1020_4080)) >> 56) as u32
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
