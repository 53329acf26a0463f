//! What the last scan with the same rules knew of a packet's containers, read along with the listing: an
//! object whose version is still the same is not read again.
//!
//! Prior records come in the order of the containers, and within one in the order they were listed in. A
//! listing mostly has that order, too, so little is held at a time; where it has not, at most
//! [`WINDOW_MAX`] are. What is not found among those is taken for new, which costs a reading and never an object.

use std::collections::{HashMap, VecDeque};

use domesday_model::{ObjectKey, RecordKind, UnitRecord};
use domesday_store::{Base, PriorCursor, PriorRecord, StoreError};

use crate::stop::Stop;
use crate::worker::session::Session;

/// Prior records asked for at once.
const PAGE_MAX: u32 = 4_096;
/// Prior records of one container held at once, at most.
const WINDOW_MAX: usize = 200_000;
/// Prior records moved into the window at once.
const CHUNK: usize = 1_000;
/// Such moves per batch of a listing when the window is full: the past is read a few times as fast as the
/// present, and never all of it for one batch.
const CHUNKS_PER_BATCH: usize = 8;

pub(super) struct Prior {
    base: Base,
    /// Those of the packet, in the order they are listed.
    containers: Vec<ObjectKey>,
    /// Which of them is being listed.
    at: usize,
    /// Read, and not of the window yet.
    ahead: VecDeque<PriorRecord>,
    /// Where to read on.
    from: PriorCursor,
    has_more: bool,
    window: Window,
}

impl Prior {
    pub fn new(base: Base, containers: Vec<ObjectKey>) -> Prior {
        Prior {
            base,
            containers,
            at: 0,
            ahead: VecDeque::new(),
            from: PriorCursor::default(),
            has_more: true,
            window: Window::default(),
        }
    }

    /// Marks what has not changed among the entries of a container. Containers come in the order they were
    /// given in; one may be left out.
    pub async fn mark(
        &mut self,
        session: &Session,
        halt: &Stop,
        container: &ObjectKey,
        records: &mut [UnitRecord],
    ) -> Result<(), StoreError> {
        if self.containers.get(self.at) != Some(container) {
            self.window.clear();
            self.at = self.containers.partition_point(|other| other < container);
        }
        let rest = self.mark_in_order(session, halt, records).await?;
        let records = &mut records[rest..];
        let mut chunks = 0;
        while records.iter().any(|record| self.is_unknown(record)) {
            if (self.window.is_full() && chunks == CHUNKS_PER_BATCH) || !self.read_on(session, halt).await? {
                break;
            }
            chunks += 1;
        }
        for record in records.iter_mut().filter(|record| record.kind == RecordKind::File) {
            if let Some(prior) = self.window.take(&record.name) {
                record.kind = prior.kind_of(record, &self.base);
            }
        }
        Ok(())
    }

    /// Marks entries for as long as they come in the order of the prior ones, which need not be looked for then;
    /// how many that are.
    async fn mark_in_order(
        &mut self,
        session: &Session,
        halt: &Stop,
        records: &mut [UnitRecord],
    ) -> Result<usize, StoreError> {
        if !self.window.is_empty() {
            return Ok(0);
        }
        for (index, record) in records.iter_mut().enumerate() {
            if record.kind != RecordKind::File {
                continue;
            }
            self.skip_to_container(session, halt).await?;
            let is_next = |prior: &mut PriorRecord| prior.container == self.at && prior.name == record.name;
            match self.ahead.pop_front_if(is_next) {
                Some(prior) => record.kind = prior.kind_of(record, &self.base),
                None => return Ok(index),
            }
        }
        Ok(records.len())
    }

    /// Reads on until the next prior record is none of an earlier container.
    async fn skip_to_container(&mut self, session: &Session, halt: &Stop) -> Result<(), StoreError> {
        loop {
            match self.ahead.front() {
                Some(record) if record.container >= self.at => return Ok(()),
                Some(_) => drop(self.ahead.pop_front()),
                None if !self.has_more => return Ok(()),
                None => self.load(session, halt).await?,
            }
        }
    }

    fn is_unknown(&self, record: &UnitRecord) -> bool {
        record.kind == RecordKind::File && !self.window.has(&record.name)
    }

    /// Moves more of the container into the window; false when there is no more of it.
    async fn read_on(&mut self, session: &Session, halt: &Stop) -> Result<bool, StoreError> {
        let mut moved = 0;
        while moved < CHUNK {
            self.skip_to_container(session, halt).await?;
            match self.ahead.pop_front_if(|record| record.container == self.at) {
                Some(record) => self.window.put(record),
                None => break,
            }
            moved += 1;
        }
        Ok(moved > 0)
    }

    async fn load(&mut self, session: &Session, halt: &Stop) -> Result<(), StoreError> {
        // What comes before the container being listed is of no use any more.
        if self.from.container < self.at {
            self.from = PriorCursor::start_of(self.at);
        }
        let (base, containers, from) = (&self.base, &self.containers, self.from);
        let page =
            session.ask(halt, || session.store().prior_records(base, containers, from, PAGE_MAX)).await?;
        self.ahead.extend(page.records);
        self.has_more = page.next.is_some();
        self.from = page.next.unwrap_or_default();
        Ok(())
    }
}

/// Prior records by name. When there are too many the older half goes.
#[derive(Default)]
struct Window {
    young: HashMap<Vec<u8>, PriorRecord>,
    old: HashMap<Vec<u8>, PriorRecord>,
}

impl Window {
    fn put(&mut self, record: PriorRecord) {
        if self.young.len() >= WINDOW_MAX / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(record.name.clone(), record);
    }

    fn has(&self, name: &[u8]) -> bool {
        self.young.contains_key(name) || self.old.contains_key(name)
    }

    fn take(&mut self, name: &[u8]) -> Option<PriorRecord> {
        self.young.remove(name).or_else(|| self.old.remove(name))
    }

    fn is_full(&self) -> bool {
        self.young.len() + self.old.len() >= WINDOW_MAX / 2
    }

    fn is_empty(&self) -> bool {
        self.young.is_empty() && self.old.is_empty()
    }

    fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}
