//! Classification of one packet: its objects through the scan core, their results into the book.
//!
//! Crash argument: results are staged under (task, claim) and become visible with the one fenced verb
//! that completes the task. If its answer is lost, the done row tells whether it was this claim's.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use domesday_connector::{Connector, ReadAhead};
use domesday_content::{Limits, ObjectError};
use domesday_model::{
    FindingDraft, ListedObject, ObjectCheckpoint, ObjectKey, ObjectReport, ScanOptions, TableObservation,
    VersionMarks,
};
use domesday_scheduler::{
    CursorState, EnumCursor, ObjectDescriptor, ObjectSource, Opened, Packet, PacketHandle, PacketOptions,
    PacketTotals, ResultSink,
};
use domesday_store::{Completion, ResultBatch, TaskTotals, WorkPacket};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::completer::Completer;
use crate::ControlError;
use crate::metrics::{CommitCall, Stage};
use crate::progress::Progress;
use crate::stop::Stop;
use crate::worker::packet::PacketError;
use crate::worker::session::Session;
use crate::worker::window::Slots;

/// Results held before they are staged.
const RESULT_BATCH_MAX: usize = 2_000;
/// Bytes of observations held before they are staged: those of one wide table may be megabytes.
const OBSERVATION_BYTES_MAX: usize = 4 << 20;
/// Messages of a packet on their way from the scan core; beyond that its threads wait.
const RESULTS_AHEAD: usize = 16;
/// Results that share a message: each wakes up whoever stages them.
const RESULTS_TOGETHER: usize = 64;
/// Bytes of nested archives held in memory at once, per object.
const NESTED_BUFFER_MAX: u64 = 64 << 20;

pub(super) async fn classify(
    session: &Session,
    completer: &Completer,
    packet: &WorkPacket,
    mut halt: Stop,
) -> Result<(), PacketError> {
    let worker = &session.worker;
    let connector = worker.connector(packet)?;
    let heeds_marks = worker.trusts_content(packet)?;
    let floor = packet.options.min_score;
    let objects = session.ask(&halt, || session.store().packet_objects(packet)).await?;
    let replaces = match packet.reads_again {
        true => objects.iter().map(|object| object.key.clone()).collect(),
        false => Vec::new(),
    };
    let (objects, carried) = carry_over(session, packet, objects, &halt).await?;
    let checkpoints = known_checkpoints(session, packet, &objects, &halt).await?;
    let scanner = session.ask(&halt, || async {
        let seal = &worker.surroundings.seal;
        match worker.rules.scanner(session.store(), packet.rule_set, floor, heeds_marks, seal).await {
            Err(ControlError::Store(error)) => Err(error),
            scanner => Ok(scanner),
        }
    });
    let scanner = scanner.await?.map_err(|error| PacketError::Permanent(error.to_string()))?;
    if halt.is_asked() {
        return Err(PacketError::Stopped);
    }
    let (sink, mut results) = Sink::new();
    let traces_origins = connector.traces_origins();
    let source = PacketSource::new(connector, objects, packet.datasource.id.0).going_on_from(checkpoints);
    let source = Arc::new(source);
    let options = packet_options(&packet.options);
    let in_core = InCore::new(session);
    let handle = worker.core.submit(Packet {
        source: Arc::clone(&source) as _,
        sink: Arc::new(sink),
        scanner,
        options,
        kind: worker.kind_slot(packet),
        moved: session.held.moved(&packet.claim),
    });
    let mut staging = Staging {
        session,
        completer,
        packet,
        source: &source,
        last_found: 0,
        halt: halt.clone(),
        batch: ResultBatch::default(),
        observation_bytes: 0,
        sequence: 0,
        findings: 0,
        carried: carried.len() as u64,
        untraced: traces_origins.then(BTreeSet::new),
        replaces,
    };
    for results in carried {
        staging.replay(results);
    }
    let mut cancelled = false;
    let totals = loop {
        let message = tokio::select! {
            message = results.recv() => message,
            () = halt.asked(), if !cancelled => {
                cancelled = true;
                handle.cancel();
                continue;
            }
        };
        let kept = match message {
            Some(Message::Results(results)) => {
                Progress::add(&worker.progress.findings, reported(&results.findings));
                staging.add(results);
                staging.stage_if_full().await
            }
            Some(Message::Checkpoint(key, checkpoint)) => staging.keep(key, checkpoint).await,
            Some(Message::Done(totals)) => break totals,
            None => return Err(PacketError::Retry("the scan core dropped the packet".into())),
        };
        if let Err(error) = kept {
            drain(&handle, results).await;
            return Err(error);
        }
    };
    drop(in_core);
    if totals.cancelled {
        return Err(PacketError::Stopped);
    }
    if let Some(failure) = totals.failure {
        return Err(PacketError::Retry(failure.to_string()));
    }
    Progress::add(&worker.progress.objects_done, totals.objects + staging.carried);
    staging.complete(&totals).await
}

/// Takes out the objects that have not changed since the last scan and had results in it, with those results.
/// When the last scan is no longer in the book they are scanned like any other.
async fn carry_over(
    session: &Session,
    packet: &WorkPacket,
    mut objects: Vec<ListedObject>,
    halt: &Stop,
) -> Result<(Vec<ListedObject>, Vec<ResultBatch>), PacketError> {
    let Some(base) = &packet.base else { return Ok((objects, Vec::new())) };
    let carried: Vec<ListedObject> = objects.extract_if(.., |object| object.is_carried()).collect();
    if carried.is_empty() {
        return Ok((objects, Vec::new()));
    }
    let keys: Vec<ObjectKey> = carried.iter().map(|object| object.key.clone()).collect();
    let store = session.store();
    let prior = session.ask(halt, || store.prior_results(base, keys.clone())).await?;
    let mut results = Vec::with_capacity(carried.len());
    for (object, prior) in carried.into_iter().zip(prior) {
        match prior {
            Some(prior) => results.push(prior),
            None => objects.push(object),
        }
    }
    Ok((objects, results))
}

/// How far earlier claims came with the very large ones of these objects.
async fn known_checkpoints(
    session: &Session,
    packet: &WorkPacket,
    objects: &[ListedObject],
    halt: &Stop,
) -> Result<Checkpoints, PacketError> {
    let least = session.worker.core.checkpointed_size();
    let large = objects.iter().filter(|object| object.size >= least);
    let keys: Vec<ObjectKey> = large.map(|object| object.key.clone()).collect();
    if keys.is_empty() {
        return Ok(Checkpoints::new());
    }
    let store = session.store();
    let known = session.ask(halt, || store.object_checkpoints(&packet.claim, &keys)).await?;
    Ok(keys.into_iter().zip(known).collect())
}

/// How many of them no control suppresses.
fn reported(findings: &[FindingDraft]) -> u64 {
    findings.iter().filter(|found| found.suppressed.is_none()).count() as u64
}

/// Lets the scan core finish with a packet whose results nobody wants any more.
async fn drain(handle: &PacketHandle, mut results: mpsc::Receiver<Message>) {
    handle.cancel();
    while results.recv().await.is_some() {}
}

pub(crate) fn packet_options(options: &ScanOptions) -> PacketOptions {
    PacketOptions {
        min_score: options.min_score,
        occurrence_cap: options.occurrence_cap as usize,
        limits: Limits {
            max_depth: options.max_depth,
            max_entries: options.max_entries,
            max_unpacked_bytes: options.max_unpacked_bytes,
            max_inflation: options.max_inflation,
            max_buffered: NESTED_BUFFER_MAX,
        },
        reveal: false,
    }
}

/// A packet's time in the scan core, by which the window is measured.
struct InCore<'a>(&'a Session);

impl InCore<'_> {
    fn new(session: &Session) -> InCore<'_> {
        session.flow(Slots::Core).ready.fetch_add(1, Ordering::Relaxed);
        InCore(session)
    }
}

impl Drop for InCore<'_> {
    fn drop(&mut self) {
        let worker = &self.0.worker;
        let (starved, size) = self.0.flow(Slots::Core).left_core(worker.core.threads());
        worker.metrics.core_starved.add(u64::from(starved));
        worker.metrics.packets_allowed.set(size as u64);
    }
}

/// Results on their way into the book.
struct Staging<'a> {
    session: &'a Session,
    completer: &'a Completer,
    packet: &'a WorkPacket,
    source: &'a PacketSource,
    /// Place of the object that the last finding was in: that of the next one is mostly near.
    last_found: usize,
    halt: Stop,
    batch: ResultBatch,
    /// Of the observations in the batch.
    observation_bytes: usize,
    /// How many results were staged before the batch.
    sequence: u64,
    findings: u64,
    /// Objects that were not read again.
    carried: u64,
    /// Objects with findings or problems whose origin is to be looked up, for kinds of source that know it.
    untraced: Option<BTreeSet<ObjectKey>>,
    /// Objects that were read before.
    replaces: Vec<ObjectKey>,
}

impl Staging<'_> {
    /// Adds results, those of objects with the version of them that was listed.
    fn add(&mut self, results: Results) {
        for of_one in results.findings.chunk_by(|one, next| one.location.key == next.location.key) {
            let key = &of_one[0].location.key;
            if let Some(marks) = self.listed_marks(key) {
                self.batch.versions.insert(key.clone(), marks);
            }
        }
        self.extend(results.findings);
        if let Some(untraced) = &mut self.untraced {
            // What is to be read and was not is looked for by people, too.
            untraced.extend(results.objects.iter().map(|report| report.location.key.clone()));
        }
        self.batch.objects.extend(results.objects);
        results.tables.into_iter().for_each(|observation| self.observe(observation));
    }

    fn listed_marks(&mut self, key: &ObjectKey) -> Option<VersionMarks> {
        let objects = &self.source.objects;
        let nearest_first = (self.last_found..objects.len()).chain((0..self.last_found).rev());
        let at = nearest_first.into_iter().find(|&at| objects[at].key == *key)?;
        self.last_found = at;
        Some(objects[at].marks)
    }

    /// Adds what the last scan had found in an object that is still the same.
    fn replay(&mut self, prior: ResultBatch) {
        self.batch.versions.extend(prior.versions);
        self.batch.objects.extend(prior.objects);
        prior.tables.into_iter().for_each(|observation| self.observe(observation));
        self.extend(prior.findings);
    }

    fn observe(&mut self, observation: TableObservation) {
        self.observation_bytes += observation.sketches.iter().map(Vec::len).sum::<usize>();
        self.batch.tables.push(observation);
    }

    fn extend(&mut self, findings: Vec<FindingDraft>) {
        if let Some(untraced) = &mut self.untraced {
            let of_each = findings.chunk_by(|one, next| one.location.key == next.location.key);
            untraced.extend(of_each.map(|of_one| of_one[0].location.key.clone()));
        }
        self.findings += reported(&findings);
        self.batch.findings.extend(findings);
    }

    async fn stage_if_full(&mut self) -> Result<(), PacketError> {
        if self.batch.len() < RESULT_BATCH_MAX && self.observation_bytes < OBSERVATION_BYTES_MAX {
            return Ok(());
        }
        let batch = std::mem::take(&mut self.batch);
        self.observation_bytes = 0;
        let (store, claim, sequence) = (self.session.store(), &self.packet.claim, self.sequence);
        self.sequence += batch.len() as u64;
        let staged =
            self.session.give(&self.halt, batch, |batch| store.stage_results(claim, sequence, batch));
        let worker = &self.session.worker;
        worker.metrics.commit(CommitCall::Results, worker.kind_slot(self.packet), staged).await?;
        Ok(())
    }

    /// Keeps how far an object was scanned, before more of it is heard.
    async fn keep(&self, key: ObjectKey, checkpoint: ObjectCheckpoint) -> Result<(), PacketError> {
        let (store, claim) = (self.session.store(), &self.packet.claim);
        let (task_id, offset) = (claim.task, checkpoint.offset);
        let save = |(key, checkpoint): (ObjectKey, ObjectCheckpoint)| async move {
            store.save_object_checkpoint(claim, &key, checkpoint).await
        };
        self.session.give(&self.halt, (key, checkpoint), save).await?;
        tracing::debug!(%task_id, offset, "checkpoint inside of an object");
        Ok(())
    }

    async fn complete(self, totals: &PacketTotals) -> Result<(), PacketError> {
        let totals = TaskTotals {
            objects: totals.objects + self.carried,
            nested: totals.nested_objects,
            bytes: totals.bytes_scanned,
        };
        let completion = Completion {
            claim: self.packet.claim,
            first_sequence: self.sequence,
            batch: self.batch,
            totals,
            untraced: self.untraced.unwrap_or_default().into_iter().collect(),
            replaces: self.replaces,
        };
        let worker = &self.session.worker;
        let metrics = &worker.metrics;
        let waiting = metrics.completions_waiting.held();
        let committed = metrics.stage(Stage::Commit, worker.kind_slot(self.packet));
        committed.timed(self.completer.complete(completion)).await?;
        drop(waiting);
        metrics.objects.add(totals.objects);
        metrics.bytes.add(totals.bytes);
        metrics.findings.add(self.findings);
        Ok(())
    }
}

/// Checkpoints of objects, each object's in order.
type Checkpoints = HashMap<ObjectKey, Vec<ObjectCheckpoint>>;

/// A packet's objects, as the scan core asks for them.
pub(crate) struct PacketSource {
    connector: Arc<dyn Connector>,
    /// For a source that is far away: its objects are on their way already.
    ahead: Option<Box<dyn ReadAhead>>,
    objects: Arc<[ListedObject]>,
    source_id: i64,
    /// Of very large objects that were begun.
    checkpoints: Mutex<Checkpoints>,
}

impl PacketSource {
    pub fn new(connector: Arc<dyn Connector>, objects: Vec<ListedObject>, source_id: i64) -> PacketSource {
        let objects = Arc::from(objects);
        let ahead = connector.read_ahead(&objects);
        PacketSource { connector, ahead, objects, source_id, checkpoints: Mutex::default() }
    }

    fn going_on_from(self, checkpoints: Checkpoints) -> PacketSource {
        PacketSource { checkpoints: Mutex::new(checkpoints), ..self }
    }
}

impl ObjectSource for PacketSource {
    fn enumerate(
        &self,
        cursor: &mut EnumCursor,
        max: usize,
        out: &mut Vec<ObjectDescriptor>,
    ) -> Result<(), ObjectError> {
        let from = match cursor {
            EnumCursor::Continue(state) => match state.as_ref() {
                CursorState::Offset(offset) => *offset as usize,
                _ => 0,
            },
            _ => 0,
        };
        let to = (from + max).min(self.objects.len());
        out.extend(self.objects[from..to].iter().enumerate().map(|(index, object)| ObjectDescriptor {
            path: object.key.clone(),
            kind: self.connector.path_kind(object),
            is_rows: object.kind.is_rows(),
            size_hint: Some(object.size),
            object_id: (from + index) as u64,
            source_id: self.source_id,
        }));
        *cursor = if to == self.objects.len() { EnumCursor::Done } else { EnumCursor::offset(to as u64) };
        Ok(())
    }

    fn open(&self, object: &ObjectDescriptor) -> Result<Opened, ObjectError> {
        let index = object.object_id as usize;
        match &self.ahead {
            Some(ahead) => ahead.open(index),
            None => self.connector.open(&self.objects[index]),
        }
    }

    fn checkpoints(&self, object: &ObjectDescriptor) -> Vec<ObjectCheckpoint> {
        self.checkpoints.lock().remove(&object.path).unwrap_or_default()
    }
}

enum Message {
    Results(Results),
    Checkpoint(ObjectKey, ObjectCheckpoint),
    Done(PacketTotals),
}

/// What the scan core says of objects; all findings of one together.
#[derive(Default)]
struct Results {
    findings: Vec<FindingDraft>,
    objects: Vec<ObjectReport>,
    tables: Vec<TableObservation>,
}

impl Results {
    /// A table's observations may be large: they go at once.
    fn is_full(&self) -> bool {
        self.findings.len() + self.objects.len() >= RESULTS_TOGETHER || !self.tables.is_empty()
    }
}

/// Hands results over to the packet's async side, several at once. A receiver that is gone has no use for them.
struct Sink {
    sender: mpsc::Sender<Message>,
    /// Locked only to add to them or to take them, never while waiting for the receiver. What was taken is sent
    /// before the call that took it returns, so that all are on their way when the core says that it is done.
    waiting: Mutex<Results>,
}

impl Sink {
    fn new() -> (Sink, mpsc::Receiver<Message>) {
        let (sender, receiver) = mpsc::channel(RESULTS_AHEAD);
        (Sink { sender, waiting: Mutex::default() }, receiver)
    }

    fn add(&self, add: impl FnOnce(&mut Results)) {
        let mut waiting = self.waiting.lock();
        add(&mut waiting);
        if waiting.is_full() {
            let results = std::mem::take(&mut *waiting);
            drop(waiting);
            self.send(Message::Results(results));
        }
    }

    fn send(&self, message: Message) {
        let _ = self.sender.blocking_send(message);
    }
}

impl ResultSink for Sink {
    fn findings(&self, findings: Vec<FindingDraft>) {
        self.add(|waiting| waiting.findings.extend(findings));
    }

    fn object(&self, report: ObjectReport) {
        self.add(|waiting| waiting.objects.push(report));
    }

    fn table(&self, observation: TableObservation) {
        self.add(|waiting| waiting.tables.push(observation));
    }

    fn checkpoint(&self, object: &ObjectKey, checkpoint: ObjectCheckpoint) {
        self.send(Message::Checkpoint(object.clone(), checkpoint));
    }

    fn packet_done(&self, totals: PacketTotals) {
        let left = std::mem::take(&mut *self.waiting.lock());
        self.send(Message::Results(left));
        self.send(Message::Done(totals));
    }
}
