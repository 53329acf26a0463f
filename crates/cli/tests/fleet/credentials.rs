//! Whoever may write a data source chooses its credential and its address. What a worker gives them.

use domesday_testkit::fleet::{KEY_VARIABLE, Process};
use domesday_testkit::http::{Request, Response, Server};

use crate::place::{FINGERPRINT_KEY, Place};

const GOOD: &str = "token-that-is-meant-for-this-server";
const OTHER: &str = "token-that-is-meant-for-another-server";
const KEY_ID: &str = "AKIAQYLPMN5HHHFPZAM2";

/// A server of the attacker's, which takes what it gets.
fn attacker() -> Server {
    Server::start(|request| match request.path().starts_with("/api/") {
        true => Response::ok("[]"),
        false => Response::ok("nothing to see"),
    })
}

/// A data source with these fields, and perhaps a credential.
fn add(place: &Place, name: &str, kind: &str, credential: Option<&str>, fields: &[String]) {
    let mut arguments = vec!["datasource", "add", name, "--kind", kind, "--node-group", "eu"];
    arguments.extend(fields.iter().flat_map(|field| ["--set", field.as_str()]));
    arguments.extend(credential.iter().flat_map(|credential| ["--credential", credential]));
    place.run(&arguments);
}

/// A worker with secrets in its environment, and more flags.
fn worker(place: &Place, key_file: &str, more: &[&str]) -> Process {
    let key = format!("file:{key_file}");
    let fixed = ["worker", "--node-group", "eu", "--lease", "3s", "--log", "info", "--fingerprint-key", &key];
    let mut command = place.fleet.command(fixed.iter().chain(more));
    for (name, value) in [
        ("DOMESDAY_FINGERPRINT_KEY", FINGERPRINT_KEY),
        ("PGPASSWORD", "hunter2-of-the-book"),
        ("VAULT_TOKEN", "hunter2-of-vault"),
        ("SRC_GOOD", GOOD),
        ("SRC_OTHER", OTHER),
        ("AWS_ACCESS_KEY_ID", KEY_ID),
        ("AWS_SECRET_ACCESS_KEY", "hunter2-of-the-cloud"),
        ("AWS_SESSION_TOKEN", "hunter2-of-the-session"),
    ] {
        command.env(name, value);
    }
    place.fleet.start("worker", command)
}

/// A key file that is the fleet's fingerprint key.
fn key_file(place: &Place) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = place.path("key");
    std::fs::write(&path, FINGERPRINT_KEY).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn is_told(request: &Request) -> bool {
    ["authorization", "x-amz-security-token"].iter().any(|name| request.header(name).is_some())
}

/// The statuses of jobs that have ended.
fn has_ended(status: &str) -> bool {
    ["COMPLETED", "PARTIALLY_COMPLETED", "FAILED"].contains(&status)
}

#[test]
fn a_data_source_cannot_have_a_workers_secrets_sent_to_an_address_of_its_own() {
    let (place, attacker) = (Place::new(), attacker());
    let key_file = key_file(&place);
    let (own_file, test_key) = (format!("file:{key_file}"), format!("env:{KEY_VARIABLE}"));
    let url = |path: &str| {
        vec![
            format!("addresses=[\"{}\"]", attacker.url(path)),
            "allow_private=true".to_owned(),
            "authentication=bearer".to_owned(),
        ]
    };
    let github = vec!["owner=acme".to_owned(), format!("base_url={}", attacker.url("/api/v3"))];
    let git = vec![format!("url={}", attacker.url("/shop.git")), "authentication=bearer".to_owned()];
    let store =
        ["bucket=shop".to_owned(), format!("endpoint={}", attacker.url("")), "allow_http=true".into()];
    let mut sources = Vec::new();
    for (name, credential) in [
        ("key", "env:DOMESDAY_FINGERPRINT_KEY"),
        ("test-key", test_key.as_str()),
        ("key-file", own_file.as_str()),
        ("environ", "file:/proc/self/environ"),
        ("store-url", "env:DOMESDAY_STORE"),
        ("book", "env:PGPASSWORD"),
        ("vault", "env:VAULT_TOKEN"),
        ("other", "env:SRC_OTHER"),
        ("unnamed", "env:AWS_SECRET_ACCESS_KEY"),
    ] {
        for (kind, fields) in [("url", &url("/taken")), ("github", &github), ("git", &git)] {
            let source = format!("{name}-{kind}");
            add(&place, &source, kind, Some(credential), fields);
            sources.push(source);
        }
    }
    add(&place, "ambient", "s3", None, &store);
    add(&place, "good", "url", Some("env:SRC_GOOD"), &url("/good"));
    sources.extend(["ambient".to_owned(), "good".to_owned()]);
    place.template("all", &sources.iter().map(String::as_str).collect::<Vec<_>>());
    let _orchestrator = place.orchestrator("orchestrator", "eu");
    // An operator who allows much too much still gives away none of the worker's own secrets.
    let allowed = ["env:DOMESDAY_*", "env:PG*", "env:VAULT_*", "file:/*", "env:SRC_OTHER@git.example"];
    let allowed = allowed.into_iter().chain(["env:SRC_GOOD@127.0.0.1"]);
    let flags: Vec<&str> = allowed.flat_map(|allowed| ["--allow-credentials", allowed]).collect();
    let _worker = worker(&place, &key_file, &flags);
    let job = place.job("all");
    place.wait("the end", || place.statuses(&job).iter().all(|status| has_ended(status)));

    let (told, asked): (Vec<Request>, Vec<Request>) = attacker.requests().into_iter().partition(is_told);
    assert!(!told.is_empty(), "what is allowed is given");
    for request in &told {
        assert_eq!(request.path(), "/good");
        assert_eq!(request.header("authorization"), Some(format!("Bearer {GOOD}").as_str()));
    }
    assert_eq!(asked, [], "without its credential nobody is asked");
    let problems = place.fleet.run(["problems", "--job", &job]).exits(3);
    for named in [
        "of this process's own",
        "--allow-credentials 'env:SRC_OTHER@127.0.0.1'",
        "--allow-credentials 'env:AWS_SECRET_ACCESS_KEY@127.0.0.1'",
        "--allow-endpoint 127.0.0.1",
    ] {
        assert!(problems.contains(named), "{named} is not in {problems}\n{}", place.state());
    }
    assert_eq!(place.statuses(&job), ["PARTIALLY_COMPLETED"]);

    let tested = place.fleet.run(["datasource", "test", "other-url"]).exits(3);
    assert!(tested.contains("--allow-credentials 'env:SRC_OTHER'"), "{tested}");
    let tested = place.fleet.run(["datasource", "test", "key-url", "--allow-credentials", "env:*"]).exits(3);
    assert!(tested.contains("of this process's own"), "{tested}");
}

#[test]
fn a_worker_gives_nothing_unless_it_is_told_to() {
    let (place, attacker) = (Place::new(), attacker());
    let key_file = key_file(&place);
    let fields = [format!("addresses=[\"{}\"]", attacker.url("/good")), "allow_private=true".to_owned()];
    add(&place, "good", "url", Some("env:SRC_GOOD"), &fields);
    place.template("all", &["good"]);
    let _fleet = (place.orchestrator("orchestrator", "eu"), worker(&place, &key_file, &[]));
    let job = place.job("all");
    place.wait("the end", || place.statuses(&job).iter().all(|status| has_ended(status)));
    assert_eq!(attacker.requests(), []);
    let problems = place.fleet.run(["problems", "--job", &job]).exits(3);
    assert!(problems.contains("--allow-credentials 'env:SRC_GOOD@127.0.0.1'"), "{problems}");
}
