//! [`SharedStore`]: what every process reads.

use async_trait::async_trait;
use domesday_model::RuleSetHash;
use tokio::sync::watch;

use super::rows::Statements;
use super::{Result, SqliteStore, queries};
use crate::decide::configuring::FINGERPRINT_KEY;
use crate::queries::statement;
use crate::roles::SharedStore;

#[async_trait]
impl SharedStore for SqliteStore {
    async fn rule_set(&self, hash: RuleSetHash) -> Result<Option<String>> {
        const GET: &str = statement(queries::JOBS, "rule_set");
        self.read(move |c| c.one(GET, [hash.0])).await
    }

    async fn fingerprint_key(&self) -> Result<Option<String>> {
        const SETTING: &str = statement(queries::DATASOURCES, "setting");
        self.read(|c| c.one(SETTING, [FINGERPRINT_KEY])).await
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }
}
