//! Following links: breadth first, within the sites of the given addresses, as far as their rules and the
//! configuration allow.
//!
//! What a page could not be fetched for is not told here: the page is listed, and reading it tells.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use domesday_model::{ObjectKey, Reason};
use reqwest::Url;
use tokio::task::JoinSet;

use super::config::Crawl;
use super::fetch::{FetchError, Fetcher};
use super::html;
use super::robots::{ROBOTS_BYTES_MAX, Robots};
use super::seeds::Found;

/// Pages that are fetched at once.
const AT_ONCE: usize = 4;
/// Bytes of a page that is looked through for links.
const PAGE_BYTES_MAX: u64 = 8 << 20;
/// Given addresses whose links are followed.
const SEEDS_MAX: usize = 10_000;
/// What is no page, by its name. Anything else may be one.
const NO_PAGES: [&str; 20] = [
    "js", "mjs", "css", "json", "xml", "txt", "map", "png", "jpg", "jpeg", "gif", "webp", "svg", "ico",
    "woff", "woff2", "pdf", "zip", "gz", "mp4",
];

/// Keys that were listed.
pub(super) type Seen = HashSet<[u8; 16]>;

pub(super) struct Crawler {
    crawl: Crawl,
    scope: Option<Url>,
    /// Pages to be fetched, with the links that led there.
    frontier: VecDeque<(Url, u32)>,
    /// Addresses found so far.
    pages: u32,
    /// The rules of sites, by scheme, host and port.
    robots: HashMap<String, Robots>,
}

impl Crawler {
    pub fn new(crawl: Crawl) -> Crawler {
        let scope = crawl.scope().ok().flatten();
        Crawler { crawl, scope, frontier: VecDeque::new(), pages: 0, robots: HashMap::new() }
    }

    pub fn add_seed(&mut self, url: &Url) {
        if self.frontier.len() < SEEDS_MAX {
            self.frontier.push_back((url.clone(), 0));
        }
    }

    /// Whether a site asks to be let alone between two requests.
    pub fn is_slow(&self) -> bool {
        self.robots.values().any(|robots| robots.delay.is_some())
    }

    /// New addresses that the next pages link to; none at the end.
    pub async fn next(&mut self, fetcher: &Arc<Fetcher>, seen: &mut Seen) -> Vec<Found> {
        while self.pages < self.crawl.max_pages && !self.frontier.is_empty() {
            let mut found = Vec::new();
            for (links, page, depth) in self.fetch_some(fetcher).await {
                // Where a redirect led need not be read again under its own name.
                seen.insert(ObjectKey::hash128(page.as_str().as_bytes()));
                for link in links {
                    if self.pages >= self.crawl.max_pages {
                        break;
                    }
                    if !self.is_inside(&link, &page)
                        || !seen.insert(ObjectKey::hash128(link.as_str().as_bytes()))
                    {
                        continue;
                    }
                    self.pages += 1;
                    if !self.rules(fetcher, &link).await.allows(&link) {
                        found.push(Found::left_out(&link, "crawl", Reason::Robots));
                        continue;
                    }
                    if depth + 1 < self.crawl.depth {
                        self.frontier.push_back((link.clone(), depth + 1));
                    }
                    found.push(Found::address(link, "crawl"));
                }
            }
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    /// The links of the next pages, each with its address and depth, in their order.
    async fn fetch_some(&mut self, fetcher: &Arc<Fetcher>) -> Vec<(Vec<Url>, Url, u32)> {
        let Some((first, _)) = self.frontier.front() else { return Vec::new() };
        let first = first.clone();
        let delay = self.rules(fetcher, &first).await.delay;
        if let Some(delay) = delay {
            tokio::time::sleep(delay).await;
        }
        let count = if delay.is_some() { 1 } else { AT_ONCE };
        let pages = self.frontier.drain(..count.min(self.frontier.len()));
        let mut fetches = JoinSet::new();
        for (index, (page, depth)) in pages.enumerate() {
            let fetcher = Arc::clone(fetcher);
            fetches.spawn(async move { (index, links_of(&fetcher, page).await, depth) });
        }
        let mut fetched: Vec<_> = fetches.join_all().await;
        fetched.sort_by_key(|(index, ..)| *index);
        let with_page = |(_, fetched, depth): (_, Option<(Vec<Url>, Url)>, _)| {
            fetched.map(|(links, page)| (links, page, depth))
        };
        fetched.into_iter().filter_map(with_page).collect()
    }

    fn is_inside(&self, link: &Url, page: &Url) -> bool {
        match &self.scope {
            Some(scope) => link.origin() == scope.origin() && link.path().starts_with(scope.path()),
            None => link.origin() == page.origin(),
        }
    }

    /// The rules of the site that an address is on.
    async fn rules(&mut self, fetcher: &Fetcher, url: &Url) -> &Robots {
        let site = url.origin().ascii_serialization();
        if !self.robots.contains_key(&site) {
            let robots = match url.join("/robots.txt") {
                Ok(rules) => robots_at(fetcher, &rules).await,
                Err(_) => Robots::closed(),
            };
            self.robots.insert(site.clone(), robots);
        }
        self.robots.entry(site).or_default()
    }
}

/// A site without rules allows all; one that does not answer allows nothing for now.
async fn robots_at(fetcher: &Fetcher, url: &Url) -> Robots {
    match fetcher.text(url, ROBOTS_BYTES_MAX, |_| true).await {
        Ok(text) => text.map_or_else(Robots::default, |text| Robots::parse(&text.text)),
        Err(FetchError::Final { status: Some(status), .. }) if status.is_client_error() => Robots::default(),
        Err(_) => Robots::closed(),
    }
}

/// A page's links, and the address it has in the end; `None` if it is no page, or cannot be had.
async fn links_of(fetcher: &Fetcher, page: Url) -> Option<(Vec<Url>, Url)> {
    let name = page.path().rsplit('/').next().unwrap_or_default();
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    if ending.is_some_and(|ending| NO_PAGES.contains(&ending.as_str())) {
        return None;
    }
    let is_page = |kind: &str| kind.is_empty() || kind.starts_with("text/html") || kind.contains("xhtml");
    let text = fetcher.text(&page, PAGE_BYTES_MAX, is_page).await.ok()??;
    // A page that leads to another site is not one of this site's.
    (text.address.origin() == page.origin())
        .then(|| (html::links(text.text.as_bytes(), &text.address), text.address))
}
