//! [`Rate`]: how many runs a backfill creates in a time.

use std::fmt;
use std::str::FromStr;

use jiff::{SignedDuration, Timestamp};

use crate::ids::Invalid;

/// The most runs in a time.
const MAX_RUNS: u32 = 10_000;

/// How far creation may lag behind the rate and still make up for it: loops look seldom compared with a high rate.
const MAX_LAG: SignedDuration = SignedDuration::from_secs(1);

/// The units of time, by letter.
const UNITS: [(char, SignedDuration); 4] = [
    ('s', SignedDuration::from_secs(1)),
    ('m', SignedDuration::from_mins(1)),
    ('h', SignedDuration::from_hours(1)),
    ('d', SignedDuration::from_hours(24)),
];

/// A limit such as `10/m`: ten runs in a minute, evenly spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    runs: u32,
    unit: usize,
}

impl Rate {
    /// The time between two runs.
    pub fn interval(self) -> SignedDuration {
        UNITS[self.unit].1 / self.runs as i32
    }

    /// Returns when the next run is allowed, as it counts at `now`. A time before that makes up for a lag of at most a second; one
    /// too far ahead comes from a clock that was ahead or from a lower rate.
    fn effective(self, next_at: Timestamp, now: Timestamp) -> Timestamp {
        let earliest = now.checked_sub(MAX_LAG).unwrap_or(now);
        let latest = now.checked_add(self.interval()).unwrap_or(now);
        next_at.min(latest).max(earliest)
    }

    /// Counts the runs that are allowed at `now`.
    pub fn allowed(self, next_at: Timestamp, now: Timestamp) -> u32 {
        let next_at = self.effective(next_at, now);
        if next_at > now {
            return 0;
        }
        let due = now.duration_since(next_at).as_nanos() / self.interval().as_nanos().max(1) + 1;
        u32::try_from(due).unwrap_or(u32::MAX)
    }

    /// Returns when the next run is allowed after `created` more.
    pub fn after(self, next_at: Timestamp, now: Timestamp, created: u32) -> Timestamp {
        let next_at = self.effective(next_at, now);
        next_at.checked_add(self.interval() * i32::try_from(created).unwrap_or(i32::MAX)).unwrap_or(next_at)
    }
}

impl FromStr for Rate {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Rate, Invalid> {
        let refused = || {
            let reason = format!("must be a number of runs from 1 to {MAX_RUNS} and s, m, h or d, as in `10/m`");
            Invalid::new("rate", reason)
        };
        let (runs, unit) = text.split_once('/').ok_or_else(refused)?;
        let digits = !runs.is_empty() && runs.bytes().all(|byte| byte.is_ascii_digit());
        let runs = runs.parse().ok().filter(|runs| digits && (1..=MAX_RUNS).contains(runs)).ok_or_else(refused)?;
        let unit = UNITS.iter().position(|(letter, _)| unit == letter.to_string()).ok_or_else(refused)?;
        Ok(Rate { runs, unit })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.runs, UNITS[self.unit].0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> Rate {
        text.parse().unwrap()
    }

    #[test]
    fn rates_are_a_number_and_a_unit() {
        assert_eq!(rate("10/m").interval(), SignedDuration::from_secs(6));
        assert_eq!(rate("1/d").interval(), SignedDuration::from_hours(24));
        assert_eq!(rate("10000/s").interval(), SignedDuration::from_micros(100));
        assert_eq!(rate("90/h").to_string(), "90/h");
        for bad in ["", "10", "/m", "0/m", "10/", "10/w", "10/min", "-1/m", "+1/m", "10001/s", "1.5/m", "10 / m"] {
            let refused = bad.parse::<Rate>().unwrap_err();
            assert!(refused.field == "rate" && refused.reason.contains("`10/m`"), "{bad:?}");
        }
    }

    #[test]
    fn no_span_has_more_runs_than_the_rate_and_a_second_of_lag() {
        for text in ["10/m", "3/s", "1000/s", "7/h"] {
            let rate = rate(text);
            let start: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
            let (mut now, mut next_at, mut created) = (start, start, Vec::new());
            // Looks at uneven times, some of them after a long break.
            for step in 0..2_000_i64 {
                now += SignedDuration::from_millis(1 + (step * 7_919) % 613 + if step % 97 == 0 { 90_000 } else { 0 });
                let runs = rate.allowed(next_at, now);
                next_at = rate.after(next_at, now, runs);
                created.push((now, runs));
            }
            for (place, (begin, _)) in created.iter().enumerate().step_by(13) {
                let mut sum = 0_i128;
                for (at, runs) in &created[place..] {
                    sum += i128::from(*runs);
                    let span = (at.duration_since(*begin) + MAX_LAG).as_nanos();
                    assert!(sum <= span / rate.interval().as_nanos() + 1, "{text}: {sum} from {begin} to {at}");
                }
            }
        }
    }

    #[test]
    fn a_clock_that_was_ahead_delays_by_one_interval_at_most() {
        let rate = rate("1/h");
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let ahead = now + SignedDuration::from_hours(1_000);
        assert_eq!(rate.allowed(ahead, now), 0);
        assert_eq!(rate.after(ahead, now, 0), now + SignedDuration::from_hours(1));
    }
}
