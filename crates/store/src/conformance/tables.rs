//! Databases level by level, and what is observed of tables: part of a task's results like any other, and the
//! catalogue that is read from it.

use domesday_model::{
    ColumnShape, FindingDraft, JobStatus, Location, NestedStep, ObjectStatus, Position, Reason, RecordKind,
    TableKind, TableObservation, TableShape, TaskType, UnitRecord,
};

use super::book::*;
use super::cases;
use super::incremental::{base_of, incremental, outcomes, survey};
use crate::error::StoreError;
use crate::types::*;

cases![
    levels_become_tasks_and_say_what_they_are,
    observations_are_visible_when_their_task_is_complete,
    missing_observations_are_noticed,
    observations_of_a_lost_claim_are_never_visible,
    pages_are_ordered_and_complete,
    a_part_observed_twice_is_there_once,
    the_catalogue_is_of_the_latest_job_that_ended,
    an_object_with_observations_has_results,
    rows_of_findings_come_back,
    lost_observations_are_swept,
];

/// Something observed of a table, in a part of it.
pub(super) fn observed(table: &str, part: &str) -> TableObservation {
    let column = |name: &str, type_name: &str| ColumnShape {
        name: name.to_owned(),
        type_name: type_name.to_owned(),
        comment: Some("with \0 in it".to_owned()),
    };
    TableObservation {
        table: Location { key: key(table), nested: Vec::new() },
        part: key(part),
        shape: TableShape {
            kind: TableKind::MaterializedView,
            columns: vec![column("id", "bigint"), column("e\"mail", "")],
            primary_key: vec![0],
            row_estimate: Some(u64::MAX),
            comment: None,
        },
        rows: 7,
        is_sample: true,
        sketches: vec![vec![0, 255, 3], part.as_bytes().to_vec()],
    }
}

fn tables(tables: Vec<TableObservation>) -> ResultBatch {
    ResultBatch { tables, ..ResultBatch::default() }
}

fn of_kind(kind: RecordKind, name: &str, metadata: Option<&str>) -> UnitRecord {
    UnitRecord { kind, metadata: metadata.map(Into::into), ..file(name) }
}

async fn levels_become_tasks_and_say_what_they_are(book: Book) {
    use RecordKind::{Database, PartedTable, Rows, Schema, Table};
    let running = book.running(job("a")).await;
    let denied = skipped("secret", Reason::PermissionDenied);
    running.list(vec![listed("", vec![of_kind(Database, "db", None), denied])]).await;
    assert_eq!(running.fan_out().await.tasks[TaskType::DiscoveryEnumerate], 1);
    let packet = running.enumeration().await;
    assert_eq!(book.store().packet_containers(&packet).await.unwrap(), [key("db")]);
    let schemas = listed("db", vec![of_kind(Schema, "public", None)]);
    book.store().complete_enumeration(&packet.claim, vec![schemas]).await.unwrap();
    running.fan_out().await;
    let packet = running.enumeration().await;
    assert_eq!(book.store().packet_containers(&packet).await.unwrap(), [key("db/public")]);
    let found = vec![
        of_kind(Table, "small", Some(r#"{"kind":"view"}"#)),
        of_kind(PartedTable, "large", Some("{}")),
        of_kind(Table, "plain", None),
    ];
    // Once in batches, as large schemas come.
    let unit = book.store().stage_unit(&packet.claim, batch("db/public", 0, found)).await.unwrap();
    book.store().commit_staged(&packet.claim, unit).await.unwrap();
    book.store().complete_enumeration(&packet.claim, Vec::new()).await.unwrap();
    let report = running.fan_out().await;
    assert_eq!((report.tasks[TaskType::DiscoveryEnumerate], report.tasks[TaskType::Classification]), (1, 1));
    let objects = book.store().packet_objects(&running.classification().await).await.unwrap();
    let told: Vec<_> = objects
        .iter()
        .map(|object| (object.key.to_string(), object.kind, object.metadata.as_deref()))
        .collect();
    let view = ("db/public/small".to_owned(), Table, Some(r#"{"kind":"view"}"#));
    assert_eq!(told, [view, ("db/public/plain".to_owned(), Table, None)]);
    running.list(vec![listed("db/public/large", vec![of_kind(Rows, "00", Some("[1]"))])]).await;
    running.fan_out().await;
    let objects = book.store().packet_objects(&running.classification().await).await.unwrap();
    assert_eq!((objects[0].kind, objects[0].metadata.as_deref()), (Rows, Some("[1]")));
    let summary = book.store().summary(running.master).await.unwrap();
    assert_eq!((summary.objects_listed, summary.units), (3, 4));
    assert_eq!(summary.skipped, [(Reason::PermissionDenied, 1)]);
}

async fn observations_are_visible_when_their_task_is_complete(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.classify(&["t", "u", "v.zip"]).await;
    let before = book.view(running.master, &packet.claim).await;
    let first = ResultBatch { tables: vec![observed("t", "t")], ..findings(vec![finding("u", "r")]) };
    book.store().stage_results(&packet.claim, 0, first.clone()).await.unwrap();
    book.store().stage_results(&packet.claim, 0, first).await.unwrap();
    assert_eq!(book.view(running.master, &packet.claim).await, before);
    let step = NestedStep { name: b"v\xff.csv".to_vec(), ordinal: 3 };
    let nested = TableObservation {
        table: Location { key: key("v.zip"), nested: vec![step] },
        shape: TableShape::default(),
        is_sample: false,
        sketches: Vec::new(),
        ..observed("v.zip", "v.zip")
    };
    let last = ResultBatch {
        objects: vec![report("u", ObjectStatus::Partial, Some(Reason::Changed))],
        ..tables(vec![nested.clone(), observed("u", "u")])
    };
    book.complete(&packet.claim, 2, last).await.unwrap();
    let expected = [observed("t", "t"), observed("u", "u"), nested];
    assert_eq!(book.tables(running.master).await, expected);
    assert_eq!(book.store().problems(running.master, 10).await.unwrap().len(), 1, "an observation is none");
    assert_eq!(book.occurrences(running.master, OccurrenceFilter::default()).await.len(), 1);
}

async fn missing_observations_are_noticed(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.classify(&["t"]).await;
    let staged = tables(vec![observed("t", "t/1"), observed("t", "t/2")]);
    book.store().stage_results(&packet.claim, 0, staged).await.unwrap();
    let refused = book.complete(&packet.claim, 3, tables(vec![observed("t", "t/4")])).await;
    assert!(matches!(refused, Err(StoreError::Gap { expected: 2, found: 3, .. })), "{refused:?}");
    assert_eq!(book.tables(running.master).await, []);
    book.complete(&packet.claim, 2, ResultBatch::default()).await.unwrap();
    assert_eq!(book.tables(running.master).await.len(), 2);
}

async fn observations_of_a_lost_claim_are_never_visible(book: Book) {
    let mut running = book.running(job("a")).await;
    let first = running.classify(&["t"]).await;
    book.store().stage_results(&first.claim, 0, tables(vec![observed("lost", "lost")])).await.unwrap();
    running.abandon().await;
    let second = running.classification().await;
    book.store().stage_results(&second.claim, 0, tables(vec![observed("kept", "kept")])).await.unwrap();
    let late = book.complete(&first.claim, 1, tables(vec![observed("late", "late")])).await;
    assert!(matches!(late, Err(StoreError::LostClaim(_))), "{late:?}");
    book.complete(&second.claim, 1, ResultBatch::default()).await.unwrap();
    assert_eq!(book.tables(running.master).await, [observed("kept", "kept")]);
}

async fn pages_are_ordered_and_complete(book: Book) {
    let running = book.running(job("a").source("b")).await;
    let long = "k".repeat(3_000);
    let keys = ["", "a", "a/1", "a/2", "b", long.as_str(), &format!("{long}0")];
    for _ in 0..2 {
        running.list(vec![listed("", vec![file("f")])]).await;
    }
    running.fan_out().await;
    for _ in 0..2 {
        let packet = running.classification().await;
        let mut all: Vec<_> = keys.iter().rev().map(|key| observed(key, key)).collect();
        all.extend([observed("a", "a/9"), observed("a", "a/10")]);
        book.complete(&packet.claim, 0, tables(all)).await.unwrap();
    }
    let sources = book.store().catalog_sources(Some(running.master)).await.unwrap();
    assert_eq!(sources.iter().map(|source| source.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let expected: Vec<_> =
        ["", "a", "a/10", "a/9", "a/1", "a/2", "b", keys[5], keys[6]].map(key).into_iter().collect();
    for source in sources {
        for max in [1, 2, 4, 9, 10, 1_000] {
            let (mut parts, mut after) = (Vec::new(), None);
            loop {
                let page = book.store().table_observations(&source, after, max).await.unwrap();
                assert!(page.tables.len() <= max as usize);
                parts.extend(page.tables.into_iter().map(|table| table.part));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(parts, expected, "{max} at a time");
        }
    }
}

async fn a_part_observed_twice_is_there_once(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.classify(&["t", "t", "u"]).await;
    let twice = tables(vec![observed("t", "t"), observed("u", "u"), observed("t", "t")]);
    book.complete(&packet.claim, 0, twice).await.unwrap();
    assert_eq!(book.tables(running.master).await, [observed("t", "t"), observed("u", "u")]);
}

async fn the_catalogue_is_of_the_latest_job_that_ended(book: Book) {
    let latest = || async {
        let sources = book.store().catalog_sources(None).await.unwrap();
        sources.into_iter().map(|source| (source.name, source.master_job)).collect::<Vec<_>>()
    };
    assert_eq!(latest().await, []);
    let ended = async |builder: JobBuilder| {
        let running = book.running(builder).await;
        for _ in 0..running.store().datasources(running.master).await.unwrap().len() {
            running.list(vec![listed("", vec![])]).await;
        }
        assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
        running.master
    };
    let first = ended(job("b").source("a")).await;
    assert_eq!(latest().await, [("a".to_owned(), first), ("b".to_owned(), first)]);
    let second = ended(job("a")).await;
    let open = book.running(job("a")).await;
    assert_eq!(latest().await, [("a".to_owned(), second), ("b".to_owned(), first)]);
    let of_open = book.store().catalog_sources(Some(open.master)).await.unwrap();
    assert_eq!(of_open.len(), 1, "one that is asked for is shown as it is");
    assert_eq!((of_open[0].name.as_str(), of_open[0].kind.as_str()), ("a", "filesystem"));
}

async fn an_object_with_observations_has_results(book: Book) {
    let running = book.running(job("a")).await;
    let records = ["clean", "cut", "found", "table"].map(file).to_vec();
    let results = ResultBatch {
        findings: vec![finding("found", "r")],
        objects: vec![report("cut", ObjectStatus::Partial, Some(Reason::Changed))],
        ..tables(["cut", "found", "table", "table"].map(|name| observed(name, name)).to_vec())
    };
    survey(&running, records, results).await;
    let base = base_of(&book, incremental("a")).await.unwrap();
    use PriorOutcome::{Clean, HasResults, Unusable};
    let expected = [("clean", Clean), ("cut", Unusable), ("found", HasResults), ("table", HasResults)];
    assert_eq!(outcomes(&book, &base).await, expected.map(|(name, outcome)| (name.to_owned(), outcome)));
    let keys = ["table", "clean", "found"].map(key).to_vec();
    let again = book.store().prior_results(&base, keys).await.unwrap();
    let found =
        ResultBatch { tables: vec![observed("found", "found")], ..findings(vec![finding("found", "r")]) };
    let expected = [tables(vec![observed("table", "table")]), ResultBatch::default(), found];
    assert_eq!(again, expected.map(Some));
}

async fn rows_of_findings_come_back(book: Book) {
    let running = book.running(job("a")).await;
    let in_row = |line, row: &str| FindingDraft {
        position: Position { line, column: 1 },
        row: Some(row.into()),
        ..finding("t", "r")
    };
    let drafts = vec![in_row(12, "42"), in_row(2, "a,\0,7"), finding("t", "r")];
    survey(&running, vec![file("t")], findings(drafts.clone())).await;
    let occurrences = book.occurrences(running.master, OccurrenceFilter::default()).await;
    let rows: Vec<_> = occurrences.iter().map(|occurrence| occurrence.row.is_some()).collect();
    assert_eq!(rows, [false, true, true]);
    assert_eq!(occurrences[2].row.as_deref(), Some("42"), "in the order of rows");
    let base = base_of(&book, incremental("a")).await.unwrap();
    let again = book.store().prior_results(&base, vec![key("t")]).await.unwrap();
    let again = &again[0].as_ref().unwrap().findings;
    assert_eq!((again.len(), &again[0]), (3, &drafts[0]), "one value in three rows is three occurrences");
}

async fn lost_observations_are_swept(book: Book) {
    let mut running = book.running(job("a")).await;
    let lost = running.classify(&["t"]).await;
    let results = ResultBatch { tables: vec![observed("t", "t")], ..findings(vec![finding("t", "r")]) };
    book.store().stage_results(&lost.claim, 0, results).await.unwrap();
    assert_eq!(book.store().sweep(10).await.unwrap(), 0);
    running.abandon().await;
    assert!(running.claim_by(running.worker, TaskType::Classification).await.is_some());
    assert_eq!(book.store().sweep(10).await.unwrap(), 2);
}
