//! Tasks as they are claimed, fenced and reaped, and units that wait for the fan-out.

use domesday_model::{
    ClaimId, DatasourceId, EnumerationSessionId, JobId, ObjectKey, TaskId, UnitId, VersionMarks,
};

use super::{Columns, FromRow, Result};
use crate::decide::fan_out::Waiting;
use crate::decide::retry::{FailedObject, FailedTask, FailedUnit, RecordAt};
use crate::decide::tasks::{Abandoned, Claimed, FencedTask};
use crate::types::{Base, Claim, UnitState};
use crate::values::{self, damaged};

/// Columns as in the statement `fence`.
impl FromRow for FencedTask {
    fn from_row(row: &impl Columns) -> Result<FencedTask> {
        Ok(FencedTask {
            job: JobId(row.value(0)?),
            session: EnumerationSessionId(row.value(1)?),
            datasource: DatasourceId(row.value(2)?),
            origin: TaskId(row.value(3)?),
        })
    }
}

/// Columns: id, claim_id, job_id, session_id, type, payload, failures, datasource_id.
impl FromRow for Claimed {
    fn from_row(row: &impl Columns) -> Result<Claimed> {
        Ok(Claimed {
            claim: Claim { task: TaskId(row.value(0)?), claim: ClaimId(row.value(1)?) },
            job: JobId(row.value(2)?),
            session: EnumerationSessionId(row.value(3)?),
            task_type: row.parsed(4, values::task_type)?,
            payload: row.parsed(5, values::payload)?,
            failures: row.small(6)?,
            datasource: DatasourceId(row.value(7)?),
            base: None,
            has_origin: false,
        })
    }
}

/// Columns from this one on: id, job_id, started_at; all empty where there is none.
pub(crate) fn base(row: &impl Columns, first: usize) -> Result<Option<Base>> {
    let session: Option<i64> = row.value(first)?;
    let base = |session| {
        Ok(Base {
            session: EnumerationSessionId(session),
            job: JobId(row.value(first + 1)?),
            started_at_ms: row.value(first + 2)?,
        })
    };
    session.map(base).transpose()
}

/// Columns as in the statement `abandoned_tasks`.
impl FromRow for Abandoned {
    fn from_row(row: &impl Columns) -> Result<Abandoned> {
        Ok(Abandoned {
            id: TaskId(row.value(0)?),
            job: JobId(row.value(1)?),
            datasource: DatasourceId(row.value(2)?),
            session: EnumerationSessionId(row.value(3)?),
            origin: row.value::<Option<i64>>(4)?.map(TaskId),
            task_type: row.parsed(5, values::task_type)?,
            priority: row.value(6)?,
            payload: row.parsed(7, values::payload)?,
            abandonments: row.value(8)?,
            claim: ClaimId(row.value(9)?),
            worker: row.value::<Option<Vec<u8>>>(10)?.unwrap_or_default(),
        })
    }
}

/// Columns as in the statement `failed_tasks`.
impl FromRow for FailedTask {
    fn from_row(row: &impl Columns) -> Result<FailedTask> {
        Ok(FailedTask {
            id: row.value(0)?,
            session: row.value(1)?,
            origin: row.value(2)?,
            task_type: row.parsed(3, values::task_type)?,
        })
    }
}

/// Columns as in the statement `failed_units_of_job`.
impl FromRow for FailedUnit {
    fn from_row(row: &impl Columns) -> Result<FailedUnit> {
        Ok(FailedUnit {
            unit: UnitId(row.value(0)?),
            task: TaskId(row.value(1)?),
            session: EnumerationSessionId(row.value(2)?),
            datasource: DatasourceId(row.value(3)?),
            key: ObjectKey(row.value(4)?),
        })
    }
}

/// Columns as in the statement `failed_objects`.
impl FromRow for FailedObject {
    fn from_row(row: &impl Columns) -> Result<FailedObject> {
        Ok(FailedObject {
            task: TaskId(row.value(0)?),
            session: EnumerationSessionId(row.value(1)?),
            datasource: DatasourceId(row.value(2)?),
            failures: row.value(3)?,
            key: ObjectKey(row.value(4)?),
            detail: row.value(5)?,
        })
    }
}

/// Columns as in the statement `packet_sequences`.
impl FromRow for RecordAt {
    fn from_row(row: &impl Columns) -> Result<RecordAt> {
        let (container, name): (Vec<u8>, Vec<u8>) = (row.value(0)?, row.value(1)?);
        let key = ObjectKey(container).join(&name);
        Ok(RecordAt { key, unit: UnitId(row.value(2)?), sequence: row.value(3)? })
    }
}

/// Columns as in the statement `units_of_task`. A resume point comes as bytes: it may have what
/// PostgreSQL has not in text.
impl FromRow for UnitState {
    fn from_row(row: &impl Columns) -> Result<UnitState> {
        let resume_point = row.value::<Option<Vec<u8>>>(5)?.map(String::from_utf8).transpose();
        Ok(UnitState {
            unit: UnitId(row.value(0)?),
            key: ObjectKey(row.value(1)?),
            page: row.value(2)?,
            status: row.parsed(3, values::unit_status)?,
            records: row.value(4)?,
            resume_point: resume_point.map_err(|_| damaged("resume point"))?,
        })
    }
}

/// Columns as in the statement `units_to_fan_out`.
impl FromRow for Waiting {
    fn from_row(row: &impl Columns) -> Result<Waiting> {
        Ok(Waiting {
            unit: UnitId(row.value(0)?),
            session: EnumerationSessionId(row.value(1)?),
            records: row.value(2)?,
            containers: row.value(3)?,
            objects: row.value(4)?,
            bytes: row.value(5)?,
            fanned_out: row.value(6)?,
            datasource: DatasourceId(row.value(7)?),
        })
    }
}

/// Columns from this one on: mtime_ns, ctime_ns, inode, tag.
pub(crate) fn version_marks(row: &impl Columns, first: usize) -> Result<VersionMarks> {
    Ok(VersionMarks {
        mtime_ns: row.value(first)?,
        ctime_ns: row.value(first + 1)?,
        inode: row.unsigned(first + 2)?,
        tag: row.optional_wide(first + 3)?,
    })
}
