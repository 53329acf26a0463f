//! The verbs by role, each handed to the module that knows its statements.

mod orchestrator;
mod report;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domesday_model::{Command, DatasourceSpec, MasterJobId, ProcessId, RuleSetHash, ScanTemplate};
use tokio::sync::watch;

use crate::roles::{AdminStore, ComposerStore, LeaseStore, SharedStore};
use crate::sqlite::{Result, SqliteStore, datasources, jobs, prune, retry, templates};
use crate::types::*;

#[async_trait]
impl SharedStore for SqliteStore {
    async fn rule_set(&self, hash: RuleSetHash) -> Result<Option<String>> {
        self.read(move |c| jobs::rule_set(c, hash)).await
    }

    async fn fingerprint_key(&self) -> Result<Option<String>> {
        self.read(datasources::fingerprint_key).await
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }
}

#[async_trait]
impl LeaseStore for SqliteStore {
    async fn register(&self, process: &Process, lease: Duration) -> Result<()> {
        let process = process.clone();
        self.write("register", move |c| jobs::register(c, &process, lease)).await
    }

    async fn renew(&self, role: Role, id: ProcessId, lease: Duration, load: Load) -> Result<bool> {
        self.write("renew", move |c| jobs::renew(c, role, id, lease, load)).await
    }

    async fn release(&self, role: Role, id: ProcessId) -> Result<()> {
        self.write("release", move |c| jobs::release(c, role, id)).await
    }
}

#[async_trait]
impl ComposerStore for SqliteStore {
    async fn put_rule_set(&self, hash: RuleSetHash, rules: &str) -> Result<()> {
        let rules = rules.to_owned();
        self.write("put_rule_set", move |c| jobs::put_rule_set(c, hash, &rules)).await
    }

    async fn submit(&self, job: NewMasterJob) -> Result<()> {
        self.write("submit", move |c| jobs::submit(c, &job)).await
    }

    async fn unfinished(&self, request_key: [u8; 16]) -> Result<Option<MasterJob>> {
        self.read(move |c| jobs::unfinished(c, request_key)).await
    }

    async fn mark_reported(&self, master: MasterJobId) -> Result<()> {
        self.write("mark_reported", move |c| jobs::mark_reported(c, master)).await
    }

    async fn append_command(&self, master: MasterJobId, command: Command) -> Result<u64> {
        self.write("append_command", move |c| jobs::append_command(c, master, command)).await
    }

    async fn retry_tasks(&self, which: Retry) -> Result<u64> {
        self.write("retry_tasks", move |c| retry::retry(c, which)).await
    }
}

#[async_trait]
impl AdminStore for SqliteStore {
    async fn put_datasource(&self, source: &DatasourceSpec, put: Put) -> Result<()> {
        let source = source.clone();
        self.write("put_datasource", move |c| datasources::put(c, &source, put)).await
    }

    async fn remove_datasource(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.write("remove_datasource", move |c| datasources::remove(c, &name)).await
    }

    async fn put_template(
        &self,
        template: &ScanTemplate,
        put: Put,
        next_firing_ms: Option<i64>,
    ) -> Result<()> {
        let template = template.clone();
        self.write("put_template", move |c| templates::put(c, &template, put, next_firing_ms)).await
    }

    async fn remove_template(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.write("remove_template", move |c| templates::remove(c, &name)).await
    }

    async fn set_fingerprint_key(&self, id: &str, replace: bool) -> Result<String> {
        let id = id.to_owned();
        self.write("set_fingerprint_key", move |c| datasources::set_fingerprint_key(c, &id, replace)).await
    }

    async fn prune(&self, older_than: Duration, max: u32) -> Result<PruneReport> {
        let kept = Arc::clone(&self.kept);
        self.write("prune", move |c| {
            kept.clear();
            prune::prune(c, older_than, max)
        })
        .await
    }
}
