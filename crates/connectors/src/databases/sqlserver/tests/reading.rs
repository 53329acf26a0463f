//! What is read: every type, long values, samples, and ranges of keys.

use domesday_testkit::tds::examples::{every_type, table_of_every_type};
use domesday_testkit::tds::model::Kind;
use domesday_testkit::tds::{Fault, ServerError};

use super::*;

fn text(rows: &Rows, column: usize) -> Vec<String> {
    rows.iter().map(|row| String::from_utf8(row[column].clone().unwrap()).unwrap()).collect()
}

#[tokio::test]
async fn every_type_comes_as_exact_text() {
    let site = Site::new(shop(vec![table_of_every_type("every")]));
    let connector = site.connector(json!({}));
    let record = table(&*connector, "shop/dbo/every").await;
    let rows = read(&*connector, "shop/dbo/every", &record).unwrap();
    assert_eq!(rows.len(), 3);
    assert!(rows[1].iter().all(Option::is_none));
    for (place, (name, _, _, expected)) in every_type().into_iter().enumerate() {
        for row in [0, 2] {
            let found = rows[row][place].as_deref().map(String::from_utf8_lossy);
            assert_eq!(found.as_deref(), Some(expected), "column {name}");
        }
    }
}

#[tokio::test]
async fn hostile_names_are_read_like_any_other() {
    let name = "t'\"]/%\u{1f511}\n--";
    let hostile = Table::new(
        name,
        &[
            ("]; DROP TABLE x --", Type::NVarChar(Some(20))),
            ("a]]b", Type::VarChar(None)),
            ("@P1", Type::Int),
        ],
        &[2],
        vec![vec![Value::text("ann@example.org"), Value::text("x"), Value::Int(7)]],
    );
    let site = Site::new(vec![Database::new("d;'b", vec![Schema::new("s].[t", vec![hostile])])]);
    let connector = site.connector(json!({}));
    let key = "d;'b/s].[t/t'\"]%2F%25\u{1f511}\n--";
    let record = table(&*connector, key).await;
    let rows = read(&*connector, key, &record).unwrap();
    assert_eq!(rows, [[Some(b"ann@example.org".to_vec()), Some(b"x".to_vec()), Some(b"7".to_vec())]]);
    assert_eq!(
        site.selects().last().unwrap(),
        "SELECT []]; DROP TABLE x --], CONVERT(nvarchar(max), SUBSTRING([a]]]]b], 1, 262145)), [@P1] \
         FROM [s]].[t].[t'\"]]/%\u{1f511}\n--]"
    );
}

#[tokio::test]
async fn long_values_are_cut_by_the_server_and_said_to_be() {
    let most = RowBatch::VALUE_MAX;
    let columns = [("id", Type::Int), ("text", Type::NVarChar(None)), ("bytes", Type::VarBinary(None))];
    let row = |id, length: usize, letter: &str| {
        vec![Value::Int(id), Value::Text(letter.repeat(length)), Value::Bytes(vec![7; length])]
    };
    // The last text is cut by the server within a character of two units.
    let rows = vec![row(1, most, "a"), row(2, most + 1, "a"), row(3, most / 2 + 50, "ä"), row(4, most, "🔑")];
    let site = Site::new(shop(vec![Table::new("long", &columns, &[0], rows)]));
    let connector = site.connector(json!({}));
    let record = table(&*connector, "shop/dbo/long").await;
    let cells = read_cells(&*connector, "shop/dbo/long", &record, |batch, column, row| {
        let cell = batch.columns[column].get(row).unwrap();
        let start = String::from_utf8_lossy(&cell[..cell.len().min(4)]).into_owned();
        (cell.len(), batch.columns[column].is_cut(row), start)
    })
    .unwrap();
    let of = |column: usize| -> Vec<(usize, bool)> {
        cells.iter().map(|row| (row[column].0, row[column].1)).collect()
    };
    assert_eq!(of(1), [(most, false), (most, true), (most, true), (most, true)]);
    assert_eq!(of(2), [(most, false), (most, true), (most / 2 + 50, false), (most, false)]);
    assert_eq!(cells[3][1].2, "🔑");
}

#[tokio::test]
async fn a_sample_is_spread_over_the_table_and_the_same_for_a_seed() {
    let site = Site::new(shop(vec![numbered("big", 20_000)]));
    let sample = |seed: u64| {
        let connector = site.connector(json!({ "sample_rows": 1_000, "seed": seed }));
        async move {
            let record = table(&*connector, "shop/dbo/big").await;
            let rows = read(&*connector, "shop/dbo/big", &record).unwrap();
            text(&rows, 0).iter().map(|id| id.parse::<u64>().unwrap()).collect::<Vec<_>>()
        }
    };
    let (first, again, other) = (sample(1).await, sample(1).await, sample(2).await);
    assert_eq!(first, again);
    assert_ne!(first, other);
    assert!((500..2_000).contains(&first.len()), "{}", first.len());
    for quarter in 0..4 {
        let share = first.iter().filter(|id| (**id - 1) / 5_000 == quarter).count();
        assert!(share * 10 > first.len(), "{share} of {} in quarter {quarter}", first.len());
    }
    assert!(site.selects().iter().any(|sql| sql.ends_with(
        "FROM [dbo].[big] TABLESAMPLE SYSTEM (5.000000 PERCENT) REPEATABLE (1)"
    )));
}

#[tokio::test]
async fn what_cannot_be_sampled_gives_its_first_rows() {
    let mut view = numbered("view", 300);
    (view.kind, view.key) = (Kind::View, Vec::new());
    let site = Site::new(shop(vec![view, numbered("memory", 300), numbered("small", 50)]));
    // As of a table that is kept in memory.
    let error = domesday_testkit::tds::ServerError::new(10794, 16, "TABLESAMPLE is not supported.");
    site.server.fail("TABLESAMPLE", 1, domesday_testkit::tds::Fault::Error(error));
    let connector = site.connector(json!({ "sample_rows": 100 }));
    let found = walk(&*connector).await;
    for (name, rows) in [("view", 100), ("memory", 100), ("small", 50)] {
        let key = format!("shop/dbo/{name}");
        let record = found[&key].as_ref().unwrap();
        assert_eq!(read(&*connector, &key, record).unwrap().len(), rows, "{name}");
    }
}

/// The ids of all rows of a table that is read in parts, part by part.
async fn parts(site: &Site, name: &str, column: usize, part_rows: u64) -> Vec<Vec<String>> {
    let connector = site.connector(json!({ "mode": "full", "part_rows": part_rows }));
    let container = ObjectKey::new(format!("shop/dbo/{name}"));
    assert_eq!(table(&*connector, &container.to_string()).await.kind, RecordKind::PartedTable);
    // Each page from where the one before stopped, as another process would go on.
    let mut ranges = Vec::new();
    let mut resume_point: Option<String> = None;
    loop {
        let mut listing = connector.list(&container, resume_point.as_deref()).await.unwrap();
        ranges.extend(listing.next_batch(2).await.unwrap());
        resume_point = listing.resume_point();
        if resume_point.is_none() {
            break;
        }
    }
    let one = |range: &UnitRecord| {
        let key = container.join(&range.name).to_string();
        text(&read(&*connector, &key, range).unwrap(), column)
    };
    ranges.iter().map(one).collect()
}

#[tokio::test]
async fn a_table_is_read_whole_in_ranges_of_its_key() {
    let site = Site::new(shop(vec![numbered("orders", 1_050)]));
    let parts = parts(&site, "orders", 0, 100).await;
    assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [[100; 10].as_slice(), &[50]].concat());
    assert_eq!(parts.concat(), (1..=1_050).map(|id| id.to_string()).collect::<Vec<_>>());
}

#[tokio::test]
async fn keys_of_several_columns_and_every_type_part_a_table_without_loss() {
    let moment = |n: i64, offset: i16| {
        Value::moment((2024, 1, 1 + n % 28), (n % 24, n % 60, 0), n % 10_000_000, offset)
    };
    type Make = Box<dyn Fn(i64) -> Value>;
    let keys: Vec<(&str, Type, Make)> = vec![
        ("int", Type::Int, Box::new(|n| Value::Int(-n))),
        ("tinyint", Type::BigInt, Box::new(|n| Value::Int(i64::MAX - n))),
        ("decimal", Type::Decimal(20, 3), Box::new(|n| Value::Decimal(i128::from(n) * 7 - 900))),
        ("money", Type::Money, Box::new(|n| Value::Int(n * 3 - 500))),
        ("float", Type::Float, Box::new(|n| Value::Float(1.0 / (n as f64 + 1.0)))),
        ("varchar", Type::VarChar(Some(20)), Box::new(|n| Value::Text(format!("K{:x}", n * 7919 % 1_009)))),
        ("nvarchar", Type::NVarChar(Some(20)), Box::new(|n| Value::Text(format!("日'{n}]")))),
        (
            "datetime",
            Type::DateTime,
            Box::new(|n| Value::moment((2024, 1, 1), (0, 0, n % 60), n / 60 * 30_000, 0)),
        ),
        ("datetime2", Type::DateTime2(7), Box::new(move |n| moment(n, 0))),
        ("offset", Type::DateTimeOffset(7), Box::new(move |n| moment(n, (n % 5 * 60) as i16))),
        ("date", Type::Date, Box::new(|n| Value::Moment { days: 700_000 + n, ticks: 0, offset: 0 })),
        ("time", Type::Time(7), Box::new(|n| Value::Moment { days: 0, ticks: n * 12_345_678, offset: 0 })),
        (
            "guid",
            Type::UniqueIdentifier,
            Box::new(|n| {
                let hash = (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
                Value::Guid([hash, hash].concat().try_into().unwrap())
            }),
        ),
        ("binary", Type::Binary(4), Box::new(|n| Value::Bytes((n as u32 * 31).to_be_bytes().to_vec()))),
        ("node", Type::Clr("hierarchyid"), Box::new(|n| Value::Clr(vec![1], format!("/{n:04}/")))),
    ];
    for (name, of, make) in keys {
        // The second column of the key, in front of the first in the table.
        let columns = [("n", Type::Int), ("k", of), ("group", Type::SmallInt)];
        let rows = (0..350).map(|n| vec![Value::Int(n), make(n), Value::Int(n % 3)]).collect();
        let site = Site::new(shop(vec![Table::new(name, &columns, &[2, 1], rows)]));
        let parts = parts(&site, name, 0, 100).await;
        assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [100, 100, 100, 50], "{name}");
        let mut found: Vec<i64> = parts.concat().iter().map(|n| n.parse().unwrap()).collect();
        found.sort_unstable();
        assert_eq!(found, (0..350).collect::<Vec<_>>(), "{name}");
    }
}

#[tokio::test]
async fn a_range_compares_keys_column_by_column() {
    let columns = [("a", Type::Int), ("b", Type::NVarChar(Some(9)))];
    let rows = (0..300).map(|n| vec![Value::Int(n / 7), Value::Text(format!("{n:03}"))]).collect();
    let site = Site::new(shop(vec![Table::new("pairs", &columns, &[0, 1], rows)]));
    parts(&site, "pairs", 1, 100).await;
    let ranges: Vec<_> =
        site.server.requests().into_iter().filter(|request| request.sql.contains("[a] <=")).collect();
    assert!(ranges[1].sql.ends_with(
        "FROM [dbo].[pairs] WHERE ([a] >= CONVERT(int, @P1) AND (([a] > CONVERT(int, @P1)) \
         OR ([a] = CONVERT(int, @P1) AND [b] > CONVERT(nvarchar(9), @P2)))) \
         AND ([a] <= CONVERT(int, @P3) AND (([a] < CONVERT(int, @P3)) \
         OR ([a] = CONVERT(int, @P3) AND [b] <= CONVERT(nvarchar(9), @P4)))) ORDER BY [a], [b]"
    ));
    assert_eq!(ranges[1].variables["P2"], Value::text("099"));
}

#[tokio::test]
async fn a_key_that_cannot_be_written_parts_nothing() {
    let columns = [("k", Type::SqlVariant), ("n", Type::Int)];
    let rows =
        (0..300).map(|n| vec![Value::Variant(Box::new((Type::Int, Value::Int(n)))), Value::Int(n)]).collect();
    let variant = Table::new("variant", &columns, &[0], rows);
    let columns = [("k", Type::VarChar(Some(9))), ("n", Type::Int)];
    let rows = (0..300).map(|n| vec![Value::Text(n.to_string()), Value::Int(n)]).collect();
    let mut foreign = Table::new("foreign", &columns, &[0], rows);
    foreign.columns[0].is_foreign_text = true;
    let site = Site::new(shop(vec![variant, foreign]));
    let connector = site.connector(json!({ "mode": "full", "part_rows": 100 }));
    for key in ["shop/dbo/variant", "shop/dbo/foreign"] {
        let record = table(&*connector, key).await;
        assert_eq!((record.kind, shape(&record).primary_key), (RecordKind::Table, Vec::new()));
        assert_eq!(read(&*connector, key, &record).unwrap().len(), 300);
    }
}

#[tokio::test]
async fn columns_that_only_clients_can_decrypt_come_as_bytes() {
    let mut vault = Table::new(
        "vault",
        &[("id", Type::Int), ("ssn", Type::NVarChar(Some(11)))],
        &[0],
        vec![vec![Value::Int(1), Value::Bytes(vec![1, 2, 3])]],
    );
    vault.columns[1].is_encrypted = true;
    let site = Site::new(shop(vec![vault]));
    let connector = site.connector(json!({}));
    let record = table(&*connector, "shop/dbo/vault").await;
    let rows = read(&*connector, "shop/dbo/vault", &record).unwrap();
    assert_eq!(rows, [[Some(b"1".to_vec()), Some(vec![1, 2, 3])]]);
}

#[tokio::test]
async fn a_table_that_a_security_policy_filters_is_read_and_named() {
    let mut tenants = numbered("tenants", 3);
    tenants.is_filtered = true;
    let site = Site::new(shop(vec![tenants, numbered("plain", 3)]));
    let connector = site.connector(json!({}));
    let record = table(&*connector, "shop/dbo/tenants").await;
    let mut open = connector.open(&object("shop/dbo/tenants", &record)).unwrap().into_rows().unwrap();
    let mut batch = RowBatch::new(2);
    open.rows.fill(&mut batch).unwrap();
    assert_eq!(batch.rows(), 3);
    batch.clear();
    let told = open.rows.fill(&mut batch).unwrap_err();
    assert_eq!(told.reason, Reason::PermissionDenied);
    assert!(told.detail.contains("a security policy applies"), "{told}");
    drop(open);
    let record = table(&*connector, "shop/dbo/plain").await;
    assert_eq!(read(&*connector, "shop/dbo/plain", &record).unwrap().len(), 3);
    // Servers that only speak the protocol have no such policies to ask for.
    let missing = ServerError::new(208, 16, "Invalid object name 'sys.security_policies'.");
    site.server.fail("sys.security_policies", usize::MAX, Fault::Error(missing));
    assert_eq!(read(&*connector, "shop/dbo/plain", &record).unwrap().len(), 3);
}
