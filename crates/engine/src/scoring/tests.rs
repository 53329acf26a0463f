//! Scores and their reasons.

use std::sync::LazyLock;

use proptest::prelude::*;

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

/// What was found besides the format, without its weight.
fn told(reasons: &Evidences) -> String {
    let besides = reasons.0.iter().map(|reason| &reason.evidence).filter(|&told| *told != Evidence::Format);
    let besides: Vec<_> = besides.map(Evidence::to_string).collect();
    if besides.is_empty() { Evidence::Format.to_string() } else { besides.join("; ") }
}

/// Judges the part of `text` between `[` and `]`.
fn check(extra: &str, text: &str, expected: Option<(u8, &str)>) {
    let start = text.find('[').unwrap();
    let bytes = text.replace(['[', ']'], "");
    let span = start..text.find(']').unwrap() - 1;
    let judged = judge(
        &rule(extra),
        bytes.as_bytes(),
        span,
        PathKind::default(),
        Score(0),
        &mut Memo::default(),
        &mut Facts::default(),
    );
    let judged = judged.map(|(score, reasons)| (score.0, told(&reasons)));
    assert_eq!(judged, expected.map(|(score, reasons)| (score, reasons.to_owned())), "{text}");
}

#[test]
fn a_bare_match_has_its_base_score() {
    check("", "x [k3v9q] y", Some((60, "format matches")));
}

#[test]
fn reasons_say_what_they_weigh() {
    let weighed = |extra: &str, text: &str, path: &str| {
        let (score, reasons) = judge(
            &rule(extra),
            text.as_bytes(),
            0..text.len(),
            PathKind::of(path.as_bytes()),
            Score(0),
            &mut Memo::default(),
            &mut Facts::default(),
        )
        .unwrap();
        (score.0, reasons.to_string())
    };
    let check = |extra: &str, text: &str, path: &str, score: u8, reasons: &str| {
        assert_eq!(weighed(extra, text, path), (score, reasons.to_owned()), "{text}");
    };
    check("", "k3v9q", "", 60, "60 format matches");
    check("", "k3v9q", "tests/a", 50, "60 format matches; -10 in a test or sample file");
    check("", "xxxxxxxx", "", 30, "60 format matches; at most 30: looks like a placeholder");
    check(
        "validators = ['luhn', 'luhn']",
        "4111111111111111",
        "",
        90,
        "60 format matches; +30 check digit valid",
    );
    let required =
        "validators = [{ name = 'entropy', min = 2.0 }]\ncontext = { words = ['pin'], required = true }";
    check(required, "k3v9qzx1", "", 40, "60 format matches; +5 high entropy; at most 40: no keyword near");
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
    check(card, "card2 [k3v9q]", Some((85, "keyword `card` near")));
    let short = "context = { words = ['cc'], boost = 25 }";
    check(short, "cc: [k3v9q]", Some((85, "keyword `cc` near")));
    check(short, "7f3cc41a [k3v9q]", Some((60, "format matches")));
    let phrase = "context = { words = ['access key'] }";
    check(phrase, "access-key [k3v9q]", Some((80, "keyword `access key` near")));
    check(phrase, "myAccessKey [k3v9q]", Some((80, "keyword `access key` near")));
    check(phrase, "accesskey [k3v9q]", Some((60, "format matches")));
}

#[test]
fn context_words_of_other_scripts_are_found_as_they_are_written() {
    let cyrillic = "context = { words = ['инн'] }";
    check(cyrillic, "ИНН [k3v9q]", Some((80, "keyword `инн` near")));
    check(cyrillic, "«инн»: [k3v9q]", Some((80, "keyword `инн` near")));
    check(cyrillic, "винни [k3v9q]", Some((60, "format matches")));
    let french = "context = { words = ['assurance'] }";
    check(french, "d’assurance [k3v9q]", Some((80, "keyword `assurance` near")));
    check(french, "réassurance [k3v9q]", Some((60, "format matches")));
    let chinese = "context = { words = ['身份证'] }";
    check(chinese, "我的身份证号码是 [k3v9q]", Some((80, "keyword `身份证` near")));
    let thai = "context = { words = ['โทร'] }";
    check(thai, "กรุณาโทรหา [k3v9q]", Some((80, "keyword `โทร` near")));
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
    check(entropy, "[aaaabbbb]", Some((30, "looks like a placeholder")));
    check(entropy, "[k3v9qzx1]", Some((65, "high entropy")));
    let distinct = "validators = [{ name = 'distinct', min = 4 }]";
    check(distinct, "[aabbccaa]", Some((30, "looks like a placeholder")));
    check(distinct, "[aabbccda]", Some((60, "format matches")));
    let stopwords = "validators = ['stopwords']";
    let made_up = Some((30, "looks like a placeholder"));
    check(stopwords, "[my_secret_password1]", made_up);
    check(stopwords, "[mySecretToken]", made_up);
    check(stopwords, "[sup3rs3cret]", made_up);
    check(stopwords, "[super$ecret]", Some((60, "format matches")));
    check(stopwords, "[thisismypassword]", Some((60, "format matches")));
    check(stopwords, "[enteryourpassword]", made_up);
    check(stopwords, "[Pass123!@#]", Some((60, "format matches")));
    check(stopwords, "[k3v9q1234567]", Some((35, "counts up as typed examples do")));
    let placeholders = "validators = ['placeholders']";
    check(placeholders, "[pass_word]", made_up);
    check(placeholders, "[your-password]", made_up);
    check(placeholders, "[secret]", Some((60, "format matches")));
    check(stopwords, "[secretsauce9]", Some((60, "format matches")));
    check("validators = [{ name = 'stopwords', words = ['sauce'] }]", "[secret-sauce]", made_up);
    check("validators = ['luhn']", "[4111111111111111]", Some((80, "check digit valid")));
    check("validators = ['luhn']", "[4111111111111112]", None);
    check("validators = ['crc32_base62']", "[npm_000000]", Some((80, "token checksum valid")));
    check("validators = ['crc32_base62']", "[npm_000001]", Some((40, "token checksum wrong")));
}

#[test]
fn placeholders_stay_low() {
    check("", "[AKIAIOSFODNN7EXAMPLE]", Some((30, "looks like a placeholder")));
    check("", "[xxxxxxxxxxxx]", Some((30, "looks like a placeholder")));
}

#[test]
fn well_known_samples_stay_low() {
    let low = Some((30, "a well-known sample of documentation"));
    check("", "[JBSWY3DPEHPK3PXP]", low);
    check("", "[JBSWY3DPEHPK3PXQ]", Some((60, "format matches")));
    check("", "[eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIn0.c2ln]", low);
}

#[test]
fn passwords_for_hosts_of_documentation_lose() {
    let lower = Some((40, "sent to a host of documentation"));
    check("", "https://ann:[k3v9q]@www.example.com/", lower);
    check("", "ftp://ann:[k3v9q]@files.TEST", lower);
    check("", "https://ann:[k3v9q]@example.company/", Some((60, "format matches")));
    check("", "https://ann:[k3v9q]@host/example.com", Some((60, "format matches")));
}

#[test]
fn sample_files_lose_a_little() {
    let sample = PathKind { sample: true, code: true };
    let (score, reasons) =
        judge(&rule(""), b"k3v9q", 0..5, sample, Score(0), &mut Memo::default(), &mut Facts::default())
            .unwrap();
    assert_eq!((score.0, told(&reasons).as_str()), (50, "in a test or sample file"));
}

#[test]
fn what_is_everywhere_in_source_code_stays_low_there() {
    let judged = |path: &str, floor: u8| {
        let rule = rule("low_in_code = true");
        let judged = judge(
            &rule,
            b"k3v9q",
            0..5,
            PathKind::of(path.as_bytes()),
            Score(floor),
            &mut Memo::default(),
            &mut Facts::default(),
        );
        judged.map(|(score, reasons)| (score.0, told(&reasons)))
    };
    assert_eq!(judged("a.c", 0), Some((40, "in source code".to_owned())));
    assert_eq!(judged("a.c", 50), None);
    assert_eq!(judged("a.csv", 50), Some((60, "format matches".to_owned())));
}

/// Whether a rule of this category with the id `r` is ignored where `VAL` stands.
fn ignored(text: &str, category: Category) -> bool {
    let at = text.find("VAL").unwrap();
    let rule = Rule { category, ..rule("") };
    is_ignored(text.as_bytes(), at..at + 3, &rule, |id| id == "r" || id == "plain")
}

#[test]
fn an_ignore_comment_covers_its_line_and_its_rule() {
    for yes in [
        "x = VAL # domesday:ignore",
        "x = VAL; // domesday:ignore",
        "/* domesday:ignore */ x = VAL",
        "VAL <!-- domesday:ignore -->",
        "x = VAL -- domesday:ignore",
        "x = VAL ; domesday:ignore",
        "x = VAL % domesday:ignore",
        "x = VAL {# domesday:ignore #}",
        "REM domesday:ignore VAL",
        "VAL // domesday:ignore r",
        "VAL // domesday:ignore: r because",
        "VAL // domesday:ignore this is fake",
        "VAL // domesday:ignore other-rule, r",
        "VAL // domesday:ignore plain,r",
        "VAL domesday:ignore other-rule domesday:ignore r",
    ] {
        assert!(ignored(yes, Category::Secret) && ignored(yes, Category::Payment), "{yes}");
    }
    for no in [
        "x = VAL\n# domesday:ignore",
        "# domesday:ignore\nx = VAL",
        "VAL // domesday:ignore other-rule",
        "VAL // domesday:ignore other-rule, another-rule",
        "VAL // domesday:ignore plain",
        "VAL // domesday: ignore",
    ] {
        assert!(!ignored(no, Category::Secret), "{no}");
    }
}

#[test]
fn marks_of_other_scanners_cover_secrets() {
    for text in [
        "x = VAL # gitleaks:allow",
        "x = VAL // trufflehog:ignore",
        "x = VAL /* kingfisher:ignore */",
        "x = VAL # pragma: allowlist secret",
    ] {
        assert!(ignored(text, Category::Secret), "{text}");
        assert!(!ignored(text, Category::Personal), "{text}");
    }
    for text in ["VAL # gitleaks:ignore", "VAL # allow", "VAL\n# gitleaks:allow", "VAL # pragma: once"] {
        assert!(!ignored(text, Category::Secret), "{text}");
    }
}

#[test]
fn entropy_of_known_values() {
    assert_eq!(value::entropy(b"aaaa"), 0.0);
    assert_eq!(value::entropy(b"abcd"), 2.0);
    assert_eq!(value::entropy(b""), 0.0);
}

static BUILTIN: LazyLock<RuleSet> =
    LazyLock::new(|| RuleSet::builtin().unwrap_or_else(|errors| panic!("{errors}")));

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Words of rules as people write them, what looks like them, and what stands between.
fn text() -> impl Strategy<Value = String> {
    let contexts = BUILTIN.rules().iter().filter_map(|rule| rule.context.as_ref());
    let words: Vec<Arc<str>> = contexts.flat_map(|context| context.words.iter().cloned()).collect();
    let word = prop::sample::select(words);
    let written = (word, 0u8..5).prop_map(|(word, how)| match how {
        0 => word.to_uppercase(),
        1 => word.replace(' ', "_"),
        2 => word.split(' ').map(capitalised).collect(),
        _ => word.to_string(),
    });
    let between = "[ _.:,\n=-]{0,3}|[0-9]{1,9} ?|[a-zA-Z]{1,3}|\"| {0,90}";
    let piece = prop_oneof![written, between];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn words_are_the_same_with_and_without_a_memo(
        text in text(),
        steps in proptest::collection::vec((0usize..60, 0usize..12), 1..30),
        rules in any::<prop::sample::Index>(),
    ) {
        let contexts: Vec<_> = BUILTIN.rules().iter().filter_map(|rule| rule.context.as_ref()).collect();
        let mut given = contexts[rules.index(contexts.len())].clone();
        given.words.push("key ".into());
        given.starts = Starts::default();
        for anywhere in [false, true] {
            let context = Context { anywhere, starts: Starts::default(), ..given.clone() };
            let mut memo = Memo::default();
            let mut start = 0;
            for (step, len) in &steps {
                start = (start + step).min(text.len());
                let span = start..(start + len).min(text.len());
                let plain = context::find(text.as_bytes(), span.clone(), &context);
                prop_assert_eq!(memo.find(text.as_bytes(), span.clone(), &context), plain, "{:?}", span);
            }
        }
    }

    #[test]
    fn words_near_are_never_missed(text in text(), places in proptest::collection::vec(0usize..400, 1..4)) {
        static INDEX: LazyLock<WordIndex> = LazyLock::new(|| WordIndex::new(BUILTIN.rules(), |_| true));
        let mut nearby = Nearby::default();
        nearby.fill(&INDEX, text.as_bytes(), 0..text.len());
        for at in places.into_iter().map(|at| at.min(text.len())) {
            for (number, rule) in (0..).zip(BUILTIN.rules()) {
                let Some(context) = &rule.context else { continue };
                let reach = at.saturating_sub(context.within)..(at + context.within).min(text.len());
                if has_context(text.as_bytes(), at..at, context) {
                    prop_assert!(nearby.has_any(&INDEX, number, reach.clone()) && nearby.has(&INDEX, number, reach), "{} at {at}", rule.id);
                }
            }
        }
    }

    #[test]
    fn what_has_no_mark_is_not_ignored(
        pieces in proptest::collection::vec("domesday:ignore|gitleaks:allow|pragma: allowlist secret|[a-z: \n]{0,700}", 0..12),
        steps in proptest::collection::vec((0usize..900, 0usize..20), 1..20),
    ) {
        let (text, rule) = (pieces.concat(), rule(""));
        let mut unmarked = Unmarked::default();
        let mut start = 0;
        for (step, len) in steps {
            start = (start + step).min(text.len());
            let span = start..(start + len).min(text.len());
            if unmarked.has(text.as_bytes(), &span) {
                prop_assert!(!is_ignored(text.as_bytes(), span, &rule, |_| false));
            }
        }
    }

    #[test]
    fn placeholders_are_found_wherever_they_are(value in "(?i)(your|[_-]|ex|example|x{1,7}|0{1,13}|[a-z]|<|\\{|\\$|change|me){0,9}") {
        let parts = value::PLACEHOLDERS.iter();
        let naive = parts.into_iter().any(|part| value.to_ascii_lowercase().contains(part));
        prop_assert_eq!(value::is_placeholder(value.as_bytes()), naive);
    }
}

#[test]
fn stop_words_are_in_order() {
    assert!(value::STOPWORDS.is_sorted());
}
