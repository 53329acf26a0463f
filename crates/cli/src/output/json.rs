//! Findings as JSON: one document, or one object per line. Both have the same finding objects, with
//! their fields in the order declared here.
//!
//! Text is exact wherever the bytes are UTF-8; where not, it is the escaped display form and a field
//! of the same name with `_hex` has the bytes.

use std::borrow::Cow;
use std::io::{self, Write};

use domesday_model::{ConfigurationUsed, Location, Regulation};
use serde::Serialize;
use serde_json::ser::Formatter;

use super::origin::{self, OriginJson};
use super::summary::SummaryJson;
use super::suppressed::{ControlJson, HiddenJson};
use super::text::{self, Text};
use super::{ReportMeta, ReportWriter, Row, RuleIndex, Summary, Tally};

/// Compact JSON that is safe to print: what acts on a terminal is written as `\uXXXX`, which any
/// parser turns back into the same text.
struct SafeFormatter;

impl Formatter for SafeFormatter {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut written = 0;
        for (at, c) in fragment.char_indices().filter(|&(_, c)| text::is_unsafe(c)) {
            out.write_all(&fragment.as_bytes()[written..at])?;
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                write!(out, "\\u{unit:04x}")?;
            }
            written = at + c.len_utf8();
        }
        out.write_all(&fragment.as_bytes()[written..])
    }
}

/// Writes a value as one line of JSON, without the line's end.
pub fn write_json(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(out, SafeFormatter);
    value.serialize(&mut serializer).map_err(io::Error::from)
}

/// Writes `[…]` with one item per line.
pub fn write_json_lines<T: Serialize>(
    out: &mut impl Write,
    items: impl IntoIterator<Item = T>,
) -> io::Result<()> {
    out.write_all(b"[")?;
    for (index, item) in items.into_iter().enumerate() {
        out.write_all(if index > 0 { b",\n" } else { b"\n" })?;
        write_json(out, &item)?;
    }
    out.write_all(b"\n]\n")
}

#[derive(Serialize)]
pub struct StepJson<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name_hex: Option<String>,
    ordinal: u32,
}

/// The way into a container, outermost first.
pub fn steps(location: &Location) -> Vec<StepJson<'_>> {
    location
        .nested
        .iter()
        .map(|step| {
            let Text { text: name, hex: name_hex } = Text::of(&step.name);
            StepJson { name, name_hex, ordinal: step.ordinal }
        })
        .collect()
}

#[derive(Serialize)]
struct SpanJson {
    start: u64,
    end: u64,
}

#[derive(Serialize)]
struct FindingJson<'a> {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_hex: Option<String>,
    nested: Vec<StepJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<OriginJson<'a>>,
    datasource: &'a str,
    rule: &'a str,
    description: &'a str,
    category: &'a str,
    sensitivity: &'static str,
    regulations: &'a [Regulation],
    level: &'a str,
    score: u8,
    reasons: Vec<&'a str>,
    line: u64,
    column: u64,
    /// Of a finding in a table, which row it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<&'a str>,
    span: SpanJson,
    preview: &'a str,
    fingerprint: String,
    finding: String,
    decoding: &'a [String],
    /// Of a finding that a control keeps out of reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    suppressed: Option<HiddenJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_hex: Option<String>,
}

fn finding<'a>(row: &Row<'a>, meta: &ReportMeta<'a>, rules: &'a RuleIndex<'_>) -> FindingJson<'a> {
    let found = row.occurrence;
    let class = rules.class(found);
    let (path, path_hex) = meta.sources.exact(found.datasource, &origin::place(found));
    let (value, value_hex) = match row.value.map(Text::of) {
        Some(Text { text, hex }) => (Some(text), hex),
        None => (None, None),
    };
    FindingJson {
        path,
        path_hex,
        nested: steps(&found.location),
        origin: OriginJson::of(found),
        datasource: meta.sources.name(found.datasource),
        rule: &found.rule,
        description: rules.description(&found.rule),
        category: found.category.as_str(),
        sensitivity: class.sensitivity.as_str(),
        regulations: &class.regulations,
        level: found.score.level().as_str(),
        score: found.score.0,
        reasons: reasons(&found.reasons),
        line: found.position.line,
        column: found.position.column,
        row: found.row.as_deref(),
        span: SpanJson { start: found.span.start, end: found.span.end },
        preview: &found.preview,
        fingerprint: found.fingerprint.to_string(),
        finding: found.finding.to_string(),
        decoding: &found.decoding,
        suppressed: row.hidden.map(HiddenJson::of),
        value,
        value_hex,
    }
}

/// The reasons of a score, which the book keeps in one string.
pub fn reasons(joined: &str) -> Vec<&str> {
    joined.split("; ").filter(|reason| !reason.is_empty()).collect()
}

/// One finding per line, and a last line with a `summary` where a configuration or a control left something out.
pub struct JsonlWriter<'a, W> {
    out: W,
    meta: ReportMeta<'a>,
    rules: RuleIndex<'a>,
}

impl<'a, W: Write> JsonlWriter<'a, W> {
    pub fn new(out: W, meta: ReportMeta<'a>) -> Self {
        JsonlWriter { out, meta, rules: RuleIndex::new(meta.rules) }
    }

    fn object(&mut self, row: &Row<'_>) -> io::Result<()> {
        write_json(&mut self.out, &finding(row, &self.meta, &self.rules))
    }
}

impl<W: Write> ReportWriter for JsonlWriter<'_, W> {
    fn begin(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn row(&mut self, row: &Row<'_>) -> io::Result<()> {
        self.object(row)?;
        self.out.write_all(b"\n")
    }

    fn end(&mut self, summary: &Summary<'_>, _tally: &Tally) -> io::Result<()> {
        if summary.configuration.is_some() || !summary.suppressed.is_empty() {
            let (configuration, suppressed) = (summary.configuration, summary.suppressed.json());
            write_json(&mut self.out, &LastJson { summary: ControlsJson { configuration, suppressed } })?;
            self.out.write_all(b"\n")?;
        }
        self.out.flush()
    }
}

/// The last line, where something was left out.
#[derive(Serialize)]
struct LastJson<'a> {
    summary: ControlsJson<'a>,
}

#[derive(Serialize)]
struct ControlsJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    configuration: Option<&'a ConfigurationUsed>,
    suppressed: Vec<ControlJson<'a>>,
}

/// One document: `{"tool":…,"job":…,"findings":[…],"summary":…}`, one finding per line.
pub struct JsonWriter<'a, W> {
    lines: JsonlWriter<'a, W>,
    any: bool,
}

#[derive(Serialize)]
struct ToolJson<'a> {
    name: &'a str,
    version: &'a str,
}

#[derive(Serialize)]
struct JobJson<'a> {
    id: String,
    description: &'a str,
}

impl<'a, W: Write> JsonWriter<'a, W> {
    pub fn new(out: W, meta: ReportMeta<'a>) -> Self {
        JsonWriter { lines: JsonlWriter::new(out, meta), any: false }
    }
}

impl<W: Write> ReportWriter for JsonWriter<'_, W> {
    fn begin(&mut self) -> io::Result<()> {
        let JsonlWriter { out, meta, .. } = &mut self.lines;
        out.write_all(b"{\"tool\":")?;
        write_json(out, &ToolJson { name: "domesday", version: meta.version })?;
        out.write_all(b",\n\"job\":")?;
        write_json(out, &JobJson { id: meta.job.to_string(), description: meta.description })?;
        out.write_all(b",\n\"findings\":[")
    }

    fn row(&mut self, row: &Row<'_>) -> io::Result<()> {
        let separator: &[u8] = if self.any { b",\n" } else { b"\n" };
        self.any = true;
        self.lines.out.write_all(separator)?;
        self.lines.object(row)
    }

    fn end(&mut self, summary: &Summary<'_>, tally: &Tally) -> io::Result<()> {
        let JsonlWriter { out, meta, .. } = &mut self.lines;
        out.write_all(if self.any { b"\n],\n\"summary\":" } else { b"],\n\"summary\":" })?;
        write_json(out, &SummaryJson::new(summary, tally, meta.sources))?;
        out.write_all(b"}\n")?;
        out.flush()
    }
}
