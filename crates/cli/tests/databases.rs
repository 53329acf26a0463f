//! `domesday scan` of database servers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use common::{KEY, KEY_RULE, Place};
use domesday_testkit::postgres::Server;

/// A database with a few schemas, whose tables have a key each, for a role of its own; its name.
fn database(role: &str, options: &str) -> (&'static Server, String) {
    let server = Server::shared();
    let url = server.create_database();
    let name = url.rsplit('/').next().unwrap().split('?').next().unwrap().to_owned();
    server.psql(&name, &format!("CREATE ROLE {role} LOGIN {options}"));
    for schema in ["one", "two", "three"] {
        server.psql(
            &name,
            &format!(
                "CREATE SCHEMA {schema}; CREATE TABLE {schema}.config AS SELECT 1 AS id, 'aws {KEY}' AS value;
                 CREATE TABLE {schema}.other AS SELECT n AS id, 'x' AS value FROM generate_series(1, 1000) AS n;
                 GRANT USAGE ON SCHEMA {schema} TO {role}; GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}"
            ),
        );
    }
    (server, name)
}

#[test]
fn a_role_that_may_connect_once_is_read_where_the_address_says_so() {
    let (server, name) = database("single", "CONNECTION LIMIT 1");
    let place = Place::new();
    let address = format!("postgres://single@127.0.0.1:{}/{name}?max_connections=1", server.port());
    let ran = place.run(&["scan", &address, "--state", "state", "--format", "jsonl"]).exits(1);
    assert_eq!(ran.text().matches(&format!("\"{KEY_RULE}\"")).count(), 3, "{}\n{}", ran.text(), ran.err);
    let wrong = format!("postgres://single@127.0.0.1:{}/{name}?max_connections=none", server.port());
    place.run(&["scan", &wrong, "--state", "state"]).fails_saying(&["max_connections", "a number from 1"]);
}

#[test]
fn a_scan_that_a_policy_hides_rows_from_is_incomplete_and_says_so() {
    let (server, name) = database("tenant", "");
    server.psql(
        &name,
        "ALTER TABLE one.other ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON one.other USING (id <= 3);
         ALTER TABLE two.other ENABLE ROW LEVEL SECURITY",
    );
    let place = Place::new();
    let address = format!("postgres://tenant@127.0.0.1:{}/{name}", server.port());
    let ran = place.run(&["scan", &address, "--state", "state"]).exits(3);
    for table in ["one/other", "two/other"] {
        assert!(ran.err.contains(table) || ran.text().contains(table), "{}\n{}", ran.text(), ran.err);
    }
    let said = format!("{}{}", ran.text(), ran.err);
    assert!(said.contains("a row-level policy applies"), "{said}");
}
