//! What the server's catalogue says: databases, schemas and tables, and what we may not read of them.

use domesday_model::{ColumnShape, Reason, TableKind, TableShape};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Row};

use super::error::code;
use super::session::PostgresSession;
use crate::databases::dialect::{Found, FoundTable};

const DATABASES: &str = include_str!("queries/databases.sql");
const SCHEMAS: &str = include_str!("queries/schemas.sql");
const TABLES: &str = include_str!("queries/tables.sql");

/// How long the sizes of tables may wait for a lock, at most: they can do without.
const SIZE_LOCK_TIMEOUT_MS: u64 = 1_000;

pub(super) async fn databases(client: &Client) -> Result<Vec<Found>, Error> {
    found(client, DATABASES).await
}

pub(super) async fn schemas(client: &Client) -> Result<Vec<Found>, Error> {
    found(client, SCHEMAS).await
}

async fn found(client: &Client, query: &str) -> Result<Vec<Found>, Error> {
    let rows = client.query_typed(query, &[]).await?;
    let one = |row: &Row| {
        let is_ours = row.try_get(2)?;
        let refusal = if is_ours { None } else { Some(Reason::PermissionDenied) };
        Ok(Found { name: row.try_get(0)?, is_system: row.try_get(1)?, refusal })
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
    let (client, lock) = (&session.client, session.lock_timeout_ms.min(SIZE_LOCK_TIMEOUT_MS));
    client.batch_execute(&format!("BEGIN READ ONLY; SET LOCAL lock_timeout = {lock}")).await?;
    let asked = ask(client, schema, after, only, max, true).await;
    let rows = match asked {
        Err(error) if code(&error) == Some("55P03") => {
            client.batch_execute("ROLLBACK; BEGIN READ ONLY").await?;
            ask(client, schema, after, only, max, false).await?
        }
        asked => asked?,
    };
    client.batch_execute("COMMIT").await?;
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
    let relkind: &str = row.try_get(1)?;
    let estimate: Option<f64> = row.try_get(4)?;
    let is_readable: bool = row.try_get(5)?;
    // Made by the server from its own catalogue: what cannot be read says nothing.
    let columns: Vec<Column> = serde_json::from_str(row.try_get(6)?).unwrap_or_default();
    let key: Vec<String> = serde_json::from_str(row.try_get(7)?).unwrap_or_default();
    let (readable, denied): (Vec<Column>, Vec<Column>) =
        columns.into_iter().partition(|column| is_readable || column.3);
    let is_refused = !is_readable && readable.is_empty();
    let place =
        |name: &String| readable.iter().position(|column| column.0 == *name).map(|place| place as u32);
    let primary_key: Option<Vec<u32>> = key.iter().map(place).collect();
    let columns = readable
        .into_iter()
        .map(|(name, type_name, comment, _)| ColumnShape { name, type_name, comment })
        .collect();
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
        comment: row.try_get(2)?,
    };
    Ok(FoundTable {
        name: row.try_get(0)?,
        shape,
        bytes: u64::try_from(row.try_get::<_, i64>(3)?).unwrap_or(0),
        denied_columns: if is_refused {
            Vec::new()
        } else {
            denied.into_iter().map(|column| column.0).collect()
        },
        refusal: is_refused.then_some(Reason::PermissionDenied),
    })
}
