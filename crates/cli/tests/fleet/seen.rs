//! What processes tell of themselves: metrics that Prometheus takes, alerts and a dashboard that name no others, and log
//! lines with the ids of what they are about.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use domesday_testkit::fleet::Process;
use serde_json::Value;

use crate::place::Place;

/// What people give to Prometheus and Grafana.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fleet");
const ALERTS: &str = include_str!("../../../../docs/fleet/alerts.yml");
const ALERT_TESTS: &str = include_str!("../../../../docs/fleet/alerts.test.yml");
const DASHBOARD: &str = include_str!("../../../../docs/fleet/dashboard.json");
/// Telemetry on a port that is free, and logs as a machine reads them.
const FLAGS: [&str; 6] = ["--telemetry", "127.0.0.1:0", "--log", "info", "--log-format", "json"];
const FILES: usize = 40;

/// Prometheus's own tool; what it is given must be without fault.
fn promtool(arguments: &[&str], input: &str) {
    let mut tool = Command::new("promtool");
    tool.args(arguments).current_dir(FOLDER);
    tool.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut tool = tool.spawn().expect("promtool is needed: install Debian's package `prometheus`");
    tool.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let ended = tool.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()).into_owned();
    assert!(ended.status.success(), "promtool {arguments:?}: {said}");
}

/// The log, line by line.
fn log(process: &Process) -> Vec<Value> {
    let log = process.log();
    let whole = log.rfind('\n').map_or("", |end| &log[..end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

/// Where a process serves its metrics.
fn address(place: &Place, process: &Process) -> String {
    let served = || log(process).into_iter().find(|line| line["message"] == "telemetry served");
    place.wait("telemetry", || served().is_some());
    served().unwrap()["address"].as_str().unwrap().to_owned()
}

fn scrape(address: &str) -> String {
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// The samples of a text, by name and labels.
fn samples(text: &str) -> BTreeMap<&str, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(name, value)| (name, value.parse().unwrap()))
        .collect()
}

/// What begins with the program's name, in whatever text.
fn named(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let places = text.match_indices("domesday_").map(|(at, _)| &text[at..]);
    places.map(|rest| rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())].to_owned()).collect()
}

/// The queries of the dashboard, with values for its variables.
fn queries() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let queries = targets.map(|target| target["expr"].as_str().unwrap().to_owned());
    queries.map(|query| query.replace("$__rate_interval", "5m").replace("$node_group", ".*")).collect()
}

#[test]
fn alerts_and_queries_are_what_prometheus_understands_and_alerts_fire_when_they_should() {
    promtool(&["check", "rules", "--lint-fatal", "alerts.yml"], "");
    promtool(&["test", "rules", "alerts.test.yml"], "");
    for alert in ALERTS.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        let fires = format!("alertname: {alert}\n        exp_alerts:");
        assert!(ALERT_TESTS.contains(&fires), "{alert} has no test in which it fires");
    }
    // As rules, for that is what the tool reads.
    let rules = queries()
        .into_iter()
        .enumerate()
        .map(|(index, query)| format!("  - record: a:query_{index}\n    expr: {}\n", Value::from(query)));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("queries.yml");
    fs::write(&path, format!("groups:\n- name: dashboard\n  rules:\n{}", rules.collect::<String>())).unwrap();
    promtool(&["check", "rules", path.to_str().unwrap()], "");
}

#[test]
fn a_fleet_tells_what_it_does_and_whoever_watches_it_asks_for_nothing_else() {
    let place = Place::new();
    let tree = place.tree("tree", FILES);
    place.source("tree", "eu", &tree, &[]);
    place.source("gone", "eu", Path::new("/nowhere/at/all"), &[]);
    place.template("all", &["tree", "gone"]);
    let orchestrator = place.fleet.orchestrator("orchestrator", "eu", &FLAGS);
    let worker = place.fleet.worker("worker", "eu", &[&["--slots", "1"], &FLAGS[..]].concat());
    let (directs, works) = (address(&place, &orchestrator), address(&place, &worker));
    let job = place.job("all");
    place.wait_for_status(&job, "PARTIALLY_COMPLETED");
    let group = "domesday_group_tasks_pending{node_group=\"eu\"}";
    place.wait("a look at the node group", || samples(&scrape(&directs)).get(group) == Some(&0.0));
    // A worker counts what it has completed when the book has answered, which is when the job may be over.
    place.wait("a worker at rest", || {
        let text = scrape(&works);
        let told = samples(&text);
        told.get("domesday_objects_total") == Some(&(FILES as f64))
            && told.get("domesday_completions_waiting") == Some(&0.0)
    });
    let (directs, works) = (scrape(&directs), scrape(&works));
    for text in [&directs, &works] {
        promtool(&["check", "metrics"], text);
    }

    let told = samples(&works);
    let value = |name: &str| *told.get(name).unwrap_or_else(|| panic!("{name} is not in\n{works}"));
    assert_eq!(value("domesday_core_objects_completed_total"), FILES as f64);
    assert_eq!(value("domesday_core_objects_discovered_total"), FILES as f64);
    assert_eq!(value("domesday_findings_total"), FILES as f64);
    assert_eq!(value("domesday_core_scan_total"), value("domesday_core_fetch_sync_total"));
    assert_eq!(value("domesday_core_bytes_scanned_total"), value("domesday_bytes_total"));
    assert_eq!(value("domesday_core_objects_in_flight"), 0.0);
    for stage in ["list", "read", "scan", "commit"] {
        let of = format!("{{stage=\"{stage}\",kind=\"filesystem\"}}");
        assert!(value(&format!("domesday_stage_seconds_count{of}")) > 0.0, "{of}");
        assert!(value(&format!("domesday_stage_seconds_sum{of}")) > 0.0, "{of}");
    }
    for timed in ["claim_seconds_count{type=\"classify\"}", "commit_seconds_count{call=\"tasks\"}"] {
        assert!(value(&format!("domesday_{timed}")) > 0.0, "{timed}");
    }
    assert_eq!(value("domesday_lease_duration_seconds"), 3.0);
    let told = samples(&directs);
    assert!(told["domesday_commit_seconds_count{call=\"fan_out\"}"] > 0.0, "{directs}");
    assert!(told["domesday_claim_seconds_count{type=\"job\"}"] > 0.0, "{directs}");

    // Whoever watches asks for nothing that is not told.
    let declared: BTreeMap<&str, &str> = [&directs, &works]
        .into_iter()
        .flat_map(|text| text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')))
        .collect();
    let is_told = |name: &str| {
        let parts = ["_bucket", "_sum", "_count"].into_iter().filter_map(|part| name.strip_suffix(part));
        declared.get(name).is_some_and(|kind| *kind != "histogram")
            || parts.into_iter().any(|base| declared.get(base) == Some(&"histogram"))
    };
    for (file, text) in
        [("alerts.yml", ALERTS), ("alerts.test.yml", ALERT_TESTS), ("dashboard.json", &queries().join("\n"))]
    {
        let unknown: Vec<String> = named(text).into_iter().filter(|name| !is_told(name)).collect();
        assert_eq!(unknown, [""; 0], "{file} names what no process tells");
    }

    // The line says of itself which container it is about, and nothing of a job.
    let lines = log(&worker);
    let line = lines.iter().find(|line| line["message"] == "container not listed");
    let line = line.unwrap_or_else(|| panic!("{}", worker.log()));
    for id in ["job_id", "task_id", "worker_id", "session_id"] {
        assert!(line[id].as_str().is_some_and(|id| !id.is_empty()), "{id}: {line}");
    }
    assert_eq!((&line["kind"], &line["datasource"]), (&"filesystem".into(), &"gone".into()));
}
