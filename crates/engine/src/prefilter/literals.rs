//! Finds literals by their 4-grams at every second position of the text. A literal is entered under two
//! neighbouring grams, so that one of them falls on a sampled position whatever its alignment.
//!
//! The middle two bytes of a gram are hashed to one of 1,024 rows of two bitmaps, 8 KiB each; the first
//! byte must have its bit in the row of the one, the last byte in that of the other. So the outer byte of
//! a gram may be left open by a full row, which is how literals of three and four bytes are found at
//! every alignment without an entry for each byte that may stand beside them. The rare gram that passes
//! is verified against the literals of its row.

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
/// Rows of a bitmap; with 64 bits each, both leave half of a common L1 cache to the text.
const ROWS: usize = 1024;
const ROW_BITS: u32 = ROWS.ilog2();

const _: () = assert!(SEGMENT_ALIGN.is_multiple_of(BLOCK) && BLOCK.is_multiple_of(STRIDE));

/// The row of a gram, by its middle bytes.
fn row(gram: u32) -> usize {
    let middle = (gram >> 8) & 0xffff;
    (middle.wrapping_mul(0x9e37_79b1) >> (u32::BITS - ROW_BITS)) as usize
}

/// The bit of an outer byte in its row.
fn bit(byte: u8) -> u64 {
    1 << (byte & 63)
}

/// A literal to verify: it starts `offset` bytes before the gram.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Entry {
    literal: u32,
    offset: i32,
    /// What the gram is, once the bits of `fold` are set and those outside `care` cleared: most grams that
    /// pass the bitmaps are told apart here, without a look at the literal.
    gram: u32,
    fold: u32,
    care: u32,
}

impl Entry {
    fn new(number: u32, literal: &Literal, offset: i32) -> Entry {
        let (mut gram, mut fold, mut care) = ([0; GRAM], [0; GRAM], [0; GRAM]);
        for at in 0..GRAM {
            let Some(&byte) = usize::try_from(offset + at as i32).ok().and_then(|at| literal.bytes.get(at))
            else {
                continue;
            };
            fold[at] = if literal.any_case && byte.is_ascii_alphabetic() { 0x20 } else { 0 };
            gram[at] = byte | fold[at];
            care[at] = 0xff;
        }
        let [gram, fold, care] = [gram, fold, care].map(u32::from_le_bytes);
        Entry { literal: number, offset, gram, fold, care }
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

    pub fn build(self) -> LiteralIndex {
        let mut index = LiteralIndex {
            first: Box::new([0; ROWS]),
            last: Box::new([0; ROWS]),
            row_starts: Vec::with_capacity(ROWS + 1),
            entries: Vec::new(),
            literals: self.rules.into_iter().collect(),
        };
        let mut rows = vec![BTreeSet::new(); ROWS];
        for ((literal, _), number) in index.literals.iter().zip(0u32..) {
            for offset in offsets(&literal.bytes) {
                let byte =
                    |at: i32| usize::try_from(offset + at).ok().and_then(|at| literal.bytes.get(at)).copied();
                let bits = |byte: Option<u8>| match byte {
                    Some(byte) => cases(byte, literal.any_case).into_iter().map(bit).fold(0, |a, b| a | b),
                    None => u64::MAX,
                };
                let (Some(second), Some(third)) = (byte(1), byte(2)) else { continue };
                for second in cases(second, literal.any_case) {
                    for third in cases(third, literal.any_case) {
                        let row = row(u32::from_le_bytes([0, second, third, 0]));
                        index.first[row] |= bits(byte(0));
                        index.last[row] |= bits(byte(3));
                        rows[row].insert(Entry::new(number, literal, offset));
                    }
                }
            }
        }
        index.row_starts.push(0);
        for entries in rows {
            index.entries.extend(entries);
            index.row_starts.push(index.entries.len() as u32);
        }
        index
    }
}

/// The forms in which a byte of a literal may appear.
fn cases(byte: u8, any_case: bool) -> [u8; 2] {
    if any_case { [byte.to_ascii_lowercase(), byte.to_ascii_uppercase()] } else { [byte, byte] }
}

/// Where in a literal its two grams start: two neighbours, so that one of them is sampled. A gram may
/// reach one byte beyond a literal.
fn offsets(literal: &[u8]) -> [i32; 2] {
    if literal.len() <= GRAM {
        return [-1, 0];
    }
    // The rarest: `-----BEGIN` is not looked for by its dashes.
    let rarest = (0..literal.len() - GRAM).max_by_key(|&at| {
        let part = |at: usize| rarity(&literal[at..at + GRAM]);
        (part(at).min(part(at + 1)), std::cmp::Reverse(at))
    });
    let at = rarest.unwrap_or(0) as i32;
    [at, at + 1]
}

pub struct LiteralIndex {
    /// Bits of the bytes that may be the first of a gram.
    first: Box<[u64; ROWS]>,
    /// Bits of the bytes that may be the last of a gram.
    last: Box<[u64; ROWS]>,
    /// The entries of row `r` are `entries[row_starts[r]..row_starts[r + 1]]`.
    row_starts: Vec<u32>,
    entries: Vec<Entry>,
    literals: Vec<(Literal, Vec<u32>)>,
}

impl LiteralIndex {
    /// Bit `k` says that the gram at position `STRIDE * k` of the block may be one of a literal.
    fn test_block(&self, block: &[u8; BLOCK + GRAM - 1]) -> u32 {
        let mut mask = 0;
        for k in 0..BLOCK / STRIDE {
            let at = k * STRIDE;
            let gram = u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
            let row = row(gram);
            let seen = (self.first[row] >> (gram & 63)) & (self.last[row] >> ((gram >> 24) & 63)) & 1;
            mask |= (seen as u32) << k;
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

    #[inline(never)]
    fn verify(&self, bytes: &[u8], at: usize, hits: &mut Vec<Hit>) {
        let byte = |offset: usize| bytes.get(at + offset).copied().unwrap_or(0);
        let gram = u32::from_le_bytes([byte(0), byte(1), byte(2), byte(3)]);
        let row = row(gram);
        let entries = self.row_starts[row] as usize..self.row_starts[row + 1] as usize;
        for entry in &self.entries[entries] {
            if (gram | entry.fold) & entry.care != entry.gram {
                continue;
            }
            let (literal, rules) = &self.literals[entry.literal as usize];
            let Some(start) = at.checked_add_signed(-entry.offset as isize) else { continue };
            let Some(text) = bytes.get(start..start + literal.bytes.len()) else { continue };
            let same = if literal.any_case {
                text.eq_ignore_ascii_case(&literal.bytes)
            } else {
                text == literal.bytes
            };
            if same {
                let len = literal.bytes.len() as u32;
                hits.extend(rules.iter().map(|&rule| Hit { rule, at: start, len }));
            }
        }
    }
}
