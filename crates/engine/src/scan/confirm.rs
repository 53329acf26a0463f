//! Confirms triggers: runs a rule's regex in the window that its trigger allows.
//!
//! A rule's match for a trigger is, of the successive matches from the earliest start that the trigger
//! allows, the first that contains it. That is a function of the bytes around the trigger alone, so it is
//! the same in every chunk. Where triggers are dense their windows overlap; what the last search told is
//! kept, so that the starts of a window are searched once, and more than one window at a time. That saves work
//! and never changes an answer.

use std::ops::Range;
use std::sync::OnceLock;

use regex_automata::meta::{self, Regex};
use regex_automata::util::primitives::NonMaxUsize;
use regex_automata::{Anchored, Input};
use regex_syntax::hir::{Hir, HirKind};

use crate::prefilter::Hit;
use crate::rules::{Rule, compile_hir};

/// Bytes that the lazily built automaton of one rule may take per thread.
const REGEX_CACHE_BYTES: usize = 1024 * 1024;

/// Starts beyond a window that are searched with it, at most.
const AHEAD_MAX: usize = 64 * 1024;

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
    by_rule: Vec<Option<Box<RegexCache>>>,
    slots: Vec<Option<NonMaxUsize>>,
}

struct RegexCache {
    cache: meta::Cache,
    window_bytes: u64,
}

impl RegexCaches {
    /// Bytes handed to each rule's regex so far.
    pub fn window_bytes(&self) -> impl Iterator<Item = u64> {
        self.by_rule.iter().map(|cache| cache.as_ref().map_or(0, |cache| cache.window_bytes))
    }
}

/// The regexes of all rules, each compiled when first needed.
pub struct Confirmer {
    regexes: Vec<OnceLock<Compiled>>,
}

struct Compiled {
    regex: Regex,
    /// Every match is a value from its first byte to its last, so nobody need ask where the value is.
    is_value: bool,
}

/// What the last search of a rule told.
#[derive(Clone, Copy)]
struct Known {
    /// No match starts from here ...
    from: usize,
    /// ... to before here,
    to: usize,
    /// where this one starts, if there is one: its end.
    end: Option<usize>,
    /// Starts beyond the window that were searched with it.
    ahead: usize,
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
        let mut hits = hits.iter().filter(|hit| may_match(rule, bytes, hit)).peekable();
        if hits.peek().is_none() {
            return;
        }
        let Compiled { regex, is_value } = self.regexes[index as usize].get_or_init(|| compile(rule));
        if caches.by_rule.is_empty() {
            caches.by_rule.resize_with(self.regexes.len(), || None);
        }
        let RegexCaches { by_rule, slots } = caches;
        let fresh = || Box::new(RegexCache { cache: regex.create_cache(), window_bytes: 0 });
        let RegexCache { cache, window_bytes } = &mut **by_rule[index as usize].get_or_insert_with(fresh);
        let groups = if *is_value { 0..0 } else { rule.value_groups.clone() };
        let mut search = Search { regex, cache, rule, groups, bytes, window_bytes, slots, known: None };
        // Where the trigger tells the start of a match, nothing is searched for.
        let is_placed = rule.lead.min == rule.lead.max;
        for hit in hits {
            let matched = if is_placed {
                search.match_at(hit)
            } else {
                search.match_for(hit).map(|(start, end)| ((start, end), search.value(start, end)))
            };
            let Some(((match_start, match_end), (start, end))) = matched else { continue };
            let value = Found { start, end, rule: index, match_start, match_end };
            if end > start && found.last() != Some(&value) {
                found.push(value);
            }
        }
    }
}

/// Whether what every match of the rule contains is where one with this trigger may be.
fn may_match(rule: &Rule, bytes: &[u8], hit: &Hit) -> bool {
    let Some(run) = &rule.run else { return true };
    let from = hit.at.saturating_sub(rule.lead.max);
    let end = (hit.at.saturating_sub(rule.lead.min) + rule.max_len).min(bytes.len());
    run.is_in(&bytes[from.min(end)..end])
}

fn compile(rule: &Rule) -> Compiled {
    // Where the trigger tells the start of a match, nothing is searched for: it would not pay to prepare that.
    let config = Regex::config()
        .utf8_empty(false)
        .auto_prefilter(rule.lead.min < rule.lead.max)
        .nfa_size_limit(None)
        .hybrid_cache_capacity(REGEX_CACHE_BYTES)
        .pool_capacity(1);
    let hir = compile_hir(rule);
    let regex = Regex::builder()
        .configure(config)
        .build_from_hir(&hir)
        .expect("a loaded rule's regex parses, and its size is bounded when it is loaded");
    let groups = &rule.value_groups;
    Compiled { regex, is_value: groups.is_empty() || (groups.len() == 1 && is_all(&hir, groups.start)) }
}

/// Whether the group holds all bytes of every match.
fn is_all(hir: &Hir, group: usize) -> bool {
    match hir.kind() {
        HirKind::Capture(capture) => capture.index as usize == group || is_all(&capture.sub, group),
        HirKind::Concat(parts) => {
            let mut parts = parts.iter().filter(|part| !matches!(part.kind(), HirKind::Look(_)));
            parts.next().is_some_and(|part| is_all(part, group)) && parts.next().is_none()
        }
        _ => false,
    }
}

struct Search<'s> {
    regex: &'s Regex,
    cache: &'s mut meta::Cache,
    rule: &'s Rule,
    /// Those that the value is in; none if it is the match.
    groups: Range<usize>,
    bytes: &'s [u8],
    window_bytes: &'s mut u64,
    slots: &'s mut Vec<Option<NonMaxUsize>>,
    known: Option<Known>,
}

/// From where to where.
type Span = (usize, usize);

impl Search<'_> {
    /// The match at the one place that the trigger allows, and its value.
    fn match_at(&mut self, hit: &Hit) -> Option<(Span, Span)> {
        let start = hit.at.checked_sub(self.rule.lead.min)?;
        let end = (start + self.rule.max_len).min(self.bytes.len());
        *self.window_bytes += (end - start) as u64;
        let found = self.search_groups(start, end)?;
        (found.0.1 >= hit.at + hit.len as usize).then_some(found)
    }

    fn match_for(&mut self, hit: &Hit) -> Option<Span> {
        let lead = self.rule.lead;
        let last = hit.at.checked_sub(lead.min)?;
        let needed = hit.at + hit.len as usize;
        let mut from = hit.at.saturating_sub(lead.max);
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
        if let Some(known) = self.known
            && (known.from..=known.to).contains(&from)
        {
            match known.end {
                Some(end) => return (known.to <= last).then_some((known.to, end)),
                None => search_from = known.to,
            }
        }
        if search_from > last {
            return None;
        }
        let (known_from, ahead) = match self.known {
            // Triggers are dense: the next windows are searched along with this one, ever more of them.
            Some(known) if search_from != from => (known.from, (2 * known.ahead).clamp(1, AHEAD_MAX)),
            // As dense, with gaps between windows that are shorter than what is read behind each.
            Some(known) if known.end.is_none() && from <= known.to + self.rule.max_len => {
                (from, (2 * known.ahead).clamp(1, AHEAD_MAX))
            }
            _ => (from, 0),
        };
        let far = last + ahead;
        let found = self.run(search_from, far).filter(|&(start, _)| start <= far);
        self.known = Some(match found {
            Some((start, end)) => Known { from: known_from, to: start, end: Some(end), ahead },
            None => Known { from: known_from, to: far + 1, end: None, ahead: ahead.max(self.rule.max_len) },
        });
        found.filter(|&(start, _)| start <= last)
    }

    /// A match that starts at or before `last` has all the room it can take; a later one may be cut short,
    /// and the caller drops it.
    fn run(&mut self, from: usize, last: usize) -> Option<Span> {
        let end = (last + self.rule.max_len).min(self.bytes.len());
        *self.window_bytes += (end - from) as u64;
        let input = Input::new(self.bytes).span(from..end);
        let found = self.regex.search_with(self.cache, &input)?;
        Some((found.start(), found.end()))
    }

    /// The span of the value in the match `start..end`.
    fn value(&mut self, start: usize, end: usize) -> Span {
        if self.groups.is_empty() {
            return (start, end);
        }
        let room = (start + self.rule.max_len).min(self.bytes.len());
        self.search_groups(start, room).map_or((start, end), |(_, value)| value)
    }

    /// The match that starts at `start` and ends at `room` or before, and its value.
    fn search_groups(&mut self, start: usize, room: usize) -> Option<(Span, Span)> {
        let mut groups = self.groups.clone();
        self.slots.clear();
        self.slots.resize(2 * groups.end.max(1), None);
        let input = Input::new(self.bytes).span(start..room).anchored(Anchored::Yes);
        self.regex.search_slots_with(self.cache, &input, self.slots)?;
        let span = |group: usize| Some((self.slots[2 * group]?.get(), self.slots[2 * group + 1]?.get()));
        let whole = span(0)?;
        let first = groups.start;
        let filled = groups.find_map(|group| span(group).filter(|(from, to)| from < to));
        Some((whole, filled.or_else(|| span(first)).unwrap_or(whole)))
    }
}
