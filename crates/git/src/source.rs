//! The repository behind a connector: a folder, or a mirror of a remote that is fetched when it is listed.
//!
//! A listing sees the repository as it is then. Opening goes by what is there: a mirror that another
//! process made will do, and the remote is asked again only for an object that is not in it, and not for
//! every one of them. So scanning what was listed outlives a remote that went away, or a credential that
//! expired.

use std::path::{self, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, thread};

use domesday_connector::{ConnectorError, Surroundings};
use domesday_content::ObjectError;
use domesday_model::{Backoff, Reason, TrustContent};
use domesday_scheduler::{OpenBytes, waiting};
use parking_lot::Mutex;

use super::config::{GitConfig, KIND};
use super::covered::{Covered, Tracked};
use super::error::GitError;
use super::id::ObjectId;
use super::lfs;
use super::listing::blocking;
use super::remote::{Access, Alive, Authentication, MIRRORS_BYTES, MirrorCache, RemoteUrl, Trust, Watch};
use super::repository::Repository;
use super::select::Selected;
use super::store::ObjectData;
use super::worktree::Worktree;

/// The folder in which mirrors of remote repositories are.
const MIRRORS_FOLDER: &str = "git-mirrors";
/// How long a remote is left alone after it was asked for an object that the mirror has not.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(60);
/// How often it is asked, when it cannot be reached, and the waits between.
const ATTEMPTS: u32 = 4;
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(350), Duration::from_secs(2));

/// What listings of one repository share.
pub(super) struct Source {
    pub config: GitConfig,
    /// Whether what is in the folder may lead out of it.
    follow_links_out: bool,
    remote: Option<Arc<Remote>>,
    own_state: Option<PathBuf>,
    /// Opened at first use, for a connector may be made where its repository is not there yet, and again
    /// for each listing, so that it is seen as it is then.
    current: Mutex<Option<Arc<Repository>>>,
    /// What the last listing reads as objects.
    covered: Mutex<Option<Arc<Covered>>>,
}

struct Remote {
    url: RemoteUrl,
    access: Access,
    mirrors: MirrorCache,
    /// Held by the one thread that asks the remote for what the mirror has not.
    asked: Mutex<Option<Asked>>,
}

/// When a remote was last asked for what the mirror has not, and how that failed.
struct Asked {
    at: Instant,
    failed: Option<(Reason, String)>,
}

impl Source {
    pub fn new(config: GitConfig, surroundings: &Surroundings) -> Result<Source, ConnectorError> {
        let remote = match &config.url {
            None if surroundings.credential.is_some() => {
                let detail =
                    "field `credential`: a local repository is read with the rights of the worker; leave it out"
                        .to_owned();
                return Err(ConnectorError::Configuration { kind: KIND, detail });
            }
            None => None,
            Some(url) => {
                let url = RemoteUrl::parse(url)?;
                let access = Access::new(&url, config.authentication, surroundings)?;
                let folder = surroundings.own_state.clone().or_else(cache_folder);
                let folder = folder.and_then(|folder| path::absolute(folder.join(MIRRORS_FOLDER)).ok());
                let trust =
                    Trust { certificates: config.certificates(), ssh_host_keys: config.ssh_host_keys };
                let mirrors = MirrorCache::new(folder, MIRRORS_BYTES).trusting(trust);
                Some(Arc::new(Remote { url, access, mirrors, asked: Mutex::default() }))
            }
        };
        let own_state = surroundings.own_state.clone();
        let follow_links_out = surroundings.trust_content == TrustContent::Yes;
        let (current, covered) = (Mutex::default(), Mutex::default());
        Ok(Source { config, follow_links_out, remote, own_state, current, covered })
    }

    /// The repository as it is now.
    pub async fn reopen(self: &Arc<Self>) -> Result<Arc<Repository>, ConnectorError> {
        let authentication = match &self.remote {
            Some(remote) => remote.access.authentication().await?,
            None => Authentication::None,
        };
        let source = Arc::clone(self);
        // Whoever does not wait for this any more ends it.
        let alive = Alive::new();
        let watch = alive.watch();
        let opened = blocking(move || source.open_now(&authentication, &watch)).await?;
        drop(alive);
        Ok(opened?)
    }

    /// How many references can be read: of a remote, without fetching anything.
    pub async fn test(self: &Arc<Self>) -> Result<usize, ConnectorError> {
        let Some(remote) = &self.remote else {
            let repository = self.reopen().await?;
            return Ok(blocking(move || repository.tips()).await??.len());
        };
        let authentication = remote.access.authentication().await?;
        let remote = Arc::clone(remote);
        let alive = Alive::new();
        let watch = alive.watch();
        let count = move || remote.mirrors.count_refs(&remote.url, &authentication, &watch);
        let counted = blocking(count).await?;
        drop(alive);
        Ok(counted?)
    }

    fn open_now(&self, authentication: &Authentication, watch: &Watch) -> Result<Arc<Repository>, GitError> {
        let repository = match &self.remote {
            None => self.open_local()?,
            Some(remote) => {
                let mirror = remote.mirrors.fetch(&remote.url, authentication, watch)?;
                Repository::of_mirror(mirror)?
            }
        };
        let repository = Arc::new(repository);
        *self.current.lock() = Some(Arc::clone(&repository));
        Ok(repository)
    }

    fn open_local(&self) -> Result<Repository, GitError> {
        let path = self.config.path.as_deref().unwrap_or(Path::new(""));
        Repository::open(path, self.follow_links_out)
    }

    /// The repository as it was last seen, by this process or another. May block.
    pub fn repository(&self) -> Result<Arc<Repository>, ConnectorError> {
        let mut current = self.current.lock();
        if let Some(repository) = &*current {
            return Ok(Arc::clone(repository));
        }
        let opened = match &self.remote {
            None => self.open_local()?,
            Some(remote) => match remote.mirrors.held(&remote.url)? {
                Some(mirror) => Repository::of_mirror(mirror)?,
                None => {
                    drop(current);
                    return self.ask(remote, None);
                }
            },
        };
        Ok(Arc::clone(current.insert(Arc::new(opened))))
    }

    /// Opens an object. One that a mirror has not was listed elsewhere, from a newer state of the remote.
    pub fn open_object(&self, id: &ObjectId) -> Result<ObjectData, ConnectorError> {
        let repository = self.repository()?;
        match (repository.store.open_object(id), &self.remote) {
            (Err(GitError::Missing(_)), Some(remote)) => {
                Ok(self.ask(remote, Some(&repository))?.store.open_object(id)?)
            }
            (opened, _) => Ok(opened?),
        }
    }

    /// What Git LFS keeps of this blob, if it is a pointer and the content is here.
    pub fn lfs_content(&self, blob: &[u8]) -> Option<Result<OpenBytes, ObjectError>> {
        lfs::content(&*self.repository().ok()?, &self.config, blob)
    }

    /// Fetches what `seen` has not, unless that was tried a moment ago, or somebody else just did.
    fn ask(
        &self,
        remote: &Remote,
        seen: Option<&Arc<Repository>>,
    ) -> Result<Arc<Repository>, ConnectorError> {
        let mut asked = remote.asked.lock();
        let current = self.current.lock().clone();
        if let Some(current) = current
            && seen.is_none_or(|seen| !Arc::ptr_eq(seen, &current))
        {
            return Ok(current);
        }
        if let Some(lately) = asked.as_ref().filter(|asked| asked.at.elapsed() < ASK_AGAIN_AFTER) {
            match (&lately.failed, seen) {
                (Some((reason, detail)), _) => {
                    return Err(ConnectorError::Container { reason: *reason, detail: detail.clone() });
                }
                (None, Some(seen)) => return Ok(Arc::clone(seen)),
                (None, None) => {}
            }
        }
        let mut outcome = self.ask_once(remote);
        for attempt in 1..ATTEMPTS {
            if !outcome.as_ref().is_err_and(ConnectorError::is_retryable) || waiting::is_cancelled() {
                break;
            }
            thread::park_timeout(BACKOFF.after(attempt));
            outcome = self.ask_once(remote);
        }
        let failed = outcome.as_ref().err().map(|error| (error.reason(), error.to_string()));
        *asked = Some(Asked { at: Instant::now(), failed });
        outcome
    }

    fn ask_once(&self, remote: &Remote) -> Result<Arc<Repository>, ConnectorError> {
        let authentication = on_own_runtime(remote.access.authentication())?;
        let alive = Alive::new();
        Ok(self.open_now(&authentication, &alive.watch())?)
    }

    /// Tells what is read as objects, so that files with the same content are left out.
    pub fn set_covered(&self, covered: Covered) {
        *self.covered.lock() = Some(Arc::new(covered));
    }

    /// The files of the folder; `None` where they are not asked for.
    pub fn worktree(&self) -> Result<Option<Worktree>, ConnectorError> {
        let repository = self.repository()?;
        let Some(root) = repository.root.as_deref().filter(|_| self.config.uncommitted) else {
            return Ok(None);
        };
        let mut covered = self.covered.lock();
        let covered = match &*covered {
            Some(covered) => Arc::clone(covered),
            // The objects are listed by another process.
            None => {
                let tracked = Tracked::load(&repository);
                let chosen = Selected::new(&repository, &self.config)?.chosen;
                let repository = Arc::clone(&repository);
                Arc::clone(covered.insert(Arc::new(Covered { repository, tracked, chosen })))
            }
        };
        Ok(Some(Worktree::open(root, &self.config, self.own_state.as_deref(), covered)?))
    }
}

/// Where a worker without a state folder keeps mirrors.
fn cache_folder() -> Option<PathBuf> {
    let folder = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?;
    Some(cache.join("domesday"))
}

/// Waits for a credential on a thread that may: objects are opened on threads that belong to no runtime, and
/// to any.
fn on_own_runtime<T: Send>(
    future: impl Future<Output = Result<T, ConnectorError>> + Send,
) -> Result<T, ConnectorError> {
    let failed = |detail: String| ConnectorError::Container { reason: Reason::ReadError, detail };
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map_err(|error| failed(error.to_string()))?.block_on(future)
        });
        waiting.join().unwrap_or_else(|_| Err(failed("asking for the credential failed".to_owned())))
    })
}
