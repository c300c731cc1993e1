//! The calendar: which local times match the fields. Knows no zone and no clock.
//!
//! Local time is a count of seconds since 1970-01-01T00:00:00 on the wall clock. Fields are bit sets, a month is a
//! 32-bit mask of its matching days, so a search jumps from month to month and costs the same for one minute and for
//! forty years. Counting is arithmetic: matching days times matches per day.

use super::field::Field;
use super::month::Month;

const DAY: i64 = 86_400;
/// The first second of a leap year.
const START_OF_1972: i64 = 730 * DAY;
/// Longer than any date of the calendar lets wait: five Mondays in a February come after 28 years, around 2100 after 40.
const HORIZON_YEARS: u32 = 48;

/// A set of local times, repeated over the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Fields {
    pub(crate) seconds: u64,
    pub(crate) minutes: u64,
    pub(crate) hours: u32,
    pub(crate) months: u16,
    pub(crate) days: Days,
    /// The minute or hour field begins with `*`: follows elapsed time across DST changes.
    pub(crate) wildcard: bool,
    pub(crate) with_seconds: bool,
}

/// The days of a month that match.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a mark that a day field may carry, and all may be set at once"
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Days {
    pub(crate) dom: u32,
    pub(crate) nearest_weekday: u32,
    pub(crate) last_day: bool,
    pub(crate) last_weekday: bool,
    pub(crate) dow: u8,
    pub(crate) last_dow: u8,
    pub(crate) nth: u64,
    /// Both fields are restricted: a day matches if either does.
    pub(crate) either: bool,
    /// The field begins with `*`.
    pub(crate) dom_star: bool,
    pub(crate) dow_star: bool,
}

impl Fields {
    pub(crate) fn new(seconds: Option<&Field>, [minute, hour, dom, month, dow]: &[Field; 5]) -> Fields {
        Fields {
            seconds: seconds.map_or(1, |field| field.bits),
            minutes: minute.bits,
            hours: hour.bits as u32,
            months: month.bits as u16,
            days: Days {
                dom: dom.bits as u32,
                nearest_weekday: dom.nearest_weekday,
                last_day: dom.last_day,
                last_weekday: dom.last_weekday,
                dow: dow.bits as u8,
                last_dow: dow.last_dow,
                nth: dow.nth,
                either: !dom.star && !dow.star,
                dom_star: dom.star,
                dow_star: dow.star,
            },
            wildcard: minute.star || hour.star,
            with_seconds: seconds.is_some(),
        }
    }

    pub(crate) fn has_seconds(&self) -> bool {
        self.with_seconds
    }

    /// Whether any date matches; times of day always do.
    pub(crate) fn ever_matches(&self) -> bool {
        // From then until 2000 leap days fell on every weekday.
        self.next(START_OF_1972).is_some()
    }

    /// The first match at or after this local second.
    #[inline]
    pub(crate) fn next(&self, local: i64) -> Option<i64> {
        let (day, second) = (local.div_euclid(DAY), local.rem_euclid(DAY) as u32);
        let (month, number) = Month::of_day(day);
        let mask = self.mask(month);
        if mask & (1 << number) != 0
            && let Some(time) = self.time_at_or_after(second)
        {
            return Some(day * DAY + i64::from(time));
        }
        let later = mask & (!1 << number);
        let day = if later != 0 { month.day(later.trailing_zeros()) } else { self.day_in_later_month(month)? };
        Some(day * DAY + i64::from(self.first_time()))
    }

    /// The last match at or before this local second.
    #[inline]
    pub(crate) fn previous(&self, local: i64) -> Option<i64> {
        let (day, second) = (local.div_euclid(DAY), local.rem_euclid(DAY) as u32);
        let (month, number) = Month::of_day(day);
        let mask = self.mask(month);
        if mask & (1 << number) != 0
            && let Some(time) = self.time_at_or_before(second)
        {
            return Some(day * DAY + i64::from(time));
        }
        let earlier = mask & ((1 << number) - 1);
        let day = if earlier != 0 { month.day(earlier.ilog2()) } else { self.day_in_earlier_month(month)? };
        Some(day * DAY + i64::from(self.last_time()))
    }

    /// How many matches lie in `[from, until)`.
    pub(crate) fn count(&self, from: i64, until: i64) -> u64 {
        if until <= from {
            return 0;
        }
        let (first, last) = (from.div_euclid(DAY), until.div_euclid(DAY));
        let days = self.count_days(first, last) * self.times_per_day();
        let part = |day: i64, second: i64| if self.matches_day(day) { self.count_before(second as u32) } else { 0 };
        days + part(last, until.rem_euclid(DAY)) - part(first, from.rem_euclid(DAY))
    }

    pub(crate) fn matches(&self, local: i64) -> bool {
        let second = local.rem_euclid(DAY) as u32;
        self.time_at_or_after(second) == Some(second) && self.matches_day(local.div_euclid(DAY))
    }

    fn matches_day(&self, day: i64) -> bool {
        let (month, number) = Month::of_day(day);
        self.mask(month) & (1 << number) != 0
    }

    /// Matching days in `[first, last)`, counted month by month.
    fn count_days(&self, first: i64, last: i64) -> u64 {
        let mut total = 0;
        let (mut month, mut number) = Month::of_day(first);
        loop {
            let mut mask = self.mask(month) & (u32::MAX << number);
            let next = month.first + i64::from(month.length);
            if last < next {
                // Days before `last`, which is in this month (or before it, when the range is empty).
                let end = (last - month.first + 1).clamp(0, 31) as u32;
                mask &= (1_u32 << end) - 1;
            }
            total += u64::from(mask.count_ones());
            if last <= next {
                return total;
            }
            month = month.following();
            number = 1;
        }
    }

    fn day_in_later_month(&self, from: Month) -> Option<i64> {
        let (mut year, mut number) = (from.year, from.number);
        loop {
            (year, number) = self.month_after(year, number);
            if year > from.year + HORIZON_YEARS {
                return None;
            }
            let month = Month::new(year, number);
            let mask = self.days.mask(month);
            if mask != 0 {
                return Some(month.day(mask.trailing_zeros()));
            }
        }
    }

    fn day_in_earlier_month(&self, from: Month) -> Option<i64> {
        let (mut year, mut number) = (from.year, from.number);
        loop {
            (year, number) = self.month_before(year, number);
            if year + HORIZON_YEARS < from.year {
                return None;
            }
            let month = Month::new(year, number);
            let mask = self.days.mask(month);
            if mask != 0 {
                return Some(month.day(mask.ilog2()));
            }
        }
    }

    fn month_after(&self, year: u32, number: u32) -> (u32, u32) {
        let later = u32::from(self.months) & (!1 << number);
        if later != 0 { (year, later.trailing_zeros()) } else { (year + 1, self.months.trailing_zeros()) }
    }

    fn month_before(&self, year: u32, number: u32) -> (u32, u32) {
        let earlier = u32::from(self.months) & ((1 << number) - 1);
        if earlier != 0 { (year, earlier.ilog2()) } else { (year - 1, self.months.ilog2()) }
    }

    /// Bit `n` is set when day `n` of this month matches.
    #[inline]
    fn mask(&self, month: Month) -> u32 {
        if u32::from(self.months) & (1 << month.number) == 0 { 0 } else { self.days.mask(month) }
    }

    #[inline]
    fn time_at_or_after(&self, second: u32) -> Option<u32> {
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        if self.hours & (1 << hour) != 0 {
            if self.minutes & (1 << minute) != 0 {
                let seconds = self.seconds & (u64::MAX << second);
                if seconds != 0 {
                    return Some(hour * 3600 + minute * 60 + seconds.trailing_zeros());
                }
            }
            let minutes = self.minutes & (u64::MAX << minute << 1);
            if minutes != 0 {
                return Some(hour * 3600 + minutes.trailing_zeros() * 60 + self.seconds.trailing_zeros());
            }
        }
        let hours = self.hours & (u32::MAX << hour << 1);
        (hours != 0)
            .then(|| hours.trailing_zeros() * 3600 + self.minutes.trailing_zeros() * 60 + self.seconds.trailing_zeros())
    }

    #[inline]
    fn time_at_or_before(&self, second: u32) -> Option<u32> {
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        if self.hours & (1 << hour) != 0 {
            if self.minutes & (1 << minute) != 0 {
                let seconds = self.seconds & ((2 << second) - 1);
                if seconds != 0 {
                    return Some(hour * 3600 + minute * 60 + seconds.ilog2());
                }
            }
            let minutes = self.minutes & ((1 << minute) - 1);
            if minutes != 0 {
                return Some(hour * 3600 + minutes.ilog2() * 60 + self.seconds.ilog2());
            }
        }
        let hours = self.hours & ((1 << hour) - 1);
        (hours != 0).then(|| hours.ilog2() * 3600 + self.minutes.ilog2() * 60 + self.seconds.ilog2())
    }

    fn first_time(&self) -> u32 {
        self.hours.trailing_zeros() * 3600 + self.minutes.trailing_zeros() * 60 + self.seconds.trailing_zeros()
    }

    fn last_time(&self) -> u32 {
        self.hours.ilog2() * 3600 + self.minutes.ilog2() * 60 + self.seconds.ilog2()
    }

    pub(crate) fn times_per_day(&self) -> u64 {
        u64::from(self.hours.count_ones() * self.minutes.count_ones() * self.seconds.count_ones())
    }

    /// Matches of a day that come before this second of it.
    fn count_before(&self, second: u32) -> u64 {
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let in_minute = self.seconds.count_ones();
        let in_hour = self.minutes.count_ones() * in_minute;
        let mut count = (self.hours & ((1 << hour) - 1)).count_ones() * in_hour;
        if self.hours & (1 << hour) != 0 {
            count += (self.minutes & ((1 << minute) - 1)).count_ones() * in_minute;
            if self.minutes & (1 << minute) != 0 {
                count += (self.seconds & ((1 << second) - 1)).count_ones();
            }
        }
        u64::from(count)
    }
}

impl Days {
    #[inline]
    fn mask(&self, month: Month) -> u32 {
        let by_date = if self.last_day || self.last_weekday || self.nearest_weekday != 0 {
            self.dom | self.special_dates(month)
        } else {
            self.dom
        };
        let mut by_weekday = month.weekly(self.dow);
        if self.nth != 0 || self.last_dow != 0 {
            by_weekday |= self.special_weekdays(month);
        }
        let days = if self.either { by_date | by_weekday } else { by_date & by_weekday };
        days & month.all()
    }

    #[cold]
    fn special_dates(&self, month: Month) -> u32 {
        let weekdays = month.weekly(0b011_1110) & month.all();
        let mut days = 0;
        if self.last_day {
            days |= 1 << month.length;
        }
        if self.last_weekday {
            days |= 1 << weekdays.ilog2();
        }
        let mut wanted = self.nearest_weekday & month.all();
        while wanted != 0 {
            let day = wanted.trailing_zeros();
            wanted &= wanted - 1;
            // A Saturday goes to the Friday before and a Sunday to the Monday after, but never out of the month.
            let nearest = [day, day.saturating_sub(1), day + 1, day + 2, day.saturating_sub(2)];
            let found = nearest.into_iter().find(|&day| day < 32 && weekdays & (1 << day) != 0);
            days |= found.map_or(0, |day| 1 << day);
        }
        days
    }

    #[cold]
    fn special_weekdays(&self, month: Month) -> u32 {
        let mut days = 0;
        for week in 0..5 {
            let wanted = (self.nth >> (7 * week)) as u8 & 0x7f;
            days |= month.weekly(wanted) & (0xfe << (7 * week));
        }
        let last_seven = month.all() & !(month.all() >> 7);
        days | month.weekly(self.last_dow) & last_seven
    }
}
