//! Where objects with findings came from: what is to be looked up, and what was found out.
//!
//! An object is put on its session's list by the transaction that makes its findings visible, and taken off by the
//! one that writes its origin, so a crash anywhere leaves it on the list or traced.

use domesday_model::{DatasourceId, EnumerationSessionId, JobId, ObjectKey, Origin, TaskType};
use rusqlite::{Connection, params};

use super::rows::Statements;
use super::{Result, queries, tasks};
use crate::decide::tasks::{FencedTask, NewTask};
use crate::queries::statement;
use crate::types::*;

/// Puts objects on the list, unless their origin is known.
pub(super) fn ask(c: &Connection, task: FencedTask, untraced: &[ObjectKey]) -> Result<()> {
    const INSERT: &str = statement(queries::ORIGINS, "insert_untraced");
    for key in untraced {
        c.change(INSERT, params![task.session.0, task.datasource.0, key.0])?;
    }
    Ok(())
}

/// Makes a task for each session of which only this is left.
pub(super) fn fan_out(c: &Connection, job: JobId, report: &mut FanOutReport) -> Result<()> {
    const SESSIONS: &str = statement(queries::ORIGINS, "sessions_to_trace");
    let sessions: Vec<(i64, i64)> = c.all(SESSIONS, params![job.0, TaskType::Tracing.as_str()])?;
    for &(session, datasource) in &sessions {
        let task = NewTask::tracing(job, DatasourceId(datasource), EnumerationSessionId(session));
        tasks::insert(c, &task)?;
    }
    report.tasks[TaskType::Tracing] += sessions.len() as u64;
    Ok(())
}

pub(super) fn untraced(c: &Connection, task: FencedTask, max: u32) -> Result<Vec<ObjectKey>> {
    const UNTRACED: &str = statement(queries::ORIGINS, "untraced");
    c.all(UNTRACED, params![task.session.0, max])
}

pub(super) fn save(c: &Connection, task: FencedTask, origins: &[(ObjectKey, Option<Origin>)]) -> Result<()> {
    const PUT: &str = statement(queries::ORIGINS, "put_origin");
    const DELETE: &str = statement(queries::ORIGINS, "delete_untraced");
    for (key, origin) in origins {
        if let Some(origin) = origin {
            let parameters = params![
                task.datasource.0,
                key.0,
                origin.path.as_ref().map(|path| &path.0),
                origin.commit,
                origin.author,
                origin.time_ms,
                origin.is_abandoned,
            ];
            c.change(PUT, parameters)?;
        }
        c.change(DELETE, params![task.session.0, key.0])?;
    }
    Ok(())
}

/// Nobody will look them up.
pub(super) fn give_up(c: &Connection, session: EnumerationSessionId) -> Result<()> {
    const GIVE_UP: &str = statement(queries::ORIGINS, "give_up_untraced");
    c.change(GIVE_UP, [session.0]).map(drop)
}
