//! Reading what was observed of tables.

use domesday_model::{DatasourceId, JobId, MasterJobId, ObjectKey, TableObservation};
use rusqlite::{Connection, Row, params};

use super::Result;
use crate::queries::statement;
use crate::types::*;
use crate::values::from_json;
use crate::values::staged::StagedTable;

pub(super) const FILE: &str = include_str!("queries/tables.sql");

pub(super) fn sources(c: &Connection, master: Option<MasterJobId>) -> Result<Vec<CatalogSource>> {
    const SOURCES: &str = statement(FILE, "catalog_sources");
    let mut statement = c.prepare_cached(SOURCES)?;
    let rows = statement.query_map([master.map(|master| master.0)], |row| {
        Ok(CatalogSource {
            datasource: DatasourceId(row.get(0)?),
            name: row.get(1)?,
            kind: row.get(2)?,
            job: JobId(row.get(3)?),
            master_job: MasterJobId(row.get(4)?),
            as_of_ms: row.get(5)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn page(
    c: &Connection,
    job: JobId,
    datasource: DatasourceId,
    after: Option<&TableCursor>,
    max: u32,
) -> Result<TablePage> {
    const TABLES: &str = statement(FILE, "table_observations");
    let max = max.max(1);
    let mut statement = c.prepare_cached(TABLES)?;
    let mut rows = statement.query(params![
        job.0,
        datasource.0,
        after.map(|after| &after.key.0),
        after.map(|after| &after.nested),
        after.map(|after| &after.part.0),
        max,
    ])?;
    let mut tables = Vec::new();
    while let Some(row) = rows.next()? {
        tables.push(observation(row)?);
    }
    Ok(TablePage::new(tables, max))
}

/// Columns as in the statement `table_observations`.
pub(super) fn observation(row: &Row<'_>) -> Result<TableObservation> {
    let shape: String = row.get(3)?;
    let staged = StagedTable {
        key: ObjectKey(row.get(0)?),
        nested: ObjectKey(row.get(1)?),
        part: ObjectKey(row.get(2)?),
        shape: from_json(&shape, "shape of a table")?,
        rows: row.get::<_, i64>(4)?.cast_unsigned(),
        is_sample: row.get(5)?,
        sketches: row.get(6)?,
    };
    staged.observation()
}
