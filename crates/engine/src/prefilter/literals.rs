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

use super::choice::{Placed, STRIDE, byte_of, choose, rarest};
use super::simd::{self, BLOCK, Buckets, CASE, CASES, GRAM, KINDS, Level, SIFT_MAX, SetPlaces, kind};
use super::{Hit, SEGMENT_ALIGN, plan};
use crate::rules::Literal;

/// Blocks that are tested before hits are verified.
const BATCH: usize = SIFT_MAX;
/// Rows of a table of bits; with 64 bits each, two tables leave half of a common L1 cache to the text.
const ROWS: usize = 1024;

const _: () = assert!(SEGMENT_ALIGN.is_multiple_of(BLOCK));

/// The bytes of a gram that no literal leaves open: but for the last, or but for the outer.
const FIRST_THREE: u32 = 0x00ff_ffff;
const MIDDLE: u32 = 0x00ff_ff00;

/// The bit of an outer byte in its row, in any case.
fn bit(byte: u8) -> u64 {
    1 << ((byte | CASE) & 63)
}

/// One of `N` numbers for some bytes of a gram in any case.
#[inline(always)]
fn hash<const N: usize>(gram: u32, bytes: u32) -> usize {
    (((gram | CASES) & bytes).wrapping_mul(0x9e37_79b1) >> (u32::BITS - N.ilog2())) as usize
}

/// A set of grams in any case, by their hashes: what is in it is found, and little else.
struct GramHashes(Box<[u32; GRAM_HASHES / 32]>);

/// Few of the bits are set, and all fit a part of the L1 cache.
const GRAM_HASHES: usize = 1 << 17;

impl GramHashes {
    fn new() -> GramHashes {
        GramHashes(Box::new([0; GRAM_HASHES / 32]))
    }

    fn insert(&mut self, gram: u32) {
        let bit = hash::<GRAM_HASHES>(gram, u32::MAX);
        self.0[bit / 32] |= 1 << (bit % 32);
    }

    #[inline(always)]
    fn may_have(&self, gram: u32) -> bool {
        let bit = hash::<GRAM_HASHES>(gram, u32::MAX);
        self.0[bit / 32] >> (bit % 32) & 1 != 0
    }
}

/// Lists of entries to verify: many more than there are literals, so that most are empty.
const LISTS: usize = 4096;

/// A literal to verify: it starts `offset` bytes before the gram.
#[derive(Clone, Copy, Debug)]
struct Entry {
    literal: u32,
    offset: i32,
    gram: u32,
    /// The place of the gram where any byte will do.
    open: Option<usize>,
    around: Around,
}

/// Bytes around a gram, by which a literal is told from most texts that have the gram.
#[derive(Clone, Copy, Debug)]
struct Around {
    /// How far before the gram they begin.
    before: u32,
    bytes: u64,
    /// The bits that count: not those of bytes that are another's, nor the case of letters if any will do.
    care: u64,
}

/// Bytes that are looked at around a gram.
const AROUND: usize = size_of::<u64>();

impl Around {
    /// What no text has.
    const NOTHING: Around = Around { before: 0, bytes: 1, care: 0 };

    /// As many bytes of the literal as there is room for, the gram among them.
    fn new(literal: &Literal, offset: i32) -> Around {
        let first = (literal.bytes.len() as i32 - AROUND as i32).max(0);
        let first = first.max(offset - (AROUND - GRAM) as i32).min(offset);
        Around::from(literal, offset, (offset - first) as u32)
    }

    fn from(literal: &Literal, offset: i32, before: u32) -> Around {
        let (mut bytes, mut care) = ([0; AROUND], [0; AROUND]);
        for at in 0..AROUND {
            let Some(byte) = byte_of(literal, offset - before as i32, at) else { continue };
            care[at] = if literal.any_case && byte.is_ascii_alphabetic() { !CASE } else { u8::MAX };
            bytes[at] = byte & care[at];
        }
        let [bytes, care] = [bytes, care].map(u64::from_le_bytes);
        Around { before, bytes, care }
    }

    /// What all entries of a list have in common, where the first has the most.
    fn common(entries: &[Entry], literals: &[(Literal, Vec<u32>)]) -> Around {
        let Some(first) = entries.first() else { return Around::NOTHING };
        entries.iter().fold(first.around, |common, entry| {
            let around = Around::from(&literals[entry.literal as usize].0, entry.offset, common.before);
            let care = common.care & around.care & !(common.bytes ^ around.bytes);
            Around { before: common.before, bytes: common.bytes & care, care }
        })
    }

    /// Whether these are the bytes around the gram at `at`. Those that are not there may be any.
    #[inline(always)]
    fn may_be(&self, text: &[u8], at: usize) -> bool {
        let around = at.checked_sub(self.before as usize).and_then(|from| text.get(from..)?.first_chunk());
        around.is_none_or(|around| u64::from_le_bytes(*around) & self.care == self.bytes)
    }
}

/// Entries whose grams have the same hash.
struct List {
    /// The first of its entries; the last is before the first of the next list.
    start: u32,
    /// What all of them have in common.
    common: Around,
}

impl Entry {
    fn new(number: u32, literal: &Literal, offset: i32) -> Entry {
        let bytes: [_; GRAM] = std::array::from_fn(|at| byte_of(literal, offset, at));
        let gram = u32::from_le_bytes(bytes.map(|byte| byte.unwrap_or(0)));
        let open = bytes.iter().position(Option::is_none);
        Entry { literal: number, offset, gram, open, around: Around::new(literal, offset) }
    }

    /// The grams it may be, where a byte is left open.
    fn grams(&self) -> impl Iterator<Item = u32> {
        let (gram, shift) = (self.gram, 8 * self.open.unwrap_or(0));
        (0..=self.open.map_or(0, |_| 0xff)).map(move |byte: u32| gram | byte << shift)
    }
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

    /// The literals in order, with their rules.
    pub fn into_literals(self) -> Vec<(Literal, Vec<u32>)> {
        self.rules.into_iter().collect()
    }

    pub fn build(self, level: Level) -> LiteralIndex {
        let literals = self.into_literals();
        let (test, key, mut entries) = if level.permutes_bytes() {
            let (buckets, entries) = in_buckets(&literals);
            (Test::Buckets(level, buckets), FIRST_THREE, entries)
        } else {
            let (rows, entries) = in_rows(&literals);
            (Test::Rows(level, rows), MIDDLE, entries)
        };
        let list = |entry: &Entry| hash::<LISTS>(entry.gram, key);
        entries.sort_by_key(list);
        let mut lists = Vec::with_capacity(LISTS + 1);
        let mut start = 0;
        for number in 0..=LISTS {
            let len = entries[start..].iter().take_while(|entry| list(entry) == number).count();
            let common = Around::common(&entries[start..start + len], &literals);
            lists.push(List { start: start as u32, common });
            start += len;
        }
        let mut known = GramHashes::new();
        entries.iter().flat_map(Entry::grams).for_each(|gram| known.insert(gram));
        LiteralIndex { test, key, level, known, lists, entries, literals }
    }
}

/// Enters each literal under the gram that was chosen for it, in its bucket.
fn in_buckets(literals: &[(Literal, Vec<u32>)]) -> (Buckets, Vec<Entry>) {
    let texts: Vec<_> = literals.iter().map(|(literal, _)| literal).collect();
    let chosen = choose(&texts, plan::placed(&texts), 1);
    let mut buckets = Buckets::default();
    let mut entries = Vec::new();
    for ((literal, number), Placed { offset, bucket }) in texts.into_iter().zip(0u32..).zip(chosen) {
        let offset = offset as i32;
        for at in 0..GRAM {
            match byte_of(literal, offset, at) {
                Some(byte) => buckets.allow(bucket, at, kind(byte)),
                None => (0..KINDS).for_each(|kind| buckets.allow(bucket, at, kind)),
            }
        }
        entries.push(Entry::new(number, literal, offset));
    }
    (buckets, entries)
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

/// Enters each literal under its rarest grams, one for every alignment.
fn in_rows(literals: &[(Literal, Vec<u32>)]) -> (RowTest, Vec<Entry>) {
    let mut test = RowTest { first: Box::new([0; ROWS]), last: Box::new([0; ROWS]) };
    let mut entries = Vec::new();
    let texts: Vec<_> = literals.iter().map(|(literal, _)| literal).collect();
    for ((literal, first), number) in texts.iter().zip(plan::first(&texts)).zip(0u32..) {
        let first = first.unwrap_or_else(|| rarest(literal));
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
    /// One more than there are. Most grams that are known end here, by what is around them.
    lists: Vec<List>,
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
            places.retain(|place| {
                let list = &self.lists[hash::<LISTS>(gram_at(place), self.key)];
                list.common.may_be(bytes, at + place)
            });
            for place in places.iter() {
                self.verify(gram_at(place), bytes, at + place, hits);
            }
            at += blocks * BLOCK;
        }
    }

    fn verify(&self, gram: u32, bytes: &[u8], at: usize, hits: &mut Vec<Hit>) {
        let list = hash::<LISTS>(gram, self.key);
        let entries = self.lists[list].start as usize..self.lists[list + 1].start as usize;
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
