//! The words of the domain: ids, states with their legal transitions, records, findings, reasons. And what every crate
//! computes alike: back-off.
//!
//! Everything here is pure. This crate must not know IO, async or SQL; a value of one of these
//! types means the same in a laptop's embedded book and in a fleet's PostgreSQL.

pub mod backoff;
pub mod checkpoint;
pub mod finding;
pub mod fingerprint;
pub mod ids;
pub mod job;
pub mod key;
pub mod object;
pub mod origin;
pub mod reason;
pub mod record;
pub mod redact;
pub mod regulation;
pub mod rows;
pub mod sensitivity;
pub mod session;
pub mod state;
pub mod suppression;
pub mod table;
pub mod target;
pub mod task;
pub mod template;
pub mod times;

pub use backoff::{Backoff, Retries};
pub use checkpoint::{FoundInPart, KeptOccurrence, ObjectCheckpoint, ScannedVersion};
pub use finding::{Category, FindingDraft, Level, Location, NestedStep, Position, Score, Span};
pub use fingerprint::{Fingerprint, FingerprintKey};
pub use ids::{
    BatchId, CheckpointId, ClaimId, DatasourceId, EnumerationSessionId, FindingId, JobId, MasterJobId,
    ProcessId, RuleSetHash, ScanTargetId, TaskId, UnitId,
};
pub use job::{Command, ConfigurationUsed, DatasourceSpec, JobConfiguration, ScanOptions, TrustContent};
pub use key::ObjectKey;
pub use object::{ListedObject, ObjectReport, ObjectStatus};
pub use origin::Origin;
pub use reason::Reason;
pub use record::{RecordKind, UnitRecord, VersionMarks};
pub use regulation::Regulation;
pub use rows::{ColumnValues, RowBatch};
pub use sensitivity::Sensitivity;
pub use session::ResumePolicy;
pub use state::{BatchStatus, IllegalTransition, JobStatus, SessionStatus, TaskStatus, UnitStatus};
pub use suppression::{Suppressed, SuppressedBy};
pub use table::{ColumnShape, TableKind, TableObservation, TableShape};
pub use target::{TargetDraft, TargetType};
pub use task::{ByTaskType, Leaves, Takes, TaskFacts, TaskPayload, TaskType, UnitRange};
pub use template::{MissedFirings, ScanTemplate, Schedule, TemplateRules};
