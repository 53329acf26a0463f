//! Text from scanned places, made safe to show, and paths in the forms that reports need.
//!
//! A file's name can carry escape sequences that rewrite a terminal, or marks that reverse the order
//! of what follows. Neither may pass; what is escaped stays readable.

use std::borrow::Cow;
use std::fmt::Write as _;

use domesday_connector::address::IN_PATH;
use domesday_model::key::escaped;
use percent_encoding::percent_encode;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Whether a character acts on what shows it rather than being shown: controls, line separators, and
/// the invisible marks that reorder or hide text. Joiners stay: scripts and emoji need them.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Text as a terminal may see it.
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if !is_unsafe(c) {
            out.push(c);
        } else if c.is_ascii() {
            write!(out, "\\x{:02x}", u32::from(c)).expect("writing to a String cannot fail");
        } else {
            write!(out, "\\u{{{:x}}}", u32::from(c)).expect("writing to a String cannot fail");
        }
    }
    Cow::Owned(out)
}

/// A message of several lines as a terminal may see it. Lines after the first are indented, so that no text that is
/// quoted in a message can pass for a message of its own.
pub fn shown_lines(text: &str) -> String {
    text.lines().map(shown).collect::<Vec<_>>().join("\n  ")
}

/// A message on one line, as a terminal may see it: a line break is a semicolon.
pub fn shown_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| shown(line).into_owned()).collect::<Vec<_>>().join("; ")
}

/// Bytes as a terminal may see them; a backslash is doubled, so that names never imitate an escape.
pub fn shown_bytes(bytes: &[u8]) -> String {
    let text = escaped(bytes);
    match shown(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(safe) => safe,
    }
}

/// Bytes in a format that can hold any text: exactly, or escaped with their hexadecimal form beside.
pub struct Text<'a> {
    pub text: Cow<'a, str>,
    /// Present exactly when the bytes are not UTF-8.
    pub hex: Option<String>,
}

impl<'a> Text<'a> {
    pub fn of(bytes: &'a [u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Text { text: Cow::Borrowed(text), hex: None },
            Err(_) => Text { text: Cow::Owned(escaped(bytes)), hex: Some(hex(bytes)) },
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        write!(out, "{byte:02x}").expect("writing to a String cannot fail");
        out
    })
}

/// A key below its root. The root `.` is where the user stands and is left out.
pub fn join_path(root: &[u8], key: &[u8]) -> Vec<u8> {
    let root = root.strip_prefix(b"./").unwrap_or(root);
    match (root, key) {
        (b"" | b".", b"") => b".".to_vec(),
        (b"" | b".", key) => key.to_vec(),
        (root, b"") => root.to_vec(),
        (root, key) => {
            let separator: &[u8] = if root.ends_with(b"/") { b"" } else { b"/" };
            [root, separator, key].concat()
        }
    }
}

/// A path as a URI reference: absolute paths as `file:` URIs, others relative. Every byte outside the
/// unreserved set is percent-encoded, so that no name can pass for a scheme, query or fragment.
pub fn uri(path: &[u8]) -> String {
    let mut out = String::with_capacity(path.len() + 8);
    if path.starts_with(b"/") {
        out.push_str("file://");
    }
    out.extend(percent_encode(path, IN_PATH));
    out
}

/// At most `width` columns of a text, with `…` where something is missing.
pub fn truncate(text: &str, width: usize) -> Cow<'_, str> {
    if text.width() <= width {
        return Cow::Borrowed(text);
    }
    let mut used = 1;
    let mut kept = String::new();
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        kept.push(c);
    }
    kept.push('…');
    Cow::Owned(kept)
}

/// A text with spaces up to `width` columns.
pub fn pad(text: &str, width: usize) -> String {
    format!("{text}{:1$}", "", width.saturating_sub(text.width()))
}

/// Lines of at most `width` columns, at least one, broken at spaces and otherwise unchanged; a word
/// longer than a line keeps its line whole, because a cut path or id cannot be copied.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_acts_on_a_terminal_passes() {
        assert_eq!(shown("plain caf\u{e9}"), "plain caf\u{e9}");
        assert_eq!(shown("\x1b]0;x\x07\u{9b}2J\u{202e}gpj"), "\\x1b]0;x\\x07\\u{9b}2J\\u{202e}gpj");
        assert_eq!(shown_bytes(b"a\xff\\\n\xe2\x80\xaeb"), "a\\xff\\\\\\x0a\\u{202e}b");
        for c in (0..=0x10ffff).filter_map(char::from_u32) {
            assert!(!shown(c.encode_utf8(&mut [0; 4])).contains(is_unsafe), "{c:?}");
        }
    }

    #[test]
    fn paths_join_as_the_user_wrote_them() {
        let cases: [(&str, &str, &str); 8] = [
            ("", "a", "a"),
            (".", "a/b", "a/b"),
            (".", "", "."),
            ("./x", "a", "x/a"),
            ("src", "a", "src/a"),
            ("src/", "a", "src/a"),
            ("/", "etc", "/etc"),
            ("/srv/one.txt", "", "/srv/one.txt"),
        ];
        for (root, key, expected) in cases {
            assert_eq!(join_path(root.as_bytes(), key.as_bytes()), expected.as_bytes());
        }
    }

    #[test]
    fn uris_encode_what_would_mean_something() {
        assert_eq!(uri(b"/srv/a b#c?d%\xff"), "file:///srv/a%20b%23c%3Fd%25%FF");
        assert_eq!(uri(b"javascript:x"), "javascript%3Ax");
    }

    #[test]
    fn widths_are_those_of_the_terminal() {
        assert_eq!(truncate("abcdef", 6), "abcdef");
        assert_eq!(truncate("abcdefg", 6), "abcde…");
        assert_eq!(truncate("漢字漢字", 5), "漢字…");
        assert_eq!(pad("漢", 4), "漢  ");
        assert_eq!(wrap("one two three verylongword x", 8), ["one two", "three", "verylongword", "x"]);
        assert_eq!(wrap("  a  b", 80), ["  a  b"]);
        assert_eq!(wrap("", 8), [""]);
    }
}
