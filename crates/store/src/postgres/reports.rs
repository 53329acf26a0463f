//! Reading: summaries, occurrences, problems.

use std::sync::Arc;

use domesday_model::{DatasourceId, FindingId, Fingerprint, MasterJobId, Position, RuleSetHash, Score, Span};
use tokio::sync::mpsc;
use tokio_postgres::Row;

use super::Result;
use super::error::store_error;
use super::origins::origin_from;
use super::pool::{Answer, Call, Loan, Pool};
use super::results::FILE;
use super::rows::{get, only, unsigned, wide};
use super::transaction::{Tx, params};
use crate::queries::statement;
use crate::types::*;
use crate::values;
use crate::values::staged::decoding_steps;

pub(super) const PROBLEMS: &str = statement(FILE, "problems");
pub(super) const DATASOURCES: &str = statement(FILE, "job_datasources");

pub(super) const CONFIGURATION: &str = statement(FILE, "job_configuration");

/// Rows read ahead of whoever consumes a stream.
const STREAM_AHEAD: usize = 512;

pub(super) async fn summary(tx: &mut Tx<'_>, master: MasterJobId) -> Result<JobSummary> {
    const UNITS: &str = statement(FILE, "summary_units");
    const TASKS: &str = statement(FILE, "summary_tasks");
    const SKIPS: &str = statement(FILE, "summary_skips");
    const FAILED_UNITS: &str = statement(FILE, "summary_failed_units");
    const OBJECTS: &str = statement(FILE, "summary_object_scans");
    let calls = [UNITS, TASKS, SKIPS, FAILED_UNITS, OBJECTS];
    let calls = calls.map(|sql| Call { sql, params: params![master.0.to_vec()] });
    let [units, tasks, skips, failed, objects] = tx.query_last(calls).await?;
    let (units, tasks) = (only(&units)?, only(&tasks)?);
    let mut summary = JobSummary {
        units: unsigned(units, 0)?,
        objects_listed: unsigned(units, 1)?,
        bytes_listed: unsigned(units, 2)?,
        objects_unchanged: unsigned(units, 3)?,
        objects_done: unsigned(tasks, 0)?,
        nested_done: unsigned(tasks, 1)?,
        bytes_done: unsigned(tasks, 2)?,
        tasks_failed: unsigned(tasks, 3)?,
        tasks_open: unsigned(tasks, 4)?,
        ..JobSummary::default()
    };
    for row in skips.iter() {
        summary.add_skips(get(row, 0)?, get(row, 1)?)?;
    }
    for row in failed.iter() {
        summary.add_failed_units(get(row, 0)?, get(row, 1)?)?;
    }
    for row in objects.iter() {
        summary.add_objects(get(row, 0)?, get(row, 1)?, get(row, 2)?, get(row, 3)?)?;
    }
    Ok(summary)
}

/// Streams a job's occurrences from one snapshot. The server keeps the result, outside of any transaction,
/// for as long as the stream's own connection lives.
pub(super) async fn occurrences(
    pool: &Arc<Pool>,
    master: MasterJobId,
    filter: &OccurrenceFilter,
) -> Result<OccurrenceStream> {
    const DECLARE: &str = statement(FILE, "declare_occurrences");
    let params = params![
        master.0.to_vec(),
        i16::from(filter.min_score.unwrap_or(Score(0)).0),
        filter.rule.clone(),
        filter.category.map(|category| category.as_str()),
    ];
    let mut loan = pool.get_apart().await?;
    ask(&loan, Call { sql: DECLARE, params }).await?;
    let (rows, stream) = mpsc::channel(STREAM_AHEAD);
    tokio::spawn(async move {
        if let Err(error) = fetch(&mut loan, &rows).await {
            // Nobody to tell is all right: then nobody reads.
            let _ = rows.send(Err(error)).await;
        }
    });
    Ok(stream)
}

/// Sends rows until there are none, or nobody wants them. The cursor goes with the connection.
async fn fetch(loan: &mut Loan, rows: &mpsc::Sender<Result<Occurrence>>) -> Result<()> {
    const FETCH: &str = statement(FILE, "fetch_occurrences");
    loop {
        let fetched = ask(loan, Call { sql: FETCH, params: Vec::new() }).await?;
        if fetched.is_empty() {
            return Ok(());
        }
        for row in fetched.iter() {
            if rows.send(Ok(occurrence(row)?)).await.is_err() {
                return Ok(());
            }
        }
    }
}

async fn ask(loan: &Loan, call: Call) -> Result<Answer> {
    loan.ask(&call).await.map_err(|error| store_error(&error))
}

/// Columns as in the statement `declare_occurrences`.
fn occurrence(row: &Row) -> Result<Occurrence> {
    Ok(Occurrence {
        finding: FindingId(wide(row, 0)?),
        datasource: DatasourceId(get(row, 1)?),
        location: values::location(get(row, 2)?, get(row, 3)?)?,
        rule: get(row, 4)?,
        category: get::<&str>(row, 5)?.parse().map_err(|_| values::damaged("category"))?,
        score: Score(u8::try_from(get::<i16>(row, 6)?).map_err(|_| values::damaged("score"))?),
        reasons: get(row, 7)?,
        fingerprint: Fingerprint(wide(row, 8)?),
        preview: get(row, 9)?,
        span: Span { start: unsigned(row, 10)?, end: unsigned(row, 11)? },
        position: Position { line: unsigned(row, 12)?, column: unsigned(row, 13)? },
        decoding: decoding_steps(get(row, 14)?),
        row: get::<Option<String>>(row, 15)?.map(Into::into),
        origin: origin_from(row, 16)?,
    })
}

/// Columns as in the statement `problems`.
pub(super) fn problem(row: &Row) -> Result<Problem> {
    Ok(Problem {
        datasource: DatasourceId(get(row, 0)?),
        location: values::location(get(row, 1)?, get(row, 2)?)?,
        status: values::object_status(get(row, 3)?)?,
        reason: get::<Option<&str>>(row, 4)?.map(values::reason).transpose()?,
        detail: get(row, 5)?,
    })
}

/// Columns: configuration.
pub(super) fn job_rule_set(row: &Row) -> Result<RuleSetHash> {
    values::rule_set_of(get(row, 0)?)
}

/// Columns: configuration.
pub(super) fn job_fingerprint_key(row: &Row) -> Result<String> {
    values::fingerprint_key_of(get(row, 0)?)
}

/// Columns: id, name, kind, configuration.
pub(super) fn datasource(row: &Row) -> Result<Datasource> {
    Ok(Datasource {
        id: DatasourceId(get(row, 0)?),
        name: get(row, 1)?,
        kind: get(row, 2)?,
        configuration: values::from_json(get(row, 3)?, "data source configuration")?,
    })
}
