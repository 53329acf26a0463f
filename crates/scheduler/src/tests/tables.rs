//! Objects that are read row by row.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domesday_columns::TableScan;
use domesday_content::{HEAD_LEN, ObjectError, OpenTable, RowReader};
use domesday_engine::Scratch;
use domesday_model::{FindingDraft, Position, Reason, RowBatch, Span};

use super::support::*;
use super::table::*;
use crate::*;

/// `id`, `note` with a key in every third row, `mail` with two in every fifth, and a column of nulls.
fn people(rows: usize) -> Table {
    let row = |n: usize| {
        let note = if n.is_multiple_of(3) { format!("a {} b", key(n)) } else { "nothing".to_owned() };
        let mail = if n.is_multiple_of(5) { format!("{} {}", key(n), key(n + 1)) } else { String::new() };
        vec![text(format!("id-{n}")), text(note), text(mail), None]
    };
    let mut table = Table::new(&["id", "note", "mail", "gone"], (0..rows).map(row).collect());
    table.key = vec![0];
    table
}

fn sketches(table: &Table) -> Vec<Vec<u8>> {
    let mut batch = RowBatch::new(table.columns.len());
    for row in &table.rows {
        for (column, cell) in batch.columns.iter_mut().zip(row) {
            match cell {
                None => column.push_null(),
                Some(value) => column.push(value),
            }
        }
    }
    let mut scan = TableScan::new(&table.shape(), &fingerprint_key(), 0);
    scan.scan(&scanner(), &batch, &mut Scratch::new(), &mut Vec::new());
    scan.finish()
}

fn name(value: &str) -> String {
    fingerprint_key().name(value.as_bytes())
}

#[test]
fn findings_tell_column_row_and_place() {
    let mut table = Table::new(&["a", "b", "note"], vec![vec![text("7"), None, text("")]]);
    table.rows.push(vec![text("8"), text("x\ty"), text(format!("\u{20ac}\n {}", key(1)))]);
    table.key = vec![0, 1];
    let outcome = Survey::new(1).run(vec![Body::table(table.clone())]);
    let [found] = &outcome.findings[..] else { panic!("one finding, not {:?}", outcome.findings) };
    assert_eq!((found.location.to_string().as_str(), found.location.nested[0].ordinal), ("o0!/note", 2));
    assert_eq!(found.row.as_deref(), Some(format!("{},{}", name("8"), name("x\ty")).as_str()));
    assert_eq!(found.position, Position { line: 2, column: 4 });
    assert_eq!(found.span, Span { start: 5, end: 17 });
    assert_eq!(found.fingerprint, fingerprint_key().fingerprint(key(1).as_bytes()));
    assert!(!found.preview.contains(&key(1)) && found.decoding.is_empty());
    assert_eq!((outcome.totals.objects, outcome.totals.nested_objects, outcome.reports.len()), (1, 0, 0));
    assert_eq!(outcome.totals.bytes_scanned, 1 + 1 + 3 + 5 + 12);

    let [seen] = &outcome.tables[..] else { panic!("one table") };
    assert_eq!((seen.table.to_string().as_str(), seen.part.to_string().as_str()), ("o0", "o0"));
    assert_eq!((seen.rows, seen.is_sample, &seen.shape), (2, false, &table.shape()));
    assert_eq!(seen.sketches, sketches(&table));

    table.key.clear();
    let outcome = Survey::new(1).run(vec![Body::table(table)]);
    assert_eq!(outcome.findings[0].row.as_deref(), Some("#2"));
}

#[test]
fn any_batch_size_and_any_threads_give_the_same() {
    let run = |threads, frontier, batch| {
        let table = Table { batch, ..people(500) };
        let bodies = (0..3).map(|_| Body::table(table.clone())).collect();
        Survey::new(threads).frontier(frontier).cap(10).run(bodies)
    };
    let first = run(1, 64, 4096);
    assert_eq!(first.tables.len(), 3);
    assert_eq!(first.tables[0].sketches, sketches(&people(500)));
    for (threads, frontier, batch) in [(1, 1, 1), (2, 1, 7), (4, 8, 64), (3, 2, 499), (2, 64, 500)] {
        assert_eq!(run(threads, frontier, batch), first, "{threads} threads, batches of {batch}");
    }
}

#[test]
fn the_cap_is_per_column_and_rule_and_the_rest_is_counted() {
    let outcome = Survey::new(2).cap(4).run(vec![Body::table(Table { batch: 6, ..people(300) })]);
    let rows = |column: &str| {
        let of = |f: &&domesday_model::FindingDraft| f.location.nested[0].name == column.as_bytes();
        // Names of rows are in no order.
        let mut lines: Vec<_> = outcome.findings.iter().filter(of).map(|f| f.position.line).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(rows("note"), [1, 4, 7, 10]);
    assert_eq!(rows("mail"), [1, 1, 6, 6]);
    // 100 notes and twice 60 mails.
    let [report] = &outcome.reports[..] else { panic!("one report") };
    assert_eq!((report.status.as_str(), report.reason, report.overflow), ("scanned", None, 96 + 116));
    assert_eq!((outcome.totals.findings, outcome.totals.overflow), (8, 212));
}

#[test]
fn a_key_that_is_a_finding_is_not_shown() {
    let row = |n: usize| vec![text(key(n)), text(n.to_string()), text(key(n + 100))];
    let mut table = Table::new(&["token", "n", "other"], (0..3).map(row).collect());
    table.key = vec![1, 0];
    let outcome = Survey::new(1).run(vec![Body::table(table)]);
    assert_eq!(outcome.findings.len(), 6);
    for found in &outcome.findings {
        let n = found.position.line as usize - 1;
        let row = format!("{},{}", name(&n.to_string()), name(&key(n)));
        assert_eq!(found.row.as_deref(), Some(row.as_str()));
    }
}

#[test]
fn a_range_has_its_findings_under_its_table_and_its_flaws_under_itself() {
    let mut table = Table { range_of: Some("db/people"), end: TableEnd::Fails, ..people(4) };
    table.rows[0].swap_remove(3);
    table.rows[0].push(text(tar(&[("a", key(9).as_bytes())])));
    let outcome = Survey::new(1).cap(1).run(vec![Body::table(table)]);
    assert_eq!(outcome.places(), ["db/people!/gone!/a", "db/people!/mail", "db/people!/note"],);
    assert_eq!(outcome.reported(), [("o0".to_owned(), "partial", Some(Reason::ReadError))]);
    assert_eq!(outcome.tables[0].table.to_string(), "db/people");
    assert_eq!(outcome.tables[0].part.to_string(), "o0");
}

#[test]
fn what_was_read_before_an_error_counts() {
    let table = |end| Body::table(Table { end, batch: 2, ..people(7) });
    let ends = [TableEnd::Reached, TableEnd::Fails, TableEnd::Panics, TableEnd::Ragged];
    let outcome = Survey::new(2).run(ends.map(table).to_vec());
    // Rows 0 to 6 have 3 notes and twice 2 mails; what is read beside a panic or half a row is lost.
    let found =
        |n: usize| outcome.findings.iter().filter(|f| f.location.key.to_string() == format!("o{n}")).count();
    assert_eq!([0, 1, 2, 3].map(found), [7, 7, 6, 6]);
    let expected = [
        ("o1", "partial", Reason::ReadError),
        ("o2", "partial", Reason::Panicked),
        ("o3", "partial", Reason::ReadError),
    ];
    assert_eq!(outcome.reported(), expected.map(|(name, status, why)| (name.to_owned(), status, Some(why))));
    assert_eq!(outcome.reports[0].detail, "the server is gone");
    let seen: Vec<_> = outcome.tables.iter().map(|t| (t.part.to_string(), t.rows, t.is_sample)).collect();
    let seen: Vec<_> =
        seen.iter().map(|(part, rows, is_sample)| (part.as_str(), *rows, *is_sample)).collect();
    assert_eq!(seen, [("o0", 7, false), ("o1", 7, true), ("o3", 6, true)]);

    let outcome = Survey::new(1).run(vec![Body::table(Table { end: TableEnd::Fails, ..people(0) })]);
    assert_eq!(outcome.reported(), [("o0".to_owned(), "failed", Some(Reason::ReadError))]);
    assert_eq!(outcome.tables, []);
}

#[test]
fn an_empty_table_is_seen() {
    let outcome = Survey::new(1).run(vec![Body::table(people(0)), Body::table(Table::new(&[], Vec::new()))]);
    assert_eq!((outcome.tables.len(), outcome.reports.len(), outcome.totals.objects), (2, 0, 2));
    assert_eq!((outcome.tables[0].rows, outcome.tables[0].sketches.len()), (0, 4));
}

#[test]
fn a_table_without_end_stops_when_it_is_cancelled() {
    let core = core(CoreConfig::for_threads(2));
    let sink = Arc::new(Collector::default());
    let table = Body::table(Table { end: TableEnd::Never, batch: 3, ..people(10) });
    let source = memory(vec![table, Body::bytes(key(1))]);
    let handle = core.submit(packet(source, &sink, options()));
    while core.metrics().scan_count < 100 {
        std::thread::yield_now();
    }
    handle.cancel();
    let frontier = Arc::clone(core.frontier());
    core.shutdown();
    assert_eq!(frontier.in_flight(), 0);
    let outcome = outcome(&sink);
    assert!(outcome.totals.cancelled && outcome.tables.is_empty());
}

#[test]
fn allowed_and_doubtful_values_are_no_findings() {
    let allow = format!("fingerprints = ['{}']", fingerprint_key().fingerprint(key(0).as_bytes()));
    let outcome = Survey::new(1).allow(&allow).run(vec![Body::table(people(1))]);
    let is_reported = |found: &&FindingDraft| found.suppressed.is_none();
    let reported: Vec<_> =
        outcome.findings.iter().filter(is_reported).map(|found| found.fingerprint).collect();
    assert_eq!(reported, [fingerprint_key().fingerprint(key(1).as_bytes())]);
    let mut survey = Survey::new(1);
    survey.options.min_score = domesday_model::Score(101);
    assert_eq!(survey.run(vec![Body::table(people(9))]).findings, []);
}

#[test]
fn a_value_that_was_cut_makes_the_table_partial() {
    let mut table = people(3);
    table.value_max = 30;
    table.rows[1][1] = text(format!("{} {}", key(7), "x".repeat(90)));
    table.rows[2][2] = text("y".repeat(31));
    let outcome = Survey::new(1).run(vec![Body::table(table)]);
    let [report] = &outcome.reports[..] else { panic!("one report") };
    assert_eq!((report.status.as_str(), report.reason), ("partial", Some(Reason::ValueCut)));
    assert!(
        report.detail.starts_with("2 values") && report.detail.ends_with("row 2, column note"),
        "{}",
        report.detail
    );
    assert!(outcome.findings.iter().any(|f| f.position.line == 2), "the beginning was scanned");
}

fn utf16(text: &str) -> Vec<u8> {
    [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}

#[test]
fn what_is_packed_in_cells_is_found_with_its_row() {
    let long = format!("{} {}", String::from_utf8(noise(RowBatch::VALUE_MAX)).unwrap(), key(5));
    let cells = [
        text(format!("plain {}", key(0))),
        text(gzip(format!("packed {}", key(1)).as_bytes())),
        text(utf16(&format!("wide {}", key(2)))),
        text(gzip(&utf16(&format!("both {}", key(3))))),
        text(gzip(&tar(&[("in/a.txt", key(4).as_bytes())]))),
        text(gzip(long.as_bytes())),
        text(tar(&[("b.txt", key(6).as_bytes())])),
    ];
    let rows = cells.into_iter().enumerate().map(|(n, cell)| vec![text(format!("r{n}")), cell]).collect();
    let mut table = Table::new(&["id", "blob"], rows);
    table.key = vec![0];
    let run = |threads, batch| Survey::new(threads).run(vec![Body::table(Table { batch, ..table.clone() })]);
    let outcome = run(1, 100);
    let found = |f: &domesday_model::FindingDraft| {
        let chain = f.decoding.join(" ");
        (f.location.to_string(), f.row.as_deref().unwrap().to_owned(), f.position.line, f.span.start, chain)
    };
    let mut found: Vec<_> = outcome.findings.iter().map(found).collect();
    // Names of rows are in no order.
    found.sort_by_key(|(place, row, ..)| (place.clone(), (0..7).find(|n| name(&format!("r{n}")) == *row)));
    let expect = |place: &str, row: &str, line, start, chain: &str| {
        (place.to_owned(), row.to_owned(), line, start, chain.to_owned())
    };
    assert_eq!(
        found,
        [
            expect("o0!/blob", &name("r0"), 1, 6, ""),
            expect("o0!/blob", &name("r1"), 2, 7, "gzip"),
            expect("o0!/blob", &name("r2"), 3, 12, "utf-16le"),
            expect("o0!/blob", &name("r3"), 4, 12, "gzip utf-16le"),
            expect("o0!/blob", &name("r5"), 1, RowBatch::VALUE_MAX as u64 + 1, "gzip"),
            expect("o0!/blob!/b.txt", &name("r6"), 1, 0, ""),
            expect("o0!/blob!/in/a.txt", &name("r4"), 1, 0, ""),
        ]
    );
    assert_eq!(outcome.reports, []);
    for (threads, batch) in [(1, 1), (2, 2), (3, 5)] {
        assert_eq!(run(threads, batch), outcome);
    }
}

#[test]
fn damage_and_limits_in_cells_are_flaws_and_the_rest_goes_on() {
    let mut broken = gzip(format!("{} and more", key(1)).as_bytes());
    let len = broken.len();
    broken[len - 6] ^= 1;
    let table = Table::new(&["blob"], vec![vec![text(broken)], vec![text(key(2))]]);
    let outcome = Survey::new(1).run(vec![Body::table(table.clone())]);
    assert_eq!(outcome.places(), ["o0!/blob", "o0!/blob"]);
    assert_eq!(outcome.reported(), [("o0".to_owned(), "partial", Some(Reason::DamagedArchive))]);
    assert!(outcome.reports[0].detail.starts_with("in row 1: "), "{}", outcome.reports[0].detail);

    let bomb = gzip(&vec![b' '; 20 << 20]);
    let mut survey = Survey::new(1);
    survey.options.limits.max_unpacked_bytes = 1 << 20;
    let rows = vec![vec![text(bomb)], vec![text(key(3))]];
    let outcome = survey.run(vec![Body::table(Table::new(&["blob"], rows))]);
    assert_eq!(outcome.places(), ["o0!/blob"]);
    assert_eq!(outcome.reported(), [("o0!/blob".to_owned(), "partial", Some(Reason::ByteLimit))]);
}

/// Cells that unpack to much are scanned in turns, and every row keeps its number.
#[test]
fn many_packed_cells_take_no_more_memory_than_a_batch() {
    let cell = |n: usize| text(gzip(format!("{}{}", " ".repeat(200_000), key(n)).as_bytes()));
    let rows = (0..40).map(|n| vec![cell(n)]).collect();
    let outcome = Survey::new(1).run(vec![Body::table(Table::new(&["blob"], rows))]);
    let mut lines: Vec<_> =
        outcome.findings.iter().map(|f| (f.position.line, f.row.clone().unwrap())).collect();
    lines.sort();
    assert_eq!(lines, (1..=40).map(|n| (n, format!("#{n}").into())).collect::<Vec<_>>());
    assert_eq!((outcome.tables[0].rows, outcome.reports.len()), (40, 0));
}

#[test]
fn binary_cells_that_only_resemble_containers_are_scanned_as_they_are() {
    let cells = [
        [b"PK\x03\x04".to_vec(), key(1).into_bytes()].concat(),
        [vec![0x1f, 0x8b], key(2).into_bytes()].concat(),
        [vec![0; 40], key(3).into_bytes()].concat(),
        [vec![0xff; HEAD_LEN], key(4).into_bytes()].concat(),
    ];
    let rows = cells.into_iter().map(|cell| vec![Some(cell)]).collect();
    let outcome = Survey::new(1).run(vec![Body::table(Table::new(&["blob"], rows))]);
    assert_eq!((outcome.findings.len(), outcome.reports.len()), (4, 0));
}

/// A connection that carries one table at a time, as those of servers do.
#[test]
fn the_tables_of_a_packet_come_one_after_another() {
    struct Connection {
        tables: usize,
        busy: Arc<AtomicBool>,
    }
    struct Lent {
        rows: usize,
        busy: Arc<AtomicBool>,
    }
    impl RowReader for Lent {
        fn fill(&mut self, batch: &mut RowBatch) -> Result<(), ObjectError> {
            if self.rows > 0 {
                self.rows -= 1;
                batch.columns[0].push(key(self.rows).as_bytes());
            }
            Ok(())
        }
    }
    impl Drop for Lent {
        fn drop(&mut self) {
            self.busy.store(false, Ordering::SeqCst);
        }
    }
    impl ObjectSource for Connection {
        fn enumerate(
            &self,
            cursor: &mut EnumCursor,
            max: usize,
            out: &mut Vec<ObjectDescriptor>,
        ) -> Result<(), ObjectError> {
            let table = Body::table(Table::new(&["a"], Vec::new()));
            memory(vec![table; self.tables]).enumerate(cursor, max, out)
        }
        fn open(&self, object: &ObjectDescriptor) -> Result<Opened, ObjectError> {
            assert!(!self.busy.swap(true, Ordering::SeqCst), "the connection is free");
            let table = Arc::new(Table::new(&["a"], Vec::new()));
            let rows = Box::new(Lent { rows: object.object_id as usize % 7, busy: Arc::clone(&self.busy) });
            Ok(Opened::Rows { table: object.path.clone(), rows: OpenTable { rows, ..Table::open(&table) } })
        }
    }
    let core = core(CoreConfig { frontier_capacity: 3, ..CoreConfig::for_threads(4) });
    let sinks = [Arc::new(Collector::default()), Arc::new(Collector::default())];
    for sink in &sinks {
        let source = Connection { tables: 100, busy: Arc::default() };
        core.submit(packet(Arc::new(source), sink, options()));
    }
    core.shutdown();
    for sink in sinks {
        let outcome = outcome(&sink);
        assert_eq!((outcome.reports.len(), outcome.tables.len(), outcome.totals.objects), (0, 100, 100));
        assert_eq!(outcome.findings.len() as u64, outcome.tables.iter().map(|table| table.rows).sum::<u64>());
    }
}
