//! `cargo xtask test`: everything CI runs, step by step, up to the first failure.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::crash::source;
use crate::workspace::{cargo, root};
use crate::{chaos, crash, instructions, tidy};

/// Kills of the short crash run: enough to pass through every phase, and done in about a minute.
const SHORT_RUN_KILLS: u64 = 15;

/// And of each other kind of source.
const OTHER_SOURCES_KILLS: u64 = 6;

pub fn test() -> Result<()> {
    let mut steps = Steps::default();
    let outcome = all(&mut steps);
    steps.print();
    outcome
}

fn all(steps: &mut Steps) -> Result<()> {
    steps.run("format", || command(&["fmt", "--all", "--check"]))?;
    steps.run("clippy", || {
        command(&["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"])
    })?;
    // Also a test of this crate; here it comes first, because it says within a second what is wrong.
    steps.run("tidy: layers, lengths, licences", tidy::run)?;
    steps.run("advisories", advisories)?;
    steps.run("systemd units", units)?;
    steps.run("servers", install_servers)?;
    steps.run("clients", install_clients)?;
    steps.run("tests", || command(&["test", "--workspace"]))?;
    steps.run("valgrind", install_valgrind)?;
    steps.run("instructions", || instructions::run(false))?;
    steps.run("loom models", loom)?;
    steps.run("crash run", || {
        crash::run(&crash::Options { kills: SHORT_RUN_KILLS, ..crash::Options::default() })
    })?;
    for kind in source::Kind::ALL.iter().copied().filter(|kind| *kind != source::Kind::Files) {
        steps.run(&format!("crash run of a {} source", kind.name()), || {
            crash::run(&crash::Options {
                kills: OTHER_SOURCES_KILLS,
                source: kind,
                ..crash::Options::default()
            })
        })?;
    }
    steps.run("crash run of a very large file", || crash::long::run(&crash::long::Options::short()))?;
    steps.run("chaos run", || chaos::run(&chaos::Options::default()))?;
    Ok(())
}

/// The steps so far, each with its time.
#[derive(Default)]
struct Steps(Vec<(String, Duration)>);

impl Steps {
    fn run(&mut self, name: &str, run: impl FnOnce() -> Result<()>) -> Result<()> {
        println!("\n==> {name}");
        let begun = Instant::now();
        let outcome = run().with_context(|| format!("step `{name}` failed"));
        let took = begun.elapsed();
        let word = if outcome.is_ok() { "passed" } else { "failed" };
        println!("==> {name}: {word} in {} s", took.as_secs());
        self.0.push((name.to_owned(), took));
        outcome
    }

    /// All steps with their times, and the sum.
    fn print(&self) {
        println!();
        for (name, took) in &self.0 {
            println!("{:>6} s  {name}", took.as_secs());
        }
        println!("{:>6} s  in all", self.0.iter().map(|(_, took)| *took).sum::<Duration>().as_secs());
    }
}

/// Where `cargo deny` keeps the advisories it has fetched, below cargo's home.
const ADVISORIES_FOLDER: &str = "advisory-dbs";

/// Known vulnerabilities of the dependencies, where `cargo deny` and a database of them are at hand. Licences, bans and
/// sources need neither, and are part of `tidy`.
fn advisories() -> Result<()> {
    let deny = Command::new("cargo").args(["deny", "--version"]).output();
    if !deny.is_ok_and(|ran| ran.status.success()) {
        println!("not checked: cargo deny is not installed (`cargo install cargo-deny`)");
        return Ok(());
    }
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    if !home.is_some_and(|home| home.join(ADVISORIES_FOLDER).is_dir()) {
        println!("not checked: there is no database of advisories here (`cargo deny fetch db`)");
        return Ok(());
    }
    command(&["deny", "check", "--disable-fetch", "advisories"])
}

/// What rates how much of the system a service can reach.
const SYSTEMD_ANALYZE: &str = "/usr/bin/systemd-analyze";
/// Where the units are that people install.
const UNITS_FOLDER: &str = "docs/fleet";
/// The exposure that a unit may have, in tenths of systemd's own scale from 0 to 10.
const EXPOSURE_MAX: &str = "20";

/// The units of the documentation, rated by systemd.
fn units() -> Result<()> {
    install("systemd", "systemd", Path::new(SYSTEMD_ANALYZE).exists())?;
    let mut rated = 0;
    for entry in std::fs::read_dir(root().join(UNITS_FOLDER))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "service") {
            let threshold = format!("--threshold={EXPOSURE_MAX}");
            let mut rate = Command::new(SYSTEMD_ANALYZE);
            rate.args(["security", "--offline=true", "--no-pager", threshold.as_str()]).arg(&path);
            run_command(&mut rate)?;
            rated += 1;
        }
    }
    if rated == 0 {
        bail!("there are no units in {UNITS_FOLDER}");
    }
    Ok(())
}

/// Installs one of Debian's packages, unless what is wanted of it is there.
fn install(name: &str, package: &str, is_installed: bool) -> Result<()> {
    if is_installed {
        println!("{name} is installed");
        return Ok(());
    }
    let mut install = Command::new("apt-get");
    install
        .args(["install", "--yes", "--quiet"])
        .args(package.split(' '))
        .env("DEBIAN_FRONTEND", "noninteractive");
    run_command(Command::new("apt-get").args(["update", "--quiet"]))?;
    run_command(&mut install)
        .with_context(|| format!("install {name} by hand (package `{package}`), or run this as root"))
}

/// Where Debian puts PostgreSQL's programs, one folder a version.
const POSTGRES_FOLDER: &str = "/usr/lib/postgresql";
/// And MariaDB's server.
const MARIADB_SERVER: &str = "/usr/sbin/mariadbd";
/// And the pool before PostgreSQL.
const PGBOUNCER: &str = "/usr/sbin/pgbouncer";

/// Installs the servers that the tests start, where they are missing. The tests start their own.
fn install_servers() -> Result<()> {
    let has_postgres = std::fs::read_dir(POSTGRES_FOLDER).is_ok_and(|mut versions| {
        versions.any(|version| version.is_ok_and(|v| v.path().join("bin/initdb").exists()))
    });
    let servers = [
        ("PostgreSQL", "postgresql", has_postgres),
        ("MariaDB", "mariadb-server", Path::new(MARIADB_SERVER).exists()),
        ("PgBouncer", "pgbouncer", Path::new(PGBOUNCER).exists()),
        ("OpenSSH", "openssh-server openssh-client", Path::new(SSH_SERVER).exists()),
    ];
    servers.into_iter().try_for_each(|(name, package, is_installed)| install(name, package, is_installed))
}

/// Where Debian puts OpenSSH's server.
const SSH_SERVER: &str = "/usr/sbin/sshd";
/// Where Debian puts FreeTDS's client.
const FREETDS_CLIENT: &str = "/usr/bin/tsql";

/// Prometheus's own tool. Its package brings the server, too, which nothing starts but the system's own services.
const PROMTOOL: &str = "/usr/bin/promtool";

/// Installs the clients that check what the tests make: a scripted SQL Server (the tests get python-tds themselves),
/// metrics and alert rules.
fn install_clients() -> Result<()> {
    let has_venv = Command::new("python3").args(["-m", "ensurepip", "--version"]).output();
    let is_installed = Path::new(FREETDS_CLIENT).exists() && has_venv.is_ok_and(|ran| ran.status.success());
    install("FreeTDS and Python's venv", "freetds-bin python3-venv", is_installed)?;
    install("promtool", "prometheus --no-install-recommends", Path::new(PROMTOOL).exists())
}

/// What counts instructions.
const VALGRIND: &str = "/usr/bin/valgrind";

fn install_valgrind() -> Result<()> {
    install("Valgrind", "valgrind", Path::new(VALGRIND).exists())
}

fn command(arguments: &[&str]) -> Result<()> {
    run_command(cargo(root()).args(arguments))
}

/// Every interleaving of the lock-free parts. Its own target folder: the flag changes every crate, and
/// would make cargo build all of them again for the next step.
fn loom() -> Result<()> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    run_command(
        cargo(root())
            .args(["test", "--package", "domesday-scheduler", "--release", "--test", "loom"])
            .env("RUSTFLAGS", "--cfg loom")
            .env("CARGO_TARGET_DIR", target.join("loom")),
    )
}

fn run_command(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}
