//! Where long words are not far. Most rules of secrets have a long word in every match; what else they have is only
//! looked for near one, and most text has none.

use std::ops::Range;

use super::simd::BLOCK;

/// Letters and digits in a row that most secrets have and most text has not: what needs as many is only looked for
/// near them.
pub const NEAR_RUN: usize = 20;
/// How far from them, in bytes.
pub const NEAR_MAX: usize = 4 * BLOCK;

const _: () = assert!(NEAR_MAX.is_multiple_of(BLOCK));

/// Ranges that are in order, apart, and multiples of blocks; they may reach beyond the
/// text.
#[derive(Default)]
pub struct Near(Vec<Range<usize>>);

impl Near {
    /// Adds the surroundings of the block at `at`, which is behind those before.
    pub fn add(&mut self, at: usize) {
        let (start, end) = (at.saturating_sub(NEAR_MAX), at + BLOCK + NEAR_MAX);
        match self.0.last_mut() {
            Some(last) if start <= last.end => last.end = end,
            _ => self.0.push(start..end),
        }
    }

    /// The ranges, which are then forgotten.
    pub fn drain(&mut self) -> impl Iterator<Item = Range<usize>> {
        self.0.drain(..)
    }
}
