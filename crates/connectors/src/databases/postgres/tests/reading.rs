//! Rows: every type as text, values that are too long, ranges, and tables that change meanwhile.

use std::collections::BTreeSet;

use domesday_model::Reason;

use super::*;

#[tokio::test]
async fn every_type_comes_as_the_text_that_people_write() {
    let values: &[(&str, &str, &str)] = &[
        ("smallint", "-7", "-7"),
        ("int", "2147483647", "2147483647"),
        ("bigint", "4111111111111111", "4111111111111111"),
        ("numeric(30,10)", "12345678901234567890.0000000001", "12345678901234567890.0000000001"),
        ("real", "1.5", "1.5"),
        ("double precision", "1e100", "1e+100"),
        ("money", "'1234.5'", "$1,234.50"),
        ("text", "'caf\u{e9}'", "caf\u{e9}"),
        ("varchar(20)", "'abc'", "abc"),
        ("char(5)", "'ab'", "ab"),
        ("\"char\"", "'x'", "x"),
        ("name", "'n'", "n"),
        ("boolean", "true", "true"),
        ("date", "'2024-02-29'", "2024-02-29"),
        ("time", "'12:34:56.5'", "12:34:56.5"),
        ("timetz", "'12:34:56+02'", "12:34:56+02"),
        ("timestamp", "'2024-02-29 12:00:00'", "2024-02-29 12:00:00"),
        ("timestamptz", "'2024-02-29 12:00:00+02'", "2024-02-29 10:00:00+00"),
        ("interval", "'1 day 2 hours'", "1 day 02:00:00"),
        ("uuid", "'00112233-4455-6677-8899-aabbccddeeff'", "00112233-4455-6677-8899-aabbccddeeff"),
        ("bytea", "'\\x41420043'", "AB\0C"),
        ("json", r#"'{"a": [1]}'"#, r#"{"a": [1]}"#),
        ("jsonb", r#"'{"a":[1]}'"#, r#"{"a": [1]}"#),
        ("xml", "'<a>b</a>'", "<a>b</a>"),
        ("text[]", "ARRAY['ann@example.com', 'b c', NULL]", r#"{ann@example.com,"b c",NULL}"#),
        ("int[][]", "'{{1,2},{3,4}}'", "{{1,2},{3,4}}"),
        ("inet", "'192.0.2.1'", "192.0.2.1/32"),
        ("cidr", "'192.0.2.0/24'", "192.0.2.0/24"),
        ("macaddr", "'08:00:2b:01:02:03'", "08:00:2b:01:02:03"),
        ("point", "'(1,2)'", "(1,2)"),
        ("polygon", "'((0,0),(1,1))'", "((0,0),(1,1))"),
        ("int4range", "'[1,5)'", "[1,5)"),
        ("bit(3)", "B'101'", "101"),
        ("varbit", "B'1'", "1"),
        ("tsvector", "'fat cat'", "'cat' 'fat'"),
        ("oid", "4294967295", "4294967295"),
        ("regclass", "'pg_class'", "pg_class"),
        ("pg_lsn", "'16/B374D848'", "16/B374D848"),
        ("mood", "'ok'", "ok"),
        ("post_code", "'SW1A'", "SW1A"),
        ("blob_of_post", "'\\x4142'", "AB"),
        ("place", "ROW('here', 7)", "(here,7)"),
        ("hstore", "'a=>1'", r#""a"=>"1""#),
        ("geo.geometry", "ROW(1,2)", "POINT(1 2)"),
    ];
    let fixture = Fixture::new(
        "CREATE EXTENSION hstore; CREATE TYPE mood AS ENUM ('sad', 'ok');
         CREATE DOMAIN code AS varchar(10); CREATE DOMAIN post_code AS code CHECK (value <> '');
         CREATE DOMAIN blob_of_post AS bytea; CREATE TYPE place AS (name text, number int);
         CREATE SCHEMA geo; CREATE TYPE geo.geometry AS (x int, y int);
         CREATE FUNCTION geo.st_astext(geo.geometry) RETURNS text LANGUAGE sql
             AS $$ SELECT 'POINT(' || $1.x || ' ' || $1.y || ')' $$",
    );
    let columns: Vec<String> = values.iter().enumerate().map(|(n, (of, ..))| format!("c{n} {of}")).collect();
    let given: Vec<&str> = values.iter().map(|(_, given, _)| *given).collect();
    fixture.sql(&format!("CREATE TABLE types ({})", columns.join(", ")));
    fixture.sql(&format!("INSERT INTO types VALUES ({})", given.join(", ")));
    fixture.sql("INSERT INTO types DEFAULT VALUES");
    let connector = fixture.connector(json!({}));
    let (rows, is_sample) = fixture.read(&connector, "public", "types").await.unwrap();
    assert!(!is_sample);
    for ((of, _, expected), cell) in values.iter().zip(&rows[0]) {
        assert_eq!(cell.as_deref(), Some(*expected), "{of}");
    }
    assert!(rows[1].iter().all(Option::is_none));
}

#[tokio::test]
async fn long_values_are_cut_by_the_server_and_said_to_be() {
    let fixture = Fixture::new(
        "CREATE TABLE long (id int PRIMARY KEY, t text, b bytea, j jsonb, a text[], e text);
         INSERT INTO long VALUES (1, repeat('x', 3000000), decode(repeat('41', 3000000), 'hex'),
             to_jsonb(repeat('y', 3000000)), ARRAY[repeat('z', 3000000)], repeat('\u{e9}', 200000));
         INSERT INTO long VALUES (2, repeat('x', 262144), decode(repeat('41', 262144), 'hex'), '1', '{}',
             repeat('\u{1f600}', 65536))",
    );
    let connector = fixture.connector(json!({}));
    let record = fixture.record(&connector, "public", "long").await;
    let key = fixture.key(&["public", "long"]);
    let batch = tokio::task::spawn_blocking(move || {
        let mut open = connector.open(&object(key, &record)).and_then(Opened::into_rows).unwrap();
        let mut batch = RowBatch::new(6);
        let mut seen = Vec::new();
        loop {
            batch.clear();
            open.rows.fill(&mut batch).unwrap();
            if batch.rows() == 0 {
                return seen;
            }
            for row in 0..batch.rows() {
                let cell = |column: &domesday_model::ColumnValues| {
                    (column.get(row).unwrap().to_vec(), column.is_cut(row))
                };
                seen.push(batch.columns.iter().map(cell).collect::<Vec<_>>());
            }
        }
    });
    let rows = batch.await.unwrap();
    for (value, is_cut) in &rows[0][1..] {
        assert!(*is_cut && (RowBatch::VALUE_MAX - 3..=RowBatch::VALUE_MAX).contains(&value.len()));
    }
    assert!(std::str::from_utf8(&rows[0][5].0).is_ok());
    for (value, is_cut) in &rows[1] {
        assert!(!is_cut && value.len() <= RowBatch::VALUE_MAX);
    }
    assert_eq!((rows[1][1].0.len(), rows[1][5].0.len()), (RowBatch::VALUE_MAX, RowBatch::VALUE_MAX));
}

#[tokio::test]
async fn a_wide_table_is_read_whole() {
    let columns: Vec<String> = (0..1_500).map(|n| format!("column_{n} int")).collect();
    let fixture = Fixture::new(&format!("CREATE TABLE wide ({})", columns.join(", ")));
    let values: Vec<String> = (0..1_500).map(|n| n.to_string()).collect();
    for _ in 0..3 {
        fixture.sql(&format!("INSERT INTO wide VALUES ({})", values.join(", ")));
    }
    let connector = fixture.connector(json!({}));
    let (rows, _) = fixture.read(&connector, "public", "wide").await.unwrap();
    assert_eq!((rows.len(), rows[0].len()), (3, 1_500));
    assert!(rows[2].iter().zip(&values).all(|(cell, value)| cell.as_ref() == Some(value)));
}

/// All rows of a table by its ranges, page by page, each from the last one's resume point.
async fn by_ranges(fixture: &Fixture, connector: &Arc<dyn Connector>, table: &str) -> Vec<Vec<Cell>> {
    let key = fixture.key(&["public", table]);
    let (mut point, mut parts) = (None, Vec::new());
    loop {
        let mut listing = connector.list(&key, point.as_deref()).await.unwrap();
        parts.extend(listing.next_batch(3).await.unwrap());
        point = listing.resume_point();
        if point.is_none() {
            assert_eq!(listing.next_batch(3).await.unwrap(), []);
            break;
        }
    }
    assert!(parts.is_sorted_by(|a, b| a.name < b.name));
    let mut rows = Vec::new();
    for part in parts {
        assert_eq!(part.kind, RecordKind::Rows);
        let (some, is_sample) = read(connector, object(key.join(&part.name), &part)).await.unwrap();
        assert!(!is_sample);
        rows.extend(some);
    }
    rows
}

#[tokio::test]
async fn ranges_have_every_row_once_whatever_the_key_is() {
    let fixture = Fixture::new(
        "CREATE EXTENSION citext;
         CREATE TABLE one (id bigint PRIMARY KEY, v text);
         INSERT INTO one SELECT n * 7 - 500, n FROM generate_series(1, 1234) AS n;
         CREATE TABLE two (v int, b text COLLATE \"en-x-icu\", a timestamptz, PRIMARY KEY (b, a));
         INSERT INTO two SELECT n, chr(65 + n % 7 + 32 * (n % 2)) || '''\\', now() - n * interval '1 s'
             FROM generate_series(1, 700) AS n;
         CREATE TABLE three (id citext PRIMARY KEY, v int);
         INSERT INTO three SELECT chr(65 + n % 2 * 32) || n, n FROM generate_series(1, 300) AS n;
         CREATE TABLE four (id float8, d bytea, v int, PRIMARY KEY (id, d));
         INSERT INTO four SELECT n / 3.0, decode(lpad(to_hex(n), 4, '0'), 'hex'), n FROM generate_series(1, 400) AS n;
         ANALYZE",
    );
    let connector = fixture.connector(json!({ "mode": "full", "part_rows": 100 }));
    for (table, column, rows) in [("one", 1, 1_234), ("two", 0, 700), ("three", 1, 300), ("four", 2, 400)] {
        assert_eq!(fixture.record(&connector, "public", table).await.kind, RecordKind::PartedTable);
        let read = by_ranges(&fixture, &connector, table).await;
        let values: BTreeSet<u32> =
            read.iter().map(|row| row[column].as_ref().unwrap().parse().unwrap()).collect();
        assert_eq!(read.len(), rows, "{table}");
        assert!(values.into_iter().eq(1..=rows as u32), "{table}");
    }
}

#[tokio::test]
async fn rows_that_stay_are_read_once_while_others_come_and_go() {
    let fixture = Fixture::new(
        "CREATE TABLE busy (id int PRIMARY KEY, v text);
         INSERT INTO busy SELECT n * 2, 'stays' FROM generate_series(1, 2000) AS n; ANALYZE",
    );
    let connector = fixture.connector(json!({ "mode": "full", "part_rows": 100 }));
    let key = fixture.key(&["public", "busy"]);
    let mut listing = connector.list(&key, None).await.unwrap();
    let first = listing.next_batch(5).await.unwrap();
    fixture.sql(
        "DELETE FROM busy WHERE id % 200 = 0;
         INSERT INTO busy SELECT n * 2 + 1, 'new' FROM generate_series(1, 3000) AS n;
         UPDATE busy SET v = 'changed' WHERE id % 10 = 0",
    );
    let mut parts = first;
    loop {
        match listing.next_batch(5).await.unwrap() {
            batch if batch.is_empty() => break,
            batch => parts.extend(batch),
        }
    }
    let mut ids = Vec::new();
    for part in parts {
        let (rows, _) = read(&connector, object(key.join(&part.name), &part)).await.unwrap();
        ids.extend(rows.iter().map(|row| row[0].as_ref().unwrap().parse::<u32>().unwrap()));
    }
    let seen: BTreeSet<u32> = ids.iter().copied().collect();
    assert_eq!(seen.len(), ids.len(), "a row was read twice");
    assert!((1..=2_000).map(|n| n * 2).filter(|id| id % 200 != 0).all(|id| seen.contains(&id)));
    assert_eq!(ids.len().to_string(), fixture.sql("SELECT count(*) FROM busy"));
}

#[tokio::test]
async fn a_table_without_a_key_is_read_in_one_snapshot() {
    let fixture = Fixture::new(
        "CREATE TABLE plain (v int, pad text); INSERT INTO plain SELECT n, repeat('x', 200) FROM generate_series(1, 60000) AS n",
    );
    let connector = fixture.connector(json!({ "mode": "full", "part_rows": 100 }));
    let record = fixture.record(&connector, "public", "plain").await;
    assert_eq!(record.kind, RecordKind::Table);
    let object = object(fixture.key(&["public", "plain"]), &record);
    let rows = std::thread::spawn(move || {
        let mut open = connector.open(&object).and_then(Opened::into_rows).unwrap();
        let (mut batch, mut rows) = (RowBatch::new(2), 0);
        open.rows.fill(&mut batch).unwrap();
        fixture.sql("UPDATE plain SET v = -1; DELETE FROM plain WHERE v > 10");
        while batch.rows() > 0 {
            assert!((0..batch.rows()).all(|row| batch.columns[0].get(row) != Some(b"-1")));
            rows += batch.rows();
            batch.clear();
            open.rows.fill(&mut batch).unwrap();
        }
        rows
    });
    assert_eq!(rows.join().unwrap(), 60_000);
}

#[tokio::test]
async fn views_unfilled_views_foreign_tables_and_empty_ones_are_read() {
    let fixture = Fixture::new(
        "CREATE TABLE base (id int, v text); INSERT INTO base SELECT n, 'v' FROM generate_series(1, 30) AS n;
         CREATE VIEW seen AS SELECT * FROM base WHERE id > 10;
         CREATE MATERIALIZED VIEW kept AS SELECT * FROM base; CREATE MATERIALIZED VIEW unfilled AS SELECT * FROM base WITH NO DATA;
         CREATE TABLE nothing (); CREATE TABLE empty (id int PRIMARY KEY);
         CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
         CREATE FOREIGN TABLE far (line text) SERVER files OPTIONS (program 'echo a; echo b')",
    );
    for mode in ["sample", "full"] {
        let connector = fixture.connector(json!({ "mode": mode }));
        for (table, rows) in
            [("seen", 20), ("kept", 30), ("unfilled", 0), ("empty", 0), ("nothing", 0), ("far", 2)]
        {
            assert_eq!(fixture.read(&connector, "public", table).await.unwrap().0.len(), rows, "{table}");
        }
    }
}

#[tokio::test]
async fn what_changed_since_it_was_listed_is_said() {
    let fixture = Fixture::new("CREATE TABLE t (a int, b int); CREATE TABLE u (a int)");
    let connector = fixture.connector(json!({}));
    let (t, u) =
        (fixture.record(&connector, "public", "t").await, fixture.record(&connector, "public", "u").await);
    fixture.sql("ALTER TABLE t DROP COLUMN b; DROP TABLE u");
    let changed = read(&connector, object(fixture.key(&["public", "t"]), &t)).await.unwrap_err();
    assert_eq!(changed.reason, Reason::Changed);
    let gone = read(&connector, object(fixture.key(&["public", "u"]), &u)).await.unwrap_err();
    assert_eq!(gone.reason, Reason::Vanished, "{gone}");
}
