//! What operators look at, and failed tasks that are tried again.

use domesday_model::{Command, JobStatus, MasterJobId, ProcessId, Retries, TaskId, TaskStatus, TaskType};

use super::book::*;
use super::cases;
use crate::error::StoreError;
use crate::types::*;

cases![
    child_jobs_tell_how_far_they_are,
    tasks_are_listed_in_order,
    the_fleet_is_seen_at_a_glance,
    what_waits_and_what_is_lost_is_counted,
    registering_again_is_harmless,
    a_retried_classification_leaves_no_trace,
    a_retried_enumeration_leaves_no_trace,
    a_retried_half_forgets_only_its_own,
    a_retry_in_a_running_job_goes_on_there,
    a_job_that_is_queued_again_has_a_new_version,
    only_what_failed_is_tried_again,
    a_repeated_retry_is_harmless,
    a_task_with_a_container_listed_in_part_is_not_completed,
    a_half_is_completed_whatever_its_sibling_has_open,
    sessions_end_with_a_cancelled_job,
];

async fn child_jobs_tell_how_far_they_are(book: Book) {
    let running = book.running(job("a").source("b").group("east")).await;
    let (east, main) = {
        let mut children = book.store().child_jobs(running.master).await.unwrap();
        (children.remove(0), children.remove(0))
    };
    assert_eq!((east.node_group.as_str(), east.status), ("east", JobStatus::Queued));
    assert_eq!((east.pending, east.owner, east.started_at_ms), (vec![Command::Start], None, None));
    assert_eq!((east.workers, east.progress), (0, JobProgress::default()));
    assert_eq!((main.job, main.status, main.pending), (running.lease.job, JobStatus::Running, vec![]));
    assert_eq!(main.owner, Some((running.orchestrator, LEASE.as_millis() as i64)));
    assert_eq!((main.workers, main.started_at_ms), (1, Some(main.created_at_ms)));
    assert_eq!(main.progress, JobProgress { tasks_pending: 1, ..JobProgress::default() });
    running.list(vec![listed("", vec![file("f"), file("g")])]).await;
    let waiting = book.store().child_jobs(running.master).await.unwrap()[1].progress;
    assert!(!waiting.listing_done, "a unit waits to be fanned out");
    running.fan_out().await;
    let packet = running.classification().await;
    let progress = book.store().child_jobs(running.master).await.unwrap()[1].progress;
    let expected = JobProgress {
        objects_listed: 2,
        bytes_listed: 2 * FILE_SIZE,
        tasks_running: 1,
        tasks_done: 1,
        listing_done: true,
        ..JobProgress::default()
    };
    assert_eq!(progress, expected);
    let totals = TaskTotals { objects: 2, nested: 3, bytes: 15 };
    let completion = Completion { totals, ..completion(&packet.claim, 0, ResultBatch::default()) };
    book.store().complete_classifications(vec![completion]).await.unwrap().remove(0).unwrap();
    let progress = book.store().child_jobs(running.master).await.unwrap()[1].progress;
    let done = JobProgress { objects_done: 2, bytes_done: 15, tasks_running: 0, tasks_done: 2, ..expected };
    assert_eq!(progress, done);
    assert_eq!(book.store().child_jobs(MasterJobId(book.id())).await.unwrap(), []);
}

async fn tasks_are_listed_in_order(book: Book) {
    let running = book.running(job("a")).await;
    let other = book.running(job("b").group("east")).await;
    let packet = running.classify(&["f"]).await;
    let store = book.store();
    let all = store.tasks(TaskFilter::default(), 100).await.unwrap();
    assert_eq!(all.len(), 3);
    assert!(all.is_sorted_by_key(|task| task.id));
    assert_eq!(store.tasks(TaskFilter::default(), 1).await.unwrap(), all[..1]);
    let of_master = TaskFilter { master: Some(running.master), ..TaskFilter::default() };
    let mine = store.tasks(of_master.clone(), 100).await.unwrap();
    assert!(mine.len() == 2 && mine.iter().all(|task| task.master == running.master));
    let only = TaskFilter { task_type: Some(TaskType::Classification), ..of_master };
    let classified = store.tasks(only, 100).await.unwrap();
    assert_eq!(classified, [store.task(packet.claim.task).await.unwrap().unwrap()]);
    let task = &classified[0];
    assert_eq!((task.status, task.worker), (TaskStatus::Running, Some(running.worker)));
    assert_eq!((task.datasource.as_str(), task.node_group.as_str()), ("a", GROUP));
    assert_eq!((task.job, &task.payload, task.failures), (packet.job, &packet.payload, 0));
    let pending = TaskFilter { status: Some(TaskStatus::Pending), ..TaskFilter::default() };
    assert_eq!(store.tasks(pending, 100).await.unwrap()[0].master, other.master);
    assert_eq!(store.task(TaskId(987_654)).await.unwrap(), None);
}

async fn the_fleet_is_seen_at_a_glance(book: Book) {
    let running = book.running(job("a")).await;
    let labels = vec!["host=nas1".to_owned()];
    let idle = book.process_with(Role::Worker, "east", Profile { labels, ..profile() }).await;
    let load = Load {
        running: 1,
        objects: 20,
        bytes: 300,
        findings: 4,
        objects_per_second: 5,
        bytes_per_second: 60,
    };
    assert!(book.store().renew(Role::Worker, running.worker, LEASE, load).await.unwrap());
    let fleet = book.store().fleet().await.unwrap();
    assert_eq!(fleet.orchestrators.len(), 1);
    assert_eq!((fleet.orchestrators[0].id, fleet.orchestrators[0].jobs), (running.orchestrator, 1));
    let ids: Vec<_> = fleet.workers.iter().map(|worker| worker.id).collect();
    assert_eq!(ids, [idle, running.worker], "by group");
    assert_eq!((&fleet.workers[1].profile, fleet.workers[1].load), (&profile(), load));
    assert_eq!(fleet.workers[0].profile.labels, ["host=nas1"]);
    assert_eq!(fleet.workers[0].lease_ms, LEASE.as_millis() as i64);
    let groups: Vec<_> = fleet.groups.iter().map(|group| group.node_group.as_str()).collect();
    assert_eq!(groups, ["east", GROUP]);
    assert_eq!((fleet.groups[1].jobs_running, fleet.groups[1].tasks_pending), (1, 1));
    book.store().release(Role::Worker, idle).await.unwrap();
    book.advance(LEASE);
    let fleet = book.store().fleet().await.unwrap();
    let leases: Vec<_> = fleet.workers.iter().map(|worker| worker.lease_ms).collect();
    assert_eq!(leases, [-(LEASE.as_millis() as i64), 0], "those that ended are shown for a while");
    assert_eq!(fleet.orchestrators[0].jobs, 0, "it lost them");
    book.advance(std::time::Duration::from_secs(3_600));
    let fleet = book.store().fleet().await.unwrap();
    assert_eq!((fleet.workers, fleet.orchestrators), (vec![], vec![]));
    assert_eq!(fleet.groups.len(), 1, "its job is still there");
}

async fn what_waits_and_what_is_lost_is_counted(book: Book) {
    let running = book.running(job("a").source("b")).await;
    let queued = book.submit(job("c")).await;
    book.store().append_command(queued, Command::Cancel).await.unwrap();
    let lost = running.enumeration().await;
    book.advance(LEASE);
    let group = book.store().fleet().await.unwrap().groups.remove(0);
    let expected = GroupState {
        node_group: GROUP.to_owned(),
        jobs_queued: 1,
        jobs_running: 1,
        jobs_commanded: 1,
        tasks_pending: 1,
        tasks_running: 1,
        oldest_pending_ms: Some(LEASE.as_millis() as i64),
        tasks_orphaned: 1,
        ..GroupState::default()
    };
    assert_eq!(group, expected);
    fail(&book, &lost).await;
    let group = book.store().fleet().await.unwrap().groups.remove(0);
    assert_eq!((group.tasks_failed, group.tasks_running, group.tasks_orphaned), (1, 0, 0));
}

async fn registering_again_is_harmless(book: Book) {
    for role in [Role::Worker, Role::Orchestrator] {
        for committed in [true, false] {
            let process = Process { profile: profile(), ..Process::new(ProcessId(book.id()), role, GROUP) };
            book.lose_answer("register", committed);
            let lost = book.store().register(&process, LEASE).await.unwrap_err();
            assert!(lost.is_retryable(), "{lost}");
            book.store().register(&process, LEASE).await.unwrap();
            assert!(book.store().renew(role, process.id, LEASE, Load::default()).await.unwrap());
        }
    }
    let fleet = book.store().fleet().await.unwrap();
    assert_eq!((fleet.workers.len(), fleet.orchestrators.len()), (2, 2));
}

async fn fail(book: &Book, packet: &WorkPacket) {
    let error = "no route to host".to_owned();
    book.store().give_back(&packet.claim, GiveBack::Failed { error }).await.unwrap();
}

/// Claims the job again that was queued again.
async fn resume(book: &Book, running: &mut Running) {
    let owned = book.claim_job(running.orchestrator).await.expect("it is queued");
    assert_eq!((owned.master_job, owned.status), (running.master, JobStatus::Running));
    assert_eq!(book.store().start_sessions(&owned.lease).await.unwrap(), 0);
    running.lease = owned.lease;
}

async fn a_retried_classification_leaves_no_trace(book: Book) {
    let mut running = book.running(job("a")).await;
    let store = book.store();
    let packet = running.classify(&["f", "g"]).await;
    fail(&book, &packet).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::PartiallyCompleted));
    assert_eq!(store.problems(running.master, 10).await.unwrap().len(), 2);
    store.mark_reported(running.master).await.unwrap();
    assert_eq!(store.unfinished([1; 16]).await.unwrap(), None);
    assert_eq!(store.retry(Retry::Task(packet.claim.task), RetryScope::Passing).await.unwrap().tasks, 1);
    let child = store.child_jobs(running.master).await.unwrap().remove(0);
    assert_eq!((child.status, &child.pending[..]), (JobStatus::Queued, &[Command::Start][..]));
    assert_eq!((child.failure_reason, child.finished_at_ms, child.owner), (None, None, None));
    assert_eq!(store.unfinished([1; 16]).await.unwrap().unwrap().id, running.master);
    let task = store.task(packet.claim.task).await.unwrap().unwrap();
    assert_eq!((task.status, task.failures, task.last_error), (TaskStatus::Pending, 0, None));
    assert_eq!((task.worker, task.finished_at_ms), (None, None));
    resume(&book, &mut running).await;
    let again = running.classification().await;
    assert_eq!((again.claim.task, again.failures), (packet.claim.task, 0));
    running.complete(&again).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
    assert_eq!(store.problems(running.master, 10).await.unwrap(), []);
    let summary = store.summary(running.master).await.unwrap();
    assert_eq!((summary.failed, summary.tasks_failed), (vec![], 0));
}

async fn a_retried_enumeration_leaves_no_trace(book: Book) {
    let mut running = book.running(job("a")).await;
    let store = book.store();
    let root = running.enumeration().await;
    // It had begun, and another container had failed by name.
    store.stage_unit(&root.claim, batch("", 0, files("f", 3))).await.unwrap();
    let reason = domesday_model::Reason::ReadError;
    store.commit_units(&root.claim, vec![failed("x", reason, "denied")]).await.unwrap();
    fail(&book, &root).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::Failed));
    assert_eq!(store.problems(running.master, 10).await.unwrap().len(), 2);
    assert_eq!(store.retry(Retry::AllOf(running.master), RetryScope::Passing).await.unwrap().tasks, 1);
    assert_eq!(store.problems(running.master, 10).await.unwrap(), []);
    resume(&book, &mut running).await;
    let again = running.enumeration().await;
    assert_eq!(store.task_units(&again.claim).await.unwrap(), [], "it is listed from the beginning");
    let units = vec![listed("", files("g", 2)), listed("x", vec![])];
    store.complete_enumeration(&again.claim, units).await.unwrap();
    running.fan_out().await;
    let packet = running.classification().await;
    running.complete(&packet).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
    let summary = store.summary(running.master).await.unwrap();
    assert_eq!((summary.objects_listed, summary.units, summary.failed), (2, 2, vec![]));
    let ended = store.events("test", 100).await.unwrap();
    let ended: Vec<_> = ended.iter().filter(|event| event.kind == "SessionEnded").collect();
    assert_eq!(ended[0].payload["status"], "FAILED");
    assert_eq!(ended[1].payload["status"], "COMPLETED");
}

/// The halves of a task over four containers.
async fn halves(running: &mut Running) -> [WorkPacket; 2] {
    running.list(vec![listed("", ["a", "b", "c", "d"].map(dir).to_vec())]).await;
    running.fan_out().await;
    for _ in 0..2 {
        running.enumeration().await;
        running.abandon().await;
    }
    [running.enumeration().await, running.enumeration().await]
}

async fn a_retried_half_forgets_only_its_own(book: Book) {
    let mut running = book.running(job("a")).await;
    let store = book.store();
    let [first, second] = halves(&mut running).await;
    fail(&book, &first).await;
    fail(&book, &second).await;
    let failed_keys = || async {
        let problems = store.problems(running.master, 10).await.unwrap();
        problems.into_iter().map(|problem| problem.location.key).collect::<Vec<_>>()
    };
    assert_eq!(failed_keys().await, ["a", "b", "c", "d"].map(key));
    assert_eq!(store.retry(Retry::Task(second.claim.task), RetryScope::Passing).await.unwrap().tasks, 1);
    assert_eq!(failed_keys().await, ["a", "b"].map(key), "its sibling's failures stay");
    let again = running.enumeration().await;
    assert_eq!(store.packet_containers(&again).await.unwrap(), ["c", "d"].map(key));
    let units = vec![listed("c", vec![]), listed("d", vec![])];
    store.complete_enumeration(&again.claim, units).await.unwrap();
    assert_eq!(store.task(first.claim.task).await.unwrap().unwrap().status, TaskStatus::Failed);
    assert_eq!(failed_keys().await, ["a", "b"].map(key));
}

async fn a_retry_in_a_running_job_goes_on_there(book: Book) {
    let running = book.running(job("a").source("b")).await;
    let root = running.enumeration().await;
    fail(&book, &root).await;
    assert_eq!(running.complete_job().await, None, "the other source is open; this session has ended");
    assert_eq!(book.store().retry(Retry::AllOf(running.master), RetryScope::Passing).await.unwrap().tasks, 1);
    assert_eq!(book.status(running.master).await, JobStatus::Running);
    for _ in 0..2 {
        running.list(vec![listed("", vec![])]).await;
    }
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed), "under the same lease");
}

/// An orchestrator that slept over the end of a job and its new beginning.
async fn a_job_that_is_queued_again_has_a_new_version(book: Book) {
    let mut running = book.running(job("a")).await;
    let root = running.enumeration().await;
    fail(&book, &root).await;
    let old = running.lease;
    assert_eq!(running.complete_job().await, Some(JobStatus::Failed));
    book.store().retry(Retry::AllOf(running.master), RetryScope::Passing).await.unwrap();
    assert!(book.store().complete_job(&old, Retries::NONE).await.unwrap_err().is_lost());
    resume(&book, &mut running).await;
    assert!(book.store().start_sessions(&old).await.unwrap_err().is_lost());
    assert!(book.store().give_back(&root.claim, GiveBack::Returned).await.unwrap_err().is_lost());
    assert!(running.lease.version > old.version + 1);
}

async fn only_what_failed_is_tried_again(book: Book) {
    let store = book.store();
    for unknown in [Retry::Task(TaskId(987_654)), Retry::AllOf(MasterJobId(book.id()))] {
        let missing = store.retry(unknown, RetryScope::Passing).await.unwrap_err();
        assert!(matches!(missing, StoreError::Missing { .. }), "{missing}");
    }
    let completed = book.running(job("a")).await;
    let packet = completed.classify(&["f"]).await;
    assert_eq!(
        store.retry(Retry::Task(packet.claim.task), RetryScope::Passing).await.unwrap().tasks,
        0,
        "it runs"
    );
    completed.complete(&packet).await;
    assert_eq!(completed.complete_job().await, Some(JobStatus::Completed));
    let mut cancelled = book.running(job("b")).await;
    let root = cancelled.enumeration().await;
    fail(&book, &root).await;
    cancelled.execute(Command::Cancel).await;
    for (task, master) in [(packet.claim.task, completed.master), (root.claim.task, cancelled.master)] {
        for which in [Retry::Task(task), Retry::AllOf(master)] {
            let refused = store.retry(which, RetryScope::Passing).await.unwrap_err();
            assert!(matches!(refused, StoreError::Refused(_)) && !refused.is_retryable(), "{refused}");
        }
    }
    assert_eq!(book.status(completed.master).await, JobStatus::Completed);
}

async fn a_repeated_retry_is_harmless(book: Book) {
    for (group, committed) in [("east", true), ("west", false)] {
        let running = book.running(job("a").group(group)).await;
        let root = running.enumeration().await;
        fail(&book, &root).await;
        running.complete_job().await;
        book.lose_answer("retry", committed);
        let lost = book.store().retry(Retry::AllOf(running.master), RetryScope::Passing).await.unwrap_err();
        assert!(matches!(lost, StoreError::CommitUnknown(_)), "{lost}");
        let count =
            book.store().retry(Retry::AllOf(running.master), RetryScope::Passing).await.unwrap().tasks;
        assert_eq!(count, u64::from(!committed));
        assert_eq!(book.status(running.master).await, JobStatus::Queued);
        let owned = book.store().claim_job(running.orchestrator, group, LEASE).await.unwrap();
        assert_eq!(owned.unwrap().master_job, running.master);
    }
}

async fn a_task_with_a_container_listed_in_part_is_not_completed(book: Book) {
    let running = book.running(job("a")).await;
    let root = running.enumeration().await;
    let unit = book.store().stage_unit(&root.claim, batch("", 0, files("f", 2))).await.unwrap();
    for units in [Vec::new(), vec![listed("other", vec![])]] {
        let refused = book.store().complete_enumeration(&root.claim, units).await.unwrap_err();
        assert!(matches!(refused, StoreError::OpenUnit(task) if task == root.claim.task), "{refused}");
    }
    assert!(!book.is_done(&root.claim).await);
    assert_eq!(book.store().task_units(&root.claim).await.unwrap().len(), 1, "nothing was written");
    book.store().commit_staged(&root.claim, unit).await.unwrap();
    book.store().complete_enumeration(&root.claim, Vec::new()).await.unwrap();
}

async fn a_half_is_completed_whatever_its_sibling_has_open(book: Book) {
    let mut running = book.running(job("a")).await;
    let store = book.store();
    let [first, second] = halves(&mut running).await;
    store.stage_unit(&second.claim, batch("d", 0, files("f", 1))).await.unwrap();
    let units = vec![listed("a", vec![]), listed("b", vec![])];
    store.complete_enumeration(&first.claim, units).await.unwrap();
    let refused = store.complete_enumeration(&second.claim, vec![listed("c", vec![])]).await.unwrap_err();
    assert!(matches!(refused, StoreError::OpenUnit(_)), "{refused}");
}

async fn sessions_end_with_a_cancelled_job(book: Book) {
    let mut running = book.running(job("a").source("b")).await;
    running.list(vec![listed("", vec![dir("d")])]).await;
    running.execute(Command::Cancel).await;
    let events = book.store().events("test", 100).await.unwrap();
    let ended: Vec<_> = events.iter().filter(|event| event.kind == "SessionEnded").collect();
    assert_eq!(ended.len(), 2, "the one that went on, and the one that had not begun");
    assert!(ended.iter().all(|event| event.payload["status"] == "FAILED"));
}
