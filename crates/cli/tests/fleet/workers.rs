//! What a worker takes, what it may take, and what it gives back.

use std::fs;

use domesday_testkit::wait;

use crate::common::KEY;
use crate::place::{PATIENCE, Place};

#[test]
fn a_worker_that_is_asked_to_end_returns_its_work() {
    let place = Place::new();
    let (tree, files) = place.slow_tree("tree");
    place.source("tree", "eu", &tree, &[]);
    place.template("all", &["tree"]);
    let _orchestrator = place.orchestrator("orchestrator", "eu");
    let mut worker = place.worker("first", "eu", &[]);
    let job = place.job("all");
    place.wait_for_progress(1);
    let status = worker.terminate().expect("a worker ends when it is asked to");
    assert_eq!(status.code(), Some(0), "{}", worker.log());
    // At once, and not when its lease has run out; and nobody holds it against the tasks.
    assert_eq!(place.running(), 0);
    assert!(place.open_tasks() > 0, "there was nothing left to return");
    assert_eq!(place.number("SELECT sum(abandonments + failures) FROM tasks"), 0);
    let _other = place.worker("second", "eu", &[]);
    place.wait_for_status(&job, "COMPLETED");
    assert_eq!(place.found(), (files as u64, files as u64));
}

/// What workers found and a control suppresses is in the book, with what decided it.
#[test]
fn reports_of_a_fleet_say_what_controls_suppress_and_which_template_was_used() {
    let place = Place::new();
    let tree = place.path("tree");
    fs::create_dir_all(&tree).unwrap();
    for file in 0..30 {
        fs::write(tree.join(format!("{file}.txt")), format!("{KEY}\n{KEY} domesday:ignore\n")).unwrap();
    }
    fs::write(tree.join("left-out.txt"), KEY).unwrap();
    fs::write(tree.join(".domesdayignore"), "left-out.txt\n").unwrap();
    place.source("tree", "eu", &tree, &[]);
    place.template("all", &["tree"]);
    let _fleet = (place.orchestrator("orchestrator", "eu"), place.worker("worker", "eu", &[]));
    let mut hash = String::new();
    // The second one carries over what it need not read again.
    for _ in 0..2 {
        let job = place.job("all");
        place.wait_for_status(&job, "COMPLETED");
        let report = place.report(&["findings", "--job", &job, "--format", "json"]);
        assert_eq!(report["findings"].as_array().unwrap().len(), 30);
        let suppressed = &report["summary"]["suppressed"];
        let expected = serde_json::json!([
            { "control": "mark", "findings": 30 },
            { "control": "ignore_file", "objects": 1 },
            { "control": "level", "level": "medium" },
        ]);
        assert_eq!(*suppressed, expected);
        let shown = place.report(&["findings", "--job", &job, "--format", "sarif", "--show-suppressed"]);
        let results = shown["runs"][0]["results"].as_array().unwrap();
        let suppressed = |result: &&serde_json::Value| result["suppressions"][0]["kind"] == "inSource";
        assert_eq!((results.len(), results.iter().filter(suppressed).count()), (60, 30));
        let used = &report["summary"]["configuration"];
        assert_eq!(used["template"], "all");
        let shown = place.report(&["job", "show", &job, "--json"]);
        assert_eq!((&shown["configuration"], &shown["suppressed"][0]["findings"]), (used, &30.into()));
        let known = std::mem::replace(&mut hash, used["hash"].as_str().unwrap().to_owned());
        assert!(known.is_empty() || known == hash, "the same settings have the same hash");
    }
}

/// The rule is in the template, and with it in the book: a worker elsewhere has no file to read it from.
#[test]
fn rules_travel_with_the_job() {
    let place = Place::new();
    let tree = place.path("tree");
    fs::create_dir_all(&tree).unwrap();
    fs::write(tree.join("badge.txt"), format!("badge ZQX-48151623\n{KEY}\n")).unwrap();
    place.source("tree", "eu", &tree, &[]);
    let rules = place.path("own.toml");
    fs::write(
        &rules,
        r#"
[[rule]]
id = "acme-badge"
description = "Badge of Acme"
category = "personal"
regex = '\bZQX-[0-9]{8}\b'
triggers = ["ZQX-"]
score = 90
positive = ["badge ZQX-48151623", "ZQX-11229922 is mine"]
negative = ["ZQX-1111", "ZQY-48151623"]
"#,
    )
    .unwrap();
    place.run(&["template", "add", "own", "--datasource", "tree", "--rules", rules.to_str().unwrap()]);
    fs::remove_file(&rules).unwrap();
    let job = place.job("own");
    let _fleet = (place.orchestrator("orchestrator", "eu"), place.worker("worker", "eu", &[]));
    place.wait_for_status(&job, "COMPLETED");
    assert_eq!(place.sql("SELECT rule_id FROM findings ORDER BY 1"), "acme-badge\naws-access-key-id");
}

#[test]
fn only_workers_with_the_label_read_a_source_that_asks_for_one() {
    let place = Place::new();
    let tree = place.tree("tree", 50);
    place.source("nas", "eu", &tree, &["--label", "host=nas1"]);
    place.template("all", &["nas"]);
    let _orchestrator = place.orchestrator("orchestrator", "eu");
    let _others = (place.worker("none", "eu", &[]), place.worker("other", "eu", &["--label", "host=nas2"]));
    place.wait("the workers", || place.number("SELECT count(*) FROM worker_sessions") == 2);
    let job = place.job("all");
    place.wait("the root task", || place.open_tasks() == 1);
    let _right = place.worker("right", "eu", &["--label", "zone=a", "--label", "host=nas1"]);
    place.wait_for_status(&job, "COMPLETED");
    assert_eq!(place.found(), (50, 50));
    let readers = "SELECT DISTINCT array_to_string(w.labels, ' ') FROM tasks t JOIN worker_sessions w ON w.id = t.worker_id";
    let labels = place.sql(readers);
    assert!(labels.contains("host=nas1") && labels.lines().count() == 1, "{labels}");
}

#[test]
fn a_sources_limit_holds_across_the_fleet() {
    let place = Place::new();
    let (tree, files) = place.slow_tree("tree");
    place.source("tree", "eu", &tree, &["--limit", "2"]);
    place.template("all", &["tree"]);
    let _orchestrator = place.orchestrator("orchestrator", "eu");
    let _workers = ["a", "b", "c"].map(|name| place.worker(name, "eu", &[]));
    place.wait("the workers", || place.number("SELECT count(*) FROM worker_sessions") == 3);
    let job = place.job("all");
    let mut most = 0;
    let ended = wait::until(PATIENCE, || {
        most = most.max(place.running());
        place.statuses(&job).iter().all(|status| status == "COMPLETED").then_some(())
    });
    assert!(ended.is_some(), "{}", place.state());
    assert!((1..=2).contains(&most), "{most} tasks ran at once");
    assert_eq!(place.found(), (files as u64, files as u64));
}

/// An idle fleet is told of a new job; it does not come upon it when it next looks. How fast that is, a
/// benchmark prints.
#[test]
fn an_idle_fleet_is_woken_by_a_new_job() {
    let place = Place::new();
    let tree = place.tree("tree", 5);
    place.source("tree", "eu", &tree, &[]);
    place.template("all", &["tree"]);
    let _fleet = (place.orchestrator("orchestrator", "eu"), place.worker("worker", "eu", &[]));
    place.wait("the fleet", || place.number("SELECT count(*) FROM worker_sessions") == 1);
    for _ in 0..3 {
        let job = place.job("all");
        place.wait_for_status(&job, "COMPLETED");
    }
    assert_eq!(place.number("SELECT count(*) FROM finding_occurrences"), 15);
    assert_eq!(place.number("SELECT count(*) FROM findings"), 5);
}
