//! What a report says at its end: how much was found, how much was read, and what was not and why.
//!
//! The same facts in two forms, text for people and a JSON object. Nothing that was left out goes
//! unsaid: every reason is named with its count, and with examples where there are any.

use std::collections::BTreeMap;
use std::io::{self, Write};

use domesday_engine::Class;
use domesday_model::reason::Weight;
use domesday_model::{
    Category, ConfigurationUsed, DatasourceId, JobStatus, Level, Location, ObjectStatus, Reason, Regulation,
    Sensitivity,
};
use domesday_store::{JobSummary, Occurrence, Problem};
use owo_colors::Style as Paint;
use serde::Serialize;

use super::human::{bytes, count, counted, duration};
use super::json::{StepJson, steps};
use super::origin::place_of_problem;
use super::suppressed::{ControlJson, write_suppressed};
use super::table::{level_paint, paint};
use super::{BaselineSummary, Sources, Style, Summary, text};

/// Objects named below each reason, so that a summary stays short whatever happened.
const EXAMPLES_PER_REASON: usize = 3;
/// Columns of the labels on the left.
const LABEL_WIDTH: usize = 10;
/// Columns of the counts below a label.
const COUNT_WIDTH: usize = 8;

/// Findings counted while they pass; as small for a million as for one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    pub findings: u64,
    /// Objects with findings. Rows of one object arrive together, so the last one is all to remember.
    pub objects: u64,
    pub by_level: BTreeMap<Level, u64>,
    pub by_category: BTreeMap<Category, u64>,
    pub by_sensitivity: BTreeMap<Sensitivity, u64>,
    /// A finding may concern several, or none.
    pub by_regulation: BTreeMap<Regulation, u64>,
    last: Option<(DatasourceId, Location)>,
}

impl Tally {
    pub fn add(&mut self, found: &Occurrence, class: &Class) {
        self.findings += 1;
        *self.by_level.entry(found.score.level()).or_default() += 1;
        *self.by_category.entry(found.category).or_default() += 1;
        *self.by_sensitivity.entry(class.sensitivity).or_default() += 1;
        for regulation in &class.regulations {
            *self.by_regulation.entry(regulation.clone()).or_default() += 1;
        }
        if !self.last.as_ref().is_some_and(|(id, last)| *id == found.datasource && *last == found.location) {
            self.objects += 1;
            self.last = Some((found.datasource, found.location.clone()));
        }
    }
}

/// Whether everything that was to be read was read. Skipping what the user's settings leave out does not make a scan
/// incomplete; a format that is not read does where the job is strict, which its status says.
fn is_complete(summary: &Summary<'_>) -> bool {
    let totals = summary.totals;
    let lost = totals.partial.iter().chain(&totals.failed).chain(&totals.skipped);
    summary.job.status == JobStatus::Completed
        && totals.tasks_open == 0
        && totals.tasks_failed == 0
        && lost
            .into_iter()
            .all(|(reason, n)| *n == 0 || matches!(reason.weight(), Weight::Skipped | Weight::Elsewhere))
}

/// Whether all that was to be read failed: a source that refuses at its root lists nothing but what it refuses.
fn is_nothing_read(totals: &JobSummary) -> bool {
    let failed: u64 = totals.failed.iter().map(|(_, n)| n).sum();
    totals.bytes_done == 0 && failed > 0 && failed >= totals.objects_listed && totals.tasks_open == 0
}

/// The summary for people: the end of a table, and what goes to standard error beside a format that
/// has no summary of its own.
pub fn write_summary(
    out: &mut impl Write,
    summary: &Summary<'_>,
    tally: &Tally,
    sources: &Sources,
    style: Style,
) -> io::Result<()> {
    let totals = summary.totals;
    write_findings(out, tally, style)?;
    if totals.overflow > 0 {
        let more = format!(
            "{} more of the same rule in the same object, counted and not listed",
            count(totals.overflow)
        );
        line(out, style, "", &more)?;
    }
    if let Some(used) = summary.configuration {
        line(out, style, "config", &shown_configuration(used))?;
    }
    if let Some(baseline) = &summary.baseline {
        write_baseline(out, baseline, totals.overflow, style)?;
    }
    write_suppressed(out, summary, style)?;
    let objects = format!(
        "{} of {} done, {} nested in them, {} listed",
        count(totals.objects_done),
        count(totals.objects_listed),
        count(totals.nested_done),
        counted(totals.units, "container"),
    );
    line(out, style, "objects", &objects)?;
    if totals.objects_unchanged > 0 {
        let unchanged = format!("{} unchanged since the last scan", count(totals.objects_unchanged));
        line(out, style, "", &unchanged)?;
    }
    let seconds = summary.elapsed.as_secs_f64();
    let rate = if seconds > 0.0 { (totals.bytes_done as f64 / seconds) as u64 } else { 0 };
    let read = format!("{} in {}, {}/s", bytes(totals.bytes_done), duration(summary.elapsed), bytes(rate));
    line(out, style, "bytes", &read)?;

    write_reasons(out, "skipped", ObjectStatus::Skipped, &totals.skipped, summary.problems, sources, style)?;
    write_unsupported(out, summary, sources, style)?;
    write_reasons(out, "partial", ObjectStatus::Partial, &totals.partial, summary.problems, sources, style)?;
    write_reasons(out, "failed", ObjectStatus::Failed, &totals.failed, summary.problems, sources, style)?;
    if totals.tasks_failed > 0 {
        line(out, style, "tasks", &format!("{} failed for good", count(totals.tasks_failed)))?;
    }
    if totals.tasks_open > 0 {
        line(out, style, "tasks", &format!("{} not done yet", count(totals.tasks_open)))?;
    }
    if !is_complete(summary) {
        let verdict = match (summary.job.status, &summary.job.failure_reason) {
            (JobStatus::Completed, _) => "completed but for the above".to_owned(),
            (JobStatus::PartiallyCompleted, None) if is_nothing_read(totals) => {
                let why = summary.problems.iter().find(|problem| problem.status == ObjectStatus::Failed);
                let why = why.map_or("see above", |problem| &problem.detail);
                format!("failed: nothing could be read: {}", text::shown_line(why))
            }
            (status, None) => status.as_str().to_lowercase().replace('_', " "),
            (status, Some(why)) => {
                format!("{}: {}", status.as_str().to_lowercase().replace('_', " "), text::shown_line(why))
            }
        };
        line(out, style, "job", &paint(style, Paint::new().yellow(), &verdict))?;
    }
    Ok(())
}

fn write_baseline(
    out: &mut impl Write,
    baseline: &BaselineSummary,
    overflow: u64,
    style: Style,
) -> io::Result<()> {
    line(out, style, "baseline", &format!("{} hidden", counted(baseline.hidden, "known finding")))?;
    match baseline.gone {
        None | Some(0) => {}
        Some(1) => line(out, style, "", "1 entry of the baseline is gone")?,
        Some(gone) => line(out, style, "", &format!("{} entries of the baseline are gone", count(gone)))?,
    }
    if overflow > 0 {
        line(out, style, "", "whether it knows what is not listed cannot be told")?;
    }
    Ok(())
}

fn write_findings(out: &mut impl Write, tally: &Tally, style: Style) -> io::Result<()> {
    if tally.findings == 0 {
        return line(out, style, "findings", "none");
    }
    let total = format!("{} in {}", count(tally.findings), counted(tally.objects, "object"));
    line(out, style, "findings", &paint(style, Paint::new().bold(), &total))?;
    let levels: Vec<String> = [Level::High, Level::Medium, Level::Low]
        .into_iter()
        .filter_map(|level| {
            let shown = format!("{} {level}", count(*tally.by_level.get(&level)?));
            Some(paint(style, level_paint(level), &shown))
        })
        .collect();
    line(out, style, "", &levels.join(", "))?;
    let categories: Vec<String> =
        tally.by_category.iter().map(|(category, &n)| format!("{} {category}", count(n))).collect();
    line(out, style, "", &categories.join(", "))?;
    let sensitivities = tally.by_sensitivity.iter().rev();
    let sensitivities: Vec<String> =
        sensitivities.map(|(level, &n)| format!("{} {level}", count(n))).collect();
    line(out, style, "", &format!("{} sensitivity", sensitivities.join(", ")))
}

pub fn line(out: &mut impl Write, style: Style, label: &str, rest: &str) -> io::Result<()> {
    writeln!(out, "{}{rest}", paint(style, Paint::new().dimmed(), &text::pad(label, LABEL_WIDTH)))
}

/// A count below a label.
pub fn count_line(out: &mut impl Write, n: u64, of: &str) -> io::Result<()> {
    writeln!(out, "{:>COUNT_WIDTH$}  {of}", count(n))
}

/// Where the settings are from, and their hash.
pub fn shown_configuration(used: &ConfigurationUsed) -> String {
    let from = match (&used.path, &used.template) {
        (Some(path), _) => text::shown(path).into_owned(),
        (None, Some(template)) => format!("template {}", text::shown(template)),
        (None, None) => "unnamed".to_owned(),
    };
    format!("{from}, BLAKE3 {}", used.hash)
}

fn write_reasons(
    out: &mut impl Write,
    label: &str,
    status: ObjectStatus,
    reasons: &[(Reason, u64)],
    problems: &[Problem],
    sources: &Sources,
    style: Style,
) -> io::Result<()> {
    let total: u64 = reasons.iter().map(|(_, n)| n).sum();
    if total == 0 {
        return Ok(());
    }
    line(out, style, label, &count(total))?;
    for &(reason, n) in reasons.iter().filter(|(_, n)| *n > 0) {
        count_line(out, n, reason.describe())?;
        if reason.weight() == Weight::Skipped {
            continue;
        }
        let named =
            problems.iter().filter(|problem| problem.status == status && problem.reason == Some(reason));
        write_examples(out, n, named, sources, style)?;
    }
    Ok(())
}

/// The formats that were recognised and are not read, the most frequent first.
fn write_unsupported(
    out: &mut impl Write,
    summary: &Summary<'_>,
    sources: &Sources,
    style: Style,
) -> io::Result<()> {
    let mut formats: Vec<&(String, u64)> = summary.totals.unsupported.iter().collect();
    formats.sort_by_key(|(format, n)| (std::cmp::Reverse(*n), format.as_str()));
    let total: u64 = formats.iter().map(|(_, n)| n).sum();
    if total == 0 {
        return Ok(());
    }
    let formats: Vec<String> =
        formats.iter().map(|(format, n)| format!("{} {}", count(*n), text::shown(format))).collect();
    // The label is longer than the others.
    line(out, style, "unsupported ", &format!("{}: {}", count(total), formats.join(", ")))?;
    let named = summary.problems.iter().filter(|problem| problem.status == ObjectStatus::Unsupported);
    write_examples(out, total, named, sources, style)
}

/// A few of so many problems by name.
fn write_examples<'a>(
    out: &mut impl Write,
    total: u64,
    named: impl Iterator<Item = &'a Problem>,
    sources: &Sources,
    style: Style,
) -> io::Result<()> {
    let named: Vec<&Problem> = named.take(EXAMPLES_PER_REASON).collect();
    for problem in &named {
        let path = sources.display(problem.datasource, &place_of_problem(problem));
        let detail = if problem.detail.is_empty() { "" } else { ": " };
        let example = format!("{path}{detail}{}", text::shown_line(&problem.detail));
        writeln!(out, "{:COUNT_WIDTH$}  {}", "", paint(style, Paint::new().dimmed(), &example))?;
    }
    let rest = total.saturating_sub(named.len() as u64);
    if rest > 0 && !named.is_empty() {
        let rest = format!("and {} more", count(rest));
        writeln!(out, "{:COUNT_WIDTH$}  {}", "", paint(style, Paint::new().dimmed(), &rest))?;
    }
    Ok(())
}

#[derive(Serialize)]
pub struct SummaryJson<'a> {
    status: &'static str,
    failure_reason: Option<&'a str>,
    complete: bool,
    findings: FindingsJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<BaselineSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    configuration: Option<&'a ConfigurationUsed>,
    /// What controls keep out of the report.
    suppressed: Vec<ControlJson<'a>>,
    objects: ObjectsJson,
    bytes: BytesJson,
    skipped: Vec<ReasonJson>,
    unsupported: Vec<FormatJson<'a>>,
    partial: Vec<ReasonJson>,
    failed: Vec<ReasonJson>,
    tasks: TasksJson,
    problems: Vec<ProblemJson<'a>>,
    elapsed_ms: u64,
}

#[derive(Serialize)]
struct FindingsJson {
    total: u64,
    objects: u64,
    by_level: BTreeMap<&'static str, u64>,
    by_category: BTreeMap<&'static str, u64>,
    by_sensitivity: BTreeMap<&'static str, u64>,
    by_regulation: BTreeMap<String, u64>,
    overflow: u64,
}

#[derive(Serialize)]
struct ObjectsJson {
    listed: u64,
    done: u64,
    /// Since the last scan: not read again, and without findings then.
    unchanged: u64,
    nested: u64,
    containers: u64,
}

#[derive(Serialize)]
struct BytesJson {
    listed: u64,
    read: u64,
}

#[derive(Serialize)]
struct TasksJson {
    failed: u64,
    open: u64,
}

#[derive(Serialize)]
struct ReasonJson {
    reason: &'static str,
    description: &'static str,
    count: u64,
}

#[derive(Serialize)]
struct FormatJson<'a> {
    format: &'a str,
    count: u64,
}

#[derive(Serialize)]
pub struct ProblemJson<'a> {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_hex: Option<String>,
    nested: Vec<StepJson<'a>>,
    datasource: &'a str,
    status: &'static str,
    reason: Option<&'static str>,
    description: Option<&'static str>,
    detail: &'a str,
}

impl<'a> ProblemJson<'a> {
    pub fn new(problem: &'a Problem, sources: &'a Sources) -> Self {
        let (path, path_hex) = sources.exact(problem.datasource, &place_of_problem(problem));
        ProblemJson {
            path,
            path_hex,
            nested: steps(&problem.location),
            datasource: sources.name(problem.datasource),
            status: problem.status.as_str(),
            reason: problem.reason.map(Reason::as_str),
            description: problem.reason.map(Reason::describe),
            detail: &problem.detail,
        }
    }
}

impl<'a> SummaryJson<'a> {
    pub fn new(summary: &Summary<'a>, tally: &Tally, sources: &'a Sources) -> Self {
        let totals = summary.totals;
        let reasons = |counts: &[(Reason, u64)]| {
            let json = |&(reason, count)| ReasonJson {
                reason: Reason::as_str(reason),
                description: reason.describe(),
                count,
            };
            counts.iter().map(json).collect()
        };
        SummaryJson {
            status: summary.job.status.as_str(),
            failure_reason: summary.job.failure_reason.as_deref(),
            complete: is_complete(summary),
            findings: FindingsJson {
                total: tally.findings,
                objects: tally.objects,
                by_level: tally.by_level.iter().map(|(level, &n)| (level.as_str(), n)).collect(),
                by_category: tally.by_category.iter().map(|(category, &n)| (category.as_str(), n)).collect(),
                by_sensitivity: tally.by_sensitivity.iter().map(|(level, &n)| (level.as_str(), n)).collect(),
                by_regulation: tally.by_regulation.iter().map(|(name, &n)| (name.to_string(), n)).collect(),
                overflow: totals.overflow,
            },
            baseline: summary.baseline,
            configuration: summary.configuration,
            suppressed: summary.suppressed.json(),
            objects: ObjectsJson {
                listed: totals.objects_listed,
                done: totals.objects_done,
                unchanged: totals.objects_unchanged,
                nested: totals.nested_done,
                containers: totals.units,
            },
            bytes: BytesJson { listed: totals.bytes_listed, read: totals.bytes_done },
            skipped: reasons(&totals.skipped),
            unsupported: totals
                .unsupported
                .iter()
                .map(|(format, count)| FormatJson { format, count: *count })
                .collect(),
            partial: reasons(&totals.partial),
            failed: reasons(&totals.failed),
            tasks: TasksJson { failed: totals.tasks_failed, open: totals.tasks_open },
            problems: summary.problems.iter().map(|problem| ProblemJson::new(problem, sources)).collect(),
            elapsed_ms: u64::try_from(summary.elapsed.as_millis()).unwrap_or(u64::MAX),
        }
    }
}
