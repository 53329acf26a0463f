//! Scan templates, and the firings of their schedules.
//!
//! Each firing starts one job, however many orchestrators see that it is due: the template's row is locked,
//! it must still be due at that very time, and the firing's own row must be new. All three are in the
//! transaction that submits the job, so a process that dies has fired or has not.

use domesday_model::{MasterJobId, ScanTemplate};
use tokio_postgres::Row;

use super::pool::Call;
use super::rows::{get, only};
use super::transaction::{Tx, params};
use super::{Result, jobs};
use crate::decide::configuring::{self, TEMPLATE};
use crate::queries::statement;
use crate::types::*;
use crate::values::{damaged, to_json};

pub(super) const FILE: &str = queries_of!("templates");

pub(super) const TEMPLATES: &str = statement(FILE, "templates");
pub(super) const NOW: &str = statement(FILE, "now");

pub(super) async fn put(
    tx: &mut Tx<'_>,
    template: &ScanTemplate,
    put: Put,
    next_firing_ms: Option<i64>,
) -> Result<()> {
    const ADD: &str = statement(FILE, "add_template");
    const REPLACE: &str = statement(FILE, "replace_template");
    let sql = match put {
        Put::New => ADD,
        Put::Replace => REPLACE,
    };
    // Whoever waits for the next firing looks again.
    tx.wakes_before_it_returns();
    let written = tx.change(sql, params![template.name.clone(), to_json(template)?, next_firing_ms]).await?;
    configuring::check_put(put, written == 1, TEMPLATE, &template.name)
}

pub(super) async fn remove(tx: &mut Tx<'_>, name: &str) -> Result<()> {
    const REMOVE: &str = statement(FILE, "remove_template");
    const FIRINGS: &str = statement(FILE, "remove_firings");
    if tx.change(REMOVE, params![name.to_owned()]).await? == 0 {
        return Err(configuring::missing(TEMPLATE, name));
    }
    tx.run(FIRINGS, params![name.to_owned()]);
    Ok(())
}

pub(super) async fn all(tx: &mut Tx<'_>) -> Result<Vec<StoredTemplate>> {
    let rows = tx.query(TEMPLATES, params![None::<String>]).await?;
    rows.iter().map(stored).collect()
}

/// Columns: configuration, next_firing_at, updated_at, the last firing's time and job.
pub(super) fn stored(row: &Row) -> Result<StoredTemplate> {
    let master: Option<Vec<u8>> = get(row, 4)?;
    let master = master.map(|id| id.try_into().map(MasterJobId)).transpose().map_err(|_| damaged("id"))?;
    Ok(StoredTemplate {
        template: configuring::template(get(row, 0)?)?,
        next_firing_ms: get(row, 1)?,
        updated_at_ms: get(row, 2)?,
        last_firing: get::<Option<i64>>(row, 3)?.map(|at| (at, master)),
    })
}

pub(super) async fn due(tx: &mut Tx<'_>) -> Result<DueTemplates> {
    const DUE: &str = statement(FILE, "due_templates");
    const NEXT: &str = statement(FILE, "next_due");
    let rows = tx.query(NOW, Vec::new()).await?;
    let now_ms: i64 = get(only(&rows)?, 0)?;
    let [due, next] = tx.query_last([DUE, NEXT].map(|sql| Call { sql, params: params![now_ms] })).await?;
    Ok(DueTemplates {
        now_ms,
        templates: due.iter().map(stored).collect::<Result<_>>()?,
        next_ms: get(only(&next)?, 0)?,
    })
}

pub(super) async fn fire(tx: &mut Tx<'_>, firing: &Firing) -> Result<bool> {
    const LOCK: &str = statement(FILE, "lock_template");
    const INSERT: &str = statement(FILE, "insert_firing");
    const NEXT: &str = statement(FILE, "set_next_firing");
    let rows = tx.query(LOCK, params![firing.template.clone()]).await?;
    let next: Option<i64> = rows.first().map(|row| get(row, 0)).transpose()?.flatten();
    if next != Some(firing.firing_ms) {
        return Ok(false);
    }
    let master = firing.job.as_ref().map(|job| job.id.0.to_vec());
    let inserted = tx.change(INSERT, params![firing.template.clone(), firing.firing_ms, master]).await?;
    // A template that was changed to be due again at a time it has fired at goes on to the next.
    tx.run(NEXT, params![firing.template.clone(), firing.next_ms]);
    if inserted == 0 {
        return Ok(false);
    }
    if let Some(job) = &firing.job {
        jobs::submit(tx, job).await?;
    }
    Ok(true)
}
