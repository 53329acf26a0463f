//! Scan templates, and the firings of their schedules.
//!
//! Each firing starts one job, whoever sees that it is due: the template must still be due at that very time,
//! and the firing's own row must be new. Both are in the transaction that submits the job.

use rusqlite::{Connection, params};

use super::rows::Statements;
use super::{Result, jobs, queries};
use crate::queries::statement;
use crate::types::*;

pub(super) const TEMPLATES: &str = statement(queries::TEMPLATES, "templates");

/// All templates, in the order of their names.
pub(super) fn all(c: &Connection) -> Result<Vec<StoredTemplate>> {
    c.all(TEMPLATES, [None::<String>])
}

pub(super) fn now(c: &Connection) -> Result<i64> {
    const NOW: &str = statement(queries::TEMPLATES, "now");
    c.only(NOW, [])
}

pub(super) fn due(c: &Connection) -> Result<DueTemplates> {
    const DUE: &str = statement(queries::TEMPLATES, "due_templates");
    const NEXT: &str = statement(queries::TEMPLATES, "next_due");
    let now_ms = now(c)?;
    Ok(DueTemplates { now_ms, templates: c.all(DUE, [now_ms])?, next_ms: c.only(NEXT, [now_ms])? })
}

pub(super) fn fire(c: &Connection, firing: &Firing) -> Result<bool> {
    const DUE_AT: &str = statement(queries::TEMPLATES, "next_firing");
    const INSERT: &str = statement(queries::TEMPLATES, "insert_firing");
    const NEXT: &str = statement(queries::TEMPLATES, "set_next_firing");
    if c.one::<Option<i64>>(DUE_AT, [&firing.template])?.flatten() != Some(firing.firing_ms) {
        return Ok(false);
    }
    let master = firing.job.as_ref().map(|job| job.id.0);
    let inserted = c.change(INSERT, params![firing.template, firing.firing_ms, master])?;
    // A template that was changed to be due again at a time it has fired at goes on to the next.
    c.change(NEXT, params![firing.template, firing.next_ms])?;
    if inserted == 0 {
        return Ok(false);
    }
    if let Some(job) = &firing.job {
        jobs::submit(c, job)?;
    }
    Ok(true)
}
