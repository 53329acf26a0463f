//! Enumeration sessions with their batches and checkpoints, as people look at them.

use domesday_model::{
    BatchId, BatchStatus, CheckpointId, EnumerationSessionId, JobId, MasterJobId, SessionStatus,
};
use serde_json::Value;

/// Which sessions to list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SessionFilter {
    pub master: Option<MasterJobId>,
    pub status: Option<SessionStatus>,
    /// Only those that have not ended.
    pub active_only: bool,
}

/// The enumeration of one data source within one job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionInfo {
    pub id: EnumerationSessionId,
    pub job: JobId,
    pub master: MasterJobId,
    pub node_group: String,
    pub datasource: String,
    pub source_type: String,
    /// What the job reads the source with.
    pub configuration: Value,
    pub status: SessionStatus,
    pub failure_reason: Option<String>,
    /// A rate limit lasts until then.
    pub waiting_until_ms: Option<i64>,
    pub started_at_ms: i64,
    pub completed_at_ms: Option<i64>,
    /// When it last made progress, or its status changed.
    pub last_update_ms: i64,
    /// Where it was at its last batch.
    pub last_checkpoint: Option<Checkpoint>,
    pub metrics: SessionMetrics,
    /// It has ended, and all that it listed became tasks.
    pub is_enumerated: bool,
}

/// Folded from a session's batches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SessionMetrics {
    pub total_batches: u64,
    /// Those of which nothing could be listed.
    pub failed_batches: u64,
    pub items_found: u64,
    pub items_processed: u64,
}

/// One commit of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BatchInfo {
    pub id: BatchId,
    pub session: EnumerationSessionId,
    pub status: BatchStatus,
    pub checkpoint: Option<Value>,
    pub expected_items: u64,
    pub items_processed: u64,
    pub error_details: Option<String>,
    pub started_at_ms: i64,
    pub completed_at_ms: Option<i64>,
}

/// A point from which something goes on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checkpoint {
    pub id: CheckpointId,
    /// What goes on from there; `session:ID` for an enumeration session.
    pub target: String,
    pub data: Value,
    pub updated_at_ms: i64,
}
