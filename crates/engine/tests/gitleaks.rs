//! Files in the format of Gitleaks: each thing that they can say, shown by what is found.

use std::path::PathBuf;
use std::sync::Arc;

use domesday_engine::{Chunk, LOOKAHEAD, LOOKBEHIND, Match, PathKind, RuleSet, RuleSource, Scanner, Scratch};
use domesday_model::{Level, Score};

fn source(name: &str) -> RuleSource {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/gitleaks").join(name);
    let text = std::fs::read_to_string(file).expect("the file is part of these tests");
    RuleSource { name: name.to_owned(), text }
}

fn text(text: &str) -> RuleSource {
    RuleSource { name: "own.toml".to_owned(), text: text.to_owned() }
}

fn load(sources: &[RuleSource]) -> RuleSet {
    RuleSet::load(sources).unwrap_or_else(|errors| panic!("{errors}"))
}

fn with_builtin(sources: &[RuleSource]) -> RuleSet {
    load(&[RuleSet::builtin_sources(), sources.to_vec()].concat())
}

fn scan(rules: RuleSet, path: &str, text: &str) -> (Scanner, Vec<Match>) {
    let scanner = Scanner::with_floor(Arc::new(rules), Score::MEDIUM);
    let mut out = Vec::new();
    scanner.scan(&Chunk::whole(text.as_bytes(), path.as_bytes()), &mut Scratch::new(), &mut out);
    (scanner, out)
}

/// What is found at medium or better.
fn found(rules: &RuleSet, path: &str, text: &str) -> Vec<(String, String)> {
    let (scanner, out) = scan(rules.clone(), path, text);
    let id = |rule: u32| scanner.rules().rules()[rule as usize].id.to_string();
    out.iter().map(|found| (id(found.rule), text[found.span.clone()].to_owned())).collect()
}

fn check(rules: &RuleSet, path: &str, text: &str, expected: &[(&str, &str)]) {
    let found = found(rules, path, text);
    let found: Vec<_> = found.iter().map(|(rule, value)| (rule.as_str(), value.as_str())).collect();
    assert_eq!(found, expected, "{path}: {text}");
}

#[test]
fn each_field_of_a_rule_is_honoured() {
    let rules = load(&[source("features.toml")]);
    check(&rules, "a", "x hbr_k3v9q7x1m5z8w2c4 y", &[("harbour-token", "hbr_k3v9q7x1m5z8w2c4")]);
    check(&rules, "a", "LTHSE-KEY: 'q8w3x7z1m5k9v2'", &[("lighthouse-key", "q8w3x7z1m5k9v2")]);
    // Too little entropy.
    check(&rules, "a", "lthse_key: 'aaaabbbbaaaabbbb'", &[]);
    check(&rules, "a", r#"pilot_login="q8w3x7" "#, &[("pilot-login", "q8w3x7")]);
    check(&rules, "a", "pilot_login='m5k9v2' ", &[("pilot-login", "m5k9v2")]);
    check(&rules, "a", "pilot_login=z1z8w2 ", &[("pilot-login", "z1z8w2")]);
    check(&rules, "charts/a.yml", "pin: 271835\n", &[("chart-pin", "271835")]);
    check(&rules, "other/a.yml", "pin: 271835\n", &[]);
    check(&rules, "a", "ANCHOR2-QWXZKVJMPB", &[("anchor-key-2", "ANCHOR2-QWXZKVJMPB")]);
    check(&rules, "a", "helper_27183594", &[]);
    let rule = rules.get("harbour-token").unwrap();
    assert_eq!(rule.tags, ["harbour", "deploy", "gitleaks"]);
    assert_eq!((rule.score.level(), rule.category.as_str()), (Level::Medium, "secret"));
}

#[test]
fn a_rule_of_a_path_alone_is_about_the_object() {
    let rules = load(&[source("features.toml")]);
    check(&rules, "conf/release.p12", "0\u{82}", &[("keystore-file", "0")]);
    check(&rules, "conf/release.p12.txt", "0\u{82}", &[]);
    // Once, where the object begins.
    let scanner = Scanner::new(Arc::new(rules));
    let mut out = Vec::new();
    let chunk = Chunk { bytes: &[b' '; 100], accept: 50..100, path: b"a.jks", kind: PathKind::default() };
    scanner.scan(&chunk, &mut Scratch::new(), &mut out);
    assert_eq!(out, []);
}

#[test]
fn keywords_apart_from_the_match_must_be_near() {
    let rules = load(&[source("features.toml")]);
    let secret = "3f786850e387550fdab836ed7e6dc881";
    check(&rules, "a", &format!("mycranekey: {secret}"), &[("crane-secret", secret)]);
    check(&rules, "a", &format!("{secret} # for the Crane"), &[("crane-secret", secret)]);
    check(&rules, "a", &format!("md5: {secret}"), &[]);
    check(&rules, "a", &format!("crane{}{secret}", " ".repeat(600)), &[]);
    check(&rules, "a", "Mooring at KV2718, then", &[("mooring-code", "KV2718")]);
    check(&rules, "a", "at KV2718", &[]);
}

#[test]
fn what_is_not_honoured_is_listed() {
    let rules = load(&[source("features.toml")]);
    let mut notes: Vec<_> = rules.notes().iter().map(String::as_str).collect();
    notes.sort_unstable();
    assert_eq!(
        notes,
        [
            "features.toml:43: rule `crane-secret`: a keyword must be within 512 bytes of the secret, not anywhere in \
             the file",
            "features.toml:43: rule `crane-secret`: it has no literal to look for: it is found at the start of a word \
             or number",
            "features.toml:49: rule `mooring-code`: it has no literal to look for: it is found up to 512 bytes behind \
             a keyword",
            "features.toml:55: rule `Anchor Key 2`: it is called `anchor-key-2` here",
            "features.toml:60: rule `wharf-pair`: `required` rules are not looked for: what it finds is of level low",
            "features.toml:74: rule `nothing-to-find`: it is left out: it has nothing that can be looked for: give it \
             keywords of three letters or more",
            "features.toml:79: rule `broken`: it is left out: regex does not parse: look-around, including look-ahead \
             and look-behind, is not supported",
            "features.toml:84: rule 13 has no id: it is left out",
        ]
    );
    assert_eq!(found(&rules, "a", "wharf_id_27183594"), []);
    assert!(rules.get("wharf-pair").is_some() && rules.get("broken").is_none());
}

#[test]
fn allow_lists_are_honoured_with_their_conditions() {
    let rules = load(&[source("allowlists.toml")]);
    let token = "hbr_k3v9q7x1m5z8w2c4";
    let line = format!("token = \"{token}\"");
    let all = &[("harbour-token", token)];
    check(&rules, "a", &line, all);
    check(&rules, "a", "token = \"hbr_0000q7x1m5z8w2c4\"", &[]);
    check(&rules, "a", "token = \"hbr_k3samplem5z8w2c4\"", &[]);
    check(&rules, "a", &line.replace("token", "key"), &[]);
    check(&rules, "old/a", &format!("{line} # rotated"), &[]);
    check(&rules, "new/a", &format!("{line} # rotated"), all);
    check(&rules, "old/a", &line, all);
    check(&rules, "web/node_modules/a", &line, &[]);
    check(&rules, "a", &format!("{line} // gitleaks:allow"), &[]);
    check(&rules, "a", "fry-k3v9dryrunz8w2c4", &[]);
    check(&rules, "a", "token = \"hbr_k3v9dryrunz8w2c4\"", &[("harbour-token", "hbr_k3v9dryrunz8w2c4")]);
    assert_eq!(
        rules.notes(),
        [
            "allowlists.toml:9: rule `harbour-token`: `commits` of an allow list are not honoured, the rest is",
            "allowlists.toml:25: rule `harbour-token`: `commits` of an allow list are not honoured, so the allow list, \
             which asks for all, is left out",
            "allowlists.toml:42: `targetRules`: there is no rule `generic-api-key`, `lantern-token` here",
        ]
    );
}

#[test]
fn a_file_adds_to_another_and_to_the_built_in_rules() {
    let team = source("team.toml");
    assert_eq!(team.base(), Some(PathBuf::from("base.toml")));
    assert_eq!(source("base.toml").base(), None);
    let rules = with_builtin(&[team, source("base.toml")]);
    let long = "hbr_k3v9q7x1m5z8w2c4v6b9";
    check(
        &rules,
        "a",
        &format!("x {long} fry-k3v9q7x1m5z8w2c4"),
        &[("harbour-token", long), ("ferry-token", "fry-k3v9q7x1m5z8w2c4")],
    );
    // The allow list and the tags of the base are kept.
    check(&rules, "a", "hbr_k3samplem5z8w2c4v6b9", &[]);
    assert_eq!(rules.get("harbour-token").unwrap().tags, ["shared", "gitleaks"]);
    assert_eq!(rules.get("harbour-token").unwrap().description, "Harbour token");
    assert!(rules.get("buoy-token").is_none() && !rules.knows("buoy-token"));
    assert!(rules.get("private-key-pem").is_none() && rules.knows("private-key-pem"));
    assert_eq!(rules.get("iban").unwrap().description, "Our own bank numbers");
    let password = "password = \"kX9-not-so-secret-vQ2w\"";
    assert_eq!(found(&rules, "a", password), []);
    assert_eq!(found(&with_builtin(&[]), "a", password).len(), 1);
    assert_eq!(
        rules.notes(),
        [
            "team.toml:1: `extend.disabledRules`: there is no rule `lantern-token` here",
            "team.toml:6: `extend.url` is not read: save the file and name it with `--rules`",
            "team.toml:20: rule `lantern-token`: it has neither `regex` nor `path`, and no rule here is the one it adds to",
        ]
    );
}

#[test]
fn a_base_that_was_not_read_is_told() {
    let rules = load(&[text("[extend]\npath = 'gone.toml'\n[[rules]]\nid = 'a'\nregex = 'acme_[0-9]{9}'")]);
    assert_eq!(rules.notes(), ["own.toml:1: `extend.path`: there are no rules of `gone.toml` here"]);
    let cycle = text("[extend]\npath = 'own.toml'\n[[rules]]\nid = 'a'\nregex = 'acme_[0-9]{9}'");
    assert_eq!(load(&[cycle]).rules().len(), 1);
}

#[test]
fn an_id_of_a_built_in_rule_is_left_to_it_unless_defaults_are_extended() {
    let own = "[[rules]]\nid = 'iban'\nregex = 'ZZ[0-9]{2} TEST'\n[[rules.allowlists]]\nstopwords = ['3000']";
    let rules = with_builtin(&[text(own)]);
    assert!(rules.get("iban").is_some_and(|rule| !rule.validators.is_empty()));
    assert!(rules.get("gitleaks-iban").is_some());
    assert_eq!(rules.notes(), ["own.toml:1: rule `iban`: it is called `gitleaks-iban` here"]);
    // What it allows, it allows for both.
    let text = "account DE89370400440532013000";
    assert_eq!(found(&with_builtin(&[]), "a", text).len(), 1);
    assert_eq!(found(&rules, "a", text), []);
}

#[test]
fn a_built_in_rule_stays_if_the_one_in_its_place_cannot_be_read() {
    let own = "[extend]\nuseDefault = true\n[[rules]]\nid = 'iban'\nregex = 'ZZ(?=x)'";
    assert!(with_builtin(&[text(own)]).get("iban").is_some());
}

#[test]
fn ids_that_become_the_same_are_numbered() {
    let rule = |id: &str, word: &str| format!("[[rules]]\nid = '{id}'\nregex = '{word}_[0-9]{{9}}'\n");
    let own =
        [rule("a_key", "alpha"), rule("a-key", "beta"), rule("A KEY", "gamma"), rule("\u{9470}", "delta")];
    let rules = load(&[text(&own.concat())]);
    let ids: Vec<_> = rules.rules().iter().map(|rule| &*rule.id).collect();
    assert_eq!(ids, ["a-key", "a-key-2", "a-key-3", "rule"]);
    check(&rules, "a", "gamma_271859436", &[("a-key-3", "gamma_271859436")]);
}

#[test]
fn the_same_id_in_two_files_is_refused() {
    let one = text("[[rules]]\nid = 'a'\nregex = 'acme_[0-9]{9}'");
    let two = RuleSource { name: "two.toml".to_owned(), ..one.clone() };
    let errors = RuleSet::load(&[one, two]).unwrap_err().to_string();
    assert_eq!(errors, "two.toml:1: rule `a`: the id is taken by a rule of own.toml: choose another");
}

#[test]
fn fields_are_read_in_any_case_and_loosely() {
    let own = "Title = 'x'\n[[Rules]]\nID = 'a'\nRegex = 'acme_([0-9]{4})([0-9]{5})'\nsecretgroup = '2'\n\
               Keywords = 'acme_'\ncolour = 'red'\nentropy = true\n[allowList]\nStopWords = '00000'";
    let rules = load(&[text(own)]);
    check(&rules, "a", "acme_271859436", &[("a", "59436")]);
    check(&rules, "a", "acme_271800000", &[]);
    let mut notes = rules.notes().to_vec();
    notes.sort();
    assert_eq!(
        notes,
        [
            "own.toml:7: rule `a`: `colour` is not known: it is left out",
            "own.toml:8: rule `a`: `entropy` cannot be a boolean: it is left out",
        ]
    );
}

#[test]
fn what_would_unfold_beyond_reason_is_cut() {
    let own = "[[rules]]\nid = 'a'\nregex = 'acme_(?:[0-9]{1,1000}[a-z]{1,1000}){1,1000}'";
    let rules = load(&[text(own)]);
    assert!(rules.get("a").unwrap().max_len < 2048);
    check(&rules, "a", "acme_12x34y ", &[("a", "acme_12x34y")]);
}

#[test]
fn the_format_is_told_by_its_fields() {
    let native = "title = 'x'\n[[rule]]\nid = 'a'";
    let errors = RuleSet::load(&[text(native)]).unwrap_err().to_string();
    assert!(errors.contains("unknown field `title`"), "{errors}");
}

#[test]
fn a_file_of_many_rules_loads_with_few_notes() {
    let rules = with_builtin(&[source("many.toml")]);
    let own: Vec<_> = rules.rules().iter().filter(|rule| &*rule.family == "many.toml").collect();
    assert!(own.len() >= 100, "{}", own.len());
    // Keys between their head and their tail, which may be longer than a match can be.
    let expected = own.iter().filter(|rule| rule.regex.starts_with("-----BEGIN")).count();
    let cut = |note: &&String| note.ends_with(": a match has at most 2048 bytes");
    assert_eq!(rules.notes().iter().filter(cut).count(), expected);
    assert_eq!(rules.notes().len(), expected, "{:#?}", rules.notes());
}

#[test]
fn rules_in_every_style_find_what_they_are_for() {
    let rules = load(&[source("many.toml")]);
    let hex = "3f7a6850e197b50fdac846ed2e6bc981";
    let base64 = "q8W3x7Z1m5K9v2B4n6C8r0T1q8W3x7Z1m5K9v2B4n6C8r0";
    let jwt = "eyQ8W3x7Z1m5K9v2B4n6C8.eyQ8W3x7Z1m5K9v2B4n6C8.birch";
    let pem = "-----BEGIN BADGER KEY-----\nQ8W3x7Z1m5K9\n-----END BADGER KEY-----";
    let cases: [(&str, String, &str); 15] = [
        ("abacus-token", format!("ABACUS_KEY := '{hex}'\n"), hex),
        ("alder-key", "x(alder_live_q8W3x7Z1m5K9v2B4n6C8r0T1)".into(), "alder_live_q8W3x7Z1m5K9v2B4n6C8r0T1"),
        (
            "amber-secret",
            "AMBER-3F786850-E387-550F-DAB8-36ED7E6DC881".into(),
            "AMBER-3F786850-E387-550F-DAB8-36ED7E6DC881",
        ),
        ("anvil-password", "anvil_api_key: 'q8W3x7Z1m5K9v2B4'".into(), "q8W3x7Z1m5K9v2B4"),
        ("arrow-token", format!("https://hooks.arrow.test/services/{base64} "), ""),
        ("aster-key", "http://bo:kW9xQ2vZ@aster.internal/".into(), "kW9xQ2vZ"),
        ("badger-secret", pem.into(), pem),
        ("barley-password", r#""barley.password": "kW9xQ2vZ""#.into(), "kW9xQ2vZ"),
        ("basil-token", "a\nexport BASIL_TOKEN=kW9xQ2vZ\nb".into(), "kW9xQ2vZ"),
        ("beacon-key", "beacon://bo:kW9xQ2vZ@db.internal:5432/x".into(), "kW9xQ2vZ"),
        ("birch-secret", jwt.into(), jwt),
        ("bison-password", "<bisonSecret>kW9xQ2vZ</bisonSecret>".into(), "kW9xQ2vZ"),
        ("bramble-token", format!("x-bramble-signature: {hex}{hex}"), ""),
        ("breeze-key", "breeze.$HOME_DIR={}ab[c]de".into(), "breeze.$HOME_DIR={}ab[c]de"),
        ("bronze-secret", "BRONZE-password => kW9xQ2vZ11".into(), "kW9xQ2vZ11"),
    ];
    for (id, text, value) in cases {
        let found = found(&rules, "a", &text);
        let [(rule, found)] = &found[..] else { panic!("{id}: {} found in {text}", found.len()) };
        assert_eq!(rule, id, "{text}");
        assert!(value.is_empty() || value == found, "{id}: {found}");
    }
}

/// A text with a match of every kind, in chunks of any size, gives what the whole gives.
#[test]
fn chunks_give_what_the_whole_gives() {
    let rules = load(&[source("features.toml"), source("many.toml")]);
    let scanner = Scanner::new(Arc::new(rules));
    let mut text = String::new();
    for gap in [1, 100, 500, 509, 515, 2000] {
        let gap = " ".repeat(gap);
        text.push_str(&format!(
            "crane{gap}3f786850e387550fdab836ed7e6dc881 mooring{gap}KV2718 hbr_k3v9q7x1m5z8w2c4{gap}\n\
             -----BEGIN BADGER KEY-----{gap}-----END BADGER KEY-----\nexport BASIL_TOKEN={gap}x\n\
             lthse_key{gap}: 'q8w3x7z1m5k9v2' pilot_login='m5k9v2' # gitleaks:allow{gap}\n"
        ));
    }
    let scan = |chunk: &Chunk<'_>, at: usize| {
        let mut out = Vec::new();
        scanner.scan(chunk, &mut Scratch::new(), &mut out);
        out.into_iter().map(|found| (found.rule, found.span.start + at, found.score)).collect::<Vec<_>>()
    };
    let path = b"conf/release.p12";
    let whole = scan(&Chunk::whole(text.as_bytes(), path), 0);
    assert!(whole.len() > 20, "{}", whole.len());
    for size in [301, 1024, 5000] {
        let mut chunked = Vec::new();
        for start in (0..text.len()).step_by(size) {
            let end = (start + size).min(text.len());
            let from = start.saturating_sub(LOOKBEHIND);
            let bytes = &text.as_bytes()[from..(end + LOOKAHEAD).min(text.len())];
            chunked.extend(scan(
                &Chunk { bytes, accept: start - from..end - from, path, kind: PathKind::of(path) },
                from,
            ));
        }
        assert_eq!(chunked, whole, "{size}");
    }
}

/// The work for text that is made to trigger rules is bounded for each byte of it. What is counted is bytes handed to
/// regexes.
#[test]
fn hostile_text_costs_in_proportion() {
    const LEN: usize = 1 << 13;
    const WINDOW_BYTES_MAX: u64 = 512;
    let scanner = Scanner::new(Arc::new(load(&[source("features.toml"), source("many.toml")])));
    let units = [
        "crane ",
        "mooring",
        "pilot_login=",
        "bronze-password=",
        "beacon://",
        "3f786850e387550fdab836ed7e6dc881",
        "-----BEGIN BADGER KEY-----",
        "anvil_key=",
        "export BASIL_TOKEN=",
        "aster.internal",
        "eyeyey.",
    ];
    for unit in units {
        let text = unit.repeat(LEN / unit.len());
        let mut scratch = Scratch::new();
        scanner.scan(&Chunk::whole(text.as_bytes(), b""), &mut scratch, &mut Vec::new());
        let per_byte = scratch.window_bytes() / text.len() as u64;
        assert!(per_byte <= WINDOW_BYTES_MAX, "{unit}: {per_byte} window bytes per byte");
    }
}
