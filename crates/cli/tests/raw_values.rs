//! Markers in every place that data can come from, and where they may be found again: nowhere but in names.
//!
//! A marker is a value that no rule knows. What is looked through: every byte of the state folder (tables, free pages, log),
//! the dump of a fleet's database, the log at its most talkative, and reports of all formats. See "Raw values" in
//! docs/security.md.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use std::fs;

use common::{KEY, Place, Ran, bytes_in, contains};
use domesday_testkit::http::{Response, Server};
use rusqlite::Connection;

/// Values that must be nowhere.
const KEY_OF_ROW: &str = "mrk1-primary-key";
const COMMENT: &str = concat!("gh", "p_mrk2comment0123456789abcdef");
const LINK: &str = "mrk3linktoken";
const TYPED: &str = "mrk4typedtoken";
const REDIRECT: &str = "mrk5redirecttoken";
const HEADER: &str = "mrk6-header";
const ALLOWED: &str = "mrk7-allowed-value";
const FILE_NAME: &str = "mrk8filetoken";
const BODY: &str = "mrk9-body-of-an-error";
const ENTRY_NAME: &str = "mrk10entrytoken";
/// A name is a name: the product shows it.
const COLUMN: &str = "mrkcolumn";

const FORMATS: [&str; 4] = ["json", "csv", "sarif", "table"];

/// Whether none of the markers is in any of these.
#[track_caller]
fn check_none(markers: &[&str], places: &[(&str, Vec<u8>)]) {
    for (name, bytes) in places {
        for marker in markers {
            assert!(!contains(bytes, marker), "{marker} is in {name}:\n{}", around(bytes, marker));
        }
    }
}

fn around(bytes: &[u8], marker: &str) -> String {
    let at = bytes.windows(marker.len()).position(|window| window == marker.as_bytes()).unwrap();
    String::from_utf8_lossy(&bytes[at.saturating_sub(200)..(at + 200).min(bytes.len())]).into_owned()
}

/// All that is left of a scan.
fn places(place: &Place, ran: Ran) -> Vec<(&'static str, Vec<u8>)> {
    let mut places = vec![("the log", ran.err.into_bytes()), ("the report", ran.out)];
    for format in FORMATS {
        let report = place.run(&["findings", "--state", "state", "--format", format]);
        places.push((format, [report.out, report.err.into_bytes()].concat()));
    }
    for command in
        [["problems", "--state", "state"], ["catalog", "--state", "state"], ["jobs", "--state", "state"]]
    {
        let ran = place.run(&command);
        places.push(("a list", [ran.out, ran.err.into_bytes()].concat()));
    }
    for command in [["target", "list"], ["session", "list"]] {
        let ran = place.run(&[&command[..], &["--state", "state"]].concat());
        places.push(("a list", [ran.out, ran.err.into_bytes()].concat()));
    }
    places.push(("the state folder", bytes_in(&place.state())));
    places
}

/// A table with keys that are data, larger than a range.
fn database(place: &Place) {
    let mut connection = Connection::open(place.path("app.db")).unwrap();
    let table = format!("CREATE TABLE people (who TEXT PRIMARY KEY, {COLUMN} TEXT) WITHOUT ROWID");
    connection.execute(&table, []).unwrap();
    let transaction = connection.transaction().unwrap();
    for row in 0..500 {
        let key = format!("{KEY_OF_ROW}-{row:04}");
        let note = if row % 50 == 0 { KEY } else { "nothing" };
        transaction.execute("INSERT INTO people VALUES (?1, ?2)", [key.as_str(), note]).unwrap();
    }
    transaction.commit().unwrap();
}

const FULL: [&str; 4] = ["--set", "mode=full", "--set", "part_rows=100"];

#[test]
fn keys_of_rows_are_nowhere_and_the_scan_still_goes_on_from_them() {
    let place = Place::new();
    database(&place);
    let args =
        [&["scan", "sqlite:app.db", "--state", "state", "--format", "json", "--log", "trace"], &FULL[..]]
            .concat();
    let ran = place.run(&args).exits(1);
    let report = ran.json();
    let findings = report["findings"].as_array().unwrap();
    let of_key: Vec<_> =
        findings.iter().filter(|found| found["path"].as_str().unwrap().ends_with(COLUMN)).collect();
    assert_eq!(of_key.len(), 10, "{findings:?}");
    let row = of_key[0]["row"].as_str().unwrap();
    assert!(row.contains("****") && row.contains('~'), "{row}");
    check_none(&[KEY_OF_ROW, KEY], &places(&place, ran));
    // Whoever may read the rows is told which they are.
    let shown = place.run(&[&args[..], &["--show-values", "--fresh", "--rescan"]].concat()).exits(1);
    let rows: Vec<_> =
        shown.json()["findings"].as_array().unwrap().iter().map(|found| found["row"].clone()).collect();
    assert!(rows.iter().any(|row| row == &format!("{KEY_OF_ROW}-0050")), "{rows:?}");
    check_none(&[KEY_OF_ROW], &[("the state folder", bytes_in(&place.state()))]);
}

#[test]
fn secrets_in_addresses_are_nowhere_and_are_still_sent() {
    let server = Server::start(|request| match request.path() {
        "/" => Response::ok(format!(
            "<a href='/page?token={LINK}&n=1'>a</a><a href='/away'>b</a><a href='/gone'>c</a>"
        ))
        .header("Content-Type", "text/html"),
        "/page" if request.query("token") == Some(LINK) => Response::ok(format!("{KEY}\n")),
        "/away" => Response::status(302).header("Location", format!("/there?sig={REDIRECT}")),
        "/there" => Response::ok("text").header("Content-Encoding", HEADER),
        "/gone" => Response::status(500).body(BODY).header("X-Error", HEADER),
        _ => Response::status(404),
    });
    let place = Place::new();
    let address = server.url(&format!("/?magic={TYPED}"));
    let args = [
        "scan",
        &address,
        "--crawl",
        "2",
        "--allow-private",
        "--state",
        "state",
        "--format",
        "json",
        "--log",
        "trace",
    ];
    let ran = place.run(&args);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    let found = ran.paths();
    assert!(
        found.len() == 1 && found[0].contains("/page?token=~sealed.") && found[0].ends_with("&n=1"),
        "{found:?}"
    );
    assert!(server.requests().iter().any(|request| request.target == format!("/?magic={TYPED}")));
    let markers = [LINK, TYPED, REDIRECT, HEADER, BODY, KEY];
    check_none(&markers, &places(&place, ran));
    // Values are had from the very address that the link led to.
    let shown = place.run(&[&args[..], &["--show-values", "--fresh"]].concat());
    assert_eq!(shown.json()["findings"][0]["value"], KEY, "{}", shown.err);
    check_none(&markers, &[("the state folder", bytes_in(&place.state()))]);
}

#[test]
fn tokens_in_names_and_allowed_values_are_nowhere() {
    let place = Place::new();
    place.file(format!("dir?token={FILE_NAME}/a.txt?sig={FILE_NAME}"), KEY);
    place.file(format!("{COMMENT}.txt"), KEY);
    let entry = format!("in?token={ENTRY_NAME}.txt");
    place.file("a.tar", common::archive::tar(&[(entry.as_str(), KEY.as_bytes())]));
    let allow = format!(
        "[[allow]]\nvalues = [\"{ALLOWED}\"]\nregexes = ['^{ALLOWED}$']\nstopwords = [\"{ALLOWED}\"]\n"
    );
    fs::write(place.path("own.toml"), allow).unwrap();
    let ran = place.scan(&["--rules", "own.toml", "--format", "json", "--log", "trace"]).exits(1);
    assert_eq!(ran.found().len(), 3, "{:?}", ran.found());
    check_none(&[ALLOWED, FILE_NAME, ENTRY_NAME, COMMENT, KEY], &places(&place, ran));
}
