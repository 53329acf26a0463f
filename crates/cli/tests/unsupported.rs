//! What is recognised and cannot be read is said, wherever it is, and makes only a strict scan incomplete.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use std::process::Command;
use std::time::Duration;

use common::archive::{gzip, tar, zip};
use common::{KEY, Place, Ran};
use domesday_testkit::wait;
use serde_json::{Value, json};

fn pdf(trailer: &str) -> Vec<u8> {
    format!("%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\nxref\n0 1\ntrailer\n{trailer}\nstartxref\n46\n%%EOF\n")
        .into_bytes()
}

fn open_pdf() -> Vec<u8> {
    pdf("<< /Size 1 /Root 1 0 R >>")
}

fn locked_pdf() -> Vec<u8> {
    pdf("<< /Size 1 /Root 1 0 R /Encrypt 5 0 R >>")
}

fn docx(text: &str) -> Vec<u8> {
    let document = format!("<w:document><w:t>{text}</w:t></w:document>");
    zip(&[
        ("[Content_Types].xml", b"<Types/>", 0),
        ("_rels/.rels", b"<Relationships/>", 0),
        ("word/document.xml", document.as_bytes(), 0),
    ])
}

/// Two documents of a kind, a third, and a text.
fn documents() -> Place {
    let place = Place::new();
    place.file("a.pdf", open_pdf());
    place.file("b.dat", open_pdf());
    place.file("c.docx", docx("nothing"));
    place.file("d.txt", "nothing");
    place
}

#[track_caller]
fn unsupported(report: &Value) -> Value {
    report["summary"]["unsupported"].clone()
}

/// The first scan that reads nothing: objects as young as the last one are not trusted to be as they were.
fn carried(place: &Place) -> Ran {
    let seen = wait::until(Duration::from_secs(60), || {
        let ran = place.scan(&[]).exits(0);
        (ran.json()["summary"]["bytes"]["read"] == 0).then_some(ran)
    });
    seen.expect("a scan that carries everything over").1
}

fn two_pdf_one_docx() -> Value {
    json!([{ "format": "docx", "count": 1 }, { "format": "pdf", "count": 2 }])
}

#[test]
fn three_pdf_one_of_them_locked_and_a_docx_are_named() {
    let place = documents();
    place.file("locked.pdf", locked_pdf());
    let ran = place.scan(&[]).exits(3);
    assert_eq!(
        ran.problems(),
        [
            "tree/locked.pdf encrypted",
            "tree/c.docx unsupported_format",
            "tree/a.pdf unsupported_format",
            "tree/b.dat unsupported_format",
        ]
    );
    assert_eq!(unsupported(&ran.json()), two_pdf_one_docx());
    assert_eq!(ran.counted("partial", "encrypted"), 1);
    assert_eq!(ran.json()["summary"]["complete"], false);
}

#[test]
fn what_is_unsupported_leaves_a_scan_complete() {
    let place = documents();
    let ran = place.scan(&[]).exits(0);
    let summary = &ran.json()["summary"];
    assert_eq!((&summary["status"], &summary["complete"]), (&json!("COMPLETED"), &json!(true)));
    assert_eq!(unsupported(&ran.json()), two_pdf_one_docx());
    let listed = place.run(&["problems", "--state", "state", "--json"]).exits(0).json();
    let rows: Vec<_> =
        listed.as_array().unwrap().iter().map(|row| (&row["path"], &row["status"], &row["detail"])).collect();
    assert_eq!(rows.len(), 3);
    assert!(rows[0].0.as_str().unwrap().ends_with("tree/c.docx"), "{rows:?}");
    assert_eq!((rows[0].1, rows[0].2), (&json!("unsupported"), &json!("docx")));
    let table = place.scan(&["--format", "table"]).exits(0).text();
    assert!(table.contains("unsupported 3: 2 pdf, 1 docx\n"), "{table}");
    assert!(table.contains("tree/c.docx: docx"), "{table}");
    let shown = place.run(&["job", "show", "--state", "state"]).exits(0).json();
    let pdf = json!({ "status": "unsupported", "reason": "unsupported_format", "format": "pdf", "count": 2 });
    assert!(shown["problems"].as_array().unwrap().contains(&pdf), "{shown}");
}

#[test]
fn a_finding_beside_it_is_reported_as_ever() {
    let place = documents();
    place.file("e.pdf", [open_pdf(), format!("\n{KEY}\n").into_bytes()].concat());
    place.file("f.docx", docx(KEY));
    let ran = place.scan(&[]).exits(1);
    assert_eq!(ran.paths(), ["tree/e.pdf", "tree/f.docx!/word/document.xml"]);
    assert_eq!(place.scan(&["--strict"]).exits(3).paths().len(), 2);
}

#[test]
fn sarif_says_it_by_format() {
    let place = documents();
    let sarif = place.scan(&["--format", "sarif"]).exits(0).json();
    let said = sarif["runs"][0]["invocations"][0]["toolExecutionNotifications"].as_array().unwrap();
    assert!(said.iter().all(|said| said["descriptor"]["id"] == "unsupported_format"), "{said:?}");
    let formats: Vec<_> = said.iter().filter_map(|said| said.get("properties")).collect();
    assert_eq!(formats, [&json!({ "format": "docx", "count": 1 }), &json!({ "format": "pdf", "count": 2 })]);
    let named = said
        .iter()
        .filter(|said| said["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].is_string());
    assert_eq!(named.count(), 3);
}

#[test]
fn a_strict_scan_is_incomplete() {
    let place = documents();
    for again in 0..2 {
        let ran = place.scan(&["--strict"]).exits(3);
        let summary = &ran.json()["summary"];
        assert_eq!(
            (&summary["status"], &summary["complete"]),
            (&json!("PARTIALLY_COMPLETED"), &json!(false)),
            "{again}"
        );
        place.run(&["problems", "--state", "state"]).exits(3);
    }
    // It shares what was scanned with one that is not.
    carried(&place);
    let summary = &place.scan(&["--strict"]).exits(3).json()["summary"];
    assert_eq!((&summary["bytes"]["read"], &summary["unsupported"]), (&json!(0), &two_pdf_one_docx()));
    let plain = Place::new();
    plain.file("a.txt", "nothing");
    plain.scan(&["--strict"]).exits(0);
}

#[test]
fn what_has_not_changed_is_said_again() {
    let place = documents();
    let again = carried(&place);
    assert_eq!(unsupported(&again.json()), two_pdf_one_docx());
    assert_eq!(again.problems().len(), 3);
}

#[test]
fn it_counts_the_same_wherever_it_is() {
    let place = Place::new();
    let inner = zip(&[("in/a.pdf", &open_pdf(), 0), ("in/c.docx", &docx("nothing"), 0)]);
    place.file("outer.tar.gz", gzip(&tar(&[("inner.zip", &inner), ("l.pdf", &locked_pdf())])));
    place.file("packed", gzip(&open_pdf()));
    let ran = place.scan(&[]).exits(3);
    assert_eq!(
        ran.problems(),
        [
            "tree/outer.tar.gz!/l.pdf encrypted",
            "tree/outer.tar.gz!/inner.zip!/in/c.docx unsupported_format",
            "tree/outer.tar.gz!/inner.zip!/in/a.pdf unsupported_format",
            "tree/packed unsupported_format",
        ]
    );
    let git = Place::new();
    git.file("docs/a.pdf", open_pdf());
    let run = |args: &[&str]| {
        let mut git_command = Command::new("git");
        let identity = ["-c", "user.name=A", "-c", "user.email=a@example.com"];
        assert!(
            git_command.current_dir(git.tree()).args(identity).args(args).output().unwrap().status.success()
        );
    };
    run(&["init", "-q"]);
    run(&["add", "."]);
    run(&["commit", "-qm", "a"]);
    let ran = git.scan(&[]).exits(0);
    assert_eq!(unsupported(&ran.json()), json!([{ "format": "pdf", "count": 1 }]));
}

/// A repository of two commits, in which a PDF is, and a clone of it that has only the last.
#[test]
fn what_a_clone_does_not_have_is_named_and_problems_have_paths() {
    let place = Place::new();
    let git = |args: &[&str]| {
        let who = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "protocol.file.allow=always"];
        let mut git = Command::new("git");
        git.args(who).args(args).current_dir(place.path(".")).env("GIT_CONFIG_GLOBAL", "/dev/null");
        assert!(git.output().unwrap().status.success(), "{args:?}");
    };
    place.file("docs/a.pdf", open_pdf());
    git(&["-C", "tree", "init", "-q"]);
    git(&["-C", "tree", "add", "-A"]);
    git(&["-C", "tree", "commit", "-q", "-m", "first"]);
    git(&["-C", "tree", "commit", "-q", "--allow-empty", "-m", "second"]);
    let from = format!("file://{}", place.tree().display());
    git(&["clone", "-q", "--bare", "--depth=1", &from, "shallow"]);
    let scan = |args: &[&str]| place.run(&[&["scan", "shallow", "--state", "state"], args].concat());
    let report = scan(&[]).exits(0).json();
    assert_eq!(report["summary"]["complete"], true);
    assert_eq!(report["summary"]["skipped"][0]["reason"], "shallow_history");
    let table = scan(&["--format", "table", "--rescan"]).exits(0).text();
    assert!(table.contains("shallow/shallow history: ") && table.contains("--unshallow"), "{table}");
    let problems = place.run(&["problems", "--state", "state", "--json"]).exits(0).json();
    let is_named = |end: &str| {
        let paths = problems.as_array().unwrap().iter().map(|problem| problem["path"].as_str().unwrap());
        paths.into_iter().any(|path| path.ends_with(end))
    };
    assert!(is_named("/shallow/shallow history") && is_named("/shallow/docs/a.pdf"), "{problems}");
    scan(&["--strict"]).exits(3);
}
