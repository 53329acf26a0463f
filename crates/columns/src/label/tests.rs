//! Labels from columns whose values are known.

use std::sync::{Arc, LazyLock};

use domesday_engine::{RuleSet, Scanner, Scratch};
use domesday_model::{ColumnShape, FingerprintKey, Level, RowBatch, Score, TableShape};

use super::kinds::Kind;
use super::{ColumnVerdict, LabelKind, classify, wilson};
use crate::scan::TableScan;
use crate::sketch::ColumnSketch;

static SCANNER: LazyLock<Scanner> = LazyLock::new(|| {
    let rules = RuleSet::builtin().unwrap_or_else(|errors| panic!("{errors}"));
    Scanner::with_floor(Arc::new(rules), Score::MEDIUM)
});

fn verdict(name: &str, type_name: &str, values: impl IntoIterator<Item = String>) -> ColumnVerdict {
    let column =
        ColumnShape { name: name.to_owned(), type_name: type_name.to_owned(), ..ColumnShape::default() };
    verdict_of(column, values)
}

fn verdict_of(column: ColumnShape, values: impl IntoIterator<Item = String>) -> ColumnVerdict {
    let shape = TableShape { columns: vec![column], ..TableShape::default() };
    let mut batch = RowBatch::new(1);
    values.into_iter().for_each(|value| batch.columns[0].push(value.as_bytes()));
    let mut scan = TableScan::new(&shape, &FingerprintKey::new([1; 32]), 0);
    scan.scan(&SCANNER, &batch, &mut Scratch::new(), &mut Vec::new());
    let sketches: Vec<_> = scan.finish().iter().map(|bytes| ColumnSketch::decode(bytes).unwrap()).collect();
    classify(&shape, &sketches, SCANNER.rules()).swap_remove(0)
}

/// The labels as `kind rule`.
fn labels(verdict: &ColumnVerdict) -> Vec<String> {
    verdict.labels.iter().map(|label| format!("{} {}", label.kind.as_str(), label.rule)).collect()
}

fn check(name: &str, type_name: &str, values: impl IntoIterator<Item = String>, expect: &[&str]) {
    let verdict = verdict(name, type_name, values);
    assert_eq!(labels(&verdict), expect, "{name} {type_name}: {:?}", verdict.labels);
}

fn with_luhn(body: u64) -> String {
    let digits: Vec<u32> = body.to_string().chars().filter_map(|digit| digit.to_digit(10)).collect();
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| if at % 2 == 0 { digit * 2 / 10 + digit * 2 % 10 } else { *digit })
        .sum();
    format!("{body}{}", (10 - sum % 10) % 10)
}

fn cards(count: u64) -> impl Iterator<Item = String> {
    (0..count).map(|number| with_luhn(401_288_000_000_000 + 7_919_131 * number))
}

fn broken(card: &str) -> String {
    let last = card.bytes().last().unwrap();
    format!("{}{}", &card[..card.len() - 1], (last - b'0' + 1) % 10)
}

fn mails(count: usize) -> impl Iterator<Item = String> + Clone {
    (0..count).map(|number| format!("ann.lee{number}@corp{}-mail.org", number % 7))
}

#[test]
fn a_distinctive_form_needs_no_name() {
    check("email", "text", mails(40), &["column email-address"]);
    check("col7", "", mails(40), &["column email-address"]);
    check("value", "text", cards(60), &["column payment-card-unseparated"]);
}

#[test]
fn a_number_needs_a_name() {
    check("card_number", "bigint", cards(60), &["column payment-card-unseparated"]);
    check("value", "bigint", cards(60), &[]);
    check("order_number", "text", cards(60), &[]);
    let numbers = || (0..60).map(|number| (314_529_076 + 7_919 * number).to_string());
    check("ssn", "text", numbers(), &["column us-social-security-number-unseparated"]);
    check("account_id", "text", numbers(), &[]);
    check("value", "text", numbers(), &[]);
}

#[test]
fn what_chance_explains_is_no_label() {
    // Every tenth is right.
    let numbers = || (0..400).map(|number| (4_012_888_000_000_000u64 + 7_919_131 * number).to_string());
    for name in ["card_number", "order_number", "value", "payment_ref"] {
        check(name, "text", numbers(), &[]);
    }
    check("card_number", "text", cards(80).map(|card| broken(&card)), &[]);
}

#[test]
fn a_name_is_never_enough() {
    let words = || ["t", "f", "yes", "pending"].map(str::to_owned);
    for name in
        ["email_verified", "card_number", "ssn", "password_changed", "date_of_birth", "first_name_known"]
    {
        check(name, "", words(), &[]);
    }
    check("email", "boolean", mails(40), &[]);
    check("birth_year", "integer", (1950..2000).map(|year| year.to_string()), &[]);
    check("zip_count", "integer", (10_000..10_400).map(|count| count.to_string()), &[]);
}

#[test]
fn dirty_values_leave_the_label_and_widen_the_interval() {
    let dirt = ["n/a", "unknown", "-", "see notes"].map(str::to_owned);
    let verdict = verdict("email", "text", mails(36).chain(dirt));
    let label = &verdict.labels[0];
    assert_eq!((label.kind, label.matched, label.sampled, label.cells), (LabelKind::Column, 36, 40, 36));
    assert!((label.prevalence - 0.9).abs() < 1e-9);
    assert!(label.interval.0 > 0.76 && label.interval.1 < 0.97, "{:?}", label.interval);
    assert_eq!(label.level, Level::High);
    assert_eq!(label.value_evidence[0], "36 of 40 distinct values match");
    assert_eq!(label.other_evidence, ["column name has `email`"]);
    let example = label.example.as_ref().unwrap();
    assert!(example.row.starts_with('#') && example.preview.contains("****"), "{example:?}");
}

#[test]
fn repeated_values_count_once() {
    let verdict = verdict("x", "text", mails(4).cycle().take(400));
    assert_eq!((verdict.values, verdict.distinct, verdict.nulls), (400, 4, 0));
    assert_eq!(verdict.labels[0].sampled, 4);
}

#[test]
fn few_that_are_beyond_doubt_are_sparse() {
    let values = (0..200).map(|number| format!("batch {number}"));
    let verdict = verdict("reference", "text", values.chain(cards(3).map(grouped)));
    assert_eq!(labels(&verdict), ["sparse payment-card"]);
    assert!(verdict.labels[0].prevalence < 0.02 && !verdict.is_free_text);
}

fn grouped(card: String) -> String {
    format!("{} {} {} {}", &card[..4], &card[4..8], &card[8..12], &card[12..])
}

#[test]
fn free_text_tells_what_occurs_in_it() {
    let text = |number| format!("Customer {number} asked for a refund of the second order, no action");
    let card = format!("paid by card {} at the counter today", grouped(cards(1).next().unwrap()));
    let verdict = verdict("notes", "text", (0..200).map(text).chain([card]));
    assert!(verdict.is_free_text);
    assert_eq!(labels(&verdict), ["occurs payment-card"]);
    assert_eq!((verdict.labels[0].cells, verdict.labels[0].matched), (1, 1));
    check("notes", "text", (0..200).map(text), &[]);
}

#[test]
fn documents_are_text_whatever_their_type() {
    let json = |mail: String| format!("{{\"mail\":\"{mail}\"}}");
    check("payload", "jsonb", mails(40).map(json), &["occurs email-address"]);
    check("payload", "", mails(40).map(json), &["occurs email-address"]);
}

#[test]
fn secrets_are_known_by_their_columns_name() {
    let passwords = || (0..40).map(|number| format!("v1olet-T1de{number}"));
    check("user_password", "text", passwords(), &["column generic-password-quoted"]);
    check("product_code", "text", passwords(), &[]);
}

#[test]
fn names_of_persons_need_known_ones_among_them() {
    let people = ["Ann Moreau", "Jonas Weber", "Maria Lopez", "Leigha Okonkwo", "Tomasz Nowak", "Erik Lund"];
    check("customer_name", "text", people.map(str::to_owned), &["column person-name-labelled"]);
    let things = ["Blue Chair", "Oak Table", "Steel Lamp", "Winter Jacket", "Round Mirror", "Garden Vase"];
    check("customer_name", "text", things.map(str::to_owned), &[]);
    check("name", "text", things.map(str::to_owned), &[]);
}

#[test]
fn a_comment_speaks_as_the_name_does_and_is_kept_apart() {
    let numbers = (0..60).map(|number| (314_529_076 + 7_919 * number).to_string());
    let column = ColumnShape {
        name: "c4".to_owned(),
        type_name: "text".to_owned(),
        comment: Some("visa card of the customer".to_owned()),
    };
    assert_eq!(labels(&verdict_of(column.clone(), numbers)), Vec::<String>::new());
    let verdict = verdict_of(column, cards(30));
    assert_eq!(verdict.labels[0].other_evidence, ["comment has `card`"]);
}

#[test]
fn no_values_have_no_labels() {
    let empty = verdict("email", "text", []);
    assert_eq!(empty, ColumnVerdict::default());
    let shape = TableShape { columns: vec![ColumnShape::default(); 2], ..TableShape::default() };
    assert_eq!(classify(&shape, &[ColumnSketch::default()], SCANNER.rules()).len(), 2);
}

#[test]
fn intervals_are_wilsons() {
    let near = |(low, high): (f64, f64), expect: (f64, f64)| {
        assert!((low - expect.0).abs() < 5e-4 && (high - expect.1).abs() < 5e-4, "{low} {high}");
    };
    near(wilson(0, 10), (0.0, 0.2775));
    near(wilson(10, 10), (0.7225, 1.0));
    near(wilson(50, 100), (0.4038, 0.5962));
    near(wilson(0, 0), (0.0, 1.0));
}

#[test]
fn types_say_what_may_be_in_them() {
    let check = |name: &str, expect: Kind| assert_eq!(Kind::of(name), expect, "{name}");
    for name in
        ["", "text", "character varying(64)", "varchar", "nvarchar(MAX)", "inet", "citext", "enum('a','b')"]
    {
        check(name, Kind::Text);
    }
    for name in ["integer", "int4", "BIGINT UNSIGNED", "numeric(19,0)", "numeric", "decimal(12)", "INT"] {
        check(name, Kind::Integer);
    }
    for name in
        ["boolean", "tinyint(1)", "double precision", "numeric(10,2)", "money", "interval", "point", "bit"]
    {
        check(name, Kind::Measure);
    }
    for name in ["date", "timestamp with time zone", "datetime2(7)", "time"] {
        check(name, Kind::Date);
    }
    for name in ["jsonb", "xml", "text[]", "bytea", "varbinary(max)"] {
        check(name, Kind::Nested);
    }
    check("uuid", Kind::Uuid);
}
