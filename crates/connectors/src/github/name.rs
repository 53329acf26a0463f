//! Names of repositories, as keys and addresses have them: checked, so that neither a configuration nor an
//! answer can lead elsewhere with one.

use std::fmt;

use domesday_model::ObjectKey;

/// Characters of a name, at most.
const PART_MAX: usize = 100;

/// `owner/name`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct RepositoryName(String);

impl RepositoryName {
    pub fn parse(text: &str) -> Option<RepositoryName> {
        let (owner, name) = text.split_once('/')?;
        (RepositoryName::is_owner(owner) && is_name(name)).then(|| RepositoryName(text.to_owned()))
    }

    /// Whether an organisation or a user can be called so.
    pub fn is_owner(owner: &str) -> bool {
        is_part(owner) && !owner.starts_with('-') && !owner.contains('.')
    }

    /// The repository a key is in, and what of it the key names.
    pub fn of_key(key: &ObjectKey) -> Option<(RepositoryName, &[u8])> {
        let bytes = key.as_bytes();
        let mut slashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let end = slashes.nth(1).unwrap_or(bytes.len());
        let name = RepositoryName::parse(std::str::from_utf8(&bytes[..end]).ok()?)?;
        Some((name, bytes.get(end + 1..).unwrap_or_default()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether both mean the same repository: to GitHub case makes no difference.
    pub fn is_same(&self, other: &RepositoryName) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl fmt::Display for RepositoryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_name(name: &str) -> bool {
    is_part(name) && !matches!(name, "." | "..")
}

fn is_part(part: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=PART_MAX).contains(&part.len()) && part.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_apart_at_the_second_slash() {
        let of = |key: &str| {
            let key = ObjectKey::new(key);
            RepositoryName::of_key(&key)
                .map(|(name, rest)| format!("{name} {}", String::from_utf8_lossy(rest)))
        };
        assert_eq!(of("a/b").as_deref(), Some("a/b "));
        assert_eq!(of("a/b/0123").as_deref(), Some("a/b 0123"));
        assert_eq!(of("a/b/pack/x").as_deref(), Some("a/b pack/x"));
        for wrong in ["", "a", "a/", "a/..", "../b", "a/b c", "a\n/b", "a.b/c"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
