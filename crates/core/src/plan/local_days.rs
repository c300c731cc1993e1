//! The local days of slots, for schedules that fire for each org in its own zone.

use jiff::Timestamp;
use jiff::civil::Date;

use super::just_before;
use crate::spec::Spec;

/// The date on which the slot falls in the schedule's zone. Set once on the run, never remapped.
pub fn local_date(spec: &Spec, slot: Timestamp) -> Date {
    spec.zone().as_jiff().to_datetime(slot).date()
}

/// Returns since when the slots count of an org that starts at `at`: since the start of that local day, if the schedule
/// fires at most once a day. So a day whose time is already past is late and not lost.
pub(crate) fn begins(spec: &Spec, at: Timestamp) -> Timestamp {
    let midnight = at.to_zoned(spec.zone().as_jiff().clone()).start_of_day();
    match midnight {
        Ok(midnight) if spec.at_most_daily() => just_before(midnight.timestamp()).min(at),
        _ => at,
    }
}

/// Whether the slot's local date had its run before, for instance because the org moved west after it.
///
/// Only asked of schedules that fire at most once a day: for the others a date says nothing.
pub fn already_ran(spec: &Spec, last: Option<Date>, date: Option<Date>) -> bool {
    matches!((last, date), (Some(last), Some(date)) if date <= last) && spec.at_most_daily()
}
