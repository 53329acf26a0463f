//! One work packet on its way through the core, and what comes out of it.
//!
//! Every task of a packet holds its [`PacketCtx`], directly or through its object; the packet is done
//! when the last of them drops. There is no count to keep and so none to get wrong: the drop of the
//! context is the end, exactly once, after the results of every object.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use domesday_content::{Limits, ObjectError};
use domesday_engine::Scanner;
use domesday_model::{
    FindingDraft, FingerprintKey, ObjectCheckpoint, ObjectKey, ObjectReport, Reason, Score, TableObservation,
};
use parking_lot::{Condvar, Mutex};

use crate::metrics::KindSlot;
use crate::source::ObjectSource;

/// Where a packet's results go. Called on executor threads: quick, and never blocking for long.
pub trait ResultSink: Send + Sync {
    /// The findings of one object, at least one, in the order of their spans; of a table, by column and row. Those that
    /// a control suppresses are among them, and say so.
    fn findings(&self, findings: Vec<FindingDraft>);

    /// An object that needs a row: skipped, partial, failed, or with more findings than are kept.
    /// Comes after the object's findings.
    fn object(&self, report: ObjectReport);

    /// What was observed of a table, once all its rows were read. Comes after the object's findings.
    fn table(&self, _observation: TableObservation) {}

    /// How far an object was scanned whose findings are not there yet: with this and those before it, a later packet
    /// goes on from there ([`ObjectSource::checkpoints`]). In the order of their numbers.
    fn checkpoint(&self, _object: &ObjectKey, _checkpoint: ObjectCheckpoint) {}

    /// The packet's end: called exactly once, after all its objects.
    fn packet_done(&self, totals: PacketTotals);

    /// The value of a finding, just before `findings` gets it. Called only for packets that set
    /// [`PacketOptions::reveal`]; the value must not be stored or logged.
    fn reveal(&self, _finding: &FindingDraft, _raw: &RawValue) {}
}

/// What was found, as it is. It has no debug output.
pub struct RawValue {
    pub value: Box<[u8]>,
    /// The primary key of its row, or the row's number.
    pub row: Option<Box<str>>,
}

/// How far work has come, counted in what it moved: objects opened, bytes read, rows, entries listed. Whoever watches the
/// work sees the count grow while it is under way; what it counts does not matter. 0 is work that has not begun.
#[derive(Clone, Debug, Default)]
pub struct Moved(Arc<AtomicU64>);

impl Moved {
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Objects to scan, and how.
pub struct Packet {
    pub source: Arc<dyn ObjectSource>,
    pub sink: Arc<dyn ResultSink>,
    pub scanner: Arc<Scanner>,
    pub options: PacketOptions,
    /// Where the time that it takes is counted.
    pub kind: KindSlot,
    /// Grows as objects are opened and their bytes and rows come, however slowly.
    pub moved: Moved,
}

#[derive(Clone, Debug)]
pub struct PacketOptions {
    /// Findings below this score are dropped.
    pub min_score: Score,
    /// Occurrences kept per object and rule: the first ones; the others are counted.
    pub occurrence_cap: usize,
    /// Limits on what is inside one root object.
    pub limits: Limits,
    /// Hand raw values to [`ResultSink::reveal`].
    pub reveal: bool,
}

/// What became of a packet as a whole.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PacketTotals {
    /// Objects of the source that were dealt with, whatever their outcome.
    pub objects: u64,
    /// Objects found inside containers.
    pub nested_objects: u64,
    /// Objects that were not read, or not whole; each was reported.
    pub incomplete: u64,
    /// Bytes matched against the rules, after unpacking and decoding.
    pub bytes_scanned: u64,
    /// Findings handed to the sink, without those that are suppressed.
    pub findings: u64,
    /// Occurrences beyond the cap.
    pub overflow: u64,
    /// The packet was cancelled: it may have results, and they are not all.
    pub cancelled: bool,
    /// The enumeration, or the sink, failed: objects may be missing from the results.
    pub failure: Option<ObjectError>,
}

/// Cancels its packet on demand. Dropping it does nothing.
#[derive(Clone)]
pub struct PacketHandle {
    cancelled: Arc<AtomicBool>,
}

impl PacketHandle {
    /// Drops the objects not yet started and stops reading the others. `packet_done` is still called.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

/// The packets that are not done, and the end of all of them.
#[derive(Default)]
pub(crate) struct LivePackets {
    count: Mutex<usize>,
    none_left: Condvar,
    /// The core is being dropped: every packet counts as cancelled.
    abandoned: AtomicBool,
    pub(crate) objects_completed: AtomicU64,
}

impl LivePackets {
    /// Waits until every packet is done. Only off executor threads.
    pub(crate) fn wait(&self) {
        let mut count = self.count.lock();
        while *count > 0 {
            self.none_left.wait(&mut count);
        }
    }

    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }
}

/// What all tasks of a packet share.
pub struct PacketCtx {
    pub(crate) source: Arc<dyn ObjectSource>,
    pub(crate) sink: Arc<dyn ResultSink>,
    pub(crate) scanner: Arc<Scanner>,
    pub(crate) options: PacketOptions,
    pub(crate) kind: KindSlot,
    pub(crate) moved: Moved,
    pub(crate) key: FingerprintKey,
    pub(crate) totals: Totals,
    failure: Mutex<Option<ObjectError>>,
    cancelled: Arc<AtomicBool>,
    live: Arc<LivePackets>,
}

/// [`PacketTotals`] while they grow. Read when the last task has dropped, whose release of the shared
/// context orders every addition before it; so relaxed additions are enough.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) objects: AtomicU64,
    pub(crate) nested_objects: AtomicU64,
    pub(crate) incomplete: AtomicU64,
    pub(crate) bytes_scanned: AtomicU64,
    pub(crate) findings: AtomicU64,
    pub(crate) overflow: AtomicU64,
}

impl PacketCtx {
    pub(crate) fn new(
        packet: Packet,
        key: FingerprintKey,
        live: Arc<LivePackets>,
    ) -> (Arc<Self>, PacketHandle) {
        let cancelled = Arc::new(AtomicBool::new(false));
        *live.count.lock() += 1;
        let Packet { source, sink, scanner, mut options, kind, moved } = packet;
        options.occurrence_cap = options.occurrence_cap.max(1);
        let handle = PacketHandle { cancelled: Arc::clone(&cancelled) };
        let ctx = PacketCtx {
            source,
            sink,
            scanner,
            options,
            kind,
            moved,
            key,
            totals: Totals::default(),
            failure: Mutex::default(),
            cancelled,
            live,
        };
        (Arc::new(ctx), handle)
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed) || self.live.abandoned.load(Ordering::Relaxed)
    }

    /// Notes that the packet's results are not all there; the first cause is kept.
    pub(crate) fn fail(&self, error: ObjectError) {
        self.failure.lock().get_or_insert(error);
    }

    /// Calls code of the source or the sink that must not take the thread down with it.
    pub(crate) fn guarded(&self, what: &str, call: impl FnOnce()) {
        if catch_unwind(AssertUnwindSafe(call)).is_err() {
            self.fail(ObjectError::new(Reason::Panicked, format!("{what} panicked")));
        }
    }

    pub(crate) fn count_completed(&self) {
        self.live.objects_completed.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for PacketCtx {
    fn drop(&mut self) {
        let get = |total: &AtomicU64| total.load(Ordering::Relaxed);
        let totals = PacketTotals {
            objects: get(&self.totals.objects),
            nested_objects: get(&self.totals.nested_objects),
            incomplete: get(&self.totals.incomplete),
            bytes_scanned: get(&self.totals.bytes_scanned),
            findings: get(&self.totals.findings),
            overflow: get(&self.totals.overflow),
            cancelled: self.is_cancelled(),
            failure: self.failure.lock().take(),
        };
        // Nobody is left to tell of a panic here; the next packet must still run.
        let _ = catch_unwind(AssertUnwindSafe(|| self.sink.packet_done(totals)));
        let mut count = self.live.count.lock();
        *count -= 1;
        self.live.none_left.notify_all();
    }
}
