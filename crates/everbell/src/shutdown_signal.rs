//! [`shutdown_signal`]: the requests to stop that a program gets from its surroundings.

/// Resolves when this process is asked to stop: on SIGTERM, which Kubernetes, systemd and `docker stop` send, and on
/// SIGINT, which is ctrl-c. Where there are no such signals, on ctrl-c.
///
/// ```no_run
/// # async fn run(bell: everbell::Everbell) -> Result<(), everbell::EngineFailed> {
/// bell.run_until(everbell::shutdown_signal()).await?;
/// # Ok(())
/// # }
/// ```
///
/// It may be awaited in several places, and resolves in each of them, also if the signal came before: a web server and
/// [`run_until`](crate::Everbell::run_until), for example. The first poll takes over the handling of these signals for
/// the rest of the process, so they do not end it by themselves any more: a second ctrl-c does not shorten the
/// shutdown. The guide [`shutdown`](crate::guides::shutdown) says what happens to runs.
///
/// # Panics
///
/// Panics if it is polled outside of a Tokio runtime, or on one whose IO driver is off.
pub async fn shutdown_signal() {
    if let Err(error) = received().await {
        // Going on means that ctrl-c and SIGTERM end the process at once, as they do without this function.
        tracing::error!(%error, "cannot listen for requests to stop; this process stops without an orderly shutdown");
        std::future::pending::<()>().await;
    }
}

#[cfg(unix)]
async fn received() -> std::io::Result<()> {
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::signal::unix::{SignalKind, signal};

    /// A receiver gets no signal that came before it was made.
    static RECEIVED: AtomicBool = AtomicBool::new(false);

    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    if RECEIVED.load(Ordering::SeqCst) {
        return Ok(());
    }
    tokio::select! {
        _ = terminate.recv() => tracing::info!("received SIGTERM; shutting down"),
        _ = interrupt.recv() => tracing::info!("received SIGINT; shutting down"),
    }
    RECEIVED.store(true, Ordering::SeqCst);
    Ok(())
}

#[cfg(not(unix))]
async fn received() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}
