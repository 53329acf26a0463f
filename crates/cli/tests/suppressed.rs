//! What somebody decided not to show is counted, by what decided it, and can be shown.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use std::collections::BTreeMap;

use common::{KEY, KEY_2, KEY_RULE, Place, contains, text};
use serde_json::{Value, json};

const BASELINE: &str = ".domesday-baseline.jsonl";

/// A tree with one finding, and others that something suppresses.
fn controlled() -> Place {
    let place = Place::new();
    place.file("open.txt", KEY);
    place.file("marked.txt", format!("aws_key = {KEY} # domesday:ignore\n{KEY_2} gitleaks:allow\n"));
    place.file("docs/allowed.txt", format!("{KEY}\n{KEY_2}\n"));
    place.file("by-value.txt", format!("{KEY_2}\n"));
    place.file("left-out.txt", KEY);
    place.file("build/left-out.txt", KEY);
    place.file(".domesdayignore", "/left-out.txt\n");
    place.file(
        ".domesday.toml",
        format!(
            "exclude = ['/build']\n[select]\nskip = ['category:health']\n\
             [[allow]]\ndescription = 'examples'\npaths = ['^docs/']\n\
             [[allow]]\nvalues = ['{KEY_2}']\nrules = ['{KEY_RULE}']\n"
        ),
    );
    place
}

/// Each control of a summary or of SARIF's properties with what it counts.
fn counts(controls: &Value) -> BTreeMap<String, u64> {
    let name = |control: &Value| {
        let entry = control["entry"].as_str().map(|entry| format!(" {entry}")).unwrap_or_default();
        format!("{}{entry}", text(&control["control"]))
    };
    let count = |control: &Value| {
        ["findings", "objects", "rules"].into_iter().find_map(|what| control[what].as_u64())
    };
    let controls = controls.as_array().unwrap().iter();
    controls.filter_map(|control| Some((name(control), count(control)?))).collect()
}

fn expected() -> BTreeMap<String, u64> {
    [
        ("mark", 2),
        ("allow tree/.domesday.toml:4 (examples)", 2),
        // The configuration is a file like any other.
        ("allow tree/.domesday.toml:7", 2),
        ("exclude", 1),
        ("ignore_file", 1),
    ]
    .map(|(name, count)| (name.to_owned(), count))
    .into()
}

/// Without the rules that a selection leaves out: there may be more of them with each version.
fn without_rules(mut counts: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    assert!(counts.remove("selection").is_some_and(|rules| rules > 0));
    counts
}

#[test]
fn every_control_is_counted_and_what_it_suppresses_is_shown_on_request() {
    let place = controlled();
    let ran = place.scan(&[]).exits(1);
    let report = ran.json();
    assert_eq!(ran.found(), [format!("tree/open.txt:1:1 {KEY_RULE}")]);
    assert_eq!(without_rules(counts(&report["summary"]["suppressed"])), expected());
    assert_eq!(report["summary"]["findings"]["total"], 1);
    assert!(ran.err.contains("suppressed 6") && ran.err.contains("2  by an ignore mark"), "{}", ran.err);

    // What has not changed is not read again, and suppressed all the same.
    let again = place.scan(&["--format", "sarif"]).exits(1).json();
    let run = &again["runs"][0];
    assert_eq!(without_rules(counts(&run["properties"]["suppressed"])), expected());
    assert!(run["results"][0].get("suppressions").is_none());

    let shown = place.scan(&["--show-suppressed"]).exits(1).json();
    let by = |found: &Value| {
        let by = found.get("suppressed").map(|by| text(&by["control"])).unwrap_or_default();
        format!("{}:{} {by}", text(&found["path"]), found["line"])
    };
    let all: Vec<_> = shown["findings"].as_array().unwrap().iter().map(by).collect();
    assert_eq!(
        all,
        [
            "tree/.domesday.toml:8 allow",
            "tree/by-value.txt:1 allow",
            "tree/docs/allowed.txt:1 allow",
            "tree/docs/allowed.txt:2 allow",
            "tree/marked.txt:1 mark",
            "tree/marked.txt:2 mark",
            "tree/open.txt:1 ",
        ]
    );
    assert_eq!(shown["summary"]["findings"]["total"], 1, "it is no finding of the report");

    // The book knows it, and no value.
    let findings = |args: &[&str]| {
        let command = ["findings", "--state", "state"].iter().chain(args).copied().collect::<Vec<_>>();
        place.run(&command).exits(1)
    };
    assert_eq!(without_rules(counts(&findings(&[]).json()["summary"]["suppressed"])), expected());
    let run = &findings(&["--show-suppressed", "--format", "sarif"]).json()["runs"][0];
    let kinds = run["results"].as_array().unwrap().iter();
    let kinds: Vec<_> = kinds.map(|result| result["suppressions"][0]["kind"].as_str()).collect();
    let (source, external) = (Some("inSource"), Some("external"));
    assert_eq!(kinds, [external, external, external, external, source, source, None]);
    for format in ["table", "csv", "jsonl", "json", "sarif"] {
        let out = findings(&["--show-suppressed", "--format", format]).out;
        assert!(!contains(&out, KEY_2), "{format}");
    }
    let job = place.run(&["job", "show", "--json", "--state", "state"]).exits(0).json();
    assert_eq!(counts(&job["suppressed"]), expected());
    assert_eq!(job["configuration"]["path"], "tree/.domesday.toml");

    // Values are shown of what is suppressed as of what is not.
    let values = place.scan(&["--show-suppressed", "--show-values"]).exits(1).json();
    let values: Vec<_> = values["findings"].as_array().unwrap().iter().map(|found| &found["value"]).collect();
    assert_eq!(values, [KEY_2, KEY_2, KEY, KEY_2, KEY, KEY_2, KEY]);
}

/// A value that several rules see is one finding, marked or not.
#[test]
fn what_is_suppressed_is_what_would_be_reported_without() {
    let place = Place::new();
    let lines = format!("aws_access_key_id = \"{KEY}\"\npassword = \"{KEY_2}\"\n");
    place.file("a.py", &lines);
    let open = place.scan(&[]).exits(1);
    place.file("a.py", lines.replace('\n', "  # domesday:ignore\n"));
    let marked = place.scan(&["--show-suppressed"]).exits(0);
    assert_eq!(marked.found(), open.found());
    let suppressed = counts(&marked.json()["summary"]["suppressed"]);
    assert_eq!(suppressed, [("mark".to_owned(), open.found().len() as u64)].into());
}

#[test]
fn many_in_one_object_are_counted_and_the_first_are_kept() {
    let place = Place::new();
    place.file("a.txt", format!("{KEY} domesday:ignore\n").repeat(2_500));
    place.file("b.txt", format!("{KEY}\n"));
    for _ in 0..2 {
        let report = place.scan(&["--show-suppressed"]).exits(1).json();
        assert_eq!(counts(&report["summary"]["suppressed"])["mark"], 2_500);
        assert_eq!(report["summary"]["findings"]["overflow"], 0, "none of these is a finding");
        let findings = report["findings"].as_array().unwrap();
        assert_eq!(findings.len(), 101);
        assert_eq!(findings[99]["suppressed"], json!({ "control": "mark", "count": 2_401 }));
    }
}

#[test]
fn what_a_baseline_knows_is_listed_as_well() {
    let place = Place::new();
    place.file("a.txt", format!("{KEY}\n{KEY_2} domesday:ignore\n"));
    place.scan(&[]).exits(1);
    let create = ["baseline", "create", "-o", BASELINE, "--state", "state"];
    assert_eq!(place.run(&create).exits(0).json()["entries"], 1, "what is suppressed is not accepted");
    let report = place.scan(&["--baseline", BASELINE, "--show-suppressed"]).exits(0).json();
    let by: Vec<_> = report["findings"].as_array().unwrap().iter().collect();
    assert_eq!(by[0]["suppressed"]["control"], "baseline");
    assert_eq!(by[1]["suppressed"]["control"], "mark");
    let expected = [("mark".to_owned(), 1), ("baseline".to_owned(), 1)];
    assert_eq!(counts(&report["summary"]["suppressed"]), expected.into());
    assert_eq!(report["summary"]["baseline"]["hidden"], 1);
}

/// An allow list may be about the values of a table.
#[test]
fn tables_have_suppressed_findings_too() {
    let place = Place::new();
    place.file("t.csv", format!("id,note\n1,{KEY}\n2,{KEY_2}\n3,{KEY_2}\n"));
    std::fs::write(place.path("own.toml"), format!("[[allow]]\nvalues = ['{KEY_2}']\n")).unwrap();
    let report = place.scan(&["--rules", "own.toml"]).exits(1).json();
    assert_eq!(report["findings"].as_array().unwrap().len(), 1);
    assert_eq!(counts(&report["summary"]["suppressed"]), [("allow own.toml:1".to_owned(), 2)].into());
}
