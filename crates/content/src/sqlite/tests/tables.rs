//! Databases where they lie, and in memory.

use std::io;

use super::*;

/// The tables of these bytes.
fn tables_of(bytes: impl ReadAt + 'static) -> Result<BTreeMap<String, Rows>, ObjectError> {
    let bytes: Arc<dyn ReadAt> = Arc::new(bytes);
    let mut tables = BTreeMap::new();
    for (ordinal, table) in open_tables(&bytes)?.enumerate() {
        assert_eq!(table.step.ordinal as usize, ordinal);
        let mut open = table.table?;
        assert!(!open.is_sample);
        tables.insert(String::from_utf8(table.step.name).unwrap(), read(&mut open)?);
    }
    Ok(tables)
}

/// A file that cannot be read but by its path.
struct ByPath(PathBuf);

impl ReadAt for ByPath {
    fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
        Err(io::Error::other("not to be read into memory"))
    }

    fn size(&self) -> io::Result<u64> {
        Err(io::Error::other("not to be read into memory"))
    }

    fn local_path(&self) -> Option<PathBuf> {
        Some(self.0.clone())
    }
}

fn filled() -> File {
    File::new(
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
}

#[test]
fn all_tables_are_read_whole_wherever_the_file_is() {
    let file = filled();
    let bytes = std::fs::read(&file.path).unwrap();
    let local = tables_of(ByPath(file.path.clone())).unwrap();
    let names: Vec<&str> = local.keys().map(String::as_str).collect();
    assert_eq!(names, ["d", "empty", "f_config", "f_content", "f_data", "f_docsize", "f_idx", "t", "w"]);
    let expected: Vec<String> = (1..=10_000).map(|number| format!("value {number}")).collect();
    assert_eq!(texts(&local["t"], 0), expected);
    assert_eq!(texts(&local["t"], 1)[9_999], "10000");
    assert_eq!((local["w"].len(), local["d"].len(), local["empty"].len()), (10_000, 10_000, 0));
    assert_eq!(file.beside(), [""; 0]);
    assert_eq!(tables_of(bytes).unwrap(), local);
}

#[test]
fn a_file_says_where_it_is_as_long_as_it_is_there() {
    let file = filled();
    let open = || std::fs::File::open(&file.path).unwrap();
    let whole = tables_of(open()).unwrap();
    let link = file.folder.path().join("link");
    std::os::unix::fs::symlink(&file.path, &link).unwrap();
    let real = file.path.canonicalize().unwrap();
    assert_eq!(std::fs::File::open(&link).unwrap().local_path(), Some(real));
    let (moved, bytes) = (open(), open());
    std::fs::rename(&file.path, file.folder.path().join("moved")).unwrap();
    assert_eq!(moved.local_path(), Some(file.folder.path().canonicalize().unwrap().join("moved")));
    std::fs::remove_file(file.folder.path().join("moved")).unwrap();
    // Another file by the name that the kernel gives one that is gone.
    std::fs::write(file.folder.path().join("moved (deleted)"), "another").unwrap();
    assert_eq!(moved.local_path(), None);
    // What is not there any more is still its bytes.
    assert_eq!(tables_of(bytes).unwrap(), whole);
}

#[test]
fn what_is_no_database_is_told() {
    let magic = [b"SQLite format 3\0".to_vec(), vec![0; 4_000]].concat();
    for bytes in [Vec::new(), b"SQLite format 3\0".to_vec(), magic] {
        assert!(tables_of(bytes).is_err());
    }
}
