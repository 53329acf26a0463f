//! Between a connector and whoever asks it: what is secret in a name or an address stays on the connector's side.
//!
//! Names of objects go to the book, into reports and logs. A token in one of them (`?token=` of a link, a signed address,
//! a file that is named after a key) is sealed before it leaves and opened before the connector sees it again, whatever
//! the kind of data source. The bounds of a range of rows are primary keys, and the place where a listing goes on may be
//! one: both are sealed whole, for the container that they are of. What is only said, such as errors, is redacted.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use domesday_content::ObjectError;
use domesday_model::{
    ListedObject, ObjectKey, Origin, Reason, RecordKind, ResumePolicy, TableShape, TargetDraft, UnitRecord,
    redact,
};
use domesday_scheduler::{Moved, Opened, PathKind};

use crate::seal::{NotOpened, Seal};
use crate::{Connector, ConnectorError, Listing, ReadAhead};

pub(crate) struct SealedNames {
    pub connector: Arc<dyn Connector>,
    pub seal: Seal,
}

impl SealedNames {
    /// A key as the connector knows it.
    fn open_key<'k>(&self, key: &'k ObjectKey) -> Result<Cow<'k, ObjectKey>, NotOpened> {
        Ok(match self.seal.open_name(key.as_bytes())? {
            Cow::Borrowed(_) => Cow::Borrowed(key),
            Cow::Owned(opened) => Cow::Owned(ObjectKey(opened)),
        })
    }

    fn seal_key(&self, key: ObjectKey) -> ObjectKey {
        match self.seal.seal_name(key.as_bytes()) {
            Cow::Borrowed(_) => key,
            Cow::Owned(sealed) => ObjectKey(sealed),
        }
    }

    fn object<'o>(&self, object: &'o ListedObject) -> Result<Cow<'o, ListedObject>, NotOpened> {
        let mut opened = match self.open_key(&object.key)? {
            Cow::Borrowed(_) => Cow::Borrowed(object),
            Cow::Owned(key) => Cow::Owned(object.with_key(key)),
        };
        if let (RecordKind::Rows, Some(bounds)) = (object.kind, object.metadata.as_deref()) {
            let bounds = self.seal.open(&purpose(BOUNDS, &opened.key), bounds)?;
            let bounds = String::from_utf8(bounds).map_err(|_| NotOpened)?;
            opened.to_mut().metadata = Some(bounds.into());
        }
        Ok(opened)
    }
}

/// What is sealed whole, beside the key it is of.
const BOUNDS: &str = "bounds";
const RESUME_POINT: &str = "resume point";

fn purpose(what: &str, of: &ObjectKey) -> String {
    format!("{what} of {of}")
}

/// Findings in rows are those of a table, under a key that the connector gives.
fn sealed(seal: &Seal, opened: Result<Opened, ObjectError>) -> Result<Opened, ObjectError> {
    match opened {
        Ok(Opened::Rows { table, mut rows }) => {
            let table = ObjectKey(seal.seal_name(table.as_bytes()).into_owned());
            if has_secret_comment(&rows.shape) {
                redact_comments(Arc::make_mut(&mut rows.shape));
            }
            Ok(Opened::Rows { table, rows })
        }
        opened => opened.map_err(redacted_object),
    }
}

/// Comments on tables and columns are their owner's words, which people read in the catalogue.
fn comments(shape: &mut TableShape) -> impl Iterator<Item = &mut String> {
    let of_columns = shape.columns.iter_mut().filter_map(|column| column.comment.as_mut());
    shape.comment.iter_mut().chain(of_columns)
}

fn has_secret_comment(shape: &TableShape) -> bool {
    let of_columns = shape.columns.iter().filter_map(|column| column.comment.as_ref());
    shape.comment.iter().chain(of_columns).any(|comment| !redact::secret_parts(comment.as_bytes()).is_empty())
}

fn redact_comments(shape: &mut TableShape) {
    comments(shape).for_each(|comment| *comment = redact::redacted(comment).into_owned());
}

/// What a listing says of a table, as it may be kept.
fn redacted_shape(metadata: &str) -> Option<Box<str>> {
    let mut shape = serde_json::from_str(metadata).ok().filter(has_secret_comment)?;
    redact_comments(&mut shape);
    Some(serde_json::to_string(&shape).ok()?.into())
}

fn redacted_object(error: ObjectError) -> ObjectError {
    match redact::redacted(&error.detail) {
        Cow::Borrowed(_) => error,
        Cow::Owned(detail) => ObjectError { detail, ..error },
    }
}

/// An error as it may be shown.
pub(crate) fn redacted(mut error: ConnectorError) -> ConnectorError {
    if let ConnectorError::Container { detail, .. }
    | ConnectorError::Wait { detail, .. }
    | ConnectorError::Denied { detail }
    | ConnectorError::Configuration { detail, .. } = &mut error
        && let Cow::Owned(shown) = redact::redacted(detail)
    {
        *detail = shown;
    }
    error
}

fn not_a_container(error: NotOpened) -> ConnectorError {
    ConnectorError::Container { reason: Reason::ReadError, detail: error.to_string() }
}

fn not_an_object(error: NotOpened) -> ObjectError {
    ObjectError::new(Reason::ReadError, error.to_string())
}

// A method that were left to its default would give the answer of some other kind.
#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Connector for SealedNames {
    fn resume_policy(&self, container: &ObjectKey) -> ResumePolicy {
        let container = self.open_key(container).unwrap_or(Cow::Borrowed(container));
        self.connector.resume_policy(&container)
    }

    async fn list(
        &self,
        container: &ObjectKey,
        resume_point: Option<&str>,
    ) -> Result<Box<dyn Listing>, ConnectorError> {
        let container = self.open_key(container).map_err(not_a_container)?.into_owned();
        let open = |point: &str| {
            let point = self.seal.open(&purpose(RESUME_POINT, &container), point)?;
            String::from_utf8(point).map_err(|_| NotOpened)
        };
        let resume_point = resume_point.map(open).transpose().map_err(not_a_container)?;
        let listing = self.connector.list(&container, resume_point.as_deref()).await.map_err(redacted)?;
        Ok(Box::new(SealedListing { listing, container, seal: self.seal.clone() }))
    }

    fn open(&self, object: &ListedObject) -> Result<Opened, ObjectError> {
        sealed(&self.seal, self.connector.open(&*self.object(object).map_err(not_an_object)?))
    }

    fn path_kind(&self, object: &ListedObject) -> PathKind {
        let object = self.object(object).unwrap_or(Cow::Borrowed(object));
        self.connector.path_kind(&object)
    }

    fn read_ahead(&self, objects: &Arc<[ListedObject]>) -> Option<Box<dyn ReadAhead>> {
        let opened: Vec<_> =
            objects.iter().map(|object| self.object(object)).collect::<Result<_, _>>().ok()?;
        // Nearly always there is nothing to open, and the packet is passed on as it is.
        let as_they_are = opened.iter().all(|object| matches!(object, Cow::Borrowed(_)));
        let ahead = match as_they_are {
            true => self.connector.read_ahead(objects),
            false => self.connector.read_ahead(&opened.into_iter().map(Cow::into_owned).collect()),
        };
        Some(Box::new(SealedAhead { ahead: ahead?, seal: self.seal.clone() }))
    }

    fn traces_origins(&self) -> bool {
        self.connector.traces_origins()
    }

    async fn origins(
        &self,
        objects: &[ObjectKey],
        moved: &Moved,
    ) -> Result<Vec<(ObjectKey, Origin)>, ConnectorError> {
        let opened: Vec<_> =
            objects.iter().filter_map(|key| Some(self.open_key(key).ok()?.into_owned())).collect();
        let mut origins = self.connector.origins(&opened, moved).await.map_err(redacted)?;
        for (key, origin) in &mut origins {
            *key = self.seal_key(std::mem::take(key));
            origin.path = origin.path.take().map(|path| self.seal_key(path));
        }
        Ok(origins)
    }

    async fn test(&self) -> Result<usize, ConnectorError> {
        self.connector.test().await.map_err(redacted)
    }
}

struct SealedListing {
    listing: Box<dyn Listing>,
    /// As the connector knows it.
    container: ObjectKey,
    seal: Seal,
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Listing for SealedListing {
    async fn next_batch(&mut self, max: usize) -> Result<Vec<UnitRecord>, ConnectorError> {
        let mut records = self.listing.next_batch(max).await.map_err(redacted)?;
        for record in &mut records {
            match (record.kind, record.metadata.as_deref()) {
                (RecordKind::Rows, Some(bounds)) => {
                    let key = self.container.join(&record.name);
                    record.metadata = Some(self.seal.seal(&purpose(BOUNDS, &key), bounds.as_bytes()).into());
                }
                (RecordKind::Table | RecordKind::PartedTable, Some(shape)) => {
                    record.metadata = redacted_shape(shape).or(record.metadata.take());
                }
                _ => {}
            }
            if let Cow::Owned(sealed) = self.seal.seal_name(&record.name) {
                record.name = sealed;
            }
        }
        Ok(records)
    }

    fn watch(&mut self, moved: &Moved) {
        self.listing.watch(moved);
    }

    fn resume_point(&self) -> Option<String> {
        let point = self.listing.resume_point()?;
        Some(self.seal.seal(&purpose(RESUME_POINT, &self.container), point.as_bytes()))
    }

    fn take_targets(&mut self) -> Vec<TargetDraft> {
        let mut targets = self.listing.take_targets();
        for target in &mut targets {
            let (TargetDraft::GithubRepository { url, .. } | TargetDraft::Url { url, .. }) = target;
            *url = self.seal.seal_address(url);
        }
        targets
    }
}

struct SealedAhead {
    ahead: Box<dyn ReadAhead>,
    seal: Seal,
}

#[deny(clippy::missing_trait_methods)]
impl ReadAhead for SealedAhead {
    fn open(&self, index: usize) -> Result<Opened, ObjectError> {
        sealed(&self.seal, self.ahead.open(index))
    }
}
