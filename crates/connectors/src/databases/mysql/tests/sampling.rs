//! Samples: spread over the table, about as large as asked for, and the same for the same seed.

use super::*;

const ROWS: usize = 1_000;

fn sample(server: &Server, database: &str, seed: u64) -> Vec<usize> {
    let connector = connector(server, json!({ "sample_rows": ROWS, "seed": seed }));
    let record = listed(connector.as_ref(), database, "t");
    let rows = read(connector.as_ref(), &[database], &record).unwrap();
    rows.iter().map(|row| row.last().unwrap().as_ref().unwrap().parse().unwrap()).collect()
}

/// Samples a table whose column `n` counts its rows, and checks the sample.
fn check(table: &str, rows: &str, count: usize) {
    let (server, database) = (Server::shared(), Server::shared().create_database());
    server.sql(
        &database,
        &format!("CREATE TABLE t ({table}, n INT NOT NULL); INSERT INTO t {rows}; ANALYZE TABLE t"),
    );
    let first = sample(server, &database, 1);
    assert!(first.len() >= ROWS * 8 / 10 && first.len() <= ROWS * 12 / 10, "{table}: {}", first.len());
    let mut tenths = [0; 10];
    for number in &first {
        tenths[(number - 1) * 10 / count] += 1;
    }
    assert!(tenths.iter().all(|&tenth| tenth >= ROWS / 20), "{table}: {tenths:?}");
    let mut distinct = first.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), first.len(), "{table}: no row twice");
    assert_eq!(sample(server, &database, 1), first, "{table}");
    assert_ne!(sample(server, &database, 2), first, "{table}");
    server.sql("", &format!("DROP DATABASE {database}"));
}

#[test]
fn a_sample_is_spread_over_the_table() {
    const COUNT: usize = 30_000;
    for (table, rows) in [
        ("a INT PRIMARY KEY", "SELECT seq, seq FROM seq_1_to_30000"),
        // With holes.
        ("a BIGINT PRIMARY KEY", "SELECT seq * 1000 + 7 * POW(seq DIV 100, 2), seq FROM seq_1_to_30000"),
        // Nearly all keys are close together, and one is far away.
        (
            "a BIGINT UNSIGNED PRIMARY KEY",
            "SELECT IF(seq = 30000, 18446744073709551615, seq), seq FROM seq_1_to_30000",
        ),
        // Few values of the first column.
        ("a INT, b INT, PRIMARY KEY (a, b)", "SELECT seq DIV 10000, seq, seq FROM seq_1_to_30000"),
        ("a INT, b INT, PRIMARY KEY (a, b)", "SELECT seq DIV 50, seq, seq FROM seq_1_to_30000"),
        ("a VARCHAR(20) PRIMARY KEY", "SELECT LPAD(seq, 8, '0'), seq FROM seq_1_to_30000"),
        ("a INT", "SELECT seq, seq FROM seq_1_to_30000"),
    ] {
        check(table, rows, COUNT);
    }
}

#[test]
fn what_is_small_is_read_whole_and_a_view_is_sampled() {
    let (server, database) = (Server::shared(), Server::shared().create_database());
    server.sql(
        &database,
        "CREATE TABLE base (a INT PRIMARY KEY); INSERT INTO base SELECT seq FROM seq_1_to_20000;
         CREATE TABLE t (a INT PRIMARY KEY); INSERT INTO t SELECT seq FROM seq_1_to_1000; ANALYZE TABLE base, t;",
    );
    assert_eq!(sample(server, &database, 1), (1..=1_000).collect::<Vec<_>>());
    server.sql(&database, "DROP TABLE t; CREATE VIEW t AS SELECT a FROM base WHERE a > 10000");
    let seen = sample(server, &database, 1);
    assert!((800..=1_200).contains(&seen.len()), "{}", seen.len());
    assert!(seen.iter().any(|&a| a < 12_000) && seen.iter().any(|&a| a > 18_000));
}
