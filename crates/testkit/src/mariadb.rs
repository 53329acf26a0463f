//! A MariaDB server of the test's own: new data in a temporary folder, on a Unix socket and a free loopback
//! port.
//!
//! It ends with whoever holds it: see [`crate::keeper`]. The package's own service is neither needed nor touched, and
//! no file of the machine's configuration is read.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::feed;
use crate::keeper::Keeper;
use crate::postgres::{Certificates, give};

/// Where packages put the server, beside the path: a user's path often lacks it.
const INSTALLED: &str = "/usr/sbin";
const SERVER: &str = "mariadbd";
/// Another process may take a port between finding it free and using it.
const START_ATTEMPTS: u32 = 3;
/// May do everything, from this machine, without a password.
pub const USER: &str = "root";

/// `$1` server, `$2` folder, then the server's options. Answers the socket in a minute, or never.
const KEEPER: &str = r#"
server=$1 folder=$2
shift 2
start() {
    "$server" --no-defaults --datadir="$folder/data" "$@" >>"$folder/log" 2>&1 </dev/null &
    pid=$!
    for _ in $(seq 600); do
        mariadb-admin --no-defaults --socket="$folder/socket" --user=root ping >/dev/null 2>&1 && return 0
        kill -0 "$pid" 2>/dev/null || return 1
        sleep 0.1
    done
    return 1
}
mkdir "$folder/tmp"
mariadb-install-db --no-defaults --datadir="$folder/data" --auth-root-authentication-method=normal \
    --skip-test-db --skip-name-resolve --innodb-flush-method=fsync >"$folder/log" 2>&1 </dev/null &&
    start "$@" && echo done || echo failed
while read -r order; do
    case "$order" in
        start) start "$@" ;;
        kill) kill -9 "$pid" && { wait "$pid" 2>/dev/null; true; } ;;
    esac && echo done || echo failed
done
kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
rm -rf "$folder"
"#;

/// A running server; it stops when this is dropped, or with the process. What it answered outlives
/// [`Server::kill`], though not the machine.
pub struct Server {
    port: u16,
    keeper: Keeper,
    databases: AtomicU32,
}

impl Server {
    /// The server that all tests of one binary share.
    pub fn shared() -> &'static Server {
        static SHARED: OnceLock<Server> = OnceLock::new();
        SHARED.get_or_init(|| Server::start(None))
    }

    /// A server of its own; with these certificates it speaks TLS.
    pub fn start(certificates: Option<&Certificates>) -> Server {
        let program = program();
        for _ in 0..START_ATTEMPTS {
            if let Some(server) = Server::try_start(&program, certificates) {
                return server;
            }
        }
        panic!("the MariaDB server {} does not start", program.display());
    }

    fn try_start(program: &Path, certificates: Option<&Certificates>) -> Option<Server> {
        let folder = tempfile::Builder::new().prefix("domesday-maria-").tempdir().unwrap().keep();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let at = folder.display();
        // A server that starts deletes the temporary tables in its folder, whoever's they are.
        let mut options = format!(
            "--socket={at}/socket --pid-file={at}/pid --tmpdir={at}/tmp --port={port} --bind-address=127.0.0.1 \
             --skip-name-resolve --skip-log-bin --performance-schema=ON --max-connections=200 \
             --max-allowed-packet=64M --plugin-load-add=auth_ed25519 \
             --innodb-flush-log-at-trx-commit=2 --innodb-flush-method=fsync"
        );
        if let Some(certificates) = certificates {
            for (name, text) in [("server.crt", &certificates.certificate), ("server.key", &certificates.key)]
            {
                give(&folder.join(name), text);
            }
            write!(options, " --ssl-cert={at}/server.crt --ssl-key={at}/server.key").unwrap();
        }
        let options = options.split_whitespace().map(OsString::from);
        let keeper = Keeper::start(KEEPER, program, folder, options)?;
        Some(Server { port, keeper, databases: AtomicU32::new(0) })
    }

    /// Stops it at once, as a crash does: connections break off, and nothing is written down any more.
    pub fn kill(&self) {
        self.keeper.order("kill");
    }

    /// Starts it again on the same port, with what it had; it recovers first.
    pub fn start_again(&self) {
        self.keeper.order("start");
    }

    /// What the server says of itself.
    pub fn log(&self) -> String {
        self.keeper.log()
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder with its Unix socket.
    pub fn folder(&self) -> &Path {
        self.keeper.folder()
    }

    /// A new, empty database; its name.
    pub fn create_database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("", &format!("CREATE DATABASE {name}"));
        name
    }

    /// Runs SQL in a database, apart from whatever is under test; what it gives, columns parted by tabs.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        self.try_sql(database, sql).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The same, for when the server may be gone.
    pub fn try_sql(&self, database: &str, sql: &str) -> Result<String, String> {
        let mut command = Command::new("mariadb");
        command.arg("--no-defaults").arg(format!("--socket={}/socket", self.keeper.folder().display()));
        command.args(["--user", USER, "--batch", "--skip-column-names", "--default-character-set=utf8mb4"]);
        command.args(["--database", database]);
        // By its input, which may be longer than an argument. It stops reading at the first error.
        let output = feed(&mut command, sql.as_bytes()).map_err(|error| format!("mariadb: {error}"))?;
        if !output.status.success() {
            return Err(format!("mariadb: {}", String::from_utf8_lossy(&output.stderr)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned())
    }
}

/// The installed server: where packages put it, or else on the path.
fn program() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::iter::once(PathBuf::from(INSTALLED)).chain(std::env::split_paths(&path));
    folders.find(|folder| folder.join(SERVER).exists()).map(|folder| folder.join(SERVER)).unwrap_or_else(|| {
        panic!(
            "no MariaDB server in {INSTALLED} or on the path: `cargo xtask test` installs it, or install the \
             package `mariadb-server`"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_answers_survives_a_kill_and_leaves_nothing_behind() {
        let server = Server::start(None);
        let database = server.create_database();
        assert_eq!(server.sql(&database, "SELECT 40 + 2, 'ü'"), "42\tü");
        assert!(server.try_sql(&database, "SELECT nothing").unwrap_err().contains("Unknown column"));
        server.sql(&database, "CREATE TABLE kept AS SELECT 7 AS number");
        server.kill();
        assert!(server.try_sql(&database, "SELECT 1").is_err());
        server.start_again();
        assert_eq!(server.sql(&database, "SELECT number FROM kept"), "7");
        let folder = server.folder().to_owned();
        drop(server);
        assert!(!folder.exists());
    }
}
