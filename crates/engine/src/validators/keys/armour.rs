//! From the text of an armoured key to its bytes.
//!
//! Keys are pasted everywhere: into JSON with `\n` written out, into indented YAML, into string literals with
//! quotes and a plus on every line, into comments. So the text is read as runs of base64 with anything else that
//! such places put between them. What the bytes mean is not known here.

use super::super::base64;
use crate::MAX_MATCH_LEN;

/// Bytes that the longest match decodes to.
const BYTES_MAX: usize = MAX_MATCH_LEN / 4 * 3;

/// Characters of the first run of base64 behind the head: fewer are words of the code around it.
const RUN_MIN: usize = 16;

/// Characters at the beginning of a body in which fillers are looked for.
const FILLER_LOOK: usize = 256;
/// Different characters among them, at least; 48 and more are usual.
const DISTINCT_MIN: usize = 16;
/// Characters from its beginning that a body does not have twice.
const ONCE: usize = 24;

/// A key's text, taken apart.
pub(super) struct Armour<'v> {
    /// Between `BEGIN` and the dashes.
    pub label: &'v [u8],
    /// The header lines before the body.
    pub headers: &'v [u8],
    /// The characters of the body without what stood between them.
    symbols: Vec<u8>,
    /// Whether dots stand in place of the rest.
    pub elided: bool,
}

impl<'v> Armour<'v> {
    /// `None` when there is no head, or nothing like base64 behind it.
    pub fn read(value: &'v [u8]) -> Option<Armour<'v>> {
        let begin = find(value, b"BEGIN ")? + b"BEGIN ".len();
        let label_end = begin + find(&value[begin..], b"----")?;
        let label = value[begin..label_end].trim_ascii_end();
        let dashes = value[label_end..].iter().take_while(|&&byte| byte == b'-').count();
        let rest = &value[label_end + dashes..];
        let headers = headers_len(rest);
        let (symbols, elided) = symbols(&rest[headers..])?;
        Some(Armour { label, headers: &rest[..headers], symbols, elided })
    }

    /// The value of a header line.
    pub fn header(&self, name: &[u8]) -> Option<&'v [u8]> {
        let from = find(self.headers, name)? + name.len();
        let rest = self.headers[from..].strip_prefix(b": ")?;
        let end = rest.iter().position(|byte| b"\r\n\\\"'".contains(byte)).unwrap_or(rest.len());
        Some(&rest[..end])
    }

    pub fn repeats(&self) -> bool {
        repeats(&self.symbols)
    }

    pub fn bytes(&self) -> Option<base64::Decoded<BYTES_MAX>> {
        base64::decode(&self.symbols, usize::MAX)
    }
}

/// Whether somebody filled it in: few different characters, or the same line again.
pub(super) fn repeats(symbols: &[u8]) -> bool {
    let look = &symbols[..symbols.len().min(FILLER_LOOK)];
    let mut seen = [false; 256];
    look.iter().for_each(|&byte| seen[usize::from(byte)] = true);
    let distinct = seen.iter().filter(|&&seen| seen).count();
    let once = look.get(..ONCE).is_none_or(|head| find(&look[1..], head).is_none());
    distinct < DISTINCT_MIN || !once
}

pub(super) fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, part)
}

/// Bytes of the header lines. Base64 has no colon: the last one is in the last header.
fn headers_len(rest: &[u8]) -> usize {
    let Some(last) = rest.windows(2).rposition(|pair| pair == b": ") else { return 0 };
    let line_end = rest[last..].iter().position(|byte| matches!(byte, b'\n' | b'\r' | b'\\'));
    line_end.map_or(rest.len(), |end| last + end)
}

fn is_symbol(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/".contains(byte)
}

/// The characters of the base64, and whether dots follow. Line ends may be written out (`\n`), slashes may be
/// escaped (`\/`), and a plus or slashes alone between quotes or blanks join strings or open a comment.
fn symbols(mut text: &[u8]) -> Option<(Vec<u8>, bool)> {
    let mut out: Vec<u8> = Vec::with_capacity(text.len());
    let mut elided = false;
    let mut run = 0;
    let mut first_run = None;
    // The lines of a patch begin with a plus; a key does not.
    let in_patch = matches!(text, [b'\n', b'+', ..] | [b'\r', b'\n', b'+', ..]);
    loop {
        let (symbol, rest) = match text {
            [b'\n', b'+', rest @ ..] if in_patch => (None, rest),
            [b'\\', b'/', rest @ ..] => (Some(b'/'), rest),
            [b'\\', b'n' | b'r' | b't', rest @ ..] => (None, rest),
            [b'.', b'.', b'.', rest @ ..] => {
                elided = true;
                (None, rest)
            }
            [byte, rest @ ..] => (is_symbol(byte).then_some(*byte), rest),
            [] => (None, text),
        };
        match symbol {
            Some(symbol) => {
                out.push(symbol);
                run += 1;
            }
            None => {
                if run <= 2 && out[out.len() - run..].iter().all(|byte| b"+/".contains(byte)) {
                    out.truncate(out.len() - run);
                } else if *first_run.get_or_insert(run) < RUN_MIN {
                    return None;
                }
                run = 0;
                // Behind the padding comes the checksum of PGP, behind a dash the last line.
                if matches!(text, [] | [b'=' | b'-', ..]) {
                    break;
                }
            }
        }
        text = rest;
    }
    first_run.map(|_| (out, elided))
}
