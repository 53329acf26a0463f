//! Objects that are far away, read by the scan core's threads as if they were near.
//!
//! A connector says how one range of one object is asked for ([`RangeSource`]); this module does the rest:
//! parts that are fetched concurrently, retries that go on where an answer broke off, one version of an object
//! from its first byte to its last, and limits on bytes and requests under way.
//!
//! # Which runtime
//! Requests run on a runtime of their own, one per process, started when first needed. The scan core's threads
//! are no runtime's, and a connector may be asked on any: whoever waits for an answer, however it waits, never
//! stands in the way of the answer. Listings go there too ([`run`]), so that a client's connections belong to
//! one runtime.
//!
//! # Why nothing waits for ever
//! Memory is bounded by two budgets in bytes: one for the beginnings of objects that are not opened yet, one for
//! the parts after them. A thread that needs bytes now never waits for either: when there is no room it asks for
//! a small piece outside of them. So what is read ahead can neither starve nor block what is being read, and
//! memory is at most the budgets and one piece per thread and open archive.

mod ahead;
mod budget;
mod part;
mod random;
mod reader;
#[cfg(test)]
mod tests;
mod usage;

use std::future::Future;
use std::io;
use std::ops::Range;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use domesday_content::ObjectError;
use domesday_model::backoff::jitter;
use domesday_model::{Backoff, ListedObject, ObjectKey, Reason, VersionMarks};
use domesday_scheduler::OpenBytes;
use tokio::runtime::{Builder, Runtime};

use crate::ReadAhead;
use ahead::PacketAhead;
use part::Object;

pub use budget::{AHEAD_MAX, DEMAND_LEN, PART_LEN, PARTS_MAX, REQUESTS_MAX};
pub use usage::{Usage, rest, usage};

/// Threads of the runtime on which requests run: they only pass bytes on.
const RUNTIME_THREADS: usize = 2;

static RUNTIME: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
    Builder::new_multi_thread()
        .worker_threads(RUNTIME_THREADS)
        .thread_name("domesday-remote")
        .enable_all()
        .build()
});

fn runtime() -> Result<&'static Runtime, ObjectError> {
    RUNTIME.as_ref().map_err(|error| {
        ObjectError::new(Reason::ReadError, format!("cannot start threads for remote reads: {error}"))
    })
}

/// Runs a future on the runtime of remote reads. It ends with its caller.
pub async fn run<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, ObjectError> {
    let task = runtime()?.spawn(work);
    let _abort = AbortOnDrop(task.abort_handle());
    // A library that a server's answer made panic ends one request. What it said may quote the answer.
    task.await.map_err(|_| ObjectError::new(Reason::ReadError, "a remote request was lost"))
}

/// Begins a future on the runtime of remote reads, beside its caller. It ends when what is returned is dropped.
pub fn begin(work: impl Future<Output = ()> + Send + 'static) -> Result<Begun, ObjectError> {
    Ok(Begun(AbortOnDrop(runtime()?.spawn(work).abort_handle())))
}

/// What [`begin`] began.
pub struct Begun(#[allow(dead_code, reason = "its drop is what it is for")] AbortOnDrop);

struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// One way to ask for bytes.
#[async_trait]
pub trait RangeSource: Send + Sync + 'static {
    /// Asks once for a range of an object. What arrives is put into `received` as it comes, so that it is there
    /// also when the request then fails: a retry goes on from it. An object that ends inside of the range gives
    /// what there is of it. With `version`, any other version of the object is refused with [`Reason::Changed`].
    async fn fetch(
        &self,
        key: &ObjectKey,
        range: Range<u64>,
        version: Option<&str>,
        received: &mut Received,
    ) -> Result<(), Failure>;
}

/// What has arrived of a part.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Received {
    pub bytes: Vec<u8>,
    /// The whole object's size, if the source tells.
    pub size: Option<u64>,
    /// What the source calls this version of the object, as [`RangeSource::fetch`] wants it back.
    pub version: Option<String>,
    /// The hash of it, as listed marks have it.
    pub tag: Option<[u8; 16]>,
}

/// Why a request failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    pub error: ObjectError,
    /// Whether asking again may help.
    pub is_transient: bool,
    /// How long the source asks to be left alone.
    pub retry_after: Option<Duration>,
}

impl Failure {
    pub fn fatal(reason: Reason, detail: impl Into<String>) -> Failure {
        Failure { error: ObjectError::new(reason, detail), is_transient: false, retry_after: None }
    }

    pub fn transient(detail: impl Into<String>) -> Failure {
        Failure {
            error: ObjectError::new(Reason::Unavailable, detail),
            is_transient: true,
            retry_after: None,
        }
    }
}

/// How often a request that fails for a passing reason is made, at most.
pub const ATTEMPTS_MAX: u32 = 8;
/// The longest pause between two attempts, also when a source asks for more.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// The pauses where a source says nothing.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), PAUSE_MAX);

/// The pause after this many failed attempts: as long as the source asks for, or twice as long each time.
pub fn pause(failed: u32, retry_after: Option<Duration>) -> Duration {
    retry_after.map_or_else(|| BACKOFF.after(failed), |asked| jitter(asked.min(PAUSE_MAX)))
}

/// The objects of one remote data source.
#[derive(Clone)]
pub struct Remote(Arc<dyn RangeSource>);

impl Remote {
    pub fn new(source: Arc<dyn RangeSource>) -> Remote {
        Remote(source)
    }

    /// Opens an object of which nothing but its key is known.
    pub fn open(&self, key: &ObjectKey) -> Result<OpenBytes, ObjectError> {
        reader::open(Object::new(&self.0, key.clone(), None), None)
    }

    /// Reads the beginnings of a packet's objects ahead, in their order.
    pub fn read_ahead(&self, objects: &[ListedObject]) -> Result<Box<dyn ReadAhead>, ObjectError> {
        Ok(Box::new(PacketAhead::begin(&self.0, objects)?))
    }
}

/// What is known of an object before it is asked for.
#[derive(Clone, Copy)]
struct Listed {
    size: u64,
    marks: VersionMarks,
}
