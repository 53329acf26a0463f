//! What follows from how the book is configured, the same for every backend. Pure.

use domesday_model::{DatasourceSpec, JobConfiguration, MasterJobId, ScanTemplate};

use crate::error::StoreError;
use crate::types::{Put, StoredTemplate};
use crate::values;

type Result<T> = std::result::Result<T, StoreError>;

/// The setting that holds the id of the book's fingerprint key.
pub(crate) const FINGERPRINT_KEY: &str = "fingerprint_key";

pub(crate) const DATASOURCE: &str = "data source";
pub(crate) const TEMPLATE: &str = "template";

/// Why something was not put, if it was not.
pub(crate) fn check_put(put: Put, written: bool, kind: &'static str, name: &str) -> Result<()> {
    match put {
        _ if written => Ok(()),
        Put::New => Err(StoreError::Exists { kind, name: name.to_owned() }),
        Put::Replace => Err(missing(kind, name)),
    }
}

pub(crate) fn missing(kind: &'static str, name: &str) -> StoreError {
    StoreError::Missing { kind, name: name.to_owned() }
}

/// Refuses to take a data source out of use that an open job reads or a template names. A pattern names
/// nothing: it finds what there is.
pub(crate) fn check_unused(
    name: &str,
    open_jobs: &[(MasterJobId, JobConfiguration)],
    templates: &[StoredTemplate],
) -> Result<()> {
    let in_use = |by| Err(StoreError::InUse { kind: DATASOURCE, name: name.to_owned(), by });
    for StoredTemplate { template, .. } in templates {
        if template.datasources.iter().any(|pattern| pattern == name) {
            return in_use(format!("template `{}` names it", template.name));
        }
    }
    for (master, configuration) in open_jobs {
        if configuration.datasources.iter().any(|source| source.name == name) {
            return in_use(format!("job {master} reads it; cancel it, or wait for its end"));
        }
    }
    Ok(())
}

/// Refuses to change the fingerprint key under jobs that are made with it.
pub(crate) fn check_key_unused(id: &str, open_jobs: i64) -> Result<()> {
    match open_jobs {
        0 => Ok(()),
        _ => Err(StoreError::InUse {
            kind: "fingerprint key",
            name: id.to_owned(),
            by: format!("open jobs are made with it ({open_jobs}); cancel them, or wait for their end"),
        }),
    }
}

/// A data source as its columns say.
pub(crate) struct SourceColumns {
    pub name: String,
    pub kind: String,
    pub node_group: String,
    pub configuration: String,
    pub concurrency_limit: Option<i64>,
    pub worker_label: Option<String>,
    pub credential: Option<String>,
}

impl SourceColumns {
    pub fn spec(self) -> Result<DatasourceSpec> {
        let limit = self.concurrency_limit.map(u32::try_from).transpose();
        Ok(DatasourceSpec {
            name: self.name,
            kind: self.kind,
            node_group: self.node_group,
            configuration: values::from_json(&self.configuration, "data source configuration")?,
            concurrency_limit: limit.map_err(|_| values::damaged("concurrency limit"))?,
            worker_label: self.worker_label,
            credential: self.credential,
        })
    }
}

pub(crate) fn template(text: &str) -> Result<ScanTemplate> {
    values::from_json(text, "template")
}
