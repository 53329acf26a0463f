//! Cells that hold more than text: what is compressed or in UTF-16 is read as the text it stands for, and archives
//! and databases are objects of their own inside their column.
//!
//! Nearly all cells are plain text, so the first look is at a few bytes. Only rows of a batch that has others are
//! written anew, with the text in place of what it was packed in, and scanned in turns that are no larger than a
//! batch. What is unpacked counts against one budget per table.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use domesday_content::{
    Encoding, HEAD_LEN, Input, ObjectError, ReadAt, UnsupportedFormat, Unwrapped, Utf16Decoder, detect,
    recognise, unwrap,
};
use domesday_model::RowBatch;

use crate::executor::WorkerCtx;
use crate::fetch::Pace;
use crate::object::{ObjectCtx, ObjectRef};
use crate::opened::OpenBytes;
use crate::position::Units;
use crate::rows::TableStream;

/// Bytes of the shortest cell that is looked at: no format here is shorter, and no text worth decoding.
const PACKED_MIN: usize = 16;

/// How the text of a cell relates to its bytes.
#[derive(Clone)]
pub(crate) struct CellText {
    pub(crate) decoding: Arc<[Cow<'static, str>]>,
    pub(crate) units: Units,
    /// Bytes of a byte order mark before the text.
    pub(crate) bom_len: u64,
}

static PLAIN: LazyLock<CellText> =
    LazyLock::new(|| CellText { decoding: Arc::new([]), units: Units::Bytes, bom_len: 0 });

/// Those cells of a batch, by row and column, whose text is not their bytes.
#[derive(Default)]
pub(crate) struct CellTexts(HashMap<(u32, u32), CellText>);

impl CellTexts {
    pub(crate) fn get(&self, row: u32, column: u32) -> &CellText {
        match self.0.is_empty() {
            true => &PLAIN,
            false => self.0.get(&(row, column)).unwrap_or(&PLAIN),
        }
    }
}

/// What a cell turned out to be.
enum Unpacked {
    Text(Vec<u8>, CellText),
    /// An object of its own.
    Object,
    /// Nothing could be read.
    Lost,
}

/// A cell of the rows being scanned that is an object of its own.
struct Inside {
    /// In the rows as they were read.
    from: usize,
    /// In the rows as they are scanned.
    row: u32,
    column: usize,
}

pub(crate) fn any_packed(batch: &RowBatch) -> bool {
    batch.columns.iter().any(|column| (0..column.len()).any(|row| column.get(row).is_some_and(is_packed)))
}

/// The first format of a cell that is recognised and not read: documents are kept in tables, too.
pub(crate) fn not_read(batch: &RowBatch) -> Option<UnsupportedFormat> {
    let cells = batch.columns.iter().flat_map(|column| (0..column.len()).filter_map(|row| column.get(row)));
    cells.filter(|cell| cell.len() >= PACKED_MIN).find_map(|cell| recognise(cell, None))
}

fn head(cell: &[u8]) -> &[u8] {
    &cell[..cell.len().min(HEAD_LEN)]
}

fn is_packed(cell: &[u8]) -> bool {
    cell.len() >= PACKED_MIN && (detect(head(cell)).is_some() || is_utf16(cell))
}

/// One of the first bytes of UTF-16 is zero, or a byte order mark.
fn is_utf16(cell: &[u8]) -> bool {
    (cell[0] >= 0xfe || cell[..4].contains(&0)) && Encoding::detect(head(cell)).0 != Encoding::Bytes
}

impl WorkerCtx {
    /// Scans rows some of whose cells are packed.
    pub(crate) fn scan_unpacked(&mut self, obj: &ObjectRef, stream: &mut TableStream, batch: &RowBatch) {
        let mut rows = RowBatch::new(batch.columns.len());
        let mut texts = CellTexts::default();
        let mut inside = Vec::new();
        for row in 0..batch.rows() {
            let at = rows.rows() as u32;
            let mut room = RowBatch::BYTES_MAX;
            for (ordinal, column) in batch.columns.iter().enumerate() {
                let into = &mut rows.columns[ordinal];
                match column.get(row) {
                    None => into.push_null(),
                    Some(cell) if is_packed(cell) => {
                        let number = stream.rows + u64::from(at) + 1;
                        match self.unpack(obj, stream, cell, number, column.is_cut(row)) {
                            Unpacked::Text(text, how) if text.len() <= room => {
                                room -= text.len();
                                match column.is_cut(row) {
                                    true => into.push_cut(&text),
                                    false => into.push(&text),
                                }
                                texts.0.insert((at, ordinal as u32), how);
                            }
                            // A row of many packed values is not unpacked into memory all at once.
                            Unpacked::Text(..) | Unpacked::Object => {
                                into.push(&[]);
                                inside.push(Inside { from: row, row: at, column: ordinal });
                            }
                            Unpacked::Lost => into.push(&[]),
                        }
                    }
                    Some(cell) if column.is_cut(row) => into.push_cut(cell),
                    Some(cell) => into.push(cell),
                }
            }
            if rows.is_full() || row + 1 == batch.rows() {
                self.scan_rows(obj, stream, &rows, &texts);
                for cell in inside.drain(..) {
                    let bytes = batch.columns[cell.column].get(cell.from).unwrap_or_default();
                    self.scan_inside(obj, stream, &rows, &cell, bytes);
                }
                rows.clear();
                texts.0.clear();
            }
        }
    }

    /// The text of a cell. What cannot be unpacked is a flaw of the table, unless it was cut, which is one already.
    fn unpack(
        &mut self,
        obj: &ObjectRef,
        stream: &TableStream,
        cell: &[u8],
        row: u64,
        is_cut: bool,
    ) -> Unpacked {
        let flaw = |error: ObjectError| {
            if !is_cut {
                obj.flaw(row, ObjectError::new(error.reason, format!("in row {row}: {}", error.detail)));
            }
        };
        let format = match detect(head(cell)) {
            None => return decode(cell.to_vec(), Vec::new()),
            Some(format) if format.is_stream() => format,
            Some(_) => return Unpacked::Object,
        };
        let input = Input::Seekable(Arc::new(cell.to_vec()));
        let unwrapped = self.timed(obj, || unwrap(input, Some(format), &stream.budget, stream.depth));
        match unwrapped {
            Err(error) => {
                flaw(error.into());
                Unpacked::Lost
            }
            Ok((chain, Unwrapped::Plain(reader))) => {
                let mut text = Vec::new();
                let limit = RowBatch::VALUE_MAX as u64 + 1;
                if let Err(error) = self.timed(obj, || reader.take(limit).read_to_end(&mut text)) {
                    flaw(error.into());
                }
                // A text that is longer than a value may be is read in chunks, like any object.
                if text.len() > RowBatch::VALUE_MAX { Unpacked::Object } else { decode(text, chain) }
            }
            Ok(_) => Unpacked::Object,
        }
    }

    /// Scans what is inside a cell as an object of its own. If it panics, it fails alone.
    fn scan_inside(
        &mut self,
        obj: &ObjectRef,
        stream: &TableStream,
        rows: &RowBatch,
        at: &Inside,
        cell: &[u8],
    ) {
        let name = stream.scan.row_name(rows, at.row as usize).into();
        let column = &stream.columns[at.column].location;
        let child = ObjectCtx::cell(obj, column, name, Arc::clone(&stream.budget), stream.depth);
        self.metrics().objects_discovered.add(1);
        let bytes: Arc<dyn ReadAt> = Arc::new(cell.to_vec());
        let reader = Input::Seekable(Arc::clone(&bytes)).into_read();
        let opened = OpenBytes::seekable(reader, bytes, Some(cell.len() as u64));
        let fetch = AssertUnwindSafe(|| self.fetch_object(&child, opened, Pace::Inline));
        if let Err(panic) = catch_unwind(fetch) {
            self.blame(&child, &*panic);
        }
    }
}

/// Text that came out of compressors, or none.
fn decode(text: Vec<u8>, mut chain: Vec<&'static str>) -> Unpacked {
    let (encoding, bom_len) = Encoding::detect(head(&text));
    chain.extend(encoding.name());
    let mut how = CellText {
        decoding: chain.into_iter().map(Cow::Borrowed).collect(),
        units: Units::Bytes,
        bom_len: bom_len as u64,
    };
    let Some(mut decoder) = Utf16Decoder::new(encoding) else {
        return Unpacked::Text(text[bom_len..].to_vec(), how);
    };
    let mut decoded = Vec::new();
    decoder.decode(&text[bom_len..], true, &mut decoded);
    how.units = Units::Utf16;
    Unpacked::Text(decoded, how)
}
