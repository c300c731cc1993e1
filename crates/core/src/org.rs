//! Decisions about orgs: the local date of a slot, and whether that date already had its run.

use jiff::Timestamp;
use jiff::civil::Date;

use crate::spec::Spec;

/// The date on which the slot falls in the schedule's zone. Set once on the run, never remapped.
pub fn local_date(spec: &Spec, slot: Timestamp) -> Date {
    spec.zone().as_jiff().to_datetime(slot).date()
}

/// Whether the slot's local date had its run before, for instance because the org moved west after it.
///
/// Only asked of schedules that fire at most once a day: for the others a date says nothing.
pub fn already_ran(spec: &Spec, last: Option<Date>, date: Option<Date>) -> bool {
    matches!((last, date), (Some(last), Some(date)) if date <= last) && spec.at_most_daily()
}
