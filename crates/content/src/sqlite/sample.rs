//! A sample of a table: short runs of rows at places spread over all of it, the same ones for the same seed.
//!
//! Row numbers may have gaps, or almost all of them lie close together and one far off. So the numbers are split
//! until there are enough stretches that have rows, each from a row that exists to one that exists, and of each
//! stretch a run is read from a random place on, around its end to its beginning.

use rusqlite::types::Value;

use super::database::Database;
use super::error::SqliteError;
use super::layout::{Key, Layout, quoted};
use super::read::{Cells, Span};

/// Stretches that are aimed for.
const STRETCHES: u64 = 64;
/// How often row numbers are split, at most: as often as halves fit into 64 bits and more.
const ROUNDS_MAX: usize = 12;

type Each<'a> = dyn FnMut(&Cells<'_>) -> Result<bool, SqliteError> + 'a;

impl Database {
    /// Hands over about so many rows.
    pub fn sample(
        &self,
        layout: &Layout,
        rows: u64,
        seed: u64,
        each: &mut Each<'_>,
    ) -> Result<(), SqliteError> {
        if matches!(layout.key, Key::None) {
            return self.select(layout, &Span { limit: Some(rows), ..Span::default() }, each);
        }
        if self.count(layout, rows + 1)? <= rows {
            return self.select(layout, &Span::default(), each);
        }
        match layout.key {
            Key::Rowid(_) => self.sample_numbers(layout, rows, seed, each),
            _ => self.sample_keys(layout, rows, seed, each),
        }
    }

    /// How many rows there are, counted up to `max`.
    fn count(&self, layout: &Layout, max: u64) -> Result<u64, SqliteError> {
        let table = quoted(&layout.name);
        let sql =
            format!("SELECT count(*) FROM (SELECT 1 FROM main.{table} LIMIT {})", max.min(i64::MAX as u64));
        self.watch.allow(0);
        let count: i64 =
            self.connection.query_row(&sql, [], |row| row.get(0)).map_err(|error| self.error(error))?;
        Ok(count.cast_unsigned())
    }

    fn sample_numbers(
        &self,
        layout: &Layout,
        rows: u64,
        seed: u64,
        each: &mut Each<'_>,
    ) -> Result<(), SqliteError> {
        let stretches = self.stretches(layout)?;
        let share = rows.div_ceil(stretches.len().max(1) as u64);
        let mut is_wanted = true;
        for (number, &(first, last)) in stretches.iter().enumerate() {
            let (mut left, width) = (share, last.abs_diff(first) as u128 + 1);
            let start = first.wrapping_add((u128::from(mixed(seed, number as u64)) % width) as i64);
            let before = start.checked_sub(1).filter(|high| *high >= first).map(|high| (first, high));
            for (low, high) in [Some((start, last)), before].into_iter().flatten() {
                if !is_wanted || left == 0 {
                    break;
                }
                let (after, to) = (low.checked_sub(1), vec![Value::Integer(high)]);
                let after = after.map(|after| vec![Value::Integer(after)]);
                let span = Span { after, to: Some(to), limit: Some(left), offset: 0 };
                self.select(layout, &span, &mut |cells| {
                    left -= 1;
                    is_wanted = each(cells)?;
                    Ok(is_wanted)
                })?;
            }
        }
        Ok(())
    }

    /// Stretches of row numbers that begin and end with a row.
    fn stretches(&self, layout: &Layout) -> Result<Vec<(i64, i64)>, SqliteError> {
        let mut stretches: Vec<(i64, i64)> = self.rowids(layout, None)?.into_iter().collect();
        for _ in 0..ROUNDS_MAX {
            let count = stretches.len() as u64;
            if count == 0 || count >= STRETCHES / 2 || stretches.iter().all(|(first, last)| first == last) {
                break;
            }
            let mut split = Vec::new();
            for (first, last) in stretches {
                for part in parts(first, last, STRETCHES / count) {
                    split.extend(self.rowids(layout, Some(part))?);
                }
            }
            stretches = split;
        }
        Ok(stretches)
    }

    /// Where keys cannot be counted with, rows are: runs with as many rows left out in between.
    fn sample_keys(
        &self,
        layout: &Layout,
        rows: u64,
        seed: u64,
        each: &mut Each<'_>,
    ) -> Result<(), SqliteError> {
        let total = self.count(layout, self.rows_max())?;
        let (share, stride) = (rows.div_ceil(STRETCHES), total / STRETCHES);
        let mut after: Option<Vec<Value>> = None;
        let mut is_wanted = true;
        let mut skipped_before = 0;
        for number in 0..STRETCHES {
            let room = stride.saturating_sub(share);
            let skip = if room == 0 { 0 } else { mixed(seed, number) % (room + 1) };
            let leave_out = skipped_before + skip;
            if leave_out > 0 {
                match self.boundary_values(layout, after.take(), leave_out)? {
                    Some(key) => after = Some(key),
                    None => break,
                }
            }
            skipped_before = room - skip.min(room);
            let span = Span { after: after.clone(), to: None, limit: Some(share), offset: 0 };
            self.select(layout, &span, &mut |cells| {
                after = Some(cells.key()?);
                is_wanted = each(cells)?;
                Ok(is_wanted)
            })?;
            if !is_wanted {
                break;
            }
        }
        Ok(())
    }
}

/// So many parts of about the same width, or as many as there are numbers.
fn parts(first: i64, last: i64, count: u64) -> Vec<(i64, i64)> {
    let width = u128::from(last.abs_diff(first)) + 1;
    let count = u128::from(count.max(2)).min(width);
    let place = |part: u128| first.wrapping_add((width * part / count) as i64);
    (0..count).map(|part| (place(part), if part + 1 == count { last } else { place(part + 1) - 1 })).collect()
}

/// A number that looks random, by SplitMix64.
fn mixed(seed: u64, number: u64) -> u64 {
    let mut mixed = seed ^ number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_every_number_once() {
        for (first, last, count) in
            [(1, 10, 3), (5, 5, 8), (i64::MIN, i64::MAX, 64), (-3, 3, 100), (i64::MAX - 1, i64::MAX, 2)]
        {
            let parts = parts(first, last, count);
            assert_eq!((parts[0].0, parts[parts.len() - 1].1), (first, last));
            assert!(parts.iter().all(|(low, high)| low <= high), "{parts:?}");
            assert!(parts.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0), "{parts:?}");
        }
    }
}
