//! How often, and how, reading a table is attempted: first as if nothing stood in the way, then without what does.
//!
//! - *Row-level policies.* Where one applies, the server is told to refuse (`row_security = off`) and not to hide rows.
//!   When it does, the rows that it shows are read, and the table is named as partial.
//! - *Columns.* A statement that fails for some of its columns is repeated without them, and they are named.
//!
//! Only what fails before anybody has seen a row is attempted again.

use std::fmt;

use domesday_connector::ConnectorError;
use domesday_model::{Reason, TableShape};
use tokio_postgres::Error;

use super::error::{code, meaning};
use super::read;
use super::session::PostgresSession;
use crate::databases::column_search::{ColumnSearch, UnreadableColumns};
use crate::databases::dialect::{RowKey, TableName, Which};
use crate::databases::rows::RowSink;

/// What the server says when something needs a right that we have not.
const INSUFFICIENT_PRIVILEGE: &str = "42501";
/// What is said of a table whose rows a policy hides.
const POLICY: &str = "a row-level policy applies: only the rows that it shows to this user were read; to read all, give \
                      the user BYPASSRLS, or connect as one that no policy applies to";

/// Why an attempt failed.
pub(super) enum Failure {
    Client(Error),
    Told(ConnectorError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Client(error)
    }
}

impl From<ConnectorError> for Failure {
    fn from(error: ConnectorError) -> Failure {
        Failure::Told(error)
    }
}

impl Failure {
    fn told(self) -> ConnectorError {
        match self {
            Failure::Client(error) => meaning(&error),
            Failure::Told(error) => error,
        }
    }

    fn code(&self) -> Option<&str> {
        match self {
            Failure::Client(error) => code(error),
            Failure::Told(_) => None,
        }
    }

    fn is_refusal(&self) -> bool {
        self.code() == Some(INSUFFICIENT_PRIVILEGE)
    }

    /// Whether it may be for what is selected, and not for the connection, the server's state or the time it took.
    fn may_be_of_columns(&self) -> bool {
        let is_of_the_server = |code: &str| {
            let class = code.get(..2).unwrap_or_default();
            matches!(class, "08" | "28" | "3F" | "40" | "53" | "55" | "57" | "58")
                || matches!(code, "25P03" | "42P01")
        };
        self.code().is_some_and(|code| !is_of_the_server(code))
    }
}

/// What is known of how a table can be read.
#[derive(Default)]
pub(super) struct Access {
    /// Whether policies may hide rows.
    pub policies: bool,
    left_out: UnreadableColumns,
    /// Of the last statement for rows.
    pub tail: Tail,
}

impl Access {
    pub fn is_out(&self, column: usize) -> bool {
        self.left_out.iter().any(|(place, _)| *place == column)
    }
}

/// What follows a table's name in a statement for rows.
#[derive(Clone, Default)]
pub(super) struct Tail {
    pub rest: String,
    pub limit: Option<u64>,
}

impl fmt::Display for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rest)?;
        self.limit.map_or(Ok(()), |limit| write!(f, " LIMIT {limit}"))
    }
}

pub(super) async fn boundary(
    session: &PostgresSession,
    table: &TableName,
    shape: &TableShape,
    after: Option<&RowKey>,
    rows: u64,
) -> Result<Option<RowKey>, ConnectorError> {
    let found = match read::boundary(session, table, shape, after, rows, false).await {
        Err(failure) if failure.is_refusal() => {
            roll_back(session).await?;
            read::boundary(session, table, shape, after, rows, true).await
        }
        found => found,
    };
    found.map_err(Failure::told)
}

pub(super) async fn read(
    session: &PostgresSession,
    table: &TableName,
    shape: &TableShape,
    which: &Which,
    sink: &mut RowSink,
) -> Result<(), ConnectorError> {
    if shape.columns.is_empty() {
        return Ok(());
    }
    let mut access = Access::default();
    loop {
        let failure = match read::rows(session, table, shape, which, &mut access, sink).await {
            Ok(()) => break,
            Err(failure) => failure,
        };
        if sink.handed() > 0 || !failure.may_be_of_columns() {
            return Err(failure.told());
        }
        roll_back(session).await?;
        let rows_before = sink.rows();
        sink.begin_again();
        if failure.is_refusal() && !access.policies {
            access.policies = true;
            continue;
        }
        if !access.left_out.is_empty() {
            return Err(failure.told());
        }
        match unreadable_columns(session, table, shape, &access, rows_before, sink).await? {
            Some(columns) => access.left_out = columns,
            None => return Err(failure.told()),
        }
        // What was refused may have been a column.
        access.policies = false;
    }
    if access.policies {
        sink.name_gap(Reason::PermissionDenied, POLICY);
    }
    sink.name_unreadable(shape, &access.left_out);
    Ok(())
}

/// The columns without which the last statement for rows does not fail.
async fn unreadable_columns(
    session: &PostgresSession,
    table: &TableName,
    shape: &TableShape,
    access: &Access,
    rows_before: u64,
    sink: &RowSink,
) -> Result<Option<UnreadableColumns>, ConnectorError> {
    let rows = ColumnSearch::rows_to_try(rows_before);
    let mut search = ColumnSearch::new(shape.columns.len());
    while let Some(columns) = search.next() {
        // Each try has the time that a statement has.
        sink.watch().progress();
        let is_out = |place: usize| !columns.contains(&place);
        let outcome = match read::try_rows(session, table, shape, access, rows, is_out).await {
            Ok(()) => Ok(()),
            Err(failure) if failure.may_be_of_columns() => {
                roll_back(session).await?;
                Err(failure.told())
            }
            Err(failure) => return Err(failure.told()),
        };
        search.tried(columns, outcome);
    }
    Ok(search.found())
}

async fn roll_back(session: &PostgresSession) -> Result<(), ConnectorError> {
    session.roll_back().await.map_err(|error| meaning(&error))
}
