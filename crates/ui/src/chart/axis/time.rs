//! Ticks of time on the clock of a zone. A local time that does not exist has no tick; one that happens twice has two.

use everbell_core::Zone;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, Offset};

const HOUR: i64 = 60;
const DAY: i64 = 24 * HOUR;

/// Steps of less than a day, in minutes.
const MINUTES: [i64; 10] = [1, 5, 10, 15, 30, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR];
/// Steps of days; from a week on they begin on Mondays.
const DAYS: [i64; 4] = [1, 2, 7, 14];
/// Steps of months, from January.
const MONTHS: [i64; 5] = [1, 2, 3, 6, 12];

/// A place on the axis of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::chart) struct Tick {
    pub(in crate::chart) at: Timestamp,
    pub(in crate::chart) label: String,
    /// Begins a day, among ticks that are closer.
    pub(in crate::chart) strong: bool,
}

/// Ticks in `[from, to]`, about `most` of them at the most, in order.
pub(in crate::chart) fn times(from: Timestamp, to: Timestamp, zone: &Zone, most: i64) -> Vec<Tick> {
    let (minutes, most) = (to.duration_since(from).as_secs() / 60, most.max(1));
    if minutes < 0 {
        return Vec::new();
    }
    let fits = |step: &i64| minutes / step <= most;
    let (first, last) = (local(from, zone).date(), local(to, zone).date());
    let mut ticks = if let Some(step) = MINUTES.into_iter().find(fits) {
        of_minutes(first, last, step, zone)
    } else if let Some(step) = DAYS.into_iter().find(|step| fits(&(step * DAY))) {
        of_days(first, last, step, zone)
    } else {
        let step = MONTHS.into_iter().find(|step| fits(&(step * 30 * DAY)));
        of_months(first, last, step.unwrap_or(minutes / most / (30 * DAY) / 12 * 12 + 12), zone)
    };
    ticks.retain(|tick| (from..=to).contains(&tick.at));
    ticks
}

fn local(at: Timestamp, zone: &Zone) -> DateTime {
    at.to_zoned(zone.as_jiff().clone()).datetime()
}

fn days(first: Date, last: Date) -> impl Iterator<Item = Date> {
    first.series(jiff::ToSpan::days(1)).take_while(move |day| *day <= last)
}

fn of_minutes(first: Date, last: Date, step: i64, zone: &Zone) -> Vec<Tick> {
    let mut ticks: Vec<Tick> = Vec::new();
    for day in days(first, last) {
        let mut begins = true;
        for minute in (0..DAY).step_by(step as usize) {
            let at = day.to_datetime(time(minute));
            for (at, offset) in instants(at, zone) {
                ticks.push(Tick { at, label: label(day, minute, offset.as_ref(), begins), strong: begins });
                begins = false;
            }
        }
    }
    // Of a time that happens twice the first may come after an earlier tick's second.
    ticks.sort_by_key(|tick| tick.at);
    ticks
}

fn time(minute: i64) -> Time {
    Time::MIN.wrapping_add(jiff::SignedDuration::from_mins(minute))
}

/// The first tick of a day names the day, the others the time; with the offset if the time happens twice.
fn label(day: Date, minute: i64, offset: Option<&Offset>, begins: bool) -> String {
    match (begins, offset) {
        (true, _) => day.strftime("%-d %b").to_string(),
        (false, None) => time(minute).strftime("%H:%M").to_string(),
        (false, Some(offset)) => format!("{} {offset}", time(minute).strftime("%H:%M")),
    }
}

/// Returns the instants of a local time: usually one, none in a gap, two in a fold.
fn instants(at: DateTime, zone: &Zone) -> Vec<(Timestamp, Option<Offset>)> {
    let tz = zone.as_jiff();
    let instant = |offset: Offset| offset.to_timestamp(at).ok();
    match tz.to_ambiguous_timestamp(at).offset() {
        AmbiguousOffset::Unambiguous { offset } => instant(offset).map(|at| (at, None)).into_iter().collect(),
        AmbiguousOffset::Gap { .. } => Vec::new(),
        AmbiguousOffset::Fold { before, after } => {
            [before, after].into_iter().filter_map(|offset| Some((instant(offset)?, Some(offset)))).collect()
        }
    }
}

fn of_days(first: Date, last: Date, step: i64, zone: &Zone) -> Vec<Tick> {
    // A Monday.
    let origin = jiff::civil::date(1970, 1, 5);
    let regular = |day: &Date| i64::from((*day - origin).get_days()).rem_euclid(step) == 0;
    let tick =
        |day: Date| Some(Tick { at: start(day, zone)?, label: day.strftime("%-d %b").to_string(), strong: false });
    days(first, last).filter(regular).filter_map(tick).collect()
}

fn of_months(first: Date, last: Date, step: i64, zone: &Zone) -> Vec<Tick> {
    let month = |date: Date| i64::from(date.year()) * 12 + i64::from(date.month()) - 1;
    let regular = (month(first)..=month(last)).filter(|month| month.rem_euclid(step) == 0);
    let tick = |month: i64| {
        let day = Date::new((month.div_euclid(12)) as i16, (month.rem_euclid(12) + 1) as i8, 1).ok()?;
        let strong = day.month() == 1;
        let label = day.strftime(if strong { "%Y" } else { "%b" }).to_string();
        Some(Tick { at: start(day, zone)?, label, strong })
    };
    regular.filter_map(tick).collect()
}

/// Returns the start of a day, which is later than midnight if midnight does not exist.
fn start(day: Date, zone: &Zone) -> Option<Timestamp> {
    let midnight = zone.as_jiff().to_ambiguous_timestamp(day.to_datetime(Time::midnight()));
    midnight.compatible().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn labels(from: &str, to: &str, zone: &str, most: i64) -> String {
        let ticks = times(at(from), at(to), &Zone::get(zone).unwrap(), most);
        assert!(ticks.is_sorted_by(|one, other| one.at < other.at), "{ticks:?}");
        ticks.iter().map(|tick| tick.label.as_str()).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn ticks_are_round_on_the_local_clock() {
        let day = labels("2026-11-15T00:10:00Z", "2026-11-16T00:10:00Z", "Europe/Paris", 8);
        assert_eq!(day, "03:00 | 06:00 | 09:00 | 12:00 | 15:00 | 18:00 | 21:00 | 16 Nov");
        let hour = labels("2026-11-15T08:00:00Z", "2026-11-15T09:00:00Z", "Asia/Kathmandu", 6);
        assert_eq!(hour, "13:50 | 14:00 | 14:10 | 14:20 | 14:30 | 14:40");
        let week = labels("2026-11-09T00:00:00Z", "2026-11-16T00:00:00Z", "UTC", 8);
        assert_eq!(week, "9 Nov | 10 Nov | 11 Nov | 12 Nov | 13 Nov | 14 Nov | 15 Nov | 16 Nov");
        let month = labels("2026-10-15T00:00:00Z", "2026-11-15T00:00:00Z", "UTC", 8);
        assert_eq!(month, "19 Oct | 26 Oct | 2 Nov | 9 Nov");
        let half_a_year = labels("2026-08-15T00:00:00Z", "2027-02-15T00:00:00Z", "UTC", 8);
        assert_eq!(half_a_year, "Sep | Oct | Nov | Dec | 2027 | Feb");
        let decades = labels("1990-01-01T00:00:00Z", "2030-01-01T00:00:00Z", "UTC", 8);
        assert!(decades.split(" | ").count() <= 9, "{decades}");
    }

    #[test]
    fn a_gap_has_no_tick_and_a_fold_has_two() {
        let spring = labels("2027-03-28T00:00:00Z", "2027-03-28T04:00:00Z", "Europe/Paris", 8);
        assert_eq!(spring, "01:00 | 01:30 | 03:00 | 03:30 | 04:00 | 04:30 | 05:00 | 05:30 | 06:00");
        let autumn = labels("2027-10-31T00:00:00Z", "2027-10-31T03:00:00Z", "Europe/Paris", 4);
        assert_eq!(autumn, "02:00 +02 | 02:00 +01 | 03:00 | 04:00");
        let half_back = labels("2027-04-03T14:00:00Z", "2027-04-03T15:30:00Z", "Australia/Lord_Howe", 6);
        assert_eq!(half_back, "01:00 | 01:15 | 01:30 +11 | 01:45 +11 | 01:30 +10:30 | 01:45 +10:30 | 02:00");
        let half_an_hour = labels("2027-10-02T14:30:00Z", "2027-10-02T17:30:00Z", "Australia/Lord_Howe", 3);
        assert_eq!(half_an_hour, "01:00 | 03:00 | 04:00");
    }

    #[test]
    fn a_day_without_midnight_begins_later() {
        let cairo = labels("2027-04-29T18:00:00Z", "2027-04-30T06:00:00Z", "Africa/Cairo", 6);
        assert_eq!(cairo, "20:00 | 22:00 | 30 Apr | 04:00 | 06:00 | 08:00");
        let days = labels("2027-04-28T00:00:00Z", "2027-05-02T00:00:00Z", "Africa/Cairo", 6);
        assert_eq!(days, "29 Apr | 30 Apr | 1 May | 2 May");
    }

    #[test]
    fn a_window_may_be_empty_or_turned_around() {
        assert_eq!(labels("2026-11-15T00:00:00Z", "2026-11-15T00:00:00Z", "UTC", 8), "15 Nov");
        assert_eq!(labels("2026-11-15T00:00:01Z", "2026-11-15T00:00:01Z", "UTC", 0), "");
        assert_eq!(labels("2026-11-15T00:00:00Z", "2026-11-14T00:00:00Z", "UTC", 8), "");
    }
}
