//! [`OrchestratorStore`]: jobs and their sessions, fan-out, reaping, schedules, events.

use std::time::Duration;

use async_trait::async_trait;
use domesday_model::{CheckpointId, EnumerationSessionId, JobStatus, ProcessId, Retries};

use super::pool::Call;
use super::rows::{all_of, get, only, text};
use super::transaction::{params, transact};
use super::{PostgresStore, Result, jobs, queries, tasks, templates, units};
use crate::decide::sessions::check_own_checkpoint;
use crate::queries::statement;
use crate::roles::OrchestratorStore;
use crate::types::*;
use crate::values::millis;

/// What positions of events are given to at once, at most: bounds how long other readers wait.
const NUMBERED_MAX: u32 = 65_536;

#[async_trait]
impl OrchestratorStore for PostgresStore {
    async fn claim_job(
        &self,
        orchestrator: ProcessId,
        node_group: &str,
        lease: Duration,
    ) -> Result<Option<OwnedJob>> {
        transact!(self.write("claim_job"), |tx| jobs::claim_job(&mut tx, orchestrator, node_group, lease))
    }

    async fn renew_jobs(&self, orchestrator: ProcessId, lease: Duration) -> Result<Vec<OwnedJob>> {
        const RENEW: &str = statement(queries::JOBS, "renew_jobs");
        transact!(self.write("renew_jobs"), |tx| async {
            let call = Call { sql: RENEW, params: params![orchestrator.0.to_vec(), millis(lease)] };
            let [rows] = tx.query_last([call]).await?;
            let mut jobs: Vec<OwnedJob> = all_of(&rows)?;
            jobs.sort_unstable_by_key(|job| job.lease.job);
            Ok(jobs)
        })
    }

    async fn execute_commands(&self, lease: &JobLease) -> Result<Option<OwnedJob>> {
        transact!(self.write("execute_commands"), |tx| jobs::execute_commands(&mut tx, lease))
    }

    async fn execute_unowned_commands(&self, node_group: &str) -> Result<u64> {
        transact!(self.write("execute_unowned_commands"), |tx| jobs::execute_unowned_commands(
            &mut tx, node_group
        ))
    }

    async fn start_sessions(&self, lease: &JobLease) -> Result<u64> {
        transact!(self.write("start_sessions"), |tx| jobs::start_sessions(&mut tx, lease, None))
    }

    async fn open_session(&self, lease: &JobLease, datasource: &str) -> Result<EnumerationSessionId> {
        transact!(self.write("open_session"), |tx| jobs::open_session(&mut tx, lease, datasource))
    }

    async fn fan_out(&self, lease: &JobLease, policy: FanOutPolicy) -> Result<FanOutReport> {
        transact!(self.write("fan_out"), |tx| units::fan_out(&mut tx, lease, policy))
    }

    async fn complete_job(&self, lease: &JobLease, retries: Retries) -> Result<Option<JobStatus>> {
        transact!(self.write("complete_job"), |tx| jobs::complete_job(&mut tx, lease, retries))
    }

    async fn settle_job(&self, lease: &JobLease) -> Result<Option<JobStatus>> {
        transact!(self.write("settle_job"), |tx| jobs::settle_job(&mut tx, lease))
    }

    async fn reap_tasks(&self, node_group: &str, deadline: Duration) -> Result<ReapReport> {
        transact!(self.write("reap_tasks"), |tx| tasks::reap(&mut tx, node_group, deadline))
    }

    async fn reap_sessions(&self, node_group: &str, threshold: Duration) -> Result<u64> {
        const STALL: &str = statement(queries::ENUMERATION, "stall_sessions");
        transact!(self.write("reap_sessions"), |tx| async {
            let call = Call { sql: STALL, params: params![node_group.to_owned(), millis(threshold)] };
            let [stalled] = tx.query_last([call]).await?;
            Ok(stalled.changed)
        })
    }

    async fn sweep(&self, max: u32) -> Result<u64> {
        const SWEEP: [&str; 5] = [
            statement(queries::RESULTS, "sweep_staged_findings"),
            statement(queries::RESULTS, "sweep_staged_objects"),
            statement(queries::RESULTS, "sweep_staged_tables"),
            statement(queries::RESULTS, "sweep_object_checkpoints"),
            statement(queries::ENUMERATION, "sweep_failed_units"),
        ];
        transact!(self.write("sweep"), |tx| async {
            let calls = SWEEP.map(|sql| Call { sql, params: params![i64::from(max)] });
            Ok(tx.query_last(calls).await?.iter().map(|swept| swept.changed).sum())
        })
    }

    async fn fire(&self, firing: Firing) -> Result<bool> {
        transact!(self.write("fire"), |tx| templates::fire(&mut tx, &firing))
    }

    /// Gives positions to what has become visible, and reads on from the consumer's.
    async fn events(&self, consumer: &str, max: u32) -> Result<Vec<Event>> {
        const LOCK: &str = statement(queries::RESULTS, "lock_event_positions");
        const NUMBER: &str = statement(queries::RESULTS, "number_events");
        const NEXT: &str = statement(queries::RESULTS, "next_events");
        transact!(self.write("events"), |tx| async {
            let calls = [
                Call { sql: LOCK, params: Vec::new() },
                Call { sql: NUMBER, params: params![i64::from(max.min(NUMBERED_MAX))] },
                Call { sql: NEXT, params: params![consumer.to_owned(), i64::from(max)] },
            ];
            let [_, _, rows] = tx.query_last(calls).await?;
            all_of(&rows)
        })
    }

    async fn acknowledge(&self, consumer: &str, position: i64) -> Result<()> {
        const SET: &str = statement(queries::RESULTS, "acknowledge");
        const PRUNE: &str = statement(queries::RESULTS, "prune_events");
        transact!(self.write("acknowledge"), |tx| async {
            tx.run(SET, params![consumer.to_owned(), position]);
            tx.run(PRUNE, Vec::new());
            Ok(())
        })
    }

    async fn save_checkpoint(&self, target: &str, data: &serde_json::Value) -> Result<CheckpointId> {
        const SAVE: &str = statement(queries::SESSIONS, "save_checkpoint");
        check_own_checkpoint(target)?;
        transact!(self.write("save_checkpoint"), |tx| async {
            let rows = tx.query(SAVE, params![text(target), data.to_string()]).await?;
            get(only(&rows)?, 0).map(CheckpointId)
        })
    }

    async fn delete_checkpoint(&self, target: &str) -> Result<bool> {
        const DELETE: &str = statement(queries::SESSIONS, "delete_checkpoint");
        check_own_checkpoint(target)?;
        transact!(self.write("delete_checkpoint"), |tx| async {
            Ok(tx.change(DELETE, params![text(target)]).await? == 1)
        })
    }
}
