//! How the book is set up and cleaned: data sources, templates, the fingerprint key, pruning. Given to the
//! administrative commands of the command line, and to the start of a worker, which brings a new book its key.

use std::time::Duration;

use async_trait::async_trait;
use domesday_model::{DatasourceSpec, ScanTemplate};

use super::{ReportStore, Result};
use crate::types::*;

#[async_trait]
pub trait AdminStore: ReportStore {
    /// Adds a data source, or takes the place of the one with its name. A source that was removed and is
    /// added again is the same source.
    async fn put_datasource(&self, source: &DatasourceSpec, put: Put) -> Result<()>;
    /// Takes a data source out of use; what was found in it stays. Refused with [`crate::StoreError::InUse`] while
    /// an open job reads it or a template names it.
    async fn remove_datasource(&self, name: &str) -> Result<()>;
    /// `next_firing_ms` is when its schedule is due next.
    async fn put_template(
        &self,
        template: &ScanTemplate,
        put: Put,
        next_firing_ms: Option<i64>,
    ) -> Result<()>;
    async fn remove_template(&self, name: &str) -> Result<()>;
    /// Sets it when there is none; the id that holds now. With `replace` it is set anew, which is refused
    /// with [`crate::StoreError::InUse`] while a job is open.
    async fn set_fingerprint_key(&self, id: &str, replace: bool) -> Result<String>;
    /// Removes at most about `max` rows of master jobs that ended `older_than` ago: their tasks, units,
    /// records, occurrences and observations, and processes and events as old. Findings stay, and so does each data
    /// source's latest complete job, and the base of its next incremental one. Repeat until it is done; a job that is removed in part is seen by nobody.
    async fn prune(&self, older_than: Duration, max: u32) -> Result<PruneReport>;
}
