//! What the scan core asks a data source for: descriptors of objects, and their bytes. The core knows
//! nothing else of where objects come from.

use domesday_content::ObjectError;
use domesday_engine::PathKind;
use domesday_model::{ObjectCheckpoint, ObjectKey};

use crate::container::ContainerWalk;
use crate::opened::Opened;

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
    fn open(&self, object: &ObjectDescriptor) -> Result<Opened, ObjectError>;

    /// What earlier scans said of an object that did not come to its end ([`ResultSink::checkpoint`](crate::ResultSink::checkpoint)), in order. Asked
    /// once, of very large objects, when they are open.
    fn checkpoints(&self, _object: &ObjectDescriptor) -> Vec<ObjectCheckpoint> {
        Vec::new()
    }
}

/// An object to be scanned.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ObjectDescriptor {
    /// Its key in the data source, reported as its location.
    pub path: ObjectKey,
    /// What its path makes of it, which the key may not tell.
    pub kind: PathKind,
    /// Whether opening it gives rows. The rows of a packet come over one connection: such an object is opened when the
    /// one before it has been read.
    pub is_rows: bool,
    /// Its size when it was listed.
    pub size_hint: Option<u64>,
    /// The source's own number for it, for finding it again in [`ObjectSource::open`].
    pub object_id: u64,
    /// The data source, for a source that serves several.
    pub source_id: i64,
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
    /// A container being walked. Made by the scan core; no source is ever handed one.
    Container(ContainerWalk),
}
