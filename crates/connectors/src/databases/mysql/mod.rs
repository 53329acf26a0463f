//! MySQL and MariaDB: one protocol, one catalogue, and few differences between them, none of which is asked for.
//!
//! The two words database and schema mean the same here, so tables are right below databases. The server has no
//! sampling of its own; see [`read`] for how rows are spread. Nothing here decides what is left out or how much is
//! read: that is next door, for all kinds of database.

mod catalogue;
mod column;
mod error;
mod read;
mod select;
mod session;
#[cfg(test)]
mod tests;
mod tls;

use std::sync::Arc;

use async_trait::async_trait;
use domesday_connector::address::{Scheme, UserInfo};
use domesday_connector::{ConnectorError, Surroundings};
use domesday_model::{Reason, TableShape};

use super::config::DatabaseConfig;
use super::dialect::{Dialect, Found, FoundTable, Levels, RowKey, Session, TableName, Which};
use super::factory::ServerFactory;
use super::login::Login;
use super::rows::RowSink;
use column::Column;
use read::Reading;
use select::Source;
use session::{Connection, PORT};

/// The kind of these data sources, MariaDB's as well.
pub const KIND: &str = "mysql";

/// How its addresses begin.
const SCHEMES: &[Scheme] = &[
    Scheme::with_authority("mysql", UserInfo::UserAndPassword),
    Scheme::with_authority("mariadb", UserInfo::UserAndPassword),
];

/// Makes connectors to MySQL and MariaDB servers.
pub const FACTORY: ServerFactory =
    ServerFactory::new(KIND, "a MySQL or MariaDB server", SCHEMES, |config, surroundings| {
        Arc::new(Mysql { config, surroundings })
    });

struct Mysql {
    config: DatabaseConfig,
    surroundings: Surroundings,
}

#[async_trait]
impl Dialect for Mysql {
    fn levels(&self) -> Levels {
        Levels::Databases
    }

    async fn connect(&self, database: Option<&str>) -> Result<Box<dyn Session>, ConnectorError> {
        let login = Login::fetch(&self.config, &self.surroundings, &self.config.server(PORT)).await?;
        let connection = Connection::open(&self.config, &login, database).await?;
        Ok(Box::new(MysqlSession { connection, database: database.unwrap_or_default().to_owned() }))
    }
}

struct MysqlSession {
    connection: Connection,
    /// Where it is connected to; empty when to none.
    database: String,
}

#[async_trait]
impl Session for MysqlSession {
    async fn databases(&mut self) -> Result<Vec<Found>, ConnectorError> {
        catalogue::databases(&mut self.connection).await
    }

    async fn schemas(&mut self) -> Result<Vec<Found>, ConnectorError> {
        Ok(Vec::new())
    }

    async fn tables(
        &mut self,
        _schema: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<FoundTable>, ConnectorError> {
        catalogue::tables(&mut self.connection, &self.database, after, max).await
    }

    async fn table(&mut self, table: &TableName) -> Result<Option<FoundTable>, ConnectorError> {
        catalogue::table(&mut self.connection, &table.database, &table.table).await
    }

    async fn boundary(
        &mut self,
        table: &TableName,
        shape: &TableShape,
        after: Option<&RowKey>,
        rows: u64,
    ) -> Result<Option<RowKey>, ConnectorError> {
        let what = format!("parting {}.{}", table.database, table.table);
        let source = Source::new(table, Column::all(&shape.columns), &shape.primary_key);
        let Some(sql) = source.boundary(after, rows) else {
            return Err(error::container(&what, Reason::Changed, "its primary key is not what it was"));
        };
        let rows = self.connection.rows(&what, &sql).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let places: Vec<usize> = (0..source.key.len()).collect();
        let unreadable = || error::container(&what, Reason::ReadError, "a key is not text");
        read::key(row, &places).map(Some).ok_or_else(unreadable)
    }

    async fn read(
        &mut self,
        table: &TableName,
        shape: &TableShape,
        which: &Which,
        sink: &mut RowSink,
    ) -> Result<(), ConnectorError> {
        Reading::new(&mut self.connection, table, shape, sink).read(which).await
    }
}
