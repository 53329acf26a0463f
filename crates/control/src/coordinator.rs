//! The enumeration coordinator: starts and resumes the enumeration of targets, and lets it be followed.
//!
//! What enumerates is the workers, through the book: here a session gets its root task, and every other task
//! is created by the fan-out. So both ways in return at once, and what they return are views of committed
//! rows, read when someone asks for the next. A view that nobody reads costs nothing, and losing one loses
//! nothing: the rows are there for the next reader.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domesday_model::backoff::jitter;
use domesday_model::{
    BatchId, BatchStatus, EnumerationSessionId, ScanTargetId, TaskId, TaskStatus, TaskType,
};
use domesday_store::{
    JobLease, OrchestratorStore, ReportStore, Retry, RetryScope, SessionInfo, StoreError, TargetFilter,
    TaskFilter, TaskInfo,
};

/// Rows read at once.
const PAGE: u32 = 256;
/// How long to wait for a change before looking anyway.
const LOOK_AT_LEAST: Duration = Duration::from_secs(2);
/// And how long at least, whatever changes.
const LOOK_AT_MOST: Duration = Duration::from_millis(100);

pub struct Coordinator {
    store: Arc<dyn OrchestratorStore>,
}

/// The enumeration of one target, under way or ended. Each view closes when the enumeration has ended and all
/// that came of it was read.
pub struct Enumeration {
    pub session: EnumerationSessionId,
    /// Scan targets that were discovered.
    pub targets: View<ScanTargetId>,
    /// Tasks that were created, the root task included.
    pub tasks: View<TaskInfo>,
    /// What could not be enumerated.
    pub errors: View<EnumerationError>,
}

/// A batch in which something could not be enumerated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EnumerationError {
    pub batch: BatchId,
    pub detail: String,
}

impl Coordinator {
    pub fn new(store: Arc<dyn OrchestratorStore>) -> Coordinator {
        Coordinator { store }
    }

    /// Starts the enumeration of one data source of a running job, from its beginning unless it has begun.
    pub async fn enumerate_target(
        &self,
        lease: &JobLease,
        datasource: &str,
    ) -> Result<Enumeration, StoreError> {
        let session = self.store.open_session(lease, datasource).await?;
        self.follow(session).await
    }

    /// Goes on with a session from the state it is in: a stalled one goes on where it was, and what failed for
    /// good is tried again. The containers that were listed stay listed.
    pub async fn resume_target(
        &self,
        lease: &JobLease,
        session: EnumerationSessionId,
    ) -> Result<Enumeration, StoreError> {
        let known = find(self.store.as_ref(), session).await?;
        let failed = TaskFilter {
            session: Some(session),
            status: Some(TaskStatus::Failed),
            task_type: Some(TaskType::DiscoveryEnumerate),
            ..TaskFilter::default()
        };
        loop {
            let tasks = self.store.tasks(failed.clone(), PAGE).await?;
            if tasks.is_empty() {
                break;
            }
            for task in tasks {
                self.store.retry(Retry::Task(task.id), RetryScope::Passing).await?;
            }
        }
        self.store.open_session(lease, &known.datasource).await?;
        self.follow(session).await
    }

    /// Views of a session, whoever started it.
    pub async fn follow(&self, session: EnumerationSessionId) -> Result<Enumeration, StoreError> {
        let store: Arc<dyn OrchestratorStore> = Arc::clone(&self.store);
        Enumeration::follow(store, session).await
    }
}

impl Enumeration {
    /// Views of a session, whoever started it, for whoever only reads.
    pub async fn follow(
        store: Arc<dyn ReportStore>,
        session: EnumerationSessionId,
    ) -> Result<Enumeration, StoreError> {
        let known = Arc::new(find(store.as_ref(), session).await?);
        Ok(Enumeration {
            session,
            targets: View::new(&store, &known, Targets(None)),
            tasks: View::new(&store, &known, Tasks(None)),
            errors: View::new(&store, &known, Errors { known: None, look: None }),
        })
    }
}

async fn find(store: &dyn ReportStore, session: EnumerationSessionId) -> Result<SessionInfo, StoreError> {
    let known = store.session(session).await?;
    known.ok_or_else(|| StoreError::Missing { kind: "session", name: session.to_string() })
}

/// Rows of a session as they are committed.
pub struct View<T> {
    store: Arc<dyn ReportStore>,
    session: Arc<SessionInfo>,
    rows: Box<dyn Rows<T>>,
    ready: VecDeque<T>,
    /// What was given out: transactions that ran side by side may show their rows in another order than that
    /// of their ids, so when the session has ended all are gone through once more.
    seen: HashSet<u128>,
    is_last_pass: bool,
}

impl<T> View<T> {
    fn new(
        store: &Arc<dyn ReportStore>,
        session: &Arc<SessionInfo>,
        rows: impl Rows<T> + 'static,
    ) -> View<T> {
        View {
            store: Arc::clone(store),
            session: Arc::clone(session),
            rows: Box::new(rows),
            ready: VecDeque::new(),
            seen: HashSet::new(),
            is_last_pass: false,
        }
    }

    /// The next row, when there is one; `None` when the enumeration has ended and no row is left.
    pub async fn next(&mut self) -> Result<Option<T>, StoreError> {
        let mut changes = self.store.changes();
        loop {
            if let Some(row) = self.ready.pop_front() {
                return Ok(Some(row));
            }
            changes.mark_unchanged();
            let page = self.rows.page(self.store.as_ref(), &self.session).await?;
            if let Some(page) = page {
                let new = page.into_iter().filter(|(id, _)| self.seen.insert(*id));
                self.ready.extend(new.map(|(_, row)| row));
                continue;
            }
            if self.is_last_pass {
                return Ok(None);
            }
            let session = find(self.store.as_ref(), self.session.id).await?;
            if session.is_enumerated {
                self.is_last_pass = true;
                self.rows.begin_again();
                continue;
            }
            tokio::time::sleep(LOOK_AT_MOST).await;
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep(jitter(LOOK_AT_LEAST)) => {}
            }
        }
    }
}

/// One kind of rows of a session, page by page.
#[async_trait]
trait Rows<T>: Send {
    /// The rows behind those of the last page, each with what tells it from the others; `None` when there are
    /// no more for now.
    async fn page(
        &mut self,
        store: &dyn ReportStore,
        session: &SessionInfo,
    ) -> Result<Option<Vec<(u128, T)>>, StoreError>;

    fn begin_again(&mut self);
}

struct Targets(Option<ScanTargetId>);

#[async_trait]
impl Rows<ScanTargetId> for Targets {
    async fn page(
        &mut self,
        store: &dyn ReportStore,
        session: &SessionInfo,
    ) -> Result<Option<Vec<(u128, ScanTargetId)>>, StoreError> {
        let filter = TargetFilter { session: Some(session.id), ..TargetFilter::default() };
        let targets = store.targets(filter, self.0, PAGE).await?;
        let Some(last) = targets.last() else {
            // Ids are hashes: what comes next may have any.
            self.0 = None;
            return Ok(None);
        };
        self.0 = Some(last.id);
        Ok(Some(targets.iter().map(|target| (u128::from_be_bytes(target.id.0), target.id)).collect()))
    }

    fn begin_again(&mut self) {
        self.0 = None;
    }
}

struct Tasks(Option<TaskId>);

#[async_trait]
impl Rows<TaskInfo> for Tasks {
    async fn page(
        &mut self,
        store: &dyn ReportStore,
        session: &SessionInfo,
    ) -> Result<Option<Vec<(u128, TaskInfo)>>, StoreError> {
        let filter = TaskFilter { session: Some(session.id), after: self.0, ..TaskFilter::default() };
        let tasks = store.tasks(filter, PAGE).await?;
        let Some(last) = tasks.last() else { return Ok(None) };
        self.0 = Some(last.id);
        Ok(Some(tasks.into_iter().map(|task| (task.id.0 as u128, task)).collect()))
    }

    fn begin_again(&mut self) {
        self.0 = None;
    }
}

/// Batches come newest first: each look goes back to the newest of the last one.
struct Errors {
    /// Up to here all were looked at.
    known: Option<BatchId>,
    /// The newest of the look that is under way, and how far back it is.
    look: Option<(BatchId, BatchId)>,
}

#[async_trait]
impl Rows<EnumerationError> for Errors {
    async fn page(
        &mut self,
        store: &dyn ReportStore,
        session: &SessionInfo,
    ) -> Result<Option<Vec<(u128, EnumerationError)>>, StoreError> {
        let batches = store.batches(session.id, self.look.map(|(_, back)| back), PAGE).await?;
        let is_new = |id: BatchId| self.known.is_none_or(|known| id > known);
        let new: Vec<_> = batches.iter().filter(|batch| is_new(batch.id)).collect();
        let (Some(first), Some(last)) = (new.first(), new.last()) else {
            self.known = self.look.take().map(|(newest, _)| newest).or(self.known);
            return Ok(None);
        };
        self.look = Some((self.look.map_or(first.id, |(newest, _)| newest), last.id));
        let failed = new.iter().filter(|batch| batch.status != BatchStatus::Succeeded);
        Ok(Some(
            failed
                .map(|batch| {
                    let detail = batch.error_details.clone().unwrap_or_default();
                    (batch.id.0 as u128, EnumerationError { batch: batch.id, detail })
                })
                .collect(),
        ))
    }

    fn begin_again(&mut self) {
        (self.known, self.look) = (None, None);
    }
}
