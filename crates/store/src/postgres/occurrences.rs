//! Streams a job's occurrences from one snapshot. The server keeps the result, outside of any transaction, for as long
//! as the stream's own connection lives.

use std::sync::Arc;

use domesday_model::{MasterJobId, Score};
use tokio::sync::mpsc;

use super::error::store_error;
use super::pool::{Answer, Call, Loan, Pool};
use super::transaction::params;
use super::{Result, queries};
use crate::queries::statement;
use crate::rows::FromRow;
use crate::types::*;

/// Rows read ahead of whoever consumes a stream.
const STREAM_AHEAD: usize = 512;

pub(super) async fn stream(
    pool: &Arc<Pool>,
    master: MasterJobId,
    filter: &OccurrenceFilter,
) -> Result<OccurrenceStream> {
    const DECLARE: &str = statement(queries::RESULTS, "declare_occurrences");
    let params = params![
        master.0.to_vec(),
        i16::from(filter.min_score.unwrap_or(Score(0)).0),
        filter.rule.clone(),
        filter.category.map(|category| category.as_str()),
        filter.with_suppressed,
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
    const FETCH: &str = statement(queries::RESULTS, "fetch_occurrences");
    loop {
        let fetched = ask(loan, Call { sql: FETCH, params: Vec::new() }).await?;
        if fetched.is_empty() {
            return Ok(());
        }
        for row in fetched.iter() {
            if rows.send(Ok(Occurrence::from_row(row)?)).await.is_err() {
                return Ok(());
            }
        }
    }
}

async fn ask(loan: &Loan, call: Call) -> Result<Answer> {
    loan.ask(&call).await.map_err(|error| store_error(&error))
}
