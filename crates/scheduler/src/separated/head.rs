//! Whether a file is one of separated values with a header: by its name, then by what its first rows have in common.

use super::record::{Cutter, fields, is_blank};

/// Separators, the likeliest first.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];
const NAMES: [&str; 3] = [".csv", ".tsv", ".tab"];
/// Endings of compressed files, which may follow the name.
const PACKED: [&str; 5] = [".gz", ".bz2", ".xz", ".zst", ".zstd"];
/// Rows that the first look is at.
const ROWS_MAX: usize = 20;
const COLUMNS_MAX: usize = 2_000;
/// Characters of the longest name that a column may have, and its words.
const COLUMN_NAME_MAX: usize = 80;
const COLUMN_WORDS_MAX: usize = 8;

/// How a file separates values, and what it calls its columns.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(super) delimiter: u8,
    pub(super) columns: Vec<String>,
}

pub(super) fn is_name(name: &[u8]) -> bool {
    let ends = |name: &[u8], end: &str| {
        name.len().checked_sub(end.len()).is_some_and(|at| name[at..].eq_ignore_ascii_case(end.as_bytes()))
    };
    let packed = PACKED.iter().find(|end| ends(name, end)).map_or(0, |end| end.len());
    NAMES.iter().any(|end| ends(&name[..name.len() - packed], end))
}

impl Dialect {
    /// From the first bytes of a file, or all of them if `is_whole`. Rows other than the header may be of other
    /// lengths, but one in four at most.
    pub(super) fn recognise(head: &[u8], is_whole: bool) -> Option<Dialect> {
        let of = |delimiter: u8| {
            let rows = rows(head, delimiter, is_whole);
            let (header, rows) = rows.split_first()?;
            let columns = names(header, delimiter)?;
            let fits = |row: &&&[u8]| fields(row, delimiter).count() == columns.len();
            let fitting = rows.iter().filter(fits).count();
            (!rows.is_empty() && 4 * fitting >= 3 * rows.len()).then_some(Dialect { delimiter, columns })
        };
        // The first of those that separate most.
        DELIMITERS.into_iter().filter_map(of).rev().max_by_key(|dialect| dialect.columns.len())
    }
}

/// The first rows that are whole and not blank.
fn rows(mut head: &[u8], delimiter: u8, is_whole: bool) -> Vec<&[u8]> {
    let mut rows = Vec::new();
    let mut cutter = Cutter::new(delimiter);
    while rows.len() < ROWS_MAX {
        let end = match cutter.row_end(head) {
            Some(end) => end,
            None if is_whole && !head.is_empty() => head.len(),
            None => break,
        };
        let (row, rest) = head.split_at(end);
        if !is_blank(row) {
            rows.push(row);
        }
        head = rest;
    }
    rows
}

/// The names of at least two columns, if the row looks like a header: names, not values.
fn names(header: &[u8], delimiter: u8) -> Option<Vec<String>> {
    let names: Vec<String> = fields(header, delimiter)
        .map(|name| std::str::from_utf8(&name).ok().map(|name| name.trim().to_owned()))
        .collect::<Option<_>>()?;
    // An index of rows often has no name.
    let like_names =
        names.iter().filter(|name| is_like_name(name)).count() + usize::from(names[0].is_empty());
    let is_header = (2..=COLUMNS_MAX).contains(&names.len())
        && 4 * like_names >= 3 * names.len()
        && names.iter().all(|name| may_be_name(name));
    is_header.then_some(names)
}

fn may_be_name(name: &str) -> bool {
    name.chars().count() <= COLUMN_NAME_MAX
        && name.split_whitespace().count() <= COLUMN_WORDS_MAX
        && !name.chars().any(|c| c.is_control() || c == '@')
        && !name.contains("://")
}

/// Columns of years and the like have numbers for names, but not most of them.
fn is_like_name(name: &str) -> bool {
    name.chars().any(char::is_alphabetic) && !name.starts_with(|c: char| c.is_ascii_digit())
}
