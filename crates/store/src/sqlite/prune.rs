//! Removing what is old, a bounded number of rows a step.
//!
//! Crash argument: a step is one transaction. The first one of a master job gives it an id that nobody knows,
//! so that no reader sees half of it; the rest is found by that mark, whoever comes next. Within a job,
//! rows go before what they are found by: records before their units, units before tasks, all before the job.
//! Findings stay: they live across jobs.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, ToSql, params};

use super::{Result, templates};
use crate::decide::jobs::PRUNED_JOBS_MAX;
use crate::queries::statement;
use crate::types::*;
use crate::values::{millis, to_json};

pub(super) const FILE: &str = queries_of!("prune");

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
            self.left -= self.c.prepare_cached(sql)?.execute(params![of, self.left])? as i64;
        }
        Ok(self.left > 0)
    }

    fn report(&self, jobs: u64, done: bool) -> PruneReport {
        PruneReport { jobs, rows: (self.max - self.left).cast_unsigned(), done }
    }
}

pub(super) fn prune(c: &Connection, older_than: Duration, max: u32) -> Result<PruneReport> {
    const PRUNED: &str = statement(FILE, "pruned_master");
    const OLD: [&str; 4] = [
        statement(FILE, "prune_old_events"),
        statement(FILE, "prune_firings"),
        statement(FILE, "prune_workers"),
        statement(FILE, "prune_orchestrators"),
    ];
    let cutoff = templates::now(c)?.saturating_sub(millis(older_than));
    let max = i64::from(max.max(1));
    let mut budget = Budget { c, left: max, max };
    let mut jobs = 0;
    for _ in 0..PRUNED_JOBS_MAX {
        let hidden = c.prepare_cached(PRUNED)?.query_row([], |row| row.get(0)).optional()?;
        let master: Option<[u8; 16]> = match hidden {
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
    const NEXT: &str = statement(FILE, "prunable_master");
    const INSERT: &str = statement(FILE, "insert_pruned_master");
    const MOVE: &str = statement(FILE, "move_jobs");
    const DELETE: &str = statement(FILE, "delete_master");
    let old: Option<[u8; 16]> = c.prepare_cached(NEXT)?.query_row([cutoff], |row| row.get(0)).optional()?;
    let Some(old) = old else { return Ok(None) };
    let new: [u8; 16] = c.prepare_cached(INSERT)?.query_row([old], |row| row.get(0))?;
    c.prepare_cached(MOVE)?.execute([old, new])?;
    c.prepare_cached(DELETE)?.execute([old])?;
    Ok(Some(new))
}

/// Removes a hidden master job; whether all of it is gone.
fn prune_master(budget: &mut Budget<'_>, master: [u8; 16]) -> Result<bool> {
    const JOBS: &str = statement(FILE, "pruned_jobs");
    const JOB: &str = statement(FILE, "prune_job");
    const DELETE: &str = statement(FILE, "delete_master");
    let c = budget.c;
    let jobs: Vec<i64> = {
        let mut statement = c.prepare_cached(JOBS)?;
        let rows = statement.query_map(params![master, budget.left], |row| row.get(0))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    for job in jobs {
        if !prune_job(budget, job)? {
            return Ok(false);
        }
        budget.left -= c.prepare_cached(JOB)?.execute([job])? as i64;
    }
    // A job may have taken the last of it.
    if budget.left == 0 {
        return Ok(false);
    }
    budget.left -= c.prepare_cached(DELETE)?.execute([master])? as i64;
    Ok(true)
}

/// Removes all that a job has; whether nothing is left of it.
fn prune_job(budget: &mut Budget<'_>, job: i64) -> Result<bool> {
    const OCCURRENCES: &str = statement(FILE, "prune_occurrences");
    const OBJECTS: &str = statement(FILE, "prune_object_scans");
    const TABLES: &str = statement(FILE, "prune_table_observations");
    const UNITS: &str = statement(FILE, "units_to_prune");
    const OF_UNITS: [&str; 3] =
        [statement(FILE, "prune_records"), statement(FILE, "prune_skips"), statement(FILE, "prune_units")];
    const SESSIONS: [&str; 5] = [
        statement(FILE, "prune_links"),
        statement(FILE, "prune_untraced"),
        statement(FILE, "prune_batches"),
        statement(FILE, "prune_checkpoints"),
        statement(FILE, "prune_sessions"),
    ];
    const TASKS: &str = statement(FILE, "tasks_to_prune");
    const OF_TASKS: [&str; 2] = [statement(FILE, "prune_staged_results"), statement(FILE, "prune_tasks")];
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
    let ids: Vec<i64> = {
        let mut statement = budget.c.prepare_cached(parents)?;
        let rows = statement.query_map([job, budget.left], |row| row.get(0))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    let ids = to_json(&ids)?;
    for sql in steps {
        if !budget.delete(sql, &ids)? {
            return Ok(false);
        }
    }
    Ok(true)
}
