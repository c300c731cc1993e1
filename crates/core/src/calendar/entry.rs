//! [`DayEntry`]: a date, a range of dates or a date of every year, as people write it.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Date;

use crate::ids::{Invalid, expect_visible};

const MAX_DAY_NAME_BYTES: usize = 200;
/// Years that entries may be in: those that everbell computes with.
const YEARS: std::ops::RangeInclusive<i16> = 1900..=2199;

/// The days of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DaySpan {
    /// Every day from the first to the last.
    Dates {
        /// The first day.
        first: Date,
        /// The last day, which is included.
        last: Date,
    },
    /// The same date in every year. 29 February is there in leap years only.
    Yearly {
        /// 1 to 12.
        month: i8,
        /// 1 to 31.
        day: i8,
    },
}

impl DaySpan {
    /// Whether the day is one of them.
    pub fn contains(self, date: Date) -> bool {
        match self {
            DaySpan::Dates { first, last } => (first..=last).contains(&date),
            DaySpan::Yearly { month, day } => (date.month(), date.day()) == (month, day),
        }
    }
}

/// Days with an optional name: `2027-12-24..2027-12-26 Christmas`, `2027-01-01`, `*-05-01 Labour Day`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayEntry {
    /// The days.
    pub span: DaySpan,
    /// The name that people give to them.
    pub name: Option<String>,
}

impl DayEntry {
    /// An entry from the first to the last day. Refused if it is empty or too far away.
    pub(super) fn from_dates(first: Date, last: Date, name: Option<&str>) -> Result<DayEntry, Invalid> {
        if last < first {
            return Err(Invalid::new("dates", format!("`{first}..{last}` ends before it begins")));
        }
        if !YEARS.contains(&first.year()) || !YEARS.contains(&last.year()) {
            return Err(Invalid::new("dates", format!("`{first}..{last}` must lie between the years 1900 and 2199")));
        }
        Ok(DayEntry { span: DaySpan::Dates { first, last }, name: checked_name(name)? })
    }

    /// A date of every year.
    pub(super) fn from_yearly(month: i8, day: i8, name: Option<&str>) -> Result<DayEntry, Invalid> {
        // 2000 was a leap year, so 29 February is a date.
        if Date::new(2000, month, day).is_err() {
            return Err(Invalid::new("dates", format!("`*-{month:02}-{day:02}` is not a date in any year")));
        }
        Ok(DayEntry { span: DaySpan::Yearly { month, day }, name: checked_name(name)? })
    }
}

fn checked_name(name: Option<&str>) -> Result<Option<String>, Invalid> {
    let Some(name) = name.map(str::trim).filter(|name| !name.is_empty()) else { return Ok(None) };
    if name.len() > MAX_DAY_NAME_BYTES || name.chars().any(char::is_control) {
        let reason = format!("the name of a day must be at most {MAX_DAY_NAME_BYTES} bytes without control characters");
        return Err(Invalid::new("dates", reason));
    }
    expect_visible("dates", name)?;
    Ok(Some(name.to_owned()))
}

impl FromStr for DayEntry {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<DayEntry, Invalid> {
        let text = text.trim();
        let (days, name) = text.split_once(char::is_whitespace).map_or((text, None), |(days, name)| (days, Some(name)));
        let refused = || {
            let shown: String = text.chars().take(60).flat_map(char::escape_debug).collect();
            let reason = format!(
                "`{shown}` is not a day; write `2027-01-01`, `2027-04-02..2027-04-05` or `*-12-25` for every year, and a \
                 name after it if you like: `2027-01-01 New Year`"
            );
            Invalid::new("dates", reason)
        };
        if let Some(yearly) = days.strip_prefix("*-") {
            let (month, day) = yearly.split_once('-').ok_or_else(refused)?;
            let number = |digits: &str| {
                let is_plain = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
                digits.parse::<i8>().ok().filter(|_| is_plain).ok_or_else(refused)
            };
            return DayEntry::from_yearly(number(month)?, number(day)?, name);
        }
        let (first, last) = days.split_once("..").unwrap_or((days, days));
        let date = |text: &str| {
            let is_plain = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
            text.parse::<Date>().ok().filter(|_| is_plain).ok_or_else(refused)
        };
        DayEntry::from_dates(date(first)?, date(last)?, name)
    }
}

impl fmt::Display for DayEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.span {
            DaySpan::Dates { first, last } if first == last => write!(f, "{first}")?,
            DaySpan::Dates { first, last } => write!(f, "{first}..{last}")?,
            DaySpan::Yearly { month, day } => write!(f, "*-{month:02}-{day:02}")?,
        }
        self.name.as_ref().map_or(Ok(()), |name| write!(f, " {name}"))
    }
}
