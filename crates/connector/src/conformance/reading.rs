//! Reading: exactly the object's bytes, whichever way they come.

use std::sync::Arc;

use domesday_content::ObjectError;
use domesday_model::{ListedObject, ObjectKey, Reason};
use domesday_scheduler::Opened;

use super::walk::{BATCH, on_scan_thread, read, read_whole, walk};
use super::{Fixture, cases};
use crate::{Connector, ReadAhead, Step, Surroundings, Trial};

cases![
    every_object_gives_its_bytes,
    objects_are_read_by_several_threads_at_once,
    objects_read_ahead_give_their_bytes,
    objects_read_ahead_may_be_opened_in_any_order,
    objects_read_ahead_need_not_be_opened,
    a_missing_object_has_vanished,
    a_trial_reads_an_object,
];

/// Threads that read at once.
const THREADS: usize = 4;

async fn every_object_gives_its_bytes(fixture: Arc<dyn Fixture>) {
    let connector = fixture.connector().await;
    for (key, content) in fixture.objects() {
        assert_eq!(read(&connector, &key).await.as_ref(), Ok(&content), "`{key}`");
    }
}

async fn objects_are_read_by_several_threads_at_once(fixture: Arc<dyn Fixture>) {
    let connector = fixture.connector().await;
    let objects: Vec<(ObjectKey, Vec<u8>)> = fixture.objects().into_iter().collect();
    let mut threads = Vec::new();
    for thread in 0..THREADS {
        let (connector, mut objects) = (Arc::clone(&connector), objects.clone());
        let places = objects.len().max(1);
        objects.rotate_left(thread % places);
        threads.push(tokio::spawn(async move {
            for (key, content) in objects {
                assert_eq!(read(&connector, &key).await, Ok(content), "`{key}`");
            }
        }));
    }
    for thread in threads {
        thread.await.unwrap();
    }
}

async fn objects_read_ahead_give_their_bytes(fixture: Arc<dyn Fixture>) {
    read_ahead_in(&*fixture, |places| places).await;
}

/// Threads take them in about their order; one that is late must not hold up the others.
async fn objects_read_ahead_may_be_opened_in_any_order(fixture: Arc<dyn Fixture>) {
    read_ahead_in(&*fixture, |places| places.into_iter().rev().collect()).await;
}

/// A scan may end early.
async fn objects_read_ahead_need_not_be_opened(fixture: Arc<dyn Fixture>) {
    read_ahead_in(&*fixture, |places| places.into_iter().skip(1).step_by(2).collect()).await;
}

/// Reads a packet of all objects ahead and opens those of `order`'s places, by several threads.
async fn read_ahead_in(fixture: &dyn Fixture, order: impl Fn(Vec<usize>) -> Vec<usize>) {
    let connector = fixture.connector().await;
    let objects: Vec<(ObjectKey, Vec<u8>)> = fixture.objects().into_iter().collect();
    let Some(ahead) = connector.read_ahead(&listed_objects(&*connector).await) else { return };
    let ahead: Arc<dyn ReadAhead> = ahead.into();
    let places = order((0..objects.len()).collect());
    let mut threads = Vec::new();
    for share in places.chunks(places.len().div_ceil(THREADS).max(1)) {
        let (ahead, share) = (Arc::clone(&ahead), share.to_vec());
        let reads = move || -> Vec<(usize, Result<Vec<u8>, ObjectError>)> {
            share
                .into_iter()
                .map(|index| (index, ahead.open(index).and_then(Opened::into_bytes).and_then(read_whole)))
                .collect()
        };
        threads.push(tokio::spawn(on_scan_thread(reads)));
    }
    for thread in threads {
        for (index, bytes) in thread.await.unwrap() {
            let (key, content) = &objects[index];
            assert_eq!(bytes.as_ref(), Ok(content), "`{key}`");
        }
    }
}

/// All objects in the order of their keys, as they are listed.
pub(super) async fn listed_objects(connector: &dyn Connector) -> Arc<[ListedObject]> {
    let seen = walk(connector, BATCH).await.unwrap();
    let listed =
        |(key, record)| ListedObject { key, ..ListedObject::in_container(&ObjectKey::default(), &record) };
    seen.objects.into_iter().map(listed).collect()
}

async fn a_missing_object_has_vanished(fixture: Arc<dyn Fixture>) {
    let Some(missing) = fixture.missing_object() else { return };
    let error = read(&fixture.connector().await, &missing).await.unwrap_err();
    assert_eq!(error.reason, Reason::Vanished, "{error}");
}

async fn a_trial_reads_an_object(fixture: Arc<dyn Fixture>) {
    let trial = Trial::of(fixture.connector().await, &Surroundings::default(), None).await;
    assert_eq!(trial.problem, None);
    assert_eq!(trial.passed.len(), Step::ALL.len());
}
