//! Rows, from a statement to the sink: as they come, none kept.

use domesday_connector::ConnectorError;
use domesday_model::{Reason, TableShape};
use futures_util::StreamExt;
use mysql_async::prelude::Queryable;
use mysql_async::{Error, Row, Value};

use super::super::column_search::{ColumnSearch, UnreadableColumns};
use super::super::dialect::{RowKey, TableName, Which};
use super::super::rows::RowSink;
use super::column::{Column, Family, write_float};
use super::error::{container, failure, may_be_of_columns};
use super::select::{Rows, Source};
use super::session::{Connection, number};

/// Places of a table that a sample by key is taken from.
const SLICES: u64 = 64;

/// Rows of a sample by chance, as a multiple of what was asked for: the server's estimate may be too low.
const SHARE_EXCESS: u64 = 2;

/// A table being read.
pub(super) struct Reading<'a> {
    connection: &'a mut Connection,
    source: Source,
    shape: &'a TableShape,
    /// For errors.
    what: String,
    sink: &'a mut RowSink,
    /// The rows that were asked for by a statement that failed, perhaps for some of its columns.
    failed: Option<Rows>,
}

/// What came of a statement.
struct Poured {
    rows: u64,
    last: Option<Row>,
    /// Where in a row the parts of its key are.
    key_at: Vec<usize>,
    /// Whether anybody wants more.
    is_wanted: bool,
}

impl<'a> Reading<'a> {
    pub fn new(
        connection: &'a mut Connection,
        table: &TableName,
        shape: &'a TableShape,
        sink: &'a mut RowSink,
    ) -> Reading<'a> {
        let source = Source::new(table, Column::all(&shape.columns), &shape.primary_key);
        let what = format!("reading {}.{}", table.database, table.table);
        Reading { connection, source, shape, what, sink, failed: None }
    }

    /// Reads rows. A statement that fails for some of its columns, before anybody has seen a row, is repeated without
    /// them.
    pub async fn read(mut self, which: &Which) -> Result<(), ConnectorError> {
        let Err(error) = self.attempt(which).await else { return Ok(()) };
        let Some(failed) = self.failed.take().filter(|_| self.sink.handed() == 0) else { return Err(error) };
        let rows = ColumnSearch::rows_to_try(self.sink.rows());
        self.sink.begin_again();
        let Some(columns) = self.unreadable_columns(&failed.first(rows)).await? else { return Err(error) };
        self.leave_out(|place| columns.iter().any(|(column, _)| *column == place));
        self.attempt(which).await?;
        self.sink.name_unreadable(self.shape, &columns);
        Ok(())
    }

    async fn attempt(&mut self, which: &Which) -> Result<(), ConnectorError> {
        let has_key = !self.source.key.is_empty();
        match which {
            Which::Sample { rows, seed } => self.sample(*rows, *seed).await,
            Which::Range { after, to } if has_key => self.range(after.clone(), to.as_ref()).await,
            Which::All if has_key => self.range(None, None).await,
            Which::All | Which::Range { .. } => self.pour(Rows::All { limit: None }).await.map(drop),
        }
    }

    fn leave_out(&mut self, is_out: impl Fn(usize) -> bool) {
        for (place, column) in self.source.columns.iter_mut().enumerate() {
            column.is_out = is_out(place);
        }
    }

    /// The columns without which these rows can be read.
    async fn unreadable_columns(&mut self, rows: &Rows) -> Result<Option<UnreadableColumns>, ConnectorError> {
        let mut search = ColumnSearch::new(self.source.columns.len());
        while let Some(columns) = search.next() {
            // Each try has the time that a statement has.
            self.sink.watch().progress();
            self.leave_out(|place| !columns.contains(&place));
            let keyed = self.source.rows(rows).ok_or_else(|| self.no_key())?;
            self.connection.is_busy = true;
            let tried = self.connection.conn().query_drop(keyed.sql).await;
            self.connection.is_busy = false;
            let outcome = match tried {
                Err(error) if !may_be_of_columns(&error) => return Err(failure(&self.what, &error)),
                tried => tried.map_err(|error| failure(&self.what, &error)),
            };
            search.tried(columns, outcome);
        }
        Ok(search.found())
    }

    /// Page by page, each from where the last one ended. A page is a batch, so that neither a core that is slow to
    /// take rows nor a limit of rows per second uses up the time that the server has for a statement.
    async fn range(&mut self, mut after: Option<RowKey>, to: Option<&RowKey>) -> Result<(), ConnectorError> {
        let page_rows = self.sink.rows_at_once() as u64;
        loop {
            let page = Rows::Page { after: after.clone(), to: to.cloned(), limit: page_rows };
            let poured = self.pour(page).await?;
            let Some(last) = poured.last.filter(|_| poured.is_wanted && poured.rows == page_rows) else {
                return Ok(());
            };
            let key = key(&last, &poured.key_at).filter(|key| Some(key) != after.as_ref());
            after = Some(key.ok_or_else(|| self.no_key())?);
        }
    }

    async fn sample(&mut self, rows: u64, seed: u64) -> Result<(), ConnectorError> {
        if !self.source.key.is_empty() {
            let further = self.source.boundary(None, rows.saturating_add(1)).ok_or_else(|| self.no_key())?;
            if self.connection.rows(&self.what, &further).await?.is_empty() {
                return self.range(None, None).await;
            }
            if let Some(starts) = self.starts(rows, seed).await? {
                return self.slices(&starts, rows).await;
            }
        }
        let count = match self.shape.row_estimate.filter(|estimate| *estimate > rows) {
            Some(estimate) => estimate,
            None => {
                let counted = self.connection.rows(&self.what, &self.source.count()).await?;
                counted.first().and_then(|row| number(row, 0)).unwrap_or(0)
            }
        };
        let share = (rows as f64 / count as f64).min(1.0);
        let limit = rows.saturating_mul(SHARE_EXCESS);
        self.pour(Rows::Share { share, limit, seed }).await.map(drop)
    }

    /// Where the slices of a sample begin: values of the key's first column, each the first at a random place of
    /// its share of all that lies between the least and the greatest. `None` when that is no whole number, or when
    /// the keys lie so unevenly that most places lead to the same rows.
    async fn starts(&mut self, rows: u64, seed: u64) -> Result<Option<Vec<i128>>, ConnectorError> {
        let first = self.source.key.first().map(|&column| self.source.columns[column].family);
        if first != Some(Family::Integer) {
            return Ok(None);
        }
        let extremes = self.source.extremes().ok_or_else(|| self.no_key())?;
        let extremes = self.connection.rows(&self.what, &extremes).await?;
        let bounds = extremes.first().and_then(|row| Some((number(row, 0)?, number(row, 1)?)));
        let Some((least, greatest)) = bounds else { return Ok(None) };
        let positions = positions(least, greatest, SLICES.min(rows), seed);
        let starts = self.source.starts(&positions).ok_or_else(|| self.no_key())?;
        let starts = self.connection.rows(&self.what, &starts).await?;
        let Some(found) = starts.first() else { return Ok(None) };
        let mut starts: Vec<i128> = (0..positions.len()).filter_map(|place| number(found, place)).collect();
        starts.dedup();
        Ok((starts.len() * 2 >= positions.len()).then_some(starts))
    }

    /// An equal part of the sample from each start up to the next; what one has not, the following ones give.
    async fn slices(&mut self, starts: &[i128], rows: u64) -> Result<(), ConnectorError> {
        let mut missing = rows;
        for (place, &start) in starts.iter().enumerate() {
            let limit = missing.div_ceil((starts.len() - place) as u64);
            let poured = self.pour(Rows::Slice { start, end: starts.get(place + 1).copied(), limit }).await?;
            missing -= poured.rows;
            if !poured.is_wanted || missing == 0 {
                break;
            }
        }
        Ok(())
    }

    async fn pour(&mut self, rows: Rows) -> Result<Poured, ConnectorError> {
        let keyed = self.source.rows(&rows).ok_or_else(|| self.no_key())?;
        self.connection.is_busy = true;
        let poured = self.try_pour(&keyed.sql).await;
        self.connection.is_busy = poured.as_ref().is_ok_and(|poured| !poured.is_wanted);
        poured.map(|poured| Poured { key_at: keyed.key_at, ..poured }).map_err(|error| {
            self.failed = may_be_of_columns(&error).then_some(rows);
            failure(&self.what, &error)
        })
    }

    async fn try_pour(&mut self, sql: &str) -> Result<Poured, Error> {
        let mut rows = self.connection.conn().query_stream::<Row, _>(sql).await?;
        let mut poured = Poured { rows: 0, last: None, key_at: Vec::new(), is_wanted: true };
        while let Some(row) = rows.next().await {
            let row = row?;
            let batch = self.sink.batch();
            for (place, column) in self.source.columns.iter().enumerate() {
                let values = &mut batch.columns[place];
                match row.as_ref(place) {
                    Some(Value::Bytes(value)) => match column.cut(value) {
                        Some(kept) => values.push_cut(kept),
                        None if column.family == Family::Float => {
                            values.push_with(|into| write_float(value, into))
                        }
                        None => values.push(value),
                    },
                    _ => values.push_null(),
                }
            }
            poured.rows += 1;
            poured.last = Some(row);
            poured.is_wanted = self.sink.end_row().await;
            if !poured.is_wanted {
                break;
            }
        }
        Ok(poured)
    }

    fn no_key(&self) -> ConnectorError {
        container(&self.what, Reason::Changed, "its primary key is not what it was when it was listed")
    }
}

/// The key of a row.
pub(super) fn key(row: &Row, at: &[usize]) -> Option<RowKey> {
    let part = |&place: &usize| match row.as_ref(place)? {
        Value::Bytes(bytes) => String::from_utf8(bytes.clone()).ok(),
        _ => None,
    };
    at.iter().map(part).collect()
}

/// So many positions from the least to the greatest, in order, each at random in its own equal share.
fn positions(least: i128, greatest: i128, count: u64, seed: u64) -> Vec<i128> {
    let (count, span) = (i128::from(count), greatest - least + 1);
    let begin = |share: i128| least + span * share / count;
    let within = |share: i128| {
        let width = (begin(share + 1) - begin(share)).max(1);
        begin(share) + i128::from(mix(seed, share as u64)) % width
    };
    (0..count).map(within).collect()
}

/// SplitMix64: the same seed and place, the same number.
fn mix(seed: u64, place: u64) -> u64 {
    let mut mixed = seed.wrapping_add(place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_spread_ordered_and_the_same_for_a_seed() {
        for (least, greatest) in
            [(0, 63), (1, 1_000_000), (i128::from(i64::MIN), i128::from(u64::MAX)), (-5, 5), (7, 7)]
        {
            let places = positions(least, greatest, 64, 9);
            assert_eq!(places.len(), 64);
            assert!(places.is_sorted(), "{places:?}");
            assert!(places.iter().all(|place| (least..=greatest).contains(place)), "{places:?}");
            assert_eq!(places, positions(least, greatest, 64, 9));
        }
        assert_ne!(positions(1, 1_000_000, 64, 9), positions(1, 1_000_000, 64, 10));
    }
}
