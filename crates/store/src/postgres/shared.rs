//! [`SharedStore`]: what every process reads.

use async_trait::async_trait;
use domesday_model::RuleSetHash;
use tokio::sync::watch;

use super::transaction::params;
use super::{PostgresStore, Result, queries};
use crate::decide::configuring::FINGERPRINT_KEY;
use crate::queries::statement;
use crate::roles::SharedStore;

#[async_trait]
impl SharedStore for PostgresStore {
    async fn rule_set(&self, hash: RuleSetHash) -> Result<Option<String>> {
        const GET: &str = statement(queries::JOBS, "rule_set");
        self.one(GET, params![hash.0.to_vec()]).await
    }

    async fn fingerprint_key(&self) -> Result<Option<String>> {
        const SETTING: &str = statement(queries::DATASOURCES, "setting");
        self.one(SETTING, params![FINGERPRINT_KEY]).await
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.waker.subscribe()
    }
}
