//! The configuration of `s3`, `gcs` and `azure` data sources. Its fields' comments are their manual.

use domesday_connector::address::{Scheme, UserInfo};
use domesday_connector::credentials::Method;
use domesday_connector::{ConnectorError, parse_configuration};
use reqwest::Url;
use serde::{Deserialize, Serialize};

/// Levels below the root that are split between workers, unless set otherwise.
const FAN_OUT_DEPTH: u32 = 8;

/// Which cloud's protocol a store speaks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    S3,
    Gcs,
    Azure,
}

impl Kind {
    pub const ALL: &'static [Kind] = &[Kind::S3, Kind::Gcs, Kind::Azure];

    /// The kind, as data sources name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::S3 => "s3",
            Kind::Gcs => "gcs",
            Kind::Azure => "azure",
        }
    }

    /// What a data source of the kind is.
    pub(super) fn about(self) -> &'static str {
        match self {
            Kind::S3 => "a bucket of Amazon S3 or a store that speaks its protocol",
            Kind::Gcs => "a bucket of Google Cloud Storage",
            Kind::Azure => "a container of Azure Blob Storage",
        }
    }

    /// How its addresses begin. A secret has no place in them.
    pub(super) fn schemes(self) -> &'static [Scheme] {
        const S3: &[Scheme] = &[
            Scheme::with_authority("s3", UserInfo::Refused),
            Scheme::with_authority("s3a", UserInfo::Refused),
        ];
        const GCS: &[Scheme] = &[
            Scheme::with_authority("gs", UserInfo::Refused),
            Scheme::with_authority("gcs", UserInfo::Refused),
        ];
        const AZURE: &[Scheme] = &[
            Scheme::with_authority("az", UserInfo::Refused),
            Scheme::with_authority("azure", UserInfo::Refused),
        ];
        match self {
            Kind::S3 => S3,
            Kind::Gcs => GCS,
            Kind::Azure => AZURE,
        }
    }

    /// How its secrets are read.
    pub(super) fn method(self) -> Method {
        match self {
            Kind::S3 => Method::S3,
            Kind::Gcs => Method::Gcs,
            Kind::Azure => Method::Azure,
        }
    }
}

domesday_connector::configuration! {
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct ObjectsConfig {
        /// The bucket; for `azure` the container.
        #[serde(alias = "container")]
        pub bucket: String,
        /// `azure` only: the storage account.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub account: Option<String>,
        /// Only keys that begin with this. End it with `/` to mean a folder: `logs` is also the beginning of `logs-old`.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub prefix: String,
        /// `s3` only: the region the bucket is in. Without it `AWS_REGION` or `AWS_DEFAULT_REGION`, and what AWS itself
        /// says of the bucket.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub region: Option<String>,
        /// The address of a store other than the cloud's own, such as `https://minio.example:9000`. For `azure` the
        /// address of the account. For `s3` without it `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub endpoint: Option<String>,
        /// `s3` only: whether the bucket is part of the path (`https://host/bucket/key`) and not of the host
        /// (`https://bucket.host/key`). Without it: in the path where there is an `endpoint`, else in the host.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub path_style: Option<bool>,
        /// Allow an `endpoint` that begins with `http://` (for one of the environment: `AWS_ALLOW_HTTP=true`): what is read, and who reads it, can then be seen on the way.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub allow_http: bool,
        /// How to authenticate: the kind's own name (`s3`, `gcs`, `azure`) with the data source's credential, or
        /// `unauthenticated` for public buckets. Without it: the credential if there is one, else the cloud's default
        /// chain: environment variables, the shared credentials file (`s3`), web identity, the machine's own identity. That
        /// chain is for the cloud's own servers; an `endpoint` gets it only with `--allow-endpoint`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub authentication: Option<Method>,
        /// Patterns of what to scan, with the syntax of `.gitignore` lines; none means everything.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub include: Vec<String>,
        /// Patterns of what to leave out, with the syntax and meaning of `.gitignore` lines.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub exclude: Vec<String>,
        /// Leave out objects larger than this, in bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub max_file_size: Option<u64>,
        /// How many levels of `/` below the prefix may be split between workers, where that pays. 0 lists the whole
        /// bucket in one go.
        #[serde(default = "fan_out_depth")]
        pub fan_out_depth: u32,
    }
}

fn fan_out_depth() -> u32 {
    FAN_OUT_DEPTH
}

impl ObjectsConfig {
    pub fn new(bucket: impl Into<String>) -> ObjectsConfig {
        ObjectsConfig {
            bucket: bucket.into(),
            account: None,
            prefix: String::new(),
            region: None,
            endpoint: None,
            path_style: None,
            allow_http: false,
            authentication: None,
            include: Vec::new(),
            exclude: Vec::new(),
            max_file_size: None,
            fan_out_depth: FAN_OUT_DEPTH,
        }
    }

    pub fn parse(kind: Kind, value: &serde_json::Value) -> Result<ObjectsConfig, ConnectorError> {
        let mut config: ObjectsConfig = parse_configuration(kind.as_str(), value)?;
        if kind == Kind::S3 && config.endpoint.is_none() {
            config.endpoint = endpoint_of_environment();
            config.allow_http |=
                config.endpoint.is_some() && variable("AWS_ALLOW_HTTP").as_deref() == Some("true");
        }
        config.check(kind).map_err(|(field, problem)| ConnectorError::Configuration {
            kind: kind.as_str(),
            detail: format!("field `{field}`: {problem}"),
        })?;
        Ok(config)
    }

    /// The field that is wrong, and why.
    pub(super) fn check(&self, kind: Kind) -> Result<(), (&'static str, String)> {
        is_name(&self.bucket).map_err(|problem| ("bucket", problem))?;
        if kind != Kind::S3 {
            let only_s3 = |field| Err((field, "is for `s3` only".to_owned()));
            if self.region.is_some() {
                return only_s3("region");
            }
            if self.path_style.is_some() {
                return only_s3("path_style");
            }
        }
        match (&self.account, kind) {
            (Some(account), Kind::Azure) => is_name(account).map_err(|problem| ("account", problem))?,
            (None, Kind::Azure) => return Err(("account", "name the storage account".into())),
            (Some(_), _) => return Err(("account", "is for `azure` only".into())),
            (None, _) => {}
        }
        if let Some(region) = &self.region {
            is_name(region).map_err(|problem| ("region", problem))?;
        }
        if let Some(method) = self.authentication
            && method != Method::Unauthenticated
            && method != kind.method()
        {
            let own = kind.as_str();
            return Err(("authentication", format!("must be `{own}` or `unauthenticated`")));
        }
        self.endpoint_url().map(|_| ()).map_err(|problem| ("endpoint", problem))
    }

    /// Whether the endpoint is the one that whoever started this process named.
    pub(super) fn is_endpoint_of_environment(&self) -> bool {
        endpoint_of_environment().is_some_and(|endpoint| self.endpoint.as_ref() == Some(&endpoint))
    }

    /// The endpoint, if there is one of its own.
    pub(super) fn endpoint_url(&self) -> Result<Option<Url>, String> {
        let Some(endpoint) = &self.endpoint else { return Ok(None) };
        let url = Url::parse(endpoint).map_err(|error| format!("`{endpoint}` is no address: {error}"))?;
        match url.scheme() {
            "https" => {}
            "http" if self.allow_http => {}
            "http" => return Err("is not encrypted; use https, or set `allow_http`".into()),
            _ => return Err("must begin with https:// or http://".into()),
        }
        if url.host_str().is_none() || url.query().is_some() || !url.username().is_empty() {
            return Err("must be a host, perhaps with a port and a path, and nothing else".into());
        }
        Ok(Some(url))
    }
}

/// The endpoint for `s3` that this process's environment names.
fn endpoint_of_environment() -> Option<String> {
    variable("AWS_ENDPOINT_URL_S3").or_else(|| variable("AWS_ENDPOINT_URL"))
}

/// A variable of this process's environment that says something.
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Names of buckets, accounts and regions become parts of addresses.
pub(super) fn is_name(text: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '$');
    if text.is_empty() || !text.chars().all(allowed) || matches!(text, "." | "..") {
        return Err(format!("`{text}` is not a name: use letters, digits, `-`, `_` and `.`"));
    }
    Ok(())
}
