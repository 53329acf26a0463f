//! Scans that are stopped, killed or hindered, and go on.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use common::{KEY, Place, Ran, bytes_in, contains, run, text};
use rustix::process::{Pid, Signal, kill_process};

/// Files of the slow tree; at their size some packets of them are done long before others.
const FILES: usize = 400;
const FILE_BYTES: usize = 128 << 10;
/// Findings that fill a small disk.
const MANY: usize = 6_000;

/// A tree that takes a while: one file under many names.
fn slow_place() -> Place {
    slow_place_of(KEY)
}

/// The same, of files that begin so.
fn slow_place_of(head: &str) -> Place {
    let place = Place::new();
    let line = "2024-05-01T10:00:00Z INFO service=web key=value took=12ms user=none\n";
    let first = place.file("0000", format!("{head}\n{}", line.repeat(FILE_BYTES / line.len())));
    for index in 1..FILES {
        fs::hard_link(&first, place.tree().join(format!("{index:04}"))).unwrap();
    }
    place
}

fn spawn(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

fn wait(child: Child) -> Ran {
    child.wait_with_output().unwrap().into()
}

fn jobs(place: &Place) -> Vec<(String, String)> {
    let ran = place.run(&["jobs", "--state", "state"]).exits(0);
    let listed = ran.json();
    listed.as_array().unwrap().iter().map(|job| (text(&job["description"]), text(&job["status"]))).collect()
}

/// Returns once the book shows findings of the scan, which must not have ended by then.
fn wait_for_findings(place: &Place, child: &mut Child) -> usize {
    loop {
        assert_eq!(child.try_wait().unwrap(), None, "the scan is over too early");
        let ran = place.run(&["findings", "--state", "state"]);
        // Before there is a book there is nothing to show; before it is done nothing is complete.
        if ran.code == Some(3) && !ran.found().is_empty() {
            return ran.found().len();
        }
    }
}

#[test]
fn an_interrupted_scan_goes_on_with_the_same_command() {
    let place = slow_place();
    let mut child = spawn(place.scan_command(&["--jobs", "1"]));
    let seen = wait_for_findings(&place, &mut child);
    assert!(seen < FILES);
    send(&child, Signal::INT);
    let ran = wait(child).exits(3);
    assert!(ran.err.contains("stopping; run the same command"), "{}", ran.err);
    assert_eq!(ran.json()["summary"]["complete"], false);
    let done = ran.paths().len();
    assert!((seen..FILES).contains(&done), "{done}");

    // Other options are another scan, and it leaves this one alone.
    let ran = place.scan(&["--exclude", "[0-8]*", "--exclude", "*9?"]).exits(0);
    assert!(!ran.err.contains("resuming"), "{}", ran.err);
    assert_eq!(jobs(&place)[1].1, "RUNNING");

    let ran = place.scan(&["--show-values"]).exits(1);
    assert!(ran.err.contains(&format!("resuming the unfinished scan: {done} of {FILES}")), "{}", ran.err);
    assert_eq!(ran.paths(), (0..FILES).map(|index| format!("tree/{index:04}")).collect::<Vec<_>>());
    assert!(ran.json()["findings"].as_array().unwrap().iter().all(|found| found["value"] == KEY));
    assert_eq!(jobs(&place).len(), 2);
    assert!(!contains(&bytes_in(&place.state()), KEY));
    // And what is finished is not resumed.
    let again = place.scan(&["--exclude", "[0-8]*", "--exclude", "*9?"]).exits(0);
    assert!(!again.err.contains("resuming"), "{}", again.err);
}

#[test]
fn the_second_signal_stops_at_once() {
    let place = slow_place();
    let mut child = spawn(place.scan_command(&["--jobs", "1"]));
    wait_for_findings(&place, &mut child);
    for signal in [Signal::INT, Signal::TERM] {
        send(&child, signal);
    }
    assert_eq!(wait(child).code, Some(3));
    assert_eq!(place.scan(&["--quiet"]).exits(1).paths().len(), FILES);
}

#[test]
fn a_killed_scan_goes_on_or_starts_over() {
    let place = slow_place();
    let mut child = spawn(place.scan_command(&["--jobs", "1"]));
    wait_for_findings(&place, &mut child);
    // Nobody else may write the book meanwhile, and everybody may read it.
    place
        .run(&["scan", "state/..", "--state", "state"])
        .fails_saying(&["in use by another process", "--state"]);
    child.kill().unwrap();
    child.wait().unwrap();
    let ran = place.scan(&["--fresh"]).exits(1);
    assert!(!ran.err.contains("resuming"), "{}", ran.err);
    assert_eq!(ran.paths().len(), FILES);
    assert_eq!(jobs(&place).iter().map(|job| job.1.as_str()).collect::<Vec<_>>(), ["COMPLETED", "CANCELLED"]);
    assert_eq!(place.scan(&["--fresh"]).exits(1).paths().len(), FILES);
}

#[test]
fn what_is_suppressed_is_counted_once_however_often_the_scan_is_killed() {
    let place = slow_place_of(&format!("{KEY}\n{KEY} domesday:ignore\n{KEY} gitleaks:allow"));
    let mut child = spawn(place.scan_command(&["--jobs", "1"]));
    wait_for_findings(&place, &mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    for _ in 0..2 {
        let ran = place.scan(&[]).exits(1);
        assert_eq!(ran.paths().len(), FILES);
        let by_mark = &ran.json()["summary"]["suppressed"][0];
        assert_eq!(*by_mark, serde_json::json!({ "control": "mark", "findings": 2 * FILES }));
    }
}

#[test]
fn standard_input_is_not_waited_for_and_not_mixed_up() {
    let place = Place::new();
    for signal in [Signal::INT, Signal::KILL] {
        let mut command = place.command(["scan", "-", "--state", "state"]);
        command.stdin(Stdio::piped());
        let mut child = spawn(command);
        // Never at its end while `input` lives.
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"some text\n").unwrap();
        while jobs_if_any(&place).last().is_none_or(|job| job.1 != "RUNNING") {
            assert_eq!(child.try_wait().unwrap(), None);
        }
        send(&child, signal);
        let expected = if signal == Signal::INT { Some(3) } else { None };
        assert_eq!(wait(child).code, expected);
        drop(input);
    }
    let mut child = spawn({
        let mut command = place.command(["scan", "-", "--state", "state"]);
        command.stdin(Stdio::piped());
        command
    });
    child.stdin.take().unwrap().write_all(KEY.as_bytes()).unwrap();
    let ran = wait(child).exits(1);
    assert_eq!(ran.paths(), ["stdin"]);
}

fn jobs_if_any(place: &Place) -> Vec<(String, String)> {
    let ran = place.run(&["jobs", "--state", "state"]);
    if ran.code == Some(0) { jobs(place) } else { Vec::new() }
}

/// So many findings that the book outgrows the disks below.
fn place_of_many() -> Place {
    let place = Place::new();
    for index in 0..MANY {
        place.file(format!("{}/{index}", index % 100), format!("{KEY}\n"));
    }
    place
}

/// A small filesystem for the state folder.
struct SmallDisk<'a>(&'a Place);

impl SmallDisk<'_> {
    /// None when the test may not mount one.
    fn mount(place: &Place) -> Option<SmallDisk<'_>> {
        fs::create_dir(place.state()).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=640k,mode=700", "none"]).arg(place.state());
        let mounted = mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        mounted.then_some(SmallDisk(place))
    }

    fn grow(&self) {
        let mut mount = Command::new("mount");
        assert!(mount.args(["-o", "remount,size=64m"]).arg(self.0.state()).status().unwrap().success());
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.state()).status();
    }
}

/// A scan that may not make files as large as it needs: the same trouble where nothing can be mounted.
fn scan_with_small_files(place: &Place) -> Ran {
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 700; exec \"$0\" scan tree --state state"]);
    run(limited.arg(env!("CARGO_BIN_EXE_domesday")).current_dir(place.path(".")))
}

#[test]
fn a_full_disk_is_told_and_the_scan_goes_on_when_there_is_space() {
    let place = place_of_many();
    let disk = SmallDisk::mount(&place);
    match &disk {
        Some(disk) => {
            place.scan(&[]).fails_saying(&["is full", "free some space", "same command"]);
            place.scan(&[]).fails_saying(&["is full"]);
            disk.grow();
        }
        None => scan_with_small_files(&place).fails_saying(&["domesday: "]),
    }
    assert_eq!(place.scan(&[]).exits(1).paths().len(), MANY);
}

/// Writes to the book that fail for another reason end the scan, too: it must not try for ever.
#[test]
fn a_book_that_cannot_grow_ends_the_scan() {
    let place = place_of_many();
    scan_with_small_files(&place).fails_saying(&["domesday: "]);
    assert_eq!(place.scan(&[]).exits(1).paths().len(), MANY);
}

/// A server that takes connections and answers only what is asked with `HEAD`; a message for each other request.
fn silent_server() -> (u16, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, asked) = channel();
    thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            if line.starts_with("HEAD") {
                let answer = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\n";
                stream.write_all(answer.as_bytes()).unwrap();
                continue;
            }
            kept.push(stream);
            if sender.send(()).is_err() {
                return;
            }
        }
    });
    (port, asked)
}

/// Listing, reading, and what a program of git's waits for.
#[test]
fn a_remote_that_does_not_answer_holds_nobody_up() {
    let (port, asked) = silent_server();
    for target in ["http://127.0.0.1:PORT/page", "http://127.0.0.1:PORT/repo.git", "s3://bucket"] {
        let place = Place::new();
        let target = target.replace("PORT", &port.to_string());
        let mut command = place.command(["scan", &target, "--state", "state", "--quiet"]);
        if target.starts_with("http") && !target.ends_with(".git") {
            command.arg("--allow-private");
        }
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}")).env("AWS_ALLOW_HTTP", "true");
        command.env("AWS_ACCESS_KEY_ID", "fake").env("AWS_SECRET_ACCESS_KEY", "fake");
        let mut child = spawn(command);
        asked.recv().unwrap();
        send(&child, Signal::TERM);
        // Generous: it waits for minutes where it waits for the remote.
        for _ in 0..400 {
            if child.try_wait().unwrap().is_some() {
                break;
            }
            thread::park_timeout(Duration::from_millis(50));
        }
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            panic!("{target} is still scanned");
        }
        wait(child).exits(3);
    }
}
