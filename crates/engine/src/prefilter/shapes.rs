//! Shapes: triggers for rules without a literal. Runs of classes of bytes are found in bit masks, 64 bytes at
//! a time without a branch per byte; only where a mask says so are bytes looked at one by one. Each shape is
//! defined by a function of the bytes near a position alone (`*_at`), so that hits do not depend on where a
//! chunk begins; a hit's rules are those whose gate lets the place through.

use std::ops::Range;

use super::places::{FACT_MAX, Places};
use super::simd::{self, BLOCK, CLASSES, Level};
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
/// Masks of the blocks that are searched together, with those of the block before and the block after. A row of
/// [`MANY`] takes least per block, and one of [`FEW`] least for a text that is no longer.
type Row<const R: usize> = [u64; R];
const MANY: usize = 32 + 2;
const FEW: usize = 2 + 2;

const _: () = assert!(SEGMENT_ALIGN.is_multiple_of(BLOCK));
// A run is told from the masks of its block and the next.
const _: () = assert!(DIGITS_MAX <= BLOCK && LONG_WORD_MIN <= BLOCK && DIGITS_MAX <= FACT_MAX);
const _: () = assert!(GROUP_MAX <= FACT_MAX && WORD_MAX <= FACT_MAX);

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
            words_min: LONG_WORD_MIN,
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

    /// Adds the hits that begin in `segment` or reach into it.
    pub fn find(&self, bytes: &[u8], segment: Range<usize>, buffers: &mut Buffers, hits: &mut Vec<Hit>) {
        if segment.len().div_ceil(BLOCK) <= FEW - 2 {
            self.find_in(bytes, segment, &mut buffers.few, hits);
        } else {
            self.find_in(bytes, segment, &mut buffers.many, hits);
        }
    }

    fn find_in<const R: usize>(
        &self,
        bytes: &[u8],
        segment: Range<usize>,
        sheet: &mut Sheet<R>,
        hits: &mut Vec<Hit>,
    ) {
        let Sheet { masks, spots } = sheet;
        let mut colons_done = 0;
        for from in segment.clone().step_by((R - 2) * BLOCK) {
            let blocks = (segment.end - from).div_ceil(BLOCK).min(R - 2);
            masks.read(self.level, bytes, from);
            let (digits_min, words_min) = (self.digits_min, self.words_min);
            simd::run(self.level, Search { masks, digits_min, words_min, spots });
            for row in (1..=blocks).filter(|&row| spots.any[row] != 0) {
                let at = from + (row - 1) * BLOCK;
                self.look(bytes, at, spots, row, hits);
                for colon in bits(spots.colons[row]).map(|bit| at + bit) {
                    self.look_at_colon(bytes, colon, &mut colons_done, hits);
                }
            }
        }
    }

    fn look<const R: usize>(
        &self,
        bytes: &[u8],
        from: usize,
        spots: &Spots<R>,
        row: usize,
        hits: &mut Vec<Hit>,
    ) {
        let group_len =
            |at: usize| bytes[at..].iter().take(GROUP_MAX).take_while(|byte| byte.is_ascii_digit()).count();
        let all = |mask: u64| bits(mask).map(move |bit| from + bit);
        for at in all(spots.digits[row]) {
            self.digits.push(bytes, at, || Some((digits_at(bytes, at), group_len(at))), hits);
        }
        for first_dot in all(spots.quads[row]) {
            let at = walk_back(bytes, first_dot, 4, |byte| byte.is_ascii_digit());
            self.quads.push(bytes, at, || quad_at(bytes, at).then(|| (0, group_len(at))), hits);
        }
        for digit in bits(spots.word_digits[row]) {
            let starts = spots.words[row] & (u64::MAX >> (63 - digit));
            let at = from + starts.ilog2() as usize;
            let word = || word_at(bytes, at, SHORT_WORD_MAX).map(|word| (word.digits, word.len));
            self.words.push(bytes, at, word, hits);
        }
        for at in all(spots.long_words[row]) {
            let word = || word_at(bytes, at, WORD_MAX).map(|word| (word.digits, word.len));
            self.long_words.push(bytes, at, word, hits);
        }
        for at in all(spots.ats[row]).filter(|&at| at_at(bytes, at)) {
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

/// The classes of the bytes of a batch of blocks.
struct Masks<const R: usize>([Row<R>; CLASSES]);

impl<const R: usize> Default for Masks<R> {
    fn default() -> Masks<R> {
        Masks([[0; R]; CLASSES])
    }
}

/// Where in each block of a batch a shape may be.
struct Spots<const R: usize> {
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

/// The bits of `row[i]`, each moved up by `by` places from the block before.
#[inline(always)]
fn up<const R: usize>(row: &Row<R>, i: usize, by: u32) -> u64 {
    row[i] << by | row[i - 1] >> (u64::BITS - by)
}

/// The bits of `row[i]`, each moved down by `by` places from the block after.
#[inline(always)]
fn down<const R: usize>(row: &Row<R>, i: usize, by: u32) -> u64 {
    row[i] >> by | row[i + 1] << (u64::BITS - by)
}

fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros() as usize);
        mask &= mask.wrapping_sub(1);
        bit
    })
}

/// Makes a row out of each block with its neighbours; behind the last there is nothing, and `last` is what is in the
/// block after. Written so that the compiler makes several blocks at once: no row is changed while it is read.
#[inline(always)]
fn make_row<const R: usize>(each: impl Fn(usize) -> u64, last: u64) -> Row<R> {
    let mut row = [0; R];
    for (i, mask) in row[..R - 1].iter_mut().enumerate().skip(1) {
        *mask = each(i);
    }
    row[R - 1] = last;
    row
}

/// From the bits that begin a run of `done`, leaves those that begin one of `len`; in the last block, those
/// whose run ends within it.
#[inline(always)]
fn runs<const R: usize>(row: &Row<R>, mut done: usize, len: usize) -> Row<R> {
    let mut run = *row;
    while done < len {
        let by = done.min(len - done) as u32;
        let last = run[R - 1];
        run = make_row(|i| run[i] & down(&run, i, by), last & last >> by);
        done += by as usize;
    }
    run
}

impl<const R: usize> Masks<R> {
    /// Reads the blocks from `from` on, the block before and the block after. Beyond the ends of the chunk
    /// there is nothing of any class.
    fn read(&mut self, level: Level, bytes: &[u8], from: usize) {
        let mut next = match from.checked_sub(BLOCK) {
            Some(_) => 0,
            None => {
                self.0.iter_mut().for_each(|row| row[0] = 0);
                1
            }
        };
        let rest = &bytes[from - (1 - next) * BLOCK..];
        let rest = &rest[..rest.len().min((R - next) * BLOCK)];
        let (whole, last) = rest.as_chunks();
        let mut padded = [0; BLOCK];
        padded[..last.len()].copy_from_slice(last);
        for blocks in [whole, if last.is_empty() { &[] } else { std::slice::from_ref(&padded) }] {
            simd::classify(level, blocks, |i, classes| {
                self.0.iter_mut().zip(classes).for_each(|(row, &class)| row[next + i] = class);
            });
            next += blocks.len();
        }
        self.0.iter_mut().for_each(|row| row[next..].fill(0));
    }
}

/// Finds the spots of a batch.
struct Search<'s, const R: usize> {
    masks: &'s Masks<R>,
    digits_min: usize,
    words_min: usize,
    spots: &'s mut Spots<R>,
}

impl<const R: usize> simd::Work for Search<'_, R> {
    #[inline(always)]
    fn run(self) {
        let Search { masks, digits_min, words_min, spots } = self;
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
        let long_runs = runs(&word_runs, words_min, LONG_WORD_MIN);
        // Dots between digits, then those with another two to four bytes on, then two such.
        let dots: Row<R> = make_row(|i| dot[i] & joints[i], dot[end] & joints[end]);
        let near = |row: &Row<R>, i: usize| row[i] & (down(row, i, 2) | down(row, i, 3) | down(row, i, 4));
        let last = dots[end];
        let pairs: Row<R> = make_row(|i| near(&dots, i), last & (last >> 2 | last >> 3 | last >> 4));
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
            quads: make_row(|i| near(&pairs, i), 0),
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
            },
            0,
        );
        *spots = Spots { any, ..found };
    }
}

/// The first of up to `max` bytes before `at` that all continue a run.
fn walk_back(bytes: &[u8], at: usize, max: usize, continues: impl Fn(u8) -> bool) -> usize {
    let run = bytes[..at].iter().rev().take(max).take_while(|&&byte| continues(byte)).count();
    at - run
}
