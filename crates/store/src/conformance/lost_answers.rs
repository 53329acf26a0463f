//! The answer to COMMIT is lost: reading back tells what happened, and repeating does no harm.

use domesday_model::{JobStatus, MasterJobId, Retries, TaskType};

use super::book::*;
use super::cases;
use crate::error::StoreError;
use crate::types::*;

cases![
    a_completed_enumeration_is_read_back,
    a_completed_classification_is_read_back,
    many_completions_are_read_back_together,
    staging_a_unit_again_is_harmless,
    committing_units_again_is_harmless,
    committing_a_staged_unit_again_is_harmless,
    staging_results_again_is_harmless,
    submitting_again_is_harmless,
    fanning_out_again_is_harmless,
    lost_claims_of_tasks_come_back,
    an_ended_job_is_read_back,
];

fn unknown<T: std::fmt::Debug>(result: Result<T, StoreError>) {
    let error = result.expect_err("the answer is lost");
    assert!(matches!(error, StoreError::CommitUnknown(_)), "{error}");
    assert!(error.is_retryable());
}

async fn a_completed_enumeration_is_read_back(book: Book) {
    for committed in [true, false] {
        let running = book.running(job("a").group(&format!("{committed}"))).await;
        let claim = running.enumeration().await.claim;
        book.lose_answer("complete_enumeration", committed);
        unknown(book.store().complete_enumeration(&claim, Vec::new()).await);
        assert_eq!(book.is_done(&claim).await, committed);
        let again = book.store().complete_enumeration(&claim, Vec::new()).await;
        assert_eq!(again.is_ok(), !committed, "a claim completes its task once");
        assert!(book.is_done(&claim).await);
    }
}

async fn a_completed_classification_is_read_back(book: Book) {
    for committed in [true, false] {
        let running = book.running(job("a").group(&format!("{committed}"))).await;
        let claim = running.classify(&["f"]).await.claim;
        let results = findings(vec![finding("f", "r")]);
        book.lose_answer("complete_classifications", committed);
        unknown(book.complete(&claim, 0, results.clone()).await);
        assert_eq!(book.is_done(&claim).await, committed);
        let visible = book.occurrences(running.master, OccurrenceFilter::default()).await.len();
        assert_eq!(visible, usize::from(committed), "all or nothing");
        let again = book.complete(&claim, 0, results).await;
        assert_eq!(again.is_ok(), !committed);
        assert_eq!(book.occurrences(running.master, OccurrenceFilter::default()).await.len(), 1);
    }
}

/// The answer is lost for all of them, whatever each one's would have been.
async fn many_completions_are_read_back_together(book: Book) {
    for committed in [true, false] {
        let running = book.running(job("a").group(&format!("{committed}"))).await;
        let first = running.classify(&["f"]).await.claim;
        running.store().give_back(&first, GiveBack::Returned).await.unwrap();
        let second = running.classification().await.claim;
        let completions: Vec<_> =
            [first, second].iter().map(|claim| completion(claim, 0, ResultBatch::default())).collect();
        book.lose_answer("complete_classifications", committed);
        unknown(book.store().complete_classifications(completions.clone()).await);
        assert_eq!(book.store().are_done(&[first, second]).await.unwrap(), [false, committed]);
        let answers = book.store().complete_classifications(completions).await.unwrap();
        assert_eq!([answers[0].is_ok(), answers[1].is_ok()], [false, !committed]);
        assert_eq!(book.store().are_done(&[second, first]).await.unwrap(), [true, false]);
    }
}

async fn staging_a_unit_again_is_harmless(book: Book) {
    for committed in [true, false] {
        let running = book.running(job("a").group(&format!("{committed}"))).await;
        let claim = running.enumeration().await.claim;
        for (first, records) in [(0, files("f", 2)), (2, files("g", 3))] {
            book.lose_answer("stage_unit", committed);
            unknown(book.store().stage_unit(&claim, batch("", first, records.clone())).await);
            book.store().stage_unit(&claim, batch("", first, records)).await.unwrap();
        }
        let unit = book.store().task_units(&claim).await.unwrap()[0].clone();
        assert_eq!(unit.records, 5);
        book.store().commit_staged(&claim, unit.unit).await.unwrap();
        assert_eq!(book.store().summary(running.master).await.unwrap().objects_listed, 5);
    }
}

async fn committing_units_again_is_harmless(book: Book) {
    for committed in [true, false] {
        let running = book.running(job("a").group(&format!("{committed}"))).await;
        let claim = running.enumeration().await.claim;
        let units = vec![listed("u", files("f", 2)), listed("v", vec![])];
        book.lose_answer("commit_units", committed);
        unknown(book.store().commit_units(&claim, units.clone()).await);
        let summary = book.store().summary(running.master).await.unwrap();
        assert_eq!(summary.units, if committed { 2 } else { 0 });
        book.store().commit_units(&claim, units).await.unwrap();
        let summary = book.store().summary(running.master).await.unwrap();
        assert_eq!((summary.units, summary.objects_listed), (2, 2));
    }
}

async fn committing_a_staged_unit_again_is_harmless(book: Book) {
    for committed in [true, false] {
        let running = book.running(job("a").group(&format!("{committed}"))).await;
        let claim = running.enumeration().await.claim;
        let unit = book.store().stage_unit(&claim, batch("", 0, files("f", 2))).await.unwrap();
        book.lose_answer("commit_staged", committed);
        unknown(book.store().commit_staged(&claim, unit).await);
        book.store().commit_staged(&claim, unit).await.unwrap();
        assert_eq!(book.store().summary(running.master).await.unwrap().objects_listed, 2);
    }
}

async fn staging_results_again_is_harmless(book: Book) {
    for committed in [true, false] {
        let running = book.running(job("a").group(&format!("{committed}"))).await;
        let claim = running.classify(&["f"]).await.claim;
        let results = findings(vec![finding("f", "r"), finding("f", "s")]);
        book.lose_answer("stage_results", committed);
        unknown(book.store().stage_results(&claim, 0, results.clone()).await);
        book.store().stage_results(&claim, 0, results).await.unwrap();
        book.complete(&claim, 2, ResultBatch::default()).await.unwrap();
        assert_eq!(book.occurrences(running.master, OccurrenceFilter::default()).await.len(), 2);
    }
}

async fn submitting_again_is_harmless(book: Book) {
    for (count, committed) in [(1, true), (2, false)] {
        let request = job("a").build(MasterJobId(book.id()));
        book.lose_answer("submit", committed);
        unknown(book.store().submit(request.clone()).await);
        book.store().submit(request).await.unwrap();
        assert_eq!(book.store().master_jobs(10).await.unwrap().len(), count);
    }
}

async fn fanning_out_again_is_harmless(book: Book) {
    for committed in [true, false] {
        let running = book.running(job("a").group(&format!("{committed}"))).await;
        running.list(vec![listed("", vec![file("f")])]).await;
        book.lose_answer("fan_out", committed);
        unknown(book.store().fan_out(&running.lease, FLUSH).await);
        running.fan_out().await;
        running.classification().await;
        assert_eq!(
            running.claim_by(running.worker, TaskType::Classification).await,
            None,
            "one task, not two"
        );
    }
}

/// Tasks claimed by a worker that never heard of it: it lives, so only the deadline frees them.
async fn lost_claims_of_tasks_come_back(book: Book) {
    let running = book.running(job("a")).await;
    book.lose_answer("claim_tasks", true);
    unknown(book.store().claim_tasks(running.worker, GROUP, TaskType::DiscoveryEnumerate, 1).await);
    assert_eq!(running.claim_by(running.worker, TaskType::DiscoveryEnumerate).await, None);
    book.advance(DEADLINE);
    assert_eq!(book.store().reap_tasks(GROUP, DEADLINE).await.unwrap().returned, 1);
    let worker = book.worker().await;
    assert!(running.claim_by(worker, TaskType::DiscoveryEnumerate).await.is_some());
}

async fn an_ended_job_is_read_back(book: Book) {
    for committed in [true, false] {
        let running = book.running(job("a").group(&format!("{committed}"))).await;
        running.list(vec![listed("", vec![])]).await;
        book.lose_answer("complete_job", committed);
        unknown(book.store().complete_job(&running.lease, Retries::NONE).await);
        let status = book.status(running.master).await;
        assert_eq!(status, if committed { JobStatus::Completed } else { JobStatus::Running });
        match book.store().complete_job(&running.lease, Retries::NONE).await {
            Ok(ended) => assert_eq!((committed, ended), (false, Some(JobStatus::Completed))),
            Err(error) => assert!(committed && error.is_lost(), "{error}"),
        }
    }
}
