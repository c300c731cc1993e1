//! Deleting an org. One for which jobs fire is named once more by who ends it.

use askama::Template;
use axum::http::{Method, StatusCode};

use super::enable::next_fires;
use super::{OrgSubject, refusal};
use crate::equivalent::Equivalent;
use crate::pages::action::{Reason, Refusal, expect_operator, mendable, typed};
use crate::visit::{Reply, Visit};
use crate::{Frame, Section};
use everbell_http::internal_call::InternalCall;
use everbell_http::problem::Problem;

#[derive(Template)]
#[template(path = "orgs/delete.html")]
struct DeletePage {
    frame: Frame,
    subject: OrgSubject,
    refusal: Refusal,
    /// How many jobs fire for it.
    jobs: usize,
    /// How many jobs it overrides.
    overrides: usize,
    confirm: String,
    reason: String,
    same: Equivalent,
}

pub(crate) async fn show(visit: Visit) -> Result<Reply, Problem> {
    expect_operator(&visit)?;
    form(&visit, Refusal::default(), StatusCode::OK).await
}

async fn form(visit: &Visit, refusal: Refusal, status: StatusCode) -> Result<Reply, Problem> {
    let subject = OrgSubject::of(visit).await?;
    let page = DeletePage {
        frame: visit.frame(Section::Orgs, format!("Delete {}", subject.called)).await,
        jobs: firing(visit, &subject).await?,
        overrides: visit.orgs().overrides(&subject.org.id).await?.len(),
        confirm: typed(visit, "confirm"),
        reason: typed(visit, "reason"),
        same: {
            let words = ["orgs", "delete", &subject.id];
            Equivalent::new(&visit.api_base(), "DELETE", &format!("/orgs/{}", subject.part), &words)
        },
        subject,
        refusal,
    };
    Reply::refused(&page, status)
}

/// How many jobs fire for it.
async fn firing(visit: &Visit, subject: &OrgSubject) -> Result<usize, Problem> {
    Ok(next_fires(visit, subject, subject.org.place.enabled).await?.len())
}

pub(crate) async fn send(visit: Visit) -> Result<Reply, Problem> {
    expect_operator(&visit)?;
    let subject = OrgSubject::of(&visit).await?;
    if visit.sent("confirm") != Some(subject.id.as_str()) && firing(&visit, &subject).await? > 0 {
        let refusal = Refusal::at_field("confirm", format!("Type {} to confirm.", subject.id));
        return form(&visit, refusal, StatusCode::BAD_REQUEST).await;
    }
    let path = [("orgId", subject.id.as_str())];
    let call = InternalCall::new(Method::DELETE, "/orgs/{orgId}", &path).with_query(&Reason::sent(&visit))?;
    match visit.ask(InternalCall { revision: visit.revision(), ..call }, &()).await {
        Ok(()) => Ok(Reply::done("/orgs", format!("{} is deleted. Its runs stay.", subject.id))),
        Err(problem) => {
            let problem = mendable(problem)?;
            form(&visit, refusal(Some(&problem), &["reason"]), problem.status()).await
        }
    }
}
