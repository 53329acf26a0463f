//! [`LeaseStore`]: processes and their leases.

use std::time::Duration;

use async_trait::async_trait;
use domesday_model::ProcessId;
use rusqlite::{Connection, params};

use super::rows::Statements;
use super::{Result, SqliteStore, queries};
use crate::queries::statement;
use crate::roles::LeaseStore;
use crate::types::*;
use crate::values::{millis, to_json};

#[async_trait]
impl LeaseStore for SqliteStore {
    async fn register(&self, process: &Process, lease: Duration) -> Result<()> {
        const WORKER: &str = statement(queries::JOBS, "register_worker");
        const ORCHESTRATOR: &str = statement(queries::JOBS, "register_orchestrator");
        let process = process.clone();
        self.write("register", move |c| {
            let sql = match process.role {
                Role::Worker => WORKER,
                Role::Orchestrator => ORCHESTRATOR,
            };
            let Profile { host, version, slots, labels, fingerprint_key } = &process.profile;
            let (group, labels) = (&process.node_group, to_json(labels)?);
            let parameters =
                params![process.id.0, group, millis(lease), host, version, slots, labels, fingerprint_key];
            c.change(sql, parameters)?;
            Ok(())
        })
        .await
    }

    async fn renew(&self, role: Role, id: ProcessId, lease: Duration, load: Load) -> Result<bool> {
        const WORKER: &str = statement(queries::JOBS, "renew_worker");
        const ORCHESTRATOR: &str = statement(queries::JOBS, "renew_orchestrator");
        let sql = match role {
            Role::Worker => WORKER,
            Role::Orchestrator => ORCHESTRATOR,
        };
        self.write("renew", move |c| {
            let parameters = params![
                id.0,
                millis(lease),
                load.running,
                load.objects.cast_signed(),
                load.bytes.cast_signed(),
                load.findings.cast_signed(),
                load.objects_per_second.cast_signed(),
                load.bytes_per_second.cast_signed(),
            ];
            Ok(c.change(sql, parameters)? == 1)
        })
        .await
    }

    async fn release(&self, role: Role, id: ProcessId) -> Result<()> {
        const WORKER: &[&str] = &[statement(queries::JOBS, "release_worker")];
        const ORCHESTRATOR: &[&str] =
            &[statement(queries::JOBS, "release_jobs"), statement(queries::JOBS, "release_orchestrator")];
        let steps = match role {
            Role::Worker => WORKER,
            Role::Orchestrator => ORCHESTRATOR,
        };
        self.write("release", move |c| steps.iter().try_for_each(|sql| c.change(sql, [id.0]).map(drop))).await
    }
}

/// Whoever holds the folder's lock knows that every earlier process is gone.
pub(super) fn expire_earlier_processes(c: &Connection) -> Result<()> {
    const STATEMENTS: [&str; 3] = [
        statement(queries::JOBS, "expire_all_workers"),
        statement(queries::JOBS, "expire_all_orchestrators"),
        statement(queries::JOBS, "expire_all_jobs"),
    ];
    STATEMENTS.iter().try_for_each(|sql| c.change(sql, []).map(drop))
}
