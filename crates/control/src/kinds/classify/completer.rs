//! Completes tasks together: whatever ended while the last call was under way goes with the next one. Far
//! from the book one call may carry dozens; near it, one at a time is as fast, and nobody waits for others.
//!
//! Crash argument: the verb completes each task for itself, all in one transaction. When its answer is lost,
//! each claim is read back before anything is repeated; a done row with this very claim is done.

use std::sync::Arc;
use std::time::Duration;

use domesday_store::{Claim, Completion, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::metrics::CommitCall;
use crate::outage::Outage;
use crate::worker::session::Session;

/// Tasks completed by one call, at most.
const TASKS_MAX: usize = 128;
/// Results that go with one call, at most, beyond those of its last task.
const RESULTS_MAX: usize = 10_000;
/// Calls under way at once, at most.
const CALLS_MAX: usize = 4;
/// A call that takes longer than this is on its way, not at work: the next may follow it.
const CALL_GAP: Duration = Duration::from_millis(25);
/// Completions that wait; beyond that packets wait to hand theirs over.
const WAITING_MAX: usize = 256;

type Answer = Result<(), StoreError>;
pub(super) type Request = (Completion, oneshot::Sender<Answer>);

/// Where packets hand in what they have done.
#[derive(Clone)]
pub(super) struct Completer(mpsc::Sender<Request>);

impl Completer {
    pub fn new() -> (Completer, mpsc::Receiver<Request>) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        (Completer(sender), receiver)
    }

    /// Completes a task, with whatever others are waiting to be completed.
    pub async fn complete(&self, completion: Completion) -> Answer {
        let (answer, answered) = oneshot::channel();
        self.0.send((completion, answer)).await.map_err(|_| StoreError::Stopped)?;
        answered.await.unwrap_or(Err(StoreError::Stopped))
    }
}

/// Completes what is handed in, for as long as it is polled. The next call waits for the last one, unless that
/// takes so long that it must be on its way.
pub(super) async fn completing(session: &Arc<Session>, requests: &mut mpsc::Receiver<Request>) {
    let (mut calls, mut last_begun) = (JoinSet::new(), Instant::now());
    loop {
        let is_first = calls.is_empty();
        let may_begin = async {
            if !is_first {
                sleep_until(last_begun + CALL_GAP).await;
            }
            requests.recv().await
        };
        let first = tokio::select! {
            first = may_begin, if calls.len() < CALLS_MAX => match first {
                Some(first) => first,
                None => break,
            },
            Some(_) = calls.join_next() => continue,
        };
        let mut results = first.0.batch.len();
        let mut group = vec![first];
        while group.len() < TASKS_MAX && results < RESULTS_MAX {
            let Ok(next) = requests.try_recv() else { break };
            results += next.0.batch.len();
            group.push(next);
        }
        let session = Arc::clone(session);
        calls.spawn(async move { complete(&session, group).await });
        last_begun = Instant::now();
    }
    while calls.join_next().await.is_some() {}
}

/// Every request is answered: done, refused, or that the book did not answer for too long.
async fn complete(session: &Session, mut group: Vec<Request>) {
    let (begun, mut outage) = (Instant::now(), Outage::default());
    loop {
        let completions: Vec<Completion> = group.iter().map(|(completion, _)| completion.clone()).collect();
        let call = session.store().complete_classifications(completions);
        let commits = session.worker.metrics.commits(CommitCall::Tasks);
        let answers = match commits.timed(session.held.unless_lost(call)).await {
            Ok(answers) => answers,
            Err(error) => group.iter().map(|_| Err(error.clone())).collect(),
        };
        let answers = read_back(session, &group, answers).await;
        let mut again = Vec::new();
        let is_over = !session.config().is_patient
            || session.held.is_lost()
            || begun.elapsed() >= session.config().lease;
        for (request, answer) in group.into_iter().zip(answers) {
            match answer {
                Err(error) if error.is_retryable() && !is_over => {
                    session.worker.metrics.store_errors.add(1);
                    if outage.is_worth_a_line() && again.is_empty() {
                        tracing::warn!(worker_id = %session.id, %error, "cannot complete tasks; trying again");
                    }
                    again.push(request);
                }
                // A packet that is gone needs no answer.
                answer => drop(request.1.send(answer)),
            }
        }
        if again.is_empty() {
            return;
        }
        group = again;
        session.worker.metrics.retries.add(1);
        tokio::time::sleep(outage.next_wait()).await;
    }
}

/// What the answers mean: one that was lost is read back, and so is a refusal, which may be that of a repeated
/// call whose first answer was lost.
async fn read_back(session: &Session, group: &[Request], mut answers: Vec<Answer>) -> Vec<Answer> {
    let is_unclear =
        |answer: &Answer| matches!(answer, Err(StoreError::CommitUnknown(_) | StoreError::LostClaim(_)));
    let unclear: Vec<usize> = (0..answers.len()).filter(|&index| is_unclear(&answers[index])).collect();
    if unclear.is_empty() {
        return answers;
    }
    let claims: Vec<Claim> = unclear.iter().map(|&index| group[index].0.claim).collect();
    match session.held.unless_lost(session.store().are_done(&claims)).await {
        Ok(done) => {
            for (index, _) in unclear.into_iter().zip(done).filter(|(_, done)| *done) {
                answers[index] = Ok(());
            }
        }
        // Not known yet: to be asked again, and not to be taken for a refusal.
        Err(error) => {
            for index in unclear {
                answers[index] = Err(match error.is_retryable() {
                    true => StoreError::CommitUnknown(error.to_string()),
                    false => error.clone(),
                });
            }
        }
    }
    answers
}
