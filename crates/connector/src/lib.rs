//! What a connector is: something that lists containers and opens objects of one kind of data source.
//!
//! A connector knows nothing of jobs, tasks or the book. It is asked for one container at a time, one
//! level deep, and streams the entries in batches; whoever asks decides what to keep. This crate must
//! not know SQL, nor any concrete connector.

pub mod address;
mod configuration;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod credentials;
mod error;
mod factory;
pub mod fields;
mod host;
pub mod http;
mod registry;
mod regular_file;
pub mod remote;
mod seal;
mod sealed_names;
mod trial;
mod trust;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use domesday_content::ObjectError;
use domesday_model::{ListedObject, ObjectKey, Origin, ResumePolicy, TargetDraft, TrustContent, UnitRecord};
use domesday_scheduler::{Moved, Opened, PathKind};

use credentials::{
    Credential, CredentialError, CredentialManager, CredentialPolicy, CredentialReference, Method, Secret,
};

pub use configuration::parse_configuration;
pub use error::{ConnectorError, io_reason};
pub use factory::{
    Configured, ConnectorFactory, Coverage, Description, Exclude, HistoryFlags, NamedBy, Recognition,
    TargetError, TargetFlags, WebFlags, path_root,
};
pub use host::{Host, HostPattern};
pub use registry::Registry;
pub use regular_file::RegularFile;
pub use seal::{NotOpened, Seal};
pub use trial::{Step, Trial};
pub use trust::TRUST_CONTENT;

/// One configured data source, ready to be read. Shared by threads.
#[async_trait]
pub trait Connector: Send + Sync {
    /// How a listing of this container that was cut short goes on.
    fn resume_policy(&self, container: &ObjectKey) -> ResumePolicy;

    /// Begins to list one container, one level deep. `resume_point` is what an interrupted listing of it
    /// last gave, for kinds that go on from there.
    async fn list(
        &self,
        container: &ObjectKey,
        resume_point: Option<&str>,
    ) -> Result<Box<dyn Listing>, ConnectorError>;

    /// Opens an object: as rows if it was listed as such
    /// ([`RecordKind::is_rows`](domesday_model::RecordKind::is_rows)), else as bytes or as several tables. Of an object
    /// that was not listed by this process only the key may be known. Called on the scan core's threads; may block.
    fn open(&self, object: &ListedObject) -> Result<Opened, ObjectError>;

    /// What the path of an object makes of it. A kind of source whose keys are no paths tells it by what it listed.
    fn path_kind(&self, object: &ListedObject) -> PathKind {
        PathKind::of(object.key.as_bytes())
    }

    /// Prepares for the objects of one packet, which will be opened in about this order: a source that is far
    /// away reads ahead, within its own limits. `None` opens each when its turn comes.
    fn read_ahead(&self, _objects: &Arc<[ListedObject]>) -> Option<Box<dyn ReadAhead>> {
        None
    }

    /// Whether keys alone do not tell people where an object is, so that [`Connector::origins`] is to be asked
    /// for objects with findings.
    fn traces_origins(&self) -> bool {
        false
    }

    /// Where these objects came from; those of which nothing is known are absent. Asked once per job, when
    /// all objects were scanned, for those with findings. Whoever looks for long counts in `moved` what it has
    /// looked at.
    async fn origins(
        &self,
        _objects: &[ObjectKey],
        _moved: &Moved,
    ) -> Result<Vec<(ObjectKey, Origin)>, ConnectorError> {
        Ok(Vec::new())
    }

    /// Whether the data source answers and lets us in: lists the beginning of its root, and how many entries
    /// that gave. A kind that can tell it sooner does. [`Trial`] goes on from there.
    async fn test(&self) -> Result<usize, ConnectorError> {
        let mut listing = self.list(&ObjectKey::new(""), None).await?;
        Ok(listing.next_batch(TEST_ENTRIES_MAX).await?.len())
    }
}

/// Entries that a test of a data source lists, at most.
const TEST_ENTRIES_MAX: usize = 100;

/// A container being listed.
#[async_trait]
pub trait Listing: Send {
    /// The next entries, at most `max`; an empty batch ends the listing.
    async fn next_batch(&mut self, max: usize) -> Result<Vec<UnitRecord>, ConnectorError>;

    /// Given once, before the first batch. A listing whose entries may come so slowly that a batch takes long counts
    /// each of them; batches are counted by whoever asks for them.
    fn watch(&mut self, _moved: &Moved) {}

    /// Where the listing stands after the last batch, for kinds that resume from there
    /// ([`ResumePolicy::FromResumePoint`]): `list` given this goes on with exactly the entries that come
    /// next. `None` when that batch was the last.
    fn resume_point(&self) -> Option<String> {
        None
    }

    /// Scan targets that the last batch came upon, once.
    fn take_targets(&mut self) -> Vec<TargetDraft> {
        Vec::new()
    }
}

/// Objects of one packet on their way. Dropping it ends what is under way.
pub trait ReadAhead: Send + Sync {
    /// Opens the object with this place in the packet, as [`Connector::open`] does.
    fn open(&self, index: usize) -> Result<Opened, ObjectError>;
}

/// What a connector is given beside its data source's configuration.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Domesday's own state folder, which is never scanned.
    pub own_state: Option<PathBuf>,
    /// Resolves references to secrets, each time one is used.
    pub credentials: Arc<CredentialManager>,
    /// Where the data source's secret is.
    pub credential: Option<CredentialReference>,
    /// Whether the content may say what is reported of it. A job's word when the registry is asked for a connector; `Yes`
    /// or `No` when a factory is.
    pub trust_content: TrustContent,
    /// Seals what a connector has the book keep of data. The registry has names of objects sealed by itself.
    pub seal: Seal,
}

impl Surroundings {
    /// The same for one data source, with its credential reference as the book has it.
    pub fn for_source(&self, credential: Option<&str>) -> Result<Surroundings, ConnectorError> {
        let credential = credential.map(str::parse).transpose().map_err(ConnectorError::Credential)?;
        Ok(Surroundings { credential, ..self.clone() })
    }

    /// The same with a reference that the user of this process typed, and that is therefore allowed.
    pub fn with_typed(&self, reference: CredentialReference) -> Surroundings {
        let policy = CredentialPolicy::default().typed(reference.clone());
        let credentials = Arc::new(CredentialManager::default().under(policy));
        Surroundings { credentials, credential: Some(reference), ..self.clone() }
    }

    /// The data source's credential for this server, fetched now and read as `method` has it.
    /// [`Method::Unauthenticated`] asks for nothing; any other without a reference is an error that says so. What is
    /// had this way is sent to this server and to no other, wherever the server redirects.
    pub async fn credential(&self, method: Method, host: &Host) -> Result<Credential, ConnectorError> {
        if method == Method::Unauthenticated {
            return Ok(Credential::Unauthenticated);
        }
        let reference = self.credential.as_ref().ok_or(CredentialError::Missing(method))?;
        let secret = self.credentials.resolve(reference, host).await?;
        Ok(method.read(reference, &secret)?)
    }

    /// The data source's secret for this server, if it has one, as it was written down.
    pub async fn secret(&self, host: &Host) -> Result<Option<Secret>, ConnectorError> {
        let Some(reference) = &self.credential else { return Ok(None) };
        Ok(Some(self.credentials.resolve(reference, host).await?))
    }

    /// Whether a secret that was had before may go to this server, too.
    pub fn check_host(&self, host: &Host) -> Result<(), ConnectorError> {
        match &self.credential {
            Some(reference) => Ok(self.credentials.policy().check(reference, Some(host))?),
            None => Ok(()),
        }
    }

    /// The same credential, to see that it has what the method needs. It is sent nowhere.
    async fn look_at_credential(&self, method: Method) -> Result<(), ConnectorError> {
        if method == Method::Unauthenticated {
            return Ok(());
        }
        let reference = self.credential.as_ref().ok_or(CredentialError::Missing(method))?;
        let secret = self.credentials.look_at(reference).await?;
        method.read(reference, &secret)?;
        Ok(())
    }
}
