//! Why a store did not answer, told from statuses and error codes, and what follows from it for objects and for
//! containers.

use std::time::Duration;

use domesday_connector::ConnectorError;
use domesday_connector::remote::Failure;
use domesday_model::Reason;
use reqwest::StatusCode;

/// How long a listing waits when a store is busy and does not say how long.
const BUSY_WAIT: Duration = Duration::from_secs(30);
/// Characters of an error's description that are told on.
const MESSAGE_LEN_MAX: usize = 300;

/// What a refusal means beyond its reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Cause {
    /// The store asks for fewer requests.
    Busy,
    /// The credential is wrong, or may not do this.
    Denied,
    /// The range begins at the object's end or beyond; the object's size, if it is told.
    BeyondEnd(Option<u64>),
    Other,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Refusal {
    pub cause: Cause,
    pub failure: Failure,
}

impl Refusal {
    pub fn fatal(reason: Reason, detail: impl Into<String>) -> Refusal {
        Refusal { cause: Cause::Other, failure: Failure::fatal(reason, detail) }
    }

    pub fn transient(detail: impl Into<String>) -> Refusal {
        Refusal { cause: Cause::Other, failure: Failure::transient(detail) }
    }

    /// A connection that failed or broke. The address is left out: it may hold a secret.
    pub fn transport(error: reqwest::Error) -> Refusal {
        let error = error.without_url();
        let mut detail = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(error) = source {
            detail = format!("{detail}: {error}");
            source = error.source();
        }
        Refusal::transient(detail)
    }

    /// A request that could not be signed.
    pub fn identity(error: ConnectorError) -> Refusal {
        let (reason, is_transient) = match &error {
            ConnectorError::Credential(error) if error.is_retryable() => (Reason::Unavailable, true),
            _ => (Reason::PermissionDenied, false),
        };
        let failure = Failure { is_transient, ..Failure::fatal(reason, error.to_string()) };
        Refusal { cause: Cause::Denied, failure }
    }

    pub fn from_status(
        status: StatusCode,
        body: &str,
        retry_after: Option<Duration>,
        size: Option<u64>,
    ) -> Refusal {
        let code = element(body, "Code").unwrap_or_default();
        let (cause, reason, is_transient) = match (status.as_u16(), code) {
            (_, "SlowDown" | "ServerBusy" | "TooManyRequests") | (429 | 503, _) => {
                (Cause::Busy, Reason::Unavailable, true)
            }
            (_, "RequestTimeout" | "InternalError") | (408 | 500..=599, _) => {
                (Cause::Other, Reason::Unavailable, true)
            }
            (_, "InvalidObjectState" | "BlobArchived" | "BlobBeingRehydrated") => {
                (Cause::Other, Reason::Archived, false)
            }
            (401 | 403, _)
            | (_, "ExpiredToken" | "InvalidToken" | "InvalidAccessKeyId" | "AuthorizationHeaderMalformed") => {
                (Cause::Denied, Reason::PermissionDenied, false)
            }
            (404 | 410, _) => (Cause::Other, Reason::Vanished, false),
            (412, _) => (Cause::Other, Reason::Changed, false),
            (416, _) => (Cause::BeyondEnd(size), Reason::Changed, false),
            _ => (Cause::Other, Reason::ReadError, false),
        };
        let failure =
            Failure { is_transient, retry_after, ..Failure::fatal(reason, describe(status, code, body)) };
        Refusal { cause, failure }
    }

    /// What this means for a container that was being listed.
    pub fn into_connector_error(self) -> ConnectorError {
        let Failure { error, is_transient, retry_after } = self.failure;
        match self.cause {
            Cause::Busy => {
                ConnectorError::Wait { after: retry_after.unwrap_or(BUSY_WAIT), detail: error.detail }
            }
            Cause::Denied if !is_transient => ConnectorError::Denied { detail: error.detail },
            Cause::Denied | Cause::BeyondEnd(_) | Cause::Other => {
                ConnectorError::Container { reason: error.reason, detail: error.detail }
            }
        }
    }
}

/// One line for people. Redirects say where a bucket is, and nothing else does.
fn describe(status: StatusCode, code: &str, body: &str) -> String {
    let message = element(body, "Message").unwrap_or_default().replace(['\n', '\r'], " ");
    let message: String = message.trim().chars().take(MESSAGE_LEN_MAX).collect();
    let mut detail = format!("the store answered {}", status.as_u16());
    for part in [code, &message].into_iter().filter(|part| !part.is_empty()) {
        detail = format!("{detail}: {part}");
    }
    if matches!(status.as_u16(), 401 | 403) {
        detail.push_str("; check the credential, and that it may list and read this bucket");
    }
    if status.is_redirection() {
        detail.push_str("; set `region` or `endpoint` to where the bucket is");
    }
    detail
}

/// The text of the first element of this name.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(text, _)| text)
}
