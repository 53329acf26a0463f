//! Objects of several tables, such as an embedded database.
//!
//! The tables come one after another over one connection; so they are read one after another, a batch of rows at a time,
//! under the permit of the object. A database that cannot be opened is scanned as the bytes it is.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use domesday_content::{Budget, Input, NestedTable, TableFile, Tables};

use crate::executor::WorkerCtx;
use crate::fetch::{Fetch, Pace};
use crate::object::{ObjectCtx, ObjectRef};
use crate::rows::TableStream;
use crate::task::Task;

/// An object of several tables that is being read.
pub struct TablesWalk {
    tables: Tables,
    /// The table being read.
    current: Option<(ObjectRef, Box<TableStream>)>,
    /// Tables met: the place of a flaw in the object itself.
    met: u64,
    budget: Arc<Budget>,
    /// Containers around a table.
    depth: u32,
    /// The embedded database, held as long as there may be a copy of it, so that the budget knows.
    _file: Option<TableFile>,
}

impl TablesWalk {
    pub(crate) fn new(tables: Tables, budget: Arc<Budget>, depth: u32) -> TablesWalk {
        TablesWalk { tables, current: None, met: 0, budget, depth, _file: None }
    }
}

impl WorkerCtx {
    /// Opens what was recognised as a file of tables, `chain` being the compressors around it.
    pub(crate) fn open_table_file(
        &mut self,
        obj: &ObjectRef,
        file: TableFile,
        chain: Vec<&'static str>,
        (budget, depth): (Arc<Budget>, u32),
        pace: Pace,
    ) {
        match self.timed(obj, || file.tables()) {
            Ok(tables) => {
                let walk = TablesWalk::new(tables, budget, depth + chain.len() as u32 + 1);
                let walk = TablesWalk { _file: Some(file), ..walk };
                self.fetch_tables(obj, Box::new(walk), pace);
            }
            Err(error) => {
                obj.flaw(0, error);
                let bytes = Arc::clone(file.bytes());
                let size = bytes.size().ok();
                self.fetch_unpacked(obj, Input::Seekable(bytes).into_read(), size, chain, pace);
            }
        }
    }

    /// Reads tables from the next batch of rows on.
    pub(crate) fn fetch_tables(&mut self, obj: &ObjectRef, mut walk: Box<TablesWalk>, pace: Pace) {
        while !obj.packet().is_cancelled() && self.step_tables(obj, &mut walk) {
            if pace == Pace::Spawn {
                return self.spawn(Task::FetchSync { obj: Arc::clone(obj), fetch: Fetch::Tables(walk) });
            }
        }
    }

    /// Reads a batch of rows, or opens the next table; says whether there may be more.
    fn step_tables(&mut self, obj: &ObjectRef, walk: &mut TablesWalk) -> bool {
        if let Some((table, stream)) = walk.current.take() {
            // A table that panics fails alone: the next one is read all the same.
            match catch_unwind(AssertUnwindSafe(|| self.fetch_batch(&table, stream))) {
                Ok(rest) => walk.current = rest.map(|stream| (table, stream)),
                Err(panic) => self.blame(&table, &*panic),
            }
            return true;
        }
        let next = self.timed(obj, || walk.tables.next());
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
                let stream = Box::new(TableStream::new(&table, Arc::clone(table.location()), opened));
                walk.current = Some((table, stream));
            }
            Err(error) => table.flaw(0, error),
        }
        true
    }
}
