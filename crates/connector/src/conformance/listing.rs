//! Listings: complete, each entry once, in batches as asked for.

use std::sync::Arc;

use domesday_model::{ObjectKey, ResumePolicy, UnitRecord};

use super::walk::{BATCH, BATCH_SIZES, list, records, walk};
use super::{Fixture, cases};

cases![
    every_object_is_listed_once,
    listings_are_the_same_each_time,
    sizes_are_those_of_the_objects,
    a_missing_container_is_an_error,
    a_test_finds_something,
];

async fn every_object_is_listed_once(fixture: Arc<dyn Fixture>) {
    let connector = fixture.connector().await;
    let expected: Vec<ObjectKey> = fixture.objects().into_keys().collect();
    for max in BATCH_SIZES {
        let listed: Vec<ObjectKey> = walk(&*connector, max).await.unwrap().objects.into_keys().collect();
        assert_eq!(listed, expected, "in batches of {max}");
    }
}

/// The same entries with the same marks; also in the same order where a listing goes on from a point in it.
async fn listings_are_the_same_each_time(fixture: Arc<dyn Fixture>) {
    let first = fixture.connector().await;
    let second = fixture.connector().await;
    for container in walk(&*first, BATCH).await.unwrap().containers {
        let mut seen: Vec<Vec<UnitRecord>> = Vec::new();
        for connector in [&first, &first, &second] {
            for max in BATCH_SIZES {
                let mut listed = records(list(&**connector, &container, None, max).await.unwrap());
                if connector.resume_policy(&container) != ResumePolicy::FromResumePoint {
                    listed.sort_by(|a, b| a.name.cmp(&b.name));
                }
                seen.push(listed);
            }
        }
        assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "`{container}` is listed in different ways");
    }
}

async fn sizes_are_those_of_the_objects(fixture: Arc<dyn Fixture>) {
    if !fixture.lists_sizes() {
        return;
    }
    let seen = walk(&*fixture.connector().await, BATCH).await.unwrap();
    for (key, content) in fixture.objects() {
        assert_eq!(seen.objects[&key].size, content.len() as u64, "`{key}`");
    }
}

/// Not an empty listing: that would say that all is done.
async fn a_missing_container_is_an_error(fixture: Arc<dyn Fixture>) {
    let Some(missing) = fixture.missing_container() else { return };
    let listed = list(&*fixture.connector().await, &missing, None, BATCH).await;
    let error = listed.err().expect("a container that is not there cannot be listed");
    assert!(!error.to_string().is_empty());
}

async fn a_test_finds_something(fixture: Arc<dyn Fixture>) {
    let entries = fixture.connector().await.test().await.unwrap();
    assert!(entries > 0, "the source has objects, and a test finds nothing");
}
