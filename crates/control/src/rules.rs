//! The rule sets of running jobs: every worker of a job uses exactly the set that the job pinned.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use domesday_engine::{RuleSet, RuleSource, Scanner};
use domesday_model::RuleSetHash;
use domesday_store::Store;

use crate::ControlError;

/// Rule sets kept ready; jobs that run at once rarely have more.
const CACHED_MAX: usize = 16;

/// Scanners by the hash of their rule set.
#[derive(Default)]
pub struct RuleCache {
    scanners: Mutex<HashMap<RuleSetHash, Arc<Scanner>>>,
}

impl RuleCache {
    /// A cache that has this set already, and need not read it back from the book.
    pub fn with(rules: Arc<RuleSet>) -> RuleCache {
        let cache = RuleCache::default();
        cache.insert(rules);
        cache
    }

    /// The form in which a rule set travels: its sources, as JSON.
    pub fn text(rules: &RuleSet) -> String {
        let sources: Vec<[&str; 2]> =
            rules.sources().iter().map(|source| [source.name.as_str(), source.text.as_str()]).collect();
        serde_json::json!(sources).to_string()
    }

    pub(crate) async fn scanner(
        &self,
        store: &dyn Store,
        hash: RuleSetHash,
    ) -> Result<Arc<Scanner>, ControlError> {
        if let Some(scanner) = self.scanners.lock().unwrap_or_else(PoisonError::into_inner).get(&hash) {
            return Ok(Arc::clone(scanner));
        }
        let text =
            store.rule_set(hash).await?.ok_or_else(|| ControlError::Rules(format!("{hash} is missing")))?;
        let sources: Vec<[String; 2]> =
            serde_json::from_str(&text).map_err(|error| ControlError::Rules(error.to_string()))?;
        let sources: Vec<RuleSource> =
            sources.into_iter().map(|[name, text]| RuleSource { name, text }).collect();
        let rules = RuleSet::load(&sources).map_err(|errors| ControlError::Rules(errors.to_string()))?;
        if rules.hash() != hash {
            return Err(ControlError::Rules(format!("{hash} reads as {}", rules.hash())));
        }
        Ok(self.insert(Arc::new(rules)))
    }

    fn insert(&self, rules: Arc<RuleSet>) -> Arc<Scanner> {
        let hash = rules.hash();
        let scanner = Arc::new(Scanner::new(rules));
        let mut scanners = self.scanners.lock().unwrap_or_else(PoisonError::into_inner);
        if scanners.len() >= CACHED_MAX {
            scanners.clear();
        }
        scanners.insert(hash, Arc::clone(&scanner));
        scanner
    }
}
