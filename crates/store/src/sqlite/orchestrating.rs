//! [`OrchestratorStore`]: jobs and their sessions, fan-out, reaping, schedules, events.

use std::time::Duration;

use async_trait::async_trait;
use domesday_model::{CheckpointId, EnumerationSessionId, JobStatus, ProcessId, Retries};
use rusqlite::params;

use super::rows::Statements;
use super::{Result, SqliteStore, jobs, queries, tasks, templates, units};
use crate::decide::sessions::check_own_checkpoint;
use crate::queries::statement;
use crate::roles::OrchestratorStore;
use crate::types::*;
use crate::values::millis;

#[async_trait]
impl OrchestratorStore for SqliteStore {
    async fn claim_job(
        &self,
        orchestrator: ProcessId,
        node_group: &str,
        lease: Duration,
    ) -> Result<Option<OwnedJob>> {
        let group = node_group.to_owned();
        self.write("claim_job", move |c| jobs::claim_job(c, orchestrator, &group, lease)).await
    }

    async fn renew_jobs(&self, orchestrator: ProcessId, lease: Duration) -> Result<Vec<OwnedJob>> {
        const RENEW: &str = statement(queries::JOBS, "renew_jobs");
        self.write("renew_jobs", move |c| c.all(RENEW, params![orchestrator.0, millis(lease)])).await
    }

    async fn execute_commands(&self, lease: &JobLease) -> Result<Option<OwnedJob>> {
        let lease = *lease;
        self.write("execute_commands", move |c| jobs::execute_commands(c, &lease)).await
    }

    async fn execute_unowned_commands(&self, node_group: &str) -> Result<u64> {
        let group = node_group.to_owned();
        self.write("execute_unowned_commands", move |c| jobs::execute_unowned_commands(c, &group)).await
    }

    async fn start_sessions(&self, lease: &JobLease) -> Result<u64> {
        let lease = *lease;
        self.write("start_sessions", move |c| jobs::start_sessions(c, &lease, None)).await
    }

    async fn open_session(&self, lease: &JobLease, datasource: &str) -> Result<EnumerationSessionId> {
        let (lease, datasource) = (*lease, datasource.to_owned());
        self.write("open_session", move |c| jobs::open_session(c, &lease, &datasource)).await
    }

    async fn fan_out(&self, lease: &JobLease, policy: FanOutPolicy) -> Result<FanOutReport> {
        let lease = *lease;
        self.write("fan_out", move |c| units::fan_out(c, &lease, policy)).await
    }

    async fn complete_job(&self, lease: &JobLease, retries: Retries) -> Result<Option<JobStatus>> {
        let lease = *lease;
        self.write("complete_job", move |c| jobs::complete_job(c, &lease, retries)).await
    }

    async fn settle_job(&self, lease: &JobLease) -> Result<Option<JobStatus>> {
        let lease = *lease;
        self.write("settle_job", move |c| jobs::settle_job(c, &lease)).await
    }

    async fn reap_tasks(&self, node_group: &str, deadline: Duration) -> Result<ReapReport> {
        let group = node_group.to_owned();
        self.write("reap_tasks", move |c| tasks::reap(c, &group, deadline)).await
    }

    async fn reap_sessions(&self, node_group: &str, threshold: Duration) -> Result<u64> {
        const STALL: &str = statement(queries::ENUMERATION, "stall_sessions");
        let group = node_group.to_owned();
        self.write("reap_sessions", move |c| c.change(STALL, params![group, millis(threshold)])).await
    }

    async fn sweep(&self, max: u32) -> Result<u64> {
        const STAGED: &str = statement(queries::RESULTS, "sweep_staged_results");
        const CHECKPOINTS: &str = statement(queries::RESULTS, "sweep_object_checkpoints");
        const UNITS: &str = statement(queries::ENUMERATION, "sweep_failed_units");
        self.write("sweep", move |c| {
            Ok(c.change(STAGED, [max])? + c.change(CHECKPOINTS, [max])? + c.change(UNITS, [max])?)
        })
        .await
    }

    async fn fire(&self, firing: Firing) -> Result<bool> {
        self.write("fire", move |c| templates::fire(c, &firing)).await
    }

    async fn events(&self, consumer: &str, max: u32) -> Result<Vec<Event>> {
        const NEXT: &str = statement(queries::RESULTS, "next_events");
        let consumer = consumer.to_owned();
        self.read(move |c| c.all(NEXT, params![consumer, max])).await
    }

    async fn acknowledge(&self, consumer: &str, position: i64) -> Result<()> {
        const ADD: &str = statement(queries::RESULTS, "add_consumer");
        const SET: &str = statement(queries::RESULTS, "acknowledge");
        const PRUNE: &str = statement(queries::RESULTS, "prune_events");
        let consumer = consumer.to_owned();
        self.write("acknowledge", move |c| {
            c.change(ADD, [&consumer])?;
            c.change(SET, params![consumer, position])?;
            c.change(PRUNE, []).map(drop)
        })
        .await
    }

    async fn save_checkpoint(&self, target: &str, data: &serde_json::Value) -> Result<CheckpointId> {
        const SAVE: &str = statement(queries::SESSIONS, "save_checkpoint");
        check_own_checkpoint(target)?;
        let (target, data) = (target.to_owned(), data.to_string());
        self.write("save_checkpoint", move |c| c.only(SAVE, [target, data]).map(CheckpointId)).await
    }

    async fn delete_checkpoint(&self, target: &str) -> Result<bool> {
        const DELETE: &str = statement(queries::SESSIONS, "delete_checkpoint");
        check_own_checkpoint(target)?;
        let target = target.to_owned();
        self.write("delete_checkpoint", move |c| Ok(c.change(DELETE, [target])? == 1)).await
    }
}
