//! Failpoints for the harnesses that prove recovery, in builds that no user has.
//!
//! `DOMESDAY_FAILPOINT=verb:stage:n` ends the process with SIGKILL the nth time the store's writer comes to
//! that stage of that verb (`*` is any verb). `DOMESDAY_ABORT_ON=name` ends it with SIGABRT whenever an object
//! of that name is opened: what a file does that a parser cannot survive. `DOMESDAY_CHECKPOINT_DISTANCE=bytes` has
//! smaller objects take checkpoints, and more of them.
//!
//! The wrappers pass every method on. Clippy refuses one that leaves a method to its default
//! (`missing_trait_methods`), which would be the answer of some other kind.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use domesday_connector::address::Address;
use domesday_connector::fields::Field;
use domesday_connector::{
    Configured, Connector, ConnectorError, ConnectorFactory, Coverage, Description, Listing, NamedBy,
    ReadAhead, Recognition, Surroundings, TargetError, TargetFlags,
};
use domesday_content::ObjectError;
use domesday_model::{ListedObject, ObjectKey, Origin, ResumePolicy};
use domesday_scheduler::{CoreConfig, Moved, Opened, PathKind};
use domesday_store::sqlite::{Fault, Stage, WriteHook};
use rustix::process::{Signal, getpid, kill_process};
use serde_json::Value;

/// The scan core with the distance between checkpoints that the environment asks for.
pub fn core_config(config: CoreConfig) -> CoreConfig {
    let asked = std::env::var("DOMESDAY_CHECKPOINT_DISTANCE").ok().and_then(|bytes| bytes.parse().ok());
    CoreConfig { checkpoint_distance: asked.unwrap_or(config.checkpoint_distance), ..config }
}

pub struct Failpoint {
    verb: String,
    stage: Stage,
    left: u64,
}

impl Failpoint {
    pub fn from_environment() -> Option<Box<dyn WriteHook>> {
        let text = std::env::var("DOMESDAY_FAILPOINT").ok()?;
        let mut parts = text.split(':');
        let (verb, stage, left) = (parts.next()?, parts.next()?, parts.next()?.parse().ok()?);
        let stage = match stage {
            "begin" => Stage::Begin,
            "before_commit" => Stage::BeforeCommit,
            "after_commit" => Stage::AfterCommit,
            _ => return None,
        };
        Some(Box::new(Failpoint { verb: verb.to_owned(), stage, left }))
    }
}

impl WriteHook for Failpoint {
    fn at(&mut self, verb: &'static str, stage: Stage) -> Fault {
        if stage == self.stage && (self.verb == "*" || self.verb == verb) {
            self.left = self.left.saturating_sub(1);
            if self.left == 0 {
                // Says where it was, for the harness's count, and is gone.
                eprintln!("failpoint {verb}");
                let _ = kill_process(getpid(), Signal::KILL);
            }
        }
        Fault::None
    }
}

/// Connectors of a kind, that abort at the object `DOMESDAY_ABORT_ON` names.
pub struct Aborting<F>(pub F);

#[deny(clippy::missing_trait_methods, reason = "one that is not passed on is another kind's answer")]
impl<F: ConnectorFactory> ConnectorFactory for Aborting<F> {
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    fn create(
        &self,
        configuration: &Value,
        surroundings: &Surroundings,
    ) -> Result<Arc<dyn Connector>, ConnectorError> {
        let connector = self.0.create(configuration, surroundings)?;
        Ok(match std::env::var("DOMESDAY_ABORT_ON") {
            Ok(name) => Arc::new(AbortingConnector { connector, name: name.into() }),
            Err(_) => connector,
        })
    }

    fn describe(&self) -> Description {
        self.0.describe()
    }

    fn fields(&self) -> Vec<Field> {
        self.0.fields()
    }

    fn recognises(&self, address: &Address) -> Recognition {
        self.0.recognises(address)
    }

    fn configure_address(&self, address: &Address, flags: &TargetFlags) -> Result<Configured, TargetError> {
        self.0.configure_address(address, flags)
    }

    fn recognises_path(&self, path: &Path, flags: &TargetFlags) -> Result<Recognition, TargetError> {
        self.0.recognises_path(path, flags)
    }

    fn configure_path(&self, path: &Path, flags: &TargetFlags) -> Result<Option<Value>, TargetError> {
        self.0.configure_path(path, flags)
    }

    fn display_root(&self, configuration: &Value, named: NamedBy<'_>) -> Vec<u8> {
        self.0.display_root(configuration, named)
    }

    fn is_local_tree(&self, configuration: &Value) -> bool {
        self.0.is_local_tree(configuration)
    }

    fn leads_out(&self, configuration: &Value) -> Vec<PathBuf> {
        self.0.leads_out(configuration)
    }

    fn coverage(&self, configuration: &Value) -> Coverage {
        self.0.coverage(configuration)
    }
}

struct AbortingConnector {
    connector: Arc<dyn Connector>,
    name: Arc<str>,
}

#[deny(clippy::missing_trait_methods, reason = "one that is not passed on is another connector's answer")]
#[async_trait]
impl Connector for AbortingConnector {
    fn resume_policy(&self, container: &ObjectKey) -> ResumePolicy {
        self.connector.resume_policy(container)
    }

    async fn list(
        &self,
        container: &ObjectKey,
        resume_point: Option<&str>,
    ) -> Result<Box<dyn Listing>, ConnectorError> {
        self.connector.list(container, resume_point).await
    }

    fn open(&self, object: &ListedObject) -> Result<Opened, ObjectError> {
        abort_at(&self.name, object);
        self.connector.open(object)
    }

    fn path_kind(&self, object: &ListedObject) -> PathKind {
        self.connector.path_kind(object)
    }

    fn read_ahead(&self, objects: &Arc<[ListedObject]>) -> Option<Box<dyn ReadAhead>> {
        let ahead = self.connector.read_ahead(objects)?;
        Some(Box::new(AbortingAhead { ahead, objects: Arc::clone(objects), name: Arc::clone(&self.name) }))
    }

    fn traces_origins(&self) -> bool {
        self.connector.traces_origins()
    }

    async fn origins(
        &self,
        objects: &[ObjectKey],
        moved: &Moved,
    ) -> Result<Vec<(ObjectKey, Origin)>, ConnectorError> {
        self.connector.origins(objects, moved).await
    }

    async fn test(&self) -> Result<usize, ConnectorError> {
        self.connector.test().await
    }
}

struct AbortingAhead {
    ahead: Box<dyn ReadAhead>,
    objects: Arc<[ListedObject]>,
    name: Arc<str>,
}

#[deny(clippy::missing_trait_methods, reason = "one that is not passed on is another connector's answer")]
impl ReadAhead for AbortingAhead {
    fn open(&self, index: usize) -> Result<Opened, ObjectError> {
        abort_at(&self.name, &self.objects[index]);
        self.ahead.open(index)
    }
}

/// Ends the process if the object has this name.
fn abort_at(name: &str, object: &ListedObject) {
    if object.key.as_bytes().rsplit(|byte| *byte == b'/').next() == Some(name.as_bytes()) {
        let _ = kill_process(getpid(), Signal::ABORT);
    }
}
