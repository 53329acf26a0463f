//! Confirms triggers: runs a rule's regex in the window that its trigger allows.
//!
//! A rule's match for a trigger is, of the successive matches from the earliest start that the trigger
//! allows, the first that contains it. That is a function of the bytes around the trigger alone, so it is
//! the same in every chunk. Where triggers are dense their windows overlap; what searches told is kept as
//! long as a window may reach it ([`Known`]), so that the starts of a window are searched once, and more than
//! one window at a time. That saves work and never changes an answer.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::OnceLock;
use std::{array, iter};

use regex_automata::Input;
use regex_automata::util::primitives::NonMaxUsize;

use super::regexes::{Cache, Compiled, Value};
use crate::prefilter::Hit;
use crate::rules::Rule;
use crate::rules::opening::Starts;
use crate::rules::run::InWindows;

/// Bytes that those of all rules may take per thread; when they take more, all are begun anew. Text is seldom so mixed
/// that it needs as much at a time. Little in tests, so that they see it happen.
pub(super) const CACHES_MAX: usize = if cfg!(test) { 256 << 10 } else { 6 << 20 };
/// How many times rules are asked between two looks at what that takes.
const CACHES_LOOK: u32 = if cfg!(test) { 1 } else { 1024 };

/// Starts beyond a window that are searched with it, at most.
const AHEAD_MAX: usize = 64 * 1024;
/// Starts of a match that are asked one by one rather than searched for.
const STARTS_FEW: usize = 3;

/// A confirmed value and the match it is part of; in order of values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Found {
    pub start: usize,
    pub end: usize,
    pub rule: u32,
    pub match_start: usize,
    pub match_end: usize,
}

impl Found {
    /// Two matches may be of the same value: it counts once.
    pub fn same_value(&mut self, other: &mut Found) -> bool {
        (self.start, self.end, self.rule) == (other.start, other.end, other.rule)
    }
}

/// One thread's working memory for regexes.
#[derive(Default)]
pub struct RegexCaches {
    by_rule: Vec<Option<Box<Cache>>>,
    window_bytes: Vec<u64>,
    slots: Vec<Option<NonMaxUsize>>,
    known: Known,
    /// How many times rules were asked.
    asked: u32,
}

impl RegexCaches {
    /// Bytes handed to each rule's regex so far.
    pub fn window_bytes(&self) -> impl Iterator<Item = u64> {
        self.window_bytes.iter().copied()
    }

    /// Bytes that automata take.
    pub fn bytes(&self) -> usize {
        self.by_rule.iter().flatten().map(|cache| cache.bytes()).sum()
    }

    /// Readies them for one of so many rules.
    fn begin(&mut self, rules: usize) {
        if self.by_rule.is_empty() {
            self.by_rule.resize_with(rules, || None);
            self.window_bytes.resize(rules, 0);
        }
        self.asked = self.asked.wrapping_add(1);
        if self.asked.is_multiple_of(CACHES_LOOK) && self.bytes() > CACHES_MAX {
            self.by_rule.iter_mut().for_each(|cache| *cache = None);
        }
        self.known.0.clear();
    }
}

/// The regexes of all rules, each compiled when first needed.
pub struct Confirmer {
    regexes: Vec<OnceLock<Compiled>>,
}

/// What the searches of one rule told: stretches of starts, in order and apart.
#[derive(Default)]
struct Known(VecDeque<Stretch>);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stretch {
    /// No match starts from here ...
    from: usize,
    /// ... to before here,
    to: usize,
    /// where this one starts, if there is one: its end.
    end: Option<usize>,
}

impl Known {
    /// Forgets what lies wholly before `from`, but for the last: no window reaches it any more.
    fn forget_before(&mut self, from: usize) {
        while self.0.len() > 1 && self.0[0].to < from {
            self.0.pop_front();
        }
    }

    /// The stretch that tells of `from`, or that ends just before it.
    fn at(&self, from: usize) -> Option<Stretch> {
        let next = self.0.partition_point(|stretch| stretch.from <= from);
        let stretch = *self.0.get(next.checked_sub(1)?)?;
        (from <= stretch.to).then_some(stretch)
    }

    /// Where the last stretch ends, if no match starts there.
    fn open_end(&self) -> Option<usize> {
        self.0.back().filter(|last| last.end.is_none()).map(|last| last.to)
    }

    /// Adds a stretch, as one with those that it touches: they tell of the same matches.
    fn add(&mut self, mut stretch: Stretch) {
        let first = self.0.partition_point(|known| known.to < stretch.from);
        while let Some(known) = self.0.get(first).copied().filter(|known| known.from <= stretch.to) {
            stretch.from = stretch.from.min(known.from);
            if (known.to, known.end) > (stretch.to, stretch.end) {
                (stretch.to, stretch.end) = (known.to, known.end);
            }
            self.0.remove(first);
        }
        self.0.insert(first, stretch);
    }
}

impl Confirmer {
    pub fn new(rules: usize) -> Confirmer {
        Confirmer { regexes: (0..rules).map(|_| OnceLock::new()).collect() }
    }

    /// Adds the matches of `rule` for its `hits`, which are in order.
    pub fn confirm(
        &self,
        rule: &Rule,
        index: u32,
        bytes: &[u8],
        hits: &[Hit],
        caches: &mut RegexCaches,
        found: &mut Vec<Found>,
    ) {
        // What every match of the rule contains must be where one with the trigger may be, and one must begin there.
        let mut run = rule.run.as_ref().map(InWindows::new);
        let mut starts = Starts::new(&rule.opening);
        // Where the trigger tells the start of a match, nothing is searched for.
        let is_placed = rule.lead.min == rule.lead.max;
        let regex = &self.regexes[index as usize];
        let mut may_match = |hit: &&Hit| {
            let Some(last) = hit.at.checked_sub(rule.lead.min) else { return false };
            let first = hit.at.saturating_sub(rule.lead.max);
            let mut has_run = || run.as_mut().is_none_or(|run| run.is_in(bytes, window(rule, bytes, hit)));
            // One start is looked at sooner than a window. More are looked at when they are searched, and before only if
            // that may save compiling the regex.
            if is_placed {
                rule.opening.first(bytes, last..last + 1).is_some() && has_run()
            } else {
                has_run() && (regex.get().is_some() || starts.are_in(bytes, first..last + 1))
            }
        };
        let mut hits = hits.iter().filter(&mut may_match).peekable();
        if hits.peek().is_none() {
            return;
        }
        let regex = regex.get_or_init(|| Compiled::new(rule));
        caches.begin(self.regexes.len());
        let RegexCaches { by_rule, window_bytes, slots, known, .. } = caches;
        let cache = by_rule[index as usize].get_or_insert_default();
        let window_bytes = &mut window_bytes[index as usize];
        let mut search = Search { regex, cache, rule, bytes, window_bytes, slots, known, ahead: 0 };
        let mut last = None;
        for hit in hits {
            let matched = if is_placed {
                search.match_at(hit)
            } else {
                // A match may have many triggers.
                let matched = search.match_for(hit).filter(|span| last != Some(*span));
                last = matched.or(last);
                matched.map(|(start, end)| ((start, end), search.value(start, end)))
            };
            let Some(((match_start, match_end), (start, end))) = matched else { continue };
            if end > start {
                found.push(Found { start, end, rule: index, match_start, match_end });
            }
        }
    }
}

/// Where a match with this trigger may be.
pub(super) fn window(rule: &Rule, bytes: &[u8], hit: &Hit) -> Range<usize> {
    let from = hit.at.saturating_sub(rule.lead.max);
    let end = (hit.at.saturating_sub(rule.lead.min) + rule.max_len).min(bytes.len());
    from.min(end)..end
}

struct Search<'s> {
    regex: &'s Compiled,
    cache: &'s mut Cache,
    rule: &'s Rule,
    bytes: &'s [u8],
    window_bytes: &'s mut u64,
    slots: &'s mut Vec<Option<NonMaxUsize>>,
    known: &'s mut Known,
    /// Starts beyond the window that were searched with it the last time.
    ahead: usize,
}

/// From where to where.
type Span = (usize, usize);

impl Search<'_> {
    /// The match at the one place that the trigger allows, and its value.
    fn match_at(&mut self, hit: &Hit) -> Option<(Span, Span)> {
        let start = hit.at.checked_sub(self.rule.lead.min)?;
        let end = (start + self.rule.max_len).min(self.bytes.len());
        *self.window_bytes += (end - start) as u64;
        let found = self.search_at(start, end)?;
        (found.0.1 >= hit.at + hit.len as usize).then_some(found)
    }

    fn match_for(&mut self, hit: &Hit) -> Option<Span> {
        let lead = self.rule.lead;
        let last = hit.at.checked_sub(lead.min)?;
        let needed = hit.at + hit.len as usize;
        let mut from = hit.at.saturating_sub(lead.max);
        self.known.forget_before(from);
        while from <= last {
            let (start, end) = self.first(from, last)?;
            if end >= needed {
                return Some((start, end));
            }
            from = end.max(start + 1);
        }
        None
    }

    /// The leftmost match that starts from `from` to `last`.
    fn first(&mut self, from: usize, last: usize) -> Option<Span> {
        let mut search_from = from;
        if let Some(known) = self.known.at(from) {
            match known.end {
                Some(end) => return (known.to <= last).then_some((known.to, end)),
                None => search_from = known.to,
            }
        }
        if search_from > last {
            return None;
        }
        // Where triggers are dense, the next windows are searched along with this one, ever more of them; also if gaps
        // between windows are shorter than what is read behind each.
        let is_dense = search_from != from
            || self.known.open_end().is_some_and(|end| (end..=end + self.rule.max_len).contains(&from));
        let ahead = if is_dense { (2 * self.ahead).clamp(1, AHEAD_MAX) } else { 0 };
        let far = last + ahead;
        let found = self.run(search_from, far).filter(|&(start, _)| start <= far);
        self.ahead = if found.is_some() { ahead } else { ahead.max(self.rule.max_len) };
        self.known.add(Stretch {
            from: search_from,
            to: found.map_or(far + 1, |(start, _)| start),
            end: found.map(|(_, end)| end),
        });
        found.filter(|&(start, _)| start <= last)
    }

    /// A match that starts at or before `last` has all the room it can take; a later one may be cut short,
    /// and the caller drops it.
    fn run(&mut self, from: usize, last: usize) -> Option<Span> {
        let (bytes, opening) = (self.bytes, &self.rule.opening);
        // Those that are searched ahead may lie behind the text.
        let next = |from: usize| opening.first(bytes, from..bytes.len().min(last + 1));
        let from = next(from)?;
        let end = (last + self.rule.max_len).min(bytes.len());
        *self.window_bytes += (end - from) as u64;
        let mut starts = iter::successors(Some(from), |start| next(start + 1));
        let few: [Option<usize>; STARTS_FEW] = array::from_fn(|_| starts.next());
        if starts.next().is_none() {
            // Most texts have none, and are left at the first bytes.
            return few.into_iter().flatten().find_map(|start| Some((start, self.end_at(start, end)?)));
        }
        let input = Input::new(bytes).span(from..end);
        let found = self.regex.find(self.rule, self.cache, &input)?;
        Some((found.start, found.end))
    }

    /// Where the match that starts at `start` ends, at `room` or before.
    fn end_at(&mut self, start: usize, room: usize) -> Option<usize> {
        self.regex.end_at(self.rule, self.cache, Input::new(self.bytes).span(start..room))
    }

    /// The span of the value in the match `start..end`.
    fn value(&mut self, start: usize, end: usize) -> Span {
        match &self.regex.value {
            Value::Whole => (start, end),
            Value::Split(split, groups) => match split.value(self.bytes, start..end) {
                Some(value) => (value.start, value.end),
                None => self.value_in_groups(start, end, groups),
            },
            Value::Groups(groups) => self.value_in_groups(start, end, groups),
        }
    }

    fn value_in_groups(&mut self, start: usize, end: usize, groups: &Range<usize>) -> Span {
        let room = (start + self.rule.max_len).min(self.bytes.len());
        self.search_groups(start, room, groups).map_or((start, end), |(_, value)| value)
    }

    /// The match that starts at `start` and ends at `room` or before, and its value.
    fn search_at(&mut self, start: usize, room: usize) -> Option<(Span, Span)> {
        let end = self.end_at(start, room)?;
        Some(((start, end), self.value(start, end)))
    }

    /// The same by its groups.
    fn search_groups(&mut self, start: usize, room: usize, groups: &Range<usize>) -> Option<(Span, Span)> {
        let input = Input::new(self.bytes).span(start..room);
        self.slots.clear();
        self.slots.resize(2 * groups.end, None);
        if !self.regex.groups(self.rule, self.cache, input, self.slots) {
            return None;
        }
        let span = |group: usize| Some((self.slots[2 * group]?.get(), self.slots[2 * group + 1]?.get()));
        let whole = span(0)?;
        let filled = groups.clone().find_map(|group| span(group).filter(|(from, to)| from < to));
        Some((whole, filled.or_else(|| span(groups.start)).unwrap_or(whole)))
    }
}
