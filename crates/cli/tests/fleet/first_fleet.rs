//! The first fleet of docs/fleet, made by exactly the commands that stand there, on a server that asks for passwords.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use domesday_testkit::fleet::Fleet;
use domesday_testkit::postgres::{Server, Settings};

use crate::common::KEY;
use crate::place::{FINGERPRINT_KEY, LEASE, PASSWORD};

const GUIDE: &str = include_str!("../../../../docs/fleet/README.md");
const HEADING: &str = "## From nothing to a first job";
/// Who may connect, and how: without a password only the administrator, and only to the socket.
const HOST_RULES: &str = "local all all trust\nhost all all all scram-sha-256\n";
/// The processes that the commands begin end with them.
const ENDS: &str = "trap 'kill $(jobs -p); wait' EXIT\n";
/// Findings end the last command with 1.
const FOUND: i32 = 1;

/// The commands of the section, in their order.
fn commands() -> String {
    let section = GUIDE.split(HEADING).nth(1).unwrap().split("\n## ").next().unwrap();
    let blocks = section.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    let commands: String = blocks.collect();
    assert!(commands.contains("domesday db grant") && commands.contains("job start"), "{commands}");
    commands
}

#[test]
fn the_first_fleet_is_made_by_the_commands_of_the_guide() {
    let server = Server::start_with(Settings { host_rules: Some(HOST_RULES), ..Settings::default() });
    server.psql("postgres", &format!("ALTER ROLE postgres PASSWORD '{PASSWORD}'"));
    let folder = tempfile::Builder::new().prefix("domesday-first-").tempdir().unwrap();
    let shares = folder.path().join("shares");
    fs::create_dir(&shares).unwrap();
    fs::write(shares.join("app.conf"), format!("{KEY}\n")).unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_domesday"));
    let fleet = Fleet::new(binary, &folder.path().join("logs"), "", FINGERPRINT_KEY, LEASE);
    let home = fleet.folder().join("home");
    fs::create_dir(&home).unwrap();
    let passwords = home.join(".pgpass");
    fs::write(&passwords, format!("*:*:*:postgres:{PASSWORD}\n")).unwrap();
    fs::set_permissions(&passwords, Permissions::from_mode(0o600)).unwrap();

    let mut shell = Command::new("setpriv");
    shell.args(["--pdeathsig", "KILL", "bash", "-euo", "pipefail", "-c", &(ENDS.to_owned() + &commands())]);
    shell.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let programs = [binary.parent().unwrap(), server.programs()].map(|folder| folder.display().to_string());
    let path = std::env::var("PATH").unwrap();
    shell.env_clear().env("PATH", format!("{}:{path}", programs.join(":"))).env("HOME", &home);
    shell.env("PGHOST", "localhost").env("PGPORT", server.port().to_string()).env("PGUSER", "postgres");
    shell.env("SHARES", &shares).env("NO_COLOR", "1");
    let said = fleet.finish(shell).exits(FOUND);

    assert!(said.contains("app.conf"), "{said}");
    let sql = |sql| server.psql("domesday", sql);
    assert_eq!(sql("SELECT string_agg(DISTINCT status, ',') FROM jobs"), "COMPLETED");
    assert_eq!(sql("SELECT node_group FROM node_group_logins WHERE login = 'worker_eu'"), "eu");
}
