//! What a shape rule's regex says of the bytes at its trigger, so that the prefilter can pass over most
//! places without asking the regex. A gate may let too much through, never too little.

use std::sync::{Arc, LazyLock};

use regex_syntax::hir::{Class, Hir, HirKind, Look};

use super::Lead;
use super::packed::{Packed, packed_fields};

/// Digits of a first group that are told apart; longer ones count as this many.
pub const GROUP_MAX: usize = 33;

/// Bytes of the place of a trigger that a gate looks at: the one before it, and those from it on.
pub const AROUND: usize = 17;
/// Places that are told apart behind a trigger.
const BEHIND: usize = AROUND - 1;

/// A set of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ByteSet([u64; 4]);

impl ByteSet {
    pub const EMPTY: ByteSet = ByteSet([0; 4]);
    pub const FULL: ByteSet = ByteSet([u64::MAX; 4]);

    pub fn of(wanted: impl Fn(u8) -> bool) -> ByteSet {
        let mut set = ByteSet::EMPTY;
        (0..=u8::MAX).filter(|&byte| wanted(byte)).for_each(|byte| set.insert(byte));
        set
    }

    pub fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 != 0
    }

    fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    pub fn add(&mut self, other: ByteSet) {
        self.0.iter_mut().zip(other.0).for_each(|(a, b)| *a |= b);
    }

    fn and(mut self, other: ByteSet) -> ByteSet {
        self.0.iter_mut().zip(other.0).for_each(|(a, b)| *a &= b);
        self
    }

    fn not(self) -> ByteSet {
        ByteSet(self.0.map(|bits| !bits))
    }

    pub fn is_within(self, other: ByteSet) -> bool {
        self.and(other) == self
    }

    /// Whether no byte is in both.
    pub fn is_apart_from(self, other: ByteSet) -> bool {
        self.and(other).is_empty()
    }

    fn is_empty(&self) -> bool {
        *self == ByteSet::EMPTY
    }

    /// The byte of a set of one.
    pub fn single(self) -> Option<u8> {
        let word = self.0.iter().position(|bits| *bits != 0)?;
        let byte = 64 * word + self.0[word].trailing_zeros() as usize;
        let byte = byte as u8;
        (self == [byte].into_iter().collect()).then_some(byte)
    }
}

impl FromIterator<u8> for ByteSet {
    fn from_iter<I: IntoIterator<Item = u8>>(bytes: I) -> ByteSet {
        let mut set = ByteSet::EMPTY;
        bytes.into_iter().for_each(|byte| set.insert(byte));
        set
    }
}

/// Most sets of a gate are full, so these take a byte.
impl Packed for ByteSet {
    fn pack(&self, out: &mut Vec<u8>) {
        let some = Some(self.0).filter(|_| *self != ByteSet::FULL);
        some.pack(out);
    }

    fn unpack(from: &mut &[u8]) -> Option<ByteSet> {
        Some(Option::unpack(from)?.map_or(ByteSet::FULL, ByteSet))
    }
}

packed_fields!(Gate { around, first_group });

/// Most gates are open, so these are one.
impl Packed for Arc<Gate> {
    fn pack(&self, out: &mut Vec<u8>) {
        let some = Some(Gate::clone(self)).filter(|gate| *gate != Gate::open());
        some.pack(out);
    }

    fn unpack(from: &mut &[u8]) -> Option<Arc<Gate>> {
        static OPEN: LazyLock<Arc<Gate>> = LazyLock::new(|| Arc::new(Gate::open()));
        Some(Option::unpack(from)?.map_or_else(|| Arc::clone(&OPEN), Arc::new))
    }
}

/// Conditions on the place of a trigger.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gate {
    /// What the byte before the trigger may be, and each from it on.
    pub around: [ByteSet; AROUND],
    /// Bit `n`: the group of digits at the trigger may have `n` digits.
    pub first_group: u64,
}

/// What a trigger of one byte is.
#[derive(Clone, Copy)]
pub struct Start {
    /// What it may be.
    trigger: ByteSet,
    /// What cannot stand before it.
    kin: ByteSet,
}

impl Start {
    /// The first digit of a group.
    pub fn of_digits() -> Start {
        let digits = ByteSet::of(|byte| byte.is_ascii_digit());
        Start { trigger: digits, kin: digits }
    }

    /// Any byte.
    pub fn of_any() -> Start {
        Start { trigger: ByteSet::FULL, kin: ByteSet::EMPTY }
    }

    /// The first letter or digit of a word.
    pub fn of_word() -> Start {
        Start { trigger: ByteSet::of(|byte| byte.is_ascii_alphanumeric()), kin: ByteSet::of(is_word) }
    }
}

impl Gate {
    /// Lets everything through.
    pub fn open() -> Gate {
        Gate { around: [ByteSet::FULL; AROUND], first_group: u64::MAX }
    }

    /// For a trigger that stands `lead` bytes behind the start of a match. If it is the first digit of the
    /// match, or of a group that is, `first` says so.
    pub fn of(hir: &Hir, lead: Lead, start: Start, first: bool) -> Gate {
        let first_group = if first { first_groups(hir) } else { u64::MAX };
        Gate { around: Around::of(hir, lead, start), first_group }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Where a match may be, relative to its trigger.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Where {
    /// Bit `n`: `n` bytes before the trigger, by what the last of them was.
    start: u64,
    line_start: u64,
    kin: u64,
    other: u64,
    /// Bit `n`: the next byte is `n` behind the trigger.
    after: u64,
    /// The same, and a line ends here.
    line_end: u64,
}

impl Where {
    const NOWHERE: Where = Where { start: 0, line_start: 0, kin: 0, other: 0, after: 0, line_end: 0 };

    fn or(self, other: Where) -> Where {
        Where {
            start: self.start | other.start,
            line_start: self.line_start | other.line_start,
            kin: self.kin | other.kin,
            other: self.other | other.other,
            after: self.after | other.after,
            line_end: self.line_end | other.line_end,
        }
    }
}

/// One bit further; what falls off the end, bit `last`, stays there.
fn further(bits: u64, last: u32) -> u64 {
    ((bits << 1) & (u64::MAX >> (63 - last))) | (bits & (1 << last))
}

/// Gathers what may stand around a trigger, by following every way through a regex at once.
struct Around {
    start: Start,
    /// Bit `n`: the trigger may stand `n` bytes behind the start of the match.
    leads: u64,
    /// Whether a match begins at the boundary of a word.
    begins_word: bool,
    sets: [ByteSet; AROUND],
    /// What may stand before the trigger within the match.
    others: ByteSet,
    word: ByteSet,
    newline: ByteSet,
}

impl Around {
    fn of(hir: &Hir, lead: Lead, start: Start) -> [ByteSet; AROUND] {
        let (min, max) = (lead.min.min(63) as u32, lead.max.min(63) as u32);
        let mut around = Around {
            start,
            leads: (u64::MAX << min) & (u64::MAX >> (63 - max)),
            begins_word: hir.properties().look_set_prefix().contains(Look::WordAscii),
            sets: [ByteSet::EMPTY; AROUND],
            others: ByteSet::EMPTY,
            word: ByteSet::of(is_word),
            newline: ByteSet::of(|byte| matches!(byte, b'\n' | b'\r')),
        };
        let mut end = around.walk(hir, Where { start: 1, ..Where::NOWHERE });
        // What was gathered before the trigger is complete only now, so it is followed once more.
        around.sets = [ByteSet::EMPTY; AROUND];
        end = end.or(around.walk(hir, Where { start: 1, ..Where::NOWHERE }));
        around.finish(hir, end)
    }

    /// Behind the end of a match stands anything.
    fn finish(mut self, hir: &Hir, end: Where) -> [ByteSet; AROUND] {
        let mut last = ByteSet::EMPTY;
        last_bytes(hir, &mut last);
        let ends_word = hir.properties().look_set_suffix().contains(Look::WordAscii)
            && last.and(self.word.not()).is_empty();
        let next = if ends_word { self.word.not() } else { ByteSet::FULL };
        for at in 0..BEHIND {
            if end.after >> at & 1 != 0 {
                self.sets[1 + at].add(next);
            }
            if end.line_end >> at & 1 != 0 {
                self.sets[1 + at].add(self.newline);
            }
            if (end.after | end.line_end) & ((1 << at) - 1) != 0 {
                self.sets[1 + at] = ByteSet::FULL;
            }
        }
        self.sets
    }

    fn walk(&mut self, hir: &Hir, from: Where) -> Where {
        match hir.kind() {
            HirKind::Empty => from,
            HirKind::Look(Look::StartLF | Look::StartCRLF) if from.start != 0 => {
                Where { start: 0, line_start: from.line_start | from.start, ..from }
            }
            HirKind::Look(Look::EndLF | Look::EndCRLF) => {
                Where { after: 0, line_end: from.line_end | from.after, ..from }
            }
            HirKind::Look(_) => from,
            HirKind::Literal(literal) => literal.0.iter().fold(from, |from, &byte| {
                let mut set = ByteSet::EMPTY;
                set.insert(byte);
                self.step(from, set)
            }),
            HirKind::Class(class) => self.walk_class(class, from),
            HirKind::Capture(capture) => self.walk(&capture.sub, from),
            HirKind::Concat(parts) => parts.iter().fold(from, |from, part| self.walk(part, from)),
            HirKind::Alternation(branches) => {
                branches.iter().fold(Where::NOWHERE, |ends, branch| ends.or(self.walk(branch, from)))
            }
            HirKind::Repetition(repetition) => {
                let (mut now, mut ends) = (from, Where::NOWHERE);
                for round in 0..=repetition.max.unwrap_or(u32::MAX) {
                    if round >= repetition.min {
                        let more = ends.or(now);
                        if more == ends {
                            break;
                        }
                        ends = more;
                    }
                    if Some(round) != repetition.max {
                        now = self.walk(&repetition.sub, now);
                    }
                }
                ends
            }
        }
    }

    fn walk_class(&mut self, class: &Class, from: Where) -> Where {
        let bytes = match class {
            Class::Bytes(class) => Some(class.clone()),
            Class::Unicode(class) => class.to_byte_class(),
        };
        if let Some(bytes) = bytes {
            let mut set = ByteSet::EMPTY;
            bytes.iter().flat_map(|range| range.start()..=range.end()).for_each(|byte| set.insert(byte));
            return self.step(from, set);
        }
        // A character of one to four bytes.
        let (mut now, mut ends) = (from, Where::NOWHERE);
        for _ in 0..4 {
            now = self.step(now, ByteSet::FULL);
            ends = ends.or(now);
        }
        ends
    }

    fn step(&mut self, from: Where, bytes: ByteSet) -> Where {
        let mut to = Where::NOWHERE;
        let before = from.start | from.line_start | from.kin | from.other;
        // Further than the longest lead there is no trigger.
        let before = further(before, 63) & (u64::MAX >> self.leads.leading_zeros());
        let others = bytes.and(self.start.kin.not());
        if !bytes.and(self.start.kin).is_empty() {
            to.kin = before;
        }
        if !others.is_empty() && before != 0 {
            to.other = before;
            self.others.add(others);
        }
        let triggers = bytes.and(self.start.trigger);
        if !triggers.is_empty() {
            let outside = self.start.kin.not();
            let begins_word = self.begins_word && triggers.and(self.word.not()).is_empty();
            let mut declare = |states: u64, previous: ByteSet| {
                if states & self.leads != 0 {
                    self.sets[0].add(previous);
                    self.sets[1].add(triggers);
                    to.after |= 1 << 1;
                }
            };
            declare(from.start, if begins_word { outside.and(self.word.not()) } else { outside });
            declare(from.line_start, self.newline);
            declare(from.other, self.others);
        }
        let after = from.after | from.line_end;
        for at in (0..BEHIND).filter(|at| after >> at & 1 != 0) {
            self.sets[1 + at].add(bytes);
        }
        to.after |= further(after, BEHIND as u32);
        to
    }
}

/// Whether what stands before whatever follows `parts` in a match is no part of a word.
pub fn ends_apart(parts: &[Hir]) -> bool {
    let mut last = ByteSet::EMPTY;
    _ = parts.iter().rev().all(|part| last_bytes(part, &mut last));
    last.and(ByteSet::of(is_word)).is_empty()
}

/// Adds the bytes that a match of `hir` may end with; true if it may be empty.
fn last_bytes(hir: &Hir, set: &mut ByteSet) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Literal(literal) => {
            literal.0.last().inspect(|&&byte| set.insert(byte));
            literal.0.is_empty()
        }
        HirKind::Class(Class::Bytes(class)) => {
            class.iter().flat_map(|range| range.start()..=range.end()).for_each(|byte| set.insert(byte));
            false
        }
        HirKind::Class(Class::Unicode(_)) => {
            *set = ByteSet::FULL;
            false
        }
        HirKind::Repetition(repetition) => last_bytes(&repetition.sub, set) || repetition.min == 0,
        HirKind::Capture(capture) => last_bytes(&capture.sub, set),
        HirKind::Concat(parts) => parts.iter().rev().all(|part| last_bytes(part, set)),
        HirKind::Alternation(branches) => {
            let mut may_be_empty = false;
            for branch in branches {
                may_be_empty |= last_bytes(branch, set);
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

    fn gate(regex: &str, lead: (usize, usize), start: Start) -> Gate {
        Gate::of(&parse(regex).unwrap().hir, Lead { min: lead.0, max: lead.1 }, start, true)
    }

    /// Whether the gate lets the trigger at byte `at` of `text` through.
    fn passes(gate: &Gate, text: &str, at: usize) -> bool {
        let place = text.as_bytes()[at - 1..].iter();
        place.zip(&gate.around).all(|(&byte, allowed)| allowed.contains(byte))
    }

    #[test]
    fn first_bytes_and_boundaries_are_told_for_a_match_that_starts_at_its_trigger() {
        let capital = gate(r"\b[A-Z]{2}\d{6}\b", (0, 0), Start::of_word());
        assert!(passes(&capital, " QQ123456 ", 1) && !passes(&capital, " qQ123456 ", 1));
        assert!(!passes(&capital, "_QQ123456 ", 1) && !passes(&capital, " QQ1234567", 1));
        let loose = gate(r"[0-9]{6}", (0, 0), Start::of_digits());
        assert!(passes(&loose, "_123456 ", 1) && passes(&loose, " 1234567", 1));
        assert!(!passes(&loose, "1123456 ", 1));
    }

    #[test]
    fn what_stands_before_a_trigger_within_a_match_is_told() {
        let phone = gate(r"\([2-9][0-9]{2}\) ?[0-9]{3}[ .-][0-9]{4}\b", (0, 6), Start::of_digits());
        assert!(passes(&phone, "(212) 555-1234 ", 6) && passes(&phone, "(212)555-1234 ", 5));
        assert!(!passes(&phone, "=5551234", 1) && !passes(&phone, " 5551234 ", 1));
        let line = gate(r"(?:(?m:^)|[^0-9a-z])[0-9]{4}-[0-9](?:[^0-9]|(?m:$))", (0, 1), Start::of_digits());
        assert!(passes(&line, "\n1234-5\n", 1) && passes(&line, "\"1234-5,", 1));
        assert!(
            !passes(&line, "a1234-5,", 1) && !passes(&line, " 1234-56", 1) && !passes(&line, " 123-45", 1)
        );
        let pair = gate(r"\b[A-Z]{2} ?\d{6}[A-D]\b", (2, 3), Start::of_digits());
        assert!(passes(&pair, "AB 123456C", 3) && passes(&pair, "AB123456C", 2));
        assert!(!passes(&pair, "ab123456C", 2) && !passes(&pair, "AB123456E", 2));
    }
}
