//! Kind `url`: web addresses, each an object whose key is the address.
//!
//! Addresses are given one by one, in a list or in a sitemap; on request the links of their pages are
//! followed within their sites. By default nothing but the public network is reached, see [`guard`]. What a
//! server packs for the way is handed on as it comes: the scan unpacks it as it does any archive, within the
//! same limits.

mod address;
mod body;
mod config;
mod crawl;
mod fetch;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod guard;
mod html;
mod listing;
mod private;
mod robots;
mod seeds;
mod sitemap;
#[cfg(test)]
mod tests;
mod text;

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use domesday_connector::address::{Address, Scheme, UserInfo};
use domesday_connector::credentials::Method;
use domesday_connector::fields::{self, Field};
use domesday_connector::{
    Configured, Connector, ConnectorError, ConnectorFactory, Description, Exclude, Listing, NamedBy,
    ReadAhead, Surroundings, TargetError, TargetFlags, path_root,
};
use domesday_content::ObjectError;
use domesday_model::{ListedObject, ObjectKey, Reason, RecordKind, ResumePolicy};
use domesday_scheduler::Opened;
use serde_json::{Value, json};
use tokio::runtime::Handle;

pub use config::{Crawl, KIND, MAX_SIZE, TIMEOUT_S, UrlConfig, parse_address};
use fetch::{FetchError, Fetcher};
pub use private::{AllowPrivate, IpRange};

/// Entries that a test of a data source lists.
const TEST_ENTRIES: usize = 10;

/// How web addresses begin.
const SCHEMES: &[Scheme] =
    &[Scheme::with_authority("https", UserInfo::Login), Scheme::with_authority("http", UserInfo::Login)];

/// Makes connectors of kind `url`.
pub struct UrlFactory;

impl UrlFactory {
    fn source(configuration: &Value, surroundings: &Surroundings) -> Result<Source, ConnectorError> {
        let config = UrlConfig::parse(configuration)?;
        let method = match (config.authentication, &surroundings.credential) {
            (Some(method), _) => method,
            (None, Some(_)) => Method::Basic,
            (None, None) => Method::Unauthenticated,
        };
        let fetcher = Fetcher::new(&config, method, surroundings.clone());
        let fetcher = fetcher.map_err(|detail| ConnectorError::Configuration { kind: KIND, detail })?;
        let runtime = Handle::try_current().map_or_else(|_| OnceLock::new(), OnceLock::from);
        Ok(Source { config, fetcher: Arc::new(fetcher), runtime })
    }
}

impl ConnectorFactory for UrlFactory {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn create(
        &self,
        configuration: &Value,
        surroundings: &Surroundings,
    ) -> Result<Arc<dyn Connector>, ConnectorError> {
        Ok(Arc::new(Addresses(Arc::new(UrlFactory::source(configuration, surroundings)?))))
    }

    fn describe(&self) -> Description {
        Description {
            about: "web addresses, one by one, of a list or a sitemap, or crawled",
            schemes: SCHEMES,
            // There is no such field: the configuration is refused with that name.
            exclude: Some(Exclude::Paths("exclude")),
            max_file_size: Some("max_size"),
            ..Description::default()
        }
    }

    fn fields(&self) -> Vec<Field> {
        fields::fields(&UrlConfig::default())
    }

    fn configure_address(&self, address: &Address, flags: &TargetFlags) -> Result<Configured, TargetError> {
        let mut configuration = parse_address(&address.text)?;
        let web = &flags.web;
        if web.sitemap || web.address_list {
            configuration = json!({ if web.sitemap { "sitemap" } else { "list" }: address.text });
        }
        if let Some(depth) = web.crawl_depth {
            configuration["crawl"] = json!({ "depth": depth });
        }
        if let Some(ranges) = &web.allow_private {
            configuration["allow_private"] = if ranges.is_empty() { json!(true) } else { json!(ranges) };
        }
        Ok(Configured { kind: KIND, configuration, concurrency_limit: None })
    }

    /// Keys are addresses.
    fn display_root(&self, _: &Value, named: NamedBy<'_>) -> Vec<u8> {
        match named {
            NamedBy::Path(typed) => path_root(typed),
            NamedBy::Address(_) | NamedBy::Configuration => Vec::new(),
        }
    }
}

struct Addresses(Arc<Source>);

/// What listings of one data source share.
struct Source {
    config: UrlConfig,
    fetcher: Arc<Fetcher>,
    /// The runtime that fetches for threads that have none: the first that was met.
    runtime: OnceLock<Handle>,
}

impl Source {
    fn runtime(&self) -> Result<Handle, ObjectError> {
        if let Ok(handle) = Handle::try_current() {
            return Ok(self.runtime.get_or_init(|| handle).clone());
        }
        let none = || ObjectError::new(Reason::ReadError, "nothing is there to fetch with yet");
        self.runtime.get().cloned().ok_or_else(none)
    }
}

#[async_trait]
impl Connector for Addresses {
    fn resume_policy(&self, _: &ObjectKey) -> ResumePolicy {
        ResumePolicy::ExcludeStaged
    }

    async fn list(&self, container: &ObjectKey, _: Option<&str>) -> Result<Box<dyn Listing>, ConnectorError> {
        if !container.as_bytes().is_empty() {
            let detail = format!("`{container}` is not a container of addresses");
            return Err(ConnectorError::Container { reason: Reason::Vanished, detail });
        }
        Ok(Box::new(listing::AddressListing::begin(Arc::clone(&self.0)).await?))
    }

    fn open(&self, object: &ListedObject) -> Result<Opened, ObjectError> {
        let url = address::of_key(&object.key).ok_or_else(|| no_address(&object.key))?;
        body::open(&self.0.runtime()?, &self.0.fetcher, url).map(Opened::Bytes)
    }

    fn read_ahead(&self, objects: &Arc<[ListedObject]>) -> Option<Box<dyn ReadAhead>> {
        // A packet with something else in it is opened one by one, so that each tells what is wrong.
        let addresses =
            objects.iter().map(|object| address::of_key(&object.key)).collect::<Option<Vec<_>>>()?;
        let runtime = self.0.runtime().ok()?;
        Some(Box::new(body::Packet::begin(runtime, Arc::clone(&self.0.fetcher), addresses)))
    }

    async fn test(&self) -> Result<usize, ConnectorError> {
        let mut listing = self.list(&ObjectKey::default(), None).await?;
        let records = listing.next_batch(TEST_ENTRIES).await?;
        let mut files = records.iter().filter(|record| record.kind == RecordKind::File);
        if let Some(url) = files.find_map(|record| address::of_key(&ObjectKey::new(record.name.as_slice()))) {
            let answer = self.0.fetcher.get(reqwest::Method::GET, &url).await;
            answer.map_err(FetchError::into_connector_error)?;
        }
        Ok(records.len())
    }
}

fn no_address(object: &ObjectKey) -> ObjectError {
    ObjectError::new(Reason::Vanished, format!("`{object}` is not a web address"))
}
