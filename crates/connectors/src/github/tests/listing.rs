//! Listing repositories: pages, resume points, selection, and what is asked of whom.

use super::*;

#[tokio::test]
async fn every_page_is_listed_and_a_listing_goes_on_from_every_point() {
    let fake = Fake::with(250);
    let configuration = json!({ "organisation": "acme" });
    let connector = fake.connector(configuration.clone());
    assert_eq!(connector.resume_policy(&ObjectKey::default()), ResumePolicy::FromResumePoint);
    let (whole, targets) = list(connector.as_ref(), "", 1_000).await.unwrap();
    let expected: Vec<String> = (0..250).map(|number| format!("acme/r{number:03}")).collect();
    assert_eq!(names(&whole), expected);
    assert_eq!(targets.len(), 250);
    assert_eq!(fake.asked("/api/v3/orgs/acme/repos").len(), 3);
    let request = &fake.asked("/api/v3/orgs/acme/repos")[0];
    assert_eq!(request.header("accept"), Some("application/vnd.github+json"));
    assert_eq!(request.header("x-github-api-version"), Some("2022-11-28"));
    assert_eq!((request.query("type"), request.query("per_page")), (Some("all"), Some("100")));
    for max in [1_000, 64] {
        let mut listing = connector.list(&ObjectKey::default(), None).await.unwrap();
        let mut seen = Vec::new();
        loop {
            let batch = listing.next_batch(max).await.unwrap();
            assert!(!batch.is_empty());
            seen.extend(batch);
            let Some(point) = listing.resume_point() else { break };
            let other = fake.connector(configuration.clone());
            let mut rest = other.list(&ObjectKey::default(), Some(&point)).await.unwrap();
            let mut all = seen.clone();
            let before = fake.server.requests().len();
            all.extend(rest.next_batch(max).await.unwrap());
            assert_eq!(fake.server.requests().len(), before + 1, "goes on with one request");
            while rest.resume_point().is_some() {
                all.extend(rest.next_batch(max).await.unwrap());
            }
            assert_eq!(all, whole);
        }
        assert_eq!(seen, whole);
    }
}

#[tokio::test]
async fn a_repository_made_meanwhile_moves_no_other() {
    let fake = Fake::with(150);
    let connector = fake.connector(json!({ "organisation": "acme" }));
    let mut listing = connector.list(&ObjectKey::default(), None).await.unwrap();
    let mut records = listing.next_batch(1_000).await.unwrap();
    assert_eq!(records.len(), 100);
    fake.add("acme/new", json!({}));
    records.extend(listing.next_batch(1_000).await.unwrap());
    assert_eq!(records.len(), 151);
    assert_eq!(names(&records)[150], "acme/new");
}

#[tokio::test]
async fn a_page_that_did_not_change_is_not_sent_again() {
    let fake = Fake::with(120);
    let connector = fake.connector(json!({ "organisation": "acme" }));
    let first = list(connector.as_ref(), "", 1_000).await.unwrap();
    fake.add("acme/new", json!({}));
    let second = list(connector.as_ref(), "", 1_000).await.unwrap();
    assert_eq!(second.0[..120], first.0);
    assert_eq!(second.0.len(), 121);
    let asked = fake.asked("/api/v3/orgs/acme/repos");
    let conditions: Vec<bool> =
        asked.iter().map(|request| request.header("if-none-match").is_some()).collect();
    assert_eq!(conditions, [false, false, true, true]);
}

#[tokio::test]
async fn sorts_and_names_are_selected_and_the_rest_is_named() {
    let fake = Fake::new();
    fake.add("acme/plain", json!({}));
    fake.add("acme/old", json!({ "archived": true }));
    fake.add("acme/fork", json!({ "fork": true }));
    fake.add("acme/secret", json!({ "private": true, "visibility": "internal" }));
    fake.add("acme/test-1", json!({}));
    for (configuration, taken, left) in [
        (json!({}), &["plain", "old", "secret", "test-1"][..], &["fork"][..]),
        (json!({ "archived": "only" }), &["old"], &["plain", "fork", "secret", "test-1"]),
        (
            json!({ "private": "exclude", "forks": "include" }),
            &["plain", "old", "fork", "test-1"],
            &["secret"],
        ),
        (json!({ "exclude": ["TEST-*", "acme/o*"] }), &["plain", "secret"], &["old", "fork", "test-1"]),
    ] {
        let mut whole = configuration.clone();
        whole["organisation"] = json!("acme");
        let of = |names: &[&str]| names.iter().map(|name| format!("acme/{name}")).collect::<Vec<_>>();
        assert_eq!(sorted_out(&fake, whole).await, (of(taken), of(left)), "{configuration}");
    }
}

#[tokio::test]
async fn a_target_tells_what_the_repository_is() {
    let fake = Fake::new();
    fake.add("acme/old", json!({ "archived": true, "pushed_at": "2024-01-01T00:00:00Z" }));
    let (_, targets) = list(fake.connector(json!({ "owner": "acme" })).as_ref(), "", 10).await.unwrap();
    let [TargetDraft::GithubRepository { name, url, is_active, metadata }] = &targets[..] else {
        panic!("{targets:?}")
    };
    assert_eq!((name.as_str(), url.as_str()), ("acme/old", fake.server.url("/acme/old").as_str()));
    assert!(!is_active);
    assert_eq!(metadata["archived"], json!(true));
    assert_eq!(metadata["pushed_at"], json!("2024-01-01T00:00:00Z"));
}

#[tokio::test]
async fn the_right_list_is_asked_for() {
    for (configuration, user, token, path) in [
        (json!({ "organisation": "acme" }), None, true, "/api/v3/orgs/acme/repos"),
        (json!({ "owner": "acme" }), None, false, "/api/v3/orgs/acme/repos"),
        (json!({ "owner": "jo" }), None, false, "/api/v3/users/jo/repos"),
        (json!({ "owner": "jo" }), Some("Jo"), true, "/api/v3/user/repos"),
        (json!({ "user": "jo" }), Some("jo"), true, "/api/v3/user/repos"),
        (json!({ "user": "jo" }), Some("someone"), true, "/api/v3/users/jo/repos"),
        // An app's installation.
        (json!({ "user": "jo" }), None, true, "/api/v3/users/jo/repos"),
    ] {
        let fake = Fake::with(1);
        fake.state.lock().unwrap().user = user;
        let surroundings = if token { fake.with_token("tok-1") } else { fake.surroundings() };
        let connector = fake.connector_in(configuration.clone(), &surroundings);
        assert_eq!(list(connector.as_ref(), "", 10).await.unwrap().0.len(), 1, "{configuration}");
        assert_eq!(fake.asked(path).len(), 1, "{configuration}");
        assert_eq!(connector.test().await.unwrap(), 1);
    }
}

#[tokio::test]
async fn named_repositories_are_looked_up_one_by_one() {
    let fake = Fake::with(60);
    fake.add("acme/fork", json!({ "fork": true, "archived": true }));
    let mut all: Vec<String> = (0..50).map(|number| format!("acme/r{number:03}")).collect();
    all.extend(["acme/fork".to_owned(), "acme/gone".to_owned(), "ACME/R001".to_owned()]);
    let configuration = json!({ "repositories": all });
    let connector = fake.connector(configuration.clone());
    let (records, targets) = list(connector.as_ref(), "", 1_000).await.unwrap();
    assert_eq!(names(&records), all[..52], "once, whatever the case; one that is gone too");
    assert!(records.iter().all(|record| record.kind == RecordKind::Directory));
    assert_eq!(targets.len(), 51, "of what is gone nothing is known");
    let mut listing = connector.list(&ObjectKey::default(), None).await.unwrap();
    let first = listing.next_batch(1_000).await.unwrap();
    let point = listing.resume_point().unwrap();
    let other = fake.connector(configuration);
    let mut rest = other.list(&ObjectKey::default(), Some(&point)).await.unwrap();
    assert_eq!(rest.next_batch(5).await.unwrap(), records[first.len()..first.len() + 5]);
    let wrong = connector.list(&ObjectKey::default(), Some("nonsense")).await.map(drop).unwrap_err();
    assert!(!wrong.is_retryable(), "{wrong}");
}
