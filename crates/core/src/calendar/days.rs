//! [`Days`]: the days of a calendar, for quick questions. Days are numbers: 0 is 1970-01-01.

use jiff::civil::{Date, Weekday};

use super::entry::{DayEntry, DaySpan};
use crate::ids::Invalid;
use crate::zone::{MAX_SECOND, MIN_SECOND};

const DAY_SECONDS: i64 = 86_400;
const FIRST_DAY: i64 = MIN_SECOND / DAY_SECONDS;
const LAST_DAY: i64 = MAX_SECOND / DAY_SECONDS;

/// More steps than a search takes through entries and single days, unless no day is left.
const MAX_STEPS: usize = 8_000;

/// A set of weekdays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Weekdays(u8);

/// The words of weekdays, Monday first.
const WORDS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

impl Weekdays {
    /// Reads words such as `sat`. Case does not matter, and whole names are understood.
    pub fn parse<S: AsRef<str>>(words: &[S]) -> Result<Weekdays, Invalid> {
        let mut days = Weekdays::default();
        for word in words {
            let lower = word.as_ref().trim().to_ascii_lowercase();
            let full = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
            let found = WORDS.iter().position(|word| *word == lower).or(full.iter().position(|word| *word == lower));
            let Some(index) = found else {
                let reason =
                    format!("`{}` is not a weekday; allowed: {}", word.as_ref().escape_debug(), WORDS.join(", "));
                return Err(Invalid::new("weekly", reason));
            };
            days.0 |= 1 << index;
        }
        Ok(days)
    }

    /// The words of its days, Monday first.
    pub fn words(self) -> Vec<&'static str> {
        WORDS.iter().enumerate().filter(|(index, _)| self.has(*index)).map(|(_, word)| *word).collect()
    }

    /// Whether it has no day.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether it has this weekday.
    pub fn contains(self, day: Weekday) -> bool {
        self.has(day.to_monday_zero_offset() as usize)
    }

    fn has(self, index: usize) -> bool {
        self.0 & (1 << index) != 0
    }

    fn has_day(self, number: i64) -> bool {
        // Day 0 was a Thursday.
        self.has((number + 3).rem_euclid(7) as usize)
    }
}

/// The days of a calendar, ready to be searched.
#[derive(Clone, Debug, Default)]
pub(super) struct Days {
    /// Ranges `[first, end)` in order, which neither touch nor overlap.
    ranges: Vec<(i64, i64)>,
    /// Month and day, in order.
    yearly: Vec<(i8, i8)>,
    weekly: Weekdays,
}

impl Days {
    pub(super) fn new(entries: &[DayEntry], weekly: Weekdays) -> Days {
        let mut days = Days { weekly, ..Days::default() };
        for entry in entries {
            match entry.span {
                DaySpan::Dates { first, last } => days.ranges.push((number(first), number(last) + 1)),
                DaySpan::Yearly { month, day } => days.yearly.push((month, day)),
            }
        }
        days.yearly.sort_unstable();
        days.yearly.dedup();
        days.ranges.sort_unstable();
        let mut merged: Vec<(i64, i64)> = Vec::with_capacity(days.ranges.len());
        for (first, end) in days.ranges {
            match merged.last_mut() {
                Some(last) if first <= last.1 => last.1 = last.1.max(end),
                _ => merged.push((first, end)),
            }
        }
        days.ranges = merged;
        days
    }

    pub(super) fn contains(&self, day: i64) -> bool {
        self.weekly.has_day(day) || self.range_of(day).is_some() || self.is_yearly(day)
    }

    /// The first day at or after this one that is not in it.
    pub(super) fn next_outside(&self, day: i64) -> Option<i64> {
        self.outside(day, |(_, end)| end, 1)
    }

    /// The last day at or before this one that is not in it.
    pub(super) fn previous_outside(&self, day: i64) -> Option<i64> {
        self.outside(day, |(first, _)| first - 1, -1)
    }

    fn outside(&self, mut day: i64, past: impl Fn((i64, i64)) -> i64, step: i64) -> Option<i64> {
        for _ in 0..MAX_STEPS {
            if !(FIRST_DAY..LAST_DAY).contains(&day) {
                return None;
            }
            match self.range_of(day) {
                Some(range) => day = past(range),
                None if self.weekly.has_day(day) || self.is_yearly(day) => day += step,
                None => return Some(day),
            }
        }
        None
    }

    /// The first day at or after this one that is in it.
    pub(super) fn next_inside(&self, day: i64) -> Option<i64> {
        let week = (day..day + 7).find(|day| self.weekly.has_day(*day));
        let next = self.ranges.partition_point(|(_, end)| *end <= day);
        let range = self.ranges.get(next).map(|(first, _)| (*first).max(day));
        let year = self.yearly_from(day, 0..=8, |found| found >= day, Iterator::min);
        [week, range, year].into_iter().flatten().min().filter(|found| *found < LAST_DAY)
    }

    /// The last day at or before this one that is in it.
    pub(super) fn previous_inside(&self, day: i64) -> Option<i64> {
        let week = (day - 6..=day).rev().find(|day| self.weekly.has_day(*day));
        let next = self.ranges.partition_point(|(first, _)| *first <= day);
        let range = next.checked_sub(1).map(|index| (self.ranges[index].1 - 1).min(day));
        let year = self.yearly_from(day, -8..=0, |found| found <= day, Iterator::max);
        [week, range, year].into_iter().flatten().max().filter(|found| *found >= FIRST_DAY)
    }

    /// The nearest yearly date around a day. Even 29 February comes within 8 years.
    fn yearly_from(
        &self,
        day: i64,
        years: std::ops::RangeInclusive<i16>,
        is_wanted: impl Fn(i64) -> bool,
        nearest: impl Fn(std::vec::IntoIter<i64>) -> Option<i64>,
    ) -> Option<i64> {
        if self.yearly.is_empty() {
            return None;
        }
        let year = date(day).year();
        let mut all: Vec<i64> = Vec::new();
        for offset in years {
            let in_year = |(month, day): &(i8, i8)| Date::new(year + offset, *month, *day).ok().map(number);
            all.extend(self.yearly.iter().filter_map(in_year).filter(|found| is_wanted(*found)));
        }
        nearest(all.into_iter())
    }

    fn range_of(&self, day: i64) -> Option<(i64, i64)> {
        let index = self.ranges.partition_point(|(_, end)| *end <= day);
        self.ranges.get(index).copied().filter(|(first, _)| *first <= day)
    }

    fn is_yearly(&self, day: i64) -> bool {
        if self.yearly.is_empty() {
            return false;
        }
        let date = date(day);
        self.yearly.binary_search(&(date.month(), date.day())).is_ok()
    }
}

/// The number of a date.
pub(super) fn number(date: Date) -> i64 {
    date.duration_since(EPOCH).as_secs().div_euclid(DAY_SECONDS)
}

const EPOCH: Date = Date::constant(1970, 1, 1);

/// The date of a number.
pub(super) fn date(number: i64) -> Date {
    let seconds = jiff::SignedDuration::from_secs(number.saturating_mul(DAY_SECONDS));
    EPOCH.checked_add(seconds).unwrap_or(EPOCH)
}
