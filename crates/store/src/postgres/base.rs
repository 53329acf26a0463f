//! What an earlier session says of a data source, read for an incremental one. Each verb is one snapshot, which
//! also tells whether the base still stands.

use domesday_model::{
    FindingDraft, FindingId, Fingerprint, ObjectKey, Position, RecordKind, Score, Span, VersionMarks,
};
use tokio_postgres::Row;

use super::pool::Call;
use super::rows::{column, get, only, tag, unsigned, wide};
use super::transaction::{Tx, params};
use super::{Result, tables};
use crate::decide::prior::{PriorFinding, PriorResults, decoding, outcome};
use crate::queries::statement;
use crate::types::*;
use crate::values::staged::{StagedObject, decoding_steps};
use crate::values::{damaged, location};

pub(super) const FILE: &str = queries_of!("base");

fn stands_call(base: &Base) -> Call {
    const STANDS: &str = statement(FILE, "base_stands");
    Call { sql: STANDS, params: params![base.session.0, base.job.0] }
}

/// Columns: id, job_id, started_at; all empty where there is none.
pub(super) fn base(row: &Row, first: usize) -> Result<Option<Base>> {
    let session: Option<i64> = get(row, first)?;
    let base = |session| {
        Ok(Base {
            session: domesday_model::EnumerationSessionId(session),
            job: domesday_model::JobId(get(row, first + 1)?),
            started_at_ms: get(row, first + 2)?,
        })
    };
    session.map(base).transpose()
}

pub(super) async fn records(
    tx: &mut Tx<'_>,
    base: &Base,
    containers: &[ObjectKey],
    from: PriorCursor,
    max: u32,
) -> Result<PriorPage> {
    const RECORDS: &str = statement(FILE, "prior_records");
    const OUTCOMES: &str = statement(FILE, "prior_outcomes");
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
        size: unsigned(row, 5)?,
        marks: VersionMarks {
            mtime_ns: get(row, 6)?,
            ctime_ns: get(row, 7)?,
            inode: unsigned(row, 8)?,
            tag: tag(row, 9)?,
        },
        is_trusted: i64::from(get::<i16>(row, 3)?) != RecordKind::File.code(),
        outcome: outcome(false, false),
    })
}

pub(super) async fn results(
    tx: &mut Tx<'_>,
    base: &Base,
    keys: &[ObjectKey],
) -> Result<Vec<Option<ResultBatch>>> {
    const OBJECTS: &str = statement(FILE, "prior_objects");
    const FINDINGS: &str = statement(FILE, "prior_findings");
    const TABLES: &str = statement(FILE, "prior_tables");
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
        results.add(finding(row)?);
    }
    for row in observed.iter() {
        results.add_table(get(row, 7)?, tables::observation(row)?);
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
        overflow: unsigned(row, 6)?,
    };
    Ok((get(row, 0)?, object))
}

/// Columns as in the statement `prior_findings`.
fn finding(row: &Row) -> Result<PriorFinding> {
    let draft = FindingDraft {
        location: location(get(row, 2)?, get(row, 3)?)?.into(),
        rule: get::<&str>(row, 4)?.into(),
        category: get::<&str>(row, 5)?.parse().map_err(|_| damaged("category"))?,
        score: Score(u8::try_from(get::<i16>(row, 6)?).map_err(|_| damaged("score"))?),
        reasons: get(row, 7)?,
        fingerprint: Fingerprint(wide(row, 8)?),
        preview: get(row, 9)?,
        span: Span { start: unsigned(row, 10)?, end: unsigned(row, 11)? },
        position: Position { line: unsigned(row, 12)?, column: unsigned(row, 13)? },
        decoding: decoding(decoding_steps(get(row, 14)?)),
        row: get::<Option<String>>(row, 16)?.map(Into::into),
    };
    Ok(PriorFinding { task: get(row, 0)?, id: FindingId(wide(row, 1)?), draft, version: get(row, 15)? })
}
