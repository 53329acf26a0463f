//! Sources that do not answer at first, or never: what may pass is tried again, within the scan and when somebody asks
//! for it. Against real servers whose connections are reset.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{KEY, KEY_2, Place, Ran, text};
use domesday_testkit::http::{Response, Server};
use domesday_testkit::s3::{self, Faults, Memory};

/// Every connection is reset.
const DOWN: Faults = Faults {
    seed: 1,
    errors: 0,
    slow_downs: 0,
    truncations: 0,
    resets: 1_000,
    delays: 0,
    delay: std::time::Duration::ZERO,
};

/// A bucket with a key in each of two objects, on a server that does not answer yet.
struct Shop {
    place: Place,
    server: s3::Server,
}

impl Shop {
    fn new() -> Shop {
        let memory = Arc::new(Memory::default());
        memory.put("a.txt", KEY);
        memory.put("b.txt", KEY_2);
        let server = s3::Server::start_public(memory);
        server.set_faults(DOWN);
        Shop { place: Place::new(), server }
    }

    fn comes_back(&self) {
        self.server.set_faults(Faults::default());
    }

    fn args<'a>(&self, endpoint: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let args = ["scan", "s3://shop", "--state", "state", "--format", "json", "--set", endpoint];
        [
            &args[..],
            &[
                "--set",
                "allow_http=true",
                "--set",
                "authentication=unauthenticated",
                "--set",
                "region=us-east-1",
            ],
            more,
        ]
        .concat()
    }

    fn endpoint(&self) -> String {
        format!("endpoint={}", self.server.endpoint())
    }

    fn scan(&self, more: &[&str]) -> Ran {
        self.place.run(&self.args(&self.endpoint(), more))
    }

    /// Begins a scan; returns once it says that it waits for the source.
    fn scan_until_it_waits(&self) -> (Child, BufReader<std::process::ChildStderr>) {
        let endpoint = self.endpoint();
        let mut command = self.place.command(self.args(&endpoint, &[]));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("for the source: ") {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "it ended, and did not wait");
        }
        (child, said)
    }

    fn job(&self) -> serde_json::Value {
        self.place.run(&["job", "list", "--state", "state"]).exits(0).json()[0].clone()
    }
}

#[test]
fn a_server_that_comes_back_is_scanned_whole() {
    let shop = Shop::new();
    let (child, mut said) = shop.scan_until_it_waits();
    shop.comes_back();
    let drained = std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    let ran = Ran::from(child.wait_with_output().unwrap()).exits(1);
    drained.join().unwrap().unwrap();
    assert_eq!(ran.found().len(), 2);
    assert_eq!(shop.job()["status"], "COMPLETED");
}

#[test]
fn a_scan_that_is_killed_while_it_waits_goes_on() {
    let shop = Shop::new();
    let (mut child, _said) = shop.scan_until_it_waits();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(shop.job()["status"], "RUNNING");
    shop.comes_back();
    assert_eq!(shop.scan(&[]).exits(1).found().len(), 2);
    assert_eq!(shop.place.run(&["job", "list", "--state", "state"]).json().as_array().unwrap().len(), 1);
}

#[test]
fn a_server_that_never_answers_fails_and_is_tried_again_when_it_does() {
    let shop = Shop::new();
    let ran = shop.scan(&["--attempts", "2"]).exits(3);
    assert_eq!(ran.counted("failed", "unavailable"), 1);
    let job = shop.job();
    assert_eq!(job["status"], "FAILED");
    let id = text(&job["id"]);
    shop.comes_back();
    let answer = shop.place.run(&["job", "retry", &id, "--state", "state"]).exits(0).json();
    assert_eq!(
        (&answer["containers"], &answer["tasks"], &answer["objects"]),
        (&1.into(), &0.into(), &0.into())
    );
    assert_eq!(shop.job()["status"], "QUEUED");
    assert_eq!(shop.scan(&["--attempts", "2"]).exits(1).found().len(), 2);
    let job = shop.job();
    assert_eq!((text(&job["id"]), text(&job["status"])), (id.clone(), "COMPLETED".to_owned()));
    let nothing = shop.place.run(&["job", "retry", &id, "--state", "state"]);
    nothing.fails_saying(&["nothing of it failed"]);
}

#[test]
fn only_what_failed_is_read_again() {
    let is_down = Arc::new(AtomicBool::new(true));
    let answers = Arc::clone(&is_down);
    let server = Server::start(move |request| match request.path() {
        "/good" => Response::ok(KEY),
        "/bad" if answers.load(Ordering::SeqCst) => Response::status(503),
        "/bad" => Response::ok(KEY_2),
        "/denied" if answers.load(Ordering::SeqCst) => Response::status(403),
        "/denied" => Response::ok("nothing"),
        _ => Response::status(404),
    });
    let place = Place::new();
    let urls = ["/good", "/bad", "/denied"].map(|path| server.url(path));
    let scan = || {
        let args = ["--allow-private", "--state", "state", "--format", "json", "--attempts", "2"];
        let urls = urls.iter().map(String::as_str);
        place.run(&["scan"].into_iter().chain(urls).chain(args).collect::<Vec<_>>())
    };
    let ran = scan().exits(3);
    assert_eq!((ran.counted("failed", "unavailable"), ran.counted("failed", "permission_denied")), (1, 1));
    assert_eq!(ran.found().len(), 1);
    let (good, denied) = (server.count("/good"), server.count("/denied"));
    assert!(server.count("/bad") > good, "it was asked for again");
    is_down.store(false, Ordering::SeqCst);

    let id = text(&place.run(&["job", "list", "--state", "state"]).json()[0]["id"]);
    let retry = |more: &[&str]| place.run(&[&["job", "retry", &id, "--state", "state"], more].concat());
    assert_eq!(retry(&[]).exits(0).json()["objects"], 1);
    let bad = server.count("/bad");
    let ran = scan().exits(3);
    assert_eq!((ran.found().len(), ran.counted("failed", "unavailable")), (2, 0));
    assert_eq!(
        [server.count("/good"), server.count("/bad"), server.count("/denied")],
        [good, bad + 1, denied]
    );

    assert_eq!(retry(&[]).exits(3).json()["retried"], 0);
    assert_eq!(retry(&["--any-reason"]).exits(0).json()["objects"], 1);
    assert_eq!(scan().exits(1).found().len(), 2);
    assert_eq!([server.count("/good"), server.count("/denied")], [good, denied + 1]);
}
