//! What the scan core asks a data source for: descriptors of objects, and their bytes. The core knows
//! nothing else of where objects come from.

use std::any::Any;
use std::fmt;
use std::io::{self, Read};
use std::sync::{Arc, OnceLock};

use domesday_content::{ContentError, ReadAt};
use domesday_engine::{PathKind, Stretch, Traces};
use domesday_model::{ObjectKey, Reason};

use crate::container::ContainerWalk;
use crate::table::{DatabaseFile, DatabaseTables, OpenTable};

/// One work packet's objects. Called on executor threads; may block on local IO.
pub trait ObjectSource: Send + Sync {
    /// Appends at most `max` descriptors, from `cursor` on, to `out` and advances the cursor; sets it to
    /// [`EnumCursor::Done`] when there are no more. A call that appends nothing must end, or it is called
    /// again at once.
    fn enumerate(
        &self,
        cursor: &mut EnumCursor,
        max: usize,
        out: &mut Vec<ObjectDescriptor>,
    ) -> Result<(), ObjectError>;

    /// Opens an object that `enumerate` described.
    fn open(&self, object: &ObjectDescriptor) -> Result<OpenObject, ObjectError>;

    /// The same, with what it has in common with other objects, of a source that knows.
    fn open_akin(&self, object: &ObjectDescriptor) -> Result<(OpenObject, Option<Kin>), ObjectError> {
        Ok((self.open(object)?, None))
    }

    /// Whether an object is read row by row.
    fn is_rows(&self, _object: &ObjectDescriptor) -> bool {
        false
    }

    /// Opens an object that is read row by row.
    fn open_table(&self, object: &ObjectDescriptor) -> Result<OpenTable, ObjectError> {
        Err(ObjectError::new(Reason::ReadError, format!("{} is no table", object.path)))
    }

    /// Opens a database file as the tables in it. `None` when the source does not do that: it is then scanned as
    /// any other bytes are, as it is after an error.
    fn open_database(&self, _file: DatabaseFile<'_>) -> Option<Result<DatabaseTables, ObjectError>> {
        None
    }

    /// Called right before an object is opened.
    fn before(&self, _object: &ObjectDescriptor) {}

    /// Called when an object's results have gone to the sink.
    fn after(&self, _object: &ObjectDescriptor) {}
}

/// An object to be scanned.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ObjectDescriptor {
    /// Its key in the data source, reported as its location.
    pub path: ObjectKey,
    /// What its path makes of it, which the key may not tell.
    pub kind: PathKind,
    /// Its size when it was listed.
    pub size_hint: Option<u64>,
    /// The source's own number for it, for finding it again in [`ObjectSource::open`].
    pub object_id: u64,
    /// The data source, for a source that serves several.
    pub source_id: i64,
}

/// An object's bytes. A file gives both ways in, a pipe only the reader.
pub struct OpenObject {
    /// The bytes from the first to the last. When `size` is given, a read that is shorter than its
    /// buffer and reaches that size is taken for the end.
    pub reader: Box<dyn Read + Send>,
    /// The bytes at any place, if that is possible: some archives are read from their end.
    pub random: Option<Arc<dyn ReadAt>>,
    /// The size when it was opened; `None` when that is unknown. With `random` it may be the size that was listed:
    /// where the first read does not bring just as much, `random` is asked.
    pub size: Option<u64>,
}

/// Where the traces of an object's scan are left, for the scans of those that are made from it.
pub type TracesSlot = Arc<OnceLock<Traces>>;

/// What an object that lies in memory has in common with others. Findings do not depend on it, only how soon they are
/// found.
#[derive(Default)]
pub struct Kin {
    /// The traces of what it was made from, and which of its bytes come from there, in order.
    pub base: Option<(TracesSlot, Vec<Stretch>)>,
    /// For its own traces, if others are made from it.
    pub own: Option<TracesSlot>,
}

/// Why an object, or a whole enumeration, could not be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectError {
    pub reason: Reason,
    /// For people: what exactly went wrong. Never content of the object.
    pub detail: String,
}

impl ObjectError {
    pub fn new(reason: Reason, detail: impl Into<String>) -> Self {
        ObjectError { reason, detail: detail.into() }
    }
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.detail)
    }
}

impl std::error::Error for ObjectError {}

impl From<ContentError> for ObjectError {
    fn from(error: ContentError) -> Self {
        ObjectError::new(error.reason(), error.detail())
    }
}

/// Reasons travel through readers inside `io::Error`; what carries none is told by its kind.
impl From<io::Error> for ObjectError {
    fn from(error: io::Error) -> Self {
        if let Some(inner) = error.get_ref().and_then(|inner| inner.downcast_ref::<ObjectError>()) {
            return inner.clone();
        }
        if let Some(inner) = ContentError::from_io(&error) {
            return ObjectError::new(inner.reason(), inner.detail());
        }
        let reason = match error.kind() {
            io::ErrorKind::NotFound => Reason::Vanished,
            io::ErrorKind::PermissionDenied => Reason::PermissionDenied,
            _ => Reason::ReadError,
        };
        ObjectError { reason, detail: error.to_string() }
    }
}

/// How far an enumeration has come. Not `Clone`: two cursors of one enumeration would list twice.
#[derive(Default)]
pub enum EnumCursor {
    #[default]
    Start,
    Continue(Box<CursorState>),
    Done,
}

impl EnumCursor {
    pub fn offset(offset: u64) -> Self {
        EnumCursor::Continue(Box::new(CursorState::Offset(offset)))
    }

    pub fn is_done(&self) -> bool {
        matches!(self, EnumCursor::Done)
    }
}

/// The place where an enumeration goes on.
pub enum CursorState {
    /// That many objects, rows or bytes in.
    Offset(u64),
    /// A page token of a remote listing.
    Token(String),
    /// Whatever else a source needs, such as an open directory stream.
    Other(Box<dyn Any + Send>),
    /// A container being walked. Made by the scan core; no source is ever handed one.
    Container(ContainerWalk),
}
