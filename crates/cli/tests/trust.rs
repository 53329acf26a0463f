//! What is scanned says what is reported of it only where it is trusted, and a configuration from it can do no harm.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use std::process::{Command, Stdio};

use common::{KEY, KEY_2, KEY_RULE, Place, run};
use domesday_testkit::feed;
use rustix::fs::{CWD, FileType, Mode, mknodat};

/// A tree whose content hides everything in it, each file in another way.
fn silenced() -> Place {
    let place = Place::new();
    place.file("mark.txt", format!("{KEY} domesday:ignore\n{KEY_2} gitleaks:allow\n"));
    place.file("left-out.txt", KEY);
    place.file(".domesdayignore", "left-out.txt\n");
    place.file("allowed.txt", KEY);
    place.file(".domesday.toml", "[[allow]]\npaths = ['^allowed']\n");
    place
}

fn everything() -> Vec<String> {
    ["allowed.txt:1:1", "left-out.txt:1:1", "mark.txt:1:1", "mark.txt:2:1"]
        .map(|place| format!("tree/{place} {KEY_RULE}"))
        .to_vec()
}

#[test]
fn content_is_heard_in_a_local_folder_and_not_where_it_is_untrusted() {
    let place = silenced();
    for trusted in [&[][..], &["--trust-content", "auto"], &["--trust-content", "yes"]] {
        assert_eq!(place.scan(trusted).exits(0).found(), Vec::<String>::new(), "{trusted:?}");
    }
    for untrusted in [&["--untrusted"][..], &["--trust-content", "no"], &["--set", "trust_content=no"]] {
        let ran = place.scan(untrusted).exits(1);
        assert_eq!(ran.found(), everything(), "{untrusted:?}");
        assert!(!ran.err.contains("using tree/.domesday.toml"), "{}", ran.err);
    }
    // What was scanned without trust says nothing of what is to be heard.
    place.scan(&[]).exits(0);
    // The values of what is reported are shown under the same rules.
    let report = place.scan(&["--untrusted", "--show-values", "--rescan"]).json();
    let values = report["findings"].as_array().unwrap().iter().map(|found| found["value"].as_str());
    assert!(values.eq([KEY, KEY, KEY, KEY_2].map(Some)), "{report}");
    let both = place.scan(&["--untrusted", "--trust-content", "yes"]).exits(2);
    assert!(both.err.contains("--trust-content"), "{}", both.err);
    let wrong = place.scan(&["--set", "trust_content=maybe"]).exits(2);
    assert!(wrong.err.contains("`trust_content`: must be `yes`, `no` or `auto`"), "{}", wrong.err);
}

#[test]
fn a_configuration_that_the_user_names_counts_without_trust() {
    let place = silenced();
    std::fs::rename(place.tree().join(".domesday.toml"), place.path("own.toml")).unwrap();
    let ran = place.scan(&["--untrusted", "--config", "own.toml"]).exits(1);
    assert_eq!(ran.found(), everything()[1..]);
}

#[test]
fn standard_input_is_not_trusted_by_itself() {
    let place = Place::new();
    let scan = |args: &[&str]| {
        let mut command = place.command(["scan", "-", "--state", "state"]);
        feed(command.args(args), format!("{KEY} # domesday:ignore\n").as_bytes()).unwrap().status.code()
    };
    assert_eq!(scan(&[]), Some(1));
    assert_eq!(scan(&["--trust-content", "yes"]), Some(0));
}

#[test]
fn a_configuration_of_a_tree_reads_regular_files_below_it() {
    let place = Place::new();
    place.file("a.txt", KEY);
    let rules = "[[allow]]\nvalues = ['x']\n";
    std::fs::write(place.path("outside.toml"), rules).unwrap();
    std::fs::write(place.path("config.toml"), "level = 'high'\n").unwrap();
    std::os::unix::fs::symlink("../outside.toml", place.tree().join("link.toml")).unwrap();
    mknodat(CWD, place.tree().join("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    for (config, problem) in [
        ("rules = ['../outside.toml']", "not below"),
        ("rules = ['/etc/passwd']", "not below"),
        ("rules = ['link.toml']", "symbolic link"),
        ("rules = ['fifo']", "no regular file"),
        ("baseline = 'fifo'", "no regular file"),
        ("baseline = '../outside.toml'", "not below"),
        ("baseline = 'link.toml'", "symbolic link"),
    ] {
        place.file(".domesday.toml", config);
        let ran = place.scan(&[]).exits(2);
        assert!(ran.err.contains(problem), "{config}: {}", ran.err);
        place.scan(&["--untrusted"]).exits(1);
    }
    let config = place.tree().join(".domesday.toml");
    std::fs::remove_file(&config).unwrap();
    std::os::unix::fs::symlink("../config.toml", &config).unwrap();
    assert!(place.scan(&[]).exits(2).err.contains("symbolic link"));
    std::fs::remove_file(&config).unwrap();
    mknodat(CWD, &config, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    assert!(place.scan(&[]).exits(2).err.contains("no regular file"));
    place.scan(&["--no-config"]).exits(1);
}

#[test]
fn rules_that_ask_for_too_much_are_refused_by_name() {
    let place = Place::new();
    let rule = |number| {
        format!(
            "[[rule]]\nid = \"r-{number}\"\ndescription = \"x\"\ncategory = \"secret\"\n\
             regex = 'abcdef(?u:\\pL{{1,60}})'\npositive = [\"a\", \"b\"]\nnegative = [\"a\", \"b\"]\n"
        )
    };
    let rules: String = (0..700).map(rule).collect();
    assert!(rules.len() > 80_000, "as many as in the report of the problem");
    place.file(".domesday.toml", rules);
    // Without a budget they took 1.9 GB.
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -v 1500000; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_domesday")]);
    limited.args(place.scan_command(&[]).get_args()).current_dir(place.path("."));
    limited.env_clear().env("HOME", place.path("home")).stdin(Stdio::null());
    let ran = run(&mut limited).exits(2);
    assert!(ran.err.contains("rule `r-") && ran.err.contains("too large together"), "{}", ran.err);
}

#[test]
fn triggers_that_ask_for_too_much_are_refused() {
    let place = Place::new();
    let rule = |trigger: &str, more: usize| {
        let others: String = (0..more).map(|number| format!(", 'k{number:07}'")).collect();
        format!(
            "[[rule]]\nid = \"r-1\"\ndescription = \"x\"\ncategory = \"secret\"\nregex = 'abcdef[0-9]'\n\
             triggers = ['{trigger}'{others}]\npositive = [\"a\", \"b\"]\nnegative = [\"a\", \"b\"]\n"
        )
    };
    place.file(".domesday.toml", rule(&"t".repeat(1 << 20), 0));
    let ran = place.scan(&[]).exits(2);
    assert!(ran.err.contains("rule `r-1`") && ran.err.contains("64 are enough"), "{}", ran.err);
    place.file(".domesday.toml", rule("abcdef", 40_000));
    let ran = place.scan(&[]).exits(2);
    assert!(ran.err.contains("rule `r-1`") && ran.err.contains("too large together"), "{}", ran.err);
}

/// Needs root, who alone may give a file to somebody else.
#[test]
fn what_another_user_put_above_the_folder_is_not_used() {
    const SOMEBODY: u32 = 4_321;
    let give = |path: std::path::PathBuf| std::os::unix::fs::chown(path, Some(SOMEBODY), None);
    let place = Place::new();
    place.file("work/a.txt", KEY);
    place.file(".git/HEAD", "ref: refs/heads/main\n");
    place.file(".domesday.toml", "exclude = ['*']\n");
    let scan = || {
        let mut command = place.command(["scan", "tree/work", "--state", "state", "--fresh"]);
        run(command.stdin(Stdio::null()))
    };
    let ran = scan().exits(0);
    assert!(ran.err.contains("using tree/.domesday.toml"), "{}", ran.err);
    if !rustix::process::geteuid().is_root() {
        return;
    }
    give(place.tree().join(".domesday.toml")).unwrap();
    let ran = scan().exits(1);
    assert!(ran.err.contains("tree/.domesday.toml is not used"), "{}", ran.err);
    std::fs::remove_file(place.tree().join(".domesday.toml")).unwrap();
    place.file(".domesday.toml", "exclude = ['*']\n");
    scan().exits(0);
    give(place.tree().join(".git")).unwrap();
    scan().exits(1);
}

#[test]
fn a_report_says_which_configuration_was_used() {
    let place = Place::new();
    place.file("a.txt", KEY);
    let text = "exclude = ['*.lock']\n";
    place.file(".domesday.toml", text);
    let used = serde_json::json!({
        "path": "tree/.domesday.toml",
        "hash": blake3::hash(text.as_bytes()).to_hex().to_string(),
    });
    let ran = place.scan(&["--format", "json"]).exits(1);
    assert_eq!(ran.json()["summary"]["configuration"], used);
    assert!(ran.err.contains("config    tree/.domesday.toml, BLAKE3 "), "{}", ran.err);
    let sarif = place.scan(&["--format", "sarif"]).exits(1).json();
    assert_eq!(sarif["runs"][0]["invocations"][0]["properties"]["configuration"], used);
    let without = place.scan(&["--untrusted"]).exits(1).json();
    assert!(without["summary"].get("configuration").is_none(), "{without}");
}

fn git(place: &Place, folder: &str, arguments: &[&str]) {
    let mut git = Command::new("git");
    let done = git.arg("-C").arg(place.tree().join(folder)).args(arguments).status().unwrap();
    assert!(done.success(), "git {arguments:?}");
}

#[test]
fn content_leads_out_of_the_folder_only_where_it_is_trusted() {
    let place = Place::new();
    place.file("outside/key.txt", KEY);
    git(&place, "outside", &["init", "-q"]);
    git(&place, "outside", &["add", "."]);
    git(&place, "outside", &["-c", "user.name=A", "-c", "user.email=a@b.example", "commit", "-qm", "a key"]);
    let scan = |options: &[&str]| {
        let target = [&["scan", "tree/inside", "--state", "state", "--format", "json"], options].concat();
        place.run(&target)
    };
    // The folder of somebody else's repository.
    place.file("inside/.git", "gitdir: ../outside/.git\n");
    let ran = scan(&[]).exits(1);
    assert!(ran.err.contains("which is read too"), "{}", ran.err);
    let ran = scan(&["--untrusted"]).exits(0);
    assert!(ran.err.contains("only its files are scanned"), "{}", ran.err);
    let ran = scan(&["--kind", "git", "--untrusted"]).exits(2);
    assert!(ran.err.contains("outside of the folder"), "{}", ran.err);
    // Its objects, borrowed: what is not read is named.
    std::fs::remove_file(place.tree().join("inside/.git")).unwrap();
    git(&place, "inside", &["init", "-q"]);
    place.file("inside/.git/objects/info/alternates", "../../../outside/.git/objects\n");
    assert!(scan(&[]).exits(1).err.contains("outside/.git/objects, which is read too"));
    let ran = scan(&["--untrusted"]).exits(3);
    assert!(ran.err.contains("alternates"), "{}", ran.err);
}
