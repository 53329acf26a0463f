//! One part of one object, fetched with retries.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use bytes::Bytes;
use domesday_content::ObjectError;
use domesday_model::{ObjectKey, Reason};
use domesday_scheduler::waiting;
use tokio::sync::OwnedSemaphorePermit;

use super::budget::{REQUESTS, shrink};
use super::{ATTEMPTS_MAX, AbortOnDrop, Failure, Listed, RangeSource, Received, pause, rest, runtime};

/// How long one part may take once its turn has come, with all its retries.
const PART_TIME_MAX: Duration = Duration::from_secs(300);
/// Bytes reserved for an answer whose length is unknown: 64 KiB.
const UNKNOWN_LEN: u64 = 64 << 10;

/// An object to be asked for.
pub(super) struct Object {
    source: Arc<dyn RangeSource>,
    pub key: ObjectKey,
    pub listed: Option<Listed>,
}

/// What answers have told of the whole object, which all further ones must agree with.
#[derive(Clone, Default)]
pub(super) struct Whole {
    pub size: Option<u64>,
    pub version: Option<String>,
}

/// Bytes of an object.
pub(super) struct Part {
    pub bytes: Bytes,
    /// Whether the object ended before the part was full.
    pub is_short: bool,
    pub whole: Whole,
}

/// Bytes, and the room they take in the budgets: given back when the last one who looks at them is gone.
struct Held {
    bytes: Vec<u8>,
    _room: Room,
}

pub(super) type Room = Vec<OwnedSemaphorePermit>;

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A part on its way. Dropping it ends the request.
pub(super) struct Pending {
    result: Receiver<Result<Part, ObjectError>>,
    _task: AbortOnDrop,
}

impl Pending {
    /// Waits for the part, as long as its packet is not cancelled. May be called anywhere: the request runs on a runtime
    /// of its own.
    pub fn wait(self) -> Result<Part, ObjectError> {
        let lost = || Err(ObjectError::new(Reason::ReadError, "a remote request was lost"));
        waiting::receive(&self.result).unwrap_or_else(lost)
    }
}

impl Object {
    pub fn new(source: &Arc<dyn RangeSource>, key: ObjectKey, listed: Option<Listed>) -> Arc<Object> {
        Arc::new(Object { source: Arc::clone(source), key, listed })
    }

    /// Whether it was listed as empty.
    pub fn is_empty(&self) -> bool {
        self.listed.is_some_and(|listed| listed.size == 0)
    }

    /// Begins to fetch a part.
    pub fn begin(
        self: &Arc<Self>,
        range: Range<u64>,
        whole: &Whole,
        room: Room,
    ) -> Result<Pending, ObjectError> {
        let (sender, result) = sync_channel(1);
        let (object, whole) = (Arc::clone(self), whole.clone());
        let task = runtime()?.spawn(async move {
            let _turn = REQUESTS.acquire().await;
            let fetched = tokio::time::timeout(PART_TIME_MAX, object.fetch(range, whole, room)).await;
            let late = |_| Err(ObjectError::new(Reason::Unavailable, "no answer in time"));
            // Nobody waits any more: nobody wants it.
            let _ = sender.send(fetched.unwrap_or_else(late));
        });
        Ok(Pending { result, _task: AbortOnDrop(task.abort_handle()) })
    }

    async fn fetch(&self, range: Range<u64>, whole: Whole, mut room: Room) -> Result<Part, ObjectError> {
        let known = self.listed.map_or(UNKNOWN_LEN, |listed| listed.size.saturating_sub(range.start));
        let mut received = Received { size: whole.size, version: whole.version, ..Received::default() };
        received.bytes.reserve_exact((range.end - range.start).min(known) as usize);
        let mut failed = 0;
        while let Err(failure) = self.ask(&range, &mut received).await {
            failed += 1;
            if !failure.is_transient || failed >= ATTEMPTS_MAX {
                return Err(failure.error);
            }
            let wait = pause(failed, failure.retry_after);
            tracing::debug!(object = %self.key, error = %failure.error, ?wait, "remote read failed, trying again");
            rest(wait).await;
        }
        let Received { mut bytes, size, version, .. } = received;
        bytes.shrink_to_fit();
        if self.listed.is_none() {
            room.iter_mut().for_each(|room| shrink(room, bytes.len() as u64));
        }
        Ok(Part {
            is_short: range.start + (bytes.len() as u64) < range.end,
            bytes: Bytes::from_owner(Held { bytes, _room: room }),
            whole: Whole { size, version },
        })
    }

    /// One attempt at what is missing of a part.
    async fn ask(&self, range: &Range<u64>, received: &mut Received) -> Result<(), Failure> {
        // The bytes that are there belong to this version; so must the others. Without one they begin anew.
        let version = received.version.clone();
        if version.is_none() {
            received.bytes.clear();
        }
        let rest = range.start + received.bytes.len() as u64..range.end;
        let asked = self.source.fetch(&self.key, rest, version.as_deref(), received).await;
        let listed = self.listed.and_then(|listed| listed.marks.tag);
        if listed.is_some() && received.tag.is_some() && listed != received.tag {
            return Err(Failure::fatal(Reason::Changed, "replaced since it was listed"));
        }
        asked?;
        let end = range.end.min(received.size.unwrap_or(0));
        if range.start + (received.bytes.len() as u64) < end {
            return Err(Failure::transient("the answer broke off"));
        }
        Ok(())
    }
}
