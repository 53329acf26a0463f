//! What services of a fleet go through: leases that are lost, a book that does not answer, commands that come in
//! the middle, schedules that several look at.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc;

use domesday_model::{MissedFirings, ScanTemplate, Schedule, TaskType};
use domesday_store::clock::Clock;
use domesday_store::{Put, TaskFilter};

use super::*;
use crate::firing::fire_due;

/// Short, so that a heartbeat comes soon; it runs out by the book's clock, which tests move.
const SHORT_LEASE: Duration = Duration::from_millis(600);

fn short(fires_schedules: bool) -> OrchestratorConfig {
    OrchestratorConfig {
        node_group: GROUP.into(),
        lease: SHORT_LEASE,
        reap_interval: Duration::from_millis(20),
        task_deadline: Duration::from_secs(3_600),
        stall_threshold: Duration::from_secs(3_600),
        fan_out: FanOutPolicy { ready_low: 2 },
        retries: QUICK_RETRIES,
        profile: Profile::default(),
        fires_schedules,
        is_patient: true,
    }
}

/// An orchestrator and a worker that run until they are let go.
struct Services {
    signal: StopSignal,
    running: Vec<tokio::task::JoinHandle<Result<(), ControlError>>>,
}

impl Services {
    fn start(bench: &Bench) -> Services {
        let (signal, stop) = StopSignal::new();
        let orchestrator = bench.orchestrator_of(short(false)).run(stop.clone());
        let worker = bench.worker_with(SHORT_LEASE).run(stop);
        Services { signal, running: vec![tokio::spawn(orchestrator), tokio::spawn(worker)] }
    }

    async fn end(self) {
        self.signal.stop();
        for service in self.running {
            service.await.unwrap().unwrap();
        }
    }
}

async fn until(bench: &Bench, status: JobStatus) {
    eventually(async || bench.status().await == status).await;
}

/// Looks until it is so.
async fn eventually(is_so: impl AsyncFn() -> bool) {
    let looked = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), looked).await.expect("it comes so far");
}

/// Both lose their lease in the middle of a listing. The listing's next write is refused, both begin anew in the
/// same process, and the job is finished with nothing lost and nothing twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_lease_is_followed_by_a_new_session() {
    let clock = Arc::new(ManualClock::new(1_000_000));
    let options = Options { clock: Arc::clone(&clock) as _, ..Options::default() };
    let fake = Fake::new(&[("a", MANY), ("b", 40)], ResumePolicy::ExcludeStaged);
    let bench = Bench::new(Arc::clone(&fake), options).await;
    let ((reached, mut halfway), (release, held)) = (StopSignal::new(), StopSignal::new());
    fake.then(2_000, Mishap::Hold(reached, held));
    let services = Services::start(&bench);
    halfway.asked().await;
    let starts = bench.starts.load(Ordering::SeqCst);
    clock.advance(SHORT_LEASE + Duration::from_millis(1));
    // The orchestrator begins anew. The worker has lost its lease, too, and does not.
    eventually(async || bench.starts.load(Ordering::SeqCst) > starts && !bench.metrics.is_ready()).await;
    assert_eq!(bench.metrics.sessions.get(), 1, "no new session while something of the old one runs");
    release.stop();
    until(&bench, JobStatus::Completed).await;
    assert!(bench.metrics.sessions.get() >= 2);
    services.end().await;
    assert!(!bench.metrics.is_ready());
    bench.assert_complete(&["a", "b"]).await;
}

/// The book's clock moves on by several deadlines while the object is read, and by less than one between two of its bytes.
/// Then nothing comes any more: the task is given out again, although its worker lives.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_slower_than_every_deadline_finishes_unless_it_stands_still() {
    /// Long enough that no slow machine loses it.
    const LEASE: Duration = Duration::from_secs(3);
    const DEADLINE: Duration = Duration::from_secs(2);
    const STEP: Duration = Duration::from_millis(1_500);
    let clock = Arc::new(ManualClock::new(1_000_000));
    let options = Options { clock: Arc::clone(&clock) as _, ..Options::default() };
    let fake = Fake::new(&[("a", 1)], ResumePolicy::ExcludeStaged);
    let (word, words) = mpsc::channel();
    *fake.slow.lock().unwrap() = Some(words);
    let bench = Bench::new(Arc::clone(&fake), options).await;
    let (signal, stop) = StopSignal::new();
    let orchestrator =
        bench.orchestrator_of(OrchestratorConfig { lease: LEASE, task_deadline: DEADLINE, ..short(false) });
    let worker = bench.worker_with(LEASE);
    let running = [tokio::spawn(orchestrator.run(stop.clone())), tokio::spawn(worker.run(stop))];
    eventually(async || fake.opened.load(Ordering::SeqCst) == 1).await;
    let task = async || {
        let tasks = bench.store.tasks(TaskFilter::default(), 10).await.unwrap();
        tasks.into_iter().find(|task| task.task_type == TaskType::Classification).unwrap()
    };
    for _ in 0..4 {
        clock.advance(STEP);
        word.send(()).unwrap();
        eventually(async || task().await.progress_at_ms == Some(clock.now_ms())).await;
    }
    let slow = task().await;
    assert_eq!((slow.abandonments, fake.opened.load(Ordering::SeqCst)), (0, 1));
    for _ in 0..2 {
        clock.advance(STEP);
        let renewed = bench.metrics.lease_renewals.get() + 2;
        eventually(async || bench.metrics.lease_renewals.get() >= renewed).await;
    }
    eventually(async || task().await.abandonments == 1).await;
    drop(word);
    until(&bench, JobStatus::Completed).await;
    assert_eq!(fake.opened.load(Ordering::SeqCst), 2);
    signal.stop();
    for service in running {
        service.await.unwrap().unwrap();
    }
    bench.assert_complete(&["a"]).await;
}

/// Nothing is answered while the book is down.
struct Down(Arc<AtomicBool>);

impl WriteHook for Down {
    fn at(&mut self, _: &'static str, stage: Stage) -> Fault {
        let down = self.0.load(Ordering::SeqCst) && stage == Stage::BeforeCommit;
        if down { Fault::LoseAnswer } else { Fault::None }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_waited_out() {
    let down = Arc::new(AtomicBool::new(false));
    let options = Options { hook: Some(Box::new(Down(Arc::clone(&down)))), ..Options::default() };
    let fake = Fake::new(&[("a", MANY), ("b", 40)], ResumePolicy::ExcludeStaged);
    let bench = Bench::new(Arc::clone(&fake), options).await;
    let ((reached, mut halfway), (release, held)) = (StopSignal::new(), StopSignal::new());
    fake.then(2_000, Mishap::Hold(reached, held));
    let services = Services::start(&bench);
    halfway.asked().await;
    down.store(true, Ordering::SeqCst);
    release.stop();
    // Longer than the lease: whoever counts it has lost it.
    eventually(async || !bench.metrics.is_ready() && bench.metrics.store_errors.get() > 0).await;
    down.store(false, Ordering::SeqCst);
    until(&bench, JobStatus::Completed).await;
    services.end().await;
    bench.assert_complete(&["a", "b"]).await;
}

/// Every answer is lost once in a while, whether the write was made or not.
struct Flaky(u32);

impl WriteHook for Flaky {
    fn at(&mut self, verb: &'static str, stage: Stage) -> Fault {
        // Not those that the test itself asks for, nor claims: each that is lost counts as abandoned, and what
        // is abandoned too often is given up.
        if stage == Stage::Begin || ["submit", "put_rule_set", "claim_tasks"].contains(&verb) {
            return Fault::None;
        }
        // At random, not in turn: loops that make as many calls each time would lose the same answer for ever.
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if (self.0 >> 16).is_multiple_of(31) { Fault::LoseAnswer } else { Fault::None }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_answers_lose_nothing_and_do_nothing_twice() {
    let options = Options { hook: Some(Box::new(Flaky(0))), ..Options::default() };
    let fake = Fake::new(&[("a", 2_500), ("b", 40), ("c", 1_500)], ResumePolicy::ExcludeStaged);
    let bench = Bench::new(fake, options).await;
    let services = Services::start(&bench);
    until(&bench, JobStatus::Completed).await;
    services.end().await;
    bench.assert_complete(&["a", "b", "c"]).await;
}

/// Counts calls of one verb, and makes each take a while.
struct Slow {
    verb: &'static str,
    calls: Arc<AtomicUsize>,
    /// Nothing ever comes: a wait, and no more.
    never: mpsc::Receiver<()>,
}

impl WriteHook for Slow {
    fn at(&mut self, verb: &'static str, stage: Stage) -> Fault {
        if verb == self.verb && stage == Stage::BeforeCommit {
            self.calls.fetch_add(1, Ordering::SeqCst);
            let _ = self.never.recv_timeout(Duration::from_millis(300));
        }
        Fault::None
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_that_end_together_are_completed_together() {
    const FOLDERS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let (calls, (_never, never)) = (Arc::new(AtomicUsize::new(0)), mpsc::channel());
    let hook = Slow { verb: "complete_classifications", calls: Arc::clone(&calls), never };
    let folders: Vec<(&'static str, usize)> = FOLDERS.iter().map(|name| (*name, 2_000)).collect();
    let fake = Fake::new(&folders, ResumePolicy::ExcludeStaged);
    let bench = Bench::new(fake, Options { hook: Some(Box::new(hook)), ..Options::default() }).await;
    let (signal, stop) = StopSignal::new();
    let mut config = short(false);
    config.lease = LEASE;
    let orchestrator = bench.orchestrator_of(config);
    let worker = bench.worker_of(LEASE, WindowLimits::fixed(16));
    let running = [tokio::spawn(orchestrator.run(stop.clone())), tokio::spawn(worker.run(stop))];
    until(&bench, JobStatus::Completed).await;
    signal.stop();
    for service in running {
        service.await.unwrap().unwrap();
    }
    bench.assert_complete(&FOLDERS).await;
    let tasks = bench.metrics.tasks_completed[TaskType::Classification].get();
    let calls = calls.load(Ordering::SeqCst) as u64;
    assert!(tasks >= 8 && calls < tasks, "{tasks} tasks in {calls} calls");
}

/// A pause comes in the middle of a listing: the worker gives its packet back within a heartbeat, and what it
/// had listed stays; resumed, it goes on from there.
#[tokio::test(flavor = "multi_thread")]
async fn a_pause_stops_packets_within_a_heartbeat() {
    let fake = Fake::new(&[("a", MANY)], ResumePolicy::ExcludeStaged);
    let bench = Bench::new(Arc::clone(&fake), Options::default()).await;
    let ((reached, mut halfway), (release, held)) = (StopSignal::new(), StopSignal::new());
    fake.then(2_000, Mishap::Hold(reached, held));
    let services = Services::start(&bench);
    halfway.asked().await;
    bench.store.append_command(MASTER, Command::Pause).await.unwrap();
    until(&bench, JobStatus::Pausing).await;
    // What comes after the next renewal asks which jobs stop, and the one after that waits for the answer.
    let asked = bench.metrics.lease_renewals.get() + 2;
    eventually(async || bench.metrics.lease_renewals.get() >= asked).await;
    release.stop();
    until(&bench, JobStatus::Paused).await;
    let returned = bench.metrics.tasks_returned[TaskType::DiscoveryEnumerate].get();
    assert_eq!(returned, 1);
    assert_eq!(bench.store.summary(MASTER).await.unwrap().objects_listed, 0, "staged, and not seen");
    let tasks = bench.store.tasks(TaskFilter::default(), 10).await.unwrap();
    assert!(tasks.iter().all(|task| task.failures == 0 && task.abandonments == 0), "{tasks:?}");
    bench.store.append_command(MASTER, Command::Resume).await.unwrap();
    until(&bench, JobStatus::Completed).await;
    services.end().await;
    bench.assert_complete(&["a"]).await;
}

/// Milliseconds of 2026-01-01T00:00:00Z.
const NEW_YEAR_MS: i64 = 1_767_225_600_000;
const HOUR_MS: i64 = 3_600_000;

/// A book whose clock says ten minutes past midnight, with a template that was due at `due_ms`.
async fn scheduled(due_ms: i64, sources: &[&str], missed: MissedFirings) -> (Bench, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(NEW_YEAR_MS + HOUR_MS / 6));
    let options = Options { clock: Arc::clone(&clock) as _, ..Options::default() };
    let bench = Bench::new(Fake::new(&[("a", 3)], ResumePolicy::ExcludeStaged), options).await;
    let source = DatasourceSpec::new("managed", KIND, GROUP, serde_json::Value::Null);
    bench.store.put_datasource(&source, Put::New).await.unwrap();
    bench.store.set_fingerprint_key(FINGERPRINT_KEY, false).await.unwrap();
    let template = ScanTemplate {
        name: "hourly".into(),
        datasources: sources.iter().map(|&name| name.to_owned()).collect(),
        rules: Vec::new(),
        options: ScanOptions::default(),
        priority: 0,
        schedule: Some(Schedule { cron: "0 * * * *".into(), time_zone: "UTC".into(), missed }),
    };
    bench.store.put_template(&template, Put::New, Some(due_ms)).await.unwrap();
    (bench, clock)
}

impl Bench {
    async fn jobs_of_template(&self) -> usize {
        let jobs = self.store.master_jobs(100).await.unwrap();
        jobs.iter().filter(|job| job.description == "hourly").count()
    }

    /// When the template was last due and whether that started a job, and when it is due next.
    async fn firings(&self) -> (Option<(i64, bool)>, Option<i64>) {
        let stored = self.store.template("hourly").await.unwrap().unwrap();
        (stored.last_firing.map(|(at, job)| (at, job.is_some())), stored.next_firing_ms)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_firing_starts_one_job_however_many_look() {
    let (bench, clock) = scheduled(NEW_YEAR_MS, &["managed"], MissedFirings::RunOnce).await;
    let (signal, stop) = StopSignal::new();
    let running = [(); 3].map(|()| tokio::spawn(bench.orchestrator_of(short(true)).run(stop.clone())));
    let fired = async |count| {
        eventually(async || bench.jobs_of_template().await >= count).await;
        // Whoever looks now finds nothing that is due.
        fire_due(bench.store.as_ref(), &bench.metrics).await.unwrap();
        assert_eq!(bench.jobs_of_template().await, count);
    };
    fired(1).await;
    assert_eq!(bench.firings().await, (Some((NEW_YEAR_MS, true)), Some(NEW_YEAR_MS + HOUR_MS)));
    clock.advance(Duration::from_secs(3_600));
    fired(2).await;
    signal.stop();
    for service in running {
        service.await.unwrap().unwrap();
    }
    assert_eq!(bench.jobs_of_template().await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn missed_firings_follow_their_policy() {
    let long_ago = NEW_YEAR_MS - 30 * HOUR_MS;
    let next = Some(NEW_YEAR_MS + HOUR_MS);
    for (policy, started) in [(MissedFirings::RunOnce, true), (MissedFirings::Skip, false)] {
        let (bench, _) = scheduled(long_ago, &["managed"], policy).await;
        for _ in 0..3 {
            fire_due(bench.store.as_ref(), &bench.metrics).await.unwrap();
        }
        assert_eq!(bench.jobs_of_template().await, usize::from(started), "{policy:?}");
        assert_eq!(bench.firings().await, (Some((NEW_YEAR_MS, started)), next), "{policy:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_that_no_job_can_be_made_of_is_skipped_and_not_tried_in_a_loop() {
    let (bench, _) = scheduled(NEW_YEAR_MS, &["no-such"], MissedFirings::RunOnce).await;
    let pause = fire_due(bench.store.as_ref(), &bench.metrics).await.unwrap();
    fire_due(bench.store.as_ref(), &bench.metrics).await.unwrap();
    assert_eq!(bench.jobs_of_template().await, 0);
    assert_eq!(bench.firings().await, (Some((NEW_YEAR_MS, false)), Some(NEW_YEAR_MS + HOUR_MS)));
    assert_eq!(bench.metrics.firings_skipped.get(), 1);
    assert!(pause.is_none_or(|pause| !pause.is_zero()));
}
