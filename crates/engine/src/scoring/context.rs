//! Context words near a value: whole words in any case, so that `lic` is not found in `duplicate`, but
//! `card` is found in `card_number` and `cardNumber`.

use std::ops::Range;
use std::sync::Arc;

use crate::rules::Context;

/// Words that are looked for at once.
const TOGETHER: usize = u64::BITS as usize;

/// The first of the rule's words that stands wholly within reach before or after the value.
pub fn find(bytes: &[u8], span: Range<usize>, context: &Context) -> Option<Arc<str>> {
    let before = span.start.saturating_sub(context.within)..span.start;
    let after = span.end..(span.end + context.within).min(bytes.len());
    context.words.chunks(TOGETHER).find_map(|words| {
        let starts = starts(words);
        let [a, b] = [&before, &after].map(|range| first_within(bytes, range.clone(), words, &starts));
        a.into_iter().chain(b).min().map(|word| words[word].clone())
    })
}

/// For each byte, which of the words it may start.
fn starts(words: &[Arc<str>]) -> [u64; 256] {
    let mut starts = [0; 256];
    for (number, word) in words.iter().enumerate() {
        let mut add = |byte: u8| starts[usize::from(byte)] |= 1u64 << number;
        match word.as_bytes()[0] {
            b' ' => (0..=u8::MAX).filter(|&byte| same(byte, b' ')).for_each(add),
            first => [first, first.to_ascii_uppercase()].into_iter().for_each(&mut add),
        }
    }
    starts
}

/// The least of the words that stands in `range`.
fn first_within(bytes: &[u8], range: Range<usize>, words: &[Arc<str>], starts: &[u64; 256]) -> Option<usize> {
    let mut wanted = u64::MAX;
    let mut first = None;
    for at in range.clone() {
        let mut may = starts[usize::from(bytes[at])] & wanted;
        while may != 0 {
            let number = may.trailing_zeros() as usize;
            may &= may - 1;
            if is_word_at(bytes, at, range.end, words[number].as_bytes()) {
                // Only a word before this one in the list is of interest now.
                first = Some(number);
                wanted = (1 << number) - 1;
                may = 0;
            }
        }
    }
    first
}

fn is_word_at(bytes: &[u8], at: usize, limit: usize, word: &[u8]) -> bool {
    let end = at + word.len();
    end <= limit
        && bytes[at..end].iter().zip(word).all(|(&byte, &wanted)| same(byte, wanted))
        && starts_word(bytes, at)
        && ends_word(bytes, end)
}

/// A space of the word stands for any one separator.
fn same(byte: u8, wanted: u8) -> bool {
    byte.to_ascii_lowercase() == wanted
        || (wanted == b' ' && matches!(byte, b'_' | b'-' | b'.' | b'\t' | b'\n' | b'\r'))
}

/// Letters of any script: bytes of a longer UTF-8 sequence count as such.
fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || !byte.is_ascii()
}

fn starts_word(bytes: &[u8], at: usize) -> bool {
    at.checked_sub(1).is_none_or(|before| !same_word(bytes[before], bytes[at]))
}

fn ends_word(bytes: &[u8], end: usize) -> bool {
    bytes.get(end).is_none_or(|&after| !same_word(bytes[end - 1], after))
}

/// Whether two neighbours belong to one word: a capital after a small letter begins another, and so does a
/// letter after a digit, or a digit after a letter.
fn same_word(a: u8, b: u8) -> bool {
    let camel = a.is_ascii_lowercase() && b.is_ascii_uppercase();
    (is_letter(a) && is_letter(b) && !camel) || (a.is_ascii_digit() && b.is_ascii_digit())
}
