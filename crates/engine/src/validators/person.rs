//! What a person's name is: words that begin with a capital, none of those that forms and programs write in its
//! place, and better still names that are known.

use super::names::{is_given, is_surname};
use super::{Table, Verdict};

pub(super) const TABLE: Table = &[
    ("person_name", |v| Verdict::pass_if(person_name(v))),
    ("person_known", person_known),
    ("person_name_first", |v| {
        Verdict::pass_if(v.split(|b| b" ,".contains(b)).next().is_some_and(person_name))
    }),
];

/// Words within a name that have no capital.
const PARTICLES: &[&str] =
    &["bin", "da", "das", "de", "del", "den", "der", "di", "dos", "du", "el", "la", "ten", "van", "von"];

/// What forms, types and templates write in place of a name.
const NO_NAMES: &[&str] = &[
    "all",
    "and",
    "any",
    "blank",
    "bool",
    "boolean",
    "build",
    "care",
    "char",
    "column",
    "customer",
    "default",
    "desk",
    "docs",
    "empty",
    "enter",
    "everyone",
    "example",
    "false",
    "field",
    "first",
    "float",
    "friends",
    "int",
    "integer",
    "is",
    "json",
    "last",
    "madam",
    "missing",
    "na",
    "name",
    "nil",
    "none",
    "not",
    "null",
    "number",
    "object",
    "on",
    "optional",
    "private",
    "readme",
    "report",
    "required",
    "see",
    "service",
    "sir",
    "some",
    "str",
    "string",
    "support",
    "sure",
    "tbd",
    "team",
    "test",
    "text",
    "the",
    "there",
    "this",
    "todo",
    "too",
    "true",
    "type",
    "undefined",
    "unit",
    "universe",
    "unknown",
    "unspecified",
    "user",
    "value",
    "varchar",
    "who",
    "world",
    "your",
];

/// Words of letters that begin with a capital and are not written in capitals throughout.
fn person_name(value: &[u8]) -> bool {
    let mut words = value.split(|b| *b == b' ').filter(|word| !word.is_empty()).peekable();
    let is_name = |word: &[u8]| {
        let shouted = word.len() > 3 && word.iter().all(u8::is_ascii_uppercase);
        let letters = word.iter().all(|b| b.is_ascii_alphabetic() || !b.is_ascii() || b"'-.".contains(b));
        let listed = NO_NAMES.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()));
        let long_enough = word.len() >= 2 || word[0].is_ascii_uppercase();
        long_enough && letters && !shouted && !listed
    };
    words.peek().is_some() && words.all(is_name)
}

/// A name of which a word is a common given name or surname is proved, two of them in any case of letters; any
/// other may be one.
fn person_known(value: &[u8]) -> Verdict {
    const KNOWN: &str = "common given name or surname";
    let Ok(text) = std::str::from_utf8(value) else { return Verdict::Fail };
    let words: Vec<&str> = text.split_whitespace().collect();
    let Some((first, rest)) = words.split_first() else { return Verdict::Fail };
    let (given, family) = (is_given(first), rest.last().is_some_and(|last| is_surname(last)));
    let capital = |word: &&str| word.chars().next().is_some_and(char::is_uppercase);
    let capitals = words.iter().all(|word| capital(word) || PARTICLES.contains(word));
    match (person_name(value) && capitals, given, family) {
        (_, true, true) => Verdict::Proof(KNOWN),
        (false, _, _) => Verdict::Fail,
        (true, false, false) if is_surname(first) => Verdict::Proof(KNOWN),
        (true, false, false) => Verdict::Pass,
        (true, _, _) => Verdict::Proof(KNOWN),
    }
}
