//! Context words near a value: whole words in any case, so that `lic` is not found in `duplicate`, but
//! `card` is found in `card_number` and `cardNumber`.

use std::ops::Range;
use std::sync::Arc;

use crate::rules::Context;

/// The first of the rule's words that stands wholly within reach before or after the value.
pub fn find(bytes: &[u8], span: Range<usize>, context: &Context) -> Option<Arc<str>> {
    let before = span.start.saturating_sub(context.within)..span.start;
    let after = span.end..(span.end + context.within).min(bytes.len());
    let near = |word: &&Arc<str>| {
        [&before, &after].into_iter().any(|range| has_word(bytes, range.clone(), word.as_bytes()))
    };
    context.words.iter().find(near).cloned()
}

fn has_word(bytes: &[u8], range: Range<usize>, word: &[u8]) -> bool {
    let Some(last) = range.end.checked_sub(word.len()) else { return false };
    let first = word[0];
    (range.start..=last).any(|at| {
        let end = at + word.len();
        same(bytes[at], first)
            && bytes[at..end].iter().zip(word).all(|(&byte, &wanted)| same(byte, wanted))
            && starts_word(bytes, at)
            && ends_word(bytes, end)
    })
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
