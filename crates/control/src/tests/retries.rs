//! Sources that do not answer at first, or for a while, or never: what may pass is tried again inside of the job, and by
//! an operator once it has ended.

use domesday_model::ObjectStatus;
use domesday_store::{Retried, Retry, RetryScope, TaskFilter};

use super::*;

const POLICIES: [ResumePolicy; 4] = [
    ResumePolicy::ExcludeStaged,
    ResumePolicy::FromResumePoint,
    ResumePolicy::ExcludeListed,
    ResumePolicy::ClearAndRelist,
];
const LONG: Duration = Duration::from_secs(3_600);

async fn problems(bench: &Bench) -> Vec<(String, ObjectStatus, Option<Reason>)> {
    let problems = bench.store.problems(MASTER, 10).await.unwrap();
    problems.into_iter().map(|p| (p.location.key.to_string(), p.status, p.reason)).collect()
}

async fn retry(bench: &Bench) -> Retried {
    bench.store.retry(Retry::AllOf(MASTER), RetryScope::Passing).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_comes_back_is_scanned_whole() {
    for policy in POLICIES {
        let fake = Fake::new(&[("a", 3), ("b", 2), ("c", 1)], policy);
        fake.absent.set("", 2);
        fake.absent.set("b", 2);
        let bench = Bench::new(Arc::clone(&fake), Options::default()).await;
        assert_eq!(bench.run(never()).await.unwrap().status, JobStatus::Completed, "{policy:?}");
        bench.assert_complete(&["a", "b", "c"]).await;
        assert_eq!(["", "a", "b", "c"].map(|key| fake.asked.get(key)), [3, 1, 3, 1], "{policy:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_that_breaks_off_goes_on() {
    for policy in POLICIES {
        let fake = Fake::new(&[("a", MANY), ("b", 3)], policy);
        let bench = Bench::new(Arc::clone(&fake), Options::default()).await;
        fake.then(2_000, Mishap::BreakOff);
        assert_eq!(bench.run(never()).await.unwrap().status, JobStatus::Completed, "{policy:?}");
        bench.assert_complete(&["a", "b"]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_never_answers_fails_and_can_be_tried_again() {
    let fake = Fake::new(&[("a", 3)], ResumePolicy::ExcludeStaged);
    fake.absent.set("", usize::MAX);
    let bench = Bench::new(Arc::clone(&fake), Options::default()).await;
    let job = bench.run(never()).await.unwrap();
    assert_eq!(job.status, JobStatus::Failed);
    assert_eq!(job.failure_reason.as_deref(), Some("connection refused"));
    assert_eq!(fake.asked.get(""), QUICK_RETRIES.attempts as usize);
    fake.absent.set("", 0);
    assert_eq!(retry(&bench).await, Retried { containers: 1, ..Retried::default() });
    assert_eq!(bench.run(never()).await.unwrap().status, JobStatus::Completed);
    bench.assert_complete(&["a"]).await;
}

/// One of its containers only: what else there is has been scanned, and is not asked for again.
#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_never_answers_holds_up_no_other() {
    let fake = Fake::new(&[("a", 3), ("b", 2), ("c", 1)], ResumePolicy::FromResumePoint);
    fake.absent.set("b", usize::MAX);
    let bench = Bench::new(Arc::clone(&fake), Options::default()).await;
    assert_eq!(bench.run(never()).await.unwrap().status, JobStatus::PartiallyCompleted);
    assert_eq!(problems(&bench).await, [("b".to_owned(), ObjectStatus::Failed, Some(Reason::Unavailable))]);
    let (opened, asked) = (fake.opened.load(Ordering::SeqCst), fake.asked.get("b"));
    assert_eq!((opened, asked), (4, QUICK_RETRIES.attempts as usize));
    fake.absent.set("b", 0);
    assert_eq!(retry(&bench).await.containers, 1);
    assert_eq!(bench.run(never()).await.unwrap().status, JobStatus::Completed);
    bench.assert_complete(&["a", "b", "c"]).await;
    assert_eq!(["", "a", "b", "c"].map(|key| fake.asked.get(key)), [1, 1, asked + 1, 1]);
    assert_eq!(fake.opened.load(Ordering::SeqCst), opened + 2);
}

/// The process ends while the source is waited for. The next one waits for what is left of the time, and no attempt is
/// forgotten.
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_outlives_its_process() {
    let clock = Arc::new(ManualClock::new(1_000_000));
    let options = Options { clock: Arc::clone(&clock) as _, ..Options::default() };
    let fake = Fake::new(&[("a", 3), ("b", 2)], ResumePolicy::ExcludeStaged);
    fake.absent.set("b", 2);
    let mut bench = Bench::new(Arc::clone(&fake), options).await;
    bench.retries = Retries { attempts: 3, wait: Backoff::new(LONG, LONG) };
    for failures in 1..=2 {
        let (signal, stop) = StopSignal::new();
        let waits = async {
            loop {
                let child = bench.store.child_jobs(MASTER).await.unwrap().remove(0);
                let tasks = bench.store.tasks(TaskFilter::default(), 10).await.unwrap();
                if child.waiting_why.is_some() && tasks.iter().any(|task| task.failures == failures) {
                    assert_eq!(child.waiting_why.as_deref(), Some("connection refused"));
                    assert!(child.progress.waiting_until_ms.is_some());
                    signal.stop();
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let (job, ()) = tokio::join!(bench.run(stop), waits);
        assert_eq!(job.unwrap().status, JobStatus::Running);
        clock.advance(LONG);
    }
    assert_eq!(bench.run(never()).await.unwrap().status, JobStatus::Completed);
    bench.assert_complete(&["a", "b"]).await;
    assert_eq!((fake.asked.get("a"), fake.asked.get("b")), (1, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_may_be_had_later_are_read_again() {
    let fake = Fake::new(&[("a", 5), ("b", 2)], ResumePolicy::ExcludeStaged);
    fake.absent.set("a/000001", 2);
    fake.broken.set("a/000003", 1);
    fake.broken.set("b/000000", 2);
    let bench = Bench::new(Arc::clone(&fake), Options::default()).await;
    assert_eq!(bench.run(never()).await.unwrap().status, JobStatus::Completed);
    bench.assert_complete(&["a", "b"]).await;
    assert_eq!(fake.opened.load(Ordering::SeqCst), 7 + 2 + 1 + 2);
    assert_eq!(problems(&bench).await, []);
}

/// What was found before the answer broke off stays, once; and so it is after the next reading, when the source is
/// back.
#[tokio::test(flavor = "multi_thread")]
async fn objects_that_cannot_be_had_are_named_and_can_be_tried_again() {
    let fake = Fake::new(&[("a", 5)], ResumePolicy::ExcludeStaged);
    fake.absent.set("a/000001", usize::MAX);
    fake.broken.set("a/000003", usize::MAX);
    let bench = Bench::new(Arc::clone(&fake), Options::default()).await;
    assert_eq!(bench.run(never()).await.unwrap().status, JobStatus::PartiallyCompleted);
    let why = Some(Reason::Unavailable);
    let expected = [("a/000001", ObjectStatus::Failed, why), ("a/000003", ObjectStatus::Partial, why)];
    assert_eq!(problems(&bench).await, expected.map(|(key, status, why)| (key.to_owned(), status, why)));
    assert_eq!(bench.found().await, ["a/000000", "a/000002", "a/000003", "a/000004"]);
    let opened = fake.opened.load(Ordering::SeqCst);
    assert_eq!(opened, 3 + 2 * QUICK_RETRIES.attempts as usize);
    fake.absent.set("a/000001", 0);
    fake.broken.set("a/000003", 0);
    assert_eq!(retry(&bench).await, Retried { objects: 2, ..Retried::default() });
    assert_eq!(bench.run(never()).await.unwrap().status, JobStatus::Completed);
    bench.assert_complete(&["a"]).await;
    assert_eq!(fake.opened.load(Ordering::SeqCst), opened + 2);
}
