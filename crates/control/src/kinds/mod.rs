//! The kinds of task: each is a handler with what differs between them, in a place of its own. What is claimed, and
//! when; how a packet runs; how its task is completed. A packet that did not come to its end is given back or fails
//! as its [`PacketError`] says, whatever its kind.
//!
//! What the book must know of a kind is its entry in `model/task.rs`. A session of a worker goes through [`of_workers`]
//! and knows no kind by name.

pub(crate) mod classify;
pub(crate) mod enumerate;
mod trace;

use std::sync::Arc;

use async_trait::async_trait;
use domesday_model::TaskType;
use domesday_store::WorkPacket;

use crate::stop::Stop;
use crate::worker::packet::PacketError;
use crate::worker::session::Session;
use crate::worker::window::Slots;

/// One kind of task, as a session runs it.
#[async_trait]
pub(crate) trait TaskHandler: Send + Sync {
    fn task_type(&self) -> TaskType;

    /// Which slots its packets take.
    fn slots(&self) -> Slots;

    /// Whether its tasks are claimed only when there is nothing else to do: the kinds before it have none for its
    /// slots, and the session holds no packet. All such kinds share their slots.
    fn comes_last(&self) -> bool {
        false
    }

    /// Runs a packet and completes its task, unless `halt` is asked for first.
    async fn run(&self, session: &Arc<Session>, packet: &WorkPacket, halt: Stop) -> Result<(), PacketError>;

    /// What is done for all packets of the kind together. It goes on until it is dropped, when none is left.
    async fn attend(&self, _session: &Arc<Session>) {
        std::future::pending().await
    }
}

/// The kinds that workers claim, with what one session keeps for each. Those that share slots are asked for in this
/// order.
pub(crate) fn of_workers() -> Vec<Arc<dyn TaskHandler>> {
    vec![
        Arc::new(enumerate::Enumerate),
        Arc::new(classify::Classify::new()),
        // Asked for when those before it have nothing.
        Arc::new(trace::Trace),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_one_handler_and_those_that_come_last_share_their_slots() {
        let handlers = of_workers();
        for task_type in TaskType::ALL {
            let of_kind = handlers.iter().filter(|handler| handler.task_type() == *task_type);
            assert_eq!(of_kind.count(), 1, "{task_type:?}");
        }
        let last: Vec<Slots> =
            handlers.iter().filter(|handler| handler.comes_last()).map(|handler| handler.slots()).collect();
        assert!(last.windows(2).all(|pair| pair[0] == pair[1]));
    }
}
