//! What opening an object gives: its bytes, its rows, or several tables.

use std::io::Read;
use std::sync::{Arc, OnceLock};

use domesday_content::{ObjectError, OpenTable, ReadAt, Tables};
use domesday_engine::{CopiedRange, ReusableHits};
use domesday_model::{ObjectKey, Reason};

/// An object, open for reading.
pub enum Opened {
    /// What the bytes are (text, an archive, a database) is seen from them.
    Bytes(OpenBytes),
    /// A table, or a range of its rows. `table` is the key of the table, which locates its findings, those of a range
    /// too.
    Rows { table: ObjectKey, rows: OpenTable },
    /// An object that is several tables.
    Tables(Tables),
}

impl Opened {
    /// The bytes, for those who read nothing else.
    pub fn into_bytes(self) -> Result<OpenBytes, ObjectError> {
        match self {
            Opened::Bytes(bytes) => Ok(bytes),
            Opened::Rows { .. } | Opened::Tables(_) => {
                Err(ObjectError::new(Reason::ReadError, "the object has rows, and no bytes"))
            }
        }
    }

    /// The rows, for those who read nothing else.
    pub fn into_rows(self) -> Result<OpenTable, ObjectError> {
        match self {
            Opened::Rows { rows, .. } => Ok(rows),
            Opened::Bytes(_) | Opened::Tables(_) => {
                Err(ObjectError::new(Reason::ReadError, "the object is no table"))
            }
        }
    }
}

/// An object's bytes. A file gives both ways in, a pipe only the reader.
pub struct OpenBytes {
    /// The bytes from the first to the last. When `size` is given, a read that is shorter than its
    /// buffer and reaches that size is taken for the end.
    pub reader: Box<dyn Read + Send>,
    /// The bytes at any place, if that is possible: some archives are read from their end.
    pub random: Option<Arc<dyn ReadAt>>,
    /// The size when it was opened; `None` when that is unknown. With `random` it may be the size that was listed:
    /// where the first read does not bring just as much, `random` is asked.
    pub size: Option<u64>,
    /// For an object that is in memory and stored as a delta, or the base of one.
    pub delta_reuse: Option<DeltaReuse>,
}

impl OpenBytes {
    /// Bytes that come from the first to the last only.
    pub fn stream(reader: Box<dyn Read + Send>, size: Option<u64>) -> OpenBytes {
        OpenBytes { reader, random: None, size, delta_reuse: None }
    }

    /// Bytes that can be read at any place, too.
    pub fn seekable(reader: Box<dyn Read + Send>, random: Arc<dyn ReadAt>, size: Option<u64>) -> OpenBytes {
        OpenBytes { reader, random: Some(random), size, delta_reuse: None }
    }
}

/// Where the hits of an object's scan are kept, for the scans of those that are deltas of it.
pub type HitsSlot = Arc<OnceLock<ReusableHits>>;

/// What the scan of an object reuses and keeps. Findings do not depend on it, only how soon they are found.
#[derive(Default)]
pub struct DeltaReuse {
    /// Present when the base was scanned before.
    pub base: Option<DeltaBase>,
    /// For the object's own hits, if there are deltas of it.
    pub own: Option<HitsSlot>,
}

/// The object that another one is stored as a delta of.
pub struct DeltaBase {
    pub hits: HitsSlot,
    /// The bytes that the delta copies from it, in order.
    pub copied: Vec<CopiedRange>,
}
