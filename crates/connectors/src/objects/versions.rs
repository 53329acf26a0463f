//! Versions of a bucket's objects that are not current, and snapshots. They are not read; one object stands for all of
//! them, which tells so when it is opened, so that no scan of such a bucket passes for one of all that is kept in it.

use domesday_connector::ReadAhead;
use domesday_content::ObjectError;
use domesday_model::{ListedObject, Reason, RecordKind, UnitRecord, VersionMarks};
use domesday_scheduler::Opened;

/// The object's key, as the address of what it stands for has it. The metadata tell it from an object of that key.
const KEY: &[u8] = b"?versions";
const METADATA: &str = "versions";

/// Without marks, so that it is told each time.
pub(super) fn record() -> UnitRecord {
    UnitRecord {
        kind: RecordKind::File,
        name: KEY.to_vec(),
        size: 0,
        marks: VersionMarks::default(),
        reason: None,
        metadata: Some(METADATA.into()),
    }
}

pub(super) fn stands_for(object: &ListedObject) -> bool {
    object.metadata.as_deref() == Some(METADATA) && object.key.as_bytes() == KEY
}

/// What opening it tells.
pub(super) fn error() -> ObjectError {
    let detail = "the bucket keeps versions or snapshots of its objects; only current ones are read";
    ObjectError::new(Reason::OlderVersions, detail)
}

/// Objects of a packet on their way, of which this may be one.
pub(super) fn read_ahead(ahead: Box<dyn ReadAhead>, objects: &[ListedObject]) -> Box<dyn ReadAhead> {
    match objects.iter().position(stands_for) {
        Some(at) => Box::new(Packet { ahead, at }),
        None => ahead,
    }
}

struct Packet {
    ahead: Box<dyn ReadAhead>,
    /// The place of the one that stands for versions.
    at: usize,
}

impl ReadAhead for Packet {
    fn open(&self, index: usize) -> Result<Opened, ObjectError> {
        if index == self.at { Err(error()) } else { self.ahead.open(index) }
    }
}
