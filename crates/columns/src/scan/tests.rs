//! Cells of a table against each scanned alone.

use std::sync::{Arc, LazyLock};

use domesday_engine::{Chunk, Match, RuleSet, Scanner, Scratch};
use domesday_model::{ColumnShape, FingerprintKey, RowBatch, Score, TableShape};
use proptest::prelude::*;

use super::{CellMatch, TableScan};
use crate::header::{Frame, Vocabulary};
use crate::sketch::ColumnSketch;

static SCANNER: LazyLock<Scanner> = LazyLock::new(|| {
    let rules = RuleSet::builtin().unwrap_or_else(|errors| panic!("{errors}"));
    Scanner::with_floor(Arc::new(rules), Score::MEDIUM)
});

static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(|| Vocabulary::of(SCANNER.rules()));

static KEY: LazyLock<FingerprintKey> = LazyLock::new(|| FingerprintKey::new([5; 32]));

fn shape(names: &[&str], primary_key: &[u32]) -> TableShape {
    let column = |name: &&str| ColumnShape { name: (*name).to_owned(), ..ColumnShape::default() };
    TableShape {
        columns: names.iter().map(column).collect(),
        primary_key: primary_key.to_vec(),
        ..TableShape::default()
    }
}

fn batch(rows: &[Vec<Option<String>>], columns: usize) -> RowBatch {
    let mut batch = RowBatch::new(columns);
    for row in rows {
        for (column, value) in batch.columns.iter_mut().zip(row) {
            match value {
                Some(value) => column.push(value.as_bytes()),
                None => column.push_null(),
            }
        }
    }
    batch
}

fn scan(names: &[&str], batches: &[RowBatch]) -> (Vec<CellMatch>, Vec<ColumnSketch>) {
    let mut table = TableScan::new(&shape(names, &[]), &KEY, 0);
    let (mut out, mut scratch) = (Vec::new(), Scratch::new());
    let mut first = 0;
    for batch in batches {
        let before = out.len();
        table.scan(&SCANNER, batch, &mut scratch, &mut out);
        out[before..].iter_mut().for_each(|found| found.row += first);
        first += batch.rows() as u32;
    }
    let sketches = table.finish();
    (out, sketches.iter().map(|bytes| ColumnSketch::decode(bytes).unwrap()).collect())
}

/// The cell alone, as a line behind its column's name.
fn alone(name: &str, value: &str) -> Vec<Match> {
    let mut scratch = Scratch::new();
    let frame = Frame::new(name, &VOCABULARY, &SCANNER, &mut scratch);
    let text = [&frame.before, value.as_bytes(), frame.after].concat();
    let start = frame.before.len();
    let mut found = Vec::new();
    let chunk = Chunk::unnamed(&text, start..start + value.len());
    SCANNER.scan(&chunk, &mut scratch, &mut found);
    for found in &mut found {
        found.span = found.span.start - start..found.span.end.min(start + value.len()) - start;
    }
    found
}

const NAMES: &[&str] = &[
    "id",
    "email",
    "phone_number",
    "customerName",
    "db_password",
    "api_key",
    "",
    "iban",
    "col7",
    "rd:",
    "notes",
    "card 1",
    "date_of_birth",
    "ssn",
    "home address",
    "ip",
    "dead:beef",
];

fn cell() -> impl Strategy<Value = Option<String>> {
    let examples: Vec<String> = SCANNER
        .rules()
        .rules()
        .iter()
        .flat_map(|rule| rule.positive.iter().chain(&rule.negative).cloned())
        .collect();
    let halves =
        (prop::sample::select(examples.clone()), any::<prop::sample::Index>()).prop_map(|(text, at)| {
            let at = text.floor_char_boundary(at.index(text.len() + 1));
            text[at..].to_owned()
        });
    prop_oneof![
        1 => Just(None),
        1 => Just(Some(String::new())),
        4 => prop::sample::select(examples).prop_map(Some),
        4 => halves.prop_map(Some),
        2 => "[0-9]{1,17}".prop_map(Some),
        1 => "[ -~\n]{0,12}".prop_map(Some),
        1 => "(st|0|:1|ave|@|a@b.cz|4111 1111 1111 1111|731-42-6508)".prop_map(Some),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_cell_has_the_matches_that_it_has_alone(
        names in prop::collection::vec(prop::sample::select(NAMES), 1..4),
        rows in prop::collection::vec(prop::collection::vec(cell(), 4), 1..12),
        twice in any::<bool>(),
    ) {
        let rows: Vec<_> = if twice { rows.iter().chain(&rows).cloned().collect() } else { rows };
        let (found, _) = scan(&names, &[batch(&rows, names.len())]);
        let mut expected = Vec::new();
        for (row, cells) in rows.iter().enumerate() {
            for (column, (name, value)) in names.iter().zip(cells).enumerate() {
                let matches = value.as_ref().map(|value| alone(name, value)).unwrap_or_default();
                expected.extend(matches.into_iter().map(|found| CellMatch { column: column as u32, row: row as u32, found }));
            }
        }
        prop_assert_eq!(found, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_split_of_the_rows_gives_the_sketch_of_the_whole(
        name in prop::sample::select(NAMES),
        rows in prop::collection::vec(prop::collection::vec(cell(), 1), 1..24),
        at in any::<prop::sample::Index>(),
    ) {
        let key = [0u32];
        let table = |parts: &[&[Vec<Option<String>>]]| {
            let mut table = TableScan::new(&shape(&[name, "key"], &key), &KEY, 0);
            let (mut out, mut scratch) = (Vec::new(), Scratch::new());
            for part in parts {
                table.scan(&SCANNER, &batch(part, 2), &mut scratch, &mut out);
            }
            ColumnSketch::decode(&table.finish()[0]).unwrap()
        };
        let with_key: Vec<_> = rows.iter().enumerate().map(|(i, row)| {
            vec![row[0].clone(), Some(format!("{}", i * 7 % 5))]
        }).collect();
        let (a, b) = with_key.split_at(at.index(with_key.len()));
        let whole = table(&[&with_key]);
        prop_assert_eq!(&whole, &table(&[a, b]));
        let mut merged = table(&[a]);
        merged.merge(&table(&[b]));
        prop_assert_eq!(&whole, &merged);
        let mut other = table(&[b]);
        other.merge(&table(&[a]));
        prop_assert_eq!(&whole, &other);
    }
}

#[test]
fn nulls_and_empty_values_are_counted_and_nothing_else() {
    let rows =
        vec![vec![None], vec![Some(String::new())], vec![Some("  ".to_owned())], vec![Some("x".to_owned())]];
    let (found, sketches) = scan(&["email"], &[batch(&rows, 1)]);
    assert!(found.is_empty());
    let sketch = &sketches[0];
    assert_eq!((sketch.values, sketch.nulls, sketch.empty, sketch.distinct()), (3, 1, 2, 1));
}

#[test]
fn what_a_cut_value_ends_with_is_no_match() {
    let mut batch = RowBatch::new(1);
    batch.columns[0].push_cut(b"ann.lee@corp-mail.org, tom.ray@corp-mail.or");
    batch.columns[0].push(b"tom.ray@corp-mail.org");
    let (found, sketches) = scan(&["email"], &[batch]);
    let places: Vec<_> = found.iter().map(|found| (found.row, found.found.span.clone())).collect();
    assert_eq!(places, [(0, 0..21), (1, 0..21)]);
    assert_eq!(sketches[0].cut, 1);
}

#[test]
fn a_password_is_known_by_its_columns_name() {
    let rows = vec![vec![Some("v1olet-T1de".to_owned()), Some("v1olet-T1de".to_owned())]];
    let (found, _) = scan(&["userPassword", "colour"], &[batch(&rows, 2)]);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].column, found[0].found.span.clone()), (0, 0..11));
}

#[test]
fn rows_are_named_by_plain_integers_and_by_no_other_value() {
    let names = ["email", "shop", "phone"];
    let rows = vec![
        vec![Some("ann.lee@corp-mail.org".into()), Some("7".into()), Some("+41 44 668 18 00".into())],
        vec![Some("nobody".into()), None, Some("+41 44 668 18 01".into())],
    ];
    let batch = batch(&rows, 3);
    let mut shape_of = shape(&names, &[0, 1]);
    shape_of.columns[1].type_name = "int(11)".into();
    let mut table = TableScan::new(&shape_of, &KEY, 0);
    let (mut out, mut scratch) = (Vec::new(), Scratch::new());
    table.scan(&SCANNER, &batch, &mut scratch, &mut out);
    // Found or not: who the row is about is nobody's business.
    assert_eq!(table.row_name(&batch, 0), format!("{},7", KEY.name(b"ann.lee@corp-mail.org")));
    assert_eq!(table.row_name(&batch, 1), format!("{},null", KEY.name(b"nobody")));
    assert!(!table.row_name(&batch, 1).contains("nobody"));
    assert_eq!(table.row_key(&batch, 0), "ann.lee@corp-mail.org,7");
    // Digits in a column of texts are no plain integer.
    shape_of.columns[1].type_name = "text".into();
    assert_eq!(TableScan::new(&shape_of, &KEY, 0).row_name(&batch, 0).matches('~').count(), 2);
    let keyless = TableScan::new(&shape(&names, &[]), &KEY, 0);
    assert_eq!(keyless.row_name(&batch, 1), "#2");
}

#[test]
fn a_batch_with_fewer_columns_than_the_table_is_no_harm() {
    let (found, sketches) = scan(&["a", "b"], &[batch(&[vec![Some("x".into())]], 1)]);
    assert!(found.is_empty());
    assert_eq!(sketches.len(), 2);
}
