//! A source in memory, whose connector keeps every promise but the one it is told to break.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use domesday_connector::conformance::{Fixture, Refused};
use domesday_connector::{Connector, ConnectorError, Listing, ReadAhead};
use domesday_content::ObjectError;
use domesday_model::{ListedObject, ObjectKey, Reason, RecordKind, ResumePolicy, UnitRecord, VersionMarks};
use domesday_scheduler::{OpenBytes, Opened};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    None,
    LosesAnEntry,
    ListsTwice,
    MoreThanAsked,
    EmptyInBetween,
    AnotherOrder,
    WrongSize,
    MissingIsEmpty,
    WrongBytes,
    OtherBytesAtAPlace,
    OtherBytesAhead,
    VanishedWithoutName,
    EndsTooEarly,
    ResumesTooLate,
    StaleMarks,
    RestlessMarks,
    ShowsTheSecret,
    RefusalLooksPassing,
    CutIsTheEnd,
    LostPageIsTheEnd,
    LeavesTasks,
    HoldsAll,
}

/// How the source answers this connector.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mood {
    Well,
    /// Every third answer is cut short.
    Flaky,
    /// Lets nobody in.
    Closed,
    /// Has this many objects, and none of them in memory.
    Large(u64),
}

const SECRET: &str = "hunter2";

/// Contents by key, and each one's version.
type Objects = BTreeMap<Vec<u8>, (Vec<u8>, u64)>;

pub struct InMemory(Memory);

#[derive(Clone)]
struct Memory {
    objects: Arc<Mutex<Objects>>,
    /// Listings and reads so far.
    asked: Arc<AtomicU64>,
    policy: ResumePolicy,
    fault: Fault,
    mood: Mood,
}

impl InMemory {
    pub fn new(policy: ResumePolicy, fault: Fault) -> InMemory {
        let keys = ["a", "b", "c/a", "c/b", "c/d/e", "c/d/f", "g//h", "i j"];
        let content = |key: &str| (format!("the content of {key}, twice: {key}").into_bytes(), 1);
        let mut objects: Objects = keys.iter().map(|key| (key.as_bytes().to_vec(), content(key))).collect();
        objects.insert(b"empty".to_vec(), (Vec::new(), 1));
        InMemory(Memory {
            objects: Arc::new(Mutex::new(objects)),
            asked: Arc::default(),
            policy,
            fault,
            mood: Mood::Well,
        })
    }

    fn in_mood(&self, mood: Mood) -> Arc<dyn Connector> {
        Arc::new(Memory { mood, ..self.0.clone() })
    }
}

#[async_trait]
impl Fixture for InMemory {
    async fn connector(&self) -> Arc<dyn Connector> {
        self.in_mood(Mood::Well)
    }

    fn objects(&self) -> BTreeMap<ObjectKey, Vec<u8>> {
        let objects = self.0.objects();
        objects.iter().map(|(key, (content, _))| (ObjectKey::new(key.as_slice()), content.clone())).collect()
    }

    async fn change(&self) -> Option<ObjectKey> {
        self.0.objects().insert(b"c/a".to_vec(), (b"something else".to_vec(), 2));
        Some(ObjectKey::new("c/a"))
    }

    async fn remove(&self) -> Option<ObjectKey> {
        self.0.objects().remove(b"c/b".as_slice());
        Some(ObjectKey::new("c/b"))
    }

    async fn add(&self) -> Option<ObjectKey> {
        self.0.objects().insert(b"new/one".to_vec(), (b"new".to_vec(), 1));
        Some(ObjectKey::new("new/one"))
    }

    async fn with_bad_credential(&self) -> Option<Refused> {
        Some(Refused { connector: self.in_mood(Mood::Closed), secret: SECRET.into() })
    }

    async fn with_flaky_reads(&self) -> Option<Arc<dyn Connector>> {
        Some(self.in_mood(Mood::Flaky))
    }

    async fn large(&self, objects: u64) -> Option<(Arc<dyn Connector>, u64)> {
        Some((self.in_mood(Mood::Large(objects)), objects))
    }
}

impl Memory {
    fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap()
    }

    /// Whether this answer is cut short.
    fn is_cut(&self) -> bool {
        self.mood == Mood::Flaky && self.asked.fetch_add(1, Ordering::Relaxed) % 3 == 2
    }

    fn entries(&self, container: &ObjectKey) -> Vec<UnitRecord> {
        let prefix = match container.as_bytes() {
            [] => Vec::new(),
            key => [key, b"/"].concat(),
        };
        let mut entries: Vec<UnitRecord> = Vec::new();
        for (key, (content, version)) in &*self.objects() {
            let Some(name) = key.strip_prefix(prefix.as_slice()) else { continue };
            // An empty part of a key is no container.
            let slash = name.iter().position(|&byte| byte == b'/').filter(|_| !name.contains_str(b"//"));
            let (kind, name) = match slash {
                Some(at) => (RecordKind::Directory, &name[..at]),
                None => (RecordKind::File, name),
            };
            if entries.last().is_some_and(|last| last.kind == kind && last.name == name) {
                continue;
            }
            let restless =
                self.asked.fetch_add(u64::from(self.fault == Fault::RestlessMarks), Ordering::Relaxed);
            let version = match self.fault {
                Fault::StaleMarks => 1,
                Fault::RestlessMarks => restless,
                _ => *version,
            };
            let size = content.len() as u64 + u64::from(self.fault == Fault::WrongSize);
            let marks = VersionMarks::tagged(&version.to_be_bytes());
            entries.push(UnitRecord { kind, name: name.to_vec(), size, marks, reason: None, metadata: None });
        }
        match self.fault {
            Fault::LosesAnEntry => drop(entries.pop()),
            Fault::ListsTwice => entries.extend(entries.first().cloned()),
            Fault::AnotherOrder if self.asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) => {
                entries.reverse()
            }
            _ => {}
        }
        entries
    }

    fn refuse(&self) -> Result<(), ConnectorError> {
        if self.mood != Mood::Closed {
            return Ok(());
        }
        let detail = "the token is not valid".to_owned();
        Err(match self.fault {
            Fault::ShowsTheSecret => ConnectorError::Denied { detail: format!("{detail}: {SECRET}") },
            Fault::RefusalLooksPassing => ConnectorError::unavailable(detail),
            _ => ConnectorError::Denied { detail },
        })
    }

    fn open_as(&self, object: &ObjectKey, fault: Fault) -> Result<Opened, ObjectError> {
        self.refuse().map_err(|error| ObjectError::new(error.reason(), error.to_string()))?;
        let Some((mut content, _)) = self.objects().get(object.as_bytes()).cloned() else {
            let reason =
                if fault == Fault::VanishedWithoutName { Reason::ReadError } else { Reason::Vanished };
            return Err(ObjectError::new(reason, "there is no such object"));
        };
        let random = match fault {
            Fault::OtherBytesAtAPlace => vec![b'x'; content.len()],
            _ => content.clone(),
        };
        if fault == Fault::WrongBytes {
            content.reverse();
        }
        let size = Some(content.len() as u64);
        if !self.is_cut() {
            let reader = Box::new(Cursor::new(content));
            return Ok(Opened::Bytes(OpenBytes::seekable(reader, Arc::new(random), size)));
        }
        content.truncate(content.len() / 2);
        let end: Box<dyn Read + Send> = match fault {
            Fault::CutIsTheEnd => Box::new(std::io::empty()),
            _ => Box::new(Broken),
        };
        Ok(Opened::Bytes(OpenBytes::stream(Box::new(Cursor::new(content).chain(end)), None)))
    }
}

trait ContainsStr {
    fn contains_str(&self, part: &[u8]) -> bool;
}

impl ContainsStr for [u8] {
    fn contains_str(&self, part: &[u8]) -> bool {
        self.windows(part.len()).any(|window| window == part)
    }
}

/// The way broke down.
struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::ConnectionReset.into())
    }
}

#[async_trait]
impl Connector for Memory {
    fn resume_policy(&self, _: &ObjectKey) -> ResumePolicy {
        self.policy
    }

    async fn list(
        &self,
        container: &ObjectKey,
        resume_point: Option<&str>,
    ) -> Result<Box<dyn Listing>, ConnectorError> {
        self.refuse()?;
        if self.fault == Fault::LeavesTasks {
            tokio::spawn(tokio::time::sleep(Duration::from_secs(3_600)));
        }
        let entries = match self.mood {
            Mood::Large(objects) => Entries::Numbered(objects),
            _ => Entries::Known(self.entries(container)),
        };
        let is_missing = matches!(&entries, Entries::Known(entries) if entries.is_empty());
        if is_missing && self.fault != Fault::MissingIsEmpty {
            let detail = format!("there is no `{container}`");
            return Err(ConnectorError::Container { reason: Reason::Vanished, detail });
        }
        let entries = match entries {
            Entries::Numbered(objects) if self.fault == Fault::HoldsAll => {
                Entries::Known((0..objects).map(numbered).collect())
            }
            entries => entries,
        };
        let skipped = u64::from(self.fault == Fault::ResumesTooLate);
        let next = resume_point.map_or(0, |point| point.parse::<u64>().unwrap() + skipped);
        Ok(Box::new(MemoryListing { memory: self.clone(), entries, next, batches: 0 }))
    }

    fn open(&self, object: &ListedObject) -> Result<Opened, ObjectError> {
        self.open_as(&object.key, self.fault)
    }

    fn read_ahead(&self, objects: &Arc<[ListedObject]>) -> Option<Box<dyn ReadAhead>> {
        Some(Box::new(Ahead { memory: self.clone(), objects: Arc::clone(objects) }))
    }
}

struct Ahead {
    memory: Memory,
    objects: Arc<[ListedObject]>,
}

impl ReadAhead for Ahead {
    fn open(&self, index: usize) -> Result<Opened, ObjectError> {
        let fault = match self.memory.fault {
            Fault::OtherBytesAhead => Fault::WrongBytes,
            fault => fault,
        };
        self.memory.open_as(&self.objects[index].key, fault)
    }
}

enum Entries {
    Known(Vec<UnitRecord>),
    Numbered(u64),
}

impl Entries {
    fn len(&self) -> u64 {
        match self {
            Entries::Known(entries) => entries.len() as u64,
            Entries::Numbered(objects) => *objects,
        }
    }

    fn get(&self, index: u64) -> UnitRecord {
        match self {
            Entries::Known(entries) => entries[index as usize].clone(),
            Entries::Numbered(_) => numbered(index),
        }
    }
}

fn numbered(index: u64) -> UnitRecord {
    let name = format!("object-{index:09}").into_bytes();
    let marks = VersionMarks::tagged(&index.to_be_bytes());
    UnitRecord { kind: RecordKind::File, name, size: 1, marks, reason: None, metadata: None }
}

struct MemoryListing {
    memory: Memory,
    entries: Entries,
    next: u64,
    batches: u64,
}

#[async_trait]
impl Listing for MemoryListing {
    async fn next_batch(&mut self, max: usize) -> Result<Vec<UnitRecord>, ConnectorError> {
        self.batches += 1;
        if self.memory.is_cut() {
            if self.memory.fault == Fault::LostPageIsTheEnd {
                self.next = self.entries.len();
                return Ok(Vec::new());
            }
            let detail = "the connection was reset".to_owned();
            return Err(ConnectorError::unavailable(detail));
        }
        let asked = match self.memory.fault {
            Fault::MoreThanAsked => max as u64 + 1,
            Fault::EmptyInBetween if self.batches == 2 => 0,
            _ => max as u64,
        };
        let end = self.next.saturating_add(asked).min(self.entries.len());
        let batch = (self.next..end).map(|index| self.entries.get(index)).collect();
        self.next = self.next.max(end);
        Ok(batch)
    }

    fn resume_point(&self) -> Option<String> {
        let ends_early = self.memory.fault == Fault::EndsTooEarly && self.next > 1;
        let is_over = self.next >= self.entries.len() || ends_early;
        (self.memory.policy == ResumePolicy::FromResumePoint && !is_over).then(|| self.next.to_string())
    }
}
