//! What users say about what is found: configuration files, allow lists, selections of rules, baselines.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use common::book::Book;
use common::{KEY, KEY_2, KEY_RULE, Place, Ran, contains, run, text};
use domesday_testkit::feed;
use serde_json::json;

const BASELINE: &str = "tree/.domesday-baseline.jsonl";
/// A card number, found at high.
const CARD: &str = "4539 5787 6362 1486";
const CARD_RULE: &str = "payment-card";
/// Two fingerprint keys.
const SHARED_KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const OTHER_KEY: &str = "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100";

/// Paths and rules of a report, in its order.
#[track_caller]
fn found(ran: &Ran) -> Vec<(String, String)> {
    let report = ran.json();
    let findings = report["findings"].as_array().unwrap().iter();
    findings.map(|found| (text(&found["path"]), text(&found["rule"]))).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(path, rule)| ((*path).to_owned(), (*rule).to_owned())).collect()
}

fn create(place: &Place) -> Ran {
    place.run(&["baseline", "create", "-o", BASELINE, "--state", "state"])
}

fn git(place: &Place, folder: &str, args: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"])
        .args(args)
        .current_dir(place.path(folder))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", place.path("home"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_configuration_is_found_in_the_tree_or_above_it_in_its_repository() {
    let place = Place::new();
    place.file("src/a.txt", KEY);
    place.file("src/b.lock", KEY);
    place.file("src/gen/c.txt", KEY);
    place.file("src/large.txt", format!("{KEY}{}", " ".repeat(3_000)));
    place.file(".domesday.toml", "exclude = [\"*.lock\", \"/src/gen\"]\nmax_file_size = \"2K\"\n");
    let expected = pairs(&[("tree/src/a.txt", KEY_RULE)]);
    let ran = place.scan(&[]).exits(1);
    assert_eq!(found(&ran), expected);
    assert!(ran.err.contains("domesday: using tree/.domesday.toml"), "{}", ran.err);
    assert!(!place.scan(&["--quiet"]).exits(1).err.contains("using"));
    assert_eq!(found(&place.scan(&["--no-config"]).exits(1)).len(), 4);

    // From below it counts within a repository only, and its patterns are its own.
    let below =
        |args: &[&str]| run(place.command(["scan", "tree/src", "--state", "state"]).args(args)).exits(1);
    assert_eq!(found(&below(&[])).len(), 4);
    fs::create_dir(place.tree().join(".git")).unwrap();
    assert_eq!(found(&below(&[])), expected);
    assert_eq!(found(&below(&["--exclude", "!*.lock"])).len(), 2, "flags win, and lists add up");
    assert_eq!(found(&below(&["--max-file-size", "1M"])).len(), 2);
    assert_eq!(found(&below(&["--config", "tree/.domesday.toml"])), expected);

    // Of standard input it is that of the folder one stands in.
    place.file("other/.domesday.toml", format!("[select]\nskip = [\"{KEY_RULE}\"]\n"));
    let mut command = place.command(["scan", "-", "--state", "../../state"]);
    command.current_dir(place.tree().join("other"));
    Ran::from(feed(&mut command, KEY.as_bytes()).unwrap()).exits(0);
    // A scan has one.
    place.run(&["scan", "tree/src", "tree/other", "--state", "state"]).fails_saying(&[
        "different configurations",
        "tree/other/.domesday.toml",
        "--config",
        "--no-config",
    ]);
}

#[test]
fn a_configuration_sets_levels_rules_and_baselines_and_flags_win() {
    let place = Place::new();
    place.file("a.txt", format!("key {KEY}\ncard {CARD}\nx acme_k3j5h2g9f8d7\n"));
    place.file(
        "rules/acme.toml",
        "[[rule]]\nid = 'acme-token'\ndescription = 'ACME'\ncategory = 'secret'\nscore = 90\n\
         regex = '\\b(?P<value>acme_[a-z0-9]{12})\\b'\npositive = ['acme_q8w7e6r5t4z3', 'acme_k3j5h2g9f8d7']\n\
         negative = ['acme_short', 'acme']\n",
    );
    place.file(".domesday.toml", "level = 'high'\nrules = ['rules']\nexclude = ['/rules']\n");
    let rules = |ran: &Ran| found(ran).into_iter().map(|(_, rule)| rule).collect::<Vec<_>>();
    assert_eq!(rules(&place.scan(&[]).exits(1)), [CARD_RULE, "acme-token"]);
    assert_eq!(rules(&place.scan(&["--level", "medium"]).exits(1)), [KEY_RULE, CARD_RULE, "acme-token"]);
    create(&place).exits(0);
    place.file(
        ".domesday.toml",
        "rules = ['rules']\nexclude = ['/rules']\nbaseline = '.domesday-baseline.jsonl'\n",
    );
    let ran = place.scan(&[]).exits(0);
    assert_eq!(ran.json()["summary"]["baseline"], json!({ "hidden": 3, "gone": 0 }));
    fs::write(place.path("other.jsonl"), "x\n").unwrap();
    place.scan(&["--baseline", "other.jsonl"]).fails_saying(&["other.jsonl:1", "not the first line"]);
}

#[test]
fn what_is_wrong_with_a_configuration_is_told_with_its_line() {
    let place = Place::new();
    place.file("a.txt", KEY);
    for (config, words) in [
        ("level = 'low'\nexlude = []\n", &["tree/.domesday.toml:2: unknown field `exlude`", "`exclude`"][..]),
        ("\n[selekt]\n", &["tree/.domesday.toml:2: unknown field `selekt`", "`select`"]),
        ("level = 1\n", &["tree/.domesday.toml:1: level: expected low, medium or high"]),
        ("exclude = ['a']\n\n[[allow]]\nvalue = ['x']\n", &["tree/.domesday.toml:4", "value"]),
        ("exclude = [\n'a']\n[select]\nonly = ['aws-acces-key-id']\n", &["tree/.domesday.toml:4", KEY_RULE]),
        ("rules = ['missing.toml']\n", &["cannot read rules from", "tree/missing.toml"]),
        ("baseline = 'missing.jsonl'\n", &["tree/missing.jsonl", "domesday baseline create -o"]),
    ] {
        place.file(".domesday.toml", config);
        place.scan(&[]).fails_saying(words);
    }
    place.scan(&["--no-config"]).exits(1);
    place.scan(&["--config", "missing.toml"]).fails_saying(&["missing.toml"]);
}

#[test]
fn allow_lists_go_by_value_regex_path_rule_and_fingerprint() {
    let place = Place::new();
    place.file("src/a.txt", format!("key {KEY}\ncard {CARD}\n"));
    place.file("docs/b.txt", format!("key {KEY_2}\n"));
    let all = [("tree/docs/b.txt", KEY_RULE), ("tree/src/a.txt", KEY_RULE), ("tree/src/a.txt", CARD_RULE)];
    let unconfigured = place.scan(&[]).exits(1);
    assert_eq!(found(&unconfigured), pairs(&all));
    let fingerprint = text(&unconfigured.json()["findings"][1]["fingerprint"]);
    let by_fingerprint = format!("fingerprints = ['{fingerprint}']");
    for (allow, left) in [
        (format!("values = ['{KEY}']").as_str(), &[all[0], all[2]][..]),
        ("regexes = ['^AKIAQ']", &[all[0], all[2]]),
        ("regexes = ['^card']\ntarget = 'line'", &all[..2]),
        ("paths = ['^docs/']", &all[1..]),
        ("paths = ['.']\nrules = ['aws-*']", &all[2..]),
        ("paths = ['^src/']\nrules = ['payment-card']", &all[..2]),
        (by_fingerprint.as_str(), &[all[0], all[2]]),
    ] {
        place.file(".domesday.toml", format!("[[allow]]\ndescription = 'known'\n{allow}\n"));
        let ran = place.scan(&[]).exits(1);
        assert_eq!(found(&ran), pairs(left), "{allow}");
    }
    // Nothing is left to say, and the file that says so is not a finding either.
    place.file(".domesday.toml", format!("[[allow]]\nvalues = ['{KEY}', '{KEY_2}', '{CARD}']\n"));
    place.scan(&[]).exits(0);
}

#[test]
fn rules_are_selected() {
    let place = Place::new();
    place.file("a.txt", format!("key {KEY}\ncard {CARD}\n"));
    let rules = |args: &[&str], code: i32| {
        let ran = place.scan(args).exits(code);
        found(&ran).into_iter().map(|(_, rule)| rule).collect::<Vec<_>>()
    };
    assert_eq!(rules(&["--only", "category:payment"], 1), [CARD_RULE]);
    assert_eq!(rules(&["--only", "aws-*"], 1), [KEY_RULE]);
    assert_eq!(rules(&["--only", "aws-*", "--only", CARD_RULE], 1), [KEY_RULE, CARD_RULE]);
    assert_eq!(rules(&["--skip", KEY_RULE, "--skip", "category:payment"], 0), [""; 0]);
    place.scan(&["--only", "aws-acces-key-id"]).fails_saying(&["--only", KEY_RULE]);
    let listed = |args: &[&str]| {
        let ran = run(place.command(["rules", "list", "--json"]).args(args)).exits(0);
        ran.json().as_array().unwrap().iter().map(|rule| text(&rule["category"])).collect::<Vec<_>>()
    };
    let payment = listed(&["--only", "category:payment"]);
    assert!(!payment.is_empty() && payment.iter().all(|category| category == "payment"));
    assert!(!listed(&["--only", "region:fr"]).is_empty());
    assert_eq!(listed(&[]).len(), payment.len() + listed(&["--skip", "category:payment"]).len());
}

#[test]
fn a_template_has_its_selection() {
    let book = Book::embedded();
    book.source("shares", "eu");
    book.run(&[
        "template",
        "add",
        "cards",
        "--datasource",
        "*",
        "--only",
        "category:payment",
        "--skip",
        CARD_RULE,
    ])
    .exits(0);
    let selection = |book: &Book| {
        let template = book.json(&["template", "show", "cards"]);
        template["rules"].as_array().unwrap().iter().map(|rules| text(&rules["text"])).collect::<Vec<_>>()
    };
    let told = selection(&book);
    assert!(
        told.len() == 1 && told[0].contains("category:payment") && told[0].contains(CARD_RULE),
        "{told:?}"
    );
    book.run(&["template", "edit", "cards", "--only", "aws-*"]).exits(0);
    assert!(selection(&book).len() == 1 && selection(&book)[0].contains("aws-*"));
    let wrong = ["template", "edit", "cards", "--only", "no-such-rule"];
    book.run(&wrong).fails_saying(&["template cards: rules: ", "no-such-rule"]);
    book.run(&["template", "edit", "cards", "--no-select"]).exits(0);
    assert_eq!(selection(&book), [""; 0]);
    let document =
        json!({ "name": "secrets", "datasources": ["*"], "select": { "only": ["category:secret"] } });
    book.run_with(&["template", "add", "--file", "-"], &document.to_string()).exits(0);
    let shown = book.run(&["template", "show", "secrets", "--json"]).exits(0).text();
    assert!(shown.contains("category:secret"), "{shown}");
    // What is shown can be given back.
    let again = book.run_with(&["template", "edit", "secrets", "--file", "-"], &shown).exits(0).json();
    assert_eq!(again["changes"], json!([]));
}

#[test]
fn what_a_baseline_knows_is_hidden_and_what_is_new_is_not() {
    let place = Place::new();
    place.file("src/a.txt", format!("key {KEY}\ncard {CARD}\n"));
    place.scan(&[]).exits(1);
    let created = create(&place).exits(0).json();
    assert_eq!((&created["entries"], &created["baseline"]), (&json!(2), &json!(BASELINE)));
    let written = fs::read(place.path(BASELINE)).unwrap();
    assert!(!contains(&written, KEY) && !contains(&written, CARD));
    // It is not a finding itself.
    let ran = place.scan(&["--baseline", BASELINE]).exits(0);
    assert_eq!(ran.json()["summary"]["baseline"], json!({ "hidden": 2, "gone": 0 }));
    assert!(ran.err.contains("baseline  2 known findings hidden"), "{}", ran.err);
    // It is the same for a folder and a file of its tree, and from anywhere in a repository.
    for target in ["tree/src", "tree/src/a.txt"] {
        place.run(&["scan", target, "--state", "state", "--baseline", BASELINE]).exits(0);
    }
    let moved = place.file("ci/known.jsonl", &written);
    let known = ["scan", "tree/src", "--state", "state", "--baseline", "tree/ci/known.jsonl"];
    place.run(&known).exits(1);
    fs::create_dir(place.tree().join(".git")).unwrap();
    place.run(&known).exits(0);
    fs::remove_file(moved).unwrap();

    // A moved line stays known; the same value elsewhere, and another value there, are new.
    place.file("src/a.txt", format!("\n\n# moved\nkey   {KEY}\nkey {KEY_2}\n"));
    place.file("src/b.txt", format!("key {KEY}\n"));
    for format in ["json", "jsonl", "csv", "sarif", "table"] {
        let ran = place.scan(&["--baseline", BASELINE, "--format", format]).exits(1);
        let shown = ran.text();
        let count = |what: &str| shown.matches(what).count();
        assert!(count("a.txt") > 0 && count("b.txt") > 0, "{format}: {shown}");
        assert!(!shown.contains("453*"), "{format}: {shown}");
        if format != "table" {
            assert_eq!(count("\"line\":4") + count("a.txt,4,"), 0, "{format}: {shown}");
        }
    }
    let ran = place.scan(&["--baseline", BASELINE]).exits(1);
    let new = [("tree/src/a.txt", KEY_RULE), ("tree/src/b.txt", KEY_RULE)];
    assert_eq!(found(&ran), pairs(&new));
    let summary = &ran.json()["summary"];
    assert_eq!((&summary["findings"]["total"], &summary["baseline"]["hidden"]), (&json!(2), &json!(1)));
    assert_eq!(summary["baseline"]["gone"], 1);
    assert!(ran.err.contains("1 entry of the baseline is gone"), "{}", ran.err);

    // The book shows the same, and less of it cannot tell what is gone.
    let findings = |args: &[&str]| run(place.command(["findings", "--state", "state"]).args(args));
    let later = findings(&["--baseline", BASELINE]).exits(1).json();
    assert_eq!(later["findings"].as_array().unwrap().len(), 2);
    let filtered = findings(&["--baseline", BASELINE, "--category", "payment"]).exits(0).json();
    assert_eq!(filtered["summary"]["baseline"], json!({ "hidden": 0, "gone": null }));
    // Made anew with what it had, and without.
    let merged = place.run(&["baseline", "create", "-o", BASELINE, "--merge", BASELINE, "--state", "state"]);
    assert_eq!(merged.exits(0).json()["entries"], 4);
    place.scan(&["--baseline", BASELINE]).exits(0);
    assert_eq!(create(&place).exits(0).json()["entries"], 3);
}

#[test]
fn a_history_is_known_by_paths() {
    let place = Place::new();
    git(&place, "tree", &["init", "-q"]);
    place.file("src/a.txt", format!("key {KEY}\n"));
    git(&place, "tree", &["add", "."]);
    git(&place, "tree", &["commit", "-q", "-m", "first"]);
    place.scan(&[]).exits(1);
    assert_eq!(create(&place).exits(0).json()["entries"], 1);
    // Another blob of the same file, and the file itself.
    place.file("src/a.txt", format!("# edited\nkey {KEY}\n"));
    place.scan(&["--baseline", BASELINE]).exits(0);
    git(&place, "tree", &["commit", "-q", "-a", "-m", "second"]);
    let ran = place.scan(&["--baseline", BASELINE]).exits(0);
    assert_eq!(ran.json()["summary"]["baseline"], json!({ "hidden": 2, "gone": 0 }));
    place.scan(&["--worktree", "--baseline", BASELINE]).exits(0);
    place.file("src/b.txt", format!("key {KEY_2}\n"));
    git(&place, "tree", &["add", "src/b.txt"]);
    let staged = place.scan(&["--staged", "--baseline", BASELINE]).exits(1);
    assert_eq!(found(&staged), pairs(&[("tree/src/b.txt", KEY_RULE)]));
    assert_eq!(staged.json()["summary"]["baseline"], json!({ "hidden": 0, "gone": null }));
    // Allow lists see these paths, too.
    place.file(".domesday.toml", "[[allow]]\npaths = ['^src/a']\n");
    assert_eq!(found(&place.scan(&[]).exits(1)), pairs(&[("tree/src/b.txt", KEY_RULE)]));
    assert_eq!(create(&place).exits(0).json()["entries"], 1);
}

#[test]
fn a_staged_file_is_scanned_when_its_object_is_lost() {
    let place = Place::new();
    git(&place, "tree", &["init", "-q"]);
    place.file("key.txt", format!("key {KEY}\n"));
    git(&place, "tree", &["add", "."]);
    let objects = place.tree().join(".git/objects");
    let is_loose = |name: &str| name.len() == 2;
    for entry in fs::read_dir(&objects).unwrap() {
        let entry = entry.unwrap();
        if is_loose(entry.file_name().to_str().unwrap()) {
            fs::remove_dir_all(entry.path()).unwrap();
        }
    }
    let ran = place.scan(&[]).exits(3);
    assert_eq!(found(&ran), pairs(&[("tree/key.txt", KEY_RULE)]));
    assert!(ran.text().contains("is not in the repository"), "{}", ran.text());
    // What only a folder of the repository has.
    place.file(".git/hooks/pre-push", format!("key {KEY_2}\n"));
    place.file("vendor/.git/notes.txt", format!("key {KEY_2}\n"));
    let both = ["tree/.git/hooks/pre-push", "tree/key.txt", "tree/vendor/.git/notes.txt"];
    assert_eq!(place.scan(&[]).exits(3).paths(), both);
}

#[test]
fn a_history_is_source_code_where_its_files_are() {
    let place = Place::new();
    git(&place, "tree", &["init", "-q"]);
    place.file("src/a.c", format!("/* mail to jane.roe@corp-mail.net */\nchar *key = \"{KEY}\";\n"));
    place.file("src/b.c", "/* mail to joe.doe@corp-mail.net */\n");
    git(&place, "tree", &["add", "."]);
    git(&place, "tree", &["commit", "-q", "-m", "first"]);
    let in_code = pairs(&[("tree/src/a.c", KEY_RULE)]);
    assert_eq!(found(&place.scan(&["--worktree"]).exits(1)), in_code, "an author is no finding");
    assert_eq!(found(&place.scan(&[]).exits(1)), in_code, "neither in the history");
    // The same bytes at a path that says nothing of the sort.
    place.file("src/b.txt", "/* mail to joe.doe@corp-mail.net */\n");
    git(&place, "tree", &["add", "."]);
    git(&place, "tree", &["commit", "-q", "-m", "second"]);
    let both = pairs(&[("tree/src/a.c", KEY_RULE), ("tree/src/b.c", "email-address")]);
    assert_eq!(found(&place.scan(&[]).exits(1)), both);
}

#[test]
fn a_baseline_is_shared_with_its_key() {
    let place = Place::new();
    place.file("a.txt", format!("key {KEY}\n"));
    let scan = |state: &str, key: Option<&str>, args: &[&str]| {
        let mut command = place.command(["scan", "tree", "--state", state]);
        command.args(args).envs(key.map(|key| ("DOMESDAY_FINGERPRINT_KEY", key)));
        run(&mut command)
    };
    scan("state", Some(SHARED_KEY), &[]).exits(1);
    create(&place).exits(0);
    let baseline = ["--baseline", BASELINE];
    scan("elsewhere", Some(SHARED_KEY), &baseline).exits(0);
    let named = ["--baseline", BASELINE, "--fingerprint-key", "file:key"];
    fs::write(place.path("key"), SHARED_KEY).unwrap();
    fs::set_permissions(place.path("key"), PermissionsExt::from_mode(0o600)).unwrap();
    scan("third", Some(OTHER_KEY), &named).exits(0);
    let words = ["was made with the fingerprint key", "--fingerprint-key", "DOMESDAY_FINGERPRINT_KEY"];
    scan("elsewhere", Some(OTHER_KEY), &baseline).fails_saying(&words);
    scan("elsewhere", None, &baseline).fails_saying(&words);
    let refused = scan("elsewhere", Some("hunter2"), &[]);
    refused.fails_saying(&["env:DOMESDAY_FINGERPRINT_KEY", "openssl rand"]);
    assert!(!refused.err.contains("hunter2"));
}

#[test]
fn a_broken_baseline_is_told_before_the_scan() {
    let place = Place::new();
    place.file("a.txt", format!("key {KEY}\n"));
    place.scan(&[]).exits(1);
    create(&place).exits(0);
    let text = fs::read_to_string(place.path(BASELINE)).unwrap();
    fs::write(place.path(BASELINE), format!("{text}<<<<<<< ours\n")).unwrap();
    for command in [&["scan", "tree"][..], &["findings"]] {
        let ran = run(place.command(command).args(["--state", "state", "--baseline", BASELINE]));
        ran.fails_saying(&[BASELINE, ":3", "not an entry"]);
        assert!(ran.out.is_empty());
    }
    place
        .run(&["baseline", "create", "-o", "missing/b.jsonl", "--state", "state"])
        .fails_saying(&["missing"]);
}

#[test]
fn marks_in_lines_count_those_of_other_scanners_included() {
    let place = Place::new();
    let marks = [
        "# domesday:ignore",
        "// domesday:ignore aws-access-key-id",
        "-- domesday:ignore generic-password, aws-access-key-id because",
        "<!-- gitleaks:allow -->",
        "/* trufflehog:ignore */",
        "# kingfisher:ignore",
        "# pragma: allowlist secret",
    ];
    let lines: Vec<String> = marks.iter().map(|mark| format!("key {KEY} {mark}\n")).collect();
    place.file("a.txt", lines.concat());
    place.scan(&[]).exits(0);
    place.file("a.txt", format!("card {CARD} # gitleaks:allow\nkey {KEY} # domesday:ignore payment-card\n"));
    assert_eq!(place.scan(&[]).exits(1).found().len(), 2);
}
