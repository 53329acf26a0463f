//! What a value looks like by itself: random, made up, or made of everyday words.

use crate::parts::Parts;
use crate::validators::is_sentence;

/// Parts of values that documentation and templates use in place of a secret.
pub(super) const PLACEHOLDERS: &[&str] = &[
    "example",
    "placeholder",
    "changeme",
    "change_me",
    "change-me",
    "your_",
    "your-",
    "yourkey",
    "yoursecret",
    "yourtoken",
    "redacted",
    "dummy",
    "fixme",
    "replace_",
    "replace-",
    "replaceme",
    "xxxxxx",
    "000000000000",
    "......",
    "******",
    "${",
    "{{",
    "<your",
];

/// Words that alone do not make a secret, however they are joined.
pub(super) const STOPWORDS: &[&str] = &[
    "a",
    "access",
    "account",
    "add",
    "admin",
    "an",
    "and",
    "api",
    "apikey",
    "app",
    "auth",
    "bar",
    "baz",
    "blank",
    "change",
    "client",
    "config",
    "confirm",
    "confirmation",
    "credential",
    "credentials",
    "data",
    "default",
    "demo",
    "disabled",
    "dummy",
    "email",
    "empty",
    "enabled",
    "encrypted",
    "enter",
    "env",
    "example",
    "expired",
    "external",
    "fake",
    "false",
    "field",
    "file",
    "foo",
    "foobar",
    "for",
    "forgot",
    "forgotten",
    "from",
    "generated",
    "get",
    "goes",
    "here",
    "hidden",
    "id",
    "in",
    "incorrect",
    "inherited",
    "input",
    "insert",
    "internal",
    "invalid",
    "is",
    "it",
    "key",
    "keyboard",
    "length",
    "login",
    "masked",
    "maximum",
    "me",
    "minimum",
    "mismatch",
    "missing",
    "mock",
    "my",
    "name",
    "new",
    "nil",
    "no",
    "none",
    "not",
    "null",
    "of",
    "old",
    "on",
    "optional",
    "or",
    "pass",
    "passphrase",
    "passwd",
    "password",
    "path",
    "placeholder",
    "plain",
    "plaintext",
    "private",
    "protected",
    "public",
    "put",
    "pwd",
    "real",
    "repeat",
    "replace",
    "required",
    "reset",
    "root",
    "sample",
    "secret",
    "secure",
    "set",
    "some",
    "something",
    "standard",
    "strength",
    "string",
    "strong",
    "super",
    "temp",
    "test",
    "testing",
    "text",
    "the",
    "this",
    "to",
    "todo",
    "token",
    "true",
    "type",
    "unchanged",
    "undefined",
    "unencrypted",
    "unknown",
    "url",
    "use",
    "user",
    "username",
    "value",
    "var",
    "variable",
    "visible",
    "with",
    "wrong",
    "yes",
    "your",
];

/// Those that begin with a letter, whatever its case: they are in order.
fn stopwords(first: u8) -> &'static [&'static str] {
    /// By letter, where its words begin, and at the end how many there are.
    static FROM: [usize; 27] = letters(STOPWORDS);
    let letter = usize::from(first.to_ascii_lowercase().wrapping_sub(b'a'));
    if letter < 26 { &STOPWORDS[FROM[letter]..FROM[letter + 1]] } else { &[] }
}

/// How many of the words, which are in order, begin with a letter before each.
const fn letters(words: &[&str]) -> [usize; 27] {
    let mut from = [0; 27];
    let mut number = 0;
    while number < words.len() {
        let letter = (words[number].as_bytes()[0] - b'a') as usize;
        let mut after = letter + 1;
        while after < from.len() {
            from[after] += 1;
            after += 1;
        }
        number += 1;
    }
    from
}

/// Digits that a part of a value may have and still be only a numbering of words.
const NUMBERING_MAX: usize = 3;

/// Which bytes there are, as bits.
fn seen(value: &[u8]) -> [u64; 4] {
    let mut seen = [0; 4];
    value.iter().for_each(|&byte| seen[usize::from(byte >> 6)] |= 1u64 << (byte & 63));
    seen
}

/// Shannon entropy in bits per byte.
pub fn entropy(value: &[u8]) -> f64 {
    let mut counts = [0u32; 256];
    value.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
    let len = value.len() as f64;
    // Most bytes come as often as others: their share is told once.
    let mut known = [None; ENTROPY_KNOWN];
    let mut sum = 0.0;
    for (part, mut bits) in seen(value).into_iter().enumerate() {
        while bits != 0 {
            let count = counts[64 * part + bits.trailing_zeros() as usize];
            bits &= bits - 1;
            let share = || {
                let share = f64::from(count) / len;
                -share * share.log2()
            };
            sum += match known.get_mut(count as usize) {
                Some(known) => *known.get_or_insert_with(share),
                None => share(),
            };
        }
    }
    sum
}

/// Counts of a byte for which the share in an entropy is kept.
const ENTROPY_KNOWN: usize = 8;

/// How many different bytes.
pub fn distinct(value: &[u8]) -> usize {
    seen(value).iter().map(|bits| bits.count_ones() as usize).sum()
}

/// Whether a template's words or fillers stand in place of a secret.
pub fn is_placeholder(value: &[u8]) -> bool {
    static PARTS: Parts = Parts::in_any_case(PLACEHOLDERS);
    PARTS.is_in(value)
}

/// What a field is called, rather than what is in it.
const FIELD_NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "pass",
    "pwd",
    "pw",
    "user",
    "username",
    "login",
    "token",
    "key",
    "apikey",
    "apitoken",
    "string",
    "text",
    "value",
    "none",
    "null",
    "nil",
    "undefined",
    "true",
    "false",
    "required",
    "optional",
    "default",
    "hidden",
    "masked",
    "removed",
    "secure",
    "encrypted",
    "foo",
    "bar",
    "baz",
    "qux",
    "foobar",
];

/// Letters of the longest of these, at least.
const FIELD_NAME_MAX: usize = 16;

/// Whether a field's name, or a word for nothing, stands in place of a secret. Words that people do choose, such as
/// `secret` or `admin`, are not among them.
pub fn is_field_name(value: &[u8]) -> bool {
    static NAMES: Parts = Parts::in_any_case(FIELD_NAMES);
    let mut letters = [0; FIELD_NAME_MAX];
    let mut len = 0;
    for &byte in value.iter().filter(|byte| !b"_- ".contains(byte)) {
        let Some(letter) = letters.get_mut(len) else { return false };
        (*letter, len) = (byte, len + 1);
    }
    NAMES.has(&letters[..len])
}

/// Letters or digits in a row that each follow the one before, as typed examples have: `abcdefg`, `1234567`.
const COUNTING_MIN: usize = 7;

pub fn counts(value: &[u8]) -> bool {
    let follows = |a: u8, b: u8| a.is_ascii_alphanumeric() && (b == a + 1 || (a == b'9' && b == b'0'));
    let mut run = 1;
    value.windows(2).any(|pair| {
        run = if follows(pair[0], pair[1]) { run + 1 } else { 1 };
        run >= COUNTING_MIN
    })
}

/// Whether the value is one of `words`, or consists of everyday words alone. A stop word inside a longer word, or
/// beside something else, stops nothing.
pub fn is_everyday(value: &[u8], words: &[String]) -> bool {
    if words.iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes())) {
        return true;
    }
    let is_stopword = |part: &[u8]| {
        let listed = |word: &str| part.eq_ignore_ascii_case(word.as_bytes());
        let numbering = part.len() <= NUMBERING_MAX && part.iter().all(u8::is_ascii_digit);
        numbering
            || stopwords(part[0]).iter().any(|word| listed(word))
            || words.iter().any(|word| listed(word))
    };
    // Two signs that do not join words, or one within a word, were put there to make a password.
    let signs = value.iter().filter(|byte| byte.is_ascii_punctuation() && !b"_-.".contains(byte)).count();
    let mut parts = parts(value).peekable();
    parts.peek().is_none() || (signs < 2 && parts.all(is_stopword)) || is_joined(value)
}

/// Bytes of a value that is looked through for joined words, at most.
const JOINED_MAX: usize = 32;

/// Words that tell the reader to put something in this place.
const INSTRUCTIONS: &[&str] =
    &["your", "here", "change", "enter", "insert", "placeholder", "replace", "todo"];

/// Whether the value is nothing but everyday words run together, digits in place of letters or not:
/// `mysecret`, `sup3rs3cret`. A sentence such as `thisismypassword` is what people choose, unless it
/// tells the reader what to do.
fn is_joined(value: &[u8]) -> bool {
    if value.len() > JOINED_MAX {
        return false;
    }
    if is_sentence(value) && !INSTRUCTIONS.iter().any(|word| contains_any_case(value, word.as_bytes())) {
        return false;
    }
    let plain = |byte: &u8| match byte.to_ascii_lowercase() {
        b'5' => b's',
        b'0' => b'o',
        b'1' => b'i',
        b'3' => b'e',
        b'4' => b'a',
        other => other,
    };
    let mut buffer = [0; JOINED_MAX];
    let text = &mut buffer[..value.len()];
    text.iter_mut().zip(value).for_each(|(plainly, byte)| *plainly = plain(byte));
    // Bit `n`: the first `n` bytes are words.
    let mut reached = 1u64;
    for at in 0..text.len() {
        // Nothing goes on from here or behind.
        if reached >> at == 0 {
            return false;
        }
        if reached >> at & 1 != 0 && text[at].is_ascii() {
            let next = stopwords(text[at]).iter().filter(|word| text[at..].starts_with(word.as_bytes()));
            next.for_each(|word| reached |= 1 << (at + word.len()));
        }
    }
    reached >> text.len() & 1 != 0
}

/// The words of a value: runs of letters, or of digits, also split where camel case does.
fn parts(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let same_part = |a: &u8, b: &u8| {
        (a.is_ascii_alphabetic()
            && b.is_ascii_alphabetic()
            && !(a.is_ascii_lowercase() && b.is_ascii_uppercase()))
            || (a.is_ascii_digit() && b.is_ascii_digit())
    };
    value.chunk_by(same_part).filter(|part| part[0].is_ascii_alphanumeric() || !part[0].is_ascii())
}

/// Domains that are reserved for documentation and tests.
const RESERVED_DOMAINS: &[&str] =
    &["example.com", "example.net", "example.org", ".example", ".invalid", ".localhost", ".test"];

/// Bytes of a host's name, at most.
const HOST_MAX: usize = 255;

/// Whether what follows a password in a URL is a host of documentation.
pub fn is_at_reserved_host(rest: &[u8]) -> bool {
    let Some(rest) = rest.strip_prefix(b"@") else { return false };
    let in_host = |byte: &u8| byte.is_ascii_alphanumeric() || b".-".contains(byte);
    let host = &rest[..rest.iter().take(HOST_MAX).take_while(|byte| in_host(byte)).count()];
    RESERVED_DOMAINS.iter().any(|domain| {
        let from = host.len().checked_sub(domain.len());
        from.is_some_and(|from| host[from..].eq_ignore_ascii_case(domain.as_bytes()))
    })
}

fn contains_any_case(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part))
}
