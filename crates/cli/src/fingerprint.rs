//! The fingerprint key of a fleet: a credential that every worker brings with it.

use anyhow::{Context, Result, bail};
use domesday_connector::credentials::{CredentialManager, CredentialReference, Secret};
use domesday_model::FingerprintKey;

/// Where a key is looked for that nobody named.
const VARIABLE: &str = "DOMESDAY_FINGERPRINT_KEY";

/// The reference of a scan's key: the flag, or the variable that a fleet keeps it in, if it is set. Without either
/// a scan has a key of its own.
pub fn reference(flag: Option<&str>) -> Option<String> {
    let is_set = || std::env::var_os(VARIABLE).is_some_and(|value| !value.is_empty());
    flag.map(str::to_owned).or_else(|| is_set().then(|| format!("env:{VARIABLE}")))
}

/// The key that a reference such as `env:NAME` leads to. Errors name the reference, never the value.
pub async fn resolve(credentials: &CredentialManager, reference: &str) -> Result<FingerprintKey> {
    let about = || "the fingerprint key (--fingerprint-key)".to_owned();
    let reference: CredentialReference = reference.parse().with_context(about)?;
    let secret = credentials.resolve_own(&reference).await.with_context(about)?;
    let Some(key) = decode(&secret) else {
        bail!(
            "the fingerprint key {reference} has {} bytes: write 32 bytes as they are, 64 hexadecimal digits, or \
             their base64; `openssl rand -hex 32` makes one",
            secret.expose().len()
        );
    };
    Ok(FingerprintKey::new(key))
}

/// 32 bytes, 64 hexadecimal digits or 43 letters of base64, with or without padding: the length tells which.
fn decode(secret: &Secret) -> Option<[u8; FingerprintKey::LEN]> {
    let bytes = secret.expose();
    let digits = match bytes.len() {
        32 => return bytes.try_into().ok(),
        64 => 4,
        43 => 6,
        44 if bytes[43] == b'=' => 6,
        _ => return None,
    };
    let (mut key, mut filled, mut held, mut bits) = ([0; FingerprintKey::LEN], 0, 0u32, 0);
    for &letter in bytes.iter().filter(|letter| **letter != b'=') {
        held = held << digits | if digits == 4 { hex(letter)? } else { base64(letter)? };
        bits += digits;
        if bits >= 8 {
            bits -= 8;
            *key.get_mut(filled)? = (held >> bits) as u8;
            held &= (1 << bits) - 1;
            filled += 1;
        }
    }
    // Letters that say more than 32 bytes were not made by an encoder.
    (filled == FingerprintKey::LEN && held == 0).then_some(key)
}

fn hex(letter: u8) -> Option<u32> {
    char::from(letter).to_digit(16)
}

fn base64(letter: u8) -> Option<u32> {
    let value = match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    };
    Some(value.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(text: &[u8]) -> Option<[u8; 32]> {
        decode(&Secret::new(text.to_vec()))
    }

    #[test]
    fn a_key_may_be_raw_hexadecimal_or_base64() {
        let key: [u8; 32] = std::array::from_fn(|index| index as u8);
        assert_eq!(decoded(&key), Some(key));
        let hex = "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F";
        assert_eq!(decoded(hex.as_bytes()), Some(key));
        for base64 in
            ["AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"]
        {
            assert_eq!(decoded(base64.as_bytes()), Some(key));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for wrong in [&b"short"[..], &[b'x'; 33], &[b'z'; 64], &[b'!'; 43], &[b'='; 44], &[b'/'; 43]] {
            assert_eq!(decoded(wrong), None, "{wrong:?}");
        }
    }

    #[tokio::test]
    async fn errors_name_the_reference_and_not_the_value() {
        let credentials = CredentialManager::default();
        let wrong = resolve(&credentials, "env:PATH").await.unwrap_err().to_string();
        assert!(wrong.contains("env:PATH") && !wrong.contains(&std::env::var("PATH").unwrap()), "{wrong}");
        let missing = format!("{:#}", resolve(&credentials, "env:DOMESDAY_NO_SUCH").await.unwrap_err());
        assert!(missing.contains("env:DOMESDAY_NO_SUCH"), "{missing}");
        let not_one = format!("{:#}", resolve(&credentials, "hunter2").await.unwrap_err());
        assert!(!not_one.contains("hunter2"), "{not_one}");
    }
}
