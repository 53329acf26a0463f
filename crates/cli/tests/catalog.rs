//! `domesday catalog` on both kinds of book: what is shown, what filters leave, and what it says when used wrongly.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::book::Book;
use domesday_columns::TableScan;
use domesday_control::RuleCache;
use domesday_engine::{RuleSet, Scanner, Scratch};
use domesday_model::{
    ColumnShape, DatasourceSpec, FingerprintKey, JobConfiguration, JobStatus, Location, MasterJobId,
    NestedStep, ObjectKey, ProcessId, RecordKind, Retries, RowBatch, ScanOptions, Score, TableKind,
    TableObservation, TableShape, TaskType, UnitRecord, VersionMarks,
};
use domesday_store::postgres::{self, PostgresStore};
use domesday_store::sqlite::{self, SqliteStore};
use domesday_store::{
    Completion, FanOutPolicy, NewMasterJob, Process, Profile, ResultBatch, Role, Store, TaskTotals,
    UnitListing,
};
use serde_json::Value;

const LEASE: Duration = Duration::from_secs(600);
const GROUP: &str = "eu";
/// The info type that the tables have.
const LABEL: &str = "email-address";

/// One part of a table of people, with its own rows.
fn observed(
    rules: &Arc<RuleSet>,
    table: Location,
    part: &str,
    first: usize,
    kind: TableKind,
) -> TableObservation {
    let column = |name: &str, type_name: &str| ColumnShape {
        name: name.into(),
        type_name: type_name.into(),
        comment: None,
    };
    let shape = TableShape {
        kind,
        columns: vec![column("id", "bigint"), column("email", "text")],
        primary_key: vec![0],
        row_estimate: Some(400),
        comment: None,
    };
    let scanner = Scanner::with_floor(Arc::clone(rules), Score(0));
    let mut scan = TableScan::new(&shape, &FingerprintKey::new([7; 32]), 0);
    let mut batch = RowBatch::new(2);
    for row in first..first + 100 {
        batch.columns[0].push(row.to_string().as_bytes());
        batch.columns[1].push(format!("ana.petrov{row}@acme-mail{}.com", row % 7).as_bytes());
    }
    scan.scan(&scanner, &batch, &mut Scratch::default(), &mut Vec::new());
    let sketches = scan.finish();
    TableObservation {
        table,
        part: ObjectKey::new(part.as_bytes()),
        shape,
        rows: 100,
        is_sample: true,
        sketches,
    }
}

fn at(key: &str) -> Location {
    Location { key: ObjectKey::new(key.as_bytes()), nested: Vec::new() }
}

async fn open(book: &Book) -> Arc<dyn Store> {
    match &book.url {
        Some(url) => Arc::new(PostgresStore::connect(url, postgres::Options::default()).await.unwrap()),
        None => Arc::new(SqliteStore::open(&book.place.state(), sqlite::Options::default()).unwrap()),
    }
}

/// A job that saw these tables in a source, from its submission to its end.
async fn survey(book: &Book, master: u8, source: &str, tables: fn(&Arc<RuleSet>) -> Vec<TableObservation>) {
    let store = open(book).await;
    let key = store.fingerprint_key().await.unwrap().expect("the book was made with one");
    let rules = Arc::new(RuleSet::builtin().unwrap());
    store.put_rule_set(rules.hash(), &RuleCache::text(&rules)).await.unwrap();
    let configuration = JobConfiguration {
        datasources: vec![DatasourceSpec::new(source, "postgres", GROUP, serde_json::json!({}))],
        rule_set: rules.hash().to_string(),
        options: ScanOptions::default(),
        fingerprint_key: key.clone(),
        engine_version: domesday_engine::VERSION,
        incremental: false,
        configuration: None,
    };
    let job = NewMasterJob {
        id: MasterJobId([master; 16]),
        request_key: [master; 16],
        description: source.to_owned(),
        template: None,
        priority: 0,
        configuration,
    };
    store.submit(job).await.unwrap();
    let profile = Profile { fingerprint_key: Some(key), slots: 1, ..Profile::default() };
    let [owner, worker] = [(1, Role::Orchestrator), (2, Role::Worker)].map(|(number, role)| Process {
        profile: profile.clone(),
        ..Process::new(ProcessId([master * 2 + number; 16]), role, GROUP)
    });
    for process in [&owner, &worker] {
        store.register(process, LEASE).await.unwrap();
    }
    let lease = store.claim_job(owner.id, GROUP, LEASE).await.unwrap().unwrap().lease;
    store.start_sessions(&lease).await.unwrap();
    let claim = async |task_type| {
        store.claim_tasks(worker.id, GROUP, task_type, 1).await.unwrap().pop().unwrap().claim
    };
    let record = UnitRecord {
        kind: RecordKind::Table,
        name: b"t".to_vec(),
        size: 1,
        marks: VersionMarks::default(),
        reason: None,
        metadata: None,
    };
    let root = claim(TaskType::DiscoveryEnumerate).await;
    let listed = UnitListing::whole(ObjectKey::default(), vec![record]);
    store.complete_enumeration(&root, vec![listed]).await.unwrap();
    store.fan_out(&lease, FanOutPolicy { ready_low: 1 }).await.unwrap();
    let done = Completion {
        claim: claim(TaskType::Classification).await,
        first_sequence: 0,
        batch: ResultBatch { tables: tables(&rules), ..ResultBatch::default() },
        totals: TaskTotals::default(),
        untraced: Vec::new(),
        replaces: Vec::new(),
    };
    assert!(store.complete_classifications(vec![done]).await.unwrap()[0].is_ok());
    assert_eq!(store.complete_job(&lease, Retries::NONE).await.unwrap(), Some(JobStatus::Completed));
}

fn shop(rules: &Arc<RuleSet>) -> Vec<TableObservation> {
    let nested =
        Location { nested: vec![NestedStep { name: b"users".to_vec(), ordinal: 0 }], ..at("backup/app.db") };
    vec![
        observed(rules, at("shop/public/customers"), "shop/public/customers/00", 0, TableKind::Table),
        observed(rules, at("shop/public/customers"), "shop/public/customers/01", 100, TableKind::Table),
        observed(rules, at("shop/audit/a%2Fb"), "shop/audit/a%2Fb", 0, TableKind::View),
        observed(rules, nested, "backup/app.db", 0, TableKind::Table),
        observed(rules, at("people.csv"), "people.csv", 0, TableKind::File),
    ]
}

fn older(rules: &Arc<RuleSet>) -> Vec<TableObservation> {
    vec![observed(rules, at("shop/public/gone"), "shop/public/gone", 0, TableKind::Table)]
}

fn hr(rules: &Arc<RuleSet>) -> Vec<TableObservation> {
    vec![observed(rules, at("hr/public/staff"), "hr/public/staff", 0, TableKind::Table)]
}

/// Data source, database, schema, table and column of what is shown.
fn places(columns: &Value) -> Vec<String> {
    let name = |column: &Value, field: &str| column[field].as_str().unwrap_or("-").to_owned();
    let place = |column: &Value| {
        ["datasource", "database", "schema", "table", "column"].map(|field| name(column, field)).join(" ")
    };
    columns.as_array().unwrap().iter().map(place).collect()
}

#[test]
fn the_catalogue_of_the_latest_scans() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    Book::each(|book| {
        runtime.block_on(async {
            survey(book, 1, "shop-db", older).await;
            survey(book, 3, "shop-db", shop).await;
            survey(book, 5, "hr-db", hr).await;
        });
        let labelled = [
            "hr-db hr public staff email",
            "shop-db backup/app.db - users email",
            "shop-db - - people.csv email",
            "shop-db shop audit a/b email",
            "shop-db shop public customers email",
        ];
        let columns = book.json(&["catalog"]);
        assert_eq!(places(&columns), labelled);
        let email = &columns[4];
        assert_eq!((&email["rows"], &email["values"]), (&200.into(), &200.into()), "parts are one table");
        let label = &email["labels"][0];
        assert_eq!((&label["label"], &label["kind"]), (&LABEL.into(), &"column".into()));
        assert!(label["prevalence"].as_f64().unwrap() > 0.99, "{label}");
        assert!(label["interval"][0].as_f64().unwrap() > 0.9, "{label}");
        let example = &label["example"];
        assert!(example["row"].as_str().unwrap().parse::<u64>().unwrap() < 200, "{example}");
        assert!(!example["preview"].as_str().unwrap().contains("petrov"), "{example}");
        formats(book);
        // What follows knows nothing of the book's kind.
        if book.url.is_none() {
            filters(book);
            mistakes(book);
        }
    });
}

fn filters(book: &Book) {
    let shown = |args: &[&str]| places(&book.json(&[&["catalog"], args].concat()));
    assert_eq!(shown(&["--datasource", "hr*"]), ["hr-db hr public staff email"]);
    let audit = "shop-db shop audit a/b email";
    assert_eq!(shown(&["--database", "shop", "--schema", "au*"]), [audit]);
    assert_eq!(shown(&["--table", "a/b", "--column", "e*"]), [audit]);
    assert_eq!(shown(&["--table", "*.csv"]), ["shop-db - - people.csv email"]);
    assert_eq!(shown(&["--label", "email-*"]).len(), 5);
    assert_eq!(shown(&["--label", "payment-card"]), [""; 0]);
    assert_eq!(shown(&["--category", "personal"]).len(), 5);
    assert_eq!(shown(&["--category", "secret"]), [""; 0]);
    assert_eq!(shown(&["--sensitivity", "critical"]), [""; 0]);
    assert_eq!(shown(&["--regulation", "GDPR", "--level", "high"]).len(), 5);
    let all = shown(&["--all", "--schema", "public"]);
    assert_eq!(all.len(), 4);
    assert_eq!(all[0], "hr-db hr public staff id");
    assert_eq!(shown(&["--job", "0101"]), ["shop-db shop public gone email"]);
}

fn formats(book: &Book) {
    let csv = book.run(&["catalog", "--format", "csv", "--datasource", "hr-db"]).exits(0);
    let csv = String::from_utf8(csv.out).unwrap();
    let rows: Vec<_> = csv.lines().collect();
    assert_eq!(rows.len(), 2);
    assert!(
        rows[1].starts_with(&format!("hr-db,hr,public,staff,email,text,{LABEL},column,personal,")),
        "{csv}"
    );
    let table = book.run(&["catalog", "--format", "table", "--table", "customers"]).exits(0);
    let table = String::from_utf8(table.out).unwrap();
    let heading = "shop-db  shop / public / customers  200 of about 400 rows sampled";
    assert_eq!(table.lines().next(), Some(heading));
    book.run(&["catalog", "--output", "out.json"]).exits(0);
    let written = std::fs::read_to_string(book.place.path("out.json")).unwrap();
    assert_eq!(places(&serde_json::from_str(&written).unwrap()).len(), 5);
}

fn mistakes(book: &Book) {
    let told = |args: &[&str]| book.run(&[&["catalog"], args].concat()).exits(2).err;
    assert!(told(&["--datasource", "shpo"]).contains("no data source that was scanned matches `shpo`"));
    assert!(told(&["--label", "email-adress"]).contains("no rule of these scans matches `email-adress`"));
    assert!(told(&["--regulation", "GPDR"]).contains("no rule of these scans concerns GPDR"));
    assert!(told(&["--job", "ffff"]).contains("there is no job ffff"));
    assert!(told(&["--all", "--label", "x"]).contains("cannot be used with"));
    let nothing = book.run(&["catalog", "--format", "table", "--table", "none"]).exits(0);
    assert!(nothing.out.is_empty() && nothing.err.contains("no column to show"), "{}", nothing.err);
}
