//! What users say about rules in files of their own: allow lists, selections, and paths that rules are for.

use std::sync::Arc;

use domesday_engine::{
    Chunk, LOOKAHEAD, LOOKBEHIND, Match, RuleErrors, RuleSet, RuleSource, Scanner, Scratch,
};

/// Two rules for tokens, of which the generic one also sees what stands around, and one of another category.
const RULES: &str = r#"
[[rule]]
id = "acme-token"
description = "Acme token"
category = "secret"
regex = '\btoken ?= ?"(?P<value>acm_[a-z0-9]{8})"'
score = 80
tags = ["acme"]
positive = ["a", "b"]
negative = ["c", "d"]

[[rule]]
id = "generic-token"
description = "Token"
category = "secret"
regex = 'token ?= ?(?P<value>"[a-z0-9_]{6,20}")'
score = 60
tags = ["generic"]
positive = ["a", "b"]
negative = ["c", "d"]

[[rule]]
id = "staff-number"
description = "Staff number"
category = "personal"
regex = 'staff-(?P<value>[0-9]{6})\b'
score = 60
regions = ["fr"]
positive = ["a", "b"]
negative = ["c", "d"]
"#;

const TEXT: &str = "token = \"acm_kbqdwfg1\" # old\nx = staff-271835\ntoken=\"other_q7x\"\n";

fn source(name: &str, text: &str) -> RuleSource {
    RuleSource { name: name.to_owned(), text: text.to_owned() }
}

fn load(control: &str) -> Result<RuleSet, RuleErrors> {
    RuleSet::load(&[source("rules.toml", RULES), source("control.toml", control)])
}

fn found(rules: RuleSet, path: &str, text: &str) -> Vec<(String, String)> {
    let scanner = Scanner::new(Arc::new(rules));
    let mut out = Vec::new();
    scanner.scan(&Chunk::whole(text.as_bytes(), path.as_bytes()), &mut Scratch::new(), &mut out);
    let id = |rule: u32| scanner.rules().rules()[rule as usize].id.to_string();
    out.iter().map(|found| (id(found.rule), text[found.span.clone()].to_owned())).collect()
}

/// What is found in [`TEXT`], at a path, by which rules.
fn check(control: &str, path: &str, expected: &[&str]) {
    let rules = load(control).unwrap_or_else(|errors| panic!("{control}: {errors}"));
    let found: Vec<_> = found(rules, path, TEXT).into_iter().map(|(rule, _)| rule).collect();
    assert_eq!(found, expected, "{control} at {path}");
}

const ALL: &[&str] = &["acme-token", "staff-number", "generic-token"];

#[test]
fn without_allows_everything_is_found() {
    check("", "a.txt", ALL);
}

/// What is suppressed in a text, by what, as `rule control`.
fn suppressed(rules: RuleSet, text: &str) -> Vec<String> {
    let scanner = Scanner::new(Arc::new(rules));
    let (mut scratch, mut out) = (Scratch::new(), Vec::new());
    scanner.scan(&Chunk::whole(text.as_bytes(), b"docs/a.txt"), &mut scratch, &mut out);
    let shown = |found: Match| {
        let rule = &scanner.rules().rules()[found.rule as usize];
        format!("{} {}", rule.id, found.suppressed.expect("each says by what"))
    };
    scratch.take_suppressed().into_iter().map(shown).collect()
}

#[test]
fn what_is_suppressed_is_told_with_what_suppresses_it() {
    let check = |control: &str, text: &str, expected: &[&str]| {
        let rules = load(control).unwrap_or_else(|errors| panic!("{control}: {errors}"));
        assert_eq!(suppressed(rules, text), expected, "{control}");
    };
    let encoded = "dG9rZW4gPSAiYWNtX2ticWR3ZmcxIg==";
    check("", TEXT, &[]);
    check(
        "[[allow]]\npaths = ['^docs/']",
        TEXT,
        &[
            "acme-token allow:control.toml:1",
            "staff-number allow:control.toml:1",
            "generic-token allow:control.toml:1",
        ],
    );
    check(
        "\n[[allow]]\ndescription = 'why'\nvalues = ['acm_kbqdwfg1']\nrules = ['acme-*']",
        TEXT,
        &["acme-token allow:control.toml:2 (why)"],
    );
    let marked = TEXT.replace("# old", "domesday:ignore");
    check("", &marked, &["acme-token mark"]);
    // The generic rule sees the same bytes, and would not be told of without the mark either.
    check("", &marked.replace("ignore", "ignore acme-token"), &["acme-token mark"]);
    check("", &format!("{encoded} domesday:ignore\n"), &["acme-token mark"]);
    check(
        "[[allow]]\nvalues = ['acm_kbqdwfg1']",
        &format!("{encoded}\n"),
        &["acme-token allow:control.toml:1"],
    );
}

#[test]
fn each_criterion_allows() {
    let left = &["staff-number", "generic-token"];
    check("[[allow]]\nvalues = ['acm_kbqdwfg1']", "a.txt", left);
    check("[[allow]]\nvalues = ['acm_kbqdwfg']", "a.txt", ALL);
    check("[[allow]]\nregexes = ['^acm_.*1$']", "a.txt", left);
    check("[[allow]]\nstopwords = ['KBQDW']", "a.txt", left);
    check("[[allow]]\nregexes = ['# old$']\ntarget = 'line'", "a.txt", left);
    check("[[allow]]\nregexes = ['^token = ']\ntarget = 'match'", "a.txt", left);
    check("[[allow]]\nregexes = ['^token = ']", "a.txt", ALL);
    check(
        "[[allow]]\nregexes = ['old\\n|staff']\ntarget = 'line'",
        "a.txt",
        &["acme-token", "generic-token"],
    );
}

#[test]
fn paths_allow_everything_or_what_the_allow_is_for() {
    check("[[allow]]\npaths = ['(^|/)vendor/']", "a/vendor/b.go", &[]);
    check("[[allow]]\npaths = ['(^|/)vendor/']", "a/vendors/b.go", ALL);
    let one = "[[allow]]\npaths = ['vendor/']\nrules = ['staff-number']";
    check(one, "vendor/b.go", &["acme-token", "generic-token"]);
}

#[test]
fn all_asks_for_each_kind() {
    let both = "[[allow]]\ncondition = 'all'\npaths = ['vendor/']\nstopwords = ['zzzz', 'kbqd']";
    check(both, "vendor/a", &["staff-number", "generic-token"]);
    check(both, "src/a", ALL);
    check(&both.replace("kbqd", "yyyy"), "vendor/a", ALL);
    check(&both.replace("'all'", "'any'"), "src/a", &["staff-number", "generic-token"]);
}

#[test]
fn an_allowed_value_does_not_come_back_under_another_rule() {
    // The generic rule sees the same value with its quotes, which is not what was allowed.
    let text = "token=\"acm_kbqdwfg1\"";
    let rules = |control: &str| load(control).unwrap_or_else(|errors| panic!("{errors}"));
    let allow = "[[allow]]\nvalues = ['acm_kbqdwfg1']";
    assert_eq!(found(rules(allow), "", text), []);
    // An allow for one rule is about that rule: what another says of the value stands.
    let one = format!("{allow}\nrules = ['acme-*']");
    assert_eq!(found(rules(&one), "", text), [("generic-token".into(), "\"acm_kbqdwfg1\"".into())]);
}

#[test]
fn decoded_values_are_allowed_by_what_they_say() {
    // `token = "acm_kbqdwfg1" !` in base64, and what it looks like in a file.
    let text = "data: dG9rZW4gPSAiYWNtX2ticWR3ZmcxIiAh # keep\n";
    let count =
        |control: &str| found(load(control).unwrap_or_else(|errors| panic!("{errors}")), "", text).len();
    assert_eq!(count(""), 1);
    assert_eq!(count("[[allow]]\nvalues = ['acm_kbqdwfg1']"), 0);
    assert_eq!(count("[[allow]]\nrules = ['acme-token', 'generic-token']\nregexes = ['^\"?acm_']"), 0);
    assert_eq!(count("[[allow]]\nregexes = ['token = ']\ntarget = 'match'"), 0);
    assert_eq!(count("[[allow]]\nregexes = ['# keep']\ntarget = 'line'"), 0);
    assert_eq!(count("[[allow]]\nvalues = ['dG9rZW4gPSAiYWNtX2ticWR3ZmcxIiAh']"), 1);
}

#[test]
fn the_line_is_the_same_in_every_chunk() {
    let rules = load("[[allow]]\nregexes = ['^.{0,9}near|far']\ntarget = 'line'").unwrap();
    let scanner = Scanner::new(Arc::new(rules));
    let filler = "x".repeat(1015);
    let mut text = String::new();
    for mark in ["near", "far", "none"] {
        for gap in ["", " ", &filler] {
            text.push_str(&format!("{mark}{gap} staff-271835 {filler}\nstaff-271836 {gap}{mark}{filler}\n"));
        }
    }
    let scan = |chunk: &Chunk<'_>, at: usize| {
        let mut out = Vec::new();
        scanner.scan(chunk, &mut Scratch::new(), &mut out);
        out.into_iter().map(|found| found.span.start + at).collect::<Vec<_>>()
    };
    let whole = scan(&Chunk::whole(text.as_bytes(), b""), 0);
    assert!((1..18).contains(&whole.len()), "{}", whole.len());
    let mut chunked = Vec::new();
    for start in (0..text.len()).step_by(700) {
        let end = (start + 700).min(text.len());
        let from = start.saturating_sub(LOOKBEHIND);
        let bytes = &text.as_bytes()[from..(end + LOOKAHEAD).min(text.len())];
        chunked.extend(scan(&Chunk::unnamed(bytes, start - from..end - from), from));
    }
    assert_eq!(chunked, whole);
}

#[test]
fn fingerprints_are_told_to_whoever_makes_them() {
    let hex = "000102030405060708090a0b0c0d0e0f";
    let bytes: [u8; 16] = std::array::from_fn(|i| i as u8);
    let allows = |control: &str, path: &[u8]| {
        let rules = load(control).unwrap_or_else(|errors| panic!("{errors}"));
        let index = |id: &str| rules.rules().iter().position(|rule| *rule.id == *id).unwrap() as u32;
        assert!(rules.allows_fingerprint(index("acme-token"), &[9; 16], path).is_none());
        ["acme-token", "staff-number"].map(|id| rules.allows_fingerprint(index(id), &bytes, path).is_some())
    };
    assert!(!load("").unwrap().allows_by_fingerprint());
    assert_eq!(allows("", b"a"), [false; 2]);
    let all = format!("[[allow]]\nfingerprints = ['{hex}']");
    assert!(load(&all).unwrap().allows_by_fingerprint());
    assert_eq!(allows(&all, b"a"), [true; 2]);
    assert_eq!(allows(&format!("{all}\nrules = ['staff-number']"), b"a"), [false, true]);
    let there = format!("{all}\npaths = ['^src/']\ncondition = 'all'");
    assert_eq!(allows(&there, b"src/a"), [true; 2]);
    assert_eq!(allows(&there, b"a"), [false; 2]);
    check(&there, "src/a", ALL);
}

#[test]
fn a_rule_with_a_path_is_for_such_objects() {
    let rules = RULES.replace("regions = [\"fr\"]", "path = '\\.csv$'");
    let count = |path: &str| found(RuleSet::load(&[source("r.toml", &rules)]).unwrap(), path, TEXT).len();
    assert_eq!((count("staff.csv"), count("staff.txt")), (3, 2));
}

#[test]
fn rules_are_selected_by_every_word() {
    check("[select]\nonly = ['category:secret']", "", &["acme-token", "generic-token"]);
    check("[select]\nonly = ['region:fr', 'acme-*']", "", &["acme-token", "staff-number"]);
    check("[select]\nskip = ['tag:generic']", "", &["acme-token", "staff-number"]);
    // Without the better rule, the generic one sees both.
    check(
        "[select]\nonly = ['category:secret']\nskip = ['acme-token']",
        "",
        &["generic-token", "generic-token"],
    );
}

#[test]
fn selections_of_several_files_are_combined() {
    let rules = RuleSet::load(&[
        source("r.toml", RULES),
        source("a.toml", "[select]\nonly = ['category:secret']"),
        source("b.toml", "[select]\nonly = ['acme-*', 'staff-number']"),
        source("c.toml", "[select]\nonly = []\nskip = []"),
    ])
    .unwrap();
    assert_eq!(rules.rules().iter().map(|rule| &*rule.id).collect::<Vec<_>>(), ["acme-token"]);
    assert!(rules.knows("staff-number") && rules.get("staff-number").is_none());
}

#[test]
fn selections_that_leave_nothing_together_are_refused() {
    let sources = [
        source("r.toml", RULES),
        source("a.toml", "[select]\nonly = ['category:secret']"),
        source("b.toml", "[select]\nonly = ['staff-number']"),
    ];
    let errors = RuleSet::load(&sources).unwrap_err().to_string();
    assert_eq!(
        errors,
        "b.toml:1: no rule is left once all selections are combined: widen `only`, shorten `skip`"
    );
}

fn check_error(control: &str, expected: &[&str]) {
    let errors = load(control).expect_err(control).to_string();
    assert_eq!(errors.lines().collect::<Vec<_>>(), expected, "{control}");
}

#[test]
fn what_is_wrong_is_told_with_the_remedy() {
    check_error(
        "[[allow]]\nrules = ['acme-tokn']\nvalues = ['a']",
        &["control.toml:2: no rule has the id `acme-tokn`: did you mean `acme-token`?"],
    );
    check_error(
        "[[allow]]\nregexes = ['a(']",
        &["control.toml:2: regex `a(` does not parse: unclosed group"],
    );
    check_error(
        "[[allow]]\ndescription = 'x'\nrules = ['acme-token']",
        &[
            "control.toml:1: `allow` says nothing: add `values`, `regexes`, `stopwords`, `paths` or `fingerprints`; to \
         leave rules out, use `[select]`",
        ],
    );
    check_error(
        "[[allow]]\nvalues = ['a']\ncondition = 'and'\ntarget = 'file'",
        &[
            "control.toml:3: `and` is no condition: use one of any, all",
            "control.toml:4: `file` is no target: use one of value, match, line",
        ],
    );
    check_error(
        "[[allow]]\nfingerprints = ['0123']",
        &["control.toml:2: `0123` is no fingerprint: it has 32 hexadecimal digits, as reports show it"],
    );
    check_error(
        "[[allow]]\nvalue = 'a'",
        &[
            "control.toml:2: unknown field `value`: use one of description, rules, values, regexes, target, stopwords, \
         paths, fingerprints, condition",
        ],
    );
    check_error("allow = 1", &["control.toml:1: `allow` is not a list: write `[[allow]]`"]);
    check_error(
        "[select]\nonly = ['zzz', 'acme-token', 'tag:genric', 'region:xx', 'aws-*']",
        &[
            "control.toml:2: no rule has the id `zzz`: `domesday rules list` shows all",
            "control.toml:2: no rule has the tag `genric`: did you mean `generic`?",
            "control.toml:2: no rule is of the region `xx`: `domesday rules list` shows all",
            "control.toml:2: no rule's id begins with `aws-`: `domesday rules list` shows all",
        ],
    );
    check_error(
        "[select]\nskip = ['kind:token']",
        &[
            "control.toml:2: `kind:token` does not name rules: use an id, `prefix-*`, `category:…`, `region:…` or `tag:…`",
        ],
    );
    check_error(
        "[select]\nskip = ['*']",
        &["control.toml:1: no rule is left once all selections are combined: widen `only`, shorten `skip`"],
    );
    check_error(
        "[selct]\nonly = []",
        &["control.toml:1: unknown field `selct`: a file holds `[[rule]]`, `[[allow]]` and `[select]`"],
    );
}

#[test]
fn the_hash_is_of_what_allows_and_selections_say() {
    let hash = |control: &str| load(control).unwrap_or_else(|errors| panic!("{errors}")).hash();
    let one = "[[allow]]\ndescription = 'why'\nvalues = ['b', 'a']\n";
    assert_eq!(hash(one), hash("# note\n[[allow]]\nvalues = ['a', 'b']"));
    assert_eq!(
        hash(&format!("{one}{}", one.replace("'a'", "'c'"))),
        hash(&format!("{}{one}", one.replace("'a'", "'c'")))
    );
    let others = [
        "",
        "[[allow]]\nvalues = ['a']",
        "[[allow]]\nregexes = ['a']",
        "[[allow]]\nregexes = ['a']\ntarget = 'line'",
        "[[allow]]\nstopwords = ['a']",
        "[[allow]]\npaths = ['a']",
        "[[allow]]\nvalues = ['a']\npaths = ['a']",
        "[[allow]]\nvalues = ['a']\npaths = ['a']\ncondition = 'all'",
        "[[allow]]\nvalues = ['a']\nrules = ['acme-*']",
        "[[allow]]\nfingerprints = ['000102030405060708090a0b0c0d0e0f']",
        "[select]\nskip = ['acme-token']",
    ];
    for (i, a) in others.iter().enumerate() {
        for b in &others[..i] {
            assert_ne!(hash(a), hash(b), "{a} and {b}");
        }
    }
}
