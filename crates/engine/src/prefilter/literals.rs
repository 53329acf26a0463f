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
use std::sync::LazyLock;

use super::shares::{GramSet, NO_GRAMS, common_share, common_with, gram_share, share, share_of_kinds};
use super::simd::{
    self, BLOCK, BUCKETS, Buckets, CASE, CASES, GRAM, GramHashes, KINDS, Level, SIFT_MAX, SetPlaces, kind,
};
use super::{Hit, SEGMENT_ALIGN};
use crate::rules::Literal;

/// Blocks that are tested before hits are verified.
const BATCH: usize = SIFT_MAX;
/// Rows of a table of bits; with 64 bits each, two tables leave half of a common L1 cache to the text.
const ROWS: usize = 1024;
/// Lists of entries to verify: many more than there are literals, so that most are empty.
const LISTS: usize = 4096;

const _: () = assert!(SEGMENT_ALIGN.is_multiple_of(BLOCK));

/// The bytes of a gram that no literal leaves open: but for the last, or but for the outer.
const FIRST_THREE: u32 = 0x00ff_ffff;
const MIDDLE: u32 = 0x00ff_ff00;

/// One of `N` numbers for some bytes of a gram in any case.
#[inline(always)]
fn hash<const N: usize>(gram: u32, bytes: u32) -> usize {
    (((gram | CASES) & bytes).wrapping_mul(0x9e37_79b1) >> (u32::BITS - N.ilog2())) as usize
}

/// The bit of an outer byte in its row, in any case.
fn bit(byte: u8) -> u64 {
    1 << ((byte | CASE) & 63)
}

/// A literal to verify: it starts `offset` bytes before the gram.
#[derive(Clone, Copy, Debug)]
struct Entry {
    literal: u32,
    offset: i32,
    /// The gram in any case, with nothing where `care` has nothing.
    gram: u32,
    care: u32,
    around: Around,
}

/// Bytes of a literal around its gram, by which it is told from most texts that have the gram.
#[derive(Clone, Copy, Debug)]
struct Around {
    /// How far before the gram they begin.
    before: u32,
    /// What they are, once the bits of `fold` are set and those outside `care` cleared.
    bytes: u64,
    fold: u64,
    care: u64,
}

/// Bytes that are looked at around a gram.
const AROUND: usize = size_of::<u64>();

impl Around {
    fn new(literal: &Literal, offset: i32) -> Around {
        // As many bytes of the literal as there is room for, the gram among them.
        let first = (literal.bytes.len() as i32 - AROUND as i32).max(0);
        let first = first.max(offset - (AROUND - GRAM) as i32).min(offset);
        let (mut bytes, mut fold, mut care) = ([0; AROUND], [0; AROUND], [0; AROUND]);
        for at in 0..AROUND {
            let Some(byte) = byte_of(literal, first, at) else { continue };
            fold[at] = if literal.any_case && byte.is_ascii_alphabetic() { CASE } else { 0 };
            (bytes[at], care[at]) = (byte | fold[at], u8::MAX);
        }
        let [bytes, fold, care] = [bytes, fold, care].map(u64::from_le_bytes);
        Around { before: (offset - first) as u32, bytes, fold, care }
    }

    /// Whether a text may have the literal whose gram is at `at`.
    #[inline(always)]
    fn may_be(&self, text: &[u8], at: usize) -> bool {
        let around = at.checked_sub(self.before as usize).and_then(|from| text.get(from..)?.first_chunk());
        around.is_none_or(|around| (u64::from_le_bytes(*around) | self.fold) & self.care == self.bytes)
    }
}

impl Entry {
    fn new(number: u32, literal: &Literal, offset: i32) -> Entry {
        let (mut gram, mut care) = ([0; GRAM], [0; GRAM]);
        for at in 0..GRAM {
            if let Some(byte) = byte_of(literal, offset, at) {
                (gram[at], care[at]) = (byte | CASE, u8::MAX);
            }
        }
        let [gram, care] = [gram, care].map(u32::from_le_bytes);
        Entry { literal: number, offset, gram, care, around: Around::new(literal, offset) }
    }

    /// The grams it may be, where a byte is left open.
    fn grams(&self) -> impl Iterator<Item = u32> {
        let gram = self.gram;
        let open = (!self.care != 0).then(|| (!self.care).trailing_zeros());
        (0..=open.map_or(0, |_| 0xff)).map(move |byte: u32| gram | byte << open.unwrap_or(0))
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
        let (test, key, mut entries) = if level.permutes_bytes() {
            let (buckets, entries) = in_buckets(&literals);
            (Test::Buckets(level, buckets), FIRST_THREE, entries)
        } else {
            let (rows, entries) = in_rows(&literals);
            (Test::Rows(level, rows), MIDDLE, entries)
        };
        let list = |entry: &Entry| hash::<LISTS>(entry.gram, key);
        entries.sort_by_key(list);
        let list_starts: Vec<u32> =
            (0..=LISTS).map(|number| entries.partition_point(|entry| list(entry) < number) as u32).collect();
        let mut known = GramHashes::default();
        entries.iter().flat_map(Entry::grams).for_each(|gram| known.insert(gram));
        LiteralIndex { test, key, level, known, list_starts, entries, literals }
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

/// How much text a gram lets through: by what was counted if it is a common one, or else as if its bytes came by
/// chance.
fn commonness(literal: &Literal, offset: i32) -> f32 {
    let bytes: [Option<u8>; GRAM] = std::array::from_fn(|at| byte_of(literal, offset, at));
    let by_chance = |any_case: bool| {
        let of_bytes = &BY_CHANCE[usize::from(any_case)];
        bytes.iter().map(|byte| byte.map_or(1.0, |byte| of_bytes[usize::from(byte)])).product::<f32>()
    };
    let expected = by_chance(literal.any_case);
    let counted = match bytes {
        [Some(a), Some(b), Some(c), Some(d)] => gram_share([a, b, c, d]),
        _ => None,
    };
    // Grams are counted in any case; one that is looked for as it is has its part of them.
    let part = if literal.any_case { 1.0 } else { expected / by_chance(true) };
    counted.map_or(expected, |counted| expected.max(counted * part))
}

/// How much text has each byte, as it is and in any case.
static BY_CHANCE: LazyLock<[[f32; 256]; 2]> = LazyLock::new(|| {
    let of = |byte: usize, any_case| forms(byte as u8, any_case).map(share).sum::<f32>() / WHOLE;
    [false, true].map(|any_case| std::array::from_fn(|byte| of(byte, any_case)))
});

/// The share of all bytes, in millionths.
const WHOLE: f32 = 1e6;

/// What it takes to verify a gram that a literal has, in places that pass a test in vain.
const VERIFY_COST: f32 = 4.0;
/// Grams of a literal that are weighed against each other: its rarest.
const GRAMS_WEIGHED: usize = 5;

/// The kinds of bytes at a place of the grams of a bucket, their share of all text, and the common grams that have
/// one of them there.
#[derive(Clone, Copy)]
struct Place<C> {
    kinds: u64,
    share: f32,
    common: C,
}

/// A place of one gram, with the kind of its byte.
type GramPlace = Place<&'static GramSet>;

impl GramPlace {
    const NONE: GramPlace = Place { kinds: 0, share: 0.0, common: &NO_GRAMS };

    fn of(byte: Option<u8>, at: usize) -> GramPlace {
        let kinds = byte.map_or(u64::MAX, |byte| 1 << kind(byte));
        Place { kinds, share: share_of_kinds(kinds) / WHOLE, common: common_with(byte, at) }
    }
}

impl Place<GramSet> {
    const EMPTY: Place<GramSet> = Place { kinds: 0, share: 0.0, common: NO_GRAMS };

    /// The share with those of another.
    fn share_with(&self, other: &GramPlace) -> f32 {
        match other.kinds & !self.kinds {
            0 => self.share,
            new if new == other.kinds => self.share + other.share,
            new => self.share + share_of_kinds(new) / WHOLE,
        }
    }

    fn add(&mut self, other: &GramPlace) {
        self.share = self.share_with(other);
        self.kinds |= other.kinds;
        self.common.iter_mut().zip(other.common).for_each(|(ours, theirs)| *ours |= theirs);
    }
}

/// Places of grams, and how much text passes there.
#[derive(Clone, Copy)]
struct Bucket {
    places: [Place<GramSet>; GRAM],
    by_chance: f32,
    common: GramSet,
}

impl Bucket {
    const EMPTY: Bucket = Bucket { places: [Place::EMPTY; GRAM], by_chance: 0.0, common: NO_GRAMS };

    /// How much more text passes with one more gram: as much as if bytes came by chance, and the common grams, which
    /// do not. `None` if it is not less than `limit`.
    fn cost_of(&self, gram: &[GramPlace; GRAM], limit: f32) -> Option<f32> {
        let shares = (0..GRAM).map(|at| self.places[at].share_with(&gram[at]));
        let mut more = shares.product::<f32>() - self.by_chance;
        for (word, known) in self.common.iter().enumerate() {
            if more >= limit {
                return None;
            }
            let either = |at: usize| self.places[at].common[word] | gram[at].common[word];
            let all = (0..GRAM).fold(u64::MAX, |all, at| all & either(at));
            more += common_share(word, all & !known);
        }
        (more < limit).then_some(more)
    }

    fn add(&mut self, gram: &[GramPlace; GRAM]) {
        self.places.iter_mut().zip(gram).for_each(|(ours, theirs)| ours.add(theirs));
        self.by_chance = self.places.iter().map(|place| place.share).product();
        self.common = std::array::from_fn(|word| {
            self.places.iter().fold(u64::MAX, |all, place| all & place.common[word])
        });
    }
}

/// Chooses a gram of each literal and a bucket for it, so that the least text passes: a gram that is rare, or
/// that a bucket lets through anyway.
fn in_buckets(literals: &[(Literal, Vec<u32>)]) -> (Buckets, Vec<Entry>) {
    let mut buckets = vec![Bucket::EMPTY; BUCKETS];
    let grams_of = |literal: &Literal| {
        let last = literal.bytes.len().saturating_sub(GRAM) as i32;
        let mut grams: Vec<_> = (0..=last).map(|offset| (commonness(literal, offset), offset)).collect();
        grams.sort_by(|a, b| a.0.total_cmp(&b.0));
        grams.truncate(GRAMS_WEIGHED);
        grams
    };
    let numbered = literals.iter().zip(0u32..);
    let mut order: Vec<_> =
        numbered.map(|((literal, _), number)| (number, literal, grams_of(literal))).collect();
    // The commonest first: those that matter most find the most room.
    order.sort_by(|a, b| b.2[0].0.total_cmp(&a.2[0].0));
    let mut entries = Vec::new();
    for (number, literal, grams) in order {
        let mut best = (f32::INFINITY, 0, 0);
        let mut best_gram = [GramPlace::NONE; GRAM];
        for (commonness, offset) in grams {
            let verifying = VERIFY_COST * commonness;
            if verifying >= best.0 {
                break;
            }
            let gram = std::array::from_fn(|at| GramPlace::of(byte_of(literal, offset, at), at));
            for (number, bucket) in buckets.iter().enumerate() {
                if let Some(more) = bucket.cost_of(&gram, best.0 - verifying) {
                    best = (more + verifying, offset, number);
                    best_gram = gram;
                }
            }
        }
        let (_, offset, bucket) = best;
        buckets[bucket].add(&best_gram);
        entries.push(Entry::new(number, literal, offset));
    }
    let mut tables = Buckets::default();
    for (number, bucket) in buckets.iter().enumerate() {
        for (at, place) in bucket.places.iter().enumerate() {
            let kinds = (0..KINDS).filter(|kind| place.kinds >> kind & 1 != 0);
            kinds.for_each(|kind| tables.allow(number, at, kind));
        }
    }
    (tables, entries)
}

/// The forms in which a byte of a literal may appear.
fn forms(byte: u8, any_case: bool) -> impl Iterator<Item = u8> {
    let other = match byte {
        _ if !any_case => byte,
        byte if byte.is_ascii_lowercase() => byte.to_ascii_uppercase(),
        byte => byte.to_ascii_lowercase(),
    };
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

/// Enters each literal under its rarest grams, one for every alignment.
fn in_rows(literals: &[(Literal, Vec<u32>)]) -> (RowTest, Vec<Entry>) {
    let mut test = RowTest { first: Box::new([0; ROWS]), last: Box::new([0; ROWS]) };
    let mut entries = Vec::new();
    for ((literal, _), number) in literals.iter().zip(0u32..) {
        let first = rarest(literal, STRIDE);
        for offset in first..first + STRIDE as i32 {
            let entry = Entry::new(number, literal, offset);
            let row = hash::<ROWS>(entry.gram, MIDDLE);
            test.first[row] |= byte_of(literal, offset, 0).map_or(u64::MAX, bit);
            test.last[row] |= byte_of(literal, offset, GRAM - 1).map_or(u64::MAX, bit);
            entries.push(entry);
        }
    }
    (test, entries)
}

impl RowTest {
    #[inline(always)]
    fn test(&self, block: &[u8; BLOCK + GRAM - 1]) -> u64 {
        let mut mask = 0;
        for at in (0..BLOCK / STRIDE).map(|sample| sample * STRIDE) {
            let gram = u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]) | CASES;
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

/// What a batch of blocks gives.
pub struct Buffers {
    masks: [u64; BATCH],
    places: SetPlaces,
}

impl Default for Buffers {
    fn default() -> Buffers {
        Buffers { masks: [0; BATCH], places: SetPlaces::default() }
    }
}

pub struct LiteralIndex {
    test: Test,
    /// The bytes of a gram that choose its list.
    key: u32,
    level: Level,
    /// Which grams are anyone's: most that pass the test end here.
    known: GramHashes,
    /// The entries of list `n` are `entries[list_starts[n]..list_starts[n + 1]]`.
    list_starts: Vec<u32>,
    entries: Vec<Entry>,
    literals: Vec<(Literal, Vec<u32>)>,
}

impl LiteralIndex {
    /// Adds every occurrence whose gram is in `segment`.
    pub fn find(&self, bytes: &[u8], segment: Range<usize>, buffers: &mut Buffers, hits: &mut Vec<Hit>) {
        if self.literals.is_empty() {
            return;
        }
        let mut at = segment.start;
        let Buffers { masks, places } = buffers;
        while at < segment.end {
            let whole = bytes.len().saturating_sub(at + GRAM - 1).min(segment.end - at) / BLOCK;
            // The last bytes, where a gram may reach beyond the end, which cannot be told from zeros.
            let mut padded = [0; 2 * BLOCK + GRAM - 1];
            let (text, blocks) = if whole > 0 {
                (&bytes[at..], whole.min(BATCH))
            } else {
                let rest = &bytes[at..bytes.len().min(at + padded.len())];
                padded[..rest.len()].copy_from_slice(rest);
                (&padded[..], (segment.end - at).div_ceil(BLOCK))
            };
            let masks = &mut masks[..blocks];
            self.test.run(text, masks);
            let text = &text[..blocks * BLOCK + GRAM - 1];
            let gram_at = |place: usize| {
                text[place..].first_chunk().map_or(0, |gram: &[u8; GRAM]| u32::from_le_bytes(*gram))
            };
            places.set(self.level, masks);
            places.retain(|place| self.known.may_have(gram_at(place)));
            for place in places.iter() {
                self.verify(gram_at(place), bytes, at + place, hits);
            }
            at += blocks * BLOCK;
        }
    }

    fn verify(&self, gram: u32, bytes: &[u8], at: usize, hits: &mut Vec<Hit>) {
        let list = hash::<LISTS>(gram, self.key);
        let entries = self.list_starts[list] as usize..self.list_starts[list + 1] as usize;
        for entry in &self.entries[entries] {
            if entry.around.may_be(bytes, at) {
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
