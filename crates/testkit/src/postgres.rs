//! A PostgreSQL server of the test's own: a new cluster in a temporary folder, on a Unix socket and a free
//! loopback port.
//!
//! It ends with whoever holds it: see [`crate::keeper`].

use std::ffi::OsString;
use std::fmt::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::keeper::{Keeper, UNPRIVILEGED};

/// Where packages put the server's programs, by version.
const INSTALLED: &str = "/usr/lib/postgresql";
/// The oldest version the store supports.
const OLDEST: u32 = 15;
/// Another process may take a port between finding it free and using it.
const START_ATTEMPTS: u32 = 3;
/// The superuser of every cluster; it needs no password.
const USER: &str = "postgres";

/// `$1` programs, `$2` folder, `$3` options of the server.
const KEEPER: &str = r#"
start() {
    "$1/pg_ctl" -D "$2/data" -l "$2/log" -o "$3" -w -t 60 start >/dev/null 2>&1
}
"$1/initdb" -D "$2/data" -U postgres --auth=trust --no-sync --encoding=UTF8 --locale=C >"$2/log" 2>&1 &&
    start "$@" && echo done || echo failed
while read -r order; do
    case "$order" in
        start) start "$@" ;;
        immediate) "$1/pg_ctl" -D "$2/data" -m immediate -w -t 60 stop >/dev/null 2>&1 ;;
    esac && echo done || echo failed
done
"$1/pg_ctl" -D "$2/data" -m fast stop >/dev/null 2>&1
rm -rf "$2"
"#;

/// What the server keeps of what it answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// Nothing when it is stopped at once: for tests that never do.
    #[default]
    None,
    /// Everything when its processes are stopped at once; nothing when the machine is.
    Process,
    /// Everything, as in production: for measurements.
    Machine,
}

impl Durability {
    fn settings(self) -> &'static str {
        match self {
            Durability::None => "-c fsync=off -c synchronous_commit=off -c full_page_writes=off",
            Durability::Process => "-c fsync=off -c synchronous_commit=on -c full_page_writes=on",
            Durability::Machine => "-c fsync=on -c synchronous_commit=on -c full_page_writes=on",
        }
    }
}

/// What a server is started with.
#[derive(Clone, Copy, Default)]
pub struct Settings<'a> {
    /// With them it speaks TLS.
    pub certificates: Option<&'a Certificates>,
    pub durability: Durability,
    /// Lines of `pg_hba.conf`; without them everybody is let in.
    pub host_rules: Option<&'a str>,
}

/// A running server; it stops when this is dropped, or with the process.
pub struct Server {
    programs: PathBuf,
    port: u16,
    keeper: Keeper,
    databases: AtomicU32,
}

/// Certificates of a server with TLS, in PEM.
pub struct Certificates {
    /// Signed the server's certificate, which is for `localhost`.
    pub authority: String,
    /// Signed nothing.
    pub stranger: String,
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Server {
    /// The server that all tests of one binary share.
    pub fn shared() -> &'static Server {
        static SERVER: OnceLock<Server> = OnceLock::new();
        SERVER.get_or_init(|| Server::start(None))
    }

    /// A server of its own; with these certificates it speaks TLS.
    pub fn start(certificates: Option<&Certificates>) -> Server {
        Server::start_with(Settings { certificates, ..Settings::default() })
    }

    /// A server of its own with these settings.
    pub fn start_with(settings: Settings<'_>) -> Server {
        let programs = programs();
        for _ in 0..START_ATTEMPTS {
            if let Some(server) = Server::try_start(&programs, settings) {
                return server;
            }
        }
        panic!("the PostgreSQL server in {} does not start", programs.display());
    }

    fn try_start(programs: &Path, settings: Settings<'_>) -> Option<Server> {
        let folder = tempfile::Builder::new().prefix("domesday-pg-").tempdir().unwrap().keep();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let durability = settings.durability.settings();
        let mut options = format!("-p {port} -h 127.0.0.1 -k {} {durability}", folder.display());
        options.push_str(" -c max_connections=200");
        if let Some(certificates) = settings.certificates {
            for (name, text) in [("server.crt", &certificates.certificate), ("server.key", &certificates.key)]
            {
                give(&folder.join(name), text);
            }
            let at = folder.display();
            write!(options, " -c ssl=on -c ssl_cert_file={at}/server.crt -c ssl_key_file={at}/server.key")
                .unwrap();
        }
        if let Some(rules) = settings.host_rules {
            let file = folder.join("host_rules");
            give(&file, rules);
            write!(options, " -c hba_file={}", file.display()).unwrap();
        }
        let keeper = Keeper::start(KEEPER, programs, folder, [OsString::from(options)])?;
        Some(Server { programs: programs.to_owned(), port, keeper, databases: AtomicU32::new(0) })
    }

    /// Stops it at once, as a crash does: connections break off, and nothing is written down any more.
    pub fn stop_immediately(&self) {
        self.keeper.order("immediate");
    }

    /// Starts it again on the same port, with what it had; it recovers first.
    pub fn start_again(&self) {
        self.keeper.order("start");
    }

    /// What the server says of itself.
    pub fn log(&self) -> String {
        self.keeper.log()
    }

    /// Where a database of this server is, over loopback.
    pub fn url(&self, database: &str) -> String {
        format!("postgresql://{USER}@localhost:{}/{database}?sslmode=disable", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder with its programs.
    pub fn programs(&self) -> &Path {
        &self.programs
    }

    /// The folder with its Unix socket.
    pub fn folder(&self) -> &Path {
        self.keeper.folder()
    }

    /// A new, empty database; its URL.
    pub fn create_database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.run("createdb", &[&name]).unwrap_or_else(|error| panic!("{error}"));
        self.url(&name)
    }

    /// Runs SQL in a database, apart from whatever is under test; the unaligned output.
    pub fn psql(&self, database: &str, sql: &str) -> String {
        self.try_psql(database, sql).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The same, for when the server may be gone.
    pub fn try_psql(&self, database: &str, sql: &str) -> Result<String, String> {
        self.run("psql", &["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", sql])
    }

    /// Everything that is in a database, as text.
    pub fn dump(&self, database: &str) -> String {
        self.run("pg_dump", &["--inserts", database]).unwrap_or_else(|error| panic!("{error}"))
    }

    /// One of the server's client programs, told where the server is.
    pub fn client(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.args(["-h".as_ref(), self.keeper.folder().as_os_str()]).args([
            "-p",
            &self.port.to_string(),
            "-U",
            USER,
        ]);
        command
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<String, String> {
        let mut command = self.client(program);
        let output = command.args(arguments).stdin(Stdio::null()).output().map_err(|e| e.to_string())?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{program} {arguments:?}: {errors}"));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

impl Certificates {
    /// Fresh ones.
    pub fn generate() -> Certificates {
        use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
        let authority = || {
            let mut params = CertificateParams::new(Vec::new()).unwrap();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            // Of another name than what it signs: else OpenSSL takes that for signed by itself.
            params.distinguished_name.push(rcgen::DnType::CommonName, "authority of tests");
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
pub(crate) fn give(path: &Path, text: &str) {
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

    #[test]
    fn what_was_answered_outlives_an_immediate_stop() {
        let server = Server::start_with(Settings { durability: Durability::Process, ..Settings::default() });
        let url = server.create_database();
        server.psql("test_0", "CREATE TABLE kept AS SELECT 7 AS number");
        server.stop_immediately();
        assert!(server.try_psql("test_0", "SELECT 1").is_err());
        server.start_again();
        assert_eq!(server.psql("test_0", "SELECT number FROM kept"), "7");
        assert_eq!(server.url("test_0"), url);
        assert!(server.dump("test_0").contains("INSERT INTO public.kept VALUES (7)"));
        let folder = server.folder().to_owned();
        drop(server);
        assert!(!folder.exists());
    }
}
