//! Base64 as validators read it: either alphabet, padded or not, into a fixed array.

/// Bytes that were decoded.
pub(super) struct Decoded<const N: usize> {
    buf: [u8; N],
    len: usize,
}

impl<const N: usize> std::ops::Deref for Decoded<N> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buf[..self.len]
    }
}

/// The six bits that a character stands for.
pub(super) fn symbol(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    })
}

/// Decodes the first `symbols` characters, blanks and line ends skipped, up to the padding or until `N` bytes are
/// full; `None` when something else stands among them.
pub(super) fn decode<const N: usize>(value: &[u8], symbols: usize) -> Option<Decoded<N>> {
    let mut out = Decoded { buf: [0; N], len: 0 };
    let (mut bits, mut held) = (0u32, 0);
    let text = value.iter().filter(|b| !b.is_ascii_whitespace()).take(symbols);
    for &byte in text.take_while(|&&byte| byte != b'=') {
        (bits, held) = (bits << 6 | u32::from(symbol(byte)?), held + 6);
        if held >= 8 {
            held -= 8;
            let Some(slot) = out.buf.get_mut(out.len) else { return Some(out) };
            *slot = (bits >> held) as u8;
            bits &= (1 << held) - 1;
            out.len += 1;
        }
    }
    Some(out)
}
