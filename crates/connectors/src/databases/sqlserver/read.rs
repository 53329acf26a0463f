//! Rows of a table on their way into the sink.

use domesday_connector::ConnectorError;
use domesday_model::{Reason, TableKind, TableShape};
use futures_util::TryStreamExt;
use tiberius::{QueryItem, ToSql};

use super::error::{may_be_of_columns, needs_other_isolation, told};
use super::session::SqlServerSession;
use super::statement::{self, Selection, Statement};
use super::types::is_row_version;
use super::value;
use crate::databases::column_search::{ColumnSearch, UnreadableColumns};
use crate::databases::dialect::{TableName, Which};
use crate::databases::rows::RowSink;

/// Rows that a sample's statement gives, at most, as a multiple of what is wanted: pages are not equally full.
const SAMPLE_EXCESS: u64 = 2;
/// Percent of the pages, at least: less may be none at all.
const SAMPLE_PERCENT_MIN: f64 = 0.000_1;

/// A table that is read, and how.
struct Reading<'a> {
    table: &'a TableName,
    shape: &'a TableShape,
    columns: Selection,
    /// Whether the last statement failed for what may be some of its columns.
    may_be_of_columns: bool,
}

impl SqlServerSession {
    /// Reads rows. A statement that fails for some of its columns, before anybody has seen a row, is repeated without
    /// them.
    pub(super) async fn read_rows(
        &mut self,
        table: &TableName,
        shape: &TableShape,
        which: &Which,
        sink: &mut RowSink,
    ) -> Result<(), ConnectorError> {
        let columns = Selection::new(shape, |_| false);
        let mut reading = Reading { table, shape, columns, may_be_of_columns: false };
        let Err(error) = self.attempt(&mut reading, which, sink).await else { return Ok(()) };
        if !reading.may_be_of_columns || sink.handed() > 0 {
            return Err(error);
        }
        let rows = ColumnSearch::rows_to_try(sink.rows());
        sink.begin_again();
        let Some(columns) = self.unreadable_columns(&mut reading, rows, sink).await? else {
            return Err(error);
        };
        let is_out = |place| columns.iter().any(|(column, _)| *column == place);
        reading.columns = Selection::new(shape, is_out);
        self.attempt(&mut reading, which, sink).await?;
        sink.name_unreadable(shape, &columns);
        Ok(())
    }

    async fn attempt(
        &mut self,
        reading: &mut Reading<'_>,
        which: &Which,
        sink: &mut RowSink,
    ) -> Result<(), ConnectorError> {
        match which {
            Which::All => self.stream(&statement::all(reading.table, &reading.columns), reading, sink).await,
            Which::Range { after, to } => {
                let (after, to) = (after.as_ref(), to.as_ref());
                let statement = statement::range(reading.table, reading.shape, &reading.columns, after, to);
                self.stream(&statement, reading, sink).await
            }
            Which::Sample { rows, seed } => self.sample(reading, *rows, *seed, sink).await,
        }
    }

    /// The columns without which the first rows of the table can be read.
    async fn unreadable_columns(
        &mut self,
        reading: &mut Reading<'_>,
        rows: u64,
        sink: &RowSink,
    ) -> Result<Option<UnreadableColumns>, ConnectorError> {
        let mut search = ColumnSearch::new(reading.shape.columns.len());
        while let Some(columns) = search.next() {
            // Each try has the time that a statement has.
            sink.watch().progress();
            let selection = Selection::new(reading.shape, |place| !columns.contains(&place));
            let statement = statement::first(reading.table, &selection, rows);
            let outcome = match self.try_rows(&statement.sql).await {
                Err(error) if !may_be_of_columns(&error) => return Err(told(&error)),
                tried => tried.map_err(|error| told(&error)),
            };
            search.tried(columns, outcome);
        }
        Ok(search.found())
    }

    /// Reads rows and throws them away.
    async fn try_rows(&mut self, sql: &str) -> Result<(), tiberius::error::Error> {
        let mut items = self.client.simple_query(sql).await?;
        while items.try_next().await?.is_some() {}
        Ok(())
    }

    /// Rows of some of the table's pages. Views have no pages, and of a table there may be none among those taken, or
    /// it may be of a kind that cannot be sampled: then whichever rows the server gives first.
    async fn sample(
        &mut self,
        reading: &mut Reading<'_>,
        rows: u64,
        seed: u64,
        sink: &mut RowSink,
    ) -> Result<(), ConnectorError> {
        let estimate = reading.shape.row_estimate.filter(|_| reading.shape.kind == TableKind::Table);
        if let Some(estimate) = estimate.filter(|estimate| *estimate > 0) {
            let percent = (rows as f64 * 100.0 / estimate as f64).clamp(SAMPLE_PERCENT_MIN, 100.0);
            let most = rows.saturating_mul(SAMPLE_EXCESS);
            let statement = statement::sample(reading.table, &reading.columns, percent, seed, most);
            match self.stream(&statement, reading, sink).await {
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
        self.stream(&statement::first(reading.table, &reading.columns, rows), reading, sink).await
    }

    async fn stream(
        &mut self,
        statement: &Statement,
        reading: &mut Reading<'_>,
        sink: &mut RowSink,
    ) -> Result<(), ConnectorError> {
        let before = sink.rows();
        let mut outcome = self.run(statement, reading.shape, sink).await;
        if outcome.as_ref().is_err_and(needs_other_isolation) && sink.rows() == before {
            self.set("SET TRANSACTION ISOLATION LEVEL READ COMMITTED").await?;
            outcome = self.run(statement, reading.shape, sink).await;
        }
        reading.may_be_of_columns = outcome.as_ref().is_err_and(may_be_of_columns);
        outcome.map_err(|error| told(&error))
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
