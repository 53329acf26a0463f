//! A scan of as many objects as wanted, of a source that makes up their keys and what is in them: listed page by page
//! into a real book, fanned out, read, matched and completed as any other job. Only the source costs nothing.
//!
//! Prints, at every tenth of the way, the rate and the memory at that point, and in the end the whole and what the book
//! has grown to. Lines are `name value unit`.
//!
//! `cargo run --release -p domesday-control --example objects -- <new folder> <objects>`

use std::error::Error;
use std::io::Cursor;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use domesday_connector::{Connector, ConnectorError, ConnectorFactory, Listing, Registry, Surroundings};
use domesday_content::ObjectError;
use domesday_control::{Local, LocalConfig, Progress, RuleCache, StopSignal, WorkerParts, run_local};
use domesday_engine::{RuleSet, Scanner};
use domesday_model::{
    DatasourceSpec, FingerprintKey, JobConfiguration, JobStatus, ListedObject, MasterJobId, ObjectKey,
    ProcessId, RecordKind, ResumePolicy, ScanOptions, UnitRecord, VersionMarks,
};
use domesday_scheduler::{CoreConfig, OpenBytes, Opened, ScanCore};
use domesday_store::sqlite::{BOOK_FILE, Options, SqliteStore};
use domesday_store::{ComposerStore, NewMasterJob, ReportStore, Store};

const KIND: &str = "made-up";
const GROUP: &str = "here";
const FINGERPRINT_KEY: &str = "key";
const MASTER: MasterJobId = MasterJobId([1; 16]);
/// What is in every object.
const CONTENT: &str = "{\"order\":\"paid\",\"place\":\"harbour\",\"items\":3}\n";
/// Entries of a page of the source, as object stores have them.
const PAGE: usize = 1_000;
/// Points of the curve.
const POINTS: u64 = 10;
/// As a scan on the command line has it.
const ENUMERATORS: usize = 2;
const PACKETS_PER_THREAD: usize = 2;
/// How often it is looked how far the scan is.
const LOOK: Duration = Duration::from_millis(5);

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, count] = &arguments[..] else { return Err("usage: objects <new folder> <objects>".into()) };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(scan(Path::new(folder), count.parse()?))
}

async fn scan(folder: &Path, count: u64) -> Outcome<()> {
    let store = Arc::new(SqliteStore::open(folder, Options::default())?);
    let rules = Arc::new(RuleSet::builtin()?);
    store.put_rule_set(rules.hash(), &RuleCache::text(&rules)).await?;
    store.submit(job(&rules)).await?;
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let core = ScanCore::new(CoreConfig::for_threads(threads), FingerprintKey::new([9; 32]))?;
    let progress = Arc::new(Progress::default());
    let starts = std::sync::atomic::AtomicU64::new(1);
    let local = Local {
        store: Arc::clone(&store) as Arc<dyn Store>,
        parts: WorkerParts {
            registry: Registry::default().with(MadeUpFactory { count }),
            surroundings: Surroundings::default(),
            core: Arc::new(core),
            rules: RuleCache::with(Arc::new(Scanner::new(rules))),
            progress: Arc::clone(&progress),
            metrics: Arc::default(),
        },
        new_id: Arc::new(move || {
            let start = starts.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            ProcessId(u128::from(start).to_be_bytes())
        }),
        config: LocalConfig {
            node_group: GROUP.into(),
            fingerprint_key: FINGERPRINT_KEY.into(),
            enumerators: ENUMERATORS,
            packets: PACKETS_PER_THREAD * threads,
            retries: domesday_control::LOCAL_RETRIES,
        },
    };
    let (_signal, stop) = StopSignal::new();
    let mut curve = Curve::new(count);
    let mut running = std::pin::pin!(run_local(local, MASTER, stop));
    let mut looks = tokio::time::interval(LOOK);
    let master = loop {
        tokio::select! {
            ended = &mut running => break ended?,
            _ = looks.tick() => curve.look(progress.snapshot().objects_done),
        }
    };
    curve.look(progress.snapshot().objects_done);
    let summary = store.summary(MASTER).await?;
    if master.status != JobStatus::Completed
        || (summary.objects_listed, summary.objects_done) != (count, count)
    {
        return Err(format!("the scan ended {:?} with {summary:?}", master.status).into());
    }
    println!("rate {:.0} objects/s", count as f64 / curve.begun.elapsed().as_secs_f64());
    println!("memory {:.1} MiB", memory_mib("VmHWM:"));
    // Whoever closes it last writes what is only in its log.
    drop(store);
    let book = std::fs::metadata(folder.join(BOOK_FILE))?.len();
    println!("book_per_million {:.1} MB", book as f64 / count as f64);
    Ok(())
}

fn job(rules: &RuleSet) -> NewMasterJob {
    let source = DatasourceSpec {
        name: "source".into(),
        kind: KIND.into(),
        node_group: GROUP.into(),
        configuration: serde_json::Value::Null,
        concurrency_limit: None,
        worker_label: None,
        credential: None,
    };
    NewMasterJob {
        id: MASTER,
        request_key: [1; 16],
        description: "made-up objects".into(),
        template: None,
        priority: 0,
        configuration: JobConfiguration {
            datasources: vec![source],
            rule_set: rules.hash().to_string(),
            options: ScanOptions::default(),
            fingerprint_key: FINGERPRINT_KEY.into(),
            engine_version: domesday_engine::VERSION,
            incremental: true,
            configuration: None,
        },
    }
}

/// Rate and memory on the way.
struct Curve {
    begun: Instant,
    step: u64,
    next: u64,
    /// Where and when the last point was.
    last: (u64, Instant),
}

impl Curve {
    fn new(count: u64) -> Curve {
        let (begun, step) = (Instant::now(), (count / POINTS).max(1));
        Curve { begun, step, next: step, last: (0, begun) }
    }

    fn look(&mut self, done: u64) {
        if done < self.next {
            return;
        }
        let ((before, since), now) = (self.last, Instant::now());
        let rate = (done - before) as f64 / (now - since).as_secs_f64();
        println!("at_{done}_rate {rate:.0} objects/s");
        println!("at_{done}_memory {:.1} MiB", memory_mib("VmRSS:"));
        (self.last, self.next) = ((done, now), (done / self.step + 1) * self.step);
    }
}

/// A line of what Linux says of this process's memory.
fn memory_mib(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0) / 1024.0
}

struct MadeUpFactory {
    count: u64,
}

impl ConnectorFactory for MadeUpFactory {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn create(&self, _: &serde_json::Value, _: &Surroundings) -> Result<Arc<dyn Connector>, ConnectorError> {
        Ok(Arc::new(MadeUp { count: self.count }))
    }
}

/// One container with so many objects.
struct MadeUp {
    count: u64,
}

#[async_trait]
impl Connector for MadeUp {
    fn resume_policy(&self, _: &ObjectKey) -> ResumePolicy {
        ResumePolicy::FromResumePoint
    }

    async fn list(
        &self,
        _: &ObjectKey,
        resume_point: Option<&str>,
    ) -> Result<Box<dyn Listing>, ConnectorError> {
        // The point is one that a listing gave before.
        let given = resume_point.and_then(|point| point.parse().ok()).unwrap_or(0);
        Ok(Box::new(Keys { given, count: self.count }))
    }

    fn open(&self, _: &ListedObject) -> Result<Opened, ObjectError> {
        Ok(Opened::Bytes(OpenBytes::stream(Box::new(Cursor::new(CONTENT)), Some(CONTENT.len() as u64))))
    }
}

struct Keys {
    given: u64,
    count: u64,
}

#[async_trait]
impl Listing for Keys {
    async fn next_batch(&mut self, max: usize) -> Result<Vec<UnitRecord>, ConnectorError> {
        let end = self.count.min(self.given + max.min(PAGE) as u64);
        let record = |number: u64| UnitRecord {
            kind: RecordKind::File,
            name: format!("events/2024/{number:09}.json").into_bytes(),
            size: CONTENT.len() as u64,
            marks: VersionMarks::tagged(&number.to_be_bytes()),
            reason: None,
            metadata: None,
        };
        let batch = (self.given..end).map(record).collect();
        self.given = end;
        Ok(batch)
    }

    fn resume_point(&self) -> Option<String> {
        (self.given < self.count).then(|| self.given.to_string())
    }
}
