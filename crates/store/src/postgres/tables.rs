//! Reading what was observed of tables.

use domesday_model::{DatasourceId, JobId, MasterJobId, ObjectKey, TableObservation};
use tokio_postgres::Row;

use super::Result;
use super::pool::Call;
use super::rows::{get, unsigned, wide};
use super::transaction::params;
use crate::queries::statement;
use crate::types::*;
use crate::values::from_json;
use crate::values::staged::StagedTable;

pub(super) const FILE: &str = include_str!("queries/tables.sql");

pub(super) const SOURCES: &str = statement(FILE, "catalog_sources");

/// Columns as in the statement `catalog_sources`.
pub(super) fn source(row: &Row) -> Result<CatalogSource> {
    Ok(CatalogSource {
        datasource: DatasourceId(get(row, 0)?),
        name: get(row, 1)?,
        kind: get(row, 2)?,
        job: JobId(get(row, 3)?),
        master_job: MasterJobId(wide(row, 4)?),
        as_of_ms: get(row, 5)?,
    })
}

pub(super) fn page(source: &CatalogSource, after: Option<TableCursor>, max: u32) -> Call {
    const TABLES: &str = statement(FILE, "table_observations");
    let (key, nested, part) = match after {
        Some(TableCursor { key, nested, part }) => (Some(key.0), Some(nested), Some(part.0)),
        None => (None, None, None),
    };
    let max = i64::from(max.max(1));
    Call { sql: TABLES, params: params![source.job.0, source.datasource.0, key, nested, part, max] }
}

pub(super) fn observations(rows: &[Row], max: u32) -> Result<TablePage> {
    let tables = rows.iter().map(observation).collect::<Result<Vec<_>>>()?;
    Ok(TablePage::new(tables, max.max(1)))
}

/// Columns as in the statement `table_observations`.
pub(super) fn observation(row: &Row) -> Result<TableObservation> {
    let staged = StagedTable {
        key: ObjectKey(get(row, 0)?),
        nested: ObjectKey(get(row, 1)?),
        part: ObjectKey(get(row, 2)?),
        shape: from_json(get(row, 3)?, "shape of a table")?,
        rows: unsigned(row, 4)?,
        is_sample: get(row, 5)?,
        sketches: get(row, 6)?,
    };
    staged.observation()
}
