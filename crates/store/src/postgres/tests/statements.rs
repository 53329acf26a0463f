//! SQL is reviewed as SQL, in files: each statement prepares, and each is used.

use super::queries::ALL;
use super::roles::ROLES;
use super::*;
use crate::queries::statements;

#[tokio::test]
async fn every_statement_prepares() {
    let database = Database::new();
    drop(database.open().await);
    let session = database.session().await;
    let mut refused = Vec::new();
    for (name, sql) in ALL.into_iter().chain([queries::LOGINS]).flat_map(statements) {
        // There is nothing to fetch from before the cursor is declared.
        if let Err(error) = session.prepare(sql).await
            && name != "fetch_occurrences"
        {
            refused.push(format!("{name}: {}", store_error(&error)));
        }
    }
    assert_eq!(refused, Vec::<String>::new());
}

/// In the middle of one that does, the server keeps what is locked for as long as its process is suspended: no time
/// limit of a session ends that.
#[test]
fn no_statement_waits_for_rows() {
    let waits = ALL.into_iter().flat_map(statements).filter(|(_, sql)| sql.contains("FROM STDIN"));
    assert_eq!(waits.map(|(name, _)| name).collect::<Vec<_>>(), Vec::<&str>::new());
}

#[test]
fn every_statement_is_used() {
    const SOURCES: [&str; 20] = [
        include_str!("../administering.rs"),
        include_str!("../base.rs"),
        include_str!("../checkpoints.rs"),
        include_str!("../composing.rs"),
        include_str!("../jobs.rs"),
        include_str!("../leasing.rs"),
        include_str!("../logins.rs"),
        include_str!("../occurrences.rs"),
        include_str!("../orchestrating.rs"),
        include_str!("../origins.rs"),
        include_str!("../prune.rs"),
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
    check_names(&[&ALL[..], &[queries::LOGINS]].concat(), &SOURCES);
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

#[tokio::test]
async fn what_runs_all_the_time_walks_through_nothing_that_grows() {
    check_plans(LONG_PAST, None).await;
}

/// An idle fleet plans its statements, and keeps the plans for when there is work.
#[tokio::test]
async fn plans_made_for_an_empty_book_are_right_for_a_full_one() {
    check_plans("VACUUM ANALYZE", None).await;
}

/// What workers do all the time.
const OF_WORKERS: [&str; 20] = [
    "fence",
    "renew_progress",
    "complete_classifications",
    "tasks_done_under_claims",
    "packet_records",
    "prior_records",
    "prior_outcomes",
    "prior_objects",
    "prior_findings",
    "prior_tables",
    "publish_findings",
    "publish_tables",
    "insert_units",
    "open_units",
    "last_pages",
    "staging_units",
    "listed_names",
    "fail_open_pages_of_task",
    "claim_tasks",
    "insert_untraced",
];
const OF_ORCHESTRATORS: [&str; 9] = [
    "abandon_tasks",
    "pending_counts",
    "units_to_fan_out",
    "mark_fanned_out",
    "job_obstacles",
    "sessions_to_trace",
    "renew_jobs",
    "stall_sessions",
    "last_pages",
];

/// Row-level security keeps an index from being used for what could tell of hidden rows: no such statement is left.
#[tokio::test]
async fn logins_that_are_bound_to_node_groups_have_the_same_plans() {
    for fill in [LONG_PAST, "VACUUM ANALYZE"] {
        check_plans(fill, Some(("domesday_worker", &OF_WORKERS))).await;
        check_plans(fill, Some(("domesday_orchestrator", &OF_ORCHESTRATORS))).await;
    }
}

/// The functions that look up by key read the rows that they are asked for, as any of their callers.
#[tokio::test]
async fn lookups_by_key_walk_through_nothing() {
    let database = Database::new();
    drop(database.open().await);
    database.psql(ROLES);
    database.psql(LONG_PAST);
    database.psql(
        "INSERT INTO object_scans (job_id, task_id, sequence, object_key, nested_path, status, detail, overflow)
             SELECT 1 + n % 2, n, 0, n::text::bytea, '', '', '', 0 FROM generate_series(1, 40000) n;
         INSERT INTO object_origins SELECT 2, n::text::bytea, NULL, 'c', '', 0, false FROM generate_series(1, 40000) n;
         INSERT INTO untraced_objects SELECT 1, n::text::bytea FROM generate_series(1, 40000) n;
         ANALYZE;
         SELECT grant_login('domesday_worker', 'domesday_worker', '{main}')",
    );
    for (table, call, answer) in [
        ("task_units", "unit_at(2000, '2000', 0)", "2000"),
        ("task_units", "last_unit(2000, '2000')", "2000"),
        ("task_units", "(SELECT count(*) FROM units_of_session(1, 1, '{2000}'))", "0"),
        ("object_scans", "(SELECT count(*) FROM scans_of_objects(1, '{2000}'))", "1"),
        ("object_scans", "has_scan(1, 2000, '2000')", "t"),
        ("object_origins", "has_origin(1, 2, '2000')", "t"),
        ("untraced_objects", "(SELECT count(*) FROM delete_untraced(1, '{2000}'))", "1"),
        ("tasks", "running_tasks_of_job(1995) < 21", "t"),
    ] {
        for role in ["postgres", "domesday_worker"] {
            let read = database.psql(&format!(
                "BEGIN; SET LOCAL ROLE {role}; {} ; SELECT {call}; RESET ROLE;
                 SELECT CASE WHEN seq_tup_read + coalesce(idx_tup_fetch, 0) < 30 THEN 'few'
                             ELSE seq_tup_read || ' and ' || idx_tup_fetch END
                 FROM pg_stat_xact_user_tables WHERE relname = '{table}'; ROLLBACK",
                session_settings().replace("SET ", "SET LOCAL ")
            ));
            assert_eq!(read, format!("{answer}\nfew"), "{call} as {role}");
        }
    }
}

const GROWS: [&str; 10] = [
    "tasks",
    "task_units",
    "task_output_records",
    "events",
    "enumeration_batches",
    "untraced_objects",
    "object_origins",
    "object_scans",
    "finding_occurrences",
    "table_observations",
];

/// Statements that run all the time, and the indexes without which they would walk through what is done
/// already.
async fn check_plans(fill: &str, bound: Option<(&str, &[&str])>) {
    let database = Database::new();
    drop(database.open().await);
    let session = database.session().await;
    session.batch_execute(fill).await.unwrap();
    if let Some((role, _)) = bound {
        database.psql(ROLES);
        database.psql(&format!("SELECT grant_login('{role}', '{role}', '{{main}}')"));
        session.batch_execute(&format!("SET ROLE {role}")).await.unwrap();
    }
    session.batch_execute(session_settings()).await.unwrap();
    session.batch_execute("SET plan_cache_mode = force_generic_plan").await.unwrap();
    let claims = "'{}', '{}', '{}', '{}', '{}', '{}'";
    let arrays = |count| vec!["'{}'"; count].join(", ");
    let (publish, units) = (arrays(24), format!("1, {}", arrays(14)));
    for (name, parameters, indexes) in [
        ("fence", "1, 1", &["tasks_pkey"][..]),
        ("complete_classifications", claims, &["tasks_pkey", "jobs_pkey"]),
        ("tasks_done_under_claims", "'{}', '{}'", &["tasks_pkey"]),
        ("abandon_tasks", "'{}', '{}', '{}'", &["tasks_pkey"]),
        ("packet_records", "'{}', '{}', '{}', '{0,4}'", &["task_units_pkey", "task_output_records_pkey"]),
        ("prior_records", "1, 1, '{}', 0, 0, 0, 1", &["task_output_records_pkey"]),
        ("prior_outcomes", "1, 1, '{}'", &["object_scans_pkey", "tasks_pkey"]),
        ("prior_objects", "1, 1, '{}'", &["object_scans_pkey", "tasks_pkey"]),
        ("prior_findings", "1, '{}', '{}'", &["finding_occurrences_pkey", "findings_pkey"]),
        ("prior_tables", "1, '{}', '{}'", &["table_observations_pkey"]),
        ("table_observations", "1, 1, '', '', '', 1", &["table_observations_by_table"]),
        ("publish_findings", &publish, &["staged_findings_pkey"]),
        ("publish_tables", &arrays(13), &["staged_tables_pkey"]),
        ("insert_units", &units, &["tasks_pkey", "task_units_pkey"]),
        ("open_units", "1", &["task_units_by_key"]),
        ("last_pages", "1, '{}'", &["tasks_pkey", "task_units_pkey"]),
        ("staging_units", "1, '{}'", &["tasks_pkey", "task_units_pkey"]),
        ("listed_names", "1, '', 0, 1", &["tasks_pkey", "task_output_records_pkey"]),
        ("fail_open_pages_of_task", "1, ''", &["task_units_by_key"]),
        ("claim_tasks", "'', '', '', 1, 1", &["tasks_pkey", "tasks_pending", "jobs_open"]),
        ("abandoned_tasks", "'', 1, 1", &["tasks_running", "jobs_open"]),
        ("pending_counts", "1, 1, '{}'", &["tasks_pending"]),
        ("units_to_fan_out", "1, 1", &["task_units_to_fan_out"]),
        ("mark_fanned_out", "'{}', '{}'", &["task_units_pkey"]),
        (
            "job_obstacles",
            "1, ''",
            &["task_units_to_fan_out", "task_units_staging", "tasks_pending", "tasks_running"],
        ),
        (
            "sessions_to_trace",
            "1, ''",
            &[
                "untraced_objects_by_key",
                "task_units_to_fan_out",
                "task_units_staging",
                "tasks_pending",
                "tasks_running",
            ],
        ),
        ("insert_untraced", "'{}', '{}'", &["tasks_pkey"]),
        ("renew_jobs", "'', 1", &["jobs_owned"]),
        ("next_events", "'', 1", &["events_by_position"]),
        ("number_events", "1", &["events_without_position"]),
        ("stall_sessions", "'', 1", &["jobs_open", "enumeration_batches_by_session"]),
    ] {
        if bound.is_some_and(|(_, names)| !names.contains(&name)) {
            continue;
        }
        let (_, sql) = ALL.into_iter().flat_map(statements).find(|(known, _)| *known == name).unwrap();
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
        for grows in GROWS {
            assert!(!plan.contains(&format!("Seq Scan on {grows} ")), "{name} walks:\n{plan}");
        }
        assert!(!plan.contains("tasks_by_job"), "{name} walks through a job:\n{plan}");
        // Through an index of all rows without a condition is a walk, too.
        let lines: Vec<_> = plan.lines().collect();
        let of_all = |line: &str| line.contains("_pkey on ") || line.contains("_by_key on ");
        for pair in lines.windows(2).filter(|pair| of_all(pair[0])) {
            let walks = GROWS.iter().any(|grows| pair[0].contains(&format!(" on {grows} ")));
            assert!(!walks || pair[1].contains("Index Cond"), "{name} walks:\n{plan}");
        }
    }
}

/// A large backlog of a source that asks for a label: claims of workers with and without it, as they are run.
const LABELLED_BACKLOG: &str = "
    INSERT INTO datasources (name, kind, node_group, worker_label, configuration, created_at)
        VALUES ('far', 'filesystem', 'main', 'host=nas1', '{}', 0);
    INSERT INTO master_jobs (id, request_key, description, created_at) VALUES ('\\x01', '', '', 0);
    INSERT INTO jobs (master_job_id, node_group, status, fingerprint_key, master_pending_commands, configuration, created_at)
        VALUES ('\\x01', 'main', 'RUNNING', 'k', '[]', '{}', 0);
    INSERT INTO enumeration_sessions (job_id, datasource_id, source_type, status, configuration, started_at, last_update)
        VALUES (1, 1, '', 'IN_PROGRESS', '{}', 0, 0);
    INSERT INTO tasks (job_id, datasource_id, session_id, type, status, payload, created_at)
        SELECT 1, 1, 1, 'CLASSIFICATION', 'PENDING', '{}', 0 FROM generate_series(1, 50000);
    INSERT INTO worker_sessions (id, node_group, started_at, lease_expiry, labels, fingerprint_key) VALUES
        ('\\x01', 'main', 0, 9e15, '{}', 'k'), ('\\x02', 'main', 0, 9e15, '{host=nas1}', 'k'),
        ('\\x03', 'main', 0, 9e15, '{host=nas1}', 'other');
    ANALYZE";

#[tokio::test]
async fn a_claim_does_not_look_at_a_backlog_it_may_not_take_from() {
    let database = Database::new();
    drop(database.open().await);
    let session = database.session().await;
    session.batch_execute(LABELLED_BACKLOG).await.unwrap();
    session.batch_execute("SET plan_cache_mode = force_generic_plan").await.unwrap();
    let (_, sql) = statements(queries::TASKS).into_iter().find(|(name, _)| *name == "claim_tasks").unwrap();
    session.batch_execute(&format!("PREPARE claim AS {sql}")).await.unwrap();
    // Without the label, with it, and with another key.
    for (worker, may) in [("\\x01", false), ("\\x02", true), ("\\x03", false)] {
        let explain = format!(
            "EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) EXECUTE claim ('{worker}', 'main', 'CLASSIFICATION', 1, 16)"
        );
        session.batch_execute("BEGIN").await.unwrap();
        let rows = session.simple_query(&explain).await.unwrap();
        session.batch_execute("ROLLBACK").await.unwrap();
        let tokio_postgres::SimpleQueryMessage::Row(row) = &rows[1] else { panic!("{rows:?}") };
        let plan: serde_json::Value = serde_json::from_str(row.get(0).unwrap()).unwrap();
        let looked_at = scanned(&plan[0]["Plan"], "tasks");
        assert_eq!(looked_at > 0, may, "worker {worker} looked at {looked_at} tasks:\n{plan:#}");
    }
}

/// Rows that a plan read of a table, filtered ones included.
fn scanned(plan: &serde_json::Value, table: &str) -> u64 {
    let number = |name: &str| plan[name].as_f64().unwrap_or(0.0);
    let read = number("Actual Rows") + number("Rows Removed by Filter");
    let mine = if plan["Relation Name"] == table && plan["Node Type"] != "ModifyTable" {
        read * number("Actual Loops")
    } else {
        0.0
    };
    let below = plan["Plans"].as_array().into_iter().flatten().map(|below| scanned(below, table));
    mine as u64 + below.sum::<u64>()
}
