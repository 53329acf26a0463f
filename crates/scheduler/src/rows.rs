//! Reading and matching tables, batch by batch.
//!
//! Rows come in the order that their source has, and one thread at a time reads a table: it scans the batch it has
//! read, while that is in the cache, and leaves the rest to the next `FetchSync`, as chunks do. The memory of one
//! batch serves for all of them. What is packed in cells is unpacked first; see [`crate::cells`].
//!
//! Values are seen here and go no further: what leaves are fingerprints, previews, and sketches without any value.

use std::sync::Arc;
use std::time::Instant;

use domesday_columns::{CellMatch, TableScan};
use domesday_content::{Budget, ObjectError, OpenTable, RowReader};
use domesday_model::fingerprint::preview;
use domesday_model::{
    ColumnValues, FindingDraft, Location, NestedStep, Position, Reason, RowBatch, Span, TableObservation,
    TableShape,
};

use crate::cells::{self, CellText, CellTexts};
use crate::executor::WorkerCtx;
use crate::fetch::Fetch;
use crate::object::ObjectRef;
use crate::occurrences::{Kept, Tally};
use crate::packet::{PacketCtx, RawValue};
use crate::position::{code_points, raw_len};
use crate::scan::chain;
use crate::task::Task;

/// The place of a flaw that any other outranks.
const LAST: u64 = u64::MAX;

/// A table that is being read.
pub struct TableStream {
    table: Arc<Location>,
    shape: Arc<TableShape>,
    is_sample: bool,
    reader: Box<dyn RowReader>,
    pub(crate) scan: TableScan,
    batch: RowBatch,
    /// Rows scanned so far.
    pub(crate) rows: u64,
    pub(crate) columns: Vec<Column>,
    /// Of the last rows scanned; by row, then by column.
    pub(crate) matches: Vec<CellMatch>,
    cut: Cut,
    /// For what is packed in cells: one for the whole table.
    pub(crate) budget: Arc<Budget>,
    pub(crate) depth: u32,
}

/// What was found in one column.
pub(crate) struct Column {
    pub(crate) location: Arc<Location>,
    rules: Vec<RuleTally>,
}

struct RuleTally {
    /// Since the last batch.
    tally: Tally,
    /// Occurrences kept before that.
    kept: usize,
}

/// Values of which only the beginning was there.
#[derive(Default)]
struct Cut {
    count: u64,
    /// Row and column of the first.
    first: Option<(u64, usize)>,
}

impl TableStream {
    /// `table` is where the table is, which `obj` may be a range of.
    pub(crate) fn new(obj: &ObjectRef, table: Arc<Location>, opened: OpenTable) -> TableStream {
        let OpenTable { shape, is_sample, rows: reader } = opened;
        let column = |(ordinal, name): (usize, &str)| {
            let mut location = Location::clone(&table);
            location.nested.push(NestedStep { name: name.into(), ordinal: ordinal as u32 });
            Column { location: Arc::new(location), rules: Vec::new() }
        };
        let columns =
            shape.columns.iter().map(|column| column.name.as_str()).enumerate().map(column).collect();
        let (budget, depth) = obj.budget(None);
        TableStream {
            scan: TableScan::new(&shape, &obj.packet().key, reader.seed()),
            batch: RowBatch::new(shape.columns.len()),
            table,
            shape,
            is_sample,
            reader,
            rows: 0,
            columns,
            matches: Vec::new(),
            cut: Cut::default(),
            budget,
            depth,
        }
    }

    /// The end of the table, or of what can be read of it.
    fn finish(self, obj: &ObjectRef, ended: Result<(), ObjectError>) {
        self.tell_cut(obj);
        let is_whole = ended.is_ok();
        match ended {
            Ok(()) => obj.touch(),
            Err(error) => obj.flaw(self.rows, error),
        }
        if is_whole || self.rows > 0 {
            obj.observe(TableObservation {
                part: obj.location().key.clone(),
                table: Arc::unwrap_or_clone(self.table),
                shape: Arc::unwrap_or_clone(self.shape),
                rows: self.rows,
                is_sample: self.is_sample || !is_whole,
                sketches: self.scan.finish(),
            });
        }
    }
}

impl WorkerCtx {
    /// Reads the next batch of a table, and leaves the rest to the next task.
    pub(crate) fn fetch_rows(&mut self, obj: &ObjectRef, stream: Box<TableStream>) {
        if let Some(rest) = self.fetch_batch(obj, stream) {
            self.spawn(Task::FetchSync { obj: Arc::clone(obj), fetch: Fetch::Rows(rest) });
        }
    }

    /// Reads and scans one batch. Gives the table back unless this was the last.
    pub(crate) fn fetch_batch(
        &mut self,
        obj: &ObjectRef,
        mut stream: Box<TableStream>,
    ) -> Option<Box<TableStream>> {
        if obj.packet().is_cancelled() {
            return None;
        }
        let mut batch = std::mem::take(&mut stream.batch);
        batch.clear();
        let read = self.timed(obj, || stream.reader.fill(&mut batch));
        let metrics = self.metrics();
        metrics.fetch_sync_count.add(1);
        metrics.bytes_fetched.add(batch.columns.iter().map(|column| column.bytes().len() as u64).sum());
        obj.packet().moved.add(batch.rows() as u64);
        let whole = check_whole(&batch, stream.columns.len());
        let any = whole.is_ok() && batch.rows() > 0;
        if any {
            stream.note_cut(&batch);
            if let Some(format) = cells::not_read(&batch) {
                obj.not_read(format);
            }
            if cells::any_packed(&batch) {
                self.scan_unpacked(obj, &mut stream, &batch);
            } else {
                self.scan_rows(obj, &mut stream, &batch, &CellTexts::default());
            }
        }
        stream.batch = batch;
        match read.and(whole) {
            Ok(()) if any => Some(stream),
            ended => {
                stream.finish(obj, ended);
                None
            }
        }
    }

    /// Scans rows and keeps what is found in them. `texts` says how cells were decoded.
    pub(crate) fn scan_rows(
        &mut self,
        obj: &ObjectRef,
        stream: &mut TableStream,
        batch: &RowBatch,
        texts: &CellTexts,
    ) {
        let packet = obj.packet();
        let started = Instant::now();
        stream.matches.clear();
        stream.scan.scan(&packet.scanner, batch, &mut self.scratch, &mut stream.matches);
        let bytes = text_len(batch);
        let metrics = self.metrics();
        metrics.matched.add(packet.kind, started.elapsed());
        metrics.scan_count.add(1);
        metrics.bytes_scanned.add(bytes);
        obj.add_scanned(bytes);
        let matches = std::mem::take(&mut stream.matches);
        for row in matches.chunk_by(|a, b| a.row == b.row) {
            stream.tally_row(packet, batch, row, texts);
        }
        stream.matches = matches;
        stream.rows += batch.rows() as u64;
        let tallies: Vec<Tally> = stream.columns.iter_mut().flat_map(Column::take_tallies).collect();
        if !tallies.is_empty() {
            obj.add_findings(tallies);
        }
    }
}

impl TableStream {
    /// Keeps the matches of one row.
    fn tally_row(&mut self, packet: &PacketCtx, batch: &RowBatch, matches: &[CellMatch], texts: &CellTexts) {
        let rules = packet.scanner.rules();
        let row = matches[0].row;
        let number = self.rows + u64::from(row) + 1;
        let mut name: Option<Box<str>> = None;
        let mut place = CellPlace::default();
        for CellMatch { column, found, .. } in matches {
            if found.score < packet.options.min_score {
                continue;
            }
            let cell = batch.columns[*column as usize].get(row as usize).unwrap_or_default();
            let value = found.value(cell);
            let mut suppressed = found.suppressed.clone();
            if suppressed.is_none() && rules.allows_by_fingerprint() {
                let fingerprint = packet.key.fingerprint(value);
                suppressed = rules.allows_fingerprint(found.rule, &fingerprint.0, path(&self.table));
            }
            let into = &mut self.columns[*column as usize];
            let tally = Tally::new(*column, found.rule, suppressed);
            let Some(tally) = into.room(tally, packet.options.occurrence_cap) else { continue };
            let text = texts.get(row, *column);
            place = place.advance(*column, cell, found.span.start, text);
            let end = place.offset + raw_len(&cell[found.span.clone()], text.units);
            let name = name.get_or_insert_with(|| self.scan.row_name(batch, row as usize).into());
            let rule = &rules.rules()[found.rule as usize];
            let draft = FindingDraft {
                location: Arc::clone(&into.location),
                rule: rule.id.clone(),
                category: rule.category,
                score: found.score,
                reasons: found.reasons.to_string(),
                fingerprint: packet.key.fingerprint(value),
                preview: preview(value),
                span: Span { start: place.offset, end },
                position: Position { line: number, column: place.column },
                decoding: chain(&text.decoding, found.decoded.as_ref().map_or(&[], |decoded| &decoded.chain)),
                row: Some(name.clone()),
                // Told when all of the table are known.
                suppressed: None,
            };
            let raw = packet.options.reveal.then(|| RawValue {
                value: value.into(),
                row: Some(self.scan.row_key(batch, row as usize).into()),
            });
            into.rules[tally].tally.kept.push(Kept::new(draft, raw));
        }
    }

    fn note_cut(&mut self, batch: &RowBatch) {
        for (ordinal, column) in batch.columns.iter().enumerate() {
            for row in (0..column.len()).filter(|&row| column.is_cut(row)) {
                let place = (self.rows + row as u64 + 1, ordinal);
                self.cut.count += 1;
                self.cut.first = Some(self.cut.first.map_or(place, |first| first.min(place)));
            }
        }
    }

    /// What was cut is the least of a table's flaws: it says nothing of the other rows.
    fn tell_cut(&self, obj: &ObjectRef) {
        let Some((row, column)) = self.cut.first else { return };
        let detail = format!(
            "{} longer than {} bytes: only the beginning was scanned; the first is in row {row}, column {}",
            if self.cut.count == 1 {
                "one value is".to_owned()
            } else {
                format!("{} values are", self.cut.count)
            },
            RowBatch::VALUE_MAX,
            self.shape.columns[column].name,
        );
        obj.flaw(LAST, ObjectError::new(Reason::ValueCut, detail));
    }
}

impl Column {
    /// Counts an occurrence, with others of an equal tally, and says where to keep it unless there are enough.
    fn room(&mut self, tally: Tally, cap: usize) -> Option<usize> {
        let cap = tally.cap(cap);
        let is_its =
            |known: &RuleTally| known.tally.rule == tally.rule && known.tally.suppressed == tally.suppressed;
        let at = self.rules.iter().position(is_its).unwrap_or_else(|| {
            self.rules.push(RuleTally { tally, kept: 0 });
            self.rules.len() - 1
        });
        let known = &mut self.rules[at];
        known.tally.count += 1;
        (known.kept + known.tally.kept.len() < cap).then_some(at)
    }

    fn take_tallies(&mut self) -> impl Iterator<Item = Tally> {
        self.rules.iter_mut().filter(|known| known.tally.count > 0).map(|known| {
            let kept = std::mem::take(&mut known.tally.kept);
            known.kept += kept.len();
            let Tally { column, rule, suppressed, count, .. } = &mut known.tally;
            Tally {
                column: *column,
                rule: *rule,
                suppressed: suppressed.clone(),
                count: std::mem::take(count),
                kept,
            }
        })
    }
}

/// A place in a cell of one row, carried from one match to the next so that each byte is counted once.
#[derive(Clone, Copy, Default)]
struct CellPlace {
    /// The cell; `None` before the first.
    cell: Option<u32>,
    /// In the text of the cell.
    at: usize,
    /// In the bytes that the text was decoded from.
    offset: u64,
    /// 1-based, in code points, over all lines of the cell.
    column: u64,
}

impl CellPlace {
    fn advance(self, column: u32, cell: &[u8], to: usize, text: &CellText) -> CellPlace {
        let from = match self.cell {
            Some(known) if known == column && self.at <= to => self,
            _ => CellPlace { cell: Some(column), at: 0, offset: text.bom_len, column: 1 },
        };
        let passed = &cell[from.at..to];
        CellPlace {
            at: to,
            offset: from.offset + raw_len(passed, text.units),
            column: from.column + code_points(passed),
            ..from
        }
    }
}

/// Bytes of all values.
fn text_len(batch: &RowBatch) -> u64 {
    let of = |column: &ColumnValues| {
        (0..column.len()).filter_map(|row| column.get(row)).map(<[u8]>::len).sum::<usize>()
    };
    batch.columns.iter().map(of).sum::<usize>() as u64
}

/// What the table is called where it lies.
fn path(table: &Location) -> &[u8] {
    table.nested.last().map_or(table.key.as_bytes(), |step| &step.name)
}

/// A source that leaves values out would have them taken for those of other rows.
fn check_whole(batch: &RowBatch, columns: usize) -> Result<(), ObjectError> {
    let rows = batch.rows();
    if batch.columns.len() == columns && batch.columns.iter().all(|column| column.len() == rows) {
        return Ok(());
    }
    Err(ObjectError::new(Reason::ReadError, "the source gave a row that is not whole"))
}
