//! What the book keeps of data that somebody has to read again: encrypted with a key made of the fingerprint key.
//!
//! Bounds of ranges, places where listings go on and secrets in addresses are needed by the next worker, and by nobody
//! who has only the book. Sealing is deterministic: equal data has equal sealed forms, so that a listing that is begun
//! again gives the same names. The nonce is a keyed hash of the purpose and the data (as in SIV), under a key of its own,
//! so that two different ones share a nonce only if 96 bits of that hash collide. The purpose is authenticated: what was
//! sealed for one host or table cannot be opened as something else.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, LazyLock};

use domesday_model::FingerprintKey;
use domesday_model::redact::{replaced, secret_parts};
use memchr::memmem;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::Value;

use self::letters::{decode, encode};

mod letters;

/// Begins a sealed part of a name or an address, and ends it.
const BEGIN: &[u8] = b"~sealed.";
const END: u8 = b'~';

/// What the names of objects are sealed for; those in addresses for the address's host instead.
const NAME: &str = "name";

/// Data that this process cannot open: its fingerprint key is another, or somebody changed it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("it was sealed with another fingerprint key, or changed since: list the data source again")]
pub struct NotOpened;

/// Seals and opens with one fleet's key.
#[derive(Clone)]
pub struct Seal(Arc<Keys>);

struct Keys {
    cipher: LessSafeKey,
    nonces: [u8; 32],
}

impl Seal {
    pub fn new(key: &FingerprintKey) -> Seal {
        let cipher = UnboundKey::new(&CHACHA20_POLY1305, &key.derive("domesday sealed data"));
        let cipher = LessSafeKey::new(cipher.expect("a key of 32 bytes is one of the cipher's"));
        Seal(Arc::new(Keys { cipher, nonces: key.derive("domesday sealed data nonces") }))
    }

    /// Seals data for one purpose.
    pub fn seal(&self, purpose: &str, data: &[u8]) -> String {
        let mut hasher = blake3::Hasher::new_keyed(&self.0.nonces);
        hasher.update(&(purpose.len() as u64).to_le_bytes()).update(purpose.as_bytes()).update(data);
        let nonce: [u8; NONCE_LEN] = std::array::from_fn(|at| hasher.finalize().as_bytes()[at]);
        let mut bytes = data.to_vec();
        let of_purpose = Aad::from(purpose.as_bytes());
        self.0
            .cipher
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), of_purpose, &mut bytes)
            .expect("what is sealed is shorter than the cipher's limit of 256 GiB");
        encode(&[&nonce[..], &bytes].concat())
    }

    /// What was sealed for this purpose.
    pub fn open(&self, purpose: &str, sealed: &str) -> Result<Vec<u8>, NotOpened> {
        let mut bytes = decode(sealed).ok_or(NotOpened)?;
        let (nonce, sealed) = bytes.split_at_mut_checked(NONCE_LEN).ok_or(NotOpened)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| NotOpened)?;
        let opened = self.0.cipher.open_in_place(nonce, Aad::from(purpose.as_bytes()), sealed);
        Ok(opened.map_err(|_| NotOpened)?.to_vec())
    }

    /// A name or an address with its secret parts sealed.
    pub fn seal_name<'n>(&self, name: &'n [u8]) -> Cow<'n, [u8]> {
        if find(name, BEGIN).is_some() {
            // What only looks like a sealed part is sealed whole, so that opening gives it back.
            return Cow::Owned(self.sealed_part(NAME, name));
        }
        self.seal_parts(name)
    }

    /// The same of what may be sealed already.
    fn seal_parts<'n>(&self, name: &'n [u8]) -> Cow<'n, [u8]> {
        let mut parts = secret_parts(name);
        parts.retain(|part| !name[part.clone()].starts_with(BEGIN));
        if parts.is_empty() {
            return Cow::Borrowed(name);
        }
        let purpose = purpose_of(name);
        Cow::Owned(replaced(name, &parts, |part| self.sealed_part(&purpose, part)))
    }

    fn sealed_part(&self, purpose: &str, part: &[u8]) -> Vec<u8> {
        [BEGIN, self.seal(purpose, part).as_bytes(), &[END]].concat()
    }

    /// The reverse of [`Seal::seal_name`], of a key that was joined of sealed names too.
    pub fn open_name<'n>(&self, name: &'n [u8]) -> Result<Cow<'n, [u8]>, NotOpened> {
        let (mut opened, mut rest) = (Vec::new(), name);
        if find(rest, BEGIN).is_none() {
            return Ok(Cow::Borrowed(name));
        }
        let purpose = purpose_of(name);
        while let Some(at) = find(rest, BEGIN) {
            opened.extend_from_slice(&rest[..at]);
            rest = &rest[at + BEGIN.len()..];
            let end = rest.iter().position(|byte| *byte == END).ok_or(NotOpened)?;
            let sealed = std::str::from_utf8(&rest[..end]).map_err(|_| NotOpened)?;
            opened.extend(self.open(&purpose, sealed)?);
            rest = &rest[end + 1..];
        }
        opened.extend_from_slice(rest);
        Ok(Cow::Owned(opened))
    }

    /// An address with its secret parts sealed, unless they are already.
    pub fn seal_address(&self, address: &str) -> String {
        String::from_utf8_lossy(&self.seal_parts(address.as_bytes())).into_owned()
    }

    /// A configuration with the secret parts of its addresses sealed.
    #[must_use]
    pub fn seal_configuration(&self, configuration: &Value) -> Value {
        addresses(configuration, &|text| self.seal_address(text))
    }

    /// A configuration as a connector reads it.
    #[must_use]
    pub fn open_configuration(&self, configuration: &Value) -> Value {
        addresses(configuration, &|text| match self.open_name(text.as_bytes()) {
            Ok(Cow::Owned(opened)) => String::from_utf8_lossy(&opened).into_owned(),
            // The connector's own words say what is wrong with it.
            Ok(Cow::Borrowed(_)) | Err(NotOpened) => text.to_owned(),
        })
    }
}

/// The key of a process that has no other: what it seals, nobody else opens.
impl Default for Seal {
    fn default() -> Seal {
        static OWN: LazyLock<Seal> = LazyLock::new(|| {
            let mut key = [0; FingerprintKey::LEN];
            SystemRandom::new().fill(&mut key).expect("the system's generator does not run dry");
            Seal::new(&FingerprintKey::new(key))
        });
        OWN.clone()
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal")
    }
}

/// What parts of a name are sealed for: in an address for its server, so that they are sent to no other.
fn purpose_of(name: &[u8]) -> Cow<'static, str> {
    let server = find(name, b"://").map(|scheme| {
        let (scheme, rest) = name.split_at(scheme + 3);
        let authority = rest.split(|byte| b"/?#".contains(byte)).next().unwrap_or_default();
        let host = authority.rsplit(|byte| *byte == b'@').next().unwrap_or_default();
        String::from_utf8_lossy(&[scheme, host].concat()).into_owned()
    });
    server.map_or(Cow::Borrowed(NAME), Cow::Owned)
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    memmem::find(text, what)
}

/// The same with other addresses in it. What is no address is left alone: a sealed name has no business there.
fn addresses(value: &Value, change: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) if purpose_of(text.as_bytes()) != NAME => Value::String(change(text)),
        Value::Array(values) => values.iter().map(|value| addresses(value, change)).collect(),
        Value::Object(fields) => Value::Object(
            fields.iter().map(|(name, value)| (name.clone(), addresses(value, change))).collect(),
        ),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
