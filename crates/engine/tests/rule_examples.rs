//! Every built-in rule's examples are its test: the positives are found wherever they stand in a chunk,
//! the negatives are not.

use std::sync::Arc;

use domesday_engine::{Chunk, LOOKAHEAD, LOOKBEHIND, Match, Rule, RuleSet, Scanner, Scratch};
use domesday_model::Score;

fn scanner() -> Scanner {
    let rules = RuleSet::builtin().unwrap_or_else(|errors| panic!("{errors}"));
    Scanner::new(Arc::new(rules))
}

fn scan(scanner: &Scanner, scratch: &mut Scratch, text: &[u8]) -> Vec<Match> {
    let mut out = Vec::new();
    scanner.scan(&Chunk::whole(text, b""), scratch, &mut out);
    out
}

/// The best score of `rule` among `matches`.
fn best(scanner: &Scanner, rule: &Rule, matches: &[Match]) -> Option<Score> {
    let of_rule = |found: &&Match| scanner.rules().rules()[found.rule as usize].id == rule.id;
    matches.iter().filter(of_rule).map(|found| found.score).max()
}

fn describe(scanner: &Scanner, matches: &[Match], text: &str) -> String {
    let line = |found: &Match| {
        let rule = &scanner.rules().rules()[found.rule as usize].id;
        format!("    {rule} {} at {:?} ({}) in {text:?}", found.score.0, found.span, found.reasons)
    };
    matches.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn positives_are_found_and_negatives_are_not() {
    let scanner = scanner();
    let mut scratch = Scratch::new();
    let mut failures = Vec::new();
    let mut checked = 0;
    for rule in scanner.rules().rules() {
        for text in &rule.positive {
            checked += 1;
            let matches = scan(&scanner, &mut scratch, text.as_bytes());
            if best(&scanner, rule, &matches).is_none_or(|score| score < rule.min_level.floor()) {
                let others = describe(&scanner, &matches, text);
                failures
                    .push(format!("{}: {}: positive not found: {text:?}\n{others}", rule.family, rule.id));
            }
        }
        for text in &rule.negative {
            checked += 1;
            let matches = scan(&scanner, &mut scratch, text.as_bytes());
            if best(&scanner, rule, &matches).is_some_and(|score| score >= Score::MEDIUM) {
                let found = describe(&scanner, &matches, text);
                failures.push(format!("{}: {}: negative found: {text:?}\n{found}", rule.family, rule.id));
            }
        }
    }
    assert!(checked > 0, "no rule has examples");
    assert!(failures.is_empty(), "{} of {checked} examples fail:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn positives_are_found_wherever_they_stand_in_a_chunk() {
    let scanner = scanner();
    let mut scratch = Scratch::new();
    for rule in scanner.rules().rules() {
        for text in &rule.positive {
            let alone = scan(&scanner, &mut scratch, text.as_bytes());
            for offset in [1, 2, 3, 63, 64, 65, LOOKBEHIND - 1, LOOKBEHIND + 7] {
                let mut bytes = vec![b'\n'; offset];
                bytes.extend_from_slice(text.as_bytes());
                bytes.resize(bytes.len() + LOOKAHEAD, b'\n');
                let moved = scan(&scanner, &mut scratch, &bytes);
                let expected = best(&scanner, rule, &alone);
                assert_eq!(best(&scanner, rule, &moved), expected, "{} at {offset}: {text:?}", rule.id);
            }
        }
    }
}
