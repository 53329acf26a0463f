//! What a cell costs: columns of distinct values, and one of few, through the scan of a table with the built-in rules.
//!
//! `cargo run --release --example cells -p domesday-columns`

use std::sync::Arc;
use std::time::Instant;

use domesday_columns::TableScan;
use domesday_engine::{RuleSet, Scanner, Scratch};
use domesday_model::{ColumnShape, FingerprintKey, RowBatch, Score, TableShape};

/// Cells of each column.
const CELLS: u64 = 1 << 20;

/// The value of a row.
type Values<'v> = Box<dyn Fn(u64) -> String + 'v>;

/// A number that looks random, of the row.
fn mixed(row: u64) -> u64 {
    row.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn main() {
    let rules = RuleSet::builtin().unwrap_or_else(|errors| panic!("{errors}"));
    let scanner = Scanner::with_floor(Arc::new(rules), Score::MEDIUM);
    let words = ["north", "oak", "lamp", "steel", "river", "paper", "blue", "table"];
    let word = |number: u64, at: u32| words[(number >> (3 * at)) as usize % words.len()];
    let columns: [(&str, Values<'_>); 7] = [
        ("id", Box::new(|row| row.to_string())),
        ("amount", Box::new(|row| format!("{}.{:02}", mixed(row) % 100_000, row % 100))),
        (
            "title",
            Box::new(|row| format!("{} {} {}", word(mixed(row), 0), word(mixed(row), 1), mixed(row) % 1_000)),
        ),
        ("status", Box::new(|row| word(row, 0).to_owned())),
        (
            "created_at",
            Box::new(|row| format!("2024-{:02}-{:02} 10:{:02}:07", row % 12 + 1, row % 28 + 1, row % 60)),
        ),
        (
            "email",
            Box::new(|row| format!("{}.{}@{}-corp.org", word(row, 2), mixed(row) % 1_000_000, word(row, 5))),
        ),
        ("phone", Box::new(|row| format!("+44 7700 {:06}", mixed(row) % 1_000_000))),
    ];
    println!("{:12} {:>12} {:>10}", "column", "ns per cell", "matches");
    for (name, value) in &columns {
        let shape = TableShape {
            columns: vec![ColumnShape { name: (*name).to_owned(), ..ColumnShape::default() }],
            ..TableShape::default()
        };
        let mut scan = TableScan::new(&shape, &FingerprintKey::new([3; 32]), 0);
        let (mut scratch, mut found) = (Scratch::new(), Vec::new());
        let (mut matches, mut spent) = (0, std::time::Duration::ZERO);
        // The first batch is not counted: rules are made ready with it.
        let (mut row, mut counted) = (0, 0);
        while row < CELLS {
            let mut batch = RowBatch::new(1);
            while !batch.is_full() {
                batch.columns[0].push(value(row).as_bytes());
                row += 1;
            }
            let begun = Instant::now();
            scan.scan(&scanner, &batch, &mut scratch, &mut found);
            if row > batch.rows() as u64 {
                spent += begun.elapsed();
                counted += batch.rows();
            }
            matches += found.len();
            found.clear();
        }
        println!("{name:12} {:>12.0} {matches:>10}", spent.as_nanos() as f64 / counted as f64);
    }
}
