//! Tokens that carry something readable: an account, a user, a place, JSON in base64.
//!
//! What is read proves that a value is such a token. What cannot be read speaks against it but does not refuse it:
//! issuers change their formats without telling.

use super::base64::decode;
use super::crypto::base32;
use super::json;
use super::{Table, Verdict};

pub(super) const TABLE: Table = &[
    ("aws_key_id", aws_key_id),
    ("azure_key", azure_key),
    ("discord_token", discord_token),
    ("mapbox_token", |v| holds_json(v.get(3..).unwrap_or_default(), &["u", "a"])),
    ("onepassword_token", |v| {
        holds_json(v.strip_prefix(b"ops_").unwrap_or(v), &["signInAddress", "secretKey"])
    }),
    ("pypi_token", pypi_token),
    ("sentry_token", sentry_token),
    ("vault_token", vault_token),
];

/// Bytes of JSON in a token, at most.
const JSON_MAX: usize = 1024;

/// A key id is base 32 behind its prefix. Since 2019 its first bits are the number of the account, of twelve digits;
/// older ones begin with `I` or `J`.
fn aws_key_id(value: &[u8]) -> Verdict {
    const ACCOUNTS: u64 = 1_000_000_000_000;
    let Some(body) = value.get(4..).filter(|body| body.len() == 16) else { return Verdict::Fail };
    let Some(bits) = body.iter().try_fold(0u128, |bits, &byte| Some(bits << 5 | u128::from(base32(byte)?)))
    else {
        return Verdict::Doubt("has symbols that key ids do not have");
    };
    if value.starts_with(b"A3T") || matches!(body[0], b'I' | b'J') {
        return Verdict::Pass;
    }
    // 40 bits behind the first one.
    let account = (bits >> 39) as u64 & ((1 << 40) - 1);
    if account < ACCOUNTS {
        Verdict::Noted(format!("key of AWS account {account:012}").into())
    } else {
        Verdict::Doubt("holds no account number")
    }
}

/// What the keys of the storage and database emulators begin with: they are the same everywhere, and documented.
const EMULATOR_KEYS: [&[u8]; 2] = [b"Eby8vdM02xNOcqFl", b"C2y6yDjf5/R+ob0N"];

/// Account keys are 64 bytes, those of messaging 32.
fn azure_key(value: &[u8]) -> Verdict {
    if EMULATOR_KEYS.iter().any(|known| value.starts_with(known)) {
        return Verdict::MadeUp("the documented key of an emulator");
    }
    let len = decode::<96>(value, usize::MAX).map_or(0, |bytes| bytes.len());
    Verdict::doubt_unless(matches!(len, 32 | 64), "not as long as such keys are")
}

/// The first part is the number of the user, in base64.
fn discord_token(value: &[u8]) -> Verdict {
    let first = value.split(|&byte| byte == b'.').next().unwrap_or_default();
    let user = decode::<24>(first, usize::MAX);
    let named = user
        .is_some_and(|user| (17..=20).contains(&user.len()) && user.iter().all(|byte| byte.is_ascii_digit()));
    if named { Verdict::Proof("names a user") } else { Verdict::Doubt("names no user") }
}

/// Base64 of a JSON object with these members, up to a dot.
fn holds_json(value: &[u8], members: &[&str]) -> Verdict {
    let part = value.split(|&byte| byte == b'.').next().unwrap_or_default();
    let text = decode::<JSON_MAX>(part, usize::MAX);
    let object = text.as_deref().and_then(json::object);
    if object.is_some_and(|object| members.iter().all(|name| object.has(name))) {
        Verdict::Proof("decodes to what such tokens hold")
    } else {
        Verdict::Doubt("does not decode to what such tokens hold")
    }
}

/// A macaroon: version 2, then the place it is for, whose length comes before it, and the identifier.
fn pypi_token(value: &[u8]) -> Verdict {
    let Some(text) = value.strip_prefix(b"pypi-") else { return Verdict::Fail };
    let is_host = |place: &[u8]| {
        let in_host = |byte: &u8| byte.is_ascii_alphanumeric() || b".-".contains(byte);
        place.contains(&b'.') && place.iter().all(in_host)
    };
    let named = decode::<48>(text, 64).is_some_and(|bytes| match &*bytes {
        [2, 1, len, rest @ ..] => rest
            .split_at_checked(usize::from(*len))
            .is_some_and(|(place, rest)| is_host(place) && rest.first() == Some(&2)),
        _ => false,
    });
    if named {
        Verdict::Proof("a macaroon for a package index")
    } else {
        Verdict::Doubt("not a macaroon for a package index")
    }
}

/// Tokens of an organisation are JSON in base64, which says when and for whom, and a secret behind `_`. Others say
/// nothing.
fn sentry_token(value: &[u8]) -> Verdict {
    let Some(rest) = value.strip_prefix(b"sntrys_") else { return Verdict::Pass };
    let payload = rest.rsplitn(2, |&byte| byte == b'_').last().unwrap_or_default();
    holds_json(payload, &["iat", "org"])
}

/// Longer tokens are a message in base64: a number, then bytes with their length.
fn vault_token(value: &[u8]) -> Verdict {
    match decode::<48>(value.get(4..).unwrap_or_default(), 64).as_deref() {
        Some([0x08, 0x01, 0x12, len, rest @ ..]) if rest.len() >= usize::from(*len).min(40) => {
            Verdict::Proof("holds a signed message")
        }
        _ => Verdict::Pass,
    }
}
