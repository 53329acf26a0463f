//! What a process that reads content lets others see of its memory: nothing, and no core file when it aborts.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use std::io::Write;
use std::os::unix::fs::chown;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::Place;
use domesday_testkit::wait;
use rustix::process::{Pid, Signal, kill_process};

/// Who the processes are, so that only what they themselves allow counts.
const NOBODY: u32 = 65_534;

/// A scan of standard input that has begun to read, started where core files are allowed.
fn scan(place: &Place) -> Child {
    let binary = place.path("domesday");
    std::fs::copy(env!("CARGO_BIN_EXE_domesday"), &binary).unwrap();
    std::fs::create_dir_all(place.path("work/state")).unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -c unlimited 2>/dev/null; exec ../domesday scan - --state state"]);
    command.current_dir(place.path("work")).env_clear().env("DOMESDAY_TEST_MARK", "mrk-environment");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    if rustix::process::geteuid().is_root() {
        for folder in ["work", "work/state"] {
            chown(place.path(folder), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        command.uid(NOBODY).gid(NOBODY);
    }
    let mut child = command.spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(b"some content\n").unwrap();
    child
}

#[track_caller]
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let seen = wait::until(Duration::from_secs(60), || is_so().then_some(()));
    assert!(seen.is_some(), "waited for {what}");
}

/// Whether another process of the same user can read a file of this one.
fn can_read(pid: u32, file: &str) -> bool {
    let mut command = Command::new("head");
    command.args(["-c", "1", &format!("/proc/{pid}/{file}")]).stdout(Stdio::null()).stderr(Stdio::null());
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.status().unwrap().success()
}

#[test]
fn a_process_that_reads_content_leaves_no_core_and_shows_no_memory() {
    let place = Place::new();
    let mut child = scan(&place);
    let pid = child.id();
    let limits = || std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
    let has_no_core = || {
        let limits = limits();
        let line = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap_or_default();
        line.split_whitespace().skip(4).take(2).eq(["0", "0"])
    };
    wait_for("the limit of core files", has_no_core);
    wait_for("a book", || place.path("work/state/book.sqlite").exists());
    for file in ["environ", "maps", "auxv"] {
        assert!(!can_read(pid, file), "/proc/PID/{file} can be read by others");
    }
    // The same user reads these of a process that does not mind.
    let mut other = Command::new("sleep");
    other.arg("60");
    if rustix::process::geteuid().is_root() {
        other.uid(NOBODY).gid(NOBODY);
    }
    let mut other = other.spawn().unwrap();
    wait_for("the other process", || can_read(other.id(), "environ"));
    other.kill().unwrap();
    other.wait().unwrap();

    kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::ABORT).unwrap();
    let status = child.wait().unwrap();
    assert_eq!((status.signal(), status.core_dumped()), (Some(6), false));
    let left: Vec<_> =
        std::fs::read_dir(place.path("work")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["state"]);
}
