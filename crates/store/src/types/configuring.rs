//! Data sources, templates and their schedules, as the verbs take and give them.

use domesday_model::{DatasourceId, DatasourceSpec, MasterJobId, ScanTemplate};

use super::NewMasterJob;
#[allow(unused_imports, reason = "for the documentation")]
use crate::error::StoreError;

/// Whether something is new, or takes the place of what has its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Put {
    /// Refused with [`StoreError::Exists`] when the name is taken.
    New,
    /// Refused with [`StoreError::Missing`] when there is none.
    Replace,
}

/// A data source that someone added, as it is at the moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManagedDatasource {
    pub id: DatasourceId,
    pub spec: DatasourceSpec,
    pub created_at_ms: i64,
    pub updated_at_ms: i64,
}

/// A template with where its schedule stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredTemplate {
    pub template: ScanTemplate,
    /// The next time it is due; `None` without a schedule.
    pub next_firing_ms: Option<i64>,
    /// The last time it was due, and the job that was started then, unless it was skipped.
    pub last_firing: Option<(i64, Option<MasterJobId>)>,
    pub updated_at_ms: i64,
}

/// Templates whose time has come, by the database's clock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DueTemplates {
    pub now_ms: i64,
    pub templates: Vec<StoredTemplate>,
    /// When the next of the others is due.
    pub next_ms: Option<i64>,
}

/// A firing of a schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Firing {
    pub template: String,
    /// The time it stands for: the template's `next_firing_ms`.
    pub firing_ms: i64,
    /// When the template is due next.
    pub next_ms: Option<i64>,
    /// The job to start; `None` skips this firing.
    pub job: Option<NewMasterJob>,
}
