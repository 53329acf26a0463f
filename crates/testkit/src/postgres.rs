//! A PostgreSQL server of the test's own: a new cluster in a temporary folder, on a Unix socket and a free
//! loopback port.
//!
//! A shell is its keeper. It makes the cluster, starts the server, and waits for its standard input to
//! end; then it stops the server it started and removes the folder. So the server ends with whoever holds
//! it, also when that is a static, and also when the test process is killed.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Where packages put the server's programs, by version.
const INSTALLED: &str = "/usr/lib/postgresql";
/// The oldest version the store supports.
const OLDEST: u32 = 15;
/// `nobody` on the systems this runs on: the server refuses to be the superuser's.
const UNPRIVILEGED: u32 = 65_534;
/// Another process may take a port between finding it free and using it.
const START_ATTEMPTS: u32 = 3;
/// The superuser of every cluster; it needs no password.
const USER: &str = "postgres";

/// `$1` programs, `$2` folder, `$3` options of the server.
const KEEPER: &str = r#"
"$1/initdb" -D "$2/data" -U postgres --auth=trust --no-sync --encoding=UTF8 --locale=C >"$2/log" 2>&1 &&
    "$1/pg_ctl" -D "$2/data" -l "$2/log" -o "$3" -w -t 60 start >/dev/null 2>&1 &&
    echo ready || echo failed
read -r _
"$1/pg_ctl" -D "$2/data" -m fast stop >/dev/null 2>&1
rm -rf "$2"
"#;

/// A running server; it stops when this is dropped, or with the process.
pub struct Server {
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
    keeper: Child,
    databases: AtomicU32,
}

/// Certificates of a server with TLS, in PEM.
pub struct Certificates {
    /// Signed the server's certificate, which is for `localhost`.
    pub authority: String,
    /// Signed nothing.
    pub stranger: String,
    certificate: String,
    key: String,
}

impl Server {
    /// The server that all tests of one binary share.
    pub fn shared() -> &'static Server {
        static SERVER: OnceLock<Server> = OnceLock::new();
        SERVER.get_or_init(|| Server::start(None))
    }

    /// A server of its own; with these certificates it speaks TLS.
    pub fn start(certificates: Option<&Certificates>) -> Server {
        let programs = programs();
        for _ in 0..START_ATTEMPTS {
            if let Some(server) = Server::try_start(&programs, certificates) {
                return server;
            }
        }
        panic!("the PostgreSQL server in {} does not start", programs.display());
    }

    fn try_start(programs: &Path, certificates: Option<&Certificates>) -> Option<Server> {
        let folder = tempfile::Builder::new().prefix("domesday-pg-").tempdir().unwrap().keep();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut options = format!("-p {port} -h 127.0.0.1 -k {} -c fsync=off", folder.display());
        options.push_str(" -c synchronous_commit=off -c full_page_writes=off -c max_connections=200");
        if let Some(certificates) = certificates {
            for (name, text) in [("server.crt", &certificates.certificate), ("server.key", &certificates.key)]
            {
                give(&folder.join(name), text);
            }
            let at = folder.display();
            write!(options, " -c ssl=on -c ssl_cert_file={at}/server.crt -c ssl_key_file={at}/server.key")
                .unwrap();
        }
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "sh"]).arg(programs).arg(&folder).arg(&options);
        command.current_dir(&folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        if rustix::process::geteuid().is_root() {
            chown(&folder, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
            command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
        }
        let mut keeper = command.spawn().unwrap();
        let mut answer = String::new();
        BufReader::new(keeper.stdout.take().expect("its output is piped")).read_line(&mut answer).unwrap();
        let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        let server =
            Server { programs: programs.to_owned(), folder, port, keeper, databases: AtomicU32::new(0) };
        if answer.trim() == "ready" {
            return Some(server);
        }
        eprintln!("PostgreSQL did not start:\n{log}");
        None
    }

    /// Where a database of this server is, over loopback.
    pub fn url(&self, database: &str) -> String {
        format!("postgresql://{USER}@localhost:{}/{database}?sslmode=disable", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder with its Unix socket.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A new, empty database; its URL.
    pub fn create_database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.run("createdb", &[&name]);
        self.url(&name)
    }

    /// Runs SQL in a database, apart from whatever is under test; the unaligned output.
    pub fn psql(&self, database: &str, sql: &str) -> String {
        self.run("psql", &["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", sql])
    }

    fn run(&self, program: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(self.programs.join(program));
        command.args(["-h".as_ref(), self.folder.as_os_str()]).args([
            "-p",
            &self.port.to_string(),
            "-U",
            USER,
        ]);
        let output = command.args(arguments).stdin(Stdio::null()).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {arguments:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        // The keeper stops the server and removes the folder; nothing is left to tell of.
        let _ = self.keeper.wait();
    }
}

impl Certificates {
    /// Fresh ones.
    pub fn generate() -> Certificates {
        use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
        let authority = || {
            let mut params = CertificateParams::new(Vec::new()).unwrap();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
        };
        let (trusted, stranger) = (authority(), authority());
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &trusted).unwrap();
        Certificates {
            authority: trusted.pem(),
            stranger: stranger.pem(),
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

/// Writes a private file that the server may read.
fn give(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    if rustix::process::geteuid().is_root() {
        chown(path, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
    }
}

/// The newest installed server's programs: where packages put them, or else on the path.
fn programs() -> PathBuf {
    let versions = std::fs::read_dir(INSTALLED).into_iter().flatten().flatten();
    let version = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let newest = versions.filter_map(version).filter(|version| *version >= OLDEST).max();
    let packaged = newest.map(|version| Path::new(INSTALLED).join(version.to_string()).join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates = packaged.into_iter().chain(std::env::split_paths(&path));
    candidates.find(|programs| programs.join("initdb").exists()).unwrap_or_else(|| {
        panic!(
            "no PostgreSQL server ({OLDEST} or newer) in {INSTALLED} or on the path: `cargo xtask test` \
             installs it, or install the package `postgresql`"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_answers_and_leaves_nothing_behind() {
        let server = Server::start(None);
        server.create_database();
        assert_eq!(server.psql("test_0", "SELECT 40 + 2"), "42");
        let folder = server.folder().to_owned();
        drop(server);
        assert!(!folder.exists());
    }
}
