//! Tokens and keys that prove themselves: checksums, encoded structure.

use super::hash::crc32;
use super::{Table, Verdict};

pub(super) const TABLE: Table = &[
    ("crc32_base62", crc32_base62),
    ("jwt", jwt),
    ("pem", pem),
    ("base64_pem", |v| Verdict::proof_if(base64_pem(v), "decodes to a PEM private key")),
    ("base64_user_password", |v| Verdict::proof_if(base64_user_password(v), "decodes to user and password")),
    ("base64_32_bytes", |v| Verdict::pass_if(decode::<32>(v, 44).is_some_and(|d| d.len() == 32))),
];

/// Modern tokens (GitHub's, npm's) end in six base-62 symbols that are the CRC-32 of the symbols before
/// them, the prefix left out. A wrong one is not refused: older tokens of the same shape lack it.
fn crc32_base62(value: &[u8]) -> Verdict {
    let Some(body) = value.iter().position(|&b| b == b'_').map(|at| &value[at + 1..]) else {
        return Verdict::Fail;
    };
    let Some((random, check)) = body.split_last_chunk::<6>() else { return Verdict::Fail };
    let mut rest = crc32(random);
    let mut made = [b'0'; 6];
    for slot in made.iter_mut().rev() {
        *slot = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[(rest % 62) as usize];
        rest /= 62;
    }
    if made == *check { Verdict::Proof("token checksum valid") } else { Verdict::Pass }
}

/// Bytes that [`decode`] gives back at most.
const DECODED_MAX: usize = 768;

struct Decoded<const N: usize> {
    buf: [u8; N],
    len: usize,
}

impl<const N: usize> std::ops::Deref for Decoded<N> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buf[..self.len]
    }
}

/// Decodes the first `symbols` characters of base64, either alphabet, padded or not, line ends skipped, until
/// `N` bytes are full; `None` when something else stands among them.
fn decode<const N: usize>(value: &[u8], symbols: usize) -> Option<Decoded<N>> {
    let mut out = Decoded { buf: [0; N], len: 0 };
    let (mut bits, mut held) = (0u32, 0);
    let text = value.iter().filter(|b| !b.is_ascii_whitespace()).take(symbols);
    for &byte in text {
        let symbol = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' => break,
            _ => return None,
        };
        (bits, held) = (bits << 6 | u32::from(symbol), held + 6);
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

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

/// A JSON object that names an algorithm, then a second part. The payload of a signed token is a JSON object
/// as well; that of an encrypted one (five parts) is not.
fn jwt(value: &[u8]) -> Verdict {
    let mut parts = value.split(|&b| b == b'.');
    let (Some(header), Some(payload)) = (parts.next(), parts.next()) else { return Verdict::Fail };
    let Some(header) = decode::<DECODED_MAX>(header, usize::MAX) else { return Verdict::Fail };
    let Some(payload) = decode::<DECODED_MAX>(payload, usize::MAX) else { return Verdict::Fail };
    let object = header.starts_with(b"{") && header.trim_ascii_end().ends_with(b"}");
    let signed = payload.starts_with(b"{");
    let encrypted = parts.count() == 3;
    let ok = object && contains(&header, b"\"alg\"") && (signed || encrypted);
    Verdict::proof_if(ok, "JWT header names an algorithm")
}

/// Characters of a PEM body that are decoded: enough for the outer structure.
const PEM_BODY_CHARS: usize = 32;

/// The body behind the first line must be what such a key begins with: a DER sequence, or OpenSSH's magic.
/// A body with headers is encrypted and is not looked into.
fn pem(value: &[u8]) -> Verdict {
    const MARK: &[u8] = b"PRIVATE KEY";
    let Some(label) = value.windows(MARK.len()).position(|w| w == MARK) else { return Verdict::Fail };
    let rest = &value[label + MARK.len()..];
    let rest = rest.strip_prefix(b" BLOCK").unwrap_or(rest);
    // Keys in strings of source code and JSON have `\n` written out.
    let Some(body) = rest.strip_prefix(b"-----").map(skip_line_ends) else { return Verdict::Fail };
    if contains(body, b": ") {
        return Verdict::Pass;
    }
    let Some(decoded) = decode::<24>(body, PEM_BODY_CHARS) else { return Verdict::Fail };
    if decoded.starts_with(b"openssh-key-v1") || decoded.first() == Some(&0x30) {
        return Verdict::Proof("begins as a private key does");
    }
    Verdict::pass_if(decoded.len() >= 16)
}

fn skip_line_ends(mut body: &[u8]) -> &[u8] {
    loop {
        body = match body {
            [b'\\', b'n' | b'r', rest @ ..] => rest,
            [b'\r' | b'\n' | b' ' | b'\t' | b'"' | b'\'' | b'+' | b',', rest @ ..] => rest,
            _ => return body,
        };
    }
}

fn base64_pem(value: &[u8]) -> bool {
    decode::<64>(value, 88).is_some_and(|d| d.starts_with(b"-----BEGIN ") && contains(&d, b"PRIVATE KEY"))
}

/// Base64 of `user:password`, as basic authentication and docker write it.
fn base64_user_password(value: &[u8]) -> bool {
    let Some(text) = decode::<DECODED_MAX>(value, usize::MAX) else { return false };
    let split = text.iter().position(|&b| b == b':');
    text.iter().all(|b| b.is_ascii_graphic() || *b == b' ')
        && split.is_some_and(|at| at > 0 && text.len() - at > 3)
}
