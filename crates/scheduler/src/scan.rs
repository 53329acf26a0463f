//! Matching one chunk and turning its matches into findings. Values are seen here and go no further:
//! what leaves is a fingerprint and a preview.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use domesday_engine::{Chunk, Match};
use domesday_model::fingerprint::preview;
use domesday_model::{FindingDraft, Span};

use crate::executor::WorkerCtx;
use crate::object::ObjectCtx;
use crate::occurrences::{Kept, Tally};
use crate::opened::DeltaReuse;
use crate::packet::RawValue;
use crate::position::{Place, Units, raw_len};

/// Which bytes of a buffer are a chunk, and where in the object they are. Buffers are at most 4 MiB, so
/// 32 bits hold every length.
#[derive(Clone, Copy, Debug)]
pub struct ChunkPlace {
    /// Of the first accepted byte.
    pub(crate) place: Place,
    /// Filled bytes of the buffer.
    pub(crate) len: u32,
    /// Bytes before the accepted ones: context from the chunk before.
    pub(crate) prefix_len: u32,
    /// End of the accepted bytes; what follows is context and the next chunk's.
    pub(crate) accept_end: u32,
    pub(crate) units: Units,
}

impl WorkerCtx {
    /// Matches a chunk that lies in `buffer`, and adds what is found to the object.
    pub(crate) fn scan_chunk(&mut self, obj: &ObjectCtx, buffer: &[u8], at: ChunkPlace) {
        self.scan_reusing(obj, buffer, at, None);
    }

    /// The same for a whole object that may be a delta, or the base of one.
    pub(crate) fn scan_reusing(
        &mut self,
        obj: &ObjectCtx,
        buffer: &[u8],
        at: ChunkPlace,
        reuse: Option<&DeltaReuse>,
    ) {
        let (len, found) = self.search_chunk(obj, buffer, at, reuse);
        obj.add_part(len, found);
    }

    /// Matches a chunk that lies in `buffer`: how many bytes were accepted, and what is found in them. A panic fails
    /// the object, and its other chunks are scanned all the same: whether a chunk is scanned inline must not change
    /// what is found.
    pub(crate) fn search_chunk(
        &mut self,
        obj: &ObjectCtx,
        buffer: &[u8],
        at: ChunkPlace,
        reuse: Option<&DeltaReuse>,
    ) -> (u64, Vec<Tally>) {
        match catch_unwind(AssertUnwindSafe(|| self.match_chunk(obj, buffer, at, reuse))) {
            Ok(found) => (u64::from(at.accept_end - at.prefix_len), found),
            Err(panic) => {
                self.blame(obj, &*panic);
                (0, Vec::new())
            }
        }
    }

    fn match_chunk(
        &mut self,
        obj: &ObjectCtx,
        buffer: &[u8],
        at: ChunkPlace,
        reuse: Option<&DeltaReuse>,
    ) -> Vec<Tally> {
        let packet = obj.packet();
        let bytes = &buffer[..at.len as usize];
        let accept = at.prefix_len as usize..at.accept_end as usize;
        let started = Instant::now();
        self.matches.clear();
        let chunk = Chunk { bytes, accept: accept.clone(), path: obj.name(), kind: obj.kind() };
        match reuse {
            None => packet.scanner.scan(&chunk, &mut self.scratch, &mut self.matches),
            Some(DeltaReuse { base, own }) => {
                let base = base.as_ref().and_then(|base| Some((base.hits.get()?, &base.copied[..])));
                let (keep, scratch) = (own.is_some(), &mut self.scratch);
                let hits = packet.scanner.scan_with_base(&chunk, base, keep, scratch, &mut self.matches);
                if let (Some(own), Some(hits)) = (own, hits) {
                    // Whoever scanned the same object at the same time has kept the same.
                    let _ = own.set(hits);
                }
            }
        }
        let metrics = self.metrics();
        metrics.matched.add(packet.kind, started.elapsed());
        metrics.scan_count.add(1);
        metrics.bytes_scanned.add(accept.len() as u64);
        let min_score = packet.options.min_score;
        self.matches.retain(|found| found.score >= min_score);
        let mut suppressed = self.scratch.take_suppressed();
        suppressed.retain(|found| found.score >= min_score);
        let rules = packet.scanner.rules();
        if rules.allows_by_fingerprint() {
            self.matches.iter_mut().for_each(|found| {
                let fingerprint = packet.key.fingerprint(found.value(bytes));
                found.suppressed = rules.allows_fingerprint(found.rule, &fingerprint.0, obj.name());
            });
            suppressed.extend(self.matches.extract_if(.., |found| found.suppressed.is_some()));
            suppressed.sort_by_key(|found| found.span.start);
        }
        debug_assert!(self.matches.is_sorted_by_key(|found| found.span.start), "matches come in order");
        let mut tallies = tally(obj, bytes, at, &self.matches);
        if !suppressed.is_empty() {
            tallies.append(&mut tally(obj, bytes, at, &suppressed));
        }
        tallies
    }
}

/// Describes the matches, which are in order. The place is carried from one match to the next, so that
/// each byte is counted once however many matches there are.
fn tally(obj: &ObjectCtx, bytes: &[u8], at: ChunkPlace, matches: &[Match]) -> Vec<Tally> {
    let packet = obj.packet();
    let mut tallies: Vec<Tally> = Vec::new();
    let (mut place, mut place_at) = (at.place, at.prefix_len as usize);
    for found in matches {
        let is_its = |tally: &Tally| tally.rule == found.rule && tally.suppressed == found.suppressed;
        let index = tallies.iter().position(is_its).unwrap_or_else(|| {
            tallies.push(Tally::new(0, found.rule, found.suppressed.clone()));
            tallies.len() - 1
        });
        let tally = &mut tallies[index];
        tally.count += 1;
        if tally.kept.len() == tally.cap(packet.options.occurrence_cap) {
            continue;
        }
        place = place.advance(&bytes[place_at..found.span.start], at.units);
        place_at = found.span.start;
        let written = &bytes[found.span.clone()];
        let end = place.offset + raw_len(written, at.units);
        let (value, decoding) = match &found.decoded {
            None => (written, obj.decoding().clone()),
            // One value has one fingerprint, however it is written.
            Some(decoded) => (&decoded.value[..], chain(obj.decoding(), &decoded.chain)),
        };
        let rule = &packet.scanner.rules().rules()[found.rule as usize];
        let draft = FindingDraft {
            location: obj.location().clone(),
            rule: rule.id.clone(),
            category: rule.category,
            score: found.score,
            reasons: found.reasons.to_string(),
            fingerprint: packet.key.fingerprint(value),
            preview: preview(value),
            span: Span { start: place.offset, end },
            position: place.position(),
            decoding,
            row: obj.row().map(Box::from),
            // Told when all of the object are known.
            suppressed: None,
        };
        let raw = packet.options.reveal.then(|| RawValue { value: value.into(), row: None });
        tally.kept.push(Kept::new(draft, raw));
    }
    tallies
}

/// How the object was decoded, then how the value was.
pub(crate) fn chain(object: &[Cow<'static, str>], value: &[&'static str]) -> Arc<[Cow<'static, str>]> {
    object.iter().cloned().chain(value.iter().map(|&step| Cow::Borrowed(step))).collect()
}
