//! Records of units on their way into the book: the rows that are many, and so the ones whose number of statements
//! counts.

use std::sync::LazyLock;

use domesday_model::{ObjectKey, Reason, UnitId, UnitRecord};
use rusqlite::{CachedStatement, Connection, params};

use super::{Result, queries};
use crate::queries::statement;

/// Rows that go in with one statement: beyond that little is saved.
const ROWS_TOGETHER: usize = 16;

/// `insert_plain_record` for as many rows as go in together.
static PLAIN: LazyLock<String> = LazyLock::new(|| {
    const ONE: &str = statement(queries::ENUMERATION, "insert_plain_record");
    let one = ONE.trim_end().trim_end_matches(';');
    let (_, row) = one.split_once("VALUES ").expect("it inserts values");
    format!("{one}{}", format!(", {row}").repeat(ROWS_TOGETHER - 1))
});

/// A record with its place in the book.
type Row<'r> = (UnitId, i64, &'r UnitRecord);

/// Inserts the records of new units, each whole, and in the transaction that commits them.
pub(super) fn insert_whole<'r>(
    c: &Connection,
    units: impl IntoIterator<Item = (UnitId, &'r [UnitRecord])>,
) -> Result<()> {
    let mut together = c.prepare_cached(&PLAIN)?;
    let mut insert = Insert::new(c)?;
    let mut rows: Vec<Row<'r>> = Vec::with_capacity(ROWS_TOGETHER);
    for (unit, records) in units {
        for (sequence, record) in (0..).zip(records) {
            if !is_plain(record) {
                insert.row((unit, sequence, record), &[])?;
                continue;
            }
            rows.push((unit, sequence, record));
            if rows.len() == ROWS_TOGETHER {
                insert_together(&mut together, &rows)?;
                rows.clear();
            }
        }
    }
    rows.into_iter().try_for_each(|row| insert.row(row, &[]))
}

/// Inserts a part of a unit's records, from a sequence number on. Others may follow, after whoever lists was
/// killed: by their hashes it is told what is there.
pub(super) fn insert_part(
    c: &Connection,
    unit: UnitId,
    first_sequence: i64,
    records: &[UnitRecord],
) -> Result<()> {
    let mut insert = Insert::new(c)?;
    for (sequence, record) in (first_sequence..).zip(records) {
        insert.row((unit, sequence, record), &ObjectKey::hash128(&record.name))?;
    }
    Ok(())
}

/// Whether it has what `insert_plain_record` inserts, and no more.
fn is_plain(record: &UnitRecord) -> bool {
    record.marks.tag.is_none() && record.reason.is_none() && record.metadata.is_none()
}

fn insert_together(statement: &mut CachedStatement<'_>, rows: &[Row<'_>]) -> Result<()> {
    let mut parameter = 0;
    for (unit, sequence, record) in rows {
        let mut bind = |value: &dyn rusqlite::ToSql| {
            parameter += 1;
            statement.raw_bind_parameter(parameter, value)
        };
        bind(&unit.0)?;
        bind(sequence)?;
        bind(&record.kind.code())?;
        bind(&record.name)?;
        bind(&record.size.cast_signed())?;
        bind(&record.marks.mtime_ns)?;
        bind(&record.marks.ctime_ns)?;
        bind(&record.marks.inode.cast_signed())?;
    }
    statement.raw_execute()?;
    Ok(())
}

/// Inserts records one by one, whatever they have.
struct Insert<'c>(CachedStatement<'c>);

impl Insert<'_> {
    fn new(c: &Connection) -> Result<Insert<'_>> {
        const RECORD: &str = statement(queries::ENUMERATION, "insert_record");
        Ok(Insert(c.prepare_cached(RECORD)?))
    }

    fn row(&mut self, (unit, sequence, record): Row<'_>, hash: &[u8]) -> Result<()> {
        self.0.execute(params![
            unit.0,
            sequence,
            record.kind.code(),
            record.name,
            hash,
            record.size.cast_signed(),
            record.marks.mtime_ns,
            record.marks.ctime_ns,
            record.marks.inode.cast_signed(),
            record.marks.tag,
            record.reason.map(Reason::as_str),
            record.metadata.as_deref(),
        ])?;
        Ok(())
    }
}
