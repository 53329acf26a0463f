//! The scan of a chunk, on rules made for the purpose; `tests/` holds what all built-in rules must do.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::rules::RuleSource;
use crate::rules::gate::Gate;

fn scanner(rules: &[(&str, &str)]) -> Scanner {
    let rule = |(id, fields): &(&str, &str)| {
        format!(
            "[[rule]]\nid = '{id}'\ndescription = 'd'\ncategory = 'secret'\npositive = ['a', 'b']\nnegative = ['c', 'd']\n\
             {fields}\n"
        )
    };
    let text = rules.iter().map(rule).collect::<String>();
    let set = RuleSet::load(&[RuleSource { name: "t.toml".into(), text }])
        .unwrap_or_else(|errors| panic!("{errors}"));
    Scanner::new(Arc::new(set))
}

fn check(rules: &[(&str, &str)], text: &str, expected: &[(&str, &str)]) {
    let scanner = scanner(rules);
    let mut out = Vec::new();
    scanner.scan(&Chunk::whole(text.as_bytes(), b""), &mut Scratch::new(), &mut out);
    let found: Vec<_> = out
        .iter()
        .map(|found| (&*scanner.rules().rules()[found.rule as usize].id, &text[found.span.clone()]))
        .collect();
    assert_eq!(found, expected, "{text}");
}

const TOKEN: (&str, &str) = ("token", r"regex = '\b(?P<value>tok_[a-z0-9]{8})\b'");
const MAIL: (&str, &str) = (
    "mail",
    r"regex = '\b[a-z.]{1,20}@[a-z]{1,20}\.(?:com|org)\b'
shape = 'at'",
);
const CARD: (&str, &str) = (
    "card",
    r"regex = '\b(?:\d[ -]?){15}\d\b'
shape = { kind = 'digits', min = 16 }
validators = ['luhn']",
);

#[test]
fn values_are_found_at_either_end_and_next_to_each_other() {
    check(&[TOKEN], "tok_abcdefg1", &[("token", "tok_abcdefg1")]);
    check(&[TOKEN], "tok_abcdefg1,tok_abcdefg2", &[("token", "tok_abcdefg1"), ("token", "tok_abcdefg2")]);
    check(&[TOKEN], "tok_abcdefg12 TOK_abcdefg1", &[]);
    check(&[MAIL], "ann@acme.com,bob@acme.org", &[("mail", "ann@acme.com"), ("mail", "bob@acme.org")]);
    check(&[CARD], "no 4111-1111-1111-1111 and 4111111111111112", &[("card", "4111-1111-1111-1111")]);
}

#[test]
fn a_match_within_the_window_of_another_trigger_is_not_lost() {
    let rule = ("pass", r"regex = '[a-z]{0,12}secret[a-z]{0,4} ?= ?(?P<value>[a-z0-9]{6})\b'");
    check(&[rule], "mysecret = aaaaa1 secret=bbbbb2", &[("pass", "aaaaa1"), ("pass", "bbbbb2")]);
}

#[test]
fn the_better_of_two_on_the_same_bytes_stays() {
    let weak = ("weak", "regex = '\"(?P<value>tok_[a-z0-9 ]{8,40})\"'\nscore = 30");
    let text = "\"tok_abcdefg1 tail\"";
    check(&[weak], text, &[("weak", "tok_abcdefg1 tail")]);
    check(&[weak, TOKEN], text, &[("token", "tok_abcdefg1")]);
    let strong = ("strong", "regex = '\"(?P<value>tok_[a-z0-9 ]{8,40})\"'\nscore = 90");
    check(&[strong, TOKEN], text, &[("strong", "tok_abcdefg1 tail")]);
    let twin = ("a-twin", r"regex = '\b(?P<value>tok_[a-z0-9]{8})\b'");
    check(&[twin, TOKEN], "tok_abcdefg1", &[("a-twin", "tok_abcdefg1")]);
}

#[test]
fn ignore_comments_suppress() {
    check(&[TOKEN], "tok_abcdefg1 # domesday:ignore\ntok_abcdefg2", &[("token", "tok_abcdefg2")]);
    check(&[TOKEN, MAIL], "tok_abcdefg1 a@b.com # domesday:ignore mail", &[("token", "tok_abcdefg1")]);
}

#[test]
fn a_scratch_serves_another_scanner() {
    let mut scratch = Scratch::new();
    for (rule, text) in [(TOKEN, "tok_abcdefg1"), (MAIL, "ann@acme.com"), (TOKEN, "tok_abcdefg1")] {
        let mut out = Vec::new();
        scanner(&[rule]).scan(&Chunk::whole(text.as_bytes(), b""), &mut scratch, &mut out);
        assert_eq!(out.len(), 1, "{text}");
    }
}

#[test]
fn an_accept_range_beyond_the_bytes_is_harmless() {
    let mut out = Vec::new();
    let chunk = Chunk { bytes: b"tok_abcdefg1", accept: 5..900, path: b"" };
    scanner(&[TOKEN]).scan(&chunk, &mut Scratch::new(), &mut out);
    assert_eq!(out, []);
}

fn builtin() -> RuleSet {
    RuleSet::builtin().unwrap_or_else(|errors| panic!("{errors}"))
}

static BUILTIN: LazyLock<Scanner> = LazyLock::new(|| Scanner::new(Arc::new(builtin())));

/// The same rules, with every gate open but for the length of a first group, which is part of the shape.
static UNGATED: LazyLock<Scanner> = LazyLock::new(|| {
    let open = |rule: &mut crate::rules::Rule| rule.gate.around = Gate::open().around;
    Scanner::new(Arc::new(builtin().map(open)))
});

static FLOORED: LazyLock<Vec<Scanner>> = LazyLock::new(|| {
    let rules = Arc::new(builtin());
    [30, 41, 50, 75, 100].map(|floor| Scanner::with_floor(rules.clone(), Score(floor))).into()
});

fn scan(scanner: &Scanner, text: &[u8]) -> Vec<Match> {
    let mut out = Vec::new();
    scanner.scan(&Chunk::whole(text, b"src/tests/a"), &mut Scratch::new(), &mut out);
    scanner.scan(&Chunk::whole(text, b""), &mut Scratch::new(), &mut out);
    out
}

/// Examples, whole and changed in one byte, close together.
fn examples() -> impl Strategy<Value = Vec<u8>> {
    let all = BUILTIN.rules().rules().iter().flat_map(|rule| rule.positive.iter().chain(&rule.negative));
    let example = prop::sample::select(all.map(|text| text.clone().into_bytes()).collect::<Vec<_>>());
    let changed =
        (example.clone(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(mut text, at, byte)| {
            let at = at.index(text.len());
            text[at] = byte;
            text
        });
    let between = prop::sample::select(vec![" ", "\n", "", ",", "1", "-", "_", "A", ": ", "ssn ", "("]);
    let piece = prop_oneof![example, changed];
    let pieces = proptest::collection::vec((piece, between), 1..12);
    pieces.prop_map(|pieces| {
        pieces.into_iter().flat_map(|(piece, after)| [piece, after.as_bytes().to_vec()].concat()).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn gates_and_floors_take_only_work(text in examples()) {
        let all = scan(&BUILTIN, &text);
        prop_assert_eq!(&scan(&UNGATED, &text), &all);
        for scanner in FLOORED.iter() {
            let left: Vec<_> = all.iter().filter(|found| found.score >= scanner.floor).cloned().collect();
            prop_assert_eq!(scan(scanner, &text), left, "floor {}", scanner.floor.0);
        }
    }
}
