//! A sketch as bytes: a version, then numbers of seven bits a byte, texts with their length before them.
//!
//! Rules are listed once by their ids, and each set of marks once: most values of a column have the same. What is read
//! may be anything; a count is believed only as far as the bytes that are left could hold it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{ColumnSketch, EXAMPLE_TEXT_MAX, Facts, Kept, MARKS_MAX, Mark, SAMPLE_MAX, Tally, Value};

const VERSION: u8 = 1;
/// Rules of a sketch, and bytes of a rule's id, that are read.
const RULES_MAX: usize = 16_384;
const RULE_ID_MAX: usize = 256;

pub fn encode(sketch: &ColumnSketch) -> Vec<u8> {
    let mut out = Writer(vec![VERSION]);
    [sketch.values, sketch.empty, sketch.cut, sketch.nulls].into_iter().for_each(|count| out.number(count));
    let marked = sketch.sample.values().flat_map(|value| value.marks.iter().map(|mark| &mark.rule));
    let mut rules: BTreeMap<&str, u64> = sketch.rules.keys().chain(marked).map(|rule| (&**rule, 0)).collect();
    (0..).zip(rules.values_mut()).for_each(|(number, place)| *place = number);
    out.number(rules.len() as u64);
    for rule in rules.keys() {
        out.text(rule);
        out.tally(&sketch.rules.get(*rule).cloned().unwrap_or_default());
    }
    let mut sets: BTreeMap<&[Mark], u64> = sketch.sample.values().map(|value| (&*value.marks, 0)).collect();
    (0..).zip(sets.values_mut()).for_each(|(number, place)| *place = number);
    out.number(sets.len() as u64);
    for set in sets.keys() {
        out.number(set.len() as u64);
        for mark in *set {
            out.number(rules[&*mark.rule]);
            out.0.push(mark.facts.0);
        }
    }
    out.number(sketch.sample.len() as u64);
    let mut before = 0;
    for (hash, value) in &sketch.sample {
        out.number(hash - before);
        before = *hash;
        out.number(sets[&*value.marks]);
        out.number(u64::from(value.len));
        out.0.push(value.words);
    }
    out.0
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    fn tally(&mut self, tally: &Tally) {
        self.number(tally.cells);
        self.number(tally.proven);
        for kept in [&tally.reported, &tally.sampled] {
            self.0.push(u8::from(kept.is_some()));
            if let Some(kept) = kept {
                self.number(kept.hash);
                self.text(&kept.row);
                self.text(&kept.preview);
            }
        }
    }
}

pub fn decode(bytes: &[u8]) -> Option<ColumnSketch> {
    let mut input = Reader(bytes);
    if input.byte()? != VERSION {
        return None;
    }
    let mut sketch = ColumnSketch {
        values: input.number()?,
        empty: input.number()?,
        cut: input.number()?,
        nulls: input.number()?,
        ..ColumnSketch::default()
    };
    let mut rules: Vec<Arc<str>> = Vec::new();
    for _ in 0..input.count(RULES_MAX)? {
        let rule: Arc<str> = input.text(RULE_ID_MAX)?.into();
        if rules.last().is_some_and(|last| *last >= rule) {
            return None;
        }
        let tally = input.tally()?;
        if tally != Tally::default() {
            sketch.rules.insert(Arc::clone(&rule), tally);
        }
        rules.push(rule);
    }
    let mut sets: Vec<Arc<[Mark]>> = Vec::new();
    for _ in 0..input.count(SAMPLE_MAX)? {
        let mark = |input: &mut Reader<'_>| {
            let rule = usize::try_from(input.number()?).ok()?;
            Some(Mark { rule: Arc::clone(rules.get(rule)?), facts: Facts(input.byte()?) })
        };
        let count = input.count(MARKS_MAX)?;
        sets.push((0..count).map(|_| mark(&mut input)).collect::<Option<Vec<_>>>()?.into());
    }
    let mut hash = 0u64;
    for number in 0..input.count(SAMPLE_MAX)? {
        let step = input.number()?;
        if number > 0 && step == 0 {
            return None;
        }
        hash = hash.checked_add(step)?;
        let set = usize::try_from(input.number()?).ok()?;
        let (len, words) = (u32::try_from(input.number()?).ok()?, input.byte()?);
        sketch.sample.insert(hash, Value { len, words, marks: Arc::clone(sets.get(set)?) });
    }
    input.0.is_empty().then_some(sketch)
}

struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            number |= bits.checked_shl(shift).filter(|shifted| shifted >> shift == bits)?;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// How many things follow, each of which takes a byte at least.
    fn count(&mut self, max: usize) -> Option<usize> {
        usize::try_from(self.number()?).ok().filter(|count| *count <= max.min(self.0.len()))
    }

    fn text(&mut self, max: usize) -> Option<&'b str> {
        let len = self.count(max)?;
        let (text, rest) = self.0.split_at(len);
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }

    fn tally(&mut self) -> Option<Tally> {
        let (cells, proven) = (self.number()?, self.number()?);
        let (reported, sampled) = (self.kept()?, self.kept()?);
        Some(Tally { cells, proven, reported, sampled })
    }

    fn kept(&mut self) -> Option<Option<Kept>> {
        match self.byte()? {
            0 => Some(None),
            1 => {
                let hash = self.number()?;
                let (row, preview) = (self.text(EXAMPLE_TEXT_MAX)?, self.text(EXAMPLE_TEXT_MAX)?);
                Some(Some(Kept::new(hash, row, preview)))
            }
            _ => None,
        }
    }
}
