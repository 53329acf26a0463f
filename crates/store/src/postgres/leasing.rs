//! [`LeaseStore`]: processes and their leases.

use std::time::Duration;

use async_trait::async_trait;
use domesday_model::ProcessId;

use super::pool::Call;
use super::rows::{column, text};
use super::transaction::{params, transact};
use super::{PostgresStore, Result, queries};
use crate::queries::statement;
use crate::roles::LeaseStore;
use crate::types::*;
use crate::values::millis;

#[async_trait]
impl LeaseStore for PostgresStore {
    async fn register(&self, process: &Process, lease: Duration) -> Result<()> {
        const WORKER: &str = statement(queries::JOBS, "register_worker");
        const ORCHESTRATOR: &str = statement(queries::JOBS, "register_orchestrator");
        let sql = match process.role {
            Role::Worker => WORKER,
            Role::Orchestrator => ORCHESTRATOR,
        };
        let Profile { host, version, slots, labels, fingerprint_key } = &process.profile;
        transact!(self.write("register"), |tx| async {
            let params = params![
                process.id.0.to_vec(),
                process.node_group.clone(),
                millis(lease),
                text(host),
                text(version),
                i64::from(*slots),
                column(labels, |label| text(label)),
                fingerprint_key.clone(),
            ];
            tx.run(sql, params);
            Ok(())
        })
    }

    async fn renew(&self, role: Role, id: ProcessId, lease: Duration, load: Load) -> Result<bool> {
        const WORKER: &str = statement(queries::JOBS, "renew_worker");
        const ORCHESTRATOR: &str = statement(queries::JOBS, "renew_orchestrator");
        let sql = match role {
            Role::Worker => WORKER,
            Role::Orchestrator => ORCHESTRATOR,
        };
        transact!(self.write("renew"), |tx| async {
            let params = params![
                id.0.to_vec(),
                millis(lease),
                i64::from(load.running),
                load.objects.cast_signed(),
                load.bytes.cast_signed(),
                load.findings.cast_signed(),
                load.objects_per_second.cast_signed(),
                load.bytes_per_second.cast_signed(),
            ];
            let [renewed] = tx.query_last([Call { sql, params }]).await?;
            Ok(renewed.changed == 1)
        })
    }

    async fn release(&self, role: Role, id: ProcessId) -> Result<()> {
        const WORKER: &[&str] = &[statement(queries::JOBS, "release_worker")];
        const ORCHESTRATOR: &[&str] =
            &[statement(queries::JOBS, "release_jobs"), statement(queries::JOBS, "release_orchestrator")];
        let steps = match role {
            Role::Worker => WORKER,
            Role::Orchestrator => ORCHESTRATOR,
        };
        transact!(self.write("release"), |tx| async {
            for sql in steps {
                tx.run(sql, params![id.0.to_vec()]);
            }
            Ok(())
        })
    }
}
