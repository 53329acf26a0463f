//! What became of every match, told to whoever asks.
//!
//! A scan drops matches at several steps. The steps hand what they drop to a [`Watch`]; in a scan it is `()`, which
//! takes nothing and costs nothing, so that an explanation is of the very steps of a scan and not of a copy of them.

use std::ops::Range;

use domesday_model::{Score, SuppressedBy};

use super::{Chunk, Match, Scanner, Scratch, Silent};
use crate::scoring::Evidences;

/// A match, and what became of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explained {
    /// Of one that got no score it is 0, and there are no reasons.
    pub found: Match,
    pub verdict: Verdict,
}

/// What becomes of a match.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is a match of the scan, whatever its score.
    Found,
    /// The rule's validator of this index says that it is something else.
    Refused { validator: usize },
    /// It scores less than the scanner's floor.
    BelowFloor,
    /// A comment beside it says so.
    Ignored,
    /// An allow list says so.
    Allowed,
    /// A match of this rule over the same bytes is more specific, or surer.
    Displaced { by: u32 },
}

impl Explained {
    pub(super) fn without_score(rule: u32, span: Range<usize>, refusal: Option<usize>) -> Explained {
        let found = Match {
            rule,
            span,
            score: Score(0),
            reasons: Evidences::default(),
            decoded: None,
            suppressed: None,
        };
        let verdict = refusal.map_or(Verdict::BelowFloor, |validator| Verdict::Refused { validator });
        Explained { found, verdict }
    }
}

impl Scanner {
    /// What became of everything that a rule's regex matched, in order of the spans: what a scan without a floor
    /// finds, and what it drops on the way and why. What a control alone keeps out of reports says so itself
    /// ([`Match::suppressed`]); another match would have displaced the rest of what is ignored or allowed.
    pub fn explain(&self, chunk: &Chunk<'_>, scratch: &mut Scratch) -> Vec<Explained> {
        let accept = self.begin(chunk, scratch);
        let (mut found, mut dropped) = (Vec::new(), Vec::new());
        self.match_path(chunk, &accept, scratch, &mut found);
        found.append(&mut scratch.suppressed);
        found.append(&mut self.matches(chunk, &accept, 0, &Silent::default(), scratch, &mut dropped));
        let mut all = all(dropped, found);
        all.retain(|told| accept.contains(&told.found.span.start));
        all
    }
}

/// Takes what a scan drops.
pub(super) trait Watch: Default {
    /// Whether matches of any score are of interest, whatever the scanner reports.
    const ALL: bool;

    fn dropped(&mut self, told: impl FnOnce() -> Explained);
    fn into_all(self) -> Vec<Explained>;
}

impl Watch for () {
    const ALL: bool = false;

    fn dropped(&mut self, _told: impl FnOnce() -> Explained) {}

    fn into_all(self) -> Vec<Explained> {
        Vec::new()
    }
}

impl Watch for Vec<Explained> {
    const ALL: bool = true;

    fn dropped(&mut self, told: impl FnOnce() -> Explained) {
        self.push(told());
    }

    fn into_all(self) -> Vec<Explained> {
        self
    }
}

/// All that happened, in order of spans and rules. What a decoding of the same bytes said once more is left out, unless
/// it said enough to displace what stands there as it is.
pub(super) fn all(dropped: Vec<Explained>, found: Vec<Match>) -> Vec<Explained> {
    let verdict = |found: &Match| match found.suppressed {
        None => Verdict::Found,
        Some(SuppressedBy::Mark) => Verdict::Ignored,
        Some(SuppressedBy::Allow(_)) => Verdict::Allowed,
    };
    let found = found.into_iter().map(|found| Explained { verdict: verdict(&found), found });
    let mut all: Vec<_> = found.chain(dropped).collect();
    let place = |told: &Explained| (told.found.span.start, told.found.span.end, told.found.rule);
    all.sort_by_key(|told| (place(told), told.verdict != Verdict::Found, told.found.decoded.is_some()));
    all.dedup_by_key(|told| place(told));
    all
}
