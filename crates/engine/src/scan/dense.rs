//! Segments where hits are dense, as in tables of numbers: dozens of rules are triggered by each number, and most of them
//! say nothing without one of their words near. Where words stand is found out once for the segment, before the first
//! such rule is asked. That saves work and never changes an answer.

use std::ops::Range;

use crate::prefilter::Hit;
use crate::rules::Rule;
use crate::scoring::{Nearby, WordIndex};
use crate::{CONTEXT_MAX, MAX_MATCH_LEN};

/// Hits are dense if one in so many bytes is of a rule that says nothing without a word: to look for words in so much text
/// takes as long as to confirm and judge it. Twice as many bytes cost a source tree 2 % more, six times as many 18 %.
const DENSE: usize = 32;
/// So few are confirmed sooner than it is found out where words stand.
const FEW: usize = 32;
/// Bytes before and behind a trigger in which a context word of its match may begin, at most.
const WORDS_REACH: usize = MAX_MATCH_LEN + CONTEXT_MAX;

/// Working memory.
#[derive(Default)]
pub struct Dense {
    nearby: Nearby,
    kept: Vec<Hit>,
    /// The segment whose words are known.
    segment: Option<Range<usize>>,
}

impl Dense {
    /// Begins another segment; whether its hits are dense.
    pub fn begin(&mut self, segment: &Range<usize>, hits: &[Hit], needs_word: impl Fn(u32) -> bool) -> bool {
        self.segment = None;
        let enough = FEW.max(segment.len() / DENSE);
        hits.len() > enough && hits.iter().filter(|hit| needs_word(hit.rule)).count() > enough
    }

    /// Those of a rule's hits, which are in order, that may have one of its words near.
    pub fn with_words<'h>(
        &'h mut self,
        words: &WordIndex,
        (rule, index): (&Rule, u32),
        bytes: &[u8],
        segment: &Range<usize>,
        hits: &'h [Hit],
    ) -> &'h [Hit] {
        if !words.has(index) {
            return hits;
        }
        if self.segment.as_ref() != Some(segment) {
            let end = (segment.end + WORDS_REACH).min(bytes.len());
            self.nearby.fill(words, bytes, segment.start.saturating_sub(WORDS_REACH)..end);
            self.segment = Some(segment.clone());
        }
        let reach = |hit: &Hit| rule.reach(hit.at, bytes.len());
        self.kept.clear();
        if let [first, .., last] = hits
            && !self.nearby.has_any(words, index, reach(first).start..reach(last).end)
        {
            return &self.kept;
        }
        self.kept.extend(hits.iter().filter(|hit| self.nearby.has(words, index, reach(hit))));
        &self.kept
    }
}
