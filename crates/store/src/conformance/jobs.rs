//! Submitting jobs, owning them, and losing them to another orchestrator.

use domesday_model::{Command, JobStatus, MasterJobId, Retries, RuleSetHash, TaskType};

use super::book::*;
use super::cases;
use crate::error::StoreError;
use crate::types::*;

cases![
    rule_sets_are_kept_under_their_hash,
    submitting_twice_is_one_job,
    a_child_job_per_node_group,
    unfinished_finds_the_same_request,
    a_job_is_unfinished_until_it_is_reported,
    master_jobs_come_newest_first,
    a_job_has_one_owner,
    many_claim_at_once_and_one_gets_the_job,
    jobs_are_claimed_oldest_first,
    an_expired_owner_is_replaced,
    a_released_owner_is_replaced_at_once,
    renewal_keeps_a_job_and_tells_what_is_pending,
    a_process_that_expired_cannot_renew,
    every_orchestrator_verb_is_fenced,
    a_job_survives_a_restart,
];

async fn rule_sets_are_kept_under_their_hash(book: Book) {
    let store = book.store();
    store.put_rule_set(RULES, "rules").await.unwrap();
    store.put_rule_set(RULES, "rules").await.unwrap();
    assert_eq!(store.rule_set(RULES).await.unwrap().as_deref(), Some("rules"));
    assert_eq!(store.rule_set(RuleSetHash([8; 16])).await.unwrap(), None);
}

async fn submitting_twice_is_one_job(book: Book) {
    let request = job("a").source("b").build(MasterJobId(book.id()));
    book.store().submit(request.clone()).await.unwrap();
    book.store().submit(request.clone()).await.unwrap();
    assert_eq!(book.store().master_jobs(10).await.unwrap().len(), 1);
    let orchestrator = book.orchestrator().await;
    assert_eq!(book.claim_job(orchestrator).await.unwrap().master_job, request.id);
    assert_eq!(book.claim_job(orchestrator).await, None);
}

async fn a_child_job_per_node_group(book: Book) {
    let master = book.submit(job("a").source("b").group("east").source("c").group("west").source("d")).await;
    let mut sources = Vec::new();
    for (group, names) in [(GROUP, vec!["a", "d"]), ("east", vec!["b"]), ("west", vec!["c"])] {
        let orchestrator = book.process(Role::Orchestrator, group).await;
        let owned = book.store().claim_job(orchestrator, group, LEASE).await.unwrap().unwrap();
        assert_eq!((owned.master_job, owned.status, owned.pending), (master, JobStatus::Running, vec![]));
        assert_eq!(book.store().start_sessions(&owned.lease).await.unwrap(), names.len() as u64);
        sources.extend(names);
        assert_eq!(book.store().claim_job(orchestrator, group, LEASE).await.unwrap(), None);
    }
    let mut known: Vec<String> =
        book.store().datasources(master).await.unwrap().into_iter().map(|source| source.name).collect();
    known.sort_unstable();
    sources.sort_unstable();
    assert_eq!(known, sources);
    assert_eq!(book.store().job_fingerprint_key(master).await.unwrap().as_deref(), Some(KEY));
    assert_eq!(book.store().job_fingerprint_key(MasterJobId([9; 16])).await.unwrap(), None);
}

async fn unfinished_finds_the_same_request(book: Book) {
    let first = book.submit(job("a").request(1)).await;
    let other = book.submit(job("a").request(2)).await;
    let store = book.store();
    assert_eq!(store.unfinished([1; 16]).await.unwrap().unwrap().id, first);
    assert_eq!(store.unfinished([2; 16]).await.unwrap().unwrap().id, other);
    assert_eq!(store.unfinished([3; 16]).await.unwrap(), None);
    store.append_command(first, Command::Cancel).await.unwrap();
    assert_eq!(store.unfinished([1; 16]).await.unwrap(), None, "nor one that is asked to be");
    assert_eq!(store.execute_unowned_commands(GROUP).await.unwrap(), 1);
    assert_eq!(store.unfinished([1; 16]).await.unwrap(), None, "a cancelled job is not taken up again");
    book.advance(LEASE);
    let newer = book.submit(job("a").request(2)).await;
    assert_eq!(store.unfinished([2; 16]).await.unwrap().unwrap().id, newer, "the newest of them");
}

async fn a_job_is_unfinished_until_it_is_reported(book: Book) {
    let running = book.running(job("a").request(1)).await;
    let packet = running.enumeration().await;
    let store = book.store();
    store.commit_units(&packet.claim, vec![listed("", vec![])]).await.unwrap();
    store.complete_enumeration(&packet.claim, Vec::new()).await.unwrap();
    assert_eq!(store.complete_job(&running.lease, Retries::NONE).await.unwrap(), Some(JobStatus::Completed));
    let unreported = store.unfinished([1; 16]).await.unwrap().unwrap();
    assert_eq!((unreported.id, unreported.status), (running.master, JobStatus::Completed));
    store.mark_reported(running.master).await.unwrap();
    store.mark_reported(running.master).await.unwrap();
    assert_eq!(store.unfinished([1; 16]).await.unwrap(), None);
}

async fn master_jobs_come_newest_first(book: Book) {
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(book.submit(job("a")).await);
        book.advance(LEASE);
    }
    ids.reverse();
    let listed = book.store().master_jobs(2).await.unwrap();
    assert_eq!(listed.iter().map(|job| job.id).collect::<Vec<_>>(), ids[..2]);
    assert_eq!(listed[0].status, JobStatus::Queued);
    assert_eq!((listed[0].description.as_str(), listed[0].finished_at_ms), ("a job", None));
    assert_eq!(book.store().master_job(MasterJobId([0xff; 16])).await.unwrap(), None);
}

async fn a_job_has_one_owner(book: Book) {
    book.submit(job("a")).await;
    let (first, second) = (book.orchestrator().await, book.orchestrator().await);
    assert!(book.claim_job(first).await.is_some());
    assert_eq!(book.claim_job(second).await, None);
    assert_eq!(book.store().renew_jobs(second, LEASE).await.unwrap(), []);
}

async fn many_claim_at_once_and_one_gets_the_job(book: Book) {
    const JOBS: usize = 5;
    for _ in 0..JOBS {
        book.submit(job("a")).await;
    }
    let mut claims = Vec::new();
    for _ in 0..4 * JOBS {
        let (book, orchestrator) = (book.clone(), book.orchestrator().await);
        claims.push(tokio::spawn(async move { book.claim_job(orchestrator).await }));
    }
    let mut jobs = Vec::new();
    for claim in claims {
        jobs.extend(claim.await.unwrap().map(|owned| owned.lease.job));
    }
    let claimed = jobs.len();
    jobs.sort_unstable();
    jobs.dedup();
    assert_eq!((claimed, jobs.len()), (JOBS, JOBS));
}

async fn jobs_are_claimed_oldest_first(book: Book) {
    let ids = [book.submit(job("a")).await, book.submit(job("b")).await];
    let orchestrator = book.orchestrator().await;
    for id in ids {
        assert_eq!(book.claim_job(orchestrator).await.unwrap().master_job, id);
    }
}

async fn an_expired_owner_is_replaced(book: Book) {
    book.submit(job("a")).await;
    let first = book.orchestrator().await;
    let before = book.claim_job(first).await.unwrap();
    book.advance(LEASE);
    assert_eq!(book.claim_job(first).await, None, "its own lease expired, too");
    let second = book.orchestrator().await;
    let after = book.claim_job(second).await.unwrap();
    assert_eq!((after.lease.job, after.status), (before.lease.job, JobStatus::Running));
    assert_ne!(after.lease.version, before.lease.version);
    assert_eq!(book.store().renew_jobs(first, LEASE).await.unwrap(), [], "what is lost is not renewed");
    assert_eq!(book.claim_job(first).await, None);
}

async fn a_released_owner_is_replaced_at_once(book: Book) {
    book.submit(job("a")).await;
    let (first, second) = (book.orchestrator().await, book.orchestrator().await);
    book.claim_job(first).await.unwrap();
    book.store().release(Role::Orchestrator, first).await.unwrap();
    assert!(book.claim_job(second).await.is_some());
    assert!(!book.store().renew(Role::Orchestrator, first, LEASE, Load::default()).await.unwrap());
}

async fn renewal_keeps_a_job_and_tells_what_is_pending(book: Book) {
    let running = book.running(job("a")).await;
    for _ in 0..3 {
        book.advance(LEASE / 2);
        let renewed = book.store().renew_jobs(running.orchestrator, LEASE).await.unwrap();
        assert_eq!(renewed.iter().map(|job| job.lease).collect::<Vec<_>>(), [running.lease]);
    }
    running.command(Command::Pause).await;
    let renewed = book.store().renew_jobs(running.orchestrator, LEASE).await.unwrap();
    assert_eq!(renewed[0].pending, [Command::Pause]);
    let other = book.orchestrator().await;
    assert_eq!(book.claim_job(other).await, None);
}

async fn a_process_that_expired_cannot_renew(book: Book) {
    for role in [Role::Worker, Role::Orchestrator] {
        let process = book.process(role, GROUP).await;
        book.advance(LEASE / 2);
        assert!(book.store().renew(role, process, LEASE, Load::default()).await.unwrap());
        book.advance(LEASE);
        assert!(!book.store().renew(role, process, LEASE, Load::default()).await.unwrap());
    }
}

/// One owner after the other: what the first may still ask for is refused, and nothing of it happens.
async fn every_orchestrator_verb_is_fenced(book: Book) {
    let running = book.running(job("a")).await;
    running.list(vec![listed("", vec![file("f")])]).await;
    running.command(Command::Pause).await;
    book.advance(LEASE);
    let other = book.orchestrator().await;
    let taken = book.claim_job(other).await.unwrap();
    let (store, stale) = (book.store(), &running.lease);
    let lost =
        |error: StoreError| assert!(matches!(error, StoreError::LostLease(id) if id == stale.job), "{error}");
    lost(store.execute_commands(stale).await.unwrap_err());
    lost(store.start_sessions(stale).await.unwrap_err());
    lost(store.fan_out(stale, FLUSH).await.unwrap_err());
    lost(store.complete_job(stale, Retries::NONE).await.unwrap_err());
    lost(store.settle_job(stale).await.unwrap_err());
    let renewed = store.renew_jobs(other, LEASE).await.unwrap();
    assert_eq!(renewed, [OwnedJob { pending: vec![Command::Pause], ..taken.clone() }]);
    assert_eq!(
        store.fan_out(&taken.lease, FLUSH).await.unwrap().tasks[TaskType::Classification],
        1,
        "still to be done"
    );
}

async fn a_job_survives_a_restart(book: Book) {
    let running = book.running(job("a")).await;
    running.list(vec![listed("", vec![file("f")])]).await;
    running.fan_out().await;
    let before = book.store().summary(running.master).await.unwrap();
    book.reopen().await;
    assert_eq!(book.store().summary(running.master).await.unwrap(), before);
    book.advance(LEASE);
    let orchestrator = book.orchestrator().await;
    assert_eq!(book.claim_job(orchestrator).await.unwrap().lease.job, running.lease.job);
    let worker = book.worker().await;
    let packet = book.claim(worker, TaskType::Classification).await.unwrap();
    let objects = book.store().packet_objects(&packet).await.unwrap();
    assert_eq!(objects.iter().map(|object| object.key.clone()).collect::<Vec<_>>(), [key("f")]);
}
