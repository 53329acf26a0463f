//! The suite for connectors, on repositories that are served by a server of our own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use domesday_connector::conformance::{Fixture, Refused};

use super::*;

/// Repositories as every page of a large listing has them.
const PER_PAGE: u64 = 100;

struct Host {
    fake: Fake,
    flaky: Server,
    /// Has as many repositories as it is told.
    large: Mutex<Option<Server>>,
}

async fn host() -> Arc<dyn Fixture> {
    let fake = Fake::new();
    fake.serve("acme/one", &[("a", "content a\n"), ("b", "content b\n")]);
    fake.serve("acme/two", &[("a", "content a\n"), ("c", "content c\n")]);
    let (state, asked) = (Arc::clone(&fake.state), AtomicUsize::new(0));
    let flaky = Server::start(move |request| match asked.fetch_add(1, Ordering::Relaxed) % 4 {
        _ if !request.path().starts_with("/api/") => state.lock().unwrap().answer(request),
        0 => Response::status(502),
        1 => state.lock().unwrap().answer(request).cut_at(10),
        2 => Response::reset(),
        _ => state.lock().unwrap().answer(request),
    });
    Arc::new(Host { fake, flaky, large: Mutex::default() })
}

/// Pages of archived repositories, made when they are asked for.
fn many(count: u64) -> Server {
    Server::start(move |request| {
        let page: u64 = request.query("page").map_or(1, |page| page.parse().unwrap());
        let numbers = (page - 1) * PER_PAGE..(page * PER_PAGE).min(count);
        let repository =
            |number: u64| format!(r#"{{"id":{number},"full_name":"acme/r{number}","archived":true}}"#);
        let body = format!("[{}]", numbers.map(repository).collect::<Vec<_>>().join(","));
        let response = Response::ok(body).header("ETag", format!("\"{page}\""));
        if page * PER_PAGE >= count {
            return response;
        }
        let next = format!("http://{}{}?page={}", request.header("host").unwrap(), request.path(), page + 1);
        response.header("Link", format!("<{next}>; rel=\"next\""))
    })
}

#[async_trait]
impl Fixture for Host {
    async fn connector(&self) -> Arc<dyn Connector> {
        self.fake.connector(json!({ "organisation": "acme" }))
    }

    fn objects(&self) -> BTreeMap<ObjectKey, Vec<u8>> {
        let mut objects = BTreeMap::new();
        for name in ["acme/one", "acme/two"] {
            let work = self.fake.folder.path().join("work").join(name);
            let all = super::repositories::git(&work, &["cat-file", "--batch-check", "--batch-all-objects"]);
            for line in all.lines() {
                let [id, kind, _] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
                if kind != "tree" {
                    let content = super::repositories::git_bytes(&work, &["cat-file", kind, id]);
                    objects.insert(ObjectKey::new(format!("{name}/{id}")), content);
                }
            }
        }
        objects
    }

    async fn change(&self) -> Option<ObjectKey> {
        None
    }

    async fn remove(&self) -> Option<ObjectKey> {
        None
    }

    async fn with_bad_credential(&self) -> Option<Refused> {
        let surroundings = self.fake.with_token("tok-wrong");
        self.fake.state.lock().unwrap().token = Some("tok-right".to_owned());
        let configuration = json!({ "organisation": "acme" });
        let connector = self.fake.connector_in(configuration, &surroundings);
        Some(Refused { connector, secret: "tok-wrong".to_owned() })
    }

    async fn with_flaky_reads(&self) -> Option<Arc<dyn Connector>> {
        Some(connector_to(&self.flaky, json!({ "organisation": "acme" }), &self.fake.surroundings()))
    }

    /// Many repositories, none of which is taken: what is in one is listed by another connector.
    async fn large(&self, objects: u64) -> Option<(Arc<dyn Connector>, u64)> {
        let server = many(objects);
        let configuration = json!({ "organisation": "acme", "archived": "exclude" });
        let connector = connector_to(&server, configuration, &self.fake.surroundings());
        *self.large.lock().unwrap() = Some(server);
        Some((connector, 0))
    }

    fn missing_object(&self) -> Option<ObjectKey> {
        Some(ObjectKey::new(format!("acme/one/{:040}", 0)))
    }

    fn lists_marks(&self) -> bool {
        // A key is its content.
        false
    }
}

domesday_connector::conformance_tests!(host);
