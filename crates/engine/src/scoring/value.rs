//! What a value looks like by itself: random, made up, or made of everyday words.

/// Parts of values that documentation and templates use in place of a secret.
const PLACEHOLDERS: &[&str] = &[
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
    "xxxxxx",
    "000000000000",
    "......",
    "******",
    "${",
    "{{",
    "<your",
];

/// Words that alone do not make a secret, however they are joined.
const STOPWORDS: &[&str] = &[
    "a",
    "access",
    "account",
    "admin",
    "an",
    "and",
    "api",
    "app",
    "apikey",
    "auth",
    "bar",
    "baz",
    "client",
    "config",
    "credential",
    "credentials",
    "data",
    "default",
    "demo",
    "disabled",
    "email",
    "empty",
    "enabled",
    "env",
    "fake",
    "false",
    "field",
    "file",
    "foo",
    "from",
    "get",
    "here",
    "id",
    "in",
    "input",
    "insert",
    "invalid",
    "is",
    "key",
    "login",
    "me",
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
    "pass",
    "passphrase",
    "passwd",
    "password",
    "path",
    "private",
    "public",
    "pwd",
    "required",
    "root",
    "sample",
    "secret",
    "set",
    "some",
    "string",
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
    "undefined",
    "unknown",
    "url",
    "user",
    "username",
    "value",
    "var",
    "variable",
    "with",
    "yes",
    "your",
];

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
    PLACEHOLDERS.iter().any(|part| contains_any_case(value, part.as_bytes()))
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
        numbering || STOPWORDS.iter().any(|word| listed(word)) || words.iter().any(|word| listed(word))
    };
    let mut parts = parts(value).peekable();
    parts.peek().is_none() || parts.all(is_stopword)
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

fn contains_any_case(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part))
}
