//! The run of bytes that every match of a rule contains, such as the 40 hexadecimal digits of a token. Most triggers
//! are names, which stand in every other file with nothing behind them: whether there is such a run near is told in a
//! few steps, and without it the regex is not asked, nor even compiled.

use std::ops::Range;
use std::sync::LazyLock;

use regex_syntax::hir::{Class, Hir, HirKind};

use super::gate::ByteSet;
use super::packed::packed_fields;
use crate::prefilter::NEAR_RUN;

/// A shorter run is in most texts, and not worth a look.
const LEN_MIN: usize = 8;

/// At least `len` bytes of a set, one after another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    bytes: ByteSet,
    len: usize,
}

packed_fields!(Run { bytes, len });

/// What tokens are made of.
static TOKENS: LazyLock<ByteSet> =
    LazyLock::new(|| ByteSet::of(|byte| byte.is_ascii_alphanumeric() || b"_-+/=.~".contains(&byte)));

/// Those of them that words are made of.
static WORDS: LazyLock<ByteSet> = LazyLock::new(|| ByteSet::of(|byte| byte.is_ascii_alphanumeric()));

/// Marks that most text is without, the rarest first.
const MARKS: &[u8] = b"@$%{#|";

impl Run {
    const NONE: Run = Run { bytes: ByteSet::EMPTY, len: 0 };

    /// The rarest run of bytes of tokens that every match has: a long word, or else the longest. If there is none, a
    /// single mark that every match has.
    pub fn of(hir: &Hir) -> Option<Run> {
        let Some(longest) = longest(hir, *TOKENS).filter(|run| run.len >= LEN_MIN) else {
            let mark = MARKS.iter().find(|&&mark| has_byte(hir, mark))?;
            return Some(Run { bytes: [*mark].into_iter().collect(), len: 1 });
        };
        let word = || self::longest(hir, *WORDS).filter(|run| run.len >= NEAR_RUN);
        if longest.bytes.is_within(*WORDS) { Some(longest) } else { word().or(Some(longest)) }
    }

    /// Whether it is a long word.
    pub fn is_long_word(&self) -> bool {
        self.len >= NEAR_RUN && self.bytes.is_within(*WORDS)
    }

    /// Where it first begins in `text`.
    fn find(&self, text: &[u8]) -> Option<usize> {
        if let (1, Some(mark)) = (self.len, self.bytes.single()) {
            return memchr::memchr(mark, text);
        }
        let mut start = 0;
        // Bytes from `start` to before here are of the set.
        let mut known = 0;
        while let Some(candidate) = text.get(start..start + self.len) {
            let from = known.max(start) - start;
            match candidate[from..].iter().rposition(|&byte| !self.bytes.contains(byte)) {
                None => return Some(start),
                Some(last) => {
                    known = start + self.len;
                    start += from + last + 1;
                }
            }
        }
        None
    }

    fn then(mut self, next: &Run) -> Run {
        self.bytes.add(next.bytes);
        self.len += next.len;
        self
    }
}

/// Asks for a run in windows of a text that follow each other, so that where they overlap the text is read once.
pub struct InWindows<'r> {
    run: &'r Run,
    /// The run does not begin here,
    without: Range<usize>,
    /// and begins at the end of it.
    begins: bool,
}

impl<'r> InWindows<'r> {
    pub fn new(run: &'r Run) -> InWindows<'r> {
        InWindows { run, without: 0..0, begins: false }
    }

    /// Whether the run is in a window of `bytes`. None begins before the last one did.
    pub fn is_in(&mut self, bytes: &[u8], window: Range<usize>) -> bool {
        if window.start > self.without.end {
            (self.without, self.begins) = (window.start..window.start, false);
        }
        if !self.begins && self.without.end + self.run.len <= window.end {
            let rest = &bytes[self.without.end..window.end];
            let found = self.run.find(rest);
            self.begins = found.is_some();
            self.without.end += found.unwrap_or(rest.len() - self.run.len + 1);
        }
        self.begins && self.without.end + self.run.len <= window.end
    }
}

/// Whether every match of `hir` has `byte`.
fn has_byte(hir: &Hir, byte: u8) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(Class::Unicode(_)) => false,
        HirKind::Literal(literal) => literal.0.contains(&byte),
        HirKind::Class(Class::Bytes(class)) => {
            matches!(class.ranges(), [range] if (range.start(), range.end()) == (byte, byte))
        }
        HirKind::Repetition(repetition) => repetition.min > 0 && has_byte(&repetition.sub, byte),
        HirKind::Capture(capture) => has_byte(&capture.sub, byte),
        HirKind::Concat(parts) => parts.iter().any(|part| has_byte(part, byte)),
        HirKind::Alternation(choices) => choices.iter().all(|choice| has_byte(choice, byte)),
    }
}

/// The longest run of bytes in `tokens` that every match of `hir` contains.
fn longest(hir: &Hir, tokens: ByteSet) -> Option<Run> {
    if let Some(run) = whole(hir, tokens) {
        return Some(run);
    }
    match hir.kind() {
        HirKind::Repetition(repetition) if repetition.min > 0 => longest(&repetition.sub, tokens),
        HirKind::Capture(capture) => longest(&capture.sub, tokens),
        HirKind::Concat(parts) => {
            let (mut best, mut current) = (None::<Run>, Run::NONE);
            let mut keep = |run: Run| {
                if best.as_ref().is_none_or(|best| best.len < run.len) {
                    best = Some(run);
                }
            };
            for part in parts {
                match whole(part, tokens) {
                    Some(run) => current = current.then(&run),
                    None => {
                        keep(std::mem::replace(&mut current, Run::NONE));
                        longest(part, tokens).into_iter().for_each(&mut keep);
                    }
                }
            }
            keep(current);
            best
        }
        HirKind::Alternation(choices) => {
            let runs: Option<Vec<Run>> = choices.iter().map(|choice| longest(choice, tokens)).collect();
            runs?.into_iter().reduce(either)
        }
        _ => None,
    }
}

/// The same if all of a match is of such bytes.
fn whole(hir: &Hir, tokens: ByteSet) -> Option<Run> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Some(Run::NONE),
        HirKind::Literal(literal) => {
            let bytes = literal.0.iter().copied().collect::<ByteSet>();
            bytes.is_within(tokens).then_some(Run { bytes, len: literal.0.len() })
        }
        HirKind::Class(Class::Bytes(class)) => {
            let bytes = class.iter().flat_map(|range| range.start()..=range.end()).collect::<ByteSet>();
            bytes.is_within(tokens).then_some(Run { bytes, len: 1 })
        }
        HirKind::Class(Class::Unicode(_)) => None,
        HirKind::Repetition(repetition) => {
            let run = whole(&repetition.sub, tokens)?;
            Some(Run { len: run.len * repetition.min as usize, ..run })
        }
        HirKind::Capture(capture) => whole(&capture.sub, tokens),
        HirKind::Concat(parts) => {
            parts.iter().try_fold(Run::NONE, |run, part| Some(run.then(&whole(part, tokens)?)))
        }
        HirKind::Alternation(choices) => {
            let runs: Option<Vec<Run>> = choices.iter().map(|choice| whole(choice, tokens)).collect();
            runs?.into_iter().reduce(either)
        }
    }
}

fn either(mut a: Run, b: Run) -> Run {
    a.bytes.add(b.bytes);
    a.len = a.len.min(b.len);
    a
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex_automata::meta::Regex;

    use super::*;
    use crate::rules::pattern;

    fn run_of(regex: &str) -> Option<(usize, String)> {
        let run = Run::of(&pattern::read(regex).unwrap())?;
        Some((run.len, (0..=u8::MAX).filter(|&byte| run.bytes.contains(byte)).map(char::from).collect()))
    }

    #[test]
    fn the_longest_run_of_every_match_is_known() {
        let check = |regex: &str, len: usize, bytes: &str| {
            assert_eq!(run_of(regex), Some((len, bytes.to_owned())), "{regex}");
        };
        check("key=(?P<value>[0-9a-c]{16})", 20, "0123456789=abceky");
        check("'[0-3]{8,99}'", 8, "0123");
        check("'[ks]_[0-3]{8}\\b'", 10, "0123_ks");
        check("'(?:a{9}|b{12})'", 9, "ab");
        check("'(?:a{9}'|b{12}\")", 9, "ab");
        check("'(?:[0-3]{4}-?){3}'", 12, "-0123");
        check("a{9}(?: x){2}", 9, "a");
    }

    #[test]
    fn a_long_word_is_preferred_and_a_mark_is_better_than_nothing() {
        let check = |regex: &str, run: Option<(usize, &str)>| {
            assert_eq!(run_of(regex), run.map(|(len, bytes)| (len, bytes.to_owned())), "{regex}");
        };
        check("k_(?P<value>[0-3]{32})", Some((32, "0123")));
        check("k_[0-3_]{32}", Some((34, "0123_k")));
        check("://[a-z]{1,9}:[^ ]{1,9}@", Some((1, "@")));
        check("(?:a@|b[@])(?: |x)", Some((1, "@")));
        check("(?:a@|b)(?:@ )?", None);
    }

    #[test]
    fn what_some_matches_lack_is_no_run() {
        for regex in ["'a{7}'", "'(?:a{9}|b{2})'", "'(?:a{9} )?'", "[^\"]{40}", "'a{0,40}'", "(?u:é){9}"] {
            assert_eq!(run_of(regex), None, "{regex}");
        }
    }

    proptest! {
        #[test]
        fn runs_are_found_wherever_they_are(text in "[ab.]{0,60}", len in 1usize..12) {
            let run = Run { bytes: ByteSet::of(|byte| byte != b'.'), len };
            let naive = text.as_bytes().windows(len).any(|window| !window.contains(&b'.'));
            prop_assert_eq!(run.find(text.as_bytes()).is_some(), naive);
        }

        #[test]
        fn windows_that_overlap_are_told_apart(
            text in "[ab.]{60}",
            len in 1usize..12,
            mut starts in proptest::collection::vec(0usize..60, 0..20),
            width in 0usize..30,
        ) {
            let run = Run { bytes: ByteSet::of(|byte| byte != b'.'), len };
            let mut windows = InWindows::new(&run);
            starts.sort_unstable();
            for start in starts {
                // One may end before another that began sooner.
                let window = start..(start + width - width.min(start % 3)).min(text.len());
                let naive = run.find(&text.as_bytes()[window.clone()]).is_some();
                prop_assert_eq!(windows.is_in(text.as_bytes(), window), naive);
            }
        }

        #[test]
        fn every_match_has_the_run(
            regex in "(?:@|\\(@ \\|@\\)|\\(\\[ab\\]\\{(?:2|9)\\}\\|b\\{8,9\\}\\)|\\[ab\\]\\{8\\}c\\?|c\\{1,2\\}| |\\(a\\{4\\}\\)\\{2\\}){1,4}",
            text in "[abc @]{0,50}",
        ) {
            let hir = pattern::read(&regex).unwrap();
            if let Some(run) = Run::of(&hir) {
                let regex = Regex::builder().build_from_hir(&hir).unwrap();
                for found in regex.find_iter(&text) {
                    prop_assert!(run.find(&text.as_bytes()[found.range()]).is_some(), "{:?}", found);
                }
            }
        }
    }
}
