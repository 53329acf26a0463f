//! Reading: summaries, occurrences, problems.

use std::str::FromStr;

use domesday_model::{DatasourceId, Location, MasterJobId, ObjectKey, ObjectStatus, Reason, Score};
use rusqlite::{Connection, params};

use super::Result;
use super::error::damaged;
use super::results::{FILE, occurrence, unsigned};
use super::tasks::datasource_row;
use crate::statement::statement;
use crate::types::*;

pub(super) fn summary(c: &Connection, master: MasterJobId) -> Result<JobSummary> {
    const UNITS: &str = statement(FILE, "summary_units");
    const TASKS: &str = statement(FILE, "summary_tasks");
    const SKIPS: &str = statement(FILE, "summary_skips");
    const FAILED_UNITS: &str = statement(FILE, "summary_failed_units");
    const OBJECTS: &str = statement(FILE, "summary_object_scans");
    let mut summary = JobSummary::default();
    (summary.units, summary.objects_listed, summary.bytes_listed) = c
        .prepare_cached(UNITS)?
        .query_row([master.0], |row| Ok((count(row, 0)?, count(row, 1)?, count(row, 2)?)))?;
    (
        summary.objects_done,
        summary.nested_done,
        summary.bytes_done,
        summary.tasks_failed,
        summary.tasks_open,
    ) = c.prepare_cached(TASKS)?.query_row([master.0], |row| {
        Ok((count(row, 0)?, count(row, 1)?, count(row, 2)?, count(row, 3)?, count(row, 4)?))
    })?;
    each(c, SKIPS, master, |row| add(&mut summary.skipped, reason(row, 0)?, unsigned(row, 1)?))?;
    each(c, FAILED_UNITS, master, |row| add(&mut summary.failed, reason(row, 0)?, unsigned(row, 1)?))?;
    each(c, OBJECTS, master, |row| {
        summary.overflow += unsigned(row, 3)?;
        let list = match object_status(row, 0)? {
            ObjectStatus::Scanned => return Ok(()),
            ObjectStatus::Skipped => &mut summary.skipped,
            ObjectStatus::Partial => &mut summary.partial,
            ObjectStatus::Failed => &mut summary.failed,
        };
        add(list, reason(row, 1)?, unsigned(row, 2)?)
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
        let nested: Vec<u8> = row.get(2)?;
        let reason: Option<String> = row.get(4)?;
        problems.push(Problem {
            datasource: DatasourceId(row.get(0)?),
            location: Location {
                key: ObjectKey(row.get(1)?),
                nested: Location::parse_nested(&nested).ok_or_else(|| damaged("nested path"))?,
            },
            status: object_status(row, 3)?,
            reason: reason
                .map(|reason| Reason::from_str(&reason))
                .transpose()
                .map_err(|_| damaged("reason"))?,
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

fn add(list: &mut Vec<(Reason, u64)>, reason: Reason, count: u64) -> Result<()> {
    match list.iter_mut().find(|(known, _)| *known == reason) {
        Some((_, sum)) => *sum += count,
        None => list.push((reason, count)),
    }
    Ok(())
}

fn count(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::cast_unsigned)
}

fn reason(row: &rusqlite::Row<'_>, column: usize) -> Result<Reason> {
    let text: String = row.get(column)?;
    text.parse().map_err(|_| damaged("reason"))
}

fn object_status(row: &rusqlite::Row<'_>, column: usize) -> Result<ObjectStatus> {
    let text: String = row.get(column)?;
    ObjectStatus::ALL
        .iter()
        .copied()
        .find(|status| status.as_str() == text)
        .ok_or_else(|| damaged("object status"))
}
