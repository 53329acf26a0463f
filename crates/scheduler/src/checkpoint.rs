//! Checkpoints inside of very large objects, so that whoever has to scan one again goes on where the last one was.
//!
//! A checkpoint is a place up to which every byte was scanned, with what was found since the one before. So parts of
//! the object are added here in their order: pieces wait for those before them anyway ([`crate::pieces`]), and of an
//! object that is read from front to back a chunk is scanned before the next one is read. The context before the place
//! is not kept: it is read again.
//!
//! Only objects of the source have them that can be read at any place, that are text as they are or in UTF-16, and that
//! say which version they are; no file of separated values, whose sample of rows is not in a checkpoint. Nothing is
//! said of an object whose version may have changed since it was opened, or that something is wrong with: then the last
//! checkpoint before that stands.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use domesday_content::ReadAt;
use domesday_engine::{LOOKBEHIND, RuleSet};
use domesday_model::{
    FindingDraft, Fingerprint, FoundInPart, KeptOccurrence, ObjectCheckpoint, Position, ScannedVersion, Span,
    SuppressedBy, VersionMarks,
};

use crate::object::ObjectRef;
use crate::occurrences::{Kept, Tally};
use crate::position::Place;

/// Bytes between two checkpoints of an object, unless set otherwise: 256 MiB.
pub const CHECKPOINT_DISTANCE: u64 = 256 << 20;
/// The smallest object that has checkpoints, in distances between them.
const DISTANCES_MIN: u64 = 2;
/// Bytes before a checkpoint, at least: enough for the context before it in any encoding.
const BEFORE_MIN: u64 = 4 * LOOKBEHIND as u64;
/// Times of change that are younger than this when an object is opened are not trusted: a file system may give another
/// change the same time.
const MARKS_AGE_MIN: Duration = Duration::from_secs(2);

/// The smallest object that has checkpoints at this distance, in bytes.
pub(crate) fn checkpointed_size(distance: u64) -> u64 {
    distance.saturating_mul(DISTANCES_MIN)
}

/// Occurrences of one rule that one control suppresses, or none.
type OfRule = (u32, Option<SuppressedBy>);

/// Says from time to time how far an object was scanned.
pub(crate) struct Recorder {
    object: Arc<dyn ReadAt>,
    of: ScannedVersion,
    distance: u64,
    /// The number of the next checkpoint.
    next: u32,
    /// Where the last one is.
    last: u64,
    /// Bytes scanned since.
    scanned: u64,
    /// What was found since.
    found: HashMap<OfRule, FoundInPart>,
    /// Occurrences kept in all checkpoints so far.
    kept: HashMap<OfRule, usize>,
    /// Nothing more is said of the object.
    is_over: bool,
}

impl Recorder {
    /// For an object that may have checkpoints; and where its scan goes on, if it has some that hold. What was found up
    /// to there is the object's then.
    pub(crate) fn begin(
        obj: &ObjectRef,
        object: &Arc<dyn ReadAt>,
        size: u64,
        distance: u64,
    ) -> Option<(Recorder, Option<Place>)> {
        let (packet, descriptor) = (obj.packet(), obj.descriptor()?);
        if size < checkpointed_size(distance) || packet.options.reveal {
            return None;
        }
        let marks = object.marks().ok().flatten().filter(are_settled)?;
        let of = ScannedVersion { engine: domesday_engine::VERSION, size, marks };
        let mut recorder = Recorder {
            object: Arc::clone(object),
            of,
            distance,
            next: 0,
            last: 0,
            scanned: 0,
            found: HashMap::new(),
            kept: HashMap::new(),
            is_over: false,
        };
        let known = packet.source.checkpoints(descriptor);
        let place = recorder.adopt(obj, known);
        Some((recorder, place))
    }

    /// Takes over what earlier scans of this very version found; where the last one of them stopped.
    fn adopt(&mut self, obj: &ObjectRef, known: Vec<ObjectCheckpoint>) -> Option<Place> {
        let rules = obj.packet().scanner.rules();
        let hold = known.iter().zip(0..).all(|(part, number)| part.of == self.of && part.number == number);
        let last = known.last().filter(|_| hold)?;
        let place = Place { offset: last.offset, line: last.line, column: last.column };
        let mut tallies = Vec::new();
        for part in &known {
            for found in &part.found {
                tallies.push(tally(obj, rules, found)?);
            }
        }
        for tally in &tallies {
            *self.kept.entry((tally.rule, tally.suppressed.clone())).or_default() += tally.kept.len();
        }
        (self.next, self.last) = (last.number + 1, place.offset);
        obj.add_part(known.iter().map(|part| part.scanned).sum(), tallies);
        Some(place)
    }

    /// Notes a part of so many bytes, the next one, with what was found in it: the object is scanned up to `end`.
    pub(crate) fn add(&mut self, obj: &ObjectRef, end: Place, len: u64, found: &[Tally]) {
        // Of a part that ends the scan's thread there are no bytes.
        self.is_over |= len == 0 || obj.is_flawed();
        if self.is_over {
            return;
        }
        self.scanned += len;
        found.iter().for_each(|tally| self.note(obj, tally));
        if end.offset - self.last >= self.distance && end.offset >= BEFORE_MIN {
            self.tell(obj, end);
        }
    }

    fn note(&mut self, obj: &ObjectRef, tally: &Tally) {
        let packet = obj.packet();
        let key = (tally.rule, tally.suppressed.clone());
        let known = self.kept.entry(key.clone()).or_default();
        let room = tally.cap(packet.options.occurrence_cap).saturating_sub(*known);
        let first = tally.kept.iter().take(room).map(|kept| kept_occurrence(&kept.draft));
        let found = self.found.entry(key).or_insert_with(|| FoundInPart {
            rule: packet.scanner.rules().rules()[tally.rule as usize].id.to_string(),
            suppressed: tally.suppressed.as_ref().map(SuppressedBy::to_string),
            count: 0,
            kept: Vec::new(),
        });
        let before = found.kept.len();
        found.count += tally.count;
        found.kept.extend(first);
        *known += found.kept.len() - before;
    }

    fn tell(&mut self, obj: &ObjectRef, end: Place) {
        // What was read so far is what was opened only if nothing has changed until now.
        let is_same = self.object.marks().is_ok_and(|marks| marks == Some(self.of.marks))
            && self.object.size().is_ok_and(|size| size == self.of.size);
        let Some(descriptor) = obj.descriptor().filter(|_| is_same) else {
            self.is_over = true;
            return;
        };
        let mut found: Vec<FoundInPart> = std::mem::take(&mut self.found).into_values().collect();
        found.sort_by(|a, b| (&a.rule, &a.suppressed).cmp(&(&b.rule, &b.suppressed)));
        let checkpoint = ObjectCheckpoint {
            number: self.next,
            of: self.of,
            offset: end.offset,
            line: end.line,
            column: end.column,
            scanned: std::mem::take(&mut self.scanned),
            found,
        };
        (self.next, self.last) = (self.next + 1, end.offset);
        let packet = obj.packet();
        packet.guarded("the result sink", || packet.sink.checkpoint(&descriptor.path, checkpoint));
    }
}

/// Whether a change from now on has other marks.
#[expect(clippy::disallowed_methods, reason = "compared with a file's own times, and kept nowhere")]
fn are_settled(marks: &VersionMarks) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let newest = u128::try_from(marks.mtime_ns.max(marks.ctime_ns)).unwrap_or(0);
    marks.tag.is_some() || newest + MARKS_AGE_MIN.as_nanos() <= now.as_nanos()
}

fn kept_occurrence(draft: &FindingDraft) -> KeptOccurrence {
    KeptOccurrence {
        score: draft.score,
        reasons: draft.reasons.clone(),
        fingerprint: draft.fingerprint.0,
        preview: draft.preview.clone(),
        span: (draft.span.start, draft.span.end),
        position: (draft.position.line, draft.position.column),
        decoding: draft.decoding.iter().map(|step| step.to_string()).collect(),
    }
}

/// As it was found; `None` for a rule that the scan does not have.
fn tally(obj: &ObjectRef, rules: &RuleSet, found: &FoundInPart) -> Option<Tally> {
    let number = rules.rules().iter().position(|rule| *rule.id == *found.rule)?;
    let suppressed = found.suppressed.as_deref().map(str::parse).transpose().ok()?;
    let rule = &rules.rules()[number];
    let kept = |kept: &KeptOccurrence| FindingDraft {
        location: Arc::clone(obj.location()),
        rule: Arc::clone(&rule.id),
        category: rule.category,
        score: kept.score,
        reasons: kept.reasons.clone(),
        fingerprint: Fingerprint(kept.fingerprint),
        preview: kept.preview.clone(),
        span: Span { start: kept.span.0, end: kept.span.1 },
        position: Position { line: kept.position.0, column: kept.position.1 },
        decoding: kept.decoding.iter().cloned().map(Cow::Owned).collect(),
        row: None,
        suppressed: None,
    };
    let mut tally = Tally::new(0, u32::try_from(number).ok()?, suppressed);
    tally.count = found.count;
    tally.kept = found.kept.iter().map(|occurrence| Kept::new(kept(occurrence), None)).collect();
    Some(tally)
}
