//! Writing the report of a master job: where to, in which format, with which values.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use domesday_connector::Connector;
use domesday_control::{Revealed, reveal};
use domesday_engine::{RuleSet, Scanner};
use domesday_model::{
    ConfigurationUsed, DatasourceId, JobStatus, ListedObject, ObjectKey, RecordKind, ScanOptions, Score,
    SuppressedBy,
};
use domesday_scheduler::ScanCore;
use domesday_store::{MasterJob, Occurrence, OccurrenceFilter, ReportStore};

use super::{stderr_style, stdout_style};
use crate::Exit;
use crate::baseline::{Baseline, Comparison};
use crate::output::{
    self, BaselineSummary, ClassFilter, Control, Format, Hidden, Report, ReportMeta, Row, RuleInfo, Sources,
    Style, Summary, Suppressions,
};

/// Problems named in a summary, at most.
const PROBLEMS_NAMED_MAX: u32 = 20;

pub struct Reporting<'a> {
    pub store: &'a dyn ReportStore,
    pub rules: &'a [RuleInfo],
    /// What is not shown because of where it is.
    pub allows: &'a RuleSet,
    pub sources: Sources,
    pub filter: OccurrenceFilter,
    /// What of it is reported, by what its rules say.
    pub only: &'a ClassFilter,
    /// Whether a table says why.
    pub explain: bool,
    /// What is known, and not shown.
    pub baseline: Option<&'a Baseline>,
    /// Whether to show what controls keep out of reports, with the control.
    pub show_suppressed: bool,
    /// What the job's settings were read from.
    pub configuration: Option<&'a ConfigurationUsed>,
    pub format: Option<Format>,
    pub output: Option<&'a Path>,
    /// No summary beside the report.
    pub quiet: bool,
    pub elapsed: Duration,
    /// How to get at raw values, when the user asked for them.
    pub values: Option<Values<'a>>,
}

/// What reads a data source again.
pub struct Reader {
    pub connector: Arc<dyn Connector>,
    /// It heeds ignore marks as the scan did.
    pub scanner: Arc<Scanner>,
}

/// What it takes to read an object again for its values.
pub struct Values<'a> {
    pub core: &'a ScanCore,
    pub options: &'a ScanOptions,
    /// One for each data source.
    pub readers: HashMap<DatasourceId, Reader>,
}

impl Values<'_> {
    /// Those of one object, read again. What has rows is a table, or a file with tables or separated values in it, which
    /// its connector opens as a file whatever it is taken for.
    async fn of(&self, object: &(DatasourceId, ObjectKey), has_rows: bool) -> Revealed {
        let Some(Reader { connector, scanner }) = self.readers.get(&object.0) else {
            return Revealed::default();
        };
        let kind = if has_rows { RecordKind::Table } else { RecordKind::File };
        let object = ListedObject { kind, ..ListedObject::by_key(object.1.clone()) };
        let (scanner, connector) = (Arc::clone(scanner), Arc::clone(connector));
        reveal(self.core, scanner, connector, self.options, object).await
    }
}

impl Reporting<'_> {
    /// Writes the report; how many findings it has.
    pub async fn write(&self, job: &MasterJob) -> Result<u64> {
        let readers = if self.values.is_some() { Readers::Owner } else { Readers::Umask };
        let mut out = Output::open(self.output, readers)?;
        let format = self.format.unwrap_or(if out.is_terminal { Format::Table } else { Format::Json });
        let meta = ReportMeta {
            version: env!("CARGO_PKG_VERSION"),
            job: job.id,
            description: &job.description,
            rules: self.rules,
            sources: &self.sources,
            only: self.only,
            show_values: self.values.is_some(),
            show_suppressed: self.show_suppressed,
            explain: self.explain,
            style: if self.output.is_none() { stdout_style() } else { Style::default() },
        };
        let totals = self.store.summary(job.id).await?;
        let problems = self.store.problems(job.id, PROBLEMS_NAMED_MAX).await?;
        let level = self.filter.min_score.unwrap_or(Score(0)).level();
        let mut suppressed = Suppressions::of(&totals, self.allows.unselected(), level);
        let mut report = Report::begin(format, &mut out.writer, meta)?;
        let filter = OccurrenceFilter { with_suppressed: self.show_suppressed, ..self.filter.clone() };
        let mut occurrences = self.store.occurrences(job.id, filter).await?;
        let mut object = RevealedObject::default();
        let mut comparison = self.baseline.map(Baseline::compare);
        while let Some(occurrence) = occurrences.recv().await {
            let mut occurrence = occurrence?;
            let hidden = match &occurrence.suppressed {
                // It is among those that the book counts.
                Some(by) => Some(Hidden { by: Control::Scan(by.by.clone()), count: by.count }),
                None => {
                    let by = self.hidden_by(&occurrence, &mut comparison);
                    by.clone().into_iter().for_each(|by| suppressed.add(by));
                    by.map(|by| Hidden { by, count: 1 })
                }
            };
            if hidden.is_some() && !self.show_suppressed || !report.admits(&occurrence) {
                continue;
            }
            let value = match &self.values {
                Some(values) => object.reveal(values, &mut occurrence).await,
                None => None,
            };
            report.row(&Row { occurrence: &occurrence, value, hidden: hidden.as_ref() })?;
        }
        let summary = Summary {
            job,
            totals: &totals,
            problems: &problems,
            elapsed: self.elapsed,
            baseline: comparison.map(|comparison| BaselineSummary {
                hidden: comparison.hidden,
                // What was not read, or not asked for, may be there all the same.
                gone: comparison.gone().filter(|_| job.status == JobStatus::Completed && !self.is_filtered()),
            }),
            configuration: self.configuration,
            suppressed: &suppressed,
        };
        let tally = report.end(&summary)?;
        out.finish()?;
        // The table format ends with its summary; the others are for programs.
        if format != Format::Table && !self.quiet {
            output::write_summary(
                &mut std::io::stderr().lock(),
                &summary,
                &tally,
                &self.sources,
                stderr_style(),
            )?;
        }
        Ok(tally.findings)
    }

    /// What keeps a finding of the book out of this report.
    fn hidden_by(&self, found: &Occurrence, comparison: &mut Option<Comparison<'_>>) -> Option<Control> {
        if let Some(by) = allowed_by(self.allows, found) {
            return Some(Control::Scan(by));
        }
        let source = self.sources.name(found.datasource);
        let is_known = comparison.as_mut().is_some_and(|known| known.knows(source, found));
        is_known.then_some(Control::Baseline)
    }

    /// Whether the report is of some rules only.
    fn is_filtered(&self) -> bool {
        self.filter.rule.is_some() || self.filter.category.is_some()
    }
}

/// The allow list that names the object of a finding by a path that was not known when it was scanned: the one a
/// git object had, or the whole way into an archive.
pub fn allowed_by(rules: &RuleSet, found: &Occurrence) -> Option<SuppressedBy> {
    if found.origin.is_none() && found.location.nested.is_empty() {
        return None;
    }
    let place = output::place(found);
    let mut path = place.key.as_bytes().to_vec();
    for step in &place.nested {
        path.extend_from_slice(b"!/");
        path.extend_from_slice(&step.name);
    }
    rules.allows_path(&found.rule, &path)
}

/// How a command that reported a job's findings ends. Only a job that is complete can be clean.
pub fn exit(job: &MasterJob, findings: u64) -> Exit {
    match job.status {
        JobStatus::Completed if findings == 0 => Exit::Clean,
        JobStatus::Completed => Exit::Findings,
        _ => Exit::Incomplete,
    }
}

/// The values of the object whose findings are being written. Rows come object by object, so one is
/// enough.
#[derive(Default)]
struct RevealedObject {
    object: Option<(DatasourceId, ObjectKey)>,
    revealed: Revealed,
}

impl RevealedObject {
    /// The value of an occurrence, which is given the key of its row as it is.
    async fn reveal(&mut self, values: &Values<'_>, occurrence: &mut Occurrence) -> Option<&[u8]> {
        let object = (occurrence.datasource, occurrence.location.key.clone());
        if self.object.as_ref() != Some(&object) {
            self.revealed = values.of(&object, occurrence.row.is_some()).await;
            self.object = Some(object);
        }
        let key =
            (occurrence.location.clone(), occurrence.span, occurrence.rule.clone(), occurrence.fingerprint);
        if let Some(row) = occurrence.row.as_ref().and_then(|name| self.revealed.rows.get(name)) {
            occurrence.row = Some(row.clone());
        }
        self.revealed.values.get(&key).map(Vec::as_slice)
    }
}

/// Whether a report can be written to `path`, found out before the work and not after it. A pipe is left
/// alone: its reader would take this for the report.
pub fn check_output(path: &Path) -> Result<()> {
    let is_pipe = path.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
    if is_pipe { Ok(()) } else { Output::open(Some(path), Readers::Owner).map(drop) }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write the report to {}", path.display())
}

/// Standard output, or a file that is whole or not there: it is written beside its place and renamed.
pub(super) struct Output {
    pub(super) writer: Box<dyn Write + Send>,
    pub(super) is_terminal: bool,
    rename: Option<(PathBuf, PathBuf)>,
}

/// Who may read a file that is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Readers {
    /// Whoever the process's umask lets.
    Umask,
    /// Nobody else: it has raw values.
    Owner,
}

impl Readers {
    fn mode(self) -> u32 {
        match self {
            Readers::Umask => 0o666,
            Readers::Owner => 0o600,
        }
    }
}

impl Output {
    pub(super) fn open(path: Option<&Path>, readers: Readers) -> Result<Output> {
        let Some(path) = path else {
            let stdout = std::io::stdout();
            return Ok(Output {
                is_terminal: stdout.is_terminal(),
                writer: Box::new(BufWriter::new(stdout)),
                rename: None,
            });
        };
        let about = || cannot_write(path);
        // A device or a pipe is written to as it is.
        let in_place = path.metadata().is_ok_and(|metadata| !metadata.is_file());
        let (target, rename) = if in_place {
            (path.to_owned(), None)
        } else {
            let mut name = path.file_name().with_context(about)?.to_owned();
            name.push(format!(".{}.part", std::process::id()));
            let part = path.with_file_name(name);
            // What an earlier process of this number left, or a link that somebody put there, is not written through.
            let _ = std::fs::remove_file(&part);
            (part.clone(), Some((part, path.to_owned())))
        };
        let file = File::options()
            .write(true)
            .create_new(!in_place)
            .mode(readers.mode())
            .open(target)
            .with_context(about)?;
        Ok(Output { writer: Box::new(BufWriter::new(file)), is_terminal: false, rename })
    }

    pub(super) fn finish(mut self) -> Result<()> {
        self.writer.flush()?;
        if let Some((part, path)) = self.rename.take() {
            std::fs::rename(part, &path).with_context(|| cannot_write(&path))?;
        }
        Ok(())
    }
}

/// What was begun and not finished does not stay behind.
impl Drop for Output {
    fn drop(&mut self) {
        if let Some((part, _)) = &self.rename {
            let _ = std::fs::remove_file(part);
        }
    }
}
