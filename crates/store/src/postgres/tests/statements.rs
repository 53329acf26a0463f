//! SQL is reviewed as SQL, in files: each statement prepares, and each is used.

use super::*;
use crate::statement::statements;

const FILES: [&str; 4] = [jobs::FILE, jobs::ENUMERATION, tasks::FILE, results::FILE];

#[tokio::test]
async fn every_statement_prepares() {
    let database = Database::new();
    drop(database.open().await);
    let session = database.session().await;
    let mut refused = Vec::new();
    for (name, sql) in FILES.into_iter().flat_map(statements) {
        // There is nothing to fetch from before the cursor is declared.
        if let Err(error) = session.prepare(sql).await
            && name != "fetch_occurrences"
        {
            refused.push(format!("{name}: {}", store_error(&error)));
        }
    }
    assert_eq!(refused, Vec::<String>::new());
}

#[test]
fn every_statement_is_used() {
    const SOURCES: [&str; 5] = [
        include_str!("../jobs.rs"),
        include_str!("../reports.rs"),
        include_str!("../results.rs"),
        include_str!("../tasks.rs"),
        include_str!("../units.rs"),
    ];
    check_names(&FILES, &SOURCES);
}

/// A book with a long past: many jobs, and most of what they did is done.
const LONG_PAST: &str = "
    INSERT INTO datasources (name, kind, node_group, configuration, created_at)
        SELECT n, 'filesystem', 'main', '{}', 0 FROM generate_series(1, 20) n;
    INSERT INTO master_jobs SELECT n::text::bytea, '', '', n FROM generate_series(1, 2000) n;
    INSERT INTO jobs (master_job_id, node_group, status, master_pending_commands, configuration, created_at)
        SELECT n::text::bytea, 'main', CASE WHEN n > 1990 THEN 'RUNNING' ELSE 'COMPLETED' END, '[]', '{}', 0
        FROM generate_series(1, 2000) n;
    UPDATE jobs SET orchestrator_id = id::text::bytea WHERE status = 'RUNNING';
    INSERT INTO enumeration_sessions
        (job_id, datasource_id, source_type, status, configuration, started_at, last_update)
        SELECT n, 1 + n % 20, '', CASE WHEN n > 1990 THEN 'IN_PROGRESS' ELSE 'COMPLETED' END, '{}', 0, 0
        FROM generate_series(1, 2000) n;
    INSERT INTO tasks (job_id, datasource_id, session_id, type, status, payload, created_at)
        SELECT 1 + n % 2000, 1 + (1 + n % 2000) % 20, 1 + n % 2000,
               CASE WHEN n % 3 = 0 THEN 'DISCOVERY_ENUMERATE' ELSE 'CLASSIFICATION' END,
               CASE WHEN n % 2000 < 1990 THEN 'COMPLETED' WHEN n % 2 = 0 THEN 'PENDING' ELSE 'RUNNING' END, '{}', 0
        FROM generate_series(1, 40000) n;
    INSERT INTO task_units (task_id, job_id, session_id, key, status, fanned_out)
        SELECT n, 1 + n % 2000, 1 + n % 2000, n::text::bytea, 'COMMITTED', CASE WHEN n % 2000 < 1990 THEN 3 ELSE 0 END
        FROM generate_series(1, 40000) n;
    INSERT INTO enumeration_batches (session_id, status, expected_items, items_processed, started_at)
        SELECT 1 + n % 2000, 'SUCCEEDED', 1, 1, 0 FROM generate_series(1, 40000) n;
    INSERT INTO events (job_id, kind, payload, created_at, position)
        SELECT 1, '', '{}', 0, CASE WHEN n < 39900 THEN n END FROM generate_series(1, 40000) n;
    ANALYZE";

/// Statements that run all the time, and the indexes without which they would walk through what is done
/// already.
#[tokio::test]
async fn what_runs_all_the_time_walks_through_nothing_that_grows() {
    let database = Database::new();
    drop(database.open().await);
    let session = database.session().await;
    session.batch_execute(LONG_PAST).await.unwrap();
    session.batch_execute("SET plan_cache_mode = force_generic_plan").await.unwrap();
    for (name, parameters, indexes) in [
        ("fence", "1, 1", &["tasks_pkey"][..]),
        ("claim_tasks", "'', '', '', 1, 1", &["tasks_pending", "tasks_running", "jobs_open"]),
        ("abandoned_tasks", "'', 1, 1", &["tasks_running", "jobs_open"]),
        ("pending_counts", "1, 1", &["tasks_pending"]),
        ("units_to_fan_out", "1, 1", &["task_units_to_fan_out"]),
        (
            "job_obstacles",
            "1",
            &["task_units_to_fan_out", "task_units_staging", "tasks_pending", "tasks_running"],
        ),
        ("renew_jobs", "'', 1", &["jobs_owned"]),
        ("next_events", "'', 1", &["events_by_position"]),
        ("number_events", "1", &["events_without_position"]),
        ("stall_sessions", "'', 1", &["jobs_open", "enumeration_batches_by_session"]),
    ] {
        let (_, sql) = FILES.into_iter().flat_map(statements).find(|(known, _)| *known == name).unwrap();
        session.batch_execute(&format!("PREPARE {name} AS {sql}")).await.unwrap();
        let rows = session.simple_query(&format!("EXPLAIN EXECUTE {name} ({parameters})")).await.unwrap();
        let lines = rows.iter().filter_map(|row| match row {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        let plan = lines.collect::<Vec<_>>().join("\n");
        for index in indexes {
            assert!(plan.contains(index), "{name} without {index}:\n{plan}");
        }
        for grows in ["tasks", "task_units", "task_output_records", "events", "enumeration_batches"] {
            assert!(!plan.contains(&format!("Seq Scan on {grows} ")), "{name} walks:\n{plan}");
        }
    }
}
