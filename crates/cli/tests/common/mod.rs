//! What the tests of the binary share: a place of their own, the binary, and its answers.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub mod archive;
pub mod book;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A fake access key id, in two parts so that this file has none.
pub const KEY: &str = concat!("AKIA", "Q3EGRT7XWZLPB5NM");
/// Another one.
pub const KEY_2: &str = concat!("AKIA", "W7PLNC4ZRQDT6MXE");
/// The rule that finds them.
pub const KEY_RULE: &str = "aws-access-key-id";

/// Who a test runs as when it must not be root.
const NOBODY: u32 = 65_534;

/// A tree to scan, beside a state folder.
pub struct Place {
    folder: TempDir,
}

impl Place {
    pub fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        fs::create_dir(folder.path().join("tree")).unwrap();
        Place { folder }
    }

    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn tree(&self) -> PathBuf {
        self.path("tree")
    }

    pub fn state(&self) -> PathBuf {
        self.path("state")
    }

    /// A file of the tree, with its folders.
    pub fn file(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.tree().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// The binary with these arguments, in this place.
    pub fn command<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_domesday"));
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env_clear().env("HOME", self.path("home")).env("NO_COLOR", "1");
        command
    }

    /// Scans the tree with these further arguments.
    pub fn scan_command(&self, args: &[&str]) -> Command {
        let mut command = self.command(["scan", "tree", "--state", "state"]);
        command.args(args);
        command
    }

    pub fn scan(&self, args: &[&str]) -> Ran {
        run(&mut self.scan_command(args))
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        run(&mut self.command(args))
    }

    /// Scans as somebody who is not root, whoever runs the test.
    pub fn scan_unprivileged(&self, args: &[&str]) -> Ran {
        if !rustix::process::geteuid().is_root() {
            return self.scan(args);
        }
        // A state folder and a binary that this somebody can get at.
        if !self.state().exists() {
            fs::create_dir(self.state()).unwrap();
            chown(self.state(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let binary = self.path("domesday");
        if !binary.exists() {
            // By a process of its own: what this one has open to write, a child that another test begins has too, and
            // then the binary cannot be run.
            let copied =
                Command::new("cp").arg(env!("CARGO_BIN_EXE_domesday")).arg(&binary).status().unwrap();
            assert!(copied.success());
        }
        let mut command = Command::new(binary);
        command.args(self.scan_command(args).get_args()).current_dir(self.folder.path()).stdin(Stdio::null());
        run(command.env_clear().uid(NOBODY).gid(NOBODY))
    }
}

/// How a process ended, and what it said.
pub struct Ran {
    pub code: Option<i32>,
    pub out: Vec<u8>,
    pub err: String,
}

pub fn run(command: &mut Command) -> Ran {
    command.output().unwrap().into()
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        Ran { code: output.status.code(), out: output.stdout, err }
    }
}

impl Ran {
    #[track_caller]
    pub fn exits(self, code: i32) -> Ran {
        assert_eq!(self.code, Some(code), "{}\n{}", self.text(), self.err);
        self
    }

    /// Wrong usage or a fatal error that says all of these.
    #[track_caller]
    pub fn fails_saying(&self, words: &[&str]) {
        assert_eq!(self.code, Some(2), "{}", self.err);
        for word in words {
            assert!(self.err.contains(word), "`{word}` is not in: {}", self.err);
        }
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.out)
            .unwrap_or_else(|error| panic!("{error}: {}\n{}", self.text(), self.err))
    }

    /// The report's findings as `path:line:column rule`.
    #[track_caller]
    pub fn found(&self) -> Vec<String> {
        let report = self.json();
        report["findings"].as_array().unwrap().iter().map(shown).collect()
    }

    /// The paths of the report's findings.
    #[track_caller]
    pub fn paths(&self) -> Vec<String> {
        let report = self.json();
        report["findings"].as_array().unwrap().iter().map(|found| text(&found["path"])).collect()
    }

    /// The count of a reason under `skipped`, `partial` or `failed` of the summary.
    #[track_caller]
    pub fn counted(&self, what: &str, reason: &str) -> u64 {
        let report = self.json();
        let counts = report["summary"][what].as_array().unwrap();
        let entry = counts.iter().find(|entry| entry["reason"] == reason);
        entry.map_or(0, |entry| entry["count"].as_u64().unwrap())
    }

    /// The report's named problems as `path reason`.
    #[track_caller]
    pub fn problems(&self) -> Vec<String> {
        let report = self.json();
        let problems = report["summary"]["problems"].as_array().unwrap();
        problems
            .iter()
            .map(|problem| format!("{} {}", text(&problem["path"]), text(&problem["reason"])))
            .collect()
    }
}

fn shown(found: &Value) -> String {
    format!("{}:{}:{} {}", text(&found["path"]), found["line"], found["column"], text(&found["rule"]))
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Every byte of every file in a folder and those in it, one after the other.
pub fn bytes_in(folder: &Path) -> Vec<u8> {
    let bytes_of = |path: PathBuf| if path.is_dir() { bytes_in(&path) } else { fs::read(path).unwrap() };
    fs::read_dir(folder).unwrap().flat_map(|entry| bytes_of(entry.unwrap().path())).collect()
}

pub fn contains(haystack: &[u8], needle: &str) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle.as_bytes())
}
