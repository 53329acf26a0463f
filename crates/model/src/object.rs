//! What became of one object.

use crate::finding::Location;
use crate::reason::Reason;

/// How the scan of an object ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ObjectStatus {
    /// Read to its end with the job's rules.
    Scanned,
    /// Left out; the reason says why.
    Skipped,
    /// Read in part; what was read is reported.
    Partial,
    /// Not read at all.
    Failed,
}

impl ObjectStatus {
    pub const ALL: &'static [ObjectStatus] =
        &[ObjectStatus::Scanned, ObjectStatus::Skipped, ObjectStatus::Partial, ObjectStatus::Failed];

    pub fn as_str(self) -> &'static str {
        match self {
            ObjectStatus::Scanned => "scanned",
            ObjectStatus::Skipped => "skipped",
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
    /// For people: what exactly went wrong. Never content of the object.
    pub detail: String,
    /// Occurrences beyond the cap per object and rule, counted and not kept.
    pub overflow: u64,
}
