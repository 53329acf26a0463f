//! What a worker does: claims tasks, reads what they cover and what is known of it, and writes what came of
//! them. Given to workers; they get nothing else besides their lease and the rule sets.
//!
//! Every write for a task is fenced by the task's claim: it fails with [`crate::StoreError::LostClaim`] once the claim
//! is someone else's.

use std::ops::{Range, RangeInclusive};

use async_trait::async_trait;
use domesday_model::{JobId, ListedObject, ObjectCheckpoint, ObjectKey, Origin, ProcessId, TaskType, UnitId};

use super::{LeaseStore, Result, SharedStore};
use crate::types::*;

#[async_trait]
pub trait WorkerStore: LeaseStore + SharedStore {
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
    async fn packet_containers(&self, packet: &WorkPacket) -> Result<Vec<ObjectKey>>;
    /// The objects a classification packet covers, in the order they were listed.
    async fn packet_objects(&self, packet: &WorkPacket) -> Result<Vec<ListedObject>>;
    /// What a base knows of the objects in some containers, from a place on, at most `max`. Nothing when the base
    /// is gone: pruned, about to be, or tried again.
    async fn prior_records(
        &self,
        base: &Base,
        containers: &[ObjectKey],
        from: PriorCursor,
        max: u32,
    ) -> Result<PriorPage>;
    /// All that a base says of these objects and of what is inside them, to be staged again; each `None` when
    /// the base is gone, so that they must be scanned. As many as are asked for are held in memory.
    async fn prior_results(&self, base: &Base, keys: Vec<ObjectKey>) -> Result<Vec<Option<ResultBatch>>>;
    /// What was already listed under this task, or under the task it was split from, sorted by key: of each
    /// container its last page.
    async fn task_units(&self, claim: &Claim) -> Result<Vec<UnitState>>;
    /// The `object_key_hash`es of a staging unit whose first byte lies in the range: the exclusion list,
    /// one hash range a pass.
    async fn staged_hashes(&self, unit: UnitId, first_bytes: RangeInclusive<u8>) -> Result<Vec<[u8; 16]>>;
    /// The names of what some pages of a container have, listed under this task or the one it was split from.
    async fn listed_names(
        &self,
        claim: &Claim,
        container: &ObjectKey,
        pages: Range<i64>,
    ) -> Result<Vec<Vec<u8>>>;
    /// Commits containers that were listed whole, pages of them, or failures; one batch of the session. A
    /// listing takes the place of what is staged under its key; what is committed or failed already stays as it
    /// is. A page whose predecessor is missing, or was the last, is refused with [`crate::StoreError::Gap`], and all
    /// that came with it.
    async fn commit_units(&self, claim: &Claim, units: Vec<UnitListing>) -> Result<()>;
    /// Adds a batch to a staging unit, which the first batch creates. A repeated batch changes nothing;
    /// one that leaves a gap is refused with [`crate::StoreError::Gap`].
    async fn stage_unit(&self, claim: &Claim, batch: StageBatch) -> Result<UnitId>;
    /// Clears a staging unit, to list it again.
    async fn clear_unit(&self, claim: &Claim, unit: UnitId) -> Result<()>;
    /// Makes a staging unit visible: one row flips.
    async fn commit_staged(&self, claim: &Claim, unit: UnitId) -> Result<()>;
    /// Commits the last units, if any, and completes the task. Refused with [`crate::StoreError::OpenUnit`] while one
    /// of its containers is listed in part: staged, or with a page to come.
    async fn complete_enumeration(&self, claim: &Claim, units: Vec<UnitListing>) -> Result<()>;
    /// Stages results; `first_sequence` counts findings, objects and tables together and makes repeats
    /// harmless.
    async fn stage_results(&self, claim: &Claim, first_sequence: u64, batch: ResultBatch) -> Result<()>;
    /// How far the objects with these keys were scanned by earlier claims of the task, or of the one it was split from:
    /// for each all its checkpoints, in order.
    async fn object_checkpoints(
        &self,
        claim: &Claim,
        keys: &[ObjectKey],
    ) -> Result<Vec<Vec<ObjectCheckpoint>>>;
    /// Keeps how far an object was scanned, for the claims that come after this one. In the order of their numbers; the
    /// first takes the place of all that there are, and a repeated one changes nothing. It is progress: whoever ends
    /// next ends after it.
    async fn save_object_checkpoint(
        &self,
        claim: &Claim,
        key: &ObjectKey,
        checkpoint: ObjectCheckpoint,
    ) -> Result<()>;
    /// Stages the last results of tasks and completes them, in one transaction: all results of a task become
    /// visible at once. Each for itself: one that is refused ([`crate::StoreError::LostClaim`], or
    /// [`crate::StoreError::Gap`] unless exactly `first_sequence` results are staged) leaves the others as they are.
    /// The answers come in the order of the tasks; a claim that comes twice is refused the second time. Objects that
    /// were read before in the job have the results of one reading: the new one, unless it failed outright and the
    /// one before had not.
    async fn complete_classifications(&self, completions: Vec<Completion>) -> Result<Vec<Result<()>>>;
    /// Objects of the session whose origin is to be looked up, in no particular order; those that
    /// [`WorkerStore::save_origins`] had are not among them. Empty: the tracing task is done.
    async fn untraced(&self, claim: &Claim, max: u32) -> Result<Vec<ObjectKey>>;
    /// Writes where objects came from; `None` where nothing could be found out. Repeating it is harmless.
    async fn save_origins(&self, claim: &Claim, origins: Vec<(ObjectKey, Option<Origin>)>) -> Result<()>;
    /// Completes a task of which nothing is left to write. Of a tracing task, what is left untraced is another one's.
    async fn complete_task(&self, claim: &Claim) -> Result<()>;
    /// Ends a claim without completing its task. What a failed task leaves undone, its objects or its
    /// containers, becomes failures by name; pages that were listed stay. A task that waits has not failed, and
    /// its session is not stalled until the wait is over.
    async fn give_back(&self, claim: &Claim, how: GiveBack) -> Result<()>;
    /// Notes that the tasks of these claims move, although nothing of them was written: the deadline for progress begins
    /// anew. A claim that was lost is passed over. Nothing durable came of it, so a worker that ends again and again is
    /// still given up.
    async fn renew_progress(&self, claims: &[Claim]) -> Result<()>;
    /// Which of these jobs run no more, or are about to stop: their tasks are to be given back.
    async fn stopping_jobs(&self, jobs: Vec<JobId>) -> Result<Vec<JobId>>;
    /// After [`crate::StoreError::CommitUnknown`]: which of the tasks are done under these very claims.
    async fn are_done(&self, claims: &[Claim]) -> Result<Vec<bool>>;
}
