//! Signals: `SIGTERM` and `SIGINT` ask for an orderly end, and a second one for an end at once; `SIGHUP` asks for a reload
//! of the configuration, unless it says that the terminal of the server was closed, which is a request to stop too.

use std::fs::File;
use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// The signals so far.
#[derive(Clone)]
pub(super) struct Signals {
    /// How many asked for an end.
    stops: watch::Receiver<u32>,
    /// How many asked for a reload.
    pub(super) reloads: watch::Receiver<u32>,
}

/// The meaning of a `SIGHUP`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hangup {
    /// A reload was requested.
    Reload,
    /// The terminal was closed.
    Stop,
    /// It was, and the process was started to outlive it, as `nohup` does.
    Ignore,
}

/// The terminal that a process was started from.
#[derive(Clone, Copy, Debug)]
struct Terminal {
    is_open: bool,
    is_hangup_ignored: bool,
}

impl Terminal {
    /// Judges a `SIGHUP` by whether the terminal is still there. It can be closed only once.
    fn judge(&mut self, is_open: bool) -> Hangup {
        let was_closed = self.is_open && !is_open;
        self.is_open = is_open;
        match (was_closed, self.is_hangup_ignored) {
            (false, _) => Hangup::Reload,
            (true, false) => Hangup::Stop,
            (true, true) => Hangup::Ignore,
        }
    }
}

/// Counts the signals from now on.
pub(super) fn listen() -> io::Result<Signals> {
    let mut terminal = Terminal { is_open: has_terminal(), is_hangup_ignored: is_hangup_ignored() };
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut hangup = signal(SignalKind::hangup())?;
    let (stop, stops) = watch::channel(0);
    let (reload, reloads) = watch::channel(0);
    tokio::spawn(async move {
        loop {
            let counted = tokio::select! {
                _ = terminate.recv() => &stop,
                _ = interrupt.recv() => &stop,
                _ = hangup.recv() => match terminal.judge(has_terminal()) {
                    Hangup::Reload => &reload,
                    Hangup::Stop => &stop,
                    Hangup::Ignore => continue,
                },
            };
            counted.send_modify(|count| *count += 1);
        }
    });
    Ok(Signals { stops, reloads })
}

/// Whether this process has a controlling terminal. It loses it when the terminal is closed.
fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
}

/// Whether this process was started to outlive its terminal.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

impl Signals {
    /// Resolves after this many requests to stop.
    pub(super) async fn stopped(&self, times: u32) {
        if self.stops.clone().wait_for(|count| *count >= times).await.is_err() {
            // The counting task is gone, so no signal can come.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hangup_means_reload_unless_it_closed_the_terminal() {
        let mut daemon = Terminal { is_open: false, is_hangup_ignored: false };
        assert_eq!(daemon.judge(false), Hangup::Reload);
        let mut shell = Terminal { is_open: true, is_hangup_ignored: false };
        assert_eq!([shell.judge(true), shell.judge(false)], [Hangup::Reload, Hangup::Stop]);
        let mut nohup = Terminal { is_open: true, is_hangup_ignored: true };
        assert_eq!(
            [nohup.judge(true), nohup.judge(false), nohup.judge(false)],
            [Hangup::Reload, Hangup::Ignore, Hangup::Reload]
        );
    }
}
