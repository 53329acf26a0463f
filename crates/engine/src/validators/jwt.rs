//! JSON Web Tokens: the header and the payload are read, the signature is measured.
//!
//! Nothing here compares with the present: whether a token has expired changes from one day to the next, when it
//! does is said in the reasons instead.

use super::base64::{self, decode};
use super::json::{self, Object};
use super::{Table, Verdict};

pub(super) const TABLE: Table = &[("jwt", jwt)];

/// Bytes of a header or a payload, at most: as many as the longest match decodes to.
const PART_MAX: usize = 1536;

/// Characters of a match that tell that its payload was cut by the limit.
const LONG: usize = 1200;

/// Characters of a signature that tell the same.
const LONG_SIGNATURE: usize = 500;

/// Characters of a word that is said, at most.
const WORD_MAX: usize = 24;

/// A header that names an algorithm, then what is signed with it, or what is encrypted.
fn jwt(value: &[u8]) -> Verdict {
    let (header, rest) = match value.iter().position(|&byte| byte == b'.') {
        Some(dot) => (&value[..dot], &value[dot + 1..]),
        None => return Verdict::Fail,
    };
    let Some(header) = decode::<PART_MAX>(header, usize::MAX) else { return Verdict::Fail };
    if !contains(&header, b"\"alg\"") {
        return Verdict::Fail;
    }
    match json::object(&header) {
        Some(header) if header.has("enc") => encrypted(header, rest),
        Some(header) => header.string("alg").map_or(Verdict::Fail, |algorithm| signed(algorithm, rest)),
        None => Verdict::Doubt("the header is not JSON"),
    }
}

/// Behind the header come the encrypted key, the initialisation vector, the text and, if all of it is there, the tag.
fn encrypted(header: Object<'_>, rest: &[u8]) -> Verdict {
    let parts: Vec<&[u8]> = rest.split(|&byte| byte == b'.').collect();
    match (&parts[..], header.string("alg").and_then(word), header.string("enc").and_then(word)) {
        ([_, vector, _text, ..], Some(algorithm), Some(cipher)) if (12..=24).contains(&vector.len()) => {
            Verdict::Noted(format!("JWT encrypted with {algorithm} and {cipher}").into())
        }
        _ => Verdict::Fail,
    }
}

/// Behind the header come the payload, which is an object, and a signature as long as the algorithm gives.
fn signed(algorithm: &[u8], rest: &[u8]) -> Verdict {
    let mut parts = rest.split(|&byte| byte == b'.');
    let payload = parts.next().unwrap_or_default();
    let Some(text) = decode::<PART_MAX>(payload, usize::MAX) else { return Verdict::Fail };
    if !text.starts_with(b"{") {
        return Verdict::Fail;
    }
    let whole = json::object(&text);
    if whole.is_none() && payload.len() < LONG {
        return Verdict::Doubt("the payload is not JSON");
    }
    if whole.is_some_and(is_sample) {
        return Verdict::MadeUp("the sample that documentation uses");
    }
    let right = match parts.next() {
        _ if algorithm == b"none" => return Verdict::Doubt("not signed: its algorithm is `none`"),
        Some([]) => return Verdict::Fail,
        Some(signature) => has_its_length(algorithm, signature),
        None => payload.len() >= LONG,
    };
    if !right {
        return Verdict::Doubt("the signature is not as long as its algorithm gives");
    }
    Verdict::Read(words(algorithm, whole).into())
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

/// Whether a signature has the length that the algorithm gives. One that is not known gives any.
fn has_its_length(algorithm: &[u8], signature: &[u8]) -> bool {
    let len = signature.len() * 6 / 8;
    let symbols = signature.iter().all(|byte| base64::symbol(*byte).is_some());
    let right = match algorithm {
        b"HS256" => len == 32,
        b"HS384" => len == 48,
        b"HS512" | b"ES256" | b"ES256K" => len == 64,
        b"ES384" => len == 96,
        b"ES512" => len == 132,
        b"EdDSA" | b"Ed25519" | b"Ed448" => len == 64 || len == 114,
        [b'R' | b'P', b'S', ..] => len >= 128 && (len.is_multiple_of(8) || signature.len() >= LONG_SIGNATURE),
        _ => len >= 16,
    };
    symbols && right
}

/// The tokens of jwt.io and of RFC 7519, which are pasted everywhere.
fn is_sample(payload: Object<'_>) -> bool {
    let named = |name: &[u8]| payload.string("name") == Some(name);
    (payload.string("sub") == Some(b"1234567890")
        && (named(b"John Doe") || payload.number("iat") == Some(1_516_239_022)))
        || (payload.string("iss") == Some(b"joe") && payload.number("exp") == Some(1_300_819_380))
}

/// A short plain word, such as the name of an algorithm.
fn word(text: &[u8]) -> Option<String> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-+".contains(byte);
    (text.len() <= WORD_MAX && text.iter().all(plain)).then(|| String::from_utf8_lossy(text).into_owned())
}

/// What the token is, and what it says of itself that is nobody's secret: when it expires and what it is for.
fn words(algorithm: &[u8], payload: Option<Object<'_>>) -> String {
    let mut words = match word(algorithm) {
        Some(algorithm) => format!("JWT signed with {algorithm}"),
        None => "signed JWT".to_owned(),
    };
    if let Some(role) = payload.and_then(|payload| payload.string("role")).and_then(word) {
        words += &format!(", role {role}");
    }
    if let Some([year, month, day]) = payload.and_then(|payload| payload.number("exp")).and_then(date) {
        words += &format!(", expires {year:04}-{month:02}-{day:02}");
    }
    words
}

/// The day of a time in seconds since 1970; `None` for what is not of this century.
fn date(seconds: u64) -> Option<[u64; 3]> {
    const CENTURY: std::ops::Range<u64> = 946_684_800..4_102_444_800;
    CENTURY.contains(&seconds).then_some(())?;
    let mut day = seconds / 86_400;
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    Some([year, month, day + 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Base64 of a URL, without padding.
    fn encode(text: &str) -> String {
        const SYMBOLS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let chunk = |bytes: &[u8]| {
            let bits = bytes.iter().enumerate().fold(0, |bits, (i, &b)| bits | u32::from(b) << (16 - 8 * i));
            (0..=bytes.len())
                .map(|i| char::from(SYMBOLS[(bits >> (18 - 6 * i) & 63) as usize]))
                .collect::<String>()
        };
        text.as_bytes().chunks(3).map(chunk).collect()
    }

    fn token(header: &str, payload: &str, signature: usize) -> String {
        format!("{}.{}.{}", encode(header), encode(payload), "k".repeat(signature))
    }

    fn says(header: &str, payload: &str, signature: usize) -> Verdict {
        jwt(token(header, payload, signature).as_bytes())
    }

    #[test]
    fn what_is_read_is_said() {
        let read = |header, payload, signature| match says(header, payload, signature) {
            Verdict::Read(words) => words.to_string(),
            other => format!("{other:?}"),
        };
        assert_eq!(
            read(r#"{"alg":"HS256"}"#, r#"{"sub":"u7","exp":1893456000}"#, 43),
            "JWT signed with HS256, expires 2030-01-01"
        );
        assert_eq!(
            read(r#"{"alg":"HS384"}"#, r#"{"exp":951782400}"#, 64),
            "JWT signed with HS384, expires 2000-02-29"
        );
        assert_eq!(
            read(r#"{"typ":"JWT","alg":"RS256"}"#, r#"{"role":"service_role"}"#, 342),
            "JWT signed with RS256, role service_role"
        );
        assert_eq!(read(r#"{"alg":"ES256"}"#, "{}", 86), "JWT signed with ES256");
        assert_eq!(read(r#"{"alg":"EdDSA"}"#, r#"{"exp":12,"role":"of <b>"}"#, 86), "JWT signed with EdDSA");
        assert_eq!(read(r#"{"alg":"a/b"}"#, "{}", 40), "signed JWT");
    }

    #[test]
    fn signatures_have_the_length_of_their_algorithm() {
        let wrong = Verdict::Doubt("the signature is not as long as its algorithm gives");
        for (algorithm, right, bad) in [
            ("HS256", 43, 44),
            ("HS384", 64, 43),
            ("HS512", 86, 43),
            ("RS256", 342, 86),
            ("PS512", 683, 100),
            ("ES256", 86, 43),
            ("ES384", 128, 86),
            ("ES512", 176, 128),
        ] {
            let header = format!("{{\"alg\":\"{algorithm}\"}}");
            assert!(matches!(says(&header, "{}", right), Verdict::Read(_)), "{algorithm}");
            assert_eq!(says(&header, "{}", bad), wrong, "{algorithm}");
        }
    }

    #[test]
    fn samples_and_broken_ones_are_told() {
        let sample = Verdict::MadeUp("the sample that documentation uses");
        assert_eq!(
            says(r#"{"alg":"HS256"}"#, r#"{"sub":"1234567890","name":"John Doe","iat":1516239022}"#, 43),
            sample
        );
        assert_eq!(
            says(
                r#"{"alg":"HS256"}"#,
                r#"{"iss":"joe","exp":1300819380,"http://example.com/is_root":true}"#,
                43
            ),
            sample
        );
        assert_eq!(says(r#"{"alg":"none"}"#, "{}", 0), Verdict::Doubt("not signed: its algorithm is `none`"));
        assert_eq!(says(r#"{"alg":"HS256""#, "{}", 43), Verdict::Doubt("the header is not JSON"));
        assert_eq!(says(r#"{"alg":"HS256"}"#, "{", 43), Verdict::Doubt("the payload is not JSON"));
        assert_eq!(says(r#"{"typ":"JWT"}"#, "{}", 43), Verdict::Fail);
        assert_eq!(says(r#"{"alg":"HS256"}"#, "[]", 43), Verdict::Fail);
        assert_eq!(jwt(b"eyJhbGciOiJIUzI1NiJ9"), Verdict::Fail);
    }

    #[test]
    fn a_payload_that_goes_on_beyond_the_match_is_enough() {
        let payload = encode(&format!("{{\"groups\":\"{}", "g".repeat(1300)));
        let head = format!("{}.{payload}", encode(r#"{"alg":"RS256"}"#));
        assert_eq!(jwt(head.as_bytes()), Verdict::Read("JWT signed with RS256".into()));
    }

    #[test]
    fn encrypted_tokens_have_five_parts() {
        let header = encode(r#"{"alg":"RSA-OAEP","enc":"A256GCM"}"#);
        let tokens = [
            (
                format!(
                    "{header}.{}.{}.{}.{}",
                    "a".repeat(342),
                    "b".repeat(16),
                    "c".repeat(90),
                    "d".repeat(22)
                ),
                true,
            ),
            (format!("{header}..{}.{}.{}", "b".repeat(16), "c".repeat(90), "d".repeat(22)), true),
            (format!("{header}.{}.{}", "a".repeat(342), "b".repeat(16)), false),
            (format!("{}.a.{}.c.d", encode(r#"{"alg":"HS256"}"#), "b".repeat(16)), false),
        ];
        for (token, right) in tokens {
            let verdict = jwt(token.as_bytes());
            let encrypted = Verdict::Noted("JWT encrypted with RSA-OAEP and A256GCM".into());
            assert_eq!(verdict == encrypted, right, "{token}: {verdict:?}");
        }
    }
}
