//! Making an org, and changing one: its name, its zone with what a move would do, its settings.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell::{OrgId, StoreError};
use everbell_core::Zone;
use serde::Serialize;
use serde_json::value::RawValue;

use super::what_if::WhatIf;
use super::{OrgSubject, fault, local_now, org_path, refusal};
use crate::equivalent::Equivalent;
use crate::markup::{Markup, url_part};
use crate::pages::action::{Refusal, correctable, expect_operator, typed};
use crate::pretty::pretty;
use crate::request::{UiRequest, UiResponse};
use crate::{Frame, Section};
use everbell_http::problem::Problem;
use everbell_wire as wire;

const FIELDS: [&str; 5] = ["id", "name", "timezone", "settings", "reason"];

#[derive(Template)]
#[template(path = "orgs/edit.html")]
struct EditPage {
    frame: Frame,
    subject: FormSubject,
    refusal: Refusal,
    draft: Draft,
    /// Every zone, to choose from.
    zones: Vec<&'static str>,
    what_if: WhatIf,
    /// The local time in the current time zone of the org.
    now: Option<Markup>,
    same: Equivalent,
}

/// The org that the form edits, or none for a new org.
struct FormSubject {
    /// The org, with what people call it and where it is.
    org: Option<(String, String)>,
    revision: Option<u64>,
    path: String,
}

impl FormSubject {
    fn new() -> FormSubject {
        FormSubject { org: None, revision: None, path: "/orgs".to_owned() }
    }

    /// Where to go instead.
    fn path(&self) -> &str {
        &self.path
    }
}

impl From<&OrgSubject> for FormSubject {
    fn from(subject: &OrgSubject) -> FormSubject {
        FormSubject {
            org: Some((subject.called.clone(), subject.org.place.timezone.clone())),
            revision: Some(subject.revision),
            path: subject.path(),
        }
    }
}

/// The submitted fields.
struct Draft {
    id: String,
    name: String,
    timezone: String,
    settings: String,
    reason: String,
    /// Whether a new org begins without taking part.
    disabled: bool,
}

impl Draft {
    /// Reads the submitted fields. A suggestion button sets the time zone.
    fn sent(request: &UiRequest) -> Draft {
        Draft {
            id: typed(request, "id"),
            name: typed(request, "name"),
            timezone: request.sent("use").map_or_else(|| typed(request, "timezone"), str::to_owned),
            settings: typed(request, "settings"),
            reason: typed(request, "reason"),
            disabled: request.sent("disabled").is_some(),
        }
    }

    /// The org as it is.
    fn from_org(subject: &OrgSubject) -> Draft {
        let settings = pretty(subject.org.settings.as_str());
        Draft {
            id: subject.id.clone(),
            name: subject.org.name.clone(),
            timezone: subject.org.place.timezone.clone(),
            settings: if settings == "{}" { String::new() } else { settings },
            reason: String::new(),
            disabled: !subject.org.place.enabled,
        }
    }

    fn settings(&self) -> Result<Box<RawValue>, Problem> {
        let text = if self.settings.is_empty() { "{}" } else { &self.settings };
        serde_json::from_str(text).map_err(|error| fault("settings", format!("is not JSON: {error}")))
    }
}

/// The body of the request. Absent members keep their values.
#[derive(Default, Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timezone: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    settings: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enabled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

/// Whether the form is only to be shown again: with another zone, or with what a move would do.
fn is_preview(request: &UiRequest) -> bool {
    request.sent("use").is_some() || request.sent("do") == Some("preview")
}

pub(crate) async fn show_new(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    form_new(&request, None).await
}

async fn form_new(request: &UiRequest, problem: Option<&Problem>) -> Result<UiResponse, Problem> {
    let draft = Draft::sent(request);
    let what_if = match Zone::get(&draft.timezone) {
        Err(unknown) if !draft.timezone.is_empty() => WhatIf::Unknown(unknown),
        _ => WhatIf::Stays,
    };
    form(request, (FormSubject::new(), None), draft, what_if, problem).await
}

/// Shows the form. Also serves its live preview.
pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    form_of(&request, None).await
}

async fn form_of(request: &UiRequest, problem: Option<&Problem>) -> Result<UiResponse, Problem> {
    let subject = OrgSubject::load(request).await?;
    let draft = if request.sent.is_empty() { Draft::from_org(&subject) } else { Draft::sent(request) };
    let what_if = WhatIf::load(request, &subject, &draft.timezone).await?;
    let now = subject.zone.as_ref().ok().map(|zone| local_now(&request.clock(), zone));
    form(request, (FormSubject::from(&subject), now), draft, what_if, problem).await
}

async fn form(
    request: &UiRequest,
    (subject, now): (FormSubject, Option<Markup>),
    draft: Draft,
    what_if: WhatIf,
    problem: Option<&Problem>,
) -> Result<UiResponse, Problem> {
    let title = subject.org.as_ref().map_or_else(|| "New org".to_owned(), |(called, _)| format!("Edit {called}"));
    let mut refusal = refusal(problem, &FIELDS);
    // What is typed into the field of a zone is judged below it at once.
    refusal.faults.retain(|(name, _)| name != "timezone" || !matches!(what_if, WhatIf::Unknown(_)));
    let page = EditPage {
        frame: request.frame(Section::Orgs, title).await,
        zones: Zone::names().collect(),
        same: same(request, &draft)?,
        subject,
        refusal,
        draft,
        what_if,
        now,
    };
    UiResponse::with_status(&page, problem.map_or(StatusCode::OK, Problem::status))
}

fn same(request: &UiRequest, draft: &Draft) -> Result<Equivalent, Problem> {
    let id = if draft.id.is_empty() { "acme" } else { &draft.id };
    let zone = if draft.timezone.is_empty() { "Europe/Paris" } else { &draft.timezone };
    let name = Some(draft.name.as_str()).filter(|name| !name.is_empty());
    let mut words = vec!["orgs", "set", id, "--timezone", zone];
    words.extend(name.iter().flat_map(|name| ["--name", *name]));
    let body = Body { name, timezone: Some(zone), ..Body::default() };
    Equivalent::with_body(&request.api_base(), "PUT", &format!("/orgs/{}", url_part(id)), &body, &words)
}

pub(crate) async fn send_new(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    if is_preview(&request) {
        return form_new(&request, None).await;
    }
    match created(&request).await {
        Ok(id) => Ok(UiResponse::done(org_path(&url_part(&id)), format!("{id} created."))),
        Err(problem) => form_new(&request, Some(&correctable(problem)?)).await,
    }
}

/// Creates the org. Fails if the id already exists.
async fn created(request: &UiRequest) -> Result<String, Problem> {
    let draft = Draft::sent(request);
    let id = OrgId::new(&draft.id).map_err(|invalid| fault("id", invalid.reason))?;
    match request.orgs().get(&id).await {
        Ok(_) => return Err(fault("id", "an org with this id already exists")),
        Err(StoreError::NotFound { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let body = Body {
        name: Some(&draft.name),
        timezone: Some(draft.timezone.as_str()).filter(|zone| !zone.is_empty()),
        settings: Some(draft.settings()?),
        enabled: Some(!draft.disabled),
        reason: request.sent("reason"),
    };
    request.perform::<wire::Org>(Method::PUT, "/orgs/{orgId}", &[("orgId", &draft.id)], &body).await?;
    Ok(draft.id)
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    if is_preview(&request) {
        return form_of(&request, None).await;
    }
    let subject = OrgSubject::load(&request).await?;
    match changed(&request, &subject).await {
        Ok(wire::Org { timezone: zone, .. }) => {
            let text = if zone == subject.org.place.timezone {
                format!("{} saved.", subject.id)
            } else {
                format!("{} moved to {zone}. Existing runs keep their local date.", subject.id)
            };
            Ok(UiResponse::done(subject.path(), text))
        }
        Err(problem) => form_of(&request, Some(&correctable(problem)?)).await,
    }
}

async fn changed(request: &UiRequest, subject: &OrgSubject) -> Result<wire::Org, Problem> {
    let draft = Draft::sent(request);
    let body = Body {
        name: Some(&draft.name),
        // An unreadable time zone must not block changes to the other fields.
        timezone: Some(draft.timezone.as_str()).filter(|zone| *zone != subject.org.place.timezone),
        settings: Some(draft.settings()?),
        enabled: None,
        reason: request.sent("reason"),
    };
    request.perform(Method::PATCH, "/orgs/{orgId}", &[("orgId", &subject.id)], &body).await
}
