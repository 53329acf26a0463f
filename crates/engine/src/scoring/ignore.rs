//! Marks in the line of a value that suppress it: `domesday:ignore`, for every rule or for those whose ids
//! follow it; and those of other scanners, so that a tree that was marked for one need not be marked anew. A mark
//! for a scanner of secrets says nothing about other data, and is heeded for secrets only.

use std::ops::Range;

use domesday_model::Category;
use memchr::{memchr, memchr_iter, memrchr};

use crate::rules::Rule;

/// What stands before and after the colon of the own mark.
const OWN: (&[u8], &[u8]) = (b"domesday", b"ignore");
/// The same of marks that others put there.
const OTHERS: [(&[u8], &[u8]); 4] = [
    (b"gitleaks", b"allow"),
    (b"trufflehog", b"ignore"),
    (b"kingfisher", b"ignore"),
    (b"pragma", b" allowlist secret"),
];

/// Bytes before a value's start and after its end in which a mark is looked for, at most.
pub const IGNORE_LOOK: usize = 1024;

/// Bytes beyond the reach of a value that are looked through with it, so that dense values cost little each.
const AHEAD: usize = 4 * 1024;

/// Where there is no mark at all in a text, told once for all values.
#[derive(Clone, Default, Debug)]
pub struct Unmarked(Range<usize>);

impl Unmarked {
    /// Whether the reach of `span` has no mark, whatever its rule. Cheap where values are asked for in order.
    pub fn has(&mut self, bytes: &[u8], span: &Range<usize>) -> bool {
        // A mark has its name before the colon and its word behind it, so its colon is well within reach.
        let reach = span.start.saturating_sub(IGNORE_LOOK)..(span.end + IGNORE_LOOK).min(bytes.len());
        if !(self.0.start..=self.0.end).contains(&reach.start) {
            self.0 = reach.start..reach.start;
        }
        if reach.end > self.0.end {
            let end = (reach.end + AHEAD).min(bytes.len());
            let mark =
                memchr_iter(b':', &bytes[self.0.end..end]).find(|colon| is_mark(bytes, self.0.end + colon));
            self.0.end = mark.map_or(end, |colon| self.0.end + colon);
        }
        reach.end <= self.0.end
    }
}

/// Whether the colon is of a mark.
fn is_mark(bytes: &[u8], colon: usize) -> bool {
    let (before, after) = (&bytes[..colon], &bytes[colon + 1..]);
    [OWN].iter().chain(&OTHERS).any(|(name, word)| before.ends_with(name) && after.starts_with(word))
}

/// Whether the line of `span` says to ignore `rule`.
pub fn is_ignored(bytes: &[u8], span: Range<usize>, rule: &Rule, is_rule: impl Fn(&str) -> bool) -> bool {
    let back = &bytes[span.start.saturating_sub(IGNORE_LOOK)..span.start];
    let ahead = &bytes[span.end..(span.end + IGNORE_LOOK).min(bytes.len())];
    let back = memrchr(b'\n', back).map_or(back, |newline| &back[newline + 1..]);
    let ahead = memchr(b'\n', ahead).map_or(ahead, |newline| &ahead[..newline]);
    [back, ahead].into_iter().any(|part| {
        memchr_iter(b':', part).any(|colon| {
            let (before, after) = (&part[..colon], &part[colon + 1..]);
            let is = |(name, word): (&[u8], &[u8])| before.ends_with(name) && after.starts_with(word);
            if is(OWN) {
                concerns(&after[OWN.1.len()..], &rule.id, &is_rule)
            } else {
                rule.category == Category::Secret && OTHERS.into_iter().any(is)
            }
        })
    })
}

/// Whether what follows the own mark lets it concern `rule`. Words are ids, commas between them, as long as they
/// have a `-` or `is_rule` knows them; any other text is a remark, and a mark without ids is for every rule.
fn concerns(rest: &[u8], rule: &str, is_rule: impl Fn(&str) -> bool) -> bool {
    let [b' ' | b'\t' | b':' | b'=', rest @ ..] = rest else { return true };
    let mut has_ids = false;
    for word in rest.split(|byte| *byte == b',') {
        let Some(id) = id(word).filter(|id| id.contains('-') || is_rule(id)) else { break };
        if id == rule {
            return true;
        }
        has_ids = true;
    }
    !has_ids
}

/// The word that a text begins with, if it has the form of an id.
fn id(text: &[u8]) -> Option<&str> {
    let text = text.trim_ascii_start();
    let allowed = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    let len = text.iter().take_while(|byte| allowed(byte)).count();
    let word = std::str::from_utf8(&text[..len]).ok()?;
    (!word.is_empty() && !word.starts_with('-')).then_some(word)
}
