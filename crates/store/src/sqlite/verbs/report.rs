//! What reports read, each verb handed to the module that knows its statements.

use async_trait::async_trait;
use domesday_model::{
    BatchId, CheckpointId, EnumerationSessionId, MasterJobId, RuleSetHash, ScanTargetId, TaskId,
};

use crate::roles::ReportStore;
use crate::sqlite::{
    Result, SqliteStore, datasources, jobs, operations, reports, sessions, tables, targets, templates,
};
use crate::types::*;
use crate::values;

#[async_trait]
impl ReportStore for SqliteStore {
    async fn managed_datasources(&self) -> Result<Vec<ManagedDatasource>> {
        self.read(|c| datasources::managed(c, None)).await
    }

    async fn managed_datasource(&self, name: &str) -> Result<Option<ManagedDatasource>> {
        let name = name.to_owned();
        self.read(move |c| Ok(datasources::managed(c, Some(&name))?.pop())).await
    }

    async fn templates(&self) -> Result<Vec<StoredTemplate>> {
        self.read(|c| templates::stored(c, None)).await
    }

    async fn template(&self, name: &str) -> Result<Option<StoredTemplate>> {
        let name = name.to_owned();
        self.read(move |c| Ok(templates::stored(c, Some(&name))?.pop())).await
    }

    async fn due_templates(&self) -> Result<DueTemplates> {
        self.read(templates::due).await
    }

    async fn master_job(&self, id: MasterJobId) -> Result<Option<MasterJob>> {
        self.read(move |c| jobs::master_job(c, id)).await
    }

    async fn master_jobs(&self, max: u32) -> Result<Vec<MasterJob>> {
        self.read(move |c| jobs::master_jobs(c, max)).await
    }

    async fn child_jobs(&self, master: MasterJobId) -> Result<Vec<ChildJobState>> {
        self.read(move |c| operations::child_jobs(c, master)).await
    }

    async fn summary(&self, master: MasterJobId) -> Result<JobSummary> {
        self.read(move |c| reports::summary(c, master)).await
    }

    async fn datasources(&self, master: MasterJobId) -> Result<Vec<Datasource>> {
        self.read(move |c| reports::datasources(c, master)).await
    }

    async fn job_rule_set(&self, master: MasterJobId) -> Result<Option<RuleSetHash>> {
        self.read(move |c| reports::from_configuration(c, master, values::rule_set_of)).await
    }

    async fn job_fingerprint_key(&self, master: MasterJobId) -> Result<Option<String>> {
        self.read(move |c| reports::from_configuration(c, master, values::fingerprint_key_of)).await
    }

    async fn tasks(&self, filter: TaskFilter, max: u32) -> Result<Vec<TaskInfo>> {
        self.read(move |c| operations::tasks(c, &filter, max)).await
    }

    async fn task(&self, id: TaskId) -> Result<Option<TaskInfo>> {
        self.read(move |c| operations::task(c, id)).await
    }

    async fn fleet(&self) -> Result<Fleet> {
        self.read(operations::fleet).await
    }

    async fn sessions(
        &self,
        filter: SessionFilter,
        after: Option<EnumerationSessionId>,
        max: u32,
    ) -> Result<Vec<SessionInfo>> {
        self.read(move |c| sessions::sessions(c, &filter, after, max)).await
    }

    async fn batch(&self, id: BatchId) -> Result<Option<BatchInfo>> {
        self.read(move |c| sessions::batch(c, id)).await
    }

    async fn batches(
        &self,
        session: EnumerationSessionId,
        after: Option<BatchId>,
        max: u32,
    ) -> Result<Vec<BatchInfo>> {
        self.read(move |c| sessions::batches(c, session, after, max)).await
    }

    async fn checkpoint(&self, id: CheckpointId) -> Result<Option<Checkpoint>> {
        self.read(move |c| sessions::checkpoint(c, id)).await
    }

    async fn checkpoint_of(&self, target: &str) -> Result<Option<Checkpoint>> {
        let target = target.to_owned();
        self.read(move |c| sessions::checkpoint_of(c, &target)).await
    }

    async fn target(&self, id: ScanTargetId) -> Result<Option<ScanTarget>> {
        self.read(move |c| targets::target(c, id)).await
    }

    async fn targets_by_url(&self, url: &str) -> Result<Vec<ScanTarget>> {
        let url = url.to_owned();
        self.read(move |c| targets::by_url(c, &url)).await
    }

    async fn targets(
        &self,
        filter: TargetFilter,
        after: Option<ScanTargetId>,
        max: u32,
    ) -> Result<Vec<ScanTarget>> {
        self.read(move |c| targets::targets(c, &filter, after, max)).await
    }

    async fn occurrences(&self, master: MasterJobId, filter: OccurrenceFilter) -> Result<OccurrenceStream> {
        self.readers.stream(move |c, emit| reports::occurrences(c, master, &filter, emit)).await
    }

    async fn catalog_sources(&self, master: Option<MasterJobId>) -> Result<Vec<CatalogSource>> {
        self.read(move |c| tables::sources(c, master)).await
    }

    async fn table_observations(
        &self,
        source: &CatalogSource,
        after: Option<TableCursor>,
        max: u32,
    ) -> Result<TablePage> {
        let (job, datasource) = (source.job, source.datasource);
        self.read(move |c| tables::page(c, job, datasource, after.as_ref(), max)).await
    }

    async fn problems(&self, master: MasterJobId, max: u32) -> Result<Vec<Problem>> {
        self.read(move |c| reports::problems(c, master, max)).await
    }
}
