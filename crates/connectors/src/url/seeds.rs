//! The addresses that a data source is given: in its configuration, in a list, or in sitemaps.

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::vec;

use domesday_connector::ConnectorError;
use domesday_model::Reason;
use reqwest::Url;

use super::address::{self, ADDRESS_MAX};
use super::config::UrlConfig;
use super::fetch::{FetchError, Fetcher};
use super::sitemap::{self, LOCATIONS_MAX, SITEMAP_BYTES_MAX, Sitemap};

/// Bytes of a list that comes from an address; one on this machine is read line by line.
const LIST_BYTES_MAX: u64 = 64 << 20;
/// Sitemaps of one data source.
const SITEMAPS_MAX: usize = 1_000;
/// Sitemaps that lead to one another; the protocol has two levels.
const SITEMAP_DEPTH_MAX: u32 = 3;
/// Addresses that are taken from a list at once.
const LINES_AT_ONCE: usize = 1_000;

/// Something to be listed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Found {
    pub name: String,
    /// `None` for what is no web address: opening it tells.
    pub url: Option<Url>,
    /// Why it is left out, if it is.
    pub reason: Option<Reason>,
    pub from: &'static str,
}

impl Found {
    pub fn address(url: Url, from: &'static str) -> Found {
        Found { name: url.to_string(), url: Some(url), reason: None, from }
    }

    pub fn left_out(url: &Url, from: &'static str, reason: Reason) -> Found {
        Found { name: url.to_string(), url: None, reason: Some(reason), from }
    }

    /// A line that should be an address.
    fn line(line: &str, from: &'static str) -> Found {
        match address::lenient(line) {
            Some(url) => Found::address(url, from),
            // The beginning of it will do; and what stands before an `@` may be secret.
            None => {
                let shown = line.rsplit('@').next().unwrap_or_default();
                let name = shown.chars().take(ADDRESS_MAX / 4).collect::<String>();
                let name = if name.is_empty() { "@".to_owned() } else { name };
                Found { name, url: None, reason: None, from }
            }
        }
    }
}

/// Sitemaps that lead to one another.
pub(super) struct Sitemaps {
    /// Those to be read, with the sitemaps that led there.
    waiting: VecDeque<(Url, u32)>,
    /// All that were queued: one that is named again, by itself perhaps, is read once.
    queued: HashSet<Url>,
}

pub(super) enum Seeds {
    Given(vec::IntoIter<Url>),
    Lines(Box<dyn BufRead + Send>),
    Sitemaps(Sitemaps),
    End,
}

impl Seeds {
    pub async fn begin(config: &UrlConfig, fetcher: &Fetcher) -> Result<Seeds, ConnectorError> {
        let of = |given: &str| address::strict(given).ok();
        if let Some(list) = &config.list {
            if Path::new(list).is_absolute() {
                let file = File::open(list).map_err(|error| ConnectorError::io(list, &error))?;
                return Ok(Seeds::Lines(Box::new(BufReader::new(file))));
            }
            let Some(url) = of(list) else { return Ok(Seeds::End) };
            let text = fetcher.text(&url, LIST_BYTES_MAX, |_| true).await;
            let text =
                text.map_err(FetchError::into_connector_error)?.map_or_else(String::new, |text| text.text);
            return Ok(Seeds::Lines(Box::new(Cursor::new(text))));
        }
        if let Some(sitemap) = config.sitemap.as_deref().and_then(of) {
            let (waiting, queued) = (VecDeque::from([(sitemap.clone(), 0)]), HashSet::from([sitemap]));
            return Ok(Seeds::Sitemaps(Sitemaps { waiting, queued }));
        }
        let given: Vec<Url> = config.addresses.iter().filter_map(|given| of(given)).collect();
        Ok(Seeds::Given(given.into_iter()))
    }

    /// Some more of them; none at the end.
    pub async fn next(&mut self, fetcher: &Fetcher) -> Result<Vec<Found>, ConnectorError> {
        let found = match self {
            Seeds::End => return Ok(Vec::new()),
            Seeds::Given(given) => given.map(|url| Found::address(url, "address")).collect(),
            Seeds::Lines(lines) => read_lines(lines)?,
            Seeds::Sitemaps(sitemaps) => sitemaps.next(fetcher).await?,
        };
        if found.is_empty() {
            *self = Seeds::End;
        }
        Ok(found)
    }
}

fn read_lines(lines: &mut (dyn BufRead + Send)) -> Result<Vec<Found>, ConnectorError> {
    let mut found = Vec::new();
    while found.len() < LINES_AT_ONCE {
        let mut line = Vec::new();
        let read = lines.take(4 * ADDRESS_MAX as u64).read_until(b'\n', &mut line);
        if read.map_err(|error| ConnectorError::io("list", &error))? == 0 {
            break;
        }
        found.extend(sitemap::lines(&String::from_utf8_lossy(&line)).map(|line| Found::line(line, "list")));
    }
    Ok(found)
}

impl Sitemaps {
    /// The addresses of the next sitemap that has some.
    async fn next(&mut self, fetcher: &Fetcher) -> Result<Vec<Found>, ConnectorError> {
        while let Some((url, depth)) = self.waiting.front().cloned() {
            let found = self.read(fetcher, &url, depth).await?;
            self.waiting.pop_front();
            if !found.is_empty() {
                return Ok(found);
            }
        }
        Ok(Vec::new())
    }

    /// The addresses of one sitemap; those of further ones are queued.
    async fn read(&mut self, fetcher: &Fetcher, url: &Url, depth: u32) -> Result<Vec<Found>, ConnectorError> {
        let text = match fetcher.text(url, SITEMAP_BYTES_MAX, |_| true).await {
            Ok(text) => text.and_then(|text| sitemap::parse(&text.text)),
            // One of many: it is listed itself, and reading it tells what is wrong.
            Err(_) if depth > 0 => return Ok(vec![Found::address(url.clone(), "sitemap")]),
            Err(error) => return Err(error.into_connector_error()),
        };
        match text {
            Some(Sitemap::Addresses(addresses)) => {
                let mut found: Vec<Found> = addresses
                    .iter()
                    .take(LOCATIONS_MAX)
                    .map(|address| Found::line(address, "sitemap"))
                    .collect();
                if addresses.len() > LOCATIONS_MAX {
                    found.push(Found::left_out(url, "sitemap", Reason::AddressLimit));
                }
                Ok(found)
            }
            Some(Sitemap::Index(sitemaps)) => {
                let mut left_out = Vec::new();
                for url in sitemaps.iter().filter_map(|sitemap| address::lenient(sitemap)) {
                    if self.queued.contains(&url) {
                        continue;
                    }
                    if self.queued.len() >= SITEMAPS_MAX || depth + 1 >= SITEMAP_DEPTH_MAX {
                        left_out.push(Found::left_out(&url, "sitemap", Reason::AddressLimit));
                    } else {
                        self.queued.insert(url.clone());
                        self.waiting.push_back((url, depth + 1));
                    }
                }
                Ok(left_out)
            }
            None if depth > 0 => Ok(vec![Found::address(url.clone(), "sitemap")]),
            None => Err(ConnectorError::Container {
                reason: Reason::ReadError,
                detail: format!("{url}: not a sitemap"),
            }),
        }
    }
}
