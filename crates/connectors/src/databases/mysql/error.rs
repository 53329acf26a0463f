//! What a server's complaint means to a scan. Its words are told only where they are about names: others quote values
//! and statements.

use std::time::Duration;

use domesday_connector::ConnectorError;
use domesday_model::Reason;
use domesday_tls::Problem;
use mysql_async::{DriverError, Error, IoError, ServerError};

use super::super::error::TOO_MANY_CONNECTIONS;
use super::super::tls::explained;

/// Errors by which a server keeps us out: host, account or authentication is not accepted.
const DENIED: &[u16] = &[1045, 1129, 1130, 1251, 1275, 1698, 1820, 1862, 3118, 3159, 3955, 4151];
/// Errors by which it refuses one database, table, column or what is behind a view.
const REFUSED: &[u16] = &[1044, 1142, 1143, 1227, 1345, 1370, 1449, 1356];
/// Databases and tables that are not there (any more).
const GONE: &[u16] = &[1049, 1051, 1109, 1146];
/// Columns and keys that are not there any more, and definitions that changed under a statement.
const CHANGED: &[u16] = &[1054, 1072, 1176, 1412];
/// A statement that took longer than it may: MariaDB's, MySQL's.
const TIMEOUTS: &[u16] = &[1969, 3024];
/// A lock that was not to be had in time.
const LOCKED: &[u16] = &[1205];

/// The server is told to stop, ends a connection, or gave way to another statement.
const STOPPING: &[u16] = &[1053, 1077, 1080, 1152, 1158, 1159, 1160, 1161, 1213, 1927, 4031];

/// More connections than the server, or it of this user, takes.
const CROWDED: &[u16] = &[1040, 1203, 1226];
/// A column that we may not read, or that is not there any more.
const COLUMN: &[u16] = &[1054, 1143];
/// A statement that was ended.
const INTERRUPTED: &[u16] = &[1317];
/// When it is tried again then.
const CROWDED_WAIT: Duration = Duration::from_secs(5);

/// An error while `what` was done.
pub(super) fn failure(what: &str, error: &Error) -> ConnectorError {
    let Error::Server(error) = error else {
        return match error {
            Error::Driver(
                DriverError::UnknownAuthPlugin { .. }
                | DriverError::MysqlOldPasswordDisabled
                | DriverError::CleartextPluginDisabled,
            ) => denied(what, &error.to_string()),
            Error::Driver(DriverError::NoClientSslFlagFromServer) => denied(what, &explained(Problem::NoTls)),
            error => match tls_problem(error) {
                Some(error) => match Problem::of_tls(error) {
                    Some(problem) => denied(what, &format!("TLS: {error}: {}", explained(problem))),
                    None => denied(what, &format!("TLS: {error}")),
                },
                None => container(what, without_answer(error), &error.to_string()),
            },
        };
    };
    let ServerError { code, message, .. } = error;
    let said = format!("{message} (error {code})");
    match code {
        code if DENIED.contains(code) => denied(what, &said),
        code if REFUSED.contains(code) => container(what, Reason::PermissionDenied, &said),
        code if GONE.contains(code) => container(what, Reason::Vanished, &said),
        code if CHANGED.contains(code) => container(what, Reason::Changed, &said),
        code if TIMEOUTS.contains(code) => {
            let advice = format!("{said}: raise `statement_timeout_seconds`, or exclude it");
            container(what, Reason::TimedOut, &advice)
        }
        code if LOCKED.contains(code) => {
            let advice = format!("{said}: somebody holds it locked; raise `lock_timeout_seconds`");
            container(what, Reason::TimedOut, &advice)
        }
        code if CROWDED.contains(code) => {
            let detail = format!("{what}: {said}; {TOO_MANY_CONNECTIONS}");
            ConnectorError::Wait { after: CROWDED_WAIT, detail }
        }
        code if STOPPING.contains(code) => container(what, Reason::Unavailable, &said),
        code => container(what, Reason::ReadError, &format!("the server gave error {code}")),
    }
}

/// Whether a statement may have failed for what it selects, and not for the connection, the server's state or the time it
/// took.
pub(super) fn may_be_of_columns(error: &Error) -> bool {
    let Error::Server(ServerError { code, .. }) = error else { return false };
    let others = [DENIED, REFUSED, GONE, CHANGED, TIMEOUTS, LOCKED, CROWDED, STOPPING, INTERRUPTED];
    COLUMN.contains(code) || !others.iter().any(|codes| codes.contains(code))
}

/// Why no answer came, or not all of it.
fn without_answer(error: &Error) -> Reason {
    match error {
        Error::Io(_) | Error::Driver(DriverError::ConnectionClosed | DriverError::PoolDisconnected) => {
            Reason::Unavailable
        }
        _ => Reason::ReadError,
    }
}

pub(super) fn container(what: &str, reason: Reason, detail: &str) -> ConnectorError {
    ConnectorError::Container { reason, detail: format!("{what}: {detail}") }
}

fn denied(what: &str, detail: &str) -> ConnectorError {
    ConnectorError::Denied { detail: format!("{what}: {detail}") }
}

/// What is wrong with the connection's TLS, if that is what is wrong.
pub(super) fn tls_problem(error: &Error) -> Option<&rustls::Error> {
    match error {
        Error::Io(IoError::Io(error)) => error.get_ref()?.downcast_ref(),
        Error::Io(IoError::Tls(mysql_async::TlsError::Tls(error))) => Some(error),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_complaint_has_its_reason() {
        for (code, reason, is_retryable) in [
            (1045, Reason::PermissionDenied, false),
            (1142, Reason::PermissionDenied, false),
            (1146, Reason::Vanished, false),
            (1054, Reason::Changed, false),
            (1969, Reason::TimedOut, true),
            (1205, Reason::TimedOut, true),
            (1053, Reason::Unavailable, true),
            (1064, Reason::ReadError, false),
        ] {
            let error = ServerError { code, message: "no".into(), state: "HY000".into() };
            let failure = failure("reading `a`", &Error::Server(error));
            assert_eq!((failure.reason(), failure.is_retryable()), (reason, is_retryable), "{code}");
            let told = if code == 1064 {
                "reading `a`: the server gave error 1064"
            } else {
                "reading `a`: no (error "
            };
            assert!(failure.to_string().starts_with(told), "{failure}");
        }
    }
}
