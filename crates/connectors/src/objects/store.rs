//! Requests to a store: one page of a listing, one range of an object.
//!
//! Why not `object_store`'s own requests: its paths cannot hold every key. `a//b` fails the whole page it is listed
//! with, and `a/` and `/a` turn into `a`, which is another object. So addresses are made here, from the bytes of a
//! key; `object_store` finds credentials and signs. Nothing here retries: whoever asks does, within its own limits.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use domesday_connector::address::{IN_PATH, IN_QUERY};
use domesday_connector::remote::{Failure, RangeSource, Received};
use domesday_connector::{ConnectorError, Surroundings, http};
use domesday_model::{ObjectKey, Reason};
use object_store::client::{HttpRequest, HttpRequestBody};
use parking_lot::RwLock;
use percent_encoding::percent_encode;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderValue};
use reqwest::header::{IF_MATCH, RANGE};
use reqwest::{Client, Response, StatusCode, Url};

use super::config::{Kind, ObjectsConfig, is_name, variable};
use super::identity::Identity;
use super::page::{self, Page};
use super::refusal::{Cause, Refusal};

/// The region requests are signed for when nobody names one.
const REGION: &str = "us-east-1";
/// Bytes of one page of a listing, at most: 32 MiB, several times what a thousand of the longest keys take.
const PAGE_LEN_MAX: usize = 32 << 20;
/// Blobs of the one page on which Azure is asked for older versions.
const PROBE_LEN: usize = 1_000;
/// Bytes of an error's description that are read.
const ERROR_LEN_MAX: usize = 16 << 10;
/// The version of Azure's protocol: the first in which names that XML cannot carry are encoded is 2021-02-12.
const AZURE_VERSION: &str = "2023-11-03";

/// One page of a listing.
pub(super) struct PageRequest<'a> {
    pub prefix: &'a [u8],
    pub is_delimited: bool,
    /// Only keys after this one. Not for Azure, which has no such thing.
    pub after: Option<&'a [u8]>,
    /// Where an earlier answer said that the next page begins.
    pub token: Option<&'a str>,
    pub len: usize,
}

pub(super) struct Store {
    pub kind: Kind,
    config: ObjectsConfig,
    endpoint: Option<Url>,
    client: Client,
    identity: Identity,
    /// Where the bucket is, as configured or as the store says.
    region: RwLock<Arc<str>>,
}

impl Store {
    pub fn new(
        kind: Kind,
        config: &ObjectsConfig,
        surroundings: &Surroundings,
    ) -> Result<Store, ConnectorError> {
        let wrong = |detail: String| ConnectorError::Configuration { kind: kind.as_str(), detail };
        // Objects are read as they are stored, whatever their headers say of an encoding.
        let client = http::client_builder().no_gzip().no_brotli().no_zstd().no_deflate();
        let region = config
            .region
            .clone()
            .or_else(|| variable("AWS_REGION"))
            .or_else(|| variable("AWS_DEFAULT_REGION"))
            .unwrap_or_else(|| REGION.into());
        Ok(Store {
            kind,
            config: config.clone(),
            endpoint: config.endpoint_url().map_err(wrong)?,
            client: client.build().map_err(|error| wrong(error.to_string()))?,
            identity: Identity::new(kind, config, surroundings),
            region: RwLock::new(region.into()),
        })
    }

    pub async fn page(&self, request: &PageRequest<'_>) -> Result<Page, Refusal> {
        let len = request.len.to_string();
        let mut query: Vec<(&str, &[u8])> = match self.kind {
            Kind::S3 | Kind::Gcs => {
                vec![("list-type", b"2"), ("encoding-type", b"url"), ("max-keys", len.as_bytes())]
            }
            Kind::Azure => vec![("restype", b"container"), ("comp", b"list"), ("maxresults", len.as_bytes())],
        };
        if !request.prefix.is_empty() {
            query.push(("prefix", request.prefix));
        }
        if request.is_delimited {
            query.push(("delimiter", b"/"));
        }
        match (request.token, request.after) {
            (Some(token), _) if self.kind == Kind::Azure => query.push(("marker", token.as_bytes())),
            (Some(token), _) => query.push(("continuation-token", token.as_bytes())),
            (None, Some(after)) => query.push(("start-after", after)),
            (None, None) => {}
        }
        let encoded: Vec<String> =
            query.iter().map(|(name, value)| format!("{name}={}", percent_encode(value, IN_QUERY))).collect();
        let mut headers = HeaderMap::new();
        if self.kind == Kind::S3 {
            // Whether an archived object was restored is told only when asked for.
            headers.insert("x-amz-optional-object-attributes", HeaderValue::from_static("RestoreStatus"));
        }
        let mut response = self.send(&format!("?{}", encoded.join("&")), headers).await?;
        let body = body(&mut response, PAGE_LEN_MAX).await?;
        page::parse(&body).map_err(Refusal::transient)
    }

    /// Whether the bucket says that it keeps, or has kept, versions that are not current. Azure has no such question for
    /// whoever reads: there it is what the first page with the prefix shows.
    pub async fn has_older_versions(&self, prefix: &[u8]) -> Result<bool, Refusal> {
        let query = match self.kind {
            Kind::S3 | Kind::Gcs => "?versioning".to_owned(),
            Kind::Azure => {
                let prefix = percent_encode(prefix, IN_QUERY);
                format!(
                    "?restype=container&comp=list&include=snapshots,versions&maxresults={PROBE_LEN}&prefix={prefix}"
                )
            }
        };
        let mut response = self.send(&query, HeaderMap::new()).await?;
        let body = body(&mut response, PAGE_LEN_MAX).await?;
        Ok(page::has_older_versions(&String::from_utf8_lossy(&body)))
    }

    /// Makes one request, to what follows the bucket's address, and gives the answer if it is one.
    async fn send(&self, tail: &str, headers: HeaderMap) -> Result<Response, Refusal> {
        let (mut was_refused, mut was_moved) = (false, false);
        loop {
            let region = Arc::clone(&self.region.read());
            let response = self.send_once(tail, headers.clone(), &region).await?;
            let status = response.status();
            if status.is_success() {
                return Ok(response);
            }
            if !was_moved && self.moved(&response, &region) {
                was_moved = true;
                continue;
            }
            let denied = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
            if denied && !was_refused && self.identity.has_changed(response.url()).await {
                was_refused = true;
                continue;
            }
            return Err(refusal(response).await);
        }
    }

    async fn send_once(&self, tail: &str, headers: HeaderMap, region: &str) -> Result<Response, Refusal> {
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        let address = format!("{}{tail}", self.bucket_address(region));
        *request.uri_mut() =
            address.parse().map_err(|_| Refusal::fatal(Reason::UnsupportedKey, "no valid address"))?;
        *request.headers_mut() = headers;
        if self.kind == Kind::Azure {
            request.headers_mut().insert("x-ms-version", HeaderValue::from_static(AZURE_VERSION));
        }
        let url = |request: &HttpRequest| {
            Url::parse(&request.uri().to_string())
                .map_err(|_| Refusal::fatal(Reason::UnsupportedKey, "no valid address"))
        };
        let asked = url(&request)?;
        self.identity.sign(&mut request, &asked, region).await.map_err(Refusal::identity)?;
        // A signature may be part of the address.
        let url = url(&request)?;
        let sent = self.client.get(url).headers(request.into_parts().0.headers).send().await;
        sent.map_err(Refusal::transport)
    }

    /// The bucket's address, without a slash at its end.
    fn bucket_address(&self, region: &str) -> String {
        let bucket = &self.config.bucket;
        let own = self.endpoint.as_ref().map(|url| url.as_str().trim_end_matches('/'));
        match (self.kind, own) {
            (Kind::Gcs, None) => format!("https://storage.googleapis.com/{bucket}"),
            (Kind::Azure, None) => {
                let account = self.config.account.as_deref().unwrap_or_default();
                format!("https://{account}.blob.core.windows.net/{bucket}")
            }
            (Kind::S3, None) => {
                let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
                // A certificate for `*.s3…` is none for a host with one more dot.
                if self.config.path_style.unwrap_or(bucket.contains('.')) {
                    format!("https://s3.{region}.{domain}/{bucket}")
                } else {
                    format!("https://{bucket}.s3.{region}.{domain}")
                }
            }
            (Kind::S3, Some(own)) if self.config.path_style == Some(false) => {
                own.replacen("://", &format!("://{bucket}."), 1)
            }
            (_, Some(own)) => format!("{own}/{bucket}"),
        }
    }

    /// Whether AWS says that the bucket is in another region, where it is then asked for.
    fn moved(&self, response: &Response, region: &str) -> bool {
        let named = response.headers().get("x-amz-bucket-region").and_then(|value| value.to_str().ok());
        let is_open = self.config.region.is_none() && self.endpoint.is_none();
        match named {
            Some(named) if is_open && named != region && is_name(named).is_ok() => {
                *self.region.write() = named.into();
                true
            }
            _ => false,
        }
    }
}

#[async_trait]
impl RangeSource for Store {
    async fn fetch(
        &self,
        key: &ObjectKey,
        range: Range<u64>,
        version: Option<&str>,
        received: &mut Received,
    ) -> Result<(), Failure> {
        if !is_addressable(key.as_bytes()) {
            return Err(Failure::fatal(Reason::UnsupportedKey, "a segment of its key is `.` or `..`"));
        }
        let mut headers = HeaderMap::new();
        let text = |text: &str| {
            HeaderValue::from_str(text).map_err(|_| Failure::fatal(Reason::ReadError, "odd entity tag"))
        };
        headers.insert(RANGE, text(&format!("bytes={}-{}", range.start, range.end.saturating_sub(1)))?);
        if let Some(version) = version {
            headers.insert(IF_MATCH, text(version)?);
        }
        if self.kind == Kind::Gcs {
            // Or what is stored compressed would be unpacked on the way, and its ranges be those of other bytes.
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let tail = format!("/{}", percent_encode(key.as_bytes(), IN_PATH));
        let mut response = match self.send(&tail, headers).await {
            Ok(response) => response,
            // There is nothing at or after this place.
            Err(Refusal { cause: Cause::BeyondEnd(size), .. })
                if size.is_none_or(|size| size <= range.start) =>
            {
                received.size = received.size.or(size).or((range.start == 0).then_some(0));
                return Ok(());
            }
            Err(refusal) => return Err(refusal.failure),
        };
        note(&response, &range, version, received)?;
        let mut left = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        while let Some(chunk) = response.chunk().await.map_err(|error| Refusal::transport(error).failure)? {
            received.bytes.extend_from_slice(&chunk[..chunk.len().min(left)]);
            left = left.saturating_sub(chunk.len());
        }
        Ok(())
    }
}

/// Notes what an answer says of the whole object, if it is an answer to what was asked.
fn note(
    response: &Response,
    range: &Range<u64>,
    version: Option<&str>,
    received: &mut Received,
) -> Result<(), Failure> {
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    let size = if response.status() == StatusCode::PARTIAL_CONTENT {
        let (first, size) = header(&CONTENT_RANGE)
            .and_then(parse_content_range)
            .ok_or_else(|| Failure::transient("the answer does not say which range it is"))?;
        if first != range.start {
            return Err(Failure::transient("the answer is another range than was asked for"));
        }
        size
    } else if range.start == 0 {
        header(&CONTENT_LENGTH).and_then(|length| length.parse().ok())
    } else {
        return Err(Failure::fatal(Reason::ReadError, "the store does not answer to ranges"));
    };
    let tag = header(&ETAG);
    if let (Some(wanted), Some(tag)) = (version, tag)
        && wanted != tag
    {
        return Err(Failure::fatal(Reason::Changed, "replaced while it was read"));
    }
    received.size = size.or(received.size);
    received.version = tag.map(str::to_owned).or(received.version.take());
    received.tag = tag.and_then(|tag| page::tag_marks(tag).tag);
    Ok(())
}

/// Whether a key can be asked for: addresses with `.` and `..` segments mean others, encoded or not.
pub(super) fn is_addressable(key: &[u8]) -> bool {
    !key.split(|byte| *byte == b'/').any(|segment| matches!(segment, b"." | b".."))
}

/// The first byte and the object's size of `bytes 0-9/100`.
fn parse_content_range(value: &str) -> Option<(u64, Option<u64>)> {
    let (range, size) = value.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, _) = range.split_once('-')?;
    Some((first.parse().ok()?, size.parse().ok()))
}

async fn refusal(mut response: Response) -> Refusal {
    let status = response.status();
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    let retry_after = http::retry_after(response.headers());
    let size = header(&CONTENT_RANGE).and_then(|value| value.strip_prefix("bytes */")?.parse().ok());
    // A description that does not arrive whole is none; the status says enough.
    let body = body(&mut response, ERROR_LEN_MAX).await.unwrap_or_default();
    Refusal::from_status(status, &String::from_utf8_lossy(&body), retry_after, size)
}

async fn body(response: &mut Response, max: usize) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(Refusal::transport)? {
        if bytes.len() + chunk.len() > max {
            return Err(Refusal::fatal(Reason::ReadError, format!("the answer is longer than {max} bytes")));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}
