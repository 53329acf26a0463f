//! Shapes: triggers for rules without a literal. Runs of classes of bytes are found in bit masks, 64 bytes at
//! a time without a branch per byte; only where a mask says so are bytes looked at one by one. Each shape depends
//! on the bytes near a position alone, so that hits do not depend on where a chunk begins; a hit's rules are those
//! whose gate lets the place through.
//!
//! On the way it tells where long words are: see [`NEAR_RUN`].

use std::ops::Range;

use super::near::{NEAR_RUN, Near};
use super::places::{FACT_MAX, Places};
use super::rows::{Masks, Row, bits, down, make_row, pair, runs, up};
use super::simd::{self, ALNUM, BLOCK, DIGIT, Level};
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
/// Bytes of a hexadecimal run in which colons count.
const HEX_RUN_MAX: usize = 64;
/// Masks of so many blocks that are searched together take least per block ...
const MANY: usize = 64 + 2;
/// ... and of so many least for a text that is no longer.
const FEW: usize = 2 + 2;

const _: () = assert!(SEGMENT_ALIGN.is_multiple_of(BLOCK));
// A run is told from the masks of its block and the next.
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
        if segment.len().div_ceil(BLOCK) <= FEW - 2 {
            self.find_in(bytes, segment, &mut buffers.few, near, hits);
        } else {
            self.find_in(bytes, segment, &mut buffers.many, near, hits);
        }
    }

    fn find_in<const R: usize>(
        &self,
        bytes: &[u8],
        segment: Range<usize>,
        sheet: &mut Sheet<R>,
        near: &mut Near,
        hits: &mut Vec<Hit>,
    ) {
        let mut colons_done = 0;
        for from in segment.clone().step_by((R - 2) * BLOCK) {
            let blocks = (segment.end - from).div_ceil(BLOCK).min(R - 2);
            sheet.masks.read(self.level, bytes, from);
            let colons_done = &mut colons_done;
            simd::run(
                self.level,
                Search { shapes: self, bytes, from, blocks, sheet, colons_done, near, hits },
            );
        }
    }

    #[inline(always)]
    fn look<const R: usize>(
        &self,
        bytes: &[u8],
        from: usize,
        masks: &Masks<R>,
        spots: &Spots<R>,
        row: usize,
        hits: &mut Vec<Hit>,
    ) {
        let digits = pair(&masks.0[DIGIT], row);
        let group_len = |bit: usize| (digits >> bit).trailing_ones().min(GROUP_MAX as u32) as usize;
        if spots.digits[row] != 0 {
            let joined = pair(&spots.joined, row);
            for bit in bits(spots.digits[row]) {
                let count = digits_within(digits >> bit, (joined >> bit).trailing_ones()).min(DIGITS_MAX);
                self.digits.push(bytes, from + bit, count, group_len(bit), hits);
            }
        }
        for first_dot in bits(spots.quads[row]).map(|bit| from + bit) {
            let at = walk_back(bytes, first_dot, 4, |byte| byte.is_ascii_digit());
            if quad_at(bytes, at) {
                let group = bytes[at..].iter().take(GROUP_MAX).take_while(|byte| byte.is_ascii_digit());
                self.quads.push(bytes, at, 0, group.count(), hits);
            }
        }
        if spots.word_digits[row] | spots.long_words[row] != 0 {
            let words = pair(&masks.0[ALNUM], row);
            for digit in bits(spots.word_digits[row]) {
                let bit = (spots.words[row] & (u64::MAX >> (63 - digit))).ilog2() as usize;
                if let Some((count, len)) = word_at(words >> bit, digits >> bit, SHORT_WORD_MAX) {
                    self.words.push(bytes, from + bit, count, len, hits);
                }
            }
            for bit in bits(spots.long_words[row]) {
                if let Some((count, len)) = word_at(words >> bit, digits >> bit, WORD_MAX) {
                    self.long_words.push(bytes, from + bit, count, len, hits);
                }
            }
        }
        for at in bits(spots.ats[row]).map(|bit| from + bit).filter(|&at| at_at(bytes, at)) {
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
    /// Where runs of [`NEAR_RUN`] begin.
    near: Row<R>,
    /// The first digits of groups.
    digits: Row<R>,
    /// The first dots of quads.
    quads: Row<R>,
    /// The first bytes of words.
    words: Row<R>,
    /// The first digits of these, and the last bit of a block if the first may be in the next.
    word_digits: Row<R>,
    long_words: Row<R>,
    ats: Row<R>,
    /// Those that a hexadecimal digit or a colon follows.
    colons: Row<R>,
    /// All of these.
    any: Row<R>,
}

impl<const R: usize> Default for Spots<R> {
    fn default() -> Spots<R> {
        let none = [0; R];
        Spots {
            joined: none,
            near: none,
            digits: none,
            quads: none,
            words: none,
            word_digits: none,
            long_words: none,
            ats: none,
            colons: none,
            any: none,
        }
    }
}

/// How many of the lowest `len` bits are set.
#[inline(always)]
fn digits_within(digits: u128, len: u32) -> usize {
    let within = 1u128.checked_shl(len).map_or(u128::MAX, |end| end - 1);
    (digits & within).count_ones() as usize
}

/// The digits and the length of the word that begins with the lowest bit, as far as `max`; `None` if it has no letter.
#[inline(always)]
fn word_at(words: u128, digits: u128, max: usize) -> Option<(usize, usize)> {
    let len = words.trailing_ones().min(max as u32);
    let count = digits_within(digits, len);
    (count < len as usize).then_some((count, len as usize))
}

/// Finds the shapes of a batch whose masks were read.
struct Search<'s, const R: usize> {
    shapes: &'s ShapeIndex,
    bytes: &'s [u8],
    from: usize,
    blocks: usize,
    sheet: &'s mut Sheet<R>,
    /// The end of the run of hexadecimal digits and colons that was looked at last.
    colons_done: &'s mut usize,
    near: &'s mut Near,
    hits: &'s mut Vec<Hit>,
}

impl<const R: usize> simd::Work for Search<'_, R> {
    #[inline(always)]
    fn run(self) {
        let Search { shapes, bytes, from, blocks, sheet, colons_done, near, hits } = self;
        let Sheet { masks, spots } = sheet;
        spots.find(masks, shapes.digits_min, shapes.words_min);
        for row in (1..=blocks).filter(|&row| spots.any[row] != 0) {
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

impl<const R: usize> Spots<R> {
    #[inline(always)]
    fn find(&mut self, masks: &Masks<R>, digits_min: usize, words_min: usize) {
        let end = R - 1;
        let [digit, alnum, underscore, space, joint, dot, at, colon, hex_letter] = &masks.0;
        // Digits with single separators between.
        let joints: Row<R> = make_row(
            |i| (space[i] | joint[i]) & up(digit, i, 1) & down(digit, i, 1),
            (space[end] | joint[end]) & up(digit, end, 1) & digit[end] >> 1,
        );
        let joined: Row<R> = make_row(|i| digit[i] | joints[i], digit[end] | joints[end]);
        let digit_runs = runs(&joined, 1, digits_min);
        let word_runs = runs(alnum, 1, words_min);
        let near = runs(&word_runs, words_min, NEAR_RUN);
        let long_runs = runs(&near, NEAR_RUN, LONG_WORD_MIN);
        // Dots between digits, then those with another two to four bytes on, then two such.
        let dots: Row<R> = make_row(|i| dot[i] & joints[i], dot[end] & joints[end]);
        let close = |row: &Row<R>, i: usize| row[i] & (down(row, i, 2) | down(row, i, 3) | down(row, i, 4));
        let last = dots[end];
        let pairs: Row<R> = make_row(|i| close(&dots, i), last & (last >> 2 | last >> 3 | last >> 4));
        let starts: Row<R> = make_row(
            |i| {
                let [word, before] = [i, i - 1].map(|i| alnum[i] | underscore[i]);
                alnum[i] & !(word << 1 | before >> 63)
            },
            0,
        );
        let words: Row<R> = make_row(|i| starts[i] & word_runs[i], 0);
        let hex_colon = |i: usize| digit[i] | hex_letter[i] | colon[i];
        let found = Spots {
            digits: make_row(|i| digit[i] & !up(digit, i, 1) & digit_runs[i], 0),
            quads: make_row(|i| close(&pairs, i), 0),
            words,
            word_digits: make_row(
                |i| {
                    // Adding its start to a word's letters carries a bit to the first byte behind them, or out.
                    let letters = alnum[i] & !digit[i];
                    let behind = letters.wrapping_add(words[i]);
                    behind & !letters & digit[i] | u64::from(behind < letters) << 63
                },
                0,
            ),
            long_words: make_row(|i| starts[i] & long_runs[i], 0),
            ats: make_row(|i| at[i] & !up(space, i, 1), 0),
            colons: make_row(|i| colon[i] & (hex_colon(i) >> 1 | hex_colon(i + 1) << 63), 0),
            joined,
            near,
            any: [0; R],
        };
        let any: Row<R> = make_row(
            |i| {
                found.digits[i]
                    | found.quads[i]
                    | found.word_digits[i]
                    | found.long_words[i]
                    | found.ats[i]
                    | found.colons[i]
                    | found.near[i]
            },
            0,
        );
        *self = Spots { any, ..found };
    }
}

/// The first of up to `max` bytes before `at` that all continue a run.
fn walk_back(bytes: &[u8], at: usize, max: usize, continues: impl Fn(u8) -> bool) -> usize {
    let run = bytes[..at].iter().rev().take(max).take_while(|&&byte| continues(byte)).count();
    at - run
}
