//! What can go wrong when a data source is read.

use std::io;
use std::time::Duration;

use domesday_model::Reason;

use crate::credentials::CredentialError;

#[derive(Debug, thiserror::Error)]
pub enum ConnectorError {
    /// This container cannot be listed; others may. Whether trying again later may help, the reason says
    /// ([`Reason::may_pass`]).
    #[error("{detail}")]
    Container { reason: Reason, detail: String },
    /// The source asks to be left alone for a while, as with a rate limit: what was listed so far holds, and
    /// the listing goes on then. Nobody's fault, and no attempt is counted.
    #[error("{detail}; waiting {} s", .after.as_secs())]
    Wait { after: Duration, detail: String },
    /// The source does not let us in: the credential is wrong, has expired, or may not do this.
    #[error("{detail}")]
    Denied { detail: String },
    /// The configuration is wrong; trying again will not help.
    #[error("configuration of the {kind} data source: {detail}")]
    Configuration { kind: &'static str, detail: String },
    #[error("no connector for data sources of kind `{0}`; known: {1}")]
    UnknownKind(String, String),
    #[error("field `credential`: {0}")]
    Credential(#[from] CredentialError),
}

impl ConnectorError {
    /// Why, in the words the book uses.
    pub fn reason(&self) -> Reason {
        match self {
            ConnectorError::Container { reason, .. } => *reason,
            ConnectorError::Denied { .. } | ConnectorError::Credential(CredentialError::Forbidden { .. }) => {
                Reason::PermissionDenied
            }
            ConnectorError::Wait { .. } => Reason::Unavailable,
            ConnectorError::Credential(error) if error.is_retryable() => Reason::Unavailable,
            ConnectorError::Configuration { .. }
            | ConnectorError::UnknownKind(..)
            | ConnectorError::Credential(_) => Reason::ReadError,
        }
    }

    /// Whether trying again later may help.
    pub fn is_retryable(&self) -> bool {
        match self {
            ConnectorError::Container { reason, .. } => reason.may_pass(),
            ConnectorError::Wait { .. } => true,
            ConnectorError::Denied { .. }
            | ConnectorError::Configuration { .. }
            | ConnectorError::UnknownKind(..) => false,
            ConnectorError::Credential(error) => error.is_retryable(),
        }
    }

    /// An IO error while `what` was read.
    pub fn io(what: &str, error: &io::Error) -> ConnectorError {
        ConnectorError::Container { reason: io_reason(error), detail: format!("{what}: {error}") }
    }

    /// A source that did not answer, or broke off.
    pub fn unavailable(detail: impl Into<String>) -> ConnectorError {
        ConnectorError::Container { reason: Reason::Unavailable, detail: detail.into() }
    }
}

/// Why, in the words the book uses: of a file, a mount or a connection.
pub fn io_reason(error: &io::Error) -> Reason {
    use io::ErrorKind;
    match error.kind() {
        ErrorKind::NotFound => Reason::Vanished,
        ErrorKind::PermissionDenied => Reason::PermissionDenied,
        ErrorKind::NotADirectory => Reason::Changed,
        ErrorKind::ConnectionRefused
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::NotConnected
        | ErrorKind::BrokenPipe
        | ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::NetworkDown
        | ErrorKind::StaleNetworkFileHandle
        | ErrorKind::TimedOut
        | ErrorKind::WouldBlock
        | ErrorKind::ResourceBusy
        | ErrorKind::Interrupted
        | ErrorKind::UnexpectedEof => Reason::Unavailable,
        _ => Reason::ReadError,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_io_error_has_a_reason_and_says_where() {
        for (kind, reason) in [
            (io::ErrorKind::NotFound, Reason::Vanished),
            (io::ErrorKind::PermissionDenied, Reason::PermissionDenied),
            (io::ErrorKind::NotADirectory, Reason::Changed),
            (io::ErrorKind::TimedOut, Reason::Unavailable),
            (io::ErrorKind::ConnectionRefused, Reason::Unavailable),
            (io::ErrorKind::InvalidData, Reason::ReadError),
        ] {
            let error = ConnectorError::io("list", &kind.into());
            assert_eq!((error.reason(), error.is_retryable()), (reason, reason.may_pass()));
            assert!(error.to_string().starts_with("list: "), "{error}");
        }
    }
}
