//! The suite for connectors, on a server of our own.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use domesday_connector::conformance::{Fixture, Refused};
use tempfile::TempDir;

use super::*;

type Pages = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// Addresses in a list on this machine, whose content the server has.
struct Site {
    server: Server,
    flaky: Server,
    pages: Pages,
    folder: TempDir,
}

fn answer(pages: &Pages, request: &domesday_testkit::http::Request) -> Response {
    if request.header("authorization").is_some() {
        return Response::status(401);
    }
    // A proxy is asked for whole addresses.
    let path = request.path().rsplit_once('/').map(|(_, page)| format!("/{page}"));
    match pages.lock().unwrap().get(&path.unwrap_or_default()) {
        Some(body) => {
            let etag = format!("\"{}\"", body.len());
            Response::ok(body.clone()).header("ETag", etag)
        }
        None => Response::status(404),
    }
}

async fn site() -> Arc<dyn Fixture> {
    let pages: BTreeMap<String, Vec<u8>> = (0u8..5)
        .map(|number| (format!("/{number}"), vec![b'a' + number; 1_000 * usize::from(number)]))
        .collect();
    let pages = Arc::new(Mutex::new(pages));
    let (whole, parts) = (Arc::clone(&pages), Arc::clone(&pages));
    let asked = AtomicUsize::new(0);
    let flaky = Server::start(move |request| match asked.fetch_add(1, Ordering::Relaxed) % 5 {
        0 => Response::status(500),
        1 => answer(&parts, request).cut_at(10),
        2 => Response::reset(),
        _ => answer(&parts, request),
    });
    let server = Server::start(move |request| answer(&whole, request));
    Arc::new(Site { server, flaky, pages, folder: tempfile::tempdir().unwrap() })
}

impl Site {
    fn list_of(&self, server: &Server) -> Arc<dyn Connector> {
        let path = self.folder.path().join(format!("{}.txt", server.port()));
        let pages = self.pages.lock().unwrap();
        fs::write(&path, pages.keys().map(|page| server.url(page) + "\n").collect::<String>()).unwrap();
        connector(json!({ "list": path }))
    }

    fn key(&self, page: &str) -> ObjectKey {
        ObjectKey::new(self.server.url(page))
    }
}

#[async_trait]
impl Fixture for Site {
    async fn connector(&self) -> Arc<dyn Connector> {
        self.list_of(&self.server)
    }

    fn objects(&self) -> BTreeMap<ObjectKey, Vec<u8>> {
        self.pages.lock().unwrap().iter().map(|(page, body)| (self.key(page), body.clone())).collect()
    }

    async fn change(&self) -> Option<ObjectKey> {
        self.pages.lock().unwrap().insert("/2".to_owned(), b"changed".to_vec());
        Some(self.key("/2"))
    }

    async fn remove(&self) -> Option<ObjectKey> {
        self.pages.lock().unwrap().remove("/3");
        Some(self.key("/3"))
    }

    async fn add(&self) -> Option<ObjectKey> {
        self.pages.lock().unwrap().insert("/new".to_owned(), b"new".to_vec());
        Some(self.key("/new"))
    }

    async fn with_bad_credential(&self) -> Option<Refused> {
        let surroundings = with_secret(self.folder.path(), "wrong-8c1d");
        let configuration = json!({ "addresses": [self.server.url("/0")], "authentication": "bearer" });
        let connector = connector_in(configuration, &surroundings);
        Some(Refused { connector, secret: "wrong-8c1d".to_owned() })
    }

    async fn with_flaky_reads(&self) -> Option<Arc<dyn Connector>> {
        // The same keys, over a way that loses answers.
        let configuration = json!({ "list": self.folder.path().join(format!("{}.txt", self.server.port())) });
        drop(self.connector().await);
        let mut source = source(&configuration, &Surroundings::default());
        let fetcher = Arc::into_inner(source.fetcher).unwrap();
        source.fetcher = Arc::new(fetcher.through(&self.flaky.url("")));
        Some(Arc::new(Addresses(Arc::new(source))))
    }

    async fn large(&self, objects: u64) -> Option<(Arc<dyn Connector>, u64)> {
        let path = self.folder.path().join("large.txt");
        let mut file = std::io::BufWriter::new(fs::File::create(&path).unwrap());
        for number in 0..objects {
            use std::io::Write;
            // Nothing is asked there: it is not public.
            writeln!(file, "http://10.0.0.1/some/where/{number}").unwrap();
        }
        drop(file);
        Some((
            Arc::new(Addresses(Arc::new(source(&json!({ "list": path }), &Surroundings::default())))),
            objects,
        ))
    }
}

domesday_connector::conformance_tests!(site);
