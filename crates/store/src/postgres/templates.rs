//! Scan templates, and the firings of their schedules.
//!
//! Each firing starts one job, however many orchestrators see that it is due: the template's row is locked,
//! it must still be due at that very time, and the firing's own row must be new. All three are in the
//! transaction that submits the job, so a process that dies has fired or has not.

use super::pool::Call;
use super::rows::{all_of, get, only};
use super::transaction::{Tx, params};
use super::{Result, jobs, queries};
use crate::queries::statement;
use crate::types::*;

pub(super) const TEMPLATES: &str = statement(queries::TEMPLATES, "templates");
pub(super) const NOW: &str = statement(queries::TEMPLATES, "now");

pub(super) async fn all(tx: &mut Tx<'_>) -> Result<Vec<StoredTemplate>> {
    all_of(&tx.query(TEMPLATES, params![None::<String>]).await?)
}

pub(super) async fn due(tx: &mut Tx<'_>) -> Result<DueTemplates> {
    const DUE: &str = statement(queries::TEMPLATES, "due_templates");
    const NEXT: &str = statement(queries::TEMPLATES, "next_due");
    let rows = tx.query(NOW, Vec::new()).await?;
    let now_ms: i64 = get(only(&rows)?, 0)?;
    let [due, next] = tx.query_last([DUE, NEXT].map(|sql| Call { sql, params: params![now_ms] })).await?;
    Ok(DueTemplates { now_ms, templates: all_of(&due)?, next_ms: get(only(&next)?, 0)? })
}

pub(super) async fn fire(tx: &mut Tx<'_>, firing: &Firing) -> Result<bool> {
    const LOCK: &str = statement(queries::TEMPLATES, "lock_template");
    const INSERT: &str = statement(queries::TEMPLATES, "insert_firing");
    const NEXT: &str = statement(queries::TEMPLATES, "set_next_firing");
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
