//! What is found in a file, and what of it is left out.

use domesday_model::{Reason, TableKind};

use super::*;

#[test]
fn tables_have_columns_types_keys_and_sizes() {
    let file = File::new(
        "CREATE TABLE customers (id INTEGER PRIMARY KEY, email VARCHAR(80), note,
             upper_email TEXT GENERATED ALWAYS AS (upper(email)) VIRTUAL);
         CREATE TABLE pairs (a TEXT, b INTEGER, PRIMARY KEY (b, a)) WITHOUT ROWID;
         CREATE TABLE backwards (a INTEGER PRIMARY KEY DESC, rowid TEXT);
         CREATE TABLE mixed (a TEXT, b TEXT, PRIMARY KEY (a DESC, b)) WITHOUT ROWID;
         CREATE TABLE none (rowid, oid, _rowid_);
         INSERT INTO customers (id, email) VALUES (10, 'a'), (40, 'b');
         INSERT INTO pairs VALUES ('x', 1), ('y', 2);",
    );
    let source = file.source();
    let columns = |name: &str| -> Vec<(String, String)> {
        source.shape(name).columns.into_iter().map(|column| (column.name, column.type_name)).collect()
    };
    let of = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(name, kind)| (name.to_string(), kind.to_string())).collect()
    };
    let customers = [("id", "INTEGER"), ("email", "VARCHAR(80)"), ("note", ""), ("upper_email", "TEXT")];
    assert_eq!(columns("customers"), of(&customers));
    assert_eq!(columns("backwards"), of(&[("a", "INTEGER"), ("rowid", "TEXT"), ("_rowid_", "INTEGER")]));
    let keys = |name: &str| source.shape(name).primary_key;
    assert_eq!(keys("customers"), [0]);
    assert_eq!(keys("pairs"), [1, 0]);
    assert_eq!(keys("backwards"), [2]);
    assert_eq!(keys("mixed"), [0u32; 0]);
    assert_eq!(keys("none"), [0u32; 0]);
    assert_eq!(source.shape("customers").row_estimate, Some(31));
    assert_eq!(source.shape("pairs").row_estimate, None);
    assert_eq!(source.shape("pairs").kind, TableKind::Table);
    let size = std::fs::metadata(&file.path).unwrap().len();
    assert!((1..=size).contains(&source.tables()["customers"].size));
    assert_eq!(file.beside(), [""; 0]);
}

#[test]
fn the_files_own_statistics_are_taken_for_the_rows() {
    let file = File::new(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a); CREATE INDEX i ON t (a);
         INSERT INTO t VALUES (1, 1), (9000000000000000000, 2), (3, 3); ANALYZE;",
    );
    assert_eq!(file.source().shape("t").row_estimate, Some(3));
    let file = File::new("CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1), (9e18);");
    let most = std::fs::metadata(&file.path).unwrap().len() / 4;
    assert_eq!(file.source().shape("t").row_estimate, Some(most));
}

#[test]
fn views_are_read_where_their_rows_come_one_by_one() {
    let file = File::new(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b TEXT);
         INSERT INTO t VALUES (1, 'x', 'y'), (2, 'z', 'w');
         CREATE VIEW plain AS SELECT a || b AS ab FROM t WHERE id > 0;
         CREATE VIEW both AS SELECT a FROM t UNION ALL SELECT b FROM t;
         CREATE VIEW sorted AS SELECT a FROM t ORDER BY b;
         CREATE VIEW grouped AS SELECT a, count(*) FROM t GROUP BY a;
         CREATE VIEW endless AS WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c;
         CREATE VIEW parts AS SELECT value FROM t, json_each('[1,2]');
         CREATE VIEW broken AS SELECT a FROM nowhere;",
    );
    let source = file.source();
    let reasons: Vec<_> = source.tables().into_iter().map(|(name, record)| (name, record.reason)).collect();
    let of = |name: &str| reasons.iter().find(|(known, _)| known == name).unwrap().1;
    for name in ["plain", "both", "t"] {
        assert_eq!(of(name), None, "{name}");
    }
    for name in ["sorted", "grouped", "endless", "parts"] {
        assert_eq!(of(name), Some(Reason::ComputedView), "{name}");
    }
    assert_eq!(of("broken"), Some(Reason::ReadError));
    assert_eq!(source.shape("plain").kind, TableKind::View);
    assert_eq!(texts(&source.rows("plain").unwrap(), 0), ["xy", "zw"]);
    assert_eq!(texts(&source.rows("both").unwrap(), 0), ["x", "z", "y", "w"]);
}

#[test]
fn virtual_tables_are_named_and_what_they_are_made_of_is_read() {
    let file = File::new(
        "CREATE VIRTUAL TABLE notes USING fts5(body); INSERT INTO notes VALUES ('call 555 now');
         CREATE TABLE plain (a INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO plain VALUES (7);",
    );
    let source = file.source();
    let tables = source.tables();
    assert_eq!(tables["notes"].reason, Some(Reason::VirtualTable));
    assert_eq!(tables["sqlite_sequence"].reason, Some(Reason::ServersOwn));
    let content = source.rows("notes_content").unwrap();
    assert_eq!(texts(&content, 1), ["call 555 now"]);
    let all = file.source_with(json!({ "system": true }));
    assert_eq!(texts(&all.rows("sqlite_sequence").unwrap(), 1), ["7"]);
}

#[test]
fn a_log_that_is_not_read_is_named_among_the_tables() {
    let file = File::new("CREATE TABLE a (x); CREATE TABLE z (x)");
    let log = format!("{}-wal", file.path.display());
    std::fs::write(&log, [1; 64]).unwrap();
    let tables = file.source().tables();
    let name = Path::new(&log).file_name().unwrap().to_str().unwrap();
    // As a level of a key.
    let record = &tables[&name.replace('%', "%25")];
    assert_eq!((record.kind, record.reason), (RecordKind::Skipped, Some(Reason::UnreadLog)));
    assert_eq!(tables.len(), 3);
    std::fs::write(&log, []).unwrap();
    assert_eq!(file.source().tables().len(), 2);
}

#[test]
fn patterns_choose_tables() {
    let file = File::new("CREATE TABLE aa (x); CREATE TABLE ab (x); CREATE TABLE b (x);");
    let source = file.source_with(json!({ "include": ["a*"], "exclude": ["ab"] }));
    let kept: Vec<String> = source
        .tables()
        .into_iter()
        .filter(|(_, record)| record.reason.is_none())
        .map(|(name, _)| name)
        .collect();
    assert_eq!(kept, ["aa"]);
}

#[test]
fn a_file_that_is_not_there_or_no_database_is_told() {
    let file = File::new("CREATE TABLE a (x)");
    std::fs::remove_file(&file.path).unwrap();
    assert_eq!(file.source().list("").unwrap_err().reason(), Reason::Vanished);
    std::fs::write(&file.path, "not a database, but long enough to look like one ".repeat(100)).unwrap();
    let error = file.source().list("").unwrap_err();
    assert_eq!(error.reason(), Reason::DamagedArchive);
    assert!(error.to_string().contains("not an SQLite database"), "{error}");
    std::fs::remove_file(&file.path).unwrap();
    std::fs::create_dir(&file.path).unwrap();
    assert_eq!(file.source().list("").unwrap_err().reason(), Reason::DamagedArchive);
    let credential = SqliteFactory.create(
        &json!({ "path": "/x" }),
        &Surroundings { credential: Some("env:X".parse().unwrap()), ..Surroundings::default() },
    );
    assert!(credential.is_err());
    assert!(SqliteConfig::parse(&json!({ "path": "/x" })).is_ok());
}
