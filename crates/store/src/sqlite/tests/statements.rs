//! SQL is reviewed as SQL, in files: each statement prepares, and each is used.

use super::super::queries::ALL;
use super::*;
use crate::queries::statements;

#[tokio::test]
async fn every_statement_prepares() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let refused = store
        .write("test", |c| {
            let all = ALL.into_iter().flat_map(statements);
            let refused =
                |(name, sql): (&str, &str)| c.prepare(sql).err().map(|error| format!("{name}: {error}"));
            Ok(all.filter_map(refused).collect::<Vec<_>>())
        })
        .await
        .unwrap();
    assert_eq!(refused, Vec::<String>::new());
}

#[test]
fn every_statement_is_used() {
    const SOURCES: [&str; 19] = [
        include_str!("../administering.rs"),
        include_str!("../base.rs"),
        include_str!("../checkpoints.rs"),
        include_str!("../composing.rs"),
        include_str!("../jobs.rs"),
        include_str!("../leasing.rs"),
        include_str!("../orchestrating.rs"),
        include_str!("../origins.rs"),
        include_str!("../prune.rs"),
        include_str!("../records.rs"),
        include_str!("../reporting.rs"),
        include_str!("../results.rs"),
        include_str!("../retry.rs"),
        include_str!("../shared.rs"),
        include_str!("../targets.rs"),
        include_str!("../tasks.rs"),
        include_str!("../templates.rs"),
        include_str!("../units.rs"),
        include_str!("../working.rs"),
    ];
    check_names(&ALL, &SOURCES);
}

/// What a plan may walk through from end to end: jobs, processes, sources, templates and firings, which are
/// few; results of running tasks, and running tasks by their own index; and what is not a table.
const WALKED: [&str; 24] = [
    "jobs",
    "jobs USING COVERING INDEX jobs_open",
    "j",
    "j USING COVERING INDEX sqlite_autoindex_jobs_1",
    "j USING INDEX jobs_open",
    "master_jobs USING COVERING INDEX master_jobs_by_request",
    "master_jobs USING INDEX master_jobs_by_time",
    "worker_sessions",
    "orchestrators",
    "w",
    "o",
    "d",
    "datasources USING INDEX sqlite_autoindex_datasources_1",
    "s",
    "f",
    "t USING INDEX tasks_running",
    "r USING INDEX tasks_running",
    "json_each VIRTUAL TABLE INDEX 1:",
    "l VIRTUAL TABLE INDEX 1:",
    "u VIRTUAL TABLE INDEX 1:",
    "t VIRTUAL TABLE INDEX 1:",
    "r VIRTUAL TABLE INDEX 1:",
    "CONSTANT ROW",
    "(subquery-1)",
];

/// Walks that are right where they are: through templates, through as many events as a limit says, through checkpoints
/// of objects, which few have, and through the targets of one job.
const RIGHT: [(&str, &str); 7] = [
    ("sweep_object_checkpoints", "SCAN c"),
    ("templates", "SCAN t"),
    ("due_templates", "SCAN t"),
    ("prune_old_events", "SCAN events"),
    ("prune_old_events", "SCAN e"),
    ("targets_of_job", "SCAN k"),
    ("targets_of_session", "SCAN k"),
];

#[tokio::test]
async fn no_statement_walks_through_what_grows_with_the_scan() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let plans = store
        .write("test", |c| {
            let mut plans = Vec::new();
            for (name, sql) in ALL.into_iter().flat_map(statements) {
                let mut explain = c.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
                let count = explain.parameter_count();
                let none = rusqlite::params_from_iter(std::iter::repeat_n(rusqlite::types::Null, count));
                let steps = explain.query_map(none, |row| row.get::<_, String>(3))?;
                plans.extend(steps.map(|step| (name, step.unwrap())));
            }
            Ok(plans)
        })
        .await
        .unwrap();
    let walks = |step: &str| step.strip_prefix("SCAN ").is_some_and(|walked| !WALKED.contains(&walked));
    let walking: Vec<_> =
        plans.iter().filter(|(name, step)| walks(step) && !RIGHT.contains(&(name, step.as_str()))).collect();
    assert_eq!(walking, Vec::<&(&str, String)>::new());
    // These run all the time; what is done already must cost them nothing.
    for (name, index) in [
        ("units_to_fan_out", "task_units_to_fan_out"),
        ("job_obstacles", "task_units_to_fan_out"),
        ("next_task", "tasks_pending"),
        ("pending_count", "tasks_pending"),
        ("abandoned_tasks", "tasks_running"),
    ] {
        assert!(plans.iter().any(|(of, step)| *of == name && step.contains(index)), "{name} without {index}");
    }
}
