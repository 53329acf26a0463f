//! The scripted SQL Server, read by clients that are not ours: FreeTDS's `tsql`, and python-tds. What they make of its
//! log-ins, result sets, errors and encryption is what any client would, so that it does not only agree with the
//! connector it is there to test.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use domesday_testkit::feed;
use domesday_testkit::postgres::Certificates;
use domesday_testkit::tds::examples::{every_type, table_of_every_type};
use domesday_testkit::tds::model::{Database, Schema, Table};
use domesday_testkit::tds::{Fault, Identity, PASSWORD, ServerError, Setup, TdsServer, Type, USER, Value};

/// What python-tds is, exactly, and what it encrypts with.
const REQUIREMENTS: [&str; 2] = ["python-tds==1.17.1", "pyOpenSSL>=24"];
const READER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tds/read.py");
/// Columns whose types these clients write in ways of their own.
const OWN_WAYS: [&str; 3] = ["place", "node", "own"];

fn databases() -> Vec<Database> {
    let columns = [("id", Type::Int), ("note", Type::NVarChar(None)), ("mail", Type::VarChar(Some(40)))];
    let row = |n: i64| {
        let note =
            if n % 3 == 0 { Value::Null } else { Value::Text(format!("日{n} ").repeat(n as usize * 40)) };
        vec![Value::Int(n), note, Value::Text(format!("user{n}@example.org"))]
    };
    let mut closed = Database::new("closed", Vec::new());
    closed.is_refused = true;
    let mut hidden = Table::new("hidden", &columns, &[0], Vec::new());
    hidden.is_refused = true;
    let tables = vec![
        table_of_every_type("every"),
        Table::new("long", &columns, &[0], (1..=60).map(row).collect()),
        hidden,
    ];
    vec![Database::new("shop", vec![Schema::new("dbo", tables)]), closed]
}

fn server(packet_size: Option<u32>) -> TdsServer {
    TdsServer::start(Setup { databases: databases(), packet_size, ..Setup::default() })
}

/// The interpreter with python-tds, which is installed when it is first needed.
fn python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-tds");
        let (python, made) = (venv.join("bin/python"), venv.join("requirements"));
        let wanted = REQUIREMENTS.join("\n");
        if std::fs::read_to_string(&made).is_ok_and(|had| had == wanted) {
            return python;
        }
        let run = |command: &mut Command| {
            let ran = command.output();
            let is_done = ran.as_ref().is_ok_and(|ran| ran.status.success());
            assert!(
                is_done,
                "cannot get python-tds (it needs python3 with venv and pip): {command:?}: {ran:?}"
            );
        };
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv));
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(REQUIREMENTS));
        std::fs::write(made, wanted).unwrap();
        python
    })
}

/// What python-tds reads: its JSON.
fn python_tds(port: u16, database: &str, statement: &str, authorities: &str, parameters: &str) -> String {
    let mut command = Command::new(python());
    command.arg("-B").arg(READER).arg(port.to_string()).args([
        USER,
        PASSWORD,
        database,
        statement,
        authorities,
    ]);
    if !parameters.is_empty() {
        command.arg(parameters);
    }
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

/// What `tsql` prints.
fn tsql(port: u16, password: &str, database: &str, statement: &str, settings: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let conf = folder.path().join("freetds.conf");
    let text = format!(
        "[scripted]\nhost = localhost\nport = {port}\ntds version = 7.4\nclient charset = UTF-8\n{settings}\n"
    );
    std::fs::write(&conf, text).unwrap();
    let mut command = Command::new("tsql");
    command.args(["-S", "scripted", "-U", USER, "-P", password, "-D", database, "-o", "fh", "-t", "|"]);
    command.env("FREETDSCONF", &conf).env("LC_ALL", "C.UTF-8");
    // It leaves without reading its input when it cannot log in.
    let ran = feed(&mut command, format!("{statement}\nGO\nEXIT\n").as_bytes());
    let Output { stdout, stderr, .. } = ran.unwrap_or_else(|error| {
        panic!(
            "cannot run tsql ({error}): `cargo xtask test` installs it, or install the package `freetds-bin`"
        )
    });
    let printed = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    printed.replace("1> 2> ", "")
}

fn columns(wanted: impl Fn(&str) -> bool) -> Vec<&'static str> {
    every_type().into_iter().map(|(name, ..)| name).filter(|name| wanted(name)).collect()
}

fn select(names: &[&str], table: &str) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("[{name}]")).collect();
    format!("SELECT {} FROM [dbo].[{table}]", names.join(", "))
}

/// A value as `read.py` writes it, where that is not the text that the connector makes of it.
fn as_python_writes(name: &str, text: &str) -> String {
    let hex =
        |bytes: &[u8]| format!("0x{}", bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>());
    match name {
        "binary" | "varbinary" | "varbinary_max" | "image" => hex(text.as_bytes()),
        // Python leaves out zeros at the end.
        "decimal" => "-0.005".to_owned(),
        "variant_number" => "-12.5".to_owned(),
        "real" => "0.10000000149011612".to_owned(),
        "float" => "-1.5e+300".to_owned(),
        // Python counts microseconds.
        "time" => "23:59:58.123456".to_owned(),
        "datetime2" => "9999-12-31T23:59:59.999999".to_owned(),
        "datetime" => "2024-02-29T23:59:58.997000".to_owned(),
        "datetime_early" => "1753-01-01T00:00:00.003000".to_owned(),
        "datetime2_3" => "2024-02-29T23:59:58.123000".to_owned(),
        "smalldatetime" => text.replace(' ', "T"),
        "offset" => "2024-03-01T00:30:00.120000+05:45".to_owned(),
        _ => text.to_owned(),
    }
}

#[test]
fn python_tds_reads_every_type() {
    let server = server(None);
    let names = columns(|name| !OWN_WAYS.contains(&name));
    let answer = python_tds(server.port(), "shop", &select(&names, "every"), "", "");
    let answer: Answer = Answer::read(&answer);
    assert_eq!(answer.names, names);
    assert_eq!(answer.rows.len(), 3);
    assert!(answer.rows[1].iter().all(Option::is_none), "{:?}", answer.rows[1]);
    let examples = every_type();
    for (place, name) in names.iter().enumerate() {
        let (.., text) = examples.iter().find(|(found, ..)| found == name).unwrap();
        for row in [0, 2] {
            let found = answer.rows[row][place].as_deref();
            assert_eq!(found, Some(as_python_writes(name, text).as_str()), "column {name}");
        }
    }
    let login = &server.logins()[0];
    assert_eq!((login.application.as_str(), login.database.as_str()), ("python-tds", "shop"));
}

#[test]
fn tsql_reads_every_type() {
    let server = server(None);
    // As text in one line each: those that FreeTDS writes with the digits that we do.
    let plain = [
        "id",
        "bit",
        "tiny",
        "small",
        "big",
        "decimal",
        "card",
        "money",
        "small_money",
        "char",
        "varchar",
        "varchar_wide",
        "varchar_max",
        "nchar",
        "nvarchar",
        "text",
        "ntext",
        "guid",
        "xml",
        "variant",
        "variant_number",
    ];
    let printed = tsql(server.port(), PASSWORD, "shop", &select(&plain, "every"), "");
    let lines: Vec<&str> = printed.lines().filter(|line| line.contains('|')).collect();
    let expected: Vec<String> = every_type()
        .into_iter()
        .filter(|(name, ..)| plain.contains(name))
        .map(|(_, _, _, text)| text.to_owned())
        .collect();
    assert_eq!(lines.len(), 3, "{printed}");
    for line in [lines[0], lines[2]] {
        assert_eq!(line.split('|').collect::<Vec<_>>(), expected, "{printed}");
    }
    assert!(lines[1].split('|').all(|value| value == "NULL"), "{printed}");
}

#[test]
fn both_read_long_values_in_small_packets() {
    let server = server(Some(512));
    let statement = select(&["id", "note", "mail"], "long");
    let answer = Answer::read(&python_tds(server.port(), "shop", &statement, "", ""));
    assert_eq!(answer.rows.len(), 60);
    for (place, row) in answer.rows.iter().enumerate() {
        let n = place + 1;
        let note = (!n.is_multiple_of(3)).then(|| format!("日{n} ").repeat(n * 40));
        assert_eq!(*row, [Some(n.to_string()), note, Some(format!("user{n}@example.org"))]);
    }
    let printed = tsql(server.port(), PASSWORD, "shop", &statement, "text size = 1000000");
    let lines: Vec<&str> = printed.lines().filter(|line| line.contains("@example.org")).collect();
    assert_eq!(lines.len(), 60, "{printed}");
    for (line, row) in lines.iter().zip(&answer.rows) {
        let expected: Vec<&str> = row.iter().map(|value| value.as_deref().unwrap_or("NULL")).collect();
        assert_eq!(line.split('|').collect::<Vec<_>>(), expected);
    }
}

#[test]
fn python_tds_gives_parameters() {
    let server = server(None);
    let statement = "SELECT [mail] FROM [dbo].[long] WHERE [id] = CONVERT(int, %s)";
    let answer = Answer::read(&python_tds(server.port(), "shop", statement, "", r#"["17"]"#));
    assert_eq!(answer.rows, [[Some("user17@example.org".to_owned())]]);
    assert!(
        server.requests().iter().any(|request| request.variables.values().any(|v| *v == Value::text("17")))
    );
}

#[test]
fn both_are_told_of_errors() {
    let server = server(None);
    let statement = select(&["id"], "hidden");
    let python = python_tds(server.port(), "shop", &statement, "", "");
    assert!(python.contains("\"number\": 229") && python.contains("permission was denied"), "{python}");
    let printed = tsql(server.port(), PASSWORD, "closed", &statement, "");
    assert!(printed.contains("Msg 4060"), "{printed}");
    let printed = tsql(server.port(), PASSWORD, "shop", &statement, "");
    assert!(printed.contains("Msg 229") && printed.contains("permission was denied"), "{printed}");
    let printed = tsql(server.port(), "another", "shop", &statement, "");
    assert!(printed.contains("Msg 18456") && printed.contains("Login failed for user"), "{printed}");
    server.fail(
        "[long]",
        1,
        Fault::Error(ServerError::new(1222, 16, "Lock request time out period exceeded.")),
    );
    let printed = tsql(server.port(), PASSWORD, "shop", &select(&["id"], "long"), "");
    assert!(printed.contains("Msg 1222"), "{printed}");
}

#[test]
fn both_encrypt() {
    let certificates = Certificates::generate();
    let server = TdsServer::start(Setup {
        databases: databases(),
        identity: Some(Identity::new(&certificates)),
        insists_on_encryption: true,
        packet_size: None,
    });
    let mut authority = tempfile::NamedTempFile::new().unwrap();
    authority.write_all(certificates.authority.as_bytes()).unwrap();
    let file = authority.path().display().to_string();
    let statement = select(&["id", "mail"], "long");
    let answer = Answer::read(&python_tds(server.port(), "shop", &statement, &file, ""));
    assert_eq!(answer.rows.len(), 60);
    let printed =
        tsql(server.port(), PASSWORD, "shop", &statement, &format!("encryption = require\nca file = {file}"));
    assert_eq!(printed.lines().filter(|line| line.contains("@example.org")).count(), 60, "{printed}");
    assert!(server.logins().iter().all(|login| login.is_encrypted));
    assert_eq!(server.logins().len(), 2);
}

/// The JSON of `read.py`.
struct Answer {
    names: Vec<String>,
    rows: Vec<Vec<Option<String>>>,
}

impl Answer {
    fn read(json: &str) -> Answer {
        let value: serde_json::Value = serde_json::from_str(json).unwrap();
        let list = |field: &str| value[field].as_array().unwrap_or_else(|| panic!("{json}")).clone();
        let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
        Answer {
            names: list("names").iter().map(|name| text(name).unwrap()).collect(),
            rows: list("rows").iter().map(|row| row.as_array().unwrap().iter().map(text).collect()).collect(),
        }
    }
}
