//! Routes of calendars and freezes: a part of the table in `lib.rs`.

use axum::http::Method;
use everbell_wire as wire;

use super::access::Role::{Admin, Operator, Viewer};
use super::api::{calendars, freezes};
use super::problem::Kind::{Conflict, NotFound};
use super::route::Access::Role;
use super::route::{Route, route};

/// Calendars of days on which jobs fire, or do not, and times in which no schedule does.
#[rustfmt::skip]
pub(super) fn calendar_routes() -> Vec<Route> {
    vec![
        route(Method::GET, "/calendars", Role(Viewer), calendars::list).does("listCalendars", "List calendars")
            .returns_items::<wire::Calendar>("The calendars, by name"),
        route(Method::GET, "/calendars/{name}", Role(Viewer), calendars::get).does("getCalendar", "Get a calendar")
            .returns::<wire::Calendar>(200, "The calendar").problems(&[NotFound]),
        route(Method::PUT, "/calendars/{name}", Role(Admin), calendars::put).does("putCalendar", "Create or replace a calendar").query(calendars::WRITE).body("CalendarInput", calendars::CALENDAR).revised()
            .details("Each job that uses the calendar gets a new version at once. With `dryRun` nothing changes, and the response lists the runs that would be added or removed.")
            .returns::<wire::CalendarWritten>(200, "The calendar, and the runs that are added or removed").problems(&[Conflict]),
        route(Method::DELETE, "/calendars/{name}", Role(Admin), calendars::delete).does("deleteCalendar", "Delete a calendar")
            .details("Refused while a current job uses it.")
            .returns_nothing(204, "The calendar is deleted").problems(&[NotFound, Conflict]),
        route(Method::GET, "/freezes", Role(Viewer), freezes::list).does("listFreezes", "List current and upcoming freezes")
            .returns_items::<wire::Freeze>("The freezes, the earliest first"),
        route(Method::POST, "/freezes", Role(Operator), freezes::add).does("addFreeze", "Announce a freeze").body("FreezeInput", freezes::FREEZE)
            .details("Schedules do not fire during a freeze: their slots become gaps with the reason `frozen`, and are not caught up. Manual runs, retries and backfills continue. A one-time job waits until the end of the freeze.")
            .returns::<wire::Freeze>(201, "The freeze"),
        route(Method::DELETE, "/freezes/{freezeId}", Role(Operator), freezes::end).does("endFreeze", "End a freeze early")
            .returns::<wire::Freeze>(200, "The freeze").problems(&[NotFound]),
    ]
}
