//! `cargo xtask test`: everything CI runs, step by step, up to the first failure.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::crash::source;
use crate::workspace::{cargo, root};
use crate::{chaos, crash, instructions, tidy};

/// Kills of the short crash run: enough to pass through every phase, and done in about a minute.
const SHORT_RUN_KILLS: u64 = 15;

/// And of each other kind of source.
const OTHER_SOURCES_KILLS: u64 = 6;

pub fn test() -> Result<()> {
    let begun = Instant::now();
    step("format", || command(&["fmt", "--all", "--check"]))?;
    step("clippy", || {
        command(&["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"])
    })?;
    // Also a test of this crate; here it comes first, because it says within a second what is wrong.
    step("tidy: layers, lengths, licences", tidy::run)?;
    step("servers", install_servers)?;
    step("clients", install_clients)?;
    step("tests", || command(&["test", "--workspace"]))?;
    step("valgrind", install_valgrind)?;
    step("instructions", || instructions::run(false))?;
    step("loom models", loom)?;
    step("crash run", || {
        crash::run(&crash::Options { kills: SHORT_RUN_KILLS, ..crash::Options::default() })
    })?;
    for kind in source::Kind::ALL.iter().copied().filter(|kind| *kind != source::Kind::Files) {
        step(&format!("crash run of a {} source", kind.name()), || {
            crash::run(&crash::Options {
                kills: OTHER_SOURCES_KILLS,
                source: kind,
                ..crash::Options::default()
            })
        })?;
    }
    step("chaos run", || chaos::run(&chaos::Options::default()))?;
    println!("\nall steps passed in {} s", begun.elapsed().as_secs());
    Ok(())
}

/// Where Debian puts PostgreSQL's programs, one folder a version.
const POSTGRES_FOLDER: &str = "/usr/lib/postgresql";
/// And MariaDB's server.
const MARIADB_SERVER: &str = "/usr/sbin/mariadbd";

/// Installs the servers that the tests start, where they are missing. The tests start their own.
fn install_servers() -> Result<()> {
    let has_postgres = std::fs::read_dir(POSTGRES_FOLDER).is_ok_and(|mut versions| {
        versions.any(|version| version.is_ok_and(|v| v.path().join("bin/initdb").exists()))
    });
    let servers = [
        ("PostgreSQL", "postgresql", has_postgres),
        ("MariaDB", "mariadb-server", Path::new(MARIADB_SERVER).exists()),
    ];
    for (name, package, is_installed) in servers {
        if is_installed {
            println!("{name} is installed");
            continue;
        }
        let mut install = Command::new("apt-get");
        install.args(["install", "--yes", "--quiet", package]).env("DEBIAN_FRONTEND", "noninteractive");
        run_command(Command::new("apt-get").args(["update", "--quiet"]))?;
        run_command(&mut install)
            .with_context(|| format!("install {name} by hand (package `{package}`), or run this as root"))?;
    }
    Ok(())
}

/// Where Debian puts FreeTDS's client.
const FREETDS_CLIENT: &str = "/usr/bin/tsql";

/// Installs the clients that check the scripted SQL Server, where they are missing. The tests get python-tds themselves.
fn install_clients() -> Result<()> {
    let has_venv = Command::new("python3").args(["-m", "ensurepip", "--version"]).output();
    if std::path::Path::new(FREETDS_CLIENT).exists() && has_venv.is_ok_and(|ran| ran.status.success()) {
        println!("FreeTDS and Python are installed");
        return Ok(());
    }
    let mut install = Command::new("apt-get");
    install
        .args(["install", "--yes", "--quiet", "freetds-bin", "python3-venv"])
        .env("DEBIAN_FRONTEND", "noninteractive");
    run_command(Command::new("apt-get").args(["update", "--quiet"]))?;
    run_command(&mut install)
        .context("install FreeTDS by hand (packages `freetds-bin` and `python3-venv`), or run this as root")
}

/// What counts instructions.
const VALGRIND: &str = "/usr/bin/valgrind";

fn install_valgrind() -> Result<()> {
    if Path::new(VALGRIND).exists() {
        println!("Valgrind is installed");
        return Ok(());
    }
    let mut install = Command::new("apt-get");
    install.args(["install", "--yes", "--quiet", "valgrind"]).env("DEBIAN_FRONTEND", "noninteractive");
    run_command(Command::new("apt-get").args(["update", "--quiet"]))?;
    run_command(&mut install).context("install Valgrind by hand (package `valgrind`), or run this as root")
}

fn step(name: &str, run: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("\n==> {name}");
    let begun = Instant::now();
    run().with_context(|| format!("step `{name}` failed"))?;
    println!("==> {name}: passed in {} s", begun.elapsed().as_secs());
    Ok(())
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
