//! Pages, resumption, fan-out, and keys that are hard to list.

use std::time::Duration;

use domesday_connector::ConnectorError;
use domesday_model::ListedObject;
use domesday_testkit::s3::{Faults, Generated, Manners};

use super::*;

fn sorted(keys: &[&str]) -> Vec<String> {
    let mut keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    keys.sort();
    keys
}

#[tokio::test]
async fn odd_keys_are_listed_and_read_or_named() {
    let shop = Shop::with_keys(ODD_KEYS.iter().chain(UNADDRESSABLE).copied());
    let long = "é/".repeat(340) + "abcd";
    assert_eq!(long.len(), 1024);
    shop.memory.put(long.as_str(), format!("text of {long}"));
    let mut expected = sorted(&[ODD_KEYS, UNADDRESSABLE].concat());
    expected.push(long);
    expected.sort();
    for (depth, batch) in [(8, BATCH), (0, BATCH), (0, 7), (0, 1), (8, 3)] {
        let connect = || shop.connector_with(json!({ "fan_out_depth": depth }));
        let walk = walk(connect, batch).await;
        assert_eq!(walk.keys(), expected, "depth {depth}, pages of {batch}");
        for key in UNADDRESSABLE {
            assert_eq!(walk.skipped(key), Some(Reason::UnsupportedKey), "{key}");
        }
    }
    let connector = shop.connector();
    for key in expected.iter().filter(|key| !UNADDRESSABLE.contains(&key.as_str())) {
        let text = read(connector.as_ref(), key).map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(text, Ok(format!("text of {key}")), "{key:?}");
    }
    assert_eq!(read(connector.as_ref(), "x/../y"), Err(Reason::UnsupportedKey));
}

/// Folders so large that they become containers, with odd names, and keys beside them that sort among them.
#[tokio::test]
async fn large_folders_become_containers_whatever_they_are_called() {
    let folders = ["/", "//", "a/", "a//", "a/b/", "ä+ %/", "z\u{1}/", "..a/"];
    let in_folders = folders.iter().flat_map(|folder| (0..200).map(move |n| format!("{folder}{n:03}")));
    let mut keys: Vec<String> = in_folders.chain(ODD_KEYS.iter().map(|key| (*key).to_owned())).collect();
    keys.sort();
    let shop = Shop::with_keys(keys.clone());
    for batch in [BATCH, 100, 7] {
        let walk = walk(|| shop.connector(), batch).await;
        assert_eq!(walk.keys(), keys, "pages of {batch}");
        assert!(walk.containers > 1, "pages of {batch}: {} containers", walk.containers);
    }
}

#[tokio::test]
async fn every_page_says_where_the_next_begins() {
    let server = Server::start(Arc::new(Generated { count: 10_500, key: |n| format!("flat/{n:06}") }));
    let secret = secret(SECRET_ACCESS_KEY);
    let walk = walk(|| s3_connector(&server, &secret, json!({})), BATCH).await;
    assert_eq!(walk.records.len(), 10_500);
    let counts = server.counts();
    // Eleven pages of keys, the folder, the first look at the root and the look for keys that begin with a slash.
    assert_eq!((walk.pages, counts.pages), (12, 14));
}

#[tokio::test]
async fn many_tiny_folders_cost_pages_and_not_requests() {
    let server =
        Server::start(Arc::new(Generated { count: 20_000, key: |n| format!("{:05}/{}", n / 4, n % 4) }));
    let secret = secret(SECRET_ACCESS_KEY);
    let walk = walk(|| s3_connector(&server, &secret, json!({})), BATCH).await;
    assert_eq!((walk.records.len(), walk.containers, server.counts().pages), (20_000, 1, 20));
}

#[tokio::test]
async fn a_bucket_that_branches_late_is_split_where_it_does() {
    let key = |n: u64| format!("logs/2024/app/{}/{:06}", n / 2_000, n % 2_000);
    let server = Server::start(Arc::new(Generated { count: 10_000, key }));
    let secret = secret(SECRET_ACCESS_KEY);
    let walk = walk(|| s3_connector(&server, &secret, json!({})), BATCH).await;
    assert_eq!((walk.records.len(), walk.containers), (10_000, 1 + 3 + 5));
    let shallow = super::walk(|| s3_connector(&server, &secret, json!({ "fan_out_depth": 2 })), BATCH).await;
    assert_eq!((shallow.records.len(), shallow.containers), (10_000, 1 + 2));
}

#[tokio::test]
async fn a_prefix_is_where_a_listing_stays() {
    let shop = Shop::with_keys(["logs/a", "logs/b/c", "logs-old/a", "lo", "x", "/logs/a"]);
    for (prefix, keys) in [
        ("logs/", vec!["logs/a", "logs/b/c"]),
        ("logs", vec!["logs-old/a", "logs/a", "logs/b/c"]),
        ("/", vec!["/logs/a"]),
        ("none", vec![]),
    ] {
        let walk = walk(|| shop.connector_with(json!({ "prefix": prefix })), 2).await;
        assert_eq!(walk.keys(), keys, "{prefix}");
    }
}

#[tokio::test]
async fn what_the_user_leaves_out_is_named() {
    let shop = Shop::with_keys(["a.log", "b/a.log", "b/c.txt", "skip/x.txt", "d.txt"]);
    shop.memory.put("big.txt", vec![b'x'; 100]);
    shop.memory.put_archived("old.txt", "cold");
    let fields = json!({ "exclude": ["*.log", "skip/"], "max_file_size": 50 });
    let walk = walk(|| shop.connector_with(fields.clone()), BATCH).await;
    let reasons = |walk: &Walk| -> Vec<(String, Option<Reason>)> {
        walk.keys().into_iter().map(|key| (key.clone(), walk.skipped(&key))).collect()
    };
    let expect = |key: &str, reason| (key.to_owned(), reason);
    assert_eq!(
        reasons(&walk),
        [
            expect("a.log", Some(Reason::Excluded)),
            expect("b/a.log", Some(Reason::Excluded)),
            expect("b/c.txt", None),
            expect("big.txt", Some(Reason::TooLarge)),
            expect("d.txt", None),
            expect("old.txt", Some(Reason::Archived)),
            expect("skip/x.txt", Some(Reason::Excluded)),
        ]
    );
    let only = super::walk(|| shop.connector_with(json!({ "include": ["b/"] })), BATCH).await;
    let left: Vec<String> =
        reasons(&only).into_iter().filter(|(_, reason)| reason.is_none()).map(|(key, _)| key).collect();
    assert_eq!(left, ["b/a.log", "b/c.txt"]);
    assert_eq!(read(shop.connector().as_ref(), "old.txt"), Err(Reason::Archived));
}

#[tokio::test]
async fn versions_are_kept() {
    let shop = Shop::with_keys(["a", "b"]);
    let before = walk(|| shop.connector(), BATCH).await;
    shop.memory.put("b", "text of c");
    let after = walk(|| shop.connector(), BATCH).await;
    let marks = |walk: &Walk, key: &str| walk.records[&ObjectKey::new(key)].marks;
    assert_eq!(marks(&before, "a"), marks(&after, "a"));
    assert_ne!(marks(&before, "b").tag, marks(&after, "b").tag);
    assert_eq!(marks(&before, "a").mtime_ns, 1_700_000_000_000_000_000);
    assert_eq!(before.records[&ObjectKey::new("a")].size, 9);
}

#[tokio::test]
async fn a_store_that_gives_the_last_key_again_lists_each_once() {
    let keys: Vec<String> = (0..40).map(|n| format!("{}/{n:02}", n / 20)).collect();
    let shop = Shop::with_keys(keys.clone());
    shop.server.set_manners(Manners { is_inclusive: true, ..Manners::default() });
    for batch in [BATCH, 7, 2, 1] {
        let walk = walk(|| shop.connector_with(json!({ "fan_out_depth": 0 })), batch).await;
        assert_eq!(walk.keys(), keys, "pages of {batch}");
    }
    let large: Vec<String> = (0..2_500).map(|n| format!("{}/{n:04}", n / 1_250)).collect();
    let shop = Shop::with_keys(large.clone());
    shop.server.set_manners(Manners { is_inclusive: true, ..Manners::default() });
    let walk = walk(|| shop.connector(), 100).await;
    assert_eq!(walk.keys(), large);
    assert!(walk.containers > 1);
}

#[tokio::test]
async fn versions_that_are_not_current_are_told_once() {
    let shop = Shop::with_keys(["a/b", "c", "?versions"]);
    shop.server.set_manners(Manners { is_versioned: true, ..Manners::default() });
    for (batch, prefix) in [(BATCH, ""), (3, ""), (1, ""), (BATCH, "a/")] {
        let connect = || shop.connector_with(json!({ "prefix": prefix }));
        let connector = connect();
        let mut told = Vec::new();
        let mut resume_point = None;
        loop {
            let mut listing = connect().list(&ObjectKey::default(), resume_point.as_deref()).await.unwrap();
            let records = listing.next_batch(batch).await.unwrap();
            assert!(records.len() <= batch);
            let objects =
                records.iter().map(|record| ListedObject::in_container(&ObjectKey::default(), record));
            let objects: Arc<[ListedObject]> = objects.collect();
            let ahead = connector.read_ahead(&objects).unwrap();
            for (at, object) in objects.iter().enumerate() {
                let (opened, ahead) = (connector.open(object).err(), ahead.open(at).err());
                assert_eq!(opened, ahead);
                told.extend(opened.map(|error| error.reason));
            }
            resume_point = listing.resume_point();
            if resume_point.is_none() {
                break;
            }
        }
        assert_eq!(told, [Reason::OlderVersions], "pages of {batch}");
    }
    assert_eq!(
        read(shop.connector().as_ref(), "?versions").unwrap(),
        b"text of ?versions",
        "an object of that key"
    );
    shop.server.set_manners(Manners::default());
    assert_eq!(walk(|| shop.connector(), BATCH).await.keys(), ["?versions", "a/b", "c"]);
}

#[tokio::test]
async fn a_listing_through_faults_is_the_same() {
    let key = |n: u64| format!("{}/{:06}", n / 500, n % 500);
    let server = Server::start(Arc::new(Generated { count: 3_000, key }));
    let secret = secret(SECRET_ACCESS_KEY);
    let calm = walk(|| s3_connector(&server, &secret, json!({})), 100).await;
    assert_eq!(calm.records.len(), 3_000);
    for seed in [1, 2] {
        server.set_faults(Faults::some(seed));
        let rough = walk(|| s3_connector(&server, &secret, json!({})), 100).await;
        assert_eq!(rough.records, calm.records, "seed {seed}");
    }
    assert!(server.counts().faults > 10);
}

#[tokio::test]
async fn a_store_that_stays_busy_is_waited_for() {
    let shop = Shop::with_keys(["a"]);
    shop.server.set_faults(Faults { slow_downs: 1_000, ..Faults::default() });
    let error = shop.connector().test().await.unwrap_err();
    assert!(matches!(error, ConnectorError::Wait { after, .. } if after > Duration::from_secs(1)), "{error}");
    shop.server.set_faults(Faults::default());
    assert_eq!(shop.connector().test().await.unwrap(), 1);
}

#[tokio::test]
async fn a_resume_point_of_another_version_is_refused() {
    let shop = Shop::with_keys(["a"]);
    let listed = shop.connector().list(&ObjectKey::default(), Some("nonsense")).await;
    assert!(listed.err().unwrap().to_string().contains("resume point"));
}
