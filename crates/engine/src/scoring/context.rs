//! Context words near a value: whole words in any case, so that `lic` is not found in `duplicate`, but
//! `card` is found in `card_number` and `cardNumber`. In scripts that put no space between words, a word is found
//! wherever its characters stand.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::rules::Context;

/// Words that are looked for at once.
const TOGETHER: usize = u64::BITS as usize;

/// Where words count: before and after the value.
fn reach(bytes: &[u8], span: &Range<usize>, context: &Context) -> [Range<usize>; 2] {
    let before = span.start.saturating_sub(context.within)..span.start;
    let after = span.end..(span.end + context.within).min(bytes.len());
    if context.anywhere { [before.start..after.end, after.end..after.end] } else { [before, after] }
}

/// The first of the rule's words that stands wholly within reach before or after the value.
pub fn find(bytes: &[u8], span: Range<usize>, context: &Context) -> Option<Arc<str>> {
    let [before, after] = reach(bytes, &span, context);
    context.words.chunks(TOGETHER).zip(context.starts.of(&context.words)).find_map(|(words, heads)| {
        let [a, b] =
            [&before, &after].map(|range| first_within(bytes, range.clone(), words, heads, context.anywhere));
        a.into_iter().chain(b).min().map(|word| words[word].clone())
    })
}

/// The words of one rule near the last value, so that where values are dense the text between them is read once.
#[derive(Default)]
pub struct Memo {
    /// Whether it was asked for since the text began.
    is_used: bool,
    /// Where the last value began.
    last: Option<usize>,
    /// To before here all words are known that begin within reach of the last value.
    to: usize,
    /// Where each begins and ends, and its number.
    words: VecDeque<(usize, usize, usize)>,
}

impl Memo {
    /// The same as [`find`]; values of the same text are asked for in order.
    pub fn find(&mut self, bytes: &[u8], span: Range<usize>, context: &Context) -> Option<Arc<str>> {
        let [before, after] = reach(bytes, &span, context);
        let is_near = self.last.is_some_and(|last| (last..=last + context.within).contains(&span.start));
        self.last = Some(span.start);
        if !is_near {
            self.to = 0;
            return find(bytes, span, context);
        }
        if self.to <= before.start {
            self.words.clear();
            self.to = before.start;
        }
        let end = after.end.max(before.end);
        for at in self.to..end {
            words_at(bytes, at, context, |end, number| self.words.push_back((at, end, number)));
        }
        self.to = self.to.max(end);
        while self.words.front().is_some_and(|(at, ..)| *at < before.start) {
            self.words.pop_front();
        }
        let stands_in = |range: &Range<usize>, &(at, end, number): &(usize, usize, usize)| {
            // The space at the end of a word may stand for the hump of camel case, which must be within reach, too.
            let whole = || end_of(&bytes[..range.end], at, &context.words[number]).is_some();
            range.contains(&at) && (end < range.end || (end == range.end && whole()))
        };
        let counts = |word: &&(usize, usize, usize)| stands_in(&before, word) || stands_in(&after, word);
        let first = self.words.iter().filter(counts).map(|(.., number)| *number).min();
        first.map(|number| Arc::clone(&context.words[number]))
    }
}

/// The memos of all rules for one text.
#[derive(Default)]
pub struct Memos {
    by_rule: Vec<Memo>,
    /// The rules that were asked for.
    used: Vec<u32>,
}

impl Memos {
    /// Begins another text; `rules` is how many there are.
    pub fn begin(&mut self, rules: usize) {
        self.by_rule.resize_with(rules, Memo::default);
        for rule in self.used.drain(..) {
            let memo = &mut self.by_rule[rule as usize];
            (memo.last, memo.is_used) = (None, false);
        }
    }

    pub fn of(&mut self, rule: u32) -> &mut Memo {
        let memo = &mut self.by_rule[rule as usize];
        if !std::mem::replace(&mut memo.is_used, true) {
            self.used.push(rule);
        }
        memo
    }
}

/// Tells the end and the number of each word that stands at `at`.
fn words_at(bytes: &[u8], at: usize, context: &Context, mut each: impl FnMut(usize, usize)) {
    if !context.anywhere && at > 0 && goes_on(bytes[at - 1], bytes[at]) {
        return;
    }
    for (heads, first) in context.starts.of(&context.words).iter().zip((0..).step_by(TOGETHER)) {
        let mut may = heads.at(bytes, at);
        while may != 0 {
            let number = first + may.trailing_zeros() as usize;
            may &= may - 1;
            let word = &context.words[number];
            if is_word_at(bytes, bytes, at, word, context.anywhere)
                && let Some(end) = end_of(bytes, at, word)
            {
                each(end, number);
            }
        }
    }
}

/// Which of a context's words may start with which bytes; by [`TOGETHER`] words.
#[derive(Clone, Default, Debug)]
pub struct Starts(OnceLock<Vec<Heads>>);

impl Starts {
    fn of(&self, words: &[Arc<str>]) -> &[Heads] {
        self.0.get_or_init(|| words.chunks(TOGETHER).map(Heads::of).collect())
    }
}

/// They follow from the words.
impl PartialEq for Starts {
    fn eq(&self, _: &Starts) -> bool {
        true
    }
}

impl Eq for Starts {}

/// For each byte, which of some words may have it first, and which second.
#[derive(Clone, Debug)]
struct Heads {
    first: [u64; 256],
    second: [u64; 256],
}

impl Heads {
    fn of(words: &[Arc<str>]) -> Heads {
        let mut heads = Heads { first: [0; 256], second: [0; 256] };
        for (number, word) in words.iter().enumerate() {
            for [first, second] in super::nearby::heads(word).into_iter().map(u16::to_be_bytes) {
                heads.first[usize::from(first)] |= 1 << number;
                heads.second[usize::from(second)] |= 1 << number;
            }
        }
        heads
    }

    /// The words that may start at `at`.
    fn at(&self, bytes: &[u8], at: usize) -> u64 {
        let next = bytes.get(at + 1).copied().unwrap_or(0);
        self.first[usize::from(bytes[at])] & self.second[usize::from(next)]
    }
}

/// The capital of a letter, where it is one character.
pub(super) fn capital(letter: char) -> char {
    let mut capitals = letter.to_uppercase();
    match (capitals.next(), capitals.next()) {
        (Some(capital), None) => capital,
        _ => letter,
    }
}

/// The least of the words that stands in `range`.
fn first_within(
    bytes: &[u8],
    range: Range<usize>,
    words: &[Arc<str>],
    heads: &Heads,
    anywhere: bool,
) -> Option<usize> {
    let mut wanted = u64::MAX;
    let mut first = None;
    let mut look = |at: usize, mut may: u64| {
        if !anywhere && at > 0 && goes_on(bytes[at - 1], bytes[at]) {
            return;
        }
        may &= wanted;
        while may != 0 {
            let number = may.trailing_zeros() as usize;
            may &= may - 1;
            if is_word_at(&bytes[..range.end], bytes, at, &words[number], anywhere) {
                // Only a word before this one in the list is of interest now.
                first = Some(number);
                wanted = (1 << number) - 1;
                may = 0;
            }
        }
    };
    // Next to no two bytes begin a word.
    let mut begun = 0;
    for (at, byte) in (range.start..).zip(&bytes[range.start..bytes.len().min(range.end + 1)]) {
        let may = begun & heads.second[usize::from(*byte)];
        if may != 0 {
            look(at - 1, may);
        }
        begun = heads.first[usize::from(*byte)];
    }
    let may = begun & heads.second[0];
    if may != 0 && range.end == bytes.len() {
        look(range.end - 1, may);
    }
    first
}

/// Small letters, capitals and digits, a bit each; and behind which of them a byte goes on with a word.
static KINDS: [(u8, u8); 256] = {
    let (mut kinds, mut byte) = ([(0, 0); 256], 0);
    while byte < kinds.len() {
        kinds[byte] = match byte as u8 {
            b'a'..=b'z' => (1, 1 | 2),
            b'A'..=b'Z' => (2, 2),
            b'0'..=b'9' => (4, 4),
            _ => (0, 0),
        };
        byte += 1;
    }
    kinds
};

/// Whether a byte surely goes on with the word of the one before it, so that no word begins there.
pub(super) fn goes_on(before: u8, byte: u8) -> bool {
    KINDS[usize::from(before)].0 & KINDS[usize::from(byte)].1 != 0
}

/// Whether the word stands at `at`, wholly within `reach`, which is the beginning of `bytes`; as a word of its own
/// unless it may be `anywhere`.
pub(super) fn is_word_at(reach: &[u8], bytes: &[u8], at: usize, word: &str, anywhere: bool) -> bool {
    let Some(end) = end_of(reach, at, word) else { return false };
    if !anywhere && word.len() <= HEX_WORD_MAX && touches_digit(bytes, at, end) {
        return false;
    }
    let unspaced = |character: Option<char>| anywhere || character.is_some_and(is_unspaced);
    (unspaced(word.chars().next()) || starts_word(bytes, at))
        && (unspaced(word.chars().next_back()) || ends_word(bytes, end))
}

/// Where the word ends if its characters stand at `at`.
fn end_of(bytes: &[u8], at: usize, word: &str) -> Option<usize> {
    // Nearly all that is asked for is told apart, or is all there is, before the first space or foreign letter.
    let (text, mut plain) = (bytes.get(at..)?, 0);
    for wanted in word.bytes().take_while(|byte| byte.is_ascii() && *byte != b' ') {
        if text.get(plain)?.to_ascii_lowercase() != wanted {
            return None;
        }
        plain += 1;
    }
    word[plain..].chars().try_fold(at + plain, |at, wanted| Some(at + len_of(bytes, at, wanted)?))
}

/// Words that are not longer stand by chance between the digits of hashes: `cc`, `id`.
const HEX_WORD_MAX: usize = 2;

fn touches_digit(bytes: &[u8], start: usize, end: usize) -> bool {
    let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    is_digit(start.checked_sub(1)) || is_digit(Some(end))
}

/// The bytes that a word's character has at `at`, in either case; `None` if it is not there.
fn len_of(bytes: &[u8], at: usize, wanted: char) -> Option<usize> {
    let rest = bytes.get(at..)?;
    if wanted.is_ascii() {
        let next = *rest.first()?;
        // Between words that camel case joins there is nothing.
        let hump =
            wanted == ' ' && next.is_ascii_uppercase() && bytes[at.saturating_sub(1)].is_ascii_lowercase();
        return if hump { Some(0) } else { same(next, wanted as u8).then_some(1) };
    }
    [wanted, capital(wanted)].into_iter().find_map(|character| {
        let mut buffer = [0; 4];
        let encoded = character.encode_utf8(&mut buffer);
        rest.starts_with(encoded.as_bytes()).then_some(encoded.len())
    })
}

/// Letters of scripts in which words follow each other without a space, or carry endings without a break: Thai,
/// Lao, Burmese, Khmer, Japanese, Chinese, Korean.
pub fn is_unspaced(character: char) -> bool {
    matches!(
        character,
        '\u{0e00}'..='\u{0eff}'
            | '\u{1000}'..='\u{109f}'
            | '\u{1780}'..='\u{17ff}'
            | '\u{3040}'..='\u{30ff}'
            | '\u{3400}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7a3}'
    )
}

/// A space of the word stands for any one separator.
pub(super) fn same(byte: u8, wanted: u8) -> bool {
    byte.to_ascii_lowercase() == wanted
        || (wanted == b' ' && matches!(byte, b'_' | b'-' | b'.' | b'\t' | b'\n' | b'\r'))
}

/// Bytes of the longest character.
const CHARACTER_MAX: usize = 4;

/// Letters of any script; so are bytes of a text that is not UTF-8, but not the quotation marks and spaces of
/// typesetters.
fn is_letter(text: &[u8]) -> bool {
    match text {
        [byte] if byte.is_ascii() => byte.is_ascii_alphabetic(),
        _ => std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.chars().next())
            .is_none_or(char::is_alphabetic),
    }
}

/// The character that ends at `at`.
fn before(bytes: &[u8], at: usize) -> &[u8] {
    let far = at.saturating_sub(CHARACTER_MAX);
    let start = (far..at).rev().find(|&start| is_first(bytes[start])).unwrap_or(at.saturating_sub(1));
    &bytes[start..at]
}

/// The character that starts at `at`.
fn after(bytes: &[u8], at: usize) -> &[u8] {
    let far = (at + CHARACTER_MAX).min(bytes.len());
    let end = (at + 1..far).find(|&end| is_first(bytes[end])).unwrap_or(far);
    &bytes[at.min(far)..end]
}

/// Whether a byte of UTF-8 begins a character.
fn is_first(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

fn starts_word(bytes: &[u8], at: usize) -> bool {
    at == 0 || !same_word(before(bytes, at), after(bytes, at))
}

fn ends_word(bytes: &[u8], end: usize) -> bool {
    end == bytes.len() || !same_word(before(bytes, end), after(bytes, end))
}

/// Whether two neighbours belong to one word: a capital after a small letter begins another, and so does a
/// letter after a digit, or a digit after a letter.
fn same_word(a: &[u8], b: &[u8]) -> bool {
    let camel = a.iter().all(u8::is_ascii_lowercase) && b.iter().all(u8::is_ascii_uppercase);
    let digits = a.iter().all(u8::is_ascii_digit) && b.iter().all(u8::is_ascii_digit);
    (is_letter(a) && is_letter(b) && !camel) || digits
}
