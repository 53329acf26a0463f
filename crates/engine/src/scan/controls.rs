//! What somebody does not want to be told: ignore marks, and allow lists. A match that they are about is not dropped. It is
//! given apart, as what would be reported without any of them, so that reports can count and show it.
//!
//! A mark, and an allow for certain rules, is about one match alone: others over the same bytes are judged as if it were not
//! there, so it is set aside before that. An allow for every rule is about the value: it stays until it has displaced others.

use std::ops::Range;

use domesday_model::SuppressedBy;

use super::explain::Watch;
use super::{Chunk, Explained, Match, Scanner, Verdict};
use crate::rules::allow::{Covered, Seen};
use crate::scoring;

impl Scanner {
    /// Adds a match to the first list, or to the second one if it is set aside. `whole` is all that its rule matched.
    pub(super) fn sort_out<W: Watch>(
        &self,
        chunk: &Chunk<'_>,
        whole: &Range<usize>,
        is_marked: bool,
        mut found: Match,
        watch: &mut W,
        [matches, aside]: [&mut Vec<Match>; 2],
    ) {
        if is_marked {
            watch.dropped(|| Explained { found: found.clone(), verdict: Verdict::Ignored });
            aside.push(Match { suppressed: Some(SuppressedBy::Mark), ..found });
            return;
        }
        match self.covered(chunk, &found, whole) {
            Some(Covered { by, is_for_all: false }) => {
                watch.dropped(|| Explained { found: found.clone(), verdict: Verdict::Allowed });
                aside.push(Match { suppressed: Some(by), ..found });
            }
            covered => {
                found.suppressed = found.suppressed.or(covered.map(|covered| covered.by));
                matches.push(found);
            }
        }
    }

    /// Whether a control is about this match alone, so that it must not displace others.
    pub(super) fn is_aside(&self, found: &Match) -> bool {
        match &found.suppressed {
            None => false,
            Some(SuppressedBy::Mark) => true,
            Some(SuppressedBy::Allow(name)) => !self.rules.allows().is_for_all(name),
        }
    }

    /// The allow list that covers a match, if one does.
    fn covered(&self, chunk: &Chunk<'_>, found: &Match, whole: &Range<usize>) -> Option<Covered> {
        let (value, whole) = (found.value(chunk.bytes), &chunk.bytes[whole.clone()]);
        let seen = Seen { value, whole, bytes: chunk.bytes, span: found.span.clone(), path: chunk.path };
        self.rules.allows().covers(found.rule, &seen)
    }

    /// Whether a mark in the line of `span` is about the rule, and counts.
    pub(super) fn is_ignored(&self, chunk: &Chunk<'_>, span: &Range<usize>, rule: u32) -> bool {
        let rule = &self.rules.rules()[rule as usize];
        self.heeds_marks
            && scoring::is_ignored(chunk.bytes, span.clone(), rule, |word| self.rules.knows(word))
    }

    /// Leaves the matches that are reported, and puts those that a control keeps out of reports apart.
    pub(super) fn keep_accepted(
        &self,
        matches: &mut Vec<Match>,
        accept: &Range<usize>,
        suppressed: &mut Vec<Match>,
    ) {
        matches.retain(|found| found.score >= self.floor && accept.contains(&found.span.start));
        if matches.iter().any(|found| found.suppressed.is_some()) {
            suppressed.extend(matches.extract_if(.., |found| found.suppressed.is_some()));
        }
    }
}
