//! What is known from a base: the objects of a container, what became of each, and what was found.

use std::sync::Arc;

use domesday_model::{
    FindingDraft, JobStatus, Location, NestedStep, ObjectKey, ObjectReport, ObjectStatus, Reason, RecordKind,
    TaskType, UnitRecord, VersionMarks,
};

use super::book::*;
use super::cases;
use super::incremental::{base_of, incremental, outcomes, records, survey};
use crate::types::*;

cases![
    objects_of_a_container_are_read_in_parts,
    what_became_of_an_object_is_told,
    objects_of_a_failed_task_are_not_usable,
    sources_of_one_job_are_not_confused,
    results_come_back_as_they_went_in,
    staged_results_are_known_too,
    an_object_listed_twice_does_not_multiply,
];

pub(super) fn of_kind(kind: RecordKind, name: &str) -> UnitRecord {
    UnitRecord { kind, ..file(name) }
}

async fn objects_of_a_container_are_read_in_parts(book: Book) {
    let running = book.running(job("a")).await;
    let claim = running.enumeration().await.claim;
    let tagged = UnitRecord { marks: VersionMarks::tagged(b"v1"), ..sized("tagged", 77) };
    let pages = [
        vec![dir("d"), file("p0"), skipped("s", Reason::Excluded), tagged.clone()],
        vec![dir("e"), dir("g")],
        vec![of_kind(RecordKind::Unchanged, "p2"), of_kind(RecordKind::Carried, "q2"), file("r2")],
        vec![],
    ];
    for (number, records) in (0..).zip(pages) {
        let resume_point = (number < 3).then(|| format!("after {number}"));
        let page = UnitListing { page: number, resume_point, ..listed("c", records) };
        book.store().commit_units(&claim, vec![page]).await.unwrap();
    }
    let unit = book.store().stage_unit(&claim, batch("large", 0, files("x", 7))).await.unwrap();
    book.store().commit_staged(&claim, unit).await.unwrap();
    book.store().commit_units(&claim, vec![failed("gone", Reason::Vanished, "gone")]).await.unwrap();
    book.store().complete_enumeration(&claim, vec![listed("other", vec![file("o")])]).await.unwrap();
    running.fan_out().await;
    running.list(["c/d", "c/e", "c/g"].map(|name| listed(name, vec![])).to_vec()).await;
    while let Some(packet) = running.claim_by(running.worker, TaskType::Classification).await {
        running.complete(&packet).await;
    }
    assert_eq!(running.complete_job().await, Some(JobStatus::PartiallyCompleted));
    let base = base_of(&book, incremental("a")).await.unwrap();
    let large: Vec<_> = (0..7).map(|i| format!("x{i}")).collect();
    let small: Vec<_> = ["p0", "tagged", "p2", "q2", "r2"].map(str::to_owned).to_vec();
    for (container, expected) in [("c", small), ("large", large), ("gone", vec![]), ("unknown", vec![])] {
        for max in [1, 2, 3, 5, 7, 1_000] {
            let (mut names, mut after) = (Vec::new(), Some(PriorCursor::default()));
            while let Some(cursor) = after {
                let page = book.store().prior_records(&base, &[key(container)], cursor, max).await.unwrap();
                assert!(page.records.len() <= max as usize);
                names.extend(page.records.into_iter().map(|record| String::from_utf8(record.name).unwrap()));
                after = page.next;
            }
            assert_eq!(names, expected, "{max} at a time");
        }
    }
    let of_c = records(&book, &base, "c").await;
    assert_eq!((of_c[1].size, of_c[1].marks), (77, tagged.marks));
    assert_eq!(of_c[0].marks, file("p0").marks);
    let trusted: Vec<_> = of_c.iter().map(|record| record.is_trusted).collect();
    assert_eq!(trusted, [false, false, true, true, false]);
}

fn nested(object: &str, entry: &str) -> Location {
    let step = NestedStep { name: entry.as_bytes().to_vec(), ordinal: 3 };
    Location { key: key(object), nested: vec![step] }
}

pub(super) fn nested_finding(object: &str, rule: &str) -> FindingDraft {
    FindingDraft { location: Arc::new(nested(object, "entry")), ..finding(object, rule) }
}

pub(super) fn nested_report(object: &str, status: ObjectStatus, reason: Reason) -> ObjectReport {
    ObjectReport { location: nested(object, "entry"), ..report(object, status, Some(reason)) }
}

/// Every way in which an object may end.
fn every_outcome() -> (Vec<UnitRecord>, ResultBatch) {
    let names = [
        "clean",
        "found",
        "inside",
        "skipped",
        "unsupported",
        "overflow",
        "cut",
        "failed",
        "cut inside",
        "found and cut",
    ];
    let records = names.map(file).to_vec();
    let mut overflow = report("overflow", ObjectStatus::Scanned, None);
    overflow.overflow = 12;
    let results = ResultBatch {
        findings: vec![
            finding("found", "r"),
            finding("found", "s"),
            nested_finding("inside", "r"),
            finding("found and cut", "r"),
        ],
        objects: vec![
            report("skipped", ObjectStatus::Skipped, Some(Reason::TooLarge)),
            unsupported("unsupported", "pdf"),
            overflow,
            report("cut", ObjectStatus::Partial, Some(Reason::Changed)),
            report("failed", ObjectStatus::Failed, Some(Reason::PermissionDenied)),
            nested_report("cut inside", ObjectStatus::Partial, Reason::Encrypted),
            report("found and cut", ObjectStatus::Partial, Some(Reason::FindingLimit)),
        ],
        ..ResultBatch::default()
    };
    (records, results)
}

async fn what_became_of_an_object_is_told(book: Book) {
    let running = book.running(job("a")).await;
    let (records, results) = every_outcome();
    assert_eq!(survey(&running, records, results).await, JobStatus::PartiallyCompleted);
    let base = base_of(&book, incremental("a")).await.unwrap();
    use PriorOutcome::{Clean, HasResults, Unusable};
    let expected = [
        ("clean", Clean),
        ("found", HasResults),
        ("inside", HasResults),
        ("skipped", HasResults),
        ("unsupported", HasResults),
        ("overflow", HasResults),
        ("cut", Unusable),
        ("failed", Unusable),
        ("cut inside", Unusable),
        ("found and cut", Unusable),
    ];
    assert_eq!(outcomes(&book, &base).await, expected.map(|(name, outcome)| (name.to_owned(), outcome)));
    let summary = book.store().summary(running.master).await.unwrap();
    let problems = book.store().problems(running.master, 100).await.unwrap();
    assert_eq!((summary.overflow, problems.len()), (12, 6), "a row more is no problem more");
}

async fn objects_of_a_failed_task_are_not_usable(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.classify(&["f", "g"]).await;
    let error = "no route to host".to_owned();
    book.store().give_back(&packet.claim, GiveBack::Failed { error }).await.unwrap();
    assert_eq!(running.complete_job().await, Some(JobStatus::PartiallyCompleted));
    let base = base_of(&book, incremental("a")).await.unwrap();
    let unusable = ["f", "g"].map(|name| (name.to_owned(), PriorOutcome::Unusable));
    assert_eq!(outcomes(&book, &base).await, unusable);
}

async fn sources_of_one_job_are_not_confused(book: Book) {
    let running = book.running(job("a").source("b")).await;
    for _ in 0..2 {
        running.list(vec![listed("", vec![file("f")])]).await;
    }
    running.fan_out().await;
    for _ in 0..2 {
        let packet = running.classification().await;
        let results = match packet.datasource.name.as_str() {
            "a" => findings(vec![finding("f", "r")]),
            _ => ResultBatch::default(),
        };
        book.complete(&packet.claim, 0, results).await.unwrap();
    }
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
    for (source, outcome, count) in [("a", PriorOutcome::HasResults, 1), ("b", PriorOutcome::Clean, 0)] {
        let base = base_of(&book, incremental(source)).await.unwrap();
        assert_eq!(outcomes(&book, &base).await, [("f".to_owned(), outcome)]);
        let results = book.store().prior_results(&base, vec![key("f")]).await.unwrap();
        assert_eq!(results[0].as_ref().unwrap().findings.len(), count);
    }
}

async fn results_come_back_as_they_went_in(book: Book) {
    let running = book.running(job("a")).await;
    let (records, mut results) = every_outcome();
    let marks = [
        VersionMarks::tagged(b"v1"),
        VersionMarks { mtime_ns: -7, inode: u64::MAX, ..VersionMarks::default() },
    ];
    results.versions = [(key("found"), marks[0]), (key("inside"), marks[1])].into();
    survey(&running, records, results.clone()).await;
    let base = base_of(&book, incremental("a")).await.unwrap();
    let keys = ["inside", "skipped", "clean", "found", "overflow", "nowhere", "found"].map(key);
    let again = book.store().prior_results(&base, keys.to_vec()).await.unwrap();
    let of = |object: &ObjectKey| ResultBatch {
        findings: results.findings.iter().filter(|draft| draft.location.key == *object).cloned().collect(),
        objects: results.objects.iter().filter(|report| report.location.key == *object).cloned().collect(),
        tables: Vec::new(),
        versions: results
            .versions
            .iter()
            .filter(|(key, _)| *key == object)
            .map(|(k, v)| (k.clone(), *v))
            .collect(),
    };
    assert_eq!(again, keys.iter().map(|key| Some(of(key))).collect::<Vec<_>>());
    assert_eq!(again[3].as_ref().unwrap().findings.len(), 2);
    assert_eq!(book.store().prior_results(&base, Vec::new()).await.unwrap(), []);
}

async fn staged_results_are_known_too(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.classify(&["f", "g", "h"]).await;
    let first = findings(vec![finding("f", "r"), finding("g", "r")]);
    book.store().stage_results(&packet.claim, 0, first).await.unwrap();
    let skipped = objects(vec![report("h", ObjectStatus::Skipped, Some(Reason::TooLarge))]);
    book.store().stage_results(&packet.claim, 2, skipped).await.unwrap();
    book.complete(&packet.claim, 3, findings(vec![finding("f", "s")])).await.unwrap();
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
    let base = base_of(&book, incremental("a")).await.unwrap();
    let results = book.store().prior_results(&base, ["f", "g", "h"].map(key).to_vec()).await.unwrap();
    let counts: Vec<_> =
        results.iter().flatten().map(|batch| (batch.findings.len(), batch.objects.len())).collect();
    assert_eq!(counts, [(2, 0), (1, 0), (0, 1)]);
}

async fn an_object_listed_twice_does_not_multiply(book: Book) {
    let running = book.running(job("a")).await;
    let twice = vec![listed("u", vec![file("f"), file("f")]), listed("v", vec![file("g")])];
    running.list(twice).await;
    running.fan_out().await;
    let packet = running.classification().await;
    let both = findings(vec![finding("u/f", "r"), finding("u/f", "r")]);
    book.complete(&packet.claim, 0, both).await.unwrap();
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
    let base = base_of(&book, incremental("a")).await.unwrap();
    let results = book.store().prior_results(&base, vec![key("u/f")]).await.unwrap();
    assert_eq!(results[0].as_ref().unwrap().findings.len(), 1);
}
