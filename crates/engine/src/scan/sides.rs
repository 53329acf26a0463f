//! What a rule's regex says of the text on either side of a trigger: where in the regex the trigger stands, and so what
//! must come before it in a match and what from it on. Words such as `password` are the triggers of dozens of rules, most
//! of which a look at the next few bytes rules out.
//!
//! A side may allow too much, never too little: of every match, one of the triggers has both sides as told here.

use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

use crate::rules::derive::class_bytes;
use crate::rules::pattern::expanded_size;
use crate::rules::{Lead, Literal, Rule, Trigger, compile_hir};

/// Steps that the search for a trigger in a regex may take.
const STEPS_MAX: usize = 2_000;
/// Parts of a regex in which a trigger must be found to end.
const PARTS_MAX: usize = 32;
/// Bytes that a class may have and still be followed one by one.
const CLASS_MAX: usize = 8;
/// Parts of a regex with its repetitions written out, at most.
const SIZE_MAX: usize = 4_000;
/// Rounds of a repetition that are counted, at most.
const ROUNDS_MAX: u32 = 2;
/// A repetition that may be longer than it must be by more than this,
const SLACK_MAX: u32 = 8;
/// of a class of more bytes, is nearly any text: a side ends there,
const NARROW_MAX: usize = 80;
/// behind so many rounds of a value, at most.
const VALUE_ROUNDS: u32 = 4;
/// Bytes that a word must have to tell matches without a trigger in its place, and may have.
const STRAY_MIN: usize = 3;
pub const STRAY_MAX: usize = 16;

/// What stands on the sides of a rule's triggers.
#[derive(Debug)]
pub struct Sides {
    /// By place of a trigger in the regex: what stands before it, and what from it on.
    pub ways: Vec<(Hir, Hir)>,
    /// Every match without a trigger in its place contains one of these words, in any case. In order, and none begins with
    /// another.
    pub strays: Vec<Vec<u8>>,
}

impl Sides {
    /// Of a rule with literals, if its regex tells.
    pub fn of(rule: &Rule) -> Option<Sides> {
        let Trigger::Literals(triggers) = &rule.trigger else { return None };
        if !triggers.iter().all(|trigger| trigger.any_case) {
            return None;
        }
        let hir = compile_hir(rule);
        let mut search = Search { triggers, lead: rule.lead, steps: 0, strays: Vec::new() };
        if hir.properties().look_set().contains_word_unicode() || expanded_size(&hir) > SIZE_MAX {
            return None;
        }
        let parts = flat(&[hir]);
        let ways = search.ways(&parts, parts.len(), Lead { min: 0, max: 0 })?;
        let strays = shortest(search.strays);
        let mut sides: Vec<(Hir, Vec<Hir>)> = Vec::new();
        for way in ways {
            let (before, from) = (before(&way.0), from(&way.1));
            match sides.iter_mut().find(|(known, _)| *known == before) {
                Some((_, all)) => all.push(from),
                None => sides.push((before, vec![from])),
            }
        }
        let ways = sides.into_iter().map(|(before, from)| (before, Hir::alternation(from))).collect();
        Some(Sides { ways, strays })
    }
}

/// The parts before a trigger, and those from it on.
type Way = (Vec<Hir>, Vec<Hir>);

fn split(parts: &[Hir], at: usize) -> Way {
    (parts[..at].to_vec(), parts[at..].to_vec())
}

/// Whether what a sequence matches begins with a trigger.
enum Begins {
    Always,
    /// What does not begins with one of these words.
    Mostly(Vec<Vec<u8>>),
    No,
}

struct Search<'t> {
    triggers: &'t [Literal],
    lead: Lead,
    steps: usize,
    strays: Vec<Vec<u8>>,
}

impl Search<'_> {
    /// The places of triggers among the first `len` of some parts, so that every match has one there: what stands before
    /// each and what from it on. The parts begin `at` bytes behind the start of a match.
    fn ways(&mut self, parts: &[Hir], len: usize, at: Lead) -> Option<Vec<Way>> {
        let (mut place, mut mostly) = (at, None);
        for i in 0..len {
            let is_in_lead = self.lead.min <= place.min && place.max <= self.lead.max;
            match self.begins(&parts[i..]) {
                Begins::Always if is_in_lead => return Some(vec![split(parts, i)]),
                Begins::Mostly(words) if is_in_lead && mostly.is_none() => mostly = Some((i, words)),
                _ => {}
            }
            if let HirKind::Alternation(branches) = parts[i].kind()
                && let Some(mut ways) = self.ways_of_branches(branches, &parts[i + 1..], place)
            {
                ways.iter_mut().for_each(|way| way.0.splice(0..0, parts[..i].iter().cloned()).for_each(drop));
                return Some(ways);
            }
            place = place.then(Lead::over(&parts[i]));
        }
        let (i, words) = mostly?;
        self.strays.extend(words);
        Some(vec![split(parts, i)])
    }

    fn ways_of_branches(&mut self, branches: &[Hir], rest: &[Hir], at: Lead) -> Option<Vec<Way>> {
        let known = self.strays.len();
        let mut ways = Vec::new();
        for branch in branches {
            let mut parts = flat(std::slice::from_ref(branch));
            let len = parts.len();
            parts.extend_from_slice(rest);
            let Some(more) = self.ways(&parts, len, at) else {
                self.strays.truncate(known);
                return None;
            };
            ways.extend(more);
        }
        Some(ways)
    }

    fn begins(&mut self, parts: &[Hir]) -> Begins {
        // Most parts are left at their first byte: where no trigger begins with it, there is no word to tell matches by.
        let first = match parts[0].kind() {
            HirKind::Literal(literal) => literal.0.first().copied(),
            HirKind::Class(class) => match class_bytes(class, CLASS_MAX) {
                Some(bytes) => bytes.first().copied(),
                None => return Begins::No,
            },
            _ => None,
        };
        let begins_with = |byte: u8| {
            let byte = byte.to_ascii_lowercase();
            self.triggers.iter().any(|trigger| trigger.bytes.first() == Some(&byte))
        };
        if first.is_some_and(|byte| !begins_with(byte)) {
            return Begins::No;
        }
        let next = &parts[..parts.len().min(PARTS_MAX)];
        let mut strays = Vec::new();
        if !self.follow(next.iter().rev().map(Item::Part).collect(), Vec::new(), &mut strays) {
            return Begins::No;
        }
        match shortest(strays) {
            words if words.is_empty() => Begins::Always,
            words if words.iter().all(|word| (STRAY_MIN..=STRAY_MAX).contains(&word.len())) => {
                Begins::Mostly(words)
            }
            _ => Begins::No,
        }
    }

    /// Follows every way through `rest`, of which the last comes first, behind `prefix`, which is in small letters, until
    /// it has a trigger or is a stray. False if there are too many ways.
    fn follow(&mut self, mut rest: Vec<Item<'_>>, prefix: Vec<u8>, strays: &mut Vec<Vec<u8>>) -> bool {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return false;
        }
        if self.triggers.iter().any(|trigger| prefix.starts_with(&trigger.bytes)) {
            return true;
        }
        let goes_on = |prefix: &[u8]| self.triggers.iter().any(|trigger| trigger.bytes.starts_with(prefix));
        if !goes_on(&prefix) {
            strays.push(prefix);
            return true;
        }
        let Some(item) = rest.pop() else { return false };
        let part = match item {
            Item::Part(part) => part,
            Item::Rounds(repetition, done) => {
                let may_end = done >= repetition.min;
                if may_end && !self.follow(rest.clone(), prefix.clone(), strays) {
                    return false;
                }
                if repetition.max.is_none_or(|max| done < max) {
                    rest.extend([Item::Rounds(repetition, done + 1), Item::Part(&repetition.sub)]);
                    return self.follow(rest, prefix, strays);
                }
                return true;
            }
        };
        match part.kind() {
            HirKind::Empty | HirKind::Look(_) => self.follow(rest, prefix, strays),
            HirKind::Literal(literal) => {
                let mut longer = prefix;
                let reaches = |byte: &u8| {
                    longer.push(byte.to_ascii_lowercase());
                    goes_on(&longer)
                };
                _ = literal.0.iter().all(reaches);
                self.follow(rest, longer, strays)
            }
            HirKind::Class(class) => {
                let Some(mut bytes) = class_bytes(class, CLASS_MAX) else { return false };
                bytes.make_ascii_lowercase();
                bytes.sort_unstable();
                bytes.dedup();
                let Some((last, others)) = bytes.split_last() else { return false };
                let longer = |mut prefix: Vec<u8>, byte: u8| {
                    prefix.push(byte);
                    prefix
                };
                let mut each = |byte: &u8| self.follow(rest.clone(), longer(prefix.clone(), *byte), strays);
                others.iter().all(&mut each) && self.follow(rest, longer(prefix, *last), strays)
            }
            HirKind::Capture(capture) => {
                rest.push(Item::Part(&capture.sub));
                self.follow(rest, prefix, strays)
            }
            HirKind::Concat(parts) => {
                rest.extend(parts.iter().rev().map(Item::Part));
                self.follow(rest, prefix, strays)
            }
            HirKind::Alternation(branches) => branches.iter().all(|branch| {
                let rest = rest.iter().copied().chain([Item::Part(branch)]).collect();
                self.follow(rest, prefix.clone(), strays)
            }),
            HirKind::Repetition(repetition) => {
                rest.push(Item::Rounds(repetition, 0));
                self.follow(rest, prefix, strays)
            }
        }
    }
}

/// Those words that do not begin with another.
pub fn shortest(mut words: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    words.sort();
    words.dedup_by(|word, before| word.starts_with(before));
    words
}

/// What is still to be followed.
#[derive(Clone, Copy)]
enum Item<'h> {
    Part(&'h Hir),
    /// A repetition of which so many rounds are done.
    Rounds(&'h Repetition, u32),
}

/// The parts of a sequence, without groups and sequences within it, and literals byte by byte.
fn flat(parts: &[Hir]) -> Vec<Hir> {
    let mut all = Vec::new();
    for part in parts {
        match part.kind() {
            HirKind::Capture(capture) => all.extend(flat(std::slice::from_ref(&capture.sub))),
            HirKind::Concat(parts) => all.extend(flat(parts)),
            HirKind::Literal(literal) => all.extend(literal.0.iter().map(|&byte| Hir::literal([byte]))),
            _ => all.push(part.clone()),
        }
    }
    all
}

/// What stands before a trigger, back to the next that may be nearly any text.
fn before(parts: &[Hir]) -> Hir {
    let Some(at) = parts.iter().rposition(is_wide) else {
        return Hir::concat(parts.iter().map(loose).collect());
    };
    let (left, wide) = (&parts[..at], &parts[at]);
    let ends = match wide.kind() {
        HirKind::Repetition(repetition) if !is_class(&repetition.sub) => {
            let round = before(&flat(std::slice::from_ref(&repetition.sub)));
            if repetition.min > 0 { round } else { Hir::alternation(vec![round, before(left)]) }
        }
        HirKind::Alternation(branches) => {
            let end = |branch: &Hir| before(&[left, &flat(std::slice::from_ref(branch))].concat());
            Hir::alternation(branches.iter().map(end).collect())
        }
        _ => Hir::empty(),
    };
    Hir::concat([ends].into_iter().chain(parts[at + 1..].iter().map(loose)).collect())
}

/// What stands from a trigger on, to the next that may be nearly any text.
fn from(parts: &[Hir]) -> Hir {
    let Some(at) = parts.iter().position(is_wide) else {
        return Hir::concat(parts.iter().map(loose).collect());
    };
    let (wide, right) = (&parts[at], &parts[at + 1..]);
    let begins = match wide.kind() {
        HirKind::Repetition(repetition) if is_class(&repetition.sub) => {
            let rounds = repetition.min.min(VALUE_ROUNDS);
            Hir::repetition(Repetition { min: rounds, max: Some(rounds), ..repetition.clone() })
        }
        HirKind::Repetition(repetition) => {
            let round = from(&flat(std::slice::from_ref(&repetition.sub)));
            if repetition.min > 0 { round } else { Hir::alternation(vec![round, from(right)]) }
        }
        HirKind::Alternation(branches) => {
            let begin = |branch: &Hir| from(&[&flat(std::slice::from_ref(branch)), right].concat());
            Hir::alternation(branches.iter().map(begin).collect())
        }
        _ => Hir::empty(),
    };
    Hir::concat(parts[..at].iter().map(loose).chain([begins]).collect())
}

/// Whether there is something in it that may be a long stretch of nearly any text.
fn is_wide(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Repetition(repetition) if is_class(&repetition.sub) => {
            let slack = repetition.max.map_or(u32::MAX, |max| max - repetition.min);
            let is_narrow = |class: &Class| class_bytes(class, NARROW_MAX).is_some();
            slack > SLACK_MAX && !matches!(repetition.sub.kind(), HirKind::Class(class) if is_narrow(class))
        }
        kind => kind.subs().iter().any(is_wide),
    }
}

fn is_class(hir: &Hir) -> bool {
    matches!(hir.kind(), HirKind::Class(_))
}

/// The same with repetitions that have no end, and few rounds that must be: an automaton need not count them.
fn loose(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Repetition(repetition) => {
            let max = repetition.max.filter(|max| *max <= ROUNDS_MAX);
            let min = if max.is_none() { repetition.min.min(ROUNDS_MAX) } else { repetition.min };
            let sub = Box::new(loose(&repetition.sub));
            Hir::repetition(Repetition { min, max, greedy: repetition.greedy, sub })
        }
        HirKind::Capture(capture) => loose(&capture.sub),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(loose).collect()),
        HirKind::Alternation(branches) => Hir::alternation(branches.iter().map(loose).collect()),
        _ => hir.clone(),
    }
}
