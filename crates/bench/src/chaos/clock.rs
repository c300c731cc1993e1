//! The clock of this machine, which no experiment changes, and waiting with a limit.
#![allow(clippy::disallowed_methods, reason = "experiments compare what happened with the true time")]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
pub(crate) fn true_time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// A start to measure from.
pub(crate) fn instant() -> Instant {
    Instant::now()
}

/// Sleeps; every wait of an experiment that is not for an event goes through here.
pub(crate) fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

/// [`pause`] in seconds.
pub(crate) fn pause_s(seconds: f64) {
    pause(Duration::from_secs_f64(seconds.max(0.0)));
}

/// Looks again and again until there is something to see or the limit has passed.
pub(crate) fn wait_for<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if begun.elapsed() >= limit {
            return None;
        }
        pause(Duration::from_millis(50));
    }
}

/// How many processes wanted a processor in the last minute.
pub(crate) fn load_average() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(0.0)
}

/// How many processes wanted a processor lately, for each processor.
pub(crate) fn load_per_processor() -> f64 {
    let load = load_average();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    load / f64::from(u32::try_from(processors).unwrap_or(1))
}

/// How much longer everything may take on a machine that is as busy as this one; at least 1.
pub(crate) fn stretch() -> f64 {
    load_per_processor().clamp(1.0, 4.0)
}
