//! The wish to stop: the first one is for an orderly end, the second one for an end at once.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Counts the signals from now on.
pub(super) fn listen() -> io::Result<watch::Receiver<u32>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (count, counted) = watch::channel(0);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            count.send_modify(|count| *count += 1);
        }
    });
    Ok(counted)
}

/// Resolves after so many signals.
pub(super) async fn told(mut counted: watch::Receiver<u32>, times: u32) {
    if counted.wait_for(|count| *count >= times).await.is_err() {
        // Nobody is left who could tell.
        std::future::pending::<()>().await;
    }
}
