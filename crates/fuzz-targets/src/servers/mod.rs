//! Servers that answer whatever the input says: a connection over the loopback, on which our client speaks as it does in
//! a scan.
//!
//! An input is a script of records. It may be the record of a session with a real server, see the example `record`.

mod protocol;
mod script;

use std::panic::PanicHookInfo;
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use domesday_connector::credentials::{CredentialManager, RunSecrets, Secret};
use domesday_connector::{Surroundings, remote};
use domesday_connectors::databases::{ServerFactory, fuzz};
use serde_json::json;

use crate::runtime::wait;
pub use protocol::Protocol;
use script::Stage;
pub use script::{PACKET, RAW, RECONNECT, TURN};

/// Servers of one kind, as the client is set up for them.
pub struct Site {
    pub protocol: Protocol,
    factory: &'static ServerFactory,
    pub user: &'static str,
    /// Servers that want none get none.
    pub password: Option<&'static str>,
    pub database: &'static str,
    pub schema: &'static str,
}

pub static MYSQL: Site = Site {
    protocol: Protocol::Mysql,
    factory: &domesday_connectors::databases::mysql::FACTORY,
    user: "auditor",
    password: Some("secret"),
    database: "shop",
    schema: "",
};

pub static POSTGRES: Site = Site {
    protocol: Protocol::Postgres,
    factory: &domesday_connectors::databases::postgres::FACTORY,
    user: "postgres",
    password: None,
    database: "shop",
    schema: "public",
};

pub static SQLSERVER: Site = Site {
    protocol: Protocol::Tds,
    factory: &domesday_connectors::databases::sqlserver::FACTORY,
    user: "auditor",
    password: Some("p]w'\";ä日"),
    database: "shop",
    schema: "dbo",
};

/// How long the fuzzer lets a client wait for what never comes. One that is slower, on a busy machine, has a shorter script.
const TURN_MAX: Duration = Duration::from_millis(50);

static STAGE: LazyLock<Stage> = LazyLock::new(|| Stage::open(TURN_MAX));

// Most scripts break off: what matters is how the client takes it.

pub fn mysql(input: &[u8]) {
    let _ = play(&STAGE, &MYSQL, input);
}

pub fn postgres(input: &[u8]) {
    let _ = play(&STAGE, &POSTGRES, input);
}

pub fn sqlserver(input: &[u8]) {
    let _ = play(&STAGE, &SQLSERVER, input);
}

/// Whether this panic ends one request to a server and nothing else: it is of a library, not of ours, and on a thread of
/// remote reads, which answer for it with an error.
pub fn is_contained(panic: &PanicHookInfo<'_>) -> bool {
    /// How the threads of remote reads are called.
    const THREAD: &str = "domesday-remote";
    /// Where cargo keeps what it has from a registry.
    const LIBRARIES: &str = "/registry/src/";
    thread::current().name() == Some(THREAD)
        && panic.location().is_some_and(|place| place.file().contains(LIBRARIES))
}

fn play(stage: &Stage, site: &'static Site, input: &[u8]) -> Result<(), String> {
    let (host, port) = stage.set(site.protocol, input);
    survey(site, &host, port)
}

/// Lists and reads what a server has.
pub fn survey(site: &'static Site, host: &str, port: u16) -> Result<(), String> {
    let configuration =
        json!({ "host": host, "port": port, "user": site.user, "tls": "disable", "system": true });
    let mut surroundings = Surroundings::default();
    if let Some(password) = site.password {
        let mut secrets = RunSecrets::default();
        surroundings.credential = Some(secrets.hold("fuzz", Secret::new(password.as_bytes().to_vec())));
        surroundings.credentials = Arc::new(CredentialManager::default().with(secrets));
    }
    let survey = async move {
        fuzz::survey(site.factory, &configuration, &surroundings, site.database, site.schema).await
    };
    // Where a scan runs it, too: a client library that panics ends one request.
    let outcome = wait(remote::run(survey)).map_err(|error| error.to_string())?;
    outcome.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A script that the client does not follow to its end would leave the rest of it to nobody.
    #[test]
    fn recorded_sessions_are_understood() {
        let stage = Stage::open(Duration::from_secs(30));
        for (site, folder) in [(&MYSQL, "mysql"), (&POSTGRES, "postgres"), (&SQLSERVER, "sqlserver")] {
            let file = format!("{}/../../fuzz/corpus/{folder}/session", env!("CARGO_MANIFEST_DIR"));
            assert_eq!(play(&stage, site, &std::fs::read(file).unwrap()), Ok(()), "{folder}");
        }
    }
}
