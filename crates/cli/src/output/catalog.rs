//! The catalogue: tables one by one in their final order, each with its columns and their labels, as a table for
//! people, JSON or CSV. One table is held at a time.
//!
//! Names come from databases and files that anyone may have made: they are neutralised like those of findings.

use std::borrow::Cow;
use std::io::{self, Write};

use domesday_columns::{ColumnLabel, ColumnVerdict, LabelKind};
use domesday_model::{ColumnShape, Regulation, TableShape};
use domesday_store::CatalogSource;
use owo_colors::Style as Paint;
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use super::csv::write_record;
use super::human::{count, counted, timestamp};
use super::json::write_json;
use super::table::{level_paint, paint};
use super::{Style, text};

/// Widths of cells in the table, at most; JSON and CSV have all of them.
const NAME_WIDTH_MAX: usize = 32;
const TYPE_WIDTH_MAX: usize = 24;
/// An example has at least this many columns, however narrow the terminal.
const EXAMPLE_WIDTH_MIN: usize = 12;
/// What shares are rounded to: a hundredth of a percent.
const SHARE_UNIT: f64 = 10_000.0;

/// How the catalogue is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum CatalogFormat {
    /// For people: grouped by table
    #[default]
    Table,
    /// A JSON array with one object per column
    Json,
    /// RFC 4180, one row per label; a cell a spreadsheet would take for a formula gets a leading apostrophe
    Csv,
}

/// Where a table is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TablePlace {
    pub database: Option<String>,
    pub schema: Option<String>,
    pub table: String,
}

impl TablePlace {
    /// `shop / public / customers`, safe on a terminal.
    fn shown(&self) -> String {
        let levels = [self.database.as_deref(), self.schema.as_deref(), Some(self.table.as_str())];
        levels.into_iter().flatten().map(text::shown).collect::<Vec<_>>().join(" / ")
    }
}

/// A table with what is shown of it.
pub struct CatalogTable<'a> {
    pub source: &'a CatalogSource,
    pub place: &'a TablePlace,
    pub shape: &'a TableShape,
    /// Rows that were read.
    pub rows: u64,
    pub is_sample: bool,
    pub columns: Vec<CatalogColumn<'a>>,
}

/// A column with those of its labels that are shown.
pub struct CatalogColumn<'a> {
    /// Its place in the table, from 0 on.
    pub index: usize,
    pub shape: &'a ColumnShape,
    pub verdict: &'a ColumnVerdict,
    pub labels: Vec<&'a ColumnLabel>,
}

/// A catalogue under way.
pub struct CatalogWriter<W> {
    out: W,
    format: CatalogFormat,
    style: Style,
    any: bool,
}

impl<W: Write> CatalogWriter<W> {
    pub fn begin(mut out: W, format: CatalogFormat, style: Style) -> io::Result<Self> {
        match format {
            CatalogFormat::Table => {}
            CatalogFormat::Json => out.write_all(b"[")?,
            CatalogFormat::Csv => write_record(&mut out, CSV_COLUMNS.iter().copied().map(Cow::Borrowed))?,
        }
        Ok(CatalogWriter { out, format, style, any: false })
    }

    pub fn table(&mut self, table: &CatalogTable<'_>) -> io::Result<()> {
        match self.format {
            CatalogFormat::Table => self.lines(table)?,
            CatalogFormat::Csv => table.columns.iter().try_for_each(|column| self.records(table, column))?,
            CatalogFormat::Json => {
                for column in &table.columns {
                    self.out.write_all(if self.any { b",\n" } else { b"\n" })?;
                    self.any = true;
                    write_json(&mut self.out, &ColumnJson::new(table, column))?;
                }
            }
        }
        self.any |= !table.columns.is_empty();
        Ok(())
    }

    /// Completes the document; whether there was anything to show.
    pub fn end(mut self) -> io::Result<bool> {
        if self.format == CatalogFormat::Json {
            self.out.write_all(b"\n]\n")?;
        }
        self.out.flush()?;
        Ok(self.any)
    }

    fn lines(&mut self, table: &CatalogTable<'_>) -> io::Result<()> {
        if table.columns.is_empty() {
            return Ok(());
        }
        if self.any {
            writeln!(self.out)?;
        }
        let style = self.style;
        let heading = format!("{}  {}", text::shown(&table.source.name), table.place.shown());
        let size = paint(style, Paint::new().dimmed(), &size_shown(table));
        writeln!(self.out, "{}  {size}", paint(style, Paint::new().bold(), &heading))?;
        let lines: Vec<Line> = table.columns.iter().flat_map(Line::of).collect();
        let width = |cell: fn(&Line) -> &str| lines.iter().map(|line| cell(line).width()).max().unwrap_or(0);
        let widths = [
            width(|line| &line.column),
            width(|line| &line.type_name),
            width(|line| &line.label),
            width(|line| line.sensitivity),
            width(|line| line.level()),
            width(|line| &line.share),
        ];
        let taken: usize = widths.iter().map(|width| width + 2).sum();
        let room =
            style.width.map_or(usize::MAX, |width| width.saturating_sub(taken + 2).max(EXAMPLE_WIDTH_MIN));
        for line in &lines {
            let level = text::pad(line.level(), widths[4]);
            let level = match line.label_level {
                Some(of) => paint(style, level_paint(of), &level),
                None => level,
            };
            let cells = [
                text::pad(&line.column, widths[0]),
                paint(style, Paint::new().dimmed(), &text::pad(&line.type_name, widths[1])),
                text::pad(&line.label, widths[2]),
                text::pad(line.sensitivity, widths[3]),
                level,
                text::pad(&line.share, widths[5]),
                text::truncate(&line.example, room).into_owned(),
            ];
            writeln!(self.out, "{}", format!("  {}", cells.join("  ")).trim_end())?;
        }
        Ok(())
    }

    fn records(&mut self, table: &CatalogTable<'_>, column: &CatalogColumn<'_>) -> io::Result<()> {
        if column.labels.is_empty() {
            return write_record(&mut self.out, record(table, column, None));
        }
        column
            .labels
            .iter()
            .try_for_each(|label| write_record(&mut self.out, record(table, column, Some(label))))
    }
}

/// `10,000 of about 1,200,000 rows sampled`, `5,000,000 rows`.
fn size_shown(table: &CatalogTable<'_>) -> String {
    match (table.is_sample, table.shape.row_estimate) {
        (false, _) => counted(table.rows, "row"),
        (true, None) => format!("{} sampled", counted(table.rows, "row")),
        (true, Some(all)) => {
            format!("{} of about {} sampled", count(table.rows), counted(all.max(table.rows), "row"))
        }
    }
}

/// One label of a column, or a column without one, as people see it.
struct Line {
    column: String,
    type_name: String,
    label: String,
    sensitivity: &'static str,
    label_level: Option<domesday_model::Level>,
    share: String,
    example: String,
}

impl Line {
    /// A column is named with its first label only.
    fn of(column: &CatalogColumn<'_>) -> Vec<Line> {
        let cell = |text: &str, most: usize| text::truncate(&text::shown(text), most).into_owned();
        let named = |first: bool| match first {
            true => (cell(&column.shape.name, NAME_WIDTH_MAX), cell(&column.shape.type_name, TYPE_WIDTH_MAX)),
            false => Default::default(),
        };
        if column.labels.is_empty() {
            let (name, type_name) = named(true);
            let label = if column.verdict.is_free_text { "free text" } else { "" }.to_owned();
            let (share, example) = Default::default();
            return vec![Line {
                column: name,
                type_name,
                label,
                sensitivity: "",
                label_level: None,
                share,
                example,
            }];
        }
        let line = |(index, label): (usize, &&ColumnLabel)| {
            let (name, type_name) = named(index == 0);
            let example = label.example.as_ref().map(|example| {
                format!("row {}  {}", text::shown(&example.row), text::shown(&example.preview))
            });
            Line {
                column: name,
                type_name,
                label: text::shown(&label.rule).into_owned(),
                sensitivity: label.sensitivity.as_str(),
                label_level: Some(label.level),
                share: share_shown(label),
                example: example.unwrap_or_default(),
            }
        };
        column.labels.iter().enumerate().map(line).collect()
    }

    fn level(&self) -> &'static str {
        self.label_level.map_or("", domesday_model::Level::as_str)
    }
}

/// `98.1 % (97.0-98.8) of 1,024`; of what is no column of its kind, how many.
fn share_shown(label: &ColumnLabel) -> String {
    let (matched, sampled) = (count(label.matched), count(label.sampled));
    let percent = |share: f64| share * 100.0;
    match label.kind {
        LabelKind::Column => {
            let (low, high) = label.interval;
            let (share, low, high) = (percent(label.prevalence), percent(low), percent(high));
            format!("{share:.1} % ({low:.1}-{high:.1}) of {sampled}")
        }
        LabelKind::Sparse => format!("sparse: {matched} of {sampled}"),
        LabelKind::Occurs => format!("occurs in {matched} of {sampled}"),
    }
}

fn rounded(share: f64) -> f64 {
    (share * SHARE_UNIT).round() / SHARE_UNIT
}

// ── JSON ───────────────────────────────────────────────────────────────────────────────────────────

#[derive(Serialize)]
struct ColumnJson<'a> {
    datasource: &'a str,
    kind: &'a str,
    job: String,
    as_of: String,
    database: Option<&'a str>,
    schema: Option<&'a str>,
    table: &'a str,
    table_kind: domesday_model::TableKind,
    table_comment: Option<&'a str>,
    rows: u64,
    is_sample: bool,
    row_estimate: Option<u64>,
    column: &'a str,
    /// From 1 on.
    position: usize,
    #[serde(rename = "type")]
    type_name: &'a str,
    comment: Option<&'a str>,
    is_primary_key: bool,
    is_free_text: bool,
    values: u64,
    nulls: u64,
    distinct: u64,
    labels: Vec<LabelJson<'a>>,
}

#[derive(Serialize)]
struct LabelJson<'a> {
    label: &'a str,
    kind: &'static str,
    category: &'static str,
    sensitivity: &'static str,
    regulations: &'a [Regulation],
    level: &'static str,
    prevalence: f64,
    interval: [f64; 2],
    matched: u64,
    sampled: u64,
    cells: u64,
    value_evidence: &'a [String],
    other_evidence: &'a [String],
    example: Option<ExampleJson<'a>>,
}

#[derive(Serialize)]
struct ExampleJson<'a> {
    row: &'a str,
    preview: &'a str,
}

impl<'a> ColumnJson<'a> {
    fn new(table: &CatalogTable<'a>, column: &CatalogColumn<'a>) -> ColumnJson<'a> {
        let (source, place, shape, verdict) = (table.source, table.place, table.shape, column.verdict);
        ColumnJson {
            datasource: &source.name,
            kind: &source.kind,
            job: source.master_job.to_string(),
            as_of: timestamp(source.as_of_ms),
            database: place.database.as_deref(),
            schema: place.schema.as_deref(),
            table: &place.table,
            table_kind: shape.kind,
            table_comment: shape.comment.as_deref(),
            rows: table.rows,
            is_sample: table.is_sample,
            row_estimate: shape.row_estimate,
            column: &column.shape.name,
            position: column.index + 1,
            type_name: &column.shape.type_name,
            comment: column.shape.comment.as_deref(),
            is_primary_key: shape.primary_key.contains(&(column.index as u32)),
            is_free_text: verdict.is_free_text,
            values: verdict.values,
            nulls: verdict.nulls,
            distinct: verdict.distinct,
            labels: column.labels.iter().map(|label| LabelJson::new(label)).collect(),
        }
    }
}

impl<'a> LabelJson<'a> {
    fn new(label: &'a ColumnLabel) -> LabelJson<'a> {
        LabelJson {
            label: &label.rule,
            kind: label.kind.as_str(),
            category: label.category.as_str(),
            sensitivity: label.sensitivity.as_str(),
            regulations: &label.regulations,
            level: label.level.as_str(),
            prevalence: rounded(label.prevalence),
            interval: [rounded(label.interval.0), rounded(label.interval.1)],
            matched: label.matched,
            sampled: label.sampled,
            cells: label.cells,
            value_evidence: &label.value_evidence,
            other_evidence: &label.other_evidence,
            example: label
                .example
                .as_ref()
                .map(|example| ExampleJson { row: &example.row, preview: &example.preview }),
        }
    }
}

// ── CSV ────────────────────────────────────────────────────────────────────────────────────────────

const CSV_COLUMNS: [&str; 26] = [
    "datasource",
    "database",
    "schema",
    "table",
    "column",
    "type",
    "label",
    "label_kind",
    "category",
    "sensitivity",
    "regulations",
    "level",
    "prevalence",
    "prevalence_low",
    "prevalence_high",
    "matched",
    "sampled",
    "cells",
    "rows",
    "is_sample",
    "values",
    "nulls",
    "distinct",
    "example_row",
    "example_preview",
    "evidence",
];

fn record<'c>(
    table: &'c CatalogTable<'_>,
    column: &'c CatalogColumn<'_>,
    label: Option<&'c ColumnLabel>,
) -> [Cow<'c, str>; CSV_COLUMNS.len()] {
    fn name(name: Option<&str>) -> Cow<'_, str> {
        text::shown(name.unwrap_or_default())
    }
    fn of<'c>(
        label: Option<&'c ColumnLabel>,
        cell: impl FnOnce(&'c ColumnLabel) -> Cow<'c, str>,
    ) -> Cow<'c, str> {
        label.map_or("".into(), cell)
    }
    let (place, verdict) = (table.place, column.verdict);
    let example = label.and_then(|label| label.example.as_ref());
    let share = |share: f64| rounded(share).to_string().into();
    [
        text::shown(&table.source.name),
        name(place.database.as_deref()),
        name(place.schema.as_deref()),
        text::shown(&place.table),
        text::shown(&column.shape.name),
        text::shown(&column.shape.type_name),
        of(label, |label| text::shown(&label.rule)),
        of(label, |label| label.kind.as_str().into()),
        of(label, |label| label.category.as_str().into()),
        of(label, |label| label.sensitivity.as_str().into()),
        of(label, |label| {
            label.regulations.iter().map(Regulation::as_str).collect::<Vec<_>>().join(", ").into()
        }),
        of(label, |label| label.level.as_str().into()),
        of(label, |label| share(label.prevalence)),
        of(label, |label| share(label.interval.0)),
        of(label, |label| share(label.interval.1)),
        of(label, |label| label.matched.to_string().into()),
        of(label, |label| label.sampled.to_string().into()),
        of(label, |label| label.cells.to_string().into()),
        table.rows.to_string().into(),
        table.is_sample.to_string().into(),
        verdict.values.to_string().into(),
        verdict.nulls.to_string().into(),
        verdict.distinct.to_string().into(),
        name(example.map(|example| example.row.as_str())),
        name(example.map(|example| example.preview.as_str())),
        of(label, |label| {
            let evidence = label.value_evidence.iter().chain(&label.other_evidence);
            let evidence = evidence.map(|said| text::shown(said)).collect::<Vec<_>>();
            evidence.join("; ").into()
        }),
    ]
}

#[cfg(test)]
mod tests;
