//! Rows as they are read: every kind of value, whole tables, ranges and samples.

use std::collections::BTreeSet;

use rusqlite::params;

use super::*;

#[test]
fn every_kind_of_value_becomes_text_or_its_bytes() {
    let file = File::new(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a, g TEXT AS ('g' || a) STORED);
         INSERT INTO t (id, a) VALUES (1, NULL), (2, -9223372036854775808), (3, 1.5), (4, 4111111111111111.0),
             (5, 1e300), (6, 'text'), (7, x'00ff10'), (8, ''), (9, 0.1), (10, -0.0), (11, CAST(x'ff' AS TEXT)),
             (12, 9e999);",
    );
    let rows = file.source().rows("t").unwrap();
    assert_eq!(rows[6][1], Some(vec![0, 255, 16]));
    assert_eq!(rows[10][1], Some(vec![255]));
    let shown = texts(&rows, 1);
    let expected = ["(null)", "-9223372036854775808", "1.5", "4111111111111111", "1e300", "text"];
    assert_eq!(shown[..6], expected);
    assert_eq!([&shown[7..10], &shown[11..]].concat(), ["", "0.1", "-0", "inf"]);
    assert_eq!(texts(&rows, 2)[5], "gtext");
    assert_eq!(texts(&rows, 0)[11], "12");
}

#[test]
fn long_values_are_cut_and_not_loaded() {
    const LONG: i64 = 40 << 20;
    let text = format!("{}é", "x".repeat(RowBatch::VALUE_MAX));
    for encoding in ["UTF-8", "UTF-16le", "UTF-16be"] {
        let file = File::with(|connection| {
            connection.execute_batch(&format!("PRAGMA encoding = '{encoding}'")).unwrap();
            connection
                .execute_batch("CREATE TABLE t (a, b); CREATE TABLE w (k PRIMARY KEY, a) WITHOUT ROWID")
                .unwrap();
            connection.execute("INSERT INTO t VALUES (zeroblob(?1), ?2)", params![LONG, text]).unwrap();
            connection.execute("INSERT INTO t VALUES ('short', 'é')", []).unwrap();
            connection.execute("INSERT INTO w VALUES (1, ?1), (2, 'short')", [&text]).unwrap();
        });
        let source = file.source();
        let mut table = source.open("", &source.tables()["t"]).unwrap();
        let mut batch = RowBatch::new(3);
        table.rows.fill(&mut batch).unwrap();
        assert_eq!(batch.rows(), 2);
        assert!(batch.columns[0].is_cut(0) && batch.columns[1].is_cut(0) && !batch.columns[1].is_cut(1));
        assert_eq!(batch.columns[0].get(0).unwrap().len(), RowBatch::VALUE_MAX);
        let kept = batch.columns[1].get(0).unwrap();
        assert!(kept.len() >= RowBatch::VALUE_MAX / 2 && kept.iter().all(|byte| *byte == b'x'), "{encoding}");
        assert_eq!(batch.columns[1].get(1).unwrap(), "é".as_bytes());
        let rows = source.rows("w").unwrap();
        assert_eq!(rows[0][1].as_ref().unwrap().len(), RowBatch::VALUE_MAX);
        assert_eq!(texts(&rows, 1)[1], "short");
    }
}

#[test]
fn names_that_look_like_sql_are_only_names() {
    let names = ["a\"b", "x'; DROP TABLE t; --", "select", " ", "sämtlich/%", "]`", "rowid"];
    let file = File::with(|connection| {
        for name in names {
            let quoted = format!("\"{}\"", name.replace('"', "\"\""));
            connection
                .execute_batch(&format!(
                    "CREATE TABLE {quoted} ({quoted} TEXT, b); INSERT INTO {quoted} VALUES ('here', 1)"
                ))
                .unwrap();
        }
    });
    let source = file.source();
    let tables = source.tables();
    assert_eq!(tables.len(), names.len());
    for (key, record) in &tables {
        assert_eq!(record.reason, None, "{key}");
        assert_eq!(texts(&source.rows(key).unwrap(), 0), ["here"], "{key}");
    }
}

fn numbered(rows: u64) -> File {
    File::with(|connection| {
        connection
            .execute_batch(
                "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT);
                 CREATE TABLE w (a TEXT, b INTEGER, c, PRIMARY KEY (a, b)) WITHOUT ROWID;
                 CREATE TABLE d (a INTEGER, b, PRIMARY KEY (a DESC, b)) WITHOUT ROWID;",
            )
            .unwrap();
        let transaction = connection.transaction().unwrap();
        for id in 0..rows {
            transaction
                .prepare_cached("INSERT INTO t VALUES (?1, ?1)")
                .unwrap()
                .execute([id as i64 * 3])
                .unwrap();
            transaction
                .prepare_cached("INSERT INTO w VALUES (?1, ?2, ?2)")
                .unwrap()
                .execute(params![format!("k{:03}", id / 7), id as i64 % 7])
                .unwrap();
            transaction.prepare_cached("INSERT INTO d VALUES (?1, 1)").unwrap().execute([id as i64]).unwrap();
        }
        transaction.commit().unwrap();
    })
}

#[test]
fn ranges_of_a_table_have_every_row_once() {
    let file = numbered(1_000);
    let source = file.source_with(json!({ "mode": "full", "part_rows": 137 }));
    let tables = source.tables();
    assert_eq!(tables["t"].kind, RecordKind::PartedTable);
    assert_eq!(tables["w"].kind, RecordKind::PartedTable);
    // Its key cannot be asked for in its own order.
    assert_eq!(tables["d"].kind, RecordKind::Table);
    assert_eq!(source.list("t").unwrap().len(), 8);
    let ids = texts(&source.rows("t").unwrap(), 0);
    assert_eq!(ids, (0..1_000).map(|id| (id * 3).to_string()).collect::<Vec<_>>());
    let keys = source.rows("w").unwrap();
    let keys: Vec<String> = texts(&keys, 0).into_iter().zip(texts(&keys, 1)).map(|(a, b)| a + &b).collect();
    assert_eq!(keys.len(), 1_000);
    assert!(keys.is_sorted() && keys.iter().collect::<BTreeSet<_>>().len() == 1_000);
    assert_eq!(source.rows("d").unwrap().len(), 1_000);
}

#[test]
fn a_sample_is_spread_over_the_table_and_the_same_for_the_same_seed() {
    let file = numbered(20_000);
    for table in ["t", "w"] {
        let sample = |seed: u64| {
            let source = file.source_with(json!({ "sample_rows": 640, "seed": seed }));
            let rows = source.rows(table).unwrap();
            let ids: Vec<u64> = match table {
                "t" => texts(&rows, 0).iter().map(|id| id.parse::<u64>().unwrap() / 3).collect(),
                _ => {
                    let tens = texts(&rows, 0);
                    let ones = texts(&rows, 1);
                    let number = |(ten, one): (&String, &String)| {
                        ten[1..].parse::<u64>().unwrap() * 7 + one.parse::<u64>().unwrap()
                    };
                    tens.iter().zip(&ones).map(number).collect()
                }
            };
            ids
        };
        let ids = sample(1);
        assert!((500..=800).contains(&ids.len()), "{table}: {}", ids.len());
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{table}: none twice");
        let tenths: BTreeSet<u64> = ids.iter().map(|id| id / 2_000).collect();
        assert_eq!(tenths.len(), 10, "{table}: {tenths:?}");
        assert_eq!(sample(1), ids, "{table}");
        assert_ne!(sample(2), ids, "{table}");
        let all = file.source_with(json!({ "sample_rows": 20_000 })).rows(table).unwrap();
        assert_eq!(all.len(), 20_000, "{table}");
    }
}

#[test]
fn a_sample_finds_rows_that_lie_close_together() {
    let file = File::with(|connection| {
        connection
            .execute_batch(
                "CREATE TABLE t (id INTEGER PRIMARY KEY);
                 INSERT INTO t VALUES (-9223372036854775808), (9223372036854775807);
                 WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 30000)
                 INSERT INTO t SELECT 5000000000000 + x FROM c;",
            )
            .unwrap();
    });
    let rows = file.source_with(json!({ "sample_rows": 1_000 })).rows("t").unwrap();
    let near: Vec<i64> = texts(&rows, 0)
        .iter()
        .filter_map(|id| id.parse::<i64>().unwrap().checked_sub(5_000_000_000_000))
        .filter(|id| (1..=30_000).contains(id))
        .collect();
    assert!((700..=1_100).contains(&near.len()), "{}", near.len());
    assert!(near.iter().map(|id| id / 3_001).collect::<BTreeSet<_>>().len() == 10);
    let ids = texts(&rows, 0);
    assert!([i64::MIN, i64::MAX].iter().all(|far| ids.contains(&far.to_string())), "those far off, too");
}

#[test]
fn a_table_that_is_another_by_now_is_told() {
    let file = File::new("CREATE TABLE t (a); INSERT INTO t VALUES (1)");
    let record = file.source().tables().remove("t").unwrap();
    Connection::open(&file.path).unwrap().execute_batch("ALTER TABLE t RENAME COLUMN a TO b").unwrap();
    let source = file.source();
    let error = read(&mut source.open("", &record).unwrap()).unwrap_err();
    assert_eq!(error.reason, domesday_model::Reason::Changed);
    Connection::open(&file.path).unwrap().execute_batch("DROP TABLE t").unwrap();
    assert!(read(&mut file.source().open("", &record).unwrap()).is_err());
}
