//! Objects in memory, a sink that keeps everything, and archives made by hand.

use std::io::{self, Cursor, Read};
use std::sync::{Arc, Mutex, OnceLock};

use domesday_content::{Input, Limits, ObjectError, ReadAt};
use domesday_engine::{RuleSet, RuleSource, Scanner};
use domesday_model::{
    FindingDraft, FingerprintKey, ObjectCheckpoint, ObjectKey, ObjectReport, Reason, Score, TableObservation,
};

use super::table::{Table, open_all};
use crate::executor::Shared;
use crate::*;

const RULE: &str = r#"
[[rule]]
id = "test-key"
description = "A key of these tests"
category = "marking"
regex = '\bKEY-[a-z0-9]{8}\b'
triggers = ["KEY-"]
score = 80
positive = ["KEY-q0000001", "a KEY-a1b2c3d4 b"]
negative = ["KEY-", "KEY-0"]
"#;

/// A rule that matches `KEY-` and eight lower-case letters or digits.
pub(super) fn scanner() -> Arc<Scanner> {
    static SCANNER: OnceLock<Arc<Scanner>> = OnceLock::new();
    Arc::clone(SCANNER.get_or_init(|| scanner_with("")))
}

/// The same with more in the file.
fn scanner_with(more: &str) -> Arc<Scanner> {
    let source = RuleSource { name: "test.toml".to_owned(), text: format!("{RULE}{more}") };
    Arc::new(Scanner::new(Arc::new(RuleSet::load(&[source]).unwrap())))
}

pub(super) fn key(n: usize) -> String {
    format!("KEY-q{n:07}")
}

pub(super) fn options() -> PacketOptions {
    let limits = Limits {
        max_depth: 8,
        max_entries: 10_000,
        max_unpacked_bytes: 64 << 20,
        max_inflation: 1000,
        max_buffered: 16 << 20,
    };
    PacketOptions { min_score: Score(0), occurrence_cap: 100, limits, reveal: false }
}

/// How an object behaves.
#[derive(Clone)]
pub(super) enum Body {
    /// Whole, with random access, of the size it says.
    Bytes(Arc<Vec<u8>>),
    /// As a stream of unknown size that comes in small pieces.
    Stream(Arc<Vec<u8>>),
    /// Said to be larger than it is.
    Short(Arc<Vec<u8>>),
    /// Read through `random` only if that is near.
    Placed(Arc<dyn ReadAt>),
    Denied,
    OpenPanics,
    /// Panics when so many bytes were read.
    ReadPanics(usize),
    /// Fails when so many bytes were read.
    ReadFails(usize),
    /// Rows.
    Table(Arc<Table>),
    /// Several tables, by name; one that cannot be opened is `None`.
    Tables(Vec<(&'static str, Option<Table>)>),
}

impl Body {
    pub(super) fn bytes(bytes: impl Into<Vec<u8>>) -> Body {
        Body::Bytes(Arc::new(bytes.into()))
    }

    pub(super) fn stream(bytes: impl Into<Vec<u8>>) -> Body {
        Body::Stream(Arc::new(bytes.into()))
    }

    pub(super) fn table(table: Table) -> Body {
        Body::Table(Arc::new(table))
    }
}

type Hook = Box<dyn Fn(&Shared) + Send + Sync>;

/// Objects named `o0`, `o1`, … in order.
pub(super) struct Memory {
    bodies: Vec<Body>,
    /// Ends each of those names.
    suffix: &'static str,
    /// The core, for those that look at it from inside.
    shared: OnceLock<Arc<Shared>>,
    on_read: Option<Hook>,
    /// What earlier scans said of the objects, whichever is asked for.
    known: Vec<ObjectCheckpoint>,
}

impl ObjectSource for Memory {
    fn checkpoints(&self, _: &ObjectDescriptor) -> Vec<ObjectCheckpoint> {
        self.known.clone()
    }

    fn enumerate(
        &self,
        cursor: &mut EnumCursor,
        max: usize,
        out: &mut Vec<ObjectDescriptor>,
    ) -> Result<(), ObjectError> {
        let from = match cursor {
            EnumCursor::Continue(state) => match **state {
                CursorState::Offset(offset) => offset as usize,
                _ => panic!("this source uses offsets"),
            },
            _ => 0,
        };
        let to = self.bodies.len().min(from + max);
        out.extend((from..to).map(|n| ObjectDescriptor {
            path: ObjectKey::new(format!("o{n}{}", self.suffix)),
            is_rows: matches!(self.bodies[n], Body::Table(_)),
            object_id: n as u64,
            ..ObjectDescriptor::default()
        }));
        *cursor = if to == self.bodies.len() { EnumCursor::Done } else { EnumCursor::offset(to as u64) };
        Ok(())
    }

    fn open(&self, object: &ObjectDescriptor) -> Result<Opened, ObjectError> {
        if let (Some(hook), Some(shared)) = (&self.on_read, self.shared.get()) {
            hook(shared);
        }
        let stream = |reader: Box<dyn Read + Send>| Ok(OpenBytes::stream(reader, None));
        let opened = match &self.bodies[object.object_id as usize] {
            Body::Bytes(bytes) => {
                let (reader, size) = (Box::new(Cursor::new(bytes.to_vec())), bytes.len() as u64);
                Ok(OpenBytes::seekable(reader, Arc::clone(bytes) as Arc<dyn ReadAt>, Some(size)))
            }
            Body::Stream(bytes) => stream(Box::new(Pieces(Cursor::new(bytes.to_vec())))),
            Body::Short(bytes) => {
                Ok(OpenBytes::stream(Box::new(Cursor::new(bytes.to_vec())), Some(bytes.len() as u64 + 100)))
            }
            Body::Placed(bytes) => {
                let reader = Input::read_from(Arc::clone(bytes), 0);
                Ok(OpenBytes::seekable(reader, Arc::clone(bytes), Some(bytes.size()?)))
            }
            Body::Denied => Err(io::Error::from(io::ErrorKind::PermissionDenied).into()),
            Body::OpenPanics => panic!("open failed badly"),
            Body::ReadPanics(after) => {
                stream(Box::new(Cursor::new(noise(*after)).chain(Bad { panics: true })))
            }
            Body::ReadFails(after) => {
                stream(Box::new(Cursor::new(noise(*after)).chain(Bad { panics: false })))
            }
            Body::Table(table) => return Ok(Table::open_root(table, &object.path)),
            Body::Tables(tables) => return Ok(Opened::Tables(open_all(tables.clone()))),
        };
        opened.map(Opened::Bytes)
    }
}

pub(super) fn noise(len: usize) -> Vec<u8> {
    b"lorem ipsum ".iter().copied().cycle().take(len).collect()
}

struct Bad {
    panics: bool,
}

impl Read for Bad {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        assert!(!self.panics, "read failed badly");
        Err(io::Error::other("the disk is gone"))
    }
}

/// Gives at most seven bytes at a time.
struct Pieces(Cursor<Vec<u8>>);

impl Read for Pieces {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let len = buf.len().min(7);
        self.0.read(&mut buf[..len])
    }
}

#[derive(Default)]
pub(super) struct Collector {
    pub(super) findings: Mutex<Vec<FindingDraft>>,
    pub(super) reports: Mutex<Vec<ObjectReport>>,
    pub(super) totals: Mutex<Vec<PacketTotals>>,
    pub(super) tables: Mutex<Vec<TableObservation>>,
    pub(super) revealed: Mutex<Vec<Vec<u8>>>,
    pub(super) checkpoints: Mutex<Vec<ObjectCheckpoint>>,
}

impl ResultSink for Collector {
    fn findings(&self, findings: Vec<FindingDraft>) {
        let column = |finding: &FindingDraft| finding.location.nested.last().map(|step| step.ordinal);
        let place = |finding: &FindingDraft| (column(finding), finding.position.line, finding.span);
        assert!(!findings.is_empty() && findings.is_sorted_by_key(place));
        self.findings.lock().unwrap().extend(findings);
    }

    fn object(&self, report: ObjectReport) {
        self.reports.lock().unwrap().push(report);
    }

    fn table(&self, observation: TableObservation) {
        self.tables.lock().unwrap().push(observation);
    }

    fn checkpoint(&self, _: &ObjectKey, checkpoint: ObjectCheckpoint) {
        self.checkpoints.lock().unwrap().push(checkpoint);
    }

    fn packet_done(&self, totals: PacketTotals) {
        self.totals.lock().unwrap().push(totals);
    }

    fn reveal(&self, _: &FindingDraft, raw: &RawValue) {
        self.revealed.lock().unwrap().push(raw.value.to_vec());
    }
}

/// What came out of one packet, in a fixed order.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Outcome {
    pub(super) findings: Vec<FindingDraft>,
    pub(super) tables: Vec<TableObservation>,
    pub(super) reports: Vec<ObjectReport>,
    pub(super) totals: PacketTotals,
}

impl Outcome {
    /// Location, status and reason of every report.
    pub(super) fn reported(&self) -> Vec<(String, &'static str, Option<Reason>)> {
        let brief = |r: &ObjectReport| (r.location.to_string(), r.status.as_str(), r.reason);
        self.reports.iter().map(brief).collect()
    }

    pub(super) fn places(&self) -> Vec<String> {
        self.findings.iter().map(|finding| finding.location.to_string()).collect()
    }
}

/// A core and a packet, to be set up and run to the end.
pub(super) struct Survey {
    pub(super) config: CoreConfig,
    pub(super) options: PacketOptions,
    scanner: Arc<Scanner>,
    suffix: &'static str,
    on_read: Option<Hook>,
    known: Vec<ObjectCheckpoint>,
}

impl Survey {
    pub(super) fn new(threads: usize) -> Self {
        Survey {
            config: CoreConfig::for_threads(threads),
            options: options(),
            scanner: scanner(),
            suffix: "",
            on_read: None,
            known: Vec::new(),
        }
    }

    /// With checkpoints at this distance, after these ones.
    pub(super) fn checkpoints(mut self, distance: u64, known: &[ObjectCheckpoint]) -> Self {
        self.config.checkpoint_distance = distance;
        self.known = known.to_vec();
        self
    }

    /// With names that end so.
    pub(super) fn suffix(mut self, suffix: &'static str) -> Self {
        self.suffix = suffix;
        self
    }

    pub(super) fn frontier(mut self, capacity: usize) -> Self {
        self.config.frontier_capacity = capacity;
        self
    }

    pub(super) fn chunk(mut self, chunk_size: usize) -> Self {
        self.config.chunk_size = chunk_size;
        self
    }

    pub(super) fn cap(mut self, cap: usize) -> Self {
        self.options.occurrence_cap = cap;
        self
    }

    /// With an allow list, as it is written.
    pub(super) fn allow(mut self, allow: &str) -> Self {
        self.scanner = scanner_with(&format!("[[allow]]\n{allow}"));
        self
    }

    /// Called whenever an object is opened.
    pub(super) fn on_open(mut self, hook: impl Fn(&Shared) + Send + Sync + 'static) -> Self {
        self.on_read = Some(Box::new(hook));
        self
    }

    pub(super) fn run(self, bodies: Vec<Body>) -> Outcome {
        self.run_with_metrics(bodies).0
    }

    pub(super) fn run_with_metrics(self, bodies: Vec<Body>) -> (Outcome, Metrics) {
        let (outcome, metrics, _) = self.run_recorded(bodies);
        (outcome, metrics)
    }

    pub(super) fn run_recorded(self, bodies: Vec<Body>) -> (Outcome, Metrics, Vec<ObjectCheckpoint>) {
        let core = core(self.config);
        let buffers = Arc::clone(&core.shared().buffers);
        let (suffix, on_read) = (self.suffix, self.on_read);
        let source = Arc::new(Memory { bodies, suffix, shared: OnceLock::new(), on_read, known: self.known });
        assert!(source.shared.set(Arc::clone(core.shared())).is_ok());
        let sink = Arc::new(Collector::default());
        core.submit(Packet { scanner: self.scanner, ..packet(source, &sink, self.options) });
        let metrics = core.shutdown();
        assert!(buffers.made() <= self.config.buffer_count, "the pool kept its bound");
        assert_eq!(buffers.free(), buffers.made(), "every buffer came back");
        let checkpoints = std::mem::take(&mut *sink.checkpoints.lock().unwrap());
        (outcome(&sink), metrics, checkpoints)
    }
}

/// Objects that nobody looks at from inside.
pub(super) fn memory(bodies: Vec<Body>) -> Arc<Memory> {
    Arc::new(Memory { bodies, suffix: "", shared: OnceLock::new(), on_read: None, known: Vec::new() })
}

pub(super) fn fingerprint_key() -> FingerprintKey {
    FingerprintKey::new([7; 32])
}

pub(super) fn core(config: CoreConfig) -> ScanCore {
    ScanCore::new(config, fingerprint_key()).unwrap()
}

pub(super) fn packet(source: Arc<dyn ObjectSource>, sink: &Arc<Collector>, options: PacketOptions) -> Packet {
    Packet {
        source,
        sink: Arc::clone(sink) as Arc<dyn ResultSink>,
        scanner: scanner(),
        options,
        kind: KindSlot::default(),
        moved: Moved::default(),
    }
}

pub(super) fn outcome(sink: &Collector) -> Outcome {
    let mut findings = std::mem::take(&mut *sink.findings.lock().unwrap());
    let place = |finding: &FindingDraft| (finding.position.line, finding.span);
    findings.sort_by(|a, b| (&a.location, &a.row, place(a)).cmp(&(&b.location, &b.row, place(b))));
    let mut tables = std::mem::take(&mut *sink.tables.lock().unwrap());
    tables.sort_by(|a, b| (&a.part, &a.table).cmp(&(&b.part, &b.table)));
    let mut reports = std::mem::take(&mut *sink.reports.lock().unwrap());
    reports.sort_by(|a, b| a.location.cmp(&b.location));
    let mut totals = std::mem::take(&mut *sink.totals.lock().unwrap());
    assert_eq!(totals.len(), 1, "a packet is done exactly once");
    Outcome { findings, tables, reports, totals: totals.remove(0) }
}

/// A tar of these files.
pub(super) fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, content) in files {
        let mut header = [0u8; 512];
        let mut put = |at: usize, text: &[u8]| header[at..at + text.len()].copy_from_slice(text);
        put(0, name.as_bytes());
        put(100, b"0000644\0");
        put(108, b"0000000\0");
        put(116, b"0000000\0");
        put(124, format!("{:011o}\0", content.len()).as_bytes());
        put(136, b"00000000000\0");
        put(148, b"        ");
        put(156, b"0");
        put(257, b"ustar\x0000");
        let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        out.extend_from_slice(&header);
        out.extend_from_slice(content);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + 1024, 0);
    out
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}
