//! Rows on their way from a server to the scan core: filled on the runtime of remote reads, taken by the core's
//! threads.
//!
//! A few batches wait at most; the server waits while the core is behind. Emptied batches go back, so that their
//! memory is used again. How long the server takes is watched here, too: time in which the core is behind, or the
//! source's own limits hold rows back, is not the server's.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use domesday_connector::remote::Begun;
use domesday_content::{ObjectError, RowReader};
use domesday_model::{Reason, RowBatch, TableShape};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};

use super::column_search::UnreadableColumns;
use super::limits::Limits;

/// Batches that wait for the core, at most, beside the one that is being filled.
const BATCHES_AHEAD: usize = 3;

/// Columns of one table that are named because they cannot be read; more are counted.
const NAMED_COLUMNS_MAX: usize = 32;

/// What arrives: a batch with its place in the line, or `None` at the end.
type Message = Result<Option<(RowBatch, OwnedSemaphorePermit)>, ObjectError>;

/// The two ends of a table's rows.
pub(super) fn line(columns: usize, rows_max: u64, limits: &Arc<Limits>) -> (RowSink, Arriving) {
    let (sender, messages) = channel();
    let spare = Arc::new(Mutex::new(Vec::new()));
    let sink = RowSink {
        batch: RowBatch::new(columns),
        rows_at_once: limits.rows_at_once().min(RowBatch::ROWS_MAX),
        rows_left: rows_max,
        handed: 0,
        places: Arc::new(Semaphore::new(BATCHES_AHEAD)),
        spare: Arc::clone(&spare),
        limits: Arc::clone(limits),
        watch: Watch::default(),
        gap: None,
        sender,
    };
    (sink, Arriving { columns, messages, spare })
}

/// Where a dialect puts rows. Fill [`RowSink::batch`] with one row, value by value, then call
/// [`RowSink::end_row`], which hands full batches over, waits while the core is behind, and keeps to the
/// source's limits of rows and bytes per second.
pub(crate) struct RowSink {
    batch: RowBatch,
    rows_at_once: usize,
    /// How many more are wanted.
    rows_left: u64,
    /// How many were handed over.
    handed: u64,
    /// Given back with each batch that the core takes.
    places: Arc<Semaphore>,
    spare: Arc<Mutex<Vec<RowBatch>>>,
    limits: Arc<Limits>,
    watch: Watch,
    /// What is missing of the rows, and why.
    gap: Option<(Reason, String)>,
    sender: Sender<Message>,
}

impl RowSink {
    pub fn batch(&mut self) -> &mut RowBatch {
        &mut self.batch
    }

    /// Says whether anybody wants more.
    pub async fn end_row(&mut self) -> bool {
        self.rows_left = self.rows_left.saturating_sub(1);
        if self.batch.rows() >= self.rows_at_once || self.batch.is_full() {
            self.hand_over().await;
        }
        self.rows_left > 0
    }

    /// Rows that anybody may have seen: what fails before the first can be begun again.
    pub fn handed(&self) -> u64 {
        self.handed
    }

    /// Rows that go on together: no more of them are held back by a limit of rows per second.
    pub fn rows_at_once(&self) -> usize {
        self.rows_at_once
    }

    /// Rows given so far, those that wait in the batch included.
    pub fn rows(&self) -> u64 {
        self.handed + self.batch.rows() as u64
    }

    /// Names what is missing of rows that are read nevertheless: the table is then partial.
    pub fn name_gap(&mut self, reason: Reason, detail: &str) {
        match &mut self.gap {
            None => self.gap = Some((reason, detail.to_owned())),
            Some((_, named)) => *named = format!("{named}; {detail}"),
        }
    }

    /// What is missing of the rows.
    pub(super) fn gap(&self) -> Option<&(Reason, String)> {
        self.gap.as_ref()
    }

    /// Names columns that are left out, which have no values in the rows.
    pub fn name_unreadable(&mut self, shape: &TableShape, columns: &UnreadableColumns) {
        for (place, error) in columns.iter().take(NAMED_COLUMNS_MAX) {
            let name = &shape.columns[*place].name;
            self.name_gap(error.reason(), &format!("column {name} cannot be read: {error}"));
        }
        if let Some(more) = columns.len().checked_sub(NAMED_COLUMNS_MAX).filter(|more| *more > 0) {
            self.name_gap(Reason::ReadError, &format!("{more} more columns cannot be read"));
        }
    }

    pub(super) fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// Forgets rows that nobody has seen.
    pub(super) fn begin_again(&mut self) {
        self.rows_left += self.batch.rows() as u64;
        self.batch.clear();
        self.gap = None;
        self.watch.progress();
    }

    async fn hand_over(&mut self) {
        let rows = self.batch.rows() as u64;
        if rows == 0 {
            return;
        }
        self.watch.pause();
        let bytes = self.batch.columns.iter().map(|column| column.bytes().len() as u64).sum();
        self.limits.spend(rows, bytes).await;
        let columns = self.batch.columns.len();
        let place = Arc::clone(&self.places).acquire_owned().await;
        let next = self.spare.lock().pop();
        let full = std::mem::replace(&mut self.batch, next.unwrap_or_else(|| RowBatch::new(columns)));
        self.handed += rows;
        let sent = place.map(|place| self.sender.send(Ok(Some((full, place)))));
        if !matches!(sent, Ok(Ok(()))) {
            self.rows_left = 0;
        }
        self.watch.progress();
    }

    /// Ends the rows, well or not.
    pub(super) async fn end(mut self, outcome: Result<(), ObjectError>) {
        // What was read before an error is scanned.
        self.batch.keep_whole_rows();
        self.hand_over().await;
        // Nobody listens any more: nobody needs to know.
        let _ = self.sender.send(outcome.map(|()| None));
    }
}

/// Since when the server has kept us waiting.
#[derive(Clone)]
pub(super) struct Watch(Arc<Mutex<Option<Instant>>>);

impl Default for Watch {
    fn default() -> Watch {
        Watch(Arc::new(Mutex::new(Some(Instant::now()))))
    }
}

impl Watch {
    /// It is somebody else who is waited for now.
    pub fn pause(&self) {
        self.set(None);
    }

    /// The server gave something.
    pub fn progress(&self) {
        self.set(Some(Instant::now()));
    }

    fn set(&self, since: Option<Instant>) {
        *self.0.lock() = since;
    }

    /// Ends when the server has given nothing for so long.
    pub async fn stalled(&self, limit: Duration) {
        loop {
            let now = Instant::now();
            let since = self.0.lock().unwrap_or(now);
            if since + limit <= now {
                return;
            }
            sleep_until(since + limit).await;
        }
    }
}

/// The core's end, before it is a reader.
pub(super) struct Arriving {
    columns: usize,
    messages: Receiver<Message>,
    spare: Arc<Mutex<Vec<RowBatch>>>,
}

impl Arriving {
    /// Takes rows until they end.
    #[cfg(feature = "fuzz")]
    pub fn drain(self) {
        while let Ok(Ok(Some(_))) = self.messages.recv() {}
    }

    /// Rows that `sender` puts into the sink.
    pub fn from(self, sender: Begun) -> Box<dyn RowReader> {
        Box::new(Rows { arriving: self, ended: None, _sender: sender })
    }
}

struct Rows {
    arriving: Arriving,
    /// How it ended, if it has.
    ended: Option<Result<(), ObjectError>>,
    _sender: Begun,
}

impl RowReader for Rows {
    fn fill(&mut self, batch: &mut RowBatch) -> Result<(), ObjectError> {
        if let Some(ended) = &self.ended {
            return ended.clone();
        }
        let lost = |_| Err(ObjectError::new(Reason::ReadError, "the rows of a table were lost on their way"));
        match self.arriving.messages.recv().unwrap_or_else(lost) {
            Ok(Some((arrived, _place))) => {
                let mut emptied = std::mem::replace(batch, arrived);
                emptied.clear();
                if emptied.columns.len() == self.arriving.columns {
                    self.arriving.spare.lock().push(emptied);
                }
                Ok(())
            }
            Ok(None) => {
                self.ended = Some(Ok(()));
                Ok(())
            }
            Err(error) => {
                self.ended = Some(Err(error.clone()));
                Err(error)
            }
        }
    }
}
