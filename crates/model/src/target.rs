//! Scan targets: the real things that are scanned, however many data sources and jobs come by. Each is in
//! the book once.

use serde_json::Value;

use crate::ids::ScanTargetId;

/// What kind of real thing a target is. Each has its own table of details, and its own way to be recognised.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TargetType {
    /// A data source as a whole: a tree, a repository, a bucket, a database.
    Datasource,
    /// A repository that a code host listed; recognised by its address.
    GithubRepository,
    /// A web address.
    Url,
}

impl TargetType {
    pub const ALL: &'static [TargetType] =
        &[TargetType::Datasource, TargetType::GithubRepository, TargetType::Url];

    pub fn as_str(self) -> &'static str {
        match self {
            TargetType::Datasource => "datasource",
            TargetType::GithubRepository => "github_repository",
            TargetType::Url => "url",
        }
    }

    pub fn parse(text: &str) -> Option<TargetType> {
        TargetType::ALL.iter().copied().find(|target| target.as_str() == text)
    }

    /// The id of the target with this number in the table of its type: the same wherever it is made.
    pub fn id(self, target_id: i64) -> ScanTargetId {
        let text = format!("{}:{target_id}", self.as_str());
        let mut id = [0; 16];
        id.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..16]);
        ScanTargetId(id)
    }
}

/// A target that a listing came upon, beside its records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TargetDraft {
    GithubRepository {
        /// `owner/name`.
        name: String,
        url: String,
        /// Whether it can still be written to: not archived, not disabled.
        is_active: bool,
        metadata: Value,
    },
    Url {
        url: String,
        metadata: Value,
    },
}

impl TargetDraft {
    pub fn target_type(&self) -> TargetType {
        match self {
            TargetDraft::GithubRepository { .. } => TargetType::GithubRepository,
            TargetDraft::Url { .. } => TargetType::Url,
        }
    }

    pub fn url(&self) -> &str {
        match self {
            TargetDraft::GithubRepository { url, .. } | TargetDraft::Url { url, .. } => url,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_one_id_and_types_keep_theirs_apart() {
        assert_eq!(TargetType::Url.id(7), TargetType::Url.id(7));
        assert_ne!(TargetType::Url.id(7), TargetType::Url.id(8));
        assert_ne!(TargetType::Url.id(7), TargetType::Datasource.id(7));
        for &target in TargetType::ALL {
            assert_eq!(TargetType::parse(target.as_str()), Some(target));
        }
    }
}
