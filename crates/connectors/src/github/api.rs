//! Asking GitHub's REST API: with the credential of the moment, as often as it takes, and no more than it
//! lets us.
//!
//! A credential goes to the configured API only: links and redirects to anywhere else are refused. What was
//! asked before is asked for with its entity tag, and an answer that nothing changed costs nothing of the
//! rate limit.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use domesday_connector::credentials::{Credential, Method};
use domesday_connector::http::{Certificates, client_builder};
use domesday_connector::{ConnectorError, Host, Surroundings, remote};
use domesday_model::{Backoff, Reason};
use parking_lot::Mutex;
use reqwest::header::{ACCEPT, AUTHORIZATION, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH, LINK, LOCATION};
use reqwest::{Client, RequestBuilder, StatusCode, Url};

use super::config::KIND;
use super::limits::{self, message};
use super::lru::Lru;
use super::repository::Repository;

/// Bytes of an answer; a page of a hundred repositories has less than one million.
const BODY_BYTES_MAX: usize = 16 << 20;
/// How long one request may take, its answer included.
const REQUEST_MAX: Duration = Duration::from_secs(120);
/// Times that a request is sent.
const ATTEMPTS_MAX: u32 = 5;
/// The waits between them.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(150), Duration::from_secs(8));
/// A rate limit that is over sooner than this is slept out.
const SLEEP_MAX: Duration = Duration::from_secs(5);
const REDIRECTS_MAX: usize = 5;
/// Pages whose content is kept: some 50 KB each.
const PAGES_KEPT: usize = 64;

/// The API, as one data source asks it.
pub(super) struct Api {
    base: Url,
    method: Method,
    surroundings: Surroundings,
    certificates: Certificates,
    /// Made when first used: that a configuration is checked must cost nothing.
    client: OnceLock<Client>,
    pages: Mutex<Lru<String, Arc<Kept>>>,
    /// Answers in a row that told of a rate limit.
    limited: AtomicU32,
    backoff: Backoff,
}

/// Repositories of one answer, and where there are more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Page {
    pub repositories: Vec<Repository>,
    pub next: Option<String>,
}

/// A page as it was when it had this entity tag.
struct Kept {
    etag: HeaderValue,
    page: Arc<Page>,
}

/// An answer that is not a limit, nor a failure of the server: these are waited for.
pub(super) struct Answer {
    pub status: StatusCode,
    headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Api {
    pub fn new(base: Url, method: Method, certificates: Certificates, surroundings: Surroundings) -> Api {
        Api {
            base,
            method,
            surroundings,
            certificates,
            client: OnceLock::new(),
            pages: Mutex::new(Lru::new(PAGES_KEPT)),
            limited: AtomicU32::new(0),
            backoff: BACKOFF,
        }
    }

    #[cfg(test)]
    pub fn hasty(self) -> Api {
        let soon = Duration::from_millis(1);
        Api { backoff: Backoff::new(soon, soon), ..self }
    }

    pub fn is_authenticated(&self) -> bool {
        self.method != Method::Unauthenticated
    }

    /// An address of the API. `path` has no slash in front.
    pub fn address(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// The repositories at an address, whether one or a list of them; `Err` inside for what the API refused.
    pub async fn page(&self, address: &str) -> Result<Result<Arc<Page>, Answer>, ConnectorError> {
        let kept = self.pages.lock().get(&address.to_owned());
        let answer = self.get(address, kept.as_ref().map(|kept| &kept.etag)).await?;
        if let (StatusCode::NOT_MODIFIED, Some(kept)) = (answer.status, kept) {
            return Ok(Ok(Arc::clone(&kept.page)));
        }
        if answer.status != StatusCode::OK {
            return Ok(Err(answer));
        }
        let repositories = Repository::read(&answer.body)
            .ok_or_else(|| failed(address, "the answer is not a list of repositories".to_owned()))?;
        let next =
            next_link(&answer.headers).map(|next| self.same_api(&next).map(String::from)).transpose()?;
        let page = Arc::new(Page { repositories, next });
        if let Some(etag) = answer.headers.get(ETAG) {
            let kept = Kept { etag: etag.clone(), page: Arc::clone(&page) };
            self.pages.lock().put(address.to_owned(), Arc::new(kept));
        }
        Ok(Ok(page))
    }

    /// Asks, follows redirects within the API, waits for short limits and for a server that fails.
    pub async fn get(&self, address: &str, etag: Option<&HeaderValue>) -> Result<Answer, ConnectorError> {
        let mut address = self.same_api(address)?;
        for _ in 0..=REDIRECTS_MAX {
            let answer = self.get_patiently(&address, etag).await?;
            let location = match answer.status.as_u16() {
                301 | 302 | 307 | 308 => answer.headers.get(LOCATION).and_then(|to| to.to_str().ok()),
                _ => return Ok(answer),
            };
            let to = location.and_then(|to| address.join(to).ok());
            let to = to.ok_or_else(|| failed(address.as_str(), "a redirect leads nowhere".to_owned()))?;
            address = self.same_api(to.as_str())?;
        }
        Err(failed(address.as_str(), format!("more than {REDIRECTS_MAX} redirects")))
    }

    async fn get_patiently(
        &self,
        address: &Url,
        etag: Option<&HeaderValue>,
    ) -> Result<Answer, ConnectorError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let is_last = attempt == ATTEMPTS_MAX;
            let wait = match self.get_once(address, etag).await? {
                Ok(answer) if answer.status == StatusCode::UNAUTHORIZED => return Err(self.unauthorised()),
                Ok(answer) if answer.status.is_server_error() && is_last => {
                    let detail = format!("{address}: github answers {}", answer.status);
                    return Err(ConnectorError::unavailable(detail));
                }
                Err(error) if is_last => {
                    return Err(ConnectorError::unavailable(format!("{address}: {error}")));
                }
                Ok(answer) if answer.status.is_server_error() => self.backoff.after(attempt),
                Err(_) => self.backoff.after(attempt),
                Ok(answer) => match self.limit(&answer) {
                    None => return Ok(answer),
                    Some(limit) if limit.after > SLEEP_MAX || is_last => {
                        return Err(ConnectorError::Wait { after: limit.after, detail: limit.detail });
                    }
                    Some(limit) => limit.after,
                },
            };
            remote::rest(wait).await;
        }
    }

    /// One request; inside, why it got no whole answer.
    async fn get_once(
        &self,
        address: &Url,
        etag: Option<&HeaderValue>,
    ) -> Result<Result<Answer, String>, ConnectorError> {
        let mut request = self.client()?.get(address.clone()).timeout(REQUEST_MAX);
        request = request.header(ACCEPT, "application/vnd.github+json");
        request = request.header("x-github-api-version", "2022-11-28");
        if let Some(etag) = etag {
            request = request.header(IF_NONE_MATCH, etag);
        }
        let request = self.authorise(request, address).await?;
        Ok(fetch(request).await)
    }

    /// The credential is fetched for every request, so that a new one holds from the next on.
    async fn authorise(
        &self,
        request: RequestBuilder,
        address: &Url,
    ) -> Result<RequestBuilder, ConnectorError> {
        let token = match self.surroundings.credential(self.method, &Host::of_url(address)).await? {
            Credential::Github { token } | Credential::Bearer { token } => token,
            Credential::Basic { user, password } => {
                return Ok(request.basic_auth(user, Some(String::from_utf8_lossy(password.expose()))));
            }
            _ => return Ok(request),
        };
        let value = HeaderValue::from_bytes(&[b"Bearer ", token.expose()].concat());
        let mut value = value.map_err(|_| ConnectorError::Denied {
            detail: "the credential has characters that no token of github's has".to_owned(),
        })?;
        value.set_sensitive(true);
        Ok(request.header(AUTHORIZATION, value))
    }

    fn limit(&self, answer: &Answer) -> Option<limits::Limit> {
        let earlier = self.limited.load(Ordering::Relaxed);
        let limit = limits::limit(answer.status, &answer.headers, &answer.body, earlier);
        let in_a_row = if limit.is_some() { earlier.saturating_add(1) } else { 0 };
        self.limited.store(in_a_row, Ordering::Relaxed);
        limit
    }

    /// The address, if it is one of this API's.
    fn same_api(&self, address: &str) -> Result<Url, ConnectorError> {
        match Url::parse(address) {
            Ok(url) if url.origin() == self.base.origin() => Ok(url),
            _ => Err(failed(self.base.as_str(), format!("an answer leads away from the api, to {address}"))),
        }
    }

    fn unauthorised(&self) -> ConnectorError {
        let detail = match self.is_authenticated() {
            true => {
                "github does not accept the credential: it is wrong, has expired or was revoked; renew it"
            }
            false => "github answers only to those it knows here: give the data source a credential",
        };
        ConnectorError::Denied { detail: detail.to_owned() }
    }

    fn client(&self) -> Result<&Client, ConnectorError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let wrong = |detail| ConnectorError::Configuration { kind: KIND, detail };
        let builder = self.certificates.apply(client_builder()).map_err(wrong)?;
        let client = builder.build().map_err(|error| failed(self.base.as_str(), error.to_string()))?;
        Ok(self.client.get_or_init(|| client))
    }
}

impl Answer {
    /// In words of the book.
    pub fn reason(&self) -> Reason {
        match self.status.as_u16() {
            403 | 451 => Reason::PermissionDenied,
            404 | 410 => Reason::Vanished,
            _ => Reason::ReadError,
        }
    }

    /// What the API said, for people.
    pub fn describe(&self) -> String {
        if self.headers.contains_key("x-github-sso") {
            return "the token must be authorised for the organisation's single sign-on".to_owned();
        }
        match message(&self.body).as_str() {
            "" => format!("github answers {}", self.status),
            said => format!("github answers {}: {}", self.status, said.escape_debug()),
        }
    }
}

async fn fetch(request: RequestBuilder) -> Result<Answer, String> {
    let told = |error: reqwest::Error| describe_error(&error);
    let mut response = request.send().await.map_err(told)?;
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.map_err(told)? {
        if body.len() + bytes.len() > BODY_BYTES_MAX {
            return Err(format!("the answer has more than {BODY_BYTES_MAX} bytes"));
        }
        body.extend_from_slice(&bytes);
    }
    Ok(Answer { status: response.status(), headers: response.headers().clone(), body })
}

/// An error with what caused it: the outermost says little.
fn describe_error(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

fn failed(address: &str, detail: String) -> ConnectorError {
    ConnectorError::Container { reason: Reason::ReadError, detail: format!("{address}: {detail}") }
}

/// The target of `rel="next"` in `Link: <https://…>; rel="next", <https://…>; rel="last"`.
fn next_link(headers: &HeaderMap) -> Option<String> {
    let links = headers.get_all(LINK).iter().filter_map(|value| value.to_str().ok());
    let mut targets = links.flat_map(|links| links.split('<').skip(1));
    targets.find_map(|link| {
        let (target, parameters) = link.split_once('>')?;
        parameters.contains("rel=\"next\"").then(|| target.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_found_among_links() {
        for (link, expected) in [
            (
                "<https://a/?page=2>; rel=\"next\", <https://a/?page=9>; rel=\"last\"",
                Some("https://a/?page=2"),
            ),
            ("<https://a/?page=1>; rel=\"prev\", <https://a/?x=1,2>; rel=\"next\"", Some("https://a/?x=1,2")),
            ("<https://a/?page=1>; rel=\"first\"", None),
            ("nonsense", None),
        ] {
            let headers = [(LINK, HeaderValue::from_str(link).unwrap())].into_iter().collect();
            assert_eq!(next_link(&headers).as_deref(), expected, "{link}");
        }
    }
}
