//! Texts that have stretches in common with one that was scanned before, as the versions of a file have: what was met in
//! such a stretch is taken over, and only the rest is searched.
//!
//! What may be taken over is not the matches: those depend on up to [`crate::LOOKBEHIND`] bytes before them, and little of
//! a text is that far from all that changed. It is what they are made of. Whether a trigger is somewhere depends on
//! [`HIT_REACH`] bytes around it, and what its rule's regex finds there on as much as one match of that rule may be long.
//! Everything after that, judging, decoding, and which of several matches stays, is done anew for the whole text. So
//! the matches are exactly those of a scan without this, and whether traces are at hand is a matter of time alone.

use std::ops::Range;

use super::confirm::Found;
use super::repeats::{self, Piece};
use super::{Chunk, Match, Scanner, Scratch, Silent};
use crate::prefilter::{DECODE, HIT_REACH, Hit, SEGMENT_ALIGN};
use crate::rules::{Rule, Trigger};

/// Bytes of the longest trigger that [`HIT_REACH`] allows for.
const TRIGGER_MAX: usize = 64;
/// Traces take at most one byte for so many of their text; one in which more is met leaves none.
const BYTES_PER_BYTE: usize = 4;
/// Bytes that must be spared by a stretch: the search of what is beside it costs as much as to search so much more.
const SPARED_MIN: usize = 512;

/// Bytes of a text that leaves traces, at most: the triggers of all of it are held at once.
const TEXT_MAX: usize = 256 * 1024;

const _: () = assert!(TEXT_MAX <= u32::MAX as usize);

/// Bytes that a text has in common with another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// Where they are in this text,
    pub at: usize,
    /// and where in the other.
    pub from: usize,
    pub len: usize,
}

/// What a scan met in a text: neither the text nor a value of it, only places.
#[derive(Debug)]
pub struct Traces {
    scanner: u64,
    in_code: bool,
    /// Bytes of the text.
    len: usize,
    /// All triggers, in order of their places.
    hits: Vec<Trace>,
    /// All that they led to, in order.
    found: Vec<Found>,
}

impl Traces {
    /// Bytes that the traces of a text of `len` bytes take, at most.
    pub const fn bytes_max(len: usize) -> usize {
        len / BYTES_PER_BYTE
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.hits[..]) + size_of_val(&self.found[..])
    }
}

/// A [`Hit`] in less memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Trace {
    at: u32,
    rule: u16,
    len: u16,
}

impl Trace {
    /// In place of a rule: [`DECODE`].
    const DECODE: u16 = u16::MAX;

    fn of(hit: &Hit) -> Trace {
        let rule = if hit.rule == DECODE { Trace::DECODE } else { hit.rule as u16 };
        Trace { at: hit.at as u32, rule, len: hit.len as u16 }
    }

    /// The same trigger where the text has it.
    fn hit(self, at: usize) -> Hit {
        let rule = if self.rule == Trace::DECODE { DECODE } else { u32::from(self.rule) };
        Hit { rule, at, len: u32::from(self.len) }
    }
}

/// Whether traces of these rules can be kept: each trigger and each rule's number have room in a [`Trace`].
pub(super) fn leave_traces(rules: &[Rule]) -> bool {
    let is_short = |rule: &Rule| match &rule.trigger {
        Trigger::Literals(literals) => literals.iter().all(|literal| literal.bytes.len() <= TRIGGER_MAX),
        Trigger::Shape(_) => true,
    };
    rules.len() < usize::from(Trace::DECODE) && rules.iter().all(is_short)
}

/// A stretch that is worth it.
struct Common {
    /// In the other text. An end that both texts have there is no limit.
    there: Range<usize>,
    is_first: bool,
    is_last: bool,
    /// In this text: what was met here is taken over.
    taken: Range<usize>,
    /// What leads from a place there to the one here, wrapping around.
    shift: usize,
}

impl Common {
    fn new(stretch: &Stretch, len: usize, other_len: usize) -> Option<Common> {
        let Stretch { at, from, len: common } = *stretch;
        let (end, other_end) = (at.checked_add(common)?, from.checked_add(common)?);
        if end > len || other_end > other_len {
            return None;
        }
        let (is_first, is_last) = (at == 0 && from == 0, end == len && other_end == other_len);
        let taken_from = if is_first { 0 } else { at + HIT_REACH };
        let taken_to = if is_last { len } else { end.saturating_sub(HIT_REACH) };
        let is_worth_it = taken_from + 2 * HIT_REACH + SPARED_MIN <= taken_to;
        is_worth_it.then(|| Common {
            there: from..other_end,
            is_first,
            is_last,
            taken: taken_from..taken_to,
            shift: at.wrapping_sub(from),
        })
    }

    /// Whether the stretch has all from `reach` bytes before `start` to as many behind `end`, as the other text has them.
    fn has(&self, start: usize, end: usize, reach: usize) -> bool {
        (self.is_first || start >= self.there.start + reach)
            && (self.is_last || end + reach <= self.there.end)
    }

    /// Whether the stretch has all that the trigger can lead to, and all that this depends on.
    fn settles(&self, rule: &Rule, at: usize) -> bool {
        self.has(at, at, HIT_REACH + 2 * rule.max_len)
    }

    /// Whether what was found depends on nothing beyond the stretch, whichever trigger led to it.
    fn has_found(&self, rule: &Rule, found: &Found) -> bool {
        self.has(found.match_start, found.match_end, HIT_REACH + rule.max_len)
    }

    /// A place of the stretch in this text, and in the other.
    fn here(&self, there: usize) -> usize {
        there.wrapping_add(self.shift)
    }

    fn there(&self, here: usize) -> usize {
        here.wrapping_sub(self.shift)
    }
}

impl Scanner {
    /// Scans a whole text as [`Scanner::scan`] does, sooner where it has `stretches` in common, in order, with the text
    /// that `known` are traces of. Its own traces, if they are to be kept and can be.
    pub fn scan_akin(
        &self,
        chunk: &Chunk<'_>,
        known: Option<(&Traces, &[Stretch])>,
        keep: bool,
        scratch: &mut Scratch,
        out: &mut Vec<Match>,
    ) -> Option<Traces> {
        let accept = self.begin(chunk, scratch);
        let common = known.map_or(Vec::new(), |(traces, stretches)| self.common(chunk, traces, stretches));
        let is_of_use = keep || !common.is_empty();
        let is_plain = || matches!(repeats::pieces(chunk.bytes, &accept)[..], [Piece::Searched(_)]);
        let is_whole = accept.len() == chunk.bytes.len() && accept.len() <= TEXT_MAX;
        if !is_of_use
            || !self.leaves_traces
            || !is_whole
            || self.rules.allows().path(chunk.path)
            || !is_plain()
        {
            self.scan(chunk, scratch, out);
            return None;
        }
        self.match_path(chunk, &accept, out);
        scratch.found.clear();
        scratch.encoded.clear();
        self.search_rest(chunk, &common, scratch);
        let settled = known.map_or(Vec::new(), |(traces, _)| self.take_over(traces, &common, scratch));
        let is_complete = self.confirm_hits::<()>(chunk, &accept, &Silent::default(), scratch);
        scratch.found.sort_unstable();
        scratch.found.dedup();
        let traces = (keep && is_complete).then(|| {
            let mut hits: Vec<Trace> = scratch.hits.iter().map(Trace::of).chain(settled).collect();
            // Made of a few parts that are in order.
            hits.sort();
            hits.dedup();
            Traces {
                scanner: self.id,
                in_code: chunk.kind.code,
                len: accept.len(),
                hits,
                found: scratch.found.clone(),
            }
        });
        let mut matches = self.conclude(chunk, &accept, 0, scratch, &mut ());
        matches.retain(|found| {
            found.score >= self.floor && !found.allowed && accept.contains(&found.span.start)
        });
        out.append(&mut matches);
        traces.filter(|traces| traces.bytes() <= Traces::bytes_max(traces.len))
    }

    /// The stretches that are worth it, apart and in order.
    fn common(&self, chunk: &Chunk<'_>, traces: &Traces, stretches: &[Stretch]) -> Vec<Common> {
        let mut common: Vec<Common> = Vec::new();
        if traces.scanner != self.id || traces.in_code != chunk.kind.code {
            return common;
        }
        for one in stretches.iter().filter_map(|one| Common::new(one, chunk.bytes.len(), traces.len)) {
            if common.last().is_none_or(|last| last.taken.end <= one.taken.start) {
                common.push(one);
            }
        }
        common
    }

    /// Puts the triggers outside of what is taken over into `scratch.hits`.
    fn search_rest(&self, chunk: &Chunk<'_>, common: &[Common], scratch: &mut Scratch) {
        let (bytes, prefilter) = (chunk.bytes, self.prefilter(chunk.kind));
        let Scratch { buffers, hits, .. } = scratch;
        hits.clear();
        let starts = std::iter::once(0).chain(common.iter().map(|one| one.taken.end));
        let ends = common.iter().map(|one| one.taken.start).chain([bytes.len()]);
        for rest in starts.zip(ends).map(|(start, end)| start..end).filter(|rest| !rest.is_empty()) {
            let start = rest.start.saturating_sub(HIT_REACH) / SEGMENT_ALIGN * SEGMENT_ALIGN;
            let end = (rest.end + HIT_REACH).next_multiple_of(SEGMENT_ALIGN).min(bytes.len());
            let before = hits.len();
            prefilter.find(bytes, start..end, buffers, hits);
            let mut at = before;
            for next in before..hits.len() {
                if rest.contains(&hits[next].at) {
                    hits[at] = hits[next];
                    at += 1;
                }
            }
            hits.truncate(at);
        }
    }

    /// Adds what was met in the stretches: to `scratch.hits` the triggers that must be asked again, and to
    /// `scratch.found` what the others led to. The others.
    fn take_over(&self, traces: &Traces, common: &[Common], scratch: &mut Scratch) -> Vec<Trace> {
        // Of rules for some paths nothing is known: that of the other object is another.
        let rule = |index: u32| self.rules.rules().get(index as usize).filter(|rule| rule.path.is_empty());
        let mut settled = Vec::new();
        for one in common {
            let taken = one.there(one.taken.start)..one.there(one.taken.end);
            let first = traces.hits.partition_point(|hit| (hit.at as usize) < taken.start);
            for trace in traces.hits[first..].iter().take_while(|hit| (hit.at as usize) < taken.end) {
                let hit = trace.hit(one.here(trace.at as usize));
                if rule(hit.rule).is_some_and(|rule| one.settles(rule, trace.at as usize)) {
                    settled.push(Trace::of(&hit));
                } else {
                    scratch.hits.push(hit);
                }
            }
            let first = traces.found.partition_point(|found| found.start < one.there.start);
            let within = traces.found[first..].iter().take_while(|found| found.start < one.there.end);
            let kept = within.filter(|found| rule(found.rule).is_some_and(|rule| one.has_found(rule, found)));
            scratch.found.extend(kept.map(|found| Found {
                start: one.here(found.start),
                end: one.here(found.end),
                rule: found.rule,
                match_start: one.here(found.match_start),
                match_end: one.here(found.match_end),
            }));
        }
        settled
    }
}
