//! Getting in: TLS, accounts, and what a session is told.

use std::io::Write;

use domesday_testkit::postgres::Certificates;
use mysql_async::prelude::Queryable;

use super::super::session::{Connection, text};
use super::*;
use crate::databases::config::DatabaseConfig;
use crate::databases::login::Login;

/// Whether a configuration gets in; what is said if not.
fn try_out(port: u16, fields: Value) -> Result<usize, String> {
    wait(connector_at(port, fields).test()).map_err(|error| error.to_string())
}

#[test]
fn tls_checks_what_its_mode_says() {
    let certificates = Certificates::generate();
    let server = Server::start(Some(&certificates));
    server.sql("", "CREATE USER safe IDENTIFIED BY 'x' REQUIRE SSL; GRANT SELECT ON *.* TO safe");
    let file = |text: &str| {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    };
    let (authority, stranger) = (file(&certificates.authority), file(&certificates.stranger));
    let [authority, stranger] = [&authority, &stranger].map(|file| file.path().to_str().unwrap());
    for (host, tls, ca, problem) in [
        ("localhost", "disable", None, Some("Access denied")),
        ("localhost", "prefer", None, None),
        ("localhost", "require", None, None),
        ("localhost", "verify-full", Some(authority), None),
        ("localhost", "verify-full", Some(stranger), Some("invalid peer certificate")),
        ("localhost", "verify-full", None, Some("UnknownIssuer")),
        ("localhost", "verify-full", None, Some("set `ca_file`")),
        ("localhost", "", Some(authority), None),
        ("127.0.0.1", "", Some(authority), Some("for another name")),
        ("localhost", "", Some(stranger), Some("set `ca_file`")),
        ("127.0.0.1", "verify-full", Some(authority), Some("not valid for name")),
        ("127.0.0.1", "verify-ca", Some(authority), None),
        ("localhost", "verify-ca", Some(authority), None),
        ("127.0.0.1", "verify-ca", Some(stranger), Some("invalid peer certificate")),
    ] {
        let mut fields = json!({ "user": "safe", "password": "x", "host": host, "tls": tls });
        if tls.is_empty() {
            fields.as_object_mut().unwrap().remove("tls");
        }
        if let Some(ca) = ca {
            fields["ca_file"] = json!(ca);
        }
        match (try_out(server.port(), fields), problem) {
            (Ok(_), None) => {}
            (Err(said), Some(problem)) if said.contains(problem) => {}
            (outcome, _) => panic!("{host} {tls} {ca:?}: {outcome:?}"),
        }
    }
    let plain = Server::shared();
    assert!(try_out(plain.port(), json!({ "tls": "prefer" })).is_ok());
    let said = try_out(plain.port(), json!({ "tls": "require" })).unwrap_err();
    assert!(said.contains("the server offers no TLS"), "{said}");
    let said = try_out(plain.port(), json!({ "tls": "verify-ca", "ca_file": "/gone" })).unwrap_err();
    assert!(said.contains("field `ca_file`: /gone"), "{said}");
}

#[test]
fn accounts_get_in_with_their_own_kind_of_password() {
    let server = Server::shared();
    server.sql(
        "",
        "CREATE USER native IDENTIFIED VIA mysql_native_password USING PASSWORD('hünter2');
         CREATE USER modern IDENTIFIED VIA ed25519 USING PASSWORD('hünter2'); CREATE USER open",
    );
    for (user, password, gets_in) in [
        ("native", Some("hünter2"), true),
        ("native", Some("native:hünter2"), true),
        ("native", Some("wrong"), false),
        ("modern", Some("hünter2"), true),
        ("modern", Some("wrong"), false),
        ("open", None, true),
        ("open", Some("wrong"), false),
        ("native", None, false),
    ] {
        let mut fields = json!({ "user": user });
        if let Some(password) = password {
            fields["password"] = json!(password);
        }
        let tried = wait(connector(server, fields).test());
        assert_eq!(tried.is_ok(), gets_in, "{user} {password:?}: {tried:?}");
        if let Err(error) = tried {
            assert_eq!((error.reason(), error.is_retryable()), (Reason::PermissionDenied, false), "{error}");
            assert!(!error.to_string().contains("wrong"), "{error}");
        }
    }
}

#[test]
fn a_session_only_reads_and_says_who_it_is() {
    let (server, database) = (Server::shared(), Server::shared().create_database());
    server.sql(&database, "CREATE TABLE t (a INT)");
    let config = DatabaseConfig {
        host: "127.0.0.1".into(),
        port: Some(server.port()),
        statement_timeout_seconds: 7,
        lock_timeout_seconds: 3,
        application_name: "domesday in a test".into(),
        ..DatabaseConfig::default()
    };
    let login = Login { user: Some(USER.into()), password: None };
    wait(async {
        let mut connection = Connection::open(&config, &login, Some(&database)).await.unwrap();
        let settings = connection
            .rows(
                "",
                "SELECT @@max_statement_time, @@lock_wait_timeout, @@innodb_lock_wait_timeout, @@time_zone, \
                       CONNECTION_ID()",
            )
            .await
            .unwrap();
        let setting = |column| text(&settings[0], column).unwrap();
        assert_eq!([0, 1, 2, 3].map(setting), ["7.000000", "3", "3", "+00:00"]);
        let name = server.sql(
            "",
            &format!(
                "SELECT attr_value FROM performance_schema.session_connect_attrs \
                 WHERE attr_name = 'program_name' AND processlist_id = {}",
                setting(4)
            ),
        );
        assert_eq!(name, "domesday in a test");
        for write in ["INSERT INTO t VALUES (1)", "CREATE TABLE u (a INT)", "DELETE FROM t"] {
            let error = connection.conn().query_drop(write).await.unwrap_err().to_string();
            assert!(error.contains("READ ONLY"), "{error}");
        }
    });
}

#[test]
fn settings_of_the_server_change_nothing() {
    let server = Server::start(None);
    server.sql(
        "",
        "CREATE DATABASE d; CREATE TABLE d.t (a CHAR(9) PRIMARY KEY, at TIMESTAMP);
         SET time_zone = '+00:00';
         INSERT INTO d.t SELECT CONCAT('\\'\\\\', seq), '2020-01-01 12:00:00' FROM d.seq_1_to_300;
         SET GLOBAL sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH,ORACLE';
         SET GLOBAL sql_select_limit = 5; SET GLOBAL time_zone = '+05:00'; SET GLOBAL max_join_size = 10;
         SET GLOBAL character_set_results = latin1;",
    );
    let connector = connector(&server, json!({ "mode": "full", "part_rows": 100 }));
    assert!(list(connector.as_ref(), &[]).unwrap().len() >= 5);
    let (mut rows, parts) = read_parts(connector.as_ref(), "d", "t");
    assert_eq!((rows.len(), parts), (300, 4));
    rows.sort();
    assert_eq!(rows[0], row(&["'\\1", "2020-01-01 12:00:00"]));
}
