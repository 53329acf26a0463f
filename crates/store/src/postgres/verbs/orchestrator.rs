//! What an orchestrator asks for, each verb handed to the module that knows its statements.

use std::time::Duration;

use async_trait::async_trait;
use domesday_model::{CheckpointId, EnumerationSessionId, JobStatus, ProcessId};

use crate::postgres::transaction::transact;
use crate::postgres::{PostgresStore, Result, jobs, results, sessions, tasks, templates, units};
use crate::roles::OrchestratorStore;
use crate::types::*;

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
        transact!(self.write("renew_jobs"), |tx| jobs::renew_jobs(&mut tx, orchestrator, lease))
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

    async fn complete_job(&self, lease: &JobLease) -> Result<Option<JobStatus>> {
        transact!(self.write("complete_job"), |tx| jobs::complete_job(&mut tx, lease))
    }

    async fn settle_job(&self, lease: &JobLease) -> Result<Option<JobStatus>> {
        transact!(self.write("settle_job"), |tx| jobs::settle_job(&mut tx, lease))
    }

    async fn reap_tasks(&self, node_group: &str, deadline: Duration) -> Result<ReapReport> {
        transact!(self.write("reap_tasks"), |tx| tasks::reap(&mut tx, node_group, deadline))
    }

    async fn reap_sessions(&self, node_group: &str, threshold: Duration) -> Result<u64> {
        transact!(self.write("reap_sessions"), |tx| jobs::reap_sessions(&mut tx, node_group, threshold))
    }

    async fn sweep(&self, max: u32) -> Result<u64> {
        transact!(self.write("sweep"), |tx| results::sweep(&mut tx, max))
    }

    async fn fire(&self, firing: Firing) -> Result<bool> {
        transact!(self.write("fire"), |tx| templates::fire(&mut tx, &firing))
    }

    async fn events(&self, consumer: &str, max: u32) -> Result<Vec<Event>> {
        transact!(self.write("events"), |tx| results::events(&mut tx, consumer, max))
    }

    async fn acknowledge(&self, consumer: &str, position: i64) -> Result<()> {
        transact!(self.write("acknowledge"), |tx| async {
            results::acknowledge(&mut tx, consumer, position);
            Ok(())
        })
    }

    async fn save_checkpoint(&self, target: &str, data: &serde_json::Value) -> Result<CheckpointId> {
        transact!(self.write("save_checkpoint"), |tx| sessions::save_checkpoint(&mut tx, target, data))
    }

    async fn delete_checkpoint(&self, target: &str) -> Result<bool> {
        transact!(self.write("delete_checkpoint"), |tx| sessions::delete_checkpoint(&mut tx, target))
    }
}
