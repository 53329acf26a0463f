//! Sources whose listing comes in pages, waits, is gone on with from an earlier scan, or knows where objects came
//! from; and the coordinator's views of all that.

use domesday_model::TaskType;
use domesday_store::{SessionFilter, TaskFilter};

use super::*;
use crate::Coordinator;

const SECOND: MasterJobId = MasterJobId([8; 16]);
const THIRD: MasterJobId = MasterJobId([9; 16]);

/// A page that is committed is not asked for again, however often the listing is cut short.
#[tokio::test(flavor = "multi_thread")]
async fn at_most_one_page_is_listed_again() {
    let pages = MANY.div_ceil(1_000);
    let fake = Fake::new(&[("a", MANY)], ResumePolicy::FromResumePoint);
    let bench = Bench::new(Arc::clone(&fake), Options::default()).await;
    let mut stops = 0;
    for after in [1_000, 3_000] {
        let (signal, stop) = StopSignal::new();
        fake.then(after, bench.stopping(signal));
        assert_eq!(bench.run(stop).await.unwrap().status, JobStatus::Running);
        stops += 1;
    }
    assert_eq!(bench.run(never()).await.unwrap().status, JobStatus::Completed);
    bench.assert_complete(&["a"]).await;
    // One for the root, and for each stop at most the page that was under way.
    let asked = fake.batches.load(Ordering::SeqCst);
    assert!(asked <= 1 + pages + stops, "{asked} pages asked for, of {pages}");
}

/// What was listed before a page that fails is scanned, and the failure is named.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_fails_leaves_the_pages_before_it() {
    for policy in [ResumePolicy::FromResumePoint, ResumePolicy::ExcludeListed] {
        let fake = Fake::new(&[("a", MANY)], policy);
        let bench = Bench::new(Arc::clone(&fake), Options::default()).await;
        fake.then(2_000, Mishap::Fail);
        assert_eq!(bench.run(never()).await.unwrap().status, JobStatus::PartiallyCompleted, "{policy:?}");
        assert_eq!(bench.found().await.len(), 2_000, "{policy:?}");
        let problems = bench.store.problems(MASTER, 10).await.unwrap();
        assert_eq!(problems.len(), 1);
        assert_eq!(
            (problems[0].location.key.to_string(), &*problems[0].detail),
            ("a".into(), "disk trouble")
        );
    }
}

/// A source that asks for time gets it: nothing is listed twice, and nothing counts as failed.
#[tokio::test(flavor = "multi_thread")]
async fn a_rate_limit_is_waited_for() {
    for policy in [ResumePolicy::ExcludeStaged, ResumePolicy::FromResumePoint, ResumePolicy::ExcludeListed] {
        let fake = Fake::new(&[("a", MANY), ("b", 3)], policy);
        let bench = Bench::new(Arc::clone(&fake), Options::default()).await;
        fake.then(2_000, Mishap::Wait(Duration::from_millis(300)));
        assert_eq!(bench.run(never()).await.unwrap().status, JobStatus::Completed, "{policy:?}");
        bench.assert_complete(&["a", "b"]).await;
        let tasks = bench.store.tasks(TaskFilter::default(), 1_000).await.unwrap();
        assert!(tasks.iter().all(|task| (task.failures, task.abandonments) == (0, 0)), "{policy:?}");
        let sessions = bench.store.sessions(SessionFilter::default(), None, 10).await.unwrap();
        assert!(sessions.iter().all(|session| session.waiting_until_ms.is_none()), "{policy:?}");
    }
}

async fn run_again(bench: &Bench, master: MasterJobId, incremental: bool) -> usize {
    let mut job = new_job(master, &bench.rules);
    job.configuration.incremental = incremental;
    bench.store.submit(job).await.unwrap();
    let before = bench.fake.opened.load(Ordering::SeqCst);
    assert_eq!(bench.run_master(master, never()).await.unwrap().status, JobStatus::Completed);
    bench.fake.opened.load(Ordering::SeqCst) - before
}

async fn findings(bench: &Bench, master: MasterJobId) -> usize {
    let mut found = bench.store.occurrences(master, OccurrenceFilter::default()).await.unwrap();
    let mut count = 0;
    while let Some(occurrence) = found.recv().await {
        occurrence.unwrap();
        count += 1;
    }
    count
}

/// Every object has a finding, so all are carried over: reported again, and not read again.
#[tokio::test(flavor = "multi_thread")]
async fn what_has_not_changed_is_not_read_again_and_its_findings_stay() {
    for policy in [ResumePolicy::ExcludeStaged, ResumePolicy::FromResumePoint, ResumePolicy::ClearAndRelist] {
        let fake = Fake::versioned(&[("a", MANY), ("b", 3), ("c", 0)], policy);
        let bench = Bench::new(Arc::clone(&fake), Options::default()).await;
        assert_eq!(bench.run(never()).await.unwrap().status, JobStatus::Completed);
        assert_eq!(run_again(&bench, SECOND, true).await, 0, "{policy:?}");
        assert_eq!(findings(&bench, SECOND).await, MANY + 3, "{policy:?}");
        *fake.version.lock().unwrap() = Some(2);
        assert_eq!(run_again(&bench, THIRD, true).await, MANY + 3, "{policy:?}: all have changed");
    }
}

/// Tables have no versions: they are read at every scan. Each is observed once, however often its scan was cut short.
#[tokio::test(flavor = "multi_thread")]
async fn tables_are_observed_once_and_read_at_every_scan() {
    for reads_ahead in [false, true] {
        let fake = Fake::new(&[("public", 1_200), ("empty", 0)], ResumePolicy::ClearAndRelist);
        fake.is_database.store(true, Ordering::SeqCst);
        fake.reads_ahead.store(reads_ahead, Ordering::SeqCst);
        let bench = Bench::new(Arc::clone(&fake), Options::default()).await;
        let (signal, stop) = StopSignal::new();
        fake.then(1_000, bench.stopping(signal));
        assert_eq!(bench.run(stop).await.unwrap().status, JobStatus::Running);
        assert_eq!(bench.run(never()).await.unwrap().status, JobStatus::Completed);
        assert_eq!(run_again(&bench, SECOND, true).await, 1_200);
        for master in [MASTER, SECOND] {
            let sources = bench.store.catalog_sources(Some(master)).await.unwrap();
            assert_eq!(sources.len(), 1);
            let page = bench.store.table_observations(&sources[0], None, 10_000).await.unwrap();
            let expected = (0..1_200).map(|index| format!("public/{index:06}"));
            assert!(page.tables.iter().map(|table| table.table.key.to_string()).eq(expected));
            for table in &page.tables {
                assert_eq!((&table.shape, table.rows, table.is_sample), (&fake::shape(), 1, true));
                assert_eq!((&table.part, table.sketches.len()), (&table.table.key, 1));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_not_incremental_reads_everything() {
    let fake = Fake::versioned(&[("a", 30)], ResumePolicy::ExcludeStaged);
    let bench = Bench::new(Arc::clone(&fake), Options::default()).await;
    bench.run(never()).await.unwrap();
    assert_eq!(run_again(&bench, SECOND, false).await, 30);
    assert_eq!(findings(&bench, SECOND).await, 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn findings_say_where_their_objects_came_from() {
    let fake = Fake::new(&[("a", 3)], ResumePolicy::ExcludeStaged);
    fake.traces.store(true, Ordering::SeqCst);
    let bench = Bench::new(fake, Options::default()).await;
    assert_eq!(bench.run(never()).await.unwrap().status, JobStatus::Completed);
    let mut found = bench.store.occurrences(MASTER, OccurrenceFilter::default()).await.unwrap();
    let mut count = 0;
    while let Some(occurrence) = found.recv().await {
        let occurrence = occurrence.unwrap();
        let origin = occurrence.origin.expect("it was traced");
        assert_eq!(origin.commit, format!("commit of {}", occurrence.location.key));
        count += 1;
    }
    assert_eq!(count, 3);
    let traced = TaskFilter { task_type: Some(TaskType::Tracing), ..TaskFilter::default() };
    assert_eq!(bench.store.tasks(traced, 10).await.unwrap().len(), 1);
}

/// Views are opened before anything is enumerated, read while it is, and close by themselves; a second reader
/// that comes when all is over sees the same.
#[tokio::test(flavor = "multi_thread")]
async fn an_enumeration_can_be_followed() {
    let fake = Fake::new(&[("a", 2_500), ("b", 3)], ResumePolicy::FromResumePoint);
    let bench = Bench::new(Arc::clone(&fake), Options::default()).await;
    let coordinator = Coordinator::new(bench.store());
    let owner = Process::new(bench.process(), Role::Orchestrator, GROUP);
    bench.store.register(&owner, LEASE).await.unwrap();
    let job = bench.store.claim_job(owner.id, GROUP, LEASE).await.unwrap().unwrap();
    assert!(coordinator.enumerate_target(&job.lease, "other").await.is_err(), "no source of this job");
    let mut begun = coordinator.enumerate_target(&job.lease, "source").await.unwrap();
    let again = coordinator.resume_target(&job.lease, begun.session).await.unwrap();
    assert_eq!(begun.session, again.session, "it has begun already");
    drop(again);
    bench.store.release(Role::Orchestrator, owner.id).await.unwrap();
    fake.then(1_000, Mishap::Fail);
    let reading = tokio::spawn(async move {
        let (mut targets, mut tasks, mut errors) = (0, Vec::new(), Vec::new());
        while let Some(task) = begun.tasks.next().await.unwrap() {
            tasks.push(task.id);
        }
        while begun.targets.next().await.unwrap().is_some() {
            targets += 1;
        }
        while let Some(error) = begun.errors.next().await.unwrap() {
            errors.push(error.detail);
        }
        (begun.session, targets, tasks, errors)
    });
    assert_eq!(bench.run(never()).await.unwrap().status, JobStatus::PartiallyCompleted);
    let (session, targets, tasks, errors) = reading.await.unwrap();
    let all = bench.store.tasks(TaskFilter::default(), 1_000).await.unwrap();
    assert_eq!(tasks, all.iter().map(|task| task.id).collect::<Vec<_>>());
    assert_eq!((targets, errors.len()), (1, 1));
    assert!(errors[0].contains("disk trouble"), "{errors:?}");
    let mut late = coordinator.follow(session).await.unwrap();
    assert_eq!(late.errors.next().await.unwrap().map(|error| error.detail), errors.first().cloned());
    assert_eq!(late.errors.next().await.unwrap(), None);
}
