//! The scan of one chunk: triggers, confirmation, judgement, and which of overlapping matches stays.
//! Only this module knows the order of these steps. It must not remember anything from one chunk to the
//! next: what a match is depends on the bytes near it alone.

mod confirm;
mod resolve;

use std::ops::Range;
use std::sync::Arc;

use domesday_model::Score;

use crate::prefilter::{Hit, Prefilter, SEGMENT_ALIGN};
use crate::rules::RuleSet;
use crate::scoring::{self, Evidences};
use crate::{LOOKAHEAD, LOOKBEHIND, MARGIN, MAX_MATCH_LEN};
use confirm::{Confirmer, RegexCaches};

/// Bytes of a chunk whose triggers are gathered before they are confirmed, so that the hits of a hostile
/// chunk stay few.
const SEGMENT: usize = 256 * 1024;

const _: () = assert!(SEGMENT.is_multiple_of(SEGMENT_ALIGN));
const _: () = assert!(scoring::IGNORE_LOOK <= MARGIN && crate::CONTEXT_MAX <= MARGIN);

/// A piece of an object to scan.
#[derive(Clone, Debug)]
pub struct Chunk<'a> {
    /// Up to [`LOOKBEHIND`] bytes from before `accept`, what is accepted, and [`LOOKAHEAD`] bytes after; fewer
    /// only where the object starts or ends.
    pub bytes: &'a [u8],
    /// Matches whose value starts here are reported.
    pub accept: Range<usize>,
    /// The object's path.
    pub path: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// A whole object at once.
    pub fn whole(bytes: &'a [u8], path: &'a [u8]) -> Chunk<'a> {
        Chunk { bytes, accept: 0..bytes.len(), path }
    }
}

/// A value that a rule recognised.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Match {
    /// Index into [`RuleSet::rules`].
    pub rule: u32,
    /// The value, within the chunk's bytes.
    pub span: Range<usize>,
    pub score: Score,
    pub reasons: Evidences,
}

/// Buffers and regex caches of one thread, reused from chunk to chunk. Bounded by the rule set and
/// [`SEGMENT`], except for matches, which are bounded by the chunk.
#[derive(Default)]
pub struct Scratch {
    /// The scanner whose regexes the caches belong to.
    scanner: u64,
    caches: RegexCaches,
    hits: Vec<Hit>,
    found: Vec<confirm::Found>,
    judged: Vec<Match>,
}

impl Scratch {
    pub fn new() -> Scratch {
        Scratch::default()
    }

    /// Bytes handed to regexes so far: the measure of work after the trigger pass.
    pub fn window_bytes(&self) -> u64 {
        self.window_bytes_by_rule().sum()
    }

    /// The same for each rule.
    pub fn window_bytes_by_rule(&self) -> impl Iterator<Item = u64> {
        self.caches.window_bytes()
    }
}

/// Searches chunks for the matches of a rule set. Shared by all threads; each has its own [`Scratch`].
pub struct Scanner {
    id: u64,
    rules: Arc<RuleSet>,
    floor: Score,
    prefilter: Prefilter,
    confirmer: Confirmer,
}

impl Scanner {
    /// Quick: regexes are compiled when first needed.
    pub fn new(rules: Arc<RuleSet>) -> Scanner {
        Scanner::with_floor(rules, Score(0))
    }

    /// Reports only matches that score at least `floor`, and drops the others as early as it can. The matches
    /// that are left are the same as without: only a match that scores as much displaces another.
    pub fn with_floor(rules: Arc<RuleSet>, floor: Score) -> Scanner {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        Scanner {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            prefilter: Prefilter::new(rules.rules(), |rule| scoring::highest(rule) >= floor),
            confirmer: Confirmer::new(rules.rules().len()),
            rules,
            floor,
        }
    }

    pub fn rules(&self) -> &RuleSet {
        &self.rules
    }

    /// Adds the matches whose value starts in `chunk.accept` to `out`, in order of their spans.
    pub fn scan(&self, chunk: &Chunk<'_>, scratch: &mut Scratch, out: &mut Vec<Match>) {
        if scratch.scanner != self.id {
            *scratch = Scratch { scanner: self.id, ..Scratch::default() };
        }
        let bytes = chunk.bytes;
        let accept = chunk.accept.start.min(bytes.len())..chunk.accept.end.min(bytes.len());
        scratch.found.clear();
        self.for_each_segment(bytes, &accept, |segment| {
            scratch.hits.clear();
            self.prefilter.find(bytes, segment, &mut scratch.hits);
            scratch.hits.sort_unstable();
            for hits in scratch.hits.chunk_by(|a, b| a.rule == b.rule) {
                let rule = hits[0].rule;
                let rules = self.rules.rules();
                self.confirmer.confirm(
                    &rules[rule as usize],
                    rule,
                    bytes,
                    hits,
                    &mut scratch.caches,
                    &mut scratch.found,
                );
            }
        });
        scratch.found.sort_unstable();
        scratch.found.dedup();
        self.judge(chunk, &accept, scratch);
        resolve::resolve(&mut scratch.judged);
        out.extend(scratch.judged.drain(..).filter(|found| accept.contains(&found.span.start)));
    }

    /// The trigger pass alone, for measuring: how many hits the chunk has.
    pub fn count_hits(&self, bytes: &[u8], scratch: &mut Scratch) -> usize {
        let mut count = 0;
        self.for_each_segment(bytes, &(0..bytes.len()), |segment| {
            scratch.hits.clear();
            self.prefilter.find(bytes, segment, &mut scratch.hits);
            count += scratch.hits.len();
        });
        count
    }

    /// The pieces of `bytes` in which triggers can matter to what is accepted.
    fn for_each_segment(&self, bytes: &[u8], accept: &Range<usize>, mut each: impl FnMut(Range<usize>)) {
        let mut start = accept.start.saturating_sub(LOOKBEHIND) / SEGMENT_ALIGN * SEGMENT_ALIGN;
        let end = (accept.end + LOOKAHEAD).min(bytes.len());
        while start < end {
            let next = (start + SEGMENT).min(end);
            each(start..next);
            start = next;
        }
    }

    /// Judges what is accepted, and what may displace it.
    fn judge(&self, chunk: &Chunk<'_>, accept: &Range<usize>, scratch: &mut Scratch) {
        let near = accept.start.saturating_sub(MAX_MATCH_LEN)..accept.end + MAX_MATCH_LEN;
        let sample_path = scoring::is_sample_path(chunk.path);
        scratch.judged.clear();
        for found in scratch.found.iter().filter(|found| near.contains(&found.start)) {
            let rule = &self.rules.rules()[found.rule as usize];
            let span = found.start..found.end;
            let judged = scoring::judge(rule, chunk.bytes, span.clone(), sample_path, self.floor);
            let Some((score, reasons)) = judged else { continue };
            let is_rule = |id: &str| self.rules.get(id).is_some();
            if !scoring::is_ignored(chunk.bytes, span.clone(), &rule.id, is_rule) {
                scratch.judged.push(Match { rule: found.rule, span, score, reasons });
            }
        }
    }
}

#[cfg(test)]
mod tests;
