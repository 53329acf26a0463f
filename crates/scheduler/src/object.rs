//! One object in flight: what it is, its permit, and what was found in it so far.
//!
//! Every task that touches an object holds its [`ObjectRef`]. When the last one drops, the object is
//! finished: its findings and its report go to the sink, then its permit returns, and last its hold on
//! the packet ends. Which thread that is, and in which order its chunks were scanned, makes no
//! difference to what is reported.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use domesday_content::{Budget, ObjectError, UnsupportedFormat};
use domesday_engine::PathKind;
use domesday_model::reason::Weight;
use domesday_model::{Location, NestedStep, ObjectReport, ObjectStatus, Reason, TableObservation, redact};
use parking_lot::Mutex;

use crate::executor::Turn;
use crate::frontier::Permit;
use crate::occurrences::{Occurrences, Tally};
use crate::packet::PacketCtx;
use crate::source::ObjectDescriptor;

pub type ObjectRef = Arc<ObjectCtx>;

pub struct ObjectCtx {
    origin: Origin,
    location: OnceLock<Arc<Location>>,
    decoding: OnceLock<Arc<[Cow<'static, str>]>>,
    /// Something of the object was read; decides between partial and failed.
    touched: AtomicBool,
    bytes_scanned: AtomicU64,
    results: Mutex<Results>,
    /// `None` for a nested object that runs under its parent's permit. Before `packet`, so that the
    /// permit has returned when the packet is done.
    permit: Option<Permit>,
    /// What waits for the object to be finished. After `permit`, which it may need.
    _next: Option<Turn>,
    packet: Arc<PacketCtx>,
}

enum Origin {
    Root(ObjectDescriptor),
    Nested(Box<Nested>),
}

/// A nested object keeps its parent, and with it the parent's permit, until it is done itself.
struct Nested {
    parent: ObjectRef,
    step: NestedStep,
    kind: PathKind,
    budget: Arc<Budget>,
    depth: u32,
    /// The row of the table whose cell this is.
    row: Option<Box<str>>,
}

#[derive(Default)]
struct Results {
    occurrences: Occurrences,
    table: Option<TableObservation>,
    flaw: Option<Flaw>,
}

impl Results {
    /// Whether there is nothing to report, as of nearly all objects.
    fn is_empty(&self) -> bool {
        self.occurrences.is_empty() && self.table.is_none() && self.flaw.is_none()
    }
}

/// What kept an object from being scanned whole.
struct Flaw {
    /// Where in the object. The first flaw by place is reported, whichever thread met one first.
    at: u64,
    error: ObjectError,
}

/// The place of a flaw that is of the whole object and keeps nothing of it from being scanned. Any other comes before it.
const UNPLACED: u64 = u64::MAX;

impl ObjectCtx {
    pub(crate) fn root(
        packet: Arc<PacketCtx>,
        descriptor: ObjectDescriptor,
        permit: Permit,
        next: Option<Turn>,
    ) -> ObjectRef {
        Self::new(packet, Origin::Root(descriptor), Some(permit), next)
    }

    pub(crate) fn nested(
        parent: &ObjectRef,
        mut step: NestedStep,
        budget: Arc<Budget>,
        depth: u32,
        permit: Option<Permit>,
    ) -> ObjectRef {
        let kind = PathKind::of(&step.name);
        // The name is in what is found inside; it is not what the object is opened by.
        let secrets = redact::secret_parts(&step.name);
        if !secrets.is_empty() {
            step.name =
                redact::replaced(&step.name, &secrets, |secret| parent.packet.key.name(secret).into_bytes());
        }
        let nested = Nested { parent: Arc::clone(parent), step, kind, budget, depth, row: None };
        Self::new(Arc::clone(&parent.packet), Origin::Nested(Box::new(nested)), permit, None)
    }

    /// What is in one cell of a table. It is located by the column, which is that of the whole table where only a
    /// range of rows is read.
    pub(crate) fn cell(
        table: &ObjectRef,
        column: &Arc<Location>,
        row: Box<str>,
        budget: Arc<Budget>,
        depth: u32,
    ) -> ObjectRef {
        let step = column.nested.last().expect("a column is a step into its table").clone();
        let kind = PathKind::of(&step.name);
        let nested = Nested { parent: Arc::clone(table), step, kind, budget, depth, row: Some(row) };
        let cell = Self::new(Arc::clone(&table.packet), Origin::Nested(Box::new(nested)), None, None);
        let _ = cell.location.set(Arc::clone(column));
        cell
    }

    fn new(packet: Arc<PacketCtx>, origin: Origin, permit: Option<Permit>, next: Option<Turn>) -> ObjectRef {
        Arc::new(ObjectCtx {
            origin,
            location: OnceLock::new(),
            decoding: OnceLock::new(),
            touched: AtomicBool::new(false),
            bytes_scanned: AtomicU64::new(0),
            results: Mutex::default(),
            permit,
            _next: next,
            packet,
        })
    }

    pub(crate) fn packet(&self) -> &Arc<PacketCtx> {
        &self.packet
    }

    /// The object of the source, unless this one is nested.
    pub(crate) fn descriptor(&self) -> Option<&ObjectDescriptor> {
        match &self.origin {
            Origin::Root(descriptor) => Some(descriptor),
            Origin::Nested(_) => None,
        }
    }

    pub(crate) fn has_permit(&self) -> bool {
        self.permit.is_some()
    }

    /// The budget and depth for what is inside: the root's own when there is none yet.
    pub(crate) fn budget(&self, packed_size: Option<u64>) -> (Arc<Budget>, u32) {
        match &self.origin {
            Origin::Root(_) => (Budget::new(self.packet.options.limits, packed_size), 0),
            Origin::Nested(nested) => (Arc::clone(&nested.budget), nested.depth),
        }
    }

    /// The innermost name: what the object is called where it lies.
    pub(crate) fn name(&self) -> &[u8] {
        match &self.origin {
            Origin::Root(descriptor) => descriptor.path.as_bytes(),
            Origin::Nested(nested) => &nested.step.name,
        }
    }

    /// What its name makes of it.
    pub(crate) fn kind(&self) -> PathKind {
        match &self.origin {
            Origin::Root(descriptor) => descriptor.kind,
            Origin::Nested(nested) => nested.kind,
        }
    }

    pub(crate) fn location(&self) -> &Arc<Location> {
        self.location.get_or_init(|| {
            Arc::new(match &self.origin {
                Origin::Root(descriptor) => Location { key: descriptor.path.clone(), nested: Vec::new() },
                Origin::Nested(nested) => {
                    let mut location = Location::clone(nested.parent.location());
                    location.nested.push(nested.step.clone());
                    location
                }
            })
        })
    }

    /// The row of a table that the object is in.
    pub(crate) fn row(&self) -> Option<&str> {
        match &self.origin {
            Origin::Root(_) => None,
            Origin::Nested(nested) => nested.row.as_deref().or_else(|| nested.parent.row()),
        }
    }

    /// The object of the source that it is, or is in.
    fn outermost(&self) -> &ObjectDescriptor {
        match &self.origin {
            Origin::Root(descriptor) => descriptor,
            Origin::Nested(nested) => nested.parent.outermost(),
        }
    }

    /// Sets how the object's bytes are decoded; once, before the first chunk is scanned.
    pub(crate) fn set_decoding(&self, chain: Vec<&'static str>) {
        let first = self.decoding.set(chain.into_iter().map(Cow::Borrowed).collect()).is_ok();
        debug_assert!(first, "an object is decoded in one way");
    }

    pub(crate) fn decoding(&self) -> &Arc<[Cow<'static, str>]> {
        self.decoding.get_or_init(|| Arc::new([]))
    }

    /// Notes that something of the object could be read.
    pub(crate) fn touch(&self) {
        self.touched.store(true, Ordering::Relaxed);
    }

    pub(crate) fn add_scanned(&self, bytes: u64) {
        self.touch();
        self.bytes_scanned.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_findings(&self, tallies: Vec<Tally>) {
        let mut results = self.results.lock();
        results.occurrences.add(tallies, self.packet.options.occurrence_cap);
    }

    /// Adds what was found in a part of so many bytes; 0 when scanning it panicked.
    pub(crate) fn add_part(&self, len: u64, found: Vec<Tally>) {
        if len > 0 {
            self.add_scanned(len);
        }
        if !found.is_empty() {
            self.add_findings(found);
        }
    }

    /// Notes what was observed of the table that the object is.
    pub(crate) fn observe(&self, table: TableObservation) {
        self.results.lock().table = Some(table);
    }

    /// Notes that the object cannot be scanned whole, because of what is at offset `at`.
    pub(crate) fn flaw(&self, at: u64, error: ObjectError) {
        let mut results = self.results.lock();
        let order = |at: u64, error: &ObjectError| (at, error.reason, error.detail.clone());
        let earlier = |flaw: &Flaw| order(flaw.at, &flaw.error) <= order(at, &error);
        if !results.flaw.as_ref().is_some_and(earlier) {
            results.flaw = Some(Flaw { at, error });
        }
    }

    /// Whether something in the object keeps it from being scanned whole.
    pub(crate) fn is_flawed(&self) -> bool {
        self.results.lock().flaw.as_ref().is_some_and(|flaw| flaw.at != UNPLACED)
    }

    /// Notes that the object is of a format that is not read; any other flaw weighs more. Of the cells of a table, which
    /// may be very many, only the table is named.
    pub(crate) fn not_read(&self, format: UnsupportedFormat) {
        if let Origin::Nested(nested) = &self.origin
            && nested.row.is_some()
        {
            return nested.parent.not_read(format);
        }
        let error = match format.is_encrypted() {
            true => ObjectError::new(Reason::Encrypted, format!("an encrypted {}", format.name())),
            false => ObjectError::new(Reason::UnsupportedFormat, format.name()),
        };
        self.flaw(UNPLACED, error);
    }

    /// Hands the results to the sink.
    fn report(&self, results: Results) {
        let PacketCtx { sink, options, totals, .. } = &*self.packet;
        let Results { occurrences, table, flaw } = results;
        let (kept, overflow) = occurrences.finish(options.occurrence_cap);
        let reported = kept.iter().filter(|kept| kept.draft.suppressed.is_none()).count();
        totals.findings.fetch_add(reported as u64, Ordering::Relaxed);
        totals.overflow.fetch_add(overflow, Ordering::Relaxed);
        let weight = flaw.as_ref().map(|flaw| flaw.error.reason.weight());
        let is_incomplete = !matches!(weight, None | Some(Weight::Unsupported | Weight::Elsewhere));
        totals.incomplete.fetch_add(u64::from(is_incomplete), Ordering::Relaxed);
        if !kept.is_empty() {
            for kept in &kept {
                if let Some(raw) = kept.raw() {
                    sink.reveal(&kept.draft, raw);
                }
            }
            sink.findings(kept.into_iter().map(|kept| kept.draft).collect());
        }
        if let Some(table) = table {
            sink.table(table);
        }
        if flaw.is_none() && overflow == 0 {
            return;
        }
        let status = match weight {
            None => ObjectStatus::Scanned,
            Some(Weight::Skipped | Weight::Elsewhere) => ObjectStatus::Skipped,
            Some(Weight::Unsupported) => ObjectStatus::Unsupported,
            Some(Weight::Incomplete) if self.touched.load(Ordering::Relaxed) => ObjectStatus::Partial,
            Some(Weight::Incomplete) => ObjectStatus::Failed,
        };
        let (reason, detail) = flaw.map(|flaw| (flaw.error.reason, flaw.error.detail)).unzip();
        let detail = detail.unwrap_or_default();
        // Findings in a range of rows are those of its table; what became of the range is its own.
        let location = Location { key: self.outermost().path.clone(), ..Location::clone(self.location()) };
        sink.object(ObjectReport { location, status, reason, detail, overflow });
    }
}

/// The end of the object. The permit returns right after, as the fields drop.
impl Drop for ObjectCtx {
    fn drop(&mut self) {
        self.packet.count_completed();
        // What a cancelled packet has in flight was cut short without being at fault.
        if self.packet.is_cancelled() {
            return;
        }
        let totals = &self.packet.totals;
        totals.bytes_scanned.fetch_add(*self.bytes_scanned.get_mut(), Ordering::Relaxed);
        let objects = match &self.origin {
            Origin::Root(_) => &totals.objects,
            Origin::Nested(_) => &totals.nested_objects,
        };
        objects.fetch_add(1, Ordering::Relaxed);
        let results = self.results.get_mut();
        if !results.is_empty() {
            let results = std::mem::take(results);
            self.packet.guarded("the result sink", || self.report(results));
        }
    }
}
