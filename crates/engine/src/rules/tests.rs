//! Loading: what is refused, with which line and remedy, and what the hash depends on.

use super::*;

const GOOD: &str = r#"
[[rule]]
id = "acme-token"
description = "Acme token"
category = "secret"
regex = '''\b(?P<value>acme_[0-9a-z]{20})\b'''
positive = ["a", "b"]
negative = ["c", "d"]
"#;

fn source(name: &str, text: &str) -> RuleSource {
    RuleSource { name: name.to_owned(), text: text.to_owned() }
}

fn load(text: &str) -> Result<RuleSet, RuleErrors> {
    RuleSet::load(&[source("my.toml", text)])
}

/// The good rule with one line replaced, or added at the end.
fn with(field: &str, line: &str) -> String {
    let mut lines: Vec<&str> = GOOD.lines().collect();
    match lines.iter().position(|old| old.starts_with(&format!("{field} ="))) {
        Some(at) => lines[at] = line,
        None => lines.push(line),
    }
    lines.join("\n")
}

fn check(text: &str, expected: &[&str]) {
    let errors = load(text).expect_err(text).to_string();
    assert_eq!(errors.lines().collect::<Vec<_>>(), expected, "{text}");
}

#[test]
fn a_good_rule_is_read_with_its_defaults() {
    let set = load(GOOD).unwrap();
    let rule = set.get("acme-token").unwrap();
    assert_eq!((rule.max_len, rule.value_groups.clone(), rule.score.0), (25, 1..2, 60));
    assert_eq!(&*rule.family, "my.toml");
    assert_eq!(rule.min_level, Level::Medium);
    let acme = Literal { bytes: b"acme_".to_vec(), any_case: false };
    assert_eq!(rule.trigger, Trigger::Literals(vec![acme]));
    assert!(set.get("other").is_none());
    assert_eq!(set.sources()[0].text, GOOD);
}

#[test]
fn every_refusal_names_file_line_and_remedy() {
    let at = |line: usize, reason: &str| format!("my.toml:{line}: rule `acme-token`: {reason}");
    let cases = [
        ("regex", r"regex = 'acme_[a-z]+'", 6, "regex has no maximum length: bound the repetition `+`"),
        (
            "regex",
            r"regex = 'acme_[a-z]{3,}x'",
            6,
            "regex has no maximum length: bound the repetition `{3,}`",
        ),
        ("regex", r"regex = 'acme_[a-z]{4000}'", 6, "regex can match 4005 bytes: shorten it to at most 2048"),
        ("regex", r"regex = '(acme_'", 6, "regex does not parse: unclosed group"),
        (
            "regex",
            r"regex = '[a-z]{8}'",
            6,
            "regex has no literal of 3 bytes that every match contains: add `triggers` or `shape`",
        ),
        ("regex", r"regex = '(?:acme)?'", 6, "regex can match nothing at all: require at least one byte"),
        (
            "category",
            "category = 'secrets'",
            5,
            "`secrets` is not a category: use one of secret, personal, payment, health, network, marking",
        ),
        ("score", "score = 101", 9, "`score` is a integer: make it a whole number from 0 to 100"),
        ("positive", "positive = ['a']", 2, "`positive` has fewer than 2 examples: add some"),
        ("triggers", "triggers = ['ab']", 2, "trigger `ab` is under 3 bytes: lengthen it, or give a `shape`"),
        ("shape", "shape = 'digits'", 9, "shape `digits` has no `min`: say how many digits"),
        (
            "shape",
            "shape = 'round'",
            9,
            "`round` is not a shape: use one of digits, at, dotted_quad, hex_colon, word_digits",
        ),
        ("validators", "validators = ['nope']", 9, "there is no validator `nope`: check its name"),
        (
            "validators",
            "validators = [{ name = 'entropy' }]",
            9,
            "validator `entropy` has no `min`: write { name = \"entropy\", min = … }",
        ),
        (
            "context",
            "context = { words = [] }",
            9,
            "`context` needs words, none of them empty: add `words = [...]`",
        ),
        ("min_level", "min_level = 'top'", 9, "`top` is not a level: use one of low, medium, high"),
    ];
    for (field, line, number, reason) in cases {
        check(&with(field, line), &[&at(number, reason)]);
    }
    check(&with("description", ""), &["my.toml:2: rule `acme-token`: `description` is missing: add it"]);
    check(
        &with("id", "id = 'Acme_Token'"),
        &[
            "my.toml:3: rule `Acme_Token`: the id is not kebab-case: use lower-case letters, digits and single `-`",
        ],
    );
    let errors = load(&with("colour", "colour = 'red'")).unwrap_err();
    assert_eq!(errors.0[0].line, 9);
    assert!(errors.0[0].reason.starts_with("unknown field `colour`: use one of id, description"), "{errors}");
}

#[test]
fn all_problems_of_all_files_are_listed() {
    let bad = with("regex", "regex = 'acme_.*'").replace("'secret'", "'x'").replace("\"secret\"", "\"x\"");
    let errors =
        RuleSet::load(&[source("a.toml", &bad), source("b.toml", "rule = 3\nx ="), source("c.toml", GOOD)])
            .unwrap_err()
            .0;
    let places: Vec<_> = errors.iter().map(|error| (error.file.as_str(), error.line)).collect();
    assert_eq!(places[..2], [("a.toml", 5), ("a.toml", 6)]);
    assert!(places[2..].iter().all(|place| place.0 == "b.toml") && places.len() > 2, "{places:?}");
}

#[test]
fn an_id_is_taken_once() {
    let errors = RuleSet::load(&[source("a.toml", GOOD), source("b.toml", GOOD)]).unwrap_err().to_string();
    assert_eq!(errors, "b.toml:2: rule `acme-token`: the id is taken by a rule of a.toml: choose another");
}

#[test]
fn the_hash_is_of_what_rules_say() {
    let other = GOOD.replace("acme", "zeta");
    let one = RuleSet::load(&[source("a.toml", GOOD), source("b.toml", &other)]).unwrap().hash();
    let turned = RuleSet::load(&[source("b.toml", &other), source("a.toml", GOOD)]).unwrap().hash();
    let commented = format!("# why\n{other}\n\n   {GOOD}  # end\n");
    assert_eq!(one, turned);
    assert_eq!(one, load(&commented).unwrap().hash());
    for (field, line) in
        [("score", "score = 61"), ("regex", r"regex = 'acme_[0-9a-z]{20}'"), ("tags", "tags = ['x']")]
    {
        assert_ne!(load(GOOD).unwrap().hash(), load(&with(field, line)).unwrap().hash(), "{line}");
    }
}

#[test]
fn text_anchors_are_refused_and_line_anchors_are_not() {
    assert!(load(&with("regex", "regex = '^acme_[0-9]{4}'")).is_err());
    assert!(load(&with("regex", "regex = '(?m)^acme_[0-9]{4}$'")).is_ok());
}

#[test]
fn a_regex_that_unfolds_beyond_reason_is_refused() {
    let bomb = r"regex = 'acme_(?u:\pL{0,400})'";
    let reason = "regex is too large once its repetitions are written out: simplify it";
    check(&with("regex", bomb), &[&format!("my.toml:6: rule `acme-token`: {reason}")]);
}

/// So many rules of this regex.
fn many(regex: &str, count: usize) -> RuleSource {
    let rule = |number| {
        format!(
            "[[rule]]\nid = \"r-{number}\"\ndescription = \"x\"\ncategory = \"secret\"\nregex = '{regex}'\n\
             triggers = [\"abcdef\"]\npositive = [\"a\", \"b\"]\nnegative = [\"a\", \"b\"]\n"
        )
    };
    RuleSource { name: "many.toml".to_owned(), text: (0..count).map(rule).collect() }
}

fn refusal(source: RuleSource) -> String {
    let RuleErrors(errors) = RuleSet::load(&[source]).unwrap_err();
    let [error] = &errors[..] else { panic!("{errors:?}") };
    error.to_string()
}

#[test]
fn regexes_share_a_budget_and_the_rule_that_exceeds_it_is_named() {
    for regex in [
        r"abcdef(?:[a-z]?[0-9]?(?:\b\b\b\b\b\b\b\b\b\b){90}){1000}",
        r"abcdef(?u:\pL{1,60})",
        r"abcdef(?:()()()()()()()()()()[a-z]){90}",
    ] {
        let told = refusal(many(regex, 1_000));
        assert!(told.starts_with("many.toml:") && told.contains("rule `r-"), "{told}");
        assert!(told.contains("too large"), "{told}");
    }
    let long = format!("abcdef{}", r"\pL".repeat(10_000));
    assert!(refusal(many(&long, 1)).contains("rule `r-0`: regex does not parse: it is longer than 16384"));
}

#[test]
fn allow_lists_and_gitleaks_rules_share_the_budget() {
    let allow = "[[allow]]\nregexes = ['(?u:\\pL{60})']\n".repeat(100);
    let told = refusal(RuleSource { name: "allow.toml".to_owned(), text: allow });
    assert!(told.starts_with("allow.toml:") && told.contains("too large"), "{told}");
    let rule = |n| format!("[[rules]]\nid = \"g{n}\"\nregex = '''abcdef\\p{{L}}{{60}}'''\n");
    let text = (0..100).map(rule).collect();
    let told = refusal(RuleSource { name: "gitleaks.toml".to_owned(), text });
    assert!(told.starts_with("gitleaks.toml:") && told.contains("rule `g"), "{told}");
}
