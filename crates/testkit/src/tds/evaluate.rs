//! Runs the little SQL of [`super::sql`] on the model, with the server's own rules: what a conversion writes and
//! reads, how keys are ordered, what a sample of pages is.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::ServerError;
use super::model::{Database, Kind, Table};
use super::sql::{Expression, Select};
use super::text;
use super::values::{Type, Value, stored_guid};

/// Rows of a page, which is what is sampled.
const PAGE_ROWS: usize = 16;

/// A result set.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Rows {
    pub columns: Vec<(String, Type)>,
    pub rows: Vec<Vec<Value>>,
}

/// Values of a statement's variables.
pub type Variables = HashMap<String, Value>;

type Typed = (Type, Value);

pub fn select(select: &Select, database: &Database, variables: &Variables) -> Result<Rows, ServerError> {
    let table = database.table(&select.schema, &select.table);
    let table = table.ok_or_else(|| {
        ServerError::new(208, 16, &format!("Invalid object name '{}.{}'.", select.schema, select.table))
    })?;
    if table.is_refused {
        let message = format!(
            "The SELECT permission was denied on the object '{}', database '{}', schema '{}'.",
            table.name, database.name, select.schema
        );
        return Err(ServerError::new(229, 14, &message));
    }
    if select.sample.is_some() && table.kind != Kind::Table {
        return Err(ServerError::new(494, 15, "The TABLESAMPLE clause can only be used with local tables."));
    }
    let scope = |row: &'_ [Value]| Scope { table, row: row.to_vec(), variables };

    let mut found: Vec<&Vec<Value>> = Vec::new();
    for (place, row) in table.rows.iter().enumerate() {
        let is_sampled = select.sample.is_none_or(|(percent, seed)| is_on_sampled_page(place, percent, seed));
        if is_sampled && select.condition.as_ref().map_or(Ok(true), |c| scope(row).holds(c))? {
            found.push(row);
        }
    }
    let mut order = Vec::new();
    for name in &select.order {
        order.push(place_of(table, name)?);
    }
    found.sort_by(|a, b| {
        order.iter().map(|&at| compare(&a[at], &b[at])).find(|found| found.is_ne()).unwrap_or(Ordering::Equal)
    });
    let from = select.offset.unwrap_or(0) as usize;
    let wanted = found.into_iter().skip(from).take(select.top.unwrap_or(u64::MAX) as usize);

    // Types come from a row of nulls: they do not depend on values.
    let nulls = vec![Value::Null; table.columns.len()];
    let types = |expression| Ok(scope(&nulls).value(expression)?.0);
    let names = select.columns.iter().map(|expression| match expression {
        Expression::Column(name) => name.clone(),
        _ => String::new(),
    });
    let types: Vec<Type> = select.columns.iter().map(types).collect::<Result<_, ServerError>>()?;
    let value = |row: &Vec<Value>| {
        let values = select.columns.iter().map(|expression| Ok(scope(row).value(expression)?.1));
        values.collect::<Result<Vec<Value>, ServerError>>()
    };
    Ok(Rows {
        columns: names.zip(types).collect(),
        rows: wanted.map(value).collect::<Result<_, ServerError>>()?,
    })
}

/// Pages are taken by a hash of the seed and their place.
fn is_on_sampled_page(place: usize, percent: f64, seed: u64) -> bool {
    let page = (place / PAGE_ROWS) as u64;
    let mut hash = (page ^ seed.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^= hash >> 29;
    hash = hash.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((hash >> 40) % 10_000) as f64 <= percent * 100.0
}

fn place_of(table: &Table, name: &str) -> Result<usize, ServerError> {
    let found = table.columns.iter().position(|column| column.name == name);
    found.ok_or_else(|| ServerError::new(207, 16, &format!("Invalid column name '{name}'.")))
}

struct Scope<'a> {
    table: &'a Table,
    row: Vec<Value>,
    variables: &'a Variables,
}

impl Scope<'_> {
    fn holds(&self, condition: &Expression) -> Result<bool, ServerError> {
        Ok(match condition {
            Expression::And(a, b) => self.holds(a)? && self.holds(b)?,
            Expression::Or(a, b) => self.holds(a)? || self.holds(b)?,
            Expression::Compare(a, sign, b) => {
                let order = compare(&self.value(a)?.1, &self.value(b)?.1);
                match *sign {
                    "<" => order.is_lt(),
                    "<=" => order.is_le(),
                    ">" => order.is_gt(),
                    ">=" => order.is_ge(),
                    _ => order.is_eq(),
                }
            }
            other => return Err(ServerError::syntax(&format!("{other:?} is no condition"))),
        })
    }

    fn value(&self, expression: &Expression) -> Result<Typed, ServerError> {
        Ok(match expression {
            Expression::Column(name) => {
                let place = place_of(self.table, name)?;
                let column = &self.table.columns[place];
                if column.is_refused {
                    let message = format!("The SELECT permission was denied on the column '{name}'.");
                    return Err(ServerError::new(230, 14, &message));
                }
                let of = if column.is_encrypted { Type::VarBinary(None) } else { column.of.clone() };
                (of, self.row[place].clone())
            }
            Expression::Variable(name) => {
                let value = self.variables.get(name);
                let value = value.ok_or_else(|| {
                    ServerError::new(137, 15, &format!("Must declare the scalar variable \"@{name}\"."))
                })?;
                (Type::NVarChar(Some(4_000)), value.clone())
            }
            Expression::Number(number) => (Type::BigInt, Value::Int(*number as i64)),
            Expression::Text(text) => (Type::NVarChar(Some(4_000)), Value::text(text)),
            Expression::Null => (Type::Int, Value::Null),
            Expression::Convert(to, arguments, what, style) => {
                self.refuse_encrypted(what)?;
                let to = text::type_named(to, arguments).ok_or_else(|| {
                    ServerError::new(243, 16, &format!("Type {to} is not a defined system type."))
                })?;
                let (from, value) = self.value(what)?;
                let value = text::convert(&from, &value, &to, *style)?;
                (to, value)
            }
            Expression::Substring(what, from, count) => {
                self.refuse_encrypted(what)?;
                let (of, value) = self.value(what)?;
                (of, substring(value, *from - 1, *count)?)
            }
            Expression::ToString(what) => {
                let value = match self.value(what)? {
                    (_, Value::Clr(_, text)) => Value::Text(text),
                    (Type::Clr(_), Value::Null) => Value::Null,
                    (of, _) => {
                        return Err(ServerError::new(258, 15, &format!("Cannot call methods on {of:?}.")));
                    }
                };
                (Type::NVarChar(None), value)
            }
            other => return Err(ServerError::syntax(&format!("{other:?} is no value"))),
        })
    }

    /// The server cannot look into a column that is encrypted by its clients.
    fn refuse_encrypted(&self, expression: &Expression) -> Result<(), ServerError> {
        match expression {
            Expression::Column(name) if self.table.columns[place_of(self.table, name)?].is_encrypted => {
                Err(ServerError::new(206, 16, "Operand type clash: encrypted column."))
            }
            _ => Ok(()),
        }
    }
}

/// Texts are counted in units of UTF-16.
fn substring(value: Value, from: usize, count: usize) -> Result<Value, ServerError> {
    Ok(match value {
        Value::Null => Value::Null,
        Value::Bytes(bytes) => Value::Bytes(bytes.into_iter().skip(from).take(count).collect()),
        Value::Text(text) => {
            let units: Vec<u16> = text.encode_utf16().skip(from).take(count).collect();
            Value::Text(String::from_utf16_lossy(&units))
        }
        other => {
            let message = format!("Argument data type of {other:?} is invalid for argument 1 of substring.");
            return Err(ServerError::new(8116, 16, &message));
        }
    })
}

/// The order of values of one type. Texts are compared without case, as most servers are set up to do, and unique
/// identifiers by their last group first.
fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Less,
        (_, Value::Null) => Ordering::Greater,
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Decimal(a), Value::Decimal(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => a.total_cmp(b),
        (Value::Text(a), Value::Text(b)) => {
            a.trim_end_matches(' ').to_lowercase().cmp(&b.trim_end_matches(' ').to_lowercase())
        }
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        (Value::Clr(_, a), Value::Clr(_, b)) => a.cmp(b),
        (Value::Guid(a), Value::Guid(b)) => {
            let weight = |guid: &[u8; 16]| {
                let stored = stored_guid(guid);
                [&stored[10..], &stored[8..10], &stored[6..8], &stored[4..6], &stored[..4]].concat()
            };
            weight(a).cmp(&weight(b))
        }
        (Value::Moment { days, ticks, offset }, Value::Moment { days: d, ticks: t, offset: o }) => {
            let instant = |days: i64, ticks: i64, offset: i16| {
                (days * 86_400 - i64::from(offset) * 60) * super::values::TICKS_PER_SECOND + ticks
            };
            instant(*days, *ticks, *offset).cmp(&instant(*d, *t, *o))
        }
        (a, b) => panic!("{a:?} and {b:?} are not compared: a conversion is missing"),
    }
}
