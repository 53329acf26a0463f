//! Addresses and keys of cryptocurrencies and of age: base58check, bech32 and the mixed case of EIP-55.

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
    ("bech32", |v| proof(bech32(v).is_some())),
    ("eth_address", eth_address),
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
