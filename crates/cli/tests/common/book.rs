//! A book that commands work on: the embedded one, or that of a fleet.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use domesday_testkit::feed;
use domesday_testkit::postgres::Server;
use serde_json::Value;

use super::{Place, Ran, run};

/// A fingerprint key for tests, as a credential in the environment.
const KEY_VARIABLE: (&str, &str) =
    ("TEST_KEY", "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff");

pub struct Book {
    pub place: Place,
    /// Of the fleet's database.
    pub url: Option<String>,
}

impl Book {
    /// A new book with a fingerprint key, in each backend.
    pub fn each(test: impl Fn(&Book)) {
        test(&Book::embedded());
        test(&Book::fleet());
    }

    pub fn embedded() -> Book {
        Book { place: Place::new(), url: None }.made()
    }

    pub fn fleet() -> Book {
        Book { place: Place::new(), url: Some(Server::shared().create_database()) }.made()
    }

    fn made(self) -> Book {
        self.run(&["db", "migrate", "--fingerprint-key", "env:TEST_KEY"]).exits(0);
        self
    }

    pub fn command<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = self.place.command(args);
        command.env(KEY_VARIABLE.0, KEY_VARIABLE.1);
        match &self.url {
            Some(url) => command.env("DOMESDAY_STORE", url),
            None => command.args(["--state", "state"]),
        };
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        run(&mut self.command(args))
    }

    /// With something on standard input.
    pub fn run_with(&self, args: &[&str], input: &str) -> Ran {
        feed(&mut self.command(args), input.as_bytes()).unwrap().into()
    }

    /// The answer of a command that succeeds.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> Value {
        self.run(args).exits(0).json()
    }

    /// A file in the place.
    pub fn write(&self, name: impl AsRef<Path>, text: &str) {
        std::fs::write(self.place.path(name), text).unwrap();
    }

    /// A data source of the tree, in a node group.
    #[track_caller]
    pub fn source(&self, name: &str, group: &str) {
        let root = format!("root={}", self.place.tree().display());
        self.run(&["datasource", "add", name, "--kind", "filesystem", "--node-group", group, "--set", &root])
            .exits(0);
    }
}
