//! Databases that say nothing of the encoding of their texts.

use domesday_model::Reason;

use super::*;

#[tokio::test]
async fn a_database_without_an_encoding_is_read_as_the_bytes_it_has() {
    let server = Server::shared();
    let database = "without_encoding";
    server.psql(
        "postgres",
        &format!(
            "CREATE DATABASE {database} ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        ),
    );
    let fixture = Fixture { server, database: database.to_owned() };
    fixture.sql(
        r#"DO $do$ BEGIN
               EXECUTE 'CREATE TABLE people (id int PRIMARY KEY, name text, note text)';
               EXECUTE $$INSERT INTO people VALUES (1, E'M\374ller', 'ann@example.org'),
                   (2, E'M\303\274ller', E'\377bob@example.org')$$;
               EXECUTE $$COMMENT ON TABLE people IS E'M\374ller'$$;
               EXECUTE E'CREATE TABLE "odd\351" (a int)';
               EXECUTE E'CREATE TABLE columns (a text, "odd\351" text)';
               EXECUTE $$INSERT INTO columns VALUES ('x', 'y')$$;
           END $do$"#,
    );
    for fields in [json!({}), json!({ "mode": "full" }), json!({ "sample_rows": 1 })] {
        let connector = fixture.connector(fields.clone());
        let tables = list(&connector, &fixture.key(&["public"])).await;
        let mut named: Vec<_> =
            tables.iter().map(|found| (String::from_utf8_lossy(&found.name), found.reason)).collect();
        named.sort();
        // What has no name to ask for it by is named as well as it can be.
        let expected = [
            ("columns".into(), None),
            ("columns/odd\u{fffd}".into(), Some(Reason::ReadError)),
            ("odd\u{fffd}".into(), Some(Reason::ReadError)),
            ("people".into(), None),
        ];
        assert_eq!(named, expected, "{fields}");
        let (rows, _) = fixture.read(&connector, "public", "columns").await.unwrap();
        assert_eq!(rows, [[Some("x".to_owned())]]);
    }
    let connector = fixture.connector(json!({}));
    let record = fixture.record(&connector, "public", "people").await;
    let object = object(fixture.key(&["public", "people"]), &record);
    let values = tokio::task::spawn_blocking(move || {
        let mut open = connector.open(&object).and_then(Opened::into_rows).unwrap();
        let mut batch = RowBatch::new(3);
        open.rows.fill(&mut batch).unwrap();
        let value = |row, column: usize| batch.columns[column].get(row).unwrap().to_vec();
        (0..batch.rows()).map(|row| [value(row, 1), value(row, 2)]).collect::<Vec<_>>()
    });
    assert_eq!(
        values.await.unwrap(),
        [
            [b"M\xfcller".to_vec(), b"ann@example.org".to_vec()],
            ["M\u{fc}ller".as_bytes().to_vec(), b"\xffbob@example.org".to_vec()],
        ]
    );
}
