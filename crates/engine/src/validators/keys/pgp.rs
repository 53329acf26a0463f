//! Private keys of OpenPGP: the first packet of the block, up to where it says how the secret is protected.

use super::Key;

const BROKEN: Key = Key::Begun("begins as a PGP private key, but does not go on as one");

/// Packets of private keys, and of their subkeys.
const SECRET_KEY: u8 = 5;
const SECRET_SUBKEY: u8 = 7;

/// The protection that GnuPG writes where there is no secret at all.
const GNU_DUMMY: u8 = 101;

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    /// Bits of the next integer, which must have as many as it says.
    fn integer(&mut self) -> Option<usize> {
        let head = self.take(2)?;
        let bits = usize::from(head[0]) << 8 | usize::from(head[1]);
        let body = self.take(bits.div_ceil(8))?;
        let top = body.first().map_or(0, |byte| byte.leading_zeros() as usize);
        (body.len() * 8 - top == bits).then_some(bits)
    }

    /// Skips a field with its length in one byte before it.
    fn field(&mut self) -> Option<()> {
        let len = self.byte()?;
        self.take(usize::from(len)).map(|_| ())
    }
}

/// The first packet of the block; `None` when it is not a private key's. `long` when only the head was matched.
pub(super) fn read(bytes: &[u8], long: bool) -> Option<Key> {
    let mut reader = Reader(bytes);
    packet_head(&mut reader)?;
    Some(match body(&mut reader) {
        Some(key) => key,
        None if long && reader.0.is_empty() => Key::Whole("PGP private key".to_owned()),
        None => BROKEN,
    })
}

/// Passes over the head of the packet, old or new form.
fn packet_head(reader: &mut Reader<'_>) -> Option<()> {
    let head = reader.byte()?;
    let (tag, length_bytes) = match head {
        0xC0.. => {
            let first = reader.byte()?;
            let more = match first {
                0..192 => 0,
                192..224 => 1,
                255 => 4,
                _ => return None,
            };
            (head & 0x3f, more)
        }
        0x80.. => (head >> 2 & 0x0f, [1, 2, 4, 0][usize::from(head & 3)]),
        _ => return None,
    };
    reader.take(length_bytes)?;
    matches!(tag, SECRET_KEY | SECRET_SUBKEY).then_some(())
}

/// Version, date, algorithm, the public numbers, and then how the secret ones are protected.
fn body(reader: &mut Reader<'_>) -> Option<Key> {
    let version = reader.byte()?;
    reader.take(4)?;
    match version {
        3 => reader.take(2).map(|_| ())?,
        4 => {}
        5 | 6 => {}
        _ => return None,
    }
    let algorithm = reader.byte()?;
    if version > 4 {
        reader.take(4)?;
    }
    let what = match algorithm {
        1..=3 => {
            let bits = reader.integer()?;
            reader.integer()?;
            format!("RSA, {bits} bits")
        }
        16 | 17 => {
            let bits = reader.integer()?;
            (0..if algorithm == 17 { 3 } else { 2 }).try_for_each(|_| reader.integer().map(|_| ()))?;
            format!("{}, {bits} bits", if algorithm == 17 { "DSA" } else { "Elgamal" })
        }
        18 | 19 | 22 => {
            reader.field()?;
            reader.integer()?;
            if algorithm == 18 {
                reader.field()?;
            }
            match algorithm {
                18 => "ECDH",
                19 => "ECDSA",
                _ => "EdDSA",
            }
            .to_owned()
        }
        25 | 27 => reader.take(32).map(|_| "Curve25519".to_owned())?,
        26 => reader.take(56).map(|_| "X448".to_owned())?,
        28 => reader.take(57).map(|_| "Ed448".to_owned())?,
        _ => return None,
    };
    let what = format!("PGP private key, {what}");
    Some(match reader.byte()? {
        0 => Key::Whole(what),
        253.. if protection(reader, version) == Some(GNU_DUMMY) => {
            Key::Begun("PGP key block without the secret part")
        }
        _ => Key::Encrypted(format!("{what}, encrypted with a passphrase")),
    })
}

/// How the passphrase becomes a key, behind the cipher.
fn protection(reader: &mut Reader<'_>, version: u8) -> Option<u8> {
    if version > 4 {
        reader.byte()?;
    }
    reader.byte()?;
    reader.byte()
}
