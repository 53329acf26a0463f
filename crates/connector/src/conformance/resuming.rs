//! Resuming: a listing that is cut short anywhere is gone on with by another process, and nothing is lost or
//! twice.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use domesday_model::{ObjectKey, ResumePolicy};

use super::walk::{BATCH, BATCH_SIZES, Batch, list, records, walk};
use super::{Fixture, cases};
use crate::Connector;

cases![a_listing_goes_on_wherever_it_was_cut, a_listing_that_ended_says_so];

/// Places a listing is cut at, at most: the first, the last, and some in between.
const CUTS_MAX: usize = 48;

async fn a_listing_goes_on_wherever_it_was_cut(fixture: Arc<dyn Fixture>) {
    let connector = fixture.connector().await;
    for container in walk(&*connector, BATCH).await.unwrap().containers {
        for max in BATCH_SIZES {
            let whole = list(&*connector, &container, None, max).await.unwrap();
            let every = (whole.len() / CUTS_MAX).max(1);
            for cut in (1..=whole.len()).rev().step_by(every) {
                let later = fixture.connector().await;
                check_cut(&*later, &container, &whole, cut, max).await;
            }
        }
    }
}

/// What the worker does with a listing of which `cut` batches are in the book.
async fn check_cut(later: &dyn Connector, container: &ObjectKey, whole: &[Batch], cut: usize, max: usize) {
    let at = format!("`{container}`, cut after {cut} batches of {max}");
    let names = |batches: &[Batch]| -> Vec<Vec<u8>> {
        batches.iter().flat_map(|batch| &batch.records).map(|record| record.name.clone()).collect()
    };
    let (before, expected) = (names(&whole[..cut]), names(whole));
    let relist = async |from: Option<&str>, max| {
        let listed = records(list(later, container, from, max).await.unwrap());
        listed.into_iter().map(|record| record.name).collect::<Vec<_>>()
    };
    match later.resume_policy(container) {
        ResumePolicy::FromResumePoint => match &whole[cut - 1].resume_point {
            None => assert_eq!(before, expected, "{at}: a last batch that is not the last"),
            // Another process may ask for larger batches.
            Some(point) => {
                for max in [max, BATCH] {
                    let mut all = before.clone();
                    all.extend(relist(Some(point), max).await);
                    assert_eq!(all, expected, "{at}, gone on with in batches of {max}");
                }
            }
        },
        ResumePolicy::ExcludeStaged | ResumePolicy::ExcludeListed => {
            let staged: HashSet<[u8; 16]> = before.iter().map(|name| ObjectKey::hash128(name)).collect();
            let mut all = before.clone();
            let again = relist(None, max).await;
            all.extend(again.into_iter().filter(|name| !staged.contains(&ObjectKey::hash128(name))));
            assert_eq!(all.len(), expected.len(), "{at}: entries are lost or twice");
            assert_eq!(sorted(all), sorted(expected), "{at}");
        }
        ResumePolicy::ClearAndRelist => assert_eq!(sorted(relist(None, max).await), sorted(expected), "{at}"),
    }
}

fn sorted(names: Vec<Vec<u8>>) -> BTreeSet<Vec<u8>> {
    names.into_iter().collect()
}

/// The last batch has no resume point, or the one it has leads to nothing.
async fn a_listing_that_ended_says_so(fixture: Arc<dyn Fixture>) {
    let connector = fixture.connector().await;
    for container in walk(&*connector, BATCH).await.unwrap().containers {
        if connector.resume_policy(&container) != ResumePolicy::FromResumePoint {
            continue;
        }
        for max in BATCH_SIZES {
            let whole = list(&*connector, &container, None, max).await.unwrap();
            let Some(point) = whole.last().and_then(|batch| batch.resume_point.clone()) else { continue };
            let rest = list(&*connector, &container, Some(&point), max).await.unwrap();
            assert!(rest.is_empty(), "`{container}` ends, and goes on from `{point}`");
        }
    }
}
