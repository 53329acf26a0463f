//! What is listed: databases, tables, columns, keys, and what permissions do to them.

use domesday_model::{ColumnShape, TableKind};

use super::*;

fn column(name: &str, type_name: &str, comment: Option<&str>) -> ColumnShape {
    ColumnShape { name: name.into(), type_name: type_name.into(), comment: comment.map(str::to_owned) }
}

#[test]
fn a_discovery_lists_all_databases_and_a_targeted_scan_its_own() {
    let server = Server::start(None);
    server.sql("", "CREATE DATABASE shop; CREATE DATABASE `a/b%``c`; CREATE DATABASE log");
    let found = list(connector(&server, json!({ "exclude": ["log"] })).as_ref(), &[]).unwrap();
    let out = |name: &str| (RecordKind::Skipped, name.to_owned(), Some(Reason::ServersOwn));
    let expected = [
        (RecordKind::Database, "a%2Fb%25`c".to_owned(), None),
        out("information_schema"),
        (RecordKind::Skipped, "log".to_owned(), Some(Reason::Excluded)),
        out("mysql"),
        out("performance_schema"),
        (RecordKind::Database, "shop".to_owned(), None),
        out("sys"),
    ];
    assert_eq!(names(&found), expected);
    let all = list(connector(&server, json!({ "system": true })).as_ref(), &[]).unwrap();
    assert!(all.iter().all(|record| record.kind == RecordKind::Database));
    let targeted = connector(&server, json!({ "databases": ["shop", "gone"] }));
    let found = list(targeted.as_ref(), &[]).unwrap();
    assert_eq!(names(&found).iter().map(|found| found.1.as_str()).collect::<Vec<_>>(), ["gone", "shop"]);
    assert!(list(targeted.as_ref(), &["shop"]).unwrap().is_empty());
    let gone = list(targeted.as_ref(), &["gone"]).unwrap_err();
    assert_eq!(gone.reason(), Reason::Vanished, "{gone}");
    assert_eq!(wait(connector(&server, json!({ "databases": ["shop"] })).test()).unwrap(), 1);
}

#[test]
fn a_table_has_columns_key_comments_and_an_estimate() {
    let (server, database) = (Server::shared(), Server::shared().create_database());
    server.sql(
        &database,
        "CREATE TABLE people (
             name VARCHAR(40) NOT NULL COMMENT 'who it''s', age INT UNSIGNED, region CHAR(2) NOT NULL,
             kind ENUM('a','b''c'), PRIMARY KEY (region, name), KEY (age)) COMMENT = 'all of them';
         INSERT INTO people SELECT seq, seq, 'de', 'a' FROM seq_1_to_500;
         ANALYZE TABLE people;
         CREATE VIEW adults AS SELECT name FROM people WHERE age >= 18;
         CREATE SEQUENCE numbers;
         CREATE TABLE prefixed (t TEXT, PRIMARY KEY (t(10)));
         CREATE TABLE versioned (a INT PRIMARY KEY) WITH SYSTEM VERSIONING;
         CREATE VIEW broken AS SELECT a FROM versioned; RENAME TABLE versioned TO other;",
    );
    let found = list(connector(server, json!({})).as_ref(), &[&database]).unwrap();
    let kinds: Vec<(RecordKind, String, Option<Reason>)> = names(&found);
    let table = |name: &str| (RecordKind::Table, name.to_owned(), None);
    let broken = (RecordKind::Skipped, "broken".to_owned(), Some(Reason::ReadError));
    assert_eq!(kinds, [table("adults"), broken, table("other"), table("people"), table("prefixed")]);
    let people = shape(&found[3]);
    assert_eq!(people.kind, TableKind::Table);
    assert_eq!(
        people.columns,
        [
            column("name", "varchar(40)", Some("who it's")),
            column("age", "int(10) unsigned", None),
            column("region", "char(2)", None),
            column("kind", "enum('a','b''c')", None),
        ]
    );
    assert_eq!(people.primary_key, [2, 0]);
    assert_eq!(people.comment.as_deref(), Some("all of them"));
    assert_eq!(people.row_estimate, Some(500));
    assert!(found[3].size > 0);
    let view = shape(&found[0]);
    assert_eq!((view.kind, view.comment, view.row_estimate), (TableKind::View, None, None));
    assert!(shape(&found[4]).primary_key.is_empty());
    let read = read(connector(server, json!({})).as_ref(), &[&database], &found[0]).unwrap();
    assert_eq!(read.len(), 483);
}

#[test]
fn hostile_names_are_only_names() {
    let (server, database) = (Server::shared(), Server::shared().create_database());
    let hostile = [
        "a",
        "A",
        "`",
        "a``b",
        "'; DROP TABLE a; -- x",
        "a/b",
        "100%",
        "%2F",
        "\"x\"",
        "\\",
        "a\nb",
        "x'",
        "ünï",
        ".",
        ":table",
        ":schema",
    ];
    for name in hostile {
        let quoted = format!("`{}`", name.replace('`', "``"));
        let value = name.replace('\\', "\\\\").replace('\'', "''");
        server.sql(
            &database,
            &format!("CREATE TABLE {quoted} ({quoted} VARCHAR(40) PRIMARY KEY); INSERT INTO {quoted} VALUES ('{value}')"),
        );
    }
    let connector = connector(server, json!({ "mode": "full" }));
    let found = list(connector.as_ref(), &[&database]).unwrap();
    let mut expected: Vec<Vec<u8>> = hostile.iter().map(|name| name::encode(name)).collect();
    let mut listed: Vec<Vec<u8>> = found.iter().map(|record| record.name.clone()).collect();
    expected.sort();
    listed.sort();
    assert_eq!(listed, expected);
    for record in &found {
        let columns = shape(record).columns;
        let name = columns[0].name.clone();
        assert_eq!(record.name, name::encode(&name));
        assert_eq!(read(connector.as_ref(), &[&database], record).unwrap(), [row(&[&name])]);
        assert_eq!(read_parts(connector.as_ref(), &database, &name), (vec![row(&[&name])], 1));
    }
}

#[test]
fn a_thousand_tables_come_once_each_and_a_wide_one_whole() {
    let (server, database) = (Server::shared(), Server::shared().create_database());
    let tables: String =
        (0..1_000).map(|i| format!("CREATE TABLE t{i:04} (a INT) ENGINE=MyISAM;\n")).collect();
    server.sql(&database, &tables);
    let columns: Vec<String> = (0..900).map(|i| format!("c{i} INT DEFAULT {i}")).collect();
    server.sql(
        &database,
        &format!("CREATE TABLE wide ({}); INSERT INTO wide () VALUES ()", columns.join(", ")),
    );
    let connector = connector(server, json!({}));
    let found = list(connector.as_ref(), &[&database]).unwrap();
    assert_eq!(found.len(), 1_001);
    assert!(found.iter().map(|record| &record.name).is_sorted_by(|a, b| a < b));
    let wide = found.last().unwrap();
    assert_eq!(shape(wide).columns.len(), 900);
    let rows = read(connector.as_ref(), &[&database], wide).unwrap();
    assert_eq!(rows, [(0..900).map(|i| Some(i.to_string())).collect::<Vec<_>>()]);
}

#[test]
fn what_permissions_hide_is_absent_and_what_they_refuse_has_a_reason() {
    let (server, database) = (Server::shared(), Server::shared().create_database());
    let hidden = server.create_database();
    server.sql(
        &database,
        &format!(
            "CREATE TABLE seen (a INT PRIMARY KEY, b INT); INSERT INTO seen VALUES (1, 2);
             CREATE TABLE partly (a INT PRIMARY KEY, secret INT, c INT); INSERT INTO partly VALUES (1, 2, 3);
             CREATE TABLE writable (a INT); CREATE TABLE unseen (a INT); CREATE TABLE {hidden}.t (a INT);
             CREATE USER clerk IDENTIFIED BY 'pass''word';
             GRANT SELECT ON {database}.seen TO clerk; GRANT SELECT (c) ON {database}.partly TO clerk;
             GRANT INSERT (a, secret) ON {database}.partly TO clerk; GRANT INSERT ON {database}.writable TO clerk;"
        ),
    );
    let clerk = connector(server, json!({ "user": "clerk", "password": "pass'word" }));
    let databases = names(&list(clerk.as_ref(), &[]).unwrap());
    let visible: Vec<&str> = databases
        .iter()
        .filter(|found| found.0 == RecordKind::Database)
        .map(|found| found.1.as_str())
        .collect();
    assert_eq!(visible, [database.as_str()]);
    let found = list(clerk.as_ref(), &[&database]).unwrap();
    let denied = |name: &str| (RecordKind::Skipped, name.to_owned(), Some(Reason::PermissionDenied));
    let table = |name: &str| (RecordKind::Table, name.to_owned(), None);
    assert_eq!(
        names(&found),
        [denied("partly/a"), denied("partly/secret"), table("partly"), table("seen"), denied("writable")]
    );
    assert!(shape(&found[2]).primary_key.is_empty());
    assert_eq!(read(clerk.as_ref(), &[&database], &found[2]).unwrap(), [row(&["3"])]);
    assert_eq!(read(clerk.as_ref(), &[&database], &found[3]).unwrap(), [row(&["1", "2"])]);
    let refused = list(clerk.as_ref(), &[&hidden]).unwrap_err();
    assert_eq!(refused.reason(), Reason::PermissionDenied, "{refused}");
    server.sql("", &format!("REVOKE SELECT ON {database}.seen FROM clerk"));
    let refused = read(clerk.as_ref(), &[&database], &found[3]).unwrap_err();
    assert_eq!(refused.reason, Reason::PermissionDenied, "{}", refused.detail);
}

#[test]
fn a_column_that_cannot_be_read_costs_only_itself() {
    let (server, database) = (Server::shared(), Server::shared().create_database());
    server.sql(
        &database,
        &format!(
            "CREATE TABLE people (id INT PRIMARY KEY, secret VARCHAR(60), mail VARCHAR(60));
             INSERT INTO people SELECT seq, 'x', CONCAT('user', seq, '@example.org') FROM seq_1_to_500;
             CREATE VIEW broken AS SELECT id, (SELECT id FROM people) AS several, mail FROM people;
             CREATE USER half IDENTIFIED BY 'x'; GRANT SELECT (id, secret, mail) ON {database}.people TO half;
             GRANT SELECT ON {database}.broken TO half;"
        ),
    );
    for mut fields in [json!({}), json!({ "mode": "full" }), json!({ "sample_rows": 100 })] {
        server.sql("", &format!("GRANT SELECT (secret) ON {database}.people TO half"));
        (fields["user"], fields["password"]) = (json!("half"), json!("x"));
        let connector = connector(server, fields);
        let found = list(connector.as_ref(), &[&database]).unwrap();
        server.sql("", &format!("REVOKE SELECT (secret) ON {database}.people FROM half"));
        for (record, column, reason) in
            [(&found[0], "several", Reason::ReadError), (&found[1], "secret", Reason::PermissionDenied)]
        {
            let mut rows = 0;
            let error = read_each(connector.as_ref(), &[&database], record, |batch| {
                for row in 0..batch.rows() {
                    assert!(batch.columns[2].get(row).unwrap().ends_with(b"@example.org"));
                    assert_eq!(batch.columns[1].get(row), None);
                }
                rows += batch.rows();
            })
            .unwrap_err();
            assert!(rows > 20, "{column}: {rows} rows");
            assert_eq!(error.reason, reason, "{}", error.detail);
            assert!(error.detail.contains(&format!("column {column} cannot be read")), "{}", error.detail);
            assert!(!error.detail.contains("column id") && !error.detail.contains("column mail"));
        }
    }
}
