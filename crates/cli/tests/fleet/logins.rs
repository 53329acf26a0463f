//! Processes whose logins are bound to node groups.

use domesday_testkit::fleet::Process;

use crate::place::{PASSWORD, Place};

const ROLES: &str = include_str!("../../../../docs/fleet/roles.sql");

/// Starts a process of the fleet under another login.
fn start(place: &Place, name: &str, login: &str, arguments: &[&str]) -> Process {
    let mut command = place.fleet.command(arguments.iter().chain(&["--log", "info"]));
    let url = place.url().replace(&format!("postgres:{PASSWORD}@"), &format!("{login}@"));
    command.env("DOMESDAY_STORE", url);
    place.fleet.start(name, command)
}

#[test]
fn processes_that_are_bound_to_node_groups_do_all_of_their_work() {
    let place = Place::new();
    let logins = |role: &str, group: &str| format!("{}_{role}_{group}", place.database());
    for (group, files) in [("eu", 60), ("us", 40)] {
        let tree = place.tree(group, files);
        place.source(group, group, &tree, &[]);
        for role in ["worker", "orchestrator"] {
            let login = logins(role, group);
            // Before the roles are there nobody is bound, and afterwards nobody is left out.
            let early = ["db", "grant", &login, "--as", role, "--node-group", group];
            if group == "eu" && role == "worker" {
                assert_ne!(place.fleet.run(early).code, Some(0));
                place.sql(ROLES);
            }
            place.run(&early);
        }
    }
    let held = place.run(&["db", "grants", "--json"]);
    assert_eq!((held.matches("\"is_held\":true").count(), held.matches("false,").count()), (4, 4), "{held}");
    place.template("both", &["eu", "us"]);
    let job = place.job("both");
    let mut processes = Vec::new();
    for group in ["eu", "us"] {
        let orchestrator = ["orchestrator", "--node-group", group, "--lease", "3s"];
        processes.push(start(&place, &format!("o-{group}"), &logins("orchestrator", group), &orchestrator));
        let key = format!("env:{}", domesday_testkit::fleet::KEY_VARIABLE);
        let worker =
            ["worker", "--node-group", group, "--fingerprint-key", &key, "--slots", "1", "--lease", "3s"];
        processes.push(start(&place, &format!("w-{group}"), &logins("worker", group), &worker));
    }
    place.wait_for_status(&job, "COMPLETED");
    assert_eq!(place.found(), (100, 100));
    // Again, with what is known from the first time.
    let job = place.job("both");
    place.wait_for_status(&job, "COMPLETED");
    for process in &processes {
        let log = process.log();
        assert!(
            !log.contains("permission denied") && !log.contains("row-level"),
            "{}: {log}",
            process.name()
        );
    }
    // Revoked, it is cut off.
    place.run(&["db", "revoke", &logins("worker", "eu")]);
    place.fleet.run(["db", "revoke", &logins("worker", "eu")]).exits(2);
    let job = place.job("both");
    // In the order of groups.
    place.wait("us completed", || place.statuses(&job)[1] == "COMPLETED");
    assert_ne!(place.statuses(&job)[0], "COMPLETED");
}
