//! Why content could not be read whole: [`ContentError`] for a place in a container, because whoever reads through five
//! layers of decoders wants to know the reason and the entry, not the layer; [`ObjectError`] for an object as a whole.

use std::io;

use domesday_model::{NestedStep, Reason};

/// A place in a container that could not be read, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct ContentError {
    reason: Reason,
    detail: String,
    entry: Option<NestedStep>,
    fatal: bool,
}

impl ContentError {
    pub(crate) fn fatal_for(reason: Reason, detail: impl Into<String>) -> Self {
        ContentError { reason, detail: detail.into(), entry: None, fatal: true }
    }

    pub(crate) fn damaged(detail: impl Into<String>) -> Self {
        Self::fatal_for(Reason::DamagedArchive, detail)
    }

    pub(crate) fn unsupported(detail: impl Into<String>) -> Self {
        Self::fatal_for(Reason::UnsupportedArchive, detail)
    }

    /// The same, about one entry only: its neighbours can still be read.
    pub(crate) fn only(mut self, name: &[u8], ordinal: u32) -> Self {
        self.entry = Some(NestedStep { name: name.to_vec(), ordinal });
        self.fatal = false;
        self
    }

    /// The error that a reader of this crate put into an `io::Error`.
    pub fn from_io(error: &io::Error) -> Option<&ContentError> {
        error.get_ref()?.downcast_ref()
    }

    pub(crate) fn into_io(self) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, self)
    }

    pub fn reason(&self) -> Reason {
        self.reason
    }

    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The entry that it concerns, when it concerns one of an archive.
    pub fn entry(&self) -> Option<&NestedStep> {
        self.entry.as_ref()
    }

    /// Whether the archive ends here; otherwise only the named entry is lost.
    pub fn fatal(&self) -> bool {
        self.fatal
    }
}

/// What a reader's error means to the layer above it: the end, even where it concerns but one entry of the
/// archive below. An error that no reader of this crate made is that the object could not be read.
impl From<&io::Error> for ContentError {
    fn from(error: &io::Error) -> Self {
        match ContentError::from_io(error) {
            Some(known) => ContentError::fatal_for(known.reason, known.detail.clone()),
            None => {
                ContentError::fatal_for(Reason::ReadError, format!("reading the container failed: {error}"))
            }
        }
    }
}

impl From<io::Error> for ContentError {
    fn from(error: io::Error) -> Self {
        ContentError::from(&error)
    }
}

/// Why an object, or a whole enumeration, could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{reason}: {detail}")]
pub struct ObjectError {
    pub reason: Reason,
    /// For people: what exactly went wrong. Never content of the object.
    pub detail: String,
}

impl ObjectError {
    pub fn new(reason: Reason, detail: impl Into<String>) -> Self {
        ObjectError { reason, detail: detail.into() }
    }
}

impl From<ContentError> for ObjectError {
    fn from(error: ContentError) -> Self {
        ObjectError::new(error.reason, error.detail)
    }
}

/// Reasons travel through readers inside `io::Error`; what carries none is told by its kind.
impl From<io::Error> for ObjectError {
    fn from(error: io::Error) -> Self {
        if let Some(inner) = error.get_ref().and_then(|inner| inner.downcast_ref::<ObjectError>()) {
            return inner.clone();
        }
        if let Some(inner) = ContentError::from_io(&error) {
            return inner.clone().into();
        }
        let reason = match error.kind() {
            io::ErrorKind::NotFound => Reason::Vanished,
            io::ErrorKind::PermissionDenied => Reason::PermissionDenied,
            _ => Reason::ReadError,
        };
        ObjectError { reason, detail: error.to_string() }
    }
}
