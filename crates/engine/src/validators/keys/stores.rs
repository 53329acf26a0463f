//! Keys outside armour: keystores, the one-line files of minisign and signify, WireGuard, and JSON Web Keys.

use super::super::Verdict;
use super::super::base64;
use super::Key;
use super::der::{Der, OID, SEQUENCE};

/// Bytes of a keystore that are looked at.
const HEAD: usize = 96;

/// What keystores of Java begin with: JKS and JCEKS.
const JKS: [u8; 4] = [0xFE, 0xED, 0xFE, 0xED];
const JCEKS: [u8; 4] = [0xCE, 0xCE, 0xCE, 0xCE];

/// Entries of a keystore, at most: what is no keystore has any number there.
const ENTRIES_MAX: u32 = 10_000;

/// The 32 bits at an offset.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// A keystore as it is or in base64.
pub(super) fn keystore(value: &[u8]) -> Option<Key> {
    let raw =
        [JKS, JCEKS].iter().any(|magic| value.starts_with(magic)) || value.starts_with(&[SEQUENCE, 0x82]);
    if raw {
        return java(value).or_else(|| pkcs12(value));
    }
    let bytes = base64::decode::<HEAD>(value, HEAD / 3 * 4)?;
    java(&bytes).or_else(|| pkcs12(&bytes))
}

/// Magic, version, number of entries; then the kind of the first entry and its name.
fn java(bytes: &[u8]) -> Option<Key> {
    let magic = bytes.first_chunk::<4>()?;
    let version = number(bytes, 4)?;
    let entries = number(bytes, 8)?;
    if (*magic != JKS && *magic != JCEKS) || !(1..=2).contains(&version) || entries > ENTRIES_MAX {
        return None;
    }
    match number(bytes, 12) {
        _ if entries == 0 => Some(Key::Begun("Java keystore without entries")),
        Some(1) => {
            Some(Key::Encrypted("Java keystore with a private key, protected by a password".to_owned()))
        }
        Some(3) => {
            Some(Key::Encrypted("Java keystore with a secret key, protected by a password".to_owned()))
        }
        Some(2) => Some(Key::Begun("Java keystore that begins with a certificate")),
        _ => None,
    }
}

/// Version 3, then content of the type `data`.
fn pkcs12(bytes: &[u8]) -> Option<Key> {
    let mut body = Der::outermost(bytes).expect(SEQUENCE)?;
    let right = body.small()? == 3
        && body.expect(SEQUENCE)?.expect(OID)?.bytes == [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 1];
    right.then(|| Key::Encrypted("PKCS#12 keystore, protected by a password".to_owned()))
}

/// The second line of a secret key of minisign or signify: `Ed`, the key derivation, and for minisign the checksum.
pub(super) fn signing_key(value: &[u8]) -> Option<Key> {
    let bytes = base64::decode::<160>(value, usize::MAX)?;
    let whole = |what: &str| Key::Whole(format!("{what} secret key"));
    let encrypted = |what: &str| Key::Encrypted(format!("{what} secret key, encrypted with a passphrase"));
    match &*bytes {
        [b'E', b'd', b'S', b'c', b'B', b'2', ..] if bytes.len() == 158 => Some(encrypted("minisign")),
        [b'E', b'd', 0, 0, b'B', b'2', ..] if bytes.len() == 158 => Some(whole("minisign")),
        [b'E', b'd', b'B', b'K', rounds @ ..] if bytes.len() == 104 => {
            Some(if rounds.starts_with(&[0; 4]) { whole("signify") } else { encrypted("signify") })
        }
        _ => None,
    }
}

/// 32 bytes. Keys that WireGuard makes are clamped as X25519 wants it; shared ones are not.
pub(super) fn wireguard(value: &[u8]) -> Verdict {
    match base64::decode::<33>(value, 44).as_deref() {
        Some([first, middle @ .., last]) if middle.len() == 30 => {
            let clamped = first & 7 == 0 && last & 0xC0 == 0x40;
            if clamped { Verdict::Proof("clamped as X25519 private keys are") } else { Verdict::Pass }
        }
        _ => Verdict::Fail,
    }
}

/// The secret member of a JSON Web Key, in whose text it is found: the bytes of a curve's number, or as many as an RSA
/// modulus has.
pub(super) fn jwk(value: &[u8]) -> Verdict {
    let Some((member, text)) = secret_member(value) else { return Verdict::Fail };
    let Some(bytes) = base64::decode::<1024>(text, usize::MAX) else { return Verdict::Fail };
    match (member, bytes.len()) {
        (b'k', 16..) => Verdict::Proof("JSON Web Key with a symmetric key"),
        (b'd', 28 | 32 | 48 | 56 | 57 | 66) => Verdict::Proof("JSON Web Key with a curve's private key"),
        (b'p', 60..) => Verdict::Proof("JSON Web Key with its primes"),
        (b'd', 60..) => Verdict::Proof("JSON Web Key with a private exponent"),
        _ => Verdict::Doubt("not as long as a private key is"),
    }
}

/// The member `d`, `k` or `p` and the base64 in it; quotes may be escaped.
fn secret_member(value: &[u8]) -> Option<(u8, &[u8])> {
    let at = value.windows(3).position(|w| matches!(w, [b'"', b'd' | b'k' | b'p', b'"' | b'\\']))?;
    let from = value[at + 2..].iter().position(|byte| base64::symbol(*byte).is_some())? + at + 2;
    let len = value[from..].iter().take_while(|byte| base64::symbol(**byte).is_some()).count();
    Some((value[at + 1], &value[from..from + len]))
}
