//! [`AdminStore`]: how the book is set up and cleaned.
//!
//! A data source's row is never deleted: findings point to it. Taking one out of use makes it one that nobody
//! manages, as those are that came with a job.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domesday_model::{DatasourceSpec, MasterJobId, ScanTemplate};
use rusqlite::{Connection, params};

use super::rows::Statements;
use super::{Result, SqliteStore, prune, queries, templates};
use crate::decide::configuring::{self, DATASOURCE, FINGERPRINT_KEY, TEMPLATE};
use crate::queries::statement;
use crate::roles::AdminStore;
use crate::rows::Columns;
use crate::types::*;
use crate::values::{self, to_json};

#[async_trait]
impl AdminStore for SqliteStore {
    async fn put_datasource(&self, source: &DatasourceSpec, put: Put) -> Result<()> {
        const ADD: &str = statement(queries::DATASOURCES, "add_datasource");
        const REPLACE: &str = statement(queries::DATASOURCES, "replace_datasource");
        let sql = match put {
            Put::New => ADD,
            Put::Replace => REPLACE,
        };
        let source = source.clone();
        self.write("put_datasource", move |c| {
            let parameters = params![
                source.name,
                source.kind,
                source.node_group,
                source.configuration.to_string(),
                source.concurrency_limit,
                source.worker_label,
                source.credential,
            ];
            let written = c.change(sql, parameters)? == 1;
            configuring::check_put(put, written, DATASOURCE, &source.name)
        })
        .await
    }

    async fn remove_datasource(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.write("remove_datasource", move |c| remove_datasource(c, &name)).await
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
        let (name, text) = (template.name.clone(), to_json(template)?);
        self.write("put_template", move |c| {
            let written = c.change(sql, params![name, text, next_firing_ms])? == 1;
            configuring::check_put(put, written, TEMPLATE, &name)
        })
        .await
    }

    async fn remove_template(&self, name: &str) -> Result<()> {
        const REMOVE: &str = statement(queries::TEMPLATES, "remove_template");
        const FIRINGS: &str = statement(queries::TEMPLATES, "remove_firings");
        let name = name.to_owned();
        self.write("remove_template", move |c| {
            if c.change(REMOVE, [&name])? == 0 {
                return Err(configuring::missing(TEMPLATE, &name));
            }
            c.change(FIRINGS, [&name]).map(drop)
        })
        .await
    }

    async fn set_fingerprint_key(&self, id: &str, replace: bool) -> Result<String> {
        let id = id.to_owned();
        self.write("set_fingerprint_key", move |c| set_fingerprint_key(c, id, replace)).await
    }

    async fn prune(&self, older_than: Duration, max: u32) -> Result<PruneReport> {
        let kept = Arc::clone(&self.kept);
        self.write("prune", move |c| {
            kept.clear();
            prune::prune(c, older_than, max)
        })
        .await
    }
}

fn remove_datasource(c: &Connection, name: &str) -> Result<()> {
    const IS_MANAGED: &str = statement(queries::DATASOURCES, "is_managed");
    const OPEN: &str = statement(queries::DATASOURCES, "open_configurations");
    const RELEASE: &str = statement(queries::DATASOURCES, "release_datasource");
    if !c.only::<bool>(IS_MANAGED, [name])? {
        return Err(configuring::missing(DATASOURCE, name));
    }
    let open =
        c.rows(OPEN, [], |row| Ok((MasterJobId(row.wide(0)?), row.parsed(1, values::configuration)?)))?;
    configuring::check_unused(name, &open, &templates::all(c)?)?;
    c.change(RELEASE, [name]).map(drop)
}

fn set_fingerprint_key(c: &Connection, id: String, replace: bool) -> Result<String> {
    const ADD: &str = statement(queries::DATASOURCES, "add_setting");
    const SETTING: &str = statement(queries::DATASOURCES, "setting");
    const CHANGE: &str = statement(queries::DATASOURCES, "change_setting");
    const COUNT: &str = statement(queries::DATASOURCES, "count_open_jobs");
    c.change(ADD, [FINGERPRINT_KEY, &id])?;
    let known: String = c.only(SETTING, [FINGERPRINT_KEY])?;
    if known == id || !replace {
        return Ok(known);
    }
    configuring::check_key_unused(&known, c.only(COUNT, [])?)?;
    c.change(CHANGE, [FINGERPRINT_KEY, &id])?;
    Ok(id)
}
