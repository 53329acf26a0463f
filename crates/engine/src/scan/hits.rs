//! The hits of a segment, rule by rule: counted and put in their places rather than sorted, because there are many
//! of them in every text.

use crate::prefilter::Hit;

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
