//! Listing a container page by page, and deciding whether its parts are listed by others.
//!
//! A page is asked for by the last key of the one before (`start-after`), which holds for ever and needs nothing that
//! the store may forget; Azure has only markers, which are used there. Resuming is thus what every page does anyway.
//!
//! # Fan-out
//! A container is all keys with a prefix. Its first page is listed flat, without the delimiter:
//! - it is the whole container: one request, done, however many folders the keys seem to be in;
//! - its keys are in few folders: these are large, so they become containers of their own, which other workers list
//!   ([`Mode::Delimited`]);
//! - its keys are in many small folders: a container each would cost more requests than the keys, so the whole
//!   container is listed flat ([`Mode::Flat`]).
//!
//! So a bucket with one folder at its top is split where it branches, one with a million tiny ones is a thousand
//! pages and not a million requests, and one without folders is listed page by page.
//!
//! # Keys
//! The key of an object is its key in the bucket, byte for byte; that of a container is its prefix without the last
//! `/`, so `a//` is `a/` and joining gives keys back unchanged. Only the prefix `/` would be the root's own key: what
//! begins with `/` is listed with the root itself ([`Mode::Slash`]).

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use domesday_connector::remote::{self, pause};
use domesday_connector::{ConnectorError, Listing};
use domesday_model::{ObjectKey, Reason, RecordKind, UnitRecord, VersionMarks};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, percent_encode};

use super::Bucket;
use super::config::Kind;

/// How often a page that fails for a passing reason is asked for before the listing waits as a whole: within a second.
const PAGE_ATTEMPTS_MAX: u32 = 5;
use super::page::{Object, Page};
use super::store::{PageRequest, is_addressable};
use super::versions;

/// Keys of one page, at most: what the stores give.
const PAGE_MAX: usize = 1_000;
/// Keys that a folder must have on average, on the first page, to become a container of its own.
const KEYS_PER_FOLDER_MIN: usize = 32;

/// What sorts after every other character.
const LAST_CHARACTER: &[u8] = "\u{10ffff}".as_bytes();
/// Pages with nothing new on them that are passed over, one after the other, at most.
const EMPTY_PAGES_MAX: usize = 10_000;

/// How a container is being listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// All keys below it.
    Flat,
    /// Of the root, keys that begin with `/`; the others follow.
    Slash,
    /// One level: objects, and folders as containers.
    Delimited,
    /// Of the root, at the end: whether the bucket has versions of objects that are not current.
    Versions,
}

impl Mode {
    const ALL: &'static [(Mode, &'static str)] = &[
        (Mode::Flat, "flat"),
        (Mode::Slash, "slash"),
        (Mode::Delimited, "delimited"),
        (Mode::Versions, "versions"),
    ];
}

/// Where the next page begins: after a key, or at Azure's marker; empty at the beginning.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Position {
    mode: Mode,
    at: Vec<u8>,
}

impl Position {
    fn start(mode: Mode) -> Position {
        Position { mode, at: Vec::new() }
    }

    fn parse(text: &str) -> Option<Position> {
        let (mode, at) = text.split_once(':')?;
        let (mode, _) = Mode::ALL.iter().find(|(_, name)| *name == mode)?;
        Some(Position { mode: *mode, at: percent_decode_str(at).collect() })
    }

    fn to_text(&self) -> String {
        let name = Mode::ALL.iter().find(|(mode, _)| *mode == self.mode).map_or("", |(_, name)| name);
        format!("{name}:{}", percent_encode(&self.at, NON_ALPHANUMERIC))
    }
}

enum State {
    /// Nothing is decided yet.
    First,
    At(Position),
    Ended,
}

pub(super) struct PrefixListing {
    bucket: Arc<Bucket>,
    container: ObjectKey,
    prefix: Vec<u8>,
    state: State,
}

impl PrefixListing {
    pub fn begin(
        bucket: &Arc<Bucket>,
        container: &ObjectKey,
        resume_point: Option<&str>,
    ) -> Result<PrefixListing, ConnectorError> {
        let is_root = container.as_bytes().is_empty();
        let prefix = match is_root {
            true => bucket.config.prefix.clone().into_bytes(),
            false => [container.as_bytes(), b"/"].concat(),
        };
        let below = prefix.strip_prefix(bucket.config.prefix.as_bytes()).unwrap_or(&prefix);
        let depth = below.iter().filter(|byte| **byte == b'/').count();
        let state = match resume_point.map(Position::parse) {
            Some(Some(position)) => State::At(position),
            Some(None) => {
                let detail = "the listing's resume point is not one of this version's; scan anew".to_owned();
                return Err(ConnectorError::Container { reason: Reason::ReadError, detail });
            }
            None if depth >= bucket.config.fan_out_depth as usize => State::At(Position::start(Mode::Flat)),
            None => State::First,
        };
        Ok(PrefixListing { bucket: Arc::clone(bucket), container: container.clone(), prefix, state })
    }

    /// Whether keys that begin with `/` are among those of this container and cannot be a container of their own.
    fn has_slash(&self) -> bool {
        self.prefix.is_empty()
    }

    /// Decides from the first page how the container is listed: where that begins, and the page if it is the first
    /// one of that.
    fn decide(&self, page: Page) -> (Position, Option<Page>) {
        let folder = |object: &Object| {
            let below = object.key.get(self.prefix.len()..).unwrap_or_default();
            below.iter().position(|byte| *byte == b'/').map(|at| below[..at].to_vec())
        };
        let folders: HashSet<Vec<u8>> = page.objects.iter().filter_map(folder).collect();
        let is_sparse = folders.len() * KEYS_PER_FOLDER_MIN > page.objects.len();
        if !page.is_truncated || is_sparse {
            return (Position::start(Mode::Flat), Some(page));
        }
        if self.has_slash() {
            return (Position::start(Mode::Slash), None);
        }
        // Without a folder on it the page is the same either way.
        (Position::start(Mode::Delimited), folders.is_empty().then_some(page))
    }

    /// Asks for the page at a position, with retries.
    async fn ask(
        &self,
        position: &Position,
        token: Option<&str>,
        len: usize,
    ) -> Result<Page, ConnectorError> {
        let is_azure = self.bucket.store.kind == Kind::Azure;
        let at = (!position.at.is_empty()).then(|| position.at.clone());
        let marker = at.as_deref().filter(|_| is_azure).map(String::from_utf8_lossy);
        let token = token.map(str::to_owned).or(marker.map(String::from));
        let prefix = if position.mode == Mode::Slash { b"/".to_vec() } else { self.prefix.clone() };
        let (bucket, is_delimited) = (Arc::clone(&self.bucket), position.mode == Mode::Delimited);
        let asked = remote::run(async move {
            let after = at.as_deref().filter(|_| !is_azure);
            let request = PageRequest { prefix: &prefix, is_delimited, after, token: token.as_deref(), len };
            let mut failed = 0;
            loop {
                match bucket.store.page(&request).await {
                    Err(refusal) if refusal.failure.is_transient && failed + 1 < PAGE_ATTEMPTS_MAX => {
                        failed += 1;
                        remote::rest(pause(failed, refusal.failure.retry_after)).await;
                    }
                    answer => return answer,
                }
            }
        });
        let lost = |error: domesday_content::ObjectError| ConnectorError::Container {
            reason: error.reason,
            detail: error.detail,
        };
        asked.await.map_err(lost)?.map_err(|refusal| refusal.into_connector_error())
    }

    /// What stands for the versions that are not listed, if the bucket may have any. A store that does not say so, to us
    /// or at all, is taken to have none.
    async fn older_versions(&self) -> Result<Option<UnitRecord>, ConnectorError> {
        let bucket = Arc::clone(&self.bucket);
        let prefix = self.prefix.clone();
        let asked = remote::run(async move { bucket.store.has_older_versions(&prefix).await }).await;
        Ok(match asked {
            Ok(Ok(has_any)) => has_any.then(versions::record),
            Ok(Err(refusal)) => {
                tracing::info!(error = %refusal.failure.error, "whether the bucket keeps older versions is not known");
                None
            }
            Err(error) => {
                return Err(ConnectorError::Container { reason: error.reason, detail: error.detail });
            }
        })
    }

    /// Where the listing goes on after a page, or that it has ended.
    fn follow(&self, position: &Position, page: &Page) -> Result<State, ConnectorError> {
        if !page.is_truncated {
            return Ok(match position.mode {
                Mode::Slash => State::At(Position::start(Mode::Delimited)),
                Mode::Flat | Mode::Delimited if self.container.as_bytes().is_empty() => {
                    State::At(Position::start(Mode::Versions))
                }
                Mode::Flat | Mode::Delimited | Mode::Versions => State::Ended,
            });
        }
        let at = if self.bucket.store.kind == Kind::Azure {
            page.next.clone().map(String::into_bytes)
        } else {
            let keys = page.objects.iter().map(|object| object.key.clone());
            // After a folder means after all that is in it.
            let folders = page.prefixes.iter().map(|prefix| [prefix, LAST_CHARACTER].concat());
            keys.chain(folders).max().filter(|last| *last > position.at)
        };
        let at = at.ok_or_else(|| ConnectorError::Container {
            reason: Reason::ReadError,
            detail: "the store does not list keys in their order, so its pages cannot be followed".into(),
        })?;
        Ok(State::At(Position { mode: position.mode, at }))
    }

    /// What is on a page, in the order of keys, so that listings are the same whatever their pages are.
    fn records(&self, position: &Position, page: Page) -> Vec<UnitRecord> {
        // A page that begins inside of a folder shows that folder once more.
        let is_new = |prefix: &Vec<u8>| {
            let is_seen = self.bucket.store.kind != Kind::Azure && *prefix <= position.at;
            let is_with_root = self.has_slash() && prefix == b"/";
            !is_seen && !is_with_root
        };
        let folders = page.prefixes.into_iter().filter(is_new).map(|prefix| (self.folder(&prefix), prefix));
        // Some stores begin with the key itself where only what comes after it is asked for.
        let is_after = |object: &Object| {
            self.bucket.store.kind == Kind::Azure || position.at.is_empty() || object.key > position.at
        };
        let objects =
            page.objects.into_iter().filter(is_after).map(|object| (self.object(&object), object.key));
        let mut records: Vec<(UnitRecord, Vec<u8>)> = objects.chain(folders).collect();
        records.sort_by(|(_, a), (_, b)| a.cmp(b));
        records.into_iter().map(|(record, _)| record).collect()
    }

    fn object(&self, object: &Object) -> UnitRecord {
        let max = self.bucket.config.max_file_size;
        let reason = if self.bucket.patterns.leave_out(&object.key) {
            Some(Reason::Excluded)
        } else if max.is_some_and(|max| object.size > max) {
            Some(Reason::TooLarge)
        } else if object.is_archived {
            Some(Reason::Archived)
        } else if !is_addressable(&object.key) {
            Some(Reason::UnsupportedKey)
        } else {
            None
        };
        let kind = if reason.is_some() { RecordKind::Skipped } else { RecordKind::File };
        UnitRecord {
            kind,
            name: self.name(&object.key),
            size: object.size,
            marks: object.marks,
            reason,
            metadata: None,
        }
    }

    fn folder(&self, prefix: &[u8]) -> UnitRecord {
        let key = prefix.strip_suffix(b"/").unwrap_or(prefix);
        let reason = self.bucket.patterns.leave_out_folder(key).then_some(Reason::Excluded);
        let kind = if reason.is_some() { RecordKind::Skipped } else { RecordKind::Directory };
        UnitRecord {
            kind,
            name: self.name(key),
            size: 0,
            marks: VersionMarks::default(),
            reason,
            metadata: None,
        }
    }

    /// What joined to the container's key gives `key`.
    fn name(&self, key: &[u8]) -> Vec<u8> {
        let container = self.container.as_bytes();
        let start = if container.is_empty() { 0 } else { container.len() + 1 };
        key.get(start..).unwrap_or_default().to_vec()
    }
}

#[async_trait]
impl Listing for PrefixListing {
    async fn next_batch(&mut self, max: usize) -> Result<Vec<UnitRecord>, ConnectorError> {
        // Stores may give pages with nothing new on them, and say where the next one is.
        let mut token = None;
        for _ in 0..EMPTY_PAGES_MAX {
            let position = match &self.state {
                State::Ended => return Ok(Vec::new()),
                State::First => Position::start(Mode::Flat),
                State::At(position) => position.clone(),
            };
            if position.mode == Mode::Versions {
                self.state = State::Ended;
                return Ok(self.older_versions().await?.into_iter().collect());
            }
            let is_first = matches!(self.state, State::First);
            // The first look is as far whatever the caller's pages are: what it sees decides.
            let len = if is_first { PAGE_MAX } else { max.clamp(1, PAGE_MAX) };
            let page = self.ask(&position, token.as_deref(), len).await?;
            let (position, page) = match is_first && !(page.is_truncated && page.objects.is_empty()) {
                true => match self.decide(page) {
                    (position, Some(page)) if page.objects.len() <= max => (position, page),
                    (position, _) => {
                        self.state = State::At(position);
                        token = None;
                        continue;
                    }
                },
                false => (position, page),
            };
            let (state, next) = (self.follow(&position, &page), page.next.clone());
            let is_truncated = page.is_truncated;
            let mut records = self.records(&position, page);
            if records.is_empty() && is_truncated && next.is_some() {
                token = next;
                continue;
            }
            self.state = state?;
            token = None;
            if matches!(&self.state, State::At(position) if position.mode == Mode::Versions)
                && records.len() < max
            {
                records.extend(self.older_versions().await?);
                self.state = State::Ended;
            }
            if !records.is_empty() {
                return Ok(records);
            }
        }
        let detail = format!("the store gave {EMPTY_PAGES_MAX} pages with nothing on them");
        Err(ConnectorError::Container { reason: Reason::ReadError, detail })
    }

    fn resume_point(&self) -> Option<String> {
        match &self.state {
            State::At(position) => Some(position.to_text()),
            State::First | State::Ended => None,
        }
    }
}
