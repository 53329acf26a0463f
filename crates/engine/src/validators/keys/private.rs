//! Private keys in DER: PKCS#1, PKCS#8 (encrypted or not), SEC 1, and DSA as OpenSSL writes it.
//!
//! A key is known by its structure, not by what its head says: tools write the wrong one.

use super::Key;
use super::der::{CONTEXT_0, Der, Integer, OCTET_STRING, OID, SEQUENCE, product};

/// Bits of an RSA modulus that are in use.
const RSA_BITS: std::ops::RangeInclusive<usize> = 512..=16_384;
/// Bits of an RSA exponent: the few that are in use are far below.
const EXPONENT_BITS: std::ops::RangeInclusive<usize> = 2..=256;
/// Bits of the prime of a DSA key, and of its subgroup.
const DSA_P_BITS: std::ops::RangeInclusive<usize> = 512..=4096;
const DSA_Q_BITS: std::ops::RangeInclusive<usize> = 160..=256;

/// Bytes that tell how many bits an integer has: tag, length and the first two of its own.
const INTEGER_HEAD_MAX: usize = 6;

/// What begins as a key and then does not go on as one.
const BROKEN: Key = Key::Begun("begins as a private key, but does not go on as one");
/// A key whose end is missing from the text.
const MISSING: Key = Key::Begun("begins as a private key; the rest is missing");

/// Reads a key; `long` when the text was so long that only its head was matched. `None` when it does not even
/// begin as one.
pub(super) fn read(bytes: &[u8], long: bool) -> Option<Key> {
    let mut body = Der::outermost(bytes).expect(SEQUENCE)?;
    let missing = body.beyond > 0 && !long;
    let key = match *body.bytes.first()? {
        SEQUENCE => encrypted(&mut body)?,
        _ => plain(&mut body)?,
    };
    Some(if missing && matches!(key, Key::Whole(_)) { MISSING } else { key })
}

/// The kinds that begin with a version.
fn plain(body: &mut Der<'_>) -> Option<Key> {
    let version = body.small()?;
    let key = match *body.bytes.first()? {
        SEQUENCE if version <= 1 => pkcs8(body)?,
        OCTET_STRING if version == 1 => sec1(body, None),
        _ if version <= 1 => numbers(body),
        _ => return None,
    };
    Some(key.unwrap_or(BROKEN))
}

/// RSA or DSA: integers one after another.
fn numbers(body: &mut Der<'_>) -> Option<Key> {
    let first = body.integer()?;
    let mut second = *body;
    match second.integer() {
        Some(q) if DSA_Q_BITS.contains(&q.bits) && DSA_P_BITS.contains(&first.bits) => dsa(first),
        _ => rsa(first, body),
    }
}

fn dsa(p: Integer<'_>) -> Option<Key> {
    Some(Key::Whole(format!("DSA private key, {} bits", p.bits)))
}

/// What follows the modulus, as far as it is there: exponents, primes, and what is derived from them. If all is
/// there, the primes must give the modulus.
fn rsa(modulus: Integer<'_>, rest: &mut Der<'_>) -> Option<Key> {
    let half = modulus.bits / 2;
    if !RSA_BITS.contains(&modulus.bits) || rest.len() < modulus.bits / 8 * 3 {
        return None;
    }
    let key = Key::Whole(format!("RSA private key, {} bits", modulus.bits));
    let limits = [EXPONENT_BITS, 2..=modulus.bits, half / 2..=modulus.bits, half / 2..=modulus.bits];
    let mut primes = [0; 2];
    for (i, limit) in limits.into_iter().enumerate() {
        if rest.beyond > 0 && rest.bytes.len() < INTEGER_HEAD_MAX {
            return Some(key);
        }
        let number = rest.integer().filter(|number| limit.contains(&number.bits))?;
        let Some(remainder) = number.remainder() else { return Some(key) };
        if i >= 2 {
            primes[i - 2] = remainder;
        }
    }
    (product(primes[0], primes[1]) == modulus.remainder()?).then_some(key)
}

/// An EC key: the secret number, then the curve, unless what is around names it.
fn sec1(body: &mut Der<'_>, known: Option<&Curve>) -> Option<Key> {
    let secret = body.expect(OCTET_STRING)?;
    let curve = match body.expect(CONTEXT_0) {
        Some(mut parameters) => parameters.expect(OID).map(|oid| curve(oid.bytes)),
        None => None,
    };
    let curve = curve.unwrap_or(known);
    let right = match curve {
        Some(curve) => secret.len() == curve.bytes,
        None => (16..=66).contains(&secret.len()),
    };
    let name = curve.map_or("of another curve", |curve| curve.name);
    right.then(|| Key::Whole(format!("EC private key, {name}")))
}

/// PKCS#8: an algorithm, then the key in the form of its own. `None` when what follows the version is no algorithm.
fn pkcs8(body: &mut Der<'_>) -> Option<Option<Key>> {
    let mut algorithm = body.expect(SEQUENCE)?;
    let oid = algorithm.expect(OID)?.bytes;
    Some(inner(oid, algorithm, body))
}

fn inner(oid: &[u8], mut parameters: Der<'_>, body: &mut Der<'_>) -> Option<Key> {
    let mut key = body.expect(OCTET_STRING)?;
    match oid {
        // 1.2.840.113549.1.1.1 and .10
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1 | 10] => {
            let mut numbers = key.expect(SEQUENCE)?;
            (numbers.small()? <= 1).then_some(())?;
            let modulus = numbers.integer()?;
            rsa(modulus, &mut numbers)
        }
        // 1.2.840.10045.2.1
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1] => {
            let known = parameters.expect(OID).and_then(|oid| curve(oid.bytes));
            let mut sequence = key.expect(SEQUENCE)?;
            (sequence.small()? == 1).then_some(())?;
            sec1(&mut sequence, known)
        }
        // 1.2.840.10040.4.1
        [0x2a, 0x86, 0x48, 0xce, 0x38, 4, 1] => {
            let p = parameters.expect(SEQUENCE)?.integer()?;
            DSA_P_BITS.contains(&p.bits).then_some(())?;
            dsa(p)
        }
        // 1.3.101.110 to .113
        [0x2b, 0x65, kind @ 0x6e..=0x71] => {
            let (name, len) = match kind {
                0x6e => ("X25519", 32),
                0x6f => ("X448", 56),
                0x70 => ("Ed25519", 32),
                _ => ("Ed448", 57),
            };
            let secret = key.expect(OCTET_STRING)?;
            (secret.len() == len).then(|| Key::Whole(format!("{name} private key")))
        }
        _ => Some(Key::Whole("private key of another algorithm (PKCS#8)".to_owned())),
    }
}

/// An encrypted key of PKCS#8: the scheme, then the bytes that nobody can look into.
fn encrypted(body: &mut Der<'_>) -> Option<Key> {
    let mut scheme = body.expect(SEQUENCE)?;
    let name = match scheme.expect(OID)?.bytes {
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5, 13] => "PBES2",
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5, _] => "PBES1",
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 12, 1, _] => "PKCS#12",
        _ => return None,
    };
    let there = body.is_cut() || body.expect(OCTET_STRING).is_some();
    Some(if there {
        Key::Encrypted(format!("private key encrypted with a passphrase ({name})"))
    } else {
        BROKEN
    })
}

struct Curve {
    oid: &'static [u8],
    name: &'static str,
    /// Bytes of a secret number.
    bytes: usize,
}

const CURVES: &[Curve] = &[
    Curve { oid: &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 1], name: "P-192", bytes: 24 },
    Curve { oid: &[0x2b, 0x81, 4, 0, 0x21], name: "P-224", bytes: 28 },
    Curve { oid: &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7], name: "P-256", bytes: 32 },
    Curve { oid: &[0x2b, 0x81, 4, 0, 0x22], name: "P-384", bytes: 48 },
    Curve { oid: &[0x2b, 0x81, 4, 0, 0x23], name: "P-521", bytes: 66 },
    Curve { oid: &[0x2b, 0x81, 4, 0, 0x0a], name: "secp256k1", bytes: 32 },
    Curve { oid: &[0x2b, 0x24, 3, 3, 2, 8, 1, 1, 7], name: "brainpoolP256r1", bytes: 32 },
    Curve { oid: &[0x2b, 0x24, 3, 3, 2, 8, 1, 1, 11], name: "brainpoolP384r1", bytes: 48 },
];

fn curve(oid: &[u8]) -> Option<&'static Curve> {
    CURVES.iter().find(|curve| curve.oid == oid)
}
