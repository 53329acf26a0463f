//! Classification: objects go through the scan core, their results into the book. Tasks that end at about the same time
//! are completed together.

mod completer;
mod packet;

pub(crate) use packet::{PacketSource, packet_options};

use std::sync::Arc;

use async_trait::async_trait;
use domesday_model::TaskType;
use domesday_store::WorkPacket;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;
use tracing::Instrument;

use super::TaskHandler;
use crate::stop::Stop;
use crate::worker::packet::PacketError;
use crate::worker::session::Session;
use crate::worker::window::Slots;
use completer::{Completer, Request, completing};

pub(super) struct Classify {
    completer: Completer,
    /// Locked once, for as long as the session lasts.
    requests: Mutex<mpsc::Receiver<Request>>,
}

impl Classify {
    pub fn new() -> Classify {
        let (completer, requests) = Completer::new();
        Classify { completer, requests: Mutex::new(requests) }
    }
}

#[async_trait]
impl TaskHandler for Classify {
    fn task_type(&self) -> TaskType {
        TaskType::Classification
    }

    fn slots(&self) -> Slots {
        Slots::Core
    }

    /// In a set of its own, so that it ends with whoever waits for it, and a panic becomes an error.
    async fn run(&self, session: &Arc<Session>, packet: &WorkPacket, halt: Stop) -> Result<(), PacketError> {
        let (session, packet, completer) = (Arc::clone(session), packet.clone(), self.completer.clone());
        let mut alone = JoinSet::new();
        let classified = async move { packet::classify(&session, &completer, &packet, halt).await };
        alone.spawn(classified.in_current_span());
        match alone.join_next().await {
            Some(Ok(classified)) => classified,
            _ => Err(PacketError::Retry("classification panicked".into())),
        }
    }

    async fn attend(&self, session: &Arc<Session>) {
        completing(session, &mut *self.requests.lock().await).await;
    }
}
