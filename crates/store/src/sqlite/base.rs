//! What an earlier session says of a data source, read for an incremental one. Each verb is one snapshot, which
//! also tells whether the base still stands.

use domesday_model::{ObjectKey, RecordKind, TableObservation};
use rusqlite::{Connection, params};

use super::rows::Statements;
use super::{Result, queries};
use crate::decide::prior::{PriorResults, outcome};
use crate::queries::statement;
use crate::rows::{Columns, version_marks};
use crate::types::*;
use crate::values::staged::StagedObject;

fn stands(c: &Connection, base: &Base) -> Result<bool> {
    const STANDS: &str = statement(queries::BASE, "base_stands");
    c.only(STANDS, [base.session.0, base.job.0])
}

pub(super) fn records(
    c: &Connection,
    base: &Base,
    containers: &[ObjectKey],
    from: PriorCursor,
    max: u32,
) -> Result<PriorPage> {
    let mut page = PriorPage::default();
    if !stands(c, base)? {
        return Ok(page);
    }
    let max = max.max(1) as usize;
    for (index, container) in containers.iter().enumerate().skip(from.container) {
        let from = if index == from.container { from } else { PriorCursor::start_of(index) };
        let last = add_records(c, base, container, from, max - page.records.len(), &mut page.records)?;
        if page.records.len() == max {
            page.next = Some(last);
            break;
        }
    }
    Ok(page)
}

/// Adds what is known of one container, from a place on; the place behind it.
fn add_records(
    c: &Connection,
    base: &Base,
    container: &ObjectKey,
    from: PriorCursor,
    max: usize,
    records: &mut Vec<PriorRecord>,
) -> Result<PriorCursor> {
    const RECORDS: &str = statement(queries::BASE, "prior_records");
    let PriorCursor { container: index, page, unit, sequence } = from;
    let mut last = from;
    let has_outcomes = has_outcomes(c, base, container)?;
    let mut statement = c.prepare_cached(RECORDS)?;
    let parameters = params![base.job.0, base.session.0, container.0, page, unit, sequence, max as i64];
    let mut rows = statement.query(parameters)?;
    while let Some(row) = rows.next()? {
        let sequence = row.get::<_, i64>(2)? + 1;
        last = PriorCursor { container: index, page: row.get(0)?, unit: row.get(1)?, sequence };
        let name: Vec<u8> = row.get(4)?;
        records.push(PriorRecord {
            container: index,
            outcome: match has_outcomes {
                true => outcome_of(c, base, &container.join(&name))?,
                false => PriorOutcome::Clean,
            },
            name,
            size: row.get::<_, i64>(5)?.cast_unsigned(),
            marks: version_marks(row, 6)?,
            is_trusted: row.get::<_, i64>(3)? != RecordKind::File.code(),
        });
    }
    Ok(last)
}

/// Whether anything is said of what is in a container or below: of most there is not, and then its objects need not
/// be looked up one by one.
fn has_outcomes(c: &Connection, base: &Base, container: &ObjectKey) -> Result<bool> {
    const NEXT: &str = statement(queries::BASE, "next_outcome");
    let inside = container.join(b"");
    let next: Option<Vec<u8>> = c.one(NEXT, params![base.job.0, inside.0])?;
    Ok(next.is_some_and(|key| key.starts_with(&inside.0)))
}

fn outcome_of(c: &Connection, base: &Base, key: &ObjectKey) -> Result<PriorOutcome> {
    const OUTCOME: &str = statement(queries::BASE, "prior_outcome");
    let (has_rows, is_incomplete) = c.only(OUTCOME, params![base.job.0, key.0, base.session.0])?;
    Ok(outcome(has_rows, is_incomplete))
}

pub(super) fn results(c: &Connection, base: &Base, keys: &[ObjectKey]) -> Result<Vec<Option<ResultBatch>>> {
    const FINDINGS: &str = statement(queries::BASE, "prior_findings");
    const TABLES: &str = statement(queries::BASE, "prior_tables");
    if !stands(c, base)? {
        return Ok(vec![None; keys.len()]);
    }
    let mut results = PriorResults::new(objects(c, base, keys)?)?;
    for task in results.tasks() {
        let of_task = [base.job.0, task];
        c.all(FINDINGS, of_task)?.into_iter().for_each(|finding| results.add(finding));
        let tables: Vec<TableObservation> = c.all(TABLES, of_task)?;
        tables.into_iter().for_each(|table| results.add_table(task, table));
    }
    Ok(results.batches(keys))
}

/// What is said of each of these objects and of what is inside it, by the tasks that say it.
fn objects(c: &Connection, base: &Base, keys: &[ObjectKey]) -> Result<Vec<(i64, StagedObject)>> {
    const OBJECTS: &str = statement(queries::BASE, "prior_objects");
    let mut objects = Vec::new();
    for key in keys {
        objects.extend(c.rows(OBJECTS, params![base.job.0, key.0, base.session.0], |row| {
            let object = StagedObject {
                key: key.clone(),
                nested: ObjectKey(row.get(1)?),
                status: row.get(2)?,
                reason: row.get(3)?,
                detail: row.get(4)?,
                overflow: row.unsigned(5)?,
            };
            Ok((row.get(0)?, object))
        })?);
    }
    Ok(objects)
}
