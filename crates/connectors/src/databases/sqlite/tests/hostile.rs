//! Files that are damaged, or made to do damage, as data sources: told, in bounded time and memory.

use rusqlite::config::DbConfig;

use super::*;

#[test]
fn ranges_of_pages_that_point_at_one_another_end() {
    // A root page of a thousand ways to the same leaf, twenty pages deep: more rows than anybody could read.
    const PAGE: usize = 512;
    let file = File::new(
        "PRAGMA page_size = 512; CREATE TABLE t (a);
         WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 5000)
         INSERT INTO t SELECT x FROM c;",
    );
    let mut bytes = std::fs::read(&file.path).unwrap();
    let is_interior = |page: &[u8]| page[0] == 5;
    let leaf = (1..bytes.len() / PAGE).find(|at| bytes[at * PAGE] == 13).unwrap() as u32 + 1;
    for at in 1..bytes.len() / PAGE {
        let page = &mut bytes[at * PAGE..(at + 1) * PAGE];
        if is_interior(page) {
            let cells = u16::from_be_bytes([page[3], page[4]]) as usize;
            page[8..12].copy_from_slice(&leaf.to_be_bytes());
            for cell in 0..cells {
                let place = 12 + cell * 2;
                let offset = u16::from_be_bytes([page[place], page[place + 1]]) as usize;
                page[offset..offset + 4].copy_from_slice(&leaf.to_be_bytes());
            }
        }
    }
    let most = bytes.len() as u64 / 4 + RowBatch::ROWS_MAX as u64;
    std::fs::write(&file.path, bytes).unwrap();
    let source = file.source_with(json!({ "mode": "full", "part_rows": 100 }));
    let parts = source.list("t").map_or(0, |parts| parts.len());
    assert!(parts as u64 * 100 <= most + 100, "{parts}");
}

#[test]
fn a_schema_is_not_trusted() {
    let file = File::with(|connection| {
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE t (a TEXT, big AS (zeroblob(900000000)), slow AS (instr(zeroblob(900000), zeroblob(400000) || x'01')));
                 INSERT INTO t VALUES ('kept');
                 CREATE VIEW loads AS SELECT load_extension('/tmp/evil') FROM t;
                 CREATE TABLE other (a); INSERT INTO other VALUES ('fine');
                 PRAGMA writable_schema = ON;
                 INSERT INTO sqlite_schema SELECT 'table', 'ghost', 'ghost', rootpage, 'CREATE TABLE ghost (a)'
                 FROM sqlite_schema WHERE name = 'other';",
            )
            .unwrap();
    });
    let source = file.source_with(json!({ "statement_timeout_seconds": 1 }));
    let tables = source.tables();
    assert!(tables["loads"].reason.is_some() || source.rows("loads").is_err());
    assert!(source.rows("t").is_err(), "a value is too long");
    assert_eq!(source.rows("ghost").unwrap(), source.rows("other").unwrap());
    assert_eq!(texts(&source.rows("other").unwrap(), 0), ["fine"]);
}

#[test]
fn a_view_that_takes_too_much_is_stopped() {
    let file = File::with(|connection| {
        connection
            .execute_batch(
                "CREATE TABLE t (a);
                 WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3000)
                 INSERT INTO t SELECT x FROM c;
                 CREATE VIEW never AS SELECT x.a FROM t x, t y, t z, t u WHERE x.a + y.a + z.a + u.a < 0;",
            )
            .unwrap();
    });
    let source = file.source_with(json!({ "statement_timeout_seconds": 1 }));
    let error = source.rows("never").unwrap_err();
    assert_eq!(error.reason, domesday_model::Reason::TimedOut, "{error}");
}

#[test]
fn wide_rows_have_less_of_each_value() {
    let columns: Vec<String> = (0..1_500).map(|number| format!("c{number}")).collect();
    let values = vec!["zeroblob(20000)"; columns.len()].join(", ");
    let file =
        File::new(&format!("CREATE TABLE t ({}); INSERT INTO t VALUES ({values})", columns.join(", ")));
    let rows = file.source().rows("t").unwrap();
    let kept: usize = rows[0].iter().flatten().map(Vec::len).sum();
    assert!(kept <= 16 << 20, "{kept}");
    assert!(rows[0][0].as_ref().unwrap().len() > 10_000);
}
