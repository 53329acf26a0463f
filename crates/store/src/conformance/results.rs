//! Results of classification: invisible until their task is complete, then all of them, once.

use std::sync::Arc;

use domesday_model::reason::Weight;
use domesday_model::{
    Category, FindingDraft, Fingerprint, JobStatus, Location, NestedStep, ObjectReport, ObjectStatus, Reason,
    ScanOptions, Score, Span, TaskType,
};

use super::book::*;
use super::cases;
use super::incremental::survey;
use crate::error::StoreError;
use crate::types::*;

cases![
    results_are_visible_when_their_task_is_complete,
    an_occurrence_comes_back_as_it_went_in,
    repeated_staging_is_harmless,
    missing_results_are_noticed,
    many_tasks_complete_each_for_itself,
    a_claim_completes_its_task_once,
    no_completions_are_none,
    results_of_a_lost_claim_are_never_visible,
    a_finding_keeps_its_id_across_jobs,
    what_makes_a_finding_another_one,
    occurrences_are_ordered,
    occurrences_are_filtered,
    a_long_stream_is_one_snapshot,
    problems_are_ordered_and_bounded,
    what_is_unsupported_makes_only_a_strict_job_incomplete,
    what_is_elsewhere_makes_only_a_strict_job_incomplete,
    the_summary_adds_up,
    a_sweep_takes_only_what_is_lost,
];

const ALL: OccurrenceFilter =
    OccurrenceFilter { min_score: None, rule: None, category: None, with_suppressed: false };

async fn results_are_visible_when_their_task_is_complete(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.classify(&["f", "g"]).await;
    let store = book.store();
    let before = book.view(running.master, &packet.claim).await;
    store
        .stage_results(&packet.claim, 0, findings(vec![finding("f", "r"), finding("f", "s")]))
        .await
        .unwrap();
    let partial = report("g", ObjectStatus::Partial, Some(Reason::Changed));
    store.stage_results(&packet.claim, 2, objects(vec![partial])).await.unwrap();
    assert_eq!(book.view(running.master, &packet.claim).await, before);
    let totals = TaskTotals { objects: 2, nested: 1, bytes: 20 };
    let last = findings(vec![finding("g", "t")]);
    let last = Completion { totals, ..completion(&packet.claim, 3, last) };
    assert!(matches!(store.complete_classifications(vec![last]).await.unwrap()[..], [Ok(())]));
    let rules: Vec<_> =
        book.occurrences(running.master, ALL).await.into_iter().map(|occurrence| occurrence.rule).collect();
    assert_eq!(rules, ["r", "s", "t"]);
    let problems = store.problems(running.master, 10).await.unwrap();
    assert_eq!(problems[0].detail, "about g");
    let summary = store.summary(running.master).await.unwrap();
    assert_eq!(
        (summary.objects_done, summary.nested_done, summary.bytes_done, summary.tasks_open),
        (2, 1, 20, 0)
    );
    assert!(book.is_done(&packet.claim).await);
}

/// Completes a packet with these results, staging nothing.
async fn complete(running: &Running, packet: &WorkPacket, results: ResultBatch) {
    running.book.complete(&packet.claim, 0, results).await.unwrap();
}

async fn an_occurrence_comes_back_as_it_went_in(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.classify(&["f.zip"]).await;
    let steps = vec![
        NestedStep { name: b"in.tar\xff".to_vec(), ordinal: 3 },
        NestedStep { name: b"".to_vec(), ordinal: u32::MAX },
    ];
    let draft = FindingDraft {
        location: Arc::new(Location { key: key("f.zip"), nested: steps.clone() }),
        span: Span { start: 0, end: u64::MAX },
        ..finding("f.zip", "r")
    };
    let object = ObjectReport {
        location: Location { key: key("f.zip"), nested: steps },
        ..report("", ObjectStatus::Skipped, Some(Reason::Encrypted))
    };
    // Once through the staging table, once directly.
    let results = ResultBatch {
        findings: vec![draft.clone()],
        objects: vec![object.clone()],
        ..ResultBatch::default()
    };
    running.store().stage_results(&packet.claim, 0, results.clone()).await.unwrap();
    book.complete(&packet.claim, 2, results).await.unwrap();
    let occurrences = book.occurrences(running.master, ALL).await;
    assert_eq!(occurrences.len(), 2);
    for occurrence in occurrences {
        assert_eq!(occurrence.datasource, packet.datasource.id);
        assert_eq!(occurrence.suppressed, None);
        assert_eq!(occurrence.location, *draft.location);
        assert_eq!(
            (occurrence.rule.as_str(), occurrence.category, occurrence.score),
            ("r", draft.category, draft.score)
        );
        assert_eq!((occurrence.reasons, occurrence.preview), (draft.reasons.clone(), draft.preview.clone()));
        assert_eq!((occurrence.fingerprint, occurrence.span), (draft.fingerprint, draft.span));
        assert_eq!(
            (occurrence.position, occurrence.decoding.as_slice()),
            (draft.position, ["gzip", "utf-16le"].map(String::from).as_slice())
        );
    }
    for problem in book.store().problems(running.master, 10).await.unwrap() {
        assert_eq!(problem.location, object.location);
        assert_eq!((problem.status, problem.reason), (object.status, object.reason));
    }
}

async fn repeated_staging_is_harmless(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.classify(&["f"]).await;
    for _ in 0..2 {
        let results = findings(vec![finding("f", "r"), finding("f", "s")]);
        book.store().stage_results(&packet.claim, 0, results).await.unwrap();
    }
    book.complete(&packet.claim, 2, ResultBatch::default()).await.unwrap();
    assert_eq!(book.occurrences(running.master, ALL).await.len(), 2);
}

async fn missing_results_are_noticed(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.classify(&["f"]).await;
    let store = book.store();
    store.stage_results(&packet.claim, 0, findings(vec![finding("f", "r")])).await.unwrap();
    // A batch between these was never staged, or the staged ones are left out: neither may pass.
    for first_sequence in [0, 2] {
        let last = findings(vec![finding("f", "t")]);
        let result = book.complete(&packet.claim, first_sequence, last).await;
        assert!(matches!(result, Err(StoreError::Gap { expected: 1, .. })), "{result:?}");
    }
    let last = findings(vec![finding("f", "t")]);
    book.complete(&packet.claim, 1, last).await.unwrap();
    assert_eq!(book.occurrences(running.master, ALL).await.len(), 2);
}

/// Objects enough that each of these units becomes a task of its own.
async fn packets<const N: usize>(running: &Running) -> [WorkPacket; N] {
    let listing = |unit| {
        listed(&format!("u{unit}"), files("f", crate::decide::packing::PACK_OBJECTS_MAX as usize / 2 + 1))
    };
    running.list((0..N).map(listing).collect()).await;
    running.fan_out().await;
    let max = N as u32;
    let packets = running.store().claim_tasks(running.worker, GROUP, TaskType::Classification, max).await;
    packets.unwrap().try_into().expect("a task for each unit")
}

async fn many_tasks_complete_each_for_itself(book: Book) {
    let running = book.running(job("a")).await;
    let [staged, lost, late, short, plain] = packets(&running).await;
    let store = book.store();
    let one = |rule| findings(vec![finding("f", rule)]);
    for (packet, rule) in [(&staged, "staged"), (&lost, "lost"), (&short, "short")] {
        store.stage_results(&packet.claim, 0, one(rule)).await.unwrap();
    }
    store.give_back(&lost.claim, GiveBack::Returned).await.unwrap();
    let again = running.classification().await;
    assert_eq!(again.claim.task, lost.claim.task);
    let seen = || objects(vec![report("f", ObjectStatus::Partial, Some(Reason::Changed))]);
    let answers = store
        .complete_classifications(vec![
            completion(&plain.claim, 0, seen()),
            completion(&lost.claim, 1, one("never")),
            completion(&staged.claim, 1, one("last")),
            // It says nothing is staged, and there is.
            completion(&short.claim, 0, one("never")),
            // It says something is staged, and there is nothing.
            completion(&late.claim, 2, ResultBatch::default()),
        ])
        .await
        .unwrap();
    let [Ok(()), Err(refused), Ok(()), Err(first), Err(second)] = &answers[..] else { panic!("{answers:?}") };
    assert!(matches!(refused, StoreError::LostClaim(task) if *task == lost.claim.task), "{refused}");
    for (gap, task, staged, said) in [(first, &short, 1, 0), (second, &late, 0, 2)] {
        assert!(
            matches!(gap, StoreError::Gap { task: of, expected, found }
                if (*of, *expected, *found) == (task.claim.task, staged, said)),
            "{gap}"
        );
    }
    let visible = || async {
        let occurrences = book.occurrences(running.master, ALL).await;
        let mut rules: Vec<_> = occurrences.into_iter().map(|occurrence| occurrence.rule).collect();
        rules.sort_unstable();
        rules
    };
    assert_eq!(visible().await, ["last", "staged"]);
    assert_eq!(store.problems(running.master, 10).await.unwrap().len(), 1);
    let claims = [&plain, &lost, &staged, &short, &late, &again].map(|packet| packet.claim);
    assert_eq!(store.are_done(&claims).await.unwrap(), [true, false, true, false, false, false]);
    // Who was refused for a gap still has the task, and so has the new holder of the lost one.
    let answers = store
        .complete_classifications(vec![
            completion(&short.claim, 1, ResultBatch::default()),
            completion(&again.claim, 0, one("again")),
            completion(&late.claim, 0, ResultBatch::default()),
        ])
        .await
        .unwrap();
    assert!(matches!(answers[..], [Ok(()), Ok(()), Ok(())]), "{answers:?}");
    assert_eq!(visible().await, ["again", "last", "short", "staged"]);
    assert_eq!(running.complete_job().await, Some(JobStatus::PartiallyCompleted));
}

async fn a_claim_completes_its_task_once(book: Book) {
    let running = book.running(job("a")).await;
    let [one, other] = packets(&running).await;
    let result = || findings(vec![finding("f", "r")]);
    let completions = vec![
        completion(&one.claim, 0, result()),
        completion(&other.claim, 0, ResultBatch::default()),
        completion(&one.claim, 0, result()),
    ];
    let answers = book.store().complete_classifications(completions.clone()).await.unwrap();
    assert!(matches!(answers[..], [Ok(()), Ok(()), Err(StoreError::LostClaim(_))]), "{answers:?}");
    let answers = book.store().complete_classifications(completions).await.unwrap();
    assert!(answers.iter().all(|answer| matches!(answer, Err(StoreError::LostClaim(_)))), "{answers:?}");
    assert_eq!(book.occurrences(running.master, ALL).await.len(), 1);
}

async fn no_completions_are_none(book: Book) {
    assert!(book.store().complete_classifications(Vec::new()).await.unwrap().is_empty());
    assert!(book.store().are_done(&[]).await.unwrap().is_empty());
}

async fn results_of_a_lost_claim_are_never_visible(book: Book) {
    let mut running = book.running(job("a")).await;
    let first = running.classify(&["f"]).await;
    book.store().stage_results(&first.claim, 0, findings(vec![finding("f", "lost")])).await.unwrap();
    running.abandon().await;
    let second = running.classification().await;
    book.store().stage_results(&second.claim, 0, findings(vec![finding("f", "kept")])).await.unwrap();
    book.complete(&second.claim, 1, ResultBatch::default()).await.unwrap();
    let occurrences = book.occurrences(running.master, ALL).await;
    assert_eq!(occurrences.iter().map(|occurrence| occurrence.rule.as_str()).collect::<Vec<_>>(), ["kept"]);
}

async fn a_finding_keeps_its_id_across_jobs(book: Book) {
    let mut ids = Vec::new();
    for span in [Span { start: 1, end: 5 }, Span { start: 70, end: 74 }] {
        let running = book.running(job("a")).await;
        let packet = running.classify(&["f"]).await;
        complete(&running, &packet, findings(vec![FindingDraft { span, ..finding("f", "r") }])).await;
        assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
        let occurrences = book.occurrences(running.master, ALL).await;
        assert_eq!((occurrences.len(), occurrences[0].span), (1, span), "each job has its own occurrences");
        ids.push(occurrences[0].finding);
    }
    assert_eq!(ids[0], ids[1]);
}

async fn what_makes_a_finding_another_one(book: Book) {
    let running = book.running(job("a").source("b")).await;
    let base = finding("f", "r");
    let nested = Location { key: key("f"), nested: vec![NestedStep { name: b"n".to_vec(), ordinal: 0 }] };
    let second = Location { key: key("f"), nested: vec![NestedStep { name: b"n".to_vec(), ordinal: 1 }] };
    let distinct = vec![
        base.clone(),
        FindingDraft { rule: "s".into(), ..base.clone() },
        FindingDraft { fingerprint: Fingerprint([9; 16]), ..base.clone() },
        FindingDraft { location: Arc::new(nested), ..base.clone() },
        FindingDraft { location: Arc::new(second), ..base.clone() },
        finding("g", "r"),
    ];
    for _ in 0..2 {
        running.list(vec![listed("", vec![file("f")])]).await;
    }
    running.fan_out().await;
    for _ in 0..2 {
        let packet = running.classification().await;
        complete(&running, &packet, findings(distinct.clone())).await;
    }
    let mut ids: Vec<_> =
        book.occurrences(running.master, ALL).await.into_iter().map(|o| o.finding).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 2 * distinct.len(), "also by data source");
}

async fn occurrences_are_ordered(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.classify(&["f"]).await;
    let at = |object: &str, start, rule| FindingDraft {
        span: Span { start, end: start + 4 },
        ..finding(object, rule)
    };
    let shuffled = vec![
        at("g", 5, "r"),
        at("f", 900, "r"),
        at("f", 9, "s"),
        at("f", 9, "r"),
        at("f", 10, "a"),
        at("e/z", 0, "z"),
    ];
    complete(&running, &packet, findings(shuffled)).await;
    let seen: Vec<_> = book
        .occurrences(running.master, ALL)
        .await
        .into_iter()
        .map(|o| format!("{}:{}:{}", o.location, o.span.start, o.rule))
        .collect();
    assert_eq!(seen, ["e/z:0:z", "f:9:r", "f:9:s", "f:10:a", "f:900:r", "g:5:r"]);
}

async fn occurrences_are_filtered(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.classify(&["f"]).await;
    let low = FindingDraft { score: Score(20), ..finding("f", "low") };
    let card = FindingDraft { category: Category::Payment, ..finding("f", "card") };
    complete(&running, &packet, findings(vec![low, card, finding("f", "key")])).await;
    let check = |filter: OccurrenceFilter, expected: &'static [&'static str]| {
        let (book, master) = (book.clone(), running.master);
        async move {
            let mut rules: Vec<_> =
                book.occurrences(master, filter).await.into_iter().map(|o| o.rule).collect();
            rules.sort_unstable();
            assert_eq!(rules, expected);
        }
    };
    check(ALL, &["card", "key", "low"]).await;
    check(OccurrenceFilter { min_score: Some(Score(21)), ..ALL }, &["card", "key"]).await;
    check(OccurrenceFilter { min_score: Some(Score(20)), ..ALL }, &["card", "key", "low"]).await;
    check(OccurrenceFilter { rule: Some("key".to_owned()), ..ALL }, &["key"]).await;
    check(OccurrenceFilter { category: Some(Category::Payment), ..ALL }, &["card"]).await;
    check(OccurrenceFilter { category: Some(Category::Health), ..ALL }, &[]).await;
}

async fn a_long_stream_is_one_snapshot(book: Book) {
    const COUNT: u64 = 2_000;
    let running = book.running(job("a").source("b")).await;
    for _ in 0..2 {
        running.list(vec![listed("", vec![file("f")])]).await;
    }
    running.fan_out().await;
    let many = |rule: &str| {
        let at = |start| FindingDraft { span: Span { start, end: start + 1 }, ..finding("f", rule) };
        findings((0..COUNT).map(at).collect())
    };
    let first = running.classification().await;
    complete(&running, &first, many("r")).await;
    let mut stream = book.store().occurrences(running.master, ALL).await.unwrap();
    assert_eq!(stream.recv().await.unwrap().unwrap().span.start, 0);
    let second = running.classification().await;
    complete(&running, &second, many("s")).await;
    let mut rest = 0;
    while let Some(occurrence) = stream.recv().await {
        assert_eq!(occurrence.unwrap().rule, "r", "what came later is not in it");
        rest += 1;
    }
    assert_eq!(rest, COUNT - 1);
    drop(book.store().occurrences(running.master, ALL).await.unwrap());
    assert_eq!(book.occurrences(running.master, ALL).await.len() as u64, 2 * COUNT);
}

async fn problems_are_ordered_and_bounded(book: Book) {
    let running = book.running(job("a")).await;
    let root = vec![file("f"), dir("d")];
    running.list(vec![listed("", root), failed("c", Reason::Vanished, "gone")]).await;
    running.fan_out().await;
    let packet = running.classification().await;
    let results = objects(vec![
        report("f", ObjectStatus::Failed, Some(Reason::ReadError)),
        report("b", ObjectStatus::Skipped, Some(Reason::TooLarge)),
        report("a", ObjectStatus::Scanned, None),
        unsupported("a.pdf", "pdf"),
        unsupported("z.doc", "doc"),
    ]);
    complete(&running, &packet, results).await;
    let names = |max: u32| {
        let (book, master) = (book.clone(), running.master);
        async move {
            let problems = book.store().problems(master, max).await.unwrap();
            problems.into_iter().map(|problem| problem.location.to_string()).collect::<Vec<_>>()
        }
    };
    let all = ["b", "c", "f", "z.doc", "a.pdf"];
    assert_eq!(
        names(10).await,
        all,
        "what was scanned whole is none, and what is unsupported comes last, by format"
    );
    assert_eq!(names(2).await, ["b", "c"]);
}

async fn what_is_unsupported_makes_only_a_strict_job_incomplete(book: Book) {
    for (strict, status) in [(false, JobStatus::Completed), (true, JobStatus::PartiallyCompleted)] {
        let options = ScanOptions { strict, ..ScanOptions::default() };
        let running = book.running(JobBuilder { options, ..job("a") }).await;
        let all = objects(vec![unsupported("f", "pdf")]);
        assert_eq!(survey(&running, vec![file("f")], all).await, status);
    }
    let options = ScanOptions { strict: true, ..ScanOptions::default() };
    let running = book.running(JobBuilder { options, ..job("b") }).await;
    assert_eq!(survey(&running, vec![file("f")], ResultBatch::default()).await, JobStatus::Completed);
}

async fn what_is_elsewhere_makes_only_a_strict_job_incomplete(book: Book) {
    for &reason in Reason::ALL {
        if !matches!(reason.weight(), Weight::Skipped | Weight::Elsewhere) {
            continue;
        }
        for strict in [false, true] {
            let options = ScanOptions { strict, ..ScanOptions::default() };
            let running = book.running(JobBuilder { options, ..job("a") }).await;
            let all = objects(vec![report("f", ObjectStatus::Skipped, Some(reason))]);
            let is_lost = strict && reason.weight() == Weight::Elsewhere;
            let status = if is_lost { JobStatus::PartiallyCompleted } else { JobStatus::Completed };
            assert_eq!(survey(&running, vec![file("f")], all).await, status, "{reason}, strict: {strict}");
        }
    }
}

async fn the_summary_adds_up(book: Book) {
    let running = book.running(job("a")).await;
    let records = vec![file("f"), file("g"), skipped("s", Reason::TooLarge), skipped("t", Reason::Symlink)];
    running.list(vec![listed("", records), failed("d", Reason::PermissionDenied, "denied")]).await;
    running.fan_out().await;
    let packet = running.classification().await;
    let overflowing = ObjectReport { overflow: 7, ..report("f", ObjectStatus::Scanned, None) };
    let also = ObjectReport { overflow: 5, ..report("g", ObjectStatus::Partial, Some(Reason::FindingLimit)) };
    let results = objects(vec![
        overflowing,
        also,
        report("h", ObjectStatus::Skipped, Some(Reason::TooLarge)),
        report("i", ObjectStatus::Failed, Some(Reason::PermissionDenied)),
        unsupported("j", "pdf"),
        unsupported("k", "docx"),
        unsupported("l", "pdf"),
    ]);
    let totals = TaskTotals { objects: 2, nested: 2, bytes: 99 };
    let completion = Completion { totals, ..completion(&packet.claim, 0, results) };
    assert!(matches!(book.store().complete_classifications(vec![completion]).await.unwrap()[..], [Ok(())]));
    let mut summary = book.store().summary(running.master).await.unwrap();
    summary.skipped.sort_unstable();
    assert_eq!(
        summary,
        JobSummary {
            objects_unchanged: 0,
            objects_listed: 2,
            bytes_listed: 2 * FILE_SIZE,
            units: 1,
            objects_done: 2,
            nested_done: 2,
            bytes_done: 99,
            skipped: vec![(Reason::TooLarge, 2), (Reason::Symlink, 1)],
            unsupported: vec![("docx".to_owned(), 1), ("pdf".to_owned(), 2)],
            suppressed: Vec::new(),
            partial: vec![(Reason::FindingLimit, 1)],
            failed: vec![(Reason::PermissionDenied, 2)],
            overflow: 12,
            tasks_failed: 0,
            tasks_open: 0,
        }
    );
}

async fn a_sweep_takes_only_what_is_lost(book: Book) {
    let mut running = book.running(job("a")).await;
    let lost = running.classify(&["f"]).await;
    let store = book.store();
    store.stage_results(&lost.claim, 0, findings(vec![finding("f", "r"), finding("f", "s")])).await.unwrap();
    assert_eq!(store.sweep(10).await.unwrap(), 0, "a running task's results wait");
    running.abandon().await;
    let held = running.claim_by(running.worker, TaskType::Classification).await.unwrap();
    store.stage_results(&held.claim, 0, findings(vec![finding("f", "t")])).await.unwrap();
    assert_eq!(store.sweep(1).await.unwrap(), 1);
    assert_eq!(store.sweep(10).await.unwrap(), 1);
    assert_eq!(store.sweep(10).await.unwrap(), 0);
    book.complete(&held.claim, 1, ResultBatch::default()).await.unwrap();
    assert_eq!(book.occurrences(running.master, ALL).await.len(), 1);
}
