//! The commands of docs/ci, run as they are written there, on a change that does all it can to hide its own findings.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use std::path::Path;
use std::process::Command;

use common::{KEY, KEY_2, Place, Ran, run};

const GITHUB: &str = include_str!("../../../docs/ci/github-actions.yml");
const GITLAB: &str = include_str!("../../../docs/ci/gitlab-ci.yml");

/// The script of a job: the lines of the block that begins with `head`, as deep as they are.
fn script(file: &str, head: &str) -> String {
    let mut lines = file.lines().skip_while(|line| line.trim() != head);
    let depth = |line: &str| line.len() - line.trim_start().len();
    let outer = depth(lines.next().unwrap());
    let block = lines.take_while(|line| line.is_empty() || depth(line) > outer);
    let script: String = block.flat_map(|line| [line.trim(), "\n"]).collect();
    assert!(script.contains("domesday scan"), "{script}");
    script
}

/// A repository `tree` with a history of its own.
struct Origin(Place);

impl Origin {
    fn new() -> Origin {
        let origin = Origin(Place::new());
        origin.git("tree", &["init", "-q", "-b", "main"]);
        origin
    }

    fn git(&self, folder: &str, args: &[&str]) -> String {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@host.test", "-c", "protocol.file.allow=always"]);
        git.args(args).current_dir(self.0.path(folder));
        git.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.0.path("home"));
        let ran: Ran = git.output().unwrap().into();
        ran.exits(0).text().trim().to_owned()
    }

    /// Commits the tree as it is; the commit.
    fn commit(&self) -> String {
        self.git("tree", &["add", "-A", "-f"]);
        self.git("tree", &["commit", "-q", "-m", "a change"]);
        self.git("tree", &["rev-parse", "HEAD"])
    }

    /// A commit on a branch of its own that adds keys, and whatever may hide them.
    fn hostile(&self) -> String {
        self.git("tree", &["checkout", "-q", "-b", "hostile"]);
        let place = &self.0;
        place.file("leak.txt", format!("{KEY}\n"));
        place.file("marked.txt", format!("{KEY} domesday:ignore\n{KEY} # gitleaks:allow\n"));
        place.file("deep/leak.txt", format!("{KEY}\n"));
        // What the base allows stays allowed.
        place.file("known.txt", format!("{KEY_2}\n"));
        place.file(".domesdayignore", "*\n");
        place.file("deep/.domesdayignore", "*\n");
        place.file("deep/.domesday.toml", "exclude = ['*']\n");
        place.file("quiet.toml", "[select]\nonly = ['category:health']\n[[allow]]\npaths = ['.']\n");
        place.file(".domesday.toml", "exclude = ['*']\nrules = ['quiet.toml']\nlevel = 'high'\n");
        place.file(".domesday-baseline.jsonl", "");
        self.commit()
    }

    /// Runs a script in a clone that has this commit checked out, as a service would.
    fn run(&self, script: &str, head: &str, variables: &[(&str, &str)]) -> (Ran, Vec<String>) {
        let place = &self.0;
        self.git(".", &["clone", "-q", "tree", "clone"]);
        self.git("clone", &["checkout", "-q", head]);
        let tools = place.path("tools");
        std::fs::create_dir_all(&tools).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_domesday"), tools.join("domesday")).unwrap();
        let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-e", "-c", script]).current_dir(place.path("clone")).env_clear();
        shell.env("PATH", path).env("HOME", place.path("home")).envs(variables.iter().copied());
        let ran = run(&mut shell);
        let found = found(&place.path("clone/domesday.sarif"));
        (ran, found)
    }
}

/// The files with results.
fn found(report: &Path) -> Vec<String> {
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    let results = report["runs"][0]["results"].as_array().unwrap();
    let place = |result: &serde_json::Value| {
        let place = &result["locations"][0]["physicalLocation"];
        let (uri, line) = (&place["artifactLocation"]["uri"], &place["region"]["startLine"]);
        let name = uri.as_str().unwrap().rsplit("clone/").next().unwrap();
        format!("{name}:{line}")
    };
    let mut found: Vec<_> = results.iter().map(place).collect();
    found.sort();
    found
}

/// One of equal files is one blob in a history.
fn is_everything(found: &[String]) -> bool {
    found == ["deep/leak.txt:1", "marked.txt:1", "marked.txt:2"]
        || found == ["leak.txt:1", "marked.txt:1", "marked.txt:2"]
}

#[test]
fn a_pull_request_cannot_hide_its_own_findings() {
    let origin = Origin::new();
    origin.0.file(".domesday.toml", format!("[[allow]]\nvalues = ['{KEY_2}']\n"));
    let base = origin.commit();
    let head = origin.hostile();
    let (ran, found) = origin.run(&script(GITHUB, "run: |"), &head, &[("BASE", &base), ("HEAD", &head)]);
    assert!(is_everything(&found), "{found:?}\n{}", ran.err);
    ran.exits(1);
}

#[test]
fn a_base_without_configuration_leaves_the_change_without_one() {
    let origin = Origin::new();
    origin.0.file("README.md", "nothing\n");
    let base = origin.commit();
    let head = origin.hostile();
    let (ran, found) = origin.run(&script(GITHUB, "run: |"), &head, &[("BASE", &base), ("HEAD", &head)]);
    assert_eq!(found.len(), 4, "{found:?}\n{}", ran.err);
    ran.exits(1);
}

/// Who makes a change chooses where it forks off: an older configuration does not count.
#[test]
fn a_merge_request_is_scanned_with_the_configuration_of_the_target_as_it_is() {
    let origin = Origin::new();
    origin.0.file(".domesday.toml", "[[allow]]\npaths = ['.']\n");
    let old = origin.commit();
    let head = origin.hostile();
    origin.git("tree", &["checkout", "-q", "main"]);
    origin.0.file(".domesday.toml", format!("[[allow]]\nvalues = ['{KEY_2}']\n"));
    origin.commit();
    let variables = [
        ("CI_MERGE_REQUEST_DIFF_BASE_SHA", old.as_str()),
        ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main"),
        ("CI_COMMIT_SHA", &head),
    ];
    let (ran, found) = origin.run(&script(GITLAB, "- |"), &head, &variables);
    assert!(is_everything(&found), "{found:?}\n{}", ran.err);
    ran.exits(1);
}
