//! Change the local time of a job for an org.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell::core::cron::Expression;
use everbell::core::org::Override;
use everbell::core::store::OrgJob;

use super::job_override::{Body, ROUTE, around};
use super::{OrgSubject, refusal};
use crate::equivalent::Equivalent;
use crate::markup::url_part;
use crate::pages::action::{Moment, Refusal, correctable, expect_operator, typed};
use crate::request::{UiRequest, UiResponse};
use crate::{Frame, Section};
use everbell_http::api::org_jobs::{hour_and_minute, with_time};
use everbell_http::problem::Problem;
use everbell_wire as wire;

const FIELDS: [&str; 3] = ["localTime", "cronExpression", "reason"];

#[derive(Template)]
#[template(path = "orgs/time.html")]
struct TimePage {
    frame: Frame,
    subject: OrgSubject,
    refusal: Refusal,
    key: String,
    /// The regular expression of the job, and its description.
    usual: Option<(String, String)>,
    /// Whether a time of the day says enough.
    simple: bool,
    said: TimeForm,
    effect: Effect,
    reason: String,
    same: Equivalent,
}

/// The submitted fields.
struct TimeForm {
    /// `time` or `cron`.
    how: &'static str,
    time: String,
    expression: String,
}

/// The effect of the new time.
enum Effect {
    /// Nothing is said yet.
    None,
    Wrong(String),
    Fires {
        words: String,
        before: Vec<Moment>,
        after: Vec<Moment>,
    },
}

impl TimeForm {
    fn new(request: &UiRequest, row: &OrgJob) -> TimeForm {
        let own = row.override_.as_ref().and_then(|own| own.expression.as_deref()).or_else(|| expression(row));
        let own = own.unwrap_or_default();
        if request.sent.is_empty() {
            let time = time_of(own);
            let how = if time.is_some() { "time" } else { "cron" };
            return TimeForm { how, time: time.unwrap_or_default(), expression: own.to_owned() };
        }
        let how = if request.sent("how") == Some("cron") { "cron" } else { "time" };
        TimeForm { how, time: typed(request, "localTime"), expression: typed(request, "cronExpression") }
    }

    /// The expression that is meant.
    fn expression(&self, row: &OrgJob) -> Option<String> {
        if self.how == "cron" {
            return Some(self.expression.clone()).filter(|text| !text.is_empty());
        }
        let (hour, minute) = hour_and_minute(&self.time)?;
        with_time(expression(row)?, hour, minute)
    }

    /// The body of the request.
    fn body(&self) -> Body<'_> {
        if self.how == "cron" {
            Body { cron_expression: Some(&self.expression), ..Body::default() }
        } else {
            Body { local_time: Some(&self.time), ..Body::default() }
        }
    }
}

/// The expression that holds for all.
fn expression(row: &OrgJob) -> Option<&str> {
    Some(row.job.definition.spec.as_ref().ok()?.expression()?.as_str())
}

/// The time of the day at which an expression fires, if it has one of each.
fn time_of(expression: &str) -> Option<String> {
    let fields: Vec<&str> = expression.split_whitespace().collect();
    let first = fields.len().checked_sub(5).filter(|first| *first <= 1)?;
    let (minute, hour): (u8, u8) = (fields[first].parse().ok()?, fields[first + 1].parse().ok()?);
    Some(format!("{hour:02}:{minute:02}"))
}

/// Shows the form. Also serves its live preview.
pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    form(&request, None).await
}

async fn form(request: &UiRequest, problem: Option<&Problem>) -> Result<UiResponse, Problem> {
    let subject = OrgSubject::load(request).await?;
    let row = subject.job(request).await?;
    let (key, said) = (row.job.definition.key.to_string(), TimeForm::new(request, &row));
    let usual = row.job.definition.spec.as_ref().ok().and_then(|spec| spec.expression());
    let page = TimePage {
        frame: request.frame(Section::Orgs, format!("Change the local time of {key} for {}", subject.called)).await,
        refusal: refusal(problem, &FIELDS),
        usual: usual.map(|own| (own.as_str().to_owned(), own.describe())),
        simple: expression(&row).is_some_and(|own| with_time(own, 0, 0).is_some()),
        effect: effect(request, &subject, &row, said.expression(&row)).await?,
        reason: typed(request, "reason"),
        same: same(request, &subject, &key, &said)?,
        key,
        said,
        subject,
    };
    UiResponse::with_status(&page, problem.map_or(StatusCode::OK, Problem::status))
}

async fn effect(
    request: &UiRequest,
    subject: &OrgSubject,
    row: &OrgJob,
    wanted: Option<String>,
) -> Result<Effect, Problem> {
    let Some(text) = wanted else { return Ok(Effect::None) };
    let words = match text.parse::<Expression>() {
        Ok(expression) => expression.describe(),
        Err(error) => return Ok(Effect::Wrong(error.to_string())),
    };
    let override_ = Override {
        job_key: row.job.definition.key.clone(),
        enabled: true,
        expression: Some(text),
        updated_by: request.actor.name.clone(),
        updated_at: request.now,
    };
    let (before, after) = around(request, subject, row, Some(override_)).await?;
    Ok(Effect::Fires { words, before, after })
}

fn same(request: &UiRequest, subject: &OrgSubject, key: &str, said: &TimeForm) -> Result<Equivalent, Problem> {
    let path = format!("/orgs/{}/jobs/{}", subject.part, url_part(key));
    let time = if said.how == "cron" { ["--cron", &said.expression] } else { ["--at", &said.time] };
    let words = [&["orgs", "override", &subject.id, key][..], &time].concat();
    Equivalent::with_body(&request.api_base(), "PUT", &path, &said.body(), &words)
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    if request.sent("do") == Some("preview") {
        return form(&request, None).await;
    }
    let subject = OrgSubject::load(&request).await?;
    let row = subject.job(&request).await?;
    let key = row.job.definition.key.to_string();
    let (path, said) = ([("orgId", subject.id.as_str()), ("jobKey", &key)], TimeForm::new(&request, &row));
    let body = Body { reason: request.sent("reason"), ..said.body() };
    match request.perform::<wire::OrgOverride>(Method::PUT, ROUTE, &path, &body).await {
        Ok(_) => Ok(UiResponse::done(subject.path(), format!("{key} now fires for {} at its own time.", subject.id))),
        Err(problem) => form(&request, Some(&correctable(problem)?)).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_the_day_is_found_in_an_expression() {
        assert_eq!(time_of("5 8 * * mon-fri").as_deref(), Some("08:05"));
        assert_eq!(time_of("0 30 22 * * *").as_deref(), Some("22:30"));
        for none in ["*/5 * * * *", "0 8,9 * * *", "@daily", ""] {
            assert_eq!(time_of(none), None, "{none}");
        }
    }
}
