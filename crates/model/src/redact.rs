//! Which parts of an address, a name or a message are secrets, by how they look.
//!
//! Three forms: the user and password of an address, a value behind `?name=` or `&name=`, and a token that its own first
//! letters give away. A parameter is secret by its name, by a value that nobody could have thought of, or where it is
//! part of a signature. What is wrongly taken for a secret is shown redacted, and no more; so in doubt it is one.
//!
//! [`redacted`] is for what is only shown. What must still be opened is sealed instead, part by part.

use std::borrow::Cow;
use std::ops::Range;

/// Stands in place of a secret.
pub const REDACTED: &str = "****";

/// Words that make a parameter a secret, wherever they are in its name, whatever separates them.
const SECRET_WORDS: [&str; 26] = [
    "token",
    "secret",
    "signature",
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "credential",
    "apikey",
    "accesskey",
    "privatekey",
    "sharedkey",
    "subscriptionkey",
    "functionskey",
    "authorization",
    "session",
    "jwt",
    "bearer",
    "cookie",
    "otp",
    "assertion",
    "ticket",
    "invite",
    "magic",
    "verif",
];
/// Names that are a secret as a whole: these words alone are too common to look for inside of others.
const SECRET_NAMES: [&str; 17] = [
    "sig", "key", "auth", "code", "pass", "pin", "sid", "hash", "hmac", "mac", "sign", "state", "nonce",
    "pw", "user", "login", "k",
];
/// How tokens of well-known issuers begin, and how many characters of a token follow at least.
const TOKENS: [(&[u8], usize); 24] = [
    (b"ghp_", 20),
    (b"gho_", 20),
    (b"ghu_", 20),
    (b"ghs_", 20),
    (b"ghr_", 20),
    (b"github_pat_", 20),
    (b"glpat-", 16),
    (b"xoxb-", 16),
    (b"xoxp-", 16),
    (b"xoxa-", 16),
    (b"sk_live_", 12),
    (b"rk_live_", 12),
    (b"sk-", 20),
    (b"npm_", 20),
    (b"pypi-", 20),
    (b"hf_", 20),
    (b"dop_v1_", 20),
    (b"hvs.", 16),
    (b"AKIA", 16),
    (b"ASIA", 16),
    (b"AIza", 30),
    (b"SG.", 20),
    (b"ya29.", 16),
    (b"eyJ", 30),
];
/// Bytes of the shortest token.
const TOKEN_LEN_MIN: usize = 20;
/// Bytes of a parameter's value that are secret whatever its name, if letters and digits are mixed in them.
const RANDOM_LEN: usize = 16;

/// The secret parts of a text, in order and apart from one another.
pub fn secret_parts(text: &[u8]) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    // Nearly all names of files end here.
    if text.contains(&b'=') {
        parts = parameters(text);
    }
    if text.contains(&b'@') {
        parts.extend(user_info(text));
    }
    if text.len() >= TOKEN_LEN_MIN {
        parts.extend(tokens(text));
    }
    parts.sort_unstable_by_key(|part| (part.start, part.end));
    let mut apart: Vec<Range<usize>> = Vec::with_capacity(parts.len());
    for part in parts {
        match apart.last_mut() {
            Some(last) if part.start < last.end => last.end = last.end.max(part.end),
            _ => apart.push(part),
        }
    }
    apart
}

/// A text as it may be shown.
pub fn redacted(text: &str) -> Cow<'_, str> {
    let parts = secret_parts(text.as_bytes());
    if parts.is_empty() {
        return Cow::Borrowed(text);
    }
    // Parts end and begin beside ASCII, so the text stays UTF-8.
    let bytes = replaced(text.as_bytes(), &parts, |_| REDACTED.as_bytes().to_vec());
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// A text with something else in place of some of its parts.
pub fn replaced(text: &[u8], parts: &[Range<usize>], mut by: impl FnMut(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let (mut out, mut from) = (Vec::with_capacity(text.len()), 0);
    for part in parts {
        out.extend_from_slice(&text[from..part.start]);
        out.extend(by(&text[part.clone()]));
        from = part.end;
    }
    out.extend_from_slice(&text[from..]);
    out
}

/// The values of secret parameters.
fn parameters(text: &[u8]) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].iter().position(|byte| matches!(byte, b'?' | b'&' | b'#' | b';')) {
        let name_start = at + found + 1;
        at = name_start;
        let name_len = text[name_start..].iter().take_while(|byte| is_of_name(**byte)).count();
        let value_start = name_start + name_len + 1;
        if name_len == 0 || text.get(value_start - 1) != Some(&b'=') {
            continue;
        }
        let value_len = text[value_start..].iter().take_while(|byte| is_of_value(**byte)).count();
        let value = &text[value_start..value_start + value_len];
        if !value.is_empty() && (is_secret_name(&text[name_start..name_start + name_len]) || is_random(value))
        {
            parts.push(value_start..value_start + value_len);
        }
        at = value_start + value_len;
    }
    parts
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'-' | b'_' | b'.' | b'[' | b']' | b'%' | b':' | b'$' | b'~')
}

fn is_of_value(byte: u8) -> bool {
    !byte.is_ascii_whitespace()
        && !matches!(
            byte,
            b'&' | b'#' | b';' | b'"' | b'\'' | b'`' | b'<' | b'>' | b'(' | b')' | b',' | b'\\'
        )
        && !byte.is_ascii_control()
}

fn is_secret_name(name: &[u8]) -> bool {
    let letters = |byte: &&u8| byte.is_ascii_alphanumeric();
    let name: Vec<u8> = name.iter().filter(letters).map(u8::to_ascii_lowercase).collect();
    let has = |word: &&str| name.windows(word.len()).any(|window| window == word.as_bytes());
    SECRET_NAMES.iter().any(|known| known.as_bytes() == name)
        || SECRET_WORDS.iter().any(has)
        // What a cloud signs an address with: all of it is of no use to anybody else.
        || name.starts_with(b"xamz") || name.starts_with(b"xgoog")
}

/// Whether somebody's generator made it: long, of letters and digits, and not a date, a version or a word.
fn is_random(value: &[u8]) -> bool {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = value.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    let token = value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~+/=%".contains(byte));
    token
        && value.len() >= RANDOM_LEN
        && digits >= 2
        && letters >= 2
        && (digits + letters) * 8 >= value.len() * 7
}

/// What stands before the host of an address and has a password in it, or may be one.
fn user_info(text: &[u8]) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].windows(3).position(|window| window == b"://") {
        at += found + 3;
        let authority = text[at..].iter().take_while(|byte| is_of_value(**byte) && !b"/?".contains(byte));
        let authority = &text[at..at + authority.count()];
        let Some(end) = authority.iter().rposition(|byte| *byte == b'@') else { continue };
        let user = &authority[..end];
        match user.iter().position(|byte| *byte == b':') {
            Some(colon) if colon + 1 < end => parts.push(at + colon + 1..at + end),
            Some(_) => {}
            // One word: a name, as in `ssh://git@host`, unless it is long.
            None if user.len() >= RANDOM_LEN => parts.push(at..at + end),
            None => {}
        }
    }
    parts
}

/// Tokens that their first letters give away.
fn tokens(text: &[u8]) -> Vec<Range<usize>> {
    let is_of_token = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let mut parts = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        // At the beginning of a word only.
        let known = TOKENS.iter().find(|(head, _)| rest[0] == head[0] && rest.starts_with(head));
        let len = known.map_or(0, |_| rest.iter().take_while(is_of_token).count());
        if known.is_some_and(|(head, least)| len >= head.len() + least) {
            parts.push(at..at + len);
            at += len;
        } else {
            let word = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
            at += word.max(1);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(redacted(text), expected);
    }

    #[test]
    fn secret_parameters_are_redacted_by_name_and_by_value() {
        check("https://h/x?token=abc&page=2", "https://h/x?token=****&page=2");
        check("https://h/x?page=2&access_token=abc#frag", "https://h/x?page=2&access_token=****#frag");
        check("https://h/#id_token=abc", "https://h/#id_token=****");
        check("https://h/x?weiter=9f86d081884c7d659a2f", "https://h/x?weiter=****");
        check("https://h/x?q=annual-report-for-2024", "https://h/x?q=annual-report-for-2024");
        check("https://h/x?page=2&sort=name", "https://h/x?page=2&sort=name");
        check(
            "no answer from https://h/x?api-key=1, again",
            "no answer from https://h/x?api-key=****, again",
        );
        check("index.html?token=abc", "index.html?token=****");
        check("?token=", "?token=");
        check("caf\u{e9}?pin=\u{20ac}1234&a=b", "caf\u{e9}?pin=****&a=b");
    }

    #[test]
    fn signed_addresses_of_clouds_are_redacted() {
        check(
            "https://b.s3.amazonaws.com/k?X-Amz-Credential=AKIA%2F1&X-Amz-Signature=ab12&X-Amz-Expires=60&versionId=3",
            "https://b.s3.amazonaws.com/k?X-Amz-Credential=****&X-Amz-Signature=****&X-Amz-Expires=****&versionId=3",
        );
        check(
            "https://a.blob.core.windows.net/c/b?sv=2022-11-02&sp=r&sig=a%2Bb%3D",
            "https://a.blob.core.windows.net/c/b?sv=2022-11-02&sp=r&sig=****",
        );
        check(
            "https://storage.googleapis.com/b/k?X-Goog-Signature=1f",
            "https://storage.googleapis.com/b/k?X-Goog-Signature=****",
        );
        check(
            "https://h/k?GoogleAccessId=x@y.com&Expires=1&Signature=s",
            "https://h/k?GoogleAccessId=x@y.com&Expires=1&Signature=****",
        );
    }

    #[test]
    fn users_with_passwords_and_tokens_by_their_form_are_redacted() {
        check("https://ann:pa@ss@h/x", "https://ann:****@h/x");
        check("ssh://git@h/x", "ssh://git@h/x");
        check("https://0123456789abcdef0123@h/x", "https://****@h/x");
        check("dump-ghp_0123456789abcdefghijABCDEFGHIJ012345.sql", "dump-****");
        check("AKIAIOSFODNN7EXAMPLE/x", "****/x");
        check(
            "a-long-name-of-a-file-with-nothing-in-it.tar.gz",
            "a-long-name-of-a-file-with-nothing-in-it.tar.gz",
        );
        check("sk-learn/skip.py", "sk-learn/skip.py");
    }

    #[test]
    fn the_first_look_misses_nothing() {
        assert_eq!(TOKENS.iter().map(|(head, least)| head.len() + least).min(), Some(TOKEN_LEN_MIN));
    }

    #[test]
    fn what_is_redacted_has_nothing_more_to_redact() {
        for text in ["https://u:p@h/?token=a&sig=b#code=c", "?x=0123456789abcdefab"] {
            let once = redacted(text).into_owned();
            assert!(!once.contains("0123") && once.matches(REDACTED).count() >= 1, "{once}");
            assert_eq!(redacted(&once), once);
        }
    }
}
