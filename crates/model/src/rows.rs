//! Rows of a table on their way from where they are read to where they are matched, by column.
//!
//! Each value stands in its column's buffer between a space and a line's end, as it does behind the column's name when
//! it is scanned: so one pass over the buffer finds the triggers of all of them, and none that spans two.

/// Stands before and after each value.
const BEFORE: u8 = b' ';
const AFTER: u8 = b'\n';

/// The values of one column in a batch of rows, one after another in one buffer.
#[derive(Clone, Default, Debug)]
pub struct ColumnValues {
    bytes: Vec<u8>,
    /// Per value: where it ends in `bytes`, and what it is.
    cells: Vec<(u32, Cell)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cell {
    Null,
    Whole,
    /// Only the beginning of the value is here.
    Cut,
}

impl ColumnValues {
    pub fn push_null(&mut self) {
        self.end(Cell::Null);
    }

    pub fn push(&mut self, value: &[u8]) {
        self.push_with(|bytes| bytes.extend_from_slice(value));
    }

    /// The beginning of a value that is too long.
    pub fn push_cut(&mut self, value: &[u8]) {
        self.bytes.push(BEFORE);
        self.bytes.extend_from_slice(value);
        self.bytes.push(AFTER);
        self.end(Cell::Cut);
    }

    /// A value that is written into the column's own buffer, behind what is there.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.push(BEFORE);
        write(&mut self.bytes);
        self.bytes.push(AFTER);
        self.end(Cell::Whole);
    }

    fn end(&mut self, cell: Cell) {
        self.cells.push((self.bytes.len() as u32, cell));
    }

    pub fn len(&self) -> usize {
        self.cells.len()
    }

    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The value in a row; `None` when it is null.
    pub fn get(&self, row: usize) -> Option<&[u8]> {
        let (end, cell) = self.cells[row];
        let start = row.checked_sub(1).map_or(0, |before| self.cells[before].0);
        (cell != Cell::Null).then(|| &self.bytes[start as usize + 1..end as usize - 1])
    }

    /// The row whose value, or what stands around it, is at `place` of the buffer.
    pub fn row_at(&self, place: usize) -> usize {
        self.cells.partition_point(|(end, _)| *end as usize <= place)
    }

    pub fn is_cut(&self, row: usize) -> bool {
        self.cells[row].1 == Cell::Cut
    }

    /// All values, one after another, each with what stands around it.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn clear(&mut self) {
        self.truncate(0);
    }

    fn truncate(&mut self, rows: usize) {
        self.cells.truncate(rows);
        self.bytes.truncate(self.cells.last().map_or(0, |(end, _)| *end as usize));
    }
}

/// Some rows of a table. Whoever fills it keeps it within [`RowBatch::ROWS_MAX`] and about
/// [`RowBatch::BYTES_MAX`].
#[derive(Clone, Default, Debug)]
pub struct RowBatch {
    pub columns: Vec<ColumnValues>,
}

impl RowBatch {
    /// Rows of a batch, at most.
    pub const ROWS_MAX: usize = 4_096;
    /// Bytes after which no further row is added. One row more may exceed it, by what a row may be.
    pub const BYTES_MAX: usize = 1 << 20;
    /// Bytes kept of one value.
    pub const VALUE_MAX: usize = 256 << 10;

    pub fn new(columns: usize) -> RowBatch {
        RowBatch { columns: vec![ColumnValues::default(); columns] }
    }

    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, ColumnValues::len)
    }

    pub fn is_full(&self) -> bool {
        self.rows() >= RowBatch::ROWS_MAX
            || self.columns.iter().map(|column| column.bytes().len()).sum::<usize>() >= RowBatch::BYTES_MAX
    }

    pub fn clear(&mut self) {
        self.columns.iter_mut().for_each(ColumnValues::clear);
    }

    /// Drops the values of a row that was not put whole.
    pub fn keep_whole_rows(&mut self) {
        let rows = self.columns.iter().map(ColumnValues::len).min().unwrap_or(0);
        self.columns.iter_mut().for_each(|column| column.truncate(rows));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_was_begun_is_dropped_and_those_before_it_stay() {
        let mut batch = RowBatch::new(2);
        for (column, values) in [["a", "b", "c"].as_slice(), &["1", "2"]].into_iter().enumerate() {
            values.iter().for_each(|value| batch.columns[column].push(value.as_bytes()));
        }
        batch.keep_whole_rows();
        assert_eq!(batch.columns[0].bytes(), b" a\n b\n");
        assert_eq!((batch.rows(), batch.columns[1].len()), (2, 2));
    }

    #[test]
    fn values_come_back_as_they_were_put() {
        let mut values = ColumnValues::default();
        values.push(b"one");
        values.push_null();
        values.push(b"");
        values.push_cut(b"be");
        values.push_with(|bytes| bytes.extend_from_slice(b"two\nlines"));
        let all: Vec<_> = (0..values.len()).map(|row| values.get(row)).collect();
        assert_eq!(all, [Some(&b"one"[..]), None, Some(b""), Some(b"be"), Some(b"two\nlines")]);
        assert!(values.is_cut(3) && !values.is_cut(0));
        assert_eq!(values.bytes(), b" one\n \n be\n two\nlines\n");
        let rows: Vec<_> = [0, 4, 5, 6, 7, 11].map(|place| values.row_at(place)).into();
        assert_eq!(rows, [0, 0, 2, 2, 3, 4]);
    }
}
