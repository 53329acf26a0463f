//! How the binary shows what the book holds: findings, summaries, jobs, rules, problems, progress.
//!
//! Reports are streams. Rows arrive one by one in their final order and go straight to the output, so
//! memory does not grow with the number of findings; JSON and SARIF documents are valid once
//! [`Report::end`] has returned. Everything shown comes from files an attacker may have named or
//! filled, so text is neutralised where it is written: control characters and invisible reordering
//! marks for terminals, formulas for spreadsheets.
//!
//! This module must not read the book, and must not show a sensitive value anywhere but in the
//! `value` field (in the table, the preview's place) of a row that carries one.

mod answers;
mod catalog;
mod class;
mod csv;
mod explain;
mod fleet;
mod human;
mod json;
mod lists;
mod origin;
mod progress;
mod sarif;
mod summary;
mod suppressed;
mod table;
mod text;
mod timings;
mod watch;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::sync::LazyLock;
use std::time::Duration;

use domesday_engine::Class;
use domesday_model::{Category, ConfigurationUsed, DatasourceId, Location, MasterJobId};
use domesday_store::{JobSummary, MasterJob, Occurrence, Problem};

pub use answers::{ListPages, write_answer, write_detail, write_list};
pub use catalog::{CatalogColumn, CatalogFormat, CatalogTable, CatalogWriter, TablePlace};
pub use class::ClassFilter;
pub use explain::{Said, write_said};
pub use fleet::{ChildJson, write_children, write_status};
pub use human::{bytes, count, counted, timestamp};
pub use json::write_json;
pub use lists::{ListFormat, write_jobs, write_problems, write_rule_detail, write_rules};
pub use origin::place;
pub use progress::{Progress, ProgressSnapshot};
pub use summary::{Tally, shown_configuration, write_summary};
pub use suppressed::{Control, ControlJson, Hidden, Suppressions};
pub use text::shown_lines;
pub use timings::timings;
pub use watch::Watched;

use text::{Text, join_path};

/// How findings are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum Format {
    /// For people: grouped by file, with a summary at the end
    #[default]
    Table,
    /// One JSON document with findings and summary
    Json,
    /// One JSON object per finding and line; a last one has what a configuration or a control left out
    Jsonl,
    /// RFC 4180; a cell a spreadsheet would take for a formula gets a leading apostrophe. Records of the level `summary`
    /// at the end have what a configuration or a control left out
    Csv,
    /// SARIF 2.1.0 for code scanning services
    Sarif,
}

/// What the output can show.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Style {
    pub color: bool,
    /// Columns of the terminal; `None` where lines have no end, such as a file.
    pub width: Option<usize>,
}

impl Style {
    /// The style for standard output, `color` being the caller's decision.
    pub fn stdout(color: bool) -> Style {
        Style { color, width: terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0.into()) }
    }

    /// The same for standard error.
    pub fn stderr(color: bool) -> Style {
        Style { color, width: terminal_size::terminal_size_of(io::stderr()).map(|(width, _)| width.0.into()) }
    }
}

/// What a report says of a rule.
#[derive(Debug)]
pub struct RuleInfo {
    pub id: String,
    pub description: String,
    pub category: Category,
    /// Resolved when someone asks: most reports are about few of the rules.
    pub class: LazyLock<Class, Box<dyn FnOnce() -> Class + Send>>,
}

/// How a data source's objects are named to people.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Source {
    /// Its name in the book.
    pub name: String,
    /// What goes before an object's key, such as the path the user gave. A relative root (or an empty
    /// one) makes relative paths and SARIF URIs, an absolute one `file:` URIs.
    pub root: Vec<u8>,
    /// A folder of keys that people have no use for; what is in it is shown without it.
    pub hidden: Vec<u8>,
}

/// The data sources of a report.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sources(BTreeMap<DatasourceId, Source>);

impl FromIterator<(DatasourceId, Source)> for Sources {
    fn from_iter<I: IntoIterator<Item = (DatasourceId, Source)>>(sources: I) -> Self {
        Sources(sources.into_iter().collect())
    }
}

impl Sources {
    pub fn name(&self, id: DatasourceId) -> &str {
        self.0.get(&id).map_or("", |source| &source.name)
    }

    /// The path of the outermost object, without the way into it.
    fn object_path(&self, id: DatasourceId, location: &Location) -> Vec<u8> {
        let key = location.key.as_bytes();
        let Some(source) = self.0.get(&id) else { return key.to_vec() };
        let below = |key| <[u8]>::strip_prefix(key, source.hidden.as_slice())?.strip_prefix(b"/");
        let shown = if source.hidden.is_empty() { None } else { below(key) };
        join_path(&source.root, shown.unwrap_or(key))
    }

    /// The whole path on one line, safe on a terminal: `src/config.tar.gz!/app/.env`.
    pub fn display(&self, id: DatasourceId, location: &Location) -> String {
        let mut shown = text::shown_bytes(&self.object_path(id, location));
        for step in &location.nested {
            shown.push_str("!/");
            shown.push_str(&text::shown_bytes(&step.name));
        }
        shown
    }

    /// The whole path as exact as text can be: every part that is UTF-8 is unchanged.
    fn exact(&self, id: DatasourceId, location: &Location) -> (String, Option<String>) {
        let object = self.object_path(id, location);
        let Text { text, hex } = Text::of(&object);
        let mut path = text.into_owned();
        for step in &location.nested {
            path.push_str("!/");
            path.push_str(&Text::of(&step.name).text);
        }
        (path, hex)
    }
}

/// What is known of a report before its first row.
#[derive(Clone, Copy, Debug)]
pub struct ReportMeta<'a> {
    /// Version of the binary.
    pub version: &'a str,
    pub job: MasterJobId,
    /// What the user asked for, in one line.
    pub description: &'a str,
    pub rules: &'a [RuleInfo],
    pub sources: &'a Sources,
    /// Which findings the report has.
    pub only: &'a ClassFilter,
    /// Whether rows may carry values; decides the columns of CSV.
    pub show_values: bool,
    /// Whether there are rows of what a control keeps out of reports; decides the columns of CSV, and what SARIF says of
    /// the others.
    pub show_suppressed: bool,
    /// Whether the table says why each finding is one; the other formats always do.
    pub explain: bool,
    pub style: Style,
}

/// One finding, as it is reported.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    pub occurrence: &'a Occurrence,
    /// The sensitive value itself, only where the user asked for it.
    pub value: Option<&'a [u8]>,
    /// Of a finding that is not reported, and shown because the user asked for it.
    pub hidden: Option<&'a Hidden>,
}

/// What is known at the end.
#[derive(Clone, Copy, Debug)]
pub struct Summary<'a> {
    pub job: &'a MasterJob,
    pub totals: &'a JobSummary,
    /// Examples of what was not scanned whole; need not be all.
    pub problems: &'a [Problem],
    pub elapsed: Duration,
    pub baseline: Option<BaselineSummary>,
    pub configuration: Option<&'a ConfigurationUsed>,
    pub suppressed: &'a Suppressions,
}

/// What became of a report that was compared with a baseline.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct BaselineSummary {
    /// Findings that are known, and not in the report.
    pub hidden: u64,
    /// Entries that no longer occur; `None` where this cannot be told.
    pub gone: Option<u64>,
}

/// One format's way to write a report.
trait ReportWriter {
    fn begin(&mut self) -> io::Result<()>;
    fn row(&mut self, row: &Row<'_>) -> io::Result<()>;
    /// Completes the document and flushes it.
    fn end(&mut self, summary: &Summary<'_>, tally: &Tally) -> io::Result<()>;
}

/// A report under way.
pub struct Report<'a> {
    writer: Box<dyn ReportWriter + Send + 'a>,
    rules: RuleIndex<'a>,
    only: &'a ClassFilter,
    tally: Tally,
}

impl<'a> Report<'a> {
    /// Writes what comes before the first row. `out` should be buffered.
    pub fn begin(
        format: Format,
        out: impl Write + Send + 'a,
        meta: ReportMeta<'a>,
    ) -> io::Result<Report<'a>> {
        let mut writer: Box<dyn ReportWriter + Send + 'a> = match format {
            Format::Table => Box::new(table::TableWriter::new(out, meta)),
            Format::Json => Box::new(json::JsonWriter::new(out, meta)),
            Format::Jsonl => Box::new(json::JsonlWriter::new(out, meta)),
            Format::Csv => Box::new(csv::CsvWriter::new(out, meta)),
            Format::Sarif => Box::new(sarif::SarifWriter::new(out, meta)),
        };
        writer.begin()?;
        Ok(Report { writer, rules: RuleIndex::new(meta.rules), only: meta.only, tally: Tally::default() })
    }

    /// Whether a finding belongs to the report.
    pub fn admits(&self, found: &Occurrence) -> bool {
        self.only.admits(self.rules.class(found))
    }

    /// What a control keeps out of the report is written, and is no finding of it.
    pub fn row(&mut self, row: &Row<'_>) -> io::Result<()> {
        if row.hidden.is_none() {
            self.tally.add(row.occurrence, self.rules.class(row.occurrence));
        }
        self.writer.row(row)
    }

    /// Completes the document. The tally is for [`write_summary`], where the format has no summary.
    pub fn end(mut self, summary: &Summary<'_>) -> io::Result<Tally> {
        self.writer.end(summary, &self.tally)?;
        Ok(self.tally)
    }
}

/// Finds a rule by its id. A finding of an older job may name a rule that is gone.
struct RuleIndex<'a> {
    rules: &'a [RuleInfo],
    by_id: HashMap<&'a str, usize>,
    by_category: BTreeMap<Category, Class>,
}

impl<'a> RuleIndex<'a> {
    fn new(rules: &'a [RuleInfo]) -> Self {
        RuleIndex {
            rules,
            by_id: rules.iter().enumerate().map(|(index, rule)| (rule.id.as_str(), index)).collect(),
            by_category: Category::ALL
                .iter()
                .map(|&category| (category, Class::of_category(category)))
                .collect(),
        }
    }

    fn position(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// What a disclosure means; where the rule is gone, by the category.
    fn class(&self, found: &Occurrence) -> &Class {
        self.position(&found.rule)
            .map_or_else(|| &self.by_category[&found.category], |index| &*self.rules[index].class)
    }

    /// The rule's description; its id, where the rule is gone.
    fn description<'s>(&'s self, id: &'s str) -> &'s str {
        self.position(id).map_or(id, |index| &self.rules[index].description)
    }
}
