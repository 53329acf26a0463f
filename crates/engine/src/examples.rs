//! A rule's examples, run as its test: every positive is found at the level the rule promises, and no
//! negative is reported.

use std::sync::Arc;

use domesday_model::Score;

use crate::rules::{Rule, RuleSet};
use crate::scan::{Chunk, Scanner, Scratch};

/// Runs the examples of the rules that `wanted` selects, among all rules of the set; one line for each
/// that is not as it should be.
pub fn check_examples(rules: &Arc<RuleSet>, wanted: impl Fn(&Rule) -> bool) -> Vec<String> {
    let scanner = Scanner::new(Arc::clone(rules));
    let mut scratch = Scratch::new();
    let mut failures = Vec::new();
    let mut found = Vec::new();
    for (index, rule) in rules.rules().iter().enumerate().filter(|(_, rule)| wanted(rule)) {
        let mut best = |text: &str| {
            found.clear();
            scanner.scan(&Chunk::whole(text.as_bytes(), b""), &mut scratch, &mut found);
            found.iter().filter(|m| m.rule as usize == index).map(|m| m.score).max()
        };
        let mut fail = |what: String, text: &str| {
            failures.push(format!("{}: rule `{}`: {what}: {text:?}", rule.family, rule.id))
        };
        for text in &rule.positive {
            match best(text) {
                None => fail("a positive example is not found".into(), text),
                Some(score) if score < rule.min_level.floor() => {
                    fail(format!("a positive example scores {}, below {}", score.0, rule.min_level), text);
                }
                Some(_) => {}
            }
        }
        for text in &rule.negative {
            if let Some(score) = best(text).filter(|&score| score >= Score::MEDIUM) {
                fail(format!("a negative example is found with score {}", score.0), text);
            }
        }
    }
    failures
}
