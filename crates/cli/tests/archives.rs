//! Archives and compressed files, known by their content, however nested and however broken.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use common::archive::{ENCRYPTED, bzip2, gzip, tar, xz, zip, zstd};
use common::{KEY, KEY_2, KEY_RULE, Place};

#[test]
fn every_format_is_known_by_its_content() {
    let place = Place::new();
    let text = format!("line one\n{KEY}\n");
    let text = text.as_bytes();
    for (name, content) in [
        ("1.txt", zip(&[("in.txt", text, 0)])),
        ("2.jpg", tar(&[("in.txt", text)])),
        ("3", gzip(text)),
        ("4.zip", bzip2(text)),
        ("5.gz", xz(text)),
        ("6.tar", zstd(text)),
        ("7.bin", gzip(&tar(&[("in.txt", text)]))),
        ("8.bin", zip(&[("deep", &xz(&tar(&[("in.zip", &zip(&[("in.txt", text, 0)]))])), 0)])),
    ] {
        place.file(name, content);
    }
    let ran = place.scan(&[]).exits(1);
    let expected = [
        "tree/1.txt!/in.txt",
        "tree/2.jpg!/in.txt",
        "tree/3",
        "tree/4.zip",
        "tree/5.gz",
        "tree/6.tar",
        "tree/7.bin!/in.txt",
        "tree/8.bin!/deep!/in.zip!/in.txt",
    ];
    assert_eq!(ran.found(), expected.map(|path| format!("{path}:2:1 {KEY_RULE}")));
}

#[test]
fn a_location_leads_through_every_container() {
    let place = Place::new();
    let env = format!("{}A_KEY={KEY}\n", "# comment\n".repeat(11));
    let config = gzip(&tar(&[("app/.env", env.as_bytes())]));
    place.file("backup.zip", zip(&[("src/config.tar.gz", &config, 0)]));
    let table = place.scan(&["--format", "table"]).exits(1).text();
    assert!(table.contains("backup.zip!/src/config.tar.gz!/app/.env"), "{table}");
    assert!(table.contains("12:7"), "{table}");
    let ran = place.scan(&[]).exits(1);
    assert_eq!(ran.found(), [format!("tree/backup.zip!/src/config.tar.gz!/app/.env:12:7 {KEY_RULE}")]);
}

#[test]
fn entries_of_one_name_are_objects_of_their_own() {
    let place = Place::new();
    let first = format!("first {KEY}");
    let second = format!("the second {KEY}");
    place.file("a.zip", zip(&[("same", first.as_bytes(), 0), ("same", second.as_bytes(), 0)]));
    place.file("b.tar", tar(&[("same", first.as_bytes()), ("same", second.as_bytes())]));
    let ran = place.scan(&[]).exits(1);
    let report = ran.json();
    let found = report["findings"].as_array().unwrap();
    assert_eq!(found.len(), 4);
    let ordinals: Vec<_> =
        found.iter().map(|found| found["nested"][0]["ordinal"].as_u64().unwrap()).collect();
    assert_ne!(ordinals[0], ordinals[1]);
    assert_ne!(ordinals[2], ordinals[3]);
    assert_ne!(found[0]["finding"], found[1]["finding"]);
    assert_eq!(report["summary"]["objects"]["nested"], 4);
}

#[test]
fn what_cannot_be_unpacked_is_named_and_the_rest_is_reported() {
    let place = Place::new();
    place.file(
        "encrypted.zip",
        zip(&[
            ("open.txt", KEY.as_bytes(), 0),
            ("closed.txt", b"................", ENCRYPTED),
            ("after.txt", KEY_2.as_bytes(), 0),
        ]),
    );
    // Incompressible after the key, so that cutting it leaves the key readable.
    let noise: Vec<u8> =
        (0..200_000u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8).collect();
    let packed = gzip(&[format!("{KEY}\n").as_bytes(), &noise].concat());
    place.file("cut.gz", &packed[..packed.len() / 2]);
    let archive = tar(&[("one.txt", KEY.as_bytes()), ("two.bin", &noise)]);
    place.file("cut.tar", &archive[..archive.len() / 2]);
    let ran = place.scan(&[]).exits(3);
    assert_eq!(
        ran.paths(),
        [
            "tree/cut.gz",
            "tree/cut.tar!/one.txt",
            "tree/encrypted.zip!/open.txt",
            "tree/encrypted.zip!/after.txt"
        ]
    );
    let problems = ran.problems();
    assert!(problems.contains(&"tree/encrypted.zip!/closed.txt encrypted".to_owned()), "{problems:?}");
    assert!(
        problems
            .iter()
            .any(|problem| problem.starts_with("tree/cut.gz") && problem.ends_with("damaged_archive"))
    );
    assert!(
        problems
            .iter()
            .any(|problem| problem.starts_with("tree/cut.tar") && problem.ends_with("damaged_archive"))
    );
    assert_eq!(ran.json()["summary"]["complete"], false);
    // All of them, by name, also later.
    let listed = place.run(&["problems", "--state", "state"]).exits(3);
    assert_eq!(listed.json().as_array().unwrap().len(), problems.len());
}

#[test]
fn bombs_are_cut_short_by_their_budgets() {
    let place = Place::new();
    // Fourteen levels of archives, with a key on each.
    let mut nested = b"innermost".to_vec();
    for _ in 0..14 {
        nested = zip(&[("key.txt", KEY.as_bytes(), 0), ("next.zip", &nested, 0)]);
    }
    place.file("deep.zip", nested);
    // Many thousand times its packed size.
    let zeros = [format!("{KEY}\n").as_bytes(), &vec![0; 192 << 20]].concat();
    place.file("wide.xz", xz(&zeros));
    let ran = place.scan(&[]).exits(3);
    let reasons: Vec<String> = ran.problems();
    assert!(
        reasons
            .iter()
            .any(|problem| problem.starts_with("tree/deep.zip") && problem.ends_with("depth_limit")),
        "{reasons:?}"
    );
    assert!(
        reasons.iter().any(|problem| problem.starts_with("tree/wide.xz") && problem.ends_with("ratio_limit")),
        "{reasons:?}"
    );
    let paths = ran.paths();
    assert!(paths.contains(&"tree/wide.xz".to_owned()), "{paths:?}");
    let deep = paths.iter().filter(|path| path.starts_with("tree/deep.zip")).count();
    assert!((8..14).contains(&deep), "{deep} levels were read");
}
