//! The verbs, each handed to the module that knows its statements.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domesday_model::{
    BatchId, CheckpointId, Command, DatasourceSpec, EnumerationSessionId, JobId, JobStatus, MasterJobId,
    ObjectKey, Origin, ProcessId, RuleSetHash, ScanTargetId, ScanTemplate, TaskId, TaskType, UnitId,
};
use rusqlite::Connection;
use tokio::sync::watch;

use super::{
    Result, SqliteStore, base, datasources, jobs, operations, origins, prune, reports, results, retry,
    sessions, tables, targets, tasks, templates, units,
};
use crate::decide::{CONTAINERS, OBJECTS};
use crate::roles::{
    AdminStore, ComposerStore, LeaseStore, OrchestratorStore, ReportStore, SharedStore, WorkerStore,
};
use crate::types::*;
use crate::values;

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

#[async_trait]
impl OrchestratorStore for SqliteStore {
    async fn claim_job(
        &self,
        orchestrator: ProcessId,
        node_group: &str,
        lease: Duration,
    ) -> Result<Option<OwnedJob>> {
        let group = node_group.to_owned();
        self.write("claim_job", move |c| jobs::claim_job(c, orchestrator, &group, lease)).await
    }

    async fn renew_jobs(&self, orchestrator: ProcessId, lease: Duration) -> Result<Vec<OwnedJob>> {
        self.write("renew_jobs", move |c| jobs::renew_jobs(c, orchestrator, lease)).await
    }

    async fn execute_commands(&self, lease: &JobLease) -> Result<Option<OwnedJob>> {
        let lease = *lease;
        self.write("execute_commands", move |c| jobs::execute_commands(c, &lease)).await
    }

    async fn execute_unowned_commands(&self, node_group: &str) -> Result<u64> {
        let group = node_group.to_owned();
        self.write("execute_unowned_commands", move |c| jobs::execute_unowned_commands(c, &group)).await
    }

    async fn start_sessions(&self, lease: &JobLease) -> Result<u64> {
        let lease = *lease;
        self.write("start_sessions", move |c| jobs::start_sessions(c, &lease, None)).await
    }

    async fn open_session(&self, lease: &JobLease, datasource: &str) -> Result<EnumerationSessionId> {
        let (lease, datasource) = (*lease, datasource.to_owned());
        self.write("open_session", move |c| jobs::open_session(c, &lease, &datasource)).await
    }

    async fn fan_out(&self, lease: &JobLease, policy: FanOutPolicy) -> Result<FanOutReport> {
        let lease = *lease;
        self.write("fan_out", move |c| units::fan_out(c, &lease, policy)).await
    }

    async fn complete_job(&self, lease: &JobLease) -> Result<Option<JobStatus>> {
        let lease = *lease;
        self.write("complete_job", move |c| jobs::complete_job(c, &lease)).await
    }

    async fn settle_job(&self, lease: &JobLease) -> Result<Option<JobStatus>> {
        let lease = *lease;
        self.write("settle_job", move |c| jobs::settle_job(c, &lease)).await
    }

    async fn reap_tasks(&self, node_group: &str, deadline: Duration) -> Result<ReapReport> {
        let group = node_group.to_owned();
        self.write("reap_tasks", move |c| tasks::reap(c, &group, deadline)).await
    }

    async fn reap_sessions(&self, node_group: &str, threshold: Duration) -> Result<u64> {
        let group = node_group.to_owned();
        self.write("reap_sessions", move |c| jobs::reap_sessions(c, &group, threshold)).await
    }

    async fn sweep(&self, max: u32) -> Result<u64> {
        self.write("sweep", move |c| results::sweep(c, max)).await
    }

    async fn fire(&self, firing: Firing) -> Result<bool> {
        self.write("fire", move |c| templates::fire(c, &firing)).await
    }

    async fn events(&self, consumer: &str, max: u32) -> Result<Vec<Event>> {
        let consumer = consumer.to_owned();
        self.read(move |c| results::events(c, &consumer, max)).await
    }

    async fn acknowledge(&self, consumer: &str, position: i64) -> Result<()> {
        let consumer = consumer.to_owned();
        self.write("acknowledge", move |c| results::acknowledge(c, &consumer, position)).await
    }

    async fn save_checkpoint(&self, target: &str, data: &serde_json::Value) -> Result<CheckpointId> {
        let (target, data) = (target.to_owned(), data.clone());
        self.write("save_checkpoint", move |c| sessions::save_checkpoint(c, &target, &data)).await
    }

    async fn delete_checkpoint(&self, target: &str) -> Result<bool> {
        let target = target.to_owned();
        self.write("delete_checkpoint", move |c| sessions::delete_checkpoint(c, &target)).await
    }
}

#[async_trait]
impl WorkerStore for SqliteStore {
    async fn claim_tasks(
        &self,
        worker: ProcessId,
        node_group: &str,
        task_type: TaskType,
        max: u32,
    ) -> Result<Vec<WorkPacket>> {
        let group = node_group.to_owned();
        self.write("claim_tasks", move |c| tasks::claim(c, worker, &group, task_type, max)).await
    }

    async fn packet_containers(&self, packet: &WorkPacket) -> Result<Vec<ObjectKey>> {
        let containers = self.records(packet, CONTAINERS).await?;
        let mut keys: Vec<ObjectKey> = containers.into_iter().map(|container| container.key).collect();
        keys.sort_unstable();
        Ok(keys)
    }

    async fn packet_objects(&self, packet: &WorkPacket) -> Result<Vec<PacketObject>> {
        self.records(packet, OBJECTS).await
    }

    async fn prior_records(
        &self,
        base: &Base,
        containers: &[ObjectKey],
        from: PriorCursor,
        max: u32,
    ) -> Result<PriorPage> {
        let (base, containers) = (*base, containers.to_vec());
        self.read(move |c| base::records(c, &base, &containers, from, max)).await
    }

    async fn prior_results(&self, base: &Base, keys: Vec<ObjectKey>) -> Result<Vec<Option<ResultBatch>>> {
        let base = *base;
        self.read(move |c| base::results(c, &base, &keys)).await
    }

    async fn task_units(&self, claim: &Claim) -> Result<Vec<UnitState>> {
        let claim = *claim;
        self.read(move |c| units::of_task(c, &claim)).await
    }

    async fn staged_hashes(&self, unit: UnitId, first_bytes: RangeInclusive<u8>) -> Result<Vec<[u8; 16]>> {
        let range = (*first_bytes.start(), *first_bytes.end());
        self.read(move |c| units::staged_hashes(c, unit, range)).await
    }

    async fn listed_names(
        &self,
        claim: &Claim,
        container: &ObjectKey,
        pages: Range<i64>,
    ) -> Result<Vec<Vec<u8>>> {
        let (claim, container) = (*claim, container.clone());
        self.read(move |c| units::listed_names(c, &claim, &container, &pages)).await
    }

    async fn commit_units(&self, claim: &Claim, listings: Vec<UnitListing>) -> Result<()> {
        let (claim, fence, kept) = (*claim, self.fence, Arc::clone(&self.kept));
        let commit = move |c: &Connection| {
            let task = fence.check(c, &claim)?;
            units::commit(c, &claim, task, listings)
        };
        self.write_then("commit_units", commit, move |units| kept.add(units)).await
    }

    async fn stage_unit(&self, claim: &Claim, batch: StageBatch) -> Result<UnitId> {
        let (claim, fence) = (*claim, self.fence);
        self.write("stage_unit", move |c| {
            let task = fence.check(c, &claim)?;
            units::stage(c, &claim, task, &batch)
        })
        .await
    }

    async fn clear_unit(&self, claim: &Claim, unit: UnitId) -> Result<()> {
        let (claim, fence) = (*claim, self.fence);
        self.write("clear_unit", move |c| units::clear(c, fence.check(c, &claim)?, unit)).await
    }

    async fn commit_staged(&self, claim: &Claim, unit: UnitId) -> Result<()> {
        let (claim, fence) = (*claim, self.fence);
        self.write("commit_staged", move |c| {
            let task = fence.check(c, &claim)?;
            units::commit_staged(c, &claim, task, unit)
        })
        .await
    }

    async fn complete_enumeration(&self, claim: &Claim, units: Vec<UnitListing>) -> Result<()> {
        let (claim, fence, kept) = (*claim, self.fence, Arc::clone(&self.kept));
        let complete = move |c: &Connection| {
            let task = fence.check(c, &claim)?;
            let committed = units::commit(c, &claim, task, units)?;
            units::check_none_open(c, claim.task, task)?;
            tasks::complete(c, claim.task, TaskTotals::default())?;
            Ok(committed)
        };
        self.write_then("complete_enumeration", complete, move |units| kept.add(units)).await
    }

    async fn stage_results(&self, claim: &Claim, first_sequence: u64, batch: ResultBatch) -> Result<()> {
        let (claim, fence) = (*claim, self.fence);
        self.write("stage_results", move |c| {
            fence.check(c, &claim)?;
            results::stage(c, &claim, first_sequence, &batch)
        })
        .await
    }

    async fn complete_classifications(&self, completions: Vec<Completion>) -> Result<Vec<Result<()>>> {
        let fence = self.fence;
        self.write("complete_classifications", move |c| results::complete(c, fence, &completions)).await
    }

    async fn untraced(&self, claim: &Claim, max: u32) -> Result<Vec<ObjectKey>> {
        let (claim, fence) = (*claim, self.fence);
        self.write("untraced", move |c| origins::untraced(c, fence.check(c, &claim)?, max)).await
    }

    async fn save_origins(&self, claim: &Claim, origins: Vec<(ObjectKey, Option<Origin>)>) -> Result<()> {
        let (claim, fence) = (*claim, self.fence);
        self.write("save_origins", move |c| origins::save(c, fence.check(c, &claim)?, &origins)).await
    }

    async fn complete_tracing(&self, claim: &Claim) -> Result<()> {
        let (claim, fence) = (*claim, self.fence);
        self.write("complete_tracing", move |c| {
            fence.check(c, &claim)?;
            tasks::complete(c, claim.task, TaskTotals::default())
        })
        .await
    }

    async fn give_back(&self, claim: &Claim, how: GiveBack) -> Result<()> {
        let (claim, fence) = (*claim, self.fence);
        self.write("give_back", move |c| {
            let task = fence.check(c, &claim)?;
            tasks::give_back(c, &claim, task, &how)
        })
        .await
    }

    async fn stopping_jobs(&self, of: Vec<JobId>) -> Result<Vec<JobId>> {
        self.read(move |c| jobs::stopping(c, of)).await
    }

    async fn are_done(&self, claims: &[Claim]) -> Result<Vec<bool>> {
        let claims = claims.to_vec();
        // Through the writer: a commit still under way is waited for.
        self.write("are_done", move |c| claims.iter().map(|claim| tasks::is_done(c, claim)).collect()).await
    }
}

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
