//! [`WorkerStore`]: claiming tasks, listing units, staging and completing results.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use async_trait::async_trait;
use domesday_model::{JobId, ListedObject, ObjectCheckpoint, ObjectKey, Origin, ProcessId, TaskType, UnitId};
use rusqlite::{Connection, params};

use super::rows::Statements;
use super::{Result, SqliteStore, base, checkpoints, origins, queries, results, tasks, units};
use crate::decide::tasks::{CONTAINERS, OBJECTS};
use crate::queries::statement;
use crate::roles::WorkerStore;
use crate::types::*;

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

    async fn packet_objects(&self, packet: &WorkPacket) -> Result<Vec<ListedObject>> {
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
        const UNITS: &str = statement(queries::ENUMERATION, "units_of_task");
        let task = claim.task.0;
        self.read(move |c| c.all(UNITS, [task])).await
    }

    async fn staged_hashes(&self, unit: UnitId, first_bytes: RangeInclusive<u8>) -> Result<Vec<[u8; 16]>> {
        const HASHES: &str = statement(queries::ENUMERATION, "staged_hashes");
        let (from, to) = ([*first_bytes.start()], [*first_bytes.end()]);
        self.read(move |c| c.all(HASHES, params![unit.0, from, to])).await
    }

    async fn listed_names(
        &self,
        claim: &Claim,
        container: &ObjectKey,
        pages: Range<i64>,
    ) -> Result<Vec<Vec<u8>>> {
        const NAMES: &str = statement(queries::ENUMERATION, "listed_names");
        let (task, container) = (claim.task.0, container.0.clone());
        self.read(move |c| c.all(NAMES, params![task, container, pages.start, pages.end])).await
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

    async fn object_checkpoints(
        &self,
        claim: &Claim,
        keys: &[ObjectKey],
    ) -> Result<Vec<Vec<ObjectCheckpoint>>> {
        let (claim, keys) = (*claim, keys.to_vec());
        self.read(move |c| checkpoints::of_objects(c, &claim, &keys)).await
    }

    async fn save_object_checkpoint(
        &self,
        claim: &Claim,
        key: &ObjectKey,
        checkpoint: ObjectCheckpoint,
    ) -> Result<()> {
        let (claim, fence, key) = (*claim, self.fence, key.clone());
        self.write("save_object_checkpoint", move |c| {
            let task = fence.check(c, &claim)?;
            checkpoints::save(c, &claim, task, &key, &checkpoint)
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

    async fn complete_task(&self, claim: &Claim) -> Result<()> {
        let (claim, fence) = (*claim, self.fence);
        self.write("complete_task", move |c| {
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

    async fn renew_progress(&self, claims: &[Claim]) -> Result<()> {
        const RENEW: &str = statement(queries::TASKS, "renew_progress");
        let claims = claims.to_vec();
        self.write("renew_progress", move |c| {
            claims.iter().try_for_each(|claim| c.change(RENEW, [claim.task.0, claim.claim.0]).map(drop))
        })
        .await
    }

    async fn stopping_jobs(&self, of: Vec<JobId>) -> Result<Vec<JobId>> {
        const IS: &str = statement(queries::JOBS, "job_is_stopping");
        // A worker holds tasks of few jobs at once: each is looked up by its key.
        self.read(move |c| {
            let mut stopping = Vec::new();
            for job in of {
                if c.only(IS, [job.0])? {
                    stopping.push(job);
                }
            }
            Ok(stopping)
        })
        .await
    }

    async fn are_done(&self, claims: &[Claim]) -> Result<Vec<bool>> {
        const DONE: &str = statement(queries::TASKS, "task_done_under_claim");
        let claims = claims.to_vec();
        // Through the writer: a commit still under way is waited for.
        self.write("are_done", move |c| {
            claims.iter().map(|claim| c.only(DONE, [claim.task.0, claim.claim.0])).collect()
        })
        .await
    }
}
