//! The verbs of the book. Each is one transaction: all of it happened, or none.

use std::time::Duration;

use async_trait::async_trait;
use domesday_model::{
    BatchId, CheckpointId, Command, DatasourceSpec, EnumerationSessionId, JobId, JobStatus, MasterJobId,
    ObjectKey, Origin, ProcessId, RuleSetHash, ScanTargetId, ScanTemplate, TargetType, TaskId, TaskType,
    UnitId,
};

use crate::error::StoreError;
use crate::types::*;

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
pub trait Store: Send + Sync {
    // ── composing ──────────────────────────────────────────────────────────────────────────────

    /// Keeps a rule set under its hash, so that every worker of a job uses the same.
    async fn put_rule_set(&self, hash: RuleSetHash, rules: &str) -> Result<()>;
    async fn rule_set(&self, hash: RuleSetHash) -> Result<Option<String>>;
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

    // ── configuring ────────────────────────────────────────────────────────────────────────────

    /// Adds a data source, or takes the place of the one with its name. A source that was removed and is
    /// added again is the same source.
    async fn put_datasource(&self, source: &DatasourceSpec, put: Put) -> Result<()>;
    /// Those that someone added, in the order of their names.
    async fn managed_datasources(&self) -> Result<Vec<ManagedDatasource>>;
    async fn managed_datasource(&self, name: &str) -> Result<Option<ManagedDatasource>>;
    /// Takes a data source out of use; what was found in it stays. Refused with [`StoreError::InUse`] while
    /// an open job reads it or a template names it.
    async fn remove_datasource(&self, name: &str) -> Result<()>;
    /// `next_firing_ms` is when its schedule is due next.
    async fn put_template(
        &self,
        template: &ScanTemplate,
        put: Put,
        next_firing_ms: Option<i64>,
    ) -> Result<()>;
    async fn templates(&self) -> Result<Vec<StoredTemplate>>;
    async fn template(&self, name: &str) -> Result<Option<StoredTemplate>>;
    async fn remove_template(&self, name: &str) -> Result<()>;
    /// The templates that are due, and when the next one is.
    async fn due_templates(&self) -> Result<DueTemplates>;
    /// Starts the job of a firing, once however many ask: false when someone else did, or when the
    /// template has changed meanwhile.
    async fn fire(&self, firing: Firing) -> Result<bool>;
    /// Id of the key that fingerprints in this book are made with.
    async fn fingerprint_key(&self) -> Result<Option<String>>;
    /// Sets it when there is none; the id that holds now. With `replace` it is set anew, which is refused
    /// with [`StoreError::InUse`] while a job is open.
    async fn set_fingerprint_key(&self, id: &str, replace: bool) -> Result<String>;

    // ── processes ──────────────────────────────────────────────────────────────────────────────

    /// Repeating it, after a lost answer, is harmless.
    async fn register(&self, process: &Process, lease: Duration) -> Result<()>;
    /// Renews a process's lease; false when it had already expired: the process must stop.
    async fn renew(&self, role: Role, id: ProcessId, lease: Duration, load: Load) -> Result<bool>;
    /// Ends a lease at once.
    async fn release(&self, role: Role, id: ProcessId) -> Result<()>;

    // ── the orchestrator ───────────────────────────────────────────────────────────────────────

    /// TaskAssigner: takes the oldest QUEUED job of the group, or one whose owner's lease expired. An
    /// orchestrator whose own lease expired gets nothing.
    async fn claim_job(
        &self,
        orchestrator: ProcessId,
        node_group: &str,
        lease: Duration,
    ) -> Result<Option<OwnedJob>>;
    /// Renews the leases of all jobs of this orchestrator in one statement, and tells what is pending.
    async fn renew_jobs(&self, orchestrator: ProcessId, lease: Duration) -> Result<Vec<OwnedJob>>;
    /// Executes the pending commands of a job and clears exactly those; `None` when nothing changed.
    async fn execute_commands(&self, lease: &JobLease) -> Result<Option<OwnedJob>>;
    /// Executes commands of jobs that have no owner (QUEUED, PAUSED); how many jobs changed.
    async fn execute_unowned_commands(&self, node_group: &str) -> Result<u64>;
    /// Starts an enumeration session with its root task for each data source that has none, and
    /// resumes the sessions that had stopped. Only a RUNNING job starts anything.
    async fn start_sessions(&self, lease: &JobLease) -> Result<u64>;
    /// The same for one data source of the job: its session, whether that is new, resumed or under way.
    /// [`StoreError::Missing`] when the job has no such source, or does not run and has no session for it.
    async fn open_session(&self, lease: &JobLease, datasource: &str) -> Result<EnumerationSessionId>;
    /// Turns committed units of a RUNNING job into next-stage tasks.
    async fn fan_out(&self, lease: &JobLease, policy: FanOutPolicy) -> Result<FanOutReport>;
    /// Ends the job if its sessions were started and nothing is staged, un-fanned, pending or running.
    async fn complete_job(&self, lease: &JobLease) -> Result<Option<JobStatus>>;
    /// Moves PAUSING to PAUSED and CANCELLING to CANCELLED once no task of the job runs.
    async fn settle_job(&self, lease: &JobLease) -> Result<Option<JobStatus>>;
    /// Returns, splits or gives up the tasks of workers whose lease expired, and those without progress
    /// for `deadline` although their worker lives.
    async fn reap_tasks(&self, node_group: &str, deadline: Duration) -> Result<ReapReport>;
    /// Marks sessions without progress for `threshold` STALLED, unless they wait for a rate limit.
    async fn reap_sessions(&self, node_group: &str, threshold: Duration) -> Result<u64>;
    /// Deletes staged rows of lost claims and failed units, at most `max` of each; how many went.
    async fn sweep(&self, max: u32) -> Result<u64>;

    // ── the worker ─────────────────────────────────────────────────────────────────────────────

    /// Claims at most `max` tasks, round-robin between the running jobs of the group, those with the
    /// fewest running tasks first, and leaves out data sources that run as many as they may.
    async fn claim_tasks(
        &self,
        worker: ProcessId,
        node_group: &str,
        task_type: TaskType,
        max: u32,
    ) -> Result<Vec<WorkPacket>>;
    /// The containers an enumeration packet covers, sorted by key.
    async fn packet_containers(&self, packet: &WorkPacket) -> Result<Vec<domesday_model::ObjectKey>>;
    /// The objects a classification packet covers, in the order they were listed.
    async fn packet_objects(&self, packet: &WorkPacket) -> Result<Vec<PacketObject>>;
    /// What a base knows of the objects in some containers, from a place on, at most `max`. Nothing when the base
    /// is gone: pruned, about to be, or tried again.
    async fn prior_records(
        &self,
        base: &Base,
        containers: &[domesday_model::ObjectKey],
        from: PriorCursor,
        max: u32,
    ) -> Result<PriorPage>;
    /// All that a base says of these objects and of what is inside them, to be staged again; each `None` when
    /// the base is gone, so that they must be scanned. As many as are asked for are held in memory.
    async fn prior_results(
        &self,
        base: &Base,
        keys: Vec<domesday_model::ObjectKey>,
    ) -> Result<Vec<Option<ResultBatch>>>;
    /// What was already listed under this task, or under the task it was split from, sorted by key: of each
    /// container its last page.
    async fn task_units(&self, claim: &Claim) -> Result<Vec<UnitState>>;
    /// The `object_key_hash`es of a staging unit whose first byte lies in the range: the exclusion list,
    /// one hash range a pass.
    async fn staged_hashes(
        &self,
        unit: UnitId,
        first_bytes: std::ops::RangeInclusive<u8>,
    ) -> Result<Vec<[u8; 16]>>;
    /// The names of what some pages of a container have, listed under this task or the one it was split from.
    async fn listed_names(
        &self,
        claim: &Claim,
        container: &ObjectKey,
        pages: std::ops::Range<i64>,
    ) -> Result<Vec<Vec<u8>>>;
    /// Commits containers that were listed whole, pages of them, or failures; one batch of the session. A
    /// listing takes the place of what is staged under its key; what is committed or failed already stays as it
    /// is. A page whose predecessor is missing, or was the last, is refused with [`StoreError::Gap`], and all
    /// that came with it.
    async fn commit_units(&self, claim: &Claim, units: Vec<UnitListing>) -> Result<()>;
    /// Adds a batch to a staging unit, which the first batch creates. A repeated batch changes nothing;
    /// one that leaves a gap is refused with [`StoreError::Gap`].
    async fn stage_unit(&self, claim: &Claim, batch: StageBatch) -> Result<UnitId>;
    /// Clears a staging unit, to list it again.
    async fn clear_unit(&self, claim: &Claim, unit: UnitId) -> Result<()>;
    /// Makes a staging unit visible: one row flips.
    async fn commit_staged(&self, claim: &Claim, unit: UnitId) -> Result<()>;
    /// Commits the last units, if any, and completes the task. Refused with [`StoreError::OpenUnit`] while one
    /// of its containers is listed in part: staged, or with a page to come.
    async fn complete_enumeration(&self, claim: &Claim, units: Vec<UnitListing>) -> Result<()>;
    /// Stages results; `first_sequence` counts findings, objects and tables together and makes repeats
    /// harmless.
    async fn stage_results(&self, claim: &Claim, first_sequence: u64, batch: ResultBatch) -> Result<()>;
    /// Stages the last results of tasks and completes them, in one transaction: all results of a task become
    /// visible at once. Each for itself: one that is refused ([`StoreError::LostClaim`], or
    /// [`StoreError::Gap`] unless exactly `first_sequence` results are staged) leaves the others as they are.
    /// The answers come in the order of the tasks; a claim that comes twice is refused the second time.
    async fn complete_classifications(&self, completions: Vec<Completion>) -> Result<Vec<Result<()>>>;
    /// Objects of the session whose origin is to be looked up, in no particular order; those that
    /// [`Store::save_origins`] had are not among them. Empty: the tracing task is done.
    async fn untraced(&self, claim: &Claim, max: u32) -> Result<Vec<ObjectKey>>;
    /// Writes where objects came from; `None` where nothing could be found out. Repeating it is harmless.
    async fn save_origins(&self, claim: &Claim, origins: Vec<(ObjectKey, Option<Origin>)>) -> Result<()>;
    /// Completes a tracing task. What is left untraced is another one's.
    async fn complete_tracing(&self, claim: &Claim) -> Result<()>;
    /// Ends a claim without completing its task. What a failed task leaves undone, its objects or its
    /// containers, becomes failures by name; pages that were listed stay. A task that waits has not failed, and
    /// its session is not stalled until the wait is over.
    async fn give_back(&self, claim: &Claim, how: GiveBack) -> Result<()>;
    /// Which of these jobs run no more, or are about to stop: their tasks are to be given back.
    async fn stopping_jobs(&self, jobs: Vec<JobId>) -> Result<Vec<JobId>>;
    /// After [`StoreError::CommitUnknown`]: which of the tasks are done under these very claims.
    async fn are_done(&self, claims: &[Claim]) -> Result<Vec<bool>>;

    /// Wakes when something in the book may have changed. A lost wake-up costs latency, never work.
    fn changes(&self) -> tokio::sync::watch::Receiver<u64>;

    // ── events ─────────────────────────────────────────────────────────────────────────────────

    /// The next events for a consumer, in order.
    async fn events(&self, consumer: &str, max: u32) -> Result<Vec<Event>>;
    /// Records how far a consumer is, and prunes what every consumer has.
    async fn acknowledge(&self, consumer: &str, position: i64) -> Result<()>;

    // ── operating ──────────────────────────────────────────────────────────────────────────────

    /// The child jobs of a master job, with live progress, in the order of their groups.
    async fn child_jobs(&self, master: MasterJobId) -> Result<Vec<ChildJobState>>;
    /// Tasks in the order of their ids, at most `max`.
    async fn tasks(&self, filter: TaskFilter, max: u32) -> Result<Vec<TaskInfo>>;
    async fn task(&self, id: TaskId) -> Result<Option<TaskInfo>>;
    /// Makes failed tasks pending again and forgets the failures they were named with; a job that had ended
    /// is queued again. How many tasks. Of a job that was cancelled or completed it is refused
    /// ([`StoreError::Refused`]), and what is not known is [`StoreError::Missing`].
    async fn retry_tasks(&self, which: Retry) -> Result<u64>;
    async fn fleet(&self) -> Result<Fleet>;
    /// Removes at most about `max` rows of master jobs that ended `older_than` ago: their tasks, units,
    /// records, occurrences and observations, and processes and events as old. Findings stay, and so does each data
    /// source's latest complete job, and the base of its next incremental one. Repeat until it is done; a job that is removed in part is seen by nobody.
    async fn prune(&self, older_than: Duration, max: u32) -> Result<PruneReport>;

    // ── sessions and targets ───────────────────────────────────────────────────────────────────

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
    /// The one of this target: `session:ID`, or what [`Store::save_checkpoint`] was given.
    async fn checkpoint_of(&self, target: &str) -> Result<Option<Checkpoint>>;
    /// Saves a checkpoint in place of the one that its target had. That of a session follows from its batches, and
    /// is refused ([`StoreError::Refused`]).
    async fn save_checkpoint(&self, target: &str, data: &serde_json::Value) -> Result<CheckpointId>;
    /// Whether there was one.
    async fn delete_checkpoint(&self, target: &str) -> Result<bool>;
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

    // ── reading ────────────────────────────────────────────────────────────────────────────────

    async fn master_job(&self, id: MasterJobId) -> Result<Option<MasterJob>>;
    /// Newest first.
    async fn master_jobs(&self, max: u32) -> Result<Vec<MasterJob>>;
    async fn summary(&self, master: MasterJobId) -> Result<JobSummary>;
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
    /// The data sources of a master job, with the settings that the job reads them with.
    async fn datasources(&self, master: MasterJobId) -> Result<Vec<Datasource>>;
    /// The rule set that a master job uses.
    async fn job_rule_set(&self, master: MasterJobId) -> Result<Option<RuleSetHash>>;
    /// The id of the key that a master job's fingerprints are made with.
    async fn job_fingerprint_key(&self, master: MasterJobId) -> Result<Option<String>>;
}
