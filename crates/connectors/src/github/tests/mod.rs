//! The connector against a server that answers as GitHub documents it, and serves repositories that git made.

mod conformance;
mod listing;
mod repositories;
mod trouble;

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use domesday_connector::conformance::open;
use domesday_connector::{Connector, ConnectorError, ConnectorFactory, Surroundings};
use domesday_model::{ObjectKey, RecordKind, TargetDraft, UnitRecord};
use domesday_testkit::http::{Request, Response, Server};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use domesday_git::GitFactory;

/// How git sends the token `tok-1`: `x-access-token:tok-1` in base64.
const TOKEN_OF_GIT: &str = "Basic eC1hY2Nlc3MtdG9rZW46dG9rLTE=";

/// What the fake answers with, and from.
#[derive(Default)]
struct State {
    /// Repositories in the order of their creation, as the API describes them.
    repositories: Vec<Value>,
    /// Answers that come before any other, to requests for the API.
    script: VecDeque<Response>,
    /// The user that a token is of.
    user: Option<&'static str>,
    /// The token that is asked for, if one is.
    token: Option<String>,
    /// Where `owner/name.git` is.
    folder: PathBuf,
}

/// A GitHub Enterprise of our own.
struct Fake {
    server: Server,
    state: Arc<Mutex<State>>,
    folder: TempDir,
}

impl Fake {
    fn new() -> Fake {
        let folder = tempfile::tempdir().unwrap();
        let state = State { folder: folder.path().join("served"), ..State::default() };
        let state = Arc::new(Mutex::new(state));
        let answering = Arc::clone(&state);
        let server = Server::start(move |request| answering.lock().unwrap().answer(request));
        Fake { server, state, folder }
    }

    fn with(count: usize) -> Fake {
        let fake = Fake::new();
        for number in 0..count {
            fake.add(&format!("acme/r{number:03}"), json!({}));
        }
        fake
    }

    /// Adds a repository with these properties beside the usual ones.
    fn add(&self, name: &str, with: Value) {
        let mut state = self.state.lock().unwrap();
        let mut repository = json!({
            "id": state.repositories.len() + 1, "full_name": name, "private": false, "fork": false,
            "archived": false, "disabled": false, "default_branch": "main",
            "owner": { "login": "acme" },
        });
        for (key, value) in with.as_object().unwrap() {
            repository[key] = value.clone();
        }
        state.repositories.push(repository);
    }

    /// The next answers of the API.
    fn then(&self, answers: impl IntoIterator<Item = Response>) {
        self.state.lock().unwrap().script.extend(answers);
    }

    fn surroundings(&self) -> Surroundings {
        Surroundings { own_state: Some(self.folder.path().join("state")), ..Surroundings::default() }
    }

    /// With a token that is in a file, and asked for by the API.
    fn with_token(&self, token: &str) -> Surroundings {
        let path = self.folder.path().join("token");
        fs::write(&path, token).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        self.state.lock().unwrap().token = Some(token.to_owned());
        self.surroundings().with_typed(format!("file:{}", path.display()).parse().unwrap())
    }

    fn connector(&self, configuration: Value) -> Arc<dyn Connector> {
        self.connector_in(configuration, &self.surroundings())
    }

    fn connector_in(&self, configuration: Value, surroundings: &Surroundings) -> Arc<dyn Connector> {
        connector_to(&self.server, configuration, surroundings)
    }

    fn asked(&self, path: &str) -> Vec<Request> {
        self.server.requests().into_iter().filter(|request| request.path() == path).collect()
    }
}

fn connector_to(
    server: &Server,
    mut configuration: Value,
    surroundings: &Surroundings,
) -> Arc<dyn Connector> {
    configuration["base_url"] = json!(server.url("/api/v3"));
    let mut source = GithubFactory::over(GitFactory).source(&configuration, surroundings).unwrap();
    source.api = source.api.hasty();
    Arc::new(Github(Arc::new(source)))
}

impl State {
    fn answer(&mut self, request: &Request) -> Response {
        let Some(path) = request.path().strip_prefix("/api/v3/") else {
            return match (self.token.as_deref(), request.header("authorization")) {
                (None, _) | (Some("tok-1"), Some(TOKEN_OF_GIT)) => {
                    Response::file(&self.folder, request.path())
                }
                _ => Response::status(401).header("WWW-Authenticate", "Basic realm=\"git\""),
            };
        };
        if let Some(response) = self.script.pop_front() {
            return response;
        }
        let is_known = request.header("authorization")
            == self.token.as_ref().map(|token| format!("Bearer {token}")).as_deref();
        if !is_known {
            return Response::status(401).body(r#"{"message":"Bad credentials"}"#);
        }
        match path.split('/').collect::<Vec<_>>()[..] {
            ["orgs", "acme", "repos"] | ["user", "repos"] | ["users", _, "repos"] => self.page(request),
            ["users", "acme"] => whole(request, &json!({ "login": "acme", "type": "Organization" })),
            ["users", name] => whole(request, &json!({ "login": name, "type": "User" })),
            ["user"] => match self.user {
                Some(user) => whole(request, &json!({ "login": user, "type": "User" })),
                None => Response::status(403).body(r#"{"message":"Resource not accessible by integration"}"#),
            },
            ["repos", owner, name] => {
                let name = format!("{owner}/{name}");
                let mut all = self.repositories.iter();
                match all.find(|one| one["full_name"].as_str().unwrap().eq_ignore_ascii_case(&name)) {
                    Some(one) => whole(request, one),
                    None => Response::status(404).body(r#"{"message":"Not Found"}"#),
                }
            }
            _ => Response::status(404).body(r#"{"message":"Not Found"}"#),
        }
    }

    fn page(&self, request: &Request) -> Response {
        assert_eq!((request.query("sort"), request.query("direction")), (Some("created"), Some("asc")));
        let number = |name| request.query(name).map_or(1, |value| value.parse::<usize>().unwrap());
        let (size, page) = (number("per_page"), number("page"));
        let part = self.repositories.iter().skip((page - 1) * size).take(size);
        let response = whole(request, &Value::Array(part.cloned().collect()));
        if page * size >= self.repositories.len() {
            return response;
        }
        let target = request.target.split("&page=").next().unwrap();
        let host = request.header("host").unwrap();
        let last = self.repositories.len().div_ceil(size);
        let link = |page: usize, rel: &str| format!("<http://{host}{target}&page={page}>; rel=\"{rel}\"");
        response.header("Link", format!("{}, {}", link(page + 1, "next"), link(last, "last")))
    }
}

/// An answer with an entity tag, or that nothing changed.
fn whole(request: &Request, body: &Value) -> Response {
    let body = body.to_string();
    let etag = format!("W/\"{:x?}\"", ObjectKey::hash128(body.as_bytes())).replace([' ', ','], "");
    if request.header("if-none-match") == Some(etag.as_str()) {
        return Response::status(304).header("ETag", etag);
    }
    Response::ok(body).header("ETag", etag)
}

/// Everything a listing gives, and its targets.
async fn list(
    connector: &dyn Connector,
    container: &str,
    max: usize,
) -> Result<(Vec<UnitRecord>, Vec<TargetDraft>), ConnectorError> {
    let mut listing = connector.list(&ObjectKey::new(container), None).await?;
    let (mut records, mut targets) = (Vec::new(), Vec::new());
    loop {
        let batch = listing.next_batch(max).await?;
        assert!(batch.len() <= max);
        if batch.is_empty() {
            assert_eq!(listing.resume_point(), None);
            return Ok((records, targets));
        }
        records.extend(batch);
        targets.extend(listing.take_targets());
        assert!(listing.take_targets().is_empty(), "once");
    }
}

fn names(records: &[UnitRecord]) -> Vec<&str> {
    records.iter().map(|record| std::str::from_utf8(&record.name).unwrap()).collect()
}

/// The names of what is taken, and of what is left out.
async fn sorted_out(fake: &Fake, configuration: Value) -> (Vec<String>, Vec<String>) {
    let (records, targets) = list(fake.connector(configuration).as_ref(), "", 1_000).await.unwrap();
    let of = |kind| records.iter().filter(move |record| record.kind == kind).cloned().collect::<Vec<_>>();
    let owned = |records: Vec<UnitRecord>| names(&records).into_iter().map(str::to_owned).collect::<Vec<_>>();
    let (taken, left) = (owned(of(RecordKind::Directory)), owned(of(RecordKind::Skipped)));
    assert_eq!(taken.len() + left.len(), records.len());
    let drafted: Vec<&str> = targets
        .iter()
        .map(|target| match target {
            TargetDraft::GithubRepository { name, .. } => name.as_str(),
            TargetDraft::Url { url, .. } => panic!("{url}"),
        })
        .collect();
    assert_eq!(drafted, taken, "a target for each that is taken");
    (taken, left)
}
