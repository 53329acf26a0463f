//! The rule sets of running jobs: every worker of a job uses exactly the set that the job pinned.

use std::collections::HashMap;
use std::sync::Arc;

use domesday_connector::{NotOpened, Seal};
use domesday_engine::{RuleErrors, RuleSet, RuleSource, Scanner};
use domesday_model::{RuleSetHash, Score};
use domesday_store::SharedStore;
use parking_lot::Mutex;

use crate::ControlError;

/// Scanners kept ready; jobs that run at once rarely have more.
const CACHED_MAX: usize = 16;

/// Rule sets by their hash, and scanners by that, the lowest score that is kept and whether ignore marks count.
#[derive(Default)]
pub struct RuleCache {
    cached: Mutex<Cached>,
    /// Held while a set is read: the packets of a new job all ask for it at once, and one reading is enough.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Cached {
    rules: HashMap<RuleSetHash, Arc<RuleSet>>,
    scanners: HashMap<(RuleSetHash, Score, bool), Arc<Scanner>>,
}

impl RuleCache {
    /// A cache that has this scanner and its rules already, and need not read them back from the book.
    pub fn with(scanner: Arc<Scanner>) -> RuleCache {
        let hash = scanner.rules().hash();
        let cached = Cached {
            rules: [(hash, Arc::clone(scanner.rules()))].into(),
            scanners: [((hash, scanner.floor(), scanner.heeds_marks()), scanner)].into(),
        };
        RuleCache { cached: Mutex::new(cached), ..RuleCache::default() }
    }

    /// The form in which a rule set travels: its sources, as JSON.
    pub fn text(rules: &RuleSet) -> String {
        let sources: Vec<[&str; 2]> =
            rules.sources().iter().map(|source| [source.name.as_str(), source.text.as_str()]).collect();
        serde_json::to_string(&sources).expect("texts have a form in JSON")
    }

    /// A rule set as the book has it: what it allows by its content is sealed, and matches nothing.
    pub async fn stored(store: &dyn SharedStore, hash: RuleSetHash) -> Result<RuleSet, ControlError> {
        read(store, hash).await
    }

    /// A rule set in the form in which the book may have it, to scan with: what it allows by its content is sealed in its
    /// sources, and its hash is that of the sealed form, for that of the content could be used to guess it.
    pub fn sealed(rules: &Arc<RuleSet>, seal: &Seal) -> Result<Arc<RuleSet>, RuleErrors> {
        if !rules.sources().iter().any(RuleSource::has_allowed) {
            return Ok(Arc::clone(rules));
        }
        let sources: Vec<RuleSource> =
            rules.sources().iter().map(|source| seal_source(source, seal)).collect();
        if sources == rules.sources() {
            return Ok(Arc::clone(rules));
        }
        let sealed = RuleSet::load(&sources)?;
        Ok(Arc::new(RuleSet::clone(rules).kept_as(&sealed)))
    }

    /// The scanner of a rule set that reports from `floor` on. With `heeds_marks` ignore marks count.
    pub(crate) async fn scanner(
        &self,
        store: &dyn SharedStore,
        hash: RuleSetHash,
        floor: Score,
        heeds_marks: bool,
        seal: &Seal,
    ) -> Result<Arc<Scanner>, ControlError> {
        let key = (hash, floor, heeds_marks);
        if let Some(scanner) = self.ready(key) {
            return Ok(scanner);
        }
        let _reading = self.reading.lock().await;
        if let Some(scanner) = self.ready(key) {
            return Ok(scanner);
        }
        let known = self.cached.lock().rules.get(&hash).cloned();
        let rules = match known {
            Some(rules) => rules,
            None => Arc::new(opened(read(store, hash).await?, seal)?),
        };
        let scanner = Arc::new(Scanner::with_floor(Arc::clone(&rules), floor).heeding_marks(heeds_marks));
        let mut cached = self.cached.lock();
        if cached.scanners.len() >= CACHED_MAX {
            *cached = Cached::default();
        }
        cached.rules.insert(hash, rules);
        cached.scanners.insert(key, Arc::clone(&scanner));
        Ok(scanner)
    }

    fn ready(&self, key: (RuleSetHash, Score, bool)) -> Option<Arc<Scanner>> {
        self.cached.lock().scanners.get(&key).cloned()
    }
}

/// A rule file with what it allows by its content sealed, unless it is already.
pub fn seal_source(source: &RuleSource, seal: &Seal) -> RuleSource {
    source.map_allowed(|text| {
        (!text.starts_with(SEALED)).then(|| format!("{SEALED}{}", seal.seal(ALLOWED, text.as_bytes())))
    })
}

/// The same rules, to scan with.
fn opened(sealed: RuleSet, seal: &Seal) -> Result<RuleSet, ControlError> {
    let mut failed = Ok(());
    let mut open = |text: &str| {
        let opened = seal.open(ALLOWED, text.strip_prefix(SEALED)?);
        let opened = opened.and_then(|bytes| String::from_utf8(bytes).map_err(|_| NotOpened));
        opened.map_err(|error| failed = Err(error)).ok()
    };
    let sources: Vec<RuleSource> =
        sealed.sources().iter().map(|source| source.map_allowed(&mut open)).collect();
    failed.map_err(|error| ControlError::Rules(format!("what they allow: {error}")))?;
    if sources == sealed.sources() {
        return Ok(sealed);
    }
    let opened = RuleSet::load(&sources).map_err(|errors| ControlError::Rules(errors.to_string()))?;
    Ok(opened.kept_as(&sealed))
}

/// What allowed texts are sealed for, and how one begins.
const ALLOWED: &str = "allow";
const SEALED: &str = "sealed:";

/// A rule set as the book has it. One that this version reads differently is refused.
async fn read(store: &dyn SharedStore, hash: RuleSetHash) -> Result<RuleSet, ControlError> {
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
    Ok(rules)
}
