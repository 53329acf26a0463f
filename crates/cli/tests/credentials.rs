//! Credentials on their way from the command line, from Vault and from programs to where they are used, and
//! that they are nowhere else.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::book::Book;
use common::{KEY, Place, Ran, bytes_in, contains, run, text};
use domesday_testkit::http::{Response, Server};
use domesday_testkit::wait;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const SECRET: &str = "hunter2-hunter2";

/// A host that lets nobody in.
fn closed() -> Server {
    Server::start(|_| Response::status(401).body("{}"))
}

/// A Vault with one secret.
fn vault() -> Server {
    Server::start(|request| match (request.path(), request.header("x-vault-token")) {
        ("/v1/secret/data/app", Some("root")) => {
            Response::ok(json!({ "data": { "data": { "token": SECRET } } }).to_string())
        }
        _ => Response::status(403).body("{}"),
    })
}

/// A data source of that host, with this credential.
fn add(book: &Book, host: &Server, credential: &str) {
    let base = format!("base_url={}", host.url("/api/v3"));
    let args = ["datasource", "add", "shop", "--kind", "github", "--node-group", "eu"];
    let set = ["--set", "owner=acme", "--set", &base, "--credential", credential];
    run(book.command(args).args(set)).exits(0);
}

/// The steps of a test as `step status`, and their details.
fn steps(tested: &Ran) -> (Vec<String>, String) {
    let json = tested.json();
    let steps = json["steps"].as_array().unwrap();
    let shown = |step: &Value| format!("{} {}", text(&step["step"]), text(&step["status"]));
    (steps.iter().map(shown).collect(), steps.iter().map(|step| text(&step["detail"])).collect())
}

#[test]
fn a_test_names_what_is_missing_step_by_step() {
    let (book, host, vault) = (Book::embedded(), closed(), vault());
    add(&book, &host, "vault:app#token");
    let test = |environment: &[(&str, &str)], args: &[&str]| {
        let all = [&["datasource", "test", "shop", "--allow-credentials", "vault:app"], args].concat();
        let ran = run(book.command(all).envs(environment.iter().copied())).exits(3);
        assert!(!ran.text().contains(SECRET) && !ran.err.contains(SECRET), "{}", ran.err);
        ran
    };
    let first_fails = ["credential failed", "reach untried", "list untried", "read untried"];
    let second_fails = ["credential ok", "reach failed", "list untried", "read untried"];
    let address = vault.url("");

    let (seen, told) = steps(&test(&[], &[]));
    assert_eq!(seen, first_fails);
    assert!(told.contains("VAULT_ADDR is not set"), "{told}");
    let (seen, told) = steps(&test(&[("VAULT_ADDR", &address)], &[]));
    assert_eq!(seen, first_fails);
    assert!(told.contains("VAULT_TOKEN"), "{told}");
    let (seen, told) = steps(&test(&[("VAULT_ADDR", &address), ("VAULT_TOKEN", "other")], &[]));
    assert_eq!(seen, first_fails);
    assert!(told.contains("no policy"), "{told}");
    assert_eq!(host.requests(), [], "without a credential nobody is asked");
    let refused = test(&[("VAULT_ADDR", &address), ("VAULT_TOKEN", "root")], &[]);
    assert_eq!(steps(&refused).0, second_fails);
    assert_eq!(refused.json()["readable"], false);
    assert!(refused.err.contains("datasource shop: "), "{}", refused.err);
    let sent = host.requests();
    assert!(
        sent.iter().any(|request| request.header("authorization").is_some_and(|sent| sent.contains(SECRET)))
    );
}

#[test]
fn a_program_runs_only_where_it_is_allowed() {
    let (book, host) = (Book::embedded(), closed());
    add(&book, &host, &format!("command:/bin/echo {SECRET}-from-a-program"));
    let test = |args: &[&str]| book.run(&[&["datasource", "test", "shop"], args].concat());
    for args in [&[][..], &["--allow-credentials", "command:/bin/cat"]] {
        let (seen, told) = steps(&test(args).exits(3));
        assert_eq!(seen[0], "credential failed");
        assert!(told.contains("--allow-credentials"), "{told}");
    }
    assert_eq!(host.requests(), []);
    assert_eq!(steps(&test(&["--allow-credentials", "command:/bin/echo"]).exits(3)).0[1], "reach failed");
    assert!(!host.requests().is_empty());
    test(&["--allow-credentials", "command:echo"]).fails_saying(&["absolute path"]);
}

#[test]
fn a_password_in_an_address_is_nowhere_but_where_it_is_sent() {
    let (place, host) = (Place::new(), closed());
    let typed = host.url("/shop.git").replace("http://", &format!("http://alice:{SECRET}@"));
    let ran = place.run(&["scan", &typed, "--state", "state", "--log", "trace"]);
    assert!(ran.code == Some(2) || ran.code == Some(3), "{}", ran.err);
    assert!(!ran.err.contains(SECRET) && !ran.text().contains(SECRET), "{}", ran.err);
    assert!(!contains(&bytes_in(&place.state()), SECRET));
    for args in [&["jobs"][..], &["problems"], &["findings"]] {
        let shown = place.run(&[args, &["--state", "state"]].concat());
        assert!(!shown.text().contains(SECRET) && !shown.err.contains(SECRET));
    }
}

#[test]
fn a_source_that_refuses_at_its_root_says_what_to_do() {
    let (place, host) = (Place::new(), closed());
    let page = host.url("/report");
    let repository = host.url("/shop.git");
    let scan = |target: &str, args: &[&str]| {
        let scan = ["scan", target, "--state", "state", "--format", "table"];
        let mut command = place.command(scan.iter().chain(args));
        command.env("PATH", std::env::var_os("PATH").unwrap());
        // Nothing tells credentials there.
        run(command.env("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1")).exits(3)
    };
    for (target, args, advice) in [
        (page.as_str(), &["--allow-private"][..], "give it a credential"),
        (repository.as_str(), &[], "give the data source a credential"),
        ("s3://shop", &[], "no credentials found: set AWS_ACCESS_KEY_ID"),
    ] {
        let ran = scan(target, args);
        let told = ran.text();
        assert!(told.contains("job       failed") && told.contains(advice), "{told}");
        for hidden in ["partially", "127.0.0.1:1/", "169.254", "\\x0a"] {
            assert!(!told.contains(hidden), "{told}");
        }
    }
}

/// A repository that is given only to who has the password, and late while it is told to be.
fn repository(place: &Place, late: &Arc<AtomicBool>) -> Server {
    let git = |folder: &str, args: &[&str]| {
        let who = ["-c", "user.name=A", "-c", "user.email=a@example.com"];
        let output = Command::new("git")
            .args(who)
            .args(args)
            .current_dir(place.path(folder))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    place.file("a.txt", KEY);
    git("tree", &["init", "-q"]);
    git("tree", &["add", "a.txt"]);
    git("tree", &["commit", "-q", "-m", "first"]);
    git(".", &["clone", "-q", "--bare", "tree", "shop.git"]);
    git("shop.git", &["update-server-info"]);
    let (folder, late) = (place.path(""), Arc::clone(late));
    // `alice:` and the secret, in base64.
    Server::start(move |request| match request.header("authorization") {
        Some("Basic YWxpY2U6aHVudGVyMi1odW50ZXIy") => {
            let delay = if late.load(Ordering::Relaxed) { 3 } else { 0 };
            Response::file(&folder, request.path()).after(Duration::from_secs(delay))
        }
        _ => Response::status(401).header("WWW-Authenticate", "Basic realm=\"shop\""),
    })
}

#[test]
fn a_scan_that_was_begun_with_a_password_asks_for_it_again() {
    let (place, late) = (Place::new(), Arc::new(AtomicBool::new(true)));
    let host = repository(&place, &late);
    let address = host.url("/shop.git");
    let with = address.replace("http://", &format!("http://alice:{SECRET}@"));
    let command = |address: &str| {
        let mut command = place.command(["scan", address, "--state", "state", "--log", "trace"]);
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command
    };
    let mut begun = command(&with);
    let child = begun.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let asked = wait::until(Duration::from_secs(60), || (!host.requests().is_empty()).then_some(()));
    assert!(asked.is_some(), "the host is asked");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let stopped: Ran = child.wait_with_output().unwrap().into();
    let stopped = stopped.exits(3);
    late.store(false, Ordering::Relaxed);
    let asks = run(&mut command(&address));
    asks.fails_saying(&["give it again", "--fresh"]);
    let resumed = run(&mut command(&with)).exits(1);
    assert_eq!(resumed.found().len(), 1);
    assert!(resumed.err.contains("resuming"), "{}", resumed.err);
    for ran in [&stopped, &asks, &resumed] {
        assert!(!ran.err.contains(SECRET) && !ran.text().contains(SECRET), "{}", ran.err);
    }
    assert!(!contains(&bytes_in(&place.state()), SECRET));
}
