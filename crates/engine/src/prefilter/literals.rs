//! Finds literals by a gram of four bytes, whatever their case. Two tests tell where a gram may stand:
//!
//! - Where the machine permutes bytes, [`Buckets`] test the grams at every position, and a literal is entered
//!   under the rarest of its grams.
//! - Elsewhere a table of bits tests those at every second position, and a literal is entered under two
//!   neighbouring grams, so that one of them falls on a tested position whatever its alignment. The middle two
//!   bytes of a gram are hashed to one of 1,024 rows; the first byte must have its bit in the row of one table,
//!   the last in that of another.
//!
//! In both the outer byte of a gram may be left open, which is how literals of three bytes are found. The rare
//! gram that passes is verified against the literals with such a gram.

use std::collections::BTreeMap;
use std::ops::Range;

use super::shares::share;
use super::simd::{self, BLOCK, BUCKETS, Buckets, GRAM, Level};
use super::{Hit, SEGMENT_ALIGN};
use crate::rules::Literal;

/// Blocks that are tested before hits are verified.
const BATCH: usize = 64;
/// Rows of a table of bits; with 64 bits each, two tables leave half of a common L1 cache to the text.
const ROWS: usize = 1024;
/// Lists of entries to verify: many more than there are literals, so that most are empty.
const LISTS: usize = 4096;
/// Sets the bit that tells small letters from capitals.
const FOLD: u32 = 0x2020_2020;

const _: () = assert!(SEGMENT_ALIGN.is_multiple_of(BLOCK));

/// The bytes of a gram that no literal leaves open: but for the last, or but for the outer.
const FIRST_THREE: u32 = 0x00ff_ffff;
const MIDDLE: u32 = 0x00ff_ff00;

/// One of `N` numbers for some bytes of a gram in any case.
#[inline(always)]
fn hash<const N: usize>(gram: u32, bytes: u32) -> usize {
    (((gram | FOLD) & bytes).wrapping_mul(0x9e37_79b1) >> (u32::BITS - N.ilog2())) as usize
}

/// The bit of an outer byte in its row, in any case.
fn bit(byte: u8) -> u64 {
    1 << ((byte | FOLD as u8) & 63)
}

/// A literal to verify: it starts `offset` bytes before the gram.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Entry {
    literal: u32,
    offset: i32,
    /// What the gram is, once the bits of `fold` are set and those outside `care` cleared: most grams that
    /// pass the test are told apart here, without a look at the literal.
    gram: u32,
    fold: u32,
    care: u32,
}

impl Entry {
    fn new(number: u32, literal: &Literal, offset: i32) -> Entry {
        let (mut gram, mut fold, mut care) = ([0; GRAM], [0; GRAM], [0; GRAM]);
        for at in 0..GRAM {
            let Some(byte) = byte_of(literal, offset, at) else { continue };
            fold[at] = if literal.any_case && byte.is_ascii_alphabetic() { 0x20 } else { 0 };
            gram[at] = byte | fold[at];
            care[at] = 0xff;
        }
        let [gram, fold, care] = [gram, fold, care].map(u32::from_le_bytes);
        Entry { literal: number, offset, gram, fold, care }
    }
}

/// The byte at place `at` of the gram that starts `offset` bytes into the literal, unless it is left open.
fn byte_of(literal: &Literal, offset: i32, at: usize) -> Option<u8> {
    usize::try_from(offset + at as i32).ok().and_then(|at| literal.bytes.get(at)).copied()
}

/// Collects the literals of all rules.
#[derive(Default)]
pub struct Builder {
    rules: BTreeMap<Literal, Vec<u32>>,
}

impl Builder {
    pub fn add(&mut self, literal: &Literal, rule: u32) {
        self.rules.entry(literal.clone()).or_default().push(rule);
    }

    pub fn build(self, level: Level) -> LiteralIndex {
        let literals: Vec<_> = self.rules.into_iter().collect();
        let grams = |neighbours: usize| {
            let numbered = literals.iter().zip(0u32..);
            let grams = numbered.flat_map(move |((literal, _), number)| {
                let first = rarest(literal, neighbours);
                (first..first + neighbours as i32).map(move |offset| (number, literal, offset))
            });
            grams.collect::<Vec<_>>()
        };
        let (test, key, grams) = if level.permutes_bytes() {
            let grams = grams(1);
            (Test::Buckets(level, in_buckets(&grams)), FIRST_THREE, grams)
        } else {
            let grams = grams(2);
            (Test::Rows(level, RowTest::of(&grams)), MIDDLE, grams)
        };
        let list = |entry: &Entry| hash::<LISTS>(entry.gram, key);
        let entries = grams.into_iter().map(|(number, literal, offset)| Entry::new(number, literal, offset));
        let mut entries: Vec<_> = entries.collect();
        entries.sort_by_key(list);
        let list_starts =
            (0..=LISTS).map(|number| entries.partition_point(|entry| list(entry) < number) as u32);
        LiteralIndex { test, key, list_starts: list_starts.collect(), entries, literals }
    }
}

/// Where in a literal the first of `neighbours` grams starts: the rarest, so that `-----BEGIN` is not looked
/// for by its dashes. A gram may reach one byte beyond a literal, but its middle bytes may not.
fn rarest(literal: &Literal, neighbours: usize) -> i32 {
    let Some(last) = literal.bytes.len().checked_sub(GRAM + neighbours - 1) else {
        return 1 - neighbours as i32;
    };
    let commonest = |first: i32| {
        let grams = first..first + neighbours as i32;
        grams.map(|offset| commonness(literal, offset)).fold(0.0, f32::max)
    };
    (0..=last as i32).min_by(|&a, &b| commonest(a).total_cmp(&commonest(b))).unwrap_or(0)
}

/// How much text a gram lets through, if its bytes came by chance.
fn commonness(literal: &Literal, offset: i32) -> f32 {
    let place = |at: usize| match byte_of(literal, offset, at) {
        Some(byte) => forms(byte, literal.any_case).map(share).sum(),
        None => WHOLE,
    };
    (0..GRAM).map(place).product()
}

/// The share of all bytes, in millionths.
const WHOLE: f32 = 1e6;

/// Puts each gram into the bucket that lets the least more text through for it.
fn in_buckets(grams: &[(u32, &Literal, i32)]) -> Buckets {
    /// The bytes, less their high bit, at a place of the grams of a bucket, and their share of all text.
    #[derive(Clone, Copy, Default)]
    struct Place {
        bytes: u128,
        share: f32,
    }
    let with = |place: Place, literal: &Literal, byte: Option<u8>| {
        let Some(byte) = byte else { return Place { bytes: u128::MAX, share: WHOLE } };
        forms(byte, literal.any_case).fold(place, |place, byte| match 1 << (byte & 0x7f) {
            bit if place.bytes & bit != 0 => place,
            bit => Place { bytes: place.bytes | bit, share: place.share + share(byte) },
        })
    };
    let let_through = |places: &[Place; GRAM]| places.iter().map(|place| place.share).product::<f32>();
    let mut buckets = [[Place::default(); GRAM]; BUCKETS];
    // The commonest first: those that matter most find the most room.
    let mut order: Vec<_> = grams.iter().map(|&(_, literal, offset)| (literal, offset)).collect();
    order.sort_by(|a, b| commonness(b.0, b.1).total_cmp(&commonness(a.0, a.1)));
    for (literal, offset) in order {
        let grown = buckets.map(|places| {
            let mut at = 0..GRAM;
            places.map(|place| with(place, literal, at.next().and_then(|at| byte_of(literal, offset, at))))
        });
        let more = |bucket: &usize| let_through(&grown[*bucket]) - let_through(&buckets[*bucket]);
        let best = (0..BUCKETS).min_by(|a, b| more(a).total_cmp(&more(b))).unwrap_or(0);
        buckets[best] = grown[best];
    }
    let mut tables = Buckets::default();
    for (bucket, places) in buckets.iter().enumerate() {
        for (at, place) in places.iter().enumerate() {
            let bytes = (0..128).filter(|byte| place.bytes >> byte & 1 != 0);
            bytes.for_each(|byte| tables.allow(bucket, at, byte));
        }
    }
    tables
}

/// The forms in which a byte of a literal may appear.
fn forms(byte: u8, any_case: bool) -> impl Iterator<Item = u8> {
    let other = if any_case { byte.to_ascii_uppercase() } else { byte };
    std::iter::once(byte).chain((other != byte).then_some(other))
}

/// Where a gram may stand.
enum Test {
    Buckets(Level, Buckets),
    Rows(Level, RowTest),
}

impl Test {
    /// Sets the bits of `masks` for blocks of `bytes`, which has [`GRAM`]` - 1` bytes more.
    fn run(&self, bytes: &[u8], masks: &mut [u64]) {
        match self {
            Test::Buckets(level, buckets) => buckets.test(*level, bytes, masks),
            Test::Rows(level, rows) => simd::run(*level, RowSearch { rows, bytes, masks }),
        }
    }
}

/// Bits for the outer bytes of grams, by the row of the middle.
struct RowTest {
    first: Box<[u64; ROWS]>,
    last: Box<[u64; ROWS]>,
}

/// Positions that are tested are multiples of this.
const STRIDE: usize = 2;

impl RowTest {
    fn of(grams: &[(u32, &Literal, i32)]) -> RowTest {
        let mut test = RowTest { first: Box::new([0; ROWS]), last: Box::new([0; ROWS]) };
        for &(number, literal, offset) in grams {
            let row = hash::<ROWS>(Entry::new(number, literal, offset).gram, MIDDLE);
            test.first[row] |= byte_of(literal, offset, 0).map_or(u64::MAX, bit);
            test.last[row] |= byte_of(literal, offset, GRAM - 1).map_or(u64::MAX, bit);
        }
        test
    }

    #[inline(always)]
    fn test(&self, block: &[u8; BLOCK + GRAM - 1]) -> u64 {
        let mut mask = 0;
        for at in (0..BLOCK / STRIDE).map(|sample| sample * STRIDE) {
            let gram = u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]) | FOLD;
            let row = hash::<ROWS>(gram, MIDDLE);
            let seen = (self.first[row] >> (gram & 63)) & (self.last[row] >> ((gram >> 24) & 63)) & 1;
            mask |= seen << at;
        }
        mask
    }
}

/// Tests the blocks of `bytes`.
struct RowSearch<'s> {
    rows: &'s RowTest,
    bytes: &'s [u8],
    masks: &'s mut [u64],
}

impl simd::Work for RowSearch<'_> {
    #[inline(always)]
    fn run(self) {
        for (block, mask) in self.masks.iter_mut().enumerate() {
            *mask = self.bytes[block * BLOCK..].first_chunk().map_or(0, |block| self.rows.test(block));
        }
    }
}

pub struct LiteralIndex {
    test: Test,
    /// The bytes of a gram that choose its list.
    key: u32,
    /// The entries of list `n` are `entries[list_starts[n]..list_starts[n + 1]]`.
    list_starts: Vec<u32>,
    entries: Vec<Entry>,
    literals: Vec<(Literal, Vec<u32>)>,
}

impl LiteralIndex {
    /// Adds every occurrence whose gram is in `segment`.
    pub fn find(&self, bytes: &[u8], segment: Range<usize>, hits: &mut Vec<Hit>) {
        if self.literals.is_empty() {
            return;
        }
        let mut at = segment.start;
        let mut masks = [0; BATCH];
        while at < segment.end {
            let whole = bytes.len().saturating_sub(at + GRAM - 1).min(segment.end - at) / BLOCK;
            if whole == 0 {
                break;
            }
            let masks = &mut masks[..whole.min(BATCH)];
            self.test.run(&bytes[at..], masks);
            self.verify_all(bytes, at, masks, hits);
            at += masks.len() * BLOCK;
        }
        if at < segment.end {
            // The last bytes, where a gram may reach beyond the end, which cannot be told from zeros.
            let mut padded = [0; 2 * BLOCK + GRAM - 1];
            let rest = &bytes[at..bytes.len().min(at + padded.len())];
            padded[..rest.len()].copy_from_slice(rest);
            let masks = &mut masks[..(segment.end - at).div_ceil(BLOCK)];
            self.test.run(&padded, masks);
            self.verify_all(bytes, at, masks, hits);
        }
    }

    fn verify_all(&self, bytes: &[u8], at: usize, masks: &[u64], hits: &mut Vec<Hit>) {
        for (block, &mask) in masks.iter().enumerate() {
            let mut mask = mask;
            while mask != 0 {
                self.verify(bytes, at + block * BLOCK + mask.trailing_zeros() as usize, hits);
                mask &= mask - 1;
            }
        }
    }

    fn verify(&self, bytes: &[u8], at: usize, hits: &mut Vec<Hit>) {
        let gram = match bytes.get(at..).and_then(|rest| rest.first_chunk()) {
            Some(gram) => u32::from_le_bytes(*gram),
            None => {
                let byte = |offset: usize| bytes.get(at + offset).copied().unwrap_or(0);
                u32::from_le_bytes([byte(0), byte(1), byte(2), byte(3)])
            }
        };
        let list = hash::<LISTS>(gram, self.key);
        let entries = self.list_starts[list] as usize..self.list_starts[list + 1] as usize;
        for entry in &self.entries[entries] {
            if (gram | entry.fold) & entry.care == entry.gram {
                self.verify_entry(entry, bytes, at, hits);
            }
        }
    }

    #[inline(never)]
    fn verify_entry(&self, entry: &Entry, bytes: &[u8], at: usize, hits: &mut Vec<Hit>) {
        let (literal, rules) = &self.literals[entry.literal as usize];
        let Some(start) = at.checked_add_signed(-entry.offset as isize) else { return };
        let Some(text) = bytes.get(start..start + literal.bytes.len()) else { return };
        let same =
            if literal.any_case { text.eq_ignore_ascii_case(&literal.bytes) } else { text == literal.bytes };
        if same {
            let len = literal.bytes.len() as u32;
            hits.extend(rules.iter().map(|&rule| Hit { rule, at: start, len }));
        }
    }
}
