//! Why something was not scanned, or not whole. Every reason has a stable name that reports and the
//! book use; nothing is skipped or cut short without one.

use std::fmt;
use std::str::FromStr;

/// What a reason says about the completeness of a scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Weight {
    /// Left out by the user's own settings, or not a thing that has content: the scan is complete.
    Skipped,
    /// It was recognised, and nothing here reads its format: the scan is complete unless it is strict.
    Unsupported,
    /// It belongs to what was scanned and is not in it: another repository, what was never fetched, an older version. It
    /// is named, and the scan is complete unless it is strict.
    Elsewhere,
    /// Something that should have been read was not, or not whole: the scan is incomplete.
    Incomplete,
}

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $weight:ident;)*) => {
        /// Why an object or container was skipped, cut short or failed.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Reason { $($(#[doc = $doc])+ $variant,)* }

        impl Reason {
            pub const ALL: &'static [Reason] = &[$(Reason::$variant,)*];

            /// The stable name, as stored and reported.
            pub fn as_str(self) -> &'static str {
                match self { $(Reason::$variant => $name,)* }
            }

            pub fn weight(self) -> Weight {
                match self { $(Reason::$variant => Weight::$weight,)* }
            }

            /// One line for people.
            pub fn describe(self) -> &'static str {
                match self { $(Reason::$variant => concat!($($doc,)+).trim_ascii(),)* }
            }
        }
    };
}

reasons! {
    /// excluded by --exclude, the configuration or the data source
    Excluded = "excluded", Skipped;
    /// left out by a .domesdayignore file
    Ignored = "ignored", Skipped;
    /// not allowed by the site's robots.txt
    Robots = "robots", Skipped;
    /// larger than --max-file-size
    TooLarge = "too_large", Skipped;
    /// a symbolic link, recorded and not followed
    Symlink = "symlink", Skipped;
    /// a link back to a directory above it
    SymlinkLoop = "symlink_loop", Skipped;
    /// a fifo, socket or device: it has no content of its own
    SpecialFile = "special_file", Skipped;
    /// left at the remote by a partial clone
    NotFetched = "not_fetched", Skipped;
    /// a shallow clone: the history before it was not fetched
    ShallowHistory = "shallow_history", Elsewhere;
    /// a partial clone: objects were left at the remote
    PartialClone = "partial_clone", Elsewhere;
    /// the history of a submodule, which is another repository
    SubmoduleHistory = "submodule_history", Elsewhere;
    /// versions of a bucket's objects that are not current
    OlderVersions = "older_versions", Elsewhere;
    /// Domesday's own state
    OwnState = "own_state", Skipped;
    /// an object or a pack of another repository inside this one: scan that repository by its own path
    NestedRepository = "nested_repository", Skipped;
    /// no permission to read it
    PermissionDenied = "permission_denied", Incomplete;
    /// gone before it could be read
    Vanished = "vanished", Incomplete;
    /// changed while it was read
    Changed = "changed", Incomplete;
    /// in archival storage: restore it first
    Archived = "archived", Incomplete;
    /// its key cannot be asked for over HTTP
    UnsupportedKey = "unsupported_key", Incomplete;
    /// a server's own database, schema or table: `system` of the data source reads it
    ServersOwn = "servers_own", Skipped;
    /// locked by somebody else for longer than `lock_timeout_seconds`
    Locked = "locked", Incomplete;
    /// the server took longer than `statement_timeout_seconds`
    TimedOut = "timed_out", Incomplete;
    /// a virtual table: the tables that it is made of are read
    VirtualTable = "virtual_table", Skipped;
    /// a view that would have to be computed whole: the tables that it is made of are read
    ComputedView = "computed_view", Skipped;
    /// changes of a database that are not in its file yet: they are in the log beside it, which is not read
    UnreadLog = "unread_log", Incomplete;
    /// the source did not answer, or broke off: `job retry` tries it again
    Unavailable = "unavailable", Incomplete;
    /// reading it failed
    ReadError = "read_error", Incomplete;
    /// the link points nowhere
    DanglingSymlink = "dangling_symlink", Skipped;
    /// an encrypted archive entry or document
    Encrypted = "encrypted", Incomplete;
    /// a damaged or truncated archive
    DamagedArchive = "damaged_archive", Incomplete;
    /// an archive feature or compression method that is not supported
    UnsupportedArchive = "unsupported_archive", Incomplete;
    /// a format that is recognised and not read: its bytes were scanned as they stand
    UnsupportedFormat = "unsupported_format", Unsupported;
    /// archives nested deeper than the limit
    DepthLimit = "depth_limit", Incomplete;
    /// more archive entries than the limit
    EntryLimit = "entry_limit", Incomplete;
    /// more unpacked bytes than the limit
    ByteLimit = "byte_limit", Incomplete;
    /// more web addresses than the limit
    AddressLimit = "address_limit", Incomplete;
    /// unpacked to more times its size than the limit
    RatioLimit = "ratio_limit", Incomplete;
    /// scanning it panicked
    Panicked = "panicked", Incomplete;
    /// it ended the worker that scanned it, again and again
    Poisoned = "poisoned", Incomplete;
    /// more findings than the cap; the rest is counted
    FindingLimit = "finding_limit", Incomplete;
    /// a value of a table is longer than the limit: only its beginning was scanned
    ValueCut = "value_cut", Incomplete;
}

impl Reason {
    /// Whether time alone may mend it, so that trying again later is worth it.
    pub fn may_pass(self) -> bool {
        matches!(self, Reason::Unavailable | Reason::Locked | Reason::TimedOut)
    }

    /// The stored names of those that may pass.
    pub fn passing() -> Vec<&'static str> {
        Reason::ALL.iter().filter(|reason| reason.may_pass()).map(|reason| reason.as_str()).collect()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A stored reason that this version does not know.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a reason this version knows")]
pub struct UnknownReason(String);

impl FromStr for Reason {
    type Err = UnknownReason;

    fn from_str(name: &str) -> Result<Self, UnknownReason> {
        Reason::ALL
            .iter()
            .copied()
            .find(|reason| reason.as_str() == name)
            .ok_or_else(|| UnknownReason(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_incomplete_until_then() {
        assert_eq!(Reason::passing(), ["locked", "timed_out", "unavailable"]);
        let passing = Reason::ALL.iter().filter(|reason| reason.may_pass());
        assert!(passing.into_iter().all(|reason| reason.weight() == Weight::Incomplete));
    }

    #[test]
    fn every_reason_is_found_again_by_its_name() {
        for &reason in Reason::ALL {
            assert_eq!(reason.as_str().parse::<Reason>().unwrap(), reason);
            assert!(!reason.describe().is_empty());
        }
        assert!("nonsense".parse::<Reason>().is_err());
    }
}
