//! What a finding means and why it is one: sensitivity, regulations, explanations, and rules tried on a sample.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use std::fs;

use common::{KEY, KEY_RULE, Place, Ran, contains, text};
use domesday_testkit::feed;

const CARD: &str = "4539 5787 6362 1486";

/// A key, a card and an address, which are ever less sensitive.
fn place() -> Place {
    let place = Place::new();
    place.file("a.env", format!("key {KEY}\ncard {CARD}\ne-mail ann.lee@corp-acme.com\n"));
    place
}

fn rules_of(ran: &Ran) -> Vec<String> {
    ran.json()["findings"].as_array().unwrap().iter().map(|found| text(&found["rule"])).collect()
}

#[test]
fn findings_say_how_sensitive_they_are_and_whom_they_concern() {
    let place = place();
    let report = place.scan(&["--quiet"]).exits(1).json();
    let classes: Vec<_> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| (text(&found["rule"]), text(&found["sensitivity"]), found["regulations"].to_string()))
        .collect();
    let class = |rule: &str, sensitivity: &str, regulations: &str| {
        (rule.to_owned(), sensitivity.to_owned(), regulations.to_owned())
    };
    assert_eq!(
        classes,
        [
            class(KEY_RULE, "high", r#"["ISO-27001"]"#),
            class("payment-card", "high", r#"["CCPA","GDPR","PCI-DSS"]"#),
            class("email-address", "moderate", r#"["CCPA","GDPR"]"#),
        ]
    );
    let counts = &report["summary"]["findings"];
    assert_eq!(counts["by_sensitivity"], serde_json::json!({ "high": 2, "moderate": 1 }));
    assert_eq!(counts["by_regulation"]["GDPR"], 2);
    let table = place.scan(&["--format", "table"]).exits(1).text();
    assert!(table.contains("2 high, 1 moderate sensitivity"), "{table}");
}

#[test]
fn reports_are_filtered_with_their_counts_and_exit_codes() {
    let place = place();
    assert_eq!(rules_of(&place.scan(&["--sensitivity", "high"]).exits(1)), [KEY_RULE, "payment-card"]);
    let none = place.scan(&["--sensitivity", "critical"]).exits(0);
    assert_eq!(none.json()["summary"]["findings"]["total"], 0);
    // What was scanned with a filter is all in the book.
    let findings = |args: &[&str]| place.run(&[&["findings", "--state", "state"], args].concat());
    assert_eq!(rules_of(&findings(&[]).exits(1)), [KEY_RULE, "payment-card", "email-address"]);
    assert_eq!(rules_of(&findings(&["--regulation", "pci-dss"]).exits(1)), ["payment-card"]);
    assert_eq!(
        rules_of(&findings(&["--regulation", "GDPR", "--sensitivity", "high"]).exits(1)),
        ["payment-card"]
    );
    findings(&["--regulation", "HIPAA"]).exits(0);
    findings(&["--regulation", "GPDR"]).fails_saying(&["no rule of this scan concerns GPDR", "GDPR"]);
    findings(&["--regulation", "a b"]).fails_saying(&["cannot name a regulation"]);
    findings(&["--sensitivity", "secret"]).fails_saying(&["low, moderate, high, critical"]);
}

#[test]
fn a_rule_of_ones_own_says_what_it_means() {
    let place = Place::new();
    place.file("a.txt", "badge: acme_k3j5h2g9f8d7\n");
    let rule = |fields: &str| {
        let text = format!(
            "[[rule]]\nid = 'acme-badge'\ndescription = 'ACME badge'\ncategory = 'personal'\n\
             regex = '\\bacme_[a-z0-9]{{12}}\\b'\nscore = 90\n\
             positive = ['acme_k3j5h2g9f8d7', 'acme_q8w7e6r5t4z3']\nnegative = ['acme_', 'acme_k3']\n{fields}\n"
        );
        fs::write(place.path("own.toml"), text).unwrap();
    };
    rule("sensitivity = 'critical'\nregulations = ['ACME-7']");
    place.run(&["rules", "check", "own.toml"]).exits(0);
    let found = &place.scan(&["--rules", "own.toml"]).exits(1).json()["findings"][0];
    assert_eq!(
        (&found["sensitivity"], &found["regulations"]),
        (&"critical".into(), &serde_json::json!(["ACME-7"]))
    );
    // Later reports have it from the book.
    fs::remove_file(place.path("own.toml")).unwrap();
    let later = place.run(&["findings", "--state", "state", "--regulation", "acme-7"]).exits(1);
    assert_eq!(rules_of(&later), ["acme-badge"]);
    // A change of it alone shows, too.
    rule("sensitivity = 'low'");
    place.scan(&["--rules", "own.toml"]).exits(1);
    let later = place.run(&["findings", "--state", "state"]).exits(1).json();
    assert_eq!(later["findings"][0]["sensitivity"], "low");
    rule("sensitivity = 'secret'");
    place.scan(&["--rules", "own.toml"]).fails_saying(&["own.toml:9", "is not a sensitivity"]);
}

#[test]
fn rules_are_listed_and_shown_with_their_class() {
    let place = Place::new();
    let listed = place.run(&["rules", "list", "--json"]).exits(0).json();
    let card = listed.as_array().unwrap().iter().find(|rule| rule["id"] == "payment-card").unwrap().clone();
    assert_eq!((&card["sensitivity"], &card["regulations"][2]), (&"high".into(), &"PCI-DSS".into()));
    let shown = place.run(&["rules", "show", "payment-card"]).exits(0).text();
    for word in ["sensitivity", "PCI-DSS: Payment Card Industry Data Security Standard; requirement 3"] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
}

#[test]
fn an_explanation_has_score_and_reasons_and_no_value() {
    let place = place();
    let explained = place.scan(&["--format", "table", "--explain"]).exits(1).text();
    for words in [
        "what         AWS access key id",
        "because      75 format matches",
        "+20 ",
        "fingerprint  ",
        "regulations  ",
    ] {
        assert!(explained.contains(words), "{words}: {explained}");
    }
    assert!(!explained.contains(KEY) && !explained.contains(CARD), "{explained}");
    let findings =
        place.run(&["findings", "--state", "state", "--format", "table", "--explain"]).exits(1).text();
    assert!(findings.contains("because      75 format matches"), "{findings}");
    let plain = place.scan(&["--format", "table"]).exits(1).text();
    assert!(!plain.contains("because"), "{plain}");
}

#[test]
fn rules_test_tells_what_each_rule_says_of_a_sample() {
    let place = place();
    place.file(
        "lines.txt",
        format!("ü password = \"{KEY}\"\ncard 4539 5787 6362 1487\n{KEY} domesday:ignore\npassword = \"changeme\"\n"),
    );
    let ran = place.run(&["rules", "test", "tree/lines.txt"]).exits(0);
    let said: Vec<_> = ran
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|said| {
            let by = said.get("by").map(|by| format!(" by {}", text(by))).unwrap_or_default();
            format!(
                "{}:{} {} {}{by}",
                said["line"],
                said["column"],
                text(&said["rule"]),
                text(&said["verdict"])
            )
        })
        .collect();
    for expected in [
        format!("1:15 {KEY_RULE} reported"),
        format!("1:15 generic-password-quoted displaced by {KEY_RULE}"),
        "2:6 payment-card refused by card".to_owned(),
        format!("3:1 {KEY_RULE} ignored"),
        "4:13 generic-password-quoted low".to_owned(),
    ] {
        assert!(said.contains(&expected), "{expected}: {said:#?}");
    }
    let json = ran.json();
    let key = json.as_array().unwrap().iter().find(|said| said["verdict"] == "reported").unwrap();
    assert_eq!((&key["score"], &key["reasons"][0]), (&75.into(), &"75 format matches".into()));
    assert_eq!(key["sensitivity"], "high");
    assert!(!contains(&ran.out, KEY), "{}", ran.text());

    let one = place.run(&["rules", "test", "tree/lines.txt", "--rule", KEY_RULE, "--show-values"]).exits(0);
    let one = one.json();
    assert!(
        one.as_array().unwrap().iter().all(|said| said["rule"] == KEY_RULE && said["value"] == KEY),
        "{one}"
    );
    assert_eq!(one.as_array().unwrap().len(), 2);
}

#[test]
fn rules_test_reads_standard_input_and_fails_on_what_it_cannot_read() {
    let place = Place::new();
    let ran: Ran = feed(&mut place.command(["rules", "test", "-"]), KEY.as_bytes()).unwrap().into();
    assert_eq!(ran.exits(0).json()[0]["rule"], KEY_RULE);
    place.run(&["rules", "test", "missing.txt"]).fails_saying(&["cannot read the sample missing.txt"]);
    place.run(&["rules", "test", "tree"]).fails_saying(&["cannot read the sample tree"]);
    place.file("a.txt", "x");
    place
        .run(&["rules", "test", "tree/a.txt", "--rule", "nonsense"])
        .fails_saying(&["there is no rule `nonsense`"]);
    assert_eq!(place.run(&["rules", "test", "tree/a.txt"]).exits(0).text(), "[\n]\n");
    place.file("large.txt", vec![b'x'; 4 * 1024 * 1024 + 1]);
    place.run(&["rules", "test", "tree/large.txt"]).fails_saying(&["more than 4194304 bytes"]);
}
