//! What every role may do: wait for changes of the book, and read what all processes must agree on (rule
//! sets, the fingerprint key). Every other role trait includes this one, except [`super::LeaseStore`].

use async_trait::async_trait;
use domesday_model::RuleSetHash;
use tokio::sync::watch;

use super::Result;

#[async_trait]
pub trait SharedStore: Send + Sync {
    async fn rule_set(&self, hash: RuleSetHash) -> Result<Option<String>>;
    /// Id of the key that fingerprints in this book are made with.
    async fn fingerprint_key(&self) -> Result<Option<String>>;
    /// Wakes when something in the book may have changed. A lost wake-up costs latency, never work.
    fn changes(&self) -> watch::Receiver<u64>;
}
