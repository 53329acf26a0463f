//! Names of databases, schemas and tables as parts of keys: `%` and `/` are percent-encoded and nothing else, so
//! that whatever a name is, it stays one level, and comes back as it was.
//!
//! A name has exactly one encoding, and what is no encoding is refused: a crate for percent-encoding does neither.

use domesday_model::ObjectKey;

/// What stands for the empty name, which no encoded name is.
const EMPTY: &[u8] = b"%";

/// A name as one level of a key.
pub(crate) fn encode(name: &str) -> Vec<u8> {
    if name.is_empty() {
        return EMPTY.to_vec();
    }
    let mut encoded = Vec::with_capacity(name.len());
    for &byte in name.as_bytes() {
        match byte {
            b'%' => encoded.extend_from_slice(b"%25"),
            b'/' => encoded.extend_from_slice(b"%2F"),
            byte => encoded.push(byte),
        }
    }
    encoded
}

/// The key of these names.
pub(crate) fn key(names: &[&str]) -> ObjectKey {
    names.iter().fold(ObjectKey::default(), |key, name| key.join(&encode(name)))
}

/// The names of a key's levels; `None` for what is not such a key.
pub(crate) fn split(key: &ObjectKey) -> Option<Vec<String>> {
    if key.as_bytes().is_empty() {
        return Some(Vec::new());
    }
    key.as_bytes().split(|&byte| byte == b'/').map(decode).collect()
}

fn decode(level: &[u8]) -> Option<String> {
    if level == EMPTY {
        return Some(String::new());
    }
    let text = std::str::from_utf8(level).ok()?;
    let mut parts = text.split('%');
    let mut name = parts.next().filter(|first| !first.is_empty() || text.len() > 1)?.to_owned();
    for part in parts {
        let (escaped, rest) = part.split_at_checked(2)?;
        name.push(match escaped {
            "25" => '%',
            "2F" => '/',
            _ => return None,
        });
        name.push_str(rest);
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_stays_one_level_and_comes_back() {
        let names =
            ["", "a", "a/b", "%", "%2F", "100%/", "..", ".", " ", "a\nb", "caf\u{e9}", "\u{1f600}\"'`", "/"];
        let whole = key(&names);
        assert_eq!(whole.as_bytes().iter().filter(|&&byte| byte == b'/').count(), names.len() - 1);
        assert_eq!(split(&whole).unwrap(), names);
        assert_eq!(encode("a/b%"), b"a%2Fb%25");
        assert_eq!(split(&ObjectKey::default()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn what_no_name_becomes_is_no_key() {
        for wrong in ["a//b", "a/", "%2f", "a%", "a%2", "%41", "%%"] {
            assert_eq!(split(&ObjectKey::new(wrong)), None, "{wrong}");
        }
        assert_eq!(split(&ObjectKey::new(vec![0xff])), None);
    }
}
