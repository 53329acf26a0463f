//! Reading rows: which statement gives them, and the way from its answer to the sink.
//!
//! Every name is quoted and every value of a key is a quoted literal: `COPY` takes no parameters. The literal has
//! no type of its own, so that the server reads it as the column's.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::pin::pin;

use domesday_connector::ConnectorError;
use domesday_model::{Reason, RowBatch, TableShape};
use futures_util::StreamExt;
use serde_json::Value;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row, SimpleQueryMessage, SimpleQueryRow};

use super::attempt::{Access, Failure, Tail};
use super::copy::{self, BadCopy, Begins, Fields};
use super::error::{code, container};
use super::session::{PostgresSession, Purpose};
use super::values::{CHAR_LEN_MAX, ColumnType, Form, Text, select};
use crate::databases::dialect::{RowKey, TableName, Which};
use crate::databases::rows::RowSink;

const COLUMNS: &str = include_str!("queries/columns.sql");

/// Bytes of a table up to which each of its rows is decided on by itself: 64 MiB. Of a larger one whole pages
/// are left out unread.
const ROWWISE_BYTES_MAX: f64 = (64 << 20) as f64;
/// How many times as many pages are read as would do: rows of one page are often alike.
const PAGES_EXCESS: f64 = 8.0;
/// Seeds that the server can tell apart.
const SEEDS: u64 = 1 << 31;
/// How much more than what was asked for a sample may have.
const SAMPLE_EXCESS: u64 = 2;

/// What must be known of a table to read it.
pub(super) struct Plan {
    /// Where from: quoted, without what is inherited where that is listed by itself.
    from: String,
    /// The columns of the shape, quoted, as they are selected, and what arrives.
    columns: Vec<(String, String, Form)>,
    /// Whether rows can be compared with a key by the server's own operators.
    has_plain_key: bool,
    /// Whether the server samples it by itself.
    can_sample: bool,
}

/// What is selected for a column that is left out.
const NOTHING: &str = "NULL";

/// A name in double quotes.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text in single quotes, with backslashes as they are (`standard_conforming_strings`).
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

impl Plan {
    /// From what the catalogue says of the table now. Columns of which `is_out` says so are left out.
    pub async fn new(
        session: &PostgresSession,
        table: &TableName,
        shape: &TableShape,
        is_out: impl Fn(usize) -> bool,
    ) -> Result<Plan, Failure> {
        let names: [(&(dyn ToSql + Sync), Type); 2] =
            [(&table.schema, Type::TEXT), (&table.table, Type::TEXT)];
        let rows = session.client.query_typed(COLUMNS, &names).await?;
        let plan = Plan::of(table, shape, &rows, is_out)?;
        Ok(plan.ok_or_else(|| match rows.is_empty() {
            true => container(Reason::Vanished, "is gone since it was listed"),
            false => container(Reason::Changed, "a column is gone since the table was listed"),
        })?)
    }

    /// `None` when a column is not there.
    fn of(
        table: &TableName,
        shape: &TableShape,
        rows: &[Row],
        is_out: impl Fn(usize) -> bool,
    ) -> Result<Option<Plan>, Error> {
        let named: Result<HashMap<String, &Row>, Error> =
            rows.iter().map(|row| Ok((row.try_get::<_, Text>(0)?.text, row))).collect();
        let named = named?;
        let (mut columns, mut is_plain, mut relkind) = (Vec::new(), Vec::new(), "");
        for (place, column) in shape.columns.iter().enumerate() {
            let Some(row) = named.get(&column.name) else { return Ok(None) };
            relkind = row.try_get(7)?;
            is_plain.push(row.try_get::<_, bool>(4)?);
            let name = quoted(&column.name);
            if is_out(place) {
                columns.push((name, NOTHING.to_owned(), Form::Bytes));
                continue;
            }
            let (type_name, as_text): (Text, Option<Text>) = (row.try_get(5)?, row.try_get(6)?);
            let of = ColumnType {
                oid: row.try_get(1)?,
                modifier: row.try_get(2)?,
                len: row.try_get(3)?,
                name: &type_name.text,
                as_text: as_text.as_ref().map(|function| function.text.as_str()),
            };
            let (selected, form) = select(&name, &of);
            columns.push((name, selected, form));
        }
        let only = if relkind == "r" { "ONLY " } else { "" };
        let from = format!("{only}{}.{}", quoted(&table.schema), quoted(&table.table));
        let has_plain_key =
            shape.primary_key.iter().all(|&column| is_plain.get(column as usize).copied().unwrap_or(false));
        let can_sample = matches!(relkind, "r" | "m" | "p");
        Ok(Some(Plan { from, columns, has_plain_key, can_sample }))
    }

    fn copy(&self, tail: &Tail) -> String {
        let selected: Vec<&str> = self.columns.iter().map(|(_, selected, _)| selected.as_str()).collect();
        format!("COPY (SELECT {} FROM {}{tail}) TO STDOUT (FORMAT binary)", selected.join(", "), self.from)
    }

    /// The names of the key's columns.
    fn key(&self, shape: &TableShape) -> Vec<&str> {
        shape.primary_key.iter().map(|&column| self.columns[column as usize].0.as_str()).collect()
    }
}

/// A condition that puts a key on one side of a bound.
fn bounded(key: &[&str], operator: &str, bound: &RowKey) -> String {
    let literals: Vec<String> = bound.iter().map(|value| literal(value)).collect();
    format!("({}) {operator} ({})", key.join(", "), literals.join(", "))
}

/// The rows of a range.
fn in_range(key: &[&str], after: Option<&RowKey>, to: Option<&RowKey>) -> String {
    let conditions = [after.map(|bound| bounded(key, ">", bound)), to.map(|bound| bounded(key, "<=", bound))];
    let conditions: Vec<String> = conditions.into_iter().flatten().collect();
    if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) }
}

/// The key of the last row of a range, found in a transaction of its own. A key of types whose order is not the server's
/// own parts nothing: the range is the whole table.
pub(super) async fn boundary(
    session: &PostgresSession,
    table: &TableName,
    shape: &TableShape,
    after: Option<&RowKey>,
    rows: u64,
    policies: bool,
) -> Result<Option<RowKey>, Failure> {
    session.begin(Purpose::Key { policies }).await?;
    let plan = Plan::new(session, table, shape, |_| false).await?;
    if !plan.has_plain_key {
        session.commit().await?;
        return Ok(None);
    }
    let key = plan.key(shape);
    let texts: Vec<String> = key.iter().map(|name| format!("{name}::text")).collect();
    // A bare name would mean the selected text, whose order is another.
    let order: Vec<String> = key.iter().map(|name| format!("of.{name}")).collect();
    let query = format!(
        "SELECT {} FROM {} AS of{} ORDER BY {} OFFSET {} LIMIT 1",
        texts.join(", "),
        plan.from,
        in_range(&key, after, None),
        order.join(", "),
        rows.saturating_sub(1)
    );
    let found = session.client.simple_query(&query).await?;
    session.commit().await?;
    let row = found.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    // A key in no encoding cannot be one's bound.
    let part = |row: &SimpleQueryRow, column| row.try_get(column).ok().flatten().map(str::to_owned);
    Ok(row.and_then(|row| (0..key.len()).map(|column| part(row, column)).collect()))
}

/// Reads rows, in a transaction of its own.
pub(super) async fn rows(
    session: &PostgresSession,
    table: &TableName,
    shape: &TableShape,
    which: &Which,
    access: &mut Access,
    sink: &mut RowSink,
) -> Result<(), Failure> {
    session.begin(Purpose::Rows { policies: access.policies }).await?;
    let plan = Plan::new(session, table, shape, |place| access.is_out(place)).await?;
    match which {
        Which::All => copy(session, &plan, Tail::default(), access, sink).await?,
        Which::Range { after, to } => {
            let range = in_range(&plan.key(shape), after.as_ref(), to.as_ref());
            copy(session, &plan, Tail { rest: range, limit: None }, access, sink).await?;
        }
        Which::Sample { rows, seed } => sample(session, &plan, *rows, *seed, access, sink).await?,
    }
    Ok(session.commit().await?)
}

/// Reads rows with the columns that are not out, and throws them away.
pub(super) async fn try_rows(
    session: &PostgresSession,
    table: &TableName,
    shape: &TableShape,
    access: &Access,
    rows: u64,
    is_out: impl Fn(usize) -> bool,
) -> Result<(), Failure> {
    session.begin(Purpose::Rows { policies: access.policies }).await?;
    let plan = Plan::new(session, table, shape, is_out).await?;
    let limit = access.tail.limit.map_or(rows, |limit| limit.min(rows));
    let tail = Tail { limit: Some(limit), ..access.tail.clone() };
    let mut stream = pin!(session.client.copy_out(&plan.copy(&tail)).await?);
    while let Some(arrived) = stream.next().await {
        arrived?;
    }
    Ok(session.commit().await?)
}

/// About so many rows, from all over the table. How many it has is the planner's guess, which also views have.
async fn sample(
    session: &PostgresSession,
    plan: &Plan,
    rows: u64,
    seed: u64,
    access: &mut Access,
    sink: &mut RowSink,
) -> Result<(), Failure> {
    let (estimate, width) = estimate(session, plan).await?;
    let (share, seed) = (rows as f64 / estimate.max(1.0), seed % SEEDS);
    let most = Tail { rest: String::new(), limit: Some(rows.saturating_mul(SAMPLE_EXCESS)) };
    if share >= 1.0 {
        return copy(session, plan, most, access, sink).await;
    }
    let chance = seed as f64 / SEEDS as f64;
    session.client.batch_execute(&format!("SELECT setseed({chance})")).await?;
    let mut rest = String::new();
    let random = if !plan.can_sample {
        share
    } else if estimate * width <= ROWWISE_BYTES_MAX || share * PAGES_EXCESS >= 1.0 {
        let percent = share * 100.0;
        let _ = write!(rest, " TABLESAMPLE BERNOULLI ({percent}) REPEATABLE ({seed})");
        1.0
    } else {
        let percent = share * PAGES_EXCESS * 100.0;
        let _ = write!(rest, " TABLESAMPLE SYSTEM ({percent}) REPEATABLE ({seed})");
        1.0 / PAGES_EXCESS
    };
    if random < 1.0 {
        let _ = write!(rest, " WHERE random() < {random}");
    }
    copy(session, plan, Tail { rest, ..most }, access, sink).await?;
    if sink.rows() > 0 {
        return Ok(());
    }
    // There are far fewer rows than the planner thinks: the first are better than none.
    copy(session, plan, Tail { rest: String::new(), limit: Some(rows) }, access, sink).await
}

/// Rows, and bytes of each, as the planner guesses.
async fn estimate(session: &PostgresSession, plan: &Plan) -> Result<(f64, f64), Failure> {
    let read = plan.columns.iter().filter(|(_, selected, _)| selected != NOTHING);
    let columns: Vec<&str> = read.map(|(name, ..)| name.as_str()).collect();
    let query = format!("EXPLAIN (FORMAT JSON) SELECT {} FROM {}", columns.join(", "), plan.from);
    let answer = session.client.simple_query(&query).await?;
    let told = answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.try_get(0).ok().flatten(),
        _ => None,
    });
    let told: Value = told.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let number = |name: &str| told[0]["Plan"][name].as_f64().unwrap_or_default();
    Ok((number("Plan Rows"), number("Plan Width")))
}

async fn copy(
    session: &PostgresSession,
    plan: &Plan,
    tail: Tail,
    access: &mut Access,
    sink: &mut RowSink,
) -> Result<(), Failure> {
    let statement = plan.copy(&tail);
    access.tail = tail;
    let stream = match session.client.copy_out(&statement).await {
        // A materialised view that was never filled has no rows.
        Err(error) if code(&error) == Some("55000") => {
            session.roll_back().await?;
            return Ok(session.begin(Purpose::Rows { policies: access.policies }).await?);
        }
        stream => stream?,
    };
    let mut stream = pin!(stream);
    let (mut pending, mut is_begun, mut is_ended) = (Vec::new(), false, false);
    while let Some(arrived) = stream.next().await {
        let arrived = arrived?;
        let is_whole = pending.is_empty();
        if !is_whole {
            pending.extend_from_slice(&arrived);
        }
        let bytes: &[u8] = if is_whole { &arrived } else { &pending };
        let mut at = 0;
        while !is_ended {
            let rest = &bytes[at..];
            let begins = if is_begun { copy::row(rest, plan.columns.len()) } else { copy::header(rest) };
            match begins.map_err(unreadable)? {
                Begins::Header { len } => {
                    is_begun = true;
                    at += len;
                }
                Begins::Row { fields, len } => {
                    push(plan, fields, sink.batch()).map_err(unreadable)?;
                    at += len;
                    if !sink.end_row().await {
                        return Ok(());
                    }
                }
                Begins::End => is_ended = true,
                Begins::Short => break,
            }
        }
        match is_whole {
            true => pending.extend_from_slice(&arrived[at..]),
            false => drop(pending.drain(..at)),
        }
        if is_ended {
            pending.clear();
        }
    }
    if is_ended { Ok(()) } else { Err(unreadable(BadCopy).into()) }
}

fn unreadable(_: BadCopy) -> ConnectorError {
    container(Reason::ReadError, "the server's rows are not what its protocol says")
}

fn push(plan: &Plan, fields: Fields<'_>, batch: &mut RowBatch) -> Result<(), BadCopy> {
    for ((value, (_, _, form)), column) in fields.zip(&plan.columns).zip(&mut batch.columns) {
        match value {
            None => column.push_null(),
            Some(value) if value.len() > RowBatch::VALUE_MAX => column.push_cut(cut(value)),
            Some(value) if *form == Form::Bytes => column.push(value),
            Some(value) => {
                let mut is_good = false;
                column.push_with(|out| is_good = form.write(value, out));
                if !is_good {
                    return Err(BadCopy);
                }
            }
        }
    }
    Ok(())
}

/// The beginning of a long value, which ends with a whole character if it is text.
fn cut(value: &[u8]) -> &[u8] {
    let is_inside = |&end: &usize| value[end] & 0xc0 == 0x80;
    let end =
        (RowBatch::VALUE_MAX + 1 - CHAR_LEN_MAX..=RowBatch::VALUE_MAX).rev().find(|end| !is_inside(end));
    &value[..end.unwrap_or(RowBatch::VALUE_MAX)]
}
