//! How common a literal is in source text and prose, roughly: enough to choose which of a rule's
//! literals to look for. Choosing well matters more than how fast the search is.

/// Negative base-2 logarithm of a byte's share of typical text, case-folded, in eighths of a bit.
fn byte_cost(byte: u8) -> u32 {
    match byte.to_ascii_lowercase() {
        b' ' => 20,
        b'e' | b't' | b'r' | b's' | b'i' | b'n' | b'a' | b'o' => 34,
        b'd' | b'l' | b'c' | b'p' | b'u' | b'f' | b'm' | b'_' => 40,
        b'0' | b'-' | b'*' | b'/' | b'=' | b'.' | b',' | b'(' | b')' | b'\n' | b'\t' => 38,
        b'g' | b'h' | b'b' | b'v' | b'x' | b'1' | b'"' | b':' | b';' => 48,
        b'k' | b'w' | b'y' | b'2'..=b'9' | b'>' | b'<' | b'&' => 54,
        b'q' | b'z' | b'j' => 72,
        0x80.. => 80,
        _ => 60,
    }
}

/// Words, and parts of words, that occur in almost every file of some kind.
const COMMON: &[&str] = &[
    "access",
    "account",
    "address",
    "api",
    "auth",
    "base",
    "begin",
    "client",
    "code",
    "config",
    "connect",
    "credential",
    "data",
    "email",
    "end",
    "file",
    "host",
    "http",
    "https",
    "key",
    "login",
    "name",
    "number",
    "pass",
    "passwd",
    "password",
    "phone",
    "port",
    "private",
    "public",
    "pwd",
    "secret",
    "server",
    "service",
    "session",
    "string",
    "test",
    "token",
    "type",
    "user",
    "username",
    "value",
    ".com",
    "www.",
    "://",
    "----",
    "====",
    "____",
    "0000",
    "    ",
    "****",
    "////",
];

/// What being a common word takes off a literal's rarity.
const COMMON_WORD_COST: u32 = 64;

/// Higher is rarer, in eighths of a bit. `bytes` in any case.
pub fn rarity(bytes: &[u8]) -> u32 {
    let sum: u32 = bytes.iter().map(|&byte| byte_cost(byte)).sum();
    let trimmed = bytes.trim_ascii();
    let common = COMMON.iter().any(|word| trimmed.eq_ignore_ascii_case(word.as_bytes()));
    let repeated = bytes.windows(2).filter(|pair| pair[0] == pair[1]).count() as u32;
    // The second of two equal bytes tells little: rules of dashes and blanks are everywhere.
    sum.saturating_sub(if common { COMMON_WORD_COST } else { 0 }).saturating_sub(repeated * 32)
}

/// Rarity of a set, any of which may occur: as rare as its commonest member, less what each further
/// member adds.
pub fn rarity_of_any<'a>(literals: impl Iterator<Item = &'a [u8]>) -> u32 {
    let (mut least, mut count) = (u32::MAX, 0u32);
    for literal in literals {
        least = least.min(rarity(literal));
        count += 1;
    }
    if count == 0 { 0 } else { least.saturating_sub(8 * count.ilog2()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_longer_or_odder_is_rarer() {
        assert!(rarity(b"xoxb-") > rarity(b"token"));
        assert!(rarity(b"hooks.slack.com") > rarity(b".com"));
        assert!(rarity(b"AKIA") > rarity(b"----"));
        assert!(rarity(b"glpat-") > rarity(b"key"));
        assert!(rarity_of_any([&b"AKIA"[..], b"key"].into_iter()) < rarity(b"AKIA"));
        assert_eq!(rarity_of_any([].into_iter()), 0);
    }
}
