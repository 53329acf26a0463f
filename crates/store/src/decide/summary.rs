//! Reports folded from rows: pure, and the same for every backend.

use domesday_model::{ObjectStatus, Reason};

use crate::error::StoreError;
use crate::types::JobSummary;
use crate::values;

type Result<T> = std::result::Result<T, StoreError>;

impl JobSummary {
    /// Entries left out at listing.
    pub(crate) fn add_skips(&mut self, reason: &str, count: i64) -> Result<()> {
        add(&mut self.skipped, values::reason(reason)?, count);
        Ok(())
    }

    /// Containers that could not be listed.
    pub(crate) fn add_failed_units(&mut self, reason: &str, count: i64) -> Result<()> {
        add(&mut self.failed, values::reason(reason)?, count);
        Ok(())
    }

    /// Objects that have a row of their own.
    pub(crate) fn add_objects(
        &mut self,
        status: &str,
        reason: Option<&str>,
        count: i64,
        overflow: i64,
    ) -> Result<()> {
        self.overflow += overflow.cast_unsigned();
        let list = match values::object_status(status)? {
            ObjectStatus::Scanned => return Ok(()),
            ObjectStatus::Skipped => &mut self.skipped,
            ObjectStatus::Partial => &mut self.partial,
            ObjectStatus::Failed => &mut self.failed,
        };
        let reason = values::reason(reason.ok_or_else(|| values::damaged("reason"))?)?;
        add(list, reason, count);
        Ok(())
    }
}

fn add(list: &mut Vec<(Reason, u64)>, reason: Reason, count: i64) {
    match list.iter_mut().find(|(known, _)| *known == reason) {
        Some((_, sum)) => *sum += count.cast_unsigned(),
        None => list.push((reason, count.cast_unsigned())),
    }
}
