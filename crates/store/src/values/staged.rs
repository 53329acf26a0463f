//! Results of classification as the book keeps them: what a finding is identified by, and how a result
//! becomes columns. No raw value is among them.

use domesday_model::{
    Category, DatasourceId, FindingDraft, FindingId, ObjectKey, ObjectReport, Score, Suppressed,
    TableObservation, TableShape, VersionMarks,
};
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::types::ResultBatch;
use crate::values::{damaged, location};

/// A result with exactly what the visible tables have.
#[derive(Serialize, Deserialize)]
pub(crate) enum Staged {
    Finding(StagedFinding),
    Object(StagedObject),
    Table(StagedTable),
}

#[derive(Serialize, Deserialize)]
pub(crate) struct StagedFinding {
    pub key: ObjectKey,
    pub nested: ObjectKey,
    pub rule: String,
    pub category: Category,
    pub score: Score,
    pub reasons: String,
    pub fingerprint: [u8; 16],
    pub preview: String,
    pub span: (u64, u64),
    pub position: (u64, u64),
    pub decoding: String,
    pub version: Option<String>,
    #[serde(default)]
    pub row: Option<String>,
    /// By what, and how many occurrences it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suppressed: Option<(String, u64)>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct StagedObject {
    pub key: ObjectKey,
    pub nested: ObjectKey,
    pub status: String,
    pub reason: Option<String>,
    pub detail: String,
    pub overflow: u64,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct StagedTable {
    pub key: ObjectKey,
    pub nested: ObjectKey,
    pub part: ObjectKey,
    pub shape: TableShape,
    pub rows: u64,
    pub is_sample: bool,
    /// Bytes, and many: they are kept beside the body.
    #[serde(skip)]
    pub sketches: Vec<u8>,
}

/// Separates the steps of a decoding chain in its column.
const DECODING_SEPARATOR: &str = ",";

pub(crate) fn decoding_steps(column: &str) -> Vec<String> {
    column.split(DECODING_SEPARATOR).filter(|step| !step.is_empty()).map(str::to_owned).collect()
}

impl StagedFinding {
    fn of(draft: &FindingDraft, version: Option<&VersionMarks>) -> StagedFinding {
        StagedFinding {
            key: draft.location.key.clone(),
            nested: ObjectKey(draft.location.nested_bytes()),
            rule: draft.rule.to_string(),
            category: draft.category,
            score: draft.score,
            reasons: draft.reasons.clone(),
            fingerprint: draft.fingerprint.0,
            preview: draft.preview.clone(),
            span: (draft.span.start, draft.span.end),
            position: (draft.position.line, draft.position.column),
            decoding: draft.decoding.join(DECODING_SEPARATOR),
            version: version.map(marks_text),
            row: draft.row.as_deref().map(str::to_owned),
            suppressed: draft.suppressed.as_ref().map(|Suppressed { by, count }| (by.to_string(), *count)),
        }
    }

    /// The identity of a finding: what it was found in, by which rule, and the value's fingerprint.
    pub fn id(&self, datasource: DatasourceId) -> FindingId {
        let mut hasher = blake3::Hasher::new();
        let source = datasource.0.to_be_bytes();
        for part in [&source[..], &self.key.0, &self.nested.0, self.rule.as_bytes(), &self.fingerprint] {
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        let mut id = [0; 16];
        id.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        FindingId(id)
    }
}

impl StagedObject {
    pub fn of(report: &ObjectReport) -> StagedObject {
        StagedObject {
            key: report.location.key.clone(),
            nested: ObjectKey(report.location.nested_bytes()),
            status: report.status.as_str().to_owned(),
            reason: report.reason.map(|reason| reason.as_str().to_owned()),
            detail: report.detail.clone(),
            overflow: report.overflow,
        }
    }
}

impl StagedTable {
    fn of(observation: &TableObservation) -> StagedTable {
        StagedTable {
            key: observation.table.key.clone(),
            nested: ObjectKey(observation.table.nested_bytes()),
            part: observation.part.clone(),
            shape: observation.shape.clone(),
            rows: observation.rows,
            is_sample: observation.is_sample,
            sketches: sketches_bytes(&observation.sketches),
        }
    }

    /// As it went in.
    pub fn observation(self) -> Result<TableObservation, StoreError> {
        Ok(TableObservation {
            table: location(self.key.0, &self.nested.0)?,
            part: self.part,
            shape: self.shape,
            rows: self.rows,
            is_sample: self.is_sample,
            sketches: sketches_of(&self.sketches).ok_or_else(|| damaged("sketches"))?,
        })
    }
}

/// Sketches as their column has them: each behind its length.
fn sketches_bytes(sketches: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(sketches.iter().map(|sketch| 4 + sketch.len()).sum());
    for sketch in sketches {
        let len = u32::try_from(sketch.len()).expect("a sketch is bounded far below four gigabytes");
        bytes.extend_from_slice(&len.to_be_bytes());
        bytes.extend_from_slice(sketch);
    }
    bytes
}

/// The reverse of it; `None` when the bytes are not of that form.
fn sketches_of(mut bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut sketches = Vec::new();
    while !bytes.is_empty() {
        let (len, rest) = bytes.split_first_chunk::<4>()?;
        let (sketch, rest) = rest.split_at_checked(u32::from_be_bytes(*len) as usize)?;
        sketches.push(sketch.to_vec());
        bytes = rest;
    }
    Some(sketches)
}

/// Version marks as their column has them: `mtime:ctime:inode`, and `:tag` where there is one.
fn marks_text(marks: &VersionMarks) -> String {
    let VersionMarks { mtime_ns, ctime_ns, inode, tag } = marks;
    match tag {
        Some(tag) => format!("{mtime_ns}:{ctime_ns}:{inode}:{:032x}", u128::from_be_bytes(*tag)),
        None => format!("{mtime_ns}:{ctime_ns}:{inode}"),
    }
}

/// The reverse of it; `None` when it is not of that form.
pub(crate) fn marks_of(text: &str) -> Option<VersionMarks> {
    let mut parts = text.split(':');
    let marks = VersionMarks {
        mtime_ns: parts.next()?.parse().ok()?,
        ctime_ns: parts.next()?.parse().ok()?,
        inode: parts.next()?.parse().ok()?,
        tag: parts.next().map(|tag| u128::from_str_radix(tag, 16)).transpose().ok()?.map(u128::to_be_bytes),
    };
    parts.next().is_none().then_some(marks)
}

/// A batch in the order its results are numbered in: findings, then objects, then tables.
pub(crate) fn staged(batch: &ResultBatch) -> impl Iterator<Item = Staged> + '_ {
    let finding = |draft: &FindingDraft| {
        Staged::Finding(StagedFinding::of(draft, batch.versions.get(&draft.location.key)))
    };
    let object = |report| Staged::Object(StagedObject::of(report));
    let table = |observation| Staged::Table(StagedTable::of(observation));
    let (findings, objects) = (batch.findings.iter().map(finding), batch.objects.iter().map(object));
    findings.chain(objects).chain(batch.tables.iter().map(table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_marks_survive_their_column() {
        let times = VersionMarks { mtime_ns: -5, ctime_ns: i64::MAX, inode: u64::MAX, tag: None };
        let tagged = VersionMarks { tag: Some([0x0f; 16]), ..times };
        for marks in [VersionMarks::default(), times, tagged, VersionMarks::tagged(b"v1")] {
            assert_eq!(marks_of(&marks_text(&marks)), Some(marks));
        }
        for text in ["", "1:2", "1:2:x", "1:2:3:zz", "1:2:3:0f:4"] {
            assert_eq!(marks_of(text), None, "{text}");
        }
    }

    #[test]
    fn sketches_survive_their_column() {
        for sketches in [vec![], vec![vec![]], vec![vec![1, 2], vec![], vec![0; 300]]] {
            assert_eq!(sketches_of(&sketches_bytes(&sketches)), Some(sketches));
        }
        for bytes in [&[0, 0, 0][..], &[0, 0, 0, 2, 1], &[0xff; 4]] {
            assert_eq!(sketches_of(bytes), None, "{bytes:?}");
        }
    }
}
