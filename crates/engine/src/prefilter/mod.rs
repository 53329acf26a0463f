//! The first pass: where in a chunk is a rule worth a look. It owns the literal index and the shapes,
//! both exact: a hit for every occurrence, whatever the alignment, and none without one. It must not
//! know regexes or scores.
//!
//! [`literals`] and [`shapes`] read a chunk as bit masks of 64 bytes each, which [`simd`] makes with the widest
//! instructions of the machine. The cost of a byte does not depend on how many rules there are.

mod choice;
mod literals;
mod near;
mod places;
mod plan;
mod rows;
mod shapes;
mod shares;
mod simd;

use std::ops::Range;

use crate::decode;
use crate::rules::gate::Gate;
use crate::rules::{Literal, Rule, Shape, Trigger};

use near::{NEAR_MAX, Near};

pub use near::NEAR_RUN;
#[allow(unused_imports, reason = "only the build script packs")]
pub use plan::pack_plans;
pub use shapes::{DIGITS_LEAST, LONG_WORD_MIN, SHORT_WORD_DIGITS_MIN, WORD_MAX};
pub use shares::{WHOLE, share};

/// A trigger of a rule at a place in the chunk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Hit {
    /// Index of the rule, or [`DECODE`].
    pub rule: u32,
    pub at: usize,
    /// Bytes that a match must contain from `at` on.
    pub len: u32,
}

/// In place of a rule: something that may be decoded.
pub const DECODE: u32 = u32::MAX;

/// A segment's bounds are multiples of this, except for the end of the last.
pub const SEGMENT_ALIGN: usize = 64;

/// Bytes before and behind a place that tell whether a trigger is there, at most: that of a rule with a long word may be
/// as far from it as [`NEAR_MAX`], and a shape or literal is within two blocks.
pub const HIT_REACH: usize = NEAR_MAX + 2 * SEGMENT_ALIGN;

/// Working memory, kept because most texts are so short that preparing it would cost more than the search.
#[derive(Default)]
pub struct Buffers {
    literals: literals::Buffers,
    shapes: shapes::Buffers,
    near: Near,
}

pub struct Prefilter {
    literals: literals::LiteralIndex,
    /// Those of rules whose every match has a long word not far from them: the greater part, and hardly any text has to
    /// be searched for them.
    near_words: literals::LiteralIndex,
    shapes: shapes::ShapeIndex,
}

impl Prefilter {
    /// For those of the rules that are `wanted`, and for what may be decoded.
    pub fn new(rules: &[Rule], wanted: impl Fn(&Rule) -> bool) -> Prefilter {
        let level = simd::Level::of_machine();
        let mut shapes = shapes::ShapeIndex::new(level);
        for (rule, index) in rules.iter().zip(0u32..).filter(|(rule, _)| wanted(rule)) {
            if let Trigger::Shape(shape) = &rule.trigger {
                shapes.add(*shape, index, &rule.gate);
            }
        }
        let (literals, near_words) = literals_of(rules, wanted);
        shapes.add(Shape::WordDigits { min: 0, len: LONG_WORD_MIN as u8 }, DECODE, &Gate::open());
        Prefilter { literals: literals.build(level), near_words: near_words.build(level), shapes }
    }

    /// Adds the hits found from `segment` of `bytes`. Segments that cover a chunk give every hit of it;
    /// a hit near the border of two may come from both.
    pub fn find(&self, bytes: &[u8], segment: Range<usize>, buffers: &mut Buffers, hits: &mut Vec<Hit>) {
        debug_assert!(segment.start.is_multiple_of(SEGMENT_ALIGN));
        let Buffers { literals, shapes, near } = buffers;
        self.literals.find(bytes, segment.clone(), literals, hits);
        self.shapes.find(bytes, segment, shapes, near, hits);
        for near in near.drain() {
            self.near_words.find(bytes, near.start..near.end.min(bytes.len()), literals, hits);
        }
    }
}

/// The literals of rules that are `wanted` and of what may be decoded; and those of rules that are only looked for near
/// long words.
fn literals_of(rules: &[Rule], wanted: impl Fn(&Rule) -> bool) -> (literals::Builder, literals::Builder) {
    let (mut literals, mut near_words) = (literals::Builder::default(), literals::Builder::default());
    for (rule, index) in rules.iter().zip(0u32..).filter(|(rule, _)| wanted(rule)) {
        if let Trigger::Literals(set) = &rule.trigger {
            let literals = if has_long_word(rule) { &mut near_words } else { &mut literals };
            set.iter().for_each(|literal| literals.add(literal, index));
        }
    }
    for trigger in decode::TRIGGERS {
        literals.add(&Literal { bytes: trigger.as_bytes().to_vec(), any_case: true }, DECODE);
    }
    (literals, near_words)
}

/// Whether every match has a long word, and no part of it is far from that.
fn has_long_word(rule: &Rule) -> bool {
    rule.max_len <= NEAR_MAX && rule.run.as_ref().is_some_and(|run| run.is_long_word())
}

#[cfg(test)]
mod tests;
