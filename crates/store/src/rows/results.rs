//! Findings, problems, origins and tables.

use domesday_model::{
    Category, DatasourceId, FindingDraft, FindingId, Fingerprint, JobId, MasterJobId, ObjectKey, Origin,
    Position, Score, Span, Suppressed, TableObservation,
};

use super::{Columns, FromRow, Result};
use crate::decide::prior::{PriorFinding, decoding};
use crate::types::{CatalogSource, Occurrence, Problem};
use crate::values::staged::{StagedTable, decoding_steps};
use crate::values::{self, damaged, from_json};

/// Columns as in the statement `occurrences`.
impl FromRow for Occurrence {
    fn from_row(row: &impl Columns) -> Result<Occurrence> {
        Ok(Occurrence {
            finding: FindingId(row.wide(0)?),
            datasource: DatasourceId(row.value(1)?),
            location: values::location(row.value(2)?, &row.value::<Vec<u8>>(3)?)?,
            rule: row.value(4)?,
            category: row.parsed(5, category)?,
            score: Score(row.small(6)?),
            reasons: row.value(7)?,
            fingerprint: Fingerprint(row.wide(8)?),
            preview: row.value(9)?,
            span: Span { start: row.unsigned(10)?, end: row.unsigned(11)? },
            position: Position { line: row.unsigned(12)?, column: row.unsigned(13)? },
            decoding: decoding_steps(&row.value::<String>(14)?),
            row: row.value::<Option<String>>(15)?.map(Into::into),
            origin: origin(row, 16)?,
            suppressed: suppressed(row, 21)?,
        })
    }
}

fn category(text: &str) -> Result<Category> {
    text.parse().map_err(|_| damaged("category"))
}

/// Columns from this one on: suppressed_by, suppressed.
fn suppressed(row: &impl Columns, first: usize) -> Result<Option<Suppressed>> {
    let Some(by) = row.value::<Option<String>>(first)? else { return Ok(None) };
    let by = by.parse().map_err(|_| damaged("control"))?;
    Ok(Some(Suppressed { by, count: row.unsigned(first + 1)? }))
}

/// Columns from this one on: path, commit_id, author, time_ms, is_abandoned.
fn origin(row: &impl Columns, first: usize) -> Result<Option<Origin>> {
    let Some(commit) = row.value::<Option<String>>(first + 1)? else { return Ok(None) };
    Ok(Some(Origin {
        path: row.value::<Option<Vec<u8>>>(first)?.map(ObjectKey),
        commit,
        author: row.value(first + 2)?,
        time_ms: row.value(first + 3)?,
        is_abandoned: row.value(first + 4)?,
    }))
}

/// Columns as in the statement `prior_findings`.
impl FromRow for PriorFinding {
    fn from_row(row: &impl Columns) -> Result<PriorFinding> {
        let draft = FindingDraft {
            location: values::location(row.value(2)?, &row.value::<Vec<u8>>(3)?)?.into(),
            rule: row.value::<String>(4)?.into(),
            category: row.parsed(5, category)?,
            score: Score(row.small(6)?),
            reasons: row.value(7)?,
            fingerprint: Fingerprint(row.wide(8)?),
            preview: row.value(9)?,
            span: Span { start: row.unsigned(10)?, end: row.unsigned(11)? },
            position: Position { line: row.unsigned(12)?, column: row.unsigned(13)? },
            decoding: decoding(decoding_steps(&row.value::<String>(14)?)),
            row: row.value::<Option<String>>(16)?.map(Into::into),
            suppressed: suppressed(row, 17)?,
        };
        Ok(PriorFinding { task: row.value(0)?, id: FindingId(row.wide(1)?), draft, version: row.value(15)? })
    }
}

/// Columns as in the statement `problems`.
impl FromRow for Problem {
    fn from_row(row: &impl Columns) -> Result<Problem> {
        let reason: Option<String> = row.value(4)?;
        Ok(Problem {
            datasource: DatasourceId(row.value(0)?),
            location: values::location(row.value(1)?, &row.value::<Vec<u8>>(2)?)?,
            status: row.parsed(3, values::object_status)?,
            reason: reason.as_deref().map(values::reason).transpose()?,
            detail: row.value(5)?,
            origin: origin(row, 7)?,
        })
    }
}

/// Columns as in the statement `catalog_sources`.
impl FromRow for CatalogSource {
    fn from_row(row: &impl Columns) -> Result<CatalogSource> {
        Ok(CatalogSource {
            datasource: DatasourceId(row.value(0)?),
            name: row.value(1)?,
            kind: row.value(2)?,
            job: JobId(row.value(3)?),
            master_job: MasterJobId(row.wide(4)?),
            as_of_ms: row.value(5)?,
        })
    }
}

/// Columns as in the statement `table_observations`.
impl FromRow for TableObservation {
    fn from_row(row: &impl Columns) -> Result<TableObservation> {
        let staged = StagedTable {
            key: ObjectKey(row.value(0)?),
            nested: ObjectKey(row.value(1)?),
            part: ObjectKey(row.value(2)?),
            shape: row.parsed(3, |text| from_json(text, "shape of a table"))?,
            rows: row.unsigned(4)?,
            is_sample: row.value(5)?,
            sketches: row.value(6)?,
        };
        staged.observation()
    }
}
