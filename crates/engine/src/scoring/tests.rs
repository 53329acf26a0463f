//! Scores and their reasons.

use super::*;
use crate::rules::{RuleSet, RuleSource};

fn rule(extra: &str) -> Rule {
    let text = format!(
        "[[rule]]\nid = 'r'\ndescription = 'd'\ncategory = 'secret'\nregex = 'value_[a-z0-9]{{4,40}}'\nscore = 60\n\
         positive = ['a', 'b']\nnegative = ['c', 'd']\n{extra}"
    );
    let set =
        RuleSet::load(&[RuleSource { name: "t".into(), text }]).unwrap_or_else(|errors| panic!("{errors}"));
    set.rules()[0].clone()
}

/// Judges the part of `text` between `[` and `]`.
fn check(extra: &str, text: &str, expected: Option<(u8, &str)>) {
    let start = text.find('[').unwrap();
    let bytes = text.replace(['[', ']'], "");
    let span = start..text.find(']').unwrap() - 1;
    let judged = judge(&rule(extra), bytes.as_bytes(), span, false, Score(0));
    let judged = judged.map(|(score, reasons)| (score.0, reasons.to_string()));
    assert_eq!(judged, expected.map(|(score, reasons)| (score, reasons.to_owned())), "{text}");
}

#[test]
fn a_bare_match_has_its_base_score() {
    check("", "x [k3v9q] y", Some((60, "format matches")));
}

#[test]
fn context_words_are_whole_words_in_reach() {
    let card = "context = { words = ['card', 'credit card'], boost = 25, within = 12 }";
    check(card, "card [k3v9q]", Some((85, "keyword `card` near")));
    check(card, "CARD_no [k3v9q]", Some((85, "keyword `card` near")));
    check(card, "myCardNo [k3v9q]", Some((85, "keyword `card` near")));
    check(card, "[k3v9q] is my card", Some((85, "keyword `card` near")));
    check(card, "discard [k3v9q]", Some((60, "format matches")));
    check(card, "cardio [k3v9q]", Some((60, "format matches")));
    check(card, "card ............ [k3v9q]", Some((60, "format matches")));
    let phrase = "context = { words = ['access key'] }";
    check(phrase, "access-key [k3v9q]", Some((80, "keyword `access key` near")));
}

#[test]
fn required_context_caps_the_score_when_missing() {
    let required = "context = { words = ['pin'], boost = 30, required = true }";
    check(required, "pin [k3v9q]", Some((90, "keyword `pin` near")));
    check(required, "spin [k3v9q]", Some((40, "no keyword near")));
}

#[test]
fn validators_refuse_or_add() {
    let entropy = "validators = [{ name = 'entropy', min = 2.0 }]";
    check(entropy, "[aaaabbbb]", None);
    check(entropy, "[k3v9qzx1]", Some((65, "high entropy")));
    let distinct = "validators = [{ name = 'distinct', min = 4 }]";
    check(distinct, "[aabbccaa]", None);
    check(distinct, "[aabbccda]", Some((60, "format matches")));
    let stopwords = "validators = ['stopwords']";
    check(stopwords, "[my_secret_password1]", None);
    check(stopwords, "[mySecretToken]", None);
    check(stopwords, "[secretsauce9]", Some((60, "format matches")));
    check("validators = [{ name = 'stopwords', words = ['sauce'] }]", "[secret-sauce]", None);
    check("validators = ['luhn']", "[4111111111111111]", Some((80, "check digit valid")));
    check("validators = ['luhn']", "[4111111111111112]", None);
}

#[test]
fn placeholders_stay_low() {
    check("", "[AKIAIOSFODNN7EXAMPLE]", Some((30, "looks like a placeholder")));
    check("", "[xxxxxxxxxxxx]", Some((30, "looks like a placeholder")));
}

#[test]
fn sample_files_lose_a_little() {
    assert!(is_sample_path(b"src/tests/keys.rs") && is_sample_path(b"a\\Fixtures\\x"));
    assert!(!is_sample_path(b"src/latest/contest.rs") && !is_sample_path(b""));
    let (score, reasons) = judge(&rule(""), b"k3v9q", 0..5, true, Score(0)).unwrap();
    assert_eq!((score.0, reasons.to_string().as_str()), (50, "in a test or sample file"));
}

#[test]
fn an_ignore_comment_covers_its_line_and_its_rule() {
    let ignored = |text: &str| {
        let at = text.find("VAL").unwrap();
        is_ignored(text.as_bytes(), at..at + 3, "my-rule", |id| id == "my-rule" || id == "plain")
    };
    for yes in [
        "x = VAL # domesday:ignore",
        "/* domesday:ignore */ x = VAL",
        "VAL <!-- domesday:ignore -->",
        "VAL // domesday:ignore my-rule",
        "VAL // domesday:ignore: my-rule because",
        "VAL // domesday:ignore this is fake",
        "VAL domesday:ignore other-rule domesday:ignore my-rule",
    ] {
        assert!(ignored(yes), "{yes}");
    }
    for no in [
        "x = VAL\n# domesday:ignore",
        "# domesday:ignore\nx = VAL",
        "VAL // domesday:ignore other-rule",
        "VAL // domesday:ignore plain",
        "VAL // domesday: ignore",
    ] {
        assert!(!ignored(no), "{no}");
    }
}

#[test]
fn entropy_of_known_values() {
    assert_eq!(value::entropy(b"aaaa"), 0.0);
    assert_eq!(value::entropy(b"abcd"), 2.0);
    assert_eq!(value::entropy(b""), 0.0);
}
