//! A pool between us and the server, which knows few settings and shares its connections.

use domesday_testkit::pgbouncer::{Pgbouncer, PoolMode};

use super::*;

/// What a client of the pool sees in this database.
fn asked_of(pool: &Pgbouncer, fixture: &Fixture, sql: &str) -> String {
    let mut client = fixture.server.client("psql");
    let port = pool.port().to_string();
    client.args(["-h", "127.0.0.1", "-p", &port, "-X", "-q", "-A", "-t", "-d", &fixture.database, "-c", sql]);
    let output = client.output().unwrap();
    assert!(output.status.success(), "{}\n{}", String::from_utf8_lossy(&output.stderr), pool.log());
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// What settings are to others that share the connection, and the statements that are prepared on it.
const SHARED: &str = "SELECT current_setting('search_path'), current_setting('extra_float_digits'),
    current_setting('default_transaction_read_only'), current_setting('statement_timeout'),
    current_setting('row_security'), (SELECT count(*) FROM pg_prepared_statements)";

#[tokio::test]
async fn a_server_behind_a_pool_is_read_and_nobody_else_notices() {
    let fixture = Fixture::new(
        "CREATE TABLE small AS SELECT 0.1::float8 + 0.2 AS number, timestamptz '2024-02-29 12:00+02' AS moment;
         CREATE TABLE parted (id int PRIMARY KEY, v text);
         INSERT INTO parted SELECT n, 'v' || n FROM generate_series(1, 250) AS n;
         CREATE TABLE large AS SELECT n, repeat('x', 1000) AS pad FROM generate_series(1, 50000) AS n; ANALYZE",
    );
    for mode in [PoolMode::Session, PoolMode::Transaction] {
        let pool = Pgbouncer::start(fixture.server, mode, &["postgres"]);
        let before = asked_of(&pool, &fixture, SHARED);
        let fields = json!({ "host": "127.0.0.1", "port": pool.port(), "mode": "full", "part_rows": 100 });
        // Two scans at once, whose transactions take turns on the one connection that there is.
        let connectors = [fixture.connector(fields.clone()), fixture.connector(fields)];
        for _ in 0..2 {
            for connector in &connectors {
                let (rows, _) = fixture.read(connector, "public", "small").await.unwrap();
                let expected = ["0.30000000000000004", "2024-02-29 10:00:00+00"];
                assert_eq!(rows, [expected.map(|text| Some(text.to_owned()))], "{mode:?}");
            }
        }
        let key = fixture.key(&["public", "parted"]);
        let mut rows = 0;
        for part in list(&connectors[0], &key).await {
            rows += read(&connectors[0], object(key.join(&part.name), &part)).await.unwrap().0.len();
        }
        assert_eq!(rows, 250, "{mode:?}");
        // A reader that leaves in the middle of a table keeps nobody from the connection.
        let record = fixture.record(&connectors[0], "public", "large").await;
        let large = object(fixture.key(&["public", "large"]), &record);
        let connector = Arc::clone(&connectors[0]);
        tokio::task::spawn_blocking(move || {
            let mut open = connector.open(&large).and_then(Opened::into_rows).unwrap();
            let mut batch = RowBatch::new(2);
            open.rows.fill(&mut batch).unwrap();
            assert!(batch.rows() > 0);
        })
        .await
        .unwrap();
        assert_eq!(fixture.read(&connectors[1], "public", "small").await.unwrap().0.len(), 1);
        assert_eq!(asked_of(&pool, &fixture, SHARED), before, "{mode:?}");
    }
}
