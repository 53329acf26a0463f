//! One object: as it was listed, and what became of it.

use crate::finding::Location;
use crate::key::ObjectKey;
use crate::reason::Reason;
use crate::record::{RecordKind, UnitRecord, VersionMarks};

/// How the scan of an object ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ObjectStatus {
    /// Read to its end with the job's rules.
    Scanned,
    /// Left out; the reason says why.
    Skipped,
    /// Of a format that is recognised and not read; only its bytes were scanned, as they stand.
    Unsupported,
    /// Read in part; what was read is reported.
    Partial,
    /// Not read at all.
    Failed,
}

impl ObjectStatus {
    pub const ALL: &'static [ObjectStatus] = &[
        ObjectStatus::Scanned,
        ObjectStatus::Skipped,
        ObjectStatus::Unsupported,
        ObjectStatus::Partial,
        ObjectStatus::Failed,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            ObjectStatus::Scanned => "scanned",
            ObjectStatus::Skipped => "skipped",
            ObjectStatus::Unsupported => "unsupported",
            ObjectStatus::Partial => "partial",
            ObjectStatus::Failed => "failed",
        }
    }
}

/// The outcome of one object, nested or not. Objects that were scanned whole and have no findings
/// need no row of their own; their count is kept with the task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectReport {
    pub location: Location,
    pub status: ObjectStatus,
    /// Present unless the object was scanned whole.
    pub reason: Option<Reason>,
    /// For people: what exactly went wrong; of an unsupported object the name of its format. Never content of the
    /// object.
    pub detail: String,
    /// Occurrences beyond the cap per object and rule, counted and not kept.
    pub overflow: u64,
}

/// An object as it was listed: what is known of it before it is opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedObject {
    pub key: ObjectKey,
    pub kind: RecordKind,
    /// In bytes.
    pub size: u64,
    pub marks: VersionMarks,
    /// What else the listing said of it, such as a table's shape.
    pub metadata: Option<Box<str>>,
}

impl ListedObject {
    /// An object of which only the key is known.
    pub fn by_key(key: ObjectKey) -> ListedObject {
        let marks = VersionMarks::default();
        ListedObject { key, kind: RecordKind::File, size: 0, marks, metadata: None }
    }

    /// The object that a record of this container is.
    pub fn in_container(container: &ObjectKey, record: &UnitRecord) -> ListedObject {
        ListedObject {
            key: container.join(&record.name),
            kind: record.kind,
            size: record.size,
            marks: record.marks,
            metadata: record.metadata.clone(),
        }
    }

    /// The same object by another key, such as that which a connector inside another one knows it by.
    pub fn with_key(&self, key: ObjectKey) -> ListedObject {
        let ListedObject { kind, size, marks, .. } = *self;
        ListedObject { key, kind, size, marks, metadata: self.metadata.clone() }
    }

    /// Whether what the last scan said of it is said again.
    pub fn is_carried(&self) -> bool {
        self.kind == RecordKind::Carried
    }
}
