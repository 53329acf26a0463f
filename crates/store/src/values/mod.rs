//! Values on their way into a column and out of it, the same for every backend.

pub(crate) mod staged;

use std::str::FromStr;
use std::time::Duration;

use domesday_model::{
    BatchStatus, Command, ConfigurationUsed, JobConfiguration, JobStatus, Location, NestedStep,
    ObjectCheckpoint, ObjectKey, ObjectStatus, Reason, RecordKind, RuleSetHash, SessionStatus, TargetType,
    TaskPayload, TaskStatus, TaskType, UnitStatus,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

/// A stored value that this version cannot read back.
pub(crate) fn damaged(what: &str) -> StoreError {
    StoreError::Damaged(format!("unreadable {what}"))
}

/// Checkpoints of one object. One that cannot be read, of another version maybe, makes them worth nothing: then the
/// object is scanned from its beginning.
pub(crate) fn checkpoints<'a>(bodies: impl Iterator<Item = &'a str>) -> Vec<ObjectCheckpoint> {
    bodies.map(|body| serde_json::from_str(body).ok()).collect::<Option<_>>().unwrap_or_default()
}

/// A value as the JSON text of its column.
pub(crate) fn to_json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| StoreError::Backend(error.to_string()))
}

/// `what` names the column's content for the error.
pub(crate) fn from_json<T: DeserializeOwned>(text: &str, what: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|_| damaged(what))
}

pub(crate) fn job_status(text: &str) -> Result<JobStatus> {
    JobStatus::parse(text).ok_or_else(|| damaged("job status"))
}

pub(crate) fn session_status(text: &str) -> Result<SessionStatus> {
    SessionStatus::parse(text).ok_or_else(|| damaged("session status"))
}

pub(crate) fn batch_status(text: &str) -> Result<BatchStatus> {
    BatchStatus::parse(text).ok_or_else(|| damaged("batch status"))
}

pub(crate) fn target_type(text: &str) -> Result<TargetType> {
    TargetType::parse(text).ok_or_else(|| damaged("target type"))
}

pub(crate) fn unit_status(text: &str) -> Result<UnitStatus> {
    UnitStatus::parse(text).ok_or_else(|| damaged("unit status"))
}

pub(crate) fn task_type(text: &str) -> Result<TaskType> {
    TaskType::parse(text).ok_or_else(|| damaged("task type"))
}

pub(crate) fn task_status(text: &str) -> Result<TaskStatus> {
    TaskStatus::parse(text).ok_or_else(|| damaged("task status"))
}

pub(crate) fn object_status(text: &str) -> Result<ObjectStatus> {
    let found = ObjectStatus::ALL.iter().copied().find(|status| status.as_str() == text);
    found.ok_or_else(|| damaged("object status"))
}

pub(crate) fn reason(text: &str) -> Result<Reason> {
    Reason::from_str(text).map_err(|_| damaged("reason"))
}

pub(crate) fn record_kind(code: i64) -> Result<RecordKind> {
    RecordKind::from_code(code).ok_or_else(|| damaged("kind of a record"))
}

pub(crate) fn payload(text: &str) -> Result<TaskPayload> {
    from_json(text, "task payload")
}

pub(crate) fn commands(text: &str) -> Result<Vec<Command>> {
    from_json(text, "pending commands")
}

pub(crate) fn configuration(text: &str) -> Result<JobConfiguration> {
    from_json(text, "job configuration")
}

/// The rule set that a job's configuration pins.
pub(crate) fn rule_set_of(configuration_text: &str) -> Result<RuleSetHash> {
    configuration(configuration_text)?.rule_set.parse().map_err(|_| damaged("rule set"))
}

/// What a job's settings were read from.
pub(crate) fn configuration_used_of(configuration_text: &str) -> Result<Option<ConfigurationUsed>> {
    Ok(configuration(configuration_text)?.configuration)
}

/// The id of the fingerprint key that a job's configuration pins.
pub(crate) fn fingerprint_key_of(configuration_text: &str) -> Result<String> {
    Ok(configuration(configuration_text)?.fingerprint_key)
}

pub(crate) fn location(key: Vec<u8>, nested: &[u8]) -> Result<Location> {
    let nested: Option<Vec<NestedStep>> = Location::parse_nested(nested);
    Ok(Location { key: ObjectKey(key), nested: nested.ok_or_else(|| damaged("nested path"))? })
}

pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX / 2)
}
