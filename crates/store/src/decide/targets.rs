//! Scan targets on their way into their tables: pure, and the same for every backend.
//!
//! Each type has a table of its own, where it is recognised by its address; `scan_targets` has one row for all of
//! them, under an id that follows from type and number. So a target that two workers come upon at once is one.

use std::collections::BTreeMap;

use domesday_model::{ScanTargetId, TargetDraft, TargetType};

/// Targets that came with a commit, each once, by address: whoever persists them locks rows in this order. Of
/// several drafts of one target the last says how it is.
#[derive(Default)]
pub(crate) struct Drafts {
    pub repositories: BTreeMap<String, Repository>,
    /// With their metadata.
    pub urls: BTreeMap<String, String>,
}

pub(crate) struct Repository {
    pub name: String,
    pub is_active: bool,
    pub metadata: String,
}

impl Drafts {
    pub fn of<'a>(drafts: impl IntoIterator<Item = &'a TargetDraft>) -> Drafts {
        let mut all = Drafts::default();
        for draft in drafts {
            match draft {
                TargetDraft::GithubRepository { name, url, is_active, metadata } => {
                    let (name, metadata) = (clean(name), metadata.to_string());
                    let repository = Repository { name, is_active: *is_active, metadata };
                    all.repositories.insert(clean(url), repository);
                }
                TargetDraft::Url { url, metadata } => {
                    all.urls.insert(clean(url), metadata.to_string());
                }
            }
        }
        all
    }
}

/// Text from outside, as every backend can keep it.
pub(crate) fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// A row of `scan_targets`.
pub(crate) struct Known {
    pub target_type: TargetType,
    pub target_id: i64,
    pub name: String,
    pub metadata: String,
}

impl Known {
    pub fn id(&self) -> ScanTargetId {
        self.target_type.id(self.target_id)
    }

    /// A data source as a whole.
    pub fn datasource(id: i64, name: &str, kind: &str) -> Known {
        let metadata = serde_json::json!({ "kind": kind }).to_string();
        Known { target_type: TargetType::Datasource, target_id: id, name: name.to_owned(), metadata }
    }
}
