//! Selects the hour of history to count next, and the part of a window that is counted.
//!
//! Counters are kept by whole hours of UTC. An hour is counted [`COUNT_DELAY`] after its end, and once more
//! [`RECOUNT_DELAY`] after it, because an outcome may be recorded late after an outage. The newest hours come first, then
//! older ones back to the oldest run that is kept, so an upgraded database fills itself.
//!
//! Hours that are not counted yet are counted from the runs on request, the newest [`MAX_LIVE_HOURS`] at most.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

/// How long after its end an hour is counted first.
pub const COUNT_DELAY: Duration = Duration::from_mins(5);

/// How long after its end an hour is counted again. An outcome that is recorded later is in the runs, but not in the
/// counters.
pub const RECOUNT_DELAY: Duration = Duration::from_hours(26);

/// How long counters are kept, even after the runs are deleted.
pub const COUNTER_RETENTION: Duration = Duration::from_hours(24 * 400);

/// The most hours that a question counts from the runs: the current one, and those whose turn has not come.
pub const MAX_LIVE_HOURS: i64 = 3;

const HOUR: i64 = 3_600;

/// The start of the hour of a time.
pub fn hour_of(time: Timestamp) -> Timestamp {
    at(time.as_second().div_euclid(HOUR))
}

/// The start of the hour with this number since 1970.
fn at(number: i64) -> Timestamp {
    let second = number.saturating_mul(HOUR).clamp(Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
    Timestamp::from_second(second).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn number_of(time: Timestamp) -> i64 {
    time.as_second().div_euclid(HOUR)
}

/// The first hour that begins at this time or later.
fn number_from(time: Timestamp) -> i64 {
    let number = number_of(time);
    if at(number) < time { number + 1 } else { number }
}

fn earlier(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_sub(by).unwrap_or(Timestamp::MIN)
}

/// The hours that are counted, and how far history goes back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountingProgress {
    /// When each hour was counted last, by its start.
    pub counted: BTreeMap<Timestamp, Timestamp>,
    /// The end of the oldest run that is kept.
    pub oldest: Option<Timestamp>,
}

/// An hour whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HourToCount {
    /// Its start.
    pub hour: Timestamp,
    /// When it was counted before, as the decision saw it. Another value means that another instance was faster.
    pub counted_at: Option<Timestamp>,
}

impl HourToCount {
    /// The start of the next hour.
    pub fn end(&self) -> Timestamp {
        at(number_of(self.hour) + 1)
    }
}

/// How a window is read: counters until `live_from`, runs from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedWindow {
    /// The start of the window, a whole hour.
    pub from: Timestamp,
    /// Hours from here on are counted from the runs.
    pub live_from: Timestamp,
    /// Every run that ended since then is counted.
    pub counted_since: Timestamp,
    /// Whether every run of the window is counted.
    pub complete: bool,
}

impl CountingProgress {
    /// When an hour was counted. A time after now is of a clock that was ahead, and does not count.
    fn counted_at(&self, number: i64, now: Timestamp) -> Option<Timestamp> {
        self.counted.get(&at(number)).copied().filter(|counted_at| *counted_at <= now)
    }

    /// The hour to count now, if there is one. Hours that begin before `kept_since` may have lost runs to the retention
    /// and are left as they are.
    pub fn next_hour(&self, now: Timestamp, kept_since: Timestamp) -> Option<HourToCount> {
        let newest = number_of(earlier(now, COUNT_DELAY)) - 1;
        let oldest = number_of(self.oldest?);
        let floor = oldest.max(number_from(kept_since)).max(number_from(earlier(now, COUNTER_RETENTION)));
        let is_due = |number: &i64| match self.counted_at(*number, now) {
            None => true,
            Some(counted_at) => {
                let recount_at = at(number + 1).checked_add(RECOUNT_DELAY).unwrap_or(Timestamp::MAX);
                counted_at < recount_at && recount_at <= now
            }
        };
        let number = (floor..=newest).rev().find(is_due)?;
        Some(HourToCount { hour: at(number), counted_at: self.counted.get(&at(number)).copied() })
    }

    /// How to read a window that begins with the hour of `from` and ends now.
    pub fn window(&self, from: Timestamp, now: Timestamp) -> CountedWindow {
        let (first, current) = (number_of(from), number_of(now));
        let is_counted = |number: i64| self.counted_at(number, now).is_some();
        let mut live = current;
        while live > first && live > current - MAX_LIVE_HOURS + 1 && !is_counted(live - 1) {
            live -= 1;
        }
        // Nothing ended before the oldest run that is kept, as far as anybody knows.
        let floor = self.oldest.map_or(live, |oldest| number_of(oldest).clamp(first, live));
        let gap = (floor..live).rev().find(|number| !is_counted(*number));
        let since = gap.map_or(floor, |gap| gap + 1);
        // Counters may know of runs that the retention has deleted.
        let since = if gap.is_none() { (first..since).rev().take_while(|hour| is_counted(*hour)).last() } else { None }
            .unwrap_or(since);
        CountedWindow {
            from: at(first),
            live_from: at(live.max(first)),
            counted_since: at(since),
            complete: gap.is_none(),
        }
    }
}
