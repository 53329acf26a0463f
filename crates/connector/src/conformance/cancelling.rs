//! Cancelling: whatever is dropped in the middle leaves nothing behind. The runner waits for what blocks a
//! thread; tasks are counted here.

use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domesday_model::ObjectKey;
use domesday_scheduler::Opened;
use tokio::runtime::Handle;

use super::reading::listed_objects;
use super::walk::{BATCH, on_scan_thread, open, read, walk};
use super::{Fixture, cases};
use crate::Connector;

cases![a_dropped_listing_leaves_nothing, a_dropped_reader_leaves_nothing, what_is_read_ahead_may_be_dropped];

/// How often something is dropped: a task left behind each time stands out.
const ROUNDS: usize = 16;
/// How long what was dropped may take to end.
const ENDING_TIME_MAX: Duration = Duration::from_secs(10);
/// How often it is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

async fn a_dropped_listing_leaves_nothing(fixture: Arc<dyn Fixture>) {
    let before = used_once(&*fixture).await;
    for _ in 0..ROUNDS {
        let connector = fixture.connector().await;
        let root = ObjectKey::default();
        drop(connector.list(&root, None).await.unwrap());
        let mut listing = connector.list(&root, None).await.unwrap();
        once(listing.next_batch(BATCH)).await;
        drop(listing);
        let mut listing = connector.list(&root, None).await.unwrap();
        listing.next_batch(1).await.unwrap();
        once(listing.next_batch(1)).await;
        drop(listing);
        once(connector.list(&root, None)).await;
    }
    check_all_is_well(&*fixture, before).await;
}

async fn a_dropped_reader_leaves_nothing(fixture: Arc<dyn Fixture>) {
    let before = used_once(&*fixture).await;
    for _ in 0..ROUNDS {
        let connector = fixture.connector().await;
        let keys: Vec<ObjectKey> = fixture.objects().into_keys().collect();
        let reads = move || {
            for key in keys {
                drop(open(&*connector, &key).unwrap());
                let read = open(&*connector, &key).unwrap().reader.read(&mut [0]);
                assert!(read.is_ok(), "`{key}`");
            }
        };
        on_scan_thread(reads).await;
    }
    check_all_is_well(&*fixture, before).await;
}

async fn what_is_read_ahead_may_be_dropped(fixture: Arc<dyn Fixture>) {
    let before = used_once(&*fixture).await;
    for round in 0..ROUNDS {
        let connector = fixture.connector().await;
        let listed = listed_objects(&*connector).await;
        drop(connector.read_ahead(&listed));
        let Some(ahead) = connector.read_ahead(&listed) else { return };
        let opens = move || {
            // One that is read, one that is not, and the rest under way.
            let mut first = ahead.open(0).and_then(Opened::into_bytes).unwrap();
            let _second = ahead.open(round % listed.len());
            drop(ahead);
            drop(first.reader.read(&mut [0]));
        };
        on_scan_thread(opens).await;
    }
    check_all_is_well(&*fixture, before).await;
}

/// Polls a future once, and drops it.
async fn once<T>(future: impl Future<Output = T>) {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| {
        drop(future.as_mut().poll(context));
        std::task::Poll::Ready(())
    })
    .await;
}

/// How many tasks run when the source was used and nothing is under way: those of its own.
async fn used_once(fixture: &dyn Fixture) -> usize {
    let connector = fixture.connector().await;
    walk(&*connector, BATCH).await.unwrap();
    drop(connector);
    Handle::current().metrics().num_alive_tasks()
}

async fn check_all_is_well(fixture: &dyn Fixture, before: usize) {
    let connector: Arc<dyn Connector> = fixture.connector().await;
    let expected = fixture.objects();
    let listed: Vec<ObjectKey> = walk(&*connector, BATCH).await.unwrap().objects.into_keys().collect();
    assert!(listed.iter().eq(expected.keys()), "a listing after others were dropped");
    for (key, content) in &expected {
        assert_eq!(read(&connector, key).await.as_ref(), Ok(content), "`{key}`");
    }
    drop(connector);
    let begun = Instant::now();
    loop {
        let alive = Handle::current().metrics().num_alive_tasks();
        if alive < before + ROUNDS {
            return;
        }
        assert!(begun.elapsed() < ENDING_TIME_MAX, "{alive} tasks run, {before} did before");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
