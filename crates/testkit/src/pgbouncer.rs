//! A PgBouncer of the test's own before a PostgreSQL of tests, on a free loopback port.
//!
//! It ends with whoever holds it: see [`crate::keeper`]. Neither the package's own service nor its files are touched.

use std::ffi::OsString;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use crate::keeper::Keeper;
use crate::postgres::{Server, give};

/// Where packages put it, beside the path: a user's path often lacks it.
const INSTALLED: &str = "/usr/sbin";
const PROGRAM: &str = "pgbouncer";
/// Another process may take a port between finding it free and using it.
const START_ATTEMPTS: u32 = 3;

/// `$1` program, `$2` folder, `$3` port, `$4` what asks whether it is ready. Answers in half a minute, or never.
const KEEPER: &str = r#"
"$1" "$2/pgbouncer.ini" >>"$2/log" 2>&1 </dev/null &
pid=$!
start() {
    for _ in $(seq 300); do
        "$4" -q -h 127.0.0.1 -p "$3" && return 0
        kill -0 "$pid" 2>/dev/null || return 1
        sleep 0.1
    done
    return 1
}
start "$@" && echo done || echo failed
while read -r order; do
    echo failed
done
kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
rm -rf "$2"
"#;

/// How long a client has a connection of the server for itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PoolMode {
    /// As long as it is there.
    Session,
    /// For a transaction. All clients share one connection.
    Transaction,
}

/// A running pool; it stops when this is dropped, or with the process.
pub struct Pgbouncer {
    port: u16,
    keeper: Keeper,
}

impl Pgbouncer {
    /// A pool before this server, for these users, who need no password.
    pub fn start(server: &Server, mode: PoolMode, users: &[&str]) -> Pgbouncer {
        let program = program();
        for _ in 0..START_ATTEMPTS {
            if let Some(pool) = Pgbouncer::try_start(&program, server, mode, users) {
                return pool;
            }
        }
        panic!("{} does not start", program.display());
    }

    fn try_start(program: &Path, server: &Server, mode: PoolMode, users: &[&str]) -> Option<Pgbouncer> {
        let folder = tempfile::Builder::new().prefix("domesday-pool-").tempdir().unwrap().keep();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (mode, size) = match mode {
            PoolMode::Session => ("session", 20),
            PoolMode::Transaction => ("transaction", 1),
        };
        let configuration = format!(
            "[databases]\n* = host={} port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = trust\nauth_file = {at}/users\npool_mode = {mode}\n\
             default_pool_size = {size}\n",
            server.folder().display(),
            server.port(),
            at = folder.display(),
        );
        let users: String = users.iter().map(|user| format!("\"{user}\" \"\"\n")).collect();
        give(&folder.join("pgbouncer.ini"), &configuration);
        give(&folder.join("users"), &users);
        let ready = server.client("pg_isready").get_program().to_owned();
        let keeper = Keeper::start(KEEPER, program, folder, [OsString::from(port.to_string()), ready])?;
        Some(Pgbouncer { port, keeper })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// What it says of itself.
    pub fn log(&self) -> String {
        self.keeper.log()
    }
}

impl Drop for Pgbouncer {
    /// Why a test failed is often known to it alone.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the pool says:\n{}", self.log());
        }
    }
}

/// The installed program: where packages put it, or else on the path.
fn program() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::iter::once(PathBuf::from(INSTALLED)).chain(std::env::split_paths(&path));
    folders.find(|folder| folder.join(PROGRAM).exists()).map(|folder| folder.join(PROGRAM)).unwrap_or_else(|| {
        panic!(
            "no PgBouncer in {INSTALLED} or on the path: `cargo xtask test` installs it, or install the package \
             `pgbouncer`"
        )
    })
}
