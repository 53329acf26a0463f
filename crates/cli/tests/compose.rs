//! Data sources, templates and jobs as people define and start them, on either book.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use common::book::Book;
use common::{Place, run, text};
use serde_json::json;

const RULE: &str = r#"
[[rule]]
id = "acme-token"
description = "ACME token"
category = "secret"
regex = '''\b(?P<value>acme_[a-z0-9]{12})\b'''
score = 90
positive = ["x=acme_q8w7e6r5t4z3", "token acme_k3j5h2g9f8d7"]
negative = ["acme_short", "acmek3j5h2g9f8d7"]
"#;

#[test]
fn data_sources_are_added_shown_changed_tested_and_removed() {
    Book::each(|book| {
        book.place.file("a/b.txt", "text");
        book.place.file("c.txt", "text");
        let root = format!("root={}", book.place.tree().display());
        let add = |name: &str, more: &[&str]| {
            let mut args =
                vec!["datasource", "add", name, "--kind", "filesystem", "--node-group", "eu", "--set", &root];
            args.extend(more);
            book.run(&args)
        };
        let added = add("shares", &["--label", "host=nas1", "--limit", "8", "--set", "exclude=[\"*.lock\"]"]);
        assert_eq!(added.exits(0).json(), json!({ "added": ["shares"] }));
        add("shares", &[]).fails_saying(&["datasource shares: there is one of this name", "datasource edit"]);
        let shown = book.json(&["datasource", "show", "shares"]);
        assert_eq!(shown["node_group"], "eu");
        assert_eq!(shown["worker_label"], "host=nas1");
        assert_eq!(shown["concurrency_limit"], 8);
        assert_eq!(shown["configuration"]["exclude"], json!(["*.lock"]));
        let listed = book.json(&["datasource", "list"]);
        assert_eq!(listed, json!([shown]));
        // Only what is given changes.
        let edit = |args: &[&str]| {
            let mut all = vec!["datasource", "edit", "shares"];
            all.extend(args);
            book.run(&all)
        };
        let changed =
            edit(&["--set", "max_file_size=10", "--unset", "exclude", "--no-label"]).exits(0).json();
        let fields: Vec<String> =
            changed["changes"].as_array().unwrap().iter().map(|change| text(&change["field"])).collect();
        assert_eq!(fields, ["configuration.exclude", "configuration.max_file_size", "worker_label"]);
        assert_eq!(book.json(&["datasource", "show", "shares"])["concurrency_limit"], 8);
        assert_eq!(edit(&["--limit", "8"]).exits(0).json()["changes"], json!([]));
        edit(&["--unset", "exclude"]).fails_saying(&["datasource shares: configuration.exclude: is not set"]);
        edit(&["--set", "root=relative"])
            .fails_saying(&["datasource shares: configuration.root: ", "absolute"]);
        // What is shown can be given back.
        let shown = book.run(&["datasource", "show", "shares"]).exits(0).text();
        let given = shown.replace("\"eu\"", "\"us\"");
        let changed = book.run_with(&["datasource", "edit", "shares", "--file", "-"], &given).exits(0).json();
        assert_eq!(changed["changes"], json!([{ "field": "node_group", "from": "eu", "to": "us" }]));
        // From here.
        let tested = book.run(&["datasource", "test", "shares"]).exits(0);
        assert_eq!(tested.json()["objects"], 1);
        assert_eq!(tested.json()["containers"], 1);
        assert_eq!(tested.json()["readable"], true);
        let steps = tested.json()["steps"].clone();
        assert!(steps.as_array().unwrap().iter().all(|step| step["status"] == "ok"), "{steps}");
        assert!(tested.err.contains("a worker of node group us must reach it"), "{}", tested.err);
        edit(&["--set", "root=/no/such/folder"]).exits(0);
        let tested = book.run(&["datasource", "test", "shares"]).exits(3);
        assert!(tested.err.contains("datasource shares: ") && tested.err.contains("No such file"));
        assert_eq!(tested.json()["steps"][1]["status"], "failed");
        book.run(&["datasource", "remove", "share"]).fails_saying(&["did you mean `shares`?"]);
        assert_eq!(book.json(&["datasource", "remove", "shares"]), json!({ "removed": "shares" }));
        assert_eq!(book.json(&["datasource", "list"]), json!([]));
        book.run(&["datasource", "show", "shares"]).fails_saying(&["there is no datasource `shares`"]);
    });
}

#[test]
fn data_sources_come_from_files_all_checked_before_the_first_is_added() {
    Book::each(|book| {
        let good = "[[datasource]]\nname = \"a\"\nkind = \"filesystem\"\nnode_group = \"eu\"\n\
                    configuration = { root = \"/srv/a\" }\n";
        let add = |text: &str| {
            book.write("sources.toml", text);
            book.run(&["datasource", "add", "--file", "sources.toml"])
        };
        let second = good.replace("\"a\"", "\"b\"");
        add(&format!("{good}{}", second.replace("root", "rot")))
            .fails_saying(&["datasource b: configuration: unknown field `rot`; did you mean `root`?"]);
        add(&format!("{good}{}", second.replace("\"/srv/a\"", "7")))
            .fails_saying(&["datasource b: configuration.root: "]);
        add(&format!("{good}{}", second.replace("filesystem", "ftp")))
            .fails_saying(&["datasource b: kind: ", "filesystem"]);
        add(&format!("{good}{}", second.replace("node_group", "group")))
            .fails_saying(&["datasource b: node_group: is missing"]);
        add(&format!("{good}{good}")).fails_saying(&["datasource a: is given twice"]);
        add("[[datasource]]\nname = \"a\"\nkind = hunter2\n")
            .fails_saying(&["sources.toml:3:8: this is not TOML"]);
        add("").fails_saying(&["datasource: name: is missing"]);
        assert_eq!(book.json(&["datasource", "list"]), json!([]));
        assert_eq!(add(&format!("{good}{second}")).exits(0).json(), json!({ "added": ["a", "b"] }));
        let input = json!([{ "name": "c", "kind": "filesystem", "node_group": "eu", "configuration": { "root": "/c" } }]);
        let added = book.run_with(&["datasource", "add", "--file", "-"], &input.to_string());
        assert_eq!(added.exits(0).json(), json!({ "added": ["c"] }));
        book.run_with(&["datasource", "add", "--file", "-"], "{\n\"name\": }")
            .fails_saying(&["standard input:2:", "not JSON"]);
        book.run(&["datasource", "add", "--file", "missing.toml"])
            .fails_saying(&["cannot read missing.toml"]);
        book.run(&["datasource", "add", "x", "--file", "sources.toml", "--kind", "filesystem"])
            .fails_saying(&["--file", "cannot be used with"]);
    });
}

#[test]
fn a_secret_in_the_place_of_a_reference_is_refused_and_not_quoted() {
    Book::each(|book| {
        for secret in ["hunter2", "user:hunter2", "hunter2:x"] {
            let args = ["datasource", "add", "s", "--kind", "filesystem", "--node-group", "eu"];
            let ran = run(book.command(args).args(["--set", "root=/srv", "--credential", secret]));
            ran.fails_saying(&["datasource s: credential: ", "env:NAME"]);
            assert!(!ran.err.contains("hunter2") && !ran.err.contains("user"), "{}", ran.err);
        }
        let ran = book.run(&["db", "key", "hunter2:x", "--replace"]);
        ran.fails_saying(&["fingerprint key", "env:NAME"]);
        assert!(!ran.err.contains("hunter2"), "{}", ran.err);
    });
}

#[test]
fn templates_are_added_shown_changed_and_removed() {
    Book::each(|book| {
        book.source("share-1", "eu");
        book.write("acme.toml", RULE);
        let added = book
            .run(&[
                "template",
                "add",
                "nightly",
                "--datasource",
                "share-*",
                "--rules",
                "acme.toml",
                "--level",
                "high",
            ])
            .exits(0);
        assert_eq!(added.json(), json!({ "added": [{ "name": "nightly", "next_firings": [] }] }));
        assert_eq!(added.err, "");
        let shown = book.json(&["template", "show", "nightly"]);
        assert_eq!(shown["datasources"], json!(["share-*"]));
        assert_eq!(shown["options"]["min_score"], 80);
        assert!(text(&shown["rules"][0]["text"]).contains("acme-token"));
        let listed = book.json(&["template", "list"]);
        assert_eq!(listed[0]["rules"], json!(["acme.toml"]));
        let changed = book.json(&[
            "template",
            "edit",
            "nightly",
            "--option",
            "max_depth=3",
            "--priority",
            "-5",
            "--no-rules",
        ]);
        let fields: Vec<String> =
            changed["changes"].as_array().unwrap().iter().map(|change| text(&change["field"])).collect();
        assert_eq!(fields, ["options.max_depth", "priority", "rules.acme.toml"]);
        // In use, so it stays.
        book.run(&["datasource", "remove", "share-1"]).exits(0);
        book.source("share-1", "eu");
        book.run(&["template", "edit", "nightly", "--datasource", "share-1"]).exits(0);
        book.run(&["datasource", "remove", "share-1"]).fails_saying(&["share-1", "in use", "nightly"]);
        // What is shown can be given back, under another name too.
        let shown = book.run(&["template", "show", "nightly"]).exits(0).text();
        let other = shown.replace("\"nightly\"", "\"weekly\"");
        book.run_with(&["template", "add", "--file", "-"], &other).exits(0);
        book.run(&["template", "add", "nightly", "--datasource", "x"])
            .fails_saying(&["there is one of this name"]);
        let warned = book.run(&["template", "edit", "weekly", "--datasource", "nothing-*"]).exits(0);
        assert!(warned.err.contains("no data source matches `nothing-*`"), "{}", warned.err);
        for name in ["nightly", "weekly"] {
            assert_eq!(book.json(&["template", "remove", name]), json!({ "removed": name }));
        }
        book.run(&["template", "show", "nightly"]).fails_saying(&["there is no template `nightly`"]);
    });
}

#[test]
fn wrong_templates_are_told_by_field() {
    Book::each(|book| {
        let add = |args: &[&str]| {
            let mut all = vec!["template", "add", "t"];
            all.extend(args);
            book.run(&all)
        };
        add(&[]).fails_saying(&["template t: datasources: is missing"]);
        add(&["--datasource", "*", "--option", "max_dept=1"])
            .fails_saying(&["template t: options: unknown field `max_dept`; did you mean `max_depth`?"]);
        add(&["--datasource", "*", "--option", "max_depth=x"])
            .fails_saying(&["template t: options.max_depth: "]);
        add(&["--datasource", "*", "--time-zone", "UTC"])
            .fails_saying(&["template t: schedule.cron: is missing"]);
        book.write("bad.toml", &RULE.replace("acme_k3j5h2g9f8d7\"]", "nothing\"]"));
        add(&["--datasource", "*", "--rules", "bad.toml"]).fails_saying(&[
            "template t: rules: bad.toml",
            "acme-token",
            "a positive example is not found",
        ]);
        assert_eq!(book.json(&["template", "list"]), json!([]));
    });
}

#[test]
fn schedules_are_checked_and_shown() {
    Book::each(|book| {
        let add = |cron: &str, zone: &str| {
            book.run(&["template", "add", "t", "--datasource", "*", "--cron", cron, "--time-zone", zone])
        };
        add("99 2 * * *", "UTC").fails_saying(&["template t: schedule.cron: "]);
        add("0 2 * * *", "Mars/Olympus").fails_saying(&["template t: schedule.time_zone: "]);
        let added = add("0 2 * * *", "UTC").exits(0).json();
        let times: Vec<String> =
            added["added"][0]["next_firings"].as_array().unwrap().iter().map(text).collect();
        assert_eq!(times.len(), 3);
        assert!(times.iter().all(|time| time.ends_with("T02:00:00Z")), "{times:?}");
        assert_eq!(text(&book.json(&["template", "show", "t"])["next_firing"]), times[0]);
        let edited =
            book.run(&["template", "edit", "t", "--cron", "30 3 * * *", "--missed", "skip"]).exits(0);
        assert!(edited.err.contains("T03:30:00Z"), "{}", edited.err);
        let shown = book.json(&["template", "show", "t"]);
        assert_eq!(shown["schedule"], json!({ "cron": "30 3 * * *", "time_zone": "UTC", "missed": "skip" }));
        assert!(text(&shown["next_firing"]).ends_with("T03:30:00Z"));
        book.run(&["template", "edit", "t", "--no-schedule"]).exits(0);
        let shown = book.json(&["template", "show", "t"]);
        assert_eq!((&shown["schedule"], &shown["next_firing"]), (&json!(null), &json!(null)));
    });
}

#[test]
fn a_flag_outranks_the_environment_and_scans_stay_embedded() {
    let place = Place::new();
    place.file("a.txt", common::KEY);
    let environment = "postgresql://u:hunter2@127.0.0.1:1/none?connect_timeout=1";
    let with = |args: &[&str]| run(place.command(args).env("DOMESDAY_STORE", environment));
    with(&["scan", "tree", "--state", "state"]).exits(1);
    with(&["scan", "tree"]).exits(1);
    assert_eq!(with(&["jobs", "--state", "state"]).exits(0).json().as_array().unwrap().len(), 1);
    assert_eq!(with(&["findings", "--state", "state"]).exits(1).found().len(), 1);
    for command in ["jobs", "findings", "problems", "status"] {
        let refused = with(&[command]);
        refused.fails_saying(&["cannot connect to none on 127.0.0.1"]);
        assert!(!refused.err.contains("hunter2") && !refused.err.contains("ps"), "{}", refused.err);
    }
    with(&["jobs", "--state", "state", "--store", "postgresql://h/d"]).fails_saying(&["--state", "--store"]);
    with(&["scan", "tree", "--store", "postgresql://h/d"]).fails_saying(&[
        "datasource",
        "template add",
        "job start",
    ]);
    // A password that others can see is warned of, and not repeated.
    let seen = place.run(&["jobs", "--store", environment]);
    seen.fails_saying(&["warning: the password in --store", "DOMESDAY_STORE"]);
    assert!(!seen.err.contains("hunter2"), "{}", seen.err);
    place.run(&["jobs", "--store", "book.sqlite"]).fails_saying(&["expected postgresql://"]);
}

#[test]
fn findings_name_the_rules_that_the_job_had() {
    let place = Place::new();
    place.file("a.txt", "the token is acme_k3j5h2g9f8d7 indeed");
    std::fs::write(place.path("acme.toml"), RULE).unwrap();
    place.scan(&["--rules", "acme.toml"]).exits(1);
    std::fs::remove_file(place.path("acme.toml")).unwrap();
    let report = place.run(&["findings", "--state", "state", "--format", "sarif"]).exits(1).text();
    assert!(report.contains("ACME token"), "{report}");
}
