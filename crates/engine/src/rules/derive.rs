//! Derives from a regex what the prefilter can look for: literals that every match contains, and how
//! far behind the start of a match they stand. Must not accept a literal that some match lacks: such a
//! match would never be found.

use regex_syntax::hir::{Class, Hir, HirKind};

use super::rarity::rarity_of_any;
use super::{Lead, Literal};

/// Literals of one set, at most: more of them cost more false hits than their length saves.
const SET_MAX: usize = 48;
/// Bytes that a class may have to be written out as literals.
const CLASS_MAX: usize = 8;
/// Bytes of a derived literal, at most; the rest would only be compared again by the regex.
const LITERAL_MAX: usize = 32;
/// Bytes of what is written out as literals, at most: longer parts of a regex are hardly ever few strings.
const EXACT_MAX: usize = 128;
/// Bytes that a literal needs to be worth looking for.
pub const LITERAL_MIN: usize = 3;

/// A set of literals of which every match has one, `lead` bytes behind its start.
#[derive(Clone, Debug)]
pub struct Required {
    pub literals: Vec<Literal>,
    pub lead: Lead,
}

impl Required {
    fn rarity(&self) -> u32 {
        rarity_of_any(self.literals.iter().map(|literal| &literal.bytes[..]))
    }
}

/// The rarest set of literals that every match has one of, each at least [`LITERAL_MIN`] bytes long.
pub fn rarest(hir: &Hir) -> Option<Required> {
    required(hir).into_iter().filter(long_enough).max_by_key(Required::rarity)
}

/// The same of those that stand at a fixed place in every match.
pub fn rarest_placed(hir: &Hir) -> Option<Required> {
    let placed = |set: &Required| set.lead.min == set.lead.max && long_enough(set);
    required(hir).into_iter().filter(placed).max_by_key(Required::rarity)
}

fn long_enough(set: &Required) -> bool {
    set.literals.iter().all(|literal| literal.bytes.len() >= LITERAL_MIN)
}

/// How far behind the start of a match any of the given triggers stands, if the regex tells: every
/// literal of some required set contains one of them, or else every branch of some part has one in its own place.
pub fn lead_of(hir: &Hir, triggers: &[Literal]) -> Option<Lead> {
    required(hir).iter().find_map(|set| lead_in(set, triggers)).or_else(|| match hir.kind() {
        HirKind::Capture(capture) => lead_of(&capture.sub, triggers),
        HirKind::Repetition(repetition) if repetition.min > 0 => lead_of(&repetition.sub, triggers),
        HirKind::Concat(parts) => {
            let mut at = Lead { min: 0, max: 0 };
            parts.iter().find_map(|part| {
                let lead = lead_of(part, triggers).map(|lead| at.then(lead));
                at = at.then(Lead::over(part));
                lead
            })
        }
        HirKind::Alternation(branches) => {
            branches.iter().map(|branch| lead_of(branch, triggers)).reduce(|a, b| Some(a?.or(b?)))?
        }
        _ => None,
    })
}

/// The same for one set of literals.
fn lead_in(set: &Required, triggers: &[Literal]) -> Option<Lead> {
    let in_literal = |literal: &Literal| {
        let offsets = triggers.iter().flat_map(|trigger| occurrences(&literal.bytes, &trigger.bytes));
        offsets.map(|at| set.lead.then(Lead { min: at, max: at })).reduce(Lead::or)
    };
    set.literals.iter().map(in_literal).reduce(|a, b| Some(a?.or(b?)))?
}

impl Lead {
    /// All bytes of a part.
    pub fn over(part: &Hir) -> Lead {
        let properties = part.properties();
        Lead { min: properties.minimum_len().unwrap_or(0), max: properties.maximum_len().unwrap_or(0) }
    }

    pub fn then(self, next: Lead) -> Lead {
        Lead { min: self.min + next.min, max: self.max + next.max }
    }

    fn or(self, other: Lead) -> Lead {
        Lead { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

fn occurrences(text: &[u8], part: &[u8]) -> impl Iterator<Item = usize> {
    text.windows(part.len().max(1))
        .enumerate()
        .filter(move |(_, window)| window.eq_ignore_ascii_case(part))
        .map(|(offset, _)| offset)
}

/// How far behind the start of a match the first byte of class `wanted` of its first run may stand:
/// what stands before it is what cannot be such a byte, or need not be.
pub fn lead_to(hir: &Hir, wanted: fn(u8) -> bool) -> Lead {
    let (lead, _) = lead_and_end(hir, wanted);
    lead
}

/// The lead, and whether `hir` surely reaches such a byte at the end of it.
fn lead_and_end(hir: &Hir, wanted: fn(u8) -> bool) -> (Lead, bool) {
    let whole = || Lead::over(hir);
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => (Lead { min: 0, max: 0 }, false),
        HirKind::Literal(literal) => match literal.0.iter().position(|&byte| wanted(byte)) {
            Some(at) => (Lead { min: at, max: at }, true),
            None => (whole(), false),
        },
        HirKind::Class(class) => {
            let bytes = class_bytes(class, 256);
            let all = bytes.as_ref().is_some_and(|bytes| bytes.iter().all(|&byte| wanted(byte)));
            let none = bytes.as_ref().is_some_and(|bytes| !bytes.iter().any(|&byte| wanted(byte)));
            match (all, none) {
                (true, _) => (Lead { min: 0, max: 0 }, true),
                (_, true) => (whole(), false),
                _ => (Lead { min: 0, max: whole().max }, false),
            }
        }
        HirKind::Capture(capture) => lead_and_end(&capture.sub, wanted),
        HirKind::Repetition(repetition) => {
            let (first, reached) = lead_and_end(&repetition.sub, wanted);
            match (reached, repetition.min > 0) {
                (true, true) => (first, true),
                (true, false) => (Lead { min: 0, max: whole().max }, false),
                // Each round may or may not hold such a byte; it can come at any of them.
                (false, _) => {
                    let one = repetition.sub.properties().minimum_len().unwrap_or(0);
                    let rounds = repetition.min as usize;
                    let min = if first.min < one { 0 } else { rounds * one };
                    (Lead { min, max: whole().max }, false)
                }
            }
        }
        HirKind::Concat(parts) => {
            let mut lead = Lead { min: 0, max: 0 };
            for part in parts {
                let (next, reached) = lead_and_end(part, wanted);
                lead = lead.then(next);
                if reached {
                    return (lead, true);
                }
            }
            (lead, false)
        }
        HirKind::Alternation(branches) => {
            let mut lead = Lead { min: usize::MAX, max: 0 };
            let mut all = true;
            for branch in branches {
                let (next, reached) = lead_and_end(branch, wanted);
                lead = lead.or(next);
                all &= reached;
            }
            // A branch that need not reach it may be followed by it, so its whole length counts.
            if all { (lead, true) } else { (Lead { min: lead.min, max: whole().max }, false) }
        }
    }
}

/// The most bytes of class `wanted` that every match has in a row.
pub fn longest_run(hir: &Hir, wanted: fn(u8) -> bool) -> usize {
    let all_wanted = |hir: &Hir| only(hir, wanted);
    let len = |hir: &Hir| hir.properties().minimum_len().unwrap_or(0);
    match hir.kind() {
        _ if all_wanted(hir) => len(hir),
        HirKind::Capture(capture) => longest_run(&capture.sub, wanted),
        HirKind::Repetition(repetition) if repetition.min > 0 => longest_run(&repetition.sub, wanted),
        HirKind::Alternation(branches) => {
            branches.iter().map(|branch| longest_run(branch, wanted)).min().unwrap_or(0)
        }
        HirKind::Concat(parts) => {
            let runs = parts.chunk_by(|a, b| all_wanted(a) && all_wanted(b));
            let run = |run: &[Hir]| match run {
                [single] => longest_run(single, wanted),
                run => run.iter().map(len).sum(),
            };
            runs.map(run).max().unwrap_or(0)
        }
        _ => 0,
    }
}

/// Whether whatever `hir` matches consists of such bytes.
pub fn only(hir: &Hir, wanted: fn(u8) -> bool) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Literal(literal) => literal.0.iter().all(|&byte| wanted(byte)),
        HirKind::Class(class) => {
            class_bytes(class, 256).is_some_and(|bytes| bytes.iter().all(|&byte| wanted(byte)))
        }
        kind => kind.subs().iter().all(|sub| only(sub, wanted)),
    }
}

/// Every set of literals that a match must have one of, with its place.
fn required(hir: &Hir) -> Vec<Required> {
    if let Some(literals) = exact(hir) {
        let usable = literals.iter().all(|literal| !literal.bytes.is_empty());
        let lead = Lead { min: 0, max: 0 };
        return if usable { vec![Required { literals, lead }] } else { Vec::new() };
    }
    match hir.kind() {
        HirKind::Capture(capture) => required(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => required(&repetition.sub),
        HirKind::Concat(parts) => required_of_concat(parts),
        HirKind::Alternation(branches) => required_of_branches(branches).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn required_of_concat(parts: &[Hir]) -> Vec<Required> {
    let mut found = Vec::new();
    let mut run: Option<(Vec<Literal>, Lead)> = None;
    let mut at = Lead { min: 0, max: 0 };
    let flush = |run: &mut Option<(Vec<Literal>, Lead)>, found: &mut Vec<Required>| {
        if let Some((literals, lead)) = run.take()
            && literals.iter().all(|literal| !literal.bytes.is_empty())
        {
            found.push(Required { literals, lead });
        }
    };
    for part in parts {
        let joined = exact(part).and_then(|literals| match &run {
            None => Some((literals, at)),
            Some((before, lead)) => cross(before, &literals).map(|literals| (literals, *lead)),
        });
        match joined {
            Some(joined) => {
                // What is joined so far is also a set of its own: a tail of alternatives may be worse.
                if let Some((literals, lead)) = &run {
                    found.push(Required { literals: literals.clone(), lead: *lead });
                }
                run = Some(joined);
            }
            None => {
                flush(&mut run, &mut found);
                match exact(part) {
                    Some(literals) => run = Some((literals, at)),
                    None => found.extend(
                        required(part).into_iter().map(|set| Required { lead: at.then(set.lead), ..set }),
                    ),
                }
            }
        }
        at = at.then(Lead::over(part));
    }
    flush(&mut run, &mut found);
    found.retain(|set| set.literals.iter().all(|literal| !literal.bytes.is_empty()));
    found
}

/// One set over all branches: the best of each.
fn required_of_branches(branches: &[Hir]) -> Option<Required> {
    let mut union = Required { literals: Vec::new(), lead: Lead { min: usize::MAX, max: 0 } };
    for branch in branches {
        let sets = required(branch);
        let best = sets.into_iter().max_by_key(|set| (long_enough(set), set.rarity()))?;
        union.literals.extend(best.literals);
        union.lead = union.lead.or(best.lead);
    }
    tidy(&mut union.literals);
    (union.literals.len() <= SET_MAX).then_some(union)
}

/// All strings that `hir` matches, if they are few and short.
fn exact(hir: &Hir) -> Option<Vec<Literal>> {
    if hir.properties().maximum_len().is_none_or(|len| len > EXACT_MAX) {
        return None;
    }
    let mut literals = match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => vec![Literal { bytes: Vec::new(), any_case: false }],
        HirKind::Literal(literal) => vec![Literal { bytes: literal.0.to_vec(), any_case: false }],
        HirKind::Class(class) => exact_class(class)?,
        HirKind::Capture(capture) => exact(&capture.sub)?,
        HirKind::Repetition(repetition) => {
            let sub = exact(&repetition.sub)?;
            let max = repetition.max.filter(|&max| max <= 4)?;
            let mut all = Vec::new();
            let mut power = vec![Literal { bytes: Vec::new(), any_case: false }];
            for round in 0..=max {
                if round >= repetition.min {
                    all.extend(power.iter().cloned());
                }
                if round < max {
                    power = cross(&power, &sub)?;
                }
            }
            all
        }
        HirKind::Concat(parts) => {
            let mut all = vec![Literal { bytes: Vec::new(), any_case: false }];
            for part in parts {
                all = cross(&all, &exact(part)?)?;
            }
            all
        }
        HirKind::Alternation(branches) => {
            let mut all = Vec::new();
            for branch in branches {
                all.extend(exact(branch)?);
            }
            all
        }
    };
    tidy(&mut literals);
    (literals.len() <= SET_MAX).then_some(literals)
}

fn exact_class(class: &Class) -> Option<Vec<Literal>> {
    let bytes = class_bytes(class, CLASS_MAX)?;
    if let [upper, lower] = bytes[..]
        && lower.is_ascii_lowercase()
        && upper == lower.to_ascii_uppercase()
    {
        return Some(vec![Literal { bytes: vec![lower], any_case: true }]);
    }
    Some(bytes.iter().map(|&byte| Literal { bytes: vec![byte], any_case: false }).collect())
}

/// The members of a class, if they are all single bytes and at most `max`.
pub fn class_bytes(class: &Class, max: usize) -> Option<Vec<u8>> {
    let unicode;
    let bytes = match class {
        Class::Bytes(class) => class,
        Class::Unicode(class) => {
            unicode = class.to_byte_class()?;
            &unicode
        }
    };
    let count = bytes.iter().map(|range| range.len()).sum::<usize>();
    (count <= max).then_some(())?;
    Some(bytes.iter().flat_map(|range| range.start()..=range.end()).collect())
}

/// Each of `a` followed by each of `b`.
fn cross(a: &[Literal], b: &[Literal]) -> Option<Vec<Literal>> {
    if a.len() * b.len() > SET_MAX || a.iter().any(|literal| literal.bytes.len() >= LITERAL_MAX) {
        return None;
    }
    let join = |a: &Literal, b: &Literal| {
        let any_case = a.any_case || b.any_case;
        let mut bytes = [&a.bytes[..], &b.bytes[..]].concat();
        if any_case {
            bytes.make_ascii_lowercase();
        }
        Literal { bytes, any_case }
    };
    let mut all: Vec<Literal> = a.iter().flat_map(|a| b.iter().map(move |b| join(a, b))).collect();
    tidy(&mut all);
    Some(all)
}

fn tidy(literals: &mut Vec<Literal>) {
    literals.sort();
    literals.dedup();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::pattern::parse;

    fn check(regex: &str, literals: &[&str], lead: (usize, usize)) {
        let hir = parse(regex).unwrap_or_else(|reason| panic!("{regex}: {reason}")).hir;
        let found = rarest(&hir).unwrap_or_else(|| panic!("{regex}: nothing derived"));
        let found_literals: Vec<_> = found
            .literals
            .iter()
            .map(|literal| String::from_utf8_lossy(&literal.bytes).into_owned())
            .collect();
        assert_eq!(found_literals, literals, "{regex}");
        assert_eq!((found.lead.min, found.lead.max), lead, "{regex}");
    }

    #[test]
    fn literals_are_derived_with_their_place() {
        check(r"\b(?P<value>(?:AKIA|ASIA)[A-Z2-7]{16})\b", &["AKIA", "ASIA"], (0, 0));
        check(r"ghp_[0-9A-Za-z]{36}", &["ghp_"], (0, 0));
        check(r"[a-z]{1,9}\.hooks\.example\b", &[".hooks.example"], (1, 9));
        check(r"(?i)secretsauce\s{0,3}=", &["secretsauce"], (0, 0));
        check(r"xox[bp]-[0-9]{10}", &["xoxb-", "xoxp-"], (0, 0));
        check(r"(?:foo1|x{2,3}bar22)[0-9]{4}", &["foo1", "xxbar22", "xxxbar22"], (0, 0));
        check(r"(?:foo1|[xyz]{2,5}bar22)[0-9]{4}", &["bar22", "foo1"], (0, 5));
    }

    #[test]
    fn mixed_case_literals_stay_exact_and_folded_ones_do_not() {
        let any_case = |regex: &str| rarest(&parse(regex).unwrap().hir).unwrap().literals[0].any_case;
        assert!(!any_case("AIza[0-9]{35}"));
        assert!(any_case("(?i)AIza[0-9]{35}"));
    }

    #[test]
    fn nothing_is_derived_where_a_match_may_lack_it() {
        for regex in [r"(?:token)?[0-9]{9}", r"(?:token|[a-z]{9})", r"ab[0-9]{9}", r"(?:token){0,2}[0-9]"] {
            assert!(rarest(&parse(regex).unwrap().hir).is_none(), "{regex}");
        }
    }

    #[test]
    fn the_lead_to_the_first_digit_spans_what_may_precede_it() {
        let lead = |regex: &str| {
            let lead = lead_to(&parse(regex).unwrap().hir, |byte| byte.is_ascii_digit());
            (lead.min, lead.max)
        };
        assert_eq!(lead(r"\b(?:\d[ -]?){13,19}\b"), (0, 0));
        assert_eq!(lead(r"\b[A-Z]{2} ?\d{6}[A-D]\b"), (2, 3));
        assert_eq!(lead(r"(?:\+|00)?\d{9}"), (0, 2));
        assert_eq!(lead(r"[A-Z0-9]{2}\d{6}"), (0, 2));
        assert_eq!(lead(r"(?:P|PP)?\d{7}"), (0, 2));
    }

    #[test]
    fn the_longest_run_is_what_every_match_has() {
        let run = |regex: &str| longest_run(&parse(regex).unwrap().hir, |byte| byte.is_ascii_alphanumeric());
        assert_eq!(run(r"\b(?P<value>sk-[A-Za-z0-9]{48})\b"), 48);
        assert_eq!(run(r"\b[MNO][A-Za-z0-9]{23,27}\.[\w-]{6}"), 24);
        assert_eq!(run(r"(?:[A-Z]{3}|[0-9]{5})-"), 3);
        assert_eq!(run(r"[A-Z_]{9}"), 0);
    }

    #[test]
    fn given_triggers_are_placed_where_the_regex_has_them() {
        let hir = parse(r"[a-z]{0,4}(?:AKIA|ASIA)[A-Z]{16}").unwrap().hir;
        let literal = |text: &str| Literal { bytes: text.into(), any_case: true };
        let lead = lead_of(&hir, &[literal("akia"), literal("asia")]).unwrap();
        assert_eq!((lead.min, lead.max), (0, 4));
        assert!(lead_of(&hir, &[literal("akia")]).is_none());
        let hir = parse(r"[a-z]{1,2}(?:user[0-9]{0,9}_(?P<x>pass|word)|x?keys{2,9})=[a-z]{9}").unwrap().hir;
        let lead = lead_of(&hir, &[literal("user"), literal("key")]).unwrap();
        assert_eq!((lead.min, lead.max), (1, 3));
        assert!(lead_of(&hir, &[literal("pass"), literal("key")]).is_none());
    }
}
