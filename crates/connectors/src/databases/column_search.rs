//! Which columns keep a table from being read: found by trying, half by half.
//!
//! A statement that fails as a whole does not say which of its columns it fails for: a type that has no text, a
//! function that divides by zero, a right that was taken away. Reading the same rows of fewer and fewer columns does.

use std::ops::Range;

use domesday_connector::ConnectorError;

/// Statements that are tried to find the columns of one table, at most.
const TRIES_MAX: usize = 256;
/// Rows that one try reads, beyond those that came before the failure.
const TRY_ROWS: u64 = 256;

/// Columns that cannot be read, by their places, each with what the server says of it.
pub(crate) type UnreadableColumns = Vec<(usize, ConnectorError)>;

/// A search among columns that cannot be read together.
pub(crate) struct ColumnSearch {
    /// To be tried, the next one last.
    waiting: Vec<Range<usize>>,
    unreadable: UnreadableColumns,
    columns: usize,
    tries_left: usize,
}

impl ColumnSearch {
    pub fn new(columns: usize) -> ColumnSearch {
        let mut search =
            ColumnSearch { waiting: Vec::new(), unreadable: Vec::new(), columns, tries_left: TRIES_MAX };
        search.halve(0..columns);
        search
    }

    /// Rows that each try is to read, when so many came before the failure.
    pub fn rows_to_try(rows_before: u64) -> u64 {
        rows_before.saturating_add(TRY_ROWS)
    }

    /// The columns to be tried next, if any; say with [`ColumnSearch::tried`] what came of it.
    pub fn next(&mut self) -> Option<Range<usize>> {
        self.tries_left = self.tries_left.checked_sub(1)?;
        self.waiting.pop()
    }

    /// What came of reading these columns alone.
    pub fn tried(&mut self, columns: Range<usize>, outcome: Result<(), ConnectorError>) {
        match outcome {
            Ok(()) => {}
            Err(error) if columns.len() == 1 => self.unreadable.push((columns.start, error)),
            Err(_) => self.halve(columns),
        }
    }

    /// The columns without which the others can be read, in their order; `None` when it is not single columns that
    /// the table fails for, or when all of them do.
    pub fn found(mut self) -> Option<UnreadableColumns> {
        let is_done = self.waiting.is_empty();
        let found = self.unreadable.len();
        self.unreadable.sort_by_key(|(place, _)| *place);
        (is_done && found > 0 && found < self.columns).then_some(self.unreadable)
    }

    fn halve(&mut self, columns: Range<usize>) {
        if columns.len() > 1 {
            let middle = columns.start + columns.len() / 2;
            self.waiting.extend([middle..columns.end, columns.start..middle]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domesday_model::Reason;

    /// The columns that are found, and after how many tries, where these cannot be read.
    fn search(columns: usize, unreadable: &[usize]) -> (Option<Vec<usize>>, usize) {
        let (mut search, mut tries) = (ColumnSearch::new(columns), 0);
        while let Some(range) = search.next() {
            tries += 1;
            let error = || ConnectorError::Container { reason: Reason::ReadError, detail: "no".into() };
            let fails = unreadable.iter().any(|column| range.contains(column));
            search.tried(range, if fails { Err(error()) } else { Ok(()) });
        }
        (search.found().map(|found| found.into_iter().map(|(place, _)| place).collect()), tries)
    }

    #[test]
    fn columns_that_cannot_be_read_are_found_and_no_others() {
        for (columns, unreadable) in [(2, &[1][..]), (7, &[0, 6]), (1_600, &[3, 4, 1_599]), (3, &[0, 2])] {
            let (found, tries) = search(columns, unreadable);
            assert_eq!(found.as_deref(), Some(unreadable), "{columns}");
            assert!(tries < TRIES_MAX, "{tries}");
        }
    }

    #[test]
    fn a_table_that_fails_for_all_or_none_of_its_columns_has_none_to_leave_out() {
        for (columns, unreadable) in [(1, vec![0]), (0, vec![]), (3, vec![0, 1, 2]), (5, vec![])] {
            assert_eq!(search(columns, &unreadable).0, None, "{columns}");
        }
        let every_other: Vec<usize> = (0..4_000).step_by(2).collect();
        assert_eq!(search(4_000, &every_other), (None, TRIES_MAX));
    }
}
