//! The occurrences found in one object, capped per rule; in a table per column and rule.
//!
//! The cap keeps the first ones by place. Chunks may come in any order, so a rule's occurrences are
//! held until the object ends, at most twice the cap of them, and cut to the lowest then: the outcome
//! depends on the object alone. The others are counted exactly.

use std::collections::HashMap;

use domesday_model::{FindingDraft, Span};

use crate::packet::RawValue;

/// An occurrence that may be reported. Its value is kept only if the packet asked for values, and shows
/// in no debug output.
pub(crate) struct Kept {
    pub(crate) draft: FindingDraft,
    raw: Option<RawValue>,
}

impl Kept {
    pub(crate) fn new(draft: FindingDraft, raw: Option<RawValue>) -> Self {
        Kept { draft, raw }
    }

    pub(crate) fn raw(&self) -> Option<&RawValue> {
        self.raw.as_ref()
    }
}

/// One rule's occurrences in one chunk, or in one column of one batch of rows.
pub(crate) struct Tally {
    /// 0 in an object that is no table.
    pub(crate) column: u32,
    pub(crate) rule: u32,
    /// All of them.
    pub(crate) count: u64,
    /// The first ones, up to the cap.
    pub(crate) kept: Vec<Kept>,
}

/// All occurrences in one object.
#[derive(Default)]
pub(crate) struct Occurrences {
    by_rule: HashMap<(u32, u32), Tally>,
}

impl Occurrences {
    pub(crate) fn add(&mut self, tallies: Vec<Tally>, cap: usize) {
        for tally in tallies {
            let Tally { column, rule, count, kept } = tally;
            let empty = Tally { column, rule, count: 0, kept: Vec::new() };
            let total = self.by_rule.entry((column, rule)).or_insert(empty);
            total.count += count;
            total.kept.extend(kept);
            if total.kept.len() > cap.saturating_mul(2) {
                keep_first(&mut total.kept, cap);
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_rule.is_empty()
    }

    /// What is reported, in order, and how many occurrences are beyond the cap.
    pub(crate) fn finish(self, cap: usize) -> (Vec<Kept>, u64) {
        let mut all = Vec::new();
        let mut overflow = 0;
        for mut tally in self.by_rule.into_values() {
            keep_first(&mut tally.kept, cap);
            overflow += tally.count - tally.kept.len() as u64;
            all.extend(tally.kept.into_iter().map(|kept| (tally.column, kept)));
        }
        let place = |(column, kept): &(u32, Kept)| (*column, place(kept));
        all.sort_unstable_by(|a, b| (place(a), &a.1.draft.rule).cmp(&(place(b), &b.1.draft.rule)));
        (all.into_iter().map(|(_, kept)| kept).collect(), overflow)
    }
}

/// Where an occurrence is: the row of a table, which says nothing new of a text, and the bytes.
fn place(kept: &Kept) -> (u64, Span) {
    (kept.draft.position.line, kept.draft.span)
}

fn keep_first(kept: &mut Vec<Kept>, cap: usize) {
    kept.sort_unstable_by_key(place);
    kept.truncate(cap);
}
