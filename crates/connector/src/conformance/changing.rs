//! A source that changes between two listings.

use std::sync::Arc;

use domesday_model::{Reason, VersionMarks};

use super::walk::{BATCH, read, walk};
use super::{Fixture, cases};

cases![
    marks_change_with_the_object_and_only_then,
    what_is_added_is_listed_and_read,
    what_is_removed_has_vanished,
];

/// What has the marks and the size it had is not read again, so that a change that shows in neither is lost.
async fn marks_change_with_the_object_and_only_then(fixture: Arc<dyn Fixture>) {
    let before = walk(&*fixture.connector().await, BATCH).await.unwrap().objects;
    if fixture.lists_marks() {
        for (key, record) in &before {
            assert_ne!(record.marks, VersionMarks::default(), "`{key}` has no marks");
        }
    }
    let Some(changed) = fixture.change().await else { return };
    let connector = fixture.connector().await;
    let after = walk(&*connector, BATCH).await.unwrap().objects;
    assert!(before.keys().eq(after.keys()), "an object that changes keeps its key");
    for (key, record) in &after {
        if *key != changed {
            assert_eq!(record.marks, before[key].marks, "`{key}` did not change");
        } else if fixture.lists_marks() {
            assert_ne!(record.marks, before[key].marks, "`{key}` changed");
        }
    }
    assert_eq!(read(&connector, &changed).await.as_ref(), Ok(&fixture.objects()[&changed]));
}

async fn what_is_added_is_listed_and_read(fixture: Arc<dyn Fixture>) {
    let Some(added) = fixture.add().await else { return };
    let connector = fixture.connector().await;
    let seen = walk(&*connector, BATCH).await.unwrap();
    assert!(seen.objects.contains_key(&added), "`{added}` is not listed");
    assert_eq!(read(&connector, &added).await.as_ref(), Ok(&fixture.objects()[&added]));
}

/// Also for a connector that has seen it.
async fn what_is_removed_has_vanished(fixture: Arc<dyn Fixture>) {
    let connector = fixture.connector().await;
    walk(&*connector, BATCH).await.unwrap();
    let Some(removed) = fixture.remove().await else { return };
    let error = read(&connector, &removed).await.unwrap_err();
    assert_eq!(error.reason, Reason::Vanished, "{error}");
    let seen = walk(&*fixture.connector().await, BATCH).await.unwrap();
    assert!(!seen.objects.contains_key(&removed), "`{removed}` is still listed");
}
