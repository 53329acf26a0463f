//! What is listed, level by level, and what sessions do for it.

use domesday_model::TableKind;
use domesday_testkit::tds::examples::table_of_every_type;
use domesday_testkit::tds::model::Kind;

use super::*;

/// Several databases, one of them closed, one with hostile names.
fn site() -> Site {
    let mut refused = numbered("payroll", 2);
    refused.is_refused = true;
    let mut partly = numbered("partly", 2);
    partly.columns[1].is_refused = true;
    let mut view = numbered("recent", 3);
    (view.kind, view.key) = (Kind::View, Vec::new());
    let mut stored = numbered("totals", 3);
    (stored.kind, stored.key) = (Kind::IndexedView, Vec::new());
    let mut customers = numbered("customers", 5);
    customers.comment = Some("people, and what they bought".to_owned());
    customers.columns[1].comment = Some("where we write to".to_owned());
    let shop = Database::new(
        "shop",
        vec![
            Schema::new("dbo", vec![customers, refused, partly, view, stored]),
            Schema::new("empty", Vec::new()),
        ],
    );
    let mut closed = Database::new("closed", vec![Schema::new("dbo", vec![numbered("secrets", 1)])]);
    closed.is_refused = true;
    let odd = Database::new(
        "a]b; DROP DATABASE shop--",
        vec![Schema::new(
            "x].[y",
            vec![Table::new(
                "t'\"]/%\u{1f511} --",
                &[("]; SELECT 1 --", Type::NVarChar(Some(20))), ("select", Type::Int)],
                &[1],
                vec![vec![Value::text("ann@example.org"), Value::Int(7)]],
            )],
        )],
    );
    Site::new(vec![shop, closed, odd])
}

#[tokio::test]
async fn a_discovery_finds_every_level_and_names_what_is_left_out() {
    let site = site();
    let found = walk(&*site.connector(json!({}))).await;
    let excluded = (RecordKind::Skipped, Some(Reason::ServersOwn));
    let denied = (RecordKind::Skipped, Some(Reason::PermissionDenied));
    let odd = "a]b; DROP DATABASE shop--";
    let mut expected: Vec<(String, (RecordKind, Option<Reason>))> = Vec::new();
    for name in ["master", "model", "msdb", "tempdb"] {
        expected.push((name.to_owned(), excluded));
    }
    expected.push(("closed".to_owned(), denied));
    for database in ["shop", odd] {
        expected.push((database.to_owned(), (RecordKind::Database, None)));
        for schema in ["INFORMATION_SCHEMA", "db_datareader", "db_owner", "guest", "sys"] {
            expected.push((format!("{database}/{schema}"), excluded));
        }
    }
    for (key, kind) in [
        ("shop/dbo", RecordKind::Schema),
        ("shop/empty", RecordKind::Schema),
        ("shop/dbo/customers", RecordKind::Table),
        ("shop/dbo/partly", RecordKind::Table),
        ("shop/dbo/recent", RecordKind::Table),
        ("shop/dbo/totals", RecordKind::Table),
    ] {
        expected.push((key.to_owned(), (kind, None)));
    }
    expected.push(("shop/dbo/payroll".to_owned(), denied));
    expected.push(("shop/dbo/partly/mail".to_owned(), denied));
    expected.push((format!("{odd}/x].[y"), (RecordKind::Schema, None)));
    expected.push((format!("{odd}/x].[y/t'\"]%2F%25\u{1f511} --"), (RecordKind::Table, None)));
    expected.sort_by(|a, b| a.0.cmp(&b.0));
    let found: Vec<_> =
        kinds(&found).into_iter().map(|(key, kind, reason)| (key.to_owned(), (kind, reason))).collect();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_targeted_scan_enters_only_its_databases() {
    let site = site();
    let connector = site.connector(json!({ "databases": ["shop", "closed", "gone"], "exclude": ["*.*.t*"] }));
    let found = walk(&*connector).await;
    // A database that lets nobody in is there once as what was configured, and fails when it is listed.
    assert_eq!(found["closed"].clone().unwrap_err(), Reason::PermissionDenied);
    assert_eq!(found["gone"].clone().unwrap_err(), Reason::PermissionDenied);
    assert_eq!(found["shop/dbo/totals"].as_ref().unwrap().reason, Some(Reason::Excluded));
    assert_eq!(found["shop/dbo/customers"].as_ref().unwrap().kind, RecordKind::Table);
    let entered: Vec<String> = site.server.logins().into_iter().map(|login| login.database).collect();
    assert!(entered.iter().all(|name| ["shop", "closed", "gone"].contains(&name.as_str())), "{entered:?}");
}

#[tokio::test]
async fn a_table_is_listed_with_its_columns_key_counts_and_comments() {
    let site = site();
    let connector = site.connector(json!({ "databases": ["shop"] }));
    let found = walk(&*connector).await;
    let record = found["shop/dbo/customers"].clone().unwrap();
    let customers = shape(&record);
    assert_eq!(record.size, 8_192);
    assert_eq!(customers.kind, TableKind::Table);
    assert_eq!((customers.row_estimate, &customers.primary_key[..]), (Some(5), &[0][..]));
    assert_eq!(customers.comment.as_deref(), Some("people, and what they bought"));
    let columns: Vec<_> = customers
        .columns
        .iter()
        .map(|column| (column.name.as_str(), column.type_name.as_str(), column.comment.as_deref()))
        .collect();
    assert_eq!(columns, [("id", "int", None), ("mail", "nvarchar(100)", Some("where we write to"))]);
    let of = |key: &str| shape(found[key].as_ref().unwrap());
    assert_eq!((of("shop/dbo/recent").kind, of("shop/dbo/recent").row_estimate), (TableKind::View, None));
    assert_eq!(of("shop/dbo/totals").kind, TableKind::MaterializedView);
    assert_eq!(of("shop/dbo/partly").columns.len(), 1);
}

#[tokio::test]
async fn types_are_named_as_they_are_declared() {
    let mut table = table_of_every_type("every");
    table.columns[0].is_encrypted = true;
    let site = Site::new(shop(vec![table]));
    let shape = shape(&self::table(&*site.connector(json!({})), "shop/dbo/every").await);
    let declared: Vec<&str> = shape.columns.iter().map(|column| column.type_name.as_str()).collect();
    assert_eq!(
        declared,
        [
            "int encrypted",
            "bit",
            "tinyint",
            "smallint",
            "bigint",
            "real",
            "float",
            "decimal(38,10)",
            "decimal(16,0)",
            "money",
            "smallmoney",
            "char(5)",
            "varchar(50)",
            "varchar(8000)",
            "varchar(max)",
            "nchar(4)",
            "nvarchar(20)",
            "nvarchar(max)",
            "text",
            "ntext",
            "binary(3)",
            "varbinary(9)",
            "varbinary(max)",
            "image",
            "timestamp",
            "date",
            "time(7)",
            "time(0)",
            "smalldatetime",
            "datetime",
            "datetime",
            "datetime2(7)",
            "datetime2(3)",
            "datetimeoffset(2)",
            "uniqueidentifier",
            "xml",
            "sql_variant",
            "sql_variant",
            "geometry",
            "hierarchyid",
            "[dbo thing]",
        ]
    );
}

#[tokio::test]
async fn many_tables_come_in_pages_each_once() {
    let tables = (0..450).map(|n| numbered(&format!("t{n:03}"), 1)).collect();
    let site = Site::new(shop(tables));
    let connector = site.connector(json!({ "databases": ["shop"] }));
    let mut listing = connector.list(&ObjectKey::new("shop/dbo"), None).await.unwrap();
    let mut names = Vec::new();
    loop {
        match listing.next_batch(1_000).await.unwrap() {
            batch if batch.is_empty() => break,
            batch => names.extend(batch.into_iter().map(|record| String::from_utf8(record.name).unwrap())),
        }
    }
    assert_eq!(names, (0..450).map(|n| format!("t{n:03}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn sessions_say_who_they_are_and_change_nothing() {
    let site = site();
    let connector =
        site.connector(json!({ "application_name": "audit of shops", "lock_timeout_seconds": 7 }));
    let found = walk(&*connector).await;
    for (key, record) in &found {
        if let Ok(record) = record
            && record.kind.is_rows()
        {
            read(&*connector, key, record).unwrap();
        }
    }
    let logins = site.server.logins();
    assert!(logins.len() > 4);
    assert!(logins.iter().all(|login| login.application == "audit of shops" && login.is_read_only));
    let requests = site.server.requests();
    for request in &requests {
        let lines = request.sql.lines().filter(|line| !line.starts_with("--"));
        let first = lines.collect::<String>();
        let is_setting = first.starts_with("SET NOCOUNT ON") || first.starts_with("IF (SELECT d.snapshot");
        assert!(first.starts_with("SELECT") || is_setting, "{first}");
    }
    let settled = requests.iter().filter(|request| request.sql.contains("SET LOCK_TIMEOUT 7000;")).count();
    assert_eq!(settled, logins.len());
}
