//! Where in a text the context words of rules stand, told once for all rules and places. Some rules say nothing unless
//! one of their words is near; where their triggers are dense, as in tables of numbers, it is cheaper to know where
//! words are than to ask for them at every number.
//!
//! It may tell of a word that does not count, and never misses one that does.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::context::{capital, goes_on, is_word_at, same};
use crate::rules::Rule;

/// Bytes of a text that are told apart.
const BLOCK: usize = 64;
/// Bits that blocks are kept in together.
const TOGETHER: usize = u64::BITS as usize;

/// Places that are gathered before words are compared there.
const GATHERED: usize = 256;

/// The words of rules, by the two bytes they begin with.
pub struct WordIndex {
    words: Vec<Word>,
    /// As bits, which two bytes words begin with.
    begins: Vec<u64>,
    /// By two bytes: one more than the index into `buckets`, or zero.
    heads: Vec<u16>,
    buckets: Vec<Vec<Entry>>,
    /// By rule: its number among those that have words here.
    numbers: Vec<Option<u32>>,
    rules: usize,
}

/// A word behind its first two bytes.
struct Entry {
    /// Which bits of the next four bytes are known,
    known: u32,
    /// and what they are.
    next: u32,
    word: u32,
}

struct Word {
    text: Arc<str>,
    /// The numbers of the rules that have it.
    rules: Vec<u32>,
}

impl WordIndex {
    /// Of those rules that are `wanted`. A rule whose words count as parts of others is not known here.
    pub fn new(rules: &[Rule], wanted: impl Fn(usize) -> bool) -> WordIndex {
        let mut index = WordIndex {
            words: Vec::new(),
            begins: vec![0; (1 << 16) / TOGETHER],
            heads: vec![0; 1 << 16],
            buckets: Vec::new(),
            numbers: vec![None; rules.len()],
            rules: 0,
        };
        let mut known: HashMap<&str, usize> = HashMap::new();
        for (at, rule) in rules.iter().enumerate() {
            let Some(context) = rule.context.as_ref().filter(|context| !context.anywhere && wanted(at))
            else {
                continue;
            };
            let number = index.rules as u32;
            index.numbers[at] = Some(number);
            index.rules += 1;
            for word in &context.words {
                let at = *known.entry(word).or_insert_with(|| index.add(word));
                index.words[at].rules.push(number);
            }
        }
        index
    }

    fn add(&mut self, word: &Arc<str>) -> usize {
        let at = self.words.len();
        self.words.push(Word { text: Arc::clone(word), rules: Vec::new() });
        let (known, next) = next_four(word);
        for head in heads(word) {
            let bucket = &mut self.heads[usize::from(head)];
            if *bucket == 0 {
                self.buckets.push(Vec::new());
                *bucket = self.buckets.len() as u16;
                self.begins[usize::from(head) / TOGETHER] |= 1 << (usize::from(head) % TOGETHER);
            }
            self.buckets[usize::from(*bucket) - 1].push(Entry { known, next, word: at as u32 });
        }
        at
    }

    /// Whether a word may begin with two bytes.
    fn may_begin(&self, [first, second]: [u8; 2]) -> bool {
        let head = usize::from(u16::from_be_bytes([first, second]));
        self.begins[head / TOGETHER] >> (head % TOGETHER) & 1 != 0
    }

    /// The words that two bytes and the next four may be the beginning of.
    fn may_be(&self, head: [u8; 2], next: [u8; 4]) -> impl Iterator<Item = &Word> {
        let bucket = usize::from(self.heads[usize::from(u16::from_be_bytes(head))]).checked_sub(1);
        let next = u32::from_le_bytes(next.map(fold));
        let entries = bucket.map_or(&[][..], |bucket| &self.buckets[bucket]);
        let may_be = move |entry: &&Entry| next & entry.known == entry.next;
        entries.iter().filter(may_be).map(|entry| &self.words[entry.word as usize])
    }

    /// Whether the words of the rule are known.
    pub fn has(&self, rule: u32) -> bool {
        self.numbers.get(rule as usize).copied().flatten().is_some()
    }
}

/// The same for a letter in any case, and maybe for others.
fn fold(byte: u8) -> u8 {
    byte | 0x20
}

/// What is known of the four bytes behind the first two of a word, folded: nothing from where it may be written in
/// several ways.
fn next_four(word: &str) -> (u32, u32) {
    let (mut known, mut next) = ([0; 4], [0; 4]);
    let plain = word.bytes().take_while(|byte| byte.is_ascii() && *byte != b' ');
    for (at, byte) in plain.skip(2).take(4).enumerate() {
        (known[at], next[at]) = (u8::MAX, fold(byte));
    }
    (u32::from_le_bytes(known), u32::from_le_bytes(next))
}

/// The pairs of bytes that a word may begin with, where it stands in a text.
pub(super) fn heads(word: &str) -> Vec<u16> {
    let mut characters = word.chars();
    let firsts = characters.next().map_or(Vec::new(), variants);
    let seconds = match characters.next() {
        // Between words that camel case joins there is nothing.
        Some(' ') => variants(' ').into_iter().chain((b'A'..=b'Z').map(|byte| vec![byte])).collect(),
        Some(second) => variants(second),
        None => (0..=u8::MAX).map(|byte| vec![byte]).collect(),
    };
    let pair = |first: &[u8], second: &[u8]| {
        let mut bytes = first.iter().chain(second);
        let mut next = || bytes.next().copied().unwrap_or(0);
        u16::from_be_bytes([next(), next()])
    };
    let mut heads: Vec<u16> =
        firsts.iter().flat_map(|first| seconds.iter().map(move |second| pair(first, second))).collect();
    heads.sort_unstable();
    heads.dedup();
    heads
}

/// How a character of a word may be written.
fn variants(character: char) -> Vec<Vec<u8>> {
    if character.is_ascii() {
        return (0..=u8::MAX).filter(|&byte| same(byte, character as u8)).map(|byte| vec![byte]).collect();
    }
    let written = |character: char| character.encode_utf8(&mut [0; 4]).as_bytes().to_vec();
    vec![written(character), written(capital(character))]
}

/// Where words stand in a part of a text.
#[derive(Default)]
pub struct Nearby {
    range: Range<usize>,
    /// By the rule's number: which blocks of the range have one of its words, as bits.
    blocks: Vec<u64>,
    per_rule: usize,
    /// By the rule's number: whether it has a word anywhere.
    any: Vec<bool>,
}

impl Nearby {
    /// Finds the words that begin in `range`.
    pub fn fill(&mut self, index: &WordIndex, bytes: &[u8], range: Range<usize>) {
        self.per_rule = range.len().div_ceil(BLOCK * TOGETHER);
        self.range = range.clone();
        self.blocks.clear();
        self.blocks.resize(self.per_rule * index.rules, 0);
        self.any.clear();
        self.any.resize(index.rules, false);
        let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
        let mut places = [0; GATHERED];
        for start in range.clone().step_by(GATHERED) {
            // Where a word may begin cannot be foreseen, so there is no branch on it.
            let mut gathered = 0;
            let mut before = start.checked_sub(1).map_or(0, byte);
            for at in start..range.end.min(start + GATHERED) {
                let head = [byte(at), byte(at + 1)];
                places[gathered] = at;
                gathered += usize::from(!goes_on(before, head[0]) & index.may_begin(head));
                before = head[0];
            }
            for &at in &places[..gathered] {
                let next = [byte(at + 2), byte(at + 3), byte(at + 4), byte(at + 5)];
                for word in index.may_be([byte(at), byte(at + 1)], next) {
                    if is_word_at(bytes, bytes, at, &word.text, false) {
                        self.add(word, (at - range.start) / BLOCK);
                    }
                }
            }
        }
    }

    fn add(&mut self, word: &Word, block: usize) {
        for &rule in &word.rules {
            self.any[rule as usize] = true;
            self.blocks[rule as usize * self.per_rule + block / TOGETHER] |= 1 << (block % TOGETHER);
        }
    }

    /// Whether a word of the rule may begin in `range`, told at once if there is none anywhere.
    pub fn has_any(&self, index: &WordIndex, rule: u32, range: Range<usize>) -> bool {
        !self.covers(&range) || index.numbers[rule as usize].is_none_or(|number| self.any[number as usize])
    }

    fn covers(&self, range: &Range<usize>) -> bool {
        self.range.start <= range.start && range.end <= self.range.end
    }

    /// Whether a word of the rule may begin in `range`.
    pub fn has(&self, index: &WordIndex, rule: u32, range: Range<usize>) -> bool {
        let Some(number) = index.numbers[rule as usize] else { return true };
        if !self.covers(&range) {
            return true;
        }
        let of_rule = &self.blocks[number as usize * self.per_rule..][..self.per_rule];
        let first = (range.start - self.range.start) / BLOCK;
        let last = range.end.saturating_sub(1).max(range.start) - self.range.start;
        (first..=last / BLOCK).any(|block| of_rule[block / TOGETHER] >> (block % TOGETHER) & 1 != 0)
    }
}
