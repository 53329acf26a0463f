//! The prefilter against definitions written as plainly as possible.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn hits(find: impl FnOnce(&mut Vec<Hit>)) -> BTreeSet<(u32, usize)> {
    let mut found = Vec::new();
    find(&mut found);
    found.iter().map(|hit| (hit.rule, hit.at)).collect()
}

/// A segment size that cuts texts of tests into several.
const SMALL_SEGMENT: usize = SEGMENT_ALIGN;

fn segments(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let starts = (0..bytes.len()).step_by(SMALL_SEGMENT);
    starts.map(|start| start..(start + SMALL_SEGMENT).min(bytes.len()))
}

fn naive_literals(literals: &[Literal], bytes: &[u8]) -> BTreeSet<(u32, usize)> {
    let mut found = BTreeSet::new();
    for (literal, rule) in literals.iter().zip(0..) {
        for (at, window) in bytes.windows(literal.bytes.len()).enumerate() {
            let same = if literal.any_case {
                window.eq_ignore_ascii_case(&literal.bytes)
            } else {
                window == literal.bytes
            };
            if same {
                found.insert((rule, at));
            }
        }
    }
    found
}

fn literal_set() -> impl Strategy<Value = Vec<Literal>> {
    let bytes = proptest::collection::vec(prop::sample::select(&b"aAbB_-\x00\xff"[..]), 3..9);
    let literal = (bytes, any::<bool>()).prop_map(|(mut bytes, any_case)| {
        if any_case {
            bytes.make_ascii_lowercase();
        }
        Literal { bytes, any_case }
    });
    proptest::collection::vec(literal, 1..12)
}

proptest! {
    #[test]
    fn literals_are_found_exactly(
        literals in literal_set(),
        text in proptest::collection::vec(prop::sample::select(&b"aAbB_-\x00\xff"[..]), 0..300),
        planted in proptest::collection::vec((any::<prop::sample::Index>(), 0usize..300), 0..9),
    ) {
        let mut text = text;
        for (which, at) in planted {
            let literal = &which.get(&literals).bytes;
            let at = at.min(text.len());
            text.splice(at..at, literal.iter().copied());
        }
        for &level in simd::Level::all() {
            let mut builder = literals::Builder::default();
            literals.iter().zip(0..).for_each(|(literal, rule)| builder.add(literal, rule));
            let index = builder.build(level);
            let mut times = Vec::new();
            segments(&text).for_each(|segment| index.find(&text, segment, &mut Default::default(), &mut times));
            let found = hits(|all| *all = times.clone());
            prop_assert_eq!(found.len(), times.len(), "each occurrence once");
            prop_assert_eq!(found, naive_literals(&literals, &text));
        }
    }

    #[test]
    fn shapes_are_found_exactly(
        text in proptest::collection::vec(prop::sample::select(&b"0123456789012345 -./:@aFz_Q\xe9\n"[..]), 0..400),
        runs in proptest::collection::vec((0usize..400, "[0-9]{1,40}|[0-9A-Fa-f:]{4,70}|[A-Za-z0-9]{3,80}|([0-9][ ./-]?){3,40}|[0-9]{1,4}(\\.[0-9]{1,3}){3}"), 0..8),
    ) {
        let mut text = text;
        for (at, run) in runs {
            let at = at.min(text.len());
            text.splice(at..at, run.into_bytes());
        }
        let kinds = [
            Shape::Digits { min: 9 }, Shape::Digits { min: 16 }, Shape::Digits { min: 5 }, Shape::At, Shape::DottedQuad,
            Shape::HexColon { min: 2 }, Shape::HexColon { min: 5 }, Shape::WordDigits { min: 4, len: 6 },
            Shape::WordDigits { min: 7, len: 12 }, Shape::WordDigits { min: 2, len: 24 }, Shape::WordDigits { min: 0, len: 50 },
        ];
        // Each alone, too: the thresholds of one must not hide another.
        for chosen in (0..kinds.len()).map(|one| &kinds[one..=one]).chain([&kinds[..]]) {
            for &level in simd::Level::all() {
                let mut index = shapes::ShapeIndex::new(level);
                chosen.iter().zip(0..).for_each(|(shape, rule)| index.add(*shape, rule, &Gate::open()));
                let naive = naive_shapes(chosen, &text);
                let find = |segment: Range<usize>, all: &mut Vec<Hit>| index.find(&text, segment, &mut Default::default(), &mut Default::default(), all);
                prop_assert_eq!(hits(|all| segments(&text).for_each(|segment| find(segment, all))), naive.clone());
                prop_assert_eq!(hits(|all| find(0..text.len(), all)), naive);
            }
        }
    }
}

proptest! {
    #[test]
    fn what_is_near_a_long_word_is_told(
        parts in proptest::collection::vec(("[a_.]{0,200}", "[a-zA-Z0-9]{1,30}"), 0..9),
    ) {
        let text: String = parts.into_iter().flat_map(|(gap, word)| [gap, word]).collect();
        let (text, index) = (text.as_bytes(), shapes::ShapeIndex::new(simd::Level::of_machine()));
        let mut covered = vec![false; text.len()];
        for segment in segments(text) {
            let mut near = Near::default();
            index.find(text, segment, &mut Default::default(), &mut near, &mut Vec::new());
            for range in near.drain() {
                prop_assert!(range.start.is_multiple_of(SEGMENT_ALIGN) && range.end.is_multiple_of(SEGMENT_ALIGN));
                covered[range.start..range.end.min(text.len())].fill(true);
            }
        }
        for (at, word) in text.windows(NEAR_RUN).enumerate() {
            if word.iter().all(u8::is_ascii_alphanumeric) {
                let near = at.saturating_sub(NEAR_MAX)..(at + NEAR_MAX).min(text.len());
                prop_assert!(covered[near].iter().all(|covered| *covered), "at {}", at);
            }
        }
    }
}

fn naive_shapes(kinds: &[Shape], bytes: &[u8]) -> BTreeSet<(u32, usize)> {
    let mut found = BTreeSet::new();
    for (shape, rule) in kinds.iter().zip(0..) {
        found.extend((0..bytes.len()).filter(|&at| naive_shape(*shape, bytes, at)).map(|at| (rule, at)));
    }
    found
}

fn naive_shape(shape: Shape, bytes: &[u8], at: usize) -> bool {
    let before = if at == 0 { b'\n' } else { bytes[at - 1] };
    let text = String::from_utf8_lossy(&bytes[at..]).into_owned();
    let run = |allowed: fn(char) -> bool, max: usize| {
        text.chars().take(max).take_while(|&c| allowed(c)).collect::<String>()
    };
    let word_before = before.is_ascii_alphanumeric() || before == b'_';
    match shape {
        Shape::Digits { min } => {
            let run = run(|c| c.is_ascii_digit() || " -./".contains(c), usize::MAX);
            let groups: Vec<&str> = run.split([' ', '-', '.', '/']).collect();
            let digits: usize =
                groups.iter().take_while(|group| !group.is_empty()).map(|group| group.len()).sum();
            !before.is_ascii_digit() && digits >= min.into()
        }
        Shape::At => {
            let next = bytes.get(at + 1).copied().unwrap_or(b' ');
            bytes[at] == b'@'
                && (before.is_ascii_alphanumeric() || b"._%+-\"".contains(&before))
                && (next.is_ascii_alphanumeric() || next == b'[')
        }
        Shape::DottedQuad => {
            let groups: Vec<&str> = text.splitn(4, '.').collect();
            let digits = |group: &str| group.chars().take_while(char::is_ascii_digit).count();
            let inner = |group: &&str| (1..=3).contains(&group.len()) && digits(group) == group.len();
            !before.is_ascii_digit()
                && groups.len() == 4
                && groups[..3].iter().all(inner)
                && (1..=3).contains(&digits(groups[3]))
        }
        Shape::HexColon { min } => {
            let run = run(|c| c.is_ascii_hexdigit() || c == ':', 64);
            !word_before && before != b':' && run.matches(':').count() >= min.into()
        }
        Shape::WordDigits { min, len } => {
            let run =
                run(|c| c.is_ascii_alphanumeric(), if usize::from(len) >= LONG_WORD_MIN { 64 } else { 32 });
            let digits = run.chars().filter(char::is_ascii_digit).count();
            !word_before && run.len() >= len.into() && digits >= min.into() && digits < run.len()
        }
    }
}
