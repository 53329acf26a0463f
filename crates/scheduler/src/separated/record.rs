//! Where rows end and which values they have, as RFC 4180 has it, and as leniently as files need: a quote counts only
//! at the beginning of a value, and one that is never closed ends with [`ROW_MAX`].

use std::borrow::Cow;

use memchr::{memchr, memchr2};

use super::ROW_MAX;

/// Finds the ends of rows in bytes that come in pieces.
pub(super) struct Cutter {
    delimiter: u8,
    quote: Quote,
    /// Bytes of the row in the pieces before.
    len: usize,
    /// The last byte of those; the end of a row where there is none.
    before: u8,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quote {
    Outside,
    Inside,
    /// After a quote inside: the next byte says whether it was the last.
    Closing,
}

impl Cutter {
    pub(super) fn new(delimiter: u8) -> Cutter {
        Cutter { delimiter, quote: Quote::Outside, len: 0, before: b'\n' }
    }

    /// The end of the row that goes on with `bytes`, its line end included. `None` when it is not in them; what
    /// comes next then goes on from their end.
    pub(super) fn row_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let quotes_end = bytes.len().min(ROW_MAX.saturating_sub(self.len));
        let mut at = 0;
        while at < bytes.len() {
            match self.quote {
                Quote::Inside | Quote::Closing if at >= quotes_end => self.quote = Quote::Outside,
                Quote::Inside => match memchr(b'"', &bytes[at..quotes_end]) {
                    Some(next) => (self.quote, at) = (Quote::Closing, at + next + 1),
                    None => at = quotes_end,
                },
                Quote::Closing if bytes[at] == b'"' => (self.quote, at) = (Quote::Inside, at + 1),
                Quote::Closing => self.quote = Quote::Outside,
                Quote::Outside => {
                    let Some(next) = memchr2(b'"', b'\n', &bytes[at..]) else { break };
                    at += next + 1;
                    if bytes[at - 1] == b'\n' {
                        *self = Cutter::new(self.delimiter);
                        return Some(at);
                    }
                    let before = if at == 1 { self.before } else { bytes[at - 2] };
                    if before == self.delimiter || before == b'\n' {
                        self.quote = Quote::Inside;
                    }
                }
            }
        }
        self.len += bytes.len();
        self.before = bytes.last().copied().unwrap_or(self.before);
        None
    }
}

/// Whether nothing but a line end is there.
pub(super) fn is_blank(row: &[u8]) -> bool {
    row.iter().all(|byte| matches!(byte, b'\r' | b'\n'))
}

/// The values of a row without its line end. Quotes that nothing follows but a separator are taken off, and those
/// that stand for one are made one; all others are left.
pub(super) fn fields(row: &[u8], delimiter: u8) -> impl Iterator<Item = Cow<'_, [u8]>> {
    let row = row.strip_suffix(b"\n").unwrap_or(row);
    let row = row.strip_suffix(b"\r").unwrap_or(row);
    let mut rest = Some(row);
    std::iter::from_fn(move || {
        let from = rest?;
        let len = field_len(from, delimiter);
        rest = from.get(len + 1..);
        Some(unquoted(&from[..len]))
    })
}

/// Bytes up to the separator that ends the field, or the end of the row.
fn field_len(row: &[u8], delimiter: u8) -> usize {
    let mut at = 0;
    if row.first() == Some(&b'"') {
        at = 1;
        // The quote that ends it is one that no other follows.
        while let Some(quote) = memchr(b'"', &row[at..]) {
            at += quote + 1;
            if row.get(at) != Some(&b'"') {
                break;
            }
            at += 1;
        }
    }
    memchr(delimiter, &row[at..]).map_or(row.len(), |next| at + next)
}

fn unquoted(field: &[u8]) -> Cow<'_, [u8]> {
    let Some(inner) = field.strip_prefix(b"\"").and_then(|field| field.strip_suffix(b"\"")) else {
        return Cow::Borrowed(field);
    };
    if memchr(b'"', inner).is_none() {
        return Cow::Borrowed(inner);
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut at = 0;
    while let Some(quote) = memchr(b'"', &inner[at..]) {
        let end = at + quote + 1;
        out.extend_from_slice(&inner[at..end]);
        at = end + usize::from(inner.get(end) == Some(&b'"'));
    }
    out.extend_from_slice(&inner[at..]);
    Cow::Owned(out)
}
