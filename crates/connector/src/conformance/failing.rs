//! Sources that refuse us, and ways that lose answers.

use std::io::Read;
use std::sync::Arc;

use domesday_content::ObjectError;
use domesday_model::ObjectKey;
use domesday_scheduler::{OpenBytes, Opened};

use super::reading::listed_objects;
use super::walk::{BATCH, BATCH_SIZES, list, on_scan_thread, open, walk};
use super::{Fixture, cases};
use crate::ConnectorError;

cases![
    a_bad_credential_is_told_and_not_shown,
    flaky_reads_give_the_right_bytes_or_an_error,
    flaky_objects_read_ahead_give_the_right_bytes_or_an_error,
    flaky_listings_are_complete_or_an_error,
];

/// One of these is in a message that says what to look at.
const WHAT_TO_LOOK_AT: &[&str] = &["credential", "token", "password", "key", "permission"];
/// How often a flaky source is asked.
const ATTEMPTS: usize = 3;

async fn a_bad_credential_is_told_and_not_shown(fixture: Arc<dyn Fixture>) {
    let Some(refused) = fixture.with_bad_credential().await else { return };
    assert!(!refused.secret.is_empty(), "a secret to look for");
    let connector = refused.connector;
    let listed = list(&*connector, &ObjectKey::default(), None, BATCH).await.err();
    let tested = connector.test().await.err();
    for error in [listed, tested] {
        let error = error.expect("a bad credential opens nothing");
        assert!(
            matches!(error, ConnectorError::Denied { .. } | ConnectorError::Credential(_)),
            "a bad credential is no {error:?}"
        );
        assert!(!error.is_retryable(), "a bad credential does not become a good one: {error}");
        let said = error.to_string();
        assert!(!said.contains(&refused.secret) && !format!("{error:?}").contains(&refused.secret));
        assert!(
            WHAT_TO_LOOK_AT.iter().any(|word| said.to_lowercase().contains(word)),
            "says what to look at: {said}"
        );
    }
    let key = fixture.objects().into_keys().next().unwrap();
    let opened = on_scan_thread(move || open(&*connector, &key).and_then(|open| read_some(open).1)).await;
    let error = opened.expect_err("a bad credential opens nothing");
    assert!(!error.to_string().contains(&refused.secret));
}

/// What was read, and how it ended.
fn read_some(mut open: OpenBytes) -> (Vec<u8>, Result<(), ObjectError>) {
    let mut bytes = Vec::new();
    let ended = open.reader.read_to_end(&mut bytes);
    (bytes, ended.map(drop).map_err(ObjectError::from))
}

/// Whether all of it came; if not, what came is the beginning of it.
fn check_flaky(key: &ObjectKey, content: &[u8], opened: Result<OpenBytes, ObjectError>) -> bool {
    let error = match opened.map(read_some) {
        Ok((bytes, Ok(()))) => {
            assert_eq!(bytes, content, "`{key}`");
            return true;
        }
        Ok((bytes, Err(error))) => {
            assert!(content.starts_with(&bytes), "`{key}`: wrong bytes before {error}");
            error
        }
        Err(error) => error,
    };
    assert!(!error.detail.is_empty(), "`{key}`: an error that says nothing");
    false
}

async fn flaky_reads_give_the_right_bytes_or_an_error(fixture: Arc<dyn Fixture>) {
    let Some(connector) = fixture.with_flaky_reads().await else { return };
    let mut whole = 0;
    for _ in 0..ATTEMPTS {
        for (key, content) in fixture.objects() {
            let connector = Arc::clone(&connector);
            let reads = move || check_flaky(&key, &content, open(&*connector, &key));
            whole += usize::from(on_scan_thread(reads).await);
        }
    }
    assert!(whole > 0, "a flaky source is not a dead one");
}

async fn flaky_objects_read_ahead_give_the_right_bytes_or_an_error(fixture: Arc<dyn Fixture>) {
    let Some(connector) = fixture.with_flaky_reads().await else { return };
    let listed = listed_objects(&*fixture.connector().await).await;
    for _ in 0..ATTEMPTS {
        let Some(ahead) = connector.read_ahead(&listed) else { return };
        let objects = fixture.objects();
        let reads = move || {
            for (index, (key, content)) in objects.iter().enumerate() {
                check_flaky(key, content, ahead.open(index).and_then(Opened::into_bytes));
            }
        };
        on_scan_thread(reads).await;
    }
}

async fn flaky_listings_are_complete_or_an_error(fixture: Arc<dyn Fixture>) {
    let Some(connector) = fixture.with_flaky_reads().await else { return };
    let expected: Vec<ObjectKey> = fixture.objects().into_keys().collect();
    for max in BATCH_SIZES {
        match walk(&*connector, max).await {
            Ok(seen) => assert_eq!(seen.objects.into_keys().collect::<Vec<_>>(), expected),
            Err(error) => assert!(error.is_retryable(), "a lost answer is no reason to give up: {error}"),
        }
    }
}
