//! A new job.

use axum::http::Method;
use everbell::StoreError;

use super::draft::Draft;
use super::form::FormPage;
use super::request_body::RequestBody;
use super::suggestions::targets;
use super::{expect_admin, preview};
use crate::markup::url_part;
use crate::request::{UiRequest, UiResponse};
use everbell_http::excerpt::excerpt;
use everbell_http::problem::{Kind, Problem};
use everbell_wire as wire;
use everbell_wire::form::{Field, TEXT, optional};

pub(crate) const QUERY: &[Field] = &[optional("from", TEXT, "The job to copy.")];

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_admin(&request)?;
    let draft = if let Some(key) = request.query(QUERY).text("from") {
        copied(&request, key).await?
    } else {
        // With several targets none is preselected: pressing Enter too early would create a job with the wrong one.
        match targets(&request).await?.as_slice() {
            [(only, _)] => Draft::blank(&request.choices.mine, Some(only)),
            _ => Draft::blank(&request.choices.mine, None),
        }
    };
    FormPage::response(&request, draft, None, None).await
}

/// The form of a job like that one, under another name.
async fn copied(request: &UiRequest, key: &str) -> Result<Draft, Problem> {
    let missing = |_| Problem::new(Kind::NotFound, format!("There is no job `{}`.", excerpt(key)));
    let row = match request.jobs().get(key).await {
        Err(StoreError::Invalid(invalid)) => return Err(missing(invalid)),
        answer => answer?,
    };
    let mut draft = Draft::from_definition(&row.job.definition, request.now);
    draft.set("jobKey", &format!("{}-copy", row.job.definition.key));
    Ok(draft)
}

pub(crate) async fn preview(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_admin(&request)?;
    FormPage::preview(&request, &Draft::sent(&request.sent), None).await
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_admin(&request)?;
    let mut draft = Draft::sent(&request.sent);
    if is_preview(&request, &mut draft) {
        return FormPage::response(&request, draft, None, None).await;
    }
    match created(&request, &RequestBody::new(&draft)).await {
        Ok(wire::Job { job_key: key, .. }) => {
            Ok(UiResponse::done(format!("/jobs/{}", url_part(&key)), format!("{key} created.")))
        }
        Err(problem) => FormPage::response(&request, draft, None, Some(&problem)).await,
    }
}

async fn created(request: &UiRequest, form: &RequestBody) -> Result<wire::Job, Problem> {
    if !form.faults.is_empty() || !form.body.members.contains_key("target") {
        return Err(Problem::body(preview::faults(request, form, None).await?));
    }
    request.perform(Method::POST, "/jobs", &[], &form.body).await
}

/// Whether the form is only to be shown again: with a template, or with what it means.
pub(super) fn is_preview(request: &UiRequest, draft: &mut Draft) -> bool {
    if let Some(expression) = request.sent("use") {
        draft.set("how", "cron");
        draft.set("cronExpression", expression);
        return true;
    }
    matches!(request.sent("do"), Some("preview" | "simulate"))
}
