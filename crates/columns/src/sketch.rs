//! What the distinct values of a column are, in bounded space.
//!
//! Of all distinct values those with the smallest hashes are kept, without the values themselves: a sample in which
//! each distinct value is as likely as any other, that does not depend on the order of rows, and that merges with the
//! samples of other parts into that of the whole. Beside it are counts of cells, and of each rule where an example is.
//!
//! Hashes are keyed, so that whoever has a sketch alone cannot try values on it. A sketch must not hold a value.

mod codec;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use siphasher::sip::SipHasher13;

/// Distinct values that are kept.
pub const SAMPLE_MAX: usize = 1_024;
/// Rules that are told of one value, at most: the ones it passed come first.
pub const MARKS_MAX: usize = 24;
/// Bytes of an example's row, and of its preview.
pub const EXAMPLE_TEXT_MAX: usize = 128;

/// Keys the hashes of values, so that a sketch tells nothing to who has it alone; and seeds which values are
/// kept of many.
#[derive(Clone, Copy)]
pub struct SketchKey(pub [u8; 16]);

impl SketchKey {
    pub(crate) fn hash(&self, value: &[u8]) -> u64 {
        SipHasher13::new_with_key(&self.0).hash(value)
    }
}

/// What a rule says of a value, as bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Facts(pub u8);

impl Facts {
    /// The rule took it; without, it had the form and a validator refused it.
    pub const PASSED: u8 = 1;
    /// With the column's name beside it, it is of medium confidence or better.
    pub const SURE: u8 = 1 << 1;
    /// It has a check digit.
    pub const CHECKED: u8 = 1 << 2;
    /// A validator proved it.
    pub const PROVEN: u8 = 1 << 3;
    /// It is most of the cell.
    pub const COVERS: u8 = 1 << 4;
    /// It is of letters and digits alone.
    pub const BARE: u8 = 1 << 5;
    /// It is of medium confidence or better without any word beside it.
    pub const ALONE: u8 = 1 << 6;
    /// It is a filler, or made up for documentation.
    pub const MADE_UP: u8 = 1 << 7;

    pub fn has(self, bits: u8) -> bool {
        self.0 & bits == bits
    }
}

/// A rule, and what it says of a value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Mark {
    pub rule: Arc<str>,
    pub facts: Facts,
}

/// A value of the sample.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Value {
    /// Bytes, without the spaces around them.
    pub len: u32,
    /// Words, 255 at most.
    pub words: u8,
    /// In order of the rules. Shared by all values of the same kind.
    pub marks: Arc<[Mark]>,
}

/// Where an example of a rule is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Kept {
    pub hash: u64,
    /// The length first, so that numbers are in their order.
    pub row_len: usize,
    pub row: String,
    pub preview: String,
}

impl Kept {
    pub fn new(hash: u64, row: &str, preview: &str) -> Kept {
        let (row, preview) = (cut(row), cut(preview));
        Kept { hash, row_len: row.len(), row, preview }
    }
}

/// At most [`EXAMPLE_TEXT_MAX`] bytes, in whole characters.
fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(EXAMPLE_TEXT_MAX)].to_owned()
}

/// What was seen of a rule.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Cells with a match that is reported, and those with one that a validator proved.
    pub cells: u64,
    pub proven: u64,
    /// Of those, the one with the smallest hash.
    pub reported: Option<Kept>,
    /// The one with the smallest hash of the sample, whether it is reported or not.
    pub sampled: Option<Kept>,
}

/// The values of one column.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ColumnSketch {
    /// Cells that are not null; of these, how many have nothing but spaces, and of how many only the beginning was read.
    pub(crate) values: u64,
    pub(crate) empty: u64,
    pub(crate) cut: u64,
    pub(crate) nulls: u64,
    pub(crate) sample: BTreeMap<u64, Value>,
    pub(crate) rules: BTreeMap<Arc<str>, Tally>,
}

impl ColumnSketch {
    /// Values with larger hashes are not of the sample.
    fn limit(&self) -> u64 {
        if self.sample.len() < SAMPLE_MAX {
            return u64::MAX;
        }
        self.sample.last_key_value().map_or(u64::MAX, |(hash, _)| *hash)
    }

    /// Whether a value that is not of the sample belongs to it.
    pub(crate) fn wants(&self, hash: u64) -> bool {
        hash <= self.limit() && !self.sample.contains_key(&hash)
    }

    pub(crate) fn add(&mut self, hash: u64, value: Value) {
        self.sample.insert(hash, value);
        self.trim();
    }

    /// Leaves out what is beyond the sample's limit, with its examples.
    fn trim(&mut self) {
        let mut trimmed = false;
        while self.sample.len() > SAMPLE_MAX {
            self.sample.pop_last();
            trimmed = true;
        }
        if !trimmed {
            return;
        }
        let limit = self.limit();
        for tally in self.rules.values_mut() {
            tally.sampled.take_if(|kept| kept.hash > limit);
        }
        self.rules.retain(|_, tally| *tally != Tally::default());
    }

    /// Whether an example with this hash would be kept for the rule.
    pub(crate) fn wants_example(&self, rule: &str, hash: u64, is_reported: bool) -> bool {
        let kept = self.rules.get(rule).and_then(|tally| match is_reported {
            true => tally.reported.as_ref(),
            false => tally.sampled.as_ref(),
        });
        kept.is_none_or(|kept| hash <= kept.hash)
    }

    pub(crate) fn offer_example(&mut self, rule: &Arc<str>, kept: Kept, is_reported: bool) {
        if !is_reported && kept.hash > self.limit() {
            return;
        }
        let tally = self.tally(rule);
        let place = if is_reported { &mut tally.reported } else { &mut tally.sampled };
        keep_least(place, kept);
    }

    pub(crate) fn tally(&mut self, rule: &Arc<str>) -> &mut Tally {
        if !self.rules.contains_key(&**rule) {
            self.rules.insert(Arc::clone(rule), Tally::default());
        }
        self.rules.get_mut(&**rule).expect("one was just made if there was none")
    }

    /// Those of the sample's examples that are of the value with this hash.
    pub(crate) fn sampled_examples(&self, hash: u64) -> impl Iterator<Item = (&Arc<str>, &Kept)> {
        let of_hash = move |kept: &&Kept| kept.hash == hash;
        self.rules
            .iter()
            .filter_map(move |(rule, tally)| Some((rule, tally.sampled.as_ref().filter(of_hash)?)))
    }

    /// Adds what was seen in another part of the same column, under the same key.
    pub fn merge(&mut self, other: &ColumnSketch) {
        self.values = self.values.saturating_add(other.values);
        self.empty = self.empty.saturating_add(other.empty);
        self.cut = self.cut.saturating_add(other.cut);
        self.nulls = self.nulls.saturating_add(other.nulls);
        for (hash, value) in &other.sample {
            let ours = self.sample.entry(*hash).or_insert_with(|| value.clone());
            // Only rule sets that differ say something else of a value.
            if value < ours {
                *ours = value.clone();
            }
        }
        for (rule, tally) in &other.rules {
            let ours = self.rules.entry(Arc::clone(rule)).or_default();
            ours.cells = ours.cells.saturating_add(tally.cells);
            ours.proven = ours.proven.saturating_add(tally.proven);
            tally.reported.iter().for_each(|kept| keep_least(&mut ours.reported, kept.clone()));
            tally.sampled.iter().for_each(|kept| keep_least(&mut ours.sampled, kept.clone()));
        }
        self.trim();
    }

    /// Distinct values that are neither null nor empty: counted while all are in the sample, or else estimated.
    pub fn distinct(&self) -> u64 {
        let kept = self.sample.len();
        if kept < SAMPLE_MAX {
            return kept as u64;
        }
        let share = (self.limit() as f64 + 1.0) / 2f64.powi(64);
        (((kept - 1) as f64 / share) as u64).clamp(kept as u64, self.values.max(kept as u64))
    }

    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// The reverse of [`ColumnSketch::encode`]; `None` when the bytes are not of that form.
    pub fn decode(bytes: &[u8]) -> Option<ColumnSketch> {
        codec::decode(bytes)
    }
}

fn keep_least(place: &mut Option<Kept>, kept: Kept) {
    if place.as_ref().is_none_or(|before| kept < *before) {
        *place = Some(kept);
    }
}
