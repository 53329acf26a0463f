//! Which rules of a shape may match at a place, asked of 64 rules at once: each byte around the place, and each
//! fact of what was found there, leaves the rules that allow it. So the cost of a place grows with its true
//! rules, hardly with how many there are.

use super::Hit;
use crate::rules::gate::{AROUND, Gate};

/// The highest value of a fact that is told apart; higher ones count as this.
pub const FACT_MAX: usize = 64;

/// Rules of one shape, by their gates.
#[derive(Default)]
pub struct Places(Vec<Group>);

/// Up to 64 rules; bit `n` of a mask is for the rule `rules[n]`.
struct Group {
    rules: Vec<u32>,
    /// By a byte's place around the trigger, and the byte.
    around: Box<[[u64; 256]; AROUND]>,
    digits: [u64; FACT_MAX + 1],
    len: [u64; FACT_MAX + 1],
}

impl Group {
    fn new() -> Group {
        Group {
            rules: Vec::new(),
            around: Box::new([[0; 256]; AROUND]),
            digits: [0; FACT_MAX + 1],
            len: [0; FACT_MAX + 1],
        }
    }

    /// Those of `rules` that the bytes around `at` allow. Beyond the ends of the chunk anything may stand.
    #[inline(always)]
    fn allowed(&self, mut rules: u64, bytes: &[u8], at: usize) -> u64 {
        let (tables, from) = if at == 0 { (&self.around[1..], 0) } else { (&self.around[..], at - 1) };
        for (table, &byte) in tables.iter().zip(&bytes[from..]) {
            rules &= table[usize::from(byte)];
            // Most places end at their first bytes.
            if rules == 0 {
                break;
            }
        }
        rules
    }
}

impl Places {
    /// Adds a rule that asks for at least `digits_min` digits, and for a length that `len_allowed` allows.
    pub fn add(&mut self, rule: u32, gate: &Gate, digits_min: usize, len_allowed: impl Fn(usize) -> bool) {
        if self.0.last().is_none_or(|group| group.rules.len() == u64::BITS as usize) {
            self.0.push(Group::new());
        }
        let group = self.0.last_mut().expect("one was just made if there was none");
        let bit = 1 << group.rules.len();
        group.rules.push(rule);
        for (table, set) in group.around.iter_mut().zip(&gate.around) {
            (0..=u8::MAX).filter(|&byte| set.contains(byte)).for_each(|byte| table[usize::from(byte)] |= bit);
        }
        group.digits.iter_mut().skip(digits_min).for_each(|rules| *rules |= bit);
        let allowed = group.len.iter_mut().enumerate().filter(|(len, _)| len_allowed(*len));
        allowed.for_each(|(_, rules)| *rules |= bit);
    }

    /// Adds the hits at `at`, where there are `digits` digits, and something of the length `len`.
    #[inline(always)]
    pub fn push(&self, bytes: &[u8], at: usize, digits: usize, len: usize, hits: &mut Vec<Hit>) {
        for group in &self.0 {
            let mut rules = group.digits[digits.min(FACT_MAX)] & group.len[len.min(FACT_MAX)];
            if rules != 0 {
                rules = group.allowed(rules, bytes, at);
            }
            while rules != 0 {
                hits.push(Hit { rule: group.rules[rules.trailing_zeros() as usize], at, len: 1 });
                rules &= rules - 1;
            }
        }
    }
}
