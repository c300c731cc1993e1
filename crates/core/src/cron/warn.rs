//! Warnings about schedules that may surprise their writer.

use jiff::Timestamp;
use jiff::civil::Date;

use super::describe::words::{Progression, list, members, month, weekday};
use super::search::{Days, Fields};

const DAY: i64 = 86_400;
const ALL_DATES: u32 = 0xffff_fffe;
const ALL_WEEKDAYS: u8 = 0x7f;

/// Something about a valid schedule that its writer may not expect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// A stable word for programs.
    pub code: WarningCode,
    /// One sentence for people.
    pub detail: String,
    /// The local date at which it happens, for what happens on a date.
    pub local_date: Option<Date>,
    /// The instant at which it fires instead, if it does.
    pub at: Option<Timestamp>,
}

/// The kinds of warnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WarningCode {
    /// Both day fields are restricted, so either is enough.
    EitherDay,
    /// A step does not divide its range: the last interval is shorter.
    UnevenStep,
    /// A day that some months lack.
    MissingDay,
    /// A local time that does not exist on a date.
    DstGap,
    /// A local time that happens twice on a date.
    DstFold,
}

impl WarningCode {
    /// The word used in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            WarningCode::EitherDay => "either_day",
            WarningCode::UnevenStep => "uneven_step",
            WarningCode::MissingDay => "missing_day",
            WarningCode::DstGap => "dst_gap",
            WarningCode::DstFold => "dst_fold",
        }
    }
}

/// Warnings that hold in every zone.
pub(crate) fn of_fields(fields: &Fields) -> Vec<Warning> {
    let details = [
        (WarningCode::EitherDay, either_day(&fields.days)),
        (WarningCode::UnevenStep, uneven_hours(fields)),
        (WarningCode::UnevenStep, uneven_minutes(fields)),
        (WarningCode::UnevenStep, uneven_seconds(fields)),
        (WarningCode::MissingDay, missing_date(fields)),
        (WarningCode::MissingDay, missing_fifth(&fields.days)),
    ];
    let found = details.into_iter().filter_map(|(code, detail)| Some((code, detail?)));
    found.map(|(code, detail)| Warning { code, detail, local_date: None, at: None }).collect()
}

fn either_day(days: &Days) -> Option<String> {
    if !days.either {
        return None;
    }
    let always = days.dom == ALL_DATES || days.dow == ALL_WEEKDAYS;
    let which = if always { ", which is every day" } else { "" };
    Some(format!(
        "day-of-month and day-of-week are both set: it runs when either matches{which} \
         (if both must match, set one and let the job check the other)"
    ))
}

fn uneven_hours(fields: &Fields) -> Option<String> {
    let (step, last) = uneven(u64::from(fields.hours), 24)?;
    // The short interval lies between two days: it needs neighbours.
    on_neighbouring_days(fields).then(|| {
        format!("every {step} hours restarts every day: from hour {last} to midnight it is only {} hours", 24 - last)
    })
}

fn uneven_minutes(fields: &Fields) -> Option<String> {
    let (step, last) = uneven(fields.minutes, 60)?;
    in_neighbouring_hours(fields).then(|| {
        format!(
            "every {step} minutes restarts every hour: from minute {last} to the next hour it is only {} minutes",
            60 - last
        )
    })
}

fn uneven_seconds(fields: &Fields) -> Option<String> {
    let (step, last) = uneven(fields.seconds, 60)?;
    let around = fields.minutes & 1 != 0 && fields.minutes & (1 << 59) != 0 && in_neighbouring_hours(fields);
    (fields.minutes & (fields.minutes >> 1) != 0 || around).then(|| {
        format!(
            "every {step} seconds restarts every minute: from second {last} to the next minute it is only {} seconds",
            60 - last
        )
    })
}

/// Step and last value of a set like `*/7`: from 0 to the end of a range that the step does not divide.
fn uneven(bits: u64, size: u32) -> Option<(u32, u32)> {
    let all = Progression::from_values(members(bits))?;
    let uneven = all.count >= 3 && all.fills_from_zero(size) && !size.is_multiple_of(all.step);
    uneven.then_some((all.step, all.last))
}

fn in_neighbouring_hours(fields: &Fields) -> bool {
    let around = fields.hours & 1 != 0 && fields.hours & (1 << 23) != 0 && on_neighbouring_days(fields);
    fields.hours & (fields.hours >> 1) != 0 || around
}

/// Whether it ever fires on two days in a row.
fn on_neighbouring_days(fields: &Fields) -> bool {
    // Forty-odd years of a monthly date; what fires more often shows its neighbours sooner.
    const MAX_DAYS: usize = 500;
    let daily = Fields { seconds: 1, minutes: 1, hours: 1, ..*fields };
    let days: Vec<i64> = std::iter::successors(daily.next(0), |local| daily.next(local + 1)).take(MAX_DAYS).collect();
    days.windows(2).any(|pair| pair[1] - pair[0] == DAY)
}

/// Dates from the 29th on, if there are no others.
fn missing_date(fields: &Fields) -> Option<String> {
    let days = &fields.days;
    let dates = days.dom | days.nearest_weekday;
    if days.either || days.last_day || days.last_weekday || dates == 0 || dates.trailing_zeros() < 29 {
        return None;
    }
    let first = dates.trailing_zeros();
    let months = members(u64::from(fields.months));
    if first == 29 {
        return match months.as_slice() {
            [2] => Some("29 February exists only in leap years".to_owned()),
            _ if months.contains(&2) => {
                Some("February has a day 29 only in leap years: in other years it is skipped".to_owned())
            }
            _ => None,
        };
    }
    let short: &[u32] = if first == 30 { &[2] } else { &[2, 4, 6, 9, 11] };
    let passed: Vec<u32> = months.into_iter().filter(|month| short.contains(month)).collect();
    let names: Vec<String> = passed.iter().map(|number| month(*number).to_owned()).collect();
    let each = match names.len() {
        0 => return None,
        1 => "has no day",
        _ => "have no day",
    };
    let numbers: Vec<String> = members(u64::from(dates)).iter().map(u32::to_string).collect();
    let rest = if names.len() == 1 { "it is skipped" } else { "they are skipped" };
    Some(format!(
        "{} {each} {}: {rest} (`L` is the last day of every month)",
        list(&names, "and"),
        list(&numbers, "or")
    ))
}

/// `5#5`, if there is nothing else.
fn missing_fifth(days: &Days) -> Option<String> {
    let fifth = days.nth >> 28;
    if days.either || days.dow != 0 || days.last_dow != 0 || fifth == 0 || days.nth != fifth << 28 {
        return None;
    }
    let names: Vec<String> = members(fifth).into_iter().map(|day| weekday(day).to_owned()).collect();
    Some(format!("not every month has a fifth {}: months without one are skipped", list(&names, "or")))
}
