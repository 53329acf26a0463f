//! What servers answer, for the fuzzer: sessions as a scan has them, without its retries and their pauses.

use std::sync::Arc;

use domesday_connector::{ConnectorError, Surroundings};
use serde_json::Value;

use super::dialect::{FoundTable, Session, TableName, Which};
use super::factory::ServerFactory;
use super::limits::Limits;
use super::rows::line;

/// Tables that are read, and rows of each.
const TABLES_MAX: usize = 4;
const ROWS_MAX: u64 = 10_000;

/// Connects, lists every level of the named database and schema, and reads its first tables in every way.
pub async fn survey(
    factory: &ServerFactory,
    configuration: &Value,
    surroundings: &Surroundings,
    database: &str,
    schema: &str,
) -> Result<(), ConnectorError> {
    let (dialect, config) = factory.dialect(configuration, surroundings)?;
    let limits = Arc::new(Limits::new(&config));
    dialect.connect(None).await?.databases().await?;
    let mut session = dialect.connect(Some(database)).await?;
    session.schemas().await?;
    let tables = session.tables(schema, None, TABLES_MAX).await?;
    for table in tables.into_iter().take(TABLES_MAX) {
        let name =
            TableName { database: database.to_owned(), schema: schema.to_owned(), table: table.name.clone() };
        // A session that has given an error is not used again.
        if read(&mut *session, &name, &table, &limits).await.is_err() {
            session = dialect.connect(Some(database)).await?;
        }
    }
    Ok(())
}

async fn read(
    session: &mut dyn Session,
    name: &TableName,
    table: &FoundTable,
    limits: &Arc<Limits>,
) -> Result<(), ConnectorError> {
    let shape = &table.shape;
    session.table(name).await?;
    let mut ways = vec![Which::All, Which::Sample { rows: 10, seed: 1 }];
    if !shape.primary_key.is_empty() {
        let to = session.boundary(name, shape, None, 1).await?;
        ways.push(Which::Range { after: None, to: to.clone() });
        ways.push(Which::Range { after: to, to: None });
    }
    for which in &ways {
        let (mut sink, arriving) = line(shape.columns.len(), ROWS_MAX, limits);
        let drained = tokio::task::spawn_blocking(|| arriving.drain());
        let outcome = session.read(name, shape, which, &mut sink).await;
        sink.end(Ok(())).await;
        // It ends with the sink.
        let _ = drained.await;
        outcome?;
    }
    Ok(())
}
