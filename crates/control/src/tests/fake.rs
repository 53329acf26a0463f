//! A connector over a tree in memory whose listings can be made to stop, wait, fail or panic at a chosen place.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use domesday_connector::{Connector, ConnectorError, ConnectorFactory, Listing, ReadAhead, Surroundings};
use domesday_content::{ObjectError, OpenTable, RowReader};
use domesday_model::{
    ColumnShape, ListedObject, ObjectKey, Origin, Reason, RecordKind, ResumePolicy, RowBatch, TableShape,
    UnitRecord, VersionMarks,
};
use domesday_scheduler::{Moved, OpenBytes, Opened};
use tokio::runtime::Handle;

use super::{KEY, KIND};
use crate::{Metrics, Stop, StopSignal};

/// The pause between two looks at whether something has happened.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What happens when a listing has given so many entries; once.
#[derive(Clone)]
pub enum Mishap {
    /// Asks for a stop, and gives nothing before the worker has told its packets of it.
    Stop(StopSignal, Arc<Metrics>),
    Fail,
    /// Breaks off, and may be there again later.
    BreakOff,
    /// Asks to be left alone for so long.
    Wait(Duration),
    Panic,
    /// Says that it is there, and holds its thread until it is let go, as a file system that does not answer.
    Hold(StopSignal, Stop),
}

/// Numbers by key.
#[derive(Default)]
pub struct Counts(Mutex<BTreeMap<String, usize>>);

impl Counts {
    pub fn set(&self, key: &str, count: usize) {
        self.0.lock().unwrap().insert(key.to_owned(), count);
    }

    pub fn get(&self, key: &str) -> usize {
        self.0.lock().unwrap().get(key).copied().unwrap_or(0)
    }

    fn add_one(&self, key: &ObjectKey) {
        *self.0.lock().unwrap().entry(key.to_string()).or_default() += 1;
    }

    /// Whether there was one more.
    fn take_one(&self, key: &ObjectKey) -> bool {
        match self.0.lock().unwrap().get_mut(&key.to_string()) {
            Some(count @ 1..) => {
                *count -= 1;
                true
            }
            _ => false,
        }
    }
}

/// A tree in memory: folders with names, and one key in every object.
pub struct Fake {
    pub folders: BTreeMap<&'static str, usize>,
    policy: ResumePolicy,
    mishap: Mutex<Option<(usize, Mishap)>>,
    listings: AtomicUsize,
    /// How often containers and objects are not there yet when they are asked for, by key.
    pub absent: Counts,
    /// How often the reading of an object breaks off, by key.
    pub broken: Counts,
    /// How often each container was asked for.
    pub asked: Counts,
    /// Batches asked for.
    pub batches: AtomicUsize,
    /// Objects opened.
    pub opened: AtomicUsize,
    /// The version of all objects; `None` where the source has none.
    pub version: Mutex<Option<u8>>,
    /// Whether it knows where objects came from.
    pub traces: AtomicBool,
    /// Whether it is a database: schemas of tables, each with one row.
    pub is_database: AtomicBool,
    /// Whether the objects of a packet are asked for together.
    pub reads_ahead: AtomicBool,
    /// For the next object that is opened: each of its bytes waits for a word, until there will be no more words.
    pub slow: Mutex<Option<mpsc::Receiver<()>>>,
}

impl Fake {
    pub fn new(folders: &[(&'static str, usize)], policy: ResumePolicy) -> Arc<Fake> {
        Arc::new(Fake {
            folders: folders.iter().copied().collect(),
            policy,
            mishap: Mutex::default(),
            listings: AtomicUsize::new(0),
            absent: Counts::default(),
            broken: Counts::default(),
            asked: Counts::default(),
            batches: AtomicUsize::new(0),
            opened: AtomicUsize::new(0),
            version: Mutex::default(),
            traces: AtomicBool::new(false),
            is_database: AtomicBool::new(false),
            reads_ahead: AtomicBool::new(false),
            slow: Mutex::default(),
        })
    }

    /// One that says which version its objects have.
    pub fn versioned(folders: &[(&'static str, usize)], policy: ResumePolicy) -> Arc<Fake> {
        let fake = Fake::new(folders, policy);
        *fake.version.lock().unwrap() = Some(1);
        fake
    }

    pub fn then(self: &Arc<Self>, after: usize, mishap: Mishap) {
        *self.mishap.lock().unwrap() = Some((after, mishap));
    }
}

pub struct FakeFactory(pub Arc<Fake>);

impl ConnectorFactory for FakeFactory {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn create(&self, _: &serde_json::Value, _: &Surroundings) -> Result<Arc<dyn Connector>, ConnectorError> {
        Ok(Arc::new(FakeConnector(Arc::clone(&self.0))))
    }
}

struct FakeConnector(Arc<Fake>);

#[async_trait]
impl Connector for FakeConnector {
    fn resume_policy(&self, _: &ObjectKey) -> ResumePolicy {
        self.0.policy
    }

    async fn list(
        &self,
        container: &ObjectKey,
        resume_point: Option<&str>,
    ) -> Result<Box<dyn Listing>, ConnectorError> {
        let fake = Arc::clone(&self.0);
        fake.asked.add_one(container);
        if fake.absent.take_one(container) {
            return Err(ConnectorError::unavailable("connection refused"));
        }
        let version = *fake.version.lock().unwrap();
        let (folder, object) = match fake.is_database.load(Ordering::SeqCst) {
            true => (RecordKind::Schema, RecordKind::Table),
            false => (RecordKind::Directory, RecordKind::File),
        };
        let record = |kind: RecordKind, name: String| UnitRecord {
            kind,
            name: name.into_bytes(),
            size: KEY.len() as u64,
            marks: version.map_or_else(VersionMarks::default, |version| VersionMarks::tagged(&[version])),
            reason: None,
            metadata: kind.is_rows().then(|| serde_json::to_string(&shape()).unwrap().into()),
        };
        let mut entries: Vec<UnitRecord> = match container.as_bytes() {
            b"" => fake.folders.keys().map(|name| record(folder, (*name).to_owned())).collect(),
            folder => {
                let count = fake.folders[std::str::from_utf8(folder).unwrap()];
                (0..count).map(|index| record(object, format!("{index:06}"))).collect()
            }
        };
        // As folders do it: a second listing may have another order. Only cursors promise one.
        if fake.listings.fetch_add(1, Ordering::SeqCst) % 2 == 1
            && fake.policy != ResumePolicy::FromResumePoint
        {
            entries.reverse();
        }
        let given = resume_point.map_or(0, |point| point.parse().unwrap());
        Ok(Box::new(FakeListing { fake, entries, given }))
    }

    fn traces_origins(&self) -> bool {
        self.0.traces.load(Ordering::SeqCst)
    }

    async fn origins(
        &self,
        objects: &[ObjectKey],
        _: &Moved,
    ) -> Result<Vec<(ObjectKey, Origin)>, ConnectorError> {
        let origin = |key: &ObjectKey| Origin {
            path: Some(ObjectKey::new(*b"src/main.rs")),
            commit: format!("commit of {key}"),
            author: "A <a@example.com>".into(),
            time_ms: 7,
            is_abandoned: false,
        };
        Ok(objects.iter().map(|key| (key.clone(), origin(key))).collect())
    }

    fn read_ahead(&self, objects: &Arc<[ListedObject]>) -> Option<Box<dyn ReadAhead>> {
        let ahead = FakeAhead { fake: Arc::clone(&self.0), objects: Arc::clone(objects) };
        self.0.reads_ahead.load(Ordering::SeqCst).then(|| Box::new(ahead) as _)
    }

    fn open(&self, object: &ListedObject) -> Result<Opened, ObjectError> {
        if object.kind.is_rows() {
            assert!(!self.0.reads_ahead.load(Ordering::SeqCst));
            return Ok(open_table(&self.0, object));
        }
        let slow = self.0.slow.lock().unwrap().take();
        self.0.opened.fetch_add(1, Ordering::SeqCst);
        if self.0.absent.take_one(&object.key) {
            return Err(ObjectError::new(Reason::Unavailable, "connection refused"));
        }
        if self.0.broken.take_one(&object.key) {
            let broken = Cursor::new(KEY).chain(BrokenOff);
            return Ok(Opened::Bytes(OpenBytes::stream(Box::new(broken), None)));
        }
        let reader: Box<dyn Read + Send> = match slow {
            Some(words) => Box::new(Slow(words, Cursor::new(KEY))),
            None => Box::new(Cursor::new(KEY)),
        };
        Ok(Opened::Bytes(OpenBytes::stream(reader, Some(KEY.len() as u64))))
    }
}

/// A byte for each word.
struct Slow(mpsc::Receiver<()>, Cursor<&'static str>);

impl Read for Slow {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let len = if self.0.recv().is_ok() { buf.len().min(1) } else { buf.len() };
        self.1.read(&mut buf[..len])
    }
}

/// What comes where an answer broke off.
struct BrokenOff;

impl Read for BrokenOff {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other(ObjectError::new(Reason::Unavailable, "the answer broke off")))
    }
}

/// What every table of the database is.
pub fn shape() -> TableShape {
    let column = ColumnShape { name: "token".into(), type_name: "text".into(), comment: None };
    TableShape { columns: vec![column], row_estimate: Some(1), ..TableShape::default() }
}

fn open_table(fake: &Fake, object: &ListedObject) -> Opened {
    fake.opened.fetch_add(1, Ordering::SeqCst);
    let listed = object.metadata.as_deref().expect("a table comes with what its listing said");
    let shape = Arc::new(serde_json::from_str(listed).unwrap());
    let rows = OpenTable { shape, is_sample: true, rows: Box::new(OneRow(false)) };
    Opened::Rows { table: object.key.clone(), rows }
}

/// A row, once.
struct OneRow(bool);

impl RowReader for OneRow {
    fn fill(&mut self, batch: &mut RowBatch) -> Result<(), ObjectError> {
        if !std::mem::replace(&mut self.0, true) {
            batch.columns[0].push(KEY.as_bytes());
        }
        Ok(())
    }
}

struct FakeAhead {
    fake: Arc<Fake>,
    objects: Arc<[ListedObject]>,
}

impl ReadAhead for FakeAhead {
    fn open(&self, index: usize) -> Result<Opened, ObjectError> {
        let object = &self.objects[index];
        assert!(object.kind.is_rows(), "a database has no files");
        Ok(open_table(&self.fake, object))
    }
}

struct FakeListing {
    fake: Arc<Fake>,
    entries: Vec<UnitRecord>,
    given: usize,
}

#[async_trait]
impl Listing for FakeListing {
    async fn next_batch(&mut self, max: usize) -> Result<Vec<UnitRecord>, ConnectorError> {
        self.fake.batches.fetch_add(1, Ordering::SeqCst);
        let mishap = {
            let mut mishap = self.fake.mishap.lock().unwrap();
            match &*mishap {
                Some((after, _)) if self.given >= *after => mishap.take().map(|(_, mishap)| mishap),
                _ => None,
            }
        };
        match mishap {
            Some(Mishap::Stop(signal, metrics)) => {
                let before = metrics.halts.get();
                signal.stop();
                while metrics.halts.get() == before {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            }
            Some(Mishap::Fail) => {
                return Err(ConnectorError::Container {
                    reason: Reason::ReadError,
                    detail: "disk trouble".into(),
                });
            }
            Some(Mishap::BreakOff) => return Err(ConnectorError::unavailable("the answer broke off")),
            Some(Mishap::Wait(after)) => {
                return Err(ConnectorError::Wait { after, detail: "rate limit reached".into() });
            }
            Some(Mishap::Hold(reached, mut release)) => {
                reached.stop();
                let runtime = Handle::current();
                thread::scope(|scope| scope.spawn(|| runtime.block_on(release.asked())).join().unwrap());
            }
            Some(Mishap::Panic) => panic!("the listing of the test panics"),
            None => {}
        }
        let batch: Vec<_> = self.entries.iter().skip(self.given).take(max).cloned().collect();
        self.given += batch.len();
        Ok(batch)
    }

    fn resume_point(&self) -> Option<String> {
        (self.given < self.entries.len()).then(|| self.given.to_string())
    }
}
