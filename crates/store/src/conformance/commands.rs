//! Pausing, resuming and cancelling, in every open state.

use domesday_model::{Command, JobStatus, TaskType};

use super::book::*;
use super::cases;
use crate::types::*;

cases![
    pause_waits_for_running_tasks,
    workers_are_told_which_of_their_jobs_stop,
    a_paused_job_is_resumed_as_a_queued_one,
    a_paused_jobs_tasks_are_not_claimed,
    cancel_ends_a_queued_job_without_an_owner,
    cancel_ends_a_running_job,
    cancel_ends_a_pausing_job,
    cancel_ends_a_paused_job,
    cancel_outranks_pause,
    a_command_appended_while_another_executes_is_not_lost,
    commands_appended_at_once_are_all_kept,
    a_queued_job_to_be_cancelled_is_not_claimed,
    a_pause_of_a_queued_job_waits_for_its_start,
    a_pause_that_an_owner_left_is_finished_by_the_next,
    commands_reach_every_child_job,
    a_finished_job_takes_no_commands,
    a_cancelled_job_gets_no_new_tasks,
];

async fn paused(book: &Book) -> Running {
    let mut running = book.running(job("a")).await;
    assert_eq!(running.execute(Command::Pause).await, JobStatus::Pausing);
    assert_eq!(book.store().settle_job(&running.lease).await.unwrap(), Some(JobStatus::Paused));
    running
}

/// Executes what is pending for a job that has no owner, and tells its status.
async fn unowned(book: &Book, running: &Running, command: Command) -> JobStatus {
    running.command(command).await;
    assert_eq!(book.store().execute_unowned_commands(GROUP).await.unwrap(), 1);
    assert_eq!(book.store().execute_unowned_commands(GROUP).await.unwrap(), 0);
    book.status(running.master).await
}

async fn pause_waits_for_running_tasks(book: Book) {
    let mut running = book.running(job("a")).await;
    let packet = running.enumeration().await;
    assert_eq!(running.execute(Command::Pause).await, JobStatus::Pausing);
    assert_eq!(book.store().settle_job(&running.lease).await.unwrap(), None);
    book.store().give_back(&packet.claim, GiveBack::Returned).await.unwrap();
    assert_eq!(book.store().settle_job(&running.lease).await.unwrap(), Some(JobStatus::Paused));
    assert_eq!(book.status(running.master).await, JobStatus::Paused);
    assert_eq!(book.store().renew_jobs(running.orchestrator, LEASE).await.unwrap(), []);
}

async fn workers_are_told_which_of_their_jobs_stop(book: Book) {
    let (mut paused, mut cancelled) = (book.running(job("a")).await, book.running(job("b")).await);
    let goes_on = book.running(job("c")).await;
    let all = vec![paused.lease.job, cancelled.lease.job, goes_on.lease.job];
    assert_eq!(book.store().stopping_jobs(all.clone()).await.unwrap(), []);
    assert_eq!(book.store().stopping_jobs(Vec::new()).await.unwrap(), []);
    paused.execute(Command::Pause).await;
    assert_eq!(book.store().stopping_jobs(all.clone()).await.unwrap(), [paused.lease.job]);
    cancelled.execute(Command::Cancel).await;
    book.store().settle_job(&cancelled.lease).await.unwrap();
    let stopping = [paused.lease.job, cancelled.lease.job];
    assert_eq!(book.store().stopping_jobs(all).await.unwrap(), stopping);
}

async fn a_paused_job_is_resumed_as_a_queued_one(book: Book) {
    let running = paused(&book).await;
    assert_eq!(unowned(&book, &running, Command::Resume).await, JobStatus::Queued);
    let orchestrator = book.orchestrator().await;
    let owned = book.claim_job(orchestrator).await.unwrap();
    assert_eq!(
        (owned.lease.job, owned.status, owned.pending),
        (running.lease.job, JobStatus::Running, vec![])
    );
    assert_eq!(book.store().start_sessions(&owned.lease).await.unwrap(), 0, "its session goes on");
    assert!(book.claim(running.worker, TaskType::DiscoveryEnumerate).await.is_some());
}

async fn a_paused_jobs_tasks_are_not_claimed(book: Book) {
    let running = paused(&book).await;
    assert_eq!(book.claim(running.worker, TaskType::DiscoveryEnumerate).await, None);
    let orchestrator = book.orchestrator().await;
    book.advance(LEASE);
    assert_eq!(book.claim_job(orchestrator).await, None, "a paused job waits for its user");
}

async fn cancel_ends_a_queued_job_without_an_owner(book: Book) {
    let master = book.submit(job("a")).await;
    book.store().append_command(master, Command::Cancel).await.unwrap();
    assert_eq!(book.store().execute_unowned_commands("elsewhere").await.unwrap(), 0);
    assert_eq!(book.store().execute_unowned_commands(GROUP).await.unwrap(), 1);
    let job = book.store().master_job(master).await.unwrap().unwrap();
    assert_eq!(job.status, JobStatus::Cancelled);
    assert!(job.finished_at_ms.is_some());
}

async fn cancel_ends_a_running_job(book: Book) {
    let mut running = book.running(job("a")).await;
    running.list(vec![listed("", vec![dir("d"), file("f")])]).await;
    running.fan_out().await;
    running.enumeration().await;
    assert_eq!(running.execute(Command::Cancel).await, JobStatus::Cancelling);
    assert_eq!(book.store().settle_job(&running.lease).await.unwrap(), Some(JobStatus::Cancelled));
    assert_eq!(book.store().summary(running.master).await.unwrap().tasks_open, 0);
    assert_eq!(book.claim(running.worker, TaskType::Classification).await, None);
}

async fn cancel_ends_a_pausing_job(book: Book) {
    let mut running = book.running(job("a")).await;
    running.enumeration().await;
    running.execute(Command::Pause).await;
    assert_eq!(running.execute(Command::Cancel).await, JobStatus::Cancelling);
    assert_eq!(book.store().settle_job(&running.lease).await.unwrap(), Some(JobStatus::Cancelled));
}

async fn cancel_ends_a_paused_job(book: Book) {
    let running = paused(&book).await;
    assert_eq!(unowned(&book, &running, Command::Cancel).await, JobStatus::Cancelled);
}

async fn cancel_outranks_pause(book: Book) {
    let mut running = book.running(job("a")).await;
    running.command(Command::Pause).await;
    assert_eq!(running.execute(Command::Cancel).await, JobStatus::Cancelling);
    assert_eq!(book.store().settle_job(&running.lease).await.unwrap(), Some(JobStatus::Cancelled));
}

async fn a_command_appended_while_another_executes_is_not_lost(book: Book) {
    let mut running = book.running(job("a")).await;
    running.command(Command::Pause).await;
    // The owner has read PAUSE; RESUME arrives before it executes anything.
    let read = book.store().renew_jobs(running.orchestrator, LEASE).await.unwrap();
    assert_eq!(read[0].pending, [Command::Pause]);
    assert_eq!(running.execute(Command::Resume).await, JobStatus::Pausing);
    assert_eq!(book.store().settle_job(&running.lease).await.unwrap(), Some(JobStatus::Paused));
    assert_eq!(book.store().execute_unowned_commands(GROUP).await.unwrap(), 1, "RESUME was kept");
    assert_eq!(book.status(running.master).await, JobStatus::Queued);
}

async fn commands_appended_at_once_are_all_kept(book: Book) {
    let running = book.running(job("a")).await;
    let mut appends = Vec::new();
    for _ in 0..20 {
        let (book, master) = (book.clone(), running.master);
        appends.push(tokio::spawn(async move {
            book.store().append_command(master, Command::Pause).await.unwrap()
        }));
    }
    for append in appends {
        append.await.unwrap();
    }
    let renewed = book.store().renew_jobs(running.orchestrator, LEASE).await.unwrap();
    assert_eq!(renewed[0].pending, [Command::Pause; 20]);
}

async fn a_queued_job_to_be_cancelled_is_not_claimed(book: Book) {
    let master = book.submit(job("a")).await;
    book.store().append_command(master, Command::Cancel).await.unwrap();
    let orchestrator = book.orchestrator().await;
    assert_eq!(book.claim_job(orchestrator).await, None);
}

async fn a_pause_of_a_queued_job_waits_for_its_start(book: Book) {
    let master = book.submit(job("a")).await;
    book.store().append_command(master, Command::Pause).await.unwrap();
    assert_eq!(book.store().execute_unowned_commands(GROUP).await.unwrap(), 0);
    let orchestrator = book.orchestrator().await;
    let owned = book.claim_job(orchestrator).await.unwrap();
    assert_eq!(owned.pending, [Command::Pause], "START is cleared by the claim, and nothing else");
    let executed = book.store().execute_commands(&owned.lease).await.unwrap().unwrap();
    assert_eq!((executed.status, executed.pending), (JobStatus::Pausing, vec![]));
    assert_eq!(book.store().execute_commands(&executed.lease).await.unwrap(), None);
}

async fn a_pause_that_an_owner_left_is_finished_by_the_next(book: Book) {
    let mut running = book.running(job("a")).await;
    running.enumeration().await;
    running.execute(Command::Pause).await;
    running.abandon().await;
    let other = book.orchestrator().await;
    let owned = book.claim_job(other).await.unwrap();
    assert_eq!(owned.status, JobStatus::Pausing, "taking over a job is not resuming it");
    assert_eq!(book.store().settle_job(&owned.lease).await.unwrap(), Some(JobStatus::Paused));
}

async fn commands_reach_every_child_job(book: Book) {
    let master = book.submit(job("a").source("b").group("east")).await;
    book.store().append_command(master, Command::Cancel).await.unwrap();
    for (group, status) in [(GROUP, JobStatus::Queued), ("east", JobStatus::Cancelled)] {
        assert_eq!(book.store().execute_unowned_commands(group).await.unwrap(), 1);
        assert_eq!(book.status(master).await, status);
    }
}

async fn a_finished_job_takes_no_commands(book: Book) {
    let running = book.running(job("a")).await;
    running.list(vec![listed("", vec![])]).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
    running.command(Command::Cancel).await;
    assert_eq!(book.store().execute_unowned_commands(GROUP).await.unwrap(), 0);
    assert_eq!(book.status(running.master).await, JobStatus::Completed);
}

async fn a_cancelled_job_gets_no_new_tasks(book: Book) {
    let mut running = book.running(job("a")).await;
    running.list(vec![listed("", vec![dir("d"), file("f")])]).await;
    running.execute(Command::Cancel).await;
    assert_eq!(running.fan_out().await, FanOutReport::default());
    assert_eq!(book.store().start_sessions(&running.lease).await.unwrap(), 0);
    assert_eq!(book.store().summary(running.master).await.unwrap().tasks_open, 0);
}
