//! Kinds `s3`, `gcs` and `azure`: the objects of one bucket.
//!
//! One connector for three protocols: what differs is how a page is asked for, how it is written and who signs
//! (`store`, `page`, `identity`). Listing, fan-out and the meaning of keys are the same (`listing`), and reads are
//! those of every remote source ([`domesday_connector::remote`]).

mod address;
mod clouds;
mod config;
mod identity;
mod listing;
mod page;
mod patterns;
mod profile;
mod refusal;
mod store;
#[cfg(test)]
mod tests;
mod versions;

use std::sync::Arc;

use async_trait::async_trait;
use domesday_connector::address::Address;
use domesday_connector::fields::{self, Field};
use domesday_connector::remote::Remote;
use domesday_connector::{
    Configured, Connector, ConnectorError, ConnectorFactory, Description, Listing, NamedBy, ReadAhead,
    Surroundings, TargetError, TargetFlags, path_root,
};
use domesday_content::ObjectError;
use domesday_model::{ListedObject, ObjectKey, ResumePolicy};
use domesday_scheduler::Opened;
use serde_json::Value;

pub use address::{BadAddress, parse_address};
pub use config::{Kind, ObjectsConfig};
use listing::PrefixListing;
use patterns::Patterns;
use store::Store;

/// Makes connectors of one of the kinds.
pub struct ObjectsFactory(pub Kind);

impl ConnectorFactory for ObjectsFactory {
    fn kind(&self) -> &'static str {
        self.0.as_str()
    }

    fn create(
        &self,
        configuration: &serde_json::Value,
        surroundings: &Surroundings,
    ) -> Result<Arc<dyn Connector>, ConnectorError> {
        let config = ObjectsConfig::parse(self.0, configuration)?;
        let patterns = Patterns::new(self.0, &config)?;
        let store = Arc::new(Store::new(self.0, &config, surroundings)?);
        let remote = Remote::new(Arc::clone(&store) as _);
        Ok(Arc::new(Objects { bucket: Arc::new(Bucket { config, patterns, store }), remote }))
    }

    fn describe(&self) -> Description {
        Description { about: self.0.about(), schemes: self.0.schemes(), ..Description::default() }
    }

    fn fields(&self) -> Vec<Field> {
        fields::fields(&ObjectsConfig::new("bucket"))
    }

    fn configure_address(&self, address: &Address, _: &TargetFlags) -> Result<Configured, TargetError> {
        let parsed = parse_address(&address.text);
        let (kind, configuration) = parsed.map_err(|error| TargetError::new(error.to_string()))?;
        Ok(Configured { kind, configuration, concurrency_limit: None })
    }

    fn display_root(&self, configuration: &Value, named: NamedBy<'_>) -> Vec<u8> {
        match named {
            NamedBy::Path(typed) => path_root(typed),
            NamedBy::Address(address) => address.text.clone().into_bytes(),
            NamedBy::Configuration => {
                configuration.get("bucket").and_then(Value::as_str).unwrap_or_default().into()
            }
        }
    }
}

/// What listings of one bucket share.
struct Bucket {
    config: ObjectsConfig,
    patterns: Patterns,
    store: Arc<Store>,
}

struct Objects {
    bucket: Arc<Bucket>,
    remote: Remote,
}

#[async_trait]
impl Connector for Objects {
    fn resume_policy(&self, _: &ObjectKey) -> ResumePolicy {
        ResumePolicy::FromResumePoint
    }

    async fn list(
        &self,
        container: &ObjectKey,
        resume_point: Option<&str>,
    ) -> Result<Box<dyn Listing>, ConnectorError> {
        Ok(Box::new(PrefixListing::begin(&self.bucket, container, resume_point)?))
    }

    fn open(&self, object: &ListedObject) -> Result<Opened, ObjectError> {
        if versions::stands_for(object) {
            return Err(versions::error());
        }
        self.remote.open(&object.key).map(Opened::Bytes)
    }

    fn read_ahead(&self, objects: &Arc<[ListedObject]>) -> Option<Box<dyn ReadAhead>> {
        Some(versions::read_ahead(self.remote.read_ahead(objects).ok()?, objects))
    }
}
