//! Records sessions with real servers as scripts for the targets `mysql`, `postgres` and `sqlserver`:
//!
//!     cargo run -p domesday-fuzz-targets --example record
#![allow(clippy::unwrap_used, reason = "it is run by hand")]

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use domesday_fuzz_targets::servers::{
    MYSQL, PACKET, POSTGRES, Protocol, RAW, RECONNECT, SQLSERVER, Site, TURN, survey,
};
use domesday_testkit::tds::TdsServer;
use domesday_testkit::tds::examples::table_of_every_type;
use domesday_testkit::tds::model::{Database, Schema, Table};
use domesday_testkit::tds::{Type, Value};
use domesday_testkit::{mariadb, postgres};
use parking_lot::Mutex;

fn main() {
    let server = TdsServer::plain(vec![Database::new("shop", vec![Schema::new("dbo", tables())])]);
    record(&SQLSERVER, server.port(), "session");
    mysql();
    postgres();
}

fn tables() -> Vec<Table> {
    let columns = [("id", Type::Int), ("mail", Type::NVarChar(Some(100)))];
    let row = |id| vec![Value::Int(id), Value::Text(format!("user{id}@example.org"))];
    vec![Table::new("customers", &columns, &[0], (1..=3).map(row).collect()), table_of_every_type("types")]
}

fn mysql() {
    let server = mariadb::Server::shared();
    server.sql("", "CREATE OR REPLACE DATABASE shop; CREATE OR REPLACE USER auditor@'%' IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO auditor@'%'");
    server.sql("shop", "CREATE TABLE customers (id INT PRIMARY KEY, mail VARCHAR(100)); INSERT INTO customers VALUES (1, 'a@example.org'), (2, NULL), (3, 'c@example.org'); ANALYZE TABLE customers");
    server.sql("shop", "CREATE TABLE types (a DECIMAL(10,2), b DATETIME, c BLOB, d JSON, e BIT(3), f ENUM('x', 'y'), g DOUBLE, h TIME, i YEAR); INSERT INTO types VALUES (1.5, '2020-01-02 03:04:05', X'00FF', '{\"a\":1}', b'101', 'x', 2.5, '12:00:00', 2020)");
    record(&MYSQL, server.port(), "session");
}

fn postgres() {
    let server = postgres::Server::shared();
    server.psql("postgres", "CREATE DATABASE shop");
    server.psql("shop", "CREATE TABLE customers (id int PRIMARY KEY, mail text); INSERT INTO customers VALUES (1, 'a@example.org'), (2, NULL), (3, 'c@example.org'); ANALYZE customers");
    server.psql("shop", "CREATE TABLE types (a numeric, b timestamptz, c bytea, d jsonb, e int[], f inet, g float8, h interval, i uuid, j bool); INSERT INTO types VALUES (1.5, '2020-01-02 03:04:05Z', '\\x00ff', '{\"a\":1}', '{1,2}', '10.0.0.1', 2.5, '1 day', '00000000-0000-0000-0000-000000000001', true); ANALYZE types");
    record(&POSTGRES, server.port(), "session");
}

/// Surveys a server through a recorder, and writes down what it said.
fn record(site: &'static Site, server: u16, name: &str) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&script);
    let is_over = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&is_over);
    let relays = thread::spawn(move || {
        for (number, client) in listener.incoming().flatten().enumerate() {
            if ended.load(Ordering::Relaxed) {
                return;
            }
            if number > 0 {
                put(&mut recorded.lock(), RECONNECT, b"");
            }
            let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).unwrap();
            relay(site.protocol, client, server, &recorded);
        }
    });
    let outcome = survey(site, "127.0.0.1", port);
    // The last connection is still being written down: another one is taken after it.
    is_over.store(true, Ordering::Relaxed);
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    relays.join().unwrap();
    let script = script.lock();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(match site.protocol {
        Protocol::Mysql => "mysql",
        Protocol::Postgres => "postgres",
        Protocol::Tds => "sqlserver",
    });
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(name), &*script).unwrap();
    println!("{}: {} bytes, {outcome:?}", folder.display(), script.len());
}

/// Hands bytes on in both ways until one side ends.
fn relay(protocol: Protocol, client: TcpStream, server: TcpStream, script: &Arc<Mutex<Vec<u8>>>) {
    let said = Arc::new(Mutex::new(Vec::new()));
    let (mut from_server, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let answers = Arc::clone(&said);
    let down = thread::spawn(move || {
        let mut bytes = vec![0; 64 << 10];
        while let Ok(len @ 1..) = from_server.read(&mut bytes) {
            answers.lock().extend_from_slice(&bytes[..len]);
            if to_client.write_all(&bytes[..len]).is_err() {
                break;
            }
        }
        let _ = to_client.shutdown(Shutdown::Both);
    });
    let (mut from_client, mut to_server) = (client, server);
    let mut bytes = vec![0; 64 << 10];
    while let Ok(len @ 1..) = from_client.read(&mut bytes) {
        // A client that says several things in a row has one turn: how it is cut into reads is chance.
        if flush(protocol, &said, script) || script.lock().ends_with(&FIRST) || script.lock().is_empty() {
            put(&mut script.lock(), TURN, b"");
        }
        if to_server.write_all(&bytes[..len]).is_err() {
            break;
        }
    }
    let _ = to_server.shutdown(Shutdown::Both);
    down.join().unwrap();
    flush(protocol, &said, script);
}

/// What the script ends with when a connection begins: a record of this kind without bytes.
const FIRST: [u8; 3] = [RECONNECT, 0, 0];

/// Writes down what the server said, if it said something.
fn flush(protocol: Protocol, said: &Mutex<Vec<u8>>, script: &Mutex<Vec<u8>>) -> bool {
    let said = std::mem::take(&mut *said.lock());
    let mut rest = said.as_slice();
    while let Some((content, after)) = protocol.split(rest) {
        put(&mut script.lock(), PACKET, &content);
        rest = after;
    }
    if !rest.is_empty() {
        put(&mut script.lock(), RAW, rest);
    }
    !said.is_empty()
}

fn put(script: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    script.push(kind);
    script.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
    script.extend_from_slice(bytes);
}
