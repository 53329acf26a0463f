//! Where an object came from, for kinds of source whose keys do not say it: a git object's key is its id,
//! and people want to know the path and the commit.

use crate::key::ObjectKey;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The path a blob had first; commits and tags have none.
    pub path: Option<ObjectKey>,
    /// The commit that brought a blob; a commit itself; what a tag marks. Hexadecimal, and empty for what is
    /// staged and in no commit yet.
    pub commit: String,
    /// Who wrote the commit or made the tag, as `Name <address>`; empty when it does not say.
    pub author: String,
    /// When, in milliseconds since 1970.
    pub time_ms: i64,
    /// Whether no reference leads to the commit any more.
    pub is_abandoned: bool,
}
