//! SARIF 2.1.0, written result by result.
//!
//! One run: the rules and the reasons (as notifications) come first, results follow, and what went
//! wrong comes last, as notifications of the invocation. An object inside a container has no URI of
//! its own, so its result names the outermost object, describes the way in as a logical location, and
//! keeps its place in the result's properties: a region would claim lines of the container itself.

use std::io::{self, Write};

use domesday_model::{DatasourceId, JobStatus, Level, Location, Reason, Sensitivity};
use domesday_store::Problem;
use serde_json::{Map, Value, json};

use super::human::timestamp;
use super::json::{reasons, write_json};
use super::origin::{self, OriginJson};
use super::suppressed::HiddenJson;
use super::text::{self, Text};
use super::{Hidden, ReportMeta, ReportWriter, Row, RuleIndex, RuleInfo, Sources, Summary, Tally};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

pub struct SarifWriter<'a, W> {
    out: W,
    meta: ReportMeta<'a>,
    rules: RuleIndex<'a>,
    any: bool,
}

impl<'a, W: Write> SarifWriter<'a, W> {
    pub fn new(out: W, meta: ReportMeta<'a>) -> Self {
        SarifWriter { out, meta, rules: RuleIndex::new(meta.rules), any: false }
    }

    fn driver(&self) -> Value {
        let rule = |rule: &RuleInfo| {
            // A text of the standard is never empty.
            let described = if rule.description.is_empty() { &rule.id } else { &rule.description };
            json!({
                "id": rule.id,
                "shortDescription": { "text": literal(described) },
                "properties": rule_properties(rule),
            })
        };
        let reason = |reason: &Reason| json!({ "id": reason.as_str(), "shortDescription": { "text": reason.describe() } });
        json!({
            "name": "Domesday",
            "version": self.meta.version,
            "rules": self.meta.rules.iter().map(rule).collect::<Vec<_>>(),
            "notifications": Reason::ALL.iter().map(reason).collect::<Vec<_>>(),
        })
    }

    fn result(&self, row: &Row<'_>) -> Value {
        let found = row.occurrence;
        let mut location = location(found.datasource, &origin::place(found), self.meta.sources);
        let region = json!({
            "startLine": found.position.line,
            "startColumn": found.position.column,
            "byteOffset": found.span.start,
            "byteLength": found.span.end.saturating_sub(found.span.start),
        });
        let mut properties = Map::new();
        properties.insert("category".into(), found.category.as_str().into());
        let class = self.rules.class(found);
        properties.insert("sensitivity".into(), class.sensitivity.as_str().into());
        properties.insert("regulations".into(), json!(class.regulations));
        properties.insert("score".into(), found.score.0.into());
        properties.insert("confidence".into(), found.score.level().as_str().into());
        properties.insert("reasons".into(), reasons(&found.reasons).into());
        properties.insert("preview".into(), found.preview.as_str().into());
        properties.insert("decoding".into(), found.decoding.clone().into());
        properties.insert("datasource".into(), self.meta.sources.name(found.datasource).into());
        if let Some(row) = &found.row {
            properties.insert("row".into(), row.as_ref().into());
        }
        if let Some(origin) = OriginJson::of(found) {
            properties.insert("origin".into(), json!(origin));
        }
        if let Some(Text { text, hex }) = row.value.map(Text::of) {
            properties.insert("value".into(), text.into());
            properties.extend(hex.map(|hex| ("value_hex".to_owned(), hex.into())));
        }
        if found.location.nested.is_empty() {
            location["physicalLocation"]["region"] = region;
        } else {
            properties.insert("nestedRegion".into(), region);
        }
        let message = format!("{}: {}", self.rules.description(&found.rule), found.preview);
        let mut result = json!({
            "ruleId": found.rule,
            "level": match found.score.level() {
                Level::High => "error",
                Level::Medium => "warning",
                Level::Low => "note",
            },
            "rank": found.score.0,
            "message": { "text": literal(&message) },
            "locations": [location],
            "partialFingerprints": {
                "domesdayFinding/v1": found.finding.to_string(),
                "domesdayValue/v1": found.fingerprint.to_string(),
            },
            "properties": properties,
        });
        if let Some(index) = self.rules.position(&found.rule) {
            result["ruleIndex"] = index.into();
        }
        if self.meta.show_suppressed {
            // None means something else than not to say it: of all results of a run, or of no one.
            let suppression = |hidden: &Hidden| {
                json!({
                    "kind": hidden.by.sarif_kind(),
                    "status": "accepted",
                    "justification": hidden.by.shown(),
                    "properties": HiddenJson::of(hidden),
                })
            };
            result["suppressions"] = row.hidden.into_iter().map(suppression).collect();
        }
        result
    }
}

impl<W: Write> ReportWriter for SarifWriter<'_, W> {
    fn begin(&mut self) -> io::Result<()> {
        write!(
            self.out,
            "{{\"version\":\"2.1.0\",\"$schema\":\"{SCHEMA}\",\"runs\":[{{\"tool\":{{\"driver\":"
        )?;
        let driver = self.driver();
        write_json(&mut self.out, &driver)?;
        self.out.write_all(b"},\n\"columnKind\":\"unicodeCodePoints\",\"automationDetails\":")?;
        // The part before the slash is what services tell analyses of one commit apart by.
        let mut details = json!({ "id": format!("domesday/{}", self.meta.job) });
        if !self.meta.description.is_empty() {
            details["description"] = json!({ "text": literal(self.meta.description) });
        }
        write_json(&mut self.out, &details)?;
        self.out.write_all(b",\n\"results\":[")
    }

    fn row(&mut self, row: &Row<'_>) -> io::Result<()> {
        self.out.write_all(if self.any { b",\n" } else { b"\n" })?;
        self.any = true;
        let result = self.result(row);
        write_json(&mut self.out, &result)
    }

    fn end(&mut self, summary: &Summary<'_>, _tally: &Tally) -> io::Result<()> {
        let job = summary.job;
        let sources = self.meta.sources;
        let named = summary.problems.iter().map(|problem| notification(problem, sources));
        let formats =
            summary.totals.unsupported.iter().map(|(format, count)| format_notification(format, *count));
        let mut invocation = json!({
            "executionSuccessful": matches!(job.status, JobStatus::Completed | JobStatus::PartiallyCompleted),
            "startTimeUtc": timestamp(job.created_at_ms),
            "toolExecutionNotifications": formats.chain(named).collect::<Vec<_>>(),
        });
        if let Some(finished) = job.finished_at_ms {
            invocation["endTimeUtc"] = timestamp(finished).into();
        }
        let mut properties = Map::new();
        properties.extend(summary.configuration.map(|used| ("configuration".to_owned(), json!(used))));
        properties.extend(summary.baseline.map(|baseline| ("baseline".to_owned(), json!(baseline))));
        if !properties.is_empty() {
            invocation["properties"] = properties.into();
        }
        self.out.write_all(b"\n],\n\"invocations\":[")?;
        write_json(&mut self.out, &invocation)?;
        self.out.write_all(b"],\n\"properties\":")?;
        write_json(&mut self.out, &json!({ "suppressed": summary.suppressed.json() }))?;
        self.out.write_all(b"}]}\n")?;
        self.out.flush()
    }
}

/// Code scanning services read `security-severity`, a number as text, of rules with the tag `security`, and put it into
/// words: above 9 critical, from 7 high, from 4 medium, below low. Tags are what they can be asked for.
fn rule_properties(rule: &RuleInfo) -> Value {
    let severity = match rule.class.sensitivity {
        Sensitivity::Critical => "9.5",
        Sensitivity::High => "8.0",
        Sensitivity::Moderate => "5.5",
        Sensitivity::Low => "2.0",
    };
    let sensitivity = rule.class.sensitivity.as_str();
    let mut tags =
        vec!["security".to_owned(), rule.category.as_str().to_owned(), format!("sensitivity/{sensitivity}")];
    tags.extend(rule.class.regulations.iter().map(|regulation| format!("regulation/{regulation}")));
    json!({
        "category": rule.category.as_str(),
        "sensitivity": sensitivity,
        "regulations": rule.class.regulations,
        "security-severity": severity,
        "tags": tags,
    })
}

fn location(datasource: DatasourceId, location: &Location, sources: &Sources) -> Value {
    let mut out = json!({
        "physicalLocation": { "artifactLocation": { "uri": text::uri(&sources.object_path(datasource, location)) } },
    });
    if let Some(innermost) = location.nested.last() {
        out["logicalLocations"] = json!([{
            "name": Text::of(&innermost.name).text,
            "fullyQualifiedName": sources.exact(datasource, location).0,
            "kind": "resource",
        }]);
    }
    out
}

fn notification(problem: &Problem, sources: &Sources) -> Value {
    let what = problem.reason.map_or(problem.status.as_str(), Reason::describe);
    let separator = if problem.detail.is_empty() { "" } else { ": " };
    let mut out = json!({
        "level": "warning",
        "message": { "text": literal(&format!("{}: {what}{separator}{}", problem.status.as_str(), problem.detail)) },
        "locations": [location(problem.datasource, &origin::place_of_problem(problem), sources)],
    });
    if let Some(reason) = problem.reason {
        out["descriptor"] = json!({ "id": reason.as_str() });
    }
    out
}

/// How many objects are of a format that is not read: only some of them are named.
fn format_notification(format: &str, count: u64) -> Value {
    let what = Reason::UnsupportedFormat.describe();
    json!({
        "level": "warning",
        "message": { "text": literal(&format!("{count} unsupported: {what}: {format}")) },
        "descriptor": { "id": Reason::UnsupportedFormat.as_str() },
        "properties": { "format": format, "count": count },
    })
}

/// Text as a message holds it: a single brace would begin a placeholder, and `](` would make a link.
fn literal(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}").replace("](", "] (")
}
