//! Tables that are read whole: ranges of the primary key have every row once, whatever the key is.

use std::collections::BTreeMap;

use super::super::column::Column;
use super::super::select::Source;
use super::*;
use crate::databases::dialect::TableName;

/// Reads a table of this key in parts of a hundred rows, and checks that each row came once.
fn check(key: &str, rows: &str, count: usize) {
    let (server, database) = (Server::shared(), Server::shared().create_database());
    server.sql(
        &database,
        &format!(
            "SET sql_mode = ''; CREATE TABLE t ({key}, n INT NOT NULL); INSERT INTO t {rows}; ANALYZE TABLE t"
        ),
    );
    let connector = connector(server, json!({ "mode": "full", "part_rows": 100 }));
    assert_eq!(listed(connector.as_ref(), &database, "t").kind, RecordKind::PartedTable);
    let (rows, parts) = read_parts(connector.as_ref(), &database, "t");
    assert_eq!(parts, count / 100 + 1, "{key}");
    let mut seen: Vec<usize> =
        rows.iter().map(|row| row.last().unwrap().as_ref().unwrap().parse().unwrap()).collect();
    seen.sort_unstable();
    assert_eq!(seen, (1..=count).collect::<Vec<_>>(), "{key}");
    server.sql("", &format!("DROP DATABASE {database}"));
}

#[test]
fn every_row_is_in_one_range_whatever_the_key_is() {
    for (key, rows) in [
        ("a INT PRIMARY KEY", "SELECT seq * 7.0 - 3000, seq FROM seq_1_to_1050"),
        ("a BIGINT UNSIGNED PRIMARY KEY", "SELECT 18446744073709551615 - seq, seq FROM seq_1_to_1050"),
        ("b INT, a INT, PRIMARY KEY (a, b)", "SELECT seq, seq MOD 3, seq FROM seq_1_to_1050"),
        (
            "a INT, b VARCHAR(9), c DATE, PRIMARY KEY (b, a, c)",
            "SELECT seq DIV 500, CHAR(97 + seq MOD 5), '2020-01-01' + INTERVAL seq DAY, seq FROM seq_1_to_1050",
        ),
        ("a DECIMAL(20,6) PRIMARY KEY", "SELECT (500.0 - seq) / 7, seq FROM seq_1_to_1050"),
        ("a DOUBLE PRIMARY KEY", "SELECT SIN(seq) * EXP(seq / 20), seq FROM seq_1_to_1050"),
        ("a FLOAT PRIMARY KEY", "SELECT (seq - 500.0) / 7, seq FROM seq_1_to_1050"),
        ("a BIT(20) PRIMARY KEY", "SELECT seq * 11, seq FROM seq_1_to_1050"),
        (
            "a DATETIME(6) PRIMARY KEY",
            "SELECT '2020-01-01' + INTERVAL seq * 100 MICROSECOND, seq FROM seq_1_to_1050",
        ),
        ("a TIME PRIMARY KEY", "SELECT SEC_TO_TIME((seq - 500.0) * 777), seq FROM seq_1_to_1050"),
        (
            "a UUID PRIMARY KEY",
            "SELECT INSERT(INSERT(MD5(seq), 13, 1, '4'), 17, 1, '8'), seq FROM seq_1_to_1050",
        ),
        ("a INET6 PRIMARY KEY", "SELECT CONCAT('2001:db8::', HEX(seq * 61)), seq FROM seq_1_to_1050"),
        (
            "a VARBINARY(8) PRIMARY KEY",
            "SELECT UNHEX(LEFT(SHA1(seq), 2 + 2 * (4 + seq MOD 4))), seq FROM seq_1_to_1050",
        ),
        ("a BINARY(4) PRIMARY KEY", "SELECT UNHEX(LPAD(HEX(seq * 65537), 8, '0')), seq FROM seq_1_to_1050"),
    ] {
        check(key, rows, 1_050);
    }
}

#[test]
fn text_keys_are_ordered_as_their_own_collation_has_it() {
    let texts = "SELECT CONCAT(ELT(1 + seq MOD 9, 'a', 'B', 'ä', 'Z', 'ß', 'o', 'Ö', 'É', 'z'), seq), seq \
                 FROM seq_1_to_1050";
    for collation in [
        "utf8mb4_general_ci",
        "utf8mb4_unicode_ci",
        "utf8mb4_bin",
        "utf8mb4_swedish_ci",
        "utf8mb4_german2_ci",
        "utf8mb4_uca1400_ai_ci",
        "utf8mb4_nopad_bin",
        "latin1_german1_ci",
        "latin1_bin",
        "ucs2_general_ci",
        "cp1250_general_ci",
    ] {
        check(&format!("a VARCHAR(20) COLLATE {collation} PRIMARY KEY"), texts, 1_050);
    }
    let odd = "SELECT CONCAT(REPEAT(' ', seq MOD 4), ELT(1 + seq MOD 3, '''', '\\\\', '%'), seq, CHAR(9)), seq \
               FROM seq_1_to_1050";
    check("a CHAR(30) PRIMARY KEY", odd, 1_050);
}

#[test]
fn enums_are_ordered_by_their_numbers() {
    check(
        "a ENUM('z','y','a','m') NOT NULL, b SET('q','p'), c INT, PRIMARY KEY (a, b, c)",
        "SELECT 1 + seq MOD 4, seq MOD 3, seq, seq FROM seq_1_to_1050",
        1_050,
    );
}

#[test]
fn rows_that_stay_are_read_once_while_others_come_and_go() {
    let (server, database) = (Server::shared(), Server::shared().create_database());
    server.sql(
        &database,
        "CREATE TABLE t (a INT, b INT, PRIMARY KEY (a, b));
         INSERT INTO t SELECT seq * 2, 0 FROM seq_1_to_5000; ANALYZE TABLE t",
    );
    let connector = connector(server, json!({ "mode": "full", "part_rows": 500 }));
    let container = [database.as_str(), "t"];
    let parts = list(connector.as_ref(), &container).unwrap();
    let mut seen: BTreeMap<i64, usize> = BTreeMap::new();
    for (i, part) in parts.iter().enumerate() {
        let i = i as i64;
        // What is new in front of, in and behind the range; and the keys that bound it are deleted.
        server.sql(
            &database,
            &format!(
                "INSERT INTO t SELECT seq * 2 + 1, {i} FROM seq_1_to_5200 WHERE seq MOD 13 = {i};
                 DELETE FROM t WHERE a MOD 1000 = 0"
            ),
        );
        for row in read(connector.as_ref(), &container, part).unwrap() {
            let number: i64 = row[0].as_ref().unwrap().parse().unwrap();
            *seen.entry(number).or_default() += usize::from(number % 2 == 0);
        }
    }
    assert_eq!(parts.len(), 11);
    for kept in (1..=5_000).map(|i| i * 2).filter(|a| a % 1_000 != 0) {
        assert_eq!(seen.get(&kept), Some(&1), "{kept}");
    }
}

#[test]
fn a_listing_of_ranges_goes_on_where_it_was() {
    let (server, database) = (Server::shared(), Server::shared().create_database());
    server.sql(
        &database,
        "CREATE TABLE t (a VARCHAR(20), b INT, PRIMARY KEY (a, b));
         INSERT INTO t SELECT CONCAT('Key ', seq DIV 10), seq FROM seq_1_to_5000; ANALYZE TABLE t",
    );
    let configuration = json!({ "mode": "full", "part_rows": 100 });
    let (key, whole) = (
        name::key(&[&database, "t"]),
        list(connector(server, configuration.clone()).as_ref(), &[&database, "t"]),
    );
    let mut records = Vec::new();
    let mut resume_point: Option<String> = None;
    loop {
        // A new process each time.
        let connector = connector(server, configuration.clone());
        let (batch, next) = wait(async {
            let mut listing = connector.list(&key, resume_point.as_deref()).await.unwrap();
            (listing.next_batch(7).await.unwrap(), listing.resume_point())
        });
        records.extend(batch);
        resume_point = next;
        if resume_point.is_none() {
            break;
        }
    }
    assert_eq!(records, whole.unwrap());
    assert_eq!(records.len(), 51);
}

#[test]
fn ranges_and_slices_are_read_from_the_index() {
    let (server, database) = (Server::shared(), Server::shared().create_database());
    server.sql(
        &database,
        "CREATE TABLE t (a INT, b VARCHAR(20) CHARACTER SET latin1, c INT, PRIMARY KEY (a, b));
         INSERT INTO t SELECT seq, CONCAT('ü', seq), seq FROM seq_1_to_20000; ANALYZE TABLE t",
    );
    let connector = connector(server, json!({}));
    let shape = shape(&listed(connector.as_ref(), &database, "t"));
    let table = TableName { database: database.clone(), schema: String::new(), table: "t".into() };
    let source = Source::new(&table, Column::all(&shape.columns), &shape.primary_key);
    let key = |a: &str, b: &str| vec![a.to_owned(), b.to_owned()];
    for sql in [
        source.page(Some(&key("700", "ü700")), Some(&key("750", "ü750")), 4_096).unwrap().sql,
        source.slice(700, Some(750), 100).unwrap(),
    ] {
        let plan = server.sql(&database, &format!("EXPLAIN {sql}"));
        let fields: Vec<&str> = plan.split('\t').collect();
        assert_eq!(fields[3], "range", "{plan}");
        assert!(fields[8].parse::<u64>().unwrap() < 100, "{plan}");
    }
}

#[test]
fn five_million_rows_are_read_once_each() {
    const ROWS: u64 = 5_000_000;
    let (server, database) = (Server::shared(), Server::shared().create_database());
    server.sql(
        &database,
        "CREATE TABLE t (a INT PRIMARY KEY, b CHAR(8)); INSERT INTO t SELECT seq, 'x' FROM seq_1_to_5000000;
         ANALYZE TABLE t",
    );
    let connector = connector(server, json!({ "mode": "full" }));
    let container = [database.as_str(), "t"];
    let parts = list(connector.as_ref(), &container).unwrap();
    assert_eq!(parts.len(), 51);
    let mut next = 1;
    for part in &parts {
        read_each(connector.as_ref(), &container, part, |batch| {
            for row in 0..batch.rows() {
                assert_eq!(batch.columns[0].get(row), Some(next.to_string().as_bytes()));
                next += 1;
            }
        })
        .unwrap();
    }
    assert_eq!(next, ROWS + 1);
    server.sql("", &format!("DROP DATABASE {database}"));
}
