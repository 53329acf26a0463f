//! Kind `stdin`: the one object that is piped in. It can be read once, by one process, so a scan of it
//! never resumes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use domesday_connector::{Connector, ConnectorError, ConnectorFactory, Listing, Surroundings};
use domesday_model::{ObjectKey, Reason, RecordKind, ResumePolicy, UnitRecord, VersionMarks};
use domesday_scheduler::{ObjectError, OpenObject};

/// The kind, as data sources name it.
pub const KIND: &str = "stdin";
/// The object's key, and how it is shown.
const NAME: &str = "stdin";

/// Makes the connector of kind `stdin`.
pub struct StdinFactory;

impl ConnectorFactory for StdinFactory {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn create(&self, _: &serde_json::Value, _: &Surroundings) -> Result<Arc<dyn Connector>, ConnectorError> {
        Ok(Arc::new(Stdin { taken: AtomicBool::new(false) }))
    }
}

struct Stdin {
    taken: AtomicBool,
}

#[async_trait]
impl Connector for Stdin {
    fn resume_policy(&self) -> ResumePolicy {
        ResumePolicy::ClearAndRelist
    }

    async fn list(&self, _: &ObjectKey, _: Option<&str>) -> Result<Box<dyn Listing>, ConnectorError> {
        Ok(Box::new(OneObject(true)))
    }

    fn open(&self, _: &ObjectKey) -> Result<OpenObject, ObjectError> {
        if self.taken.swap(true, Ordering::Relaxed) {
            return Err(ObjectError::new(Reason::ReadError, "standard input can be read only once; pipe it in again"));
        }
        Ok(OpenObject { reader: Box::new(io::stdin()), random: None, size: None })
    }

    fn display(&self, object: &ObjectKey) -> String {
        object.to_string()
    }
}

struct OneObject(bool);

#[async_trait]
impl Listing for OneObject {
    async fn next_batch(&mut self, _: usize) -> Result<Vec<UnitRecord>, ConnectorError> {
        let record = || UnitRecord {
            kind: RecordKind::File,
            name: NAME.into(),
            size: 0,
            marks: VersionMarks::default(),
            reason: None,
        };
        Ok(std::mem::take(&mut self.0).then(record).into_iter().collect())
    }
}
