//! A connection: its settings, and what is asked of the catalogue.

use std::collections::HashMap;

use async_trait::async_trait;
use domesday_connector::ConnectorError;
use domesday_model::{ColumnShape, Reason, TableKind, TableShape};
use tiberius::{Client, Row, ToSql};
use tokio_util::compat::Compat;

use super::error::told;
use super::prelogin::Transport;
use super::statement;
use super::types::{is_key, type_name};
use crate::databases::config::DatabaseConfig;
use crate::databases::dialect::{Found, FoundTable, RowKey, Session, TableName, Which};
use crate::databases::rows::RowSink;

const SESSION: &str = include_str!("sql/session.sql");
const ISOLATION: &str = include_str!("sql/isolation.sql");
const DATABASES: &str = include_str!("sql/databases.sql");
const SCHEMAS: &str = include_str!("sql/schemas.sql");
const TABLES: &str = include_str!("sql/tables.sql");
const COLUMNS: &str = include_str!("sql/columns.sql");
const POLICIES: &str = include_str!("sql/policies.sql");

/// Schemas of the server's own, and those of its fixed roles. By their names, which nobody else can give: numbers mean
/// something else on servers that only speak the protocol.
const SYSTEM_SCHEMAS: [&str; 12] = [
    "INFORMATION_SCHEMA",
    "db_accessadmin",
    "db_backupoperator",
    "db_datareader",
    "db_datawriter",
    "db_ddladmin",
    "db_denydatareader",
    "db_denydatawriter",
    "db_owner",
    "db_securityadmin",
    "guest",
    "sys",
];

/// What is said of a table whose rows a policy filters. The server has no way to refuse instead.
const POLICY: &str = "a security policy applies: only the rows that it shows to this log-in were read; to read all, let \
                      its predicate show them to this log-in";

/// Bytes of a page, in which the server counts.
const PAGE: u64 = 8_192;

pub(super) struct SqlServerSession {
    pub(super) client: Client<Compat<Transport>>,
    /// Whether it was settled how rows are read.
    is_settled: bool,
}

impl SqlServerSession {
    /// Settles how a fresh connection behaves.
    pub async fn begin(
        client: Client<Compat<Transport>>,
        config: &DatabaseConfig,
    ) -> Result<SqlServerSession, ConnectorError> {
        let mut session = SqlServerSession { client, is_settled: false };
        let milliseconds = config.lock_timeout_seconds * 1_000;
        session.set(&SESSION.replace("{lock_timeout}", &milliseconds.to_string())).await?;
        Ok(session)
    }

    /// Runs statements that give no rows.
    pub(super) async fn set(&mut self, sql: &str) -> Result<(), ConnectorError> {
        let answer = self.client.simple_query(sql).await.map_err(|error| told(&error))?;
        answer.into_results().await.map_err(|error| told(&error))?;
        Ok(())
    }

    /// Settles how rows are read, once.
    async fn settle(&mut self) -> Result<(), ConnectorError> {
        if !self.is_settled {
            self.set(ISOLATION).await?;
            self.is_settled = true;
        }
        Ok(())
    }

    async fn ask(&mut self, sql: &str, parameters: &[&dyn ToSql]) -> Result<Vec<Row>, ConnectorError> {
        let answer = match parameters.is_empty() {
            true => self.client.simple_query(sql).await,
            false => self.client.query(sql, parameters).await,
        };
        answer.map_err(|error| told(&error))?.into_first_result().await.map_err(|error| told(&error))
    }

    /// Whether a security policy filters a table's rows, as far as we may know. Servers that only speak the protocol have
    /// no such views.
    async fn is_filtered(&mut self, table: &TableName) -> Result<bool, ConnectorError> {
        match self.ask(POLICIES, &[&table.schema, &table.table]).await {
            Ok(found) => Ok(!found.is_empty()),
            Err(error) if matches!(error.reason(), Reason::Vanished | Reason::PermissionDenied) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn found(
        &mut self,
        schema: &str,
        after: Option<&str>,
        max: i32,
        exact: Option<&str>,
    ) -> Result<Vec<FoundTable>, ConnectorError> {
        let rows = self.ask(TABLES, &[&schema, &after, &max, &exact]).await?;
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(Vec::new()) };
        let (first, last) = (text(first, 0)?, text(last, 0)?);
        let mut columns: HashMap<String, Vec<Row>> = HashMap::new();
        for row in self.ask(COLUMNS, &[&schema, &first, &last]).await? {
            columns.entry(text(&row, 0)?).or_default().push(row);
        }
        rows.iter()
            .map(|row| {
                let name = text(row, 0)?;
                found_table(row, columns.remove(&name).unwrap_or_default(), name)
            })
            .collect()
    }
}

#[async_trait]
impl Session for SqlServerSession {
    async fn databases(&mut self) -> Result<Vec<Found>, ConnectorError> {
        let rows = self.ask(DATABASES, &[]).await?;
        let found = |row: &Row| {
            let refusal = (!flag(row, 2)?).then_some(Reason::PermissionDenied);
            Ok(Found { name: text(row, 0)?, is_system: flag(row, 1)?, refusal })
        };
        rows.iter().map(found).collect()
    }

    async fn schemas(&mut self) -> Result<Vec<Found>, ConnectorError> {
        let rows = self.ask(SCHEMAS, &[]).await?;
        let found = |row: &Row| {
            let name = text(row, 0)?;
            let is_system = SYSTEM_SCHEMAS.iter().any(|own| own.eq_ignore_ascii_case(&name));
            Ok(Found { name, is_system, refusal: None })
        };
        rows.iter().map(found).collect()
    }

    async fn tables(
        &mut self,
        schema: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<FoundTable>, ConnectorError> {
        self.found(schema, after, i32::try_from(max).unwrap_or(i32::MAX), None).await
    }

    async fn table(&mut self, table: &TableName) -> Result<Option<FoundTable>, ConnectorError> {
        Ok(self.found(&table.schema, None, 1, Some(&table.table)).await?.pop())
    }

    async fn boundary(
        &mut self,
        table: &TableName,
        shape: &TableShape,
        after: Option<&RowKey>,
        rows: u64,
    ) -> Result<Option<RowKey>, ConnectorError> {
        self.settle().await?;
        let statement = statement::boundary(table, shape, after, rows);
        let parameters: Vec<&dyn ToSql> =
            statement.parameters.iter().map(|text| text as &dyn ToSql).collect();
        let found = self.ask(&statement.sql, &parameters).await?;
        let key = |row: &Row| (0..row.len()).map(|at| text(row, at)).collect::<Result<RowKey, _>>();
        found.first().map(key).transpose()
    }

    async fn read(
        &mut self,
        table: &TableName,
        shape: &TableShape,
        which: &Which,
        sink: &mut RowSink,
    ) -> Result<(), ConnectorError> {
        self.settle().await?;
        let is_filtered = self.is_filtered(table).await?;
        self.read_rows(table, shape, which, sink).await?;
        if is_filtered {
            sink.name_gap(Reason::PermissionDenied, POLICY);
        }
        Ok(())
    }
}

/// A table by its own row of the catalogue and those of its columns.
fn found_table(row: &Row, columns: Vec<Row>, name: String) -> Result<FoundTable, ConnectorError> {
    let mut shape = TableShape {
        kind: match text(row, 1)?.as_str() {
            "V" => TableKind::View,
            "M" => TableKind::MaterializedView,
            _ => TableKind::Table,
        },
        row_estimate: count(row, 2)?,
        comment: optional(row, 4)?,
        ..TableShape::default()
    };
    let mut unread_columns = Vec::new();
    // The key's columns by their places in it; none when there is one that is not read, or cannot be written as text.
    let mut key = Some(Vec::new());
    for column in &columns {
        let (is_readable, ordinal, is_foreign) = (flag(column, 7)?, number(column, 8)?, flag(column, 10)?);
        let type_name = type_name(
            &text(column, 2)?,
            number(column, 3)?,
            number(column, 4)?,
            number(column, 5)?,
            flag(column, 6)?,
        );
        let found = ColumnShape { name: text(column, 1)?, type_name, comment: optional(column, 9)? };
        if ordinal > 0 {
            // In another code page, a key that is given back is not surely the same.
            key = key.filter(|_| is_readable && is_key(&found) && !is_foreign);
            if let Some(key) = &mut key {
                key.push((ordinal, shape.columns.len() as u32));
            }
        }
        match is_readable {
            true => shape.columns.push(found),
            false => unread_columns.push((found.name, Reason::PermissionDenied)),
        }
    }
    let mut key = key.unwrap_or_default();
    key.sort_unstable();
    shape.primary_key = key.into_iter().map(|(_, place)| place).collect();
    let refusal = shape.columns.is_empty().then_some(Reason::PermissionDenied);
    let bytes = count(row, 3)?.unwrap_or(0).saturating_mul(PAGE);
    Ok(FoundTable { name, shape, bytes, unread_columns, refusal })
}

/// What the catalogue says of a column has a type that the statement gives it.
fn optional(row: &Row, at: usize) -> Result<Option<String>, ConnectorError> {
    Ok(row.try_get::<&str, _>(at).map_err(|error| told(&error))?.map(str::to_owned))
}

fn text(row: &Row, at: usize) -> Result<String, ConnectorError> {
    Ok(optional(row, at)?.unwrap_or_default())
}

fn flag(row: &Row, at: usize) -> Result<bool, ConnectorError> {
    Ok(row.try_get::<bool, _>(at).map_err(|error| told(&error))?.unwrap_or(false))
}

fn number(row: &Row, at: usize) -> Result<i32, ConnectorError> {
    Ok(row.try_get::<i32, _>(at).map_err(|error| told(&error))?.unwrap_or(0))
}

fn count(row: &Row, at: usize) -> Result<Option<u64>, ConnectorError> {
    let count = row.try_get::<i64, _>(at).map_err(|error| told(&error))?;
    Ok(count.map(|count| u64::try_from(count).unwrap_or(0)))
}
