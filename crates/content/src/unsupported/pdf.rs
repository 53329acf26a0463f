//! PDF: where it begins, and whether it is encrypted.
//!
//! A trailer names the dictionary of the encryption: `/Encrypt 12 0 R`. It is the end of the file, or what the end
//! refers to by `startxref`; the first of them is at the beginning of a file that was made for the web.

use memchr::memmem;

use super::{Bytes, UnsupportedFormat};

pub(super) const NAME: &str = "pdf";

/// Blanks before the signature that readers put up with, bytes.
const BLANKS_MAX: usize = 64;
/// Bytes at the end, and at the place that it refers to, in which a trailer is.
const TRAILER_WITHIN: usize = 64 << 10;
/// Digits of an offset, at most.
const OFFSET_DIGITS_MAX: usize = 19;

/// Where the signature of a PDF would be: behind a byte order mark and blanks.
pub(super) fn start(begin: &[u8]) -> usize {
    let mark = if begin.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let blanks = begin[mark..].iter().take(BLANKS_MAX).take_while(|byte| byte.is_ascii_whitespace()).count();
    mark + blanks
}

pub(super) fn format(bytes: &Bytes<'_>) -> UnsupportedFormat {
    let is_encrypted = names_encryption(bytes.begin)
        || bytes.tail(TRAILER_WITHIN as u64).is_some_and(|(_, tail)| {
            let referred = || startxref(&tail).map(|at| bytes.at(at, TRAILER_WITHIN));
            names_encryption(&tail) || referred().is_some_and(|place| names_encryption(&place))
        });
    UnsupportedFormat { name: NAME, is_encrypted }
}

/// Whether a dictionary in these bytes has the key `/Encrypt`, with a reference or a dictionary behind it.
pub(super) fn names_encryption(bytes: &[u8]) -> bool {
    const KEY: &[u8] = b"/Encrypt";
    memmem::find_iter(bytes, KEY).any(|at| {
        let value = bytes[at + KEY.len()..].trim_ascii_start();
        let is_blank = value.len() + at + KEY.len() < bytes.len();
        value.starts_with(b"<<") || is_blank && is_reference(value)
    })
}

/// `12 0 R`
fn is_reference(value: &[u8]) -> bool {
    let mut rest = value;
    for _ in 0..2 {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let blanks = rest[digits..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        if digits == 0 || blanks == 0 {
            return false;
        }
        rest = &rest[digits + blanks..];
    }
    rest.first() == Some(&b'R')
}

/// The offset that the last `startxref` names.
fn startxref(tail: &[u8]) -> Option<u64> {
    const WORD: &[u8] = b"startxref";
    let rest = tail[memmem::rfind(tail, WORD)? + WORD.len()..].trim_ascii_start();
    let digits = rest.iter().take(OFFSET_DIGITS_MAX).take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}
