//! What the server's errors mean to a scan.
//!
//! Texts of the server are told only where they are about names: others may quote values.

use std::io;
use std::time::Duration;

use domesday_connector::ConnectorError;
use domesday_model::Reason;
use tiberius::error::Error;

/// How long to leave a server alone that has no room for us.
const NO_ROOM_PAUSE: Duration = Duration::from_secs(10);

pub(super) fn told(error: &Error) -> ConnectorError {
    let (reason, detail) = match error {
        Error::Server(server) => {
            let text = server.message();
            match server.code() {
                // Log-in failed: for this user, from an untrusted domain, disabled, expired, locked out, to be changed.
                18452 | 18456 | 18470 | 18486 | 18487 | 18488 => {
                    return ConnectorError::Denied {
                        detail: format!("the server refuses the log-in: {text}"),
                    };
                }
                // Too many connections, a database on its way to another machine, a service that is busy.
                10928 | 10929 | 17809 | 40197 | 40501 | 40613 | 49918..=49920 => {
                    let detail = format!("the server has no room now (error {})", server.code());
                    return ConnectorError::Wait { after: NO_ROOM_PAUSE, detail };
                }
                // No access to the database, the object, the column, the server's state; cannot open the database.
                229 | 230 | 297 | 300 | 371 | 916 | 4060 => (Reason::PermissionDenied, text.to_owned()),
                911 | 208 => (Reason::Vanished, text.to_owned()),
                207 => (Reason::Changed, text.to_owned()),
                1222 => (Reason::Locked, text.to_owned()),
                // Gave way to another statement, or the server is told to stop.
                1205 | 6005 | 17188 => (Reason::Unavailable, text.to_owned()),
                code => {
                    let class = server.class();
                    (Reason::ReadError, format!("the server gave error {code} of severity {class}"))
                }
            }
        }
        Error::Io { kind: io::ErrorKind::TimedOut, .. } => {
            (Reason::TimedOut, "the server took longer than `statement_timeout_seconds`".to_owned())
        }
        Error::Io { message, .. } => (Reason::Unavailable, format!("the connection was lost: {message}")),
        other => (Reason::ReadError, format!("the server is not understood: {other}")),
    };
    ConnectorError::Container { reason, detail }
}

/// Whether a statement may have failed for what it selects, and not for the connection, the server's state or the time it
/// took: a column that we may not read (230), or one that the server cannot give. Severities from 17 on are the server's own
/// trouble; 13 is a deadlock.
pub(super) fn may_be_of_columns(error: &Error) -> bool {
    let Error::Server(server) = error else { return false };
    let is_of_others = matches!(server.code(), 207 | 208 | 229 | 297 | 300 | 371 | 911 | 916 | 1222 | 4060);
    server.class() < 17 && server.class() != 13 && !is_of_others && !needs_other_isolation(error)
}

/// Whether the session's isolation is what the statement failed of: what it reads has no snapshots, or none any more.
pub(super) fn needs_other_isolation(error: &Error) -> bool {
    matches!(error.code(), Some(3951 | 3952 | 3961 | 3964 | 41332 | 41333 | 41368))
}
