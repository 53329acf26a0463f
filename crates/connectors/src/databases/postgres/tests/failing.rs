//! Servers that refuse, stall, are full, or go away.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use domesday_connector::ConnectorError;
use domesday_connector::credentials::{CredentialManager, RunSecrets, Secret};
use domesday_model::Reason;
use domesday_testkit::postgres::Certificates;

use super::*;

#[tokio::test]
async fn sessions_say_who_they_are_and_cannot_write() {
    let fixture = Fixture::new(
        "CREATE TABLE t (a int);
         CREATE FUNCTION told() RETURNS text LANGUAGE sql AS $$ SELECT current_setting('application_name') || ' ' ||
             current_setting('transaction_read_only') || ' ' || current_setting('lock_timeout') || ' ' ||
             current_setting('search_path') $$;
         CREATE FUNCTION write() RETURNS text LANGUAGE sql AS $$ INSERT INTO public.t VALUES (1) RETURNING 'x' $$;
         CREATE VIEW honest AS SELECT told(); CREATE VIEW hostile AS SELECT write()",
    );
    let connector =
        fixture.connector(json!({ "application_name": "the scanner", "lock_timeout_seconds": 7 }));
    let (rows, _) = fixture.read(&connector, "public", "honest").await.unwrap();
    assert_eq!(rows, [[Some("the scanner on 7s pg_catalog".to_owned())]]);
    let refused = fixture.read(&connector, "public", "hostile").await.unwrap_err();
    assert_eq!(refused.reason, Reason::ReadError);
    assert_eq!(fixture.sql("SELECT count(*) FROM t"), "0");
}

#[tokio::test]
async fn a_server_that_gives_no_rows_is_given_up_on_and_stops_working() {
    let fixture = Fixture::new(
        "CREATE TABLE t (a int); INSERT INTO t VALUES (1);
         CREATE VIEW slow AS SELECT a, pg_sleep(1000) IS NULL FROM t; CREATE TABLE quick AS SELECT 1 AS a",
    );
    let connector = fixture.connector(json!({ "statement_timeout_seconds": 1 }));
    let begun = Instant::now();
    let late = fixture.read(&connector, "public", "slow").await.unwrap_err();
    assert_eq!(late.reason, Reason::TimedOut, "{late}");
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert_eq!(fixture.read(&connector, "public", "quick").await.unwrap().0.len(), 1);
    let asleep = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = '{}' AND query LIKE 'COPY%' AND state = 'active'",
        fixture.database
    );
    while fixture.sql(&asleep) != "0" {
        assert!(begun.elapsed() < Duration::from_secs(60), "the server works on for nobody");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn values_are_never_quoted_in_errors() {
    let fixture = Fixture::new(
        "CREATE TABLE t (a text); INSERT INTO t VALUES ('hunter2'); CREATE VIEW broken AS SELECT a::int FROM t",
    );
    let refused = fixture.read(&fixture.connector(json!({})), "public", "broken").await.unwrap_err();
    assert!(refused.reason == Reason::ReadError && !refused.detail.contains("hunter2"), "{refused}");
}

#[tokio::test]
async fn rows_come_no_faster_than_allowed() {
    let fixture = Fixture::new("CREATE TABLE t AS SELECT n FROM generate_series(1, 300) AS n");
    let connector = fixture.connector(json!({ "rows_per_second": 100 }));
    let begun = Instant::now();
    assert_eq!(fixture.read(&connector, "public", "t").await.unwrap().0.len(), 300);
    assert!(begun.elapsed() >= Duration::from_millis(1_900));
}

/// A server of its own, with TLS.
fn encrypted() -> &'static (Server, Certificates) {
    static SERVER: OnceLock<(Server, Certificates)> = OnceLock::new();
    SERVER.get_or_init(|| {
        let certificates = Certificates::generate();
        (Server::start(Some(&certificates)), certificates)
    })
}

#[tokio::test]
async fn certificates_are_checked_as_asked() {
    let (server, certificates) = encrypted();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (trusted, stranger) = (file("a", &certificates.authority), file("b", &certificates.stranger));
    for (tls, host, ca, problem) in [
        (Some("prefer"), "localhost", None, None),
        (Some("require"), "127.0.0.1", None, None),
        (Some("verify-ca"), "127.0.0.1", Some(&trusted), None),
        (Some("verify-full"), "localhost", Some(&trusted), None),
        (None, "localhost", Some(&trusted), None),
        (Some("verify-full"), "127.0.0.1", Some(&trusted), Some("for another name")),
        (None, "127.0.0.1", Some(&trusted), Some("for another name")),
        (Some("verify-ca"), "localhost", Some(&stranger), Some("set `ca_file`")),
        (None, "localhost", Some(&stranger), Some("set `ca_file`")),
        // Signed by nobody that the system knows.
        (Some("verify-full"), "localhost", None, Some("set `ca_file`")),
    ] {
        let fields = json!({ "tls": tls, "host": host, "ca_file": ca });
        match (connector(server, fields).test().await, problem) {
            (Ok(_), None) => {}
            (Err(error), Some(problem)) if error.to_string().contains(problem) => {
                assert!(!error.is_retryable(), "{error}");
            }
            (outcome, _) => panic!("{tls:?} {host} {ca:?}: {outcome:?}"),
        }
    }
    let plain = Server::shared();
    let refused = connector(plain, json!({ "tls": "require" })).test().await.unwrap_err().to_string();
    assert!(refused.contains("offers no TLS") && refused.contains("`tls` to `disable`"), "{refused}");
}

#[tokio::test]
async fn passwords_are_proved_in_every_way_the_server_asks_for() {
    let (server, _) = encrypted();
    server.psql(
        "postgres",
        "SET password_encryption = 'scram-sha-256'; CREATE ROLE scram LOGIN PASSWORD 'hunter2';
         SET password_encryption = 'md5'; CREATE ROLE md5 LOGIN PASSWORD 'hunter2'; CREATE ROLE clear LOGIN PASSWORD 'hunter2'",
    );
    let rules = server.folder().join("data/pg_hba.conf");
    let before = std::fs::read_to_string(&rules).unwrap();
    let ways = "host all scram all scram-sha-256\nhost all md5 all md5\nhost all clear all password\n";
    std::fs::write(&rules, format!("{ways}{before}")).unwrap();
    // A session says when the server that began it had last read its files.
    let loaded = || server.psql("postgres", "SELECT pg_conf_load_time()");
    let before = loaded();
    server.psql("postgres", "SELECT pg_reload_conf()");
    while loaded() == before {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let with = |secret: &str, fields: Value| {
        let mut secrets = RunSecrets::default();
        let credential = Some(secrets.hold("db", Secret::new(secret.into())));
        let credentials = Arc::new(CredentialManager::default().with(secrets));
        let surroundings = Surroundings { credentials, credential, ..Surroundings::default() };
        let mut configuration = json!({ "host": "localhost", "port": server.port(), "tls": "require" });
        merge(&mut configuration, fields);
        FACTORY.create(&configuration, &surroundings).unwrap()
    };
    for user in ["scram", "md5", "clear"] {
        let named = format!("{user}:hunter2");
        assert!(with(&named, json!({})).test().await.unwrap() > 0, "{user}");
        assert!(with("hunter2", json!({ "user": user })).test().await.unwrap() > 0, "{user}");
        let refused = with("hunter3", json!({ "user": user })).test().await.unwrap_err();
        assert!(matches!(refused, ConnectorError::Denied { .. }), "{user}: {refused}");
        assert!(!refused.to_string().contains("hunter3"), "{refused}");
    }
}

#[tokio::test]
async fn who_is_not_let_in_is_told_so_without_the_secret() {
    let server = Server::shared();
    let connector = connector(server, json!({ "user": "no_such_user" }));
    let error = connector.test().await.unwrap_err();
    assert!(matches!(error, ConnectorError::Denied { .. }), "{error}");
    let nobody = FACTORY.create(&json!({ "port": server.port() }), &Surroundings::default()).unwrap();
    assert!(nobody.test().await.unwrap_err().to_string().contains("field `user`"));
}

#[tokio::test]
async fn a_database_without_a_free_connection_is_waited_for() {
    let fixture = Fixture::new("CREATE TABLE t AS SELECT 1 AS a");
    let user = format!("one_{}", fixture.database);
    fixture.sql(&format!("CREATE ROLE {user} LOGIN CONNECTION LIMIT 1; GRANT SELECT ON t TO {user}"));
    let connector = fixture.connector(json!({ "user": user }));
    let record = fixture.record(&connector, "public", "t").await;
    // The connection that gave the record may still be on its way out.
    let held = loop {
        match connector.list(&fixture.key(&["public"]), None).await {
            Ok(listing) => break listing,
            Err(ConnectorError::Wait { .. }) => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(error) => panic!("{error}"),
        }
    };
    let full = connector.list(&fixture.key(&["public"]), None).await.err().unwrap();
    assert!(matches!(full, ConnectorError::Wait { .. }), "{full}");
    assert!(full.to_string().contains("max_connections=1"), "{full}");
    let object = object(fixture.key(&["public", "t"]), &record);
    let refused = format!("too many connections for role \"{user}\"");
    let refusals = || Server::shared().log().matches(&refused).count();
    let before = refusals();
    let reading = tokio::spawn({
        let connector = Arc::clone(&connector);
        async move { read(&connector, object).await }
    });
    while refusals() == before {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(held);
    assert_eq!(reading.await.unwrap().unwrap().0.len(), 1);
}

#[tokio::test]
async fn a_connection_that_breaks_is_a_named_reason_and_the_next_table_has_a_new_one() {
    let fixture = Fixture::new(
        "CREATE TABLE large AS SELECT n, repeat('x', 200) AS pad FROM generate_series(1, 200000) AS n;
         CREATE TABLE other AS SELECT 1 AS a; ANALYZE",
    );
    let connector = fixture.connector(json!({ "mode": "full", "application_name": "to be broken" }));
    let mut objects = Vec::new();
    for table in ["large", "other"] {
        let record = fixture.record(&connector, "public", table).await;
        objects.push(object(fixture.key(&["public", table]), &record));
    }
    let packet = connector.read_ahead(&objects.into()).unwrap();
    let outcome = tokio::task::spawn_blocking(move || {
        let mut open = packet.open(0).and_then(Opened::into_rows).unwrap();
        let mut batch = RowBatch::new(2);
        open.rows.fill(&mut batch).unwrap();
        assert!(batch.rows() > 0);
        fixture.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE application_name = 'to be broken' AND datname = current_database()",
        );
        let broken = loop {
            batch.clear();
            match open.rows.fill(&mut batch) {
                Ok(()) if batch.rows() == 0 => panic!("a broken table ended as if it were whole"),
                Ok(()) => {}
                Err(error) => break error,
            }
        };
        let mut next = packet.open(1).and_then(Opened::into_rows).unwrap();
        let mut batch = RowBatch::new(1);
        next.rows.fill(&mut batch).unwrap();
        (broken.reason, batch.rows())
    });
    assert_eq!(outcome.await.unwrap(), (Reason::Unavailable, 1));
}

#[tokio::test]
async fn a_packet_has_one_connection_and_takes_leave_of_the_server() {
    let fixture = Fixture::new(
        "CREATE TABLE a AS SELECT 1 AS n; CREATE TABLE b AS SELECT 2 AS n; CREATE TABLE c AS SELECT 3 AS n",
    );
    let connector = fixture.connector(json!({}));
    let mut objects = Vec::new();
    for table in ["a", "b", "c"] {
        let record = fixture.record(&connector, "public", table).await;
        objects.push(object(fixture.key(&["public", table]), &record));
    }
    let count = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'domesday'";
    let packet = connector.read_ahead(&objects.into()).unwrap();
    let (fixture, packet) = tokio::task::spawn_blocking(move || {
        let mut open: Vec<_> =
            (0..3).map(|index| packet.open(index).and_then(Opened::into_rows).unwrap()).collect();
        for table in &mut open {
            let mut batch = RowBatch::new(1);
            table.rows.fill(&mut batch).unwrap();
            assert_eq!((batch.rows(), fixture.sql(count).as_str()), (1, "1"));
        }
        drop(open);
        (fixture, packet)
    })
    .await
    .unwrap();
    drop(packet);
    let begun = Instant::now();
    while fixture.sql(count) != "0" {
        assert!(begun.elapsed() < Duration::from_secs(30), "a connection is left behind");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let abandoned =
        "SELECT sessions_abandoned FROM pg_stat_database WHERE datname = current_database() AND sessions > 0";
    assert_eq!(fixture.sql(abandoned), "0");
}
