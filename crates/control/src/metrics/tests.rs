//! The text of the metrics: well formed, complete, and the one that the documentation has.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use domesday_model::{FingerprintKey, ProcessId, TaskType};
use domesday_scheduler::CoreConfig;
use domesday_store::Role;

use super::*;

/// Where the documentation has the table of all metrics, between these lines.
const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fleet/README.md");
const TABLE_BEGIN: &str = "<!-- metrics: written by a test -->\n";
const TABLE_END: &str = "<!-- end of metrics -->\n";

/// Metrics of a process with a scan core, in which something of everything was counted.
fn metrics() -> (Metrics, Arc<ScanCore>) {
    let core = Arc::new(ScanCore::new(CoreConfig::for_threads(1), FingerprintKey::new([1; 32])).unwrap());
    let metrics = Metrics::default();
    metrics.watch_core(Arc::downgrade(&core));
    let process = Process::new(ProcessId([0; 16]), Role::Worker, "a \"quoted\" group");
    metrics.begin(&process, Duration::from_secs(30));
    metrics.lease_renewed();
    metrics.tasks_claimed[TaskType::Classification].add(3);
    metrics.reaped(&ReapReport { returned: 1, split: 2, poisoned: 4 });
    let kind = metrics.kinds.slot("git");
    metrics.stage(Stage::List, kind).observe(Duration::from_millis(30));
    metrics.stage(Stage::List, kind).observe(Duration::from_secs(100));
    metrics.source_waits(kind, Duration::from_millis(1_500));
    metrics.job_claims.observe(Duration::from_micros(20));
    metrics.saw_group(GroupState { node_group: "eu".into(), tasks_pending: 12, ..GroupState::default() });
    (metrics, core)
}

/// The families in the order of the text: name, type, help, labels.
fn families(text: &str) -> Vec<(String, String, String, Vec<String>)> {
    let mut families: Vec<(String, String, String, Vec<String>)> = Vec::new();
    for line in text.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            families.push((name.into(), String::new(), help.into(), Vec::new()));
        } else if let Some((_, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            families.last_mut().unwrap().1 = kind.into();
        } else if let Some((_, rest)) = line.split_once('{') {
            let (labels, _) = rest.rsplit_once('}').unwrap();
            let labels = labels.split("\",").map(|label| label.split('=').next().unwrap().to_owned());
            families.last_mut().unwrap().3 = labels.filter(|label| label != "le").collect();
        }
    }
    families
}

#[test]
fn every_family_is_declared_once_and_every_sample_belongs_to_one() {
    let (metrics, _core) = metrics();
    let text = metrics.exposition();
    assert!(text.ends_with('\n'));
    let (mut declared, mut told) = (HashMap::new(), HashSet::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(name.starts_with("domesday_"), "{line}");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
            assert_eq!(declared.insert(name.to_owned(), kind.to_owned()), None, "{line}");
        } else if !line.starts_with('#') {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            let name = sample.split('{').next().unwrap();
            let parts = ["_bucket", "_sum", "_count"].into_iter();
            let base = parts
                .filter_map(|part| name.strip_suffix(part))
                .find(|base| declared.get(*base).is_some_and(|kind| kind == "histogram"));
            let family = base.unwrap_or(name);
            assert!(declared.contains_key(family), "{line}");
            told.insert(family.to_owned());
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
    assert_eq!(told.len(), declared.len(), "a family without a sample");
    for line in [
        "domesday_tasks_claimed_total{type=\"classify\"} 3",
        "domesday_tasks_reaped_total{outcome=\"poisoned\"} 4",
        "domesday_process_info{role=\"worker\",node_group=\"a \\\"quoted\\\" group\",version=\"\"} 1",
        "domesday_group_tasks_pending{node_group=\"eu\"} 12",
        "domesday_source_waits_total{kind=\"git\"} 1",
        "domesday_source_wait_seconds_total{kind=\"git\"} 1.500000",
        "domesday_stage_seconds_bucket{stage=\"list\",kind=\"git\",le=\"0.025\"} 0",
        "domesday_stage_seconds_bucket{stage=\"list\",kind=\"git\",le=\"0.1\"} 1",
        "domesday_stage_seconds_bucket{stage=\"list\",kind=\"git\",le=\"60\"} 1",
        "domesday_stage_seconds_bucket{stage=\"list\",kind=\"git\",le=\"+Inf\"} 2",
        "domesday_stage_seconds_sum{stage=\"list\",kind=\"git\"} 100.030000",
        "domesday_stage_seconds_count{stage=\"list\",kind=\"git\"} 2",
        "domesday_claim_seconds_count{type=\"job\"} 1",
        "domesday_core_objects_capacity 64",
    ] {
        assert!(text.lines().any(|told| told == line), "{line} is not in\n{text}");
    }
}

#[test]
fn the_documentation_lists_every_metric() {
    let (metrics, _core) = metrics();
    let rows = families(&metrics.exposition()).into_iter().map(|(name, kind, help, labels)| {
        let unit = match &name {
            name if name.contains("_seconds") => "seconds",
            name if name.contains("_bytes") => "bytes",
            name if name.ends_with("_held") || name.ends_with("_info") => "0 or 1",
            _ => "count",
        };
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        format!("| `{name}` | {kind} | {} | {unit} | {help} |\n", labels.join(", "))
    });
    let head = "| metric | type | labels | unit | meaning |\n|---|---|---|---|---|\n";
    let table = format!("{head}{}", rows.collect::<String>());
    let page = std::fs::read_to_string(Path::new(REFERENCE)).unwrap();
    let (before, rest) = page.split_once(TABLE_BEGIN).expect("the page has a place for the table");
    let (found, after) = rest.split_once(TABLE_END).expect("the table has an end");
    if found != table && std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(REFERENCE, format!("{before}{TABLE_BEGIN}{table}{TABLE_END}{after}")).unwrap();
        return;
    }
    assert_eq!(
        found, table,
        "stale: run `UPDATE_SNAPSHOTS=1 cargo test -p domesday-control metrics` and commit it"
    );
}

#[test]
fn a_process_is_ready_while_it_holds_its_lease() {
    let metrics = Metrics::default();
    let process = Process::new(ProcessId([0; 16]), Role::Worker, "eu");
    assert!(!metrics.is_ready());
    metrics.begin(&process, Duration::from_secs(30));
    metrics.lease_renewed();
    assert!(metrics.is_ready());
    metrics.begin(&process, Duration::ZERO);
    assert!(!metrics.is_ready(), "renewed too long ago");
    metrics.begin(&process, Duration::from_secs(30));
    metrics.lease_lost();
    assert!(!metrics.is_ready());
    assert!(metrics.exposition().contains("domesday_lease_held 0\n"));
}
