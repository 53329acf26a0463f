//! What a job's rows add up to. Each row is one count.

use domesday_model::{ObjectStatus, Reason};

use super::{Columns, Result};
use crate::types::JobSummary;
use crate::values;

impl JobSummary {
    /// Columns as in the statement `summary_units`.
    pub(crate) fn add_units(&mut self, row: &impl Columns) -> Result<()> {
        self.units = row.unsigned(0)?;
        self.objects_listed = row.unsigned(1)?;
        self.bytes_listed = row.unsigned(2)?;
        self.objects_unchanged = row.unsigned(3)?;
        Ok(())
    }

    /// Columns as in the statement `summary_tasks`.
    pub(crate) fn add_tasks(&mut self, row: &impl Columns) -> Result<()> {
        self.objects_done = row.unsigned(0)?;
        self.nested_done = row.unsigned(1)?;
        self.bytes_done = row.unsigned(2)?;
        self.tasks_failed = row.unsigned(3)?;
        self.tasks_open = row.unsigned(4)?;
        Ok(())
    }

    /// Entries left out at listing. Columns: reason, count.
    pub(crate) fn add_skips(&mut self, row: &impl Columns) -> Result<()> {
        add(&mut self.skipped, row.parsed(0, values::reason)?, row.unsigned(1)?);
        Ok(())
    }

    /// Containers that could not be listed. Columns: reason, count.
    pub(crate) fn add_failed_units(&mut self, row: &impl Columns) -> Result<()> {
        add(&mut self.failed, row.parsed(0, values::reason)?, row.unsigned(1)?);
        Ok(())
    }

    /// Objects that have a row of their own. Columns as in the statement `summary_object_scans`.
    pub(crate) fn add_objects(&mut self, row: &impl Columns) -> Result<()> {
        self.overflow += row.unsigned(3)?;
        let list = match row.parsed(0, values::object_status)? {
            ObjectStatus::Scanned => return Ok(()),
            ObjectStatus::Skipped => &mut self.skipped,
            ObjectStatus::Unsupported => {
                self.unsupported.push((row.value(4)?, row.unsigned(2)?));
                self.unsupported.sort_unstable();
                return Ok(());
            }
            ObjectStatus::Partial => &mut self.partial,
            ObjectStatus::Failed => &mut self.failed,
        };
        let reason = row.value::<Option<String>>(1)?.ok_or_else(|| values::damaged("reason"))?;
        add(list, values::reason(&reason)?, row.unsigned(2)?);
        Ok(())
    }

    /// What a control keeps out of reports. Columns: control, count.
    pub(crate) fn add_suppressed(&mut self, row: &impl Columns) -> Result<()> {
        let by = row.parsed(0, |text| text.parse().map_err(|_| values::damaged("control")))?;
        self.suppressed.push((by, row.unsigned(1)?));
        Ok(())
    }
}

fn add(list: &mut Vec<(Reason, u64)>, reason: Reason, count: u64) {
    match list.iter_mut().find(|(known, _)| *known == reason) {
        Some((_, sum)) => *sum += count,
        None => list.push((reason, count)),
    }
}
