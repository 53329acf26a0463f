//! What a shape rule's regex says of the bytes at its trigger, so that the prefilter can pass over most
//! places without asking the regex. A gate may let too much through, never too little.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

use super::Lead;

/// Digits of a first group that are told apart; longer ones count as this many.
pub const GROUP_MAX: usize = 33;

/// Conditions on the place of a trigger.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gate {
    /// The byte at the trigger.
    pub first_byte: [bool; 256],
    /// Bit `n`: the group of digits at the trigger may have `n` digits.
    pub first_group: u64,
    /// No letter, digit or `_` stands before the trigger.
    pub starts_word: bool,
}

impl Gate {
    /// Lets everything through.
    pub fn open() -> Gate {
        Gate { first_byte: [true; 256], first_group: u64::MAX, starts_word: false }
    }

    /// For a trigger that stands `lead` bytes behind the start of a match, at the first digit of it.
    pub fn of(hir: &Hir, lead: Lead) -> Gate {
        let mut gate = Gate { first_group: first_groups(hir), ..Gate::open() };
        if lead.max == 0 {
            let mut first_byte = [false; 256];
            if !first_bytes(hir, &mut first_byte) {
                gate.first_byte = first_byte;
            }
            gate.starts_word = hir.properties().look_set_prefix().contains(Look::WordAscii)
                && (0..=u8::MAX).all(|byte| !gate.first_byte[usize::from(byte)] || is_word(byte));
        }
        gate
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Marks the bytes that a match of `hir` may begin with; true if it may be empty.
fn first_bytes(hir: &Hir, set: &mut [bool; 256]) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Literal(literal) => {
            literal.0.first().inspect(|&&byte| set[usize::from(byte)] = true);
            literal.0.is_empty()
        }
        HirKind::Class(Class::Bytes(class)) => {
            class
                .iter()
                .flat_map(|range| range.start()..=range.end())
                .for_each(|byte| set[usize::from(byte)] = true);
            false
        }
        HirKind::Class(Class::Unicode(_)) => {
            set.fill(true);
            false
        }
        HirKind::Repetition(repetition) => first_bytes(&repetition.sub, set) || repetition.min == 0,
        HirKind::Capture(capture) => first_bytes(&capture.sub, set),
        HirKind::Concat(parts) => parts.iter().all(|part| first_bytes(part, set)),
        HirKind::Alternation(branches) => {
            let mut may_be_empty = false;
            for branch in branches {
                may_be_empty |= first_bytes(branch, set);
            }
            may_be_empty
        }
    }
}

/// Where a match may be in its first group of digits: bit `n` for `n` digits so far.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Groups {
    /// Still in it; bit 0 is before it.
    open: u64,
    /// Behind it.
    closed: u64,
}

/// The lengths that the first group of digits of a match may have.
fn first_groups(hir: &Hir) -> u64 {
    let end = walk(hir, Groups { open: 1, closed: 0 });
    // A match that ends within the group says nothing of how it goes on, nor does one without digits.
    let at_end = if hir.properties().look_set_suffix().contains(Look::WordAscii) {
        end.open
    } else {
        u64::MAX << end.open.trailing_zeros().min(63)
    };
    let at_end = if end.open == 0 { 0 } else { at_end };
    if end.open & 1 != 0 { u64::MAX } else { end.closed | at_end }
}

fn walk(hir: &Hir, from: Groups) -> Groups {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => from,
        HirKind::Literal(literal) => literal
            .0
            .iter()
            .fold(from, |from, byte| step(from, byte.is_ascii_digit(), !byte.is_ascii_digit())),
        HirKind::Class(Class::Bytes(class)) => {
            let bytes = || class.iter().flat_map(|range| range.start()..=range.end());
            step(from, bytes().any(|byte| byte.is_ascii_digit()), bytes().any(|byte| !byte.is_ascii_digit()))
        }
        HirKind::Class(Class::Unicode(_)) => step(from, true, true),
        HirKind::Capture(capture) => walk(&capture.sub, from),
        HirKind::Concat(parts) => parts.iter().fold(from, |from, part| walk(part, from)),
        HirKind::Alternation(branches) => {
            let ends = branches.iter().map(|branch| walk(branch, from));
            ends.fold(Groups { open: 0, closed: 0 }, either)
        }
        HirKind::Repetition(repetition) => {
            let (mut now, mut ends) = (from, Groups { open: 0, closed: 0 });
            for round in 0..=repetition.max.unwrap_or(u32::MAX) {
                if round >= repetition.min {
                    let more = either(ends, now);
                    if more == ends {
                        break;
                    }
                    ends = more;
                }
                now = walk(&repetition.sub, now);
            }
            ends
        }
    }
}

fn either(a: Groups, b: Groups) -> Groups {
    Groups { open: a.open | b.open, closed: a.closed | b.closed }
}

fn step(from: Groups, digit: bool, other: bool) -> Groups {
    let mut to = Groups { open: 0, closed: from.closed };
    if digit {
        let longest = from.open & (1 << GROUP_MAX);
        to.open |= ((from.open << 1) & ((1 << (GROUP_MAX + 1)) - 1)) | longest;
    }
    if other {
        to.open |= from.open & 1;
        to.closed |= from.open & !1;
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::pattern::parse;

    fn lengths(regex: &str) -> Vec<u32> {
        let groups = first_groups(&parse(regex).unwrap().hir);
        (0..12).filter(|n| groups >> n & 1 != 0).collect()
    }

    #[test]
    fn first_groups_have_the_lengths_that_the_regex_allows() {
        assert_eq!(lengths(r"\b\d{3}-\d{2}-\d{4}\b"), [3]);
        assert_eq!(lengths(r"\b\d{3}[ -]?\d{3}\b"), [3, 6]);
        assert_eq!(lengths(r"\b(?:\d[ -]?){3}\d\b"), [1, 2, 3, 4]);
        assert_eq!(lengths(r"\b[A-Z]{2}\d{6}[A-D]\b"), [6]);
        assert_eq!(lengths(r"\b(?:\+|00)?\d{4,5}\b"), [4, 5, 6, 7]);
        assert_eq!(lengths(r"\b\d{9}"), [9, 10, 11]);
        assert_eq!(lengths(r"[a-z]{3}").len(), 12);
    }

    #[test]
    fn first_bytes_and_boundaries_are_told_for_a_match_that_starts_at_its_trigger() {
        let gate = |regex: &str, max: usize| Gate::of(&parse(regex).unwrap().hir, Lead { min: 0, max });
        let capital = gate(r"\b[A-Z]{2}\d{6}\b", 0);
        assert!(
            capital.starts_word
                && capital.first_byte[usize::from(b'Q')]
                && !capital.first_byte[usize::from(b'q')]
        );
        assert!(!gate(r"[A-Z]{2}\d{6}", 0).starts_word);
        assert!(!gate(r"\b-?\d{6}", 0).starts_word);
        assert_eq!(gate(r"\b[A-Z]{2}\d{6}\b", 2).first_byte, [true; 256]);
    }
}
