//! Where objects with findings came from: what is to be looked up, and what was found out.
//!
//! An object is put on its session's list by the transaction that makes its findings visible, and taken off by the
//! one that writes its origin, so a crash anywhere leaves it on the list or traced.

use std::collections::BTreeMap;

use domesday_model::{DatasourceId, EnumerationSessionId, JobId, ObjectKey, Origin, TaskId, TaskType};
use tokio_postgres::Row;

use super::pool::Call;
use super::rows::{all_of, column, get, text};
use super::transaction::{Tx, params};
use super::{Result, queries, tasks};
use crate::decide::tasks::NewTask;
use crate::queries::statement;
use crate::types::*;

/// Queues that objects are put on the lists of these tasks' sessions, unless their origin is known.
pub(super) fn ask<'a>(tx: &mut Tx<'_>, untraced: impl IntoIterator<Item = (TaskId, &'a ObjectKey)>) {
    const INSERT: &str = statement(queries::ORIGINS, "insert_untraced");
    let (tasks, keys): (Vec<_>, Vec<_>) =
        untraced.into_iter().map(|(task, key)| (task.0, key.0.clone())).unzip();
    if !keys.is_empty() {
        tx.run(INSERT, params![tasks, keys]);
    }
}

/// The sessions of which only this is left.
pub(super) fn sessions_call(job: JobId) -> Call {
    const SESSIONS: &str = statement(queries::ORIGINS, "sessions_to_trace");
    Call { sql: SESSIONS, params: params![job.0, TaskType::Tracing.as_str()] }
}

/// A task for each of those.
pub(super) fn fan_out(
    tx: &mut Tx<'_>,
    job: JobId,
    sessions: &[Row],
    report: &mut FanOutReport,
) -> Result<()> {
    let task =
        |row: &Row| Ok(NewTask::tracing(job, DatasourceId(get(row, 1)?), EnumerationSessionId(get(row, 0)?)));
    let traced = sessions.iter().map(task).collect::<Result<Vec<_>>>()?;
    report.tasks[TaskType::Tracing] += traced.len() as u64;
    tasks::insert(tx, &traced)
}

pub(super) async fn untraced(tx: &mut Tx<'_>, claim: &Claim, max: u32) -> Result<Vec<ObjectKey>> {
    const UNTRACED: &str = statement(queries::ORIGINS, "untraced");
    let calls =
        [tasks::fence_call(tx, claim), Call { sql: UNTRACED, params: params![claim.task.0, i64::from(max)] }];
    let [fence, rows] = tx.query_last(calls).await?;
    tasks::fenced(claim, &fence)?;
    all_of(&rows)
}

pub(super) async fn save(
    tx: &mut Tx<'_>,
    claim: &Claim,
    origins: &[(ObjectKey, Option<Origin>)],
) -> Result<()> {
    const PUT: &str = statement(queries::ORIGINS, "put_origins");
    const DELETE: &str = statement(queries::ORIGINS, "delete_untraced");
    let task = tasks::fence(tx, claim).await?;
    // Each once: of several the last is right.
    let known: BTreeMap<_, _> =
        origins.iter().filter_map(|(key, origin)| origin.as_ref().map(|origin| (key, origin))).collect();
    let known: Vec<_> = known.into_iter().collect();
    if !known.is_empty() {
        tx.run(
            PUT,
            params![
                task.datasource.0,
                column(&known, |(key, _)| key.0.clone()),
                column(&known, |(_, origin)| origin.path.as_ref().map(|path| path.0.clone())),
                column(&known, |(_, origin)| text(&origin.commit)),
                column(&known, |(_, origin)| text(&origin.author)),
                column(&known, |(_, origin)| origin.time_ms),
                column(&known, |(_, origin)| origin.is_abandoned),
            ],
        );
    }
    tx.run(DELETE, params![task.session.0, column(origins, |(key, _)| key.0.clone())]);
    Ok(())
}

/// Nobody will look them up.
pub(super) fn give_up(tx: &mut Tx<'_>, session: EnumerationSessionId) {
    const GIVE_UP: &str = statement(queries::ORIGINS, "give_up_untraced");
    tx.run(GIVE_UP, params![session.0]);
}
