//! Creating, editing and deleting a calendar. The fires that change are shown before it is saved.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell_core::calendar::CalendarName;
use everbell_http::access::{Role, expect_role};
use everbell_http::internal_call::InternalCall;
use everbell_http::problem::{Kind, Problem};
use everbell_wire as wire;
use serde::Serialize;

use crate::clock::Clock;
use crate::equivalent::Equivalent;
use crate::markup::{Markup, url_part};
use crate::pages::action::{Refusal, correctable, typed};
use crate::request::{Content, Flash};
use crate::{Frame, Section, UiRequest, UiResponse};

const FIELDS: [&str; 6] = ["name", "timezone", "dates", "weekly", "ics", "reason"];
const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

#[derive(Template)]
#[template(path = "calendars/edit.html")]
struct EditPage {
    frame: Frame,
    refusal: Refusal,
    /// The calendar as it is; none for a new one.
    current: Option<Current>,
    name: String,
    /// The days as they are typed, one per line.
    dates: String,
    weekly: Vec<(&'static str, bool)>,
    timezone: String,
    ics: String,
    reason: String,
    /// The fires that would change, if that was asked for.
    preview: Option<Vec<EffectRow>>,
    same: Equivalent,
}

struct Current {
    part: String,
    /// The version that the text of the form was made from.
    version: String,
    is_declared: bool,
    jobs: Vec<(String, String)>,
}

struct EffectRow {
    key: String,
    part: String,
    added: u64,
    removed: u64,
    added_fires: Vec<Markup>,
    removed_fires: Vec<Markup>,
}

impl EffectRow {
    fn new(effect: &wire::CalendarEffect, clock: &Clock) -> EffectRow {
        let zone = everbell_core::Zone::get(&effect.timezone).ok();
        let shown = |fires: &[jiff::Timestamp]| fires.iter().take(5).map(|at| clock.day(*at, zone.as_ref())).collect();
        EffectRow {
            part: url_part(&effect.job_key),
            key: effect.job_key.clone(),
            added: effect.added,
            removed: effect.removed,
            added_fires: shown(&effect.added_fires),
            removed_fires: shown(&effect.removed_fires),
        }
    }
}

/// The body of the request.
#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    timezone: Option<&'a str>,
    dates: Vec<&'a str>,
    weekly: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ics: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

impl<'a> Body<'a> {
    fn sent(request: &'a UiRequest) -> Body<'a> {
        let dates = request.sent("dates").unwrap_or_default().lines().map(str::trim);
        Body {
            timezone: request.sent("timezone"),
            dates: dates.filter(|day| !day.is_empty()).collect(),
            weekly: request.sent_all("weekly"),
            ics: request.sent("ics"),
            reason: request.sent("reason"),
        }
    }

    fn same(&self, request: &UiRequest, name: &str) -> Result<Equivalent, Problem> {
        let name = if name.is_empty() { "NAME" } else { name };
        let mut words = vec!["calendars", "set", name];
        words.extend(self.dates.iter().take(20).flat_map(|day| ["--date", *day]));
        let weekly = self.weekly.join(",");
        words.extend(
            [("--weekly", weekly.as_str())].into_iter().filter(|(_, days)| !days.is_empty()).flat_map(<[_; 2]>::from),
        );
        words.extend(self.timezone.iter().flat_map(|zone| ["--timezone", *zone]));
        Equivalent::with_body(&request.api_base(), "PUT", &format!("/calendars/{}", url_part(name)), self, &words)
    }
}

/// The calendar of the address; none for a new one.
async fn current(request: &UiRequest) -> Result<Option<wire::Calendar>, Problem> {
    let path = [("name", request.part("name"))];
    if path[0].1.is_empty() {
        return Ok(None);
    }
    request.ask(InternalCall::new(Method::GET, "/calendars/{name}", &path), &()).await.map(Some)
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_role(&request.actor, Role::Admin)?;
    form(&request, None, None).await
}

async fn form(
    request: &UiRequest,
    problem: Option<&Problem>,
    preview: Option<Vec<EffectRow>>,
) -> Result<UiResponse, Problem> {
    let current = current(request).await?;
    let body = Body::sent(request);
    let is_first = request.sent.is_empty();
    let name = current.as_ref().map_or_else(|| typed(request, "name"), |calendar| calendar.name.clone());
    let same = body.same(request, &name)?;
    let (dates, weekly, timezone) = match &current {
        Some(calendar) if is_first => {
            (calendar.dates.join("\n"), calendar.weekly.clone(), calendar.timezone.clone().unwrap_or_default())
        }
        _ => (
            typed(request, "dates"),
            body.weekly.iter().map(|day| (*day).to_owned()).collect(),
            typed(request, "timezone"),
        ),
    };
    let is_declared = match &current {
        Some(calendar) => match CalendarName::new(&calendar.name) {
            Ok(name) => request.app.bell.calendars().is_declared(&name).await,
            Err(_) => false,
        },
        None => false,
    };
    let title = if current.is_some() { format!("Calendar {name}") } else { "New calendar".to_owned() };
    let page = EditPage {
        frame: request.frame(Section::Calendars, title).await,
        // The name of a calendar that exists is no field.
        refusal: Refusal::from_problem(problem, if current.is_some() { &FIELDS[1..] } else { &FIELDS }),
        current: current.map(|calendar| Current {
            part: url_part(&calendar.name),
            version: request.sent("revision").map_or_else(|| calendar.version.to_string(), str::to_owned),
            is_declared,
            jobs: calendar.jobs.into_iter().map(|key| (url_part(&key), key)).collect(),
        }),
        weekly: WEEKDAYS.iter().map(|day| (*day, weekly.iter().any(|own| own == day))).collect(),
        ics: typed(request, "ics"),
        reason: typed(request, "reason"),
        name,
        dates,
        timezone,
        preview,
        same,
    };
    UiResponse::with_status(&page, problem.map_or(StatusCode::OK, Problem::status))
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_role(&request.actor, Role::Admin)?;
    let is_new = request.part("name").is_empty();
    let name = if is_new { typed(&request, "name") } else { request.part("name").to_owned() };
    if let Err(invalid) = CalendarName::new(&name) {
        let fault = everbell_wire::form::Fault::new("/name", wire::FaultCode::Invalid, invalid.reason);
        return form(&request, Some(&Problem::body(vec![fault])), None).await;
    }
    let previews = request.sent("preview").is_some();
    let path = [("name", name.as_str())];
    let call = InternalCall::new(Method::PUT, "/calendars/{name}", &path);
    let call = if previews { call.with_query(&serde_json::json!({ "dryRun": true }))? } else { call };
    // A new one must not replace one that another person has created meanwhile.
    let revision = if is_new { Some(0) } else { request.revision() };
    let call = InternalCall { revision, once: request.sent("once"), ..call };
    match request.ask::<wire::CalendarWritten>(call, &Body::sent(&request)).await {
        Ok(written) if previews => {
            let clock = request.clock();
            let effects = written.effects.iter().map(|effect| EffectRow::new(effect, &clock)).collect();
            form(&request, None, Some(effects)).await
        }
        Ok(written) => Ok(UiResponse::done("/calendars", saved(&name, &written))),
        Err(problem) if problem.kind == Kind::RevisionMismatch => {
            let text = if is_new {
                format!("A calendar named `{name}` already exists.")
            } else {
                "The calendar has changed in the meantime, and nothing was saved. Open it again.".to_owned()
            };
            form(&request, Some(&Problem::new(Kind::Conflict, text)), None).await
        }
        Err(problem) => form(&request, Some(&correctable(problem)?), None).await,
    }
}

fn saved(name: &str, written: &wire::CalendarWritten) -> String {
    let followed = match written.updated_jobs.len() {
        0 => String::new(),
        1 => " 1 job has a new version.".to_owned(),
        jobs => format!(" {jobs} jobs have a new version."),
    };
    let failed = match written.failed_jobs.len() {
        0 => String::new(),
        jobs => format!(" {jobs} could not be updated yet and will be retried."),
    };
    format!("Calendar {name} saved.{followed}{failed}")
}

pub(crate) async fn delete(request: UiRequest) -> Result<UiResponse, Problem> {
    let name = request.part("name").to_owned();
    let path = [("name", name.as_str())];
    match request.perform::<()>(Method::DELETE, "/calendars/{name}", &path, &()).await {
        Ok(()) => Ok(UiResponse::done("/calendars", format!("Calendar {name} deleted."))),
        Err(problem) => {
            let flash = Some(Flash { good: false, text: correctable(problem)?.detail });
            let to = format!("/calendars/{}", url_part(&name));
            Ok(UiResponse::new(Content::Redirect { to, flash }))
        }
    }
}
