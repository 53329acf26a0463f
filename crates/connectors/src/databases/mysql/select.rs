//! The statements that read rows: ranges of a primary key, and what is sampled.
//!
//! A range is never asked for by comparing rows, `(a, b) > (x, y)`: the server would read the whole table for it.
//! Written out column by column, with the first one's bound apart, it is read from the index. Keys are compared
//! and ordered by the columns themselves, so in their own collations: what is one key to the table is one here.

use super::super::dialect::{RowKey, TableName};
use super::column::{Column, identifier};

/// A table, as statements have it.
pub(super) struct Source {
    /// Its quoted name.
    from: String,
    pub columns: Vec<Column>,
    /// Which of the columns are its primary key, in the key's order.
    pub key: Vec<usize>,
}

/// What a statement for rows with their keys gives.
pub(super) struct Keyed {
    pub sql: String,
    /// Where in a row the parts of its key are.
    pub key_at: Vec<usize>,
}

/// Which rows a statement gives.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Rows {
    /// See [`Source::all`]; so many at most.
    All { limit: Option<u64> },
    /// See [`Source::page`].
    Page { after: Option<RowKey>, to: Option<RowKey>, limit: u64 },
    /// See [`Source::share`].
    Share { share: f64, limit: u64, seed: u64 },
    /// See [`Source::slice`].
    Slice { start: i128, end: Option<i128>, limit: u64 },
}

impl Rows {
    /// The first of them.
    pub fn first(mut self, rows: u64) -> Rows {
        match &mut self {
            Rows::All { limit } => *limit = Some(rows),
            Rows::Page { limit, .. } | Rows::Share { limit, .. } | Rows::Slice { limit, .. } => {
                *limit = rows.min(*limit);
            }
        }
        self
    }
}

impl Source {
    pub fn new(table: &TableName, columns: Vec<Column>, key: &[u32]) -> Source {
        let from = format!("{}.{}", identifier(&table.database), identifier(&table.table));
        Source { from, columns, key: key.iter().map(|&column| column as usize).collect() }
    }

    fn key_columns(&self) -> impl Iterator<Item = &Column> {
        self.key.iter().map(|&column| &self.columns[column])
    }

    fn values(&self) -> Vec<String> {
        self.columns.iter().map(Column::value).collect()
    }

    fn order(&self) -> String {
        self.key_columns().map(Column::name).collect::<Vec<_>>().join(", ")
    }

    /// The statement for these rows; `None` when a key is none of this table's. Only a page gives keys.
    pub fn rows(&self, rows: &Rows) -> Option<Keyed> {
        let sql = match rows {
            Rows::All { limit: None } => self.all(),
            Rows::All { limit: Some(limit) } => format!("{} LIMIT {limit}", self.all()),
            Rows::Page { after, to, limit } => return self.page(after.as_ref(), to.as_ref(), *limit),
            Rows::Share { share, limit, seed } => self.share(*share, *limit, *seed),
            Rows::Slice { start, end, limit } => self.slice(*start, *end, *limit)?,
        };
        Some(Keyed { sql, key_at: Vec::new() })
    }

    /// All rows, in whatever order.
    fn all(&self) -> String {
        format!("SELECT {} FROM {}", self.values().join(", "), self.from)
    }

    /// The first rows after one key up to and with another, with their keys, in the key's order. `None` when a
    /// key is none of this table's.
    pub fn page(&self, after: Option<&RowKey>, to: Option<&RowKey>, rows: u64) -> Option<Keyed> {
        let mut values = self.values();
        let mut key_at = Vec::new();
        for column in self.key_columns() {
            let key = column.key();
            key_at.push(values.iter().position(|value| *value == key).unwrap_or(values.len()));
            if key_at.last() == Some(&values.len()) {
                values.push(key);
            }
        }
        let (from, range, order) = (&self.from, self.range(after, to)?, self.order());
        let values = values.join(", ");
        let sql =
            format!("SELECT {values} FROM {from} FORCE INDEX (PRIMARY){range} ORDER BY {order} LIMIT {rows}");
        Some(Keyed { sql, key_at })
    }

    /// The key of the row that is so many rows after another.
    pub fn boundary(&self, after: Option<&RowKey>, rows: u64) -> Option<String> {
        let keys = self.key_columns().map(Column::key).collect::<Vec<_>>().join(", ");
        let (from, range, order) = (&self.from, self.range(after, None)?, self.order());
        let before = rows.saturating_sub(1);
        Some(format!(
            "SELECT {keys} FROM {from} FORCE INDEX (PRIMARY){range} ORDER BY {order} LIMIT 1 OFFSET {before}"
        ))
    }

    fn range(&self, after: Option<&RowKey>, to: Option<&RowKey>) -> Option<String> {
        let mut conditions = Vec::new();
        for (key, [wide, strict, last]) in [(after, [">=", ">", ">"]), (to, ["<=", "<", "<="])] {
            let Some(key) = key else { continue };
            if key.len() != self.key.len() {
                return None;
            }
            let literals: Option<Vec<String>> =
                self.key_columns().zip(key).map(|(column, part)| column.literal(part)).collect();
            let parts: Vec<(&str, String)> = self.key_columns().map(Column::name).zip(literals?).collect();
            let (name, literal) = parts.first()?;
            if parts.len() > 1 {
                conditions.push(format!("{name} {wide} {literal}"));
            }
            conditions.push(beyond(&parts, strict, last));
        }
        Some(if conditions.is_empty() {
            String::new()
        } else {
            format!(" WHERE {}", conditions.join(" AND "))
        })
    }

    /// How many rows there are.
    pub fn count(&self) -> String {
        format!("SELECT COUNT(*) FROM {}", self.from)
    }

    /// About this share of all rows, by chance, and at most so many.
    fn share(&self, share: f64, limit: u64, seed: u64) -> String {
        // It takes the low 32 bits of its seed, and is the same for each start of the same statement.
        let seed = (seed ^ (seed >> 32)) as u32;
        format!("{} WHERE RAND({seed}) < {share:e} LIMIT {limit}", self.all())
    }

    /// The least and the greatest of the key's first column.
    pub fn extremes(&self) -> Option<String> {
        let name = self.key_columns().next()?.name();
        Some(format!("SELECT MIN({name}), MAX({name}) FROM {}", self.from))
    }

    /// Per position, the key's first column in the first row at or after it: one look into the index each.
    pub fn starts(&self, positions: &[i128]) -> Option<String> {
        let (name, from) = (self.key_columns().next()?.name(), &self.from);
        let start = |at: &i128| format!("(SELECT MIN({name}) FROM {from} WHERE {name} >= {at})");
        Some(format!("SELECT {}", positions.iter().map(start).collect::<Vec<_>>().join(", ")))
    }

    /// The first rows from one value of the key's first column to before another.
    pub fn slice(&self, start: i128, end: Option<i128>, rows: u64) -> Option<String> {
        let (name, from) = (self.key_columns().next()?.name(), &self.from);
        let end = end.map(|end| format!(" AND {name} < {end}")).unwrap_or_default();
        let (values, order) = (self.values().join(", "), self.order());
        Some(format!(
            "SELECT {values} FROM {from} FORCE INDEX (PRIMARY) WHERE {name} >= {start}{end} ORDER BY {order} \
             LIMIT {rows}"
        ))
    }
}

/// Rows beyond a key, by each column in turn; the last column alone decides with `last`.
fn beyond(parts: &[(&str, String)], strict: &str, last: &str) -> String {
    match parts {
        [] => String::new(),
        [(name, literal)] => format!("{name} {last} {literal}"),
        [(name, literal), rest @ ..] => {
            let rest = beyond(rest, strict, last);
            format!("({name} {strict} {literal} OR ({name} = {literal} AND {rest}))")
        }
    }
}

#[cfg(test)]
mod tests {
    use domesday_model::ColumnShape;

    use super::*;

    fn source(types: &[(&str, &str)], key: &[u32]) -> Source {
        let shape = |&(name, type_name): &(&str, &str)| ColumnShape {
            name: name.into(),
            type_name: type_name.into(),
            comment: None,
        };
        let columns: Vec<ColumnShape> = types.iter().map(shape).collect();
        let table = TableName { database: "d`b".into(), table: "t".into(), ..TableName::default() };
        Source::new(&table, Column::all(&columns), key)
    }

    #[test]
    fn a_range_is_written_out_so_that_the_index_is_used() {
        let table = source(&[("v", "varchar(9)"), ("a", "int(11)"), ("b", "int(11)")], &[1, 2]);
        let (after, to) = (vec!["1".to_owned(), "2".to_owned()], vec!["3".to_owned(), "4".to_owned()]);
        let page = table.page(Some(&after), Some(&to), 10).unwrap();
        assert_eq!(
            page.sql,
            "SELECT `v`, `a`, `b` FROM `d``b`.`t` FORCE INDEX (PRIMARY) WHERE `a` >= 1 AND (`a` > 1 OR (`a` = 1 \
             AND `b` > 2)) AND `a` <= 3 AND (`a` < 3 OR (`a` = 3 AND `b` <= 4)) ORDER BY `a`, `b` LIMIT 10"
        );
        assert_eq!(page.key_at, [1, 2]);
        assert!(table.page(None, None, 10).unwrap().sql.contains("(PRIMARY) ORDER BY"));
        assert!(table.page(Some(&after[..1].to_vec()), None, 1).is_none());
        assert!(table.page(Some(&vec!["1".into(), "x".into()]), None, 1).is_none());
    }

    #[test]
    fn a_key_that_does_not_come_as_its_value_is_read_beside_it() {
        let table = source(&[("e", "enum('z','a')"), ("b", "varbinary(4)")], &[0, 1]);
        let page = table.page(Some(&vec!["2".into(), "00FF".into()]), None, 5).unwrap();
        assert!(page.sql.starts_with("SELECT `e`, `b`, `e` + 0, HEX(`b`) FROM"), "{}", page.sql);
        assert!(page.sql.contains("`e` >= 2 AND (`e` > 2 OR (`e` = 2 AND `b` > x'00FF'))"), "{}", page.sql);
        assert_eq!(page.key_at, [2, 3]);
    }
}
