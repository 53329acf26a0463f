//! [`ReportStore`]: what the book says, each verb on one snapshot.

use async_trait::async_trait;
use domesday_model::{
    BatchId, CheckpointId, ConfigurationUsed, EnumerationSessionId, JobId, MasterJobId, RuleSetHash,
    ScanTargetId, Score, SessionStatus, TargetType, TaskId,
};
use rusqlite::{Connection, Row, params};

use super::rows::Statements;
use super::{Result, SqliteStore, jobs, queries, templates};
use crate::decide::fleet::{SHOWN_AFTER_END, fleet_groups};
use crate::decide::targets::clean;
use crate::queries::statement;
use crate::roles::ReportStore;
use crate::rows::{self, Columns, FromRow};
use crate::types::*;
use crate::values::{self, millis};

#[async_trait]
impl ReportStore for SqliteStore {
    async fn managed_datasources(&self) -> Result<Vec<ManagedDatasource>> {
        self.read(|c| c.all(MANAGED_DATASOURCES, [None::<String>])).await
    }

    async fn managed_datasource(&self, name: &str) -> Result<Option<ManagedDatasource>> {
        let name = name.to_owned();
        self.read(move |c| c.one(MANAGED_DATASOURCES, [name])).await
    }

    async fn templates(&self) -> Result<Vec<StoredTemplate>> {
        self.read(templates::all).await
    }

    async fn template(&self, name: &str) -> Result<Option<StoredTemplate>> {
        let name = name.to_owned();
        self.read(move |c| c.one(templates::TEMPLATES, [name])).await
    }

    async fn due_templates(&self) -> Result<DueTemplates> {
        self.read(templates::due).await
    }

    async fn master_job(&self, id: MasterJobId) -> Result<Option<MasterJob>> {
        self.read(move |c| jobs::master_job(c, id)).await
    }

    async fn master_jobs(&self, max: u32) -> Result<Vec<MasterJob>> {
        const IDS: &str = statement(queries::JOBS, "master_job_ids");
        self.read(move |c| {
            let ids: Vec<[u8; 16]> = c.all(IDS, [max])?;
            ids.into_iter().filter_map(|id| jobs::master_job(c, MasterJobId(id)).transpose()).collect()
        })
        .await
    }

    async fn child_jobs(&self, master: MasterJobId) -> Result<Vec<ChildJobState>> {
        const CHILDREN: &str = statement(queries::OPERATIONS, "child_jobs");
        self.read(move |c| {
            let mut jobs =
                c.rows(CHILDREN, [master.0], |row| rows::child_job_state(row, JobProgress::default()))?;
            for job in &mut jobs {
                job.progress = progress(c, job.job)?;
            }
            Ok(jobs)
        })
        .await
    }

    async fn summary(&self, master: MasterJobId) -> Result<JobSummary> {
        self.read(move |c| summary(c, master)).await
    }

    async fn datasources(&self, master: MasterJobId) -> Result<Vec<Datasource>> {
        const DATASOURCES: &str = statement(queries::RESULTS, "job_datasources");
        self.read(move |c| c.all(DATASOURCES, [master.0])).await
    }

    async fn job_rule_set(&self, master: MasterJobId) -> Result<Option<RuleSetHash>> {
        self.read(move |c| c.row(CONFIGURATION, [master.0], |row| row.parsed(0, values::rule_set_of))).await
    }

    async fn job_fingerprint_key(&self, master: MasterJobId) -> Result<Option<String>> {
        self.read(move |c| c.row(CONFIGURATION, [master.0], |row| row.parsed(0, values::fingerprint_key_of)))
            .await
    }

    async fn job_configuration_used(&self, master: MasterJobId) -> Result<Option<ConfigurationUsed>> {
        let used = |row: &Row<'_>| row.parsed(0, values::configuration_used_of);
        Ok(self.read(move |c| c.row(CONFIGURATION, [master.0], used)).await?.flatten())
    }

    async fn tasks(&self, filter: TaskFilter, max: u32) -> Result<Vec<TaskInfo>> {
        const TASKS: &str = statement(queries::OPERATIONS, "tasks");
        self.read(move |c| {
            let parameters = params![
                filter.master.map(|master| master.0),
                filter.status.map(|status| status.as_str()),
                filter.task_type.map(|task_type| task_type.as_str()),
                max,
                filter.session.map(|session| session.0),
                filter.after.map_or(0, |task| task.0),
            ];
            c.all(TASKS, parameters)
        })
        .await
    }

    async fn task(&self, id: TaskId) -> Result<Option<TaskInfo>> {
        const TASK: &str = statement(queries::OPERATIONS, "task");
        self.read(move |c| c.one(TASK, [id.0])).await
    }

    async fn fleet(&self) -> Result<Fleet> {
        const WORKERS: &str = statement(queries::OPERATIONS, "fleet_workers");
        const ORCHESTRATORS: &str = statement(queries::OPERATIONS, "fleet_orchestrators");
        const GROUPS: &str = statement(queries::OPERATIONS, "fleet_groups");
        self.read(|c| {
            let since = millis(SHOWN_AFTER_END);
            let orchestrators: Vec<ProcessState> = c.all(ORCHESTRATORS, [since])?;
            let workers: Vec<ProcessState> = c.all(WORKERS, [since])?;
            let groups = fleet_groups(c.all(GROUPS, [])?, [&orchestrators, &workers]);
            Ok(Fleet { now_ms: templates::now(c)?, orchestrators, workers, groups })
        })
        .await
    }

    async fn sessions(
        &self,
        filter: SessionFilter,
        after: Option<EnumerationSessionId>,
        max: u32,
    ) -> Result<Vec<SessionInfo>> {
        self.read(move |c| sessions(c, &filter, after, max)).await
    }

    async fn batch(&self, id: BatchId) -> Result<Option<BatchInfo>> {
        const BATCH: &str = statement(queries::SESSIONS, "batch");
        self.read(move |c| c.one(BATCH, [id.0])).await
    }

    async fn batches(
        &self,
        session: EnumerationSessionId,
        after: Option<BatchId>,
        max: u32,
    ) -> Result<Vec<BatchInfo>> {
        const BATCHES: &str = statement(queries::SESSIONS, "batches");
        let before = after.map_or(i64::MAX, |id| id.0);
        self.read(move |c| c.all(BATCHES, params![session.0, before, max])).await
    }

    async fn checkpoint(&self, id: CheckpointId) -> Result<Option<Checkpoint>> {
        const GET: &str = statement(queries::SESSIONS, "checkpoint");
        self.read(move |c| c.one(GET, [id.0])).await
    }

    async fn checkpoint_of(&self, target: &str) -> Result<Option<Checkpoint>> {
        const GET: &str = statement(queries::SESSIONS, "checkpoint_of");
        let target = target.to_owned();
        self.read(move |c| c.one(GET, [target])).await
    }

    async fn target(&self, id: ScanTargetId) -> Result<Option<ScanTarget>> {
        const GET: &str = statement(queries::TARGETS, "target");
        self.read(move |c| c.one(GET, [id.0])).await
    }

    async fn targets_by_url(&self, url: &str) -> Result<Vec<ScanTarget>> {
        const GET: &str = statement(queries::TARGETS, "targets_by_url");
        let url = clean(url);
        self.read(move |c| c.all(GET, [url])).await
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
        let of_type = filter.target_type.map(TargetType::as_str);
        self.read(move |c| match (filter.session, filter.master) {
            (Some(session), _) => c.all(OF_SESSION, params![after, of_type, max, session.0]),
            (None, Some(master)) => c.all(OF_JOB, params![after, of_type, max, master.0]),
            (None, None) => c.all(ALL, params![after, of_type, max]),
        })
        .await
    }

    async fn occurrences(&self, master: MasterJobId, filter: OccurrenceFilter) -> Result<OccurrenceStream> {
        self.readers.stream(move |c, emit| occurrences(c, master, &filter, emit)).await
    }

    async fn catalog_sources(&self, master: Option<MasterJobId>) -> Result<Vec<CatalogSource>> {
        const SOURCES: &str = statement(queries::TABLES, "catalog_sources");
        self.read(move |c| c.all(SOURCES, [master.map(|master| master.0)])).await
    }

    async fn table_observations(
        &self,
        source: &CatalogSource,
        after: Option<TableCursor>,
        max: u32,
    ) -> Result<TablePage> {
        const TABLES: &str = statement(queries::TABLES, "table_observations");
        let (job, datasource, max) = (source.job.0, source.datasource.0, max.max(1));
        self.read(move |c| {
            let after = after.as_ref();
            let (key, part) = (after.map(|after| &after.key.0), after.map(|after| &after.part.0));
            let nested = after.map(|after| &after.nested);
            Ok(TablePage::new(c.all(TABLES, params![job, datasource, key, nested, part, max])?, max))
        })
        .await
    }

    async fn problems(&self, master: MasterJobId, max: u32) -> Result<Vec<Problem>> {
        const PROBLEMS: &str = statement(queries::RESULTS, "problems");
        self.read(move |c| c.all(PROBLEMS, params![master.0, max])).await
    }
}

const MANAGED_DATASOURCES: &str = statement(queries::DATASOURCES, "managed_datasources");
/// The configuration of a master job's children, which agree but for their sources.
const CONFIGURATION: &str = statement(queries::RESULTS, "job_configuration");

fn progress(c: &Connection, job: JobId) -> Result<JobProgress> {
    const UNITS: &str = statement(queries::OPERATIONS, "units_progress");
    const TASKS: &str = statement(queries::OPERATIONS, "tasks_progress");
    const WAITING: &str = statement(queries::OPERATIONS, "waiting_until");
    let (listed, bytes_listed, unchanged): (i64, i64, i64) = c.only(UNITS, [job.0])?;
    let waiting_until_ms = c.only(WAITING, [job.0])?;
    let progress = c.row(TASKS, [job.0], |row| {
        Ok(JobProgress {
            objects_listed: listed.cast_unsigned(),
            bytes_listed: bytes_listed.cast_unsigned(),
            objects_unchanged: unchanged.cast_unsigned(),
            objects_done: row.unsigned(0)?,
            bytes_done: row.unsigned(1)?,
            tasks_pending: row.unsigned(2)?,
            tasks_running: row.unsigned(3)?,
            tasks_done: row.unsigned(4)?,
            tasks_failed: row.unsigned(5)?,
            listing_done: row.value(6)?,
            waiting_until_ms,
        })
    })?;
    Ok(progress.unwrap_or_default())
}

fn summary(c: &Connection, master: MasterJobId) -> Result<JobSummary> {
    const UNITS: &str = statement(queries::RESULTS, "summary_units");
    const TASKS: &str = statement(queries::RESULTS, "summary_tasks");
    const SKIPS: &str = statement(queries::RESULTS, "summary_skips");
    const FAILED_UNITS: &str = statement(queries::RESULTS, "summary_failed_units");
    const OBJECTS: &str = statement(queries::RESULTS, "summary_object_scans");
    const SUPPRESSED: &str = statement(queries::RESULTS, "summary_suppressed");
    let mut summary = JobSummary::default();
    let mut each = |sql, add: fn(&mut JobSummary, &Row<'_>) -> Result<()>| {
        c.rows(sql, [master.0], |row| add(&mut summary, row)).map(drop)
    };
    each(UNITS, |summary, row| summary.add_units(row))?;
    each(TASKS, |summary, row| summary.add_tasks(row))?;
    each(SKIPS, |summary, row| summary.add_skips(row))?;
    each(FAILED_UNITS, |summary, row| summary.add_failed_units(row))?;
    each(OBJECTS, |summary, row| summary.add_objects(row))?;
    each(SUPPRESSED, |summary, row| summary.add_suppressed(row))?;
    Ok(summary)
}

fn sessions(
    c: &Connection,
    filter: &SessionFilter,
    after: Option<EnumerationSessionId>,
    max: u32,
) -> Result<Vec<SessionInfo>> {
    const SESSIONS: &str = statement(queries::SESSIONS, "sessions");
    const METRICS: &str = statement(queries::SESSIONS, "session_metrics");
    let parameters = params![
        after.map_or(0, |id| id.0),
        filter.master.map(|master| master.0),
        filter.status.map(SessionStatus::as_str),
        filter.active_only,
        max,
    ];
    let mut sessions =
        c.rows(SESSIONS, parameters, |row| rows::session(row, SessionMetrics::default(), row.value(17)?))?;
    for session in &mut sessions {
        let metrics = c.row(METRICS, [session.id.0], |row| rows::session_metrics(row, 0))?;
        session.metrics = metrics.unwrap_or_default();
    }
    Ok(sessions)
}

fn occurrences(
    c: &Connection,
    master: MasterJobId,
    filter: &OccurrenceFilter,
    emit: &mut dyn FnMut(Occurrence) -> bool,
) -> Result<()> {
    const OCCURRENCES: &str = statement(queries::RESULTS, "occurrences");
    let mut statement = c.prepare_cached(OCCURRENCES)?;
    let mut rows = statement.query(params![
        master.0,
        filter.min_score.unwrap_or(Score(0)).0,
        filter.rule,
        filter.category.map(|category| category.as_str()),
        filter.with_suppressed,
    ])?;
    while let Some(row) = rows.next()? {
        if !emit(Occurrence::from_row(row)?) {
            break;
        }
    }
    Ok(())
}
