//! The tables that database sources have: many small ones in several schemas, empty ones, unusual names, and a long
//! one that is read in ranges. The same for each kind of server and seed.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use domesday_testkit::tds::model::{Database, Schema, Table};
use domesday_testkit::tds::{PASSWORD, TdsServer, Type, USER, Value};
use domesday_testkit::{mariadb, postgres};

use super::content::Contents;
use super::source::Source;
use super::tree::Shape;

/// Schemas, for servers that have them.
const SCHEMAS: [&str; 3] = ["sales", "people", "odd/na%me"];
/// One in so many files of the tree's shape is a small table.
const FILES_PER_TABLE: u64 = 10;
/// Rows of a small table.
const SMALL_ROWS: u64 = 12;
/// One in so many rows has something in it.
const PLANTED_EVERY: u64 = 6;
/// One in so many rows of the long table has something in it.
const LONG_PLANTED_EVERY: u64 = 40;
/// Rows of a range: the long table has many.
const PART_ROWS: u64 = 500;
/// Rows put into a table with one statement.
const ROWS_PER_INSERT: usize = 100;
/// The variable that the scan takes a server's password from.
const PASSWORD_VARIABLE: &str = "CRASH_DATABASE_PASSWORD";

/// One generated table.
struct Generated {
    schema: &'static str,
    name: String,
    /// Number, address, note.
    rows: Vec<(u64, String, Option<String>)>,
}

fn generate(seed: u64, shape: Shape) -> (Vec<Generated>, u64) {
    let mut contents = Contents::new(seed);
    let mut table = |schema, name: String, rows: u64, planted_every: u64| {
        let row = |id: u64| {
            let note = match id % planted_every {
                1 => Some(contents.planted()),
                2 => None,
                _ => Some(contents.prose(1)),
            };
            (id, format!("user{id}@corp-mail.org"), note)
        };
        Generated { schema, name, rows: (1..=rows).map(row).collect() }
    };
    let mut tables = vec![
        table(SCHEMAS[0], "long".to_owned(), shape.many, LONG_PLANTED_EVERY),
        table(SCHEMAS[1], "empty".to_owned(), 0, PLANTED_EVERY),
        table(SCHEMAS[2], "100% \"odd\"/n\u{e4}me".to_owned(), SMALL_ROWS, PLANTED_EVERY),
    ];
    for number in 0..shape.files / FILES_PER_TABLE {
        let schema = SCHEMAS[number as usize % SCHEMAS.len()];
        tables.push(table(schema, format!("small_{number}"), SMALL_ROWS, PLANTED_EVERY));
    }
    (tables, contents.planted)
}

/// How names and types are written in one kind of SQL.
struct Dialect {
    quote: char,
    has_schemas: bool,
    text: &'static str,
}

impl Dialect {
    fn quoted(&self, name: &str) -> String {
        let quote = self.quote;
        format!("{quote}{}{quote}", name.replace(quote, &format!("{quote}{quote}")))
    }

    /// Everything that makes the tables, statement by statement.
    fn statements(&self, tables: &[Generated]) -> Vec<String> {
        let mut statements = Vec::new();
        if self.has_schemas {
            statements.extend(SCHEMAS.map(|schema| format!("CREATE SCHEMA {}", self.quoted(schema))));
        }
        for table in tables {
            let mut name = self.quoted(&table.name);
            if self.has_schemas {
                name = format!("{}.{name}", self.quoted(table.schema));
            }
            statements.push(format!(
                "CREATE TABLE {name} (id INTEGER PRIMARY KEY, email {0}, note {0})",
                self.text
            ));
            for rows in table.rows.chunks(ROWS_PER_INSERT) {
                let row = |(id, email, note): &(u64, String, Option<String>)| match note {
                    // Neither has a quote or a backslash in it.
                    Some(note) => format!("({id}, '{email}', '{note}')"),
                    None => format!("({id}, '{email}', NULL)"),
                };
                let values: Vec<String> = rows.iter().map(row).collect();
                statements.push(format!("INSERT INTO {name} VALUES {}", values.join(", ")));
            }
        }
        statements
    }
}

fn options(address: String) -> Vec<String> {
    let part_rows = format!("part_rows={PART_ROWS}");
    [&address, "--set", "mode=full", "--set", &part_rows].map(str::to_owned).to_vec()
}

pub fn sqlite(folder: &Path, seed: u64, shape: Shape) -> Result<Source> {
    let (tables, planted) = generate(seed, shape);
    let path = folder.join(format!("tables-{seed}.db"));
    if path.exists() {
        fs::remove_file(&path)?;
    }
    let mut connection = rusqlite::Connection::open(&path)?;
    let transaction = connection.transaction()?;
    for statement in (Dialect { quote: '"', has_schemas: false, text: "TEXT" }).statements(&tables) {
        transaction.execute(&statement, []).context("cannot make the tables")?;
    }
    transaction.commit()?;
    let address = format!("sqlite:{}", path.to_str().context("the folder's path is no text")?);
    Ok(Source::served(options(address), planted, connection))
}

pub fn postgres(seed: u64, shape: Shape) -> Result<Source> {
    let (tables, planted) = generate(seed, shape);
    let server = postgres::Server::start(None);
    let url = server.create_database();
    let database =
        url.rsplit('/').next().and_then(|rest| rest.split('?').next()).unwrap_or_default().to_owned();
    let statements = Dialect { quote: '"', has_schemas: true, text: "TEXT" }.statements(&tables);
    let mut client = server.client("psql");
    client.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", &database]);
    feed(client, &format!("BEGIN;\n{};\nCOMMIT;\nANALYZE;\n", statements.join(";\n")))?;
    let address = format!("postgres://postgres@localhost:{}/{database}?tls=disable", server.port());
    Ok(Source::served(options(address), planted, server))
}

pub fn mysql(seed: u64, shape: Shape) -> Result<Source> {
    let (tables, planted) = generate(seed, shape);
    let server = mariadb::Server::start(None);
    let database = server.create_database();
    let dialect = Dialect { quote: '`', has_schemas: false, text: "TEXT" };
    let names: Vec<String> = tables.iter().map(|table| dialect.quoted(&table.name)).collect();
    // The server's guesses of rows and sizes are part of the catalogue: they are made once, and stay.
    let sql = format!(
        "SET GLOBAL innodb_stats_auto_recalc = OFF;\nBEGIN;\n{};\nCOMMIT;\nANALYZE TABLE {};\n",
        dialect.statements(&tables).join(";\n"),
        names.join(", "),
    );
    server.try_sql(&database, &sql).map_err(|error| anyhow!(error))?;
    let address = format!("mysql://{}@127.0.0.1:{}/{database}?tls=disable", mariadb::USER, server.port());
    Ok(Source::served(options(address), planted, server))
}

/// The scripted server.
pub fn sqlserver(seed: u64, shape: Shape) -> Result<Source> {
    let (tables, planted) = generate(seed, shape);
    let columns = [("id", Type::Int), ("email", Type::NVarChar(Some(80))), ("note", Type::NVarChar(None))];
    let row = |(id, email, note): (u64, String, Option<String>)| {
        vec![Value::Int(id as i64), Value::Text(email), note.map_or(Value::Null, Value::Text)]
    };
    let mut schemas = SCHEMAS.map(|schema| Schema::new(schema, Vec::new()));
    for table in tables {
        let made = Table::new(&table.name, &columns, &[0], table.rows.into_iter().map(row).collect());
        let schema = schemas.iter_mut().find(|schema| schema.name == table.schema);
        schema.context("every table is in one of the schemas")?.tables.push(made);
    }
    let server = TdsServer::plain(vec![Database::new("shop", schemas.into())]);
    let address = format!("sqlserver://{USER}@127.0.0.1:{}/shop?tls=disable", server.port());
    let mut arguments = options(address);
    arguments.extend(["--credential".to_owned(), format!("env:{PASSWORD_VARIABLE}")]);
    let mut source = Source::served(arguments, planted, server);
    source.environment = vec![(PASSWORD_VARIABLE, PASSWORD.to_owned())];
    Ok(source)
}

/// Runs a client with SQL on its input.
fn feed(mut client: Command, sql: &str) -> Result<()> {
    let mut child = client.stdin(Stdio::piped()).spawn().with_context(|| format!("cannot run {client:?}"))?;
    let written = child.stdin.take().context("its input is piped")?.write_all(sql.as_bytes());
    let status = child.wait()?;
    if !status.success() {
        bail!("{client:?} failed: {status}");
    }
    Ok(written?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_tables() {
        let shape = Shape { files: 40, many: 100, dense: 0, archives: 0 };
        let dialect = Dialect { quote: '"', has_schemas: true, text: "TEXT" };
        let (tables, planted) = generate(3, shape);
        assert_eq!(tables.len(), 7);
        assert_eq!(planted, 3 + 5 * 2);
        let statements = dialect.statements(&tables);
        assert_eq!(statements, dialect.statements(&generate(3, shape).0));
        assert!(statements.iter().any(|sql| sql.contains("\"odd/na%me\".\"100% \"\"odd\"\"/n\u{e4}me\"")));
    }

    #[test]
    fn an_sqlite_file_has_every_row() {
        let folder = tempfile::tempdir().unwrap();
        let shape = Shape { files: 10, many: 250, dense: 0, archives: 0 };
        let source = sqlite(folder.path(), 1, shape).unwrap();
        let connection = rusqlite::Connection::open(folder.path().join("tables-1.db")).unwrap();
        let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(count("SELECT count(*) FROM long"), 250);
        assert_eq!(count("SELECT count(*) FROM long WHERE note LIKE '%AKIA%'"), 7);
        assert_eq!(source.planted, 7 + 2 + 2);
    }
}
