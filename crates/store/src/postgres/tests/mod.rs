//! What is PostgreSQL's own: its statements, migrations, connections, TLS, wake-ups, and what happens when
//! several processes do things at the same moment.

mod concurrency;
mod connections;
mod isolation;
mod migrations;
mod passwords;
mod pruning;
mod roles;
mod round_trips;
mod statements;

use domesday_model::{MasterJobId, ObjectKey, TaskType};
use domesday_testkit::postgres::Server;

use super::*;
use crate::roles::*;
use crate::testing::*;
use crate::types::*;

/// A database of its own on the server that all tests share.
struct Database {
    name: String,
    url: String,
}

impl Database {
    fn new() -> Database {
        let url = Server::shared().create_database();
        let name = url.rsplit('/').next().and_then(|rest| rest.split('?').next()).unwrap().to_owned();
        Database { name, url }
    }

    async fn open(&self) -> PostgresStore {
        PostgresStore::connect(&self.url, Options::default()).await.unwrap()
    }

    /// Runs SQL beside the store; its unaligned output.
    fn psql(&self, sql: &str) -> String {
        Server::shared().psql(&self.name, sql)
    }

    /// A session of its own, for a transaction that stays open.
    async fn session(&self) -> tokio_postgres::Client {
        let (client, driver) = config::Target::parse(&self.url).unwrap().connect().await.unwrap();
        tokio::spawn(driver);
        client
    }
}
