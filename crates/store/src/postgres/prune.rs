//! Removing what is old, a bounded number of rows a step.
//!
//! Crash argument: a step is one transaction. The first one of a master job gives it an id that nobody knows,
//! so that no reader sees half of it; the rest is found by that mark, whoever comes next. Within a job,
//! rows go before what they are found by: records before their units, units before tasks, all before the job.
//! Findings stay: they live across jobs.

use std::time::Duration;

use super::pool::{Call, Param};
use super::rows::{get, only};
use super::transaction::{Tx, params};
use super::{Result, queries, templates};
use crate::decide::jobs::PRUNED_JOBS_MAX;
use crate::queries::statement;
use crate::types::*;
use crate::values::millis;

/// Rows that a step may still remove.
struct Budget<'t, 's> {
    tx: &'t mut Tx<'s>,
    left: i64,
    max: i64,
}

impl Budget<'_, '_> {
    /// Removes what `sql` finds, as far as the budget goes; whether that was all of it.
    async fn delete(&mut self, sql: &'static str, of: Param) -> Result<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        self.left -= self.tx.change(sql, vec![of, Box::new(self.left)]).await?.cast_signed();
        Ok(self.left > 0)
    }

    fn report(&self, jobs: u64, done: bool) -> PruneReport {
        PruneReport { jobs, rows: (self.max - self.left).cast_unsigned(), done }
    }
}

pub(super) async fn prune(tx: &mut Tx<'_>, older_than: Duration, max: u32) -> Result<PruneReport> {
    const LOCK: &str = statement(queries::PRUNE, "lock_prune");
    const PRUNED: &str = statement(queries::PRUNE, "pruned_master");
    const OLD: [&str; 4] = [
        statement(queries::PRUNE, "prune_old_events"),
        statement(queries::PRUNE, "prune_firings"),
        statement(queries::PRUNE, "prune_workers"),
        statement(queries::PRUNE, "prune_orchestrators"),
    ];
    let calls = [LOCK, templates::NOW].map(|sql| Call { sql, params: Vec::new() });
    let [_, now] = tx.query_all(calls).await?;
    let cutoff = get::<i64>(only(&now)?, 0)?.saturating_sub(millis(older_than));
    let max = i64::from(max.max(1));
    let mut budget = Budget { tx, left: max, max };
    let mut jobs = 0;
    for _ in 0..PRUNED_JOBS_MAX {
        let rows = budget.tx.query(PRUNED, Vec::new()).await?;
        let master: Option<Vec<u8>> = match rows.first() {
            Some(row) => Some(get(row, 0)?),
            None => take_up(budget.tx, cutoff).await?,
        };
        let Some(master) = master else {
            for sql in OLD {
                if !budget.delete(sql, Box::new(cutoff)).await? {
                    return Ok(budget.report(jobs, false));
                }
            }
            return Ok(budget.report(jobs, true));
        };
        if !prune_master(&mut budget, master).await? {
            return Ok(budget.report(jobs, false));
        }
        jobs += 1;
    }
    Ok(budget.report(jobs, false))
}

/// Hides the next master job that may go, under the id that it has from now on.
async fn take_up(tx: &mut Tx<'_>, cutoff: i64) -> Result<Option<Vec<u8>>> {
    const NEXT: &str = statement(queries::PRUNE, "prunable_master");
    const LOCK: &str = statement(queries::PRUNE, "lock_prunable");
    const ENDED: &str = statement(queries::PRUNE, "still_ended");
    const INSERT: &str = statement(queries::PRUNE, "insert_pruned_master");
    const MOVE: &str = statement(queries::PRUNE, "move_jobs");
    const DELETE: &str = statement(queries::PRUNE, "delete_master");
    loop {
        let rows = tx.query(NEXT, params![cutoff]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let old: Vec<u8> = get(row, 0)?;
        tx.query(LOCK, params![old.clone()]).await?;
        // Its tasks may be tried again since it was looked at: then it is not found a second time.
        let rows = tx.query(ENDED, params![old.clone()]).await?;
        if !get::<bool>(only(&rows)?, 0)? {
            continue;
        }
        let rows = tx.query(INSERT, params![old.clone()]).await?;
        let new: Vec<u8> = get(only(&rows)?, 0)?;
        tx.run(MOVE, params![old.clone(), new.clone()]);
        tx.run(DELETE, params![old]);
        return Ok(Some(new));
    }
}

/// Removes a hidden master job; whether all of it is gone.
async fn prune_master(budget: &mut Budget<'_, '_>, master: Vec<u8>) -> Result<bool> {
    const JOBS: &str = statement(queries::PRUNE, "pruned_jobs");
    const JOB: &str = statement(queries::PRUNE, "prune_job");
    const DELETE: &str = statement(queries::PRUNE, "delete_master");
    let rows = budget.tx.query(JOBS, params![master.clone(), budget.left]).await?;
    for row in rows.iter() {
        let job: i64 = get(row, 0)?;
        if !prune_job(budget, job).await? {
            return Ok(false);
        }
        budget.tx.run(JOB, params![job]);
        budget.left -= 1;
    }
    // A job may have taken the last of it.
    if budget.left == 0 {
        return Ok(false);
    }
    budget.tx.run(DELETE, params![master]);
    budget.left -= 1;
    Ok(true)
}

/// Removes all that a job has; whether nothing is left of it.
async fn prune_job(budget: &mut Budget<'_, '_>, job: i64) -> Result<bool> {
    const OCCURRENCES: &str = statement(queries::PRUNE, "prune_occurrences");
    const OBJECTS: &str = statement(queries::PRUNE, "prune_object_scans");
    const TABLES: &str = statement(queries::PRUNE, "prune_table_observations");
    const UNITS: &str = statement(queries::PRUNE, "units_to_prune");
    const OF_UNITS: [&str; 3] = [
        statement(queries::PRUNE, "prune_records"),
        statement(queries::PRUNE, "prune_skips"),
        statement(queries::PRUNE, "prune_units"),
    ];
    const SESSIONS: [&str; 4] = [
        statement(queries::PRUNE, "prune_links"),
        statement(queries::PRUNE, "prune_untraced"),
        statement(queries::PRUNE, "prune_batches"),
        statement(queries::PRUNE, "prune_sessions"),
    ];
    const TASKS: &str = statement(queries::PRUNE, "tasks_to_prune");
    const OF_TASKS: [&str; 5] = [
        statement(queries::PRUNE, "prune_staged_findings"),
        statement(queries::PRUNE, "prune_staged_objects"),
        statement(queries::PRUNE, "prune_staged_tables"),
        statement(queries::PRUNE, "prune_object_checkpoints"),
        statement(queries::PRUNE, "prune_tasks"),
    ];
    for sql in [OCCURRENCES, OBJECTS, TABLES] {
        if !budget.delete(sql, Box::new(job)).await? {
            return Ok(false);
        }
    }
    if !prune_parents(budget, job, UNITS, &OF_UNITS).await? {
        return Ok(false);
    }
    for sql in SESSIONS {
        if !budget.delete(sql, Box::new(job)).await? {
            return Ok(false);
        }
    }
    prune_parents(budget, job, TASKS, &OF_TASKS).await
}

/// Rows that hang on units or tasks, and then those; as many of them as the budget may reach.
async fn prune_parents(
    budget: &mut Budget<'_, '_>,
    job: i64,
    parents: &'static str,
    steps: &[&'static str],
) -> Result<bool> {
    let rows = budget.tx.query(parents, params![job, budget.left]).await?;
    let ids = rows.iter().map(|row| get(row, 0)).collect::<Result<Vec<i64>>>()?;
    if ids.is_empty() {
        return Ok(true);
    }
    for sql in steps {
        if !budget.delete(sql, Box::new(ids.clone())).await? {
            return Ok(false);
        }
    }
    Ok(true)
}
