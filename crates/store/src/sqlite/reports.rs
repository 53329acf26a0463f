//! Reading: summaries, occurrences, problems.

use domesday_model::{DatasourceId, MasterJobId, Score};
use rusqlite::{Connection, OptionalExtension, params};

use super::Result;
use super::results::{FILE, occurrence};
use super::tasks::datasource_row;
use crate::queries::statement;
use crate::types::*;
use crate::values;

pub(super) fn summary(c: &Connection, master: MasterJobId) -> Result<JobSummary> {
    const UNITS: &str = statement(FILE, "summary_units");
    const TASKS: &str = statement(FILE, "summary_tasks");
    const SKIPS: &str = statement(FILE, "summary_skips");
    const FAILED_UNITS: &str = statement(FILE, "summary_failed_units");
    const OBJECTS: &str = statement(FILE, "summary_object_scans");
    let mut summary = JobSummary::default();
    (summary.units, summary.objects_listed, summary.bytes_listed, summary.objects_unchanged) = c
        .prepare_cached(UNITS)?
        .query_row([master.0], |row| Ok((count(row, 0)?, count(row, 1)?, count(row, 2)?, count(row, 3)?)))?;
    (
        summary.objects_done,
        summary.nested_done,
        summary.bytes_done,
        summary.tasks_failed,
        summary.tasks_open,
    ) = c.prepare_cached(TASKS)?.query_row([master.0], |row| {
        Ok((count(row, 0)?, count(row, 1)?, count(row, 2)?, count(row, 3)?, count(row, 4)?))
    })?;
    each(c, SKIPS, master, |row| summary.add_skips(&row.get::<_, String>(0)?, row.get(1)?))?;
    each(c, FAILED_UNITS, master, |row| summary.add_failed_units(&row.get::<_, String>(0)?, row.get(1)?))?;
    each(c, OBJECTS, master, |row| {
        let (status, reason): (String, Option<String>) = (row.get(0)?, row.get(1)?);
        summary.add_objects(&status, reason.as_deref(), row.get(2)?, row.get(3)?)
    })?;
    Ok(summary)
}

pub(super) fn occurrences(
    c: &Connection,
    master: MasterJobId,
    filter: &OccurrenceFilter,
    emit: &mut dyn FnMut(Occurrence) -> bool,
) -> Result<()> {
    const OCCURRENCES: &str = statement(FILE, "occurrences");
    let mut statement = c.prepare_cached(OCCURRENCES)?;
    let mut rows = statement.query(params![
        master.0,
        filter.min_score.unwrap_or(Score(0)).0,
        filter.rule,
        filter.category.map(|category| category.as_str()),
    ])?;
    while let Some(row) = rows.next()? {
        if !emit(occurrence(row)?) {
            break;
        }
    }
    Ok(())
}

pub(super) fn problems(c: &Connection, master: MasterJobId, max: u32) -> Result<Vec<Problem>> {
    const PROBLEMS: &str = statement(FILE, "problems");
    let mut statement = c.prepare_cached(PROBLEMS)?;
    let mut rows = statement.query(params![master.0, max])?;
    let mut problems = Vec::new();
    while let Some(row) = rows.next()? {
        let (nested, status): (Vec<u8>, String) = (row.get(2)?, row.get(3)?);
        let reason: Option<String> = row.get(4)?;
        problems.push(Problem {
            datasource: DatasourceId(row.get(0)?),
            location: values::location(row.get(1)?, &nested)?,
            status: values::object_status(&status)?,
            reason: reason.as_deref().map(values::reason).transpose()?,
            detail: row.get(5)?,
        });
    }
    Ok(problems)
}

pub(super) fn datasources(c: &Connection, master: MasterJobId) -> Result<Vec<Datasource>> {
    const DATASOURCES: &str = statement(FILE, "job_datasources");
    let mut statement = c.prepare_cached(DATASOURCES)?;
    let rows = statement.query_map([master.0], |row| Ok(datasource_row(row)))?;
    rows.map(|row| row?).collect()
}

/// What `read` takes from the configuration of a master job's children, which agree but for their sources.
pub(super) fn from_configuration<T>(
    c: &Connection,
    master: MasterJobId,
    read: impl FnOnce(&str) -> Result<T>,
) -> Result<Option<T>> {
    const CONFIGURATION: &str = statement(FILE, "job_configuration");
    let mut statement = c.prepare_cached(CONFIGURATION)?;
    let text: Option<String> = statement.query_row([master.0], |row| row.get(0)).optional()?;
    text.as_deref().map(read).transpose()
}

fn each(
    c: &Connection,
    sql: &str,
    master: MasterJobId,
    mut f: impl FnMut(&rusqlite::Row<'_>) -> Result<()>,
) -> Result<()> {
    let mut statement = c.prepare_cached(sql)?;
    let mut rows = statement.query([master.0])?;
    while let Some(row) = rows.next()? {
        f(row)?;
    }
    Ok(())
}

fn count(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::cast_unsigned)
}
