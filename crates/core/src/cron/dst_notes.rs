//! Notes on how the next clock changes affect a schedule.
//!
//! Only schedules that name times of day are affected: a wildcard schedule follows elapsed time. Any change of the
//! offset counts, whether daylight saving or a new law.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

use crate::zone::{MAX_SECOND, MIN_SECOND, OffsetChange, instant};

use super::describe::words::list;
use super::slots::{DstFold, DstGap, Slots};
use super::warn::{Warning, WarningCode};

/// How far ahead changes are looked for.
pub(crate) const LOOKAHEAD_SECONDS: i64 = 366 * DAY;

const DAY: i64 = 86_400;
const MAX_NOTES: usize = 10;
/// The most times that are named; of more, only the first two and their number.
const MAX_TIMES: u64 = 3;

/// Notes about the clock changes that move slots in `[from, until)`.
pub(crate) fn of_slots(slots: &Slots<'_>, from: i64, until: i64) -> Vec<Warning> {
    if slots.fields.wildcard || until <= from {
        return Vec::new();
    }
    // The slots of a fold lie on both sides of its change.
    let after = instant((from - DAY).clamp(MIN_SECOND, MAX_SECOND));
    let last = instant((until + DAY).clamp(MIN_SECOND, MAX_SECOND));
    let notes = Notes { slots, from, until };
    let changes = slots.zone.changes_between(after, last).into_iter();
    let notes =
        changes.flat_map(|change| if change.after > change.before { notes.gap(change) } else { notes.fold(change) });
    notes.take(MAX_NOTES).collect()
}

struct Notes<'a> {
    slots: &'a Slots<'a>,
    from: i64,
    until: i64,
}

impl Notes<'_> {
    fn gap(&self, change: OffsetChange) -> Vec<Warning> {
        let at = change.at.as_second();
        if at < self.from || at >= self.until {
            return Vec::new();
        }
        let missing = self.by_date(at + change.before, at + change.after);
        missing.iter().map(|times| self.gap_note(times, change)).collect()
    }

    fn gap_note(&self, times: &Times, change: OffsetChange) -> Warning {
        let one = times.count == 1;
        let lack = if one { "does not exist" } else { "do not exist" };
        let shown = self.clock(change.at, change.after);
        let then = match (self.slots.dst.gap, self.slots.fields.matches(change.at.as_second() + change.after)) {
            (DstGap::Skip, _) if one => "it is skipped".to_owned(),
            (DstGap::Skip, _) => "they are skipped".to_owned(),
            (DstGap::Shift, true) if one => format!("falls together with {shown}, which fires once"),
            (DstGap::Shift, true) => format!("fall together with {shown}, which fires once"),
            (DstGap::Shift, false) if one => format!("fires at {shown} instead"),
            (DstGap::Shift, false) => format!("fire once at {shown} instead"),
        };
        let detail = format!("{} {lack} on {} in {}; {then}", times.text, times.day.date(), self.slots.zone);
        Warning {
            code: WarningCode::DstGap,
            detail,
            local_date: Some(times.day.date()),
            at: (self.slots.dst.gap == DstGap::Shift).then_some(change.at),
        }
    }

    fn fold(&self, change: OffsetChange) -> Vec<Warning> {
        let at = change.at.as_second();
        let (low, high) = (at + change.after, at + change.before);
        // Of the local times, those whose slots are asked for.
        let (first, end) = match self.slots.dst.fold {
            DstFold::First => (self.from + change.before, self.until + change.before),
            DstFold::Last => (self.from + change.after, self.until + change.after),
            DstFold::Both => (self.from + change.before, self.until + change.after),
        };
        let twice = self.by_date(low.max(first), high.min(end));
        twice.iter().map(|times| self.fold_note(times, change)).collect()
    }

    fn fold_note(&self, times: &Times, change: OffsetChange) -> Warning {
        let (first, second) = (instant(times.first - change.before), instant(times.first - change.after));
        let verb = if times.count == 1 { "happens" } else { "happen" };
        let then = if times.count == 1 {
            let (early, late) = (self.clock(first, change.before), self.clock(second, change.after));
            match self.slots.dst.fold {
                DstFold::First => format!("fires the first time, at {early}"),
                DstFold::Last => format!("fires the second time, at {late}"),
                DstFold::Both => format!("fires both times, at {early} and at {late}"),
            }
        } else {
            let (early, late) = (self.abbreviation(first), self.abbreviation(second));
            match self.slots.dst.fold {
                DstFold::First => format!("each fires the first time, in {early}"),
                DstFold::Last => format!("each fires the second time, in {late}"),
                DstFold::Both => format!("each fires both times, in {early} and in {late}"),
            }
        };
        Warning {
            code: WarningCode::DstFold,
            detail: format!("{} {verb} twice on {} in {}; {then}", times.text, times.day.date(), self.slots.zone),
            local_date: Some(times.day.date()),
            at: Some(if self.slots.dst.fold == DstFold::Last { second } else { first }),
        }
    }

    /// The local times of the schedule in `[low, high)`, by their date.
    fn by_date(&self, low: i64, high: i64) -> Vec<Times> {
        let mut all = Vec::new();
        let mut from = low;
        while let Some(first) = self.slots.fields.next(from).filter(|first| *first < high && all.len() < MAX_NOTES) {
            let end = high.min((first.div_euclid(DAY) + 1) * DAY);
            all.push(self.times(first, end));
            from = end;
        }
        all
    }

    /// `02:00, 02:15, ... (4 times)`.
    fn times(&self, first: i64, end: i64) -> Times {
        let fields = self.slots.fields;
        let count = fields.count(first, end);
        let many = count > MAX_TIMES;
        let times = std::iter::successors(Some(first), |time| fields.next(time + 1));
        let shown: Vec<String> =
            times.take(if many { 2 } else { count as usize }).map(|time| self.time(local(time))).collect();
        let text = if many { format!("{}, ... ({count} times)", shown.join(", ")) } else { list(&shown, "and") };
        Times { first, day: local(first), count, text }
    }

    /// An instant on the local clock: `03:00 EDT`.
    fn clock(&self, at: Timestamp, offset: i64) -> String {
        format!("{} {}", self.time(local(at.as_second() + offset)), self.abbreviation(at))
    }

    fn time(&self, time: DateTime) -> String {
        let (hour, minute, second) = (time.hour(), time.minute(), time.second());
        if self.slots.fields.seconds == 1 && second == 0 {
            format!("{hour:02}:{minute:02}")
        } else {
            format!("{hour:02}:{minute:02}:{second:02}")
        }
    }

    /// `EDT`; zones without letters have only their offset, which is said to be one: `UTC+11`.
    fn abbreviation(&self, at: Timestamp) -> String {
        let info = self.slots.zone.as_jiff().to_offset_info(at);
        let name = info.abbreviation();
        if name.starts_with(['+', '-']) { format!("UTC{name}") } else { name.to_owned() }
    }
}

/// Local times of one date.
struct Times {
    /// The first of them, in local seconds.
    first: i64,
    day: DateTime,
    count: u64,
    text: String,
}

/// The calendar's reading of local seconds.
fn local(second: i64) -> DateTime {
    Offset::UTC.to_datetime(instant(second.clamp(MIN_SECOND, MAX_SECOND)))
}
