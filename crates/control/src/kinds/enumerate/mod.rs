//! Enumeration of one packet: its containers one by one in sorted order, one level deep, each committed
//! as a unit, or page by page as several.
//!
//! Crash argument: a unit is committed by one verb, or staged batch by batch and then flipped by one. A
//! claim that comes after finds committed units and skips them, or goes on after the last page, and a staging
//! one and goes on with it as the connector's resume policy says. Nothing is listed into a unit twice. A task that comes
//! back because its source did not answer is such a claim, too; how often that was is counted in the book.

mod base;
mod paged;
mod staged;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use domesday_connector::{Connector, ConnectorError, Listing};
use domesday_model::{ObjectKey, Reason, RecordKind, ResumePolicy, TaskType, UnitId, UnitRecord, UnitStatus};
use domesday_scheduler::{KindSlot, Moved};
use domesday_store::{
    Claim, StageBatch, StoreError, UnitListing, UnitOutcome, UnitState, WorkPacket, WorkerStore,
};
use tokio::task::JoinHandle;
use tracing::{Instrument, Span};

use super::TaskHandler;
use crate::metrics::{CommitCall, Histogram, Stage};
use crate::progress::Progress;
use crate::stop::Stop;
use crate::worker::packet::{PacketError, done_under};
use crate::worker::session::Session;
use crate::worker::window::Slots;
use base::Prior;

/// Entries per batch; a container with more is staged.
const BATCH_MAX: usize = 1_000;
/// Units that share a commit, at most.
const UNITS_PER_COMMIT: usize = 256;
/// Entries of units that share a commit, at most, beyond those of its last unit. The larger a commit, the more of
/// its rows share pages, each of which is written once.
const RECORDS_PER_COMMIT: usize = 4_000;
/// Containers in a row that the source does not answer for, after which the others of the task wait, too.
const UNAVAILABLE_IN_A_ROW_MAX: usize = 3;
/// How long a listed unit waits for others to share its commit, at most.
const COMMIT_DELAY: Duration = Duration::from_millis(20);
/// Hashes of one exclusion list, at most; a longer one is applied in passes. Few in tests, so that they
/// need not list millions to see more than one pass.
pub(crate) const EXCLUSION_MAX: i64 = if cfg!(test) { 1_000 } else { 1_000_000 };

pub(super) struct Enumerate;

#[async_trait]
impl TaskHandler for Enumerate {
    fn task_type(&self) -> TaskType {
        TaskType::DiscoveryEnumerate
    }

    fn slots(&self) -> Slots {
        Slots::Source
    }

    /// Listing blocks; it runs on a thread of its own, whatever the connector does there.
    async fn run(&self, session: &Arc<Session>, packet: &WorkPacket, halt: Stop) -> Result<(), PacketError> {
        let (session, packet) = (Arc::clone(session), packet.clone());
        let runtime = tokio::runtime::Handle::current();
        let span = Span::current();
        let listing = move || runtime.block_on(enumerate(&session, &packet, halt).instrument(span));
        match tokio::task::spawn_blocking(listing).await {
            Ok(listed) => listed,
            // Without the panic's own words, which may quote what was read.
            Err(_) => Err(PacketError::Retry("listing panicked".into())),
        }
    }
}

async fn enumerate(session: &Arc<Session>, packet: &WorkPacket, halt: Stop) -> Result<(), PacketError> {
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
        match error {
            ConnectorError::Wait { after, detail } => PacketError::Wait { after, detail }.into(),
            error => ListError::Container(error),
        }
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

impl Write {
    fn units(&self) -> usize {
        match self {
            Write::Units(units) => units.len(),
            Write::Stage(_) => 1,
        }
    }

    fn records(&self) -> usize {
        let listed = |unit: &UnitListing| match &unit.outcome {
            UnitOutcome::Listed(records) => records.len(),
            UnitOutcome::Failed { .. } => 0,
        };
        match self {
            Write::Units(units) => units.iter().map(listed).sum(),
            Write::Stage(batch) => batch.records.len(),
        }
    }
}

struct Enumeration<'a> {
    session: &'a Arc<Session>,
    store: &'a dyn WorkerStore,
    packet: &'a WorkPacket,
    connector: Arc<dyn Connector>,
    /// Where its time is counted.
    kind: KindSlot,
    /// Tells the heartbeat that the packet does not stand still.
    moved: Moved,
    halt: Stop,
    /// What the last scan knew, if this one goes on from there.
    prior: Option<Prior>,
    /// Containers that the source did not answer for, and that are tried again; and what it said first.
    unavailable: usize,
    why: Option<String>,
    /// Something was listed under this claim: attempts are counted from there.
    has_listed: bool,
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
            connector: session.worker.connector(packet)?,
            kind: session.worker.kind_slot(packet),
            moved: session.held.moved(&packet.claim),
            halt,
            prior: None,
            unavailable: 0,
            why: None,
            has_listed: false,
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
        let containers = containers?;
        self.prior = self.packet.base.map(|base| Prior::new(base, containers.clone()));
        let mut unavailable_in_a_row = 0;
        for container in containers {
            if self.halt.is_asked() {
                self.commit().await?;
                return Err(PacketError::Stopped);
            }
            let unavailable = self.unavailable;
            match self.list_container(&container, begun.get(&container)).await {
                Ok(()) => {}
                Err(ListError::Container(error)) if !self.halt.is_asked() => self.fail(&container, 0, &error),
                // What went wrong while it was to stop may be only that.
                Err(ListError::Container(_)) => {
                    self.commit().await?;
                    return Err(PacketError::Stopped);
                }
                Err(ListError::Packet(error)) => {
                    // What is listed need not be listed again.
                    if matches!(error, PacketError::Wait { .. }) {
                        self.commit().await?;
                    }
                    return Err(error);
                }
            }
            if self.is_time_to_commit() {
                self.commit().await?;
            }
            unavailable_in_a_row = if self.unavailable > unavailable { unavailable_in_a_row + 1 } else { 0 };
            if unavailable_in_a_row == UNAVAILABLE_IN_A_ROW_MAX {
                break;
            }
        }
        if let Some(detail) = self.why.take() {
            // What is listed stays, and the task comes back for the others.
            self.commit().await?;
            return Err(PacketError::Unavailable { detail, failed: self.failed_before() });
        }
        self.settle().await?;
        let units = std::mem::take(&mut self.listed);
        self.committed(self.session.give(&self.halt, units, |units| complete(store, &claim, units))).await?;
        Ok(())
    }

    async fn list_container(
        &mut self,
        container: &ObjectKey,
        begun: Option<&UnitState>,
    ) -> Result<(), ListError> {
        let policy = self.connector.resume_policy(container);
        match begun {
            Some(unit) if unit.is_ended() => Ok(()),
            Some(unit) if unit.status == UnitStatus::Staging => self.resume(unit, policy).await,
            begun if policy == ResumePolicy::FromResumePoint => self.list_pages(container, begun).await,
            begun if policy == ResumePolicy::ExcludeListed => self.list_growing(container, begun).await,
            _ => self.list(container).await,
        }
    }

    /// A full commit at once; one that is not full when its time has come and no other is under way: what is
    /// listed meanwhile goes with it.
    fn is_time_to_commit(&self) -> bool {
        let full = self.listed.len() >= UNITS_PER_COMMIT || self.listed_records >= RECORDS_PER_COMMIT;
        let idle = self.writing.as_ref().is_none_or(JoinHandle::is_finished);
        full || (idle && !self.listed.is_empty() && self.listed_since.elapsed() >= COMMIT_DELAY)
    }

    async fn open(
        &self,
        container: &ObjectKey,
        resume_point: Option<&str>,
    ) -> Result<Box<dyn Listing>, ConnectorError> {
        let list = self.or_stopped(self.connector.list(container, resume_point));
        let mut listing = self.listing_time().timed(list).await;
        self.moved.add(1);
        if let Ok(listing) = &mut listing {
            listing.watch(&self.moved);
        }
        listing
    }

    async fn next(&self, listing: &mut dyn Listing) -> Result<Vec<UnitRecord>, ConnectorError> {
        let batch = self.listing_time().timed(self.or_stopped(listing.next_batch(BATCH_MAX))).await;
        self.moved.add(1);
        batch
    }

    /// Waits for a connector, and no longer once it is to stop: a remote that does not answer, or that is asked again and
    /// again, must not hold up the end. What it fails with then is not told.
    async fn or_stopped<T>(
        &self,
        asked: impl Future<Output = Result<T, ConnectorError>>,
    ) -> Result<T, ConnectorError> {
        let mut halt = self.halt.clone();
        tokio::select! {
            biased;
            answer = asked => answer,
            () = halt.asked() => Err(ConnectorError::Container {
                reason: Reason::ReadError,
                detail: "the listing was stopped".to_owned(),
            }),
        }
    }

    /// Marks what has not changed since the last scan.
    async fn compare(
        &mut self,
        container: &ObjectKey,
        records: &mut [UnitRecord],
    ) -> Result<(), PacketError> {
        match &mut self.prior {
            Some(prior) => Ok(prior.mark(self.session, &self.halt, container, records).await?),
            None => Ok(()),
        }
    }

    /// Attempts in a row at what is left of the task that failed before this one.
    fn failed_before(&self) -> u32 {
        if self.has_listed { 0 } else { self.packet.failures }
    }

    /// A container, or the rest of it, that cannot be listed: now, if that may pass and there are attempts left; else
    /// it is a failed unit.
    fn fail(&mut self, container: &ObjectKey, page: i64, error: &ConnectorError) {
        if error.is_retryable() && self.session.config().retries.has_more(self.failed_before()) {
            tracing::info!(task_id = %self.packet.claim.task, %container, %error, "container to be tried again");
            self.unavailable += 1;
            self.why.get_or_insert_with(|| error.to_string());
            return;
        }
        tracing::warn!(task_id = %self.packet.claim.task, %container, %error, "container not listed");
        self.push(UnitListing::failed(container.clone(), page, error.reason(), error.to_string()));
    }

    fn push(&mut self, listing: UnitListing) {
        if self.listed.is_empty() {
            self.listed_since = Instant::now();
        }
        if let UnitOutcome::Listed(records) = &listing.outcome {
            self.has_listed = true;
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
        let span = tracing::info_span!("batch", units = write.units(), records = write.records());
        let kind = self.kind;
        let committed = async move {
            let store = session.store();
            let written = async {
                match write {
                    Write::Units(units) => {
                        let commit = |units| store.commit_units(&claim, units);
                        session.give(&halt, units, commit).await.map(|()| None)
                    }
                    Write::Stage(batch) => {
                        let stage = |batch| store.stage_unit(&claim, batch);
                        session.give(&halt, batch, stage).await.map(Some)
                    }
                }
            };
            session.worker.metrics.commit(CommitCall::Units, kind, written).await
        };
        self.writing = Some(tokio::spawn(committed.instrument(span)));
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
        let (mut objects, mut bytes, mut unchanged) = (0, 0u64, 0);
        for record in records {
            match record.kind {
                RecordKind::File | RecordKind::Table | RecordKind::Rows => {
                    (objects, bytes) = (objects + 1, bytes.saturating_add(record.size))
                }
                RecordKind::Carried => objects += 1,
                RecordKind::Unchanged => unchanged += 1,
                RecordKind::Directory
                | RecordKind::Database
                | RecordKind::Schema
                | RecordKind::PartedTable
                | RecordKind::Skipped => {}
            }
        }
        let progress = &self.session.worker.progress;
        Progress::add(&progress.objects_listed, objects);
        Progress::add(&progress.bytes_listed, bytes);
        Progress::add(&progress.objects_unchanged, unchanged);
    }

    fn listing_time(&self) -> &Histogram {
        self.session.worker.metrics.stage(Stage::List, self.kind)
    }

    /// A write of what was listed.
    async fn committed<T>(&self, write: impl Future<Output = T>) -> T {
        self.session.worker.metrics.commit(CommitCall::Units, self.kind, write).await
    }
}

async fn complete(store: &dyn WorkerStore, claim: &Claim, units: Vec<UnitListing>) -> Result<(), StoreError> {
    done_under(store, claim, store.complete_enumeration(claim, units).await).await
}
