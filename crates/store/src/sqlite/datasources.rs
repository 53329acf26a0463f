//! Data sources that someone manages, and the id of the book's fingerprint key.
//!
//! A source's row is never deleted: findings point to it. Taking one out of use makes it one that nobody
//! manages, as those are that came with a job.

use domesday_model::{DatasourceId, DatasourceSpec, MasterJobId};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{Result, templates};
use crate::decide::configuring::{self, DATASOURCE, FINGERPRINT_KEY, SourceColumns};
use crate::queries::statement;
use crate::types::*;
use crate::values;

pub(super) const FILE: &str = queries_of!("datasources");

pub(super) fn put(c: &Connection, source: &DatasourceSpec, put: Put) -> Result<()> {
    const ADD: &str = statement(FILE, "add_datasource");
    const REPLACE: &str = statement(FILE, "replace_datasource");
    let sql = match put {
        Put::New => ADD,
        Put::Replace => REPLACE,
    };
    let written = c.prepare_cached(sql)?.execute(params![
        source.name,
        source.kind,
        source.node_group,
        source.configuration.to_string(),
        source.concurrency_limit,
        source.worker_label,
        source.credential,
    ])?;
    configuring::check_put(put, written == 1, DATASOURCE, &source.name)
}

/// Those that someone added; only the one of this name, if there is a name.
pub(super) fn managed(c: &Connection, name: Option<&str>) -> Result<Vec<ManagedDatasource>> {
    const MANAGED: &str = statement(FILE, "managed_datasources");
    let mut statement = c.prepare_cached(MANAGED)?;
    let rows = statement.query_map([name], |row| Ok(managed_row(row)))?;
    rows.map(|row| row?).collect()
}

/// Columns as in the statement `managed_datasources`.
fn managed_row(row: &Row<'_>) -> Result<ManagedDatasource> {
    let columns = SourceColumns {
        name: row.get(1)?,
        kind: row.get(2)?,
        node_group: row.get(3)?,
        configuration: row.get(4)?,
        concurrency_limit: row.get(5)?,
        worker_label: row.get(6)?,
        credential: row.get(7)?,
    };
    Ok(ManagedDatasource {
        id: DatasourceId(row.get(0)?),
        spec: columns.spec()?,
        created_at_ms: row.get(8)?,
        updated_at_ms: row.get(9)?,
    })
}

pub(super) fn remove(c: &Connection, name: &str) -> Result<()> {
    const IS_MANAGED: &str = statement(FILE, "is_managed");
    const OPEN: &str = statement(FILE, "open_configurations");
    const RELEASE: &str = statement(FILE, "release_datasource");
    if !c.prepare_cached(IS_MANAGED)?.query_row([name], |row| row.get(0))? {
        return Err(configuring::missing(DATASOURCE, name));
    }
    let open: Vec<([u8; 16], String)> = {
        let mut statement = c.prepare_cached(OPEN)?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    let open =
        open.into_iter().map(|(master, text)| Ok((MasterJobId(master), values::configuration(&text)?)));
    let templates = templates::stored(c, None)?;
    configuring::check_unused(name, open, templates.into_iter().map(|stored| Ok(stored.template)))?;
    c.prepare_cached(RELEASE)?.execute([name])?;
    Ok(())
}

pub(super) fn fingerprint_key(c: &Connection) -> Result<Option<String>> {
    const SETTING: &str = statement(FILE, "setting");
    Ok(c.prepare_cached(SETTING)?.query_row([FINGERPRINT_KEY], |row| row.get(0)).optional()?)
}

pub(super) fn set_fingerprint_key(c: &Connection, id: &str, replace: bool) -> Result<String> {
    const ADD: &str = statement(FILE, "add_setting");
    const CHANGE: &str = statement(FILE, "change_setting");
    const COUNT: &str = statement(FILE, "count_open_jobs");
    c.prepare_cached(ADD)?.execute([FINGERPRINT_KEY, id])?;
    let known = fingerprint_key(c)?.ok_or_else(|| values::damaged("fingerprint key"))?;
    if known == id || !replace {
        return Ok(known);
    }
    configuring::check_key_unused(&known, c.prepare_cached(COUNT)?.query_row([], |row| row.get(0))?)?;
    c.prepare_cached(CHANGE)?.execute([FINGERPRINT_KEY, id])?;
    Ok(id.to_owned())
}
