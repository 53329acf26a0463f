//! Brings the log to the disk while it grows, on a thread of its own, so that the close of the book has little left to
//! wait for.
//!
//! Nothing is promised by it. What is durable when is decided by SQLite, whose last connection copies the whole log
//! and waits for the disk as ever; what is there already takes it no time. So trouble here is no trouble: whoever
//! closes the book meets it again, and tells.
//!
//! The log may be opened and closed beside SQLite's own handles, which would end POSIX locks of this process: SQLite
//! locks the book and the index of the log, and never the log.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use super::book;

/// Rows written after which the log is brought to the disk: about 2 MiB of it.
const FLUSH_ROWS: u64 = 8_192;
/// Orders that wait, at most.
const ORDERS_MAX: usize = 2;

enum Order {
    Flush,
    End,
}

pub(super) struct Flusher {
    orders: SyncSender<Order>,
    thread: Option<JoinHandle<()>>,
}

impl Flusher {
    /// Without a thread to do it now, it is done at the close.
    pub fn start(book: PathBuf) -> Flusher {
        let (orders, queue) = sync_channel(ORDERS_MAX);
        let thread = std::thread::Builder::new().name("flusher".into()).spawn(move || serve(&book, &queue));
        Flusher { orders, thread: thread.ok() }
    }

    pub fn gauge(&self) -> Gauge {
        Gauge { orders: self.orders.clone(), rows: 0 }
    }
}

impl Drop for Flusher {
    /// What is under way is what the close would wait for otherwise.
    fn drop(&mut self) {
        let _ = self.orders.send(Order::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Tells when there is enough in the log that is worth flushing.
pub(super) struct Gauge {
    orders: SyncSender<Order>,
    rows: u64,
}

impl Gauge {
    pub fn add(&mut self, rows: u64) {
        self.rows += rows;
        if self.rows >= FLUSH_ROWS {
            self.rows = 0;
            // Without room for it one is waiting already.
            let _ = self.orders.try_send(Order::Flush);
        }
    }
}

fn serve(book: &Path, queue: &Receiver<Order>) {
    let mut log = None;
    while let Ok(Order::Flush) = queue.recv() {
        if let Err(error) = flush(book, &mut log) {
            tracing::debug!(%error, "the log is left to the close of the book");
        }
    }
}

/// The log is one file for as long as a connection to the book is open.
fn flush(book: &Path, log: &mut Option<File>) -> std::io::Result<()> {
    match log {
        Some(file) => file.sync_data(),
        None => log.insert(File::open(book::log_of(book))?).sync_data(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_so_many_rows_are_worth_a_flush_and_nobody_waits_for_it() {
        let (orders, queue) = sync_channel(ORDERS_MAX);
        let mut gauge = Gauge { orders, rows: 0 };
        gauge.add(FLUSH_ROWS - 1);
        assert!(queue.try_recv().is_err());
        gauge.add(1);
        assert!(matches!(queue.try_recv(), Ok(Order::Flush)));
        assert!(queue.try_recv().is_err());
        (0..=ORDERS_MAX).for_each(|_| gauge.add(FLUSH_ROWS));
        assert_eq!(queue.try_iter().count(), ORDERS_MAX);
        drop(queue);
        gauge.add(FLUSH_ROWS);
    }

    #[test]
    fn a_log_that_is_not_there_is_no_trouble() {
        let folder = tempfile::tempdir().unwrap();
        let book = folder.path().join("book.sqlite");
        let mut log = None;
        assert!(flush(&book, &mut log).is_err());
        std::fs::write(book::log_of(&book), b"frames").unwrap();
        flush(&book, &mut log).unwrap();
        assert!(log.is_some(), "it is opened once");
        flush(&book, &mut log).unwrap();
    }
}
