//! [`TrustedTime`]: how far the clock may be believed when something is to be deleted for good.
//!
//! A clock that leaps forward makes all history look old. So the pruner does not follow a leap: its time goes on from the last
//! trusted time by the monotonic clock, until the clock has been steady for a day. A trusted time is never ahead of the clock,
//! so history may be kept longer than the retention, and never shorter.

use std::time::Duration;

use jiff::Timestamp;

use crate::clock::{between, later};

/// How long a clock must be steady until a leap is believed.
const TRUST_AFTER: Duration = Duration::from_hours(24);
/// A start this long after the last trusted time is believed: machines are off for a while.
const MAX_LEAP_AT_START: Duration = Duration::from_hours(24);
/// A clock that is corrected by less is trusted all the same.
const MAX_LEAP: Duration = Duration::from_mins(1);

/// A time that only follows the clock where that is plausible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TrustedTime {
    time: Timestamp,
    /// When that was, by the monotonic clock.
    monotonic: Duration,
    /// Since when no step of the clock was noticed, by the monotonic clock.
    steady_since: Duration,
}

impl TrustedTime {
    /// At the start of an instance. `last` is the last trusted time that was written.
    pub(super) fn new(last: Option<Timestamp>, now: Timestamp, monotonic: Duration) -> TrustedTime {
        let leapt = last.filter(|last| between(*last, now) > MAX_LEAP_AT_START);
        TrustedTime { time: leapt.unwrap_or(now), monotonic, steady_since: monotonic }
    }

    /// Goes on to the present, and returns it as far as it is trusted. `last_step` is when a step was noticed last.
    pub(super) fn advance(&mut self, now: Timestamp, monotonic: Duration, last_step: Option<Duration>) -> Timestamp {
        self.steady_since = self.steady_since.max(last_step.unwrap_or_default());
        let expected = later(self.time, monotonic.saturating_sub(self.monotonic));
        let confirmed = monotonic.saturating_sub(self.steady_since) >= TRUST_AFTER;
        let follows = confirmed || between(expected, now) <= MAX_LEAP;
        self.time = if follows { now } else { expected };
        self.monotonic = monotonic;
        self.time
    }

    /// Whether the clock is ahead of what is trusted.
    pub(super) fn is_held(&self, now: Timestamp) -> bool {
        between(self.time, now) > MAX_LEAP
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600;

    fn at(hours: u64) -> Timestamp {
        later("2026-11-15T00:00:00Z".parse().unwrap(), Duration::from_secs(hours * HOUR))
    }

    fn monotonic(hours: u64) -> Duration {
        Duration::from_secs(hours * HOUR)
    }

    #[test]
    fn steady_clock_is_followed() {
        let mut trusted = TrustedTime::new(Some(at(0)), at(10), monotonic(0));
        assert_eq!(trusted.advance(at(10), monotonic(0), None), at(10), "the machine was off for a while");
        assert_eq!(trusted.advance(at(40), monotonic(30), None), at(40));
        assert!(!trusted.is_held(at(40)));
    }

    #[test]
    fn leap_at_the_start_is_followed_after_a_day_without_a_step() {
        let mut trusted = TrustedTime::new(Some(at(0)), at(9_600), monotonic(5));
        assert_eq!(trusted.advance(at(9_601), monotonic(6), None), at(1));
        assert!(trusted.is_held(at(9_601)));
        assert_eq!(trusted.advance(at(9_623), monotonic(28), None), at(23));
        assert_eq!(trusted.advance(at(9_624), monotonic(29), None), at(9_624));
        assert!(!trusted.is_held(at(9_624)));
    }

    #[test]
    fn step_forward_is_not_followed_and_one_back_is() {
        let mut trusted = TrustedTime::new(None, at(0), monotonic(0));
        assert_eq!(trusted.advance(at(9_601), monotonic(30), Some(monotonic(29))), at(30), "steady for an hour only");
        assert_eq!(trusted.advance(at(31), monotonic(31), Some(monotonic(31))), at(31));
        assert!(!trusted.is_held(at(31)));
        assert_eq!(trusted.advance(at(12), monotonic(32), Some(monotonic(32))), at(12), "never ahead of the clock");
    }
}
