//! Rows of a table on their way into the sink.

use domesday_connector::ConnectorError;
use domesday_model::{Reason, TableKind, TableShape};
use futures_util::TryStreamExt;
use tiberius::{QueryItem, ToSql};

use super::error::{needs_other_isolation, told};
use super::session::SqlServerSession;
use super::statement::{self, Statement};
use super::types::is_row_version;
use super::value;
use crate::databases::dialect::{TableName, Which};
use crate::databases::rows::RowSink;

/// Rows that a sample's statement gives, at most, as a multiple of what is wanted: pages are not equally full.
const SAMPLE_EXCESS: u64 = 2;
/// Percent of the pages, at least: less may be none at all.
const SAMPLE_PERCENT_MIN: f64 = 0.000_1;

impl SqlServerSession {
    pub(super) async fn read_rows(
        &mut self,
        table: &TableName,
        shape: &TableShape,
        which: &Which,
        sink: &mut RowSink,
    ) -> Result<(), ConnectorError> {
        match which {
            Which::All => self.stream(&statement::all(table, shape), shape, sink).await,
            Which::Range { after, to } => {
                let statement = statement::range(table, shape, after.as_ref(), to.as_ref());
                self.stream(&statement, shape, sink).await
            }
            Which::Sample { rows, seed } => self.sample(table, shape, *rows, *seed, sink).await,
        }
    }

    /// Rows of some of the table's pages. Views have no pages, and of a table there may be none among those taken, or
    /// it may be of a kind that cannot be sampled: then whichever rows the server gives first.
    async fn sample(
        &mut self,
        table: &TableName,
        shape: &TableShape,
        rows: u64,
        seed: u64,
        sink: &mut RowSink,
    ) -> Result<(), ConnectorError> {
        let estimate = shape.row_estimate.filter(|_| shape.kind == TableKind::Table);
        if let Some(estimate) = estimate.filter(|estimate| *estimate > 0) {
            let percent = (rows as f64 * 100.0 / estimate as f64).clamp(SAMPLE_PERCENT_MIN, 100.0);
            let most = rows.saturating_mul(SAMPLE_EXCESS);
            let statement = statement::sample(table, shape, percent, seed, most);
            match self.stream(&statement, shape, sink).await {
                Err(error)
                    if sink.rows() > 0
                        || !matches!(error.reason(), Reason::ReadError | Reason::Unavailable) =>
                {
                    return Err(error);
                }
                Ok(()) if sink.rows() > 0 => return Ok(()),
                _ => {}
            }
        }
        self.stream(&statement::first(table, shape, rows), shape, sink).await
    }

    async fn stream(
        &mut self,
        statement: &Statement,
        shape: &TableShape,
        sink: &mut RowSink,
    ) -> Result<(), ConnectorError> {
        let before = sink.rows();
        match self.run(statement, shape, sink).await {
            Err(error) if needs_other_isolation(&error) && sink.rows() == before => {
                self.set("SET TRANSACTION ISOLATION LEVEL READ COMMITTED").await?;
                self.run(statement, shape, sink).await.map_err(|error| told(&error))
            }
            outcome => outcome.map_err(|error| told(&error)),
        }
    }

    async fn run(
        &mut self,
        statement: &Statement,
        shape: &TableShape,
        sink: &mut RowSink,
    ) -> Result<(), tiberius::error::Error> {
        let parameters: Vec<&dyn ToSql> =
            statement.parameters.iter().map(|text| text as &dyn ToSql).collect();
        let mut items = match parameters.is_empty() {
            true => self.client.simple_query(&statement.sql).await?,
            false => self.client.query(&statement.sql, &parameters).await?,
        };
        let row_versions: Vec<bool> = shape.columns.iter().map(is_row_version).collect();
        while let Some(item) = items.try_next().await? {
            let QueryItem::Row(row) = item else { continue };
            let columns = &mut sink.batch().columns;
            for ((values, is_row_version), (_, data)) in
                columns.iter_mut().zip(&row_versions).zip(row.cells())
            {
                value::push(values, data, *is_row_version);
            }
            if !sink.end_row().await {
                // The server is told: else the rest would have to be read before anything else is asked.
                drop(items);
                return self.client.cancel_query().await;
            }
        }
        Ok(())
    }
}
