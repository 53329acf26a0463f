//! Finds literals by the hash of a case-folded 4-gram, looked up in a bitmap of 8 KiB at every second
//! position. A literal is entered under two neighbouring grams, so that one of them falls on a sampled
//! position whatever its alignment; the rare gram that is in the bitmap is then verified exactly.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::{Hit, SEGMENT_ALIGN};
use crate::rules::Literal;
use crate::rules::rarity::rarity;

/// Bytes of a gram.
const GRAM: usize = 4;
/// Sampled positions are multiples of this.
const STRIDE: usize = 2;
/// Bytes whose sampled positions are tested before one branch.
const BLOCK: usize = 32;
/// 64-bit words of the bitmap: 65,536 bits, 8 KiB, which leaves most of an L1 cache to the text.
const BITMAP_WORDS: usize = 1024;
/// Sets the bit that tells lower from upper case. Some other bytes fall together, too: this is only a
/// hash, and what follows is exact.
const FOLD: u32 = 0x2020_2020;
const FOLD_BYTE: u8 = 0x20;

const _: () = assert!(SEGMENT_ALIGN.is_multiple_of(BLOCK) && BLOCK.is_multiple_of(STRIDE));

fn gram(bytes: [u8; GRAM]) -> u32 {
    u32::from_le_bytes(bytes) | FOLD
}

fn hash(gram: u32) -> u16 {
    (gram.wrapping_mul(0x9e37_79b1) >> 16) as u16
}

/// A literal to verify where a gram was seen: the literal starts `offset` bytes before the gram.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Entry {
    literal: u32,
    offset: i32,
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

    pub fn build(self) -> LiteralIndex {
        let mut grams: BTreeMap<u32, BTreeSet<Entry>> = BTreeMap::new();
        let mut literals = Vec::new();
        for ((literal, rules), index) in self.rules.into_iter().zip(0u32..) {
            for (gram, offset) in grams_of(&literal.bytes) {
                grams.entry(gram).or_default().insert(Entry { literal: index, offset });
            }
            literals.push((literal, rules));
        }
        LiteralIndex::new(literals, grams)
    }
}

/// The grams under which a literal is found, with their offsets in it: for each alignment at least one.
fn grams_of(literal: &[u8]) -> Vec<(u32, i32)> {
    let any_byte = || (0..=u8::MAX).filter(|byte| byte & FOLD_BYTE != 0);
    match *literal {
        [a, b, c] => {
            let after = any_byte().map(|any| (gram([a, b, c, any]), 0));
            let before = any_byte().map(|any| (gram([any, a, b, c]), -1));
            after.chain(before).collect()
        }
        [a, b, c, d] => {
            let shifted = any_byte().map(|any| (gram([b, c, d, any]), 1));
            shifted.chain([(gram([a, b, c, d]), 0)]).collect()
        }
        _ => {
            // The rarest two neighbours: `-----BEGIN` is not looked for by its dashes.
            let rarest = (0..=literal.len().saturating_sub(GRAM + 1)).max_by_key(|&at| {
                let part = |at: usize| rarity(&literal[at..at + GRAM]);
                (part(at).min(part(at + 1)), std::cmp::Reverse(at))
            });
            let at = rarest.unwrap_or(0);
            [at, at + 1]
                .into_iter()
                .filter_map(|at| Some((gram(*literal[at..].first_chunk()?), at as i32)))
                .collect()
        }
    }
}

/// A gram's entries: `entries[first..first + count]`. A slot without entries is free.
#[derive(Clone, Copy, Default)]
struct Slot {
    gram: u32,
    first: u32,
    count: u32,
}

pub struct LiteralIndex {
    bitmap: Box<[u64; BITMAP_WORDS]>,
    /// Open addressing; a power of two, at most half full.
    slots: Vec<Slot>,
    entries: Vec<Entry>,
    literals: Vec<(Literal, Vec<u32>)>,
}

impl LiteralIndex {
    fn new(literals: Vec<(Literal, Vec<u32>)>, grams: BTreeMap<u32, BTreeSet<Entry>>) -> LiteralIndex {
        let size = (grams.len() * 2).next_power_of_two().max(2);
        let mut index = LiteralIndex {
            bitmap: Box::new([0; BITMAP_WORDS]),
            slots: vec![Slot::default(); size],
            entries: Vec::new(),
            literals,
        };
        for (gram, entries) in grams {
            let hash = hash(gram);
            index.bitmap[usize::from(hash >> 6)] |= 1 << (hash & 63);
            let mut at = index.home(gram);
            while index.slots[at].count > 0 {
                at = (at + 1) & (size - 1);
            }
            index.slots[at] =
                Slot { gram, first: index.entries.len() as u32, count: entries.len() as u32 };
            index.entries.extend(entries);
        }
        index
    }

    fn home(&self, gram: u32) -> usize {
        (gram.wrapping_mul(0x85eb_ca6b) >> 7) as usize & (self.slots.len() - 1)
    }

    fn may_have(&self, gram: u32) -> bool {
        let hash = hash(gram);
        self.bitmap[usize::from(hash >> 6)] >> (hash & 63) & 1 != 0
    }

    /// Bit `k` says that the gram at position `STRIDE * k` of the block is in the bitmap.
    fn test_block(&self, block: &[u8; BLOCK + GRAM - 1]) -> u32 {
        let mut mask = 0;
        for k in 0..BLOCK / STRIDE {
            let at = k * STRIDE;
            let seen = self.may_have(gram([block[at], block[at + 1], block[at + 2], block[at + 3]]));
            mask |= u32::from(seen) << k;
        }
        mask
    }

    /// Adds every occurrence whose sampled gram is in `segment`.
    pub fn find(&self, bytes: &[u8], segment: Range<usize>, hits: &mut Vec<Hit>) {
        if self.literals.is_empty() {
            return;
        }
        let mut at = segment.start;
        while at < segment.end {
            let Some(block) = bytes[at..].first_chunk() else { break };
            let mut mask = self.test_block(block);
            while mask != 0 {
                self.verify(bytes, at + STRIDE * mask.trailing_zeros() as usize, hits);
                mask &= mask - 1;
            }
            at += BLOCK;
        }
        // The last bytes of the chunk, where a gram may reach beyond the end.
        while at < segment.end {
            self.verify(bytes, at, hits);
            at += STRIDE;
        }
    }

    #[cold]
    fn verify(&self, bytes: &[u8], at: usize, hits: &mut Vec<Hit>) {
        let byte = |offset: usize| bytes.get(at + offset).copied().unwrap_or(0);
        let gram = gram([byte(0), byte(1), byte(2), byte(3)]);
        let mut slot_at = self.home(gram);
        let slot = loop {
            let slot = self.slots[slot_at];
            if slot.count == 0 {
                return;
            }
            if slot.gram == gram {
                break slot;
            }
            slot_at = (slot_at + 1) & (self.slots.len() - 1);
        };
        let first = slot.first as usize;
        for entry in &self.entries[first..first + slot.count as usize] {
            let (literal, rules) = &self.literals[entry.literal as usize];
            let Some(start) = at.checked_add_signed(-entry.offset as isize) else { continue };
            let Some(text) = bytes.get(start..start + literal.bytes.len()) else { continue };
            let same =
                if literal.any_case { text.eq_ignore_ascii_case(&literal.bytes) } else { text == literal.bytes };
            if same {
                let len = literal.bytes.len() as u32;
                hits.extend(rules.iter().map(|&rule| Hit { rule, at: start, len }));
            }
        }
    }
}
