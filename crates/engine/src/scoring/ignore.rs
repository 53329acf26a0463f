//! `domesday:ignore` in the line of a value suppresses it; followed by a rule's id, only that rule.

use std::ops::Range;

use memchr::{memchr, memmem, memrchr};

const MARKER: &[u8] = b"domesday:ignore";

/// Bytes before a value's start and after its end in which the marker is looked for, at most.
pub const IGNORE_LOOK: usize = 1024;

/// Whether the line of `span` says to ignore `rule`. A word after the marker is an id if it has a `-` or
/// `is_rule` knows it; any other text is a remark, and the marker is for every rule.
pub fn is_ignored(bytes: &[u8], span: Range<usize>, rule: &str, is_rule: impl Fn(&str) -> bool) -> bool {
    let back = &bytes[span.start.saturating_sub(IGNORE_LOOK)..span.start];
    let ahead = &bytes[span.end..(span.end + IGNORE_LOOK).min(bytes.len())];
    let back = memrchr(b'\n', back).map_or(back, |newline| &back[newline + 1..]);
    let ahead = memchr(b'\n', ahead).map_or(ahead, |newline| &ahead[..newline]);
    [back, ahead].into_iter().any(|part| {
        memmem::find_iter(part, MARKER).any(|at| match id_after(&part[at + MARKER.len()..]) {
            Some(word) if word.contains('-') || is_rule(word) => word == rule,
            _ => true,
        })
    })
}

/// The word after the marker, if it has the form of an id.
fn id_after(rest: &[u8]) -> Option<&str> {
    let [b' ' | b'\t' | b':' | b'=', rest @ ..] = rest else { return None };
    let rest = rest.trim_ascii_start();
    let allowed = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    let len = rest.iter().take_while(|byte| allowed(byte)).count();
    let word = std::str::from_utf8(&rest[..len]).ok()?;
    (!word.is_empty() && !word.starts_with('-')).then_some(word)
}
