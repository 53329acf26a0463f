//! Files of separated values with a header (CSV, TSV): beside the scan of their text, which knows nothing of this, a
//! sample of their rows goes to the column classifier.
//!
//! A file is taken for one by its name and then by its first bytes; for all others this costs a look at the name. The
//! rows are cut out while the chunks are read, which happens in order, by one search for quotes and line ends over
//! all bytes. Which rows are kept depends on their numbers alone: those whose mixed number is below a threshold, which
//! is halved whenever there are too many. So the sample is spread over the whole file, is bounded, and is the same for
//! every chunk size. It is scanned once, when the file ends.

mod head;
mod record;
#[cfg(test)]
mod tests;

use std::time::Instant;

use domesday_columns::TableScan;
use domesday_engine::{LOOKAHEAD, LOOKBEHIND};
use domesday_model::{ColumnShape, Location, RowBatch, TableKind, TableObservation, TableShape};

use crate::executor::WorkerCtx;
use crate::object::ObjectRef;

pub(crate) use head::Dialect;
use record::{Cutter, fields, is_blank};

/// Bytes at the beginning of a file that tell whether it is one. Every first chunk has them.
const HEAD_MAX: usize = 16 << 10;
const _: () = assert!(HEAD_MAX <= LOOKBEHIND + LOOKAHEAD);
/// Rows kept of a file, at most.
const SAMPLE_ROWS_MAX: usize = 10_000;
/// Bytes of those rows, at most: 4 MiB.
const SAMPLE_BYTES_MAX: usize = 4 << 20;
/// Bytes of the longest row. One that is longer is not one: a quote was never closed.
const ROW_MAX: usize = 64 << 10;

/// Cuts rows out of a file as it is read, and keeps some.
pub(crate) struct Sampler {
    dialect: Dialect,
    limits: SampleLimits,
    cutter: Cutter,
    /// Rows with a mixed number up to this are kept.
    threshold: u64,
    kept: Vec<Kept>,
    kept_bytes: usize,
    /// Rows met, the header excluded.
    met: u64,
    in_header: bool,
    row: Row,
}

#[derive(Clone, Copy)]
struct SampleLimits {
    rows: usize,
    bytes: usize,
}

struct Kept {
    /// Of the row, from 0.
    number: u64,
    bytes: Box<[u8]>,
}

/// The row that is being cut out.
struct Row {
    is_kept: bool,
    /// Its bytes, if it is kept.
    bytes: Vec<u8>,
    len: usize,
    is_blank: bool,
}

impl Sampler {
    /// For a file of this name that begins with `head`, if it is one.
    pub(crate) fn new(name: &[u8], head: &[u8], is_whole: bool) -> Option<Box<Sampler>> {
        if !head::is_name(name) {
            return None;
        }
        let is_whole = is_whole && head.len() <= HEAD_MAX;
        let dialect = Dialect::recognise(&head[..head.len().min(HEAD_MAX)], is_whole)?;
        let limits = SampleLimits { rows: SAMPLE_ROWS_MAX, bytes: SAMPLE_BYTES_MAX };
        Some(Box::new(Sampler::of(dialect, limits)))
    }

    fn of(dialect: Dialect, limits: SampleLimits) -> Sampler {
        Sampler {
            cutter: Cutter::new(dialect.delimiter),
            dialect,
            limits,
            threshold: u64::MAX,
            kept: Vec::new(),
            kept_bytes: 0,
            met: 0,
            in_header: true,
            row: Row { is_kept: false, bytes: Vec::new(), len: 0, is_blank: true },
        }
    }

    /// The next bytes of the file.
    pub(crate) fn feed(&mut self, mut bytes: &[u8]) {
        while let Some(end) = self.cutter.row_end(bytes) {
            let (row, rest) = bytes.split_at(end);
            self.take(row);
            self.end_row();
            bytes = rest;
        }
        self.take(bytes);
    }

    fn take(&mut self, part: &[u8]) {
        let row = &mut self.row;
        row.len += part.len();
        row.is_blank = row.is_blank && is_blank(part);
        if row.is_kept && row.len <= ROW_MAX {
            row.bytes.extend_from_slice(part);
        }
    }

    fn end_row(&mut self) {
        if !self.row.is_blank && !std::mem::take(&mut self.in_header) {
            if self.row.is_kept && self.row.len <= ROW_MAX {
                self.kept_bytes += self.row.bytes.len();
                self.kept.push(Kept { number: self.met, bytes: self.row.bytes.as_slice().into() });
                self.thin_out();
            }
            self.met += 1;
        }
        let is_kept = !self.in_header && mixed(self.met) <= self.threshold;
        self.row.bytes.clear();
        self.row = Row { is_kept, len: 0, is_blank: true, bytes: std::mem::take(&mut self.row.bytes) };
    }

    fn thin_out(&mut self) {
        while self.kept.len() > self.limits.rows || self.kept_bytes > self.limits.bytes {
            self.threshold /= 2;
            let threshold = self.threshold;
            self.kept.retain(|row| mixed(row.number) <= threshold);
            self.kept_bytes = self.kept.iter().map(|row| row.bytes.len()).sum();
        }
    }

    /// The columns, the rows that were kept, and how many there were.
    fn finish(mut self) -> (Dialect, Vec<Kept>, u64) {
        if self.row.len > 0 {
            self.end_row();
        }
        (self.dialect, self.kept, self.met)
    }
}

/// Spreads row numbers evenly: the finaliser of SplitMix64.
fn mixed(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

impl WorkerCtx {
    /// Classifies the columns of a file that has been read, `is_whole` unless it broke off.
    pub(crate) fn finish_sample(&mut self, obj: &ObjectRef, sampler: Sampler, is_whole: bool) {
        let (dialect, kept, met) = sampler.finish();
        let columns = dialect.columns.len();
        let shape = TableShape {
            kind: TableKind::File,
            columns: dialect
                .columns
                .iter()
                .map(|name| ColumnShape { name: name.clone(), ..ColumnShape::default() })
                .collect(),
            row_estimate: Some(met),
            ..TableShape::default()
        };
        // The sample's rows are not numbered one after another, so their numbers come in a column beside the
        // others, which is all that the key is for.
        let numbered = TableShape { primary_key: vec![columns as u32], ..shape.clone() };
        let packet = obj.packet();
        let mut scan = TableScan::new(&numbered, &packet.key, 0);
        let mut batch = RowBatch::new(columns + 1);
        let rows = kept.len() as u64;
        let mut kept = kept.into_iter().peekable();
        let mut ignored = Vec::new();
        while let Some(Kept { number, bytes }) = kept.next() {
            let mut fields = fields(&bytes, dialect.delimiter);
            for column in &mut batch.columns[..columns] {
                // A row that is too short lacks the values of its last columns.
                match fields.next() {
                    Some(value) => column.push(&value),
                    None => column.push_null(),
                }
            }
            batch.columns[columns].push(format!("#{}", number + 1).as_bytes());
            if batch.is_full() || kept.peek().is_none() {
                if packet.is_cancelled() {
                    return;
                }
                let started = Instant::now();
                scan.scan(&packet.scanner, &batch, &mut self.scratch, &mut ignored);
                self.metrics().matched.add(packet.kind, started.elapsed());
                ignored.clear();
                batch.clear();
            }
        }
        obj.observe(TableObservation {
            table: Location::clone(obj.location()),
            part: obj.location().key.clone(),
            shape,
            rows,
            is_sample: rows < met || !is_whole,
            sketches: scan.finish(),
        });
    }
}
