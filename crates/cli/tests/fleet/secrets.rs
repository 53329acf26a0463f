//! What must be nowhere: the fingerprint key, the database's password, and the values that were found.

use std::fs;

use crate::common::KEY;
use crate::place::{FINGERPRINT_KEY, PASSWORD, Place};

#[test]
fn secrets_are_in_no_log_no_table_and_no_command_line() {
    let place = Place::new();
    let tree = place.tree("tree", 30);
    place.source("tree", "eu", &tree, &[]);
    place.template("all", &["tree"]);
    let job = place.job("all");
    let debug = ["--log", "debug"];
    let processes = [
        place.fleet.orchestrator("orchestrator", "eu", &debug),
        place.fleet.worker("worker", "eu", &[&["--slots", "2"], &debug[..]].concat()),
        // One that cannot reach the database complains, and does not quote the URL.
        {
            let mut command = place.fleet.command(["orchestrator", "--node-group", "eu", "--log", "debug"]);
            command.env(
                "DOMESDAY_STORE",
                format!("postgresql://postgres:{PASSWORD}@localhost:1/x?sslmode=disable"),
            );
            place.fleet.start("unreachable", command)
        },
    ];
    place.wait_for_status(&job, "COMPLETED");
    place.wait("a complaint", || !processes[2].log().is_empty());
    let status = place.run(&["status"]);
    let mut places = vec![("the book".to_owned(), place.dump()), ("the status".to_owned(), status)];
    for process in &processes {
        let arguments = fs::read(format!("/proc/{}/cmdline", process.id())).unwrap_or_default();
        places.push((
            format!("arguments of {}", process.name()),
            String::from_utf8_lossy(&arguments).into_owned(),
        ));
    }
    for entry in fs::read_dir(place.fleet.folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let said = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            places.push((path.display().to_string(), said));
        }
    }
    assert!(places.iter().any(|(_, text)| text.contains("COMPLETED")), "nothing was looked at");
    for (name, text) in places {
        for secret in [FINGERPRINT_KEY, PASSWORD, KEY] {
            assert!(!text.contains(secret), "{secret} is in {name}");
        }
    }
}
