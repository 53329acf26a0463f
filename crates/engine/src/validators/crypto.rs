//! Addresses and keys of cryptocurrencies, of age and of Nostr: base58check, bech32, Stellar's base 32 and the mixed
//! case of EIP-55.

use super::hash::{keccak256, sha256};
use super::{Table, Verdict};

pub(super) const TABLE: Table = &[
    ("btc_address", |v| proof(btc_address(v))),
    ("btc_wif", |v| {
        proof(
            base58check(v)
                .is_some_and(|b| b.payload().first() == Some(&0x80) && matches!(b.payload().len(), 33 | 34)),
        )
    }),
    ("bip32_xprv", |v| {
        proof(base58check(v).is_some_and(|b| b.payload().starts_with(&[0x04, 0x88, 0xAD, 0xE4])))
    }),
    ("tron_address", |v| proof(base58_version(v, &[0x41]))),
    ("litecoin_address", |v| proof(base58_version(v, &[0x30, 0x32]))),
    ("dogecoin_address", |v| proof(base58_version(v, &[0x1E, 0x16]))),
    ("bech32", |v| proof(bech32(v).is_some())),
    ("eth_address", eth_address),
    ("age_key", age_key),
    ("nostr_key", |v| proof(v.starts_with(b"nsec1") && bech32(v) == Some(Bech32::Original))),
    ("stellar_seed", |v| proof(stellar_seed(v))),
];

fn proof(ok: bool) -> Verdict {
    Verdict::proof_if(ok, "checksum valid")
}

/// Bytes of the longest base58check value read: an extended key.
const BASE58_BYTES: usize = 82;

struct Base58 {
    buf: [u8; BASE58_BYTES],
    len: usize,
}

impl Base58 {
    fn payload(&self) -> &[u8] {
        &self.buf[BASE58_BYTES - self.len..BASE58_BYTES - 4]
    }
}

/// Decodes base58 and verifies the four bytes of double SHA-256 at its end.
fn base58check(value: &[u8]) -> Option<Base58> {
    const ALPHABET: &[u8] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    let mut buf = [0u8; BASE58_BYTES];
    for symbol in value {
        let mut carry = ALPHABET.iter().position(|known| known == symbol)?;
        for byte in buf.iter_mut().rev() {
            carry += usize::from(*byte) * 58;
            *byte = (carry % 256) as u8;
            carry /= 256;
        }
        if carry != 0 {
            return None;
        }
    }
    let zeros = value.iter().take_while(|&&symbol| symbol == b'1').count();
    let significant = buf.iter().skip_while(|&&byte| byte == 0).count();
    let len = zeros + significant;
    if !(5..=BASE58_BYTES).contains(&len) {
        return None;
    }
    let decoded = Base58 { buf, len };
    let digest = sha256(&sha256(decoded.payload())?)?;
    (digest[..4] == buf[BASE58_BYTES - 4..]).then_some(decoded)
}

/// Which of the two constants a bech32 checksum came out as.
#[derive(PartialEq, Eq)]
enum Bech32 {
    Original,
    Modified,
}

/// The longest bech32 value, in characters.
const BECH32_MAX: usize = 90;

/// Verifies a bech32 value of one case: human-readable part, the last `1`, data with six check symbols.
fn bech32(value: &[u8]) -> Option<Bech32> {
    const ALPHABET: &[u8] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
    const GENERATOR: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
    let mixed = value.iter().any(u8::is_ascii_lowercase) && value.iter().any(u8::is_ascii_uppercase);
    let split = value.iter().rposition(|&byte| byte == b'1')?;
    let (prefix, data) = (&value[..split], &value[split + 1..]);
    if mixed || prefix.is_empty() || data.len() < 6 || value.len() > BECH32_MAX {
        return None;
    }
    let step = |state: u32, symbol: u32| {
        let top = state >> 25;
        let state = (state & 0x1ff_ffff) << 5 ^ symbol;
        GENERATOR.iter().enumerate().fold(state, |s, (i, g)| if top >> i & 1 == 1 { s ^ g } else { s })
    };
    let lower = |byte: &u8| u32::from(byte.to_ascii_lowercase());
    let mut state = prefix.iter().map(lower).fold(1, |state, c| step(state, c >> 5));
    state = step(state, 0);
    state = prefix.iter().map(lower).fold(state, |state, c| step(state, c & 31));
    for symbol in data {
        let value = ALPHABET.iter().position(|known| *known == symbol.to_ascii_lowercase())?;
        state = step(state, value as u32);
    }
    match state {
        1 => Some(Bech32::Original),
        0x2bc8_30a3 => Some(Bech32::Modified),
        _ => None,
    }
}

/// A secret key of age is bech32 of 32 bytes, in upper case.
fn age_key(value: &[u8]) -> Verdict {
    let right = value.starts_with(b"AGE-SECRET-KEY-1")
        && value.len() == 74
        && bech32(value) == Some(Bech32::Original);
    if right { Verdict::Proof("checksum valid") } else { Verdict::Doubt("checksum wrong") }
}

/// Base 32 of a version, 32 bytes and their CRC-16, the low byte first.
fn stellar_seed(value: &[u8]) -> bool {
    const SEED_VERSION: u8 = 18 << 3;
    let mut bytes = [0u8; 35];
    if value.len() != 56 {
        return false;
    }
    for (five, symbols) in bytes.chunks_mut(5).zip(value.chunks(8)) {
        let Some(bits) = symbols.iter().try_fold(0u64, |bits, &byte| Some(bits << 5 | base32(byte)?)) else {
            return false;
        };
        five.copy_from_slice(&bits.to_be_bytes()[3..]);
    }
    let crc = bytes[..33].iter().fold(0u16, |crc, &byte| {
        (0..8).fold(
            crc ^ u16::from(byte) << 8,
            |crc, _| if crc >> 15 == 1 { crc << 1 ^ 0x1021 } else { crc << 1 },
        )
    });
    bytes[0] == SEED_VERSION && bytes[33..] == crc.to_le_bytes()
}

/// The value of a symbol of base 32.
pub(super) fn base32(symbol: u8) -> Option<u64> {
    match symbol {
        b'A'..=b'Z' => Some(u64::from(symbol - b'A')),
        b'2'..=b'7' => Some(u64::from(symbol - b'2') + 26),
        _ => None,
    }
}

/// Base58check of one of the versions and 20 bytes.
fn base58_version(value: &[u8], versions: &[u8]) -> bool {
    base58check(value).is_some_and(|b| match b.payload() {
        [version, rest @ ..] => versions.contains(version) && rest.len() == 20,
        [] => false,
    })
}

/// A legacy address is base58check of version 0 or 5 and 20 bytes; a segwit one is bech32, modified from
/// version 1 (`p`) on.
fn btc_address(value: &[u8]) -> bool {
    match value {
        [b'b' | b'B', b'c' | b'C', b'1', version, ..] => {
            bech32(value).is_some_and(|kind| (kind == Bech32::Original) == matches!(version, b'q' | b'Q'))
        }
        _ => {
            base58check(value).is_some_and(|b| matches!(b.payload(), [0 | 5, rest @ ..] if rest.len() == 20))
        }
    }
}

/// Letters of one case carry no checksum; mixed case must be that of EIP-55: a letter is upper case where
/// the hash of the lower-case text has a high nibble.
fn eth_address(value: &[u8]) -> Verdict {
    let hex = value.strip_prefix(b"0x").unwrap_or(value);
    if hex.len() != 40 || !hex.iter().all(u8::is_ascii_hexdigit) || super::text::uniform(hex) {
        return Verdict::Fail;
    }
    let lower = hex.to_ascii_lowercase();
    if hex == lower || hex == hex.to_ascii_uppercase() {
        return Verdict::Pass;
    }
    let Some(digest) = keccak256(&lower) else { return Verdict::Fail };
    let high = |i: usize| digest[i / 2] >> (4 * (1 - i % 2)) & 0xf >= 8;
    proof(hex.iter().enumerate().all(|(i, c)| !c.is_ascii_alphabetic() || c.is_ascii_uppercase() == high(i)))
}
