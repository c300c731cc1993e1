//! [`Filter`]: the calendars of a job as ranges of instants, walked one at a time.

use super::{Calendar, CalendarRules, Exclusion, days};
use crate::zone::{MAX_SECOND, MIN_SECOND, Segment, Zone};

const DAY_SECONDS: i64 = 86_400;

/// Longer than any offset: the local midnight of a day lies within this of its first instant.
const FARTHEST_OFFSET: i64 = 2 * DAY_SECONDS;

/// The calendars of a job, in its zone. Seconds are unix seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filter<'a> {
    pub(crate) rules: &'a CalendarRules,
    pub(crate) zone: &'a Zone,
    /// Ranges `[from, until)` without slots besides.
    pub(crate) frozen: &'a [(i64, i64)],
}

impl Filter<'_> {
    /// The first second after the excluded range that holds this one; `None` if it is allowed.
    pub(crate) fn excluded_until(&self, second: i64) -> Option<i64> {
        let excluded = self.rules.exclude.iter().filter_map(|calendar| {
            let (zone, day) = self.day(calendar, second);
            calendar.days.contains(day).then(|| end_before(zone, calendar.days.next_outside(day)))
        });
        let limited = self.is_limited(second).then(|| {
            let next = self.rules.only.iter().map(|calendar| {
                let (zone, day) = self.day(calendar, second);
                end_before(zone, calendar.days.next_inside(day))
            });
            next.min().unwrap_or(MAX_SECOND)
        });
        let frozen = self.frozen_range(second).map(|(_, until)| until);
        excluded.chain(limited).chain(frozen).max()
    }

    /// The first second of the excluded range that holds this one; `None` if it is allowed.
    pub(crate) fn excluded_since(&self, second: i64) -> Option<i64> {
        let excluded = self.rules.exclude.iter().filter_map(|calendar| {
            let (zone, day) = self.day(calendar, second);
            calendar.days.contains(day).then(|| begin_after(zone, calendar.days.previous_outside(day)))
        });
        let limited = self.is_limited(second).then(|| {
            let last = self.rules.only.iter().map(|calendar| {
                let (zone, day) = self.day(calendar, second);
                begin_after(zone, calendar.days.previous_inside(day))
            });
            last.max().unwrap_or(MIN_SECOND)
        });
        let frozen = self.frozen_range(second).map(|(from, _)| from);
        excluded.chain(limited).chain(frozen).min()
    }

    /// The first second after an allowed one that may not be allowed.
    pub(crate) fn allowed_until(&self, second: i64) -> i64 {
        let excluded = self.rules.exclude.iter().map(|calendar| {
            let (zone, day) = self.day(calendar, second);
            end_before(zone, calendar.days.next_inside(day))
        });
        let limited = self.rules.only.iter().filter_map(|calendar| {
            let (zone, day) = self.day(calendar, second);
            calendar.days.contains(day).then(|| end_before(zone, calendar.days.next_outside(day)))
        });
        let limited = limited.max().unwrap_or(MAX_SECOND);
        let frozen = self.frozen.iter().map(|(from, _)| *from).find(|from| *from > second);
        excluded.chain(frozen).min().unwrap_or(MAX_SECOND).min(limited)
    }

    fn frozen_range(&self, second: i64) -> Option<(i64, i64)> {
        self.frozen.iter().copied().find(|(from, until)| (*from..*until).contains(&second))
    }

    /// Why this second is not allowed.
    pub(crate) fn exclusion(&self, second: i64) -> Option<Exclusion> {
        let about = |calendar: &Calendar, is_excluded| {
            let day = days::date(self.day(calendar, second).1);
            Exclusion {
                calendar: calendar.name().clone(),
                version: calendar.version(),
                day,
                day_name: calendar.day_name(day).filter(|_| is_excluded).map(str::to_owned),
                is_excluded,
            }
        };
        let is_inside = |calendar: &&std::sync::Arc<Calendar>| calendar.days.contains(self.day(calendar, second).1);
        let excluding = self.rules.exclude.iter().find(is_inside).map(|calendar| about(calendar, true));
        let limiting = || self.rules.only.first().filter(|_| self.is_limited(second));
        excluding.or_else(|| limiting().map(|calendar| about(calendar, false)))
    }

    /// Whether the job fires on some days only, and this is none of them.
    fn is_limited(&self, second: i64) -> bool {
        let is_inside = |calendar: &std::sync::Arc<Calendar>| calendar.days.contains(self.day(calendar, second).1);
        !self.rules.only.is_empty() && !self.rules.only.iter().any(is_inside)
    }

    /// The zone of a calendar, and the local day of this second in it.
    fn day<'a>(&'a self, calendar: &'a Calendar, second: i64) -> (&'a Zone, i64) {
        let zone = calendar.content.timezone.as_ref().unwrap_or(self.zone);
        let offset = zone.segment(zone.segment_at(second)).offset;
        let mut day = (second + offset).div_euclid(DAY_SECONDS);
        // Where clocks go back over midnight, the day has begun already.
        while second >= first_second(zone, day + 1) {
            day += 1;
        }
        (zone, day)
    }
}

/// The first second of a day; the end of time if there is none.
fn end_before(zone: &Zone, day: Option<i64>) -> i64 {
    day.map_or(MAX_SECOND, |day| first_second(zone, day))
}

/// The first second after a day; the beginning of time if there is none.
fn begin_after(zone: &Zone, day: Option<i64>) -> i64 {
    day.map_or(MIN_SECOND, |day| first_second(zone, day + 1))
}

/// The first second whose local time is at or after the midnight of the day.
pub(super) fn first_second(zone: &Zone, day: i64) -> i64 {
    let midnight = day * DAY_SECONDS;
    let first = zone.segment_at(midnight - FARTHEST_OFFSET);
    for index in first..zone.segment_count() {
        let Segment { start, end, offset, .. } = zone.segment(index);
        if end + offset > midnight {
            return start.max(midnight - offset).clamp(MIN_SECOND, MAX_SECOND);
        }
    }
    MAX_SECOND
}
