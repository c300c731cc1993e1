//! Going back to an older version of a job: one confirmation, with the changes.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell::JobRow;
use everbell_core::store::JobRef;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Refusal, Subject, correctable, typed};
use crate::audit_line::plain;
use crate::equivalent::Equivalent;
use crate::request::{UiRequest, UiResponse};
use crate::{Frame, Section};
use everbell_http::access::{Role, expect_role};
use everbell_http::api::edits::changes;
use everbell_http::problem::{Kind, Problem};
use everbell_wire as wire;
use everbell_wire::JobBody;
use everbell_wire::job_body::{body, patch};

const FIELDS: [&str; 1] = ["reason"];

#[derive(Template)]
#[template(path = "action/rollback.html")]
struct RollbackPage {
    frame: Frame,
    subject: Subject,
    refusal: Refusal,
    reason: String,
    /// The version whose content the next one has.
    to: u32,
    /// Field, now, then.
    changes: Vec<(String, String, String)>,
    same: Equivalent,
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_role(&request.actor, Role::Admin)?;
    form(&request, None).await
}

/// The version that the path names.
async fn older(request: &UiRequest, subject: &Subject) -> Result<JobRow, Problem> {
    let version = request.part("version").parse::<u32>().map_err(|_| {
        Problem::new(Kind::NotFound, format!("{} has no version {}.", subject.key, request.part("version")))
    })?;
    let named = JobRef::Version(subject.row.job.definition.key.clone(), version);
    Ok(request.jobs().get(named).await?)
}

async fn form(request: &UiRequest, problem: Option<&Problem>) -> Result<UiResponse, Problem> {
    let subject = Subject::living(request).await?;
    let older = older(request, &subject).await?;
    let to = older.job.definition.version;
    let changed = changes(&subject.row, &older);
    let cli = ["jobs", "rollback", &subject.key, "--to", &to.to_string(), "--yes"];
    let path = format!("/jobs/{}/new-version", subject.name);
    let page = RollbackPage {
        frame: request.frame(Section::Jobs, format!("Roll back {} to version {to}", subject.key)).await,
        refusal: Refusal::from_problem(problem, &FIELDS),
        reason: typed(request, "reason"),
        to,
        changes: changed.iter().map(|field| (field.field.clone(), plain(&field.from), plain(&field.to))).collect(),
        same: Equivalent::with_body(&request.api_base(), "POST", &path, &difference(&subject.row, &older), &cli)?,
        subject,
    };
    UiResponse::with_status(&page, problem.map_or(StatusCode::OK, Problem::status))
}

/// The patch that gives a job the content of an older version. A payload is sent as it was written.
fn difference(current: &JobRow, older: &JobRow) -> JobBody {
    let (from, to) = (&current.job.definition, &older.job.definition);
    let members = match patch(&body(from), &body(to)) {
        Value::Object(members) => members.into_iter().filter(|(name, _)| name != "payload").collect(),
        _ => serde_json::Map::new(),
    };
    let payload = (from.payload != to.payload).then(|| RawValue::from_string(to.payload.as_str().to_owned()).ok());
    JobBody { members, payload: payload.flatten() }
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_role(&request.actor, Role::Admin)?;
    let subject = Subject::living(&request).await?;
    let older = older(&request, &subject).await?;
    let to = older.job.definition.version;
    let mut body = difference(&subject.row, &older);
    body.put("reason", request.sent("reason").map_or_else(|| format!("rollback to v{to}"), str::to_owned));
    let path = [("jobId", subject.exact.as_str())];
    match request.perform::<wire::NewVersion>(Method::POST, "/jobs/{jobId}/new-version", &path, &body).await {
        Ok(created) => {
            let said = format!("{} is now at version {}, with the content of v{to}.", subject.key, created.job.version);
            Ok(UiResponse::done(subject.path(), said))
        }
        Err(problem) => form(&request, Some(&correctable(problem)?)).await,
    }
}
