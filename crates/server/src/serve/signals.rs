//! Requests to stop (`SIGTERM`, `SIGINT`, or `SIGHUP` of a terminal that is closed): the first one asks for an orderly
//! end, the second one for an end at once.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Counts the signals from now on.
pub(super) fn listen() -> io::Result<watch::Receiver<u32>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut hangup = if is_hangup_ignored() { None } else { Some(signal(SignalKind::hangup())?) };
    let (count, counted) = watch::channel(0);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                _ = next(&mut hangup) => {}
            }
            count.send_modify(|count| *count += 1);
        }
    });
    Ok(counted)
}

async fn next(signal: &mut Option<Signal>) -> Option<()> {
    match signal {
        Some(signal) => signal.recv().await,
        None => std::future::pending().await,
    }
}

/// Whether this process was started to outlive its terminal, as `nohup` does. Then it ignores the end of the terminal,
/// which otherwise is a request to stop.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// Resolves after this many signals.
pub(super) async fn received(mut counted: watch::Receiver<u32>, times: u32) {
    if counted.wait_for(|count| *count >= times).await.is_err() {
        // The counting task is gone, so no signal can come.
        std::future::pending::<()>().await;
    }
}
