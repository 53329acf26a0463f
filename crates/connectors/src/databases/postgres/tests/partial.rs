//! Tables of which something is hidden or cannot be read: the rest is read, and what is missing is named.

use domesday_model::Reason;

use super::*;

/// The first values of rows, in order.
fn numbers(rows: &[Vec<Cell>]) -> Vec<usize> {
    let mut numbers: Vec<usize> = rows.iter().map(|row| row[0].as_ref().unwrap().parse().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

#[tokio::test]
async fn rows_that_a_policy_hides_are_never_missing_without_a_word() {
    let fixture = Fixture::new(
        "CREATE TABLE tenants (id int PRIMARY KEY, mail text);
         INSERT INTO tenants SELECT n, 'user' || n || '@example.org' FROM generate_series(1, 1000) AS n;
         CREATE TABLE hidden AS TABLE tenants; CREATE TABLE plain AS TABLE tenants;
         CREATE VIEW seen WITH (security_invoker) AS SELECT * FROM tenants;
         ALTER TABLE tenants ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON tenants USING (id <= 300);
         ALTER TABLE hidden ENABLE ROW LEVEL SECURITY; ANALYZE",
    );
    let user = fixture.role("");
    fixture.sql(&format!("GRANT SELECT ON ALL TABLES IN SCHEMA public TO {user}"));
    for mut fields in [json!({}), json!({ "sample_rows": 100 })] {
        fields["user"] = json!(user);
        let connector = fixture.connector(fields);
        for table in ["tenants", "seen", "hidden"] {
            let (rows, ended) = fixture.read_to_its_end(&connector, "public", table).await;
            assert!(numbers(&rows).iter().all(|number| *number <= 300), "{table}");
            assert_eq!(rows.is_empty(), table == "hidden");
            let error = ended.unwrap_err();
            assert_eq!(error.reason, Reason::PermissionDenied, "{error}");
            assert!(error.detail.contains("a row-level policy applies"), "{error}");
            assert!(error.detail.contains("BYPASSRLS"), "{error}");
        }
        let (rows, ended) = fixture.read_to_its_end(&connector, "public", "plain").await;
        assert!(ended.is_ok() && !rows.is_empty(), "{ended:?}");
    }
    // Ranges are of the rows that are shown, and each is named.
    let connector = fixture.connector(json!({ "user": user, "mode": "full", "part_rows": 100 }));
    let (mut rows, key) = (Vec::new(), fixture.key(&["public", "tenants"]));
    for part in list(&connector, &key).await {
        let object = object(key.join(&part.name), &part);
        let (of_part, _, ended) = read_to_its_end(&connector, object).await.unwrap();
        assert_eq!(ended.unwrap_err().reason, Reason::PermissionDenied);
        rows.extend(of_part);
    }
    assert_eq!(numbers(&rows), (1..=300).collect::<Vec<_>>());
    // Whoever may see all rows reads all of them.
    fixture.sql(&format!("ALTER ROLE {user} BYPASSRLS"));
    let connector = fixture.connector(json!({ "user": user }));
    let (rows, ended) = fixture.read_to_its_end(&connector, "public", "tenants").await;
    assert_eq!((rows.len(), ended), (1_000, Ok(())));
}

#[tokio::test]
async fn a_column_that_cannot_be_read_costs_only_itself() {
    let fixture = Fixture::new(
        "CREATE TABLE people AS SELECT n AS id, 'user' || n || '@example.org' AS mail FROM generate_series(1, 500) AS n;
         CREATE VIEW broken AS SELECT id, mail::int AS number, mail, 1 / (id - id) AS ratio FROM people;
         CREATE FUNCTION own() RETURNS text LANGUAGE sql STABLE AS $$ SELECT 'hunter2' $$;
         REVOKE EXECUTE ON FUNCTION own() FROM PUBLIC;
         CREATE VIEW guarded WITH (security_invoker) AS SELECT id, own() AS secret, mail FROM people;
         CREATE TYPE geometry AS (x int, y int);
         CREATE TABLE shapes AS SELECT 1 AS id, ROW(1, 2)::geometry AS shape",
    );
    let user = fixture.role("");
    fixture.sql(&format!("GRANT SELECT ON ALL TABLES IN SCHEMA public TO {user}"));
    for mut fields in [json!({}), json!({ "sample_rows": 100 }), json!({ "mode": "full" })] {
        fields["user"] = json!(user);
        let connector = fixture.connector(fields);
        for (table, columns, reason) in [
            ("broken", &["number", "ratio"][..], Reason::ReadError),
            ("guarded", &["secret"], Reason::PermissionDenied),
        ] {
            let (rows, ended) = fixture.read_to_its_end(&connector, "public", table).await;
            assert!(rows.len() > 20, "{table}: {} rows, {ended:?}", rows.len());
            for row in &rows {
                assert!(row[2].as_ref().unwrap().ends_with("@example.org"));
                assert_eq!((&row[1], row.get(3).cloned().flatten()), (&None, None));
            }
            let error = ended.unwrap_err();
            assert_eq!(error.reason, reason, "{error}");
            for column in columns {
                assert!(error.detail.contains(&format!("column {column} cannot be read")), "{error}");
            }
            assert!(!error.detail.contains("column id") && !error.detail.contains("example.org"), "{error}");
        }
        let (rows, ended) = fixture.read_to_its_end(&connector, "public", "shapes").await;
        assert_eq!((rows, ended), (vec![vec![Some("1".to_owned()), Some("(1,2)".to_owned())]], Ok(())));
    }
}

#[tokio::test]
async fn a_right_that_was_taken_away_since_the_listing_costs_its_column() {
    let fixture = Fixture::new("CREATE TABLE t AS SELECT 1 AS a, 'x' AS b, 'y' AS c");
    let user = fixture.role("");
    fixture.sql(&format!("GRANT SELECT (a, b, c) ON t TO {user}"));
    let connector = fixture.connector(json!({ "user": user }));
    let record = fixture.record(&connector, "public", "t").await;
    fixture.sql(&format!("REVOKE SELECT (b) ON t FROM {user}"));
    let object = object(fixture.key(&["public", "t"]), &record);
    let (rows, _, ended) = read_to_its_end(&connector, object).await.unwrap();
    assert_eq!(rows, [[Some("1".to_owned()), None, Some("y".to_owned())]]);
    let error = ended.unwrap_err();
    assert_eq!(error.reason, Reason::PermissionDenied);
    assert!(error.detail.contains("column b cannot be read") && !error.detail.contains("policy"), "{error}");
}
