//! Rate limits, servers that fail, tokens that expire, and answers that lead elsewhere.

use std::time::{Duration, Instant};

use super::*;

fn acme() -> Value {
    json!({ "organisation": "acme" })
}

async fn failure(connector: &dyn Connector) -> ConnectorError {
    list(connector, "", 1_000).await.unwrap_err()
}

#[tokio::test]
async fn the_primary_limit_is_waited_for_and_the_listing_goes_on() {
    let fake = Fake::with(150);
    let connector = fake.connector(acme());
    let mut listing = connector.list(&ObjectKey::default(), None).await.unwrap();
    let mut records = listing.next_batch(1_000).await.unwrap();
    let point = listing.resume_point().unwrap();
    let limited = Response::status(403)
        .header("Date", "Sun, 06 Nov 1994 08:49:37 GMT")
        .header("X-RateLimit-Limit", "60")
        .header("X-RateLimit-Remaining", "0")
        .header("X-RateLimit-Reset", "784113577")
        .body(r#"{"message":"API rate limit exceeded"}"#);
    fake.then([limited]);
    let error = listing.next_batch(1_000).await.unwrap_err();
    assert!(
        matches!(&error, ConnectorError::Wait { after, .. } if *after == Duration::from_secs(1_800)),
        "{error}"
    );
    let detail = "github's primary rate limit of 60 requests an hour is used up until 09:19:37 UTC";
    assert!(error.to_string().starts_with(detail), "{error}");
    let mut rest = connector.list(&ObjectKey::default(), Some(&point)).await.unwrap();
    records.extend(rest.next_batch(1_000).await.unwrap());
    assert_eq!(records.len(), 150);
}

#[tokio::test]
async fn the_secondary_limit_grows_until_an_answer_comes() {
    let fake = Fake::with(1);
    let connector = fake.connector(acme());
    let limited = || {
        Response::status(403).body(r#"{"message":"You have exceeded a secondary rate limit. Please wait"}"#)
    };
    for seconds in [60, 120, 240] {
        fake.then([limited()]);
        let error = failure(connector.as_ref()).await;
        let expected = Duration::from_secs(seconds);
        assert!(matches!(&error, ConnectorError::Wait { after, .. } if *after == expected), "{error}");
        assert!(error.to_string().contains("secondary rate limit"), "{error}");
    }
    assert_eq!(list(connector.as_ref(), "", 10).await.unwrap().0.len(), 1);
    fake.then([limited()]);
    let error = failure(connector.as_ref()).await;
    assert!(matches!(&error, ConnectorError::Wait { after, .. } if after.as_secs() == 60), "{error}");
}

#[tokio::test]
async fn a_short_limit_is_slept_out() {
    let fake = Fake::with(1);
    let connector = fake.connector(acme());
    fake.then([Response::status(429).header("Retry-After", "1")]);
    let begun = Instant::now();
    assert_eq!(list(connector.as_ref(), "", 10).await.unwrap().0.len(), 1);
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn what_fails_is_asked_again_a_bounded_number_of_times() {
    let fake = Fake::with(3);
    let connector = fake.connector(acme());
    fake.then([
        Response::status(502),
        Response::reset(),
        Response::ok("[{\"id\":1,\"full_name\"").cut_at(9),
        Response::status(500).chunked(),
    ]);
    assert_eq!(list(connector.as_ref(), "", 10).await.unwrap().0.len(), 3);
    assert_eq!(fake.server.requests().len(), 5);
    fake.then((0..5).map(|_| Response::status(503)));
    let error = failure(connector.as_ref()).await;
    assert!(error.is_retryable() && error.to_string().contains("503"), "{error}");
    assert_eq!(fake.server.requests().len(), 10);
    fake.then((0..5).map(|_| Response::reset()));
    let error = failure(connector.as_ref()).await;
    assert_eq!(error.reason(), Reason::Unavailable);
    fake.then([Response::ok("{}")]);
    let error = failure(connector.as_ref()).await;
    assert!(error.to_string().contains("not a list of repositories"), "{error}");
    fake.then([Response::ok(r#"[{"id":1,"full_name":"a/../../b"}]"#)]);
    assert!(list(connector.as_ref(), "", 10).await.is_err(), "no repository has that name");
}

#[tokio::test]
async fn a_token_that_expires_in_the_middle_ends_only_what_needs_it() {
    let fake = Fake::with(250);
    let surroundings = fake.with_token("tok-old");
    let connector = fake.connector_in(acme(), &surroundings);
    let mut listing = connector.list(&ObjectKey::default(), None).await.unwrap();
    let mut records = listing.next_batch(1_000).await.unwrap();
    let point = listing.resume_point().unwrap();
    fake.state.lock().unwrap().token = Some("tok-new".to_owned());
    let error = listing.next_batch(1_000).await.unwrap_err();
    assert!(matches!(error, ConnectorError::Denied { .. }), "{error}");
    let said = error.to_string();
    assert!(said.contains("expired") && said.contains("renew") && !said.contains("tok-"), "{said}");
    assert_eq!(listing.resume_point().as_deref(), Some(point.as_str()), "nothing is passed over");
    // The same connector goes on once the secret was renewed where it is kept.
    let _ = fake.with_token("tok-new");
    while listing.resume_point().is_some() {
        records.extend(listing.next_batch(1_000).await.unwrap());
    }
    assert_eq!(records.len(), 250);
}

#[tokio::test]
async fn who_may_not_see_it_is_told_what_to_do() {
    let fake = Fake::with(1);
    let other = fake.connector(json!({ "organisation": "other" }));
    let error = failure(other.as_ref()).await;
    assert!(!error.is_retryable());
    let said = error.to_string();
    assert!(said.contains("organisation `other` does not exist, or the credential may not see it"), "{said}");
    let connector = fake.connector(acme());
    fake.then([Response::status(403).header("X-GitHub-SSO", "required; url=https://x").body("{}")]);
    assert!(failure(connector.as_ref()).await.to_string().contains("single sign-on"));
    fake.then([Response::status(403).body("{\"message\":\"Nope\\u001b[31m\"}")]);
    let said = failure(connector.as_ref()).await.to_string();
    assert!(said.contains("Nope") && !said.contains('\u{1b}'), "{said}");
    let without = fake
        .connector_in(json!({ "organisation": "acme", "authentication": "github" }), &fake.surroundings());
    assert!(failure(without.as_ref()).await.to_string().contains("needs a credential"));
    fake.with_token("tok-1");
    assert!(failure(connector.as_ref()).await.to_string().contains("give the data source a credential"));
}

#[tokio::test]
async fn no_answer_leads_a_token_elsewhere() {
    let fake = Fake::with(1);
    let elsewhere = Server::start(|_| Response::ok("[]"));
    let surroundings = fake.with_token("tok-1");
    let connector = fake.connector_in(acme(), &surroundings);
    fake.then([Response::ok("[]").header("Link", format!("<{}>; rel=\"next\"", elsewhere.url("/x")))]);
    let error = failure(connector.as_ref()).await;
    assert!(error.to_string().contains("leads away from the api"), "{error}");
    fake.then([Response::status(301).header("Location", elsewhere.url("/x"))]);
    let error = failure(connector.as_ref()).await;
    assert!(error.to_string().contains("leads away from the api"), "{error}");
    let point = format!("0 {}", elsewhere.url("/x"));
    let mut listing = connector.list(&ObjectKey::default(), Some(&point)).await.unwrap();
    assert!(listing.next_batch(10).await.is_err());
    assert_eq!(elsewhere.requests(), []);
    fake.then((0..10).map(|_| Response::status(302).header("Location", "/api/v3/orgs/acme/repos")));
    assert!(failure(connector.as_ref()).await.to_string().contains("redirects"));
}

#[test]
fn a_token_is_not_sent_in_the_clear() {
    let surroundings =
        Surroundings { credential: Some("env:TOKEN".parse().unwrap()), ..Surroundings::default() };
    let configuration = json!({ "owner": "acme", "base_url": "http://ghe.example.com/api/v3" });
    let factory = GithubFactory::over(GitFactory);
    let error = factory.create(&configuration, &surroundings).map(drop).unwrap_err();
    assert!(error.to_string().contains("https only"), "{error}");
    assert!(factory.create(&configuration, &Surroundings::default()).is_ok());
}
