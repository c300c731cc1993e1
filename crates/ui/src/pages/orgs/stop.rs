//! Stopping what makes runs for every org of a job, before every org had its turn.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell::core::org::{OrgTask, OrgUpdate};

use super::of_job::UnderWay;
use crate::equivalent::Equivalent;
use crate::pages::action::{Reason, Refusal, Subject, expect_operator, mendable, typed};
use crate::visit::{Reply, Visit};
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
    org_update: UnderWay,
    /// Whether its runs are those of a backfill, which can be stopped with the runs that wait.
    is_backfill: bool,
    reason: String,
    same: Equivalent,
}

pub(crate) async fn show(visit: Visit) -> Result<Reply, Problem> {
    expect_operator(&visit)?;
    form(&visit, Refusal::default(), StatusCode::OK).await
}

async fn form(visit: &Visit, refusal: Refusal, status: StatusCode) -> Result<Reply, Problem> {
    let subject = Subject::of(visit).await?;
    let org_update = found(visit, &subject).await?;
    let path = format!("/jobs/{}/sweeps/{}/stop", subject.name, org_update.id);
    let page = StopPage {
        frame: visit.frame(Section::Jobs, format!("Stop making runs of {}", subject.key)).await,
        same: {
            let (body, words) = (Reason { reason: None }, ["orgs", "stop", &subject.key]);
            Equivalent::with_body(&visit.api_base(), "POST", &path, &body, &words)?
        },
        is_backfill: matches!(org_update.task, OrgTask::Backfill { .. }),
        org_update: UnderWay::of(&org_update, &visit.clock()),
        reason: typed(visit, "reason"),
        subject,
        refusal,
    };
    Reply::refused(&page, status)
}

/// The org update that the path names, while it goes on.
async fn found(visit: &Visit, subject: &Subject) -> Result<OrgUpdate, Problem> {
    let id = visit.part("id");
    let own =
        |org_update: &OrgUpdate| org_update.id.to_string() == id && org_update.job_key == subject.definition().key;
    let org_update = visit.orgs().org_updates().await?.into_iter().find(own);
    org_update.ok_or_else(|| {
        Problem::new(Kind::NotFound, "It is not going on any more: every org had its turn, or it was stopped.")
    })
}

pub(crate) async fn send(visit: Visit) -> Result<Reply, Problem> {
    expect_operator(&visit)?;
    let subject = Subject::of(&visit).await?;
    let path = [("jobId", subject.name.as_str()), ("sweepId", visit.part("id"))];
    match visit.perform(Method::POST, ROUTE, &path, &Reason::sent(&visit)).await {
        Ok(wire::OrgUpdate { seen, .. }) => {
            let orgs = if seen == 1 { "1 org".to_owned() } else { format!("{seen} orgs") };
            let text = format!("Stopped after {orgs}. The runs that were made stay.");
            Ok(Reply::done(format!("{}/orgs", subject.place()), text))
        }
        Err(problem) => {
            let problem = mendable(problem)?;
            form(&visit, Refusal::of(Some(&problem), &["reason"]), problem.status()).await
        }
    }
}
