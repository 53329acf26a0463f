//! Private keys, keystores and certificates: what they are is read from their bytes, not told from their heads.
//!
//! A match is the head of a key, as much as fits into it. What is there is parsed and must agree with itself; what
//! is not there is not asked for. A key that is read is proof; one that begins right and breaks off is neither
//! here nor there; text that only stands between the lines of a key speaks against it. Encrypted keys are found
//! as well, and said to be encrypted.

mod armour;
mod certificate;
mod der;
mod pgp;
mod private;
mod ssh;
mod stores;

#[cfg(test)]
pub(super) mod tests;

use super::base64;
use super::{Table, Verdict};
use armour::Armour;

pub(super) const TABLE: Table = &[
    ("pem", |v| armoured(v, v.len() >= LONG)),
    ("base64_pem", base64_pem),
    ("base64_key", base64_key),
    ("certificate", certificate_text),
    ("putty_key", |v| ssh::putty(v).map_or(Verdict::Fail, Key::verdict)),
    ("keystore", |v| stores::keystore(v).map_or(Verdict::Fail, Key::verdict)),
    ("signing_key", |v| stores::signing_key(v).map_or(Verdict::Doubt(NO_KEY), Key::verdict)),
    ("wireguard_key", stores::wireguard),
    ("jwk_secret", stores::jwk),
];

/// Bytes of a match that tell that it was cut by the limit, not by the end of the key.
const LONG: usize = 1500;
/// The same for a key in base64 once more, of which less is matched.
const LONG_BASE64: usize = 500;

/// Bytes of a key, at least: an Ed25519 key in PKCS#8 has 48, a small EC key little less.
const KEY_MIN: usize = 40;

/// Bytes that base64 without armour decodes to, at most: those of the longest match.
const DECODED_MAX: usize = 1536;

const NO_KEY: &str = "not what such a key consists of";

const REPEATS: &str = "filled in with the same again";

/// What the bytes of a key turned out to be.
enum Key {
    /// A key that agrees with itself, as far as it is there.
    Whole(String),
    /// A key that only a passphrase opens.
    Encrypted(String),
    /// It begins as a key.
    Begun(&'static str),
}

impl Key {
    fn verdict(self) -> Verdict {
        match self {
            Key::Whole(words) => Verdict::Read(words.into()),
            Key::Encrypted(words) => Verdict::Noted(words.into()),
            Key::Begun(words) => Verdict::Noted(words.into()),
        }
    }
}

/// A private key between the lines of its armour. `long` when the match was cut by its limit.
fn armoured(value: &[u8], long: bool) -> Verdict {
    let Some(armour) = Armour::read(value) else { return Verdict::Fail };
    if !armour.label.windows(11).any(|words| words == b"PRIVATE KEY") {
        return Verdict::Fail;
    }
    if armour.elided {
        return Verdict::MadeUp("dots in place of the key");
    }
    if armour.repeats() {
        return Verdict::MadeUp(REPEATS);
    }
    let Some(bytes) = armour.bytes() else { return Verdict::Doubt(NO_KEY) };
    // Nebula writes the bytes as they are: a seed, or a seed and its public key.
    if armour.label.starts_with(b"NEBULA") && matches!(bytes.len(), 32 | 64) {
        return Verdict::Read("Nebula private key".into());
    }
    if bytes.len() < KEY_MIN {
        return Verdict::Doubt("too short for a key");
    }
    // The older way to encrypt leaves nothing to look into.
    if armour.header(b"Proc-Type").is_some_and(|header| header.ends_with(b"ENCRYPTED")) {
        return Verdict::Noted(legacy_encryption(&armour).into());
    }
    let key = match &*bytes {
        [0x80..=0xff, ..] if armour.label.starts_with(b"PGP") => pgp::read(&bytes, long),
        bytes if bytes.starts_with(ssh::OPENSSH) => ssh::openssh(bytes, long),
        bytes if bytes.starts_with(ssh::SSH2) => ssh::ssh2(bytes),
        // Cosign's are JSON, and always encrypted.
        bytes if bytes.starts_with(b"{\"kdf\":") => {
            Some(Key::Encrypted("Cosign private key, encrypted with a passphrase".to_owned()))
        }
        bytes => private::read(bytes, long),
    };
    key.map_or(Verdict::Doubt(NO_KEY), Key::verdict)
}

fn legacy_encryption(armour: &Armour<'_>) -> String {
    let cipher = armour.header(b"DEK-Info").and_then(|info| info.split(|byte| *byte == b',').next());
    let named = |name: &&[u8]| name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
    match cipher.filter(named) {
        Some(name) => {
            format!("private key encrypted with a passphrase ({})", String::from_utf8_lossy(name))
        }
        None => "private key encrypted with a passphrase".to_owned(),
    }
}

/// An armoured private key in base64 once more.
fn base64_pem(value: &[u8]) -> Verdict {
    let long = value.len() >= LONG_BASE64;
    match base64::decode::<DECODED_MAX>(value, DECODED_MAX / 3 * 4) {
        Some(text) if text.starts_with(b"-----BEGIN ") => armoured(&text, long),
        _ => Verdict::Fail,
    }
}

/// The bytes of a private key in base64, without armour.
fn base64_key(value: &[u8]) -> Verdict {
    if armour::repeats(value) {
        return Verdict::MadeUp(REPEATS);
    }
    let long = value.len() >= LONG;
    let Some(bytes) = base64::decode::<DECODED_MAX>(value, usize::MAX) else { return Verdict::Fail };
    private::read(&bytes, long).map_or(Verdict::Fail, Key::verdict)
}

fn certificate_text(value: &[u8]) -> Verdict {
    let read = |armour: Armour<'_>| certificate::read(&armour.bytes()?);
    match Armour::read(value).filter(|armour| !armour.elided).map(read) {
        None => Verdict::Fail,
        Some(None) => Verdict::Doubt("not what a certificate consists of"),
        Some(Some(words)) => Verdict::Read(words.into()),
    }
}
