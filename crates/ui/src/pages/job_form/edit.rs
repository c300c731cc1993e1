//! The next version of a job: the same form, and only what differs is sent.

use axum::http::Method;
use everbell::JobStatus;

use super::changes::Changes;
use super::create::is_preview;
use super::draft::Draft;
use super::form::FormPage;
use super::request_body::RequestBody;
use super::{expect_admin, preview};
use crate::pages::action::Subject;
use crate::request::{UiRequest, UiResponse};
use everbell_http::problem::{Kind, Problem};
use everbell_wire as wire;
use everbell_wire::form::{self, Field, optional};

pub(crate) const QUERY: &[Field] =
    &[optional("from", form::Kind::Integer { min: 1, max: u32::MAX as i64 }, "The version to restore.")];

/// The job, unless it has ended.
async fn living(request: &UiRequest) -> Result<Subject, Problem> {
    expect_admin(request)?;
    let subject = Subject::load(request).await?;
    if subject.row.job.state.status == JobStatus::Retired {
        return Err(Problem::new(Kind::JobRetired, format!("Job `{}` is retired.", subject.key)));
    }
    Ok(subject)
}

/// Reads the submitted form for this job.
fn sent(request: &UiRequest, subject: &Subject) -> Draft {
    let mut draft = Draft::sent(&request.sent);
    draft.set("jobKey", &subject.key);
    draft
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    let subject = living(&request).await?;
    let draft = match request.query(QUERY).count("from") {
        Some(version) => restored(&request, &subject, version).await?,
        None => Draft::from_definition(&subject.row.job.definition, request.now),
    };
    FormPage::response(&request, draft, Some(&subject), None).await
}

/// The form as an earlier version would fill it in: what it said becomes the next version.
async fn restored(request: &UiRequest, subject: &Subject, version: u32) -> Result<Draft, Problem> {
    let versions = request.jobs().versions(&subject.key).await?;
    let row = versions.iter().find(|row| row.job.definition.version == version);
    let missing = || Problem::new(Kind::NotFound, format!("{} has no version {version}.", subject.key));
    Ok(Draft::from_definition(&row.ok_or_else(missing)?.job.definition, request.now))
}

pub(crate) async fn preview(request: UiRequest) -> Result<UiResponse, Problem> {
    let subject = living(&request).await?;
    FormPage::preview(&request, &sent(&request, &subject), Some(&subject)).await
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    let subject = living(&request).await?;
    let mut draft = sent(&request, &subject);
    if is_preview(&request, &mut draft) {
        return FormPage::response(&request, draft, Some(&subject), None).await;
    }
    match edited(&request, &subject, &RequestBody::new(&draft)).await {
        Ok(answer) => {
            let text = format!("{} is now at version {}.", subject.key, answer.job.version);
            Ok(UiResponse::done(subject.path(), text))
        }
        Err(problem) => FormPage::response(&request, draft, Some(&subject), Some(&problem)).await,
    }
}

async fn edited(request: &UiRequest, subject: &Subject, form: &RequestBody) -> Result<wire::NewVersion, Problem> {
    let faults = preview::faults(request, form, Some(subject)).await?;
    if !faults.is_empty() {
        return Err(Problem::body(faults));
    }
    let definition = &subject.row.job.definition;
    let Changes { mut patch, shown } = Changes::between(definition, form, request.now);
    let activate = request.sent("activate").is_some() && subject.row.job.state.pause.is_some();
    if shown.is_empty() && !activate {
        let detail = format!("There are no changes from version {}.", definition.version);
        return Err(Problem::new(Kind::InvalidInput, detail));
    }
    if activate {
        patch.put("activate", true);
    }
    if let Some(reason) = request.sent("reason") {
        patch.put("reason", reason);
    }
    request.perform(Method::POST, "/jobs/{jobId}/new-version", &[("jobId", &subject.exact)], &patch).await
}
