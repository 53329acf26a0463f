//! Reading a value: digits and letters without the separators people put between them.
//!
//! Values are short and their length is known, so they are read into fixed arrays. This file only reads;
//! what the symbols mean is the families' business.

/// The longest identifier any validator reads, in symbols.
const SYMBOLS_MAX: usize = 48;

/// A short run of symbols: digit values, or upper-case ASCII letters and digits.
#[derive(Clone, Copy)]
pub(super) struct Symbols {
    buf: [u8; SYMBOLS_MAX],
    len: usize,
}

impl std::ops::Deref for Symbols {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buf[..self.len]
    }
}

fn collect<'v>(value: impl IntoIterator<Item = &'v u8>, map: impl Fn(u8) -> Option<u8>) -> Option<Symbols> {
    let mut out = Symbols { buf: [0; SYMBOLS_MAX], len: 0 };
    for &byte in value.into_iter().filter(|byte| !is_separator(**byte)) {
        *out.buf.get_mut(out.len)? = map(byte)?;
        out.len += 1;
    }
    Some(out)
}

fn is_separator(byte: u8) -> bool {
    // The last five are the bytes of spaces that do not break, narrow or not.
    matches!(byte, b' ' | b'-' | b'.' | b'/' | b'\t' | 0xc2 | 0xa0 | 0xe2 | 0x80 | 0xaf)
}

/// The values of the digits (0..=9), separators dropped; `None` when there is anything else.
pub(super) fn digits(value: &[u8]) -> Option<Symbols> {
    digits_among(value)
}

/// The same of bytes that are not in one piece.
pub(super) fn digits_among<'v>(value: impl IntoIterator<Item = &'v u8>) -> Option<Symbols> {
    collect(value, |byte| byte.is_ascii_digit().then(|| byte - b'0'))
}

/// Exactly `N` digits, separators dropped.
pub(super) fn digits_exact<const N: usize>(value: &[u8]) -> Option<[u8; N]> {
    (*digits(value)?).try_into().ok()
}

/// Upper-case letters and digits, separators dropped; `None` when there is anything else.
pub(super) fn alnum(value: &[u8]) -> Option<Symbols> {
    collect(value, |byte| byte.is_ascii_alphanumeric().then(|| byte.to_ascii_uppercase()))
}

/// Exactly `N` upper-case letters and digits, separators dropped.
pub(super) fn alnum_exact<const N: usize>(value: &[u8]) -> Option<[u8; N]> {
    (*alnum(value)?).try_into().ok()
}

/// The value of a symbol in base 36: digits, then letters.
pub(super) fn base36(symbol: u8) -> Option<u32> {
    char::from(symbol).to_digit(36)
}

/// The number that digit values spell; only for runs short enough for 64 bits (19 digits).
pub(super) fn number(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |n, &d| n.wrapping_mul(10).wrapping_add(u64::from(d)))
}

/// The digit values of ASCII digits; `None` when there is anything else.
pub(super) fn ascii_number(ascii: &[u8]) -> Option<u64> {
    digits(ascii).map(|digits| number(&digits))
}

/// Whether one symbol fills the run: such values satisfy many check digits and are never issued.
pub(super) fn uniform(symbols: &[u8]) -> bool {
    symbols.windows(2).all(|pair| pair[0] == pair[1])
}

/// Whether the digits count up or down throughout, as typed placeholders do.
pub(super) fn sequential(digits: &[u8]) -> bool {
    let step = |by: u8| digits.windows(2).all(|pair| (pair[0] + by) % 10 == pair[1]);
    step(1) || step(9)
}
