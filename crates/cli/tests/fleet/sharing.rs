//! Who does what: node groups, owners, workers.

use std::collections::BTreeMap;

use domesday_testkit::wait;

use crate::place::{PATIENCE, Place};

#[test]
fn work_never_crosses_node_groups() {
    let place = Place::new();
    for (group, files) in [("eu", 60), ("us", 40)] {
        let tree = place.tree(group, files);
        place.source(group, group, &tree, &[]);
    }
    place.template("both", &["eu", "us"]);
    let job = place.job("both");
    // The group that has a fleet goes on; the other waits for its own.
    let _eu = (place.orchestrator("eu-orchestrator", "eu"), place.worker("eu-worker", "eu", &[]));
    place.wait("eu completed", || place.statuses(&job) == ["COMPLETED", "QUEUED"]);
    assert_eq!(place.found(), (60, 60));
    let _us = (place.orchestrator("us-orchestrator", "us"), place.worker("us-worker", "us", &[]));
    place.wait_for_status(&job, "COMPLETED");
    assert_eq!(place.found(), (100, 100));
    let crossed = "SELECT count(*) FROM tasks t JOIN jobs j ON j.id = t.job_id
        JOIN worker_sessions w ON w.id = t.worker_id WHERE w.node_group <> j.node_group";
    assert_eq!(place.number(crossed), 0);
    assert_eq!(place.number("SELECT count(DISTINCT worker_id) FROM tasks"), 2);
}

#[test]
fn one_of_two_orchestrators_owns_a_job_and_the_other_takes_over() {
    let place = Place::new();
    let (tree, files) = place.slow_tree("tree");
    place.source("tree", "eu", &tree, &[]);
    place.template("all", &["tree"]);
    let mut orchestrators = [place.orchestrator("first", "eu"), place.orchestrator("second", "eu")];
    let _worker = place.worker("worker", "eu", &[]);
    place.wait("both orchestrators", || place.number("SELECT count(*) FROM orchestrators") == 2);
    let job = place.job("all");
    let mut owners: BTreeMap<String, String> = BTreeMap::new();
    let mut look = |place: &Place| {
        let sample = place.sql(
            "SELECT version, encode(orchestrator_id, 'hex') FROM jobs WHERE orchestrator_id IS NOT NULL",
        );
        if let Some((version, owner)) = sample.split_once('|') {
            let known = owners.entry(version.to_owned()).or_insert_with(|| owner.to_owned());
            assert_eq!(known, owner, "two owners in version {version}");
        }
    };
    place.wait_for_progress(1);
    look(&place);
    let owner = place.sql("SELECT o.host FROM jobs j JOIN orchestrators o ON o.id = j.orchestrator_id");
    let its_own = |id: u32| {
        owner.ends_with(&format!(":{id}"))
            || owner.split(|c: char| !c.is_ascii_digit()).any(|part| part == id.to_string())
    };
    let killed = orchestrators.iter_mut().find(|process| its_own(process.id()));
    killed.unwrap_or_else(|| panic!("`{owner}` is neither of them")).kill();
    let ended = wait::until(PATIENCE, || {
        look(&place);
        place.statuses(&job).iter().all(|status| status == "COMPLETED").then_some(())
    });
    assert!(ended.is_some(), "{}", place.state());
    assert_eq!(place.found(), (files as u64, files as u64));
    let distinct: std::collections::BTreeSet<_> = owners.values().collect();
    assert_eq!(distinct.len(), 2, "{owners:?}");
}

#[test]
fn three_workers_share_one_job() {
    let place = Place::new();
    let (tree, files) = place.slow_tree("tree");
    place.source("tree", "eu", &tree, &[]);
    place.template("all", &["tree"]);
    let _orchestrator = place.orchestrator("orchestrator", "eu");
    let _workers = ["a", "b", "c"].map(|name| place.worker(name, "eu", &[]));
    place.wait("three workers", || place.number("SELECT count(*) FROM worker_sessions") == 3);
    let job = place.job("all");
    place.wait_for_status(&job, "COMPLETED");
    assert_eq!(place.found(), (files as u64, files as u64));
    let shared = "SELECT count(DISTINCT worker_id) FROM tasks WHERE status = 'COMPLETED'";
    assert_eq!(place.number(shared), 3, "{}", place.state());
}
