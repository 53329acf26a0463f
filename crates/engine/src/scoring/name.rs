//! What the name that a value is assigned to says of it: some names hold the word for a secret and still are of
//! something public, or of something that is said to be made up.

use crate::parts::Parts;

/// Bytes between a name and its value, at most: quotes, spaces, a sign of assignment.
const BETWEEN_MAX: usize = 24;
/// Bytes of a name, at most.
const NAME_MAX: usize = 64;

/// Parts of names, in small letters without the signs between words.
static PUBLIC: Parts = Parts::new(&[
    "publickey",
    "pubkey",
    "pagetoken",
    "nexttoken",
    "continuationtoken",
    "continuetoken",
    "cursortoken",
    "synctoken",
    "changetoken",
    "resumetoken",
    "cancellationtoken",
    "csrf",
    "xsrf",
    "requestverificationtoken",
    "dummy",
    "example",
    "fake",
    "mock",
    "placeholder",
    "sample",
]);

/// Whether the name before the value at `start` is one of those.
pub fn is_public(bytes: &[u8], start: usize) -> bool {
    let before = &bytes[start.saturating_sub(BETWEEN_MAX + NAME_MAX)..start];
    let between = before.iter().rev().take(BETWEEN_MAX).take_while(|byte| !in_name(**byte)).count();
    let before = &before[..before.len() - between];
    let name = before.iter().rev().take(NAME_MAX).take_while(|byte| in_name(**byte)).count();
    let name = &before[before.len() - name..];
    let (mut letters, mut len) = ([0; NAME_MAX], 0);
    for byte in name.iter().filter(|byte| byte.is_ascii_alphanumeric()) {
        (letters[len], len) = (byte.to_ascii_lowercase(), len + 1);
    }
    PUBLIC.is_in(&letters[..len])
}

fn in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)
}

#[cfg(test)]
mod tests {
    fn check(text: &str, expected: bool) {
        let start = text.find("VAL").unwrap();
        assert_eq!(super::is_public(text.as_bytes(), start), expected, "{text}");
    }

    #[test]
    fn names_of_public_things_are_known() {
        check("<assemblyIdentity publicKeyToken=\"VAL\"/>", true);
        check("next_page_token: VAL", true);
        check("'X-CSRF-Token' => 'VAL'", true);
        check("fakeToken = \"VAL\"", true);
        check("api_token = \"VAL\"", false);
        check("public void f() { token = \"VAL\"", false);
        check("VAL", false);
    }
}
