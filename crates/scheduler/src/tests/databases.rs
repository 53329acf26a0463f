//! Objects of several tables, and files that are databases.

use domesday_model::Reason;

use super::support::*;
use super::table::*;

fn customers(rows: usize) -> Table {
    let row = |n: usize| vec![text(n.to_string()), text(key(n))];
    Table { key: vec![0], ..Table::new(&["id", "token"], (0..rows).map(row).collect()) }
}

fn shop() -> Vec<u8> {
    database_file(&[("customers", &customers(5)), ("orders", &customers(1))])
}

#[test]
fn a_table_that_fails_is_lost_and_the_others_are_not() {
    let tables = || {
        Body::Tables(vec![
            ("customers", Some(Table { batch: 2, ..customers(5) })),
            ("secret", None),
            ("broken", Some(Table { end: TableEnd::Panics, ..customers(0) })),
            ("orders", Some(customers(1))),
        ])
    };
    let first = Survey::new(1).run(vec![tables(), tables()]);
    let mut places = Vec::new();
    for n in 0..2 {
        places.extend(vec![format!("o{n}!/customers!/token"); 5]);
        places.push(format!("o{n}!/orders!/token"));
    }
    assert_eq!(first.places(), places);
    let lost = |n: usize| {
        [
            (format!("o{n}!/broken"), "failed", Some(Reason::Panicked)),
            (format!("o{n}!/secret"), "failed", Some(Reason::PermissionDenied)),
        ]
    };
    assert_eq!(first.reported(), [lost(0), lost(1)].concat());
    assert_eq!((first.totals.objects, first.totals.nested_objects), (2, 2 * 4));
    for (threads, frontier) in [(2, 1), (4, 64)] {
        assert_eq!(Survey::new(threads).frontier(frontier).run(vec![tables(), tables()]), first);
    }
}

#[test]
fn the_tables_of_a_database_are_inside_it_wherever_it_is() {
    let file = shop();
    let bodies = || {
        vec![
            Body::bytes(file.clone()),
            Body::stream(file.clone()),
            Body::bytes(gzip(&file)),
            Body::bytes(tar(&[("app.db", &file), ("z", key(7).as_bytes())])),
            Body::stream(gzip(&tar(&[("app.db", &file), ("z", key(7).as_bytes())]))),
        ]
    };
    let first = Survey::new(1).run(bodies());
    for (n, inside) in ["o0", "o1", "o2", "o3!/app.db", "o4!/app.db"].into_iter().enumerate() {
        let of = |place: &&String| place.starts_with(&format!("o{n}"));
        let places: Vec<String> = first.places().iter().filter(of).cloned().collect();
        let mut expected = vec![format!("{inside}!/customers!/token"); 5];
        expected.push(format!("{inside}!/orders!/token"));
        expected.extend((n > 2).then(|| format!("o{n}!/z")));
        assert_eq!(places, expected);
    }
    assert_eq!(first.reported(), []);
    let found = &first.findings[1];
    assert_eq!((found.row.as_deref(), found.position.line), (Some("1"), 2));
    let seen: Vec<_> =
        first.tables[..2].iter().map(|t| (t.table.to_string(), t.part.to_string(), t.rows)).collect();
    let expected = [("o0!/customers", "o0", 5), ("o0!/orders", "o0", 1)];
    assert_eq!(seen, expected.map(|(table, part, rows)| (table.to_owned(), part.to_owned(), rows)));
    // Per database its two tables; in the archives the database and its neighbour, too.
    assert_eq!((first.totals.objects, first.totals.nested_objects), (5, 5 * 2 + 2 * 2));

    for (threads, frontier) in [(2, 1), (4, 64)] {
        assert_eq!(Survey::new(threads).frontier(frontier).run(bodies()), first);
    }
}

#[test]
fn a_database_that_cannot_be_opened_is_bytes() {
    let file = damaged_database(&key(1));
    let outcome = Survey::new(1).run(vec![
        Body::bytes(file.clone()),
        Body::stream(file.clone()),
        Body::bytes(gzip(&file)),
    ]);
    assert_eq!(outcome.places(), ["o0", "o1", "o2"]);
    assert_eq!(outcome.findings[0].span.start, file.len() as u64 - 12);
    assert_eq!(outcome.findings[2].decoding[..], ["gzip"]);
    let flawed = ["o0", "o1", "o2"].map(|name| (name.to_owned(), "partial", Some(Reason::DamagedArchive)));
    assert_eq!(outcome.reported(), flawed);
}

#[test]
fn limits_hold_for_databases() {
    let mut survey = Survey::new(1);
    survey.options.limits.max_entries = 1;
    let outcome = survey.run(vec![Body::bytes(shop())]);
    assert_eq!(outcome.places(), vec!["o0!/customers!/token"; 5]);
    assert_eq!(outcome.reported(), [("o0".to_owned(), "partial", Some(Reason::EntryLimit))]);

    // Too deep to be opened, or too large to be held: bytes.
    let file = database_file(&[("customers", &customers(1))]);
    let mut survey = Survey::new(1);
    survey.options.limits.max_depth = 1;
    assert_eq!(survey.run(vec![Body::bytes(gzip(&file))]).places(), ["o0"]);
    let mut survey = Survey::new(1);
    survey.options.limits.max_buffered = 100;
    assert_eq!(survey.run(vec![Body::stream(file)]).places(), ["o0"]);
}

#[test]
fn a_database_in_a_cell_is_inside_its_column() {
    let file = database_file(&[("t", &customers(1))]);
    let table = Table::new(&["file"], vec![vec![text("x")], vec![text(file)]]);
    let outcome = Survey::new(1).run(vec![Body::table(table)]);
    assert_eq!(outcome.places(), ["o0!/file!/t!/token"]);
    assert_eq!(outcome.findings[0].row.as_deref(), Some("0"), "the innermost row");
    assert_eq!(outcome.tables.len(), 2);
}
