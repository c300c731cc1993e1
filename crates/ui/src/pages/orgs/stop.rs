//! Stopping what makes runs for every org of a job, before every org had its turn.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell::core::org::{OrgTask, OrgUpdate};

use super::job_orgs::OrgUpdateLine;
use crate::equivalent::Equivalent;
use crate::pages::action::{Reason, Refusal, Subject, correctable, expect_operator, typed};
use crate::request::{UiRequest, UiResponse};
use crate::{Frame, Section};
use everbell_http::problem::{Kind, Problem};
use everbell_wire as wire;

const ROUTE: &str = "/jobs/{jobId}/sweeps/{sweepId}/stop";

#[derive(Template)]
#[template(path = "orgs/stop.html")]
struct StopPage {
    frame: Frame,
    subject: Subject,
    refusal: Refusal,
    org_update: OrgUpdateLine,
    /// Whether its runs are those of a backfill, which can be stopped with the runs that wait.
    is_backfill: bool,
    reason: String,
    same: Equivalent,
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    form(&request, Refusal::default(), StatusCode::OK).await
}

async fn form(request: &UiRequest, refusal: Refusal, status: StatusCode) -> Result<UiResponse, Problem> {
    let subject = Subject::load(request).await?;
    let org_update = found(request, &subject).await?;
    let path = format!("/jobs/{}/sweeps/{}/stop", subject.name, org_update.id);
    let page = StopPage {
        frame: request.frame(Section::Jobs, format!("Stop creating runs of {}", subject.key)).await,
        same: {
            let (body, words) = (Reason { reason: None }, ["orgs", "stop", &subject.key]);
            Equivalent::with_body(&request.api_base(), "POST", &path, &body, &words)?
        },
        is_backfill: matches!(org_update.task, OrgTask::Backfill { .. }),
        org_update: OrgUpdateLine::new(&org_update, &request.clock()),
        reason: typed(request, "reason"),
        subject,
        refusal,
    };
    UiResponse::with_status(&page, status)
}

/// The org update that the path names, while it goes on.
async fn found(request: &UiRequest, subject: &Subject) -> Result<OrgUpdate, Problem> {
    let id = request.part("id");
    let own =
        |org_update: &OrgUpdate| org_update.id.to_string() == id && org_update.job_key == subject.definition().key;
    let org_update = request.orgs().org_updates().await?.into_iter().find(own);
    org_update.ok_or_else(|| Problem::new(Kind::NotFound, "This org update has ended or was stopped."))
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    let subject = Subject::load(&request).await?;
    let path = [("jobId", subject.name.as_str()), ("sweepId", request.part("id"))];
    match request.perform(Method::POST, ROUTE, &path, &Reason::sent(&request)).await {
        Ok(wire::OrgUpdate { seen, .. }) => {
            let orgs = if seen == 1 { "1 org".to_owned() } else { format!("{seen} orgs") };
            let text = format!("Stopped after {orgs}. Runs that were created are kept.");
            Ok(UiResponse::done(format!("{}/orgs", subject.path()), text))
        }
        Err(problem) => {
            let problem = correctable(problem)?;
            form(&request, Refusal::from_problem(Some(&problem), &["reason"]), problem.status()).await
        }
    }
}
