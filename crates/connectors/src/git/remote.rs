//! Remote repositories: mirrors of them in a folder of bounded size, made and updated by `git`.
//!
//! `git` runs with everything off that a repository or a server could have it do: no hooks, no templates,
//! no submodules, no prompts, no other protocols, and nobody's configuration. A token goes to it through
//! the environment and a credential helper that only answers for the remote's own host; it is on no
//! command line, in no file, and in no message.
//!
//! Locks: whoever uses a mirror holds `<key>.lock` shared, so that it is not removed; whoever makes or
//! updates one holds `<key>.fetch` alone. Crash argument: a mirror is made under another name and moved
//! into place when it is whole; an update that was cut short has moved no reference. What a crash leaves
//! behind is removed by the next one to make that mirror.

mod run;
mod url;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use domesday_model::ObjectKey;

use super::error::GitError;
use run::Limits;
pub use run::Token;
pub use url::RemoteUrl;

/// Bytes of all mirrors together, unless told otherwise: 20 GiB.
pub const MIRRORS_BYTES: u64 = 20 << 30;
/// How long making or updating a mirror may take.
const FETCH_MAX: Duration = Duration::from_secs(2 * 60 * 60);
/// Folders inside each other that are measured, at most; a mirror has three.
const DEPTH_MAX: usize = 16;

/// A folder of mirrors.
pub struct MirrorCache {
    folder: PathBuf,
    max_bytes: u64,
}

/// A mirror that stays for as long as this lives.
pub struct Mirror {
    path: PathBuf,
    _in_use: File,
}

impl Mirror {
    /// A bare repository.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl MirrorCache {
    pub fn new(folder: PathBuf, max_bytes: u64) -> MirrorCache {
        MirrorCache { folder, max_bytes }
    }

    /// The mirror of a remote as it is now: made, or updated. May take long; waits for others who do the
    /// same.
    pub fn fetch(&self, url: &RemoteUrl, token: Option<&Token>) -> Result<Mirror, GitError> {
        fs::create_dir_all(&self.folder).map_err(|error| GitError::io(&self.folder, error))?;
        let key = hex(&ObjectKey::hash128(url.as_str().as_bytes()));
        let in_use = self.open_lock(&key, "lock")?;
        in_use.lock_shared().map_err(|error| GitError::io(&self.folder, error))?;
        let fetching = self.open_lock(&key, "fetch")?;
        fetching.lock().map_err(|error| GitError::io(&self.folder, error))?;
        let path = self.path(&key, "git");
        if path.exists() {
            self.update(&path, url, token)?;
        } else {
            self.make(&key, url, token)?;
        }
        // Written to so that its time is that of the last use.
        (&in_use)
            .write_all(b".")
            .and_then(|()| in_use.set_len(0))
            .map_err(|error| GitError::io(&path, error))?;
        self.evict(&key)?;
        Ok(Mirror { path, _in_use: in_use })
    }

    fn make(&self, key: &str, url: &RemoteUrl, token: Option<&Token>) -> Result<(), GitError> {
        let new = self.path(key, "new");
        remove(&new)?;
        let clone = ["clone", "--quiet", "--mirror", "--template=", "--no-recurse-submodules", "--"];
        let outcome =
            run::git(&clone, url, token, &new, &self.limits()).and_then(|()| self.check_size(&new, url));
        if outcome.is_err() {
            remove(&new)?;
        }
        outcome?;
        let path = self.path(key, "git");
        fs::rename(&new, &path).map_err(|error| GitError::io(&path, error))
    }

    fn update(&self, path: &Path, url: &RemoteUrl, token: Option<&Token>) -> Result<(), GitError> {
        let fetch = [
            "fetch",
            "--quiet",
            "--prune",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
            "--force",
            "--",
        ];
        run::git(&fetch, url, token, path, &self.limits())?;
        self.check_size(path, url)
    }

    /// A mirror that does not fit even alone is refused. One that grew to that is left to be removed when
    /// nobody uses it.
    fn check_size(&self, path: &Path, url: &RemoteUrl) -> Result<(), GitError> {
        let size = folder_bytes(path, 0);
        if size > self.max_bytes {
            return Err(GitError::TooLarge {
                what: format!("the mirror of {url}"),
                size,
                max: self.max_bytes,
            });
        }
        Ok(())
    }

    fn limits(&self) -> Limits {
        Limits { bytes: self.max_bytes, time: FETCH_MAX }
    }

    /// Removes the mirrors that were not used for longest and are not in use, until all fit. `kept` stays.
    fn evict(&self, kept: &str) -> Result<(), GitError> {
        let mut mirrors = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(|error| GitError::io(&self.folder, error))? {
            let path = entry.map_err(|error| GitError::io(&self.folder, error))?.path();
            if path.extension().is_some_and(|extension| extension == "git")
                && let Some(key) = path.file_stem().and_then(|stem| stem.to_str())
            {
                let used = fs::metadata(self.path(key, "lock")).and_then(|lock| lock.modified());
                mirrors.push((
                    used.unwrap_or(SystemTime::UNIX_EPOCH),
                    key.to_owned(),
                    folder_bytes(&path, 0),
                ));
            }
        }
        let mut total: u64 = mirrors.iter().map(|(_, _, bytes)| bytes).sum();
        mirrors.sort_unstable();
        for (_, key, bytes) in mirrors {
            if total <= self.max_bytes {
                break;
            }
            let lock = self.open_lock(&key, "lock")?;
            if key != kept && lock.try_lock().is_ok() {
                // Moved away first: a crash in the middle leaves no half mirror under its name.
                let gone = self.path(&key, "new");
                remove(&gone)?;
                fs::rename(self.path(&key, "git"), &gone).map_err(|error| GitError::io(&gone, error))?;
                remove(&gone)?;
                total -= bytes;
            }
        }
        Ok(())
    }

    fn path(&self, key: &str, extension: &str) -> PathBuf {
        self.folder.join(format!("{key}.{extension}"))
    }

    fn open_lock(&self, key: &str, extension: &str) -> Result<File, GitError> {
        let path = self.path(key, extension);
        let options = File::options().create(true).truncate(false).write(true).open(&path);
        options.map_err(|error| GitError::io(&path, error))
    }
}

fn remove(path: &Path) -> Result<(), GitError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(GitError::io(path, error)),
        _ => Ok(()),
    }
}

/// Bytes of the files below a folder. What goes while it is measured counts for nothing.
fn folder_bytes(folder: &Path, depth: usize) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let of_entry = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() && depth < DEPTH_MAX => folder_bytes(&entry.path(), depth + 1),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.flatten().map(of_entry).sum()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
