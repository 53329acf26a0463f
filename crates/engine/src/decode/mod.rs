//! Texts within texts: what is written in base64, hexadecimal or escapes is decoded where it plausibly hides text,
//! so that it can be scanned like any other. This module owns where an encoded run begins and ends, and which
//! bytes of it each decoded byte came from; it must not know rules.
//!
//! A run is a function of the bytes near its trigger alone, and one longer than [`ENCODED_MAX`] is not decoded at
//! all: so it is the same in every chunk. Each run is walked once, however many triggers it has.

mod codecs;

use std::ops::Range;

/// Bytes of an encoded run, at most.
pub const ENCODED_MAX: usize = 4 * 1024;
/// Encodings within each other that are decoded, at most.
pub const DEPTH_MAX: usize = 3;
/// Bytes before a run, in its line, that tell what it is: the name it is assigned to.
pub const NAME_MAX: usize = 64;

/// What escapes begin with that often hide something; long words of letters and digits are candidates besides.
pub const TRIGGERS: &[&str] = &[
    "%3d", "%3a", "%22", "%40", "%2f", "\\x2", "\\x3", "\\x4", "\\x5", "\\x6", "\\x7", "\\u00", "&#x", "&#3",
    "&#4", "&#5", "&#6", "&#7", "&#8", "&#9", "&#1", "&quot;", "=3d",
];

/// How a run is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Encoding {
    /// Base64 or hexadecimal.
    Word,
    Percent,
    Backslash,
    Entities,
    QuotedPrintable,
}

impl Encoding {
    const COUNT: usize = 5;

    fn of_trigger(byte: u8) -> Encoding {
        match byte {
            b'%' => Encoding::Percent,
            b'\\' => Encoding::Backslash,
            b'&' => Encoding::Entities,
            b'=' => Encoding::QuotedPrintable,
            _ => Encoding::Word,
        }
    }

    /// Whether the byte at `at` belongs to a run.
    #[inline]
    fn continues(self, bytes: &[u8], at: usize) -> bool {
        let byte = bytes[at];
        match self {
            Encoding::Word => codecs::is_base64_symbol(byte),
            Encoding::Percent => byte.is_ascii_graphic() && !b"\"'`<>".contains(&byte),
            Encoding::Backslash => !b"\n\r\"'`".contains(&byte),
            Encoding::Entities => !b"\n\r".contains(&byte),
            Encoding::QuotedPrintable => match byte {
                b'\n' => bytes[..at].strip_suffix(b"\r").unwrap_or(&bytes[..at]).ends_with(b"="),
                b'\r' => bytes[..at].ends_with(b"="),
                _ => true,
            },
        }
    }
}

/// A decoded text.
pub struct Layer {
    /// The name before the run, then what the run says.
    pub text: Vec<u8>,
    /// The bytes that each byte of the text came from.
    places: Vec<(u32, u32)>,
    /// Where in the text the run begins.
    pub start: usize,
    /// How it was written, outermost first.
    pub chain: &'static [&'static str],
}

impl Layer {
    /// The bytes that a part of the text came from.
    pub fn source(&self, span: &Range<usize>) -> Range<usize> {
        let first = self.places.get(span.start).map_or(0, |place| place.0);
        let last =
            span.end.checked_sub(1).and_then(|last| self.places.get(last)).map_or(first, |place| place.1);
        first as usize..last as usize
    }

    fn with_name(bytes: &[u8], run: Range<usize>, decoded: codecs::Decoded) -> Layer {
        let before = &bytes[run.start.saturating_sub(NAME_MAX)..run.start];
        let line = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
        let name = &before[line..];
        let name_at = run.start - name.len();
        let places = (name_at..run.start).map(|at| (at as u32, at as u32 + 1));
        let inside =
            decoded.places.iter().map(|&(from, to)| (from + run.start as u32, to + run.start as u32));
        Layer {
            text: [name, &decoded.text[..]].concat(),
            places: places.chain(inside).collect(),
            start: name.len(),
            chain: decoded.chain,
        }
    }
}

/// The texts that those of the runs at `triggers`, which are in order, decode to that are `wanted`.
pub fn layers(bytes: &[u8], triggers: &[usize], wanted: impl Fn(&Range<usize>) -> bool) -> Vec<Layer> {
    let mut done = [0; Encoding::COUNT];
    let mut layers = Vec::new();
    for &at in triggers {
        let encoding = Encoding::of_trigger(bytes[at]);
        let done = &mut done[encoding as usize];
        if at < *done {
            continue;
        }
        let (run, whole) = find_run(bytes, at, encoding);
        if !whole {
            // The rest of it is too long for its other triggers as well.
            let rest = run.end..bytes.len();
            *done = rest.into_iter().find(|&at| !encoding.continues(bytes, at)).unwrap_or(bytes.len());
            continue;
        }
        *done = run.end.max(at + 1);
        if !wanted(&run) {
            continue;
        }
        let text = &bytes[run.clone()];
        let decoded = match encoding {
            Encoding::Word => codecs::word(text, is_padded(bytes, run.end)),
            Encoding::Percent => codecs::percent(text),
            Encoding::Backslash => codecs::backslash(text),
            Encoding::Entities => codecs::entities(text),
            Encoding::QuotedPrintable => codecs::quoted_printable(text),
        };
        layers.extend(decoded.map(|decoded| Layer::with_name(bytes, run, decoded)));
    }
    layers
}

fn is_padded(bytes: &[u8], end: usize) -> bool {
    bytes.get(end) == Some(&b'=')
}

/// The run around `at`, and whether that is all of it: it may be too long.
fn find_run(bytes: &[u8], at: usize, encoding: Encoding) -> (Range<usize>, bool) {
    match encoding {
        // Nearly all are words: their loop is one of its own.
        Encoding::Word => find_run_of(bytes, at, true, |at| Encoding::Word.continues(bytes, at)),
        _ => find_run_of(bytes, at, false, |at| encoding.continues(bytes, at)),
    }
}

#[inline(always)]
fn find_run_of(
    bytes: &[u8],
    at: usize,
    may_be_wrapped: bool,
    continues: impl Fn(usize) -> bool,
) -> (Range<usize>, bool) {
    let first = at.saturating_sub(ENCODED_MAX);
    let last = (at + ENCODED_MAX).min(bytes.len());
    let back = |from: usize| (first..from).rev().find(|&at| !continues(at)).map_or(first, |at| at + 1);
    let ahead = |from: usize| (from..last).find(|&at| !continues(at)).unwrap_or(last);
    let (mut start, mut end) = (back(at), ahead(at));
    if may_be_wrapped {
        let mut line = start;
        // Lines of base64 that were wrapped.
        while let Some(before) = line_before(bytes, start).filter(|&before| before > first) {
            let line = back(before);
            if !is_wrapped_line(before - line) {
                break;
            }
            start = line;
        }
        while is_wrapped_line(end - line)
            && let Some(next) = line_after(bytes, end).filter(|&next| next < last)
            && ahead(next) > next
        {
            (line, end) = (next, ahead(next));
        }
    }
    let whole =
        end - start <= ENCODED_MAX && (start > first || first == 0) && (end < last || last == bytes.len());
    (start..end, whole)
}

/// Symbols of a line of wrapped base64, but for the last: as mail and PEM have them.
fn is_wrapped_line(len: usize) -> bool {
    (60..=76).contains(&len) && len.is_multiple_of(4)
}

/// Where the text of the line before ends, if nothing but blanks stands between.
fn line_before(bytes: &[u8], at: usize) -> Option<usize> {
    let blanks = bytes[..at].iter().rev().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
    let line = bytes[..at - blanks].strip_suffix(b"\n")?;
    Some(line.strip_suffix(b"\r").unwrap_or(line).len())
}

/// Where the text of the next line begins, if nothing but blanks stands between.
fn line_after(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let line = rest.strip_prefix(b"\r").unwrap_or(rest).strip_prefix(b"\n")?;
    let blanks = line.iter().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
    Some(bytes.len() - line.len() + blanks)
}

#[cfg(test)]
mod tests;
