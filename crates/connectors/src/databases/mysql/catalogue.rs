//! What the server has: databases, tables, columns and keys, from `information_schema`.
//!
//! That shows to each user what it may know of. Names come first and alone, page by page, because for anything
//! else MariaDB opens every table of the database; then the tables of the page are asked for each by its name, many
//! in one statement, which opens them alone.

use std::collections::BTreeMap;

use domesday_connector::ConnectorError;
use domesday_model::{ColumnShape, Reason, TableKind, TableShape};
use mysql_async::Row;

use super::super::dialect::{Found, FoundTable};
use super::column;
use super::session::{Connection, number, text};

const DATABASES: &str = include_str!("queries/databases.sql");
const NAMES: &str = include_str!("queries/names.sql");
const TABLE: &str = include_str!("queries/table.sql");
const COLUMNS: &str = include_str!("queries/columns.sql");
const PRIMARY_KEY: &str = include_str!("queries/primary_key.sql");

/// Databases of the server's own.
const SYSTEM: &[&str] = &["information_schema", "mysql", "performance_schema", "sys"];
/// Tables that one statement asks for.
const TABLES_AT_ONCE: usize = 64;
/// What the server says instead of a view's comment.
const VIEW_COMMENT: &str = "VIEW";

pub(super) async fn databases(connection: &mut Connection) -> Result<Vec<Found>, ConnectorError> {
    let rows = connection.rows("listing databases", DATABASES).await?;
    let mut names: Vec<String> = rows.iter().filter_map(|row| text(row, 0)).collect();
    names.sort_unstable();
    let is_system = |name: &String| SYSTEM.contains(&name.to_ascii_lowercase().as_str());
    Ok(names.into_iter().map(|name| Found { is_system: is_system(&name), name, refusal: None }).collect())
}

/// Tables in the order of their names' bytes, at most `max`; none when there are none after `after`.
pub(super) async fn tables(
    connection: &mut Connection,
    database: &str,
    after: Option<&str>,
    max: usize,
) -> Result<Vec<FoundTable>, ConnectorError> {
    let what = format!("listing tables of {database}");
    let mut after = after.unwrap_or_default().to_owned();
    loop {
        let sql = bind(NAMES, database, &[(":after", &after)]).replace(":max", &max.max(1).to_string());
        let names: Vec<String> =
            connection.rows(&what, &sql).await?.iter().filter_map(|row| text(row, 0)).collect();
        let Some(last) = names.last() else { return Ok(Vec::new()) };
        after.clone_from(last);
        let mut tables = Vec::new();
        for names in names.chunks(TABLES_AT_ONCE) {
            tables.extend(described(connection, &what, database, names).await?);
        }
        // A page may be of nothing but what is no table.
        if !tables.is_empty() {
            return Ok(tables);
        }
    }
}

/// One table, as [`tables`] has it.
pub(super) async fn table(
    connection: &mut Connection,
    database: &str,
    name: &str,
) -> Result<Option<FoundTable>, ConnectorError> {
    let what = format!("looking at {database}.{name}");
    Ok(described(connection, &what, database, &[name.to_owned()]).await?.pop())
}

async fn described(
    connection: &mut Connection,
    what: &str,
    database: &str,
    names: &[String],
) -> Result<Vec<FoundTable>, ConnectorError> {
    let mut each = async |query: &str| {
        let statements: Vec<String> =
            names.iter().map(|name| bind(query, database, &[(":table", name)])).collect();
        connection.rows(what, &statements.join("\nUNION ALL\n")).await.map(by_table)
    };
    let (mut tables, mut columns, mut keys) =
        (each(TABLE).await?, each(COLUMNS).await?, each(PRIMARY_KEY).await?);
    let table = |name: &String| {
        let [table, columns, keys] =
            [&mut tables, &mut columns, &mut keys].map(|rows| rows.remove(name).unwrap_or_default());
        found(name, table.first()?, columns, keys)
    };
    Ok(names.iter().filter_map(table).collect())
}

fn by_table(rows: Vec<Row>) -> BTreeMap<String, Vec<Row>> {
    let mut tables: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for row in rows {
        tables.entry(text(&row, 0).unwrap_or_default()).or_default().push(row);
    }
    tables
}

fn found(name: &str, table: &Row, mut columns: Vec<Row>, mut keys: Vec<Row>) -> Option<FoundTable> {
    let kind = match text(table, 1)?.as_str() {
        // Numbers that the server gives out: nobody's data.
        "SEQUENCE" => return None,
        "VIEW" | "SYSTEM VIEW" => TableKind::View,
        _ => TableKind::Table,
    };
    columns.sort_by_key(|row| number::<u64>(row, 1));
    let may_read =
        |row: &Row| text(row, 5).is_some_and(|rights| rights.split(',').any(|right| right == "select"));
    let (columns, denied): (Vec<Row>, Vec<Row>) = columns.into_iter().partition(may_read);
    let refusal = match (columns.is_empty(), denied.is_empty()) {
        (true, false) => Some(Reason::PermissionDenied),
        // A view of what is not there any more, or a damaged table.
        (true, true) => Some(Reason::ReadError),
        _ => None,
    };
    let comment = |row: &Row, column: usize| text(row, column).filter(|comment| !comment.is_empty());
    let columns: Vec<ColumnShape> = columns
        .iter()
        .map(|row| ColumnShape {
            name: text(row, 2).unwrap_or_default(),
            type_name: text(row, 3).unwrap_or_default(),
            comment: comment(row, 4),
        })
        .collect();
    keys.sort_by_key(|row| number::<u64>(row, 1));
    // A key over the beginnings of values, or over a column that we may not read, orders nothing for us.
    let part = |row: &Row| {
        let place = columns.iter().position(|column| Some(&column.name) == text(row, 2).as_ref());
        place.filter(|_| text(row, 3).is_none()).map(|place| place as u32)
    };
    let primary_key = keys.iter().map(part).collect::<Option<Vec<u32>>>().unwrap_or_default();
    let row_estimate = number(table, 2);
    let comment = comment(table, 4).filter(|comment| kind == TableKind::Table || comment != VIEW_COMMENT);
    Some(FoundTable {
        name: name.to_owned(),
        shape: TableShape { kind, columns, primary_key, row_estimate, comment },
        bytes: number(table, 3).unwrap_or(0),
        unread_columns: denied
            .iter()
            .filter_map(|row| Some((text(row, 2)?, Reason::PermissionDenied)))
            .collect(),
        refusal,
    })
}

/// A query with its names in it, as literals.
fn bind(query: &str, database: &str, names: &[(&str, &str)]) -> String {
    let query = query.trim_end().replace(":schema", &column::text(database));
    names.iter().fold(query, |query, (place, name)| query.replace(place, &column::text(name)))
}
