//! What a value looks like by itself: random, made up, or made of everyday words.

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
    let first = first.to_ascii_lowercase();
    let from = STOPWORDS.partition_point(|word| word.as_bytes()[0] < first);
    let len = STOPWORDS[from..].partition_point(|word| word.as_bytes()[0] == first);
    &STOPWORDS[from..from + len]
}

/// Digits that a part of a value may have and still be only a numbering of words.
const NUMBERING_MAX: usize = 3;

/// Shannon entropy in bits per byte.
pub fn entropy(value: &[u8]) -> f64 {
    let mut counts = [0u32; 256];
    value.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
    let len = value.len() as f64;
    let share = |&count: &u32| {
        let share = f64::from(count) / len;
        -share * share.log2()
    };
    counts.iter().filter(|&&count| count > 0).map(share).sum()
}

/// How many different bytes.
pub fn distinct(value: &[u8]) -> usize {
    let mut seen = [false; 256];
    value.iter().for_each(|&byte| seen[usize::from(byte)] = true);
    seen.iter().filter(|&&seen| seen).count()
}

/// Whether a template's words or fillers stand in place of a secret.
pub fn is_placeholder(value: &[u8]) -> bool {
    static STARTS: [u32; 256] = starts(PLACEHOLDERS);
    let is_at = |at: usize, part: &[u8]| {
        value.get(at..at + part.len()).is_some_and(|text| text.eq_ignore_ascii_case(part))
    };
    value.iter().enumerate().any(|(at, byte)| {
        let mut may = STARTS[usize::from(*byte)];
        while may != 0 {
            if is_at(at, PLACEHOLDERS[may.trailing_zeros() as usize].as_bytes()) {
                return true;
            }
            may &= may - 1;
        }
        false
    })
}

/// For each byte, which of the parts begin with it in either case, as bits.
const fn starts(parts: &[&str]) -> [u32; 256] {
    assert!(parts.len() <= u32::BITS as usize);
    let mut starts = [0; 256];
    let mut number = 0;
    while number < parts.len() {
        let first = parts[number].as_bytes()[0];
        starts[first.to_ascii_lowercase() as usize] |= 1 << number;
        starts[first.to_ascii_uppercase() as usize] |= 1 << number;
        number += 1;
    }
    starts
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

/// Whether a field's name, or a word for nothing, stands in place of a secret. Words that people do choose, such as
/// `secret` or `admin`, are not among them.
pub fn is_field_name(value: &[u8]) -> bool {
    let letters = || value.iter().filter(|byte| !b"_- ".contains(byte)).map(u8::to_ascii_lowercase);
    FIELD_NAMES.iter().any(|name| letters().eq(name.bytes()))
}

/// Letters or digits in a row that each follow the one before, as typed examples have: `abcdefg`, `1234567`.
const COUNTING_MIN: usize = 7;

pub fn counts(value: &[u8]) -> bool {
    let follows = |a: &u8, b: &u8| a.is_ascii_alphanumeric() && (*b == *a + 1 || (*a == b'9' && *b == b'0'));
    value.chunk_by(follows).any(|run| run.len() >= COUNTING_MIN)
}

/// Whether the value is a placeholder, is one of `words`, or consists of everyday words alone. A stop word
/// inside a longer word, or beside something else, stops nothing.
pub fn is_stopped(value: &[u8], words: &[String]) -> bool {
    if is_placeholder(value) || words.iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes())) {
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
    let text: Vec<u8> = value.iter().map(plain).collect();
    // Bit `n`: the first `n` bytes are words.
    let mut reached = 1u64;
    for at in (0..text.len()).filter(|at| text[*at].is_ascii()) {
        if reached >> at & 1 != 0 {
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
