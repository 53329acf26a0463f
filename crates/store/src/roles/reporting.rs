//! What the book says: configuration, jobs, tasks, sessions, targets, findings and problems. Read-only, so a
//! book that is opened for reading serves all of it. Given to reports and to the commands that show something.

use async_trait::async_trait;
use domesday_model::{
    BatchId, CheckpointId, ConfigurationUsed, EnumerationSessionId, MasterJobId, RuleSetHash, ScanTargetId,
    TargetType, TaskId,
};

use super::{Result, SharedStore};
use crate::types::*;

#[async_trait]
pub trait ReportStore: SharedStore {
    /// Those that someone added, in the order of their names.
    async fn managed_datasources(&self) -> Result<Vec<ManagedDatasource>>;
    async fn managed_datasource(&self, name: &str) -> Result<Option<ManagedDatasource>>;
    async fn templates(&self) -> Result<Vec<StoredTemplate>>;
    async fn template(&self, name: &str) -> Result<Option<StoredTemplate>>;
    /// The templates that are due, and when the next one is.
    async fn due_templates(&self) -> Result<DueTemplates>;
    async fn master_job(&self, id: MasterJobId) -> Result<Option<MasterJob>>;
    /// Newest first.
    async fn master_jobs(&self, max: u32) -> Result<Vec<MasterJob>>;
    /// The child jobs of a master job, with live progress, in the order of their groups.
    async fn child_jobs(&self, master: MasterJobId) -> Result<Vec<ChildJobState>>;
    async fn summary(&self, master: MasterJobId) -> Result<JobSummary>;
    /// The data sources of a master job, with the settings that the job reads them with.
    async fn datasources(&self, master: MasterJobId) -> Result<Vec<Datasource>>;
    /// The rule set that a master job uses.
    async fn job_rule_set(&self, master: MasterJobId) -> Result<Option<RuleSetHash>>;
    /// The id of the key that a master job's fingerprints are made with.
    async fn job_fingerprint_key(&self, master: MasterJobId) -> Result<Option<String>>;
    /// What a master job's settings were read from.
    async fn job_configuration_used(&self, master: MasterJobId) -> Result<Option<ConfigurationUsed>>;
    /// Tasks in the order of their ids, at most `max`.
    async fn tasks(&self, filter: TaskFilter, max: u32) -> Result<Vec<TaskInfo>>;
    async fn task(&self, id: TaskId) -> Result<Option<TaskInfo>>;
    async fn fleet(&self) -> Result<Fleet>;
    /// Sessions in the order of their ids, those behind `after`, at most `max`.
    async fn sessions(
        &self,
        filter: SessionFilter,
        after: Option<EnumerationSessionId>,
        max: u32,
    ) -> Result<Vec<SessionInfo>>;
    async fn session(&self, id: EnumerationSessionId) -> Result<Option<SessionInfo>> {
        let before = EnumerationSessionId(id.0.saturating_sub(1));
        let next = self.sessions(SessionFilter::default(), Some(before), 1).await?.pop();
        Ok(next.filter(|session| session.id == id))
    }
    async fn batch(&self, id: BatchId) -> Result<Option<BatchInfo>>;
    /// A session's batches, newest first, those behind `after`, at most `max`.
    async fn batches(
        &self,
        session: EnumerationSessionId,
        after: Option<BatchId>,
        max: u32,
    ) -> Result<Vec<BatchInfo>>;
    async fn last_batch(&self, session: EnumerationSessionId) -> Result<Option<BatchInfo>> {
        Ok(self.batches(session, None, 1).await?.pop())
    }
    async fn checkpoint(&self, id: CheckpointId) -> Result<Option<Checkpoint>>;
    /// The one of this target: `session:ID`, or what [`super::OrchestratorStore::save_checkpoint`] was given.
    async fn checkpoint_of(&self, target: &str) -> Result<Option<Checkpoint>>;
    async fn target(&self, id: ScanTargetId) -> Result<Option<ScanTarget>>;
    /// Those with this address: a repository and a web address may be written alike.
    async fn targets_by_url(&self, url: &str) -> Result<Vec<ScanTarget>>;
    async fn target_by_type_and_id(
        &self,
        target_type: TargetType,
        target_id: i64,
    ) -> Result<Option<ScanTarget>> {
        self.target(target_type.id(target_id)).await
    }
    /// Targets in the order of their ids, those behind `after`, at most `max`.
    async fn targets(
        &self,
        filter: TargetFilter,
        after: Option<ScanTargetId>,
        max: u32,
    ) -> Result<Vec<ScanTarget>>;
    /// A job's occurrences, ordered by data source, object, span and rule, from one snapshot;
    /// within a table, by column and row.
    async fn occurrences(&self, master: MasterJobId, filter: OccurrenceFilter) -> Result<OccurrenceStream>;
    /// The sources of a master job, or of each source the latest job that came to its end, by name.
    async fn catalog_sources(&self, master: Option<MasterJobId>) -> Result<Vec<CatalogSource>>;
    /// What a job observed of the tables of a source: by key, nested path and part, those behind `after`, at most
    /// `max`. A part that was observed twice, because its source listed it twice, is there once.
    async fn table_observations(
        &self,
        source: &CatalogSource,
        after: Option<TableCursor>,
        max: u32,
    ) -> Result<TablePage>;
    /// What was not scanned whole, by name, in the order of keys; at most `max`.
    async fn problems(&self, master: MasterJobId, max: u32) -> Result<Vec<Problem>>;
}
