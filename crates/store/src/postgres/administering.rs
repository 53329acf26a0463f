//! [`AdminStore`]: how the book is set up and cleaned.
//!
//! A data source's row is never deleted: findings point to it. Taking one out of use makes it one that nobody
//! manages, as those are that came with a job.

use std::time::Duration;

use async_trait::async_trait;
use domesday_model::{DatasourceSpec, MasterJobId, ScanTemplate};

use super::rows::{get, only};
use super::transaction::{Tx, params, transact};
use super::{PostgresStore, Result, prune, queries, templates};
use crate::decide::configuring::{self, DATASOURCE, FINGERPRINT_KEY, TEMPLATE};
use crate::queries::statement;
use crate::roles::AdminStore;
use crate::rows::Columns;
use crate::types::*;
use crate::values::{self, to_json};

#[async_trait]
impl AdminStore for PostgresStore {
    async fn put_datasource(&self, source: &DatasourceSpec, put: Put) -> Result<()> {
        const ADD: &str = statement(queries::DATASOURCES, "add_datasource");
        const REPLACE: &str = statement(queries::DATASOURCES, "replace_datasource");
        let sql = match put {
            Put::New => ADD,
            Put::Replace => REPLACE,
        };
        transact!(self.write("put_datasource"), |tx| async {
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
            let written = tx.change(sql, params).await? == 1;
            configuring::check_put(put, written, DATASOURCE, &source.name)
        })
    }

    async fn remove_datasource(&self, name: &str) -> Result<()> {
        transact!(self.write("remove_datasource"), |tx| remove_datasource(&mut tx, name))
    }

    async fn put_template(
        &self,
        template: &ScanTemplate,
        put: Put,
        next_firing_ms: Option<i64>,
    ) -> Result<()> {
        const ADD: &str = statement(queries::TEMPLATES, "add_template");
        const REPLACE: &str = statement(queries::TEMPLATES, "replace_template");
        let sql = match put {
            Put::New => ADD,
            Put::Replace => REPLACE,
        };
        let (name, text) = (&template.name, to_json(template)?);
        transact!(self.write("put_template"), |tx| async {
            // Whoever waits for the next firing looks again.
            tx.wakes_before_it_returns();
            let written = tx.change(sql, params![name.clone(), text.clone(), next_firing_ms]).await? == 1;
            configuring::check_put(put, written, TEMPLATE, name)
        })
    }

    async fn remove_template(&self, name: &str) -> Result<()> {
        const REMOVE: &str = statement(queries::TEMPLATES, "remove_template");
        const FIRINGS: &str = statement(queries::TEMPLATES, "remove_firings");
        transact!(self.write("remove_template"), |tx| async {
            if tx.change(REMOVE, params![name.to_owned()]).await? == 0 {
                return Err(configuring::missing(TEMPLATE, name));
            }
            tx.run(FIRINGS, params![name.to_owned()]);
            Ok(())
        })
    }

    async fn set_fingerprint_key(&self, id: &str, replace: bool) -> Result<String> {
        transact!(self.write("set_fingerprint_key"), |tx| set_fingerprint_key(&mut tx, id, replace))
    }

    async fn prune(&self, older_than: Duration, max: u32) -> Result<PruneReport> {
        transact!(self.write("prune"), |tx| prune::prune(&mut tx, older_than, max))
    }
}

async fn remove_datasource(tx: &mut Tx<'_>, name: &str) -> Result<()> {
    const LOCK: &str = statement(queries::DATASOURCES, "lock_datasource");
    const OPEN: &str = statement(queries::DATASOURCES, "open_configurations");
    const RELEASE: &str = statement(queries::DATASOURCES, "release_datasource");
    // Whoever submits a job that reads it holds its row: once it is ours, the job is seen.
    let rows = tx.query(LOCK, params![name.to_owned()]).await?;
    if !rows.first().map_or(Ok(false), |row| get(row, 0))? {
        return Err(configuring::missing(DATASOURCE, name));
    }
    let open = tx.query(OPEN, Vec::new()).await?;
    let open = open.iter().map(|row| Ok((MasterJobId(row.wide(0)?), row.parsed(1, values::configuration)?)));
    configuring::check_unused(name, &open.collect::<Result<Vec<_>>>()?, &templates::all(tx).await?)?;
    tx.run(RELEASE, params![name.to_owned()]);
    Ok(())
}

async fn set_fingerprint_key(tx: &mut Tx<'_>, id: &str, replace: bool) -> Result<String> {
    const ADD: &str = statement(queries::DATASOURCES, "add_setting");
    const LOCK: &str = statement(queries::DATASOURCES, "lock_setting");
    const CHANGE: &str = statement(queries::DATASOURCES, "change_setting");
    const COUNT: &str = statement(queries::DATASOURCES, "count_open_jobs");
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
