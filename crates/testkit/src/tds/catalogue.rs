//! The catalogue: the statements that the connector asks it with, to the letter, and what the model says to them.
//! A statement that is not one of these is no catalogue statement.

use super::evaluate::{Rows, Variables};
use super::model::{Database, Kind, Table};
use super::values::{Type, Value};

const DATABASES: &str = include_str!("../../../connectors/src/databases/sqlserver/sql/databases.sql");
const SCHEMAS: &str = include_str!("../../../connectors/src/databases/sqlserver/sql/schemas.sql");
const TABLES: &str = include_str!("../../../connectors/src/databases/sqlserver/sql/tables.sql");
const POLICIES: &str = include_str!("../../../connectors/src/databases/sqlserver/sql/policies.sql");
const COLUMNS: &str = include_str!("../../../connectors/src/databases/sqlserver/sql/columns.sql");

/// What a session says before it reads rows.
pub const ISOLATION: &str = include_str!("../../../connectors/src/databases/sqlserver/sql/isolation.sql");

const SYSTEM_DATABASES: [&str; 4] = ["master", "tempdb", "model", "msdb"];
const SYSTEM_SCHEMAS: [&str; 5] = ["INFORMATION_SCHEMA", "db_datareader", "db_owner", "guest", "sys"];

/// The answer to a catalogue statement.
pub fn answer(sql: &str, databases: &[Database], current: &Database, variables: &Variables) -> Option<Rows> {
    let text = |name: &str| match variables.get(name) {
        Some(Value::Text(text)) => Some(text.as_str()),
        _ => None,
    };
    Some(match sql {
        DATABASES => all_databases(databases),
        SCHEMAS => schemas(current),
        TABLES => {
            let Some(Value::Int(max)) = variables.get("P3") else { return None };
            tables(current, text("P1")?, text("P2"), *max as usize, text("P4"))
        }
        POLICIES => policies(current, text("P1")?, text("P2")?),
        COLUMNS => columns(current, text("P1")?, text("P2")?, text("P3")?),
        _ => return None,
    })
}

fn bit(is_set: bool) -> Value {
    Value::Int(i64::from(is_set))
}

fn name() -> Type {
    Type::NVarChar(Some(128))
}

fn comment(comment: Option<&String>) -> Value {
    comment.map_or(Value::Null, |comment| Value::text(comment))
}

fn result(columns: &[(&str, Type)], rows: Vec<Vec<Value>>) -> Rows {
    Rows { columns: columns.iter().map(|(name, of)| ((*name).to_owned(), of.clone())).collect(), rows }
}

fn all_databases(databases: &[Database]) -> Rows {
    let row = |name: &str, is_system, is_open| vec![Value::text(name), bit(is_system), bit(is_open)];
    // The model database is nobody's to enter.
    let own = SYSTEM_DATABASES.iter().map(|name| row(name, true, *name != "model"));
    let mut rows: Vec<_> =
        own.chain(databases.iter().map(|found| row(&found.name, false, !found.is_refused))).collect();
    rows.sort_by(|a, b| format!("{:?}", a[0]).cmp(&format!("{:?}", b[0])));
    result(&[("name", name()), ("is_system", Type::Bit), ("is_open", Type::Bit)], rows)
}

fn schemas(current: &Database) -> Rows {
    let others = current.schemas.iter().map(|schema| schema.name.as_str());
    let all = SYSTEM_SCHEMAS.into_iter().chain(others).map(|name| vec![Value::text(name)]);
    result(&[("name", name())], all.collect())
}

fn policies(current: &Database, schema: &str, table: &str) -> Rows {
    let is_filtered = current.table(schema, table).is_some_and(|table| table.is_filtered);
    let rows = if is_filtered { vec![vec![Value::Int(1)]] } else { Vec::new() };
    result(&[("predicate", Type::Int)], rows)
}

fn tables(current: &Database, schema: &str, after: Option<&str>, max: usize, exact: Option<&str>) -> Rows {
    let is_asked_for = |table: &&Table| {
        after.is_none_or(|after| table.name.as_str() > after) && exact.is_none_or(|exact| table.name == exact)
    };
    let found = current.tables(schema).into_iter().filter(is_asked_for).take(max);
    let row = |table: &Table| {
        let (kind, is_stored) = match table.kind {
            Kind::Table => ("T", true),
            Kind::View => ("V", false),
            Kind::IndexedView => ("M", true),
        };
        let count = |n: usize| if is_stored { Value::Int(n as i64) } else { Value::Null };
        vec![
            Value::text(&table.name),
            Value::text(kind),
            count(table.rows.len()),
            count(table.rows.len().div_ceil(16)),
            comment(table.comment.as_ref()),
        ]
    };
    let columns = [
        ("name", name()),
        ("kind", Type::VarChar(Some(1))),
        ("row_count", Type::BigInt),
        ("pages", Type::BigInt),
        ("comment", Type::NVarChar(Some(4_000))),
    ];
    result(&columns, found.map(row).collect())
}

fn columns(current: &Database, schema: &str, from: &str, to: &str) -> Rows {
    let mut rows = Vec::new();
    let is_asked_for = |table: &&Table| (from..=to).contains(&table.name.as_str());
    for table in current.tables(schema).into_iter().filter(is_asked_for) {
        for (place, column) in table.columns.iter().enumerate() {
            let (type_name, max_length, precision, scale) = column.of.catalogue();
            let ordinal = table.key.iter().position(|&key| key == place).map_or(0, |ordinal| ordinal + 1);
            rows.push(vec![
                Value::text(&table.name),
                Value::text(&column.name),
                Value::text(type_name),
                Value::Int(max_length),
                Value::Int(i64::from(precision)),
                Value::Int(i64::from(scale)),
                bit(column.is_encrypted),
                bit(!table.is_refused && !column.is_refused),
                Value::Int(ordinal as i64),
                comment(column.comment.as_ref()),
                bit(column.is_foreign_text),
            ]);
        }
    }
    let columns = [
        ("table_name", name()),
        ("name", name()),
        ("type_name", name()),
        ("max_length", Type::Int),
        ("number_precision", Type::Int),
        ("number_scale", Type::Int),
        ("is_encrypted", Type::Bit),
        ("is_readable", Type::Bit),
        ("key_ordinal", Type::Int),
        ("comment", Type::NVarChar(Some(4_000))),
        ("is_foreign_text", Type::Bit),
    ];
    result(&columns, rows)
}
