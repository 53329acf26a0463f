//! Scan templates, and the firings of their schedules.
//!
//! Each firing starts one job, whoever sees that it is due: the template must still be due at that very time,
//! and the firing's own row must be new. Both are in the transaction that submits the job.

use domesday_model::{MasterJobId, ScanTemplate};
use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use super::{Result, jobs};
use crate::decide::configuring::{self, TEMPLATE};
use crate::queries::statement;
use crate::types::*;
use crate::values::to_json;

pub(super) const FILE: &str = queries_of!("templates");

pub(super) fn put(c: &Connection, template: &ScanTemplate, put: Put, next: Option<i64>) -> Result<()> {
    const ADD: &str = statement(FILE, "add_template");
    const REPLACE: &str = statement(FILE, "replace_template");
    let sql = match put {
        Put::New => ADD,
        Put::Replace => REPLACE,
    };
    let written = c.prepare_cached(sql)?.execute(params![template.name, to_json(template)?, next])?;
    configuring::check_put(put, written == 1, TEMPLATE, &template.name)
}

pub(super) fn remove(c: &Connection, name: &str) -> Result<()> {
    const REMOVE: &str = statement(FILE, "remove_template");
    const FIRINGS: &str = statement(FILE, "remove_firings");
    if c.prepare_cached(REMOVE)?.execute([name])? == 0 {
        return Err(configuring::missing(TEMPLATE, name));
    }
    c.prepare_cached(FIRINGS)?.execute([name])?;
    Ok(())
}

/// All templates, in the order of their names; only the one of this name, if there is a name.
pub(super) fn stored(c: &Connection, name: Option<&str>) -> Result<Vec<StoredTemplate>> {
    const TEMPLATES: &str = statement(FILE, "templates");
    read(c, TEMPLATES, [name])
}

fn read(c: &Connection, sql: &str, parameters: impl Params) -> Result<Vec<StoredTemplate>> {
    let mut statement = c.prepare_cached(sql)?;
    let rows = statement.query_map(parameters, |row| Ok(stored_row(row)))?;
    rows.map(|row| row?).collect()
}

/// Columns: configuration, next_firing_at, updated_at, the last firing's time and job.
fn stored_row(row: &Row<'_>) -> Result<StoredTemplate> {
    let configuration: String = row.get(0)?;
    let master = row.get::<_, Option<[u8; 16]>>(4)?.map(MasterJobId);
    Ok(StoredTemplate {
        template: configuring::template(&configuration)?,
        next_firing_ms: row.get(1)?,
        updated_at_ms: row.get(2)?,
        last_firing: row.get::<_, Option<i64>>(3)?.map(|at| (at, master)),
    })
}

pub(super) fn now(c: &Connection) -> Result<i64> {
    const NOW: &str = statement(FILE, "now");
    Ok(c.prepare_cached(NOW)?.query_row([], |row| row.get(0))?)
}

pub(super) fn due(c: &Connection) -> Result<DueTemplates> {
    const DUE: &str = statement(FILE, "due_templates");
    const NEXT: &str = statement(FILE, "next_due");
    let now_ms = now(c)?;
    Ok(DueTemplates {
        now_ms,
        templates: read(c, DUE, [now_ms])?,
        next_ms: c.prepare_cached(NEXT)?.query_row([now_ms], |row| row.get(0))?,
    })
}

pub(super) fn fire(c: &Connection, firing: &Firing) -> Result<bool> {
    const DUE_AT: &str = statement(FILE, "next_firing");
    const INSERT: &str = statement(FILE, "insert_firing");
    const NEXT: &str = statement(FILE, "set_next_firing");
    let next: Option<Option<i64>> =
        c.prepare_cached(DUE_AT)?.query_row([&firing.template], |row| row.get(0)).optional()?;
    if next.flatten() != Some(firing.firing_ms) {
        return Ok(false);
    }
    let master = firing.job.as_ref().map(|job| job.id.0);
    let inserted = c.prepare_cached(INSERT)?.execute(params![firing.template, firing.firing_ms, master])?;
    // A template that was changed to be due again at a time it has fired at goes on to the next.
    c.prepare_cached(NEXT)?.execute(params![firing.template, firing.next_ms])?;
    if inserted == 0 {
        return Ok(false);
    }
    if let Some(job) = &firing.job {
        jobs::submit(c, job)?;
    }
    Ok(true)
}
