//! The one writer: a thread that runs each verb in a savepoint and commits what is waiting together.
//!
//! A caller hears of success only after the COMMIT that covers its write. A verb that fails is rolled
//! back to its savepoint and does not disturb its neighbours in the group. The first of a group has the whole
//! transaction for its savepoint: most groups are of one, and a savepoint keeps a copy of each page it changes.

use std::sync::Arc;
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot, watch};

use super::Result;
use super::flusher::Gauge;
use super::spent::Meter;
use crate::error::StoreError;
use crate::hook::{Fault, Stage, WriteHook};

/// Writes waiting for the writer, at most; further callers wait.
const QUEUE_MAX: usize = 256;
/// Writes that share one COMMIT, at most.
const GROUP_MAX: usize = 64;

/// Tells a caller how its write ended, once that is known.
type Answer = Box<dyn FnOnce(Result<()>) + Send>;

/// Runs a verb's statements, or passes on why there is no transaction to run them in. `Err` means that
/// they are to be rolled back; the answer carries why.
type Run = Box<dyn FnOnce(Result<&Connection>) -> std::result::Result<Answer, Answer> + Send>;

struct Request {
    verb: &'static str,
    run: Run,
}

pub(super) struct Writer {
    requests: Option<mpsc::Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub fn start(
        connection: Connection,
        hook: Option<Box<dyn WriteHook>>,
        changed: watch::Sender<u64>,
        meter: Arc<Meter>,
        gauge: Gauge,
    ) -> Result<Writer> {
        let (requests, queue) = mpsc::channel(QUEUE_MAX);
        let thread = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || serve(&connection, queue, hook, &changed, &meter, gauge))
            .map_err(|error| StoreError::Backend(format!("cannot start the writer thread: {error}")))?;
        Ok(Writer { requests: Some(requests), thread: Some(thread) })
    }

    /// Runs `f` in a transaction. `then` makes the answer of what it gave, on the writer thread, when that is
    /// committed and before the next group begins.
    pub async fn run<V, T, F, G>(&self, verb: &'static str, f: F, then: G) -> Result<T>
    where
        V: Send + 'static,
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<V> + Send + 'static,
        G: FnOnce(V) -> T + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        // A caller that went away does not undo its write; there is just no one to tell.
        let run: Run = Box::new(move |connection| match connection.and_then(f) {
            Ok(value) => Ok(Box::new(move |committed| {
                let _ = reply.send(committed.map(|()| then(value)));
            })),
            Err(error) => Err(Box::new(move |_| {
                let _ = reply.send(Err(error));
            })),
        });
        let requests = self.requests.as_ref().ok_or(StoreError::Stopped)?;
        requests.send(Request { verb, run }).await.map_err(|_| StoreError::Stopped)?;
        answer.await.map_err(|_| StoreError::Stopped)?
    }
}

impl Drop for Writer {
    /// Writes that were asked for are finished before the store is gone.
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // A panic on the writer thread has been printed; the callers got `Stopped`.
            let _ = thread.join();
        }
    }
}

fn serve(
    connection: &Connection,
    mut queue: mpsc::Receiver<Request>,
    mut hook: Option<Box<dyn WriteHook>>,
    changed: &watch::Sender<u64>,
    meter: &Meter,
    mut gauge: Gauge,
) {
    meter.is_writer();
    let mut at = |verb, stage| hook.as_mut().map_or(Fault::None, |hook| hook.at(verb, stage));
    while let Some(first) = queue.blocking_recv() {
        let mut group = vec![first];
        while group.len() < GROUP_MAX {
            match queue.try_recv() {
                Ok(request) => group.push(request),
                Err(_) => break,
            }
        }
        let before = connection.total_changes();
        let answers = meter.write(|| commit_group(connection, group, &mut at));
        let rows = connection.total_changes() - before;
        meter.add_rows(rows);
        for (answer, outcome) in answers {
            answer(outcome);
        }
        if rows > 0 {
            changed.send_modify(|count| *count += 1);
            gauge.add(rows);
        }
    }
}

/// Runs a group in one transaction; each answer with the outcome it is to be given.
fn commit_group(
    connection: &Connection,
    group: Vec<Request>,
    at: &mut impl FnMut(&'static str, Stage) -> Fault,
) -> Vec<(Answer, Result<()>)> {
    if let Err(error) = run(connection, "BEGIN IMMEDIATE") {
        let error = StoreError::from(error);
        let refused = group.into_iter().map(|request| match (request.run)(Err(repeat(&error))) {
            Ok(answer) | Err(answer) => (answer, Err(repeat(&error))),
        });
        return refused.collect();
    }
    let (mut answers, mut written) = (Vec::with_capacity(group.len()), Vec::new());
    // Why the transaction ended before its COMMIT, once it has; the rest of the group shares its fate.
    let mut ended: Option<StoreError> = None;
    for Request { verb, run } in group {
        if let Some(error) = &ended {
            let (Ok(answer) | Err(answer)) = run(Err(repeat(error)));
            answers.push((answer, Err(repeat(error))));
            continue;
        }
        at(verb, Stage::Begin);
        let ran = match written.is_empty() {
            true => in_transaction(connection, run),
            false => in_savepoint(connection, run),
        };
        match ran {
            Ok(answer) => {
                written.push((verb, answer));
                if at(verb, Stage::BeforeCommit) == Fault::LoseAnswer {
                    // The whole group would be lost with the connection; so it is here.
                    let _ = connection.execute_batch("ROLLBACK");
                    ended = Some(StoreError::CommitUnknown("lost before the commit".into()));
                }
            }
            Err(answer) => {
                answers.push((answer, Ok(())));
                // A full disk or an IO error may end the transaction, not only the statement that met it.
                if connection.is_autocommit() {
                    ended = Some(StoreError::Backend("rolled back with another write that failed".into()));
                }
            }
        }
    }
    let committed = match ended {
        Some(error) => Err(error),
        None => run(connection, "COMMIT").map_err(|error| match StoreError::from(error) {
            // These say for certain that nothing was committed.
            certain @ (StoreError::DiskFull | StoreError::ReadOnly(_)) => certain,
            other => StoreError::CommitUnknown(other.to_string()),
        }),
    };
    if committed.is_err() {
        // Already rolled back by SQLite in most cases; then this fails, and that is all right.
        let _ = connection.execute_batch("ROLLBACK");
    }
    for (verb, answer) in written {
        let lost = committed.is_ok() && at(verb, Stage::AfterCommit) == Fault::LoseAnswer;
        let outcome = if lost {
            Err(StoreError::CommitUnknown("lost after the commit".into()))
        } else {
            committed.as_ref().map(|_| ()).map_err(repeat)
        };
        answers.push((answer, outcome));
    }
    answers
}

/// Runs the first verb that writes, in a transaction where nothing was written yet.
fn in_transaction(connection: &Connection, verb: Run) -> std::result::Result<Answer, Answer> {
    let ran = verb(Ok(connection));
    if ran.is_err() && !connection.is_autocommit() {
        // Where this fails there is no transaction, and with that the group ends.
        let _ = connection.execute_batch("ROLLBACK; BEGIN IMMEDIATE");
    }
    ran
}

fn in_savepoint(connection: &Connection, verb: Run) -> std::result::Result<Answer, Answer> {
    if let Err(error) = run(connection, "SAVEPOINT verb") {
        return verb(Err(error.into()));
    }
    let ran = verb(Ok(connection));
    let ended = match ran.is_ok() {
        true => run(connection, "RELEASE verb"),
        false => connection.execute_batch("ROLLBACK TO verb; RELEASE verb"),
    };
    match (ran, ended) {
        (Ok(answer), Err(error)) => Err(Box::new(move |_| answer(Err(error.into())))),
        (ran, _) => ran,
    }
}

/// Runs a statement that begins or ends something, prepared once: there are many small groups.
fn run(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(|_| ())
}

/// The same error for each member of a group.
fn repeat(error: &StoreError) -> StoreError {
    match error {
        StoreError::DiskFull => StoreError::DiskFull,
        StoreError::ReadOnly(text) => StoreError::ReadOnly(text.clone()),
        StoreError::Damaged(text) => StoreError::Damaged(text.clone()),
        StoreError::CommitUnknown(text) => StoreError::CommitUnknown(text.clone()),
        StoreError::Backend(text) => StoreError::Backend(text.clone()),
        other => StoreError::Backend(other.to_string()),
    }
}
