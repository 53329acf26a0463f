//! What is known of the last value by itself. Several rules find the same value, one after another, and most ask it the
//! same questions: whether it is a placeholder, how random it is, what the checks of secrets say. Each is answered once.
//! It must not know anything but the value: an answer is the same for every rule.

use std::ops::Range;

use super::{documented, value};
use crate::validators::{Check, Verdict};

/// The answers so far; for rules of one set and values of one text.
#[derive(Default)]
pub struct Facts<'r> {
    span: Range<usize>,
    known: Known<'r>,
}

#[derive(Default)]
struct Known<'r> {
    placeholder: Option<bool>,
    stopped: Option<bool>,
    documented: Option<bool>,
    distinct: Option<usize>,
    entropy: Option<f64>,
    /// By the name of the check.
    verdicts: Vec<(&'r str, Verdict)>,
}

impl<'r> Facts<'r> {
    /// Begins with the value at `span`, unless it is the last one.
    pub fn begin(&mut self, span: &Range<usize>) {
        if self.span != *span {
            self.span = span.clone();
            let mut verdicts = std::mem::take(&mut self.known.verdicts);
            verdicts.clear();
            self.known = Known { verdicts, ..Known::default() };
        }
    }

    pub fn is_placeholder(&mut self, value: &[u8]) -> bool {
        *self.known.placeholder.get_or_insert_with(|| value::is_placeholder(value))
    }

    /// Whether it is stopped, by `words` among others.
    pub fn is_stopped(&mut self, value: &[u8], words: &[String]) -> bool {
        if self.is_placeholder(value) {
            return true;
        }
        if !words.is_empty() {
            return value::is_everyday(value, words);
        }
        *self.known.stopped.get_or_insert_with(|| value::is_everyday(value, words))
    }

    pub fn is_documented(&mut self, value: &[u8]) -> bool {
        *self.known.documented.get_or_insert_with(|| documented::is_documented(value))
    }

    pub fn distinct(&mut self, value: &[u8]) -> usize {
        *self.known.distinct.get_or_insert_with(|| value::distinct(value))
    }

    pub fn entropy(&mut self, value: &[u8]) -> f64 {
        *self.known.entropy.get_or_insert_with(|| value::entropy(value))
    }

    /// What the check of this name says.
    pub fn verdict(&mut self, value: &[u8], name: &'r str, check: Check) -> Verdict {
        let verdicts = &mut self.known.verdicts;
        if let Some((_, verdict)) = verdicts.iter().find(|(known, _)| *known == name) {
            return verdict.clone();
        }
        let verdict = check(value);
        verdicts.push((name, verdict.clone()));
        verdict
    }
}
