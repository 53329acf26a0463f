//! The configuration of a `url` data source. Its fields' comments are their manual.

use std::path::Path;
use std::time::Duration;

use domesday_connector::credentials::Method;
use domesday_connector::fields::{self, Field, FieldType};
use domesday_connector::{ConnectorError, parse_configuration};
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::address;
use super::private::AllowPrivate;

/// The kind, as data sources name it.
pub const KIND: &str = "url";
/// Bytes of an object that are read, unless told otherwise: 256 MiB.
pub const MAX_SIZE: u64 = 256 << 20;
/// Seconds that an object may take, unless told otherwise.
pub const TIMEOUT_S: u64 = 300;
/// Addresses that can be given one by one; more are for a `list`.
const ADDRESSES_MAX: usize = 10_000;
/// Pages of a crawl, at most, and unless told otherwise.
const PAGES_MAX: u32 = 10_000;
const PAGES: u32 = 1_000;
/// Links from a given address, at most, and unless told otherwise.
const DEPTH_MAX: u32 = 20;
const DEPTH: u32 = 3;

domesday_connector::configuration! {
    /// Which web addresses to scan. Exactly one of `addresses`, `list` and `sitemap` says where they come from.
    #[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct UrlConfig {
        /// These addresses, each beginning with `https://` or `http://`.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub addresses: Vec<String>,
        /// The addresses in a text file, one on each line; empty lines and lines that begin with `#` do not
        /// count. An absolute path on the worker, or an address.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub list: Option<String>,
        /// The addresses in a sitemap, and in those it leads to. Its address.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub sitemap: Option<String>,
        /// Follow the links of these pages within their sites. What a site's `robots.txt` does not allow is left
        /// out.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub crawl: Option<Crawl>,
        /// Also read what is not on the public network: `true` for private networks (RFC 1918, unique local addresses)
        /// and this machine, or a list of ranges such as `10.0.0.0/8`. With `true` the proxies that the environment names
        /// are used, which look names up by themselves. Where clouds tell machines their credentials (`169.254.169.254`
        /// and its like) is never read.
        #[serde(skip_serializing_if = "AllowPrivate::is_nothing")]
        pub allow_private: AllowPrivate,
        /// Read no more than this of each address, in bytes; 256 MiB unless said otherwise.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub max_size: Option<u64>,
        /// Wait no longer than this for an address to send all of its content, in seconds; 300 unless said
        /// otherwise.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub timeout_s: Option<u64>,
        /// How to authenticate: `basic`, `bearer` or `unauthenticated`. A data source with a credential uses
        /// `basic` unless said otherwise. The credential is sent to the hosts of `addresses`, `list` or `sitemap`
        /// only, over https, and never to where these redirect.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub authentication: Option<Method>,
    }
}

domesday_connector::configuration! {
    /// How far links are followed.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Crawl {
        /// Links from a given address to the last page, at most; 3 unless said otherwise.
        pub depth: u32,
        /// Addresses that are found by links, at most; 1,000 unless said otherwise.
        pub max_pages: u32,
        /// Follow links to addresses below this one only, instead of those on the site of the page.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub scope: Option<String>,
    }
}

impl FieldType for Crawl {
    fn type_name() -> String {
        "object".to_owned()
    }

    fn inside() -> Vec<Field> {
        fields::fields(&Crawl::default())
    }
}

impl Default for Crawl {
    fn default() -> Self {
        Crawl { depth: DEPTH, max_pages: PAGES, scope: None }
    }
}

impl UrlConfig {
    pub fn parse(value: &Value) -> Result<UrlConfig, ConnectorError> {
        let config: UrlConfig = parse_configuration(KIND, value)?;
        config.check().map_err(|detail| ConnectorError::Configuration { kind: KIND, detail })?;
        Ok(config)
    }

    fn check(&self) -> Result<(), String> {
        let given = [!self.addresses.is_empty(), self.list.is_some(), self.sitemap.is_some()];
        if given.into_iter().filter(|given| *given).count() != 1 {
            return Err("give exactly one of `addresses`, `list` and `sitemap`".to_owned());
        }
        if self.addresses.len() > ADDRESSES_MAX {
            return Err(format!("field `addresses`: more than {ADDRESSES_MAX}; put them into a `list`"));
        }
        for (index, given) in self.addresses.iter().enumerate() {
            address::strict(given).map_err(|why| format!("field `addresses[{index}]`: {why}"))?;
        }
        if let Some(list) = self.list.as_ref().filter(|list| !Path::new(list).is_absolute()) {
            address::strict(list).map_err(|why| format!("field `list`: not an absolute path, and {why}"))?;
        }
        if let Some(sitemap) = &self.sitemap {
            address::strict(sitemap).map_err(|why| format!("field `sitemap`: {why}"))?;
        }
        if let Some(crawl) = &self.crawl {
            crawl.check().map_err(|why| format!("field `crawl.{why}"))?;
        }
        if self.max_size == Some(0) || self.timeout_s == Some(0) {
            return Err("fields `max_size` and `timeout_s`: expected a number from 1".to_owned());
        }
        match self.authentication {
            None | Some(Method::Unauthenticated | Method::Basic | Method::Bearer) => Ok(()),
            Some(method) => Err(format!(
                "field `authentication`: `{}` is not for web addresses; known: unauthenticated, basic, bearer",
                method.as_str()
            )),
        }
    }

    /// The addresses that the configuration itself names: where a credential may go.
    pub(super) fn named(&self) -> Vec<Url> {
        let all = self.addresses.iter().chain(&self.list).chain(&self.sitemap);
        all.filter_map(|given| address::strict(given).ok()).collect()
    }

    pub(super) fn max_size(&self) -> u64 {
        self.max_size.unwrap_or(MAX_SIZE)
    }

    pub(super) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_s.unwrap_or(TIMEOUT_S))
    }
}

impl Crawl {
    fn check(&self) -> Result<(), String> {
        if !(1..=DEPTH_MAX).contains(&self.depth) {
            return Err(format!("depth`: expected a number from 1 to {DEPTH_MAX}"));
        }
        if !(1..=PAGES_MAX).contains(&self.max_pages) {
            return Err(format!("max_pages`: expected a number from 1 to {PAGES_MAX}"));
        }
        self.scope()?;
        Ok(())
    }

    pub(super) fn scope(&self) -> Result<Option<Url>, String> {
        let scope = self.scope.as_deref().map(address::strict).transpose();
        scope.map_err(|why| format!("scope`: {why}"))
    }
}

/// The configuration that `https://…` on a command line means.
pub fn parse_address(given: &str) -> Result<Value, ConnectorError> {
    match address::strict(given) {
        Ok(url) => Ok(json!({ "addresses": [url.as_str()] })),
        Err(detail) => Err(ConnectorError::Configuration { kind: KIND, detail }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named() {
        let a = "https://example.com/";
        for (value, field) in [
            (json!({}), "exactly one"),
            (json!({ "addresses": [a], "sitemap": a }), "exactly one"),
            (json!({ "addresses": [a, "ftp://example.com"] }), "`addresses[1]`"),
            (json!({ "addresses": ["https://u:s3cret@example.com"] }), "`addresses[0]`"),
            (json!({ "list": "relative.txt" }), "`list`"),
            (json!({ "sitemap": "/sitemap.xml" }), "`sitemap`"),
            (json!({ "addresses": [a], "crawl": { "depth": 0 } }), "`crawl.depth`"),
            (json!({ "addresses": [a], "crawl": { "max_pages": 10_001 } }), "`crawl.max_pages`"),
            (json!({ "addresses": [a], "crawl": { "scope": "x" } }), "`crawl.scope`"),
            (json!({ "addresses": [a], "crawl": { "deep": 1 } }), "`deep`"),
            (json!({ "addresses": [a], "timeout_s": 0 }), "`timeout_s`"),
            (json!({ "addresses": [a], "authentication": "s3" }), "`authentication`"),
        ] {
            let message = UrlConfig::parse(&value).unwrap_err().to_string();
            assert!(message.contains(field) && !message.contains("s3cret"), "{message}");
        }
    }

    #[test]
    fn what_is_said_comes_back() {
        let json = json!({
            "list": "/srv/list.txt", "allow_private": true, "max_size": 7,
            "crawl": { "depth": 2, "max_pages": 10 },
        });
        let config = UrlConfig::parse(&json).unwrap();
        assert_eq!(serde_json::to_value(&config).unwrap(), json);
        assert!(config.named().is_empty(), "a file of this machine is no address");
        let crawl =
            UrlConfig::parse(&json!({ "addresses": ["http://a"], "crawl": {} })).unwrap().crawl.unwrap();
        assert_eq!((crawl.depth, crawl.max_pages), (3, 1_000));
    }

    #[test]
    fn addresses_of_a_command_line() {
        assert_eq!(
            parse_address("https://A.example").unwrap(),
            json!({ "addresses": ["https://a.example/"] })
        );
        assert!(parse_address("https://user:s3cret@a.example").is_err());
        assert!(parse_address("example.com").is_err());
    }
}
