//! Asking services to stop: one signal, any number of listeners.

use tokio::sync::watch;

/// Held by whoever may ask for the stop.
#[derive(Clone, Debug)]
pub struct StopSignal(watch::Sender<bool>);

/// Held by whoever is to stop.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

impl StopSignal {
    pub fn new() -> (StopSignal, Stop) {
        let (sender, receiver) = watch::channel(false);
        (StopSignal(sender), Stop(receiver))
    }

    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    pub(crate) fn is_asked(&self) -> bool {
        *self.0.borrow()
    }

    pub fn listen(&self) -> Stop {
        Stop(self.0.subscribe())
    }
}

impl Stop {
    pub fn is_asked(&self) -> bool {
        *self.0.borrow()
    }

    /// The same, and also once nobody holds the signal any more: for those whose owner may just go.
    pub(crate) async fn asked_or_gone(&mut self) {
        let _ = self.0.wait_for(|asked| *asked).await;
    }

    /// Returns once the stop is asked for. A signal that nobody holds any more can never be given.
    pub async fn asked(&mut self) {
        if self.0.wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
