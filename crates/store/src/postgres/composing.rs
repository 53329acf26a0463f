//! [`ComposerStore`]: how jobs are started and directed.

use async_trait::async_trait;
use domesday_model::{Command, MasterJobId, RuleSetHash};

use super::transaction::{params, transact};
use super::{PostgresStore, Result, jobs, queries, retry};
use crate::decide::jobs::fold_master_jobs;
use crate::queries::statement;
use crate::roles::ComposerStore;
use crate::types::*;

#[async_trait]
impl ComposerStore for PostgresStore {
    async fn put_rule_set(&self, hash: RuleSetHash, rules: &str) -> Result<()> {
        const PUT: &str = statement(queries::JOBS, "put_rule_set");
        transact!(self.write("put_rule_set"), |tx| async {
            tx.run(PUT, params![hash.0.to_vec(), rules.to_owned()]);
            Ok(())
        })
    }

    async fn submit(&self, job: NewMasterJob) -> Result<()> {
        transact!(self.write("submit"), |tx| jobs::submit(&mut tx, &job))
    }

    async fn unfinished(&self, request_key: [u8; 16]) -> Result<Option<MasterJob>> {
        const FIND: &str = statement(queries::JOBS, "unfinished");
        Ok(fold_master_jobs(self.all(FIND, params![request_key.to_vec()]).await?).pop())
    }

    async fn mark_reported(&self, master: MasterJobId) -> Result<()> {
        const REPORTED: &str = statement(queries::JOBS, "mark_reported");
        transact!(self.write("mark_reported"), |tx| async {
            tx.run(REPORTED, params![master.0.to_vec()]);
            Ok(())
        })
    }

    async fn append_command(&self, master: MasterJobId, command: Command) -> Result<u64> {
        const APPEND: &str = statement(queries::JOBS, "append_command");
        transact!(self.write("append_command"), |tx| async {
            tx.wakes_before_it_returns();
            tx.change(APPEND, params![master.0.to_vec(), command.as_str()]).await
        })
    }

    async fn retry(&self, which: Retry, scope: RetryScope) -> Result<Retried> {
        transact!(self.write("retry"), |tx| retry::retry(&mut tx, which, scope))
    }
}
