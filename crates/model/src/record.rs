//! What enumeration finds: one record per entry of a listed container.

use serde::{Deserialize, Serialize};

use crate::key::ObjectKey;
use crate::reason::Reason;

/// What a record names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RecordKind {
    /// An object with content: it will be classified.
    File,
    /// A container: it will be enumerated.
    Directory,
    /// Seen and left out, with its reason.
    Skipped,
    /// An object whose version is that of its last scan, which found nothing in it: counted, and not read again.
    Unchanged,
    /// An object whose version is that of its last scan: what that said of it is said again, without reading it.
    Carried,
    /// A database of a server (`DATABASES_FOUND`): it will be enumerated.
    Database,
    /// A schema of a database (`SCHEMAS_FOUND`): it will be enumerated.
    Schema,
    /// A table or view (`TABLES_FOUND`) that is read as one object: it will be classified.
    Table,
    /// A table (`TABLES_FOUND`) that is read in parts: it will be enumerated.
    PartedTable,
    /// A range of a table's rows (`ROWS_FOUND`): it will be classified.
    Rows,
}

impl RecordKind {
    pub const ALL: &'static [RecordKind] = &[
        RecordKind::File,
        RecordKind::Directory,
        RecordKind::Skipped,
        RecordKind::Unchanged,
        RecordKind::Carried,
        RecordKind::Database,
        RecordKind::Schema,
        RecordKind::Table,
        RecordKind::PartedTable,
        RecordKind::Rows,
    ];

    /// The number under which it is stored: record rows are many, and small.
    pub fn code(self) -> i64 {
        match self {
            RecordKind::File => 0,
            RecordKind::Directory => 1,
            RecordKind::Skipped => 2,
            RecordKind::Unchanged => 3,
            RecordKind::Carried => 4,
            RecordKind::Database => 5,
            RecordKind::Schema => 6,
            RecordKind::Table => 7,
            RecordKind::PartedTable => 8,
            RecordKind::Rows => 9,
        }
    }

    /// Whether it is enumerated.
    pub fn is_container(self) -> bool {
        matches!(
            self,
            RecordKind::Directory | RecordKind::Database | RecordKind::Schema | RecordKind::PartedTable
        )
    }

    /// Whether it is classified.
    pub fn is_object(self) -> bool {
        self.is_rows() || matches!(self, RecordKind::File | RecordKind::Carried)
    }

    /// Whether it is classified row by row.
    pub fn is_rows(self) -> bool {
        matches!(self, RecordKind::Table | RecordKind::Rows)
    }

    pub fn from_code(code: i64) -> Option<RecordKind> {
        RecordKind::ALL.iter().copied().find(|kind| kind.code() == code)
    }
}

/// What tells one version of an object from the next without reading it; what the kind of source has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct VersionMarks {
    /// Nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Nanoseconds since 1970.
    pub ctime_ns: i64,
    pub inode: u64,
    /// Hash of what the source itself calls the object's version: an entity tag, a git object's id.
    pub tag: Option<[u8; 16]>,
}

impl VersionMarks {
    /// Marks of an object that the source has a version for.
    pub fn tagged(version: &[u8]) -> VersionMarks {
        VersionMarks { tag: Some(ObjectKey::hash128(version)), ..VersionMarks::default() }
    }
}

/// One entry of a listed container. `name` is relative to the unit's key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnitRecord {
    pub kind: RecordKind,
    pub name: Vec<u8>,
    pub size: u64,
    pub marks: VersionMarks,
    /// Present exactly for [`RecordKind::Skipped`].
    pub reason: Option<Reason>,
    /// What else the source says of it, as JSON: a table's [`TableShape`](crate::TableShape), the bounds of a
    /// range of rows. Most kinds have none.
    pub metadata: Option<Box<str>>,
}
