//! Levels: what is listed, what is left out, and why.

use domesday_connector::Trial;
use domesday_model::{Reason, ResumePolicy, TableKind};
use domesday_testkit::postgres::Server;

use super::*;

#[tokio::test]
async fn a_discovery_lists_every_database_and_leaves_out_the_servers_own() {
    let fixture = Fixture::new("CREATE SCHEMA shop; CREATE TABLE shop.orders (id int PRIMARY KEY)");
    let connector = connector(fixture.server, json!({}));
    let databases = list(&connector, &ObjectKey::default()).await;
    let of = |name: &str| databases.iter().find(|record| record.name == name.as_bytes()).unwrap();
    assert_eq!(of(&fixture.database).kind, RecordKind::Database);
    assert_eq!(of("postgres").kind, RecordKind::Database);
    for template in ["template0", "template1"] {
        assert_eq!((of(template).kind, of(template).reason), (RecordKind::Skipped, Some(Reason::ServersOwn)));
    }
    let schemas = list(&connector, &fixture.key(&[])).await;
    let seen: Vec<_> = schemas.iter().map(|record| (record.name.as_slice(), record.kind)).collect();
    let expected: [(&[u8], RecordKind); 5] = [
        (b"information_schema", RecordKind::Skipped),
        (b"pg_catalog", RecordKind::Skipped),
        (b"pg_toast", RecordKind::Skipped),
        (b"public", RecordKind::Schema),
        (b"shop", RecordKind::Schema),
    ];
    assert_eq!(seen, expected);
    let all = super::connector(fixture.server, json!({ "system": true }));
    let schemas = list(&all, &fixture.key(&[])).await;
    assert!(schemas.iter().all(|record| record.kind == RecordKind::Schema));
    assert!(list(&all, &fixture.key(&["pg_catalog"])).await.len() > 100);
    assert!(connector.test().await.unwrap() > 2);
}

#[tokio::test]
async fn a_targeted_scan_lists_what_is_configured_and_nothing_else() {
    let fixture = Fixture::new("CREATE TABLE t (a int)");
    let connector = fixture.connector(json!({ "databases": [fixture.database, "no_such"] }));
    let databases = list(&connector, &ObjectKey::default()).await;
    assert_eq!(databases.len(), 2);
    let error = connector.list(&name::key(&["no_such"]), None).await.err().unwrap();
    assert_eq!(error.reason(), Reason::Vanished);
    assert_eq!(connector.test().await.unwrap_err().reason(), Reason::Vanished);
    assert_eq!(fixture.connector(json!({})).test().await.unwrap(), 1);
    assert_eq!(connector.resume_policy(&ObjectKey::default()), ResumePolicy::ClearAndRelist);
    assert_eq!(connector.resume_policy(&fixture.key(&["public"])), ResumePolicy::ClearAndRelist);
    assert_eq!(connector.resume_policy(&fixture.key(&["public", "t"])), ResumePolicy::FromResumePoint);
}

#[tokio::test]
async fn a_table_is_listed_with_its_columns_types_key_comments_and_estimate() {
    let fixture = Fixture::new(
        "CREATE TYPE mood AS ENUM ('sad', 'ok');
         CREATE TABLE people (name varchar(64), b int, a numeric(10,2), m mood, gone text, PRIMARY KEY (a, b));
         ALTER TABLE people DROP COLUMN gone;
         COMMENT ON TABLE people IS 'who they are';
         COMMENT ON COLUMN people.name IS 'full name';
         INSERT INTO people SELECT 'x', n, n, 'ok' FROM generate_series(1, 500) AS n;
         CREATE VIEW seen AS SELECT name FROM people;
         CREATE MATERIALIZED VIEW kept AS SELECT name FROM people;
         CREATE TABLE unanalysed AS SELECT n, repeat('x', 100) AS text FROM generate_series(1, 50000) AS n;
         ANALYZE people",
    );
    let connector = fixture.connector(json!({}));
    let people = fixture.record(&connector, "public", "people").await;
    assert_eq!(people.kind, RecordKind::Table);
    let found = shape(&people);
    let columns: Vec<_> =
        found.columns.iter().map(|c| (c.name.as_str(), c.type_name.as_str(), c.comment.as_deref())).collect();
    assert_eq!(
        columns,
        [
            ("name", "character varying(64)", Some("full name")),
            ("b", "integer", None),
            ("a", "numeric(10,2)", None),
            ("m", "public.mood", None)
        ]
    );
    assert_eq!(found.primary_key, [2, 1]);
    assert_eq!((found.row_estimate, found.comment.as_deref()), (Some(500), Some("who they are")));
    let seen = shape(&fixture.record(&connector, "public", "seen").await);
    assert_eq!((seen.kind, seen.row_estimate), (TableKind::View, None));
    assert_eq!(shape(&fixture.record(&connector, "public", "kept").await).kind, TableKind::MaterializedView);
    let guessed = shape(&fixture.record(&connector, "public", "unanalysed").await).row_estimate.unwrap();
    assert!((20_000..200_000).contains(&guessed), "{guessed}");
}

#[tokio::test]
async fn partitions_and_children_are_never_read_twice() {
    let fixture = Fixture::new(
        "CREATE TABLE parted (id int, at date, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
         CREATE TABLE parted_a PARTITION OF parted FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
         CREATE TABLE parted_b PARTITION OF parted FOR VALUES FROM ('2021-01-01') TO ('2022-01-01')
             PARTITION BY HASH (id);
         CREATE TABLE parted_b0 PARTITION OF parted_b FOR VALUES WITH (MODULUS 1, REMAINDER 0);
         INSERT INTO parted SELECT n, date '2020-01-01' + n FROM generate_series(1, 600) AS n;
         CREATE TABLE parent (id int);
         CREATE TABLE child (more text) INHERITS (parent);
         INSERT INTO parent VALUES (1); INSERT INTO child VALUES (2, 'x');
         ANALYZE",
    );
    let connector = fixture.connector(json!({}));
    let tables: Vec<_> = list(&connector, &fixture.key(&["public"])).await;
    let names: Vec<_> = tables.iter().map(|record| String::from_utf8_lossy(&record.name)).collect();
    assert_eq!(names, ["child", "parent", "parted"]);
    assert_eq!(shape(&tables[2]).row_estimate, Some(600));
    for (table, rows) in [("child", 1), ("parent", 1), ("parted", 600)] {
        assert_eq!(fixture.read(&connector, "public", table).await.unwrap().0.len(), rows, "{table}");
    }
}

#[tokio::test]
async fn patterns_choose_at_each_level() {
    let fixture = Fixture::new(
        "CREATE SCHEMA shop; CREATE SCHEMA audit; CREATE TABLE shop.customer (a int);
         CREATE TABLE shop.customer_old (a int); CREATE TABLE shop.orders (a int); CREATE TABLE audit.log (a int)",
    );
    let connector = fixture.connector(json!({ "include": ["*.shop"], "exclude": ["*.*.*_old"] }));
    let all = walk(&connector).await;
    let of =
        |names: &[&str]| all.get(&fixture.key(names).to_string()).map(|record| (record.kind, record.reason));
    assert_eq!(of(&["shop"]), Some((RecordKind::Schema, None)));
    assert_eq!(of(&["audit"]), Some((RecordKind::Skipped, Some(Reason::Excluded))));
    assert_eq!(of(&["audit", "log"]), None);
    assert_eq!(of(&["shop", "customer"]), Some((RecordKind::Table, None)));
    assert_eq!(of(&["shop", "customer_old"]), Some((RecordKind::Skipped, Some(Reason::Excluded))));
}

#[tokio::test]
async fn what_is_not_ours_is_named_and_the_rest_goes_on() {
    let fixture = Fixture::new("");
    let user = format!("reader_{}", fixture.database);
    fixture.sql(&format!(
        "CREATE ROLE {user} LOGIN;
         CREATE SCHEMA open; CREATE SCHEMA shut; GRANT USAGE ON SCHEMA open TO {user};
         CREATE TABLE open.yes (id int PRIMARY KEY, name text); CREATE TABLE open.no (id int);
         CREATE TABLE open.half (id int PRIMARY KEY, secret text, name text);
         INSERT INTO open.yes VALUES (1, 'a'); INSERT INTO open.half VALUES (1, 's', 'n');
         GRANT SELECT ON open.yes TO {user}; GRANT SELECT (name) ON open.half TO {user}"
    ));
    let closed = Fixture::new("");
    closed.sql(&format!("REVOKE CONNECT ON DATABASE {} FROM PUBLIC", closed.database));
    let databases = list(&connector(fixture.server, json!({ "user": user })), &ObjectKey::default()).await;
    let denied = databases.iter().find(|record| record.name == closed.database.as_bytes()).unwrap();
    assert_eq!((denied.kind, denied.reason), (RecordKind::Skipped, Some(Reason::PermissionDenied)));
    let refused = closed.connector(json!({ "user": user })).list(&closed.key(&[]), None).await.err().unwrap();
    assert_eq!(refused.reason(), Reason::PermissionDenied);
    let connector = fixture.connector(json!({ "user": user }));
    let all = walk(&connector).await;
    let of = |names: &[&str]| all[&fixture.key(names).to_string()].reason;
    assert_eq!(of(&["shut"]), Some(Reason::PermissionDenied));
    assert_eq!(of(&["open", "no"]), Some(Reason::PermissionDenied));
    assert_eq!(of(&["open", "half", "secret"]), Some(Reason::PermissionDenied));
    assert_eq!(of(&["open", "half", "id"]), Some(Reason::PermissionDenied));
    assert_eq!((of(&["open", "yes"]), of(&["open", "half"])), (None, None));
    let half = shape(&all[&fixture.key(&["open", "half"]).to_string()]);
    assert_eq!((half.columns.len(), half.primary_key), (1, vec![]));
    let (rows, _) = fixture.read(&connector, "open", "half").await.unwrap();
    assert_eq!(rows, [[Some("n".to_owned())]]);
    fixture.sql(&format!("REVOKE SELECT ON open.yes FROM {user}"));
    let key = fixture.key(&["open", "yes"]);
    let late = read(&connector, object(key.clone(), &all[&key.to_string()])).await.unwrap_err();
    assert_eq!(late.reason, Reason::PermissionDenied);
    // Nothing may hold a role of a shared server when it is gone.
    drop(connector);
}

#[tokio::test]
async fn a_thousand_tables_of_many_schemas_are_each_listed_once_and_read() {
    let fixture = Fixture::new(
        "DO $$ BEGIN FOR s IN 1..20 LOOP
             EXECUTE format('CREATE SCHEMA s%s', s);
             FOR t IN 1..50 LOOP
                 EXECUTE format('CREATE TABLE s%s.t%s (id int PRIMARY KEY, v text)', s, t);
                 EXECUTE format('INSERT INTO s%s.t%s VALUES (1, %L)', s, t, s || '-' || t);
             END LOOP;
         END LOOP; END $$",
    );
    let connector = fixture.connector(json!({}));
    let tables: Vec<(String, UnitRecord)> =
        walk(&connector).await.into_iter().filter(|(_, record)| record.kind == RecordKind::Table).collect();
    assert_eq!(tables.len(), 1_000);
    let objects: Arc<[ListedObject]> =
        tables.iter().map(|(key, record)| object(ObjectKey::new(key.as_str()), record)).collect();
    // All of one packet, over its one connection.
    let packet = connector.read_ahead(&objects).unwrap();
    let values = tokio::task::spawn_blocking(move || {
        let mut values = std::collections::BTreeSet::new();
        for index in 0..objects.len() {
            let mut open = packet.open(index).and_then(Opened::into_rows).unwrap();
            let mut batch = RowBatch::new(2);
            open.rows.fill(&mut batch).unwrap();
            values.extend(cells(&batch, 0)[1].clone());
        }
        values
    });
    assert_eq!(values.await.unwrap().len(), 1_000);
}

#[tokio::test]
async fn hostile_names_are_harmless_and_come_back() {
    let names =
        ["a\"b", "a'b; DROP TABLE x; --", "line\nbreak", "a/b", "100%", "\u{1f600} caf\u{e9}", "$1", "\\"];
    let long = "x".repeat(63);
    let fixture = Fixture::new("CREATE TABLE x (a int)");
    let quote = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    for name in names.iter().copied().chain([long.as_str()]) {
        let name = quote(name);
        fixture.sql(&format!(
            "CREATE SCHEMA {name}; CREATE TABLE {name}.{name} ({name} text PRIMARY KEY, b int)"
        ));
        fixture
            .sql(&format!("INSERT INTO {name}.{name} SELECT 'v' || n, n FROM generate_series(1, 150) AS n"));
        fixture.sql(&format!("ANALYZE {name}.{name}"));
    }
    for mode in ["sample", "full"] {
        let connector = fixture.connector(json!({ "mode": mode, "part_rows": 100, "sample_rows": 20 }));
        let all = walk(&connector).await;
        for name in names.iter().copied().chain([long.as_str()]) {
            let key = fixture.key(&[name, name]);
            let record = &all[&key.to_string()];
            let found = shape(record);
            assert_eq!(found.columns[0].name, name);
            let mut rows = Vec::new();
            if record.kind == RecordKind::PartedTable {
                for part in list(&connector, &key).await {
                    rows.extend(read(&connector, object(key.join(&part.name), &part)).await.unwrap().0);
                }
                assert_eq!(rows.len(), 150);
            } else {
                rows.extend(read(&connector, object(key, record)).await.unwrap().0);
            }
            assert!(!rows.is_empty() && rows.iter().all(|row| row[0].as_ref().unwrap().starts_with('v')));
        }
    }
    assert_eq!(fixture.sql("SELECT count(*) FROM x"), "0");
}

#[tokio::test]
async fn a_locked_table_holds_up_neither_its_schema_nor_the_others() {
    let server = Server::shared();
    let fixture =
        Fixture::new("CREATE TABLE held (a int); CREATE TABLE free (a int); INSERT INTO free VALUES (1)");
    let (database, _) = (fixture.database.clone(), server);
    // Until there is a table of this name, and not for ever.
    let holder = std::thread::spawn(move || {
        server.psql(
            &database,
            "DO $$ BEGIN LOCK TABLE held; FOR look IN 1..6000 LOOP
                EXIT WHEN EXISTS (SELECT FROM pg_class WHERE relname = 'enough'); PERFORM pg_sleep(0.02); END LOOP; END $$",
        );
    });
    while fixture.sql("SELECT count(*) FROM pg_locks WHERE relation = 'held'::regclass") == "0" {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let connector = fixture.connector(json!({ "lock_timeout_seconds": 1 }));
    let tables = list(&connector, &fixture.key(&["public"])).await;
    assert_eq!(tables.len(), 2);
    let locked = fixture.read(&connector, "public", "held").await.unwrap_err();
    assert_eq!(locked.reason, Reason::Locked, "{locked}");
    assert_eq!(fixture.read(&connector, "public", "free").await.unwrap().0.len(), 1);
    fixture.sql("CREATE TABLE enough ()");
    holder.join().unwrap();
}

#[tokio::test]
async fn a_trial_reads_the_first_rows_it_comes_upon() {
    let fixture = Fixture::new("CREATE TABLE t AS SELECT n FROM generate_series(1, 7) AS n");
    let trial = Trial::of(fixture.connector(json!({})), &Surroundings::default(), None).await;
    assert_eq!((trial.problem, trial.containers), (None, 1));
    assert_eq!(trial.passed.last().unwrap(), &format!("7 rows of {}/public/t", fixture.database));
}
