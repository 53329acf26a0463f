//! Databases that a scan meets, where they lie and in memory.

use domesday_content::ReadAt;

use super::super::open_tables;
use super::*;

fn tables_of(path: Option<&Path>, bytes: Vec<u8>) -> Result<BTreeMap<String, Rows>, ObjectError> {
    let bytes: Arc<dyn ReadAt> = Arc::new(bytes);
    let mut tables = BTreeMap::new();
    for (ordinal, table) in open_tables(path, &bytes)?.enumerate() {
        assert_eq!(table.step.ordinal as usize, ordinal);
        let mut open = table.table?;
        assert!(!open.is_sample);
        tables.insert(String::from_utf8(table.step.name).unwrap(), read(&mut open)?);
    }
    Ok(tables)
}

fn filled() -> File {
    File::with(|connection| {
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL;
                 CREATE TABLE t (a TEXT);
                 CREATE TABLE w (k TEXT PRIMARY KEY, v TEXT) WITHOUT ROWID;
                 CREATE TABLE d (a INTEGER, b, PRIMARY KEY (a DESC, b)) WITHOUT ROWID;
                 CREATE TABLE empty (a);
                 CREATE VIEW v AS SELECT a FROM t;
                 CREATE VIRTUAL TABLE f USING fts5(body);
                 WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 10000)
                 INSERT INTO t SELECT 'value ' || x FROM c;
                 INSERT INTO w SELECT a, a FROM t; INSERT INTO d SELECT rowid, 1 FROM t;",
            )
            .unwrap();
    })
}

#[test]
fn all_tables_are_read_whole_wherever_the_file_is() {
    let file = filled();
    let bytes = std::fs::read(&file.path).unwrap();
    let local = tables_of(Some(&file.path), Vec::new()).unwrap();
    let names: Vec<&str> = local.keys().map(String::as_str).collect();
    assert_eq!(names, ["d", "empty", "f_config", "f_content", "f_data", "f_docsize", "f_idx", "t", "w"]);
    let expected: Vec<String> = (1..=10_000).map(|number| format!("value {number}")).collect();
    assert_eq!(texts(&local["t"], 0), expected);
    assert_eq!(texts(&local["t"], 1)[9_999], "10000");
    assert_eq!((local["w"].len(), local["d"].len(), local["empty"].len()), (10_000, 10_000, 0));
    assert_eq!(file.beside(), [""; 0]);
    assert_eq!(tables_of(None, bytes.clone()).unwrap(), local);
    // What is not there any more is still its bytes.
    assert_eq!(tables_of(Some(&file.folder.path().join("gone")), bytes).unwrap(), local);
}

#[test]
fn what_is_no_database_is_told() {
    let magic = [b"SQLite format 3\0".to_vec(), vec![0; 4_000]].concat();
    for bytes in [Vec::new(), b"SQLite format 3\0".to_vec(), magic] {
        assert!(tables_of(None, bytes).is_err());
    }
}
