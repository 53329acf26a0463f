//! Reuses trigger hits of a blob's delta base. Bytes that the delta copies unchanged are not searched again.
//!
//! Matches are not reused: a match depends on up to [`crate::LOOKBEHIND`] bytes before it, and few bytes of a text are
//! that far from every change. Hits are: whether a trigger is at a place depends on [`HIT_REACH`] bytes around it, and
//! what its rule's regex finds there on as many more as one match of that rule may be long. Everything after that
//! (judging, decoding, which of several matches stays) is done anew for the whole text. So the matches are exactly those
//! of a scan without a base; only the time differs.

use std::ops::Range;

use super::confirm::Found;
use super::repeats::{self, Piece};
use super::{Chunk, Match, Scanner, Scratch, Silent};
use crate::prefilter::{DECODE, HIT_REACH, Hit, SEGMENT_ALIGN};
use crate::rules::{Rule, Trigger};

/// Bytes of the longest trigger that [`HIT_REACH`] allows for.
const TRIGGER_MAX: usize = 64;
/// Bytes of text per byte of hits, at least: a text with more hits keeps none.
const BYTES_PER_BYTE: usize = 4;
/// Bytes that a range must spare, at least: the search of what is beside it costs as much as to search so many more.
const SPARED_MIN: usize = 512;

/// Bytes of a text whose hits are kept, at most: the triggers of all of it are held at once.
const TEXT_MAX: usize = 256 * 1024;

const _: () = assert!(TEXT_MAX <= u32::MAX as usize);

/// Bytes that a text has from its delta base.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopiedRange {
    /// Offset in this text.
    pub at: usize,
    /// Offset in the base.
    pub from: usize,
    pub len: usize,
}

/// The hits of a scanned text: neither the text nor a value of it, only offsets.
#[derive(Debug)]
pub struct ReusableHits {
    scanner: u64,
    in_code: bool,
    /// Bytes of the text.
    len: usize,
    /// All triggers, in order of their offsets.
    hits: Vec<SmallHit>,
    /// All that they led to, in order.
    found: Vec<Found>,
}

impl ReusableHits {
    /// Bytes that the hits of a text of `len` bytes take, at most.
    pub const fn bytes_max(len: usize) -> usize {
        len / BYTES_PER_BYTE
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.hits[..]) + size_of_val(&self.found[..])
    }
}

/// A [`Hit`] in less memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct SmallHit {
    at: u32,
    rule: u16,
    len: u16,
}

impl SmallHit {
    /// In place of a rule: [`DECODE`].
    const DECODE: u16 = u16::MAX;

    fn of(hit: &Hit) -> SmallHit {
        let rule = if hit.rule == DECODE { SmallHit::DECODE } else { hit.rule as u16 };
        SmallHit { at: hit.at as u32, rule, len: hit.len as u16 }
    }

    /// The same trigger where the text has it.
    fn hit(self, at: usize) -> Hit {
        let rule = if self.rule == SmallHit::DECODE { DECODE } else { u32::from(self.rule) };
        Hit { rule, at, len: u32::from(self.len) }
    }
}

/// Whether hits of these rules can be kept: each trigger and each rule's number have room in a [`SmallHit`].
pub(super) fn can_keep_hits(rules: &[Rule]) -> bool {
    let is_short = |rule: &Rule| match &rule.trigger {
        Trigger::Literals(literals) => literals.iter().all(|literal| literal.bytes.len() <= TRIGGER_MAX),
        Trigger::Shape(_) => true,
    };
    rules.len() < usize::from(SmallHit::DECODE) && rules.iter().all(is_short)
}

/// A copied range that is worth it.
struct Reused {
    /// In the base. An end that both texts have there is no limit.
    there: Range<usize>,
    is_first: bool,
    is_last: bool,
    /// In this text: hits here are taken over.
    taken: Range<usize>,
    /// What leads from a place there to the one here, wrapping around.
    shift: usize,
}

impl Reused {
    fn new(range: &CopiedRange, len: usize, base_len: usize) -> Option<Reused> {
        let CopiedRange { at, from, len: copied } = *range;
        let (end, base_end) = (at.checked_add(copied)?, from.checked_add(copied)?);
        if end > len || base_end > base_len {
            return None;
        }
        let (is_first, is_last) = (at == 0 && from == 0, end == len && base_end == base_len);
        let taken_from = if is_first { 0 } else { at + HIT_REACH };
        let taken_to = if is_last { len } else { end.saturating_sub(HIT_REACH) };
        let is_worth_it = taken_from + 2 * HIT_REACH + SPARED_MIN <= taken_to;
        is_worth_it.then(|| Reused {
            there: from..base_end,
            is_first,
            is_last,
            taken: taken_from..taken_to,
            shift: at.wrapping_sub(from),
        })
    }

    /// Whether the range has all from `reach` bytes before `start` to as many behind `end`, as the base has them.
    fn has(&self, start: usize, end: usize, reach: usize) -> bool {
        (self.is_first || start >= self.there.start + reach)
            && (self.is_last || end + reach <= self.there.end)
    }

    /// Whether the range has all that the trigger can lead to, and all that this depends on.
    fn settles(&self, rule: &Rule, at: usize) -> bool {
        self.has(at, at, HIT_REACH + 2 * rule.max_len)
    }

    /// Whether what was found depends on nothing beyond the range, whichever trigger led to it.
    fn has_found(&self, rule: &Rule, found: &Found) -> bool {
        self.has(found.match_start, found.match_end, HIT_REACH + rule.max_len)
    }

    /// The offset in this text of one in the base.
    fn here(&self, there: usize) -> usize {
        there.wrapping_add(self.shift)
    }

    /// The offset in the base of one in this text.
    fn there(&self, here: usize) -> usize {
        here.wrapping_sub(self.shift)
    }
}

impl Scanner {
    /// Scans a whole text as [`Scanner::scan`] does. `base` has the hits of the text's delta base, and the ranges that are
    /// copied from it, in order. Returns the text's own hits, if they are to be kept and can be.
    pub fn scan_with_base(
        &self,
        chunk: &Chunk<'_>,
        base: Option<(&ReusableHits, &[CopiedRange])>,
        keep: bool,
        scratch: &mut Scratch,
        out: &mut Vec<Match>,
    ) -> Option<ReusableHits> {
        let accept = self.begin(chunk, scratch);
        let reused = base.map_or(Vec::new(), |(hits, copied)| self.reused(chunk, hits, copied));
        let is_of_use = keep || !reused.is_empty();
        let is_plain = || matches!(repeats::pieces(chunk.bytes, &accept)[..], [Piece::Searched(_)]);
        let is_whole = accept.len() == chunk.bytes.len() && accept.len() <= TEXT_MAX;
        if !is_of_use || !self.keeps_hits || !is_whole || !is_plain() {
            self.scan(chunk, scratch, out);
            return None;
        }
        self.match_path(chunk, &accept, scratch, out);
        scratch.found.clear();
        scratch.encoded.clear();
        self.search_rest(chunk, &reused, scratch);
        let settled = base.map_or(Vec::new(), |(hits, _)| self.take_over(hits, &reused, scratch));
        let is_complete = self.confirm_hits::<()>(chunk, &accept, &Silent::default(), scratch);
        scratch.found.sort_unstable();
        scratch.found.dedup();
        let own = (keep && is_complete).then(|| {
            let mut hits: Vec<SmallHit> = scratch.hits.iter().map(SmallHit::of).chain(settled).collect();
            // Made of a few parts that are in order.
            hits.sort();
            hits.dedup();
            ReusableHits {
                scanner: self.id,
                in_code: chunk.kind.code,
                len: accept.len(),
                hits,
                found: scratch.found.clone(),
            }
        });
        let mut matches = self.conclude(chunk, &accept, 0, scratch, &mut ());
        self.keep_accepted(&mut matches, &accept, &mut scratch.suppressed);
        out.append(&mut matches);
        own.filter(|own| own.bytes() <= ReusableHits::bytes_max(own.len))
    }

    /// The copied ranges that are worth it, apart and in order.
    fn reused(&self, chunk: &Chunk<'_>, base: &ReusableHits, copied: &[CopiedRange]) -> Vec<Reused> {
        let mut reused: Vec<Reused> = Vec::new();
        if base.scanner != self.id || base.in_code != chunk.kind.code {
            return reused;
        }
        for one in copied.iter().filter_map(|range| Reused::new(range, chunk.bytes.len(), base.len)) {
            if reused.last().is_none_or(|last| last.taken.end <= one.taken.start) {
                reused.push(one);
            }
        }
        reused
    }

    /// Puts the triggers outside of what is taken over into `scratch.hits`.
    fn search_rest(&self, chunk: &Chunk<'_>, reused: &[Reused], scratch: &mut Scratch) {
        let (bytes, prefilter) = (chunk.bytes, self.prefilter(chunk.kind));
        let Scratch { buffers, hits, .. } = scratch;
        hits.clear();
        let starts = std::iter::once(0).chain(reused.iter().map(|one| one.taken.end));
        let ends = reused.iter().map(|one| one.taken.start).chain([bytes.len()]);
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

    /// Adds the hits of the reused ranges: to `scratch.hits` the triggers that must be asked again, and to
    /// `scratch.found` what the others led to. The others.
    fn take_over(&self, base: &ReusableHits, reused: &[Reused], scratch: &mut Scratch) -> Vec<SmallHit> {
        // Of rules for some paths nothing is known: that of the base is another.
        let rule = |index: u32| self.rules.rules().get(index as usize).filter(|rule| rule.path.is_empty());
        let mut settled = Vec::new();
        for one in reused {
            let taken = one.there(one.taken.start)..one.there(one.taken.end);
            let first = base.hits.partition_point(|hit| (hit.at as usize) < taken.start);
            for small in base.hits[first..].iter().take_while(|hit| (hit.at as usize) < taken.end) {
                let hit = small.hit(one.here(small.at as usize));
                if rule(hit.rule).is_some_and(|rule| one.settles(rule, small.at as usize)) {
                    settled.push(SmallHit::of(&hit));
                } else {
                    scratch.hits.push(hit);
                }
            }
            let first = base.found.partition_point(|found| found.start < one.there.start);
            let within = base.found[first..].iter().take_while(|found| found.start < one.there.end);
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
