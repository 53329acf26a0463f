//! [`WorkerStore`]: claiming tasks, listing units, staging and completing results.

use std::ops::{Range, RangeInclusive};

use async_trait::async_trait;
use domesday_model::{JobId, ListedObject, ObjectCheckpoint, ObjectKey, Origin, ProcessId, TaskType, UnitId};

use super::rows::get;
use super::tasks::Covered;
use super::transaction::{params, transact};
use super::{PostgresStore, Result, base, checkpoints, origins, queries, results, tasks, units};
use crate::decide::tasks::{CONTAINERS, OBJECTS, RecordKinds};
use crate::queries::statement;
use crate::roles::WorkerStore;
use crate::types::*;

impl PostgresStore {
    async fn packet_records(&self, packet: &WorkPacket, kinds: RecordKinds) -> Result<Vec<ListedObject>> {
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

    async fn packet_objects(&self, packet: &WorkPacket) -> Result<Vec<ListedObject>> {
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
        const UNITS: &str = statement(queries::ENUMERATION, "units_of_task");
        self.all(UNITS, params![claim.task.0]).await
    }

    async fn staged_hashes(&self, unit: UnitId, first_bytes: RangeInclusive<u8>) -> Result<Vec<[u8; 16]>> {
        const HASHES: &str = statement(queries::ENUMERATION, "staged_hashes");
        self.all(HASHES, params![unit.0, vec![*first_bytes.start()], vec![*first_bytes.end()]]).await
    }

    async fn listed_names(
        &self,
        claim: &Claim,
        container: &ObjectKey,
        pages: Range<i64>,
    ) -> Result<Vec<Vec<u8>>> {
        const NAMES: &str = statement(queries::ENUMERATION, "listed_names");
        self.all(NAMES, params![claim.task.0, container.0.clone(), pages.start, pages.end]).await
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

    async fn object_checkpoints(
        &self,
        claim: &Claim,
        keys: &[ObjectKey],
    ) -> Result<Vec<Vec<ObjectCheckpoint>>> {
        checkpoints::of_objects(self, claim, keys).await
    }

    async fn save_object_checkpoint(
        &self,
        claim: &Claim,
        key: &ObjectKey,
        checkpoint: ObjectCheckpoint,
    ) -> Result<()> {
        transact!(self.write("save_object_checkpoint"), |tx| checkpoints::save(
            &mut tx,
            claim,
            key,
            &checkpoint
        ))
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

    async fn complete_task(&self, claim: &Claim) -> Result<()> {
        transact!(self.write("complete_task"), |tx| async {
            tasks::fence(&mut tx, claim).await?;
            tasks::complete(&mut tx, claim.task);
            Ok(())
        })
    }

    async fn give_back(&self, claim: &Claim, how: GiveBack) -> Result<()> {
        transact!(self.write("give_back"), |tx| tasks::give_back(&mut tx, claim, &how))
    }

    async fn renew_progress(&self, claims: &[Claim]) -> Result<()> {
        transact!(self.write("renew_progress"), |tx| tasks::renew_progress(&mut tx, claims))
    }

    async fn stopping_jobs(&self, of: Vec<JobId>) -> Result<Vec<JobId>> {
        const STOPPING: &str = statement(queries::JOBS, "stopping_jobs");
        let of: Vec<i64> = of.into_iter().map(|job| job.0).collect();
        let rows = self.read(STOPPING, params![of]).await?;
        rows.iter().map(|row| get(row, 0).map(JobId)).collect()
    }

    async fn are_done(&self, claims: &[Claim]) -> Result<Vec<bool>> {
        transact!(self.write("are_done"), |tx| tasks::are_done(&mut tx, claims))
    }
}
