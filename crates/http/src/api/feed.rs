//! The next fires as a calendar that people subscribe to.

use std::time::Duration;

use everbell::client::{MAX_NEXT_FIRES, NextFire, NextFires, NextRequest};
use everbell_core::org::OrgSlot;
use everbell_wire::elapsed::took;
use everbell_wire::form::{Field, Kind as Value, TEXT, optional};
use everbell_wire::icalendar::{Feed, FeedEvent};
use everbell_wire::job::Schedule;
use everbell_wire::percent;

use super::jobs::label;
use crate::problem::Problem;
use crate::request::{ApiRequest, ApiResponse};

pub(crate) const NEXT_ICS: &[Field] = &[
    optional("label", TEXT, "Only jobs with this label: `name` or `name=value`."),
    optional("within", Value::Span, "How far to look ahead, at most 366d. Default: 31d."),
    optional("frequent", Value::Flag, "Also jobs that fire more than 24 times a day. Default: false."),
];

const DEFAULT_WITHIN: Duration = Duration::from_hours(31 * 24);
const MAX_WITHIN: Duration = Duration::from_hours(366 * 24);
/// Jobs that fire more often would hide all others in a calendar.
const MOST_A_DAY: usize = 24;

pub(crate) async fn next(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let form = request.query(NEXT_ICS);
    let within = form.span("within").unwrap_or(DEFAULT_WITHIN);
    if within > MAX_WITHIN {
        return Err(Problem::at("parameter", "within", "must be at most 366 days"));
    }
    let now = request.app.bell.now();
    let until = now.checked_add(within).map_err(|_| Problem::at("parameter", "within", "is too long"))?;
    let word = form.text("label").map(str::to_owned);
    let asked = NextRequest {
        from: None,
        until: Some(until),
        label: word.as_deref().map(label),
        most_a_day: (!form.flag("frequent")).then_some(MOST_A_DAY),
        limit: MAX_NEXT_FIRES,
    };
    let next = request.reports().next(&asked).await?;
    let options = request.app.options();
    let title = options.environment.as_ref().map_or_else(|| "everbell".to_owned(), |name| format!("everbell {name}"));
    let feed = Feed {
        name: word.map_or_else(|| title.clone(), |word| format!("{title}: {word}")),
        about: about(&next),
        events: next.fires.iter().map(|fire| event(fire, options.public_url.as_deref())).collect(),
    };
    let response = ApiResponse::text("text/calendar", feed.to_text(now));
    Ok(response.header("content-disposition", "inline; filename=\"everbell.ics\""))
}

/// The contents of the calendar, and the jobs that it leaves out.
fn about(next: &NextFires) -> String {
    let mut sentences = vec!["The next runs of scheduled jobs.".to_owned()];
    if next.frequent > 0 {
        let jobs = if next.frequent == 1 { "job that fires" } else { "jobs that fire" };
        sentences.push(format!("Without {} {jobs} more than {MOST_A_DAY} times a day.", next.frequent));
    }
    if let Some(last) = next.fires.last().filter(|_| next.more) {
        sentences.push(format!("Only the first {MAX_NEXT_FIRES} runs, until {:.0}.", last.at));
    }
    if !next.complete {
        sentences
            .push("Some are missing, because there are too many jobs, time zones or overrides to read.".to_owned());
    }
    sentences.join(" ")
}

/// Where the orgs of a slot are, and how jitter spreads their fires.
fn about_orgs(slot: &OrgSlot) -> Vec<String> {
    let zones = match slot.zones {
        0 => None,
        1 => Some("In 1 time zone.".to_owned()),
        zones => Some(format!("In {zones} time zones.")),
    };
    let millis = i64::try_from(slot.within.as_millis()).unwrap_or(i64::MAX);
    let spread = (millis > 0).then(|| format!("Spread over {} by jitter.", took(millis)));
    ["At the local time of each org.".to_owned()].into_iter().chain(zones).chain(spread).collect()
}

fn event(fire: &NextFire, public_url: Option<&str>) -> FeedEvent {
    let definition = &fire.job.job.definition;
    let schedule = Schedule::from(&**definition);
    let key = definition.key.to_string();
    let local =
        fire.at.in_tz(&schedule.timezone).map_or_else(|_| fire.at.to_string(), |at| at.strftime("%F %T").to_string());
    let mut lines = Vec::new();
    if !definition.description.is_empty() {
        lines.extend([definition.description.clone(), String::new()]);
    }
    lines.push(match &schedule.expression {
        Some(expression) => format!("{} ({expression})", schedule.text),
        None => schedule.text,
    });
    match &fire.orgs {
        None => lines.push(format!("{local} {}", schedule.timezone)),
        Some(slot) => lines.extend(about_orgs(slot)),
    }
    if fire.runs > fire.orgs.as_ref().map_or(1, |slot| slot.orgs) {
        lines.push(format!("{} runs, because calendars move slots to this time.", fire.runs));
    }
    lines.push(format!("Target: {}", definition.target));
    if let Some(freeze) = &fire.frozen {
        lines.push(format!("Does not fire because of a freeze: {}", freeze.reason));
    }
    let title = match &fire.orgs {
        None => key.clone(),
        Some(OrgSlot { first_org: Some(org), orgs: 1, .. }) => format!("{key} for {org}"),
        Some(OrgSlot { orgs: 1, .. }) => format!("{key} for 1 org"),
        Some(OrgSlot { orgs, .. }) => format!("{key} for {orgs} orgs"),
    };
    FeedEvent {
        at: fire.at,
        title,
        about: lines.join("\n"),
        url: public_url
            .map(|base| format!("{}/jobs/{}", base.trim_end_matches('/'), percent::encode(&key, percent::RESERVED))),
        categories: definition
            .labels
            .iter()
            .map(|(name, value)| if value.is_empty() { name.clone() } else { format!("{name}={value}") })
            .collect(),
        is_canceled: fire.frozen.is_some(),
        key,
    }
}
