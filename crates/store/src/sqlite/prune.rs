//! Removing what is old, a bounded number of rows a step.
//!
//! Crash argument: a step is one transaction. The first one of a master job gives it an id that nobody knows,
//! so that no reader sees half of it; the rest is found by that mark, whoever comes next. Within a job,
//! rows go before what they are found by: records before their units, units before tasks, all before the job.
//! Findings stay: they live across jobs.

use std::time::Duration;

use rusqlite::{Connection, ToSql, params};

use super::rows::Statements;
use super::{Result, queries, templates};
use crate::decide::jobs::PRUNED_JOBS_MAX;
use crate::queries::statement;
use crate::types::*;
use crate::values::{millis, to_json};

/// Rows that a step may still remove.
struct Budget<'c> {
    c: &'c Connection,
    left: i64,
    max: i64,
}

impl Budget<'_> {
    /// Removes what `sql` finds, as far as the budget goes; whether that was all of it.
    fn delete(&mut self, sql: &'static str, of: &dyn ToSql) -> Result<bool> {
        if self.left > 0 {
            self.left -= self.c.change(sql, params![of, self.left])?.cast_signed();
        }
        Ok(self.left > 0)
    }

    fn report(&self, jobs: u64, done: bool) -> PruneReport {
        PruneReport { jobs, rows: (self.max - self.left).cast_unsigned(), done }
    }
}

pub(super) fn prune(c: &Connection, older_than: Duration, max: u32) -> Result<PruneReport> {
    const PRUNED: &str = statement(queries::PRUNE, "pruned_master");
    const OLD: [&str; 4] = [
        statement(queries::PRUNE, "prune_old_events"),
        statement(queries::PRUNE, "prune_firings"),
        statement(queries::PRUNE, "prune_workers"),
        statement(queries::PRUNE, "prune_orchestrators"),
    ];
    let cutoff = templates::now(c)?.saturating_sub(millis(older_than));
    let max = i64::from(max.max(1));
    let mut budget = Budget { c, left: max, max };
    let mut jobs = 0;
    for _ in 0..PRUNED_JOBS_MAX {
        let master = match c.one(PRUNED, [])? {
            Some(master) => Some(master),
            None => take_up(c, cutoff)?,
        };
        let Some(master) = master else {
            for sql in OLD {
                if !budget.delete(sql, &cutoff)? {
                    return Ok(budget.report(jobs, false));
                }
            }
            return Ok(budget.report(jobs, true));
        };
        if !prune_master(&mut budget, master)? {
            return Ok(budget.report(jobs, false));
        }
        jobs += 1;
    }
    Ok(budget.report(jobs, false))
}

/// Hides the next master job that may go, under the id that it has from now on.
fn take_up(c: &Connection, cutoff: i64) -> Result<Option<[u8; 16]>> {
    const NEXT: &str = statement(queries::PRUNE, "prunable_master");
    const INSERT: &str = statement(queries::PRUNE, "insert_pruned_master");
    const MOVE: &str = statement(queries::PRUNE, "move_jobs");
    const DELETE: &str = statement(queries::PRUNE, "delete_master");
    let Some(old) = c.one::<[u8; 16]>(NEXT, [cutoff])? else { return Ok(None) };
    let new: [u8; 16] = c.only(INSERT, [old])?;
    c.change(MOVE, [old, new])?;
    c.change(DELETE, [old])?;
    Ok(Some(new))
}

/// Removes a hidden master job; whether all of it is gone.
fn prune_master(budget: &mut Budget<'_>, master: [u8; 16]) -> Result<bool> {
    const JOBS: &str = statement(queries::PRUNE, "pruned_jobs");
    const JOB: &str = statement(queries::PRUNE, "prune_job");
    const DELETE: &str = statement(queries::PRUNE, "delete_master");
    let c = budget.c;
    for job in c.all(JOBS, params![master, budget.left])? {
        if !prune_job(budget, job)? {
            return Ok(false);
        }
        budget.left -= c.change(JOB, [job])?.cast_signed();
    }
    // A job may have taken the last of it.
    if budget.left == 0 {
        return Ok(false);
    }
    budget.left -= c.change(DELETE, [master])?.cast_signed();
    Ok(true)
}

/// Removes all that a job has; whether nothing is left of it.
fn prune_job(budget: &mut Budget<'_>, job: i64) -> Result<bool> {
    const OCCURRENCES: &str = statement(queries::PRUNE, "prune_occurrences");
    const OBJECTS: &str = statement(queries::PRUNE, "prune_object_scans");
    const TABLES: &str = statement(queries::PRUNE, "prune_table_observations");
    const UNITS: &str = statement(queries::PRUNE, "units_to_prune");
    const OF_UNITS: [&str; 3] = [
        statement(queries::PRUNE, "prune_records"),
        statement(queries::PRUNE, "prune_skips"),
        statement(queries::PRUNE, "prune_units"),
    ];
    const SESSIONS: [&str; 5] = [
        statement(queries::PRUNE, "prune_links"),
        statement(queries::PRUNE, "prune_untraced"),
        statement(queries::PRUNE, "prune_batches"),
        statement(queries::PRUNE, "prune_checkpoints"),
        statement(queries::PRUNE, "prune_sessions"),
    ];
    const TASKS: &str = statement(queries::PRUNE, "tasks_to_prune");
    const OF_TASKS: [&str; 3] = [
        statement(queries::PRUNE, "prune_staged_results"),
        statement(queries::PRUNE, "prune_object_checkpoints"),
        statement(queries::PRUNE, "prune_tasks"),
    ];
    for sql in [OCCURRENCES, OBJECTS, TABLES] {
        if !budget.delete(sql, &job)? {
            return Ok(false);
        }
    }
    if !prune_parents(budget, job, UNITS, &OF_UNITS)? {
        return Ok(false);
    }
    for sql in SESSIONS {
        if !budget.delete(sql, &job)? {
            return Ok(false);
        }
    }
    prune_parents(budget, job, TASKS, &OF_TASKS)
}

/// Rows that hang on units or tasks, and then those; as many of them as the budget may reach.
fn prune_parents(
    budget: &mut Budget<'_>,
    job: i64,
    parents: &'static str,
    steps: &[&'static str],
) -> Result<bool> {
    let ids = to_json(&budget.c.all::<i64>(parents, [job, budget.left])?)?;
    for sql in steps {
        if !budget.delete(sql, &ids)? {
            return Ok(false);
        }
    }
    Ok(true)
}
