//! The catalogue of tables: which jobs it is read from, and what they observed, in pages.

use domesday_model::{DatasourceId, JobId, MasterJobId, ObjectKey, TableObservation};

/// A data source with the job that says what is in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CatalogSource {
    pub datasource: DatasourceId,
    pub name: String,
    pub kind: String,
    pub job: JobId,
    pub master_job: MasterJobId,
    /// When the job ended; of one that has not, when it was made.
    pub as_of_ms: i64,
}

/// Where in the tables of a source to read on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableCursor {
    pub(crate) key: ObjectKey,
    pub(crate) nested: Vec<u8>,
    pub(crate) part: ObjectKey,
}

impl TableCursor {
    pub(crate) fn behind(observation: &TableObservation) -> TableCursor {
        TableCursor {
            key: observation.table.key.clone(),
            nested: observation.table.nested_bytes(),
            part: observation.part.clone(),
        }
    }
}

/// Some of what a job observed of a source's tables. Parts of one table follow each other.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TablePage {
    pub tables: Vec<TableObservation>,
    /// Where to read on; `None`: that was all.
    pub next: Option<TableCursor>,
}

impl TablePage {
    /// From the rows of one page, of which there are `max` unless they are the last.
    pub(crate) fn new(mut tables: Vec<TableObservation>, max: u32) -> TablePage {
        let next = tables.last().filter(|_| tables.len() >= max as usize).map(TableCursor::behind);
        tables.dedup_by(|next, before| next.table == before.table && next.part == before.part);
        TablePage { tables, next }
    }
}
