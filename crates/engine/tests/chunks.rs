//! A scan in chunks of any size gives exactly the matches of the whole, once each, for every built-in rule; and so does
//! one that takes over what was met in another version of the text.

use std::sync::{Arc, LazyLock};

use domesday_engine::{
    Chunk, CopiedRange, LOOKAHEAD, LOOKBEHIND, Match, ReusableHits, RuleSet, Scanner, Scratch,
};
use domesday_model::Score;
use proptest::prelude::*;

static SCANNER: LazyLock<Scanner> = LazyLock::new(|| {
    let rules = RuleSet::builtin().unwrap_or_else(|errors| panic!("{errors}"));
    Scanner::new(Arc::new(rules))
});

/// What is reported of a chunk, and what is suppressed in it.
fn scan_all(chunk: &Chunk<'_>, scratch: &mut Scratch) -> Vec<Match> {
    let mut all = Vec::new();
    SCANNER.scan(chunk, scratch, &mut all);
    with_suppressed(all, scratch)
}

fn with_suppressed(mut all: Vec<Match>, scratch: &mut Scratch) -> Vec<Match> {
    all.append(&mut scratch.take_suppressed());
    all.sort_by_key(|found| (found.span.start, found.span.end, found.rule));
    all
}

fn scan_in_chunks(bytes: &[u8], size: usize, scratch: &mut Scratch) -> Vec<Match> {
    let mut all = Vec::new();
    let mut start = 0;
    while start < bytes.len() {
        let end = (start + size).min(bytes.len());
        let from = start.saturating_sub(LOOKBEHIND);
        let to = (end + LOOKAHEAD).min(bytes.len());
        let mut found = scan_all(&Chunk::unnamed(&bytes[from..to], start - from..end - from), scratch);
        for found in &mut found {
            found.span = found.span.start + from..found.span.end + from;
        }
        all.append(&mut found);
        start = end;
    }
    all
}

/// In hexadecimal, percent escapes or base64.
fn encode(text: &[u8], how: u8) -> Vec<u8> {
    const SYMBOLS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    match how {
        0 => text.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect(),
        1 => text.iter().flat_map(|byte| format!("%{byte:02x}").into_bytes()).collect(),
        _ => text
            .chunks(3)
            .flat_map(|bytes| {
                let bits =
                    bytes.iter().enumerate().fold(0, |bits, (i, &b)| bits | u32::from(b) << (16 - 8 * i));
                (0..=bytes.len()).map(move |i| SYMBOLS[(bits >> (18 - 6 * i) & 63) as usize])
            })
            .collect(),
    }
}

/// A text of examples with noise between: blanks, quotes, halves of examples, digits, bytes that are no UTF-8.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let examples: Vec<Vec<u8>> = SCANNER
        .rules()
        .rules()
        .iter()
        .flat_map(|rule| rule.positive.iter().chain(&rule.negative))
        .map(|example| example.clone().into_bytes())
        .collect();
    let example = prop::sample::select(examples);
    let cut = (example.clone(), any::<prop::sample::Index>()).prop_map(|(mut example, at)| {
        example.truncate(at.index(example.len() + 1));
        example
    });
    let noise = prop_oneof![
        Just(b" ".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\"".to_vec()),
        Just(b"domesday:ignore".to_vec()),
        "[a-z0-9=:@. -]{0,80}".prop_map(String::into_bytes),
        "([0-9]{1,4}[ -]){0,60}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..40),
        (any::<u8>(), 0usize..6000).prop_map(|(byte, len)| vec![byte; len]),
    ];
    let encoded = (example.clone(), 0u8..3).prop_map(|(example, how)| encode(&example, how));
    let piece = prop_oneof![4 => example, 1 => cut, 2 => encoded, 5 => noise];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn chunked_equals_whole(text in text(), size in prop_oneof![16usize..200, 200usize..9000, Just(1 << 20)]) {
        let mut scratch = Scratch::new();
        let whole = scan_all(&Chunk::whole(&text, b""), &mut scratch);
        // Tiny chunks of a long text are many scans of the same neighbourhood: enough of them is enough.
        let size = size.max(text.len() / 64);
        prop_assert_eq!(scan_in_chunks(&text, size, &mut scratch), whole);
    }
}

/// Texts with room between: where there are more hits, none are kept.
fn sparse() -> impl Strategy<Value = Vec<u8>> {
    const PROSE: &str = "there is not much to be said about this, and it goes on for a while; ";
    let room = (0usize..60).prop_map(|times| PROSE.repeat(times).into_bytes());
    let piece = prop_oneof![1 => text(), 6 => room];
    proptest::collection::vec(piece, 1..8).prop_map(|pieces| pieces.concat())
}

/// A part of a text that is made from another one.
#[derive(Clone, Debug)]
enum Part {
    /// From a place of the other on, so many bytes or as many as there are.
    Copied(usize, usize),
    New(Vec<u8>),
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let copied = (0usize..100_000, 0usize..20_000).prop_map(|(from, len)| Part::Copied(from, len));
    let head = (0usize..20_000).prop_map(|len| Part::Copied(0, len));
    let part = prop_oneof![3 => copied, 1 => head, 1 => sparse().prop_map(Part::New)];
    proptest::collection::vec(part, 0..6)
}

fn make(base: &[u8], parts: &[Part]) -> (Vec<u8>, Vec<CopiedRange>) {
    let (mut text, mut copied) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Part::New(bytes) => text.extend(bytes),
            Part::Copied(from, len) => {
                let from = from % (base.len() + 1);
                let len = (*len).min(base.len() - from);
                copied.push(CopiedRange { at: text.len(), from, len });
                text.extend(&base[from..from + len]);
            }
        }
    }
    (text, copied)
}

fn scan_with_base(
    text: &[u8],
    base: Option<(&ReusableHits, &[CopiedRange])>,
    scratch: &mut Scratch,
) -> (Vec<Match>, Option<ReusableHits>) {
    let mut matches = Vec::new();
    let hits = SCANNER.scan_with_base(&Chunk::whole(text, b""), base, true, scratch, &mut matches);
    (with_suppressed(matches, scratch), hits)
}

fn scan_whole(text: &[u8], scratch: &mut Scratch) -> Vec<Match> {
    scan_all(&Chunk::whole(text, b""), scratch)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn versions_are_as_each_alone(first in sparse(), edits in proptest::collection::vec(parts(), 1..4)) {
        let mut scratch = Scratch::new();
        let (matches, mut hits) = scan_with_base(&first, None, &mut scratch);
        prop_assert_eq!(matches, scan_whole(&first, &mut scratch));
        let mut base = first;
        for parts in edits {
            let (text, copied) = make(&base, &parts);
            let known = hits.as_ref().map(|hits| (hits, &copied[..]));
            let (matches, left) = scan_with_base(&text, known, &mut scratch);
            prop_assert_eq!(matches, scan_whole(&text, &mut scratch));
            (base, hits) = (text, left);
        }
    }
}

/// About what is far from all that changed nothing is asked again, unless it is in what is decoded.
#[test]
fn only_what_changed_is_asked_again() {
    let mut scratch = Scratch::new();
    let examples = SCANNER.rules().rules().iter().step_by(40).map(|rule| &*rule.positive[0]);
    let base = examples.collect::<Vec<_>>().join(&"\n".repeat(500)) + &"\n".repeat(5_000);
    let (found, hits) = scan_with_base(base.as_bytes(), None, &mut scratch);
    let hits = hits.expect("so few hits are kept");
    assert!(found.len() >= 20, "{}", found.len());
    let text = format!("{base}the end");
    let copied = [CopiedRange { at: 0, from: 0, len: base.len() }];
    let alone = scratch.window_bytes();
    let (again, left) = scan_with_base(text.as_bytes(), Some((&hits, &copied)), &mut scratch);
    let searched = scratch.window_bytes() - alone;
    assert!(searched * 4 < alone, "{searched} bytes were searched, and {alone} without a base");
    assert_eq!((again, left.is_some()), (found, true));
}

#[test]
fn every_rule_is_found_once_in_small_chunks() {
    let mut scratch = Scratch::new();
    for rule in SCANNER.rules().rules() {
        let text = format!("\n{}\n", rule.positive[0]).into_bytes();
        let whole = scan_all(&Chunk::whole(&text, b""), &mut scratch);
        let step = (text.len() / 64).max(1);
        assert_eq!(scan_in_chunks(&text, step, &mut scratch), whole, "{}", rule.id);
    }
}

/// What comes again and again is copied where the text is long enough, and searched in chunks that are not.
#[test]
fn texts_that_repeat_themselves_are_as_in_small_chunks() {
    const SMALL: usize = 20_000;
    let mut scratch = Scratch::new();
    let examples: Vec<&str> = SCANNER.rules().rules().iter().map(|rule| &*rule.positive[0]).collect();
    let (noise, tail) = (examples[..40].join("\n"), examples[40..80].join(" "));
    let mut units: Vec<String> =
        ["4111 1111 ", "key=", "%41%3d", "x@x.com ", "a"].map(str::to_owned).to_vec();
    units.extend(examples.iter().step_by(150).map(|example| format!("{example}\n")));
    units.push(examples[100..130].join("\n"));
    for unit in units {
        let text = [&noise, &unit.repeat(70_000 / unit.len()), &tail].map(|part| part.as_bytes()).concat();
        let whole = scan_all(&Chunk::whole(&text, b""), &mut scratch);
        let chunked = scan_in_chunks(&text, SMALL, &mut scratch);
        let differs = whole.iter().zip(&chunked).position(|(a, b)| a != b);
        assert!(whole == chunked, "{unit:?}: {} and {} matches, {differs:?}", whole.len(), chunked.len());
    }
}

/// Where triggers are dense, rules that need a word near are asked only where one is.
#[test]
fn dense_numbers_give_what_a_scan_without_a_floor_gives() {
    let rules = RuleSet::builtin().unwrap_or_else(|errors| panic!("{errors}"));
    let at_medium = Scanner::with_floor(Arc::new(rules), Score::MEDIUM);
    let mut scratch = Scratch::new();
    let mut found = 0;
    let is_number = |example: &&String| example.bytes().filter(u8::is_ascii_digit).count() >= 7;
    let examples = SCANNER.rules().rules().iter().flat_map(|rule| &rule.positive);
    let all: Vec<&str> = examples.filter(is_number).map(String::as_str).collect();
    for examples in all.chunks(16) {
        // Each with its words, then numbers without any, so that some have words near and some have none.
        let numbers = |example: &&str| {
            let digits: String = example.chars().filter(char::is_ascii_digit).collect();
            format!("{example}\n{}", format!("{digits} ").repeat(30))
        };
        let text: String = examples.iter().map(numbers).collect();
        let (mut few, mut many) = (Vec::new(), Vec::new());
        at_medium.scan(&Chunk::whole(text.as_bytes(), b""), &mut scratch, &mut few);
        SCANNER.scan(&Chunk::whole(text.as_bytes(), b""), &mut Scratch::new(), &mut many);
        many.retain(|found| found.score >= Score::MEDIUM);
        assert!(few == many, "{} and {} matches from {:?}", few.len(), many.len(), examples[0]);
        found += few.len();
    }
    assert!(found > 1000, "{found}");
}
