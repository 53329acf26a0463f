//! Tokens and keys that prove themselves: checksums, encoded structure.

use super::base64::decode;
use super::hash::crc32;
use super::{Table, Verdict, json};

pub(super) const TABLE: Table = &[
    ("crc32_base62", crc32_base62),
    ("gitlab_token", gitlab_token),
    ("grafana_token", grafana_token),
    ("base64_user_password", |v| Verdict::proof_if(base64_user_password(v), "decodes to user and password")),
    ("base64_text", |v| Verdict::proof_if(base64_text(v), "decodes to text")),
    ("base64_32_bytes", |v| Verdict::pass_if(decode::<32>(v, 44).is_some_and(|d| d.len() == 32))),
];

/// Bytes that are decoded at most.
const DECODED_MAX: usize = 768;

/// Modern tokens (GitHub's, npm's) end in six base-62 symbols that are the CRC-32 of the symbols before
/// them, the prefix left out. A wrong one speaks against the token: it was made up, or mistyped.
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
    checksum(made == *check)
}

/// A wrong checksum speaks against a token, but does not refuse it: it may be mistyped, or changed on purpose.
fn checksum(valid: bool) -> Verdict {
    if valid { Verdict::Proof("token checksum valid") } else { Verdict::Doubt("token checksum wrong") }
}

/// GitLab's routable tokens have two dots: the payload, a version, then the length of the payload in two symbols of
/// base 36 and the CRC-32 of all before in seven. Others carry no check.
fn gitlab_token(value: &[u8]) -> Verdict {
    let mut parts = value.rsplit(|&b| b == b'.');
    let (Some(last), Some(_)) = (parts.next(), parts.next()) else { return Verdict::Pass };
    let (9, Some((rest, check))) = (last.len(), value.split_last_chunk::<7>()) else { return Verdict::Pass };
    let base36 = |sum: Option<u32>, byte: &u8| {
        let digit = super::text::base36(*byte).filter(|_| !byte.is_ascii_uppercase())?;
        sum?.checked_mul(36)?.checked_add(digit)
    };
    checksum(check.iter().fold(Some(0), base36) == Some(crc32(rest)))
}

/// Grafana's tokens of service accounts end in the CRC-32 of what is before, its bytes from the lowest, in
/// hexadecimal. Its other tokens are JSON in base64, with a key and a name; the public links of Power BI look alike
/// and have a tenant instead.
fn grafana_token(value: &[u8]) -> Verdict {
    if value.starts_with(b"glsa_") {
        let Some(([body @ .., b'_'], check)) = value.split_last_chunk::<8>() else { return Verdict::Fail };
        let digits = crc32(body).to_le_bytes();
        let valid = digits.iter().zip(check.chunks_exact(2)).all(|(byte, pair)| {
            let text = str::from_utf8(pair).ok();
            text.and_then(|text| u8::from_str_radix(text, 16).ok()) == Some(*byte)
        });
        return checksum(valid);
    }
    let payload = value.strip_prefix(b"glc_").unwrap_or(value);
    let text = decode::<DECODED_MAX>(payload, usize::MAX);
    match text.as_deref().and_then(json::object) {
        Some(object) if object.has("k") && (object.has("n") || object.has("id")) => {
            Verdict::Proof("decodes to a key and its name")
        }
        Some(object) if object.has("t") => Verdict::Fail,
        _ => Verdict::Doubt("does not decode to a key and its name"),
    }
}

/// Base64 of `user:password`, as basic authentication and docker write it.
fn base64_user_password(value: &[u8]) -> bool {
    let Some(text) = decode::<DECODED_MAX>(value, usize::MAX) else { return false };
    let split = text.iter().position(|&b| b == b':');
    text.iter().all(|b| b.is_ascii_graphic() || *b == b' ')
        && split.is_some_and(|at| at > 0 && text.len() - at > 3)
}

/// Bytes of text that a value of base64 must hold to be worth a word.
const BASE64_TEXT_MIN: usize = 5;

/// Base64 of printable text.
fn base64_text(value: &[u8]) -> bool {
    decode::<DECODED_MAX>(value, usize::MAX).is_some_and(|text| {
        text.len() >= BASE64_TEXT_MIN && text.iter().all(|b| b.is_ascii_graphic() || b" \n\r\t".contains(b))
    })
}
