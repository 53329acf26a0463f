//! The verbs by role, each handed to the module that knows its statements.

mod orchestrator;
mod report;
mod worker;

use std::time::Duration;

use async_trait::async_trait;
use domesday_model::{
    Command, DatasourceSpec, ListedObject, MasterJobId, ProcessId, RuleSetHash, ScanTemplate,
};
use tokio::sync::watch;

use crate::decide::configuring::FINGERPRINT_KEY;
use crate::decide::tasks::RecordKinds;
use crate::postgres::rows::get;
use crate::postgres::tasks::Covered;
use crate::postgres::transaction::{params, transact};
use crate::postgres::{PostgresStore, Result, datasources, jobs, prune, retry, tasks, templates};
use crate::roles::{AdminStore, ComposerStore, LeaseStore, SharedStore};
use crate::types::*;

impl PostgresStore {
    async fn packet_records(&self, packet: &WorkPacket, kinds: RecordKinds) -> Result<Vec<ListedObject>> {
        match tasks::covered(&packet.payload, kinds) {
            Covered::Objects(objects) => Ok(objects),
            Covered::Records(params) => {
                let rows = self.read(tasks::PACKET_RECORDS, params).await?;
                rows.iter().map(tasks::packet_object).collect()
            }
        }
    }
}

#[async_trait]
impl SharedStore for PostgresStore {
    async fn rule_set(&self, hash: RuleSetHash) -> Result<Option<String>> {
        let rows = self.read(jobs::RULE_SET, params![hash.0.to_vec()]).await?;
        rows.first().map(|row| get(row, 0)).transpose()
    }

    async fn fingerprint_key(&self) -> Result<Option<String>> {
        let rows = self.read(datasources::SETTING, params![FINGERPRINT_KEY]).await?;
        rows.first().map(|row| get(row, 0)).transpose()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.waker.subscribe()
    }
}

#[async_trait]
impl LeaseStore for PostgresStore {
    async fn register(&self, process: &Process, lease: Duration) -> Result<()> {
        transact!(self.write("register"), |tx| async {
            jobs::register(&mut tx, process, lease);
            Ok(())
        })
    }

    async fn renew(&self, role: Role, id: ProcessId, lease: Duration, load: Load) -> Result<bool> {
        transact!(self.write("renew"), |tx| jobs::renew(&mut tx, role, id, lease, load))
    }

    async fn release(&self, role: Role, id: ProcessId) -> Result<()> {
        transact!(self.write("release"), |tx| async {
            jobs::release(&mut tx, role, id);
            Ok(())
        })
    }
}

#[async_trait]
impl ComposerStore for PostgresStore {
    async fn put_rule_set(&self, hash: RuleSetHash, rules: &str) -> Result<()> {
        transact!(self.write("put_rule_set"), |tx| async {
            tx.run(jobs::PUT_RULE_SET, params![hash.0.to_vec(), rules.to_owned()]);
            Ok(())
        })
    }

    async fn submit(&self, job: NewMasterJob) -> Result<()> {
        transact!(self.write("submit"), |tx| jobs::submit(&mut tx, &job))
    }

    async fn unfinished(&self, request_key: [u8; 16]) -> Result<Option<MasterJob>> {
        let rows = self.read(jobs::UNFINISHED, params![request_key.to_vec()]).await?;
        Ok(jobs::master_jobs(&rows)?.pop())
    }

    async fn mark_reported(&self, master: MasterJobId) -> Result<()> {
        transact!(self.write("mark_reported"), |tx| async {
            jobs::mark_reported(&mut tx, master);
            Ok(())
        })
    }

    async fn append_command(&self, master: MasterJobId, command: Command) -> Result<u64> {
        transact!(self.write("append_command"), |tx| async {
            jobs::append_command(&mut tx, master, command).await
        })
    }

    async fn retry_tasks(&self, which: Retry) -> Result<u64> {
        transact!(self.write("retry_tasks"), |tx| retry::retry(&mut tx, which))
    }
}

#[async_trait]
impl AdminStore for PostgresStore {
    async fn put_datasource(&self, source: &DatasourceSpec, put: Put) -> Result<()> {
        transact!(self.write("put_datasource"), |tx| datasources::put(&mut tx, source, put))
    }

    async fn remove_datasource(&self, name: &str) -> Result<()> {
        transact!(self.write("remove_datasource"), |tx| datasources::remove(&mut tx, name))
    }

    async fn put_template(
        &self,
        template: &ScanTemplate,
        put: Put,
        next_firing_ms: Option<i64>,
    ) -> Result<()> {
        transact!(self.write("put_template"), |tx| templates::put(&mut tx, template, put, next_firing_ms))
    }

    async fn remove_template(&self, name: &str) -> Result<()> {
        transact!(self.write("remove_template"), |tx| templates::remove(&mut tx, name))
    }

    async fn set_fingerprint_key(&self, id: &str, replace: bool) -> Result<String> {
        transact!(self.write("set_fingerprint_key"), |tx| datasources::set_fingerprint_key(
            &mut tx, id, replace
        ))
    }

    async fn prune(&self, older_than: Duration, max: u32) -> Result<PruneReport> {
        transact!(self.write("prune"), |tx| prune::prune(&mut tx, older_than, max))
    }
}
