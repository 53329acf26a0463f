//! Listing addresses: those given, then those that links lead to. Each is listed once, with what its server
//! says of its version when that is to be had without its content.
//!
//! A listing that was cut short begins again and leaves out what is staged: a crawl cannot go on from a point
//! in it, for what it had seen is as large as itself, and pages change. That costs the pages of the crawl a
//! second time, and no object.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use async_trait::async_trait;
use domesday_connector::http::parse_date;
use domesday_connector::{ConnectorError, Listing};
use domesday_model::{ObjectKey, Reason, RecordKind, TargetDraft, UnitRecord, VersionMarks, redact};
use reqwest::header::{CONTENT_LENGTH, ETAG, LAST_MODIFIED};
use reqwest::{StatusCode, Url};
use serde_json::json;
use tokio::task::JoinSet;

use super::Source;
use super::crawl::{Crawler, Seen};
use super::fetch::{FetchError, Fetched, Fetcher};
use super::seeds::{Found, Seeds};

/// Addresses of one data source.
const ADDRESSES_MAX: usize = 1_000_000;
/// Entries of one batch: each may cost a request.
const BATCH_MAX: usize = 200;
/// Requests that are under way at once.
const AT_ONCE: usize = 8;
const NANOS_PER_SECOND: i64 = 1_000_000_000;

pub(super) struct AddressListing {
    source: Arc<Source>,
    seeds: Seeds,
    crawler: Option<Crawler>,
    found: VecDeque<Found>,
    seen: Seen,
    /// Sites that do not answer: they are not asked for versions again.
    silent: HashSet<String>,
    targets: Vec<TargetDraft>,
}

/// What a server says of an address.
#[derive(Clone, Copy, Default)]
struct Version {
    size: u64,
    marks: VersionMarks,
}

impl AddressListing {
    pub async fn begin(source: Arc<Source>) -> Result<AddressListing, ConnectorError> {
        Ok(AddressListing {
            seeds: Seeds::begin(&source.config, &source.fetcher).await?,
            crawler: source.config.crawl.clone().map(Crawler::new),
            source,
            found: VecDeque::new(),
            seen: HashSet::new(),
            silent: HashSet::new(),
            targets: Vec::new(),
        })
    }

    /// Looks for more to list, unless there is some; whether there is.
    async fn find(&mut self) -> Result<bool, ConnectorError> {
        while self.found.is_empty() {
            let seeds = self.seeds.next(&self.source.fetcher).await?;
            if seeds.is_empty() {
                let Some(crawler) = &mut self.crawler else { return Ok(false) };
                self.found.extend(crawler.next(&self.source.fetcher, &mut self.seen).await);
                return Ok(!self.found.is_empty());
            }
            for seed in seeds {
                if !self.seen.insert(ObjectKey::hash128(seed.name.as_bytes())) {
                    continue;
                }
                if self.seen.len() > ADDRESSES_MAX {
                    let reason = Some(Reason::AddressLimit);
                    self.found.push_back(Found { url: None, reason, ..seed });
                    self.seeds = Seeds::End;
                    break;
                }
                if let (Some(crawler), Some(url)) = (&mut self.crawler, &seed.url) {
                    crawler.add_seed(url);
                }
                self.found.push_back(seed);
            }
        }
        Ok(true)
    }

    /// What servers say of these addresses, as far as they say it at once.
    async fn versions(&mut self, batch: &[Found]) -> Result<Vec<Version>, ConnectorError> {
        let mut versions = vec![Version::default(); batch.len()];
        if self.crawler.as_ref().is_some_and(Crawler::is_slow) {
            return Ok(versions);
        }
        let (mut known, mut denied) = (0, None);
        let indices: Vec<usize> = (0..batch.len()).collect();
        for some in indices.chunks(AT_ONCE) {
            let mut asked = JoinSet::new();
            for &index in some {
                let Some(url) = batch[index].url.clone() else { continue };
                if !self.silent.contains(&site(&url)) {
                    let fetcher = Arc::clone(&self.source.fetcher);
                    asked.spawn(async move { ask(&fetcher, index, url).await });
                }
            }
            for (index, url, answer) in asked.join_all().await {
                match answer {
                    Ok(fetched) => {
                        versions[index] = version(&fetched);
                        known += usize::from(fetched.is_authenticated);
                    }
                    Err(error @ FetchError::Credential(_)) => return Err(error.into_connector_error()),
                    Err(FetchError::Passing { .. }) => drop(self.silent.insert(site(&url))),
                    Err(error @ FetchError::Final { status, is_authenticated, .. }) => {
                        if is_authenticated && status == Some(StatusCode::UNAUTHORIZED) {
                            denied = Some(error);
                        }
                    }
                }
            }
        }
        match denied {
            // Nobody accepts the credential: that is not about single addresses.
            Some(error) if known == 0 => Err(error.into_connector_error()),
            _ => Ok(versions),
        }
    }
}

#[async_trait]
impl Listing for AddressListing {
    async fn next_batch(&mut self, max: usize) -> Result<Vec<UnitRecord>, ConnectorError> {
        self.targets.clear();
        if !self.find().await? {
            return Ok(Vec::new());
        }
        let len = self.found.len().min(max).min(BATCH_MAX);
        let batch: Vec<Found> = self.found.range(..len).cloned().collect();
        let versions = self.versions(&batch).await?;
        // Only now: a listing that is asked again after an error must not have lost any.
        self.found.drain(..len);
        Ok(batch.into_iter().zip(versions).map(|(found, version)| self.record(found, version)).collect())
    }

    fn take_targets(&mut self) -> Vec<TargetDraft> {
        std::mem::take(&mut self.targets)
    }
}

impl AddressListing {
    fn record(&mut self, found: Found, version: Version) -> UnitRecord {
        if let Some(url) = found.url {
            let metadata = json!({ "from": found.from });
            self.targets.push(TargetDraft::Url { url: url.into(), metadata });
        }
        UnitRecord {
            kind: if found.reason.is_some() { RecordKind::Skipped } else { RecordKind::File },
            name: found.name.into_bytes(),
            size: version.size,
            marks: version.marks,
            reason: found.reason,
            metadata: None,
        }
    }
}

async fn ask(fetcher: &Fetcher, index: usize, url: Url) -> (usize, Url, Result<Fetched, FetchError>) {
    let answer = fetcher.head(&url).await;
    (index, url, answer)
}

fn version(fetched: &Fetched) -> Version {
    let text = |name| fetched.response.headers().get(name).and_then(|value| value.to_str().ok());
    let size = text(CONTENT_LENGTH).and_then(|size| size.parse().ok()).unwrap_or(0);
    let tag = text(ETAG).map(|etag| {
        ObjectKey::hash128(format!("{} {etag}", redact::redacted(fetched.address.as_str())).as_bytes())
    });
    let modified = text(LAST_MODIFIED).and_then(parse_date).unwrap_or(0).saturating_mul(NANOS_PER_SECOND);
    Version { size, marks: VersionMarks { mtime_ns: modified, ctime_ns: modified, inode: 0, tag } }
}

fn site(url: &Url) -> String {
    url.origin().ascii_serialization()
}
