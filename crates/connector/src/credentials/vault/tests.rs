//! The provider against a server that answers as Vault's documentation says.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard};

use domesday_testkit::http::{self, Request, Response};
use serde_json::json;

use super::*;

const ROOT: &str = "hvs.root-hunter2";
const SECRET_ID: &str = "secret-id-hunter2";

/// A Vault in memory.
struct Server {
    http: http::Server,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// By what comes after `/v1/`: a secret's latest version.
    secrets: BTreeMap<String, Version>,
    /// Tokens that may read.
    tokens: Vec<String>,
    logins: usize,
    lease: u64,
    secret_id: String,
    /// Whether no token may read anything.
    denies: bool,
    /// Answered to everything, in the place of what is asked for.
    answer: Option<Response>,
    /// The same, for the next request only.
    once: Option<Response>,
}

enum Version {
    Live(Value),
    Deleted,
    Destroyed,
}

impl Server {
    fn start() -> Server {
        let state = State {
            tokens: vec![ROOT.to_owned()],
            lease: 3_600,
            secret_id: SECRET_ID.to_owned(),
            ..State::default()
        };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        let http = http::Server::start(move |request| shared.lock().unwrap().answer_to(request));
        let server = Server { http, state };
        server.put("secret/data/app", json!({ "user": "alice", "password": "hunter2", "port": 5432 }));
        server
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn put(&self, path: &str, data: Value) {
        self.state().secrets.insert(path.to_owned(), Version::Live(data));
    }

    fn settings(&self, login: VaultLogin) -> VaultSettings {
        VaultSettings { address: self.http.url(""), namespace: None, certificates: None, login }
    }

    fn with_token(&self, token: &str) -> Vault {
        Vault::new(self.settings(VaultLogin::Token(Secret::new(token.into()))))
    }

    fn with_role(&self, secret_id: &str) -> Vault {
        let secret_id = Secret::new(secret_id.into());
        Vault::new(self.settings(VaultLogin::AppRole { role_id: "role".into(), secret_id }))
    }
}

impl State {
    fn answer_to(&mut self, request: &Request) -> Response {
        let plain = |status, body: Value| Response::status(status).body(body.to_string());
        if let Some(answer) = self.once.take().or(self.answer.clone()) {
            return answer;
        }
        let (method, path) = (request.method.as_str(), request.path().strip_prefix("/v1/").unwrap());
        if (method, path) == ("POST", "auth/approle/login") {
            let asked: Value = serde_json::from_slice(&request.body).unwrap();
            if asked != json!({ "role_id": "role", "secret_id": self.secret_id }) {
                return plain(400, json!({ "errors": ["invalid role or secret ID"] }));
            }
            self.logins += 1;
            let token = format!("hvs.session-{}", self.logins);
            self.tokens.push(token.clone());
            let auth = json!({
                "client_token": token, "lease_duration": self.lease, "renewable": true, "token_type": "service",
            });
            return plain(200, json!({ "auth": auth, "data": null }));
        }
        let may = |token: &str| self.tokens.iter().any(|known| known == token);
        if self.denies || !request.header("x-vault-token").is_some_and(may) {
            return plain(403, json!({ "errors": ["permission denied"] }));
        }
        let metadata = |deletion_time: &str, destroyed: bool| json!({ "version": 3, "deletion_time": deletion_time, "destroyed": destroyed });
        let answer = |data: Value, metadata: Value| json!({ "data": { "data": data, "metadata": metadata } });
        match self.secrets.get(path) {
            Some(Version::Live(data)) => plain(200, answer(data.clone(), metadata("", false))),
            Some(Version::Deleted) => {
                plain(404, answer(Value::Null, metadata("2026-01-01T00:00:00.0Z", false)))
            }
            Some(Version::Destroyed) => plain(404, answer(Value::Null, metadata("", true))),
            None => plain(404, json!({ "errors": [] })),
        }
    }
}

async fn fetch(vault: &Vault, reference: &str) -> Result<String, CredentialError> {
    let secret = vault.fetch(&reference.parse().unwrap()).await?;
    Ok(String::from_utf8(secret.expose().to_vec()).unwrap())
}

/// What is told, and whether it may pass. Nothing secret is in it.
async fn refused(vault: &Vault, reference: &str) -> (String, bool) {
    let error = fetch(vault, reference).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    (error.to_string(), error.is_retryable())
}

#[tokio::test]
async fn a_field_is_read_or_all_of_them() {
    let server = Server::start();
    let vault = server.with_token(ROOT);
    assert_eq!(fetch(&vault, "vault:app#password").await.unwrap(), "hunter2");
    assert_eq!(fetch(&vault, "vault:secret/app#port").await.unwrap(), "5432");
    let reference = "vault:app".parse().unwrap();
    let whole = vault.fetch(&reference).await.unwrap();
    let read = super::super::Method::Database.read(&reference, &whole).unwrap();
    let password = Secret::new(b"hunter2".to_vec());
    assert_eq!(read, super::super::Credential::Database { user: "alice".into(), password });
}

#[test]
fn references_name_a_place() {
    let place =
        |name: &str| Place::parse(name).map(|place| format!("{:?}", (place.mount, place.path, place.field)));
    for (name, expected) in [
        ("app#f", r#"("secret", "app", Some("f"))"#),
        ("kv/app", r#"("kv", "app", None)"#),
        ("kv/a/b c#f", r#"("kv", "a/b c", Some("f"))"#),
        ("team/kv//a/b#f", r#"("team/kv", "a/b", Some("f"))"#),
        ("kv/a#b#f", r#"("kv", "a#b", Some("f"))"#),
    ] {
        assert_eq!(place(name).unwrap(), expected, "{name}");
    }
    for wrong in ["#f", "app#", "/app", "kv/", "kv/../sys", "kv/./a", "kv//a//b", "a\nb"] {
        assert!(place(wrong).is_none(), "{wrong}");
    }
}

#[tokio::test]
async fn mounts_names_and_namespaces_reach_the_server_as_they_are() {
    let server = Server::start();
    server.put("team/kv/data/a%20b/%C3%BC%3F", json!({ "f": "x" }));
    let mut settings = server.settings(VaultLogin::Token(Secret::new(ROOT.into())));
    settings.namespace = Some("ns/one".into());
    settings.address.push('/');
    assert_eq!(fetch(&Vault::new(settings), "vault:team/kv//a b/ü?#f").await.unwrap(), "x");
    assert_eq!(server.http.requests()[0].header("x-vault-namespace"), Some("ns/one"));
}

#[tokio::test]
async fn a_new_version_is_picked_up_on_the_next_use() {
    let server = Server::start();
    let vault = server.with_token(ROOT);
    assert_eq!(fetch(&vault, "vault:app#password").await.unwrap(), "hunter2");
    server.put("secret/data/app", json!({ "password": "rotated" }));
    assert_eq!(fetch(&vault, "vault:app#password").await.unwrap(), "rotated");
}

#[tokio::test]
async fn what_is_not_there_is_named() {
    let server = Server::start();
    server.state().secrets.insert("secret/data/deleted".into(), Version::Deleted);
    server.state().secrets.insert("secret/data/destroyed".into(), Version::Destroyed);
    server.put("secret/data/odd", json!({ "empty": "", "null": null }));
    let vault = server.with_token(ROOT);
    for (reference, told) in [
        ("vault:nothing#f", "no secret `nothing` in the key-value store (version 2) mounted at `secret`"),
        ("vault:deleted#f", "its latest version is deleted"),
        ("vault:destroyed", "its latest version is destroyed"),
        ("vault:app#pass", "no such field"),
        ("vault:odd#null", "no such field"),
        ("vault:odd#empty", "the field is empty"),
        ("vault:a//b//c", "write it as vault:"),
    ] {
        let (said, retryable) = refused(&vault, reference).await;
        assert!(said.contains(told) && said.contains(reference) && !retryable, "{said}");
    }
}

#[tokio::test]
async fn states_of_vault_are_told_apart() {
    let server = Server::start();
    let vault = server.with_token(ROOT);
    for (status, answer, told, may_pass) in [
        (503, r#"{"errors":["Vault is sealed"]}"#, "sealed", true),
        (429, "{}", "standby", true),
        (472, "{}", "standby", true),
        (473, "{}", "standby", true),
        (412, "{}", "caught up", true),
        (500, "hunter2", "status 500", true),
        (502, "", "status 502", true),
        (400, "{}", "check VAULT_ADDR", false),
        (405, "{}", "check VAULT_ADDR", false),
        (200, "hunter2", "not one of vault's", false),
        (200, r#"{"data":{"password":"hunter2"}}"#, "not one of vault's", false),
        (301, "", "status 301", false),
        (307, "", "status 307", false),
    ] {
        server.state().answer = Some(Response::status(status).body(answer));
        let (said, retryable) = refused(&vault, "vault:nothing#password").await;
        assert!(said.contains(told), "{status}: {said}");
        assert_eq!(retryable, may_pass, "{status}: {said}");
    }
}

#[tokio::test]
async fn an_answer_that_never_ends_is_cut_off() {
    let server = Server::start();
    server.state().answer = Some(Response::ok(vec![b'x'; 7 * SECRET_LEN_MAX]));
    let (said, retryable) = refused(&server.with_token(ROOT), "vault:app").await;
    assert!(said.contains("too long") && !retryable, "{said}");
}

#[tokio::test]
async fn a_lost_answer_may_pass() {
    let server = Server::start();
    let body = json!({ "data": { "data": { "password": "hunter2" } } }).to_string();
    for answer in
        [Response::reset(), Response::ok(body.clone()).cut_at(20), Response::status(404).body(body).cut_at(1)]
    {
        server.state().answer = Some(answer);
        let (said, retryable) = refused(&server.with_token(ROOT), "vault:app").await;
        assert!(retryable, "{said}");
    }
}

#[tokio::test]
async fn an_answer_that_is_late_may_pass() {
    let server = Server::start();
    server.state().answer = Some(Response::ok("{}").after(Duration::from_secs(60)));
    let vault = server.with_token(ROOT);
    let settings = vault.settings.clone().unwrap();
    let impatient = api::client(&settings, &"vault:app".parse().unwrap(), Duration::from_millis(50)).unwrap();
    vault.client.set(impatient).unwrap();
    let (said, retryable) = refused(&vault, "vault:app").await;
    assert!(said.contains("does not answer in time") && retryable, "{said}");
}

#[tokio::test]
async fn nobody_at_the_address_may_pass() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let login = VaultLogin::Token(Secret::new(ROOT.into()));
    let settings = |address: String| VaultSettings {
        address,
        namespace: None,
        certificates: None,
        login: login.clone(),
    };
    let (said, retryable) = refused(&Vault::new(settings(format!("http://{address}"))), "vault:app").await;
    assert!(said.contains("cannot be reached") && retryable, "{said}");
    for wrong in ["vault.example.com", "ftp://vault", "http://"] {
        let (said, retryable) = refused(&Vault::new(settings(wrong.into())), "vault:app").await;
        assert!(said.contains("VAULT_ADDR") && !retryable, "{said}");
    }
    let missing = VaultSettings { certificates: Some("/no/such/file".into()), ..settings("http://a".into()) };
    assert!(refused(&Vault::new(missing), "vault:app").await.0.contains("VAULT_CACERT"));
}

#[tokio::test]
async fn the_active_node_is_asked_when_this_one_says_so() {
    let (standby, active) = (Server::start(), Server::start());
    active.put("secret/data/app", json!({ "password": "of the active one" }));
    let vault = standby.with_token(ROOT);
    let to = |location: String| Some(Response::status(307).header("Location", location));
    standby.state().once = to(active.http.url("/v1/secret/data/app"));
    assert_eq!(fetch(&vault, "vault:app#password").await.unwrap(), "of the active one");
    // Neither to another kind of address, nor on and on.
    standby.state().once = to("https://elsewhere/v1/secret/data/app".into());
    assert!(refused(&vault, "vault:app#password").await.0.contains("status 307"));
    active.state().once = to("/v1/secret/data/app".into());
    standby.state().once = to(active.http.url("/"));
    assert!(refused(&vault, "vault:app#password").await.0.contains("status 307"));
}

#[tokio::test]
async fn a_token_that_may_not_is_told() {
    let server = Server::start();
    let (said, retryable) = refused(&server.with_token("hvs.other-hunter2"), "vault:app").await;
    assert!(said.contains("expired, or has no policy") && !retryable, "{said}");
    let (said, _) = refused(&server.with_token("hunter2\nx: y"), "vault:app").await;
    assert!(said.contains("line break"), "{said}");
}

#[tokio::test]
async fn an_app_role_logs_in_once_and_again_when_it_must() {
    let server = Server::start();
    let vault = server.with_role(SECRET_ID);
    for _ in 0..3 {
        assert_eq!(fetch(&vault, "vault:app#password").await.unwrap(), "hunter2");
    }
    assert_eq!(server.state().logins, 1, "the session lasts");
    // Revoked before its time.
    server.state().tokens.clear();
    assert_eq!(fetch(&vault, "vault:app#password").await.unwrap(), "hunter2");
    assert_eq!(server.state().logins, 2);
    // At the end of its time.
    vault.session.lock().await.as_mut().unwrap().until = Some(Instant::now());
    assert_eq!(fetch(&vault, "vault:app#password").await.unwrap(), "hunter2");
    assert_eq!(server.state().logins, 3);
    // A lease without an end.
    server.state().lease = 0;
    server.state().tokens.clear();
    fetch(&vault, "vault:app#password").await.unwrap();
    assert!(vault.session.lock().await.as_ref().unwrap().until.is_none());
}

#[tokio::test]
async fn several_who_ask_share_a_login() {
    let server = Server::start();
    let vault = server.with_role(SECRET_ID);
    let ask = || fetch(&vault, "vault:app#password");
    let (a, b, c) = tokio::join!(ask(), ask(), ask());
    assert!([a, b, c].iter().all(|secret| secret.as_deref() == Ok("hunter2")));
    assert_eq!(server.state().logins, 1);
}

#[tokio::test]
async fn an_app_role_that_is_not_accepted_is_told() {
    let server = Server::start();
    let (said, retryable) = refused(&server.with_role("wrong-hunter2"), "vault:app").await;
    assert!(said.contains("VAULT_SECRET_ID") && !retryable, "{said}");
    server.state().answer = Some(Response::status(503));
    assert!(refused(&server.with_role(SECRET_ID), "vault:app").await.1, "sealed: may pass");
    server.state().answer = Some(Response::ok("{}"));
    assert!(refused(&server.with_role(SECRET_ID), "vault:app").await.0.contains("not one of vault's"));
    server.state().answer = None;
    // Refused although newly logged in: it is the policy, and no reason to go on logging in.
    server.state().denies = true;
    let (said, retryable) = refused(&server.with_role(SECRET_ID), "vault:app").await;
    assert!(said.contains("no policy") && !retryable, "{said}");
    assert_eq!(server.state().logins, 2);
}
