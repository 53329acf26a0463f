//! Containers that come in pages: which page may follow which. Pure, and the same for every backend.
//!
//! A page is a unit of its own: committed whole, with the point where the next one begins, and its objects are
//! scanned while listing goes on. Crash argument: a page and its resume point become visible in one transaction,
//! so whoever comes next finds the last page that is there, and lists at most the one behind it again. A page
//! that is there stays as it is; one that would leave a gap is refused, so that nothing between two pages is
//! lost without a word.

use std::collections::HashMap;

use domesday_model::{ObjectKey, TaskId, UnitStatus};

use crate::error::StoreError;
use crate::types::{UnitListing, UnitState};

/// The last page of a container.
#[derive(Clone, Copy)]
pub(crate) struct LastPage {
    pub page: i64,
    /// It is committed, and says where the next one begins.
    pub is_open: bool,
}

impl LastPage {
    pub fn of(unit: &UnitState) -> LastPage {
        let is_open = unit.status == UnitStatus::Committed && unit.resume_point.is_some();
        LastPage { page: unit.page, is_open }
    }

    /// The page that comes next; of a container that has ended, none does, and its last one is told.
    fn next(last: Option<LastPage>) -> i64 {
        last.map_or(0, |last| last.page + i64::from(last.is_open))
    }
}

/// Whether this page is new: it is the one that comes next. One that is there already is not, and one that
/// leaves a gap is refused.
pub(crate) fn is_next(task: TaskId, last: Option<LastPage>, page: i64) -> Result<bool, StoreError> {
    let next = LastPage::next(last);
    match last {
        Some(last) if page <= last.page => Ok(false),
        Some(last) if !last.is_open => Err(StoreError::Gap { task, expected: next, found: page }),
        _ if page == next => Ok(true),
        _ => Err(StoreError::Gap { task, expected: next, found: page }),
    }
}

/// The first page of each container in a batch, by the places of the listings: if that one may follow what is
/// there, all of them may. Refused if there is a gap among them.
pub(crate) fn first_pages(task: TaskId, listings: &[UnitListing]) -> Result<Vec<i64>, StoreError> {
    let mut known: HashMap<&ObjectKey, (i64, LastPage)> = HashMap::new();
    let mut firsts = Vec::with_capacity(listings.len());
    for listing in listings {
        let seen = known.get(&listing.key).copied();
        let is_new = match seen {
            Some((_, last)) => is_next(task, Some(last), listing.page)?,
            None => true,
        };
        let first = seen.map_or(listing.page, |(first, _)| first.min(listing.page));
        if is_new {
            let last = LastPage { page: listing.page, is_open: listing.resume_point.is_some() };
            known.insert(&listing.key, (first, last));
        }
        firsts.push(first);
    }
    Ok(firsts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(key: &str, page: i64, goes_on: bool) -> UnitListing {
        let resume_point = goes_on.then(|| format!("after {page}"));
        UnitListing { page, resume_point, ..UnitListing::whole(ObjectKey::new(key.as_bytes()), Vec::new()) }
    }

    #[test]
    fn a_page_follows_the_last_one() {
        let check = |last: Option<(i64, bool)>, page, expect: Result<bool, i64>| {
            let last = last.map(|(page, is_open)| LastPage { page, is_open });
            let is = is_next(TaskId(1), last, page).map_err(|error| match error {
                StoreError::Gap { expected, .. } => expected,
                other => panic!("{other}"),
            });
            assert_eq!(is, expect);
        };
        check(None, 0, Ok(true));
        check(None, 1, Err(0));
        check(Some((0, true)), 0, Ok(false));
        check(Some((0, true)), 1, Ok(true));
        check(Some((0, true)), 2, Err(1));
        check(Some((3, false)), 3, Ok(false));
        check(Some((3, false)), 4, Err(3));
    }

    #[test]
    fn pages_of_one_batch_follow_one_another() {
        let firsts = |listings: &[UnitListing]| first_pages(TaskId(1), listings);
        let two = [page("a", 2, true), page("b", 0, false), page("a", 3, false)];
        assert_eq!(firsts(&two).unwrap(), [2, 0, 2]);
        assert_eq!(firsts(&[page("a", 0, false), page("a", 0, false)]).unwrap(), [0, 0], "the same again");
        assert!(firsts(&[page("a", 0, true), page("a", 2, true)]).is_err(), "one is missing");
        assert!(firsts(&[page("a", 0, false), page("a", 1, true)]).is_err(), "it had ended");
    }
}
