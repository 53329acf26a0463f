//! Database files: an object whose content is tables.
//!
//! The source opens one as its tables, which come one after another over one connection; so they are read one after
//! another, a batch of rows at a time, under the permit of the file. A file that the source cannot open so is
//! scanned as the bytes it is.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use domesday_content::{Budget, Input, ReadAt};

use crate::executor::WorkerCtx;
use crate::fetch::{Fetch, Pace};
use crate::object::{ObjectCtx, ObjectRef};
use crate::rows::TableStream;
use crate::table::{DatabaseFile, DatabaseTables, NestedTable, OpenTable};
use crate::task::Task;

/// A database file that is being read.
pub struct DatabaseWalk {
    tables: DatabaseTables,
    /// The table being read.
    current: Option<(ObjectRef, Box<TableStream>)>,
    /// Tables met: the place of a flaw in the database itself.
    met: u64,
    budget: Arc<Budget>,
    /// Containers around a table.
    depth: u32,
    /// Held as long as the source may have a copy of it, so that the budget knows.
    _bytes: Arc<dyn ReadAt>,
}

impl WorkerCtx {
    /// Opens what was recognised as a database, `chain` being the compressors around it.
    pub(crate) fn open_database(
        &mut self,
        obj: &ObjectRef,
        bytes: Arc<dyn ReadAt>,
        chain: Vec<&'static str>,
        (budget, depth): (Arc<Budget>, u32),
        pace: Pace,
    ) {
        let object = if chain.is_empty() { obj.descriptor() } else { None };
        let file = DatabaseFile { object, bytes: Arc::clone(&bytes) };
        match self.timed(|| obj.packet().source.open_database(file)) {
            Some(Ok(tables)) => {
                let depth = depth + chain.len() as u32 + 1;
                let walk = DatabaseWalk { tables, current: None, met: 0, budget, depth, _bytes: bytes };
                self.fetch_tables(obj, Box::new(walk), pace);
            }
            refused => {
                if let Some(Err(error)) = refused {
                    obj.flaw(0, error);
                }
                let size = bytes.size().ok();
                self.fetch_unpacked(obj, Input::Seekable(bytes).into_read(), size, chain, pace);
            }
        }
    }

    /// Reads a database from its next batch of rows on.
    pub(crate) fn fetch_tables(&mut self, obj: &ObjectRef, mut walk: Box<DatabaseWalk>, pace: Pace) {
        while !obj.packet().is_cancelled() && self.step_tables(obj, &mut walk) {
            if pace == Pace::Spawn {
                return self.spawn(Task::FetchSync { obj: Arc::clone(obj), fetch: Fetch::Tables(walk) });
            }
        }
    }

    /// Reads a batch of rows, or opens the next table; says whether there may be more.
    fn step_tables(&mut self, obj: &ObjectRef, walk: &mut DatabaseWalk) -> bool {
        if let Some((table, stream)) = walk.current.take() {
            // A table that panics fails alone: its database goes on with the next one.
            match catch_unwind(AssertUnwindSafe(|| self.fetch_batch(&table, stream))) {
                Ok(rest) => walk.current = rest.map(|stream| (table, stream)),
                Err(panic) => self.blame(&table, &*panic),
            }
            return true;
        }
        let next = self.timed(|| walk.tables.next());
        obj.touch();
        let Some(NestedTable { step, table: opened }) = next else { return false };
        walk.met += 1;
        if let Err(error) = walk.budget.take_entry() {
            obj.flaw(walk.met, error.into());
            return false;
        }
        self.metrics().objects_discovered.add(1);
        let table = ObjectCtx::nested(obj, step, Arc::clone(&walk.budget), walk.depth, None);
        match opened {
            Ok(opened) => {
                let opened = OpenTable { table: Arc::clone(table.location()), ..opened };
                let stream = Box::new(TableStream::new(&table, opened));
                walk.current = Some((table, stream));
            }
            Err(error) => table.flaw(0, error),
        }
        true
    }
}
