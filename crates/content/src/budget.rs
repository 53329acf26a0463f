//! Budgets: what everything below one outermost object may cost together.
//!
//! Counters are atomics in one shared [`Budget`], because entries of one archive are read on several
//! threads. They only ever grow (but for memory held), so no order between them matters: an overdraft is
//! seen by the reader that makes it and by every reader after it.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use domesday_model::Reason;

use crate::error::ContentError;

/// Unpacked bytes that are free of the inflation limit: small files of zeros are common and harmless.
const INFLATION_FREE_BYTES: u64 = 16 << 20;

/// The limits of one outermost object and all that is nested in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Containers inside one another; a compressor counts as one.
    pub max_depth: u32,
    pub max_entries: u64,
    pub max_unpacked_bytes: u64,
    /// Unpacked bytes per byte of the outermost object.
    pub max_inflation: u64,
    /// Bytes held in memory at once for nested archives that need random access.
    pub max_buffered: u64,
}

/// What is left of the limits, shared by everything under one outermost object.
#[derive(Debug)]
pub struct Budget {
    limits: Limits,
    /// Size of the outermost object; grows with what is read when it was not known beforehand.
    packed: AtomicU64,
    packed_known: bool,
    entries: AtomicU64,
    unpacked: AtomicU64,
    /// Packed bytes of zip entries read: entries may overlap, so these are not bounded by the size.
    fetched: AtomicU64,
    buffered: AtomicU64,
}

impl Budget {
    pub fn new(limits: Limits, packed_size: Option<u64>) -> Arc<Budget> {
        Arc::new(Budget {
            limits,
            packed: AtomicU64::new(packed_size.unwrap_or(0)),
            packed_known: packed_size.is_some(),
            entries: AtomicU64::new(0),
            unpacked: AtomicU64::new(0),
            fetched: AtomicU64::new(0),
            buffered: AtomicU64::new(0),
        })
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Bytes unpacked so far.
    pub fn unpacked(&self) -> u64 {
        self.unpacked.load(Relaxed)
    }

    /// Entries met so far, directories and links included.
    pub fn entries(&self) -> u64 {
        self.entries.load(Relaxed)
    }

    /// Memory held now for nested archives.
    pub fn buffered(&self) -> u64 {
        self.buffered.load(Relaxed)
    }

    pub(crate) fn packed_known(&self) -> bool {
        self.packed_known
    }

    pub(crate) fn add_packed(&self, bytes: u64) {
        self.packed.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn check_depth(&self, depth: u32) -> Result<(), ContentError> {
        if depth < self.limits.max_depth {
            return Ok(());
        }
        let detail = format!("not opened: nested deeper than {} containers", self.limits.max_depth);
        Err(ContentError::fatal_for(Reason::DepthLimit, detail))
    }

    /// Counts an entry of an archive, or a table of a database.
    pub fn take_entry(&self) -> Result<(), ContentError> {
        if self.entries.fetch_add(1, Relaxed) < self.limits.max_entries {
            return Ok(());
        }
        let detail = format!("more than {} archive entries", self.limits.max_entries);
        Err(ContentError::fatal_for(Reason::EntryLimit, detail))
    }

    /// How many of `bytes` just unpacked may be handed out, and the reason when not all.
    fn take_unpacked(&self, bytes: u64) -> (u64, Option<ContentError>) {
        let Limits { max_unpacked_bytes, max_inflation, .. } = self.limits;
        let before = self.unpacked.fetch_add(bytes, Relaxed);
        let by_ratio = self.packed.load(Relaxed).saturating_mul(max_inflation).max(INFLATION_FREE_BYTES);
        let allowed = max_unpacked_bytes.min(by_ratio).saturating_sub(before).min(bytes);
        let reason = (allowed < bytes).then(|| {
            if max_unpacked_bytes <= by_ratio {
                let detail = format!("more than {max_unpacked_bytes} unpacked bytes");
                ContentError::fatal_for(Reason::ByteLimit, detail)
            } else {
                let detail = format!("unpacks to more than {max_inflation} times its size");
                ContentError::fatal_for(Reason::RatioLimit, detail)
            }
        });
        (allowed, reason)
    }

    /// Counts packed bytes that a zip entry reads. Overlapping entries that inflate to nothing would
    /// otherwise cost their whole input each and never be stopped.
    pub(crate) fn take_fetched(&self, bytes: u64) -> Result<(), ContentError> {
        let limit = self.limits.max_unpacked_bytes;
        if self.fetched.fetch_add(bytes, Relaxed).saturating_add(bytes) <= limit {
            return Ok(());
        }
        Err(ContentError::fatal_for(Reason::ByteLimit, format!("more than {limit} packed bytes read")))
    }

    /// Reserves memory for a nested archive, or refuses.
    pub(crate) fn try_hold(&self, bytes: u64) -> bool {
        let limit = self.limits.max_buffered;
        self.buffered
            .fetch_update(Relaxed, Relaxed, |held| held.checked_add(bytes).filter(|&sum| sum <= limit))
            .is_ok()
    }

    pub(crate) fn release(&self, bytes: u64) {
        self.buffered.fetch_sub(bytes, Relaxed);
    }
}

/// Charges unpacked bytes to the budget as they are handed out, and stops with the limit's reason.
pub(crate) struct Meter {
    budget: Arc<Budget>,
    stopped: Option<ContentError>,
}

impl Meter {
    pub(crate) fn new(budget: &Arc<Budget>) -> Self {
        Meter { budget: Arc::clone(budget), stopped: None }
    }

    pub(crate) fn check(&self) -> io::Result<()> {
        self.stopped.clone().map_or(Ok(()), |stopped| Err(stopped.into_io()))
    }

    /// How many of `got` bytes may be handed out: all, or the rest of the budget and then no more.
    pub(crate) fn pass(&mut self, got: usize) -> io::Result<usize> {
        self.check()?;
        let (allowed, stopped) = self.budget.take_unpacked(got as u64);
        self.stopped = stopped;
        if allowed == 0 {
            self.check()?;
        }
        Ok(allowed as usize)
    }
}

/// A reader of unpacked bytes with a meter on it.
pub(crate) struct Metered<R> {
    inner: R,
    meter: Meter,
}

impl<R> Metered<R> {
    pub(crate) fn new(inner: R, budget: &Arc<Budget>) -> Self {
        Metered { inner, meter: Meter::new(budget) }
    }
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.meter.check()?;
        let got = self.inner.read(out)?;
        self.meter.pass(got)
    }
}

/// Counts the bytes of an outermost stream whose size nobody knew.
pub(crate) struct CountPacked<R> {
    pub(crate) inner: R,
    pub(crate) budget: Arc<Budget>,
}

impl<R: Read> Read for CountPacked<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let got = self.inner.read(out)?;
        self.budget.add_packed(got as u64);
        Ok(got)
    }
}
