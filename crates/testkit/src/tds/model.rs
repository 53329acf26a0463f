//! What the scripted server holds: databases, schemas, tables and rows, and what its one user may not see of them.

use super::values::{Type, Value};

#[derive(Clone, Debug, Default)]
pub struct Database {
    pub name: String,
    /// The user may not enter it.
    pub is_refused: bool,
    pub schemas: Vec<Schema>,
}

#[derive(Clone, Debug, Default)]
pub struct Schema {
    pub name: String,
    pub tables: Vec<Table>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Kind {
    #[default]
    Table,
    View,
    IndexedView,
}

#[derive(Clone, Debug, Default)]
pub struct Table {
    pub name: String,
    pub kind: Kind,
    pub columns: Vec<Column>,
    /// Places of the primary key's columns, in its order.
    pub key: Vec<usize>,
    pub rows: Vec<Vec<Value>>,
    pub comment: Option<String>,
    /// The user may know of it, and not read it.
    pub is_refused: bool,
    /// A security policy decides which of its rows are there for the user: those it has.
    pub is_filtered: bool,
}

#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub of: Type,
    pub comment: Option<String>,
    /// Encrypted by the client's side: the server has only bytes.
    pub is_encrypted: bool,
    /// Text in another code page than the database's.
    pub is_foreign_text: bool,
    /// The user may know of it, and not read it.
    pub is_refused: bool,
}

impl Database {
    pub fn new(name: &str, schemas: Vec<Schema>) -> Database {
        Database { name: name.to_owned(), schemas, ..Database::default() }
    }

    pub fn table(&self, schema: &str, table: &str) -> Option<&Table> {
        let schema = self.schemas.iter().find(|found| found.name == schema)?;
        schema.tables.iter().find(|found| found.name == table)
    }

    /// All tables of a schema, in the order of their names.
    pub(super) fn tables(&self, schema: &str) -> Vec<&Table> {
        let schemas = self.schemas.iter().filter(|found| found.name == schema);
        let mut found: Vec<&Table> = schemas.flat_map(|schema| &schema.tables).collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }
}

impl Schema {
    pub fn new(name: &str, tables: Vec<Table>) -> Schema {
        Schema { name: name.to_owned(), tables }
    }
}

impl Table {
    pub fn new(name: &str, columns: &[(&str, Type)], key: &[usize], rows: Vec<Vec<Value>>) -> Table {
        let column = |(name, of): &(&str, Type)| Column {
            name: (*name).to_owned(),
            of: of.clone(),
            comment: None,
            is_encrypted: false,
            is_foreign_text: false,
            is_refused: false,
        };
        Table {
            name: name.to_owned(),
            columns: columns.iter().map(column).collect(),
            key: key.to_vec(),
            rows,
            ..Table::default()
        }
    }
}
