//! The occurrences found in one object, capped per rule; in a table per column and rule.
//!
//! The cap keeps the first ones by place. Chunks may come in any order, so a rule's occurrences are
//! held until the object ends, at most twice the cap of them, and cut to the lowest then: the outcome
//! depends on the object alone. The others are counted exactly. What a control keeps out of reports is kept apart
//! from the rest, so that it takes no room of what is reported.

use std::collections::HashMap;

use domesday_model::{FindingDraft, Span, Suppressed, SuppressedBy};

/// Occurrences of one rule that one control suppresses and that are kept one by one, at most.
const SUPPRESSED_MAX: usize = 100;

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
    pub(crate) suppressed: Option<SuppressedBy>,
    /// All of them.
    pub(crate) count: u64,
    /// The first ones, up to the cap.
    pub(crate) kept: Vec<Kept>,
}

impl Tally {
    pub(crate) fn new(column: u32, rule: u32, suppressed: Option<SuppressedBy>) -> Tally {
        Tally { column, rule, suppressed, count: 0, kept: Vec::new() }
    }

    /// How many are kept, where `cap` of those are that are reported.
    pub(crate) fn cap(&self, cap: usize) -> usize {
        if self.suppressed.is_some() { cap.min(SUPPRESSED_MAX) } else { cap }
    }
}

/// All occurrences in one object.
#[derive(Default)]
pub(crate) struct Occurrences {
    by_rule: HashMap<(u32, u32, Option<SuppressedBy>), Tally>,
}

impl Occurrences {
    pub(crate) fn add(&mut self, tallies: Vec<Tally>, cap: usize) {
        for tally in tallies {
            let cap = tally.cap(cap);
            let key = (tally.column, tally.rule, tally.suppressed.clone());
            let Tally { column, rule, suppressed, count, kept } = tally;
            let total = self.by_rule.entry(key).or_insert_with(|| Tally::new(column, rule, suppressed));
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

    /// What is kept, in order, and how many occurrences that would be reported are beyond the cap.
    pub(crate) fn finish(self, cap: usize) -> (Vec<Kept>, u64) {
        let mut all = Vec::new();
        let mut overflow = 0;
        for mut tally in self.by_rule.into_values() {
            let cap = tally.cap(cap);
            keep_first(&mut tally.kept, cap);
            match &tally.suppressed {
                None => overflow += tally.count - tally.kept.len() as u64,
                Some(by) => tell_suppressed(&mut tally.kept, by, tally.count),
            }
            all.extend(tally.kept.into_iter().map(|kept| (tally.column, kept)));
        }
        let place = |(column, kept): &(u32, Kept)| (*column, place(kept));
        all.sort_unstable_by(|a, b| (place(a), &a.1.draft.rule).cmp(&(place(b), &b.1.draft.rule)));
        (all.into_iter().map(|(_, kept)| kept).collect(), overflow)
    }
}

/// Says of each occurrence what suppresses it. The last one stands for all behind it.
fn tell_suppressed(kept: &mut [Kept], by: &SuppressedBy, mut left: u64) {
    let last = kept.len().saturating_sub(1);
    for (at, kept) in kept.iter_mut().enumerate() {
        let count = if at == last { left } else { 1 };
        left -= count;
        kept.draft.suppressed = Some(Suppressed { by: by.clone(), count });
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
