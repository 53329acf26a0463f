//! The suite of all connectors, on tables and on ranges of rows.

use std::sync::Mutex;

use async_trait::async_trait;
use domesday_connector::conformance::{self, Refused};
use domesday_connector::credentials::{CredentialManager, RunSecrets, Secret};
use domesday_testkit::proxy::Proxy;

use super::*;
use crate::databases::conformance::{AsFiles, Book};

/// Rows of the table that is read in ranges, and of one range.
const ROWS: usize = 250;
const PART_ROWS: usize = 100;
/// Commits of a thousand that break on a flaky way.
const FLAKY_PER_MILLE: u64 = 300;

struct Tables {
    fixture: Fixture,
    /// By schema and table.
    rows: Mutex<BTreeMap<(&'static str, &'static str), Vec<String>>>,
    book: Book,
    flaky: Proxy,
}

async fn new() -> Arc<dyn conformance::Fixture> {
    let fixture = Fixture::new(&format!(
        "CREATE SCHEMA one; CREATE SCHEMA two; CREATE SCHEMA parts;
         CREATE TABLE parts.ranges (id int PRIMARY KEY, v text);
         INSERT INTO parts.ranges SELECT n, 'row ' || n FROM generate_series(1, {ROWS}) AS n; ANALYZE parts.ranges"
    ));
    let flaky = Proxy::start(fixture.server.port());
    flaky.reset_commits(FLAKY_PER_MILLE, 7);
    let tables = Tables { fixture, rows: Mutex::default(), book: Book::default(), flaky };
    for (schema, table) in
        [("one", "a"), ("one", "b"), ("two", "a"), ("two", "with/slash"), ("two", "with space")]
    {
        tables.fill(schema, table, &["first", "second"]);
    }
    // The suite opens objects by their keys alone; of a range the book also knows its bounds.
    let connector = tables.over(json!({}), &Surroundings::default());
    assert_eq!(
        list(&connector, &tables.fixture.key(&["parts", "ranges"])).await.len(),
        ROWS.div_ceil(PART_ROWS)
    );
    Arc::new(tables)
}

impl Tables {
    fn fill(&self, schema: &'static str, table: &'static str, values: &[&str]) -> ObjectKey {
        let given: Vec<String> =
            values.iter().map(|value| format!("('{schema} {table}: {value}')")).collect();
        self.fixture.sql(&format!(
            "DROP TABLE IF EXISTS {schema}.\"{table}\"; CREATE TABLE {schema}.\"{table}\" (v text);
             INSERT INTO {schema}.\"{table}\" VALUES {}",
            given.join(", ")
        ));
        let rows = values.iter().map(|value| format!("{schema} {table}: {value}\n")).collect();
        self.rows.lock().unwrap().insert((schema, table), rows);
        self.fixture.key(&[schema, table])
    }

    fn over(&self, fields: Value, surroundings: &Surroundings) -> Arc<dyn Connector> {
        let mut configuration = json!({
            "host": "localhost", "port": self.fixture.server.port(), "user": "postgres", "tls": "disable",
            "databases": [self.fixture.database], "mode": "full", "part_rows": PART_ROWS,
        });
        merge(&mut configuration, fields);
        let connector = FACTORY.create(&configuration, surroundings).unwrap();
        Arc::new(AsFiles { connector, book: Arc::clone(&self.book) })
    }
}

#[async_trait]
impl conformance::Fixture for Tables {
    async fn connector(&self) -> Arc<dyn Connector> {
        self.over(json!({}), &Surroundings::default())
    }

    fn objects(&self) -> BTreeMap<ObjectKey, Vec<u8>> {
        let rows = self.rows.lock().unwrap();
        let tables = rows
            .iter()
            .map(|((schema, table), rows)| (self.fixture.key(&[schema, table]), rows.concat().into_bytes()));
        let parts = (0..ROWS).step_by(PART_ROWS).enumerate().map(|(part, from)| {
            let rows = from + 1..=ROWS.min(from + PART_ROWS);
            let lines: String = rows.map(|n| format!("{n}\trow {n}\n")).collect();
            (self.fixture.key(&["parts", "ranges", &format!("{part:016x}")]), lines.into_bytes())
        });
        tables.chain(parts).collect()
    }

    async fn change(&self) -> Option<ObjectKey> {
        Some(self.fill("one", "b", &["changed"]))
    }

    async fn remove(&self) -> Option<ObjectKey> {
        self.fixture.sql("DROP TABLE two.a");
        self.rows.lock().unwrap().remove(&("two", "a"));
        Some(self.fixture.key(&["two", "a"]))
    }

    async fn add(&self) -> Option<ObjectKey> {
        Some(self.fill("two", "new", &["added"]))
    }

    async fn with_bad_credential(&self) -> Option<Refused> {
        let (mut secrets, secret) = (RunSecrets::default(), "wrong-8c1d");
        let credential = Some(secrets.hold("db", Secret::new(format!("nobody:{secret}").into_bytes())));
        let credentials = Arc::new(CredentialManager::default().with(secrets));
        let surroundings = Surroundings { credentials, credential, ..Surroundings::default() };
        let fields = json!({ "user": null, "databases": [] });
        Some(Refused { connector: self.over(fields, &surroundings), secret: secret.to_owned() })
    }

    async fn with_flaky_reads(&self) -> Option<Arc<dyn Connector>> {
        Some(self.over(json!({ "port": self.flaky.port() }), &Surroundings::default()))
    }

    async fn large(&self, _: u64) -> Option<(Arc<dyn Connector>, u64)> {
        None
    }

    fn missing_object(&self) -> Option<ObjectKey> {
        Some(self.fixture.key(&["one", "no-such-table"]))
    }

    fn lists_sizes(&self) -> bool {
        false
    }

    fn lists_marks(&self) -> bool {
        false
    }
}

domesday_connector::conformance_tests!(new);
