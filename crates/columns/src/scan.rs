//! The cells of a table through the engine.
//!
//! A cell is scanned as a line of its own behind its column's name: see [`header`](crate::header). What that would give
//! is what is given, with less work: one pass over a column of a batch finds the cells with a trigger, and the others
//! have no match; what a value gave is remembered for when it comes again.
//!
//! Values of the sketch's sample are looked at more closely: what is doubtful in one cell may be sure of a column.

mod examine;
mod examples;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use domesday_engine::{Chunk, Match, Scanner, Scratch};
use domesday_model::fingerprint::preview;
use domesday_model::{ColumnShape, ColumnValues, FingerprintKey, RowBatch, TableShape};

use crate::header::{Frame, Vocabulary};
use crate::sketch::{ColumnSketch, Kept, Mark, SketchKey};

use examine::{Examined, value_of};
use examples::{Candidate, Candidates};

/// Values of a column that are remembered with what was found in them.
const REMEMBERED: usize = 256;
/// Matches of a value that is remembered, at most.
const REMEMBERED_MATCHES: usize = 4;
/// A match in one cell. Spans are within the cell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CellMatch {
    pub column: u32,
    /// Of the batch.
    pub row: u32,
    pub found: Match,
}

/// One table, or a range of its rows, as it is scanned batch by batch.
pub struct TableScan {
    key: SketchKey,
    /// Names the rows whose primary key is data.
    names: FingerprintKey,
    primary_key: Vec<KeyColumn>,
    columns: Vec<Column>,
    /// Rows before the last batch, and with it.
    rows_before: u64,
    rows: u64,
    /// Made when the rules are known.
    vocabulary: Option<Vocabulary>,
    /// Buffers, reused.
    text: Vec<u8>,
    triggered: Vec<bool>,
    places: Vec<usize>,
    matches: Vec<Match>,
}

/// A column of the primary key.
struct KeyColumn {
    index: usize,
    /// As it was listed; `None` for one that was put beside the table's own, to number its rows.
    shape: Option<ColumnShape>,
}

struct Column {
    name: String,
    /// Made when the rules are known.
    frame: Option<Frame>,
    sketch: ColumnSketch,
    /// By hash.
    remembered: Vec<Option<(u64, Box<[Match]>)>>,
    /// The sets of marks that were seen, each once.
    marks: Vec<Arc<[Mark]>>,
}

impl TableScan {
    /// `seed` chooses which values are looked at of many.
    pub fn new(shape: &TableShape, key: &FingerprintKey, seed: u64) -> TableScan {
        let column = |name: &String| Column {
            name: name.clone(),
            frame: None,
            sketch: ColumnSketch::default(),
            remembered: Vec::new(),
            marks: Vec::new(),
        };
        let of_key = |&index: &u32| {
            let index = index as usize;
            KeyColumn { index, shape: shape.columns.get(index).cloned() }
        };
        TableScan {
            key: SketchKey(key.sketch_key(seed)),
            names: key.clone(),
            primary_key: shape.primary_key.iter().map(of_key).collect(),
            columns: shape.columns.iter().map(|shape| column(&shape.name)).collect(),
            rows_before: 0,
            rows: 0,
            vocabulary: None,
            text: Vec::new(),
            triggered: Vec::new(),
            places: Vec::new(),
            matches: Vec::new(),
        }
    }

    /// Adds the matches of a batch to `out`, by row and then by column; those that a control suppresses, too. All batches are scanned by the same scanner.
    pub fn scan(
        &mut self,
        scanner: &Scanner,
        batch: &RowBatch,
        scratch: &mut Scratch,
        out: &mut Vec<CellMatch>,
    ) {
        self.rows_before = self.rows;
        self.rows += batch.rows() as u64;
        let first = out.len();
        let mut examples = Vec::new();
        for column in 0..self.columns.len().min(batch.columns.len()) {
            self.scan_column(column, scanner, &batch.columns[column], scratch, out, &mut examples);
        }
        // Stable, so that matches of a cell stay in their order.
        out[first..].sort_by_key(|found| (found.row, found.column));
        for Candidate { column, rule, is_reported, hash, preview, rows } in examples {
            for row in rows {
                let kept = Kept::new(hash, &self.row_name(batch, row), &preview);
                self.columns[column].sketch.offer_example(&rule, kept, is_reported);
            }
        }
    }

    /// What names a row of the batch that was scanned last: its primary key, or else its number among the rows read.
    /// Of a key only plain integers are told; anything else may be data, whether a rule knows it or not.
    pub fn row_name(&self, batch: &RowBatch, row: usize) -> String {
        self.row_text(batch, row, |text, column, value| match column {
            Some(column) if !column.is_plain(value) => text.push_str(&self.names.name(value)),
            _ => text.push_str(&String::from_utf8_lossy(value)),
        })
    }

    /// The same as it is, for a user who asked for values.
    pub fn row_key(&self, batch: &RowBatch, row: usize) -> String {
        self.row_text(batch, row, |text, _, value| text.push_str(&String::from_utf8_lossy(value)))
    }

    fn row_text(
        &self,
        batch: &RowBatch,
        row: usize,
        mut tell: impl FnMut(&mut String, Option<&ColumnShape>, &[u8]),
    ) -> String {
        let mut text = String::new();
        for key in &self.primary_key {
            let Some(values) = batch.columns.get(key.index) else { continue };
            if !text.is_empty() {
                text.push(',');
            }
            match values.get(row) {
                Some(value) => tell(&mut text, key.shape.as_ref(), value),
                None => text.push_str("null"),
            }
        }
        if text.is_empty() { format!("#{}", self.rows_before + row as u64 + 1) } else { text }
    }

    /// What the columns' values are, encoded.
    pub fn finish(self) -> Vec<Vec<u8>> {
        self.columns.iter().map(|column| column.sketch.encode()).collect()
    }

    fn scan_column(
        &mut self,
        index: usize,
        scanner: &Scanner,
        values: &ColumnValues,
        scratch: &mut Scratch,
        out: &mut Vec<CellMatch>,
        examples: &mut Vec<Candidate>,
    ) {
        let TableScan { key, columns, vocabulary, text, triggered, places, matches, .. } = self;
        let vocabulary = vocabulary.get_or_insert_with(|| Vocabulary::of(scanner.rules()));
        let column = &mut columns[index];
        let frame =
            column.frame.take().unwrap_or_else(|| Frame::new(&column.name, vocabulary, scanner, scratch));
        let mut examples = Candidates { first: examples.len(), all: examples, column: index };
        triggered.clear();
        triggered.resize(values.len(), frame.triggers);
        if !frame.triggers {
            places.clear();
            scanner.triggers(values.bytes(), scratch, places);
            places.iter().for_each(|place| triggered[values.row_at(*place)] = true);
        }
        for (row, &triggered) in triggered.iter().enumerate() {
            let Some(value) = values.get(row) else {
                column.sketch.nulls += 1;
                continue;
            };
            column.sketch.values += 1;
            if value.trim_ascii().is_empty() {
                column.sketch.empty += 1;
                continue;
            }
            let is_cut = values.is_cut(row);
            column.sketch.cut += u64::from(is_cut);
            let hash = key.hash(value);
            let cell = Cell { frame: &frame, value, is_cut };
            matches.clear();
            if column.sketch.wants(hash) {
                let seen = if triggered { cell.examine(scanner, text, scratch) } else { Examined::default() };
                for (rule, preview) in seen.examples {
                    examples.offer(&column.sketch, &rule, false, (hash, row), || preview);
                }
                matches.extend(seen.matches);
                let marks = column.shared(seen.marks);
                column.sketch.add(hash, cell.facts(marks));
                column.remember(hash, is_cut, matches);
            } else {
                examples.repeat(&column.sketch, hash, row);
                if triggered && !column.recall(hash, is_cut, matches) {
                    cell.scan(scanner, text, scratch, matches);
                    column.remember(hash, is_cut, matches);
                }
            }
            column.count(scanner, matches, |sketch, rule, found| {
                examples.offer(sketch, rule, true, (hash, row), || preview(found.value(value)));
            });
            let found = matches.drain(..);
            out.extend(found.map(|found| CellMatch { column: index as u32, row: row as u32, found }));
        }
        column.frame = Some(frame);
    }
}

impl Column {
    /// One copy of equal sets of marks. Most columns have few; where there are many, they are not shared.
    fn shared(&mut self, marks: Vec<Mark>) -> Arc<[Mark]> {
        const SETS_MAX: usize = 64;
        if let Some(same) = self.marks.iter().find(|known| ***known == *marks) {
            return Arc::clone(same);
        }
        let marks: Arc<[Mark]> = marks.into();
        if self.marks.len() < SETS_MAX {
            self.marks.push(Arc::clone(&marks));
        }
        marks
    }

    fn remember(&mut self, hash: u64, is_cut: bool, matches: &[Match]) {
        if is_cut || matches.len() > REMEMBERED_MATCHES {
            return;
        }
        if self.remembered.is_empty() {
            self.remembered.resize_with(REMEMBERED, || None);
        }
        self.remembered[hash as usize % REMEMBERED] = Some((hash, matches.into()));
    }

    /// Adds what was found in this value before, if that is still known.
    fn recall(&self, hash: u64, is_cut: bool, matches: &mut Vec<Match>) -> bool {
        match self.remembered.get(hash as usize % REMEMBERED) {
            Some(Some((known, found))) if *known == hash && !is_cut => {
                matches.extend_from_slice(found);
                true
            }
            _ => false,
        }
    }

    /// Counts the cell for each rule that has a match in it.
    fn count(
        &mut self,
        scanner: &Scanner,
        matches: &[Match],
        mut example: impl FnMut(&ColumnSketch, &Arc<str>, &Match),
    ) {
        let reported = || matches.iter().filter(|found| found.suppressed.is_none());
        for (number, found) in reported().enumerate() {
            if reported().take(number).any(|before| before.rule == found.rule) {
                continue;
            }
            let rule = &scanner.rules().rules()[found.rule as usize].id;
            example(&self.sketch, rule, found);
            let of_rule = || reported().filter(|other| other.rule == found.rule);
            let tally = self.sketch.tally(rule);
            tally.cells += 1;
            tally.proven += u64::from(of_rule().any(|found| found.reasons.has_proof()));
        }
    }
}

/// A value in its place.
struct Cell<'c> {
    frame: &'c Frame,
    value: &'c [u8],
    is_cut: bool,
}

impl Cell<'_> {
    /// Writes the line that is scanned, and says where in it the value is.
    fn write<'t>(&self, text: &'t mut Vec<u8>) -> Chunk<'t> {
        text.clear();
        text.extend_from_slice(&self.frame.before);
        text.extend_from_slice(self.value);
        text.extend_from_slice(self.frame.after);
        let start = self.frame.before.len();
        Chunk::unnamed(text, start..start + self.value.len())
    }

    /// Adds the matches that a scan reports, and those that a control suppresses.
    fn scan(&self, scanner: &Scanner, text: &mut Vec<u8>, scratch: &mut Scratch, matches: &mut Vec<Match>) {
        let before = matches.len();
        let has_letters = self.value.iter().any(|&byte| byte.is_ascii_alphabetic() || !byte.is_ascii());
        let chunk = self.write(text);
        match has_letters {
            true => scanner.scan(&chunk, scratch, matches),
            false => scanner.scan_without(&chunk, self.frame.silent(scanner), scratch, matches),
        }
        matches.append(&mut scratch.take_suppressed());
        let mut kept = before;
        for at in before..matches.len() {
            if let Some(span) = self.within(&matches[at]) {
                matches[at].span = span;
                matches.swap(kept, at);
                kept += 1;
            }
        }
        matches.truncate(kept);
    }

    /// Where in the value a match is. One that reaches the end of what was cut may go on behind it.
    fn within(&self, found: &Match) -> Option<std::ops::Range<usize>> {
        let start = self.frame.before.len();
        let span = found.span.start.checked_sub(start)?..found.span.end.min(start + self.value.len()) - start;
        let may_go_on = self.is_cut && span.end == self.value.len();
        (!span.is_empty() && !may_go_on).then_some(span)
    }

    /// What the sketch keeps of the value.
    fn facts(&self, marks: Arc<[Mark]>) -> crate::sketch::Value {
        value_of(self.value, marks)
    }
}
