//! Calendars and freezes: days and times on which schedules do not fire.

pub(crate) mod edit;
pub(crate) mod freeze;

use askama::Template;
use everbell_core::freeze::Freeze;
use everbell_http::access::Role;
use everbell_http::api::calendars::documents;
use everbell_http::problem::Problem;
use everbell_wire as wire;
use everbell_wire::job::Source;
use jiff::Timestamp;

use crate::clock::Clock;
use crate::markup::{Markup, url_part};
use crate::{Frame, Section, UiRequest, UiResponse};

/// How many days and jobs of a calendar a row names.
const MAX_LISTED: usize = 4;

#[derive(Template)]
#[template(path = "calendars.html")]
struct CalendarsPage {
    frame: Frame,
    freezes: Vec<FreezeRow>,
    calendars: Vec<CalendarRow>,
    /// The reason why the actor may not announce freezes.
    no_freeze: Option<String>,
    /// The reason why the actor may not edit calendars.
    no_edit: Option<String>,
}

struct FreezeRow {
    id: String,
    in_force: bool,
    from: Markup,
    until: Markup,
    until_away: Markup,
    scope: String,
    except: Vec<String>,
    reason: String,
    by: String,
}

impl FreezeRow {
    fn new(freeze: &Freeze, clock: &Clock, now: Timestamp) -> FreezeRow {
        let shown = wire::Freeze::new(freeze, now);
        FreezeRow {
            id: shown.id,
            in_force: shown.in_force,
            from: clock.day(freeze.starts_at, None),
            until: clock.day(freeze.ends_at, None),
            until_away: clock.away(freeze.ends_at),
            scope: shown.label.map_or_else(|| "all jobs".to_owned(), |label| format!("jobs with {label}")),
            except: shown.except,
            reason: shown.reason,
            by: shown.created_by,
        }
    }
}

struct CalendarRow {
    name: String,
    part: String,
    days: Vec<String>,
    more_days: usize,
    weekly: String,
    timezone: Option<String>,
    jobs: Vec<(String, String)>,
    more_jobs: usize,
    source: Source,
    applied: bool,
}

impl From<wire::Calendar> for CalendarRow {
    fn from(calendar: wire::Calendar) -> CalendarRow {
        CalendarRow {
            part: url_part(&calendar.name),
            more_days: calendar.dates.len().saturating_sub(MAX_LISTED),
            days: calendar.dates.into_iter().take(MAX_LISTED).collect(),
            weekly: calendar.weekly.join(", "),
            timezone: calendar.timezone,
            more_jobs: calendar.jobs.len().saturating_sub(MAX_LISTED),
            jobs: calendar.jobs.into_iter().take(MAX_LISTED).map(|key| (url_part(&key), key)).collect(),
            source: calendar.source,
            applied: calendar.applied,
            name: calendar.name,
        }
    }
}

/// Lists calendars, and the freezes that are in force or to come.
pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    let (clock, now) = (request.clock(), request.now);
    let freezes = request.app.bell.freezes().list().await?;
    let page = CalendarsPage {
        frame: request.frame(Section::Calendars, "Calendars").await,
        freezes: freezes.iter().map(|freeze| FreezeRow::new(freeze, &clock, now)).collect(),
        calendars: documents(&request.to_api_request()).await?.into_iter().map(CalendarRow::from).collect(),
        no_freeze: request.barred(Role::Operator),
        no_edit: request.barred(Role::Admin),
    };
    UiResponse::page(&page)
}
