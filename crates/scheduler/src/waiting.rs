//! Waits of the scan core's threads for what comes from far away: they end when the packet is cancelled, so that nobody
//! who wants to stop has to wait for a remote.
//!
//! Connectors block in [`receive`], and look at [`is_cancelled`] where they wait otherwise. What they then fail with is
//! not told: the objects of a cancelled packet are nobody's fault.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use crate::packet::PacketCtx;

/// How often a thread that waits looks whether it still should.
pub const LOOK_EVERY: Duration = Duration::from_millis(100);

thread_local! {
    /// The packet that this thread works for.
    static CURRENT: RefCell<Option<Arc<PacketCtx>>> = const { RefCell::new(None) };
}

/// Until this goes, the thread works for a packet.
pub(crate) struct Working(Option<Arc<PacketCtx>>);

impl Working {
    pub(crate) fn for_packet(packet: &Arc<PacketCtx>) -> Working {
        Working(CURRENT.replace(Some(Arc::clone(packet))))
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// Whether what this thread works for was cancelled. Not on threads that are not the scan core's.
pub fn is_cancelled() -> bool {
    CURRENT.with_borrow(|current| current.as_ref().is_some_and(|packet| packet.is_cancelled()))
}

/// The next message; `None` when there will be none, or nobody wants it any more.
pub fn receive<T>(messages: &Receiver<T>) -> Option<T> {
    loop {
        match messages.recv_timeout(LOOK_EVERY) {
            Ok(message) => return Some(message),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) if is_cancelled() => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}
