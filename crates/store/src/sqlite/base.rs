//! What an earlier session says of a data source, read for an incremental one. Each verb is one snapshot, which
//! also tells whether the base still stands.

use domesday_model::{
    FindingDraft, FindingId, Fingerprint, ObjectKey, Position, RecordKind, Score, Span, VersionMarks,
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{Result, tables};
use crate::decide::prior::{PriorFinding, PriorResults, decoding, outcome};
use crate::queries::statement;
use crate::types::*;
use crate::values::staged::{StagedObject, decoding_steps};
use crate::values::{damaged, location};

pub(super) const FILE: &str = queries_of!("base");

fn stands(c: &Connection, base: &Base) -> Result<bool> {
    const STANDS: &str = statement(FILE, "base_stands");
    Ok(c.prepare_cached(STANDS)?.query_row([base.session.0, base.job.0], |row| row.get(0))?)
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
    const RECORDS: &str = statement(FILE, "prior_records");
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
            marks: VersionMarks {
                mtime_ns: row.get(6)?,
                ctime_ns: row.get(7)?,
                inode: row.get::<_, i64>(8)?.cast_unsigned(),
                tag: row.get(9)?,
            },
            is_trusted: row.get::<_, i64>(3)? != RecordKind::File.code(),
        });
    }
    Ok(last)
}

/// Whether anything is said of what is in a container or below: of most there is not, and then its objects need not
/// be looked up one by one.
fn has_outcomes(c: &Connection, base: &Base, container: &ObjectKey) -> Result<bool> {
    const NEXT: &str = statement(FILE, "next_outcome");
    let inside = container.join(b"");
    let next: Option<Vec<u8>> =
        c.prepare_cached(NEXT)?.query_row(params![base.job.0, inside.0], |row| row.get(0)).optional()?;
    Ok(next.is_some_and(|key| key.starts_with(&inside.0)))
}

fn outcome_of(c: &Connection, base: &Base, key: &ObjectKey) -> Result<PriorOutcome> {
    const OUTCOME: &str = statement(FILE, "prior_outcome");
    let parameters = params![base.job.0, key.0, base.session.0];
    let (has_rows, is_incomplete) =
        c.prepare_cached(OUTCOME)?.query_row(parameters, |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(outcome(has_rows, is_incomplete))
}

pub(super) fn results(c: &Connection, base: &Base, keys: &[ObjectKey]) -> Result<Vec<Option<ResultBatch>>> {
    const FINDINGS: &str = statement(FILE, "prior_findings");
    const TABLES: &str = statement(FILE, "prior_tables");
    if !stands(c, base)? {
        return Ok(vec![None; keys.len()]);
    }
    let mut results = PriorResults::new(objects(c, base, keys)?)?;
    let mut statement = c.prepare_cached(FINDINGS)?;
    for task in results.tasks() {
        let mut rows = statement.query([base.job.0, task])?;
        while let Some(row) = rows.next()? {
            results.add(finding(row, task)?);
        }
    }
    let mut statement = c.prepare_cached(TABLES)?;
    for task in results.tasks() {
        let mut rows = statement.query([base.job.0, task])?;
        while let Some(row) = rows.next()? {
            results.add_table(task, tables::observation(row)?);
        }
    }
    Ok(results.batches(keys))
}

/// What is said of each of these objects and of what is inside it, by the tasks that say it.
fn objects(c: &Connection, base: &Base, keys: &[ObjectKey]) -> Result<Vec<(i64, StagedObject)>> {
    const OBJECTS: &str = statement(FILE, "prior_objects");
    let mut statement = c.prepare_cached(OBJECTS)?;
    let mut objects = Vec::new();
    for key in keys {
        let mut rows = statement.query(params![base.job.0, key.0, base.session.0])?;
        while let Some(row) = rows.next()? {
            let object = StagedObject {
                key: key.clone(),
                nested: ObjectKey(row.get(1)?),
                status: row.get(2)?,
                reason: row.get(3)?,
                detail: row.get(4)?,
                overflow: row.get::<_, i64>(5)?.cast_unsigned(),
            };
            objects.push((row.get(0)?, object));
        }
    }
    Ok(objects)
}

/// Columns as in the statement `prior_findings`.
fn finding(row: &Row<'_>, task: i64) -> Result<PriorFinding> {
    let (nested, category, steps): (Vec<u8>, String, String) = (row.get(2)?, row.get(4)?, row.get(13)?);
    let unsigned = |column| row.get::<_, i64>(column).map(i64::cast_unsigned);
    let draft = FindingDraft {
        location: location(row.get(1)?, &nested)?.into(),
        rule: row.get::<_, String>(3)?.into(),
        category: category.parse().map_err(|_| damaged("category"))?,
        score: Score(row.get(5)?),
        reasons: row.get(6)?,
        fingerprint: Fingerprint(row.get(7)?),
        preview: row.get(8)?,
        span: Span { start: unsigned(9)?, end: unsigned(10)? },
        position: Position { line: unsigned(11)?, column: unsigned(12)? },
        decoding: decoding(decoding_steps(&steps)),
        row: row.get::<_, Option<String>>(15)?.map(Into::into),
    };
    Ok(PriorFinding { task, id: FindingId(row.get(0)?), draft, version: row.get(14)? })
}
