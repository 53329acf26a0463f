//! The verbs, each handed to the module that knows its statements.

use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use async_trait::async_trait;
use domesday_model::{
    BatchId, CheckpointId, Command, DatasourceSpec, EnumerationSessionId, JobId, JobStatus, MasterJobId,
    ObjectKey, Origin, ProcessId, RuleSetHash, ScanTargetId, ScanTemplate, TaskId, TaskType, UnitId,
};
use tokio::sync::watch;

use super::pool::Call;
use super::rows::{get, wide};
use super::tasks::Covered;
use super::transaction::{params, transact};
use super::{
    PostgresStore, Result, base, datasources, jobs, operations, origins, prune, reports, results, retry,
    sessions, tables, targets, tasks, templates, units,
};
use crate::configured::FINGERPRINT_KEY;
use crate::decide::{CONTAINERS, OBJECTS, RecordKinds};
use crate::roles::{
    AdminStore, ComposerStore, LeaseStore, OrchestratorStore, ReportStore, SharedStore, WorkerStore,
};
use crate::types::*;

impl PostgresStore {
    async fn packet_records(&self, packet: &WorkPacket, kinds: RecordKinds) -> Result<Vec<PacketObject>> {
        match tasks::covered(&packet.payload, kinds) {
            Covered::Objects(objects) => Ok(objects),
            Covered::Records(params) => {
                let rows = self.read(tasks::PACKET_RECORDS, params).await?;
                rows.iter().map(tasks::packet_object).collect()
            }
        }
    }
}

#[async_trait]
impl SharedStore for PostgresStore {
    async fn rule_set(&self, hash: RuleSetHash) -> Result<Option<String>> {
        let rows = self.read(jobs::RULE_SET, params![hash.0.to_vec()]).await?;
        rows.first().map(|row| get(row, 0)).transpose()
    }

    async fn fingerprint_key(&self) -> Result<Option<String>> {
        let rows = self.read(datasources::SETTING, params![FINGERPRINT_KEY]).await?;
        rows.first().map(|row| get(row, 0)).transpose()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.waker.subscribe()
    }
}

#[async_trait]
impl LeaseStore for PostgresStore {
    async fn register(&self, process: &Process, lease: Duration) -> Result<()> {
        transact!(self.write("register"), |tx| async {
            jobs::register(&mut tx, process, lease);
            Ok(())
        })
    }

    async fn renew(&self, role: Role, id: ProcessId, lease: Duration, load: Load) -> Result<bool> {
        transact!(self.write("renew"), |tx| jobs::renew(&mut tx, role, id, lease, load))
    }

    async fn release(&self, role: Role, id: ProcessId) -> Result<()> {
        transact!(self.write("release"), |tx| async {
            jobs::release(&mut tx, role, id);
            Ok(())
        })
    }
}

#[async_trait]
impl ComposerStore for PostgresStore {
    async fn put_rule_set(&self, hash: RuleSetHash, rules: &str) -> Result<()> {
        transact!(self.write("put_rule_set"), |tx| async {
            tx.run(jobs::PUT_RULE_SET, params![hash.0.to_vec(), rules.to_owned()]);
            Ok(())
        })
    }

    async fn submit(&self, job: NewMasterJob) -> Result<()> {
        transact!(self.write("submit"), |tx| jobs::submit(&mut tx, &job))
    }

    async fn unfinished(&self, request_key: [u8; 16]) -> Result<Option<MasterJob>> {
        let rows = self.read(jobs::UNFINISHED, params![request_key.to_vec()]).await?;
        Ok(jobs::master_jobs(&rows)?.pop())
    }

    async fn mark_reported(&self, master: MasterJobId) -> Result<()> {
        transact!(self.write("mark_reported"), |tx| async {
            jobs::mark_reported(&mut tx, master);
            Ok(())
        })
    }

    async fn append_command(&self, master: MasterJobId, command: Command) -> Result<u64> {
        transact!(self.write("append_command"), |tx| async {
            jobs::append_command(&mut tx, master, command).await
        })
    }

    async fn retry_tasks(&self, which: Retry) -> Result<u64> {
        transact!(self.write("retry_tasks"), |tx| retry::retry(&mut tx, which))
    }
}

#[async_trait]
impl AdminStore for PostgresStore {
    async fn put_datasource(&self, source: &DatasourceSpec, put: Put) -> Result<()> {
        transact!(self.write("put_datasource"), |tx| datasources::put(&mut tx, source, put))
    }

    async fn remove_datasource(&self, name: &str) -> Result<()> {
        transact!(self.write("remove_datasource"), |tx| datasources::remove(&mut tx, name))
    }

    async fn put_template(
        &self,
        template: &ScanTemplate,
        put: Put,
        next_firing_ms: Option<i64>,
    ) -> Result<()> {
        transact!(self.write("put_template"), |tx| templates::put(&mut tx, template, put, next_firing_ms))
    }

    async fn remove_template(&self, name: &str) -> Result<()> {
        transact!(self.write("remove_template"), |tx| templates::remove(&mut tx, name))
    }

    async fn set_fingerprint_key(&self, id: &str, replace: bool) -> Result<String> {
        transact!(self.write("set_fingerprint_key"), |tx| datasources::set_fingerprint_key(
            &mut tx, id, replace
        ))
    }

    async fn prune(&self, older_than: Duration, max: u32) -> Result<PruneReport> {
        transact!(self.write("prune"), |tx| prune::prune(&mut tx, older_than, max))
    }
}

#[async_trait]
impl OrchestratorStore for PostgresStore {
    async fn claim_job(
        &self,
        orchestrator: ProcessId,
        node_group: &str,
        lease: Duration,
    ) -> Result<Option<OwnedJob>> {
        transact!(self.write("claim_job"), |tx| jobs::claim_job(&mut tx, orchestrator, node_group, lease))
    }

    async fn renew_jobs(&self, orchestrator: ProcessId, lease: Duration) -> Result<Vec<OwnedJob>> {
        transact!(self.write("renew_jobs"), |tx| jobs::renew_jobs(&mut tx, orchestrator, lease))
    }

    async fn execute_commands(&self, lease: &JobLease) -> Result<Option<OwnedJob>> {
        transact!(self.write("execute_commands"), |tx| jobs::execute_commands(&mut tx, lease))
    }

    async fn execute_unowned_commands(&self, node_group: &str) -> Result<u64> {
        transact!(self.write("execute_unowned_commands"), |tx| jobs::execute_unowned_commands(
            &mut tx, node_group
        ))
    }

    async fn start_sessions(&self, lease: &JobLease) -> Result<u64> {
        transact!(self.write("start_sessions"), |tx| jobs::start_sessions(&mut tx, lease, None))
    }

    async fn open_session(&self, lease: &JobLease, datasource: &str) -> Result<EnumerationSessionId> {
        transact!(self.write("open_session"), |tx| jobs::open_session(&mut tx, lease, datasource))
    }

    async fn fan_out(&self, lease: &JobLease, policy: FanOutPolicy) -> Result<FanOutReport> {
        transact!(self.write("fan_out"), |tx| units::fan_out(&mut tx, lease, policy))
    }

    async fn complete_job(&self, lease: &JobLease) -> Result<Option<JobStatus>> {
        transact!(self.write("complete_job"), |tx| jobs::complete_job(&mut tx, lease))
    }

    async fn settle_job(&self, lease: &JobLease) -> Result<Option<JobStatus>> {
        transact!(self.write("settle_job"), |tx| jobs::settle_job(&mut tx, lease))
    }

    async fn reap_tasks(&self, node_group: &str, deadline: Duration) -> Result<ReapReport> {
        transact!(self.write("reap_tasks"), |tx| tasks::reap(&mut tx, node_group, deadline))
    }

    async fn reap_sessions(&self, node_group: &str, threshold: Duration) -> Result<u64> {
        transact!(self.write("reap_sessions"), |tx| jobs::reap_sessions(&mut tx, node_group, threshold))
    }

    async fn sweep(&self, max: u32) -> Result<u64> {
        transact!(self.write("sweep"), |tx| results::sweep(&mut tx, max))
    }

    async fn fire(&self, firing: Firing) -> Result<bool> {
        transact!(self.write("fire"), |tx| templates::fire(&mut tx, &firing))
    }

    async fn events(&self, consumer: &str, max: u32) -> Result<Vec<Event>> {
        transact!(self.write("events"), |tx| results::events(&mut tx, consumer, max))
    }

    async fn acknowledge(&self, consumer: &str, position: i64) -> Result<()> {
        transact!(self.write("acknowledge"), |tx| async {
            results::acknowledge(&mut tx, consumer, position);
            Ok(())
        })
    }

    async fn save_checkpoint(&self, target: &str, data: &serde_json::Value) -> Result<CheckpointId> {
        transact!(self.write("save_checkpoint"), |tx| sessions::save_checkpoint(&mut tx, target, data))
    }

    async fn delete_checkpoint(&self, target: &str) -> Result<bool> {
        transact!(self.write("delete_checkpoint"), |tx| sessions::delete_checkpoint(&mut tx, target))
    }
}

#[async_trait]
impl WorkerStore for PostgresStore {
    async fn claim_tasks(
        &self,
        worker: ProcessId,
        node_group: &str,
        task_type: TaskType,
        max: u32,
    ) -> Result<Vec<WorkPacket>> {
        transact!(self.write("claim_tasks"), |tx| tasks::claim(&mut tx, worker, node_group, task_type, max))
    }

    async fn packet_containers(&self, packet: &WorkPacket) -> Result<Vec<ObjectKey>> {
        let containers = self.packet_records(packet, CONTAINERS).await?;
        let mut keys: Vec<ObjectKey> = containers.into_iter().map(|container| container.key).collect();
        keys.sort_unstable();
        Ok(keys)
    }

    async fn packet_objects(&self, packet: &WorkPacket) -> Result<Vec<PacketObject>> {
        self.packet_records(packet, OBJECTS).await
    }

    async fn prior_records(
        &self,
        base: &Base,
        containers: &[ObjectKey],
        from: PriorCursor,
        max: u32,
    ) -> Result<PriorPage> {
        transact!(self.snapshot(), |tx| base::records(&mut tx, base, containers, from, max))
    }

    async fn prior_results(&self, base: &Base, keys: Vec<ObjectKey>) -> Result<Vec<Option<ResultBatch>>> {
        transact!(self.snapshot(), |tx| base::results(&mut tx, base, &keys))
    }

    async fn task_units(&self, claim: &Claim) -> Result<Vec<UnitState>> {
        let rows = self.read(units::OF_TASK, params![claim.task.0]).await?;
        rows.iter().map(units::unit_state).collect()
    }

    async fn staged_hashes(&self, unit: UnitId, first_bytes: RangeInclusive<u8>) -> Result<Vec<[u8; 16]>> {
        let range = params![unit.0, vec![*first_bytes.start()], vec![*first_bytes.end()]];
        let rows = self.read(units::STAGED_HASHES, range).await?;
        rows.iter().map(|row| wide(row, 0)).collect()
    }

    async fn listed_names(
        &self,
        claim: &Claim,
        container: &ObjectKey,
        pages: Range<i64>,
    ) -> Result<Vec<Vec<u8>>> {
        let of_pages = params![claim.task.0, container.0.clone(), pages.start, pages.end];
        let rows = self.read(units::LISTED_NAMES, of_pages).await?;
        rows.iter().map(|row| get(row, 0)).collect()
    }

    async fn commit_units(&self, claim: &Claim, listings: Vec<UnitListing>) -> Result<()> {
        transact!(self.write("commit_units"), |tx| units::commit(&mut tx, claim, &listings))
    }

    async fn stage_unit(&self, claim: &Claim, batch: StageBatch) -> Result<UnitId> {
        transact!(self.write("stage_unit"), |tx| units::stage(&mut tx, claim, &batch))
    }

    async fn clear_unit(&self, claim: &Claim, unit: UnitId) -> Result<()> {
        transact!(self.write("clear_unit"), |tx| async {
            let task = tasks::fence(&mut tx, claim).await?;
            units::clear(&mut tx, task, unit);
            Ok(())
        })
    }

    async fn commit_staged(&self, claim: &Claim, unit: UnitId) -> Result<()> {
        transact!(self.write("commit_staged"), |tx| units::commit_staged(&mut tx, claim, unit))
    }

    async fn complete_enumeration(&self, claim: &Claim, units: Vec<UnitListing>) -> Result<()> {
        transact!(self.write("complete_enumeration"), |tx| async {
            units::commit_last(&mut tx, claim, &units).await?;
            tasks::complete(&mut tx, claim.task);
            Ok(())
        })
    }

    async fn stage_results(&self, claim: &Claim, first_sequence: u64, batch: ResultBatch) -> Result<()> {
        transact!(self.write("stage_results"), |tx| results::stage(&mut tx, claim, first_sequence, &batch))
    }

    async fn complete_classifications(&self, completions: Vec<Completion>) -> Result<Vec<Result<()>>> {
        transact!(self.write("complete_classifications"), |tx| results::complete(&mut tx, &completions))
    }

    async fn untraced(&self, claim: &Claim, max: u32) -> Result<Vec<ObjectKey>> {
        transact!(self.write("untraced"), |tx| origins::untraced(&mut tx, claim, max))
    }

    async fn save_origins(&self, claim: &Claim, origins: Vec<(ObjectKey, Option<Origin>)>) -> Result<()> {
        transact!(self.write("save_origins"), |tx| origins::save(&mut tx, claim, &origins))
    }

    async fn complete_tracing(&self, claim: &Claim) -> Result<()> {
        transact!(self.write("complete_tracing"), |tx| async {
            tasks::fence(&mut tx, claim).await?;
            tasks::complete(&mut tx, claim.task);
            Ok(())
        })
    }

    async fn give_back(&self, claim: &Claim, how: GiveBack) -> Result<()> {
        transact!(self.write("give_back"), |tx| tasks::give_back(&mut tx, claim, &how))
    }

    async fn stopping_jobs(&self, of: Vec<JobId>) -> Result<Vec<JobId>> {
        let of: Vec<i64> = of.into_iter().map(|job| job.0).collect();
        let rows = self.read(jobs::STOPPING, params![of]).await?;
        rows.iter().map(|row| get(row, 0).map(JobId)).collect()
    }

    async fn are_done(&self, claims: &[Claim]) -> Result<Vec<bool>> {
        transact!(self.write("are_done"), |tx| tasks::are_done(&mut tx, claims))
    }
}

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
