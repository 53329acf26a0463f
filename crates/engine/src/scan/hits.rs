//! The hits of a segment, rule by rule: counted and put in their places rather than sorted, because there are many
//! of them in every text.

use std::ops::Range;

use super::beside::Beside;
use super::explain::Watch;
use super::{Chunk, Scanner, Scratch, Silent};
use crate::prefilter::{DECODE, Hit};

/// Working memory, as much as the hits of a segment and the rules take.
#[derive(Default)]
pub struct HitGroups {
    /// By rule, what lies behind all others at the end: where the rule's next hit goes; zero between segments.
    next: Vec<u32>,
    /// The rules that have hits.
    rules: Vec<u32>,
    grouped: Vec<Hit>,
}

impl HitGroups {
    /// Calls `each` with the hits of every rule that has any, in order. `rules` is how many there are.
    pub fn for_each(&mut self, rules: usize, hits: &[Hit], mut each: impl FnMut(&[Hit])) {
        let slot = |hit: &Hit| rules.min(hit.rule as usize);
        self.next.resize(rules + 1, 0);
        for hit in hits {
            let count = &mut self.next[slot(hit)];
            if *count == 0 {
                self.rules.push(slot(hit) as u32);
            }
            *count += 1;
        }
        let mut start = 0;
        for &rule in &self.rules {
            start += std::mem::replace(&mut self.next[rule as usize], start);
        }
        self.grouped.clear();
        self.grouped.resize(hits.len(), Hit::default());
        for hit in hits {
            let next = &mut self.next[slot(hit)];
            self.grouped[*next as usize] = *hit;
            *next += 1;
        }
        let mut start = 0;
        for rule in self.rules.drain(..) {
            let end = std::mem::take(&mut self.next[rule as usize]) as usize;
            let group = &mut self.grouped[start..end];
            // Those of one literal are in order already.
            if !group.is_sorted() {
                group.sort_unstable();
            }
            each(group);
            start = end;
        }
    }
}

impl Scanner {
    /// Adds what the triggers in `scratch.hits` lead to, to `scratch.found`, and what may be decoded to
    /// `scratch.encoded`. Whether that is all: where hits are dense, what would be dropped later for want of a context
    /// word may be missing.
    pub(super) fn confirm_hits<W: Watch>(
        &self,
        chunk: &Chunk<'_>,
        segment: &Range<usize>,
        silent: &Silent,
        scratch: &mut Scratch,
    ) -> bool {
        let bytes = chunk.bytes;
        let Scratch { hits, groups, caches, dense, beside, found, encoded, .. } = scratch;
        let needs_word = |rule: u32| self.needs_word.get(rule as usize).is_some_and(|needs| *needs);
        let words = (dense.begin(segment, hits, needs_word) && !W::ALL).then(|| self.words());
        let rules = self.rules.rules();
        let sides = self.beside.get_or_init(|| Beside::new(rules));
        let hits = sides.may_match(rules, bytes, hits, beside);
        groups.for_each(rules.len(), hits, |hits| {
            let index = hits[0].rule;
            if index == DECODE {
                encoded.extend(hits.iter().map(|hit| hit.at));
                return;
            }
            if silent.has(index) {
                return;
            }
            let rule = &rules[index as usize];
            if !rule.path.is_empty() && !rule.path.is_match(chunk.path) {
                return;
            }
            let hits = match words {
                Some(words) => dense.with_words(words, (rule, index), bytes, segment, hits),
                None => hits,
            };
            self.confirmer.confirm(rule, index, bytes, hits, caches, found);
        });
        words.is_none()
    }

    /// The trigger pass alone, for measuring: adds how many hits of each rule the chunk has, and at the end of what may
    /// be decoded.
    pub fn count_hits(&self, chunk: &Chunk<'_>, scratch: &mut Scratch, counts: &mut Vec<u64>) {
        let (bytes, prefilter) = (chunk.bytes, self.prefilter(chunk.kind));
        counts.resize(self.rules.rules().len() + 1, 0);
        self.for_each_segment(bytes, &(0..bytes.len()), |segment| {
            scratch.hits.clear();
            prefilter.find(bytes, segment, &mut scratch.buffers, &mut scratch.hits);
            let last = counts.len() - 1;
            scratch.hits.iter().for_each(|hit| counts[last.min(hit.rule as usize)] += 1);
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::prefilter::DECODE;

    proptest! {
        #[test]
        fn groups_are_what_sorting_gives(
            places in proptest::collection::vec((prop_oneof![0u32..5, Just(DECODE)], 0usize..30, 1u32..3), 0..60),
            more in proptest::collection::vec((0u32..5, 0usize..30, 1u32..3), 0..20),
        ) {
            let mut groups = HitGroups::default();
            for places in [places, more] {
                let hits: Vec<Hit> = places.iter().map(|&(rule, at, len)| Hit { rule, at, len }).collect();
                let mut found = Vec::new();
                groups.for_each(5, &hits, |group| found.push(group.to_vec()));
                prop_assert!(found.iter().all(|group| group.iter().all(|hit| hit.rule == group[0].rule)));
                found.sort();
                let mut sorted = hits;
                sorted.sort();
                prop_assert_eq!(found.concat(), sorted);
            }
        }
    }
}
