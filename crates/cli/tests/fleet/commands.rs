//! Pause, resume and cancel, whatever the job is at.

use domesday_testkit::fleet::Process;

use crate::place::Place;

/// A fleet of one orchestrator and two workers, with a job that takes a while; the job's id and its files.
fn at_work(place: &Place) -> (Vec<Process>, String, u64) {
    let (tree, files) = place.slow_tree("tree");
    place.source("tree", "eu", &tree, &[]);
    place.template("all", &["tree"]);
    let fleet = start(place);
    let job = place.job("all");
    place.wait_for_progress(1);
    (fleet, job, files as u64)
}

fn start(place: &Place) -> Vec<Process> {
    let mut fleet = vec![place.orchestrator("orchestrator", "eu")];
    fleet.extend(["a", "b"].map(|name| place.worker(name, "eu", &[])));
    fleet
}

/// All that a job at rest must leave alone.
fn standing(place: &Place) -> String {
    place.sql(
        "SELECT (SELECT count(*) FROM tasks WHERE status = 'RUNNING'), (SELECT count(*) FROM tasks),
            (SELECT sum(objects) FROM tasks), (SELECT count(*) FROM task_units),
            (SELECT count(*) FROM finding_occurrences), (SELECT string_agg(status, ',') FROM jobs)",
    )
}

#[test]
fn a_paused_job_stays_paused_over_a_restart_and_goes_on_when_resumed() {
    let place = Place::new();
    let (fleet, job, files) = at_work(&place);
    place.run(&["job", "pause", &job, "--wait"]);
    assert_eq!(place.statuses(&job), ["PAUSED"]);
    assert_eq!(place.running(), 0);
    assert!(place.open_tasks() > 0, "there was nothing left to pause");
    drop(fleet);
    let paused = standing(&place);
    let sessions = place.number("SELECT count(*) FROM worker_sessions");
    let _fleet = start(&place);
    place.wait("new workers", || place.number("SELECT count(*) FROM worker_sessions") == sessions + 2);
    place.wait_for_heartbeats(2);
    assert_eq!(standing(&place), paused);
    place.run(&["job", "resume", &job]);
    place.wait_for_status(&job, "COMPLETED");
    assert_eq!(place.found(), (files, files));
}

#[test]
fn a_cancelled_job_ends_cancelled_and_keeps_what_it_found() {
    let place = Place::new();
    let (_fleet, job, files) = at_work(&place);
    place.run(&["job", "cancel", &job, "--wait"]);
    assert_eq!(place.statuses(&job), ["CANCELLED"]);
    assert_eq!(place.open_tasks(), 0);
    let (found, occurrences) = place.found();
    assert!(found > 0 && found < files && found == occurrences, "{found} of {files}");
    // And stays so, whatever comes after.
    for command in ["resume", "pause"] {
        let _ = place.fleet.run(["job", command, &job]);
    }
    place.wait_for_heartbeats(1);
    assert_eq!(place.statuses(&job), ["CANCELLED"]);
    assert_eq!(place.found(), (found, occurrences));
}

#[test]
fn pause_and_cancel_in_quick_succession_end_cancelled() {
    let place = Place::new();
    let (_fleet, job, _) = at_work(&place);
    for command in ["pause", "cancel"] {
        place.run(&["job", command, &job]);
    }
    place.wait_for_status(&job, "CANCELLED");
    assert_eq!(place.open_tasks(), 0);
    assert_eq!(place.sql("SELECT master_pending_commands FROM jobs"), "[]");
}

#[test]
fn a_queued_and_a_paused_job_can_be_cancelled() {
    let place = Place::new();
    let tree = place.tree("tree", 20);
    place.source("tree", "eu", &tree, &[]);
    place.template("all", &["tree"]);
    let job = place.job("all");
    place.run(&["job", "cancel", &job]);
    assert_eq!(place.statuses(&job), ["QUEUED"]);
    let _orchestrator = place.orchestrator("orchestrator", "eu");
    place.wait_for_status(&job, "CANCELLED");
    assert_eq!(place.number("SELECT count(*) FROM tasks WHERE status <> 'CANCELLED'"), 0);

    // Without workers it cannot end, so that it can be paused at leisure.
    let job = place.job("all");
    place.wait_for_status(&job, "RUNNING");
    place.run(&["job", "pause", &job, "--wait"]);
    place.run(&["job", "cancel", &job, "--wait"]);
    assert_eq!(place.statuses(&job), ["CANCELLED"]);
}
