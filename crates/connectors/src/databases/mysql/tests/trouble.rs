//! Connections that break, statements that take too long, and readers that leave.

use std::time::Duration;

use domesday_testkit::proxy::Proxy;
use domesday_testkit::wait::until;
use mysql_async::prelude::Queryable;

use super::*;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A database with a table that is more than the line to a reader holds.
fn large(server: &Server) -> String {
    let database = server.create_database();
    server.sql(
        &database,
        "CREATE TABLE t (a INT, b VARCHAR(2000)); INSERT INTO t SELECT seq, REPEAT('x', 1500) FROM seq_1_to_40000",
    );
    database
}

#[test]
fn a_connection_that_breaks_in_a_table_is_told_and_the_next_table_gets_another() {
    let server = Server::shared();
    let database = large(server);
    server.sql(&database, "CREATE TABLE u (a INT); INSERT INTO u VALUES (7)");
    let proxy = Proxy::start(server.port());
    let connector = connector_at(proxy.port(), json!({ "mode": "full" }));
    let objects = ["t", "u"].map(|table| {
        let record = listed(connector.as_ref(), &database, table);
        ListedObject::in_container(&name::key(&[&database]), &record)
    });
    let packet = connector.read_ahead(&objects.into()).unwrap();
    let mut open = packet.open(0).and_then(Opened::into_rows).unwrap();
    let mut batch = RowBatch::new(2);
    open.rows.fill(&mut batch).unwrap();
    assert!(batch.rows() > 0);
    proxy.cut();
    let error = loop {
        batch.clear();
        match open.rows.fill(&mut batch) {
            Ok(()) => assert!(batch.rows() > 0, "the table ended well though its connection broke"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.reason, Reason::Unavailable, "{}", error.detail);
    drop(open);
    let mut open = packet.open(1).and_then(Opened::into_rows).unwrap();
    let mut batch = RowBatch::new(1);
    open.rows.fill(&mut batch).unwrap();
    assert_eq!(batch.columns[0].get(0), Some(&b"7"[..]));
}

#[test]
fn a_server_that_is_killed_and_comes_back_is_read_again() {
    let server = Server::start(None);
    server.sql("", "CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY); INSERT INTO d.t VALUES (7)");
    let connector = connector(&server, json!({}));
    let record = listed(connector.as_ref(), "d", "t");
    server.kill();
    let error = list(connector.as_ref(), &["d"]).unwrap_err();
    assert!(error.is_retryable() && error.reason() == Reason::Unavailable, "{error}");
    assert_eq!(read(connector.as_ref(), &["d"], &record).unwrap_err().reason, Reason::Unavailable);
    server.start_again();
    assert_eq!(read(connector.as_ref(), &["d"], &record).unwrap(), [row(&["7"])]);
}

#[test]
fn what_takes_too_long_is_ended_and_named() {
    let (server, database) = (Server::shared(), Server::shared().create_database());
    server.sql(
        &database,
        "CREATE TABLE t (a INT PRIMARY KEY); INSERT INTO t VALUES (1), (2);
         CREATE VIEW slow AS SELECT a, SLEEP(20) FROM t",
    );
    let limits = json!({ "statement_timeout_seconds": 1, "lock_timeout_seconds": 1 });
    let connector = connector(server, limits);
    let [slow, t] = ["slow", "t"].map(|table| listed(connector.as_ref(), &database, table));
    let error = read(connector.as_ref(), &[&database], &slow).unwrap_err();
    assert_eq!(error.reason, Reason::TimedOut, "{}", error.detail);
    let url = format!("mysql://{USER}@127.0.0.1:{}/{database}?prefer_socket=false", server.port());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let holder = runtime.block_on(async {
        let mut holder = mysql_async::Conn::from_url(url).await.unwrap();
        holder.query_drop("LOCK TABLES t WRITE").await.unwrap();
        holder
    });
    let error = read(connector.as_ref(), &[&database], &t).unwrap_err();
    assert_eq!(error.reason, Reason::TimedOut, "{}", error.detail);
    runtime.block_on(holder.disconnect()).unwrap();
    assert_eq!(read(connector.as_ref(), &[&database], &t).unwrap(), [row(&["1"]), row(&["2"])]);
}

#[test]
fn a_reader_that_leaves_takes_its_connection_along_and_takes_leave_of_the_server() {
    let server = Server::start(None);
    let database = large(&server);
    let connector = connector(&server, json!({ "mode": "full" }));
    // Longer than the test waits.
    server.sql(&database, "CREATE VIEW slow AS SELECT SLEEP(200)");
    let record = listed(connector.as_ref(), &database, "t");
    server.sql(&database, "CREATE TABLE few (a INT PRIMARY KEY); INSERT INTO few VALUES (7)");
    let few = listed(connector.as_ref(), &database, "few");
    assert_eq!(read(connector.as_ref(), &[&database], &few).unwrap(), [row(&["7"])]);
    let sessions = || {
        server.sql("", "SELECT COUNT(*) FROM information_schema.processlist WHERE host LIKE '127.0.0.1:%'")
    };
    let mut table = open(connector.as_ref(), &[&database], &record).unwrap();
    let mut batch = RowBatch::new(2);
    table.rows.fill(&mut batch).unwrap();
    assert_ne!(sessions(), "0");
    drop(table);
    assert!(until(PATIENCE, || (sessions() == "0").then_some(())).is_some(), "a session is left");
    // Its administrators look at these.
    assert_eq!(server.sql("", "SHOW GLOBAL STATUS LIKE 'Aborted_clients'"), "Aborted_clients\t0");
    let slow = listed(connector.as_ref(), &database, "slow");
    let waiting = open(connector.as_ref(), &[&database], &slow).unwrap();
    let sleeping =
        || server.sql("", "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User sleep'");
    assert!(until(PATIENCE, || (sleeping() == "1").then_some(())).is_some(), "the view is not read");
    drop(waiting);
    assert!(until(PATIENCE, || (sessions() == "0").then_some(())).is_some(), "a session is left");
}

#[test]
fn a_table_that_changed_or_went_since_it_was_listed_is_named_so() {
    let (server, database) = (Server::shared(), Server::shared().create_database());
    server.sql(
        &database,
        "CREATE TABLE gone (a INT); CREATE TABLE other (a INT); CREATE TABLE unkeyed (a INT PRIMARY KEY)",
    );
    let connector = connector(server, json!({ "mode": "full" }));
    let [gone, other, unkeyed] =
        ["gone", "other", "unkeyed"].map(|table| listed(connector.as_ref(), &database, table));
    server.sql(
        &database,
        "DROP TABLE gone; ALTER TABLE other CHANGE a b INT; ALTER TABLE unkeyed DROP PRIMARY KEY",
    );
    for (record, reason) in
        [(&gone, Reason::Vanished), (&other, Reason::Changed), (&unkeyed, Reason::Changed)]
    {
        let error = read(connector.as_ref(), &[&database], record).unwrap_err();
        assert_eq!(error.reason, reason, "{}", error.detail);
    }
}
