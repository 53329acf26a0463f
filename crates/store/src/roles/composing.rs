//! How jobs are started and directed. Given to whoever composes a job: the commands of the command line
//! (`scan`, `job`, `task retry`), and an orchestrator when a schedule is due.

use async_trait::async_trait;
use domesday_model::{Command, MasterJobId, RuleSetHash};

use super::{ReportStore, Result};
use crate::types::*;

#[async_trait]
pub trait ComposerStore: ReportStore {
    /// Keeps a rule set under its hash, so that every worker of a job uses the same.
    async fn put_rule_set(&self, hash: RuleSetHash, rules: &str) -> Result<()>;
    /// Inserts a master job and one QUEUED child job per node group, START pending. Repeating it under
    /// the same id is the same job.
    async fn submit(&self, job: NewMasterJob) -> Result<()>;
    /// The newest master job of this request that nobody has had a report of, and that is not cancelled or
    /// asked to be: one that has not ended, or one that was interrupted between its end and its report.
    async fn unfinished(&self, request_key: [u8; 16]) -> Result<Option<MasterJob>>;
    /// Notes that the user has had the report of an ended job.
    async fn mark_reported(&self, master: MasterJobId) -> Result<()>;
    /// Appends a command to every open child job; how many those are. CANCEL reaches a job in any open state.
    async fn append_command(&self, master: MasterJobId, command: Command) -> Result<u64>;
    /// Makes failed tasks pending again and forgets the failures they were named with. Of a job that has ended, new
    /// tasks list the containers that could not be listed, and read the objects that could not be read whole; then it is
    /// queued again, and nothing else of it is done again. The results of an object stay until others take their
    /// place. Of a job that was cancelled or completed it is refused ([`crate::StoreError::Refused`]), and what is not
    /// known is [`crate::StoreError::Missing`].
    async fn retry(&self, which: Retry, scope: RetryScope) -> Result<Retried>;
}
