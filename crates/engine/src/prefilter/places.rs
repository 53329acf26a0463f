//! Which rules of a shape may match at a place, asked of 64 rules at once: each byte around the place, and each
//! fact of what was found there, leaves the rules that allow it. So the cost of a place grows with its true
//! rules, hardly with how many there are.

use super::Hit;
use super::simd::SetPlaces;
use crate::rules::gate::{AROUND, Gate};

/// The highest value of a fact that is told apart; higher ones count as this.
pub const FACT_MAX: usize = 64;

/// Bytes around a place that are looked at whatever they are: with them, few places are left that have no rule.
const NEAR_BYTES: usize = 3;

/// Rules of one shape, by their gates.
#[derive(Default)]
pub struct Places(Vec<Group>);

/// Tells of a place that may be of a shape what is known of it. Implementations must be inlined.
pub trait Shaped {
    fn facts(&self, place: usize) -> Facts;
}

/// What is known of a place before its bytes are looked at.
pub struct Facts {
    /// From where the search began.
    pub place: usize,
    pub digits: usize,
    pub len: usize,
    /// Whether it is of the shape at all.
    pub holds: bool,
}

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

    /// The rules that allow these facts, the byte before a place and the first of it.
    #[inline(always)]
    fn at_first(&self, near: &[u8; NEAR_BYTES], facts: &Facts) -> u64 {
        let mut rules = self.digits[facts.digits] & self.len[facts.len];
        for (&byte, table) in near.iter().zip(&*self.around) {
            rules &= table[usize::from(byte)];
        }
        rules
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

    /// Adds the hits at all `places`, counted from `from`. Which of them have a rule cannot be foreseen, and most have
    /// none: those are left out without a branch.
    #[inline(always)]
    pub fn push_all(
        &self,
        bytes: &[u8],
        from: usize,
        places: &mut SetPlaces,
        shape: &impl Shaped,
        hits: &mut Vec<Hit>,
    ) {
        let mut kept = 0;
        for next in 0..places.len() {
            let facts = shape.facts(places.get(next));
            let near = (from + facts.place).checked_sub(1).and_then(|before| bytes[before..].first_chunk());
            let mut rules = u64::from(near.is_none());
            if let Some(near) = near {
                for group in &self.0 {
                    rules |= group.at_first(near, &facts);
                }
            }
            places.put(kept, next);
            kept += usize::from(facts.holds & (rules != 0));
        }
        for next in 0..kept {
            let Facts { place, digits, len, .. } = shape.facts(places.get(next));
            self.push(bytes, from + place, digits, len, hits);
        }
    }

    /// Adds the hits at `at`, where there are `digits` digits, and something of the length `len`.
    #[inline(always)]
    pub fn push(&self, bytes: &[u8], at: usize, digits: usize, len: usize, hits: &mut Vec<Hit>) {
        for group in &self.0 {
            let mut rules = group.digits[digits] & group.len[len];
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
