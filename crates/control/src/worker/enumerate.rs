//! Enumeration of one packet: its containers one by one in sorted order, one level deep, each committed
//! as a unit.
//!
//! Crash argument: a unit is committed by one verb, or staged batch by batch and then flipped by one. A
//! claim that comes after finds committed units and skips them, and a staging one and goes on with it as
//! the connector's resume policy says. Nothing is listed into a unit twice.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use domesday_connector::{Connector, ConnectorError, Listing};
use domesday_model::{ObjectKey, RecordKind, ResumePolicy, UnitId, UnitRecord, UnitStatus};
use domesday_store::{Claim, StageBatch, Store, StoreError, UnitListing, UnitOutcome, UnitState, WorkPacket};
use tokio::task::JoinHandle;

use super::packet::PacketError;
use super::session::Session;
use crate::progress::Progress;
use crate::stop::Stop;

/// Entries per batch; a container with more is staged.
const BATCH_MAX: usize = 1_000;
/// Small units that share a commit, at most.
const UNITS_PER_COMMIT: usize = 64;
/// How long a listed unit waits for others to share its commit, at most.
const COMMIT_DELAY: Duration = Duration::from_millis(20);
/// Hashes of one exclusion list, at most; a longer one is applied in passes. Few in tests, so that they
/// need not list millions to see more than one pass.
pub(crate) const EXCLUSION_MAX: i64 = if cfg!(test) { 1_000 } else { 1_000_000 };

pub(super) async fn enumerate(
    session: &Arc<Session>,
    packet: &WorkPacket,
    halt: Stop,
) -> Result<(), PacketError> {
    let mut enumeration = Enumeration::new(session, packet, halt)?;
    let progress = &session.worker.progress;
    progress.enumerating.fetch_add(1, Ordering::Relaxed);
    let outcome = enumeration.run().await;
    // However it ended: nothing of this packet is under way when it is given back.
    let settled = enumeration.settle().await;
    let left = progress.enumerating.fetch_sub(1, Ordering::Relaxed) - 1;
    progress.listing_done.store(left == 0, Ordering::Relaxed);
    outcome.and(settled.map(|_| ()))
}

/// Why a container was not listed to its end.
enum ListError {
    /// The container's own fault: it becomes a failed unit, and the others go on.
    Container(ConnectorError),
    /// The packet ends here.
    Packet(PacketError),
}

impl From<ConnectorError> for ListError {
    fn from(error: ConnectorError) -> ListError {
        ListError::Container(error)
    }
}

impl From<PacketError> for ListError {
    fn from(error: PacketError) -> ListError {
        ListError::Packet(error)
    }
}

/// What a packet writes while it lists on.
enum Write {
    Units(Vec<UnitListing>),
    Stage(StageBatch),
}

struct Enumeration<'a> {
    session: &'a Arc<Session>,
    store: &'a dyn Store,
    packet: &'a WorkPacket,
    connector: Arc<dyn Connector>,
    halt: Stop,
    /// Listed whole, and not committed yet.
    listed: Vec<UnitListing>,
    listed_records: usize,
    listed_since: Instant,
    /// The write under way. One at a time and in order: the next begins when it has ended.
    writing: Option<JoinHandle<Result<Option<UnitId>, StoreError>>>,
}

impl<'a> Enumeration<'a> {
    fn new(session: &'a Arc<Session>, packet: &'a WorkPacket, halt: Stop) -> Result<Self, PacketError> {
        Ok(Enumeration {
            session,
            store: session.store(),
            packet,
            connector: session.worker.connector(&packet.datasource)?,
            halt,
            listed: Vec::new(),
            listed_records: 0,
            listed_since: Instant::now(),
            writing: None,
        })
    }

    async fn run(&mut self) -> Result<(), PacketError> {
        let (store, claim) = (self.store, self.packet.claim);
        let (containers, begun) = tokio::join!(
            self.session.ask(&self.halt, || store.packet_containers(self.packet)),
            self.session.ask(&self.halt, || store.task_units(&claim)),
        );
        let begun: HashMap<ObjectKey, UnitState> =
            begun?.into_iter().map(|unit| (unit.key.clone(), unit)).collect();
        for container in containers? {
            if self.halt.is_asked() {
                self.commit().await?;
                return Err(PacketError::Stopped);
            }
            let listed = match begun.get(&container) {
                Some(unit) if unit.status != UnitStatus::Staging => Ok(()),
                Some(unit) => self.resume(unit).await,
                None => self.list(&container).await,
            };
            match listed {
                Ok(()) => {}
                Err(ListError::Container(error)) => self.fail(container, &error),
                Err(ListError::Packet(error)) => return Err(error),
            }
            if self.is_time_to_commit() {
                self.commit().await?;
            }
        }
        self.settle().await?;
        let units = std::mem::take(&mut self.listed);
        self.session.ask(&self.halt, || complete(store, &claim, units.clone())).await?;
        Ok(())
    }

    /// A full commit at once; one that is not full when its time has come and no other is under way: what is
    /// listed meanwhile goes with it.
    fn is_time_to_commit(&self) -> bool {
        let full = self.listed.len() >= UNITS_PER_COMMIT || self.listed_records >= BATCH_MAX;
        let idle = self.writing.as_ref().is_none_or(JoinHandle::is_finished);
        full || (idle && !self.listed.is_empty() && self.listed_since.elapsed() >= COMMIT_DELAY)
    }

    /// Lists a container from its beginning.
    async fn list(&mut self, container: &ObjectKey) -> Result<(), ListError> {
        let mut listing = self.open(container, None).await?;
        let first = self.next(listing.as_mut()).await?;
        // A short batch may be the last one or not: only an empty one is the end.
        let second = self.next(listing.as_mut()).await?;
        if second.is_empty() {
            self.push(UnitListing { key: container.clone(), outcome: UnitOutcome::Listed(first) });
            return Ok(());
        }
        self.stage(container, listing, 0, vec![first, second], None).await?;
        Ok(())
    }

    /// Goes on with a container that an earlier claim had begun.
    async fn resume(&mut self, unit: &UnitState) -> Result<(), ListError> {
        tracing::info!(task_id = %self.packet.claim.task, container = %unit.key, records = unit.records, "listing resumed");
        let (resume_point, first_sequence) = match self.connector.resume_policy() {
            ResumePolicy::ExcludeStaged => return self.resume_excluding(unit).await,
            ResumePolicy::FromResumePoint => (unit.resume_point.as_deref(), unit.records),
            ResumePolicy::ClearAndRelist => {
                self.settle().await?;
                let (store, claim) = (self.store, &self.packet.claim);
                let cleared = self.session.ask(&self.halt, || store.clear_unit(claim, unit.unit)).await;
                cleared.map_err(PacketError::from)?;
                (None, 0)
            }
        };
        let listing = self.open(&unit.key, resume_point).await?;
        self.stage(&unit.key, listing, first_sequence, Vec::new(), None).await?;
        Ok(())
    }

    /// Lists again and leaves out what is staged. Each pass looks at one range of hashes, so that the
    /// exclusion list stays small however much is staged.
    async fn resume_excluding(&mut self, unit: &UnitState) -> Result<(), ListError> {
        let mut next_sequence = unit.records;
        let passes = hash_ranges(unit.records);
        let last = passes.len() - 1;
        for (index, range) in passes.into_iter().enumerate() {
            // The last pass's rows are in before the next one looks.
            self.settle().await?;
            let store = self.store;
            let staged = self.session.ask(&self.halt, || store.staged_hashes(unit.unit, range.clone())).await;
            let staged = staged.map_err(PacketError::from)?;
            let exclusion = Exclusion { staged: staged.into_iter().collect(), range, is_last: index == last };
            let listing = self.open(&unit.key, None).await?;
            next_sequence =
                self.stage(&unit.key, listing, next_sequence, Vec::new(), Some(exclusion)).await?;
        }
        Ok(())
    }

    /// Stages the rest of a listing batch by batch and commits the unit, unless another pass comes; the
    /// next free sequence number.
    async fn stage(
        &mut self,
        container: &ObjectKey,
        mut listing: Box<dyn Listing>,
        first_sequence: i64,
        batches: Vec<Vec<UnitRecord>>,
        exclusion: Option<Exclusion>,
    ) -> Result<i64, ListError> {
        // Units commit in order: what was listed before this one goes first.
        self.commit().await?;
        let (mut sequence, mut waiting) = (first_sequence, batches.into_iter());
        let (mut staged, mut unit) = (false, None);
        loop {
            let mut records = match waiting.next() {
                Some(batch) => batch,
                None => self.next(listing.as_mut()).await?,
            };
            let ended = records.is_empty();
            if let Some(exclusion) = &exclusion {
                records.retain(|record| exclusion.wants(record));
            }
            if !records.is_empty() || (ended && !staged) {
                self.count(&records);
                let count = records.len() as i64;
                let resume_point = listing.resume_point();
                let batch =
                    StageBatch { key: container.clone(), first_sequence: sequence, records, resume_point };
                unit = self.write(Write::Stage(batch)).await?.or(unit);
                staged = true;
                sequence += count;
            }
            if ended {
                break;
            }
            if self.halt.is_asked() {
                return Err(PacketError::Stopped.into());
            }
        }
        if let Some(unit) = self.settle().await?.or(unit)
            && exclusion.is_none_or(|exclusion| exclusion.is_last)
        {
            let (store, claim) = (self.store, &self.packet.claim);
            let committed = self.session.ask(&self.halt, || store.commit_staged(claim, unit)).await;
            committed.map_err(PacketError::from)?;
        }
        Ok(sequence)
    }

    async fn open(
        &self,
        container: &ObjectKey,
        resume_point: Option<&str>,
    ) -> Result<Box<dyn Listing>, ConnectorError> {
        let begun = Instant::now();
        let listing = self.connector.list(container, resume_point).await;
        self.count_time(begun);
        listing
    }

    async fn next(&self, listing: &mut dyn Listing) -> Result<Vec<UnitRecord>, ConnectorError> {
        let begun = Instant::now();
        let batch = listing.next_batch(BATCH_MAX).await;
        self.count_time(begun);
        batch
    }

    fn fail(&mut self, container: ObjectKey, error: &ConnectorError) {
        tracing::warn!(task_id = %self.packet.claim.task, %container, %error, "container not listed");
        let outcome = UnitOutcome::Failed { reason: error.reason(), detail: error.to_string() };
        self.push(UnitListing { key: container, outcome });
    }

    fn push(&mut self, listing: UnitListing) {
        if self.listed.is_empty() {
            self.listed_since = Instant::now();
        }
        if let UnitOutcome::Listed(records) = &listing.outcome {
            self.count(records);
            self.listed_records += records.len();
        }
        self.listed.push(listing);
    }

    async fn commit(&mut self) -> Result<(), PacketError> {
        if !self.listed.is_empty() {
            self.listed_records = 0;
            let units = std::mem::take(&mut self.listed);
            self.write(Write::Units(units)).await?;
        }
        Ok(())
    }

    /// Begins a write, once the one before it has ended; what that one gave. Listing goes on meanwhile.
    async fn write(&mut self, write: Write) -> Result<Option<UnitId>, PacketError> {
        let before = self.settle().await?;
        let (session, claim, halt) = (Arc::clone(self.session), self.packet.claim, self.halt.clone());
        self.writing = Some(tokio::spawn(async move {
            let store = session.store();
            match write {
                Write::Units(units) => {
                    session.ask(&halt, || store.commit_units(&claim, units.clone())).await.map(|()| None)
                }
                Write::Stage(batch) => {
                    session.ask(&halt, || store.stage_unit(&claim, batch.clone())).await.map(Some)
                }
            }
        }));
        Ok(before)
    }

    /// Waits for the write under way; the unit it was for, if it staged one.
    async fn settle(&mut self) -> Result<Option<UnitId>, PacketError> {
        match self.writing.take() {
            None => Ok(None),
            Some(writing) => match writing.await {
                Ok(written) => Ok(written?),
                Err(_) => Err(PacketError::Retry("a write panicked".into())),
            },
        }
    }

    fn count(&self, records: &[UnitRecord]) {
        let files = records.iter().filter(|record| record.kind == RecordKind::File);
        let (count, bytes) = files.fold((0, 0u64), |(n, sum), file| (n + 1, sum.saturating_add(file.size)));
        Progress::add(&self.session.worker.progress.objects_listed, count);
        Progress::add(&self.session.worker.progress.bytes_listed, bytes);
    }

    fn count_time(&self, begun: Instant) {
        let nanos = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Progress::add(&self.session.worker.progress.listing_nanos, nanos);
    }
}

/// Completes the task. When the answer is lost, or the call is a repeated one whose first answer was, the done
/// row tells whether it was this claim's.
async fn complete(store: &dyn Store, claim: &Claim, units: Vec<UnitListing>) -> Result<(), StoreError> {
    match store.complete_enumeration(claim, units).await {
        Err(error @ (StoreError::CommitUnknown(_) | StoreError::LostClaim(_))) => {
            let is_done = store.are_done(std::slice::from_ref(claim)).await?;
            if is_done == [true] { Ok(()) } else { Err(error) }
        }
        completed => completed,
    }
}

/// What one pass over a container that is staged in part leaves out.
struct Exclusion {
    staged: HashSet<[u8; 16]>,
    /// First bytes of the hashes this pass looks at.
    range: RangeInclusive<u8>,
    is_last: bool,
}

impl Exclusion {
    fn wants(&self, record: &UnitRecord) -> bool {
        let hash = ObjectKey::hash128(&record.name);
        self.range.contains(&hash[0]) && !self.staged.contains(&hash)
    }
}

/// Ranges of first bytes, so many that none holds more than [`EXCLUSION_MAX`] of `staged` hashes (which
/// are evenly spread).
fn hash_ranges(staged: i64) -> Vec<RangeInclusive<u8>> {
    let passes = (staged / EXCLUSION_MAX + 1).clamp(1, 256) as u32;
    (0..passes).map(|i| (256 * i / passes) as u8..=(256 * (i + 1) / passes - 1) as u8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_ranges_cover_every_byte_once() {
        for staged in [0, 1, EXCLUSION_MAX, 3 * EXCLUSION_MAX, 1_000 * EXCLUSION_MAX] {
            let covered: Vec<u8> = hash_ranges(staged).into_iter().flatten().collect();
            assert_eq!(covered, (0..=255).collect::<Vec<u8>>());
        }
        assert_eq!(hash_ranges(EXCLUSION_MAX - 1).len(), 1);
    }
}
