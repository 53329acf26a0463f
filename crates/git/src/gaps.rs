//! What belongs to a repository and is not in it: history that was never fetched, objects that were left at a remote, the
//! repositories of submodules. Each is listed once, as an object that tells so when it is opened, so that no scan of such
//! a repository passes for one of all of it.

use domesday_content::ObjectError;
use domesday_model::{Reason, UnitRecord, VersionMarks};

use super::listing::record;

const SHALLOW: &[u8] = b"shallow history";
const PARTIAL: &[u8] = b"partial clone";
/// Before the path of a submodule.
const SUBMODULE: &[u8] = b"submodule ";

/// Something that is not in the repository.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Gap {
    /// The parents of commits that were chosen.
    Shallow,
    /// Objects that the chosen commits lead to.
    Partial,
    /// The repository whose commit is at this path.
    Submodule(Vec<u8>),
}

impl Gap {
    /// Without marks, so that it is told each time.
    pub fn record(&self) -> UnitRecord {
        let name = match self {
            Gap::Shallow => SHALLOW.to_vec(),
            Gap::Partial => PARTIAL.to_vec(),
            Gap::Submodule(path) => [SUBMODULE, path].concat(),
        };
        record(name, 0, VersionMarks::default(), None)
    }

    pub fn of_key(key: &[u8]) -> Option<Gap> {
        match key {
            SHALLOW => Some(Gap::Shallow),
            PARTIAL => Some(Gap::Partial),
            _ => key.strip_prefix(SUBMODULE).map(|path| Gap::Submodule(path.to_vec())),
        }
    }

    /// What opening it tells.
    pub fn error(&self) -> ObjectError {
        let (reason, detail) = match self {
            Gap::Shallow => (
                Reason::ShallowHistory,
                "commits before the oldest ones here were not fetched; `git fetch --unshallow` brings them",
            ),
            Gap::Partial => (
                Reason::PartialClone,
                "objects of its history were left at the remote; scan the remote itself, or a full clone",
            ),
            Gap::Submodule(_) => (
                Reason::SubmoduleHistory,
                "its commits are in a repository of their own; scan that one by its path or address",
            ),
        };
        ObjectError::new(reason, detail)
    }
}
