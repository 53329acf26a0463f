//! What reports read, each verb handed to the module that knows its statements.

use async_trait::async_trait;
use domesday_model::{
    BatchId, CheckpointId, EnumerationSessionId, MasterJobId, RuleSetHash, ScanTargetId, TaskId,
};

use crate::postgres::pool::Call;
use crate::postgres::transaction::{params, transact};
use crate::postgres::{
    PostgresStore, Result, datasources, jobs, operations, reports, sessions, tables, targets, templates,
};
use crate::roles::ReportStore;
use crate::types::*;

#[async_trait]
impl ReportStore for PostgresStore {
    async fn managed_datasources(&self) -> Result<Vec<ManagedDatasource>> {
        let rows = self.read(datasources::MANAGED, params![None::<String>]).await?;
        rows.iter().map(datasources::managed).collect()
    }

    async fn managed_datasource(&self, name: &str) -> Result<Option<ManagedDatasource>> {
        let rows = self.read(datasources::MANAGED, params![name.to_owned()]).await?;
        rows.first().map(datasources::managed).transpose()
    }

    async fn templates(&self) -> Result<Vec<StoredTemplate>> {
        let rows = self.read(templates::TEMPLATES, params![None::<String>]).await?;
        rows.iter().map(templates::stored).collect()
    }

    async fn template(&self, name: &str) -> Result<Option<StoredTemplate>> {
        let rows = self.read(templates::TEMPLATES, params![name.to_owned()]).await?;
        rows.first().map(templates::stored).transpose()
    }

    async fn due_templates(&self) -> Result<DueTemplates> {
        transact!(self.snapshot(), |tx| templates::due(&mut tx))
    }

    async fn master_job(&self, id: MasterJobId) -> Result<Option<MasterJob>> {
        let rows = self.read(jobs::MASTER_JOB, params![id.0.to_vec()]).await?;
        Ok(jobs::master_jobs(&rows)?.pop())
    }

    async fn master_jobs(&self, max: u32) -> Result<Vec<MasterJob>> {
        let rows = self.read(jobs::MASTER_JOBS, params![i64::from(max)]).await?;
        jobs::master_jobs(&rows)
    }

    async fn child_jobs(&self, master: MasterJobId) -> Result<Vec<ChildJobState>> {
        transact!(self.snapshot(), |tx| operations::child_jobs(&mut tx, master))
    }

    async fn summary(&self, master: MasterJobId) -> Result<JobSummary> {
        transact!(self.snapshot(), |tx| reports::summary(&mut tx, master))
    }

    async fn datasources(&self, master: MasterJobId) -> Result<Vec<Datasource>> {
        let rows = self.read(reports::DATASOURCES, params![master.0.to_vec()]).await?;
        rows.iter().map(reports::datasource).collect()
    }

    async fn job_rule_set(&self, master: MasterJobId) -> Result<Option<RuleSetHash>> {
        let rows = self.read(reports::CONFIGURATION, params![master.0.to_vec()]).await?;
        rows.first().map(reports::job_rule_set).transpose()
    }

    async fn job_fingerprint_key(&self, master: MasterJobId) -> Result<Option<String>> {
        let rows = self.read(reports::CONFIGURATION, params![master.0.to_vec()]).await?;
        rows.first().map(reports::job_fingerprint_key).transpose()
    }

    async fn tasks(&self, filter: TaskFilter, max: u32) -> Result<Vec<TaskInfo>> {
        let rows = self.read(operations::TASKS, operations::tasks_params(None, &filter, max)).await?;
        rows.iter().map(operations::task_info).collect()
    }

    async fn task(&self, id: TaskId) -> Result<Option<TaskInfo>> {
        let params = operations::tasks_params(Some(id), &TaskFilter::default(), 1);
        let rows = self.read(operations::TASKS, params).await?;
        rows.first().map(operations::task_info).transpose()
    }

    async fn fleet(&self) -> Result<Fleet> {
        transact!(self.snapshot(), |tx| operations::fleet(&mut tx))
    }

    async fn sessions(
        &self,
        filter: SessionFilter,
        after: Option<EnumerationSessionId>,
        max: u32,
    ) -> Result<Vec<SessionInfo>> {
        let Call { sql, params } = sessions::page(&filter, after, max);
        self.read(sql, params).await?.iter().map(sessions::session).collect()
    }

    async fn batch(&self, id: BatchId) -> Result<Option<BatchInfo>> {
        let rows = self.read(sessions::BATCH, params![id.0]).await?;
        rows.first().map(sessions::batch_info).transpose()
    }

    async fn batches(
        &self,
        session: EnumerationSessionId,
        after: Option<BatchId>,
        max: u32,
    ) -> Result<Vec<BatchInfo>> {
        let before = after.map_or(i64::MAX, |id| id.0);
        let rows = self.read(sessions::BATCHES, params![session.0, before, i64::from(max)]).await?;
        rows.iter().map(sessions::batch_info).collect()
    }

    async fn checkpoint(&self, id: CheckpointId) -> Result<Option<Checkpoint>> {
        let rows = self.read(sessions::CHECKPOINT, params![id.0]).await?;
        rows.first().map(|row| sessions::checkpoint_from(row, 0)).transpose()
    }

    async fn checkpoint_of(&self, target: &str) -> Result<Option<Checkpoint>> {
        let Call { sql, params } = sessions::checkpoint_of(target);
        let rows = self.read(sql, params).await?;
        rows.first().map(|row| sessions::checkpoint_from(row, 0)).transpose()
    }

    async fn target(&self, id: ScanTargetId) -> Result<Option<ScanTarget>> {
        let rows = self.read(targets::TARGET, params![id.0.to_vec()]).await?;
        rows.first().map(targets::scan_target).transpose()
    }

    async fn targets_by_url(&self, url: &str) -> Result<Vec<ScanTarget>> {
        let rows = self.read(targets::BY_URL, params![targets::url_hash(url)]).await?;
        rows.iter().map(targets::scan_target).collect()
    }

    async fn targets(
        &self,
        filter: TargetFilter,
        after: Option<ScanTargetId>,
        max: u32,
    ) -> Result<Vec<ScanTarget>> {
        let Call { sql, params } = targets::page(&filter, after, max);
        self.read(sql, params).await?.iter().map(targets::scan_target).collect()
    }

    async fn occurrences(&self, master: MasterJobId, filter: OccurrenceFilter) -> Result<OccurrenceStream> {
        reports::occurrences(&self.pool, master, &filter).await
    }

    async fn catalog_sources(&self, master: Option<MasterJobId>) -> Result<Vec<CatalogSource>> {
        let params = params![master.map(|master| master.0.to_vec())];
        self.read(tables::SOURCES, params).await?.iter().map(tables::source).collect()
    }

    async fn table_observations(
        &self,
        source: &CatalogSource,
        after: Option<TableCursor>,
        max: u32,
    ) -> Result<TablePage> {
        let Call { sql, params } = tables::page(source, after, max);
        tables::observations(&self.read(sql, params).await?, max)
    }

    async fn problems(&self, master: MasterJobId, max: u32) -> Result<Vec<Problem>> {
        let rows = self.read(reports::PROBLEMS, params![master.0.to_vec(), i64::from(max)]).await?;
        rows.iter().map(reports::problem).collect()
    }
}
