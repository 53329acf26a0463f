//! Lists of jobs, rules and problems, and one rule in full: short, so held whole.

use std::io::{self, Write};
use std::time::Duration;

use domesday_model::{JobStatus, Reason, Regulation};
use domesday_store::{MasterJob, Problem};
use owo_colors::Style as Paint;
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use super::human::{duration, timestamp};
use super::json::write_json_lines;
use super::origin::place_of_problem;
use super::summary::ProblemJson;
use super::table::paint;
use super::{RuleInfo, Sources, Style, text};

/// The last column moves to a line of its own when it would have fewer columns than this.
const LAST_COLUMN_MIN: usize = 24;
/// Spaces before a last column on its own line.
const INDENT: usize = 4;

/// Characters of a time without its seconds.
const MINUTE_LEN: usize = "2026-02-28 23:59".len();

/// How lists are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum ListFormat {
    /// For people
    #[default]
    Table,
    /// A JSON array
    Json,
}

/// Writes jobs in the order given.
pub fn write_jobs(
    out: &mut impl Write,
    jobs: &[MasterJob],
    format: ListFormat,
    style: Style,
) -> io::Result<()> {
    let took = |job: &MasterJob| {
        job.finished_at_ms
            .map(|end| Duration::from_millis(end.saturating_sub(job.created_at_ms).max(0) as u64))
    };
    if format == ListFormat::Json {
        return write_json_lines(
            out,
            jobs.iter().map(|job| JobJson {
                id: job.id.to_string(),
                status: job.status.as_str(),
                description: &job.description,
                failure_reason: job.failure_reason.as_deref(),
                created_at: timestamp(job.created_at_ms),
                finished_at: job.finished_at_ms.map(timestamp),
            }),
        );
    }
    let rows = jobs.iter().map(|job| {
        let why = job.failure_reason.as_deref().map(|why| format!(" ({why})")).unwrap_or_default();
        [
            job.id.to_string(),
            status_word(job.status),
            timestamp(job.created_at_ms).replace('T', " ").chars().take(MINUTE_LEN).collect(),
            took(job).map(duration).unwrap_or_default(),
            format!("{}{why}", job.description),
        ]
    });
    columns(out, ["job", "status", "created utc", "took", "what"], rows.collect(), style)
}

/// Writes rules in the order given.
pub fn write_rules(
    out: &mut impl Write,
    rules: &[RuleInfo],
    format: ListFormat,
    style: Style,
) -> io::Result<()> {
    if format == ListFormat::Json {
        return write_json_lines(
            out,
            rules.iter().map(|rule| RuleJson {
                id: &rule.id,
                category: rule.category.as_str(),
                sensitivity: rule.class.sensitivity.as_str(),
                regulations: &rule.class.regulations,
                description: &rule.description,
            }),
        );
    }
    let rows = rules.iter().map(|rule| {
        [
            rule.id.clone(),
            rule.category.to_string(),
            rule.class.sensitivity.to_string(),
            rule.description.clone(),
        ]
    });
    columns(out, ["rule", "category", "sensitivity", "description"], rows.collect(), style)
}

/// Writes one thing as labelled fields; a value of several lines keeps them.
pub fn write_rule_detail(out: &mut impl Write, fields: &[(&str, String)], style: Style) -> io::Result<()> {
    let label_width = fields.iter().map(|(label, _)| label.width()).max().unwrap_or(0) + 2;
    for (label, value) in fields {
        let mut label = text::pad(label, label_width);
        for line in value.lines() {
            let room = style
                .width
                .map_or(usize::MAX, |width| width.saturating_sub(label_width).max(LAST_COLUMN_MIN));
            for part in text::wrap(&text::shown(line), room) {
                let label_shown = paint(style, Paint::new().dimmed(), &label);
                writeln!(out, "{}", format!("{label_shown}{part}").trim_end())?;
                label = " ".repeat(label_width);
            }
        }
    }
    Ok(())
}

/// Writes what was not scanned whole.
pub fn write_problems(
    out: &mut impl Write,
    problems: &[Problem],
    sources: &Sources,
    format: ListFormat,
    style: Style,
) -> io::Result<()> {
    if format == ListFormat::Json {
        return write_json_lines(out, problems.iter().map(|problem| ProblemJson::new(problem, sources)));
    }
    let rows = problems.iter().map(|problem| {
        let separator = if problem.detail.is_empty() { "" } else { ": " };
        let path = sources.display(problem.datasource, &place_of_problem(problem));
        [
            problem.status.as_str().to_owned(),
            problem.reason.map_or("", Reason::as_str).to_owned(),
            format!("{path}{separator}{}", text::shown_line(&problem.detail)),
        ]
    });
    columns(out, ["status", "reason", "path"], rows.collect(), style)
}

/// A job's status in a word short enough for a column.
pub(super) fn status_word(status: JobStatus) -> String {
    match status {
        JobStatus::PartiallyCompleted => "partial".to_owned(),
        status => status.as_str().to_lowercase(),
    }
}

#[derive(Serialize)]
struct JobJson<'a> {
    id: String,
    status: &'static str,
    description: &'a str,
    failure_reason: Option<&'a str>,
    created_at: String,
    finished_at: Option<String>,
}

#[derive(Serialize)]
struct RuleJson<'a> {
    id: &'a str,
    category: &'a str,
    sensitivity: &'static str,
    regulations: &'a [Regulation],
    description: &'a str,
}

/// Columns as wide as their widest cell, but for the last, which wraps in what room is left.
pub(super) fn columns<const N: usize>(
    out: &mut impl Write,
    header: [&str; N],
    rows: Vec<[String; N]>,
    style: Style,
) -> io::Result<()> {
    let rows: Vec<[String; N]> =
        rows.into_iter().map(|row| row.map(|cell| text::shown(&cell).into_owned())).collect();
    let widths: [usize; N] = std::array::from_fn(|column| {
        rows.iter().map(|row| row[column].width()).max().unwrap_or(0).max(header[column].width())
    });
    let before: usize = widths[..N - 1].iter().map(|width| width + 2).sum();
    let room = style.width.map_or(usize::MAX, |width| width.saturating_sub(before));
    let below = room < LAST_COLUMN_MIN;
    let (indent, room) = match style.width {
        Some(width) if below => (INDENT, width.saturating_sub(INDENT).max(LAST_COLUMN_MIN)),
        _ => (before, room),
    };
    let first = |row: &[String]| -> String {
        row[..N - 1].iter().zip(widths).map(|(cell, width)| text::pad(cell, width + 2)).collect()
    };

    let header = header.map(str::to_uppercase);
    let last = if below { "" } else { &header[N - 1] };
    let title = format!("{}{last}", first(&header));
    writeln!(out, "{}", paint(style, Paint::new().dimmed(), title.trim_end()))?;
    for row in &rows {
        let mut lines = text::wrap(&row[N - 1], room).into_iter();
        let beside = if below { None } else { lines.next() };
        writeln!(out, "{}", format!("{}{}", first(row), beside.unwrap_or_default()).trim_end())?;
        for line in lines.filter(|line| !line.is_empty()) {
            writeln!(out, "{:indent$}{line}", "")?;
        }
    }
    Ok(())
}
