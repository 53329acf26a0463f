//! Findings for people: one heading per object, one line per finding, then the summary.
//!
//! Columns are sized from the rules before the first row, because rows are not held back to measure
//! them. A rule's id and a path are never cut, so that they can be copied; previews are.

use std::io::{self, Write};

use domesday_model::{DatasourceId, Level, Location};
use domesday_store::Occurrence;
use owo_colors::{OwoColorize, Style as Paint};
use unicode_width::UnicodeWidthStr;

use super::explain::write_below;
use super::human::count;
use super::{
    ReportMeta, ReportWriter, Row, RuleIndex, Style, Summary, Tally, class, json, origin, text, write_summary,
};

/// Columns of `line:column`, so that the colons of a group stand below each other.
pub const LINE_WIDTH: usize = 6;
pub const COLUMN_WIDTH: usize = 4;
/// Columns of a row's key, at most; a longer one is cut, and whole in the other formats.
const ROW_WIDTH_MAX: usize = 40;
const LEVEL_WIDTH: usize = 6;
/// Bounds of the rule column; a longer id moves the rest of its line.
const RULE_WIDTH_MIN: usize = 12;
const RULE_WIDTH_MAX: usize = 32;
/// A preview has at least this many columns, however narrow the terminal.
const PREVIEW_WIDTH_MIN: usize = 12;
/// Characters of a value shown in the table; the other formats have all of it.
const VALUE_SHOWN_MAX: usize = 1000;

pub struct TableWriter<'a, W> {
    out: W,
    meta: ReportMeta<'a>,
    rules: RuleIndex<'a>,
    rule_width: usize,
    /// The object whose heading was written last.
    heading: Option<(DatasourceId, Location)>,
}

impl<'a, W: Write> TableWriter<'a, W> {
    pub fn new(out: W, meta: ReportMeta<'a>) -> Self {
        let longest = meta.rules.iter().map(|rule| rule.id.width()).max().unwrap_or(0);
        TableWriter {
            out,
            meta,
            rules: RuleIndex::new(meta.rules),
            rule_width: longest.clamp(RULE_WIDTH_MIN, RULE_WIDTH_MAX),
            heading: None,
        }
    }

    fn heading(&mut self, found: &Occurrence) -> io::Result<()> {
        let (datasource, location) = (found.datasource, &found.location);
        if self.heading.as_ref().is_some_and(|(id, last)| *id == datasource && last == location) {
            return Ok(());
        }
        if self.heading.is_some() {
            writeln!(self.out)?;
        }
        let path = self.meta.sources.display(datasource, &origin::place(found));
        write!(self.out, "{}", paint(self.meta.style, Paint::new().bold(), &path))?;
        let origin = origin::shown(found);
        if !origin.is_empty() {
            write!(self.out, "  {}", paint(self.meta.style, Paint::new().dimmed(), &origin))?;
        }
        writeln!(self.out)?;
        self.heading = Some((datasource, location.clone()));
        Ok(())
    }

    /// Why this is a finding, and what it means.
    fn explain(&mut self, found: &Occurrence) -> io::Result<()> {
        let class = self.rules.class(found);
        let fields = [
            ("what", self.rules.description(&found.rule).to_owned()),
            ("sensitivity", class.sensitivity.to_string()),
            ("regulations", class::regulations(class)),
            ("score", found.score.0.to_string()),
            ("because", json::reasons(&found.reasons).join("\n")),
            ("decoding", found.decoding.join(" > ")),
            ("fingerprint", found.fingerprint.to_string()),
        ];
        write_below(&mut self.out, &fields, self.meta.style)
    }
}

impl<W: Write> ReportWriter for TableWriter<'_, W> {
    fn begin(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn row(&mut self, row: &Row<'_>) -> io::Result<()> {
        let (found, style) = (row.occurrence, self.meta.style);
        self.heading(found)?;
        let (level, rule) = (found.score.level(), text::pad(&text::shown(&found.rule), self.rule_width));
        let place = place(found);
        let taken = place.width() + 2 + LEVEL_WIDTH + 2 + rule.width() + 2;
        let room = style.width.map_or(usize::MAX, |width| width.saturating_sub(taken).max(PREVIEW_WIDTH_MIN));
        let shown = match row.value {
            Some(value) => text::truncate(&text::shown_bytes(value), VALUE_SHOWN_MAX).into_owned(),
            None => {
                let via = if found.decoding.is_empty() { "" } else { "  via " };
                let preview = format!("{}{via}{}", found.preview, found.decoding.join(" > "));
                text::truncate(&text::shown(&preview), room).into_owned()
            }
        };
        let hidden = row.hidden.map(|hidden| {
            let more = match hidden.count {
                0 | 1 => String::new(),
                n => format!(", {} more like it in this object", count(n - 1)),
            };
            paint(style, Paint::new().dimmed(), &format!("  suppressed by {}{more}", hidden.by.shown()))
        });
        writeln!(
            self.out,
            "{}  {}  {rule}  {}{}",
            paint(style, Paint::new().dimmed(), &place),
            paint(style, level_paint(level), &text::pad(level.as_str(), LEVEL_WIDTH)),
            shown.trim_end(),
            hidden.unwrap_or_default(),
        )?;
        if self.meta.explain { self.explain(found) } else { Ok(()) }
    }

    fn end(&mut self, summary: &Summary<'_>, tally: &Tally) -> io::Result<()> {
        if self.heading.is_some() {
            writeln!(self.out)?;
        }
        write_summary(&mut self.out, summary, tally, self.meta.sources, self.meta.style)?;
        self.out.flush()
    }
}

/// Where in its object a finding is: its line and column, or the row of a table.
fn place(found: &Occurrence) -> String {
    match &found.row {
        Some(row) => {
            let row = format!("row {}", text::shown(row));
            text::pad(&text::truncate(&row, ROW_WIDTH_MAX), LINE_WIDTH + 1 + COLUMN_WIDTH)
        }
        None => format!("{:>LINE_WIDTH$}:{:<COLUMN_WIDTH$}", found.position.line, found.position.column),
    }
}

pub fn level_paint(level: Level) -> Paint {
    match level {
        Level::High => Paint::new().red(),
        Level::Medium => Paint::new().yellow(),
        Level::Low => Paint::new().dimmed(),
    }
}

/// A text in its paint, where there is colour at all.
pub fn paint(style: Style, paint: Paint, text: &str) -> String {
    if style.color { text.style(paint).to_string() } else { text.to_owned() }
}
