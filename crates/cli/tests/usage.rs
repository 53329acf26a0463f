//! The command line: formats, outputs, folders, rules, and what it says when used wrongly.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use common::{KEY, KEY_RULE, Place, Ran, run};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

const RULE: &str = r#"
[[rule]]
id = "acme-token"
description = "ACME token"
category = "secret"
regex = '''\b(?P<value>acme_[a-z0-9]{12})\b'''
score = 90
positive = ["token acme_k3j5h2g9f8d7", "x=acme_q8w7e6r5t4z3"]
negative = ["acme_short", "acmek3j5h2g9f8d7"]
"#;

/// Runs a command on a terminal of its own: what it showed there.
fn on_terminal(mut command: Command) -> (Option<i32>, String) {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let terminal = File::options().read(true).write(true).open(Path::new(name.to_str().unwrap())).unwrap();
    command.env("TERM", "xterm");
    let mut child = command.stdout(terminal.try_clone().unwrap()).stderr(terminal).spawn().unwrap();
    // The command's own copy of the terminal must go, or the reading below never ends.
    drop(command);
    let mut shown = Vec::new();
    // Reading ends with an error once nobody has the terminal open.
    let _ = File::from(controller).read_to_end(&mut shown);
    (child.wait().unwrap().code(), String::from_utf8_lossy(&shown).into_owned())
}

#[test]
fn progress_and_tables_are_for_terminals() {
    let place = Place::new();
    for index in 0..300 {
        place.file(format!("{index}.txt"), format!("{}{KEY}", "text\n".repeat(5_000)));
    }
    let (code, shown) = on_terminal(place.scan_command(&[]));
    assert_eq!(code, Some(1));
    assert!(shown.contains("findings  300 in 300 objects"), "{shown}");
    assert!(shown.contains('\r') && shown.contains("\u{1b}[2K"), "progress is drawn and cleared: {shown:?}");
    let (_, quiet) = on_terminal(place.scan_command(&["--quiet", "--format", "jsonl"]));
    assert_eq!(quiet.lines().count(), 300);
    assert!(!quiet.contains('\u{1b}'), "{quiet}");
    // Elsewhere: JSON, the summary on standard error, and no trace of progress.
    let piped = place.scan(&[]).exits(1);
    assert_eq!(piped.found().len(), 300);
    assert!(piped.err.starts_with("findings  300") && !piped.err.contains('\r'), "{}", piped.err);
    assert_eq!(place.scan(&["--quiet"]).exits(1).err, "");
}

#[test]
fn every_format_says_the_same() {
    let place = Place::new();
    place.file("a,b.txt", format!("x {KEY}\n"));
    let formatted = |format: &str| place.scan(&["--quiet", "--format", format]).exits(1);
    assert_eq!(formatted("json").found(), [format!("tree/a,b.txt:1:3 {KEY_RULE}")]);
    let line: serde_json::Value = serde_json::from_slice(&formatted("jsonl").out).unwrap();
    assert_eq!(line["rule"], KEY_RULE);
    let csv = formatted("csv").text();
    assert!(csv.lines().next().unwrap().starts_with("path,") && csv.contains("\"tree/a,b.txt\""), "{csv}");
    let sarif = formatted("sarif").json();
    assert_eq!(sarif["version"], "2.1.0");
    let region = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"];
    assert_eq!((&region["startLine"], &region["startColumn"]), (&1.into(), &3.into()));
    assert!(formatted("table").text().contains("a,b.txt"));
    place.scan(&["--format", "xml"]).fails_saying(&["xml", "sarif"]);
}

#[test]
fn reports_to_files_are_whole_or_not_there() {
    let place = Place::new();
    place.file("a.txt", KEY);
    let ran = place.scan(&["--output", "report.json"]).exits(1);
    assert!(ran.out.is_empty());
    let report: serde_json::Value =
        serde_json::from_slice(&fs::read(place.path("report.json")).unwrap()).unwrap();
    assert_eq!(report["findings"].as_array().unwrap().len(), 1);
    // Over an old one, and without leftovers.
    fs::write(place.path("report.json"), "old").unwrap();
    place.scan(&["--format", "csv", "-o", "report.json"]).exits(1);
    assert!(fs::read_to_string(place.path("report.json")).unwrap().starts_with("path,"));
    let mut names: Vec<_> =
        fs::read_dir(place.path(".")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["report.json", "state", "tree"]);
    place.scan(&["-o", "/dev/null"]).exits(1);
    // A report that cannot be finished leaves nothing behind either.
    place.scan(&["-o", "/dev/full"]).fails_saying(&["No space left"]);
    // A pipe gets the report, and nothing before it.
    mknodat(CWD, place.path("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let scan = place.scan_command(&["--format", "jsonl", "-o", "fifo"]).stderr(Stdio::null()).spawn();
    let piped = fs::read_to_string(place.path("fifo")).unwrap();
    assert!(piped.contains(KEY_RULE), "{piped}");
    assert_eq!(scan.unwrap().wait().unwrap().code(), Some(1));
    // Known before the work, and not after it.
    let place = Place::new();
    place
        .scan(&["-o", "missing/report.json"])
        .fails_saying(&["cannot write the report to missing/report.json"]);
    place.scan(&["-o", "tree"]).fails_saying(&["cannot write the report to tree"]);
    assert!(!place.state().exists());
}

#[test]
fn state_is_private_and_where_the_user_keeps_state() {
    let place = Place::new();
    place.file("a.txt", KEY);
    let mut command = place.command(["scan", "tree"]);
    command.env("XDG_STATE_HOME", place.path("xdg"));
    run(&mut command).exits(1);
    run(&mut place.command(["scan", "tree"])).exits(1);
    for folder in ["xdg/domesday", "home/.local/state/domesday"] {
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&place.path(folder)), 0o700);
        for entry in fs::read_dir(place.path(folder)).unwrap() {
            assert_eq!(mode(&entry.unwrap().path()), 0o600);
        }
    }
}

#[test]
fn exit_codes_tell_how_it_ended() {
    let place = Place::new();
    place.scan(&[]).exits(0);
    place.file("a.txt", KEY);
    place.scan(&[]).exits(1);
    place.scan(&["--level", "high"]).exits(0);
    place.file("b.gz", &common::archive::gzip(&[b'x'; 100])[..20]);
    place.scan(&[]).exits(3);
    let summary = place.scan(&["--format", "table"]).exits(3).text();
    for words in ["findings  1 in 1 object", "objects   2 of 2 done", "damaged or truncated archive", "b.gz"]
    {
        assert!(summary.contains(words), "{summary}");
    }
}

#[test]
fn wrong_usage_says_what_to_do() {
    let place = Place::new();
    place.file("a.txt", KEY);
    let scan = |args: &[&str]| place.scan(args);
    run(&mut place.command(["scan"])).fails_saying(&["<TARGET>"]);
    run(&mut place.command(["scan", "missing", "--state", "state"]))
        .fails_saying(&["cannot scan missing", "No such file"]);
    scan(&["--max-file-size", "12Q"]).fails_saying(&["`12Q` is not a size", "K, M, G or T"]);
    scan(&["--jobs", "0"]).fails_saying(&["--jobs"]);
    scan(&["--exclude", "{a"]).fails_saying(&["`exclude`", "{a"]);
    scan(&["--rules", "missing.toml"]).fails_saying(&["cannot read rules from missing.toml"]);
    let state = |state: &str| run(&mut place.command(["scan", "tree", "--state", state]));
    state("tree/a.txt").fails_saying(&["state folder", "use another --state"]);
    state("/proc/nowhere").fails_saying(&["state folder", "use another --state"]);
    for command in ["findings", "jobs", "problems"] {
        run(&mut place.command([command, "--state", "nowhere"])).fails_saying(&["no book in", "run a scan"]);
    }
    // A book that is none, and one cut off.
    fs::create_dir(place.path("odd")).unwrap();
    fs::write(place.path("odd/book.sqlite"), "this is no book at all, but it is long enough".repeat(100))
        .unwrap();
    state("odd").fails_saying(&["damaged"]);
}

#[test]
fn a_state_folder_that_cannot_be_written_is_told() {
    let place = Place::new();
    place.file("a.txt", KEY);
    let set_mode = |mode| fs::set_permissions(place.state(), PermissionsExt::from_mode(mode)).unwrap();
    for mode in [0o500, 0o000] {
        // Made by whoever scans, so that the mode alone is in the way.
        place.scan_unprivileged(&[]).exits(1);
        set_mode(mode);
        place.scan_unprivileged(&[]).fails_saying(&["state folder cannot be written", "--state"]);
        set_mode(0o700);
    }
}

#[test]
fn users_rules_are_used_and_checked() {
    let place = Place::new();
    fs::create_dir(place.path("rules")).unwrap();
    fs::write(place.path("rules/acme.toml"), RULE).unwrap();
    place.file("a.txt", "the token is acme_k3j5h2g9f8d7 indeed");
    place.scan(&[]).exits(0);
    for rules in ["rules", "rules/acme.toml"] {
        assert_eq!(place.scan(&["--rules", rules]).exits(1).found(), ["tree/a.txt:1:14 acme-token"]);
    }
    assert_eq!(place.run(&["rules", "check", "rules"]).exits(0).text(), "1 rules are in order\n");
    let listed = place.run(&["rules", "list", "--rules", "rules"]).exits(0).json();
    assert!(listed.as_array().unwrap().iter().any(|rule| rule["id"] == "acme-token"));
    let shown = place.run(&["rules", "show", "acme-token", "--rules", "rules"]).exits(0).text();
    assert!(shown.contains("ACME token") && shown.contains("acme_q8w7e6r5t4z3"), "{shown}");
    assert!(place.run(&["rules", "show", KEY_RULE]).exits(0).text().contains("AWS access key id"));
    place.run(&["rules", "show", "nonsense"]).fails_saying(&["there is no rule `nonsense`", "rules list"]);
    // Another rule set is another scan.
    let past = place.run(&["jobs", "--state", "state"]).exits(0).json();
    assert_eq!(past.as_array().unwrap().len(), 3);
}

#[test]
fn wrong_rules_are_told_by_file_line_and_reason() {
    let place = Place::new();
    let check = |text: &str| -> Ran {
        fs::write(place.path("bad.toml"), text).unwrap();
        let scanned = place.scan(&["--rules", "bad.toml"]);
        let checked = place.run(&["rules", "check", "bad.toml"]);
        // An example that fails is found by checking only.
        if scanned.code == Some(2) {
            assert_eq!(scanned.err, checked.err);
        }
        checked
    };
    check("[[rule]\n").fails_saying(&["bad.toml:1:", "TOML"]);
    check(&RULE.replace("{12})", "{12}")).fails_saying(&[
        "bad.toml:6:",
        "acme-token",
        "regex does not parse",
    ]);
    check(&RULE.replace("acme_[a-z", "[a-z")).fails_saying(&["bad.toml:", "acme-token"]);
    check(&RULE.replace("score = 90", "score = 90\ncolour = 1")).fails_saying(&["bad.toml:8:", "colour"]);
    check(&RULE.replace("x=acme_q8w7e6r5t4z3", "x=nothing")).fails_saying(&["acme-token", "x=nothing"]);
    check(&[RULE, RULE].concat()).fails_saying(&["bad.toml:", "acme-token"]);
}

#[test]
fn messages_that_quote_what_was_scanned_leave_the_terminal_alone() {
    let place = Place::new();
    place.file("a.txt", KEY);
    // The name of a field that is not known is quoted in the error, and here it clears the screen.
    place.file(".domesday.toml", "\"\\u001b[2J\\u001b]0;title\\u0007\\ndomesday: all is well\" = 1\n");
    let ran = place.scan(&[]).exits(2);
    assert!(ran.err.contains(r"\x1b[2J"), "{}", ran.err);
    assert!(!ran.err.chars().any(|c| c.is_control() && c != '\n'), "{:?}", ran.err);
    let claims: Vec<&str> = ran.err.lines().filter(|line| line.starts_with("domesday: ")).collect();
    assert_eq!(claims.len(), 1, "{}", ran.err);
}

#[test]
fn a_report_with_values_is_for_its_owner_alone() {
    let place = Place::new();
    place.file("a.txt", KEY);
    let report = place.path("report.json");
    let mode = || fs::metadata(&report).unwrap().permissions().mode() & 0o777;
    place.scan(&["--show-values", "--output", "report.json"]).exits(1);
    assert_eq!(mode(), 0o600);
    fs::set_permissions(&report, PermissionsExt::from_mode(0o644)).unwrap();
    place.scan(&["--show-values", "--output", "report.json"]).exits(1);
    assert_eq!(mode(), 0o600, "also in place of one that others could read");
    assert!(fs::read_to_string(&report).unwrap().contains(KEY));
}

#[test]
fn output_that_nobody_reads_is_no_clean_end() {
    let place = Place::new();
    for index in 0..300 {
        place.file(format!("{index}.txt"), format!("{KEY}\n").repeat(50));
    }
    let mut command = place.scan_command(&["--format", "jsonl"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ran: Ran = child.wait_with_output().unwrap().into();
    assert_eq!((ran.code, ran.err.as_str()), (Some(3), ""));
}

#[test]
fn help_is_as_written_down() {
    let place = Place::new();
    const COMMANDS: &str = "
        scan, findings, jobs, problems, orchestrator, worker, status, prune,
        catalog, rules, rules list, rules show, rules test, rules check, baseline, baseline create,
        datasource, datasource add, datasource list, datasource show, datasource edit, datasource test,
        datasource kinds, datasource remove,
        template, template add, template list, template show, template edit, template remove,
        job, job start, job list, job show, job watch, job pause, job resume, job retry,
        job cancel,
        task, task list, task show, task retry,
        session, session list, session show, target, target list, target show,
        db, db migrate, db status, db key, db grant, db grants, db revoke";
    let named = COMMANDS.split(',').map(|words| words.split_whitespace().collect::<Vec<_>>());
    for command in std::iter::once(Vec::new()).chain(named) {
        let mut args = command.to_vec();
        args.push("--help");
        let shown = place.run(&args).exits(0).text();
        let name = format!("help{}.txt", command.iter().map(|word| format!("-{word}")).collect::<String>());
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name);
        // `UPDATE_SNAPSHOTS=1 cargo test` writes them anew, for review.
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            fs::write(&path, &shown).unwrap();
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(shown, expected, "{} differs", path.display());
    }
}

#[test]
fn a_target_may_be_reached_through_a_link() {
    let place = Place::new();
    place.file("a.txt", KEY);
    symlink("tree", place.path("link")).unwrap();
    assert_eq!(place.run(&["scan", "link", "--state", "state"]).exits(1).paths(), ["link/a.txt"]);
}
