//! Pointers of Git LFS: a few lines of text in the place of a file whose content is kept elsewhere.
//!
//! Only what `git lfs` itself writes is one. With anything else in it, a text stays a text: nobody may have a pointer
//! stand for what is beside it.

/// The stable name of the format, as stored and reported.
pub(super) const NAME: &str = "git_lfs_pointer";
/// How every pointer begins.
pub(super) const MAGIC: &[u8] = b"version https://git-lfs.github.com/spec/v1\n";
/// Hexadecimal digits of the hash that names the content.
const OID_LEN: usize = 64;

/// The SHA-256 hash, in lower-case hexadecimal, of the content that these bytes point to, if they are a whole pointer.
pub fn git_lfs_oid(bytes: &[u8]) -> Option<&str> {
    oid_after_magic(bytes.strip_prefix(MAGIC)?)
}

/// The same of what follows the first line.
pub(super) fn oid_after_magic(rest: &[u8]) -> Option<&str> {
    let (oid, rest) = rest.strip_prefix(b"oid sha256:")?.split_at_checked(OID_LEN)?;
    let size = rest.strip_prefix(b"\nsize ")?.strip_suffix(b"\n")?;
    let is_hex = oid.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_number = !size.is_empty() && size.len() <= 20 && size.iter().all(u8::is_ascii_digit);
    if is_hex && is_number { std::str::from_utf8(oid).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_pointer_is_one() {
        let oid = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393";
        let pointer = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize 12345\n");
        assert_eq!(git_lfs_oid(pointer.as_bytes()), Some(oid));
        for other in [
            pointer.replace("\nsize", "\npassword hunter2\nsize"),
            format!("{pointer}password hunter2\n"),
            pointer.replace("12345", "many"),
            pointer.replace("4d7a", "../."),
            pointer.replace("size 12345\n", ""),
            pointer.trim_end().to_owned(),
        ] {
            assert_eq!(git_lfs_oid(other.as_bytes()), None, "{other}");
        }
    }
}
