//! The days of a calendar as the API and the configuration file take them.

use everbell_core::calendar::{CalendarContent, DayEntry, MAX_ENTRIES, Weekdays, read_ics};
use everbell_core::{Invalid, Zone};

use super::job::ZONE;
use crate::form::{Field, Form, Kind, optional};
use crate::problem::FaultCode;

/// A day of a list, with its name.
const DAY: Kind = Kind::Text { min: 1, max: 250 };
const WEEKDAY: Kind = Kind::Text { min: 1, max: 9 };

/// Dates, ranges and dates of every year.
pub const DATES: Field = optional(
    "dates",
    Kind::List { of: &DAY, max: MAX_ENTRIES },
    "Days: `2027-01-01`, `2027-04-02..2027-04-05`, or `*-12-25` for every year, each optionally followed by a name: `*-12-25 Christmas`.",
);

/// Days of the week.
pub const WEEKLY: Field = optional(
    "weekly",
    Kind::List { of: &WEEKDAY, max: 7 },
    "Days of every week: `mon`, `tue`, `wed`, `thu`, `fri`, `sat`, `sun`.",
);

/// The zone of the days.
pub const TIMEZONE: Field = optional(
    "timezone",
    ZONE,
    "The IANA time zone of the days. Default: the zone of the job, or of the org for a per-org job.",
);

/// Reads the days. `ics` is the text of an iCalendar file. Notes every fault, and returns nothing if there is one.
pub fn read_content(form: &mut Form<'_>, ics: Option<&str>) -> Option<CalendarContent> {
    let mut content = CalendarContent::default();
    match form.text("timezone").map(Zone::get) {
        Some(Ok(zone)) => content.timezone = Some(zone),
        Some(Err(error)) => form.fault("timezone", FaultCode::UnknownZone, error.to_string()),
        None => {}
    }
    let mut problems: Vec<Invalid> = Vec::new();
    let dates: Vec<String> = form.list("dates").into_iter().map(str::to_owned).collect();
    for (index, text) in dates.iter().enumerate() {
        match text.parse::<DayEntry>() {
            Ok(entry) => content.entries.push(entry),
            Err(problem) => form.fault(&format!("dates.{index}"), FaultCode::Invalid, problem.reason),
        }
    }
    let weekly: Vec<String> = form.list("weekly").into_iter().map(str::to_owned).collect();
    match Weekdays::parse(&weekly) {
        Ok(weekly) => content.weekly = weekly,
        Err(problem) => problems.push(problem),
    }
    match ics.map(read_ics) {
        Some(Ok(entries)) => content.entries.extend(entries),
        Some(Err(problem)) => problems.push(problem),
        None => {}
    }
    if form.faults_mut().is_empty() && problems.is_empty() {
        problems.extend(content.check().err());
    }
    for problem in &problems {
        form.fault(problem.field, FaultCode::Invalid, problem.reason.clone());
    }
    form.faults_mut().is_empty().then_some(content)
}
