//! Where objects with findings came from: looked up once per session, when all else is done.

use std::collections::BTreeSet;
use std::time::Duration;

use domesday_model::{Command, JobStatus, ObjectKey, ObjectStatus, Origin, Reason, TaskPayload, TaskType};

use super::book::*;
use super::cases;
use crate::types::*;

cases![
    origins_are_looked_up_and_read_with_the_findings,
    problems_are_read_with_the_origin_of_their_object,
    tracing_waits_for_everything_else_of_its_session,
    a_job_waits_for_its_tracing,
    what_is_known_is_not_asked_again,
    saving_origins_again_is_harmless,
    a_completion_that_was_refused_asks_for_nothing,
    a_lost_answer_asks_once,
    tracing_that_failed_is_named_and_tried_again,
    tracing_that_ends_every_worker_is_given_up,
    tracing_is_paused_resumed_and_cancelled,
    what_a_tracing_task_left_is_anothers,
    sessions_are_traced_each_for_itself,
    pruning_keeps_targets_and_origins,
];

async fn origin_of(book: &Book, running: &Running) -> Vec<(ObjectKey, Option<Origin>)> {
    let found = book.occurrences(running.master, OccurrenceFilter::default()).await;
    found.into_iter().map(|occurrence| (occurrence.location.key, occurrence.origin)).collect()
}

async fn tracing_tasks(running: &Running) -> u64 {
    running.fan_out().await.tasks[TaskType::Tracing]
}

async fn origins_are_looked_up_and_read_with_the_findings(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.trace(&["f", "g", "h"]).await;
    assert_eq!((packet.task_type, &packet.payload), (TaskType::Tracing, &TaskPayload::UntracedObjects));
    assert_eq!(tracing_tasks(&running).await, 0, "there is one");
    let store = book.store();
    let known = origin("c1");
    let tag = Origin { path: None, author: "a\0".to_owned(), is_abandoned: false, ..origin("c2") };
    let mut seen = BTreeSet::new();
    loop {
        let page = store.untraced(&packet.claim, 2).await.unwrap();
        if page.is_empty() {
            break;
        }
        assert!(page.len() <= 2);
        let origin = |key: ObjectKey| {
            let origin = match &key.0[..] {
                b"f" => Some(known.clone()),
                b"g" => Some(tag.clone()),
                _ => None,
            };
            (key, origin)
        };
        assert!(page.iter().all(|key| seen.insert(key.clone())), "each once");
        store.save_origins(&packet.claim, page.into_iter().map(origin).collect()).await.unwrap();
    }
    assert_eq!(seen, ["f", "g", "h"].map(key).into());
    store.complete_task(&packet.claim).await.unwrap();
    assert!(book.is_done(&packet.claim).await);
    let found = origin_of(&book, &running).await;
    assert_eq!(found[0], (key("f"), Some(known)));
    let shown = found[1].1.clone().unwrap();
    assert_eq!((shown.path, shown.commit.as_str(), shown.is_abandoned), (None, "c2", false));
    assert!(shown.author.starts_with('a'));
    assert_eq!(found[2], (key("h"), None));
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
}

async fn problems_are_read_with_the_origin_of_their_object(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.classify(&["f", "g"]).await;
    let lost = |file| report(file, ObjectStatus::Failed, Some(Reason::Encrypted));
    let untraced = vec![key("f"), key("g")];
    let batch = objects(vec![lost("f"), lost("g")]);
    let done = Completion { untraced, ..completion(&packet.claim, 0, batch) };
    book.store().complete_classifications(vec![done]).await.unwrap().remove(0).unwrap();
    assert_eq!(tracing_tasks(&running).await, 1);
    let packet = running.claim_by(running.worker, TaskType::Tracing).await.unwrap();
    let known = vec![(key("f"), Some(origin("c1"))), (key("g"), None)];
    book.store().save_origins(&packet.claim, known).await.unwrap();
    book.store().complete_task(&packet.claim).await.unwrap();
    let problems = book.store().problems(running.master, 10).await.unwrap();
    let seen: Vec<_> = problems.into_iter().map(|problem| (problem.location.key, problem.origin)).collect();
    assert_eq!(seen, [(key("f"), Some(origin("c1"))), (key("g"), None)]);
}

async fn tracing_waits_for_everything_else_of_its_session(book: Book) {
    let running = book.running(job("a")).await;
    let root = running.enumeration().await;
    let store = book.store();
    store.commit_units(&root.claim, vec![listed("", vec![file("f"), dir("d")])]).await.unwrap();
    running.fan_out().await;
    let packet = running.classification().await;
    let untraced = vec![key("f")];
    let found = Completion { untraced, ..completion(&packet.claim, 0, findings(vec![finding("f", "r")])) };
    store.complete_classifications(vec![found]).await.unwrap();
    assert_eq!(tracing_tasks(&running).await, 0, "two containers are still listed");
    store.complete_enumeration(&root.claim, Vec::new()).await.unwrap();
    let inner = running.enumeration().await;
    store.stage_unit(&inner.claim, batch("d", 0, vec![file("g")])).await.unwrap();
    assert_eq!(tracing_tasks(&running).await, 0, "one is listed in part");
    let unit = store.task_units(&inner.claim).await.unwrap()[0].unit;
    store.commit_staged(&inner.claim, unit).await.unwrap();
    store.complete_enumeration(&inner.claim, Vec::new()).await.unwrap();
    let report = store.fan_out(&running.lease, FULL_ONLY).await.unwrap();
    assert_eq!(report, FanOutReport::default(), "a unit waits for its pack to be full");
    assert_eq!(tracing_tasks(&running).await, 0, "its objects are to be classified");
    let packet = running.classification().await;
    assert_eq!(tracing_tasks(&running).await, 0, "they are being classified");
    running.complete(&packet).await;
    assert_eq!(tracing_tasks(&running).await, 1);
    assert_eq!(tracing_tasks(&running).await, 0);
}

async fn a_job_waits_for_its_tracing(book: Book) {
    let running = book.running(job("a")).await;
    running.find_untraced(&["f"]).await;
    assert_eq!(running.complete_job().await, None, "no task yet, and still something to do");
    assert_eq!(tracing_tasks(&running).await, 1);
    assert_eq!(running.complete_job().await, None);
    let packet = running.claim_by(running.worker, TaskType::Tracing).await.unwrap();
    assert_eq!(running.complete_job().await, None);
    book.store().save_origins(&packet.claim, vec![(key("f"), None)]).await.unwrap();
    assert_eq!(running.complete_job().await, None);
    book.store().complete_task(&packet.claim).await.unwrap();
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
}

async fn what_is_known_is_not_asked_again(book: Book) {
    let known = Origin { is_abandoned: false, ..origin("c1") };
    let objects = ["abandoned", "known", "staged", "unknown"];
    let first = book.running(job("a")).await;
    let packet = first.trace(&objects).await;
    let origins = vec![
        (key("abandoned"), Some(origin("c2"))),
        (key("known"), Some(known.clone())),
        (key("staged"), Some(Origin { commit: String::new(), ..known.clone() })),
        (key("unknown"), None),
    ];
    book.store().save_origins(&packet.claim, origins).await.unwrap();
    book.store().complete_task(&packet.claim).await.unwrap();
    assert_eq!(first.complete_job().await, Some(JobStatus::Completed));
    let second = book.running(job("a")).await;
    let packet = second.trace(&objects).await;
    let asked: BTreeSet<_> = book.store().untraced(&packet.claim, 10).await.unwrap().into_iter().collect();
    assert_eq!(asked, ["abandoned", "staged", "unknown"].map(key).into(), "what may be otherwise by now");
    assert_eq!(origin_of(&book, &second).await[1].1, Some(known));
    // Another source has objects of its own.
    let other = book.running(job("b")).await;
    let packet = other.trace(&["known"]).await;
    assert_eq!(book.store().untraced(&packet.claim, 10).await.unwrap(), [key("known")]);
    assert_eq!(origin_of(&book, &other).await, [(key("known"), None)]);
}

async fn saving_origins_again_is_harmless(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.trace(&["f"]).await;
    let store = book.store();
    book.lose_answer("save_origins", true);
    store.save_origins(&packet.claim, vec![(key("f"), Some(origin("c1")))]).await.unwrap_err();
    let twice = vec![(key("f"), Some(origin("c0"))), (key("f"), Some(origin("c2")))];
    store.save_origins(&packet.claim, twice).await.unwrap();
    store.save_origins(&packet.claim, vec![(key("f"), None)]).await.unwrap();
    store.save_origins(&packet.claim, Vec::new()).await.unwrap();
    assert_eq!(origin_of(&book, &running).await, [(key("f"), Some(origin("c2")))]);
    assert_eq!(store.untraced(&packet.claim, 10).await.unwrap(), []);
}

async fn a_completion_that_was_refused_asks_for_nothing(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.classify(&["f"]).await;
    let untraced = vec![key("f")];
    let gap = Completion { untraced, ..completion(&packet.claim, 7, ResultBatch::default()) };
    let answers = book.store().complete_classifications(vec![gap]).await.unwrap();
    assert!(matches!(answers[..], [Err(_)]));
    running.complete(&packet).await;
    assert_eq!(tracing_tasks(&running).await, 0);
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
}

async fn a_lost_answer_asks_once(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.classify(&["f"]).await;
    // No finding of its own: they were staged before. Twice: it has several.
    let untraced = vec![key("f"), key("f")];
    let done = Completion { untraced, ..completion(&packet.claim, 0, ResultBatch::default()) };
    for committed in [false, true] {
        book.lose_answer("complete_classifications", committed);
        book.store().complete_classifications(vec![done.clone()]).await.unwrap_err();
        assert_eq!(tracing_tasks(&running).await, u64::from(committed));
    }
    let packet = running.claim_by(running.worker, TaskType::Tracing).await.unwrap();
    assert_eq!(book.store().untraced(&packet.claim, 10).await.unwrap(), [key("f")]);
}

async fn tracing_that_failed_is_named_and_tried_again(book: Book) {
    let mut running = book.running(job("a")).await;
    let packet = running.trace(&["f"]).await;
    let store = book.store();
    let later = GiveBack::Retry { error: "busy".to_owned(), after: Duration::from_secs(1) };
    store.give_back(&packet.claim, later).await.unwrap();
    assert_eq!(running.claim_by(running.worker, TaskType::Tracing).await, None);
    book.advance(Duration::from_secs(1));
    let packet = running.claim_by(running.worker, TaskType::Tracing).await.unwrap();
    assert_eq!(packet.failures, 1);
    let error = "the mirror is gone".to_owned();
    store.give_back(&packet.claim, GiveBack::Failed { error }).await.unwrap();
    assert_eq!(tracing_tasks(&running).await, 0, "it failed for good");
    assert_eq!(running.complete_job().await, Some(JobStatus::PartiallyCompleted));
    let problems = store.problems(running.master, 10).await.unwrap();
    assert_eq!((problems.len(), problems[0].status), (1, ObjectStatus::Failed));
    assert_eq!(problems[0].location.key, ObjectKey::default());
    assert!(problems[0].detail.ends_with("looked up: the mirror is gone"), "{}", problems[0].detail);
    // And again.
    assert_eq!(store.retry(Retry::Task(packet.claim.task), RetryScope::Passing).await.unwrap().tasks, 1);
    assert_eq!(store.problems(running.master, 10).await.unwrap(), []);
    running.lease = book.claim_job(running.orchestrator).await.unwrap().lease;
    assert_eq!(running.complete_job().await, None);
    let again = running.claim_by(running.worker, TaskType::Tracing).await.unwrap();
    assert_eq!(again.claim.task, packet.claim.task);
    store.save_origins(&again.claim, vec![(key("f"), Some(origin("c1")))]).await.unwrap();
    store.complete_task(&again.claim).await.unwrap();
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
}

async fn tracing_that_ends_every_worker_is_given_up(book: Book) {
    let mut running = book.running(job("a")).await;
    running.trace(&["f"]).await;
    let mut report = ReapReport::default();
    for _ in 0..20 {
        report = running.abandon().await;
        assert_eq!(report.split, 0, "it cannot be split");
        if report.poisoned > 0 {
            break;
        }
        book.advance(LEASE / 2);
        running.worker = book.worker().await;
        assert!(running.claim_by(running.worker, TaskType::Tracing).await.is_some());
    }
    assert_eq!(report.poisoned, 1);
    running.lease = match book.claim_job(book.orchestrator().await).await {
        Some(owned) => owned.lease,
        None => running.lease,
    };
    assert_eq!(tracing_tasks(&running).await, 0, "nobody tries it again");
    assert_eq!(running.complete_job().await, Some(JobStatus::PartiallyCompleted));
    let problems = book.store().problems(running.master, 10).await.unwrap();
    assert_eq!((problems.len(), problems[0].reason), (1, Some(Reason::Poisoned)));
}

async fn tracing_is_paused_resumed_and_cancelled(book: Book) {
    let mut running = book.running(job("a")).await;
    let packet = running.trace(&["f"]).await;
    let store = book.store();
    assert_eq!(running.execute(Command::Pause).await, JobStatus::Pausing);
    assert_eq!(store.settle_job(&running.lease).await.unwrap(), None, "it runs");
    store.give_back(&packet.claim, GiveBack::Returned).await.unwrap();
    assert_eq!(store.settle_job(&running.lease).await.unwrap(), Some(JobStatus::Paused));
    assert_eq!(running.claim_by(running.worker, TaskType::Tracing).await, None);
    running.command(Command::Resume).await;
    assert_eq!(store.execute_unowned_commands(GROUP).await.unwrap(), 1);
    running.lease = book.claim_job(running.orchestrator).await.unwrap().lease;
    let packet = running.claim_by(running.worker, TaskType::Tracing).await.unwrap();
    assert_eq!(running.execute(Command::Cancel).await, JobStatus::Cancelling);
    assert!(store.complete_task(&packet.claim).await.unwrap_err().is_lost());
    assert_eq!(store.settle_job(&running.lease).await.unwrap(), Some(JobStatus::Cancelled));
}

async fn what_a_tracing_task_left_is_anothers(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.trace(&["f", "g"]).await;
    book.store().save_origins(&packet.claim, vec![(key("f"), None)]).await.unwrap();
    book.store().complete_task(&packet.claim).await.unwrap();
    assert_eq!(running.complete_job().await, None);
    assert_eq!(tracing_tasks(&running).await, 1);
    let packet = running.claim_by(running.worker, TaskType::Tracing).await.unwrap();
    assert_eq!(book.store().untraced(&packet.claim, 10).await.unwrap(), [key("g")]);
}

async fn sessions_are_traced_each_for_itself(book: Book) {
    let running = book.running(job("a").source("b")).await;
    running.find_untraced(&["f"]).await;
    assert_eq!(tracing_tasks(&running).await, 1, "the other one is not listed yet");
    running.find_untraced(&["f", "g"]).await;
    assert_eq!(tracing_tasks(&running).await, 1);
    for (source, count) in [("a", 1), ("b", 2)] {
        let packet = running.claim_by(running.worker, TaskType::Tracing).await.unwrap();
        assert_eq!(packet.datasource.name, source);
        let keys = book.store().untraced(&packet.claim, 10).await.unwrap();
        assert_eq!(keys.len(), count);
        let commit = |key| (key, Some(origin(source)));
        book.store().save_origins(&packet.claim, keys.into_iter().map(commit).collect()).await.unwrap();
        book.store().complete_task(&packet.claim).await.unwrap();
    }
    let found = origin_of(&book, &running).await;
    let commits: Vec<_> = found.into_iter().map(|(_, origin)| origin.unwrap().commit).collect();
    assert_eq!(commits, ["a", "b", "b"]);
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
}

async fn pruning_keeps_targets_and_origins(book: Book) {
    const DAY: Duration = Duration::from_secs(86_400);
    for round in 0..3 {
        let mut running = book.running(job("a")).await;
        let packet = running.trace(&[&format!("f{round}"), &format!("g{round}")]).await;
        let known = Origin { is_abandoned: false, ..origin("c1") };
        let origins = vec![(key(&format!("f{round}")), Some(known))];
        book.store().save_origins(&packet.claim, origins).await.unwrap();
        // The first is given up with something to trace, the others end.
        match round {
            0 => {
                running.execute(Command::Cancel).await;
                book.store().settle_job(&running.lease).await.unwrap();
            }
            _ => {
                book.store()
                    .save_origins(&packet.claim, vec![(key(&format!("g{round}")), None)])
                    .await
                    .unwrap();
                book.store().complete_task(&packet.claim).await.unwrap();
                assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
            }
        }
        book.advance(DAY);
    }
    let targets = book.store().targets(TargetFilter::default(), None, 10).await.unwrap();
    let mut pruned = 0;
    while let step = book.store().prune(DAY / 2, 3).await.unwrap()
        && !step.done
    {
        pruned += step.jobs;
    }
    assert_eq!(pruned, 2);
    assert_eq!(book.store().targets(TargetFilter::default(), None, 10).await.unwrap(), targets);
    assert_eq!(book.store().sessions(SessionFilter::default(), None, 10).await.unwrap().len(), 1);
    // What was found out before is still known.
    let running = book.running(job("a")).await;
    let packet = running.trace(&["f0", "f1", "g0"]).await;
    assert_eq!(book.store().untraced(&packet.claim, 10).await.unwrap(), [key("g0")]);
}
