//! Shapes: triggers for rules without a literal. Runs of classes of bytes are found in bit masks, 64 bytes at
//! a time without a branch per byte; only where a mask says so are bytes looked at one by one. Each shape depends
//! on the bytes near a position alone, so that hits do not depend on where a chunk begins; a hit's rules are those
//! whose gate lets the place through.
//!
//! On the way it tells where long words are: see [`NEAR_RUN`].

use std::ops::Range;

use super::near::{NEAR_RUN, Near};
use super::places::{FACT_MAX, Facts, Places, Shaped};
use super::rows::{Masks, Row, Two, bits, from_place};
use super::simd::{
    self, ALNUM, AT, BLOCK, CLASSES, COLON, Classes, DIGIT, JOINT, Level, SIFT_MAX, SetPlaces, UNDERSCORE,
};
use super::{Hit, SEGMENT_ALIGN};
use crate::rules::Shape;
use crate::rules::gate::{GROUP_MAX, Gate};

/// Digits that are counted from a position on, at most; no rule may ask for more.
const DIGITS_MAX: usize = 32;
/// Bytes of a word that count for `word_digits`.
const SHORT_WORD_MAX: usize = 32;
/// Bytes of a word that count if it is found by its length.
pub const WORD_MAX: usize = 64;
/// Bytes of a word that is found by its length.
pub const LONG_WORD_MIN: usize = 23;
/// Digits that a rule of digits must ask for: fewer are everywhere.
pub const DIGITS_LEAST: usize = 5;
/// Digits that a rule of words must ask for, unless their length makes them rare.
pub const SHORT_WORD_DIGITS_MIN: usize = 4;
/// With a letter, a word has no fewer bytes.
const WORDS_LEAST: usize = SHORT_WORD_DIGITS_MIN + 1;
/// What the built-in rules ask for, by which fewer places have to be looked at.
const DIGITS_USUAL: usize = 6;
const WORDS_USUAL: usize = 7;
/// Bytes of a hexadecimal run in which colons count.
const HEX_RUN_MAX: usize = 64;
/// Masks of so many blocks that are searched together take least per block ...
const MANY: usize = SIFT_MAX + 2;
/// ... and of so many least for a text that is no longer.
const FEW: usize = 2 + 2;

const _: () = assert!(SEGMENT_ALIGN.is_multiple_of(BLOCK));
// What is counted from a place on is within as many bits as a mask has.
const _: () = assert!(2 * DIGITS_MAX <= BLOCK && WORD_MAX <= BLOCK && DIGITS_MAX <= FACT_MAX);
const _: () = assert!(NEAR_RUN <= LONG_WORD_MIN);
const _: () = assert!(GROUP_MAX <= FACT_MAX && WORD_MAX <= FACT_MAX);

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_hex_colon(byte: u8) -> bool {
    byte.is_ascii_hexdigit() || byte == b':'
}

fn before(bytes: &[u8], at: usize) -> u8 {
    at.checked_sub(1).map_or(0, |at| bytes[at])
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

/// Rules of a shape that is counted, with the least count.
#[derive(Default)]
struct Counted(Vec<(usize, u32)>);

impl Counted {
    fn push(&self, count: usize, at: usize, hits: &mut Vec<Hit>) {
        let reached = self.0.iter().filter(|&&(min, _)| min <= count);
        hits.extend(reached.map(|&(_, rule)| Hit { rule, at, len: 1 }));
    }
}

/// The shapes of all rules.
pub struct ShapeIndex {
    level: Level,
    digits: Places,
    words: Places,
    long_words: Places,
    quads: Places,
    colons: Counted,
    ats: Counted,
    /// The fewest digits that a rule of digits asks for.
    digits_min: usize,
    /// The shortest word that a rule of words asks for.
    words_min: usize,
}

impl ShapeIndex {
    pub fn new(level: Level) -> ShapeIndex {
        ShapeIndex {
            level,
            digits: Places::default(),
            words: Places::default(),
            long_words: Places::default(),
            quads: Places::default(),
            colons: Counted::default(),
            ats: Counted::default(),
            digits_min: DIGITS_MAX,
            words_min: NEAR_RUN,
        }
    }

    pub fn add(&mut self, shape: Shape, rule: u32, gate: &Gate) {
        let group = |len: usize| gate.first_group >> len.min(GROUP_MAX) & 1 != 0;
        match shape {
            Shape::Digits { min } => {
                self.digits_min = self.digits_min.min(min.into());
                self.digits.add(rule, gate, min.into(), group);
            }
            Shape::WordDigits { min, len: least } => {
                let words = if usize::from(least) >= LONG_WORD_MIN {
                    &mut self.long_words
                } else {
                    self.words_min = self.words_min.min(least.into());
                    &mut self.words
                };
                words.add(rule, gate, min.into(), |len| len >= least.into());
            }
            Shape::DottedQuad => self.quads.add(rule, gate, 0, group),
            Shape::HexColon { min } => self.colons.0.push((min.into(), rule)),
            Shape::At => self.ats.0.push((1, rule)),
        }
    }

    /// Adds the hits that begin in `segment` or reach into it, and to `near` where long words are not far.
    pub fn find(
        &self,
        bytes: &[u8],
        segment: Range<usize>,
        buffers: &mut Buffers,
        near: &mut Near,
        hits: &mut Vec<Hit>,
    ) {
        let Buffers { many, few, places } = buffers;
        if segment.len().div_ceil(BLOCK) <= FEW - 2 {
            self.find_in(bytes, segment, few, places, near, hits);
        } else {
            self.find_in(bytes, segment, many, places, near, hits);
        }
    }

    fn find_in<const R: usize>(
        &self,
        bytes: &[u8],
        segment: Range<usize>,
        sheet: &mut Sheet<R>,
        places: &mut SetPlaces,
        near: &mut Near,
        hits: &mut Vec<Hit>,
    ) {
        let mut colons_done = 0;
        for from in segment.clone().step_by((R - 2) * BLOCK) {
            let blocks = (segment.end - from).div_ceil(BLOCK).min(R - 2);
            sheet.masks.read(self.level, bytes, from);
            let (places, colons_done) = (&mut *places, &mut colons_done);
            simd::run(
                self.level,
                Search { shapes: self, bytes, from, blocks, sheet, places, colons_done, near, hits },
            );
        }
    }

    /// Looks at what is rare, in one row.
    fn look<const R: usize>(
        &self,
        bytes: &[u8],
        from: usize,
        masks: &Masks<R>,
        spots: &Spots<R>,
        row: usize,
        hits: &mut Vec<Hit>,
    ) {
        let pairs = Two(spots.pairs[row], spots.pairs[row + 1]);
        let quads = pairs.and(pairs.close()).0;
        for first_dot in bits(quads).map(|bit| from + bit).filter(|&at| bytes[at] == b'.') {
            let at = walk_back(bytes, first_dot, 4, |byte| byte.is_ascii_digit());
            if quad_at(bytes, at) {
                let group = bytes[at..].iter().take(GROUP_MAX).take_while(|byte| byte.is_ascii_digit());
                self.quads.push(bytes, at, 0, group.count(), hits);
            }
        }
        let near = Two(spots.near[row], spots.near[row + 1]);
        for bit in bits(spots.starts[row] & near.runs(NEAR_RUN, LONG_WORD_MIN).0) {
            let (count, len) = masks.word_at((row - 1) * BLOCK + bit, WORD_MAX);
            if count < len {
                self.long_words.push(bytes, from + bit, count, len, hits);
            }
        }
        for at in bits(masks.0[AT][row]).map(|bit| from + bit).filter(|&at| at_at(bytes, at)) {
            self.ats.push(1, at, hits);
        }
    }

    /// Looks once at each run of hexadecimal digits and colons.
    fn look_at_colon(&self, bytes: &[u8], colon: usize, done: &mut usize, hits: &mut Vec<Hit>) {
        if colon >= *done && colon < bytes.len() {
            let start = walk_back(bytes, colon, HEX_RUN_MAX, is_hex_colon);
            *done = colon + bytes[colon..].iter().take_while(|&&byte| is_hex_colon(byte)).count();
            self.colons.push(colons_at(bytes, start), start, hits);
        }
    }
}

/// What batches of blocks give.
#[derive(Default)]
pub struct Buffers {
    many: Sheet<MANY>,
    few: Sheet<FEW>,
    places: SetPlaces,
}

#[derive(Default)]
struct Sheet<const R: usize> {
    masks: Masks<R>,
    spots: Spots<R>,
}

/// Where in each block of a batch a shape may be.
struct Spots<const R: usize> {
    /// Digits, and single separators between them.
    joined: Row<R>,
    /// The first digits of groups.
    digits: Row<R>,
    /// What stands between digits, with another two to four bytes on.
    pairs: Row<R>,
    /// Where runs of [`NEAR_RUN`] begin.
    near: Row<R>,
    /// The first bytes of words.
    starts: Row<R>,
    /// The first digits of these, and the last bit of a block if the first may be in the next.
    word_digits: Row<R>,
    /// Those that a letter, a digit or a colon follows.
    colons: Row<R>,
    /// All that are rare: neither digits nor words.
    rare: Row<R>,
}

impl<const R: usize> Default for Spots<R> {
    fn default() -> Spots<R> {
        let none = [0; R];
        Spots {
            joined: none,
            digits: none,
            pairs: none,
            near: none,
            starts: none,
            word_digits: none,
            colons: none,
            rare: none,
        }
    }
}

/// How many of the lowest `len` bits are set.
#[inline(always)]
fn set_within(bits: u64, len: u32) -> usize {
    let within = 1u64.checked_shl(len).map_or(u64::MAX, |end| end - 1);
    (bits & within).count_ones() as usize
}

impl<const R: usize> Masks<R> {
    /// The digits and the length of the word that begins at a place, as far as `max`.
    #[inline(always)]
    fn word_at(&self, place: usize, max: usize) -> (usize, usize) {
        let len = from_place(&self.0[ALNUM], place).trailing_ones().min(max as u32);
        (set_within(from_place(&self.0[DIGIT], place), len), len as usize)
    }
}

/// Finds the shapes of a batch whose masks were read.
struct Search<'s, const R: usize> {
    shapes: &'s ShapeIndex,
    bytes: &'s [u8],
    from: usize,
    blocks: usize,
    sheet: &'s mut Sheet<R>,
    places: &'s mut SetPlaces,
    /// The end of the run of hexadecimal digits and colons that was looked at last.
    colons_done: &'s mut usize,
    near: &'s mut Near,
    hits: &'s mut Vec<Hit>,
}

impl<const R: usize> simd::Work for Search<'_, R> {
    #[inline(always)]
    fn run(self) {
        let Search { shapes, bytes, from, blocks, sheet, places, colons_done, near, hits } = self;
        let Sheet { masks, spots } = &mut *sheet;
        if shapes.digits_min >= DIGITS_USUAL && shapes.words_min >= WORDS_USUAL {
            spots.find::<DIGITS_USUAL, WORDS_USUAL>(masks);
        } else {
            spots.find::<DIGITS_LEAST, WORDS_LEAST>(masks);
        }
        let sheet = &*sheet;
        let Sheet { masks, spots } = sheet;
        places.set(shapes.level, &spots.digits[1..=blocks]);
        shapes.digits.push_all(bytes, from, places, &Numbers(sheet), hits);
        places.set(shapes.level, &spots.word_digits[1..=blocks]);
        shapes.words.push_all(bytes, from, places, &Words(sheet), hits);
        for row in (1..=blocks).filter(|&row| spots.rare[row] != 0) {
            let at = from + (row - 1) * BLOCK;
            if spots.near[row] != 0 {
                near.add(at);
            }
            shapes.look(bytes, at, masks, spots, row, hits);
            for colon in bits(spots.colons[row]).map(|bit| at + bit) {
                shapes.look_at_colon(bytes, colon, colons_done, hits);
            }
        }
    }
}

/// Groups of digits, by their first.
struct Numbers<'s, const R: usize>(&'s Sheet<R>);

impl<const R: usize> Shaped for Numbers<'_, R> {
    #[inline(always)]
    fn facts(&self, place: usize) -> Facts {
        let Sheet { masks, spots } = self.0;
        let digits = from_place(&masks.0[DIGIT], place);
        let count = set_within(digits, from_place(&spots.joined, place).trailing_ones());
        let group = digits.trailing_ones().min(GROUP_MAX as u32);
        Facts { place, digits: count.min(DIGITS_MAX), len: group as usize, holds: true }
    }
}

/// Words, by their first digits or the last byte of the block before it.
struct Words<'s, const R: usize>(&'s Sheet<R>);

impl<const R: usize> Shaped for Words<'_, R> {
    #[inline(always)]
    fn facts(&self, digit: usize) -> Facts {
        let Sheet { masks, spots } = self.0;
        let starts = spots.starts[1 + digit / BLOCK] << (BLOCK - 1 - digit % BLOCK);
        let place = digit - starts.leading_zeros() as usize;
        let (digits, len) = masks.word_at(place, SHORT_WORD_MAX);
        Facts { place, digits, len, holds: digits < len }
    }
}

impl<const R: usize> Spots<R> {
    #[inline(always)]
    fn find<const DIGITS: usize, const WORDS: usize>(&mut self, masks: &Masks<R>) {
        let end = R - 1;
        for i in 1..end {
            self.find_in::<DIGITS, WORDS>(masks, i, masks.0.each_ref().map(|row| row[i + 1]));
        }
        self.find_in::<DIGITS, WORDS>(masks, end, [0; CLASSES]);
    }

    /// Those of block `i`, behind which the classes are `next`. Written so that the compiler finds those of several
    /// blocks at once: without a branch, and with lengths of runs that it knows.
    #[inline(always)]
    fn find_in<const DIGITS: usize, const WORDS: usize>(
        &mut self,
        masks: &Masks<R>,
        i: usize,
        next: Classes,
    ) {
        const { assert!(SHORT_WORD_DIGITS_MIN <= WORDS && WORDS <= NEAR_RUN) };
        let class = |class: usize| Two(masks.0[class][i], next[class]);
        let before = |class: usize| masks.0[class][i - 1];
        let (digits, alnums) = (class(DIGIT), class(ALNUM));
        // Single separators between digits.
        let behind_digits = digits.up(before(DIGIT));
        let joints = class(JOINT).and(behind_digits).and(digits.down(1));
        let joined = digits.or(joints);
        self.joined[i] = joined.0;
        self.digits[i] = digits.0 & !behind_digits.0 & joined.runs(1, DIGITS).0;
        self.pairs[i] = joints.and(joints.close()).0;
        let short_runs = alnums.runs(1, SHORT_WORD_DIGITS_MIN);
        let word_runs = short_runs.runs(SHORT_WORD_DIGITS_MIN, WORDS);
        self.near[i] = word_runs.runs(WORDS, NEAR_RUN).0;
        let word = alnums.or(class(UNDERSCORE));
        self.starts[i] = alnums.0 & !word.up(before(ALNUM) | before(UNDERSCORE)).0;
        // Adding its start to a word's letters carries a bit to the first byte behind them, or out.
        let letters = alnums.0 & !digits.0;
        let behind = letters.wrapping_add(self.starts[i] & word_runs.0);
        self.word_digits[i] = behind & !letters & digits.0 & short_runs.0 | u64::from(behind < letters) << 63;
        let colons = class(COLON);
        self.colons[i] = colons.and(alnums.or(colons).down(1)).0;
        self.rare[i] = self.pairs[i] | self.near[i] | self.colons[i] | class(AT).0;
    }
}

/// The first of up to `max` bytes before `at` that all continue a run.
fn walk_back(bytes: &[u8], at: usize, max: usize, continues: impl Fn(u8) -> bool) -> usize {
    let run = bytes[..at].iter().rev().take(max).take_while(|&&byte| continues(byte)).count();
    at - run
}
