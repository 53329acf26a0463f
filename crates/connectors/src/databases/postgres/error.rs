//! What the server's errors mean. Their words are told on only where they cannot quote a value.

use std::time::Duration;

use domesday_connector::{ConnectorError, io_reason};
use domesday_model::Reason;
use domesday_tls::Problem;
use tokio_postgres::Error;

use crate::databases::error::TOO_MANY_CONNECTIONS;
use crate::databases::tls::explained;

/// How long to leave a server alone that has no connection to spare, or is starting.
const BUSY_WAIT: Duration = Duration::from_secs(5);

/// What an error means for what was being listed or read.
pub(super) fn meaning(error: &Error) -> ConnectorError {
    if let Some(problem) = Problem::of(error) {
        return ConnectorError::Denied { detail: format!("{}: {}", with_sources(error), explained(problem)) };
    }
    let Some(server) = error.as_db_error() else {
        return container(without_answer(error), &with_sources(error));
    };
    let code = server.code().code();
    let said = format!("the server says: {} ({code})", server.message());
    match (code.get(..2).unwrap_or_default(), code) {
        ("28", _) => ConnectorError::Denied { detail: format!("{said}; check the user and the credential") },
        (_, "42501") => container(Reason::PermissionDenied, &said),
        (_, "3D000" | "3F000" | "42P01") => container(Reason::Vanished, &said),
        (_, "42703") => container(Reason::Changed, &said),
        (_, "55P03") => container(Reason::Locked, &said),
        (_, "57014") => container(Reason::TimedOut, &said),
        (_, "53300") => {
            ConnectorError::Wait { after: BUSY_WAIT, detail: format!("{said}; {TOO_MANY_CONNECTIONS}") }
        }
        ("53", _) | (_, "57P03") => ConnectorError::Wait { after: BUSY_WAIT, detail: said },
        // The connection failed, the server was told to stop or came back from a crash, a lock met another.
        ("08", _) | (_, "57P01" | "57P02" | "57P05" | "40001" | "40P01") => {
            container(Reason::Unavailable, &said)
        }
        ("42" | "54" | "55" | "57" | "58", _) => container(Reason::ReadError, &said),
        // A view that computes may say what it could not compute with.
        _ => container(Reason::ReadError, &format!("the server refuses with error {code}")),
    }
}

/// Why no answer came, or not all of it.
fn without_answer(error: &Error) -> Reason {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if let Some(error) = cause.downcast_ref::<std::io::Error>() {
            // What else goes wrong on the way to a server, such as a name that is not found, may be mended too.
            return match io_reason(error) {
                Reason::PermissionDenied => Reason::PermissionDenied,
                _ => Reason::Unavailable,
            };
        }
        source = cause.source();
    }
    if error.is_closed() { Reason::Unavailable } else { Reason::ReadError }
}

/// The code of an error that the server gave.
pub(super) fn code(error: &Error) -> Option<&str> {
    error.as_db_error().map(|error| error.code().code())
}

pub(super) fn container(reason: Reason, detail: &str) -> ConnectorError {
    ConnectorError::Container { reason, detail: detail.to_owned() }
}

fn with_sources(error: &Error) -> String {
    let mut told = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        let next = error.to_string();
        if !told.contains(&next) {
            told = format!("{told}: {next}");
        }
        source = error.source();
    }
    told
}
