//! [`ReportStore`]: what the book says, each verb on one snapshot.

use async_trait::async_trait;
use domesday_model::{
    BatchId, CheckpointId, ConfigurationUsed, EnumerationSessionId, MasterJobId, RuleSetHash, ScanTargetId,
    SessionStatus, TargetType, TaskId,
};
use tokio_postgres::Row;

use super::pool::{Call, Param};
use super::rows::{all_of, get, only, text};
use super::transaction::{Tx, params, transact};
use super::{PostgresStore, Result, occurrences, queries, templates};
use crate::decide::fleet::{SHOWN_AFTER_END, fleet_groups};
use crate::decide::jobs::fold_master_jobs;
use crate::decide::sessions::checkpoint_session;
use crate::decide::targets::clean;
use crate::queries::statement;
use crate::roles::ReportStore;
use crate::rows::{self, Columns};
use crate::types::*;
use crate::values::{self, millis};

#[async_trait]
impl ReportStore for PostgresStore {
    async fn managed_datasources(&self) -> Result<Vec<ManagedDatasource>> {
        self.all(MANAGED_DATASOURCES, params![None::<String>]).await
    }

    async fn managed_datasource(&self, name: &str) -> Result<Option<ManagedDatasource>> {
        self.one(MANAGED_DATASOURCES, params![name.to_owned()]).await
    }

    async fn templates(&self) -> Result<Vec<StoredTemplate>> {
        self.all(templates::TEMPLATES, params![None::<String>]).await
    }

    async fn template(&self, name: &str) -> Result<Option<StoredTemplate>> {
        self.one(templates::TEMPLATES, params![name.to_owned()]).await
    }

    async fn due_templates(&self) -> Result<DueTemplates> {
        transact!(self.snapshot(), |tx| templates::due(&mut tx))
    }

    async fn master_job(&self, id: MasterJobId) -> Result<Option<MasterJob>> {
        const GET: &str = statement(queries::JOBS, "master_job");
        Ok(fold_master_jobs(self.all(GET, params![id.0.to_vec()]).await?).pop())
    }

    async fn master_jobs(&self, max: u32) -> Result<Vec<MasterJob>> {
        const NEWEST: &str = statement(queries::JOBS, "master_jobs");
        Ok(fold_master_jobs(self.all(NEWEST, params![i64::from(max)]).await?))
    }

    async fn child_jobs(&self, master: MasterJobId) -> Result<Vec<ChildJobState>> {
        const CHILDREN: &str = statement(queries::OPERATIONS, "child_jobs");
        transact!(self.snapshot(), |tx| async {
            let call = Call { sql: CHILDREN, params: params![master.0.to_vec()] };
            let [rows] = tx.query_last([call]).await?;
            rows.iter().map(|row| rows::child_job_state(row, progress(row)?)).collect()
        })
    }

    async fn summary(&self, master: MasterJobId) -> Result<JobSummary> {
        transact!(self.snapshot(), |tx| summary(&mut tx, master))
    }

    async fn datasources(&self, master: MasterJobId) -> Result<Vec<Datasource>> {
        const DATASOURCES: &str = statement(queries::RESULTS, "job_datasources");
        self.all(DATASOURCES, params![master.0.to_vec()]).await
    }

    async fn job_rule_set(&self, master: MasterJobId) -> Result<Option<RuleSetHash>> {
        let rows = self.read(CONFIGURATION, params![master.0.to_vec()]).await?;
        rows.first().map(|row| row.parsed(0, values::rule_set_of)).transpose()
    }

    async fn job_fingerprint_key(&self, master: MasterJobId) -> Result<Option<String>> {
        let rows = self.read(CONFIGURATION, params![master.0.to_vec()]).await?;
        rows.first().map(|row| row.parsed(0, values::fingerprint_key_of)).transpose()
    }

    async fn job_configuration_used(&self, master: MasterJobId) -> Result<Option<ConfigurationUsed>> {
        let rows = self.read(CONFIGURATION, params![master.0.to_vec()]).await?;
        let used = rows.first().map(|row| row.parsed(0, values::configuration_used_of)).transpose()?;
        Ok(used.flatten())
    }

    async fn tasks(&self, filter: TaskFilter, max: u32) -> Result<Vec<TaskInfo>> {
        self.all(TASKS, tasks_params(None, &filter, max)).await
    }

    async fn task(&self, id: TaskId) -> Result<Option<TaskInfo>> {
        self.one(TASKS, tasks_params(Some(id), &TaskFilter::default(), 1)).await
    }

    async fn fleet(&self) -> Result<Fleet> {
        transact!(self.snapshot(), |tx| fleet(&mut tx))
    }

    async fn sessions(
        &self,
        filter: SessionFilter,
        after: Option<EnumerationSessionId>,
        max: u32,
    ) -> Result<Vec<SessionInfo>> {
        const SESSIONS: &str = statement(queries::SESSIONS, "sessions");
        let params = params![
            after.map_or(0, |id| id.0),
            filter.master.map(|master| master.0.to_vec()),
            filter.status.map(SessionStatus::as_str),
            filter.active_only,
            i64::from(max),
        ];
        let rows = self.read(SESSIONS, params).await?;
        rows.iter().map(|row| rows::session(row, rows::session_metrics(row, 17)?, row.value(21)?)).collect()
    }

    async fn batch(&self, id: BatchId) -> Result<Option<BatchInfo>> {
        const BATCH: &str = statement(queries::SESSIONS, "batch");
        self.one(BATCH, params![id.0]).await
    }

    async fn batches(
        &self,
        session: EnumerationSessionId,
        after: Option<BatchId>,
        max: u32,
    ) -> Result<Vec<BatchInfo>> {
        const BATCHES: &str = statement(queries::SESSIONS, "batches");
        let before = after.map_or(i64::MAX, |id| id.0);
        self.all(BATCHES, params![session.0, before, i64::from(max)]).await
    }

    async fn checkpoint(&self, id: CheckpointId) -> Result<Option<Checkpoint>> {
        const GET: &str = statement(queries::SESSIONS, "checkpoint");
        self.one(GET, params![id.0]).await
    }

    /// A session's is that of its last batch; others were saved.
    async fn checkpoint_of(&self, target: &str) -> Result<Option<Checkpoint>> {
        const SAVED: &str = statement(queries::SESSIONS, "checkpoint_of");
        const OF_SESSION: &str = statement(queries::SESSIONS, "checkpoint_of_session");
        match checkpoint_session(target) {
            Some(session) => self.one(OF_SESSION, params![session.0]).await,
            None => self.one(SAVED, params![text(target)]).await,
        }
    }

    async fn target(&self, id: ScanTargetId) -> Result<Option<ScanTarget>> {
        const GET: &str = statement(queries::TARGETS, "target");
        let claimed: Vec<ScanTarget> = self.all(GET, params![id.0.to_vec()]).await?;
        // A worker may have written a row of its own group under any id.
        Ok(claimed.into_iter().find(|target| target.target_type.id(target.target_id) == id))
    }

    async fn targets_by_url(&self, url: &str) -> Result<Vec<ScanTarget>> {
        const GET: &str = statement(queries::TARGETS, "targets_by_url");
        self.all(GET, params![clean(url)]).await
    }

    async fn targets(
        &self,
        filter: TargetFilter,
        after: Option<ScanTargetId>,
        max: u32,
    ) -> Result<Vec<ScanTarget>> {
        const ALL: &str = statement(queries::TARGETS, "targets");
        const OF_JOB: &str = statement(queries::TARGETS, "targets_of_job");
        const OF_SESSION: &str = statement(queries::TARGETS, "targets_of_session");
        let after = after.map_or(Vec::new(), |id| id.0.to_vec());
        let (of_type, max) = (filter.target_type.map(TargetType::as_str), i64::from(max));
        match (filter.session, filter.master) {
            (Some(session), _) => self.all(OF_SESSION, params![after, of_type, max, session.0]).await,
            (None, Some(master)) => self.all(OF_JOB, params![after, of_type, max, master.0.to_vec()]).await,
            (None, None) => self.all(ALL, params![after, of_type, max]).await,
        }
    }

    async fn occurrences(&self, master: MasterJobId, filter: OccurrenceFilter) -> Result<OccurrenceStream> {
        occurrences::stream(&self.pool, master, &filter).await
    }

    async fn catalog_sources(&self, master: Option<MasterJobId>) -> Result<Vec<CatalogSource>> {
        const SOURCES: &str = statement(queries::TABLES, "catalog_sources");
        self.all(SOURCES, params![master.map(|master| master.0.to_vec())]).await
    }

    async fn table_observations(
        &self,
        source: &CatalogSource,
        after: Option<TableCursor>,
        max: u32,
    ) -> Result<TablePage> {
        const TABLES: &str = statement(queries::TABLES, "table_observations");
        let (key, nested, part) = match after {
            Some(TableCursor { key, nested, part }) => (Some(key.0), Some(nested), Some(part.0)),
            None => (None, None, None),
        };
        let max = max.max(1);
        let params = params![source.job.0, source.datasource.0, key, nested, part, i64::from(max)];
        Ok(TablePage::new(self.all(TABLES, params).await?, max))
    }

    async fn problems(&self, master: MasterJobId, max: u32) -> Result<Vec<Problem>> {
        const PROBLEMS: &str = statement(queries::RESULTS, "problems");
        self.all(PROBLEMS, params![master.0.to_vec(), i64::from(max)]).await
    }
}

const MANAGED_DATASOURCES: &str = statement(queries::DATASOURCES, "managed_datasources");
/// The configuration of a master job's children, which agree but for their sources.
const CONFIGURATION: &str = statement(queries::RESULTS, "job_configuration");
const TASKS: &str = statement(queries::OPERATIONS, "tasks");

/// Parameters of [`TASKS`].
fn tasks_params(id: Option<TaskId>, filter: &TaskFilter, max: u32) -> Vec<Param> {
    params![
        id.map(|id| id.0),
        filter.master.map(|master| master.0.to_vec()),
        filter.status.map(|status| status.as_str()),
        filter.task_type.map(|task_type| task_type.as_str()),
        i64::from(max),
        filter.session.map(|session| session.0),
        filter.after.map_or(0, |task| task.0),
    ]
}

/// Columns as in the statement `child_jobs`.
fn progress(row: &Row) -> Result<JobProgress> {
    Ok(JobProgress {
        objects_listed: row.unsigned(12)?,
        bytes_listed: row.unsigned(13)?,
        objects_done: row.unsigned(14)?,
        bytes_done: row.unsigned(15)?,
        tasks_pending: row.unsigned(16)?,
        tasks_running: row.unsigned(17)?,
        tasks_done: row.unsigned(18)?,
        tasks_failed: row.unsigned(19)?,
        listing_done: row.value(20)?,
        objects_unchanged: row.unsigned(21)?,
        waiting_until_ms: row.value(22)?,
    })
}

async fn summary(tx: &mut Tx<'_>, master: MasterJobId) -> Result<JobSummary> {
    const UNITS: &str = statement(queries::RESULTS, "summary_units");
    const TASKS: &str = statement(queries::RESULTS, "summary_tasks");
    const SKIPS: &str = statement(queries::RESULTS, "summary_skips");
    const FAILED_UNITS: &str = statement(queries::RESULTS, "summary_failed_units");
    const OBJECTS: &str = statement(queries::RESULTS, "summary_object_scans");
    const SUPPRESSED: &str = statement(queries::RESULTS, "summary_suppressed");
    let calls = [UNITS, TASKS, SKIPS, FAILED_UNITS, OBJECTS, SUPPRESSED];
    let calls = calls.map(|sql| Call { sql, params: params![master.0.to_vec()] });
    let [units, tasks, skips, failed, objects, suppressed] = tx.query_last(calls).await?;
    let mut summary = JobSummary::default();
    units.iter().try_for_each(|row| summary.add_units(row))?;
    tasks.iter().try_for_each(|row| summary.add_tasks(row))?;
    skips.iter().try_for_each(|row| summary.add_skips(row))?;
    failed.iter().try_for_each(|row| summary.add_failed_units(row))?;
    objects.iter().try_for_each(|row| summary.add_objects(row))?;
    suppressed.iter().try_for_each(|row| summary.add_suppressed(row))?;
    Ok(summary)
}

async fn fleet(tx: &mut Tx<'_>) -> Result<Fleet> {
    const WORKERS: &str = statement(queries::OPERATIONS, "fleet_workers");
    const ORCHESTRATORS: &str = statement(queries::OPERATIONS, "fleet_orchestrators");
    const GROUPS: &str = statement(queries::OPERATIONS, "fleet_groups");
    let since = || params![millis(SHOWN_AFTER_END)];
    let calls = [
        Call { sql: templates::NOW, params: Vec::new() },
        Call { sql: ORCHESTRATORS, params: since() },
        Call { sql: WORKERS, params: since() },
        Call { sql: GROUPS, params: Vec::new() },
    ];
    let [now, orchestrators, workers, groups] = tx.query_last(calls).await?;
    let (orchestrators, workers) = (all_of(&orchestrators)?, all_of(&workers)?);
    let groups = fleet_groups(all_of(&groups)?, [&orchestrators, &workers]);
    Ok(Fleet { now_ms: get(only(&now)?, 0)?, orchestrators, workers, groups })
}
