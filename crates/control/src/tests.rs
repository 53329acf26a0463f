//! The services on a real book in a temporary folder, with a connector whose listings can be made to
//! stop, fail or panic at a chosen place.

mod fake;
mod fleet;
mod retries;
mod sources;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use domesday_connector::{Registry, Surroundings};
use domesday_engine::{RuleSet, Scanner};
use domesday_model::{
    Backoff, Command, DatasourceSpec, FingerprintKey, JobConfiguration, JobStatus, MasterJobId, ProcessId,
    Reason, ResumePolicy, Retries, ScanOptions,
};
use domesday_scheduler::{CoreConfig, ScanCore};
use domesday_store::clock::ManualClock;
use domesday_store::sqlite::{Fault, Options, SqliteStore, Stage, WriteHook};
use domesday_store::{
    AdminStore, ComposerStore, FanOutPolicy, LeaseStore, MasterJob, NewMasterJob, OccurrenceFilter,
    OrchestratorStore, Process, Profile, ReportStore, Role, Store, WorkerStore,
};
use fake::{Fake, FakeFactory, Mishap};
use tempfile::TempDir;

use crate::kinds::enumerate::EXCLUSION_MAX;
use crate::{
    Book, ControlError, Local, LocalConfig, Metrics, NewId, Orchestrator, OrchestratorConfig, RuleCache,
    Stop, StopSignal, WindowLimits, Worker, WorkerConfig, WorkerParts, run_local,
};

const GROUP: &str = "group";
const MASTER: MasterJobId = MasterJobId([7; 16]);
const REQUEST: [u8; 16] = [1; 16];
const KIND: &str = "fake";
const FINGERPRINT_KEY: &str = "key";
/// In two parts, so that this file has no key.
const KEY: &str = concat!("AKIA", "Q3EGRT7XWZLPB5NM");
const LEASE: Duration = Duration::from_secs(30);
/// Waits that nobody notices.
const QUICK_RETRIES: Retries =
    Retries { attempts: 3, wait: Backoff::new(Duration::from_millis(10), Duration::from_millis(20)) };
/// More than two batches, so that the folder is staged, and more than one exclusion list.
const MANY: usize = 2 * EXCLUSION_MAX as usize + 2_345;

fn new_job(id: MasterJobId, rules: &RuleSet) -> NewMasterJob {
    NewMasterJob {
        id,
        request_key: REQUEST,
        description: "test".into(),
        template: None,
        priority: 0,
        configuration: JobConfiguration {
            datasources: vec![DatasourceSpec {
                name: "source".into(),
                kind: KIND.into(),
                node_group: GROUP.into(),
                configuration: serde_json::Value::Null,
                concurrency_limit: None,
                worker_label: None,
                credential: None,
            }],
            rule_set: rules.hash().to_string(),
            options: ScanOptions::default(),
            fingerprint_key: FINGERPRINT_KEY.into(),
            engine_version: 0,
            incremental: false,
            configuration: None,
        },
    }
}

/// A book with one job, and all that runs it.
struct Bench {
    _folder: TempDir,
    store: Arc<SqliteStore>,
    rules: Arc<RuleSet>,
    core: Arc<ScanCore>,
    fake: Arc<Fake>,
    starts: Arc<AtomicUsize>,
    metrics: Arc<Metrics>,
    retries: Retries,
}

impl Bench {
    async fn new(fake: Arc<Fake>, options: Options) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(folder.path(), options).unwrap());
        let rules = Arc::new(RuleSet::builtin().unwrap());
        store.put_rule_set(rules.hash(), &RuleCache::text(&rules)).await.unwrap();
        store.submit(new_job(MASTER, &rules)).await.unwrap();
        let core = Arc::new(ScanCore::new(CoreConfig::for_threads(1), FingerprintKey::new([9; 32])).unwrap());
        let (starts, metrics, retries) = (Arc::default(), Arc::default(), QUICK_RETRIES);
        Bench { _folder: folder, store, rules, core, fake, starts, metrics, retries }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store) as Arc<dyn Store>
    }

    fn process(&self) -> ProcessId {
        (self.new_id())()
    }

    fn new_id(&self) -> NewId {
        let starts = Arc::clone(&self.starts);
        Arc::new(move || ProcessId((starts.fetch_add(1, Ordering::SeqCst) as u128 + 1).to_be_bytes()))
    }

    fn stopping(&self, signal: StopSignal) -> Mishap {
        Mishap::Stop(signal, Arc::clone(&self.metrics))
    }

    async fn run(&self, stop: Stop) -> Result<MasterJob, ControlError> {
        self.run_master(MASTER, stop).await
    }

    async fn run_master(&self, master: MasterJobId, stop: Stop) -> Result<MasterJob, ControlError> {
        let local = Local {
            store: self.store(),
            // Without rules, so that they come from the book.
            parts: self.parts(RuleCache::default()),
            new_id: self.new_id(),
            config: LocalConfig {
                node_group: GROUP.into(),
                fingerprint_key: FINGERPRINT_KEY.into(),
                enumerators: 2,
                packets: 2,
                retries: self.retries,
            },
        };
        run_local(local, master, stop).await
    }

    fn parts(&self, rules: RuleCache) -> WorkerParts {
        WorkerParts {
            registry: Registry::default().with(FakeFactory(Arc::clone(&self.fake))),
            surroundings: Surroundings::default(),
            core: Arc::clone(&self.core),
            rules,
            progress: Arc::default(),
            metrics: Arc::clone(&self.metrics),
        }
    }

    fn orchestrator(&self) -> Orchestrator {
        let config = OrchestratorConfig {
            node_group: GROUP.into(),
            lease: LEASE,
            reap_interval: Duration::from_millis(20),
            task_deadline: LEASE,
            stall_threshold: LEASE,
            fan_out: FanOutPolicy { ready_low: 2 },
            retries: QUICK_RETRIES,
            profile: Profile::default(),
            fires_schedules: false,
            is_patient: true,
        };
        self.orchestrator_of(config)
    }

    fn orchestrator_of(&self, config: OrchestratorConfig) -> Orchestrator {
        Orchestrator::new(
            Book::shared(self.store() as Arc<dyn OrchestratorStore>),
            self.new_id(),
            config,
            Arc::default(),
        )
    }

    fn worker(&self) -> Worker {
        self.worker_with(LEASE)
    }

    fn worker_with(&self, lease: Duration) -> Worker {
        self.worker_of(lease, WindowLimits::fixed(1))
    }

    fn worker_of(&self, lease: Duration, packets: WindowLimits) -> Worker {
        let config = WorkerConfig {
            node_group: GROUP.into(),
            lease,
            enumerators: WindowLimits::fixed(1),
            packets,
            quiet_max: Duration::from_millis(4),
            retries: QUICK_RETRIES,
            profile: Profile { fingerprint_key: Some(FINGERPRINT_KEY.into()), ..Profile::default() },
            is_patient: true,
        };
        let parts = self.parts(RuleCache::with(Arc::new(Scanner::new(Arc::clone(&self.rules)))));
        Worker::new(Book::shared(self.store() as Arc<dyn WorkerStore>), self.new_id(), config, parts)
    }

    async fn status(&self) -> JobStatus {
        self.store.master_job(MASTER).await.unwrap().unwrap().status
    }

    /// The keys of all findings, sorted as they are reported.
    async fn found(&self) -> Vec<String> {
        let mut found = self.store.occurrences(MASTER, OccurrenceFilter::default()).await.unwrap();
        let mut keys = Vec::new();
        while let Some(occurrence) = found.recv().await {
            keys.push(occurrence.unwrap().location.key.to_string());
        }
        keys
    }

    /// Everything in these folders was found, each once.
    async fn assert_complete(&self, folders: &[&'static str]) {
        let count = |name: &&str| self.fake.folders[*name];
        let expected: Vec<String> = folders
            .iter()
            .flat_map(|name| (0..self.fake.folders[name]).map(move |index| format!("{name}/{index:06}")))
            .collect();
        assert!(self.found().await == expected, "not every object once");
        let summary = self.store.summary(MASTER).await.unwrap();
        let total = folders.iter().map(count).sum::<usize>() as u64;
        assert_eq!((summary.objects_listed, summary.objects_done), (total, total));
        assert_eq!((summary.tasks_open, summary.tasks_failed), (0, 0));
    }
}

fn never() -> Stop {
    // The signal may go: a stop that nobody can ask for is never asked for.
    StopSignal::new().1
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_runs_to_its_end() {
    let fake = Fake::new(&[("a", 3), ("b", 0), ("c", MANY)], ResumePolicy::ExcludeStaged);
    let bench = Bench::new(fake, Options::default()).await;
    let job = bench.run(never()).await.unwrap();
    assert_eq!(job.status, JobStatus::Completed);
    bench.assert_complete(&["a", "b", "c"]).await;
}

/// A stop comes in the middle of a folder that is listed batch by batch: the task goes back, its unit
/// stays staged and unseen, and the next process goes on with it as the kind's policy says.
#[tokio::test(flavor = "multi_thread")]
async fn a_half_listed_folder_is_gone_on_with() {
    use ResumePolicy::{ClearAndRelist, ExcludeListed, ExcludeStaged, FromResumePoint};
    for policy in [ExcludeStaged, FromResumePoint, ExcludeListed, ClearAndRelist] {
        let fake = Fake::new(&[("a", 3), ("b", MANY), ("c", 2)], policy);
        let bench = Bench::new(Arc::clone(&fake), Options::default()).await;
        let (signal, stop) = StopSignal::new();
        fake.then(2_500, bench.stopping(signal));
        let job = bench.run(stop).await.unwrap();
        assert_eq!(job.status, JobStatus::Running, "{policy:?}");
        let summary = bench.store.summary(MASTER).await.unwrap();
        match policy {
            FromResumePoint | ExcludeListed => {
                assert!(summary.objects_listed >= 2_003, "{policy:?}: pages are seen at once")
            }
            _ => assert!(summary.objects_listed <= 5, "{policy:?}: what is staged is not seen"),
        }
        assert!(summary.tasks_open > 0);
        // Stopped again, and again: each time further. Pages that are there are not listed again.
        let further: &[usize] = if policy == FromResumePoint { &[] } else { &[3_500, 4_000] };
        for &after in further {
            let (signal, stop) = StopSignal::new();
            fake.then(after, bench.stopping(signal));
            assert_eq!(bench.run(stop).await.unwrap().status, JobStatus::Running, "{policy:?}");
        }
        let job = bench.run(never()).await.unwrap();
        assert_eq!(job.status, JobStatus::Completed, "{policy:?}");
        bench.assert_complete(&["a", "b", "c"]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_that_panics_is_tried_again_and_gone_on_with() {
    for policy in [ResumePolicy::ExcludeStaged, ResumePolicy::ExcludeListed] {
        let fake = Fake::new(&[("a", MANY)], policy);
        let bench = Bench::new(Arc::clone(&fake), Options::default()).await;
        fake.then(3_000, Mishap::Panic);
        assert_eq!(bench.run(never()).await.unwrap().status, JobStatus::Completed, "{policy:?}");
        bench.assert_complete(&["a"]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_that_fails_midway_is_named_and_the_rest_goes_on() {
    let fake = Fake::new(&[("a", MANY), ("b", 3)], ResumePolicy::ExcludeStaged);
    let bench = Bench::new(Arc::clone(&fake), Options::default()).await;
    fake.then(3_000, Mishap::Fail);
    let job = bench.run(never()).await.unwrap();
    assert_eq!(job.status, JobStatus::PartiallyCompleted);
    assert_eq!(bench.found().await, ["b/000000", "b/000001", "b/000002"]);
    let problems = bench.store.problems(MASTER, 10).await.unwrap();
    let [problem] = &problems[..] else { panic!("{problems:?}") };
    assert_eq!((problem.location.key.to_string(), problem.reason), ("a".into(), Some(Reason::ReadError)));
    assert_eq!(problem.detail, "disk trouble");
}

/// A pass of a resumed listing fails: the folder is given up, and no later pass puts it back.
#[tokio::test(flavor = "multi_thread")]
async fn a_pass_that_fails_is_the_last() {
    let fake = Fake::new(&[("a", MANY), ("b", 3)], ResumePolicy::ExcludeStaged);
    let bench = Bench::new(Arc::clone(&fake), Options::default()).await;
    let (signal, stop) = StopSignal::new();
    fake.then(MANY - 500, bench.stopping(signal));
    assert_eq!(bench.run(stop).await.unwrap().status, JobStatus::Running);
    fake.then(3_000, Mishap::Fail);
    assert_eq!(bench.run(never()).await.unwrap().status, JobStatus::PartiallyCompleted);
    assert_eq!(bench.found().await, ["b/000000", "b/000001", "b/000002"]);
    assert_eq!(bench.store.problems(MASTER, 10).await.unwrap().len(), 1);
}

/// An orchestrator and a worker vanish without a word. Once the book's clock says that their leases have
/// run out, others take over what they had, and nothing is lost or done twice.
#[tokio::test(flavor = "multi_thread")]
async fn others_take_over_when_leases_run_out() {
    let clock = Arc::new(ManualClock::new(1_000_000));
    let options = Options { clock: Arc::clone(&clock) as _, ..Options::default() };
    let fake = Fake::new(&[("a", MANY), ("b", 40)], ResumePolicy::ExcludeStaged);
    let bench = Bench::new(Arc::clone(&fake), options).await;
    let ((halfway, mut reached), (release, held)) = (StopSignal::new(), StopSignal::new());
    fake.then(2_000, Mishap::Hold(halfway, held));
    let first = [tokio::spawn(bench.orchestrator().run(never())), tokio::spawn(bench.worker().run(never()))];
    reached.asked().await;
    for gone in first {
        gone.abort();
        assert!(gone.await.unwrap_err().is_cancelled());
    }
    // The listing cannot be aborted: it goes on, for nobody.
    release.stop();

    let other = Process::new(bench.process(), Role::Orchestrator, GROUP);
    bench.store.register(&other, LEASE).await.unwrap();
    let early = bench.store.claim_job(other.id, GROUP, LEASE).await.unwrap();
    assert_eq!(early, None, "the first one's lease has not run out");
    clock.advance(LEASE + Duration::from_millis(1));
    let second = bench.orchestrator();
    let mut settled = second.settled();
    let (signal, stop) = StopSignal::new();
    let second = [tokio::spawn(second.run(stop.clone())), tokio::spawn(bench.worker().run(stop))];
    settled.changed().await.unwrap();
    assert_eq!(bench.status().await, JobStatus::Completed);
    signal.stop();
    for service in second {
        service.await.unwrap().unwrap();
    }
    bench.assert_complete(&["a", "b"]).await;
}

/// A verb whose every answer is lost, or that never succeeds.
struct Broken(&'static str, Stage);

impl WriteHook for Broken {
    fn at(&mut self, verb: &'static str, stage: Stage) -> Fault {
        if verb == self.0 && stage == self.1 { Fault::LoseAnswer } else { Fault::None }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_fails_ends_the_run() {
    for verb in ["register", "claim_job", "claim_tasks", "reap_tasks"] {
        let fake = Fake::new(&[("a", 3)], ResumePolicy::ExcludeStaged);
        let options =
            Options { hook: Some(Box::new(Broken(verb, Stage::BeforeCommit))), ..Options::default() };
        let bench = Bench::new(fake, options).await;
        let ended = bench.run(never()).await;
        assert!(matches!(ended, Err(ControlError::Store(_))), "{verb}: {ended:?}");
    }
}

/// Results whose answers are lost, although they were written, are not written twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_read_back() {
    for verb in ["complete_classifications", "complete_enumeration"] {
        let fake = Fake::new(&[("a", 2_500)], ResumePolicy::ExcludeStaged);
        let options =
            Options { hook: Some(Box::new(Broken(verb, Stage::AfterCommit))), ..Options::default() };
        let bench = Bench::new(fake, options).await;
        assert_eq!(bench.run(never()).await.unwrap().status, JobStatus::Completed, "{verb}");
        bench.assert_complete(&["a"]).await;
    }
}

/// Starting over cancels what there is, whatever its state, and the new job runs to its end.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_in_any_state_gives_way_to_a_new_one() {
    for state in [JobStatus::Queued, JobStatus::Running, JobStatus::Pausing, JobStatus::Paused] {
        let fake = Fake::new(&[("a", 3)], ResumePolicy::ExcludeStaged);
        let bench = Bench::new(fake, Options::default()).await;
        let store = &bench.store;
        if state != JobStatus::Queued {
            let gone = Process::new(bench.process(), Role::Orchestrator, GROUP);
            store.register(&gone, LEASE).await.unwrap();
            let mut job = store.claim_job(gone.id, GROUP, LEASE).await.unwrap().unwrap();
            if state != JobStatus::Running {
                store.append_command(MASTER, Command::Pause).await.unwrap();
                job = store.execute_commands(&job.lease).await.unwrap().unwrap();
            }
            if state == JobStatus::Paused {
                store.settle_job(&job.lease).await.unwrap();
            }
            store.release(Role::Orchestrator, gone.id).await.unwrap();
        }
        assert_eq!(bench.status().await, state);
        store.append_command(MASTER, Command::Cancel).await.unwrap();
        assert_eq!(store.unfinished(REQUEST).await.unwrap(), None, "{state}");
        let fresh = MasterJobId([8; 16]);
        store.submit(new_job(fresh, &bench.rules)).await.unwrap();
        assert_eq!(bench.run_master(fresh, never()).await.unwrap().status, JobStatus::Completed, "{state}");
        assert_eq!(bench.status().await, JobStatus::Cancelled, "{state}");
    }
}
