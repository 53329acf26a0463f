//! [`ComposerStore`]: how jobs are started and directed.

use async_trait::async_trait;
use domesday_model::{Command, MasterJobId, RuleSetHash};
use rusqlite::params;

use super::rows::Statements;
use super::{Result, SqliteStore, jobs, queries, retry};
use crate::queries::statement;
use crate::roles::ComposerStore;
use crate::types::*;

#[async_trait]
impl ComposerStore for SqliteStore {
    async fn put_rule_set(&self, hash: RuleSetHash, rules: &str) -> Result<()> {
        const PUT: &str = statement(queries::JOBS, "put_rule_set");
        let rules = rules.to_owned();
        self.write("put_rule_set", move |c| c.change(PUT, params![hash.0, rules]).map(drop)).await
    }

    async fn submit(&self, job: NewMasterJob) -> Result<()> {
        self.write("submit", move |c| jobs::submit(c, &job)).await
    }

    async fn unfinished(&self, request_key: [u8; 16]) -> Result<Option<MasterJob>> {
        const FIND: &str = statement(queries::JOBS, "unfinished");
        self.read(move |c| match c.one(FIND, [request_key])? {
            Some(id) => jobs::master_job(c, MasterJobId(id)),
            None => Ok(None),
        })
        .await
    }

    async fn mark_reported(&self, master: MasterJobId) -> Result<()> {
        const REPORTED: &str = statement(queries::JOBS, "mark_reported");
        self.write("mark_reported", move |c| c.change(REPORTED, [master.0]).map(drop)).await
    }

    async fn append_command(&self, master: MasterJobId, command: Command) -> Result<u64> {
        const APPEND: &str = statement(queries::JOBS, "append_command");
        self.write("append_command", move |c| c.change(APPEND, params![master.0, command.as_str()])).await
    }

    async fn retry(&self, which: Retry, scope: RetryScope) -> Result<Retried> {
        self.write("retry", move |c| retry::retry(c, which, scope)).await
    }
}
