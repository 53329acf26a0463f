//! Hostile input costs a bounded amount of work per byte. The bound is on bytes handed to regexes, not on
//! time: that is what could grow out of proportion.

mod texts;

use std::sync::Arc;

use domesday_engine::{Chunk, Literal, Rule, RuleSet, Scanner, Scratch, Trigger};
use texts::unit::Unit;

const LEN: usize = 1 << 16;
/// Bytes of a text that is made of one rule.
const RULE_LEN: usize = 1 << 12;
/// Bytes handed to regexes per byte of input, over all rules, at most.
const WINDOW_BYTES_MAX: u64 = 1024;
/// The same in a text of one rule's values, at most: several rules look at each of them.
const RULE_WINDOW_BYTES_MAX: u64 = 2 * WINDOW_BYTES_MAX;

fn scanner() -> Scanner {
    Scanner::new(Arc::new(RuleSet::builtin().unwrap_or_else(|errors| panic!("{errors}"))))
}

/// Bytes handed to regexes per byte of the text.
fn work(scanner: &Scanner, text: &[u8], scratch: &mut Scratch) -> u64 {
    let before = scratch.window_bytes();
    scanner.scan(&Chunk::whole(text, b""), scratch, &mut Vec::new());
    (scratch.window_bytes() - before) / text.len() as u64
}

/// The rules that did most of it.
fn worst(scanner: &Scanner, scratch: &Scratch) -> String {
    let mut by_rule: Vec<_> = scratch.window_bytes_by_rule().zip(scanner.rules().rules()).collect();
    by_rule.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    let worst: Vec<_> = by_rule.iter().take(4).map(|(bytes, rule)| format!("{} {bytes}", rule.id)).collect();
    worst.join(", ")
}

#[test]
fn hostile_input_stays_linear() {
    let scanner = scanner();
    let mut failures = Vec::new();
    for (name, unit) in texts::all() {
        let mut scratch = Scratch::new();
        let short = work(&scanner, &unit.fill(LEN / 8), &mut scratch);
        if short > WINDOW_BYTES_MAX {
            failures.push(format!("{name}: {short} window bytes per byte: {}", worst(&scanner, &scratch)));
            continue;
        }
        let long = work(&scanner, &unit.fill(LEN), &mut scratch);
        if long > short + short / 4 + 1 {
            failures
                .push(format!("{name}: {long} window bytes per byte in a long text, {short} in a short one"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// What a rule's first example and trigger make, over and over.
fn units_of(rule: &Rule) -> Vec<(String, Unit)> {
    let examples = rule.positive.iter().take(1);
    let between = examples.flat_map(|example| ["", "\n"].map(|between| format!("{example}{between}")));
    let literals = match &rule.trigger {
        Trigger::Literals(literals) => &literals[..],
        Trigger::Shape(_) => &[],
    };
    let literal = |literal: &Literal| String::from_utf8_lossy(&literal.bytes).into_owned();
    let units = between.chain(literals.iter().take(1).map(literal)).filter(|unit| !unit.is_empty());
    units.flat_map(|unit| texts::both_ways(&unit)).collect()
}

/// Of every few rules, so that the test is quick; the example `texts` measures all.
#[test]
fn what_rules_look_for_over_and_over_costs_a_bounded_amount() {
    const EVERY: usize = 9;
    let scanner = scanner();
    let mut scratch = Scratch::new();
    let units = scanner.rules().rules().iter().step_by(EVERY).flat_map(units_of);
    let costs = units.map(|(name, unit)| (work(&scanner, &unit.fill(RULE_LEN), &mut scratch), name));
    let failures: Vec<_> = costs.filter(|(cost, _)| *cost > RULE_WINDOW_BYTES_MAX).collect();
    assert!(failures.is_empty(), "{failures:#?}");
}
