//! What a unit's records add up to: kept with the unit, so that nobody has to read the records to pack or
//! to report them.

use domesday_model::{BatchStatus, ObjectKey, Reason, RecordKind, TaskId, UnitRecord};
use serde_json::json;

use crate::error::StoreError;
use crate::types::{Claim, StageBatch, UnitListing, UnitOutcome};

/// Bit of `fanned_out`: the unit's containers became enumeration tasks, or it has none.
pub(crate) const FANNED_CONTAINERS: i64 = 1;
/// Bit of `fanned_out`: the unit's objects became classification tasks, or it has none.
pub(crate) const FANNED_OBJECTS: i64 = 2;
/// Nothing of the unit is left to fan out.
pub(crate) const FANNED_ALL: i64 = FANNED_CONTAINERS | FANNED_OBJECTS;

#[derive(Default)]
pub(crate) struct Totals {
    pub records: i64,
    pub containers: i64,
    pub objects: i64,
    pub skipped: i64,
    pub unchanged: i64,
    pub bytes: i64,
    pub reasons: Vec<(Reason, i64)>,
}

impl Totals {
    pub fn of(records: &[UnitRecord]) -> Totals {
        let mut totals = Totals { records: records.len() as i64, ..Totals::default() };
        for record in records {
            match record.kind {
                RecordKind::File | RecordKind::Carried | RecordKind::Table | RecordKind::Rows => {
                    totals.objects += 1;
                    totals.bytes = totals.bytes.saturating_add(record.size.cast_signed().max(0));
                }
                RecordKind::Directory
                | RecordKind::Database
                | RecordKind::Schema
                | RecordKind::PartedTable => totals.containers += 1,
                RecordKind::Skipped => totals.skipped += 1,
                RecordKind::Unchanged => totals.unchanged += 1,
            }
            if let Some(reason) = record.reason {
                match totals.reasons.iter_mut().find(|(known, _)| *known == reason) {
                    Some((_, count)) => *count += 1,
                    None => totals.reasons.push((reason, 1)),
                }
            }
        }
        totals
    }

    /// What of a committed unit there is nothing to fan out of.
    pub fn fanned_out(&self) -> i64 {
        let containers = if self.containers == 0 { FANNED_CONTAINERS } else { 0 };
        containers + if self.objects == 0 { FANNED_OBJECTS } else { 0 }
    }
}

/// One commit of an enumeration, as its row says.
pub(crate) struct Batch {
    pub status: BatchStatus,
    pub items: i64,
    /// Where the session is: the last container, and where in it.
    pub checkpoint: String,
    pub error: Option<String>,
}

/// Bytes of what a batch or a session says about its failures, at most.
const ERROR_DETAILS_MAX: usize = 512;

impl Batch {
    /// Of several units; `None` of none.
    pub fn of_units(claim: &Claim, listings: &[UnitListing]) -> Result<Option<Batch>, StoreError> {
        let Some(last) = listings.last() else { return Ok(None) };
        let (mut items, mut failed, mut first) = (0, 0, None);
        for listing in listings {
            match &listing.outcome {
                UnitOutcome::Listed(records) => items += records.len() as i64,
                UnitOutcome::Failed { reason, detail } => {
                    failed += 1;
                    first = first.or_else(|| Some(format!("{}: {reason}: {detail}", shown(&listing.key))));
                }
            }
        }
        let error = first.map(|first| match failed {
            1 => bounded(first),
            more => format!("{} (and {} more)", bounded(first), more - 1),
        });
        let status = match failed {
            0 => BatchStatus::Succeeded,
            n if n < listings.len() => BatchStatus::PartiallyCompleted,
            _ => BatchStatus::Failed,
        };
        Batch::new(claim.task, status, items, &last.key, last.resume_point.as_deref(), error).map(Some)
    }

    /// Whether something was listed.
    pub fn has_listed(&self) -> bool {
        self.status != BatchStatus::Failed
    }

    /// Of what a task that failed leaves undone.
    pub fn of_failed_task(
        task: TaskId,
        undone: &[UnitListing],
        error: &str,
    ) -> Result<Option<Batch>, StoreError> {
        let Some(last) = undone.last() else { return Ok(None) };
        let error = Some(bounded(error.to_owned()));
        Batch::new(task, BatchStatus::Failed, 0, &last.key, None, error).map(Some)
    }

    /// Of a part of one.
    pub fn of_part(claim: &Claim, part: &StageBatch) -> Result<Batch, StoreError> {
        let items = part.records.len() as i64;
        Batch::new(claim.task, BatchStatus::Succeeded, items, &part.key, None, None)
    }

    fn new(
        task: TaskId,
        status: BatchStatus,
        items: i64,
        last: &ObjectKey,
        resume_point: Option<&str>,
        error: Option<String>,
    ) -> Result<Batch, StoreError> {
        let status = BatchStatus::InProgress.transition(status)?;
        let checkpoint = json!({ "task": task, "key": last, "resume_point": resume_point }).to_string();
        Ok(Batch { status, items, checkpoint, error })
    }
}

/// A container by name, the root too.
fn shown(key: &ObjectKey) -> String {
    if key.0.is_empty() { "the root".to_owned() } else { format!("`{key}`") }
}

/// What a source says may be long, and a key too.
pub(crate) fn bounded(mut text: String) -> String {
    if text.len() > ERROR_DETAILS_MAX {
        text.truncate(text.floor_char_boundary(ERROR_DETAILS_MAX));
        text.push('…');
    }
    text
}
