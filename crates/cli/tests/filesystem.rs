//! File trees as they are: hidden, linked, unreadable, changing, oddly named, deep.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::process::Stdio;

use common::{KEY, Place, contains, run};
use rustix::fs::{CWD, FileType, Mode, OFlags, mkdirat, mknodat, openat};

#[test]
fn hidden_and_git_ignored_files_are_scanned() {
    let place = Place::new();
    place.file(".env", KEY);
    place.file(".git/config", KEY);
    place.file(".gitignore", "ignored.txt\n");
    place.file("ignored.txt", KEY);
    let ran = place.scan(&[]).exits(1);
    assert_eq!(ran.paths(), ["tree/.env", "tree/.git/config", "tree/ignored.txt"]);
}

#[test]
fn the_users_settings_narrow_a_scan_and_leave_it_complete() {
    let place = Place::new();
    place.file("kept.txt", "nothing");
    place.file("left.lock", KEY);
    place.file("sub/build/out.txt", KEY);
    place.file("large.txt", format!("{KEY}\n{}", "x".repeat(5_000)));
    let ran = place.scan(&["--exclude", "*.lock", "--exclude", "build/", "--max-file-size", "4K"]).exits(0);
    assert_eq!(ran.counted("skipped", "excluded"), 2);
    assert_eq!(ran.counted("skipped", "too_large"), 1);
    assert_eq!(ran.json()["summary"]["complete"], true);
    assert_eq!(ran.json()["summary"]["objects"]["done"], 1);
}

#[test]
fn ignore_files_nest_and_deeper_ones_overrule() {
    let place = Place::new();
    place.file(".domesdayignore", "# comment\n*.log\n/top.txt\nnode_modules/\n\\!odd\n");
    place.file("sub/.domesdayignore", "!keep.log\nlocal.txt\n");
    for name in
        ["a.log", "top.txt", "node_modules/x.js", "!odd", "sub/a.log", "sub/local.txt", "sub/deep/local.txt"]
    {
        place.file(name, KEY);
    }
    for name in ["sub/keep.log", "sub/top.txt", "local.txt", "sub/deep/keep.log"] {
        place.file(name, KEY);
    }
    let ran = place.scan(&[]).exits(1);
    assert_eq!(
        ran.paths(),
        ["tree/local.txt", "tree/sub/deep/keep.log", "tree/sub/keep.log", "tree/sub/top.txt"]
    );
    assert_eq!(ran.counted("skipped", "ignored"), 7);
    // What is excluded on the command line stays so, and what is not there may be put back in there.
    let ran = place.scan(&["--exclude", "keep.log", "--exclude", "!a.log"]).exits(1);
    assert_eq!(ran.paths(), ["tree/a.log", "tree/local.txt", "tree/sub/a.log", "tree/sub/top.txt"]);
}

#[test]
fn a_file_named_by_the_user_is_scanned_whatever_the_patterns() {
    let place = Place::new();
    place.file(".domesdayignore", "*\n");
    place.file("a.log", KEY);
    symlink("a.log", place.tree().join("link")).unwrap();
    for target in ["tree/a.log", "tree/link"] {
        let ran = place.run(&["scan", target, "--exclude", "*.log", "--state", "state"]).exits(1);
        assert_eq!(ran.json()["summary"]["objects"]["listed"], 1);
    }
}

#[test]
fn own_state_is_never_scanned() {
    let place = Place::new();
    place.file("a.txt", KEY);
    let inside = ["scan", "tree", "--state", "tree/.state"];
    for _ in 0..2 {
        let ran = place.run(&inside).exits(1);
        assert_eq!(ran.paths(), ["tree/a.txt"]);
        assert_eq!(ran.counted("skipped", "own_state"), 1);
        assert_eq!(ran.json()["summary"]["objects"]["listed"], 1);
    }
    // Not through a link, and not when it is the target.
    symlink(".state", place.tree().join("link")).unwrap();
    let ran = place.run(&["scan", "tree", "--follow-symlinks", "--state", "tree/.state"]).exits(1);
    assert_eq!(ran.counted("skipped", "own_state"), 2);
    for target in ["tree/.state", "tree/.state/book.sqlite", "tree/link"] {
        place.run(&["scan", target, "--state", "tree/.state"]).fails_saying(&["own state"]);
    }
}

#[test]
fn links_are_recorded_and_not_followed() {
    let place = Place::new();
    fs::write(place.path("outside.txt"), KEY).unwrap();
    symlink(place.path("outside.txt"), place.tree().join("to_file")).unwrap();
    symlink("/", place.tree().join("to_root")).unwrap();
    symlink("nowhere", place.tree().join("dangling")).unwrap();
    let ran = place.scan(&[]).exits(0);
    assert_eq!(ran.counted("skipped", "symlink"), 3);
    assert_eq!(ran.json()["summary"]["objects"]["listed"], 0);
}

#[test]
fn followed_links_end() {
    let place = Place::new();
    place.file("a/key.txt", KEY);
    place.file("b/key.txt", KEY);
    let tree = place.tree();
    symlink("self", tree.join("self")).unwrap();
    symlink(".", tree.join("here")).unwrap();
    symlink("..", tree.join("a/up")).unwrap();
    symlink("../b", tree.join("a/to_b")).unwrap();
    symlink("../a", tree.join("b/to_a")).unwrap();
    symlink("nowhere", tree.join("dangling")).unwrap();
    let ran = place.scan(&["--follow-symlinks"]).exits(1);
    assert_eq!(
        ran.paths(),
        ["tree/a/key.txt", "tree/a/to_b/key.txt", "tree/b/key.txt", "tree/b/to_a/key.txt"]
    );
    assert_eq!(ran.counted("skipped", "dangling_symlink"), 1);
    // self, here, and in a: up, to_b/to_a; in b: to_a/to_b, to_a/up.
    assert_eq!(ran.counted("skipped", "symlink_loop"), 6);
    assert_eq!(ran.json()["summary"]["complete"], true);
    // A pattern for folders counts for a link to one.
    let ran = place.scan(&["--follow-symlinks", "--exclude", "to_b/"]).exits(1);
    assert_eq!(ran.paths(), ["tree/a/key.txt", "tree/b/key.txt", "tree/b/to_a/key.txt"]);
}

#[test]
fn special_files_are_skipped_with_a_reason() {
    let place = Place::new();
    let tree = place.tree();
    mknodat(CWD, tree.join("fifo"), FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
    let _socket = UnixListener::bind(tree.join("socket")).unwrap();
    let mut special = 2;
    // Only root may make a device.
    if mknodat(CWD, tree.join("null"), FileType::CharacterDevice, Mode::from_raw_mode(0o644), 0x0103).is_ok()
    {
        special += 1;
    }
    place.file("a.txt", KEY);
    let ran = place.scan(&[]).exits(1);
    assert_eq!(ran.counted("skipped", "special_file"), special);
    assert_eq!(ran.json()["summary"]["complete"], true);
    place
        .run(&["scan", "tree/fifo", "--state", "state"])
        .fails_saying(&["neither a folder nor a file", "`-`"]);
}

#[test]
fn what_may_not_be_read_is_named_and_the_rest_is_scanned() {
    let place = Place::new();
    place.file("open.txt", KEY);
    place.file("closed.txt", KEY);
    place.file("closed/a.txt", KEY);
    place.file("names_only/b.txt", KEY);
    let set = |name: &str, mode| {
        fs::set_permissions(place.tree().join(name), PermissionsExt::from_mode(mode)).unwrap()
    };
    set("closed.txt", 0o000);
    set("closed", 0o000);
    set("names_only", 0o444);
    let ran = place.scan_unprivileged(&[]).exits(3);
    assert_eq!(ran.paths(), ["tree/open.txt"]);
    assert_eq!(
        ran.problems(),
        [
            "tree/closed permission_denied",
            "tree/closed.txt permission_denied",
            "tree/names_only/b.txt permission_denied",
        ]
    );
    assert_eq!(ran.counted("failed", "permission_denied"), 3);
    assert_eq!(ran.json()["summary"]["complete"], false);
    set("closed", 0o755);
    set("names_only", 0o755);
}

#[test]
fn a_root_that_may_not_be_read_is_named() {
    let place = Place::new();
    fs::set_permissions(place.tree(), PermissionsExt::from_mode(0o000)).unwrap();
    let ran = place.scan_unprivileged(&[]).exits(3);
    assert_eq!(ran.counted("failed", "permission_denied"), 1);
    assert_eq!(ran.json()["summary"]["status"], "FAILED");
    fs::set_permissions(place.tree(), PermissionsExt::from_mode(0o755)).unwrap();
}

/// Files come, go, grow and shrink while they are scanned: whatever happens to each, every one that was
/// listed is accounted for, and one that stood still is scanned.
#[test]
fn a_tree_that_changes_meanwhile_does_not_end_the_scan() {
    let place = Place::new();
    for index in 0..2_000 {
        place.file(format!("moving/{index}.txt"), "some text\n".repeat(1_000));
    }
    place.file("zz/still.txt", KEY);
    let child = place.scan_command(&[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for index in (0..2_000).rev() {
        let path = place.tree().join(format!("moving/{index}.txt"));
        match index % 4 {
            0 => fs::remove_file(&path).unwrap(),
            1 => fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"more\n").unwrap(),
            2 => fs::File::options().write(true).open(&path).unwrap().set_len(7).unwrap(),
            _ => {
                fs::remove_file(&path).unwrap();
                symlink("/etc/hostname", &path).unwrap();
            }
        }
    }
    let ran = common::Ran::from(child.wait_with_output().unwrap());
    assert!(matches!(ran.code, Some(1 | 3)), "{:?} {}", ran.code, ran.err);
    assert_eq!(ran.paths(), ["tree/zz/still.txt"]);
    let summary = &ran.json()["summary"];
    assert_eq!(summary["objects"]["listed"], summary["objects"]["done"]);
    assert_eq!(summary["tasks"]["failed"], 0);
    for what in ["failed", "partial"] {
        for reason in summary[what].as_array().unwrap() {
            assert!(matches!(reason["reason"].as_str(), Some("vanished" | "changed")), "{reason}");
        }
    }
}

#[test]
fn names_need_not_be_text() {
    let place = Place::new();
    let tree = place.tree();
    fs::write(tree.join(OsStr::from_bytes(b"latin-\xe9.txt")), KEY).unwrap();
    place.file("new\nline.txt", KEY);
    place.file("esc\x1b[31m.txt", KEY);
    place.file("back\\slash.txt", KEY);
    let ran = place.scan(&[]).exits(1);
    let report = ran.json();
    let found = report["findings"].as_array().unwrap();
    assert_eq!(found.len(), 4);
    let path = |index: usize| found[index]["path"].as_str().unwrap();
    assert_eq!(path(0), "tree/back\\slash.txt");
    assert_eq!(path(1), "tree/esc\u{1b}[31m.txt");
    assert_eq!(found[2]["path_hex"], "747265652f6c6174696e2de92e747874");
    assert_eq!(path(3), "tree/new\nline.txt");
    assert!(!contains(&ran.out, "\u{1b}"), "nothing that acts on a terminal");
    // The same through every format, on lines of their own.
    let table = place.scan(&["--format", "table", "--quiet"]).exits(1).text();
    assert!(table.contains("latin-\\xe9.txt") && table.contains("new\\x0aline.txt"), "{table}");
    assert!(!table.contains('\u{1b}'), "{table}");
    assert_eq!(place.scan(&["--format", "jsonl"]).exits(1).text().lines().count(), 4);
    // And by name.
    let mut command = place.command(["scan", "--state", "state"]);
    command.arg(OsStr::from_bytes(b"tree/latin-\xe9.txt"));
    assert_eq!(run(&mut command).exits(1).found().len(), 1);
}

/// A path longer than the kernel takes in one call, and deeper than any recursion should go.
#[test]
fn paths_may_be_longer_than_the_kernel_takes() {
    const LEVELS: usize = 400;
    let place = Place::new();
    let name = "n".repeat(40);
    let mut folder = openat(CWD, place.tree(), OFlags::DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..LEVELS {
        mkdirat(&folder, name.as_str(), Mode::from_raw_mode(0o755)).unwrap();
        folder = openat(&folder, name.as_str(), OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
    let file =
        openat(&folder, "key.txt", OFlags::CREATE | OFlags::WRONLY, Mode::from_raw_mode(0o644)).unwrap();
    fs::File::from(file).write_all(KEY.as_bytes()).unwrap();
    let ran = place.scan(&["--show-values"]).exits(1);
    let path = format!("tree/{}key.txt", format!("{name}/").repeat(LEVELS));
    assert!(path.len() > 16_000);
    assert_eq!(ran.paths(), [path]);
    assert_eq!(ran.json()["findings"][0]["value"], KEY);
    assert_eq!(ran.json()["summary"]["objects"]["containers"], LEVELS + 1);
}

#[test]
fn several_targets_are_one_scan() {
    let place = Place::new();
    place.file("a/one.txt", KEY);
    place.file("b/two.txt", KEY);
    place.file("c.txt", KEY);
    let args = ["scan", "tree/b", "tree/a", "tree/c.txt", "./tree/a/", "--state", "state"];
    let ran = place.run(&args).exits(1);
    let mut paths = ran.paths();
    paths.sort();
    assert_eq!(paths, ["tree/a/one.txt", "tree/b/two.txt", "tree/c.txt"]);
}
