//! `domesday job watch`: a job's progress until it ends.
//!
//! Watching must not cost the fleet anything worth noticing, however many watch and however large the job:
//! the book is asked when it may have changed, and never more often than a tenth of the time that asking
//! takes.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use domesday_model::MasterJobId;
use domesday_store::{ChildJobState, MasterJob, OccurrenceFilter, ReportStore};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep, sleep_until};

use super::super::report;
use super::super::which::find_job;
use crate::args::StateArgs;
use crate::book;
use crate::output::Watched;
use crate::{Exit, say};

/// The shortest time between two looks at the book.
const LOOK_MIN: Duration = Duration::from_millis(250);
/// The longest, when nothing wakes us.
const LOOK_MAX: Duration = Duration::from_secs(2);
/// How much longer than a look takes it is until the next, at least.
const COST_FACTOR: u32 = 10;
/// Looks in a row that may fail for reasons that pass, a second apart.
const FAILURES_MAX: u32 = 60;
const FAILURE_PAUSE: Duration = Duration::from_secs(1);

pub async fn run(id: Option<&str>, state: &StateArgs) -> Result<Exit> {
    let store = book::read(state).await?;
    let job = find_job(store.as_ref(), id).await?;
    follow(store, job.id).await
}

/// Shows a job until it ends, or until the user has seen enough.
pub async fn follow(store: Arc<dyn ReportStore>, master: MasterJobId) -> Result<Exit> {
    let mut shown = Watched::new(master);
    let mut poll = Poll::new(Arc::clone(&store), master)?;
    loop {
        match poll.next().await? {
            Polled::Stopped => {
                shown.leave();
                say(format_args!("stopped watching; the job goes on: `domesday job watch {master}`"));
                return Ok(Exit::Incomplete);
            }
            Polled::Seen(job, children) => {
                shown.update(&children)?;
                if job.status.is_final() {
                    let found = has_findings(store.as_ref(), master).await?;
                    let exit = report::exit(&job, found.into());
                    shown.end(&job, found, exit as i32)?;
                    return Ok(exit);
                }
            }
        }
    }
}

async fn has_findings(store: &dyn ReportStore, master: MasterJobId) -> Result<bool> {
    let mut occurrences = store.occurrences(master, OccurrenceFilter::default()).await?;
    Ok(occurrences.recv().await.transpose()?.is_some())
}

/// What a look at the book gave.
pub enum Polled {
    Seen(MasterJob, Vec<ChildJobState>),
    /// Ctrl-C, or the end of the session.
    Stopped,
}

/// Looks at a job again and again, at a pace that costs little.
pub struct Poll {
    store: Arc<dyn ReportStore>,
    master: MasterJobId,
    changes: tokio::sync::watch::Receiver<u64>,
    pace: Pace,
    interrupt: Signal,
    terminate: Signal,
}

impl Poll {
    pub fn new(store: Arc<dyn ReportStore>, master: MasterJobId) -> Result<Poll> {
        let about = "cannot listen for signals";
        Ok(Poll {
            changes: store.changes(),
            store,
            master,
            pace: Pace::default(),
            interrupt: signal(SignalKind::interrupt()).context(about)?,
            terminate: signal(SignalKind::terminate()).context(about)?,
        })
    }

    /// Waits until the next look is due, and looks. The book may be out of reach for a while.
    pub async fn next(&mut self) -> Result<Polled> {
        let Poll { store, master, changes, pace, interrupt, terminate } = self;
        tokio::select! {
            seen = async {
                pace.wait(changes).await;
                let begun = Instant::now();
                let seen = look(store.as_ref(), *master).await;
                pace.looked(begun);
                seen
            } => {
                let (job, children) = seen?;
                Ok(Polled::Seen(job, children))
            }
            _ = interrupt.recv() => Ok(Polled::Stopped),
            _ = terminate.recv() => Ok(Polled::Stopped),
        }
    }
}

async fn look(store: &dyn ReportStore, master: MasterJobId) -> Result<(MasterJob, Vec<ChildJobState>)> {
    let mut failures = 0;
    loop {
        let seen = async {
            // The children first: a job that is seen to have ended is then shown with its last numbers.
            let children = store.child_jobs(master).await?;
            Ok((store.master_job(master).await?, children))
        };
        match seen.await {
            Ok((Some(job), children)) if job.status.is_final() => {
                // It may have ended between the two.
                let ended = children.iter().all(|child| child.status.is_final());
                let children = if ended { children } else { store.child_jobs(master).await? };
                return Ok((job, children));
            }
            Ok((Some(job), children)) => return Ok((job, children)),
            Ok((None, _)) => bail!("job {master} is no longer in the book: it was pruned"),
            Err(error) => {
                let error: domesday_store::StoreError = error;
                failures += 1;
                if !error.is_retryable() || failures > FAILURES_MAX {
                    return Err(error.into());
                }
                if failures == 1 {
                    say(format_args!("{error}; trying again"));
                }
                sleep(FAILURE_PAUSE).await;
            }
        }
    }
}

/// When the next look is due.
#[derive(Default)]
pub struct Pace {
    /// The first look is due at once.
    earliest: Option<Instant>,
}

impl Pace {
    /// Waits as long as it must, and then until something changes or for as long as it may.
    pub async fn wait(&self, changes: &mut tokio::sync::watch::Receiver<u64>) {
        let Some(earliest) = self.earliest else { return };
        sleep_until(earliest).await;
        tokio::select! {
            () = sleep_until(earliest + LOOK_MAX - LOOK_MIN) => {}
            // A book that is only read tells nothing of changes: the time alone counts then.
            Ok(()) = changes.changed() => {}
        }
    }

    /// Notes what a look cost.
    pub fn looked(&mut self, begun: Instant) {
        let gap = (begun.elapsed() * COST_FACTOR).max(LOOK_MIN);
        self.earliest = Some(begun + gap);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn looks_are_far_apart_however_often_it_changes() {
        let (changed, mut changes) = tokio::sync::watch::channel(0);
        let mut pace = Pace::default();
        let begun = Instant::now();
        pace.wait(&mut changes).await;
        assert_eq!(begun.elapsed(), Duration::ZERO, "the first is due at once");
        // A look that takes a second is followed by nine of rest, though something changed.
        sleep(Duration::from_secs(1)).await;
        pace.looked(begun);
        changed.send_replace(1);
        pace.wait(&mut changes).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(10));
        // A cheap one is repeated soon when something changes, and anyway after a while.
        let begun = Instant::now();
        pace.looked(begun);
        changed.send_replace(2);
        pace.wait(&mut changes).await;
        assert_eq!(begun.elapsed(), LOOK_MIN);
        let begun = Instant::now();
        pace.looked(begun);
        pace.wait(&mut changes).await;
        assert_eq!(begun.elapsed(), LOOK_MAX);
        // Also when nobody is left to tell of changes.
        drop(changed);
        let begun = Instant::now();
        pace.looked(begun);
        pace.wait(&mut changes).await;
        assert_eq!(begun.elapsed(), LOOK_MAX);
    }
}
