//! Going back to the declaration of a job that was edited since.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell_core::store::JobRef;

use super::{Reason, Refusal, Subject, correctable, typed};
use crate::equivalent::Equivalent;
use crate::pages::job::declared;
use crate::request::{UiRequest, UiResponse};
use crate::{Frame, Section};
use everbell_http::access::{Role, expect_role};
use everbell_http::api::edits::changes;
use everbell_http::problem::Problem;
use everbell_wire as wire;

const FIELDS: [&str; 1] = ["reason"];

#[derive(Template)]
#[template(path = "action/restore_declaration.html")]
struct RestoreDeclarationPage {
    frame: Frame,
    subject: Subject,
    refusal: Refusal,
    reason: String,
    /// Where the job is declared.
    declared: Option<String>,
    /// The names of the members that change.
    changes: Vec<String>,
    same: Equivalent,
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_role(&request.actor, Role::Admin)?;
    form(&request, None).await
}

async fn form(request: &UiRequest, problem: Option<&Problem>) -> Result<UiResponse, Problem> {
    let subject = Subject::living(request).await?;
    let page = RestoreDeclarationPage {
        frame: request.frame(Section::Jobs, format!("Restore the declaration of {}", subject.key)).await,
        refusal: Refusal::from_problem(problem, &FIELDS),
        declared: declared(&subject.row.job),
        changes: changed_members(request, &subject).await?,
        same: same(request, &subject),
        reason: typed(request, "reason"),
        subject,
    };
    UiResponse::with_status(&page, problem.map_or(StatusCode::OK, Problem::status))
}

/// Returns the names of the members that differ from the declaration; none if the job was not edited.
async fn changed_members(request: &UiRequest, subject: &Subject) -> Result<Vec<String>, Problem> {
    let job = &subject.row.job;
    let Some(declaration) = job.state.declaration.as_ref().filter(|_| job.is_edited()) else { return Ok(Vec::new()) };
    let version = JobRef::Version(job.definition.key.clone(), declaration.version);
    let declared = request.jobs().get(version).await?;
    Ok(changes(&subject.row, &declared).into_iter().map(|change| change.field).collect())
}

fn same(request: &UiRequest, subject: &Subject) -> Equivalent {
    let path = format!("/jobs/{}/restore-declaration", subject.name);
    Equivalent::new(&request.api_base(), "POST", &path, &["jobs", "restore-declaration", &subject.key])
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_role(&request.actor, Role::Admin)?;
    let subject = Subject::living(&request).await?;
    let (path, body) = ([("jobId", subject.exact.as_str())], Reason::sent(&request));
    match request.perform::<wire::Job>(Method::POST, "/jobs/{jobId}/restore-declaration", &path, &body).await {
        Ok(job) => {
            let said = format!("{} is as declared again, in version {}.", subject.key, job.version);
            Ok(UiResponse::done(subject.path(), said))
        }
        Err(problem) => form(&request, Some(&correctable(problem)?)).await,
    }
}
