//! Checkpoints inside of very large objects: how far one was scanned, and what was found up to there.
//!
//! A checkpoint says only what came since the one before it, so that many of them cost no more than one. Together, in
//! their order and without a gap, they are the scan of the object from its beginning up to the last one's place. They
//! keep what the book keeps of findings, and never a value.

use serde::{Deserialize, Serialize};

use crate::finding::Score;
use crate::record::VersionMarks;

/// How far an object was scanned.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ObjectCheckpoint {
    /// Of those of its object: 0, 1, 2, … The first one takes the place of all that there are.
    pub number: u32,
    /// What it is the scan of: it is worth nothing for another version of the object, or another engine.
    pub of: ScannedVersion,
    /// Where the scan goes on: in the object's bytes, before any text decoding, at the beginning of a character.
    pub offset: u64,
    /// The line there, 1-based.
    pub line: u64,
    /// The column there, 1-based, in code points.
    pub column: u64,
    /// Bytes scanned since the checkpoint before.
    pub scanned: u64,
    /// What was found in them.
    pub found: Vec<FoundInPart>,
}

/// A version of an object, and of what scans it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ScannedVersion {
    pub engine: u32,
    pub size: u64,
    pub marks: VersionMarks,
}

/// Occurrences of one rule in a part of an object.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FoundInPart {
    pub rule: String,
    /// The stored form of the control that suppresses them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suppressed: Option<String>,
    /// All of them.
    pub count: u64,
    /// The first ones, as far as the object has room for them.
    pub kept: Vec<KeptOccurrence>,
}

/// An occurrence; the rest of it follows from its object and its rule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeptOccurrence {
    pub score: Score,
    pub reasons: String,
    pub fingerprint: [u8; 16],
    pub preview: String,
    pub span: (u64, u64),
    pub position: (u64, u64),
    pub decoding: Vec<String>,
}
