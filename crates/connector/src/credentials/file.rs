//! Provider `file`: a file that only its owner can read. One line break at its end is not part of the
//! secret: editors and `echo` put it there.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;

use async_trait::async_trait;

use super::{CredentialError, CredentialProvider, CredentialReference, SECRET_LEN_MAX, Secret};

/// Permissions of group and others.
const OTHERS: u32 = 0o077;

pub struct SecretFile;

#[async_trait]
impl CredentialProvider for SecretFile {
    fn scheme(&self) -> &'static str {
        "file"
    }

    async fn fetch(&self, reference: &CredentialReference) -> Result<Secret, CredentialError> {
        let failed = |error: io::Error| reference.unavailable(error.to_string());
        let (file, mode) = open(reference.name()).map_err(failed)?;
        if mode & OTHERS != 0 {
            return Err(reference.unavailable(format!(
                "others can read it (mode {:o}): run `chmod 600` on it",
                mode & 0o777
            )));
        }
        // Room for one byte too many, so that a longer file is noticed and the buffer never moves, which
        // would leave a copy behind.
        let mut secret = Secret::new(Vec::with_capacity(SECRET_LEN_MAX + 1));
        file.take(SECRET_LEN_MAX as u64 + 1).read_to_end(&mut secret.0).map_err(failed)?;
        secret.checked(reference, "the file has")
    }
}

/// The mode is that of the file that was opened, whatever happens to its name meanwhile.
fn open(path: &str) -> io::Result<(File, u32)> {
    let file = File::open(path)?;
    let mode = file.metadata()?.permissions().mode();
    Ok((file, mode))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    async fn fetch(content: &[u8], mode: u32) -> Result<Secret, CredentialError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        SecretFile.fetch(&format!("file:{}", path.display()).parse().unwrap()).await
    }

    #[tokio::test]
    async fn a_private_file_is_read_without_its_last_line_break() {
        assert_eq!(fetch(b"hunter2\n", 0o600).await.unwrap().expose(), b"hunter2");
        assert_eq!(fetch(b"a\n\n", 0o400).await.unwrap().expose(), b"a\n");
    }

    #[tokio::test]
    async fn what_others_can_read_is_refused() {
        for mode in [0o644, 0o640, 0o604, 0o620] {
            let refused = fetch(b"hunter2", mode).await.unwrap_err().to_string();
            assert!(refused.contains("chmod 600") && !refused.contains("hunter2"), "{refused}");
        }
    }

    #[tokio::test]
    async fn empty_huge_and_missing_files_are_no_secrets() {
        assert!(fetch(b"\n", 0o600).await.unwrap_err().to_string().contains("nothing"));
        assert!(
            fetch(&vec![b'x'; SECRET_LEN_MAX + 1], 0o600)
                .await
                .unwrap_err()
                .to_string()
                .contains("more than")
        );
        assert!(SecretFile.fetch(&"file:/no/such/file".parse().unwrap()).await.is_err());
    }
}
