//! What an earlier session says of a data source: the base that an incremental one compares its listing with.

use domesday_model::{EnumerationSessionId, JobId, RecordKind, UnitRecord, VersionMarks};

/// Marks younger than this when their session began are not trusted: clocks are coarse, and an object may change
/// twice within one tick of its file system's.
const MARKS_SETTLE_MS: i64 = 2_000;
const NANOS_PER_MILLI: i128 = 1_000_000;

/// The last session of the same source that was scanned with the same rules, engine, options and settings.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Base {
    pub session: EnumerationSessionId,
    pub job: JobId,
    pub started_at_ms: i64,
}

/// Where in the containers of a base to read on; the default is their beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PriorCursor {
    /// Which of those that are asked about.
    pub container: usize,
    pub(crate) page: i64,
    pub(crate) unit: i64,
    /// The first record of the unit that is to be read.
    pub(crate) sequence: i64,
}

impl PriorCursor {
    /// The beginning of a container.
    pub fn start_of(container: usize) -> PriorCursor {
        PriorCursor { container, ..PriorCursor::default() }
    }
}

/// Some of a base's records of some containers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PriorPage {
    /// Objects, in the order of the containers, and of each in the order they were listed in.
    pub records: Vec<PriorRecord>,
    /// Where to read on; `None`: that was all.
    pub next: Option<PriorCursor>,
}

/// What a base knows of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PriorRecord {
    /// In which of the containers that were asked about.
    pub container: usize,
    /// Relative to the container.
    pub name: Vec<u8>,
    pub size: u64,
    pub marks: VersionMarks,
    /// The base did not read it either, for its marks were trusted then.
    pub is_trusted: bool,
    pub outcome: PriorOutcome,
}

/// What became of an object in the base.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PriorOutcome {
    /// Nothing was found in it, and nothing is to be said of it.
    Clean,
    /// Findings, or a report on it, or on something inside it.
    HasResults,
    /// It, or something inside it, was not read, or not to its end.
    Unusable,
}

impl PriorRecord {
    /// Whether `now` is the version that the base scanned, or trusted.
    pub fn is_unchanged(&self, now: &UnitRecord, base_started_at_ms: i64) -> bool {
        self.size == now.size
            && self.marks == now.marks
            && self.marks != VersionMarks::default()
            && (self.is_trusted || self.marks.tag.is_some() || is_settled(&self.marks, base_started_at_ms))
    }

    /// What an entry is that is listed now.
    pub fn kind_of(&self, now: &UnitRecord, base: &Base) -> RecordKind {
        match self.outcome {
            _ if now.kind != RecordKind::File || !self.is_unchanged(now, base.started_at_ms) => now.kind,
            PriorOutcome::Clean => RecordKind::Unchanged,
            PriorOutcome::HasResults => RecordKind::Carried,
            PriorOutcome::Unusable => now.kind,
        }
    }
}

/// Whether marks were old enough when their session began to tell every later version from this one.
fn is_settled(marks: &VersionMarks, started_at_ms: i64) -> bool {
    let last = i128::from(marks.mtime_ns.max(marks.ctime_ns));
    last < (i128::from(started_at_ms) - i128::from(MARKS_SETTLE_MS)) * NANOS_PER_MILLI
}

#[cfg(test)]
mod tests {
    use super::*;

    const STARTED_MS: i64 = 1_700_000_000_000;
    const SETTLED_NS: i64 = (STARTED_MS - MARKS_SETTLE_MS) * 1_000_000;
    const TIMES: VersionMarks =
        VersionMarks { mtime_ns: SETTLED_NS - 1, ctime_ns: SETTLED_NS - 1, inode: 7, tag: None };

    fn prior(marks: VersionMarks) -> PriorRecord {
        let outcome = PriorOutcome::Clean;
        PriorRecord { container: 0, name: b"f".to_vec(), size: 5, marks, is_trusted: false, outcome }
    }

    fn now(marks: VersionMarks) -> UnitRecord {
        UnitRecord {
            kind: RecordKind::File,
            name: b"f".to_vec(),
            size: 5,
            marks,
            reason: None,
            metadata: None,
        }
    }

    #[test]
    fn an_object_is_unchanged_if_all_that_tells_its_version_is() {
        let check = |prior: &PriorRecord, now: UnitRecord, expect: bool| {
            assert_eq!(prior.is_unchanged(&now, STARTED_MS), expect, "{prior:?} {now:?}");
        };
        check(&prior(TIMES), now(TIMES), true);
        check(&prior(TIMES), UnitRecord { size: 6, ..now(TIMES) }, false);
        check(&prior(TIMES), now(VersionMarks { mtime_ns: 1, ..TIMES }), false);
        check(&prior(TIMES), now(VersionMarks { ctime_ns: 1, ..TIMES }), false);
        check(&prior(TIMES), now(VersionMarks { inode: 8, ..TIMES }), false);
        check(&prior(TIMES), now(VersionMarks::tagged(b"v1")), false);
        let none = VersionMarks::default();
        check(&prior(none), now(none), false);
        check(&PriorRecord { is_trusted: true, ..prior(none) }, now(none), false);
    }

    #[test]
    fn marks_that_were_young_are_not_trusted_without_a_tag() {
        let young = [
            VersionMarks { mtime_ns: SETTLED_NS, ..TIMES },
            VersionMarks { ctime_ns: SETTLED_NS, ..TIMES },
            VersionMarks { mtime_ns: i64::MAX, ..TIMES },
        ];
        for marks in young {
            assert!(!prior(marks).is_unchanged(&now(marks), STARTED_MS), "{marks:?}");
            let trusted = PriorRecord { is_trusted: true, ..prior(marks) };
            assert!(trusted.is_unchanged(&now(marks), STARTED_MS), "an earlier base trusted it: {marks:?}");
            let tagged = VersionMarks { tag: Some([1; 16]), ..marks };
            assert!(prior(tagged).is_unchanged(&now(tagged), STARTED_MS), "{tagged:?}");
            let other = VersionMarks { tag: Some([2; 16]), ..marks };
            assert!(!prior(tagged).is_unchanged(&now(other), STARTED_MS), "{tagged:?}");
        }
        assert!(!prior(TIMES).is_unchanged(&now(TIMES), i64::MIN), "no clock is so wrong as to overflow");
    }

    #[test]
    fn what_was_found_decides_what_becomes_of_it() {
        let base = Base { session: EnumerationSessionId(1), job: JobId(1), started_at_ms: STARTED_MS };
        let kind = |outcome, now: UnitRecord| PriorRecord { outcome, ..prior(TIMES) }.kind_of(&now, &base);
        assert_eq!(kind(PriorOutcome::Clean, now(TIMES)), RecordKind::Unchanged);
        assert_eq!(kind(PriorOutcome::HasResults, now(TIMES)), RecordKind::Carried);
        assert_eq!(kind(PriorOutcome::Unusable, now(TIMES)), RecordKind::File);
        let changed = UnitRecord { size: 9, ..now(TIMES) };
        assert_eq!(kind(PriorOutcome::Clean, changed), RecordKind::File);
        let folder = UnitRecord { kind: RecordKind::Directory, ..now(TIMES) };
        assert_eq!(kind(PriorOutcome::Clean, folder), RecordKind::Directory, "the same name, another thing");
    }
}
