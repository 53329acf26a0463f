//! What tells a literal secret from the code and prose around it.
//!
//! Generic rules match `password = …` in every language; these checks refuse values that only stand for a
//! secret: references to variables, templates, calls, paths and words of code.

use super::{Table, Verdict};

pub(super) const TABLE: Table = &[
    ("mixed", |v| Verdict::pass_if(mixed(v))),
    ("literal", |v| Verdict::pass_if(literal(v))),
    ("password_literal", |v| Verdict::pass_if(literal(v) && password(v))),
    ("key_literal", |v| Verdict::pass_if(literal(v) && key(v))),
];

fn has(value: &[u8], kind: fn(&u8) -> bool) -> bool {
    value.iter().any(kind)
}

/// A letter and a digit.
fn mixed(value: &[u8]) -> bool {
    has(value, u8::is_ascii_alphabetic) && has(value, u8::is_ascii_digit)
}

fn contains(value: &[u8], needle: &[u8]) -> bool {
    value.windows(needle.len()).any(|window| window == needle)
}

/// Openings of a value that is filled in later: shell, templates, format strings, markup.
const REFERENCE_STARTS: &[&[u8]] = &[
    b"$",
    b"{",
    b"<",
    b"[",
    b"%",
    b"&",
    b"@",
    b"*",
    b".$",
    b"(",
    b"..",
    b"process.env",
    b"env.",
    b"os.environ",
    b"ENV[",
    b"var.",
    b"secrets.",
    b"vault:",
    b"arn:aws:",
    b"http://",
    b"https://",
    b"/",
    b"./",
    b"~/",
    b"\\u",
    b"--",
    b"//",
];

/// Parts that only code, templates and masked values have.
const REFERENCE_PARTS: &[&[u8]] =
    &[b"${", b"#{", b"{{", b"$(", b"%(", b"(", b"=>", b"->", b"::", b"...", b"***", b"&lt;", b"==", b"</"];

/// Words that are values of every language, or the name of the thing instead of the thing.
const NO_VALUES: &[&[u8]] = &[
    b"null",
    b"none",
    b"nil",
    b"true",
    b"false",
    b"undefined",
    b"string",
    b"required",
    b"optional",
    b"default",
    b"password",
    b"passwd",
    b"secret",
    b"token",
    b"not-set",
    b"notset",
    b"unset",
    b"disabled",
    b"enabled",
    b"text/plain",
    b"application/json",
    b"forgot_password",
    b"username",
];

fn literal(value: &[u8]) -> bool {
    let lower = value.to_ascii_lowercase();
    !REFERENCE_STARTS.iter().any(|start| value.starts_with(start))
        && !REFERENCE_PARTS.iter().any(|part| contains(value, part))
        && !NO_VALUES.contains(&lower.as_slice())
        // Style sheets name elements with `#`; registers and commands are numbered in hexadecimal.
        && (!value.starts_with(b"#") || has(value, u8::is_ascii_digit))
        && !lower.strip_prefix(b"0x").is_some_and(|number| number.iter().all(u8::is_ascii_hexdigit))
        && value.iter().all(|b| b.is_ascii_graphic() || *b == b' ' || *b >= 0x80)
}

/// A password is anything that is not an obvious word of code: an identifier (`user_password`, `newPassword`,
/// `auth.password`), a label (`Password:`) or a sentence. One with a digit or a sign is taken as it is.
fn password(value: &[u8]) -> bool {
    let words = value.split(|b| !b.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).count();
    let spaces = value.iter().filter(|&&b| b == b' ').count();
    let signs = value.iter().filter(|b| b.is_ascii_punctuation() && !b"_-.".contains(b)).count();
    let ends_as_label = value.ends_with(b":") || value.ends_with(b"?") && !has(value, u8::is_ascii_digit);
    let path = value.contains(&b'/') && !has(value, u8::is_ascii_digit);
    if ends_as_label || path || spaces > 1 {
        return false;
    }
    let named = ["password", "passwd", "secret", "token"]
        .iter()
        .any(|w| contains(&value.to_ascii_lowercase(), w.as_bytes()));
    if has(value, u8::is_ascii_digit) {
        return true;
    }
    // Letters only: several words joined, or one that names a secret, are identifiers.
    if signs == 0 { words == 1 && !named && value.len() >= 8 && spaces == 0 } else { !named || signs > 1 }
}

/// A key was made by a machine: both letters and digits, no spaces, and not words joined by dots or hyphens.
fn key(value: &[u8]) -> bool {
    let words = value.split(|b| b"-_./".contains(b)).filter(|word| !word.is_empty());
    let worded = words.filter(|word| word.len() >= 3 && word.iter().all(u8::is_ascii_alphabetic)).count();
    let digits = value.iter().filter(|b| b.is_ascii_digit()).count();
    digits >= 2 && has(value, u8::is_ascii_alphabetic) && !value.contains(&b' ') && worded < 3
}
