//! What the server's catalogue says: databases, schemas and tables, and what we may not read of them.

use domesday_model::{ColumnShape, Reason, TableKind, TableShape};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Row};

use super::error::code;
use super::session::{PostgresSession, Purpose};
use super::values::Text;
use crate::databases::dialect::{Found, FoundTable};

const DATABASES: &str = include_str!("queries/databases.sql");
const SCHEMAS: &str = include_str!("queries/schemas.sql");
const TABLES: &str = include_str!("queries/tables.sql");

/// How long the sizes of tables may wait for a lock, at most: they can do without.
const SIZE_LOCK_TIMEOUT_MS: u64 = 1_000;

pub(super) async fn databases(session: &PostgresSession) -> Result<Vec<Found>, Error> {
    found(session, DATABASES).await
}

pub(super) async fn schemas(session: &PostgresSession) -> Result<Vec<Found>, Error> {
    found(session, SCHEMAS).await
}

async fn found(session: &PostgresSession, query: &str) -> Result<Vec<Found>, Error> {
    session.begin(Purpose::Catalogue { lock_timeout_ms: session.lock_timeout_ms }).await?;
    let rows = session.client.query_typed(query, &[]).await?;
    session.commit().await?;
    let one = |row: &Row| {
        let (name, is_ours): (Text, bool) = (row.try_get(0)?, row.try_get(2)?);
        let refusal = name.refusal().or((!is_ours).then_some(Reason::PermissionDenied));
        Ok(Found { name: name.text, is_system: row.try_get(1)?, refusal })
    };
    rows.iter().map(one).collect()
}

/// Tables of a schema after a name, or the one of a name. Their sizes are left out when somebody holds a lock on
/// one: the others are not to wait for it.
pub(super) async fn tables(
    session: &PostgresSession,
    schema: &str,
    after: Option<&str>,
    only: Option<&str>,
    max: usize,
) -> Result<Vec<FoundTable>, Error> {
    // Names in no encoding are not what a page could go on after: all come at once.
    let max = match (session.has_no_encoding, after) {
        (true, Some(_)) => return Ok(Vec::new()),
        (true, None) => usize::MAX,
        (false, _) => max,
    };
    let lock_timeout_ms = session.lock_timeout_ms.min(SIZE_LOCK_TIMEOUT_MS);
    session.begin(Purpose::Catalogue { lock_timeout_ms }).await?;
    let asked = ask(&session.client, schema, after, only, max, true).await;
    let rows = match asked {
        Err(error) if code(&error) == Some("55P03") => {
            session.roll_back().await?;
            session.begin(Purpose::Catalogue { lock_timeout_ms: session.lock_timeout_ms }).await?;
            ask(&session.client, schema, after, only, max, false).await?
        }
        asked => asked?,
    };
    session.commit().await?;
    rows.iter().map(table).collect()
}

async fn ask(
    client: &Client,
    schema: &str,
    after: Option<&str>,
    only: Option<&str>,
    max: usize,
    with_sizes: bool,
) -> Result<Vec<Row>, Error> {
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    client
        .query_typed(
            TABLES,
            &[
                (&schema, Type::TEXT),
                (&after, Type::TEXT),
                (&only, Type::TEXT),
                (&max, Type::INT8),
                (&with_sizes, Type::BOOL),
            ],
        )
        .await
}

/// A column's name, type, comment, and whether we may read it.
type Column = (String, String, Option<String>, bool);

fn table(row: &Row) -> Result<FoundTable, Error> {
    let name: Text = row.try_get(0)?;
    let relkind: &str = row.try_get(1)?;
    let estimate: Option<f64> = row.try_get(4)?;
    let is_readable: bool = row.try_get(5)?;
    // Made by the server from its own catalogue: what cannot be read says nothing.
    let (columns, key): (Text, Text) = (row.try_get(6)?, row.try_get(7)?);
    // A name in no encoding cannot be asked for.
    let has_name = |name: &str| columns.is_whole || !name.contains(char::REPLACEMENT_CHARACTER);
    let all: Vec<Column> = serde_json::from_str(&columns.text).unwrap_or_default();
    let key: Vec<String> = serde_json::from_str(&key.text).unwrap_or_default();
    let (readable, unread): (Vec<Column>, Vec<Column>) =
        all.into_iter().partition(|column| (is_readable || column.3) && has_name(&column.0));
    let is_refused = readable.is_empty() && !(is_readable && unread.is_empty());
    let place =
        |name: &String| readable.iter().position(|column| column.0 == *name).map(|place| place as u32);
    let primary_key: Option<Vec<u32>> = key.iter().map(place).collect();
    let columns = readable
        .into_iter()
        .map(|(name, type_name, comment, _)| ColumnShape { name, type_name, comment })
        .collect();
    let comment: Option<Text> = row.try_get(2)?;
    let shape = TableShape {
        kind: match relkind {
            "v" => TableKind::View,
            "m" => TableKind::MaterializedView,
            _ => TableKind::Table,
        },
        columns,
        // A key of which a part is hidden identifies nothing.
        primary_key: primary_key.unwrap_or_default(),
        row_estimate: estimate.map(|rows| rows.max(0.0).round() as u64),
        comment: comment.map(|comment| comment.text),
    };
    let why = |column: &Column| {
        if has_name(&column.0) { Reason::PermissionDenied } else { Reason::ReadError }
    };
    let refusal = is_refused.then(|| unread.first().map_or(Reason::PermissionDenied, why));
    let unread_columns = unread.into_iter().map(|column| (column.0.clone(), why(&column)));
    Ok(FoundTable {
        refusal: name.refusal().or(refusal),
        unread_columns: if is_refused { Vec::new() } else { unread_columns.collect() },
        name: name.text,
        shape,
        bytes: u64::try_from(row.try_get::<_, i64>(3)?).unwrap_or(0),
    })
}
