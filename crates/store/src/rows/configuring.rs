//! Data sources, templates and scan targets.

use domesday_model::{DatasourceId, MasterJobId, ScanTargetId};

use super::{Columns, FromRow, Result};
use crate::decide::configuring::{self, SourceColumns};
use crate::types::{Datasource, ManagedDatasource, ScanTarget, StoredTemplate};
use crate::values::{from_json, target_type};

/// Columns as in the statement `managed_datasources`.
impl FromRow for ManagedDatasource {
    fn from_row(row: &impl Columns) -> Result<ManagedDatasource> {
        let columns = SourceColumns {
            name: row.value(1)?,
            kind: row.value(2)?,
            node_group: row.value(3)?,
            configuration: row.value(4)?,
            concurrency_limit: row.value(5)?,
            worker_label: row.value(6)?,
            credential: row.value(7)?,
        };
        Ok(ManagedDatasource {
            id: DatasourceId(row.value(0)?),
            spec: columns.spec()?,
            created_at_ms: row.value(8)?,
            updated_at_ms: row.value(9)?,
        })
    }
}

/// Columns: id, name, kind, configuration.
impl FromRow for Datasource {
    fn from_row(row: &impl Columns) -> Result<Datasource> {
        Ok(Datasource {
            id: DatasourceId(row.value(0)?),
            name: row.value(1)?,
            kind: row.value(2)?,
            configuration: row.parsed(3, |text| from_json(text, "data source configuration"))?,
        })
    }
}

/// Columns: configuration, next_firing_at, updated_at, the last firing's time and job.
impl FromRow for StoredTemplate {
    fn from_row(row: &impl Columns) -> Result<StoredTemplate> {
        let master = row.optional_wide(4)?.map(MasterJobId);
        Ok(StoredTemplate {
            template: row.parsed(0, configuring::template)?,
            next_firing_ms: row.value(1)?,
            updated_at_ms: row.value(2)?,
            last_firing: row.value::<Option<i64>>(3)?.map(|at| (at, master)),
        })
    }
}

/// Columns as in the statement `target`.
impl FromRow for ScanTarget {
    fn from_row(row: &impl Columns) -> Result<ScanTarget> {
        Ok(ScanTarget {
            id: ScanTargetId(row.wide(0)?),
            name: row.value(1)?,
            target_type: row.parsed(2, target_type)?,
            target_id: row.value(3)?,
            url: row.value(4)?,
            is_active: row.value(5)?,
            metadata: row.parsed(6, |text| from_json(text, "target metadata"))?,
            created_at_ms: row.value(7)?,
            last_scan_time_ms: row.value(8)?,
        })
    }
}
