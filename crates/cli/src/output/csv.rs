//! CSV as RFC 4180 has it, safe to open in a spreadsheet.
//!
//! Paths and values are in their escaped display form, so that a row is always one line. A cell that
//! a spreadsheet could take for a formula begins with an apostrophe; readers that need exact text use
//! JSON.

use std::borrow::Cow;
use std::io::{self, Write};

use domesday_model::Origin;

use super::human::timestamp;
use super::summary::shown_configuration;
use super::{ReportMeta, ReportWriter, Row, RuleIndex, Summary, Tally, class, origin, text};

const COLUMNS: &[&str] = &[
    "path",
    "line",
    "column",
    "level",
    "score",
    "rule",
    "description",
    "category",
    "preview",
    "reasons",
    "datasource",
    "start",
    "end",
    "decoding",
    "fingerprint",
    "finding",
    "commit",
    "author",
    "date",
    "sensitivity",
    "regulations",
    "row",
];

pub struct CsvWriter<'a, W> {
    out: W,
    meta: ReportMeta<'a>,
    rules: RuleIndex<'a>,
}

impl<'a, W: Write> CsvWriter<'a, W> {
    pub fn new(out: W, meta: ReportMeta<'a>) -> Self {
        CsvWriter { out, meta, rules: RuleIndex::new(meta.rules) }
    }

    fn record<'c>(&mut self, cells: impl IntoIterator<Item = Cow<'c, str>>) -> io::Result<()> {
        write_record(&mut self.out, cells)
    }
}

impl<W: Write> ReportWriter for CsvWriter<'_, W> {
    fn begin(&mut self) -> io::Result<()> {
        let value = self.meta.show_values.then_some("value");
        let suppressed = self.meta.show_suppressed.then_some("suppressed_by");
        self.record(COLUMNS.iter().copied().chain(value).chain(suppressed).map(Cow::Borrowed))
    }

    fn row(&mut self, row: &Row<'_>) -> io::Result<()> {
        let found = row.occurrence;
        let class = self.rules.class(found).clone();
        let description = text::shown(self.rules.description(&found.rule)).into_owned();
        let from = |cell: fn(&Origin) -> Cow<'_, str>| found.origin.as_ref().map_or("".into(), cell);
        let cells = [
            self.meta.sources.display(found.datasource, &origin::place(found)).into(),
            found.position.line.to_string().into(),
            found.position.column.to_string().into(),
            found.score.level().as_str().into(),
            found.score.0.to_string().into(),
            text::shown(&found.rule),
            description.into(),
            found.category.as_str().into(),
            text::shown(&found.preview),
            text::shown(&found.reasons),
            text::shown(self.meta.sources.name(found.datasource)),
            found.span.start.to_string().into(),
            found.span.end.to_string().into(),
            text::shown(&found.decoding.join(" > ")).into_owned().into(),
            found.fingerprint.to_string().into(),
            found.finding.to_string().into(),
            from(|origin| text::shown(&origin.commit)),
            from(|origin| text::shown(&origin.author)),
            from(|origin| match origin.commit.as_str() {
                "" => "".into(),
                _ => timestamp(origin.time_ms).into(),
            }),
            class.sensitivity.as_str().into(),
            class::regulations(&class).into(),
            text::shown(found.row.as_deref().unwrap_or_default()),
        ];
        let value =
            self.meta.show_values.then(|| row.value.map(text::shown_bytes).unwrap_or_default().into());
        let by = || row.hidden.map_or(Cow::Borrowed(""), |hidden| hidden.by.shown());
        let suppressed = self.meta.show_suppressed.then(by);
        self.record(cells.into_iter().chain(value).chain(suppressed))
    }

    /// Where something was left out, records that say so: no finding has this level.
    fn end(&mut self, summary: &Summary<'_>, _tally: &Tally) -> io::Result<()> {
        let used = summary.configuration.map(|used| format!("configuration {}", shown_configuration(used)));
        let columns =
            COLUMNS.len() + usize::from(self.meta.show_values) + usize::from(self.meta.show_suppressed);
        for said in used.into_iter().chain(summary.suppressed.lines()) {
            let cell = |at: usize| match COLUMNS.get(at).copied() {
                Some("level") => Cow::Borrowed("summary"),
                Some("description") => Cow::Owned(said.clone()),
                _ => Cow::Borrowed(""),
            };
            self.record((0..columns).map(cell))?;
        }
        self.out.flush()
    }
}

/// The characters at which spreadsheets begin to calculate, their full-width forms included.
fn begins_a_formula(cell: &str) -> bool {
    cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'])
}

/// One line.
pub fn write_record<'c>(
    out: &mut impl Write,
    cells: impl IntoIterator<Item = Cow<'c, str>>,
) -> io::Result<()> {
    for (index, cell) in cells.into_iter().enumerate() {
        if index > 0 {
            out.write_all(b",")?;
        }
        write_cell(out, &cell)?;
    }
    out.write_all(b"\r\n")
}

fn write_cell(out: &mut impl Write, cell: &str) -> io::Result<()> {
    let guard = if begins_a_formula(cell) { "'" } else { "" };
    if cell.contains(['"', ',', '\r', '\n', ';']) {
        write!(out, "\"{guard}{}\"", cell.replace('"', "\"\""))
    } else {
        write!(out, "{guard}{cell}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_never_a_formula() {
        let written = |cell: &str| {
            let mut out = Vec::new();
            write_cell(&mut out, cell).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written("plain"), "plain");
        assert_eq!(written(""), "");
        assert_eq!(written("a,\"b\"\n"), "\"a,\"\"b\"\"\n\"");
        assert_eq!(written("=HYPERLINK(\"x\",1)"), "\"'=HYPERLINK(\"\"x\"\",1)\"");
        for formula in ["=1", "+1", "-1", "@a", "\ta", "＝1"] {
            assert_eq!(written(formula), format!("'{formula}"));
        }
    }
}
