//! Data sources that someone manages, and the id of the book's fingerprint key.
//!
//! A source's row is never deleted: findings point to it. Taking one out of use makes it one that nobody
//! manages, as those are that came with a job.

use domesday_model::{DatasourceId, DatasourceSpec, MasterJobId};
use tokio_postgres::Row;

use super::rows::{get, only, wide};
use super::transaction::{Tx, params};
use super::{Result, templates};
use crate::decide::configuring::{self, DATASOURCE, FINGERPRINT_KEY, SourceColumns};
use crate::queries::statement;
use crate::types::*;
use crate::values;

pub(super) const FILE: &str = queries_of!("datasources");

pub(super) const MANAGED: &str = statement(FILE, "managed_datasources");
pub(super) const SETTING: &str = statement(FILE, "setting");

pub(super) async fn put(tx: &mut Tx<'_>, source: &DatasourceSpec, put: Put) -> Result<()> {
    const ADD: &str = statement(FILE, "add_datasource");
    const REPLACE: &str = statement(FILE, "replace_datasource");
    let sql = match put {
        Put::New => ADD,
        Put::Replace => REPLACE,
    };
    // A new label or limit may make work for someone.
    tx.wakes_before_it_returns();
    let params = params![
        source.name.clone(),
        source.kind.clone(),
        source.node_group.clone(),
        source.configuration.to_string(),
        source.concurrency_limit.map(i64::from),
        source.worker_label.clone(),
        source.credential.clone(),
    ];
    let written = tx.change(sql, params).await?;
    configuring::check_put(put, written == 1, DATASOURCE, &source.name)
}

pub(super) async fn remove(tx: &mut Tx<'_>, name: &str) -> Result<()> {
    const LOCK: &str = statement(FILE, "lock_datasource");
    const OPEN: &str = statement(FILE, "open_configurations");
    const RELEASE: &str = statement(FILE, "release_datasource");
    // Whoever submits a job that reads it holds its row: once it is ours, the job is seen.
    let rows = tx.query(LOCK, params![name.to_owned()]).await?;
    if !rows.first().map_or(Ok(false), |row| get(row, 0))? {
        return Err(configuring::missing(DATASOURCE, name));
    }
    let open = tx.query(OPEN, Vec::new()).await?;
    let open = open.iter().map(|row| Ok((MasterJobId(wide(row, 0)?), values::configuration(get(row, 1)?)?)));
    let templates = templates::all(tx).await?;
    configuring::check_unused(name, open, templates.into_iter().map(|stored| Ok(stored.template)))?;
    tx.run(RELEASE, params![name.to_owned()]);
    Ok(())
}

/// Columns as in the statement `managed_datasources`.
pub(super) fn managed(row: &Row) -> Result<ManagedDatasource> {
    let columns = SourceColumns {
        name: get(row, 1)?,
        kind: get(row, 2)?,
        node_group: get(row, 3)?,
        configuration: get(row, 4)?,
        concurrency_limit: get(row, 5)?,
        worker_label: get(row, 6)?,
        credential: get(row, 7)?,
    };
    Ok(ManagedDatasource {
        id: DatasourceId(get(row, 0)?),
        spec: columns.spec()?,
        created_at_ms: get(row, 8)?,
        updated_at_ms: get(row, 9)?,
    })
}

pub(super) async fn set_fingerprint_key(tx: &mut Tx<'_>, id: &str, replace: bool) -> Result<String> {
    const ADD: &str = statement(FILE, "add_setting");
    const LOCK: &str = statement(FILE, "lock_setting");
    const CHANGE: &str = statement(FILE, "change_setting");
    const COUNT: &str = statement(FILE, "count_open_jobs");
    tx.run(ADD, params![FINGERPRINT_KEY, id.to_owned()]);
    let rows = tx.query(LOCK, params![FINGERPRINT_KEY]).await?;
    let known: String = get(only(&rows)?, 0)?;
    if known == id || !replace {
        return Ok(known);
    }
    let rows = tx.query(COUNT, Vec::new()).await?;
    configuring::check_key_unused(&known, get(only(&rows)?, 0)?)?;
    tx.run(CHANGE, params![FINGERPRINT_KEY, id.to_owned()]);
    Ok(id.to_owned())
}
