//! What is reported of a finding, and what never is.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use common::archive::{gzip, tar, zip};
use common::{KEY, KEY_2, KEY_RULE, Place, Ran, bytes_in, contains, run, text};
use domesday_testkit::feed;

/// Occurrences of a rule in an object that are listed; the rest is counted.
const OCCURRENCE_CAP: u64 = 1_000;

#[test]
fn a_finding_has_line_column_and_span() {
    let place = Place::new();
    place.file("a.txt", format!("first\r\nünï\u{1f600}: {KEY} and {KEY_2}\n\n{KEY}"));
    let ran = place.scan(&[]).exits(1);
    assert_eq!(
        ran.found(),
        [
            format!("tree/a.txt:2:7 {KEY_RULE}"),
            format!("tree/a.txt:2:32 {KEY_RULE}"),
            format!("tree/a.txt:4:1 {KEY_RULE}"),
        ]
    );
    let report = ran.json();
    let spans: Vec<_> = report["findings"].as_array().unwrap().iter().map(|found| &found["span"]).collect();
    // In bytes: `ü` and `ï` take two each, the face four.
    assert_eq!(*spans[0], serde_json::json!({ "start": 18, "end": 38 }));
    assert_eq!(*spans[1], serde_json::json!({ "start": 43, "end": 63 }));
    assert_eq!(*spans[2], serde_json::json!({ "start": 65, "end": 85 }));
}

#[test]
fn every_occurrence_is_listed_up_to_the_cap_and_counted_beyond() {
    let place = Place::new();
    place.file("a.txt", format!("{KEY}\n").repeat(1_234));
    let ran = place.scan(&[]);
    let report = ran.json();
    assert_eq!(report["findings"].as_array().unwrap().len() as u64, OCCURRENCE_CAP);
    assert_eq!(report["summary"]["findings"]["overflow"], 234);
    assert_eq!(report["findings"][999]["line"], 1_000);
    // Which is complete: the value, the file and the number are all known.
    ran.exits(1);
}

#[test]
fn the_order_does_not_depend_on_threads() {
    let place = Place::new();
    for index in 0..200 {
        place.file(
            format!("{:02}/{index}.txt", index % 17),
            format!("{KEY}\ncard 4539 5787 6362 1486\n{KEY_2}\n"),
        );
    }
    place.file("z.zip", zip(&[("b.txt", KEY.as_bytes(), 0), ("a.txt", KEY_2.as_bytes(), 0)]));
    let found = |jobs: &str| place.scan(&["--format", "jsonl", "--jobs", jobs]).exits(1).text();
    let one = found("1");
    assert_eq!(one.lines().count(), 602);
    assert_eq!(one, found("7"));
    assert_eq!(one, found("2"));
}

#[test]
fn raw_values_are_nowhere_unless_asked_for() {
    let place = Place::new();
    let card = "4539 5787 6362 1486";
    place.file("a.txt", format!("key {KEY}\ncard {card}\n"));
    place.file("b.zip", zip(&[("in/c.txt.gz", &gzip(KEY_2.as_bytes()), 0)]));
    let values = [KEY, KEY_2, card];
    for format in ["json", "jsonl", "csv", "sarif", "table"] {
        let ran = place.scan(&["--format", format, "--log", "trace", "--fresh"]).exits(1);
        for value in values {
            assert!(!contains(&ran.out, value) && !ran.err.contains(value), "{format}: {value}");
        }
    }
    let shown = place.scan(&["--show-values"]).exits(1);
    assert_eq!(found_values(&shown), values_in_order(&[KEY, card, KEY_2]));
    let kept = bytes_in(&place.state());
    assert!(!kept.is_empty());
    for value in values {
        assert!(!contains(&kept, value), "{value} is in the state folder");
    }
}

#[test]
fn values_are_shown_exactly_wherever_they_are() {
    let place = Place::new();
    let inner = tar(&[("app/.env", format!("\nKEY={KEY}\n").as_bytes()), ("app/.env", KEY_2.as_bytes())]);
    place.file("backup.zip", zip(&[("src/config.tar.gz", &gzip(&inner), 0)]));
    place.file("plain.txt", format!("{KEY} {KEY_2} {KEY}"));
    let ran = place.scan(&["--show-values"]).exits(1);
    assert_eq!(found_values(&ran), values_in_order(&[KEY, KEY_2, KEY, KEY_2, KEY]));
    for format in ["table", "csv", "jsonl"] {
        let shown = place.scan(&["--show-values", "--format", format]).exits(1).text();
        assert_eq!(shown.matches(KEY).count(), 3, "{format}: {shown}");
    }
}

#[test]
fn standard_input_is_a_target() {
    let place = Place::new();
    let input = format!("x\n{KEY}\n");
    for (content, decoding) in [
        (input.clone().into_bytes(), serde_json::json!([])),
        (gzip(input.as_bytes()), serde_json::json!(["gzip"])),
    ] {
        let ran = scan_input(&place, &content, &["--show-values"]).exits(1);
        assert_eq!(ran.found(), [format!("stdin:2:1 {KEY_RULE}")]);
        assert_eq!(ran.json()["findings"][0]["decoding"], decoding);
        assert_eq!(found_values(&ran), [KEY]);
    }
    let archive = zip(&[("a.txt", KEY.as_bytes(), 0)]);
    assert_eq!(scan_input(&place, &archive, &[]).exits(1).found(), [format!("stdin!/a.txt:1:1 {KEY_RULE}")]);
    let empty = scan_input(&place, b"", &[]).exits(0);
    assert_eq!(empty.json()["summary"]["objects"]["done"], 1);
    assert!(!contains(&bytes_in(&place.state()), KEY));
}

#[test]
fn a_line_can_be_marked_as_known() {
    let place = Place::new();
    place.file("a.py", format!("a = '{KEY}'  # domesday:ignore\nb = '{KEY_2}'\n"));
    assert_eq!(place.scan(&[]).exits(1).found(), [format!("tree/a.py:2:6 {KEY_RULE}")]);
}

#[test]
fn findings_of_a_past_scan_can_be_filtered() {
    let place = Place::new();
    place.file("a.txt", format!("key {KEY}\ncard 4539 5787 6362 1486\n"));
    let scanned = place.scan(&[]).exits(1);
    let findings = |args: &[&str]| run(place.command(["findings", "--state", "state"]).args(args));
    assert_eq!(findings(&[]).exits(1).json()["findings"].as_array().unwrap().len(), 2);
    assert_eq!(findings(&["--rule", KEY_RULE]).exits(1).found().len(), 1);
    assert_eq!(findings(&["--category", "payment"]).exits(1).found().len(), 1);
    assert_eq!(findings(&["--level", "high"]).exits(1).json()["findings"][0]["category"], "payment");
    assert_eq!(findings(&["--category", "health"]).exits(0).found().len(), 0);
    let id = text(&scanned.json()["job"]["id"]);
    assert_eq!(findings(&["--job", &id[..8]]).exits(1).found().len(), 2);
    findings(&["--job", "zzz"]).fails_saying(&["there is no job zzz", "domesday jobs"]);
    findings(&["--category", "nonsense"]).fails_saying(&["nonsense"]);
}

fn scan_input(place: &Place, input: &[u8], args: &[&str]) -> Ran {
    let mut command = place.command(["scan", "-", "--state", "state"]);
    feed(command.args(args), input).unwrap().into()
}

fn found_values(ran: &Ran) -> Vec<String> {
    ran.json()["findings"].as_array().unwrap().iter().map(|found| text(&found["value"])).collect()
}

fn values_in_order(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| (*value).to_owned()).collect()
}
