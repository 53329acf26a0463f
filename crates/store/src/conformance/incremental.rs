//! Bases: which session an incremental one is compared with, how results carry on from job to job, and for how
//! long a base stands.

use std::time::Duration;

use domesday_model::{
    Command, FindingDraft, JobStatus, MasterJobId, ObjectStatus, Reason, RecordKind, RuleSetHash,
    ScanOptions, Suppressed, SuppressedBy, TaskType, UnitRecord, VersionMarks,
};

use super::book::*;
use super::cases;
use super::prior::{nested_finding, nested_report, of_kind};
use crate::types::*;

cases![
    the_latest_session_like_it_is_the_base,
    what_is_scanned_otherwise_is_no_base,
    another_source_is_no_base,
    only_what_came_to_an_end_is_a_base,
    every_packet_of_a_session_has_its_base,
    a_chain_of_jobs_carries_on,
    what_is_suppressed_is_kept_apart_and_carried_on,
    a_pruned_base_is_gone_as_a_whole,
    a_base_that_is_tried_again_is_gone_until_it_ends,
    the_base_of_the_next_job_is_not_pruned,
    a_source_that_failed_keeps_its_older_base,
];

const DAY: Duration = Duration::from_secs(86_400);

/// A job that reads only what has changed.
pub(super) fn incremental(source: &str) -> JobBuilder {
    JobBuilder { incremental: true, ..job(source) }
}

/// Lists these records of the root, ends the classification of what is to be classified with these results, and
/// the job.
pub(super) async fn survey(running: &Running, records: Vec<UnitRecord>, results: ResultBatch) -> JobStatus {
    running.list(vec![listed("", records)]).await;
    running.fan_out().await;
    if let Some(packet) = running.claim_by(running.worker, TaskType::Classification).await {
        running.book.complete(&packet.claim, 0, results).await.unwrap();
    }
    running.complete_job().await.expect("nothing is left")
}

/// A completed job over `f` and `g`, with one finding in `f`.
async fn surveyed(book: &Book, builder: JobBuilder) -> MasterJobId {
    let running = book.running(builder).await;
    let results = findings(vec![finding("f", "r")]);
    assert_eq!(survey(&running, vec![file("f"), file("g")], results).await, JobStatus::Completed);
    running.master
}

/// The base of a new job like this, which goes no further.
pub(super) async fn base_of(book: &Book, builder: JobBuilder) -> Option<Base> {
    let mut running = book.running(builder).await;
    let base = running.enumeration().await.base;
    running.execute(Command::Cancel).await;
    book.store().settle_job(&running.lease).await.unwrap();
    base
}

pub(super) async fn records(book: &Book, base: &Base, container: &str) -> Vec<PriorRecord> {
    let page =
        book.store().prior_records(base, &[key(container)], PriorCursor::default(), 1_000).await.unwrap();
    assert_eq!(page.next, None);
    page.records
}

pub(super) async fn outcomes(book: &Book, base: &Base) -> Vec<(String, PriorOutcome)> {
    let records = records(book, base, "").await;
    records.into_iter().map(|record| (String::from_utf8(record.name).unwrap(), record.outcome)).collect()
}

async fn the_latest_session_like_it_is_the_base(book: Book) {
    assert_eq!(base_of(&book, incremental("a")).await, None, "there is none");
    surveyed(&book, job("a")).await;
    let first = base_of(&book, incremental("a")).await.expect("one that was not incremental is a base");
    assert_eq!(base_of(&book, incremental("a")).await, Some(first), "one that was cancelled is none");
    assert_eq!(base_of(&book, job("a")).await, None, "a job that reads everything needs none");
    book.advance(DAY);
    surveyed(&book, incremental("a")).await;
    let second = base_of(&book, incremental("a")).await.unwrap();
    assert!(second.session > first.session && second.job > first.job);
    assert_eq!(second.started_at_ms - first.started_at_ms, DAY.as_millis() as i64);
}

async fn what_is_scanned_otherwise_is_no_base(book: Book) {
    surveyed(&book, incremental("a")).await;
    let options = ScanOptions { occurrence_cap: 1, ..ScanOptions::default() };
    let others = [
        JobBuilder { rules: RuleSetHash([9; 16]), ..incremental("a") },
        JobBuilder { options, ..incremental("a") },
        JobBuilder { engine_version: 2, ..incremental("a") },
        incremental("a").with(|source| source.configuration = serde_json::json!({ "path": "other" })),
        incremental("a").with(|source| source.kind = "git".to_owned()),
    ];
    for other in others {
        assert_eq!(base_of(&book, other).await, None);
    }
    assert!(base_of(&book, incremental("a")).await.is_some());
    assert!(base_of(&book, incremental("a").limit(3)).await.is_some(), "how fast makes no difference");
}

async fn another_source_is_no_base(book: Book) {
    surveyed(&book, incremental("a")).await;
    let same = |source: &mut domesday_model::DatasourceSpec| {
        source.configuration = serde_json::json!({ "path": "a" })
    };
    assert_eq!(base_of(&book, incremental("b").with(same)).await, None);
}

async fn only_what_came_to_an_end_is_a_base(book: Book) {
    let failed_job = book.running(incremental("a")).await;
    failed_job.list(vec![failed("", Reason::PermissionDenied, "denied")]).await;
    assert_eq!(failed_job.complete_job().await, Some(JobStatus::Failed));
    let mut cancelled = book.running(incremental("a")).await;
    cancelled.list(vec![listed("", vec![file("f")])]).await;
    cancelled.execute(Command::Cancel).await;
    book.store().settle_job(&cancelled.lease).await.unwrap();
    // All of it is listed, but not all is classified.
    let running = book.running(incremental("a")).await;
    running.list(vec![listed("", vec![file("f")])]).await;
    assert_eq!(running.complete_job().await, None);
    assert_eq!(base_of(&book, incremental("a")).await, None);
    running.fan_out().await;
    let packet = running.classification().await;
    let partial = objects(vec![report("f", ObjectStatus::Partial, Some(Reason::Changed))]);
    book.complete(&packet.claim, 0, partial).await.unwrap();
    assert_eq!(running.complete_job().await, Some(JobStatus::PartiallyCompleted));
    let base = base_of(&book, incremental("a")).await.expect("what it has is good");
    assert_eq!(base.job, running.lease.job);
}

async fn every_packet_of_a_session_has_its_base(book: Book) {
    surveyed(&book, job("a")).await;
    let running = book.running(incremental("a").source("b")).await;
    let (a, b) = (running.enumeration().await, running.enumeration().await);
    assert_eq!(b.base, None, "each source has its own");
    let base = a.base.expect("the job before");
    book.store().complete_enumeration(&a.claim, vec![listed("", vec![dir("d"), file("f")])]).await.unwrap();
    // A base stays what it is, whatever ends meanwhile.
    surveyed(&book, job("a")).await;
    running.fan_out().await;
    assert_eq!(running.enumeration().await.base, Some(base));
    assert_eq!(running.classification().await.base, Some(base));
}

/// Lists what the base knows again, as an enumeration does, and replays what is carried.
async fn incremental_survey(book: &Book, now: &[UnitRecord]) -> Running {
    let running = book.running(incremental("a")).await;
    let root = running.enumeration().await;
    let base = root.base.expect("a base");
    let prior = records(book, &base, "").await;
    let judged = now.iter().map(|record| {
        let known = prior.iter().find(|prior| prior.name == record.name);
        UnitRecord { kind: known.map_or(record.kind, |known| known.kind_of(record, &base)), ..record.clone() }
    });
    let judged = judged.collect();
    book.store().complete_enumeration(&root.claim, vec![listed("", judged)]).await.unwrap();
    running.fan_out().await;
    if let Some(packet) = running.claim_by(running.worker, TaskType::Classification).await {
        let objects = book.store().packet_objects(&packet).await.unwrap();
        let carried: Vec<_> =
            objects.iter().filter(|object| object.is_carried()).map(|object| object.key.clone()).collect();
        let mut all = ResultBatch::default();
        for batch in book.store().prior_results(&base, carried).await.unwrap() {
            let batch = batch.expect("the base stands");
            all.findings.extend(batch.findings);
            all.objects.extend(batch.objects);
            all.versions.extend(batch.versions);
        }
        for object in objects.iter().filter(|object| !object.is_carried() && object.key != key("young")) {
            all.findings.push(finding(&object.key.to_string(), "new"));
        }
        book.complete(&packet.claim, 0, all).await.unwrap();
    }
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
    running
}

async fn what_is_suppressed_is_kept_apart_and_carried_on(book: Book) {
    let hidden = |object: &str, by: SuppressedBy, count| FindingDraft {
        suppressed: Some(Suppressed { by, count }),
        ..finding(object, "hidden")
    };
    let allow = || SuppressedBy::Allow("rules.toml:3 (why: so)".into());
    // In `f` something else is reported, in `g` nothing: neither may be forgotten.
    let drafts = [
        finding("f", "r"),
        hidden("f", SuppressedBy::Mark, 1),
        hidden("g", allow(), 41),
        hidden("h", SuppressedBy::Mark, 2),
    ];
    let now = vec![file("f"), file("g"), file("h")];
    let first = book.running(job("a")).await;
    first.list(vec![listed("", now.clone())]).await;
    first.fan_out().await;
    let packet = first.claim_by(first.worker, TaskType::Classification).await.unwrap();
    // Some through the staging table, some directly.
    book.store().stage_results(&packet.claim, 0, findings(drafts[..3].to_vec())).await.unwrap();
    book.complete(&packet.claim, 3, findings(drafts[3..].to_vec())).await.unwrap();
    assert_eq!(first.complete_job().await, Some(JobStatus::Completed));
    let all = OccurrenceFilter { with_suppressed: true, ..OccurrenceFilter::default() };
    let mut master = first.master;
    for _ in 0..3 {
        let reported = book.occurrences(master, OccurrenceFilter::default()).await;
        assert_eq!(reported.iter().map(|found| found.rule.as_str()).collect::<Vec<_>>(), ["r"]);
        let kept = book.occurrences(master, all.clone()).await;
        let kept: Vec<_> = kept.into_iter().map(|found| found.suppressed).collect();
        let expected = [drafts[1].clone(), drafts[0].clone(), drafts[2].clone(), drafts[3].clone()];
        assert_eq!(kept, expected.map(|draft| draft.suppressed));
        let summary = book.store().summary(master).await.unwrap();
        assert_eq!(summary.suppressed, [(allow(), 41), (SuppressedBy::Mark, 3)]);
        book.advance(DAY);
        let next = incremental_survey(&book, &now).await;
        let summary = book.store().summary(next.master).await.unwrap();
        assert_eq!((summary.objects_unchanged, summary.objects_listed), (0, 3), "each is carried");
        master = next.master;
    }
}

async fn a_chain_of_jobs_carries_on(book: Book) {
    let young =
        UnitRecord { marks: VersionMarks { mtime_ns: i64::MAX, ..file("young").marks }, ..file("young") };
    let now = vec![file("clean"), file("f"), file("zip"), young];
    let first = book.running(job("a")).await;
    let mut results = findings(vec![finding("f", "r"), finding("f", "s"), nested_finding("zip", "r")]);
    results.objects = vec![nested_report("zip", ObjectStatus::Skipped, Reason::Encrypted)];
    assert_eq!(survey(&first, now.clone(), results).await, JobStatus::Completed);
    let found = book.occurrences(first.master, OccurrenceFilter::default()).await;
    let problems = book.store().problems(first.master, 10).await.unwrap();
    for _ in 0..3 {
        book.advance(DAY);
        let next = incremental_survey(&book, &now).await;
        let summary = book.store().summary(next.master).await.unwrap();
        assert_eq!((summary.objects_unchanged, summary.objects_listed), (1, 3));
        assert_eq!(book.occurrences(next.master, OccurrenceFilter::default()).await, found);
        assert_eq!(book.store().problems(next.master, 10).await.unwrap(), problems);
    }
    // One that changed is read, and becomes part of what the next one knows.
    let mut changed = now.clone();
    changed[0].size += 1;
    for expected in [1, 1] {
        let next = incremental_survey(&book, &changed).await;
        let occurrences = book.occurrences(next.master, OccurrenceFilter::default()).await;
        let new: Vec<_> = occurrences.iter().filter(|occurrence| occurrence.rule == "new").collect();
        assert_eq!((new.len(), new[0].location.key.clone()), (expected, key("clean")));
        assert_eq!(occurrences.len(), found.len() + 1);
    }
}

/// An owner of the job again, after its lease ran out.
async fn take_over(book: &Book, running: &mut Running) {
    let owner = book.orchestrator().await;
    loop {
        let owned = book.claim_job(owner).await.expect("the job is to be had");
        if owned.master_job == running.master {
            running.lease = owned.lease;
            running.worker = book.worker().await;
            return;
        }
    }
}

async fn a_pruned_base_is_gone_as_a_whole(book: Book) {
    let first = surveyed(&book, job("a")).await;
    let mut running = book.running(incremental("a")).await;
    let root = running.enumeration().await;
    let base = root.base.unwrap();
    let carried = vec![of_kind(RecordKind::Carried, "f"), of_kind(RecordKind::Unchanged, "g"), dir("d")];
    book.store().complete_enumeration(&root.claim, vec![listed("", carried)]).await.unwrap();
    surveyed(&book, JobBuilder { rules: RuleSetHash([9; 16]), ..job("a") }).await;
    book.advance(DAY);
    let asked = || async { book.store().prior_results(&base, vec![key("f"), key("g")]).await.unwrap() };
    assert_eq!(asked().await.iter().flatten().count(), 2);
    // From the first step on, though most of it is still there.
    for _ in 0..1_000 {
        let step = book.store().prune(DAY / 2, 1).await.unwrap();
        assert_eq!(records(&book, &base, "").await, []);
        assert_eq!(asked().await, [None, None]);
        if step.done {
            break;
        }
    }
    assert_eq!(book.store().master_job(first).await.unwrap(), None);
    take_over(&book, &mut running).await;
    running.fan_out().await;
    let folder = running.enumeration().await;
    assert_eq!(folder.base, None, "a packet has no base that is no more");
    book.store().complete_enumeration(&folder.claim, vec![listed("d", vec![])]).await.unwrap();
    let packet = running.classification().await;
    assert!(book.store().packet_objects(&packet).await.unwrap()[0].is_carried());
    running.complete(&packet).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
}

async fn a_base_that_is_tried_again_is_gone_until_it_ends(book: Book) {
    let mut first = book.running(job("a")).await;
    let packet = first.classify(&["f"]).await;
    let error = "no route to host".to_owned();
    book.store().give_back(&packet.claim, GiveBack::Failed { error }).await.unwrap();
    assert_eq!(first.complete_job().await, Some(JobStatus::PartiallyCompleted));
    let base = base_of(&book, incremental("a")).await.unwrap();
    assert_eq!(outcomes(&book, &base).await, [("f".to_owned(), PriorOutcome::Unusable)]);
    assert_eq!(book.store().retry(Retry::AllOf(first.master), RetryScope::Passing).await.unwrap().tasks, 1);
    assert_eq!(outcomes(&book, &base).await, [], "it would seem clean");
    assert_eq!(book.store().prior_results(&base, vec![key("f")]).await.unwrap(), [None]);
    let owner = book.orchestrator().await;
    first.lease = book.claim_job(owner).await.unwrap().lease;
    assert_eq!(base_of(&book, incremental("a")).await, None);
    let packet = first.classification().await;
    book.complete(&packet.claim, 0, findings(vec![finding("f", "r")])).await.unwrap();
    assert_eq!(first.complete_job().await, Some(JobStatus::Completed));
    assert_eq!(outcomes(&book, &base).await, [("f".to_owned(), PriorOutcome::HasResults)]);
}

async fn prune_all(book: &Book) -> u64 {
    let mut jobs = 0;
    loop {
        let step = book.store().prune(DAY / 2, 100).await.unwrap();
        jobs += step.jobs;
        if step.done {
            return jobs;
        }
    }
}

async fn the_base_of_the_next_job_is_not_pruned(book: Book) {
    let others = || JobBuilder { rules: RuleSetHash([9; 16]), ..job("a") };
    let old = surveyed(&book, job("a")).await;
    let base = surveyed(&book, job("a")).await;
    let other = surveyed(&book, others()).await;
    // The last one is like the first two.
    let mut last = book.running(incremental("a")).await;
    book.advance(DAY);
    assert_eq!(prune_all(&book).await, 1, "the one that has a newer one like it");
    assert_eq!(book.store().master_job(old).await.unwrap(), None);
    for master in [base, other, last.master] {
        assert!(book.store().master_job(master).await.unwrap().is_some());
    }
    take_over(&book, &mut last).await;
    assert!(last.enumeration().await.base.is_some());
    last.execute(Command::Cancel).await;
    book.store().settle_job(&last.lease).await.unwrap();
    // From now on it is scanned in another way.
    surveyed(&book, others()).await;
    book.advance(DAY);
    prune_all(&book).await;
    assert_eq!(book.store().master_job(base).await.unwrap(), None);
}

async fn a_source_that_failed_keeps_its_older_base(book: Book) {
    let older = surveyed(&book, job("b")).await;
    let running = book.running(job("a").source("b")).await;
    running.list(vec![listed("", vec![])]).await;
    running.list(vec![failed("", Reason::PermissionDenied, "denied")]).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::PartiallyCompleted));
    book.advance(DAY);
    assert_eq!(prune_all(&book).await, 0);
    assert!(book.store().master_job(older).await.unwrap().is_some());
    assert!(base_of(&book, incremental("b")).await.is_some());
}
