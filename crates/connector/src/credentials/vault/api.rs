//! Vault's HTTP interface: the two requests that are needed, and what each answer means. Nothing of an answer
//! is quoted, whoever gave it.

use std::fs;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderValue, LOCATION};
use reqwest::{Certificate, Client, Method, RequestBuilder, Response, StatusCode, Url};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::super::{CredentialError, CredentialReference, SECRET_LEN_MAX, Secret};
use super::{Place, VaultSettings};

/// Bytes of an answer: the longest secret, with every byte escaped, and what is around it.
const ANSWER_LEN_MAX: usize = 6 * SECRET_LEN_MAX + (64 << 10);

/// What came of reading a secret.
pub(super) enum Answer {
    Data(Value),
    /// By the token's policies, or because there is no such token any more.
    Denied,
}

pub(super) fn client(
    settings: &VaultSettings,
    reference: &CredentialReference,
    answer_time_max: Duration,
) -> Result<Client, CredentialError> {
    let mut builder = crate::http::client_builder().timeout(answer_time_max);
    if let Some(path) = &settings.certificates {
        let unusable = |why: String| reference.unavailable(format!("VAULT_CACERT: {why}"));
        let text = fs::read(path).map_err(|error| unusable(error.to_string()))?;
        let certificates =
            Certificate::from_pem_bundle(&text).map_err(|error| unusable(error.to_string()))?;
        builder = builder.tls_certs_only(certificates);
    }
    builder.build().map_err(|error| reference.unavailable(format!("no HTTP client: {error}")))
}

pub(super) struct Api<'a> {
    client: &'a Client,
    base: Url,
    namespace: Option<&'a str>,
    reference: &'a CredentialReference,
}

impl<'a> Api<'a> {
    pub(super) fn new(
        client: &'a Client,
        settings: &'a VaultSettings,
        reference: &'a CredentialReference,
    ) -> Result<Api<'a>, CredentialError> {
        let base = Url::parse(&settings.address).ok();
        let Some(base) = base.filter(|url| matches!(url.scheme(), "https" | "http") && url.has_host()) else {
            return Err(reference.unavailable("VAULT_ADDR is not an address: begin it with https://"));
        };
        Ok(Api { client, base, namespace: settings.namespace.as_deref(), reference })
    }

    /// Logs in with an AppRole. The token, and how long it lasts; zero is for ever.
    pub(super) async fn login(
        &self,
        role_id: &str,
        secret_id: &Secret,
    ) -> Result<(Secret, Duration), CredentialError> {
        let secret_id = String::from_utf8_lossy(secret_id.expose());
        let body = Zeroizing::new(json!({ "role_id": role_id, "secret_id": secret_id }).to_string());
        let url = self.url(&["auth", "approle", "login"]);
        let response = self.send(Method::POST, url, HeaderMap::new(), Some(&body)).await?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::BAD_REQUEST | StatusCode::FORBIDDEN => {
                return Err(self.reference.unavailable(
                    "vault does not accept the AppRole: check VAULT_ROLE_ID and VAULT_SECRET_ID, which may have \
                     expired or been used up",
                ));
            }
            status => return Err(self.unexpected(status)),
        }
        let answer = self.json(response).await?;
        let auth = &answer["auth"];
        match auth["client_token"].as_str() {
            Some(token) if !token.is_empty() => {
                let lease = Duration::from_secs(auth["lease_duration"].as_u64().unwrap_or(0));
                Ok((Secret::new(token.as_bytes().to_vec()), lease))
            }
            _ => Err(self.not_vault()),
        }
    }

    /// The latest version of a secret.
    pub(super) async fn read(&self, place: &Place<'_>, token: &Secret) -> Result<Answer, CredentialError> {
        let mut segments: Vec<&str> = place.mount.split('/').collect();
        segments.push("data");
        segments.extend(place.path.split('/'));
        let Ok(mut header) = HeaderValue::from_bytes(token.expose()) else {
            return Err(self.reference.unavailable("the vault token has a line break or other bytes in it"));
        };
        header.set_sensitive(true);
        let headers = HeaderMap::from_iter([(TOKEN_HEADER, header)]);
        let response = self.send(Method::GET, self.url(&segments), headers, None).await?;
        match response.status() {
            StatusCode::OK => {
                let mut answer = self.json(response).await?;
                match answer["data"]["data"].take() {
                    data @ Value::Object(_) => Ok(Answer::Data(data)),
                    _ => Err(self.not_vault()),
                }
            }
            StatusCode::FORBIDDEN => Ok(Answer::Denied),
            StatusCode::NOT_FOUND => Err(self.absent(response, place).await),
            status => Err(self.unexpected(status)),
        }
    }

    fn url(&self, segments: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            // Each is escaped, whatever is in it.
            path.pop_if_empty().push("v1").extend(segments);
        }
        url
    }

    /// Sends a request; to the node that is active, if this one says that it is another.
    async fn send(
        &self,
        method: Method,
        url: Url,
        headers: HeaderMap,
        body: Option<&str>,
    ) -> Result<Response, CredentialError> {
        let request = |url: Url| -> RequestBuilder {
            let mut request = self.client.request(method.clone(), url).headers(headers.clone());
            request = request.header("X-Vault-Request", "true");
            if let Some(namespace) = self.namespace {
                request = request.header("X-Vault-Namespace", namespace);
            }
            match body {
                Some(body) => request.header("Content-Type", "application/json").body(body.to_owned()),
                None => request,
            }
        };
        // An error of the client's may quote the address, which has no secret in it.
        let failed = |error: reqwest::Error| {
            let what = if error.is_timeout() { "does not answer in time" } else { "cannot be reached" };
            self.reference.unavailable_now(format!("vault {what}: {}", root_cause(&error)))
        };
        let response = request(url.clone()).send().await.map_err(failed)?;
        if response.status() != StatusCode::TEMPORARY_REDIRECT {
            return Ok(response);
        }
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        match location.and_then(|location| url.join(location).ok()) {
            // Not from https to http: the token would travel in the clear.
            Some(active) if active.scheme() == url.scheme() => request(active).send().await.map_err(failed),
            _ => Err(self.unexpected(response.status())),
        }
    }

    async fn json(&self, mut response: Response) -> Result<Value, CredentialError> {
        let mut body = Zeroizing::new(Vec::new());
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() > ANSWER_LEN_MAX => {
                    return Err(self.reference.unavailable("vault's answer is too long for a secret"));
                }
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(error) => {
                    let detail = format!("vault's answer was cut short: {}", root_cause(&error));
                    return Err(self.reference.unavailable_now(detail));
                }
            }
        }
        serde_json::from_slice(&body).map_err(|_| self.not_vault())
    }

    /// Vault answers "not found" also when the latest version was deleted, with its metadata.
    async fn absent(&self, response: Response, place: &Place<'_>) -> CredentialError {
        let answer = match self.json(response).await {
            Ok(answer) => answer,
            Err(error) if error.is_retryable() => return error,
            Err(_) => Value::Null,
        };
        let metadata = &answer["data"]["metadata"];
        if metadata["destroyed"] == Value::Bool(true) {
            return self.reference.unavailable("its latest version is destroyed: write a new one");
        }
        if metadata["deletion_time"].as_str().is_some_and(|time| !time.is_empty()) {
            return self
                .reference
                .unavailable("its latest version is deleted: undelete it, or write a new one");
        }
        let (mount, path) = (place.mount, place.path);
        self.reference.unavailable(format!(
            "there is no secret `{path}` in the key-value store (version 2) mounted at `{mount}`"
        ))
    }

    fn unexpected(&self, status: StatusCode) -> CredentialError {
        let detail = match status.as_u16() {
            503 => "vault is sealed or in maintenance".to_owned(),
            429 | 472 | 473 => "vault is on standby or asks to be left alone".to_owned(),
            412 => "vault has not caught up yet".to_owned(),
            500..=599 => format!("vault failed with status {status}"),
            _ => {
                let detail = format!("vault answers with status {status}: check VAULT_ADDR and the mount");
                return self.reference.unavailable(detail);
            }
        };
        self.reference.unavailable_now(detail)
    }

    fn not_vault(&self) -> CredentialError {
        self.reference.unavailable(
            "the answer is not one of vault's key-value store, version 2: check VAULT_ADDR and the mount",
        )
    }
}

const TOKEN_HEADER: reqwest::header::HeaderName = reqwest::header::HeaderName::from_static("x-vault-token");

/// The innermost error: what happened, without the layers around it.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
