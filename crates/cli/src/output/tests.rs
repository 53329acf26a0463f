//! Whole reports, checked as their readers see them.

use std::sync::{Arc, LazyLock, Mutex};

use domesday_model::{
    FindingId, Fingerprint, JobStatus, Level, NestedStep, ObjectKey, ObjectStatus, Position, Reason, Score,
    Sensitivity, Span, Suppressed, SuppressedBy,
};
use serde_json::Value;

use super::*;

const ESCAPE_NAME: &[u8] = b"evil\x1b[2J\xc2\x9bm\xe2\x80\xaetxt";

fn occurrence(key: &[u8], rule: &str, score: u8, line: u64) -> Occurrence {
    Occurrence {
        finding: FindingId([7; 16]),
        datasource: DatasourceId(1),
        location: Location { key: ObjectKey::new(key), nested: Vec::new() },
        rule: rule.to_owned(),
        category: if rule == "card-number" { Category::Payment } else { Category::Secret },
        score: Score(score),
        reasons: "checksum holds; keyword `aws` nearby".to_owned(),
        fingerprint: Fingerprint([0xab; 16]),
        preview: "AKIA****7Q".to_owned(),
        span: Span { start: 100, end: 120 },
        position: Position { line, column: 5 },
        decoding: Vec::new(),
        row: None,
        origin: None,
        suppressed: None,
    }
}

fn hidden(suppressed: &Suppressed) -> Hidden {
    Hidden { by: Control::Scan(suppressed.by.clone()), count: suppressed.count }
}

fn nested(mut found: Occurrence, names: &[&[u8]]) -> Occurrence {
    let step = |(ordinal, name): (usize, &&[u8])| NestedStep { name: name.to_vec(), ordinal: ordinal as u32 };
    found.location.nested = names.iter().enumerate().map(step).collect();
    found
}

fn rules() -> Vec<RuleInfo> {
    let rule = |id: &str, description: &str, category, sensitivity, regulation: &str| {
        let class = Class { sensitivity, regulations: vec![regulation.parse().unwrap()] };
        RuleInfo {
            id: id.into(),
            description: description.into(),
            category,
            class: LazyLock::new(Box::new(move || class)),
        }
    };
    vec![
        rule("aws-access-key", "AWS access key id", Category::Secret, Sensitivity::Critical, "ISO-27001"),
        rule("card-number", "payment card number", Category::Payment, Sensitivity::High, "PCI-DSS"),
    ]
}

fn sources() -> Sources {
    [(DatasourceId(1), Source { name: "filesystem:src".into(), root: b"src".to_vec(), hidden: Vec::new() })]
        .into_iter()
        .collect()
}

fn job(status: JobStatus) -> MasterJob {
    MasterJob {
        id: MasterJobId([1; 16]),
        description: "scan src".into(),
        status,
        failure_reason: None,
        created_at_ms: 1_772_323_199_000,
        finished_at_ms: Some(1_772_323_200_500),
    }
}

fn problem(key: &[u8], status: ObjectStatus, reason: Reason, detail: &str) -> Problem {
    Problem {
        origin: None,
        datasource: DatasourceId(1),
        location: Location { key: ObjectKey::new(key), nested: Vec::new() },
        status,
        reason: Some(reason),
        detail: detail.into(),
    }
}

fn totals() -> JobSummary {
    JobSummary {
        objects_listed: 1210,
        bytes_listed: 14 << 20,
        units: 87,
        objects_done: 1204,
        nested_done: 33,
        bytes_done: 13_002_342,
        skipped: vec![(Reason::Excluded, 10), (Reason::Symlink, 2)],
        partial: vec![(Reason::Encrypted, 1)],
        failed: vec![(Reason::PermissionDenied, 5)],
        ..JobSummary::default()
    }
}

/// A report with every part taken from a caller's choice of rows and problems.
struct Case {
    rows: Vec<(Occurrence, Option<Vec<u8>>)>,
    problems: Vec<Problem>,
    totals: JobSummary,
    status: JobStatus,
    style: Style,
    only: ClassFilter,
    explain: bool,
    configuration: Option<ConfigurationUsed>,
}

impl Case {
    fn of(rows: impl IntoIterator<Item = Occurrence>) -> Case {
        Case {
            rows: rows.into_iter().map(|row| (row, None)).collect(),
            problems: Vec::new(),
            totals: JobSummary::default(),
            status: JobStatus::Completed,
            style: Style { color: false, width: Some(80) },
            only: ClassFilter::default(),
            explain: false,
            configuration: None,
        }
    }

    fn with_problems(mut self) -> Case {
        let denied = |key: &[u8]| problem(key, ObjectStatus::Failed, Reason::PermissionDenied, "os error 13");
        self.totals = totals();
        self.status = JobStatus::PartiallyCompleted;
        self.problems = vec![
            denied(b"a"),
            denied(b"b"),
            problem(b"x.zip", ObjectStatus::Partial, Reason::Encrypted, ""),
            denied(b"c"),
            denied(b"d"),
        ];
        self
    }

    fn write(&self, format: Format) -> String {
        let (rules, sources, job) = (rules(), sources(), job(self.status));
        let mut out = Vec::new();
        let meta = ReportMeta {
            version: "1.2.3",
            job: job.id,
            description: &job.description,
            rules: &rules,
            sources: &sources,
            only: &self.only,
            show_values: self.rows.iter().any(|(_, value)| value.is_some()),
            show_suppressed: self.rows.iter().any(|(found, _)| found.suppressed.is_some()),
            explain: self.explain,
            style: self.style,
        };
        let mut report = Report::begin(format, &mut out, meta).unwrap();
        for (occurrence, value) in &self.rows {
            if report.admits(occurrence) {
                let hidden = occurrence.suppressed.as_ref().map(hidden);
                let hidden = hidden.as_ref();
                report.row(&Row { occurrence, value: value.as_deref(), hidden }).unwrap();
            }
        }
        let elapsed = Duration::from_millis(1500);
        report
            .end(&Summary {
                job: &job,
                totals: &self.totals,
                problems: &self.problems,
                elapsed,
                baseline: None,
                configuration: self.configuration.as_ref(),
                suppressed: &Suppressions::of(&self.totals, 0, Level::Medium),
            })
            .unwrap();
        String::from_utf8(out).unwrap()
    }

    fn json(&self, format: Format) -> Value {
        serde_json::from_str(&self.write(format)).unwrap()
    }
}

/// A small case that has everything.
fn full() -> Case {
    let mut decoded = occurrence(b"app/.env", "card-number", 55, 104);
    decoded.decoding = vec!["base64".into(), "utf-16le".into()];
    let inside = nested(occurrence(b"config.tar.gz", "aws-access-key", 30, 1), &[b"config.tar", b"app/.env"]);
    Case::of([occurrence(b"app/.env", "aws-access-key", 92, 12), decoded, inside]).with_problems()
}

#[test]
fn the_table_groups_by_object_and_ends_with_the_summary() {
    let expected = "\
src/app/.env
    12:5     high    aws-access-key  AKIA****7Q
   104:5     medium  card-number     AKIA****7Q  via base64 > utf-16le

src/config.tar.gz!/config.tar!/app/.env
     1:5     low     aws-access-key  AKIA****7Q

findings  3 in 2 objects
          1 high, 1 medium, 1 low
          2 secret, 1 payment
          2 critical, 1 high sensitivity
objects   1,204 of 1,210 done, 33 nested in them, 87 containers listed
bytes     12.4 MiB in 1.5 s, 8.3 MiB/s
skipped   12
      10  excluded by --exclude, the configuration or the data source
       2  a symbolic link, recorded and not followed
partial   1
       1  an encrypted archive entry or document
          src/x.zip
failed    5
       5  no permission to read it
          src/a: os error 13
          src/b: os error 13
          src/c: os error 13
          and 2 more
job       partially completed
";
    assert_eq!(full().write(Format::Table), expected);
    let too_wide = expected.lines().filter(|line| line.chars().count() > 80).count();
    assert_eq!(too_wide, 0);
}

#[test]
fn an_explanation_stands_below_each_finding() {
    let mut case = full();
    case.explain = true;
    case.only = ClassFilter::new(None, Some("pci-dss".parse().unwrap()), &rules()).unwrap();
    let expected = "\
src/app/.env
   104:5     medium  card-number     AKIA****7Q  via base64 > utf-16le
             what         payment card number
             sensitivity  high
             regulations  PCI-DSS
             score        55
             because      checksum holds
                          keyword `aws` nearby
             decoding     base64 > utf-16le
             fingerprint  abababababababababababababababab

findings  1 in 1 object
";
    let written = case.write(Format::Table);
    assert!(written.starts_with(expected), "{written}");
}

#[test]
fn a_filter_admits_by_sensitivity_and_regulation_and_names_what_there_is() {
    let filter = |sensitivity, regulation: Option<&str>| {
        ClassFilter::new(sensitivity, regulation.map(|name| name.parse().unwrap()), &rules())
    };
    let admitted = |filter: ClassFilter| {
        let admits = |rule: &RuleInfo| filter.admits(&rule.class).then(|| rule.id.clone());
        rules().iter().filter_map(admits).collect::<Vec<_>>()
    };
    assert_eq!(admitted(ClassFilter::default()), ["aws-access-key", "card-number"]);
    assert_eq!(admitted(filter(Some(Sensitivity::High), None).unwrap()), ["aws-access-key", "card-number"]);
    assert_eq!(admitted(filter(Some(Sensitivity::Critical), None).unwrap()), ["aws-access-key"]);
    assert_eq!(admitted(filter(None, Some("PCI-DSS")).unwrap()), ["card-number"]);
    assert_eq!(admitted(filter(Some(Sensitivity::Critical), Some("PCI-DSS")).unwrap()), [""; 0]);
    let error = filter(None, Some("PCIDSS")).unwrap_err().to_string();
    assert_eq!(error, "no rule of this scan concerns PCIDSS: use one of ISO-27001, PCI-DSS");
}

#[test]
fn a_finding_of_a_rule_that_is_gone_has_the_class_of_its_category() {
    let json = Case::of([occurrence(b"a", "gone", 92, 1)]).json(Format::Jsonl);
    assert_eq!((&json["sensitivity"], &json["regulations"][0]), (&"high".into(), &"ISO-27001".into()));
}

#[test]
fn code_scanning_services_get_a_severity() {
    let sarif = full().json(Format::Sarif);
    let rules = &sarif["runs"][0]["tool"]["driver"]["rules"];
    assert_eq!(rules[0]["properties"]["security-severity"], "9.5");
    assert_eq!(rules[1]["properties"]["security-severity"], "8.0");
    let tags = serde_json::json!(["security", "payment", "sensitivity/high", "regulation/PCI-DSS"]);
    assert_eq!(rules[1]["properties"]["tags"], tags);
    assert_eq!(sarif["runs"][0]["results"][0]["properties"]["sensitivity"], "critical");
}

#[test]
fn an_empty_report_is_whole_in_every_format() {
    let empty = Case::of([]);
    let expected = "\
findings  none
objects   0 of 0 done, 0 nested in them, 0 containers listed
bytes     0 B in 1.5 s, 0 B/s
";
    assert_eq!(empty.write(Format::Table), expected);
    assert_eq!(empty.write(Format::Jsonl), "");
    assert_eq!(empty.write(Format::Csv).lines().count(), 1);
    let json = empty.json(Format::Json);
    assert_eq!(
        (&json["findings"], &json["summary"]["complete"]),
        (&Value::Array(vec![]), &Value::Bool(true))
    );
    check_sarif(&empty.json(Format::Sarif));
}

#[test]
fn the_summary_says_what_is_missing_and_why() {
    let mut failed = job(JobStatus::Failed);
    failed.failure_reason = Some("nothing could be listed\x1b".into());
    let totals = JobSummary { overflow: 1200, tasks_failed: 1, tasks_open: 2, ..JobSummary::default() };
    let summary = Summary {
        job: &failed,
        totals: &totals,
        problems: &[],
        baseline: None,
        configuration: None,
        suppressed: &Suppressions::default(),
        elapsed: Duration::ZERO,
    };
    let expected = "\
findings  none
          1,200 more of the same rule in the same object, counted and not listed
objects   0 of 0 done, 0 nested in them, 0 containers listed
bytes     0 B in 0 ms, 0 B/s
tasks     1 failed for good
tasks     2 not done yet
job       failed: nothing could be listed\\x1b
";
    assert_eq!(list(|out| write_summary(out, &summary, &Tally::default(), &sources(), AT_80)), expected);
}

#[test]
fn colour_is_the_callers_choice() {
    let mut case = full();
    assert!(!case.write(Format::Table).contains('\x1b'));
    case.style.color = true;
    let painted = case.write(Format::Table);
    assert!(
        painted.contains("\x1b[1msrc/app/.env\x1b[0m") && painted.contains("\x1b[31mhigh  \x1b[0m"),
        "{painted:?}"
    );
}

#[test]
fn a_finding_line_of_json_has_its_fields_in_order() {
    let mut case = Case::of([nested(occurrence(b"a.zip", "aws-access-key", 92, 12), &[b"x\xff"])]);
    case.rows[0].1 = Some(b"AKIA\xffQ".to_vec());
    let expected = concat!(
        r#"{"path":"src/a.zip!/x\\xff","nested":[{"name":"x\\xff","name_hex":"78ff","ordinal":0}],"#,
        r#""datasource":"filesystem:src","rule":"aws-access-key","description":"AWS access key id","#,
        r#""category":"secret","sensitivity":"critical","regulations":["ISO-27001"],"level":"high","score":92,"reasons":["checksum holds","keyword `aws` nearby"],"#,
        r#""line":12,"column":5,"span":{"start":100,"end":120},"preview":"AKIA****7Q","#,
        r#""fingerprint":"abababababababababababababababab","finding":"07070707070707070707070707070707","#,
        r#""decoding":[],"value":"AKIA\\xffQ","value_hex":"414b4941ff51"}"#,
        "\n"
    );
    assert_eq!(case.write(Format::Jsonl), expected);
}

#[test]
fn the_json_document_is_one_value_with_the_same_findings() {
    let case = full();
    let json = case.json(Format::Json);
    let mut lines: Vec<Value> =
        case.write(Format::Jsonl).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = lines.pop().unwrap();
    assert_eq!(last["summary"]["suppressed"], json["summary"]["suppressed"], "something was excluded");
    assert_eq!(json["findings"], Value::Array(lines));
    assert_eq!(json["tool"], serde_json::json!({ "name": "domesday", "version": "1.2.3" }));
    assert_eq!(json["job"]["description"], "scan src");
    let summary = &json["summary"];
    assert_eq!(summary["status"], "PARTIALLY_COMPLETED");
    assert_eq!(summary["complete"], false);
    assert_eq!(summary["findings"]["by_level"], serde_json::json!({ "high": 1, "medium": 1, "low": 1 }));
    assert_eq!(summary["findings"]["by_sensitivity"], serde_json::json!({ "critical": 2, "high": 1 }));
    assert_eq!(summary["findings"]["by_regulation"], serde_json::json!({ "ISO-27001": 2, "PCI-DSS": 1 }));
    assert_eq!(summary["failed"][0]["reason"], "permission_denied");
    assert_eq!(summary["problems"][0]["path"], "src/a");
    assert_eq!(summary["elapsed_ms"], 1500);
}

#[test]
fn names_that_are_not_utf_8_keep_their_bytes() {
    let case = Case::of([occurrence(b"caf\xe9\\n", "aws-access-key", 92, 1)]);
    let json = case.json(Format::Jsonl);
    assert_eq!(json["path"], "src/caf\\xe9\\\\n");
    assert_eq!(json["path_hex"], "7372632f636166e95c6e");
    let exact =
        Case::of([occurrence("caf\u{e9}\\\n".as_bytes(), "aws-access-key", 92, 1)]).json(Format::Jsonl);
    assert_eq!((&exact["path"], exact.get("path_hex")), (&Value::from("src/caf\u{e9}\\\n"), None));
    let sarif = case.json(Format::Sarif);
    let uri = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert_eq!(uri, "src/caf%E9%5Cn");
    assert!(case.write(Format::Csv).contains("src/caf\\xe9\\\\n,1,5"));
}

#[test]
fn nothing_from_a_file_acts_on_the_terminal() {
    let mut found = nested(occurrence(ESCAPE_NAME, "aws-access-key", 92, 1), &[ESCAPE_NAME]);
    found.preview = "\u{9b}2J****\u{202e}".into();
    found.reasons = "\x1b[31m".into();
    let mut case = Case::of([found]);
    case.rows[0].1 = Some(b"\x1bc\x07".to_vec());
    case.totals = totals();
    case.problems = vec![problem(ESCAPE_NAME, ObjectStatus::Failed, Reason::PermissionDenied, "\x1b[0m")];
    for format in [Format::Table, Format::Json, Format::Jsonl, Format::Csv, Format::Sarif] {
        let written = case.write(format).replace("\r\n", "\n");
        let leak = written.chars().find(|&c| c != '\n' && text::is_unsafe(c));
        assert_eq!(leak, None, "{format:?}: {written}");
    }
    let jsonl = case.write(Format::Jsonl);
    let first: Value = serde_json::from_str(jsonl.lines().next().unwrap()).unwrap();
    assert_eq!(first["preview"], "\u{9b}2J****\u{202e}", "JSON keeps the text itself");
}

#[test]
fn a_finding_in_a_table_says_its_row() {
    let mut found = nested(occurrence(b"shop/public/customers", "aws-access-key", 92, 7), &[b"email"]);
    found.row = Some("42,\u{1b}[2J".into());
    let case = Case::of([found]);
    let table = case.write(Format::Table);
    assert!(table.starts_with("src/shop/public/customers!/email\nrow 42,\\x1b[2J  high "), "{table}");
    assert_eq!(case.json(Format::Json)["findings"][0]["row"], "42,\u{1b}[2J");
    let rows = parse_csv(&case.write(Format::Csv));
    assert_eq!(rows[0].iter().zip(&rows[1]).next_back(), Some((&"row".into(), &"42,\\x1b[2J".into())));
    let sarif = case.json(Format::Sarif);
    assert_eq!(sarif["runs"][0]["results"][0]["properties"]["row"], "42,\u{1b}[2J");
}

#[test]
fn csv_reads_back_and_holds_no_formula() {
    let mut found = occurrence(b"a,\"b\"", "aws-access-key", 92, 12);
    found.preview = "=1+1".into();
    let mut case = Case::of([found]);
    let rows = parse_csv(&case.write(Format::Csv));
    assert_eq!(rows.len(), 2);
    let cell = |rows: &[Vec<String>], name: &str| {
        rows[0].iter().position(|column| column == name).map(|index| rows[1][index].clone())
    };
    assert_eq!(cell(&rows, "path").as_deref(), Some("src/a,\"b\""));
    assert_eq!(cell(&rows, "preview").as_deref(), Some("'=1+1"));
    assert_eq!(cell(&rows, "reasons").as_deref(), Some("checksum holds; keyword `aws` nearby"));
    assert_eq!(cell(&rows, "sensitivity").as_deref(), Some("critical"));
    assert_eq!(cell(&rows, "regulations").as_deref(), Some("ISO-27001"));
    assert_eq!(cell(&rows, "value"), None, "no value was asked for");
    case.rows[0].1 = Some(b"@SUM(1)".to_vec());
    assert_eq!(cell(&parse_csv(&case.write(Format::Csv)), "value").as_deref(), Some("'@SUM(1)"));
}

/// RFC 4180, read as strictly as it is written.
fn parse_csv(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (quoted, c) {
            (true, '"') if chars.peek() == Some(&'"') => cell.extend(chars.next()),
            (_, '"') => quoted = !quoted,
            (false, ',') => row.push(std::mem::take(&mut cell)),
            (false, '\r') => {
                assert_eq!(chars.next(), Some('\n'));
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            (_, c) => cell.push(c),
        }
    }
    assert!(row.is_empty() && cell.is_empty(), "the last record has no end");
    assert!(rows.iter().all(|row: &Vec<String>| row.len() == rows[0].len()));
    rows
}

/// What the 2.1.0 schema demands of the properties that are written here, and what the text of the
/// standard demands beyond it.
fn check_sarif(log: &Value) {
    assert_eq!(log["version"], "2.1.0");
    let [run] = log["runs"].as_array().unwrap().as_slice() else { panic!("one run") };
    assert_eq!(run["columnKind"], "unicodeCodePoints");
    let driver = &run["tool"]["driver"];
    assert!(driver["name"].is_string());
    let ids = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|rule| rule["id"].as_str().unwrap().to_owned()).collect()
    };
    let (rules, notifications) = (ids(&driver["rules"]), ids(&driver["notifications"]));
    for result in run["results"].as_array().unwrap() {
        let rule = result["ruleId"].as_str().unwrap();
        if let Some(index) = result.get("ruleIndex") {
            assert_eq!(rules[index.as_u64().unwrap() as usize], rule);
        }
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap()));
        assert!(result["rank"].as_f64().is_some_and(|rank| (0.0..=100.0).contains(&rank)));
        assert!(result["message"]["text"].is_string());
        assert!(result["partialFingerprints"].as_object().unwrap().values().all(Value::is_string));
        for location in result["locations"].as_array().unwrap() {
            check_location(location);
        }
    }
    let [invocation] = run["invocations"].as_array().unwrap().as_slice() else { panic!("one invocation") };
    assert!(invocation["executionSuccessful"].is_boolean());
    for notification in invocation["toolExecutionNotifications"].as_array().unwrap() {
        assert_eq!(notification["level"], "warning");
        assert!(notification["message"]["text"].is_string());
        assert!(notifications.iter().any(|id| *id == notification["descriptor"]["id"]));
        notification["locations"].as_array().unwrap().iter().for_each(check_location);
    }
}

fn check_location(location: &Value) {
    let physical = &location["physicalLocation"];
    let uri = physical["artifactLocation"]["uri"].as_str().unwrap();
    assert!(uri.is_ascii() && !uri.contains([' ', '#', '?', '\\']), "{uri}");
    assert!(uri.starts_with("file:///") || !uri.contains(':'), "{uri}");
    if let Some(region) = physical.get("region") {
        assert!(region["startLine"].as_u64().unwrap() >= 1 && region["startColumn"].as_u64().unwrap() >= 1);
        assert!(region["byteOffset"].is_u64() && region["byteLength"].is_u64());
        assert!(location.get("logicalLocations").is_none(), "a region would be one of the container");
    }
}

#[test]
fn sarif_has_the_structure_of_the_standard() {
    let mut unknown = occurrence(b"old.txt", "rule-that-is-gone", 60, 3);
    unknown.preview = "a{0}[b](1".into();
    let mut case = full();
    case.rows.push((unknown, None));
    let log = case.json(Format::Sarif);
    check_sarif(&log);
    let results = log["runs"][0]["results"].as_array().unwrap();
    let levels: Vec<&str> = results.iter().map(|result| result["level"].as_str().unwrap()).collect();
    assert_eq!(levels, ["error", "warning", "note", "warning"]);
    assert_eq!(results[0]["locations"][0]["physicalLocation"]["region"]["byteLength"], 20);
    assert_eq!(results[1]["ruleIndex"], 1);
    assert_eq!(results[1]["properties"]["score"], 55);
    let inside = &results[2]["locations"][0];
    assert_eq!(inside["physicalLocation"]["artifactLocation"]["uri"], "src/config.tar.gz");
    assert_eq!(
        inside["logicalLocations"][0]["fullyQualifiedName"],
        "src/config.tar.gz!/config.tar!/app/.env"
    );
    assert_eq!(results[2]["properties"]["nestedRegion"]["startLine"], 1);
    assert_eq!(results[3].get("ruleIndex"), None);
    assert_eq!(results[3]["message"]["text"], "rule-that-is-gone: a{{0}}[b] (1");
    let invocation = &log["runs"][0]["invocations"][0];
    assert_eq!(invocation["toolExecutionNotifications"].as_array().unwrap().len(), 5);
    assert_eq!(invocation["endTimeUtc"], "2026-03-01T00:00:00Z");
}

#[test]
fn values_appear_only_where_they_were_asked_for() {
    for format in [Format::Table, Format::Json, Format::Jsonl, Format::Csv, Format::Sarif] {
        let mut case = full();
        assert!(!case.write(format).contains("value\":"), "{format:?}");
        case.rows[0].1 = Some(b"AKIAREVEALED".to_vec());
        assert_eq!(case.write(format).matches("AKIAREVEALED").count(), 1, "{format:?}");
    }
}

/// Counts what passes through and keeps nothing.
#[derive(Clone, Default)]
struct Counter(Arc<Mutex<u64>>);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        *self.0.lock().unwrap() += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn every_row_is_written_before_the_next_arrives() {
    const ROWS: u64 = 5000;
    let (rules, sources, job, only) = (rules(), sources(), job(JobStatus::Completed), ClassFilter::default());
    for format in [Format::Table, Format::Json, Format::Jsonl, Format::Csv, Format::Sarif] {
        let counter = Counter::default();
        let meta = ReportMeta {
            version: "1",
            job: job.id,
            description: "",
            rules: &rules,
            sources: &sources,
            only: &only,
            show_values: false,
            show_suppressed: false,
            explain: false,
            style: Style::default(),
        };
        let mut report = Report::begin(format, counter.clone(), meta).unwrap();
        let mut written = *counter.0.lock().unwrap();
        for n in 0..ROWS {
            let occurrence = occurrence(format!("file-{}", n / 3).as_bytes(), "aws-access-key", 92, n + 1);
            report.row(&Row { occurrence: &occurrence, value: None, hidden: None }).unwrap();
            let now = *counter.0.lock().unwrap();
            assert!(now >= written + 20, "{format:?} held row {n} back");
            written = now;
        }
        let totals = JobSummary::default();
        let tally = report
            .end(&Summary {
                job: &job,
                totals: &totals,
                problems: &[],
                baseline: None,
                configuration: None,
                suppressed: &Suppressions::default(),
                elapsed: Duration::ZERO,
            })
            .unwrap();
        assert_eq!((tally.findings, tally.objects), (ROWS, ROWS.div_ceil(3)));
    }
}

#[test]
fn a_broken_pipe_is_an_error_and_no_panic() {
    struct Broken;
    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (rules, sources, only) = (rules(), sources(), ClassFilter::default());
    let meta = ReportMeta {
        version: "1",
        job: MasterJobId([0; 16]),
        description: "",
        rules: &rules,
        sources: &sources,
        only: &only,
        show_values: false,
        show_suppressed: false,
        explain: false,
        style: Style::default(),
    };
    for format in [Format::Json, Format::Csv, Format::Sarif] {
        let error = Report::begin(format, Broken, meta).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe, "{format:?}");
    }
    let found = occurrence(b"a", "aws-access-key", 92, 1);
    for format in [Format::Table, Format::Jsonl] {
        let mut report = Report::begin(format, Broken, meta).unwrap();
        let error = report.row(&Row { occurrence: &found, value: None, hidden: None }).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe, "{format:?}");
    }
}

fn list(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

const AT_80: Style = Style { color: false, width: Some(80) };

#[test]
fn rules_are_listed_within_the_terminal() {
    let mut rules = rules();
    rules[0].description =
        "an access key id of Amazon Web Services, long-lived or temporary, in any file".into();
    let expected = "\
RULE            CATEGORY  SENSITIVITY  DESCRIPTION
aws-access-key  secret    critical     an access key id of Amazon Web Services,
                                       long-lived or temporary, in any file
card-number     payment   high         payment card number
";
    assert_eq!(list(|out| write_rules(out, &rules, ListFormat::Table, AT_80)), expected);
    let json: Value =
        serde_json::from_str(&list(|out| write_rules(out, &rules, ListFormat::Json, AT_80))).unwrap();
    assert_eq!(json[1]["id"], "card-number");
    assert_eq!((&json[1]["sensitivity"], &json[1]["regulations"][0]), (&"high".into(), &"PCI-DSS".into()));
    let none: Value =
        serde_json::from_str(&list(|out| write_rules(out, &[], ListFormat::Json, AT_80))).unwrap();
    assert_eq!(none, Value::Array(vec![]));
}

#[test]
fn a_job_with_little_room_has_its_description_below() {
    let mut jobs = [job(JobStatus::PartiallyCompleted), job(JobStatus::Running)];
    jobs[1].finished_at_ms = None;
    jobs[1].description = "scan \x1b[2J".into();
    let expected = "\
JOB                               STATUS   CREATED UTC       TOOK
01010101010101010101010101010101  partial  2026-02-28 23:59  1.5 s
    scan src
01010101010101010101010101010101  running  2026-02-28 23:59
    scan \\x1b[2J
";
    assert_eq!(list(|out| write_jobs(out, &jobs, ListFormat::Table, AT_80)), expected);
    let wide = list(|out| write_jobs(out, &jobs, ListFormat::Table, Style::default()));
    assert!(wide.lines().nth(1).unwrap().ends_with("  1.5 s  scan src"), "{wide}");
    let json: Value =
        serde_json::from_str(&list(|out| write_jobs(out, &jobs, ListFormat::Json, AT_80))).unwrap();
    assert_eq!(
        (&json[0]["status"], &json[1]["finished_at"]),
        (&Value::from("PARTIALLY_COMPLETED"), &Value::Null)
    );
}

#[test]
fn details_and_problems_stay_readable() {
    let fields = [("id", "aws-access-key".to_owned()), ("examples", "one\n\n  two".to_owned())];
    let expected = "id        aws-access-key\nexamples  one\n\n            two\n";
    assert_eq!(list(|out| write_rule_detail(out, &fields, AT_80)), expected);

    let problems = [problem(b"two  spaces", ObjectStatus::Failed, Reason::Vanished, "os error 2")];
    let expected = "\
STATUS  REASON    PATH
failed  vanished  src/two  spaces: os error 2
";
    assert_eq!(list(|out| write_problems(out, &problems, &sources(), ListFormat::Table, AT_80)), expected);
    let json = list(|out| write_problems(out, &problems, &sources(), ListFormat::Json, AT_80));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json[0]["path"], &json[0]["reason"]),
        (&Value::from("src/two  spaces"), &Value::from("vanished"))
    );
}

/// A configuration, one finding, and one that an allow list and one that a mark keeps out.
fn controlled() -> Case {
    let suppressed = |line, by, count| Occurrence {
        suppressed: Some(Suppressed { by, count }),
        ..occurrence(b"a", "card-number", 90, line)
    };
    let allow = SuppressedBy::Allow("rules.toml:3 (\u{1b}[2J)".into());
    let mut case = Case::of([
        occurrence(b"a", "aws-access-key", 95, 1),
        suppressed(2, SuppressedBy::Mark, 1),
        suppressed(3, allow.clone(), 5),
    ]);
    case.configuration = Some(ConfigurationUsed {
        path: Some(".domesday.toml".into()),
        template: None,
        hash: "c0ffee".into(),
    });
    case.totals = JobSummary {
        suppressed: vec![(allow, 5), (SuppressedBy::Mark, 1)],
        skipped: vec![(Reason::Ignored, 2), (Reason::Symlink, 1)],
        ..JobSummary::default()
    };
    case
}

#[test]
fn every_format_says_what_controls_left_out_and_which_configuration_was_used() {
    let case = controlled();
    for format in [Format::Table, Format::Json, Format::Jsonl, Format::Csv, Format::Sarif] {
        let text = case.write(format);
        assert!(text.contains(".domesday.toml") && text.contains("c0ffee"), "{format:?}: {text}");
        assert!(text.contains("rules.toml:3") && !text.contains('\u{1b}'), "{format:?}: {text}");
        let ignored = ["left out by a .domesdayignore file", "ignore_file"];
        assert!(ignored.iter().any(|said| text.contains(said)), "{format:?}: {text}");
    }
    let controls = serde_json::json!([
        { "control": "mark", "findings": 1 },
        { "control": "allow", "entry": "rules.toml:3 (\u{1b}[2J)", "findings": 5 },
        { "control": "ignore_file", "objects": 2 },
        { "control": "level", "level": "medium" },
    ]);
    let json = case.json(Format::Json);
    assert_eq!(json["summary"]["suppressed"], controls);
    assert_eq!(json["summary"]["findings"]["total"], 1, "what is suppressed is no finding of the report");
    assert_eq!(json["findings"][0].get("suppressed"), None);
    assert_eq!(json["findings"][2]["suppressed"]["count"], 5);
    let run = &case.json(Format::Sarif)["runs"][0];
    assert_eq!(run["properties"]["suppressed"], controls);
    let kinds = run["results"].as_array().unwrap().iter().map(|result| &result["suppressions"]);
    let kinds: Vec<_> = kinds.map(|all| all.as_array().unwrap().iter().map(|one| &one["kind"])).collect();
    let kinds: Vec<Vec<_>> = kinds.into_iter().map(Iterator::collect).collect();
    assert_eq!(kinds, [vec![], vec!["inSource"], vec!["external"]]);
    let jsonl = case.write(Format::Jsonl);
    let last: Value = serde_json::from_str(jsonl.lines().last().unwrap()).unwrap();
    assert_eq!((jsonl.lines().count(), &last["summary"]["suppressed"]), (4, &controls));
    let table = case.write(Format::Table);
    assert!(table.contains("suppressed by an ignore mark") && table.contains("4 more like it"), "{table}");
    let csv = parse_csv(&case.write(Format::Csv));
    assert!(csv.iter().all(|record| record.len() == csv[0].len()), "{csv:?}");
    assert_eq!(csv[3].last().map(String::as_str), Some("[[allow]] rules.toml:3 (\\x1b[2J)"));
    assert_eq!(csv.iter().filter(|record| record[3] == "summary").count(), 4);
}

#[test]
fn results_say_nothing_of_suppressions_unless_they_are_asked_for() {
    let sarif = Case::of([occurrence(b"a", "aws-access-key", 95, 1)]).json(Format::Sarif);
    assert_eq!(sarif["runs"][0]["results"][0].get("suppressions"), None);
}
