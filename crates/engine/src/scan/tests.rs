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
    check(&[TOKEN], "tok_kbqdwfg1", &[("token", "tok_kbqdwfg1")]);
    check(&[TOKEN], "tok_kbqdwfg1,tok_kbqdwfg2", &[("token", "tok_kbqdwfg1"), ("token", "tok_kbqdwfg2")]);
    check(&[TOKEN], "tok_kbqdwfg12 TOK_kbqdwfg1", &[]);
    check(&[MAIL], "ann@acme.com,bob@acme.org", &[("mail", "ann@acme.com"), ("mail", "bob@acme.org")]);
    check(&[CARD], "no 4111-1111-1111-1111 and 4111111111111112", &[("card", "4111-1111-1111-1111")]);
}

#[test]
fn automata_that_take_too_much_are_begun_anew_and_find_the_same() {
    let rules: Vec<_> = (b'a'..=b'p')
        .map(char::from)
        .map(|letter| {
            (
                format!("r{letter}"),
                format!("regex = 'word{letter}=(?P<value>(?:[a-z]{{1,40}}-?){{1,3}}[0-9]{{2}})'"),
            )
        })
        .collect();
    let rules: Vec<_> = rules.iter().map(|(id, fields)| (&id[..], &fields[..])).collect();
    let scanner = scanner(&rules);
    let (mut scratch, mut taken, mut begun_anew) = (Scratch::new(), 0, 0);
    for round in 1..=60 {
        let value = format!("{}-{}", "k".repeat(round % 37 + 1), "q".repeat(round));
        let text: String =
            (b'a'..=b'p').map(|letter| format!("word{}={value}42 ", char::from(letter))).collect();
        let chunk = Chunk::whole(text.as_bytes(), b"");
        let (mut found, mut alone) = (Vec::new(), Vec::new());
        scanner.scan(&chunk, &mut scratch, &mut found);
        scanner.scan(&chunk, &mut Scratch::new(), &mut alone);
        assert_eq!(found, alone, "{value}");
        begun_anew += usize::from(scratch.caches.bytes() < taken);
        taken = scratch.caches.bytes();
        assert!(taken <= confirm::CACHES_MAX + regexes::REGEX_CACHE_BYTES, "{taken}");
    }
    assert!(begun_anew > 0, "{taken} bytes at last");
}

/// Rules whose windows reach far before their triggers, with and without a place for these; and whose values are told by
/// their bytes or by groups.
const WIDE: [(&str, &str); 5] = [
    ("free", "regex = '[ab]{1,3}x[a-z ]{0,12}key=(?P<value>[a-z]{1,6})(?:;|\\b)'\ntriggers = ['key', 'abx']"),
    ("quoted", "regex = '[a-z]{0,8}key[\"=]{1,2}(?P<value>[^\"=]{1,9})\"?\"='"),
    ("assigned", "regex = '(?m)^[a ]{0,6}key ?[:=] ?(?P<value>[a-z=]{2,8})(?:[ ;]|$)'"),
    (
        "commented",
        "regex = '(?m)^[a ]{0,6}key ?[:=] ?(?P<value>[ab=][abx=;]{1,7})[ ]{0,2}(?:;[^\\n]{0,4})?$'",
    ),
    ("groups", "regex = 'key=?(?P<value>[ab=]{1,4})[a-z]{1,5}'"),
];

/// Where the regex itself says that the value of a match is.
fn by_group(rule: &Rule, bytes: &[u8], span: Range<usize>) -> Range<usize> {
    use regex_automata::{Anchored, Input, meta::Regex};
    let regex = Regex::builder().build_from_hir(&crate::rules::compile_hir(rule)).unwrap();
    let mut groups = regex.create_captures();
    regex.captures(Input::new(bytes).span(span.start..bytes.len()).anchored(Anchored::Yes), &mut groups);
    assert_eq!(groups.get_match().unwrap().range(), span);
    groups.get_group(rule.value_groups.start).unwrap().range()
}

proptest! {
    /// What is kept from one trigger to the next saves work and never changes an answer.
    #[test]
    fn triggers_together_give_what_each_gives_alone(text in "(?:key|[abx]|[=;: \"\n]){0,60}") {
        static SCANNER: LazyLock<Scanner> = LazyLock::new(|| scanner(&WIDE));
        let (bytes, mut hits, mut caches) = (text.as_bytes(), Vec::new(), RegexCaches::default());
        let prefilter = SCANNER.prefilter(PathKind::default());
        prefilter.find(bytes, 0..bytes.len(), &mut Buffers::default(), &mut hits);
        hits.retain(|hit| hit.rule != crate::prefilter::DECODE);
        hits.sort();
        for hits in hits.chunk_by(|a, b| a.rule == b.rule) {
            let (index, rule) = (hits[0].rule, &SCANNER.rules.rules()[hits[0].rule as usize]);
            let (mut together, mut alone) = (Vec::new(), Vec::new());
            SCANNER.confirmer.confirm(rule, index, bytes, hits, &mut caches, &mut together);
            for hit in hits.chunks(1) {
                SCANNER.confirmer.confirm(rule, index, bytes, hit, &mut caches, &mut alone);
            }
            for found in [&mut together, &mut alone] {
                found.sort();
                found.dedup();
            }
            prop_assert_eq!(&together, &alone, "{}", rule.id);
            for found in together {
                let value = by_group(rule, bytes, found.match_start..found.match_end);
                prop_assert_eq!(found.start..found.end, value, "{}", rule.id);
            }
        }
    }
}

#[test]
fn a_match_within_the_window_of_another_trigger_is_not_lost() {
    let rule = ("pass", r"regex = '[a-z]{0,12}secret[a-z]{0,4} ?= ?(?P<value>[a-z0-9]{6})\b'");
    check(&[rule], "mysecret = aaaaa1 secret=bbbbb2", &[("pass", "aaaaa1"), ("pass", "bbbbb2")]);
}

#[test]
fn the_better_of_two_on_the_same_bytes_stays() {
    let weak = ("weak", "regex = '\"(?P<value>tok_[a-z0-9 ]{8,40})\"'\nscore = 30");
    let text = "\"tok_kbqdwfg1 tail\"";
    check(&[weak], text, &[("weak", "tok_kbqdwfg1 tail")]);
    check(&[weak, TOKEN], text, &[("token", "tok_kbqdwfg1")]);
    let strong = ("strong", "regex = '\"(?P<value>tok_[a-z0-9 ]{8,40})\"'\nscore = 90");
    check(&[strong, TOKEN], text, &[("strong", "tok_kbqdwfg1 tail")]);
    let twin = ("a-twin", r"regex = '\b(?P<value>tok_[a-z0-9]{8})\b'");
    check(&[twin, TOKEN], "tok_kbqdwfg1", &[("a-twin", "tok_kbqdwfg1")]);
}

#[test]
fn a_secret_known_by_its_form_beats_a_surer_one_known_by_its_name() {
    let named = |score: u8, tags: &str| {
        let fields = format!("regex = 'key=(?P<value>[a-z0-9_]{{8,40}})'\nscore = {score}\ntags = [{tags}]");
        ("named", fields)
    };
    let text = "key=tok_kbqdwfg1";
    let with = |named: &(&str, String), token: &str, expected: &str| {
        let token = format!("{}\n{token}", TOKEN.1);
        check(&[(named.0, &named.1), ("token", &token)], text, &[(expected, "tok_kbqdwfg1")]);
    };
    with(&named(90, "'generic'"), "", "token");
    with(&named(90, "'generic'"), "score = 50", "token");
    with(&named(90, "'generic'"), "score = 49", "named");
    with(&named(90, ""), "", "named");
    with(&named(90, "'generic'"), "tags = ['generic']", "named");
    with(&named(90, "'header', 'url'"), "", "token");
    with(&named(90, "'header', 'cloud'"), "", "named");
}

#[test]
fn of_matches_that_overlap_in_part_one_stays() {
    let rule = |id: &'static str, regex: &str, score: u8| (id, format!("regex = '{regex}'\nscore = {score}"));
    let check_all = |rules: &[(&str, String)], text: &str, expected: &[(&str, &str)]| {
        let rules: Vec<_> = rules.iter().map(|(id, fields)| (*id, &fields[..])).collect();
        check(&rules, text, expected);
    };
    let (left, right) = (rule("left", "left[a-z]{4}mid", 60), rule("right", "mid[a-z]{4}right", 70));
    check_all(&[left.clone(), right.clone()], "leftabcdmidefghright", &[("right", "midefghright")]);
    check_all(
        &[left.clone(), right.clone()],
        "leftabcdmid midefghright",
        &[("left", "leftabcdmid"), ("right", "midefghright")],
    );
    // The one in the middle goes for the last, and takes the first with it no more.
    let first = rule("first", "head[a-z]{2}left", 50);
    check_all(
        &[first.clone(), left, right],
        "headxxleftabcdmidefghright",
        &[("first", "headxxleft"), ("right", "midefghright")],
    );
    // A long one is displaced only by what lies within.
    let long = rule("long", "head[a-z]{300,400}left", 50);
    let text = format!("head{}leftabcdmid", "q".repeat(300));
    let head = text[..308].to_owned();
    check_all(
        &[long, rule("left", "left[a-z]{4}mid", 60)],
        &text,
        &[("long", &head), ("left", "leftabcdmid")],
    );
}

#[test]
fn an_explanation_tells_what_became_of_every_match() {
    let generic = ("named", "regex = 'token: (?P<value>[a-z0-9_]{8,40})'\nscore = 90\ntags = ['generic']");
    let text = "token: tok_kbqdwfg1\ntok_kbqdwfg2 # domesday:ignore\n4111-1111-1111-1112 tok_xxxxxxxx\n\
                a=%74ok_kbqdwf%673%2fx\na=%74ok_kbqdwf%674%2fx # domesday:ignore";
    let scanner = scanner(&[TOKEN, CARD, generic]);
    let chunk = Chunk::whole(text.as_bytes(), b"");
    let told: Vec<_> = scanner
        .explain(&chunk, &mut Scratch::new())
        .into_iter()
        .map(|Explained { found, verdict }| {
            let rule = |index: u32| &*scanner.rules().rules()[index as usize].id;
            let verdict = match verdict {
                Verdict::Displaced { by } => format!("displaced by {}", rule(by)),
                other => format!("{other:?}"),
            };
            format!("{} {} {}: {verdict}", rule(found.rule), &text[found.span], found.score.0)
        })
        .collect();
    assert_eq!(
        told,
        [
            "named tok_kbqdwfg1 90: displaced by token",
            "token tok_kbqdwfg1 60: Found",
            "token tok_kbqdwfg2 60: Ignored",
            "card 4111-1111-1111-1112 0: Refused { validator: 0 }",
            "token tok_xxxxxxxx 30: Found",
            "token %74ok_kbqdwf%673 60: Found",
            "token %74ok_kbqdwf%674 60: Ignored",
        ]
    );
}

fn check_decoded(text: &str, span: &str, value: &str, chain: &[&str]) {
    let scanner = scanner(&[TOKEN]);
    let mut out = Vec::new();
    scanner.scan(&Chunk::whole(text.as_bytes(), b""), &mut Scratch::new(), &mut out);
    let [found] = &out[..] else { panic!("{} matches in {text}", out.len()) };
    let decoded = found.decoded.as_deref().expect("the span is encoded");
    assert_eq!(&text[found.span.clone()], span, "{text}");
    assert_eq!((&decoded.value[..], &decoded.chain[..]), (value.as_bytes(), chain), "{text}");
    assert!(
        found.reasons.to_string().contains(&format!("decoded from {}", chain.join(" > "))),
        "{}",
        found.reasons
    );
}

#[test]
fn encoded_values_are_found_with_their_chain() {
    let value = "tok_kbqdwfg1";
    // `the token is tok_kbqdwfg1, ok`
    check_decoded("x: dGhlIHRva2VuIGlzIHRva19rYnFkd2ZnMSwgb2s=\n", "HRva19rYnFkd2ZnMS", value, &["base64"]);
    check_decoded("746f6b5f6b6271647766673120746f", "746f6b5f6b62716477666731", value, &["hex"]);
    check_decoded("a=%74ok_kbqdwf%671%2fx", "%74ok_kbqdwf%671", value, &["percent"]);
    check_decoded(r"'\x74ok_kbqdwf\u00671'", r"\x74ok_kbqdwf\u00671", value, &["escapes"]);
    check_decoded("<a b=&quot;t&#111;k_kbqdwfg1&quot;>", "t&#111;k_kbqdwfg1", value, &["html"]);
    check_decoded("a=3Dtok_kbq=\ndwfg1=2C\n", "tok_kbq=\ndwfg1", value, &["quoted-printable"]);
    // Base64 of base64 of `the token is tok_kbqdwfg1, ok`
    let twice = "ZEdobElIUnZhMlZ1SUdseklIUnZhMTlyWW5Ga2QyWm5NU3dnYjJzPQ==";
    check_decoded(twice, "lIUnZhMTlyWW5Ga2QyWm5NU3", value, &["base64", "base64"]);
}

#[test]
fn what_stands_there_as_it_is_is_found_once() {
    check(&[TOKEN], "a=%3Dtok_kbqdwfg1%26", &[("token", "tok_kbqdwfg1")]);
    check(&[TOKEN], "dGhlIHRva2VuIGlzIHRva19rYnFkd2ZnMSwgb2s= # domesday:ignore", &[]);
}

#[test]
fn ignore_comments_suppress() {
    check(&[TOKEN], "tok_kbqdwfg1 # domesday:ignore\ntok_kbqdwfg2", &[("token", "tok_kbqdwfg2")]);
    check(&[TOKEN, MAIL], "tok_kbqdwfg1 a@b.com # domesday:ignore mail", &[("token", "tok_kbqdwfg1")]);
}

#[test]
fn a_scratch_serves_another_scanner() {
    let mut scratch = Scratch::new();
    for (rule, text) in [(TOKEN, "tok_kbqdwfg1"), (MAIL, "ann@acme.com"), (TOKEN, "tok_kbqdwfg1")] {
        let mut out = Vec::new();
        scanner(&[rule]).scan(&Chunk::whole(text.as_bytes(), b""), &mut scratch, &mut out);
        assert_eq!(out.len(), 1, "{text}");
    }
}

#[test]
fn an_accept_range_beyond_the_bytes_is_harmless() {
    let mut out = Vec::new();
    let chunk = Chunk::unnamed(b"tok_kbqdwfg1", 5..900);
    scanner(&[TOKEN]).scan(&chunk, &mut Scratch::new(), &mut out);
    assert_eq!(out, []);
}

fn builtin() -> RuleSet {
    RuleSet::builtin().unwrap_or_else(|errors| panic!("{errors}"))
}

static BUILTIN: LazyLock<Scanner> = LazyLock::new(|| Scanner::new(Arc::new(builtin())));

/// The same rules, with every gate open but for the length of a first group, which is part of the shape.
static UNGATED: LazyLock<Scanner> = LazyLock::new(|| {
    let open = |rule: &mut crate::rules::Rule| Arc::make_mut(&mut rule.gate).around = Gate::open().around;
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
    fn an_explanation_finds_what_a_scan_finds(text in examples()) {
        let chunk = Chunk::whole(&text, b"");
        let told = BUILTIN.explain(&chunk, &mut Scratch::new()).into_iter();
        let mut told: Vec<_> =
            told.filter(|told| told.verdict == Verdict::Found).map(|told| told.found).collect();
        let mut found = Vec::new();
        BUILTIN.scan(&chunk, &mut Scratch::new(), &mut found);
        let place = |found: &Match| (found.span.start, found.span.end, found.rule);
        told.sort_by_key(place);
        found.sort_by_key(place);
        prop_assert_eq!(told, found);
    }

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
