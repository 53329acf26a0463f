//! Ctrl-C and SIGTERM: once to stop cleanly, twice to stop at once.

use domesday_control::StopSignal;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::Exit;

/// Listens until the process ends.
pub fn listen(stop: StopSignal) -> std::io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        either(&mut interrupt, &mut terminate).await;
        stop.stop();
        either(&mut interrupt, &mut terminate).await;
        std::process::exit(Exit::Incomplete as i32);
    });
    Ok(())
}

async fn either(a: &mut Signal, b: &mut Signal) {
    tokio::select! {
        _ = a.recv() => {}
        _ = b.recv() => {}
    }
}
