//! Fingerprints and previews: what a finding keeps in place of the value itself.

use std::fmt;

/// The key of all fingerprints in one book. With it, equal values have equal fingerprints; without it,
/// a fingerprint cannot be checked against guesses of the value.
#[derive(Clone, PartialEq, Eq)]
pub struct FingerprintKey([u8; 32]);

impl FingerprintKey {
    pub const LEN: usize = 32;

    pub fn new(bytes: [u8; 32]) -> Self {
        FingerprintKey(bytes)
    }

    /// Names the key without telling it; stored beside fingerprints.
    pub fn id(&self) -> String {
        self.derive("domesday fingerprint key id")[..4].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub fn fingerprint(&self, value: &[u8]) -> Fingerprint {
        let mut out = [0; 16];
        out.copy_from_slice(&blake3::keyed_hash(&self.0, value).as_bytes()[..16]);
        Fingerprint(out)
    }

    /// A key for something else. It tells nothing of this key, nor of one that was made for another purpose.
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        blake3::derive_key(purpose, &self.0)
    }

    /// What names a value that must not be shown: enough to recognise it by someone who knows it, and to tell it from
    /// others by anyone.
    pub fn name(&self, value: &[u8]) -> String {
        let mut name = preview(value);
        name.push('~');
        name.extend(self.fingerprint(value).0[..NAME_LEN].iter().map(|byte| format!("{byte:02x}")));
        name
    }

    /// A key for the hashes in sketches of columns. It tells nothing of this key, and a fingerprint nothing of a
    /// hash made with it. Sketches are merged only if their seed is the same.
    pub fn sketch_key(&self, seed: u64) -> [u8; 16] {
        let key = self.derive("domesday column sketch key");
        let mut out = [0; 16];
        out.copy_from_slice(&blake3::keyed_hash(&key, &seed.to_le_bytes()).as_bytes()[..16]);
        out
    }
}

impl fmt::Debug for FingerprintKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FingerprintKey(id {})", self.id())
    }
}

/// A keyed hash of a sensitive value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub [u8; 16]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// Bytes of its fingerprint in a value's name: equal ones are of equal values among the rows of a table.
const NAME_LEN: usize = 8;
/// Characters of a value that a preview shows at its start, at most.
const PREVIEW_HEAD_MAX: usize = 4;
/// Characters of a value that a preview shows at its end, at most.
const PREVIEW_TAIL_MAX: usize = 2;

/// A redacted preview: enough to recognise the value by someone who knows it, useless to anyone else.
/// At most a quarter of the value is shown, and never more than six characters.
pub fn preview(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    let chars: Vec<char> = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    let head = (chars.len() / 6).min(PREVIEW_HEAD_MAX);
    let tail = (chars.len() / 12).min(PREVIEW_TAIL_MAX);
    let mut out: String = chars[..head].iter().collect();
    out.push_str("****");
    out.extend(&chars[chars.len() - tail..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preview_shows_at_most_a_quarter() {
        for len in 0..200 {
            let value = "x".repeat(len);
            let shown = preview(value.as_bytes()).chars().filter(|&c| c == 'x').count();
            assert!(shown * 4 <= len && shown <= 6, "{shown} of {len} shown");
        }
        assert_eq!(preview(b"4111111111111111"), "41****1");
        assert_eq!(preview(b"hunter2"), "h****");
    }

    #[test]
    fn the_key_decides_the_fingerprint_and_never_shows() {
        let (a, b) = (FingerprintKey::new([1; 32]), FingerprintKey::new([2; 32]));
        assert_eq!(a.fingerprint(b"v"), a.fingerprint(b"v"));
        assert_ne!(a.fingerprint(b"v"), b.fingerprint(b"v"));
        assert!(!format!("{a:?}").contains("0101"));
    }

    #[test]
    fn a_name_tells_values_apart_and_does_not_tell_them() {
        let key = FingerprintKey::new([1; 32]);
        let (a, b) = (key.name(b"731-42-6508"), key.name(b"731-42-6509"));
        assert!(a.starts_with("7****~") && a.len() == "7****~".len() + 2 * NAME_LEN, "{a}");
        assert_ne!(a, b);
        assert_eq!(key.fingerprint(b"731-42-6508").to_string()[..2 * NAME_LEN], a["7****~".len()..]);
    }

    #[test]
    fn sketches_have_a_key_of_their_own_per_key_and_seed() {
        let (a, b) = (FingerprintKey::new([1; 32]), FingerprintKey::new([2; 32]));
        assert_eq!(a.sketch_key(5), a.sketch_key(5));
        assert_ne!(a.sketch_key(5), a.sketch_key(6));
        assert_ne!(a.sketch_key(5), b.sketch_key(5));
        assert_ne!(a.sketch_key(5), a.fingerprint(&5u64.to_le_bytes()).0);
    }
}
