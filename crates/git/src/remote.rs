//! Remote repositories: mirrors of them in a folder of bounded size, made and updated by `git`.
//!
//! `git` runs with everything off that a repository or a server could have it do: no hooks, no templates,
//! no submodules, no prompts, no other protocols, and nobody's configuration. A secret is on no command
//! line, in no file of a mirror, and in no message.
//!
//! Locks: whoever uses a mirror holds `<key>.lock` shared, so that it is not removed; whoever makes or
//! updates one holds `<key>.fetch` alone, together with the `git` that does it. Crash argument: a mirror is
//! made as `<key>.new` and moved into place when it is whole; an update that was cut short has moved no
//! reference to what is not there. A `git` that outlives its killed parent keeps the lock, so that no two
//! ever write to the same folder; whoever gets the lock next removes what was left behind.

mod access;
mod run;
mod url;

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use domesday_model::ObjectKey;

use super::error::GitError;
use super::repository::discover;
pub use access::{Access, Authentication, Trust};
pub use run::{Alive, Watch};
use run::{LOOK_EVERY, Limits, Run};
pub use url::RemoteUrl;

/// Bytes of all mirrors together: 20 GiB.
pub const MIRRORS_BYTES: u64 = 20 << 30;
/// How long making or updating a mirror may take, unless told otherwise.
const FETCH_MAX: Duration = Duration::from_secs(2 * 60 * 60);
/// How long asking for the references may take.
const ASK_MAX: Duration = Duration::from_secs(60);
/// The mode of the folder of mirrors: nobody else looks into it.
const PRIVATE: u32 = 0o700;
/// Folders inside each other that are gone through, at most.
const DEPTH_MAX: usize = 64;

/// What `git clone` and `git fetch` are told before the address.
const CLONE: [&str; 5] = ["--quiet", "--mirror", "--template=", "--no-recurse-submodules", "--"];
const FETCH: [&str; 6] =
    ["--quiet", "--prune", "--no-write-fetch-head", "--no-recurse-submodules", "--force", "--"];

/// A folder of mirrors.
pub struct MirrorCache {
    /// Empty where there is none: then nothing can be fetched.
    folder: PathBuf,
    max_bytes: u64,
    /// How long making or updating a mirror may take.
    max_time: Duration,
    /// The program that speaks SSH, as the shell has it.
    ssh: String,
    trust: Trust,
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
    pub fn new(folder: Option<PathBuf>, max_bytes: u64) -> MirrorCache {
        let folder = folder.unwrap_or_default();
        let (max_time, ssh, trust) = (FETCH_MAX, "ssh".to_owned(), Trust::default());
        MirrorCache { folder, max_bytes, max_time, ssh, trust }
    }

    /// The same, which knows the other side so.
    pub fn trusting(self, trust: Trust) -> MirrorCache {
        MirrorCache { trust, ..self }
    }

    /// The same with another program in the place of `ssh`.
    #[cfg(test)]
    pub fn with_ssh(self, ssh: &str) -> MirrorCache {
        MirrorCache { ssh: ssh.to_owned(), ..self }
    }

    #[cfg(test)]
    pub fn within(self, max_time: Duration) -> MirrorCache {
        MirrorCache { max_time, ..self }
    }

    /// The mirror of a remote as it is now: made, or updated. May take long; waits for others who do the
    /// same.
    pub fn fetch(
        &self,
        url: &RemoteUrl,
        authentication: &Authentication,
        watch: &Watch,
    ) -> Result<Mirror, GitError> {
        self.create()?;
        let mirror = self.mirror(url)?;
        let key = key(url);
        let fetching = self.open_lock(&key, "fetch")?;
        self.lock(&fetching, watch)?;
        let run = Run {
            url,
            authentication,
            watch,
            folder: &self.folder,
            ssh: &self.ssh,
            trust: &self.trust,
            key_path: self.path(&key, "key"),
            lock: &fetching,
            limits: Limits { size: None, time: self.max_time },
        };
        if discover(mirror.path(), true).is_some() {
            self.update(mirror.path(), run)?;
        } else {
            self.make(&key, run)?;
        }
        // Written to so that its time is that of the last use.
        (&mirror._in_use)
            .write_all(b".")
            .and_then(|()| mirror._in_use.set_len(0))
            .map_err(|error| GitError::io(mirror.path(), error))?;
        self.evict(&key)?;
        Ok(mirror)
    }

    /// The mirror as it was last fetched; `None` when there is none yet.
    pub fn held(&self, url: &RemoteUrl) -> Result<Option<Mirror>, GitError> {
        if !self.path(&key(url), "git").exists() {
            return Ok(None);
        }
        let mirror = self.mirror(url)?;
        Ok(discover(mirror.path(), true).is_some().then_some(mirror))
    }

    /// How many references the remote shows.
    pub fn count_refs(
        &self,
        url: &RemoteUrl,
        authentication: &Authentication,
        watch: &Watch,
    ) -> Result<usize, GitError> {
        self.create()?;
        let asking = self.open_lock(&key(url), "ask")?;
        self.lock(&asking, watch)?;
        let run = Run {
            url,
            authentication,
            watch,
            folder: &self.folder,
            ssh: &self.ssh,
            trust: &self.trust,
            key_path: self.path(&key(url), "ask-key"),
            lock: &asking,
            limits: Limits { size: None, time: ASK_MAX },
        };
        run.git("ls-remote", &["--quiet", "--", url.as_str()].map(OsString::from))
    }

    /// The place of a mirror, which nobody removes meanwhile, whether it is there or not.
    fn mirror(&self, url: &RemoteUrl) -> Result<Mirror, GitError> {
        let in_use = self.open_lock(&key(url), "lock")?;
        in_use.lock_shared().map_err(|error| GitError::io(&self.folder, error))?;
        Ok(Mirror { path: self.path(&key(url), "git"), _in_use: in_use })
    }

    fn create(&self) -> Result<(), GitError> {
        if self.folder.as_os_str().is_empty() {
            let hint = "`url`: there is no folder to keep a mirror in; set HOME or XDG_CACHE_HOME";
            return Err(GitError::Configuration(hint.to_owned()));
        }
        // For this user alone, also where an earlier version made it: mirrors hold what credentials gave access to.
        let made = fs::DirBuilder::new().recursive(true).mode(PRIVATE).create(&self.folder);
        made.and_then(|()| fs::set_permissions(&self.folder, fs::Permissions::from_mode(PRIVATE)))
            .map_err(|error| GitError::io(&self.folder, error))
    }

    fn make(&self, key: &str, mut run: Run<'_>) -> Result<(), GitError> {
        let (path, new) = (self.path(key, "git"), self.path(key, "new"));
        // Neither is whole: a crash left them, of this computer if need be.
        remove(&path)?;
        remove(&new)?;
        let clone = CLONE.iter().map(OsString::from).chain([run.url.as_str().into(), new.clone().into()]);
        run.limits.size = Some((new.clone(), self.max_bytes));
        let made = run
            .git("clone", &clone.collect::<Vec<_>>())
            .and_then(|_| check_size(&new, self.max_bytes, run.url));
        if made.is_err() {
            // What cannot be removed now is removed when it is made again.
            let _ = remove(&new);
        }
        made?;
        fs::rename(&new, &path).map_err(|error| GitError::io(&path, error))
    }

    fn update(&self, path: &Path, mut run: Run<'_>) -> Result<(), GitError> {
        let url = run.url;
        remove_leftovers(path, 0)?;
        let fetch = FETCH.iter().copied().chain([run.url.as_str(), "+refs/*:refs/*"]).map(OsString::from);
        run.limits.size = Some((path.to_owned(), self.max_bytes));
        Run { folder: path, ..run }.git("fetch", &fetch.collect::<Vec<_>>())?;
        check_size(path, self.max_bytes, url)
    }

    /// Removes what crashes left behind, and the mirrors that were not used for longest and are not in use,
    /// until all fit. `kept` stays.
    fn evict(&self, kept: &str) -> Result<(), GitError> {
        let mut mirrors = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(|error| GitError::io(&self.folder, error))? {
            let path = entry.map_err(|error| GitError::io(&self.folder, error))?.path();
            let parts =
                (path.file_stem().and_then(|s| s.to_str()), path.extension().and_then(|e| e.to_str()));
            let (Some(key), Some(extension)) = parts else { continue };
            match extension {
                "git" => {
                    let used = fs::metadata(self.path(key, "lock")).and_then(|lock| lock.modified());
                    let used = used.unwrap_or(SystemTime::UNIX_EPOCH);
                    mirrors.push((used, key.to_owned(), folder_bytes(&path, 0)));
                }
                "new" if key != kept && self.open_lock(key, "fetch")?.try_lock().is_ok() => remove(&path)?,
                "key" if key != kept && self.open_lock(key, "fetch")?.try_lock().is_ok() => {
                    remove_file(&path)?
                }
                "ask-key" if self.open_lock(key, "ask")?.try_lock().is_ok() => remove_file(&path)?,
                _ => {}
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

    /// Waits for a lock, for as long as anybody waits for this.
    fn lock(&self, file: &File, watch: &Watch) -> Result<(), GitError> {
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::Error(error)) => return Err(GitError::io(&self.folder, error)),
                Err(TryLockError::WouldBlock) if watch.is_over() => {
                    let error = io::Error::other("another process uses it, and nobody waits any more");
                    return Err(GitError::io(&self.folder, error));
                }
                Err(TryLockError::WouldBlock) => thread::park_timeout(LOOK_EVERY),
            }
        }
    }
}

/// A mirror that does not fit even alone is refused. One that grew to that is left to be removed when
/// nobody uses it.
fn check_size(path: &Path, max: u64, url: &RemoteUrl) -> Result<(), GitError> {
    let size = folder_bytes(path, 0);
    if size > max {
        return Err(GitError::TooLarge { what: format!("the mirror of {url}"), size, max });
    }
    Ok(())
}

/// The name of a remote's mirror.
fn key(url: &RemoteUrl) -> String {
    ObjectKey::hash128(url.as_str().as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn remove(path: &Path) -> Result<(), GitError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(GitError::io(path, error)),
        _ => Ok(()),
    }
}

fn remove_file(path: &Path) -> Result<(), GitError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(GitError::io(path, error)),
        _ => Ok(()),
    }
}

/// Removes the locks and half packs of a `git` that was killed. No reference's name ends in `.lock`, and
/// whoever calls this holds the lock that every `git` in this folder holds.
fn remove_leftovers(folder: &Path, depth: usize) -> Result<(), GitError> {
    let failed = |error| GitError::io(folder, error);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if entry.file_type().map_err(failed)?.is_dir() {
            // Loose objects are many, and whole.
            if depth < DEPTH_MAX && !(depth == 1 && name.len() == 2) {
                remove_leftovers(&path, depth + 1)?;
            }
        } else if name.ends_with(".lock") || (folder.ends_with("objects/pack") && name.starts_with("tmp_")) {
            remove_file(&path)?;
        }
    }
    Ok(())
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
