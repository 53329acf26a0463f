//! The scan of one chunk: triggers, confirmation, judgement, and which of overlapping matches stays.
//! Only this module knows the order of these steps. It must not remember anything from one chunk to the
//! next: what a match is depends on the bytes near it alone.

mod beside;
mod cell;
mod confirm;
mod controls;
mod delta_reuse;
mod dense;
mod explain;
mod found;
mod hits;
mod regexes;
mod repeats;
mod resolve;
mod sides;
mod split;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use domesday_model::Score;

use crate::decode::{self, Layer};
use crate::prefilter::{Buffers, Hit, Prefilter, SEGMENT_ALIGN};
use crate::rules::allow::{LINE_LOOK, Seen};
use crate::rules::{Rule, RuleSet};
use crate::scoring::{self, Evidence, Evidences, Facts, Memos, PathKind, Unmarked, Weight, WordIndex};
use crate::{LOOKAHEAD, LOOKBEHIND, MARGIN, MAX_MATCH_LEN};
use beside::{Beside, BesideScratch};
use confirm::{Confirmer, RegexCaches};
use dense::Dense;
use explain::Watch;
use found::{outward, place};
use hits::HitGroups;
use repeats::Piece;
use resolve::Kind;

pub use cell::Silent;
pub use delta_reuse::{CopiedRange, ReusableHits};
pub use explain::{Explained, Verdict};
pub use found::{Decoded, Match};

/// Bytes of a chunk whose triggers are gathered before they are confirmed, so that the hits of a hostile
/// chunk stay few.
const SEGMENT: usize = 64 * 1024;

const _: () = assert!(SEGMENT.is_multiple_of(SEGMENT_ALIGN));
const _: () = assert!(decode::ENCODED_MAX + decode::NAME_MAX + MAX_MATCH_LEN <= LOOKBEHIND);
const _: () = assert!(decode::ENCODED_MAX + MAX_MATCH_LEN <= LOOKAHEAD);
const _: () = assert!(scoring::IGNORE_LOOK <= MARGIN && LINE_LOOK <= MARGIN && crate::CONTEXT_MAX <= MARGIN);

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
    /// What that makes of it. It may be known where the path is not.
    pub kind: PathKind,
}

impl<'a> Chunk<'a> {
    /// A piece of a text that has no path.
    pub fn unnamed(bytes: &'a [u8], accept: Range<usize>) -> Chunk<'a> {
        Chunk { bytes, accept, path: b"", kind: PathKind::default() }
    }

    /// A whole object at once.
    pub fn whole(bytes: &'a [u8], path: &'a [u8]) -> Chunk<'a> {
        Chunk { bytes, accept: 0..bytes.len(), path, kind: PathKind::of(path) }
    }
}

/// Buffers and regex caches of one thread, reused from chunk to chunk. Bounded by the rule set and
/// [`SEGMENT`], except for matches, which are bounded by the chunk.
#[derive(Default)]
pub struct Scratch {
    /// The scanner whose regexes the caches belong to.
    scanner: u64,
    caches: RegexCaches,
    buffers: Buffers,
    hits: Vec<Hit>,
    groups: HitGroups,
    dense: Dense,
    beside: BesideScratch,
    found: Vec<confirm::Found>,
    /// Where something may be decoded.
    encoded: Vec<usize>,
    memos: Memos,
    judged: Vec<Match>,
    /// What was judged and displaces nothing, because a control is about it alone.
    aside: Vec<Match>,
    /// The matches of all pieces of a chunk so far.
    accepted: Vec<Match>,
    /// Those that a control keeps out of reports.
    suppressed: Vec<Match>,
}

impl Scratch {
    pub fn new() -> Scratch {
        Scratch::default()
    }

    /// Takes what the last scan found and a control keeps out of reports: what would be reported without any. In order of
    /// spans.
    pub fn take_suppressed(&mut self) -> Vec<Match> {
        std::mem::take(&mut self.suppressed)
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
    /// How specific each rule is.
    kinds: Vec<Kind>,
    /// For objects of source code, where some rules have nothing to say from `floor` on, and for all others.
    in_code: OnceLock<Prefilter>,
    elsewhere: OnceLock<Prefilter>,
    confirmer: Confirmer,
    beside: OnceLock<Beside>,
    /// By rule, whether it says nothing without a context word.
    needs_word: Vec<bool>,
    /// The words of those.
    words: OnceLock<WordIndex>,
    /// Rules that are about the path of an object alone.
    path_rules: Vec<u32>,
    keeps_hits: bool,
    heeds_marks: bool,
}

/// What is specific displaces others whether or not it is reported itself.
fn judging_floor(floor: Score) -> Score {
    floor.min(resolve::SPECIFIC_MIN)
}

impl Scanner {
    /// Quick: regexes are compiled, and triggers prepared, when first needed.
    pub fn new(rules: Arc<RuleSet>) -> Scanner {
        Scanner::with_floor(rules, Score(0))
    }

    /// Reports only matches that score at least `floor`, and drops the others as early as it can. The matches
    /// that are left are the same as without: what may displace another in spite of its score is kept until then.
    pub fn with_floor(rules: Arc<RuleSet>, floor: Score) -> Scanner {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        Scanner {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            kinds: rules.rules().iter().map(Kind::of).collect(),
            in_code: OnceLock::new(),
            elsewhere: OnceLock::new(),
            confirmer: Confirmer::new(rules.rules().len()),
            beside: OnceLock::new(),
            needs_word: rules
                .rules()
                .iter()
                .map(|rule| scoring::needs_word(rule, judging_floor(floor)))
                .collect(),
            words: OnceLock::new(),
            path_rules: (0..)
                .zip(rules.rules())
                .filter(|(_, rule)| rule.is_of_path_only())
                .map(|(i, _)| i)
                .collect(),
            keeps_hits: delta_reuse::can_keep_hits(rules.rules()),
            rules,
            floor,
            heeds_marks: true,
        }
    }

    /// With `heeds_marks` false ignore marks do not count: for a text that must not say what is reported of it.
    #[must_use]
    pub fn heeding_marks(self, heeds_marks: bool) -> Scanner {
        Scanner { heeds_marks, ..self }
    }

    pub fn heeds_marks(&self) -> bool {
        self.heeds_marks
    }

    pub fn rules(&self) -> &Arc<RuleSet> {
        &self.rules
    }

    /// Matches that score less are not reported.
    pub fn floor(&self) -> Score {
        self.floor
    }

    fn judging_floor(&self) -> Score {
        judging_floor(self.floor)
    }

    fn prefilter(&self, path: PathKind) -> &Prefilter {
        let prefilter = if path.code { &self.in_code } else { &self.elsewhere };
        let wanted = |rule: &Rule| scoring::highest(rule, path) >= self.judging_floor();
        prefilter.get_or_init(|| Prefilter::new(self.rules.rules(), wanted))
    }

    /// Prepares the triggers for objects of such a path ahead of the first, which would wait for them otherwise.
    pub fn prepare(&self, path: &[u8]) {
        self.prefilter(PathKind::of(path));
    }

    fn words(&self) -> &WordIndex {
        self.words.get_or_init(|| WordIndex::new(self.rules.rules(), |rule| self.needs_word[rule]))
    }

    /// Adds the matches whose value starts in `chunk.accept` to `out`, in order of their spans.
    pub fn scan(&self, chunk: &Chunk<'_>, scratch: &mut Scratch, out: &mut Vec<Match>) {
        self.scan_without(chunk, &Silent::default(), scratch, out);
    }

    /// The same, without asking rules that are known to report nothing of this text.
    pub fn scan_without(
        &self,
        chunk: &Chunk<'_>,
        silent: &Silent,
        scratch: &mut Scratch,
        out: &mut Vec<Match>,
    ) {
        let accept = self.begin(chunk, scratch);
        self.match_path(chunk, &accept, scratch, out);
        let mut all = std::mem::take(&mut scratch.accepted);
        for piece in repeats::pieces(chunk.bytes, &accept) {
            match piece {
                Piece::Searched(range) => {
                    let mut matches = self.matches(chunk, &range, 0, silent, scratch, &mut ());
                    self.keep_accepted(&mut matches, &range, &mut scratch.suppressed);
                    all.append(&mut matches);
                    scratch.judged = matches;
                }
                Piece::Repeated { range, period } => {
                    repeats::copy(&mut all, &range, period);
                    repeats::copy(&mut scratch.suppressed, &range, period);
                }
            }
        }
        out.append(&mut all);
        scratch.accepted = all;
    }

    /// Readies the scratch; what is accepted.
    fn begin(&self, chunk: &Chunk<'_>, scratch: &mut Scratch) -> Range<usize> {
        if scratch.scanner != self.id {
            *scratch = Scratch { scanner: self.id, ..Scratch::default() };
        }
        scratch.suppressed.clear();
        chunk.accept.start.min(chunk.bytes.len())..chunk.accept.end.min(chunk.bytes.len())
    }

    /// Adds what the object's path says, once: where the object begins. There its first byte stands for it.
    fn match_path(
        &self,
        chunk: &Chunk<'_>,
        accept: &Range<usize>,
        scratch: &mut Scratch,
        out: &mut Vec<Match>,
    ) {
        for &index in self.path_rules.iter().filter(|_| accept.start == 0 && !accept.is_empty()) {
            let rule = &self.rules.rules()[index as usize];
            let seen = Seen { value: &[], whole: &[], bytes: &[], span: 0..0, path: chunk.path };
            if rule.score >= self.floor && rule.path.is_match(chunk.path) {
                let mut reasons = Evidences::default();
                reasons.push(Evidence::Proof("the path matches"), Weight::Nothing);
                let (span, score) = (0..1, rule.score);
                let suppressed = self.rules.allows().covers(index, &seen).map(|covered| covered.by);
                let out = if suppressed.is_none() { &mut *out } else { &mut scratch.suppressed };
                out.push(Match { rule: index, span, score, reasons, decoded: None, suppressed });
            }
        }
    }

    /// The matches of a text that is written in `depth` encodings, those near `accept` and those that a control keeps out
    /// of reports included.
    fn matches<W: Watch>(
        &self,
        chunk: &Chunk<'_>,
        accept: &Range<usize>,
        depth: usize,
        silent: &Silent,
        scratch: &mut Scratch,
        watch: &mut W,
    ) -> Vec<Match> {
        let bytes = chunk.bytes;
        let prefilter = self.prefilter(chunk.kind);
        scratch.found.clear();
        scratch.encoded.clear();
        self.for_each_segment(bytes, accept, |segment| {
            scratch.hits.clear();
            prefilter.find(bytes, segment.clone(), &mut scratch.buffers, &mut scratch.hits);
            self.confirm_hits::<W>(chunk, &segment, silent, scratch);
        });
        // Those of each rule are in order already, which this sort makes use of.
        scratch.found.sort();
        self.conclude(chunk, accept, depth, scratch, watch)
    }

    /// The matches among what was found, which is in order, and in what may be decoded.
    fn conclude<W: Watch>(
        &self,
        chunk: &Chunk<'_>,
        accept: &Range<usize>,
        depth: usize,
        scratch: &mut Scratch,
        watch: &mut W,
    ) -> Vec<Match> {
        scratch.found.dedup_by(confirm::Found::same_value);
        self.judge(chunk, accept, scratch, watch);
        let mut matches = std::mem::take(&mut scratch.judged);
        let mut aside = std::mem::take(&mut scratch.aside);
        if depth < decode::DEPTH_MAX {
            let (encoded, mut decoded) = (std::mem::take(&mut scratch.encoded), Vec::new());
            for layer in decode::layers(chunk.bytes, &encoded, |run| run.end > accept.start) {
                self.look_into(chunk, &layer, depth, scratch, watch, [&mut decoded, &mut aside]);
            }
            // What is decoded before can tell only whether a match stays that begins there and ends behind.
            let crosses = |found: &Match| found.span.start < accept.start && accept.start < found.span.end;
            if W::ALL || matches.iter().chain(&decoded).chain(&aside).any(crosses) {
                for layer in decode::layers(chunk.bytes, &encoded, |run| run.end <= accept.start) {
                    self.look_into(chunk, &layer, depth, scratch, watch, [&mut decoded, &mut aside]);
                }
            }
            // What was found as it stands there is not told again, unless the decoded text says more for it.
            decoded.retain(|found| {
                let same = matches.binary_search_by_key(&place(found), place);
                same.is_err() || same.is_ok_and(|at| matches[at].score < found.score)
            });
            matches.append(&mut decoded);
        }
        let kind = |rule: u32| self.kinds[rule as usize];
        let with_aside = (!aside.is_empty()).then(|| {
            let mut all = [&matches[..], &aside[..]].concat();
            resolve::resolve(&mut all, kind, |_, _| {});
            all
        });
        resolve::resolve(&mut matches, kind, |found, by| {
            let verdict = Verdict::Displaced { by: by.rule };
            watch.dropped(|| Explained { found: found.clone(), verdict });
        });
        if let Some(mut all) = with_aside {
            // Of what is set aside, that which would be reported if it were not.
            all.retain(|found| self.is_aside(found));
            all.dedup_by_key(|found| place(found));
            matches.append(&mut all);
            matches.sort_by_key(place);
            aside.clear();
        }
        scratch.aside = aside;
        matches
    }

    /// Adds the matches of a decoded text, at the places they came from; to `aside` those that displace nothing.
    fn look_into<W: Watch>(
        &self,
        chunk: &Chunk<'_>,
        layer: &Layer,
        depth: usize,
        scratch: &mut Scratch,
        watch: &mut W,
        [matches, aside]: [&mut Vec<Match>; 2],
    ) {
        let (bytes, accept) = (&layer.text[..], 0..layer.text.len());
        let inner = Chunk { bytes, accept, ..*chunk };
        let mut dropped = W::default();
        // What is decoded has words of its own.
        let (accept, silent) = (layer.start..layer.text.len(), Silent::default());
        let found = self.matches(&inner, &accept, depth + 1, &silent, scratch, &mut dropped);
        let is_own = |found: &Match| found.span.start >= layer.start;
        for found in found.into_iter().filter(is_own) {
            let found = outward(found, layer);
            if self.is_aside(&found) {
                aside.push(found);
                continue;
            }
            let is_marked = self.is_ignored(chunk, &found.span, found.rule);
            // The match and the line were looked at where they are decoded; here they are as they are written.
            let whole = found.span.clone();
            self.sort_out(chunk, &whole, is_marked, found, watch, [&mut *matches, &mut *aside]);
        }
        for Explained { found, verdict } in dropped.into_all() {
            if is_own(&found) {
                watch.dropped(|| Explained { found: outward(found, layer), verdict });
            }
        }
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
    fn judge<W: Watch>(
        &self,
        chunk: &Chunk<'_>,
        accept: &Range<usize>,
        scratch: &mut Scratch,
        watch: &mut W,
    ) {
        let near = accept.start.saturating_sub(MAX_MATCH_LEN)..accept.end + MAX_MATCH_LEN;
        scratch.judged.clear();
        scratch.aside.clear();
        scratch.memos.begin(self.rules.rules().len());
        let (mut unmarked, mut facts) = (Unmarked::default(), Facts::default());
        for found in scratch.found.iter().filter(|found| near.contains(&found.start)) {
            let rule = &self.rules.rules()[found.rule as usize];
            let span = found.start..found.end;
            let floor = if W::ALL { Score(0) } else { self.judging_floor() };
            let memo = scratch.memos.of(found.rule);
            let judged = scoring::judge(rule, chunk.bytes, span.clone(), chunk.kind, floor, memo, &mut facts);
            let Some((score, reasons)) = judged else {
                let refusal = || scoring::refusal(rule, &chunk.bytes[span.clone()]);
                watch.dropped(|| Explained::without_score(found.rule, span.clone(), refusal()));
                continue;
            };
            let whole = found.match_start..found.match_end;
            let found = Match { rule: found.rule, span, score, reasons, decoded: None, suppressed: None };
            let is_marked =
                !unmarked.has(chunk.bytes, &found.span) && self.is_ignored(chunk, &found.span, found.rule);
            let into = [&mut scratch.judged, &mut scratch.aside];
            self.sort_out(chunk, &whole, is_marked, found, watch, into);
        }
    }
}

#[cfg(test)]
mod tests;
