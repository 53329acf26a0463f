//! A repository as the API describes it, and what becomes of it in a listing.

use domesday_model::{Reason, RecordKind, TargetDraft, UnitRecord, VersionMarks};
use serde::Deserialize;
use serde_json::json;

use super::name::RepositoryName;

#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub(super) struct Repository {
    id: u64,
    full_name: String,
    #[serde(default)]
    pub private: bool,
    #[serde(default)]
    pub fork: bool,
    #[serde(default)]
    pub archived: bool,
    #[serde(default)]
    pub disabled: bool,
    default_branch: Option<String>,
    pushed_at: Option<String>,
}

impl Repository {
    /// A list of repositories, or one. `None` for anything else, and for names that no repository can have.
    pub fn read(body: &[u8]) -> Option<Vec<Repository>> {
        let repositories: Vec<Repository> = match body.trim_ascii_start().first()? {
            b'[' => serde_json::from_slice(body).ok()?,
            _ => vec![serde_json::from_slice(body).ok()?],
        };
        let are_named = repositories.iter().all(|repository| repository.name().is_some());
        are_named.then_some(repositories)
    }

    pub fn name(&self) -> Option<RepositoryName> {
        RepositoryName::parse(&self.full_name)
    }

    pub fn full_name(&self) -> &str {
        &self.full_name
    }

    /// The target it is, at its address below `base`.
    pub fn target(&self, base: &str) -> TargetDraft {
        TargetDraft::GithubRepository {
            name: self.full_name.clone(),
            url: format!("{base}/{}", self.full_name),
            is_active: !self.archived && !self.disabled,
            metadata: json!({
                "id": self.id,
                "private": self.private,
                "fork": self.fork,
                "archived": self.archived,
                "disabled": self.disabled,
                "default_branch": self.default_branch,
                "pushed_at": self.pushed_at,
            }),
        }
    }
}

/// The record of a repository: one container, or left out.
pub(super) fn record(name: &str, is_taken: bool) -> UnitRecord {
    let (kind, reason) = match is_taken {
        true => (RecordKind::Directory, None),
        false => (RecordKind::Skipped, Some(Reason::Excluded)),
    };
    UnitRecord { kind, name: name.into(), size: 0, marks: VersionMarks::default(), reason, metadata: None }
}
