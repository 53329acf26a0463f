//! Removing a large job in steps, each of which may be the last one for a while.

use std::time::Duration;

use domesday_model::JobStatus;

use super::*;

const RECORDS: usize = 200_000;
const UNITS: usize = 20;
/// Rows of a step, at most.
const STEP: u32 = 20_000;

/// What is left of the older job, by table; `$1` stands for its id.
const LEFT: &str = "SELECT (SELECT count(*) FROM task_output_records)
    + (SELECT count(*) FROM task_units WHERE job_id = 1) + (SELECT count(*) FROM tasks WHERE job_id = 1)
    + (SELECT count(*) FROM enumeration_batches b JOIN enumeration_sessions s ON s.id = b.session_id WHERE s.job_id = 1)
    + (SELECT count(*) FROM enumeration_sessions WHERE job_id = 1) + (SELECT count(*) FROM jobs WHERE id = 1)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_job_goes_in_steps_that_may_be_cut_short() {
    let database = Database::new();
    let store = database.open().await;
    let (lease, _, claim) = root(&store).await;
    for unit in 0..UNITS {
        let listing = listed(&format!("u{unit}"), files("f", RECORDS / UNITS));
        store.commit_units(&claim, vec![listing]).await.unwrap();
    }
    store.complete_enumeration(&claim, Vec::new()).await.unwrap();
    store.append_command(MASTER, domesday_model::Command::Cancel).await.unwrap();
    let cancelled = store.execute_commands(&lease).await.unwrap().unwrap();
    assert_eq!(store.settle_job(&cancelled.lease).await.unwrap(), Some(JobStatus::Cancelled));
    // As if it were long ago.
    database.psql("UPDATE jobs SET finished_at = 1; UPDATE master_jobs SET created_at = 1");
    drop(store);
    let before: u64 = database.psql(LEFT).parse().unwrap();
    assert!(before > RECORDS as u64);
    let (mut left, mut steps) = (before, 0);
    loop {
        // A process of its own each time, and one that is killed in the middle before it.
        let session = database.session().await;
        session.batch_execute("BEGIN; DELETE FROM task_output_records WHERE sequence < 100").await.unwrap();
        drop(session);
        let store = database.open().await;
        let step = store.prune(Duration::from_secs(3_600), STEP).await.unwrap();
        assert!(step.rows <= u64::from(STEP), "{step:?}");
        assert_eq!(store.master_jobs(10).await.unwrap(), [], "whoever looks sees nothing of it");
        assert_eq!(store.summary(MASTER).await.unwrap(), JobSummary::default());
        let now: u64 = database.psql(LEFT).parse().unwrap();
        // The master job itself is no part of what is counted here.
        assert!(left - now <= step.rows, "{left} to {now}: {step:?}");
        (left, steps) = (now, steps + 1);
        if step.done {
            break;
        }
        assert!(step.rows > 0, "each step does something");
    }
    assert_eq!((left, database.psql("SELECT count(*) FROM master_jobs").as_str()), (0, "0"));
    assert!(steps >= RECORDS / STEP as usize, "{steps}");
}
