//! Tracing of one session: where its objects with findings came from, asked of the source when everything is
//! scanned, because a source such as a git history is walked once for all of them.
//!
//! Crash argument: origins are saved under the claim, in steps that may be repeated; what has none yet is
//! asked for again by the next claim.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use domesday_model::{ObjectKey, Origin, TaskType};
use domesday_store::WorkPacket;

use super::TaskHandler;
use crate::metrics::Stage;
use crate::stop::Stop;
use crate::worker::packet::PacketError;
use crate::worker::session::Session;
use crate::worker::window::Slots;

/// Objects traced at once. Each walk of a history costs the same, however many it is for.
const TRACED_AT_ONCE: u32 = 100_000;
/// Origins saved by one verb, at most.
const SAVED_AT_ONCE: usize = 1_000;

pub(super) struct Trace;

#[async_trait]
impl TaskHandler for Trace {
    fn task_type(&self) -> TaskType {
        TaskType::Tracing
    }

    /// Those of listing, which is over by then.
    fn slots(&self) -> Slots {
        Slots::Source
    }

    fn comes_last(&self) -> bool {
        true
    }

    async fn run(&self, session: &Arc<Session>, packet: &WorkPacket, halt: Stop) -> Result<(), PacketError> {
        let (store, claim) = (session.store(), &packet.claim);
        let connector = session.worker.connector(packet)?;
        let moved = session.held.moved(claim);
        loop {
            if halt.is_asked() {
                return Err(PacketError::Stopped);
            }
            let objects = session.ask(&halt, || store.untraced(claim, TRACED_AT_ONCE)).await?;
            if objects.is_empty() {
                break;
            }
            let traced = session.worker.metrics.stage(Stage::Trace, session.worker.kind_slot(packet));
            let mut stopping = halt.clone();
            let found = tokio::select! {
                found = traced.timed(connector.origins(&objects, &moved)) => found?,
                () = stopping.asked() => return Err(PacketError::Stopped),
            };
            let mut known: HashMap<ObjectKey, Origin> = found.into_iter().collect();
            for part in objects.chunks(SAVED_AT_ONCE) {
                let origins: Vec<(ObjectKey, Option<Origin>)> =
                    part.iter().map(|key| (key.clone(), known.remove(key))).collect();
                session.ask(&halt, || store.save_origins(claim, origins.clone())).await?;
            }
        }
        session.complete(claim, &halt).await
    }
}
