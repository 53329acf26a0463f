//! How much the rules of one load may cost together. An automaton grows with its regex written out, not with the text of
//! the regex: 100 KB of rules can ask for gigabytes. So each regex is charged for what it comes to, before anything is
//! derived from it or compiled; each trigger for its share of the prefilter; and all text for being read. The rule that
//! exceeds the budget is refused by name. The built-in rules are not charged: they come packed.

use std::cell::Cell;

use regex_syntax::hir::Hir;

use super::pattern::expanded_size;

/// Cost of all rules of one load, at most. An automaton takes 10 to 60 bytes for each unit, and loading a quarter of
/// a microsecond: so about 100 MB and half a second in all.
pub const COST_MAX: usize = 2_000_000;

/// What a trigger costs: its bytes in the prefilter, and its part in choosing how triggers are told apart.
pub const TRIGGER_COST: usize = 64;

/// What is left of [`COST_MAX`].
pub struct Budget(Cell<Option<usize>>);

impl Budget {
    pub fn new(cost: usize) -> Budget {
        Budget(Cell::new(Some(cost)))
    }

    /// Takes a cost, or says that it is too much. From then on nothing is left for anything.
    pub fn charge(&self, cost: usize) -> Result<(), String> {
        let left = self.0.get().and_then(|left| left.checked_sub(cost));
        self.0.set(left);
        left.map(|_| ()).ok_or_else(|| {
            "the rules up to here are too large together, the repetitions of their regexes written out: simplify \
             them, this one first, or load fewer rules"
                .to_owned()
        })
    }

    /// Whether something was refused, so that nothing more need be read.
    pub fn is_spent(&self) -> bool {
        self.0.get().is_none()
    }
}

/// What the automata of a regex cost: their states, and for each state a place for each group.
pub fn cost_of(hir: &Hir) -> usize {
    expanded_size(hir).saturating_mul(1 + hir.properties().explicit_captures_len())
}
