//! Where objects with findings came from: what is to be looked up, and what was found out.
//!
//! An object is put on its session's list by the transaction that makes its findings visible, and taken off by the
//! one that writes its origin, so a crash anywhere leaves it on the list or traced.

use domesday_model::{DatasourceId, EnumerationSessionId, JobId, ObjectKey, Origin, TaskType};
use rusqlite::{Connection, params};

use super::{Result, tasks};
use crate::decide::tasks::{FencedTask, NewTask};
use crate::queries::statement;
use crate::types::*;

pub(super) const FILE: &str = queries_of!("origins");

/// Puts objects on the list, unless their origin is known.
pub(super) fn ask(c: &Connection, task: FencedTask, untraced: &[ObjectKey]) -> Result<()> {
    const INSERT: &str = statement(FILE, "insert_untraced");
    for key in untraced {
        c.prepare_cached(INSERT)?.execute(params![task.session.0, task.datasource.0, key.0])?;
    }
    Ok(())
}

/// Makes a task for each session of which only this is left.
pub(super) fn fan_out(c: &Connection, job: JobId, report: &mut FanOutReport) -> Result<()> {
    const SESSIONS: &str = statement(FILE, "sessions_to_trace");
    let sessions: Vec<(i64, i64)> = {
        let mut statement = c.prepare_cached(SESSIONS)?;
        let of_job = params![job.0, TaskType::Tracing.as_str()];
        let rows = statement.query_map(of_job, |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    for &(session, datasource) in &sessions {
        let task = NewTask::tracing(job, DatasourceId(datasource), EnumerationSessionId(session));
        tasks::insert(c, &task)?;
    }
    report.tasks[TaskType::Tracing] += sessions.len() as u64;
    Ok(())
}

pub(super) fn untraced(c: &Connection, task: FencedTask, max: u32) -> Result<Vec<ObjectKey>> {
    const UNTRACED: &str = statement(FILE, "untraced");
    let mut statement = c.prepare_cached(UNTRACED)?;
    let rows = statement.query_map(params![task.session.0, max], |row| Ok(ObjectKey(row.get(0)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn save(c: &Connection, task: FencedTask, origins: &[(ObjectKey, Option<Origin>)]) -> Result<()> {
    const PUT: &str = statement(FILE, "put_origin");
    const DELETE: &str = statement(FILE, "delete_untraced");
    for (key, origin) in origins {
        if let Some(origin) = origin {
            c.prepare_cached(PUT)?.execute(params![
                task.datasource.0,
                key.0,
                origin.path.as_ref().map(|path| &path.0),
                origin.commit,
                origin.author,
                origin.time_ms,
                origin.is_abandoned,
            ])?;
        }
        c.prepare_cached(DELETE)?.execute(params![task.session.0, key.0])?;
    }
    Ok(())
}

/// Nobody will look them up.
pub(super) fn give_up(c: &Connection, session: EnumerationSessionId) -> Result<()> {
    const GIVE_UP: &str = statement(FILE, "give_up_untraced");
    c.prepare_cached(GIVE_UP)?.execute([session.0])?;
    Ok(())
}

/// Five columns from this one on: path, commit_id, author, time_ms, is_abandoned.
pub(super) fn origin_from(row: &rusqlite::Row<'_>, first: usize) -> Result<Option<Origin>> {
    let Some(commit) = row.get(first + 1)? else { return Ok(None) };
    Ok(Some(Origin {
        path: row.get::<_, Option<Vec<u8>>>(first)?.map(ObjectKey),
        commit,
        author: row.get(first + 2)?,
        time_ms: row.get(first + 3)?,
        is_abandoned: row.get(first + 4)?,
    }))
}
