//! Asking for an address: redirects by hand, each hop judged; the credential only where it belongs; again
//! when a server fails, and no longer than allowed.

use std::sync::OnceLock;
use std::time::Duration;

use domesday_connector::credentials::{Credential, Method as Authentication};
use domesday_connector::http::{client_builder, retry_after};
use domesday_connector::{ConnectorError, Host, Surroundings, remote};
use domesday_content::ObjectError;
use domesday_model::{Backoff, Reason};
use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
use tokio::time::timeout;

use super::config::UrlConfig;
use super::guard::{self, Guard};
use super::private::AllowPrivate;
use super::{address, text};

const REDIRECTS_MAX: usize = 10;
/// Times that an address is asked for.
pub(super) const ATTEMPTS_MAX: u32 = 4;
/// A wait that a server asks for, and that is kept, at most.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// The waits between them where a server says nothing.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(300), WAIT_MAX);
/// How long an answer without content may take.
const HEAD_MAX: Duration = Duration::from_secs(10);
/// What bodies may be packed with: what is recognised by itself, and unpacked within the limits of archives.
const ENCODINGS: &str = "gzip, zstd";

/// Asks for addresses as one data source does.
pub(super) struct Fetcher {
    allow_private: AllowPrivate,
    authentication: Authentication,
    /// Addresses whose hosts are told who asks.
    named: Vec<Url>,
    surroundings: Surroundings,
    pub timeout: Duration,
    pub max_size: u64,
    /// Made when first used: that a configuration is checked must cost nothing.
    client: OnceLock<Client>,
    pub backoff: Backoff,
}

/// An answer, and the address it came from in the end.
pub(super) struct Fetched {
    pub response: Response,
    pub address: Url,
    /// Whether the credential was sent along.
    pub is_authenticated: bool,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum FetchError {
    /// Asking again does not help.
    Final { error: ObjectError, status: Option<StatusCode>, is_authenticated: bool },
    /// Asking again may help, not before the time that the server says.
    Passing { error: ObjectError, after: Option<Duration> },
    /// The credential cannot be had.
    Credential(ConnectorError),
}

impl FetchError {
    pub fn into_object_error(self) -> ObjectError {
        match self {
            FetchError::Final { error, .. } | FetchError::Passing { error, .. } => error,
            FetchError::Credential(error) => ObjectError::new(error.reason(), error.to_string()),
        }
    }

    /// For a container whose listing needs the answer.
    pub fn into_connector_error(self) -> ConnectorError {
        match self {
            FetchError::Final { error, is_authenticated: true, .. }
                if error.reason == Reason::PermissionDenied =>
            {
                ConnectorError::Denied { detail: error.detail }
            }
            FetchError::Passing { error, after: Some(after) } => {
                ConnectorError::Wait { after, detail: error.detail }
            }
            FetchError::Final { error, .. } | FetchError::Passing { error, .. } => {
                ConnectorError::Container { reason: error.reason, detail: error.detail }
            }
            FetchError::Credential(error) => error,
        }
    }
}

impl Fetcher {
    pub fn new(
        config: &UrlConfig,
        authentication: Authentication,
        surroundings: Surroundings,
    ) -> Result<Fetcher, String> {
        let named = config.named();
        if authentication != Authentication::Unauthenticated {
            if named.is_empty() {
                return Err(
                    "field `authentication`: give the `addresses` that the credential is for".to_owned()
                );
            }
            if let Some(url) = named.iter().find(|url| !is_confidential(url)) {
                let host = url.host_str().unwrap_or_default();
                return Err(format!(
                    "field `authentication`: a credential is sent over https only, not to {host}"
                ));
            }
        }
        Ok(Fetcher {
            allow_private: config.allow_private.clone(),
            authentication,
            named,
            surroundings,
            timeout: config.timeout(),
            max_size: config.max_size(),
            client: OnceLock::new(),
            backoff: BACKOFF,
        })
    }

    #[cfg(test)]
    pub fn hasty(self) -> Fetcher {
        let soon = Duration::from_millis(1);
        Fetcher { backoff: Backoff::new(soon, soon), ..self }
    }

    /// Asks a host of this name at this address, whatever the name means elsewhere.
    #[cfg(test)]
    pub fn with_host(self, name: &str, at: std::net::SocketAddr) -> Fetcher {
        let client = client_builder()
            .no_proxy()
            .dns_resolver(Guard(AllowPrivate::Nothing))
            .resolve(name, at)
            .build()
            .unwrap();
        Fetcher { client: OnceLock::from(client), ..self }
    }

    /// Sends every request through this proxy.
    #[cfg(test)]
    pub fn through(self, proxy: &str) -> Fetcher {
        let client = client_builder().proxy(reqwest::Proxy::all(proxy).unwrap()).build().unwrap();
        Fetcher { client: OnceLock::from(client), allow_private: AllowPrivate::Private, ..self }
    }

    /// An answer that is well, within the time. Asks again, and waits as long as the server wants, within
    /// limits.
    pub async fn get(&self, method: Method, address: &Url) -> Result<Fetched, FetchError> {
        self.get_within(self.timeout, method, address).await
    }

    /// The same in less time.
    pub async fn get_within(
        &self,
        time: Duration,
        method: Method,
        address: &Url,
    ) -> Result<Fetched, FetchError> {
        match timeout(time, self.get_patiently(method, address)).await {
            Ok(fetched) => fetched,
            Err(_) => Err(passing(address, &format!("no answer within {} s", self.timeout.as_secs()))),
        }
    }

    /// What an answer would say of itself, if that is to be had at once.
    pub async fn head(&self, address: &Url) -> Result<Fetched, FetchError> {
        match timeout(HEAD_MAX, self.follow(&Method::HEAD, address)).await {
            Ok(fetched) => fetched,
            Err(_) => Err(passing(address, "no answer")),
        }
    }

    async fn get_patiently(&self, method: Method, address: &Url) -> Result<Fetched, FetchError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let wait = match self.follow(&method, address).await {
                Err(FetchError::Passing { error, after }) => match after {
                    _ if attempt == ATTEMPTS_MAX => return Err(FetchError::Passing { error, after }),
                    Some(wait) if wait > WAIT_MAX => return Err(FetchError::Passing { error, after }),
                    after => after.unwrap_or_else(|| self.backoff.after(attempt)),
                },
                done => return done,
            };
            remote::rest(wait).await;
        }
    }

    /// One request, and those it is sent on to.
    async fn follow(&self, method: &Method, address: &Url) -> Result<Fetched, FetchError> {
        let mut address = address.clone();
        let mut is_authenticated = self.is_named(&address);
        for _ in 0..=REDIRECTS_MAX {
            let response = self.ask(method, &address, is_authenticated).await?;
            let status = response.status();
            if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
                let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
                let to = to.and_then(|to| address.join(to).ok()).and_then(address::normal);
                let to = to.ok_or_else(|| refusal(&address, "redirects to what is no web address"))?;
                // Whoever was asked without the credential has no say in where it is sent.
                is_authenticated &= to.origin() == address.origin();
                address = to;
                continue;
            }
            judge(&address, &response, is_authenticated)?;
            return Ok(Fetched { response, address, is_authenticated });
        }
        Err(refusal(&address, &format!("redirects more than {REDIRECTS_MAX} times")))
    }

    async fn ask(
        &self,
        method: &Method,
        address: &Url,
        is_authenticated: bool,
    ) -> Result<Response, FetchError> {
        guard::check(address, &self.allow_private)
            .map_err(|refused| denied(address, &refused.to_string()))?;
        let request = self.client(address)?.request(method.clone(), address.clone());
        let request = request.header(ACCEPT_ENCODING, ENCODINGS);
        let request = if is_authenticated { self.authorise(request, address).await? } else { request };
        request.send().await.map_err(|error| match guard::refused_by(&error) {
            Some(refused) => denied(address, &refused.to_string()),
            None => passing(address, &text::describe(&error)),
        })
    }

    /// Whether the credential is for this address: it is on one of the hosts that were configured.
    fn is_named(&self, address: &Url) -> bool {
        self.authentication != Authentication::Unauthenticated
            && self.named.iter().any(|named| named.origin() == address.origin())
    }

    /// The credential is fetched for every request, so that a new one holds from the next on.
    async fn authorise(&self, request: RequestBuilder, address: &Url) -> Result<RequestBuilder, FetchError> {
        let credential = self.surroundings.credential(self.authentication, &Host::of_url(address)).await;
        Ok(match credential.map_err(FetchError::Credential)? {
            Credential::Basic { user, password } => {
                request.basic_auth(user, Some(String::from_utf8_lossy(password.expose())))
            }
            Credential::Bearer { token } => {
                let value = HeaderValue::from_bytes(&[b"Bearer ", token.expose()].concat());
                let mut value = value.map_err(|_| {
                    let detail = "the credential has characters that no token has".to_owned();
                    FetchError::Credential(ConnectorError::Denied { detail })
                })?;
                value.set_sensitive(true);
                request.header(AUTHORIZATION, value)
            }
            _ => request,
        })
    }

    fn client(&self, address: &Url) -> Result<&Client, FetchError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let builder = client_builder().dns_resolver(Guard(self.allow_private.clone()));
        let builder = match self.allow_private {
            AllowPrivate::Private => builder,
            // A proxy would look names up for us, and reach what it likes.
            AllowPrivate::Nothing | AllowPrivate::Ranges(_) => builder.no_proxy(),
        };
        let client = builder.build().map_err(|error| passing(address, &error.to_string()))?;
        Ok(self.client.get_or_init(|| client))
    }
}

/// Whether what is sent there is read by nobody else.
fn is_confidential(url: &Url) -> bool {
    url.scheme() == "https" || matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

/// Whether an answer is the content that was asked for.
fn judge(address: &Url, response: &Response, is_authenticated: bool) -> Result<(), FetchError> {
    let status = response.status();
    let said = format!("{address}: answers {status}");
    if status.is_success() {
        return match packed(response.headers()) {
            None => Ok(()),
            Some(other) => {
                Err(refusal(address, &format!("is packed with `{other}`, which was not asked for")))
            }
        };
    }
    if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
        let error = ObjectError::new(Reason::Unavailable, said);
        return Err(FetchError::Passing { error, after: retry_after(response.headers()) });
    }
    let reason = match status.as_u16() {
        401 | 403 | 407 | 451 => Reason::PermissionDenied,
        404 | 410 => Reason::Vanished,
        _ => Reason::ReadError,
    };
    let said = match (reason, is_authenticated) {
        (Reason::PermissionDenied, true) => format!("{said}; check the credential and what it may read"),
        (Reason::PermissionDenied, false) if status == StatusCode::UNAUTHORIZED => {
            format!(
                "{said}; give it a credential (`user:password`, or a token with `authentication` `bearer`)"
            )
        }
        _ => said,
    };
    Err(FetchError::Final { error: ObjectError::new(reason, said), status: Some(status), is_authenticated })
}

/// What an answer is packed with, if that cannot be read. Only a name is told: a server may say anything there.
fn packed(headers: &HeaderMap) -> Option<String> {
    let packed = headers.get_all(CONTENT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let mut names = packed.flat_map(|names| names.split(',')).map(|name| name.trim().to_ascii_lowercase());
    let other = names.find(|name| !matches!(name.as_str(), "" | "identity" | "gzip" | "x-gzip" | "zstd"))?;
    let is_known = matches!(other.as_str(), "br" | "deflate" | "compress" | "x-compress" | "dcb" | "dcz");
    Some(if is_known { other } else { "something else".to_owned() })
}

pub(super) fn passing(address: &Url, detail: &str) -> FetchError {
    let error = ObjectError::new(Reason::Unavailable, format!("{address}: {detail}"));
    FetchError::Passing { error, after: None }
}

fn refusal(address: &Url, detail: &str) -> FetchError {
    let error = ObjectError::new(Reason::ReadError, format!("{address} {detail}"));
    FetchError::Final { error, status: None, is_authenticated: false }
}

fn denied(address: &Url, detail: &str) -> FetchError {
    let error = ObjectError::new(Reason::PermissionDenied, format!("{address}: {detail}"));
    FetchError::Final { error, status: None, is_authenticated: false }
}
