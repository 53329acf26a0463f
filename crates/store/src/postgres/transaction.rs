//! One verb's transaction, in few round trips.
//!
//! Statements whose answer nobody waits for are queued and sent with the next one that has an answer, or
//! with COMMIT; BEGIN goes with the first. So a verb is written one statement after the other, and a fenced
//! write of any size is two round trips; what is one statement or a few at once is one. Many rows are
//! one statement with an array for each column, so that the server waits for its process only between statements.

use tokio_postgres::Error;

use super::error::{gave_way, is_lost, store_error, tells_nothing};
use super::pool::{Answer, Call, Loan, Param};
use super::tasks::Fence;
use super::wake::{NOTIFY, Wakes};
use super::{PostgresStore, Result};
use crate::error::StoreError;
use crate::hook::{Fault, Stage};

/// How often a verb is tried again after a deadlock, a serialization failure, or the loss of its connection
/// before COMMIT was sent.
const RETRIES_MAX: u32 = 3;

/// Statements that change the book see each one's effects, and locks decide.
const WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
/// Statements that read see one state of the book.
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";
#[cfg(feature = "conformance")]
const SET_CLOCK: &str = "SELECT set_config('domesday.clock', $1, true)";

pub(super) struct Tx<'s> {
    store: &'s PostgresStore,
    loan: Loan,
    verb: &'static str,
    /// What begins it: [`WRITE`] or [`SNAPSHOT`]. Sent with the first statement.
    mode: &'static str,
    begun: bool,
    queue: Vec<Call>,
    /// Who may be waiting for what this writes.
    wakes: Wakes,
    /// The last failure is one that another attempt may not meet.
    again: bool,
    committed: bool,
}

/// How an attempt at a verb ended.
pub(super) enum Ended<T> {
    With(Result<T>),
    /// Nothing happened, and the next attempt may succeed.
    Again,
}

/// Parameters of a statement.
macro_rules! params {
    ($($value:expr),* $(,)?) => { vec![$(Box::new($value) as $crate::postgres::pool::Param),*] };
}
pub(super) use params;

/// Runs a verb in a transaction of its own, again while that may help.
macro_rules! transact {
    ($begun:expr, |$tx:ident| $body:expr) => {{
        let mut attempt = 0;
        loop {
            let mut $tx = $begun.await?;
            let result = $body.await;
            match $tx.end(result, attempt).await {
                $crate::postgres::transaction::Ended::With(result) => break result,
                $crate::postgres::transaction::Ended::Again => attempt += 1,
            }
        }
    }};
}
pub(super) use transact;

impl PostgresStore {
    /// A transaction that writes. `verb` names it for hooks.
    pub(super) async fn write(&self, verb: &'static str) -> Result<Tx<'_>> {
        self.transaction(verb, WRITE).await
    }

    /// A transaction that reads one state of the book.
    pub(super) async fn snapshot(&self) -> Result<Tx<'_>> {
        self.transaction("", SNAPSHOT).await
    }

    async fn transaction(&self, verb: &'static str, mode: &'static str) -> Result<Tx<'_>> {
        Ok(Tx {
            store: self,
            loan: self.pool.get().await?,
            verb,
            mode,
            begun: false,
            queue: Vec::new(),
            wakes: Wakes::Nobody,
            again: false,
            committed: false,
        })
    }
}

impl Tx<'_> {
    /// Queues a statement that changes the book.
    pub fn run(&mut self, sql: &'static str, params: Vec<Param>) {
        self.wakes = self.wakes.max(Wakes::Everyone);
        self.queue.push(Call { sql, params });
    }

    /// A statement that changes the book; how many rows.
    pub async fn change(&mut self, sql: &'static str, params: Vec<Param>) -> Result<u64> {
        Ok(self.query(sql, params).await?.changed)
    }

    /// A statement and what it answers.
    pub async fn query(&mut self, sql: &'static str, params: Vec<Param>) -> Result<Answer> {
        let [rows] = self.query_all([Call { sql, params }]).await?;
        Ok(rows)
    }

    /// Several statements that do not need one another's answers, in one round trip.
    pub async fn query_all<const N: usize>(&mut self, calls: [Call; N]) -> Result<[Answer; N]> {
        self.queue.extend(calls);
        let mut answers = self.flush(None).await?;
        Ok(last_of(&mut answers))
    }

    /// The last statements of a verb, and COMMIT with them: what they lock is free again before anyone has
    /// the answers.
    pub async fn query_last<const N: usize>(&mut self, calls: [Call; N]) -> Result<[Answer; N]> {
        self.queue.extend(calls);
        let mut answers = self.commit().await?;
        Ok(last_of(&mut answers))
    }

    /// Everyone is told before the verb returns: its caller may be a process that ends at once.
    pub fn wakes_before_it_returns(&mut self) {
        self.wakes = Wakes::EveryoneAtOnce;
    }

    /// Once this is committed, wakes whoever waits, in every process.
    pub fn wakes_everyone(&mut self) {
        self.wakes = self.wakes.max(Wakes::Everyone);
    }

    /// Once this is committed, wakes whoever waits in this process. Others find out when they look.
    pub fn wakes_this_process(&mut self) {
        self.wakes = self.wakes.max(Wakes::ThisProcess);
    }

    /// The fence's statements: without it only in the test of the fence itself.
    pub fn fence(&self) -> Fence {
        self.store.fence
    }

    /// Sends what is queued, and `last` behind it; what each of the queued answered, or the first failure.
    async fn flush(&mut self, last: Option<&'static str>) -> Result<Vec<Answer>> {
        let mut calls = Vec::with_capacity(self.queue.len() + 3);
        if !std::mem::replace(&mut self.begun, true) {
            calls.push(Call { sql: self.mode, params: Vec::new() });
            #[cfg(feature = "conformance")]
            if let Some(clock) = &self.store.clock {
                calls.push(Call { sql: SET_CLOCK, params: params![clock.now_ms().to_string()] });
            }
        }
        calls.append(&mut self.queue);
        let asked = calls.len();
        calls.extend(last.map(|sql| Call { sql, params: Vec::new() }));
        let results = self.loan.pipeline(&calls).await;
        let committing = last == Some(COMMIT) && self.mode == WRITE && results.len() == calls.len();
        let mut answers = Vec::with_capacity(calls.len());
        let mut failed: Option<Error> = None;
        for result in results {
            match result {
                Ok(rows) => answers.push(rows),
                // With COMMIT under way, a lost connection leaves open whether it arrived; unless a statement
                // before it failed, for then it was a rollback.
                Err(error) if committing && failed.is_none() && tells_nothing(&error) => {
                    return Err(StoreError::CommitUnknown(store_error(&error).to_string()));
                }
                // The first is the cause; those behind it only say that there was one.
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            self.again = gave_way(&error) || is_lost(&error);
            return Err(store_error(&error));
        }
        answers.truncate(asked);
        Ok(answers)
    }

    /// Commits what the verb did, or rolls back what it failed to do.
    pub async fn end<T>(mut self, result: Result<T>, attempt: u32) -> Ended<T> {
        let outcome = match result {
            Ok(value) => self.commit().await.map(|_| value),
            Err(error) => Err(error),
        };
        let Err(error) = outcome else {
            self.store.waker.wake(self.wakes);
            if self.wakes < Wakes::EveryoneAtOnce || self.loan.client().batch_execute(NOTIFY).await.is_ok() {
                self.loan.give_back();
            } else {
                self.store.waker.wake(Wakes::Everyone);
            }
            return Ended::With(outcome);
        };
        if matches!(error, StoreError::CommitUnknown(_)) {
            // It may have happened; whoever waits looks for itself.
            self.store.waker.wake(Wakes::Everyone);
            return Ended::With(Err(error));
        }
        // A connection that cannot even roll back is dropped, and the server does it.
        if !self.begun || self.committed || self.loan.client().batch_execute(ROLLBACK).await.is_ok() {
            self.loan.give_back();
        }
        match self.again && attempt < RETRIES_MAX {
            true => Ended::Again,
            false => Ended::With(Err(error)),
        }
    }

    /// Commits, unless that was done or there is nothing to; what the last statements answered.
    async fn commit(&mut self) -> Result<Vec<Answer>> {
        if self.committed || (!self.begun && self.queue.is_empty()) {
            return Ok(Vec::new());
        }
        if self.store.fault(self.verb, Stage::BeforeCommit) == Fault::LoseAnswer {
            self.flush(None).await?;
            return Err(StoreError::CommitUnknown("lost before the commit".into()));
        }
        let answers = self.flush(Some(COMMIT)).await?;
        self.committed = true;
        if self.store.fault(self.verb, Stage::AfterCommit) == Fault::LoseAnswer {
            return Err(StoreError::CommitUnknown("lost after the commit".into()));
        }
        Ok(answers)
    }
}

/// The answers to the statements sent last.
fn last_of<const N: usize>(answers: &mut Vec<Answer>) -> [Answer; N] {
    let last = answers.split_off(answers.len() - N);
    last.try_into().unwrap_or_else(|_| unreachable!("as many were split off"))
}
