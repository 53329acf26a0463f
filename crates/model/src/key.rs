//! Object keys: bytes, because names need not be UTF-8.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The key of an object or container within its data source. `/` separates levels; the root is empty.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ObjectKey(pub Vec<u8>);

impl ObjectKey {
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        ObjectKey(bytes.into())
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The key of `name` inside this container.
    pub fn join(&self, name: &[u8]) -> ObjectKey {
        if self.0.is_empty() {
            return ObjectKey(name.to_vec());
        }
        let mut bytes = Vec::with_capacity(self.0.len() + 1 + name.len());
        bytes.extend_from_slice(&self.0);
        bytes.push(b'/');
        bytes.extend_from_slice(name);
        ObjectKey(bytes)
    }

    /// The key of the container this is in; `None` for the root.
    pub fn parent(&self) -> Option<ObjectKey> {
        if self.0.is_empty() {
            return None;
        }
        let cut = self.0.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
        Some(ObjectKey::new(&self.0[..cut]))
    }

    /// The 128-bit hash by which a resumed listing recognises what it already has.
    pub fn hash128(name: &[u8]) -> [u8; 16] {
        let mut out = [0; 16];
        out.copy_from_slice(&blake3::hash(name).as_bytes()[..16]);
        out
    }
}

/// Shows a key on one line: control characters and bytes that are not UTF-8 appear as `\xNN`, and a
/// backslash doubled, so that two different keys never look the same.
impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(f, &self.0)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectKey({self})")
    }
}

/// Writes bytes as [`ObjectKey`]'s `Display` does.
pub fn write_escaped(f: &mut impl fmt::Write, bytes: &[u8]) -> fmt::Result {
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => f.write_str("\\\\")?,
                c if c.is_control() => {
                    let mut utf8 = [0; 4];
                    c.encode_utf8(&mut utf8).bytes().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?;
                }
                c => f.write_char(c)?,
            }
        }
        chunk.invalid().iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?;
    }
    Ok(())
}

/// [`write_escaped`] into a new string.
pub fn escaped(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    write_escaped(&mut out, bytes).expect("writing to a String cannot fail");
    out
}

/// As text where it is UTF-8, else as `{"hex": "…"}`: readable in a payload, and never lossy.
impl Serialize for ObjectKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => KeyForm::Hex { hex: self.0.iter().map(|byte| format!("{byte:02x}")).collect() }
                .serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ObjectKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match KeyForm::deserialize(deserializer)? {
            KeyForm::Text(text) => Ok(ObjectKey(text.into_bytes())),
            KeyForm::Hex { hex } => hex
                .as_bytes()
                .chunks(2)
                .map(|pair| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok()))
                .collect::<Option<Vec<u8>>>()
                .map(ObjectKey)
                .ok_or_else(|| serde::de::Error::custom("a key's `hex` is not hexadecimal")),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum KeyForm {
    Text(String),
    Hex { hex: String },
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn display_never_breaks_a_line_and_never_hides_a_byte() {
        let shown = |bytes: &[u8]| ObjectKey::new(bytes).to_string();
        assert_eq!(shown(b"a\nb"), "a\\x0ab");
        assert_eq!(shown(b"a\xffb"), "a\\xffb");
        assert_eq!(shown(b"a\\xffb"), "a\\\\xffb");
        assert_eq!(shown("caf\u{e9}".as_bytes()), "caf\u{e9}");
    }

    #[test]
    fn join_leaves_out_the_empty_root() {
        let key = ObjectKey::default().join(b"a").join(b"b");
        assert_eq!(key, ObjectKey::new(*b"a/b"));
        assert_eq!(key.parent().and_then(|parent| parent.parent()), Some(ObjectKey::default()));
        assert_eq!(ObjectKey::default().parent(), None);
    }

    proptest! {
        #[test]
        fn json_keeps_every_byte(bytes: Vec<u8>) {
            let key = ObjectKey(bytes);
            let json = serde_json::to_string(&key).unwrap();
            prop_assert_eq!(serde_json::from_str::<ObjectKey>(&json).unwrap(), key);
        }

        #[test]
        fn display_is_injective(a: Vec<u8>, b: Vec<u8>) {
            prop_assume!(a != b);
            prop_assert_ne!(ObjectKey(a).to_string(), ObjectKey(b).to_string());
        }
    }
}
