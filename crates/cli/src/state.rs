//! The state folder: where it is, and the fingerprint key in it.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use domesday_model::FingerprintKey;

const KEY_FILE: &str = "fingerprint.key";

/// The folder the user named, or the one of the user's state; the latter is made with mode 0700.
pub fn folder(chosen: Option<&Path>) -> Result<PathBuf> {
    let folder = match chosen {
        Some(folder) => folder.to_owned(),
        None => default_folder()?,
    };
    std::path::absolute(&folder)
        .with_context(|| format!("cannot resolve the state folder {}", folder.display()))
}

/// Where the state is when nobody names a folder.
pub fn default_folder() -> Result<PathBuf> {
    if let Some(folder) =
        std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute())
    {
        return Ok(folder.join("domesday"));
    }
    match std::env::home_dir().filter(|home| !home.as_os_str().is_empty()) {
        Some(home) => Ok(home.join(".local/state/domesday")),
        None => bail!("there is no home folder to keep the state in: name a folder with --state"),
    }
}

/// The key of all fingerprints in this book, made at first use. Written beside its place and linked into
/// it, so that a crash never leaves half a key, and two first runs agree on one.
pub fn fingerprint_key(folder: &Path) -> Result<FingerprintKey> {
    let path = folder.join(KEY_FILE);
    let about = || format!("the fingerprint key {}", path.display());
    if !path.exists() {
        let bytes = random_bytes::<{ FingerprintKey::LEN }>();
        let fresh = folder.join(format!("{KEY_FILE}.{}", std::process::id()));
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&fresh)
            .with_context(about)?;
        file.write_all(&bytes).and_then(|()| file.sync_all()).with_context(about)?;
        match std::fs::hard_link(&fresh, &path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                // A filesystem without links: a rename is as whole, if not as fair.
                std::fs::rename(&fresh, &path).with_context(about)?;
            }
            _ => std::fs::remove_file(&fresh).with_context(about)?,
        }
    }
    let mut file = std::fs::File::open(&path).with_context(about)?;
    if file.metadata().with_context(about)?.permissions().mode() & 0o077 != 0 {
        bail!("{} can be read by others: run `chmod 600` on it", about());
    }
    let mut bytes = [0; FingerprintKey::LEN];
    file.read_exact(&mut bytes).with_context(|| format!("{} is damaged", about()))?;
    Ok(FingerprintKey::new(bytes))
}

/// Random bytes from the system.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        // Interrupted at worst: the system's generator does not run dry.
        filled +=
            rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()).unwrap_or(0);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_made_once_and_kept_private() {
        let folder = tempfile::tempdir().unwrap();
        let key = fingerprint_key(folder.path()).unwrap();
        assert_eq!(fingerprint_key(folder.path()).unwrap(), key);
        let path = folder.path().join(KEY_FILE);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        let refused = fingerprint_key(folder.path()).unwrap_err().to_string();
        assert!(refused.contains("can be read by others"), "{refused}");
    }

    #[test]
    fn half_a_key_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(KEY_FILE);
        std::fs::write(&path, [1; 7]).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        assert!(fingerprint_key(folder.path()).unwrap_err().to_string().contains("is damaged"));
    }
}
