//! Scan targets, as the verbs give them.

use domesday_model::{EnumerationSessionId, MasterJobId, ScanTargetId, TargetType};
use serde_json::Value;

/// A real thing that is scanned, in the book once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScanTarget {
    pub id: ScanTargetId,
    pub name: String,
    pub target_type: TargetType,
    /// Its number in the table of its type.
    pub target_id: i64,
    /// Of a repository or a web address.
    pub url: Option<String>,
    /// Of a repository: whether it can still be written to.
    pub is_active: Option<bool>,
    pub metadata: Value,
    pub created_at_ms: i64,
    /// When a session that came upon it last ended with all of it listed, or some.
    pub last_scan_time_ms: Option<i64>,
}

/// Which targets to list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TargetFilter {
    pub target_type: Option<TargetType>,
    /// Only those that this job came upon.
    pub master: Option<MasterJobId>,
    /// Only those that this session came upon.
    pub session: Option<EnumerationSessionId>,
}
