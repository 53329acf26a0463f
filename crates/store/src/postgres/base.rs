//! What an earlier session says of a data source, read for an incremental one. Each verb is one snapshot, which
//! also tells whether the base still stands.

use domesday_model::{ObjectKey, RecordKind, TableObservation};
use tokio_postgres::Row;

use super::pool::Call;
use super::rows::{column, get, only};
use super::transaction::{Tx, params};
use super::{Result, queries};
use crate::decide::prior::{PriorFinding, PriorResults, outcome};
use crate::queries::statement;
use crate::rows::{Columns, FromRow, version_marks};
use crate::types::*;
use crate::values::damaged;
use crate::values::staged::StagedObject;

fn stands_call(base: &Base) -> Call {
    const STANDS: &str = statement(queries::BASE, "base_stands");
    Call { sql: STANDS, params: params![base.session.0, base.job.0] }
}

pub(super) async fn records(
    tx: &mut Tx<'_>,
    base: &Base,
    containers: &[ObjectKey],
    from: PriorCursor,
    max: u32,
) -> Result<PriorPage> {
    const RECORDS: &str = statement(queries::BASE, "prior_records");
    const OUTCOMES: &str = statement(queries::BASE, "prior_outcomes");
    let max = i64::from(max.max(1));
    let PriorCursor { container: first, page, unit, sequence } = from;
    let rest = containers.get(first..).unwrap_or_default();
    let keys = column(rest, |container| container.0.clone());
    let params = params![base.job.0, base.session.0, keys, page, unit, sequence, max];
    let [stands, rows] = tx.query_all([stands_call(base), Call { sql: RECORDS, params }]).await?;
    let Some(last) = rows.last() else { return Ok(PriorPage::default()) };
    if !get::<bool>(only(&stands)?, 0)? {
        return Ok(PriorPage::default());
    }
    let next = (rows.len() as i64 == max).then(|| cursor_behind(last, first)).transpose()?;
    let mut records = rows.iter().map(|row| prior_record(row, first)).collect::<Result<Vec<_>>>()?;
    let keys = column(&records, |record| containers[record.container].join(&record.name).0);
    let call = Call { sql: OUTCOMES, params: params![base.job.0, base.session.0, keys] };
    let [outcomes] = tx.query_last([call]).await?;
    for row in outcomes.iter() {
        let place = usize::try_from(get::<i64>(row, 0)? - 1).ok();
        let record = place.and_then(|place| records.get_mut(place));
        record.ok_or_else(|| damaged("place of a record"))?.outcome = outcome(true, get(row, 1)?);
    }
    Ok(PriorPage { records, next })
}

/// Columns as in the statement `prior_records`.
fn cursor_behind(row: &Row, first: usize) -> Result<PriorCursor> {
    let (page, unit, sequence) = (get(row, 0)?, get(row, 1)?, get::<i64>(row, 2)? + 1);
    Ok(PriorCursor { container: container(row, first)?, page, unit, sequence })
}

/// The place of a record's container among all, `first` being that of the first that was asked about.
fn container(row: &Row, first: usize) -> Result<usize> {
    let place = usize::try_from(get::<i64>(row, 10)? - 1).map_err(|_| damaged("place of a container"))?;
    Ok(first + place)
}

/// Columns as in the statement `prior_records`; nothing is said of it yet.
fn prior_record(row: &Row, first: usize) -> Result<PriorRecord> {
    Ok(PriorRecord {
        container: container(row, first)?,
        name: get(row, 4)?,
        size: row.unsigned(5)?,
        marks: version_marks(row, 6)?,
        is_trusted: row.number(3)? != RecordKind::File.code(),
        outcome: outcome(false, false),
    })
}

pub(super) async fn results(
    tx: &mut Tx<'_>,
    base: &Base,
    keys: &[ObjectKey],
) -> Result<Vec<Option<ResultBatch>>> {
    const OBJECTS: &str = statement(queries::BASE, "prior_objects");
    const FINDINGS: &str = statement(queries::BASE, "prior_findings");
    const TABLES: &str = statement(queries::BASE, "prior_tables");
    let bytes = || column(keys, |key| key.0.clone());
    let call = Call { sql: OBJECTS, params: params![base.job.0, base.session.0, bytes()] };
    let [stands, objects] = tx.query_all([stands_call(base), call]).await?;
    if !get::<bool>(only(&stands)?, 0)? {
        return Ok(vec![None; keys.len()]);
    }
    let objects = objects.iter().map(object).collect::<Result<Vec<_>>>()?;
    let mut results = PriorResults::new(objects)?;
    let calls = [FINDINGS, TABLES];
    let calls = calls.map(|sql| Call { sql, params: params![base.job.0, results.tasks(), bytes()] });
    let [findings, observed] = tx.query_last(calls).await?;
    for row in findings.iter() {
        results.add(PriorFinding::from_row(row)?);
    }
    for row in observed.iter() {
        results.add_table(get(row, 7)?, TableObservation::from_row(row)?);
    }
    Ok(results.batches(keys))
}

/// Columns as in the statement `prior_objects`.
fn object(row: &Row) -> Result<(i64, StagedObject)> {
    let object = StagedObject {
        key: ObjectKey(get(row, 1)?),
        nested: ObjectKey(get(row, 2)?),
        status: get(row, 3)?,
        reason: get(row, 4)?,
        detail: get(row, 5)?,
        overflow: row.unsigned(6)?,
    };
    Ok((get(row, 0)?, object))
}
