//! A closer look at one value: which rules took it and how sure that is, and which had its form and refused it.

use std::sync::Arc;

use domesday_engine::{Evidence, Explained, Match, Rule, Scanner, Scratch, Verdict, Weight};
use domesday_model::Score;
use domesday_model::fingerprint::preview;

use super::Cell;
use crate::sketch::{Facts, MARKS_MAX, Mark, Value};

/// What a closer look at a value tells.
#[derive(Default)]
pub struct Examined {
    /// Those that a scan reports, and those that a control suppresses.
    pub matches: Vec<Match>,
    pub marks: Vec<Mark>,
    /// Of each rule that took it: what may be shown.
    pub examples: Vec<(Arc<str>, String)>,
}

impl Cell<'_> {
    pub(super) fn examine(&self, scanner: &Scanner, text: &mut Vec<u8>, scratch: &mut Scratch) -> Examined {
        let mut seen = Examined::default();
        for Explained { mut found, verdict } in scanner.explain(&self.write(text), scratch) {
            let Some(span) = self.within(&found) else { continue };
            found.span = span;
            let rule = &scanner.rules().rules()[found.rule as usize];
            let covers = self.covers(&found);
            let facts = match verdict {
                Verdict::Found => self.passed(rule, &found, covers),
                // Rules of the same form are told apart by the column, not by one value of it.
                Verdict::Displaced { .. } if covers => self.passed(rule, &found, covers),
                Verdict::Refused { .. } => Facts(if covers { Facts::COVERS } else { 0 }),
                Verdict::Ignored | Verdict::Allowed
                    if found.suppressed.is_some() && found.score >= scanner.floor() =>
                {
                    seen.matches.push(found);
                    continue;
                }
                _ => continue,
            };
            if facts.has(Facts::PASSED) {
                seen.examples.push((Arc::clone(&rule.id), preview(found.value(self.value))));
            }
            seen.marks.push(Mark { rule: Arc::clone(&rule.id), facts });
            if verdict == Verdict::Found && found.score >= scanner.floor() {
                seen.matches.push(found);
            }
        }
        tidy(&mut seen.marks);
        seen.examples.sort();
        seen.examples.dedup_by(|a, b| a.0 == b.0);
        seen
    }

    /// Whether a match is at least half of the cell, as a value with its unit or a remark is; but of a longer number no
    /// part is a value.
    fn covers(&self, found: &Match) -> bool {
        let (before, rest) = self.value.split_at(found.span.start);
        let (value, after) = rest.split_at(found.span.len());
        let digits = |bytes: &[u8]| bytes.iter().any(u8::is_ascii_digit);
        let part = value.iter().all(u8::is_ascii_digit) && (digits(before) || digits(after));
        2 * value.len() >= self.value.trim_ascii().len() && !part && !is_document(self.value)
    }

    fn passed(&self, rule: &Rule, found: &Match, covers: bool) -> Facts {
        let value = found.value(self.value);
        let mut facts = Facts::PASSED;
        let mut set = |bit, holds| facts |= if holds { bit } else { 0 };
        let reasons = &found.reasons.0;
        let of_words = reasons.iter().filter(|reason| matches!(reason.evidence, Evidence::Keyword(_)));
        let added: i32 =
            of_words.map(|reason| if let Weight::Adds(points) = reason.weight { points } else { 0 }).sum();
        set(Facts::SURE, found.score >= Score::MEDIUM);
        set(Facts::CHECKED, rule.is_checked(value));
        set(Facts::PROVEN, found.reasons.has_proof());
        set(Facts::COVERS, covers);
        set(Facts::BARE, value.iter().all(u8::is_ascii_alphanumeric));
        let alone = i32::from(found.score.0) - added >= i32::from(Score::MEDIUM.0);
        let requires = rule.context.as_ref().is_some_and(|context| context.required);
        set(Facts::ALONE, alone && !requires);
        set(Facts::MADE_UP, reasons.iter().any(|reason| reason.evidence == Evidence::Placeholder));
        Facts(facts)
    }
}

/// One mark per rule, the best; those of rules that took the value first, if there are too many.
fn tidy(marks: &mut Vec<Mark>) {
    marks.sort_by(|a, b| (&a.rule, b.facts).cmp(&(&b.rule, a.facts)));
    marks.sort_by_key(|mark| (Arc::clone(&mark.rule), !mark.facts.has(Facts::PASSED)));
    marks.dedup_by(|a, b| a.rule == b.rule);
    if marks.len() > MARKS_MAX {
        marks.sort_by_key(|mark| !mark.facts.has(Facts::PASSED));
        marks.truncate(MARKS_MAX);
        marks.sort();
    }
}

/// Whether a value is a document, in which values occur, whatever its column is declared as: JSON, XML, a list.
fn is_document(value: &[u8]) -> bool {
    matches!(value.trim_ascii(), [b'{', .., b'}'] | [b'[', .., b']'] | [b'<', .., b'>'])
}

/// What the sketch keeps of a value. A document has as many words as can be.
pub fn value_of(value: &[u8], marks: Arc<[Mark]>) -> Value {
    let value = value.trim_ascii();
    let words = value.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let words = if is_document(value) { u8::MAX } else { words.take(usize::from(u8::MAX)).count() as u8 };
    Value { len: u32::try_from(value.len()).unwrap_or(u32::MAX), words, marks }
}
