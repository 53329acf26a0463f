//! Private keys of SSH: OpenSSH's own form, the older one of SSH.COM, and PuTTY's files.

use super::super::base64;
use super::Key;
use super::armour::find;

/// What OpenSSH's own form begins with.
pub(super) const OPENSSH: &[u8] = b"openssh-key-v1\0";

/// What a key in the form of SSH.COM begins with.
pub(super) const SSH2: &[u8] = &[0x3f, 0x6f, 0xf9, 0xeb];

/// Kinds of keys, as SSH calls them.
const KINDS: &[&str] = &[
    "ssh-rsa",
    "ssh-dss",
    "ssh-ed25519",
    "ssh-ed448",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
];

const BROKEN: Key = Key::Begun("begins as an SSH private key, but does not go on as one");
const MISSING: Key = Key::Begun("begins as an SSH private key; the rest is missing");

/// Strings and numbers as SSH writes them, of which the end may be missing.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn number(&mut self) -> Option<u32> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*bytes))
    }

    /// As much of the string as is there, and whether that is all.
    fn part(&mut self) -> Option<(&'a [u8], bool)> {
        let len = self.number()? as usize;
        let (bytes, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        Some((bytes, bytes.len() == len))
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        self.part().filter(|(_, whole)| *whole).map(|(bytes, _)| bytes)
    }

    fn kind(&mut self) -> Option<&'static str> {
        let name = self.string()?;
        KINDS.iter().copied().find(|kind| kind.as_bytes() == name)
    }
}

/// OpenSSH's own form: cipher, key derivation, the public key, and the private ones. Unencrypted, these begin with
/// the same random number twice.
pub(super) fn openssh(bytes: &[u8], long: bool) -> Option<Key> {
    let mut reader = Reader(bytes.strip_prefix(OPENSSH)?);
    Some(openssh_body(&mut reader, long).unwrap_or(if reader.0.is_empty() && !long {
        MISSING
    } else {
        BROKEN
    }))
}

fn openssh_body(reader: &mut Reader<'_>, long: bool) -> Option<Key> {
    let cipher = reader.string()?;
    let derivation = reader.string()?;
    reader.string()?;
    (reader.number()? == 1).then_some(())?;
    let (public, whole) = reader.part()?;
    let mut public = Reader(public);
    let kind = public.kind()?;
    let bits = if kind == "ssh-rsa" { rsa_bits(&mut public) } else { None };
    let what = match bits {
        Some(bits) => format!("OpenSSH private key, {kind}, {bits} bits"),
        None => format!("OpenSSH private key, {kind}"),
    };
    match (cipher, derivation) {
        (b"none", b"none") => {}
        (b"none", _) | (_, b"none") => return None,
        _ => return Some(Key::Encrypted(format!("{what}, encrypted with a passphrase"))),
    }
    if !whole {
        return long.then_some(Key::Whole(what));
    }
    let (private, whole) = reader.part()?;
    let mut private = Reader(private);
    let same = private.number()? == private.number()?;
    (same && private.kind()? == kind && (whole || long)).then_some(Key::Whole(what))
}

/// Bits of the modulus behind the exponent.
fn rsa_bits(public: &mut Reader<'_>) -> Option<usize> {
    public.string()?;
    let len = public.number()? as usize;
    let first = public.0.first_chunk::<2>()?;
    let zeros = u16::from_be_bytes(*first).leading_zeros() as usize;
    (len * 8).checked_sub(zeros)
}

/// The form of SSH.COM: a total length, the kind in words, the cipher.
pub(super) fn ssh2(bytes: &[u8]) -> Option<Key> {
    let mut reader = Reader(bytes.strip_prefix(SSH2)?);
    let mut body = || {
        reader.number()?;
        let kind = reader.string()?;
        let cipher = reader.string()?;
        let named = !kind.is_empty() && kind.iter().all(|byte| byte.is_ascii_graphic());
        named.then_some(match cipher {
            b"none" => Key::Whole("SSH2 private key".to_owned()),
            _ => Key::Encrypted("SSH2 private key, encrypted with a passphrase".to_owned()),
        })
    };
    Some(body().unwrap_or(BROKEN))
}

/// A PuTTY file: the kind and the encryption in its first lines, then the public key, whose own first string names
/// the kind again.
pub(super) fn putty(value: &[u8]) -> Option<Key> {
    let line = |name: &[u8]| {
        let from = find(value, name)? + name.len();
        let rest = &value[from..];
        let end = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n' | b'\\')).unwrap_or(rest.len());
        Some((rest[..end].trim_ascii(), rest[end..].trim_ascii_start()))
    };
    let (head, _) = line(b"PuTTY-User-Key-File-")?;
    let (cipher, _) = line(b"Encryption:")?;
    let kind = head.get(2..).unwrap_or_default().trim_ascii();
    let Some(kind) = KINDS.iter().find(|known| known.as_bytes() == kind) else { return Some(BROKEN) };
    if let Some((_, public)) = line(b"Public-Lines:") {
        let symbols = public.iter().take_while(|byte| base64::symbol(**byte).is_some()).count();
        let blob = base64::decode::<48>(public, symbols)?;
        if Reader(&blob).kind() != Some(kind) {
            return Some(BROKEN);
        }
    }
    let what = format!("PuTTY private key, {kind}");
    Some(match cipher {
        b"none" => Key::Whole(what),
        _ => Key::Encrypted(format!("{what}, encrypted with a passphrase")),
    })
}
