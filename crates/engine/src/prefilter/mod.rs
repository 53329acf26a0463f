//! The first pass: where in a chunk is a rule worth a look. It owns the literal index and the shapes,
//! both exact: a hit for every occurrence, whatever the alignment, and none without one. It must not
//! know regexes or scores.
//!
//! [`literals`] and [`shapes`] walk a chunk in fixed blocks and branch once per block, so that wider
//! instructions can take over the test of a block without changing what is around it.

mod literals;
mod shapes;

use std::ops::Range;

use crate::rules::{Rule, Trigger};

pub use shapes::{LONG_WORD_MIN, WORD_MAX};

/// A trigger of a rule at a place in the chunk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Hit {
    /// Index of the rule.
    pub rule: u32,
    pub at: usize,
    /// Bytes that a match must contain from `at` on.
    pub len: u32,
}

/// A segment's bounds are multiples of this, except for the end of the last.
pub const SEGMENT_ALIGN: usize = 64;

pub struct Prefilter {
    literals: literals::LiteralIndex,
    shapes: shapes::ShapeIndex,
}

impl Prefilter {
    pub fn new(rules: &[Rule]) -> Prefilter {
        let mut literals = literals::Builder::default();
        let mut shapes = shapes::ShapeIndex::default();
        for (rule, index) in rules.iter().zip(0u32..) {
            match &rule.trigger {
                Trigger::Literals(set) => set.iter().for_each(|literal| literals.add(literal, index)),
                Trigger::Shape(shape) => shapes.add(*shape, index, &rule.gate),
            }
        }
        Prefilter { literals: literals.build(), shapes }
    }

    /// Adds the hits found from `segment` of `bytes`. Segments that cover a chunk give every hit of it;
    /// a hit near the border of two may come from both.
    pub fn find(&self, bytes: &[u8], segment: Range<usize>, hits: &mut Vec<Hit>) {
        debug_assert!(segment.start.is_multiple_of(SEGMENT_ALIGN));
        self.literals.find(bytes, segment.clone(), hits);
        self.shapes.find(bytes, segment, hits);
    }
}

#[cfg(test)]
mod tests;
