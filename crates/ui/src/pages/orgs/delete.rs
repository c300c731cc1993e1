//! Deleting an org. An org with active jobs has to be confirmed by its id.

use askama::Template;
use axum::http::{Method, StatusCode};

use super::enable::next_fires;
use super::{OrgSubject, refusal};
use crate::equivalent::Equivalent;
use crate::pages::action::{Reason, Refusal, correctable, expect_operator, typed};
use crate::request::{UiRequest, UiResponse};
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

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    form(&request, Refusal::default(), StatusCode::OK).await
}

async fn form(request: &UiRequest, refusal: Refusal, status: StatusCode) -> Result<UiResponse, Problem> {
    let subject = OrgSubject::load(request).await?;
    let page = DeletePage {
        frame: request.frame(Section::Orgs, format!("Delete {}", subject.called)).await,
        jobs: firing(request, &subject).await?,
        overrides: request.orgs().overrides(&subject.org.id).await?.len(),
        confirm: typed(request, "confirm"),
        reason: typed(request, "reason"),
        same: {
            let words = ["orgs", "delete", &subject.id];
            Equivalent::new(&request.api_base(), "DELETE", &format!("/orgs/{}", subject.part), &words)
        },
        subject,
        refusal,
    };
    UiResponse::with_status(&page, status)
}

/// How many jobs fire for it.
async fn firing(request: &UiRequest, subject: &OrgSubject) -> Result<usize, Problem> {
    Ok(next_fires(request, subject, subject.org.place.enabled).await?.len())
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    let subject = OrgSubject::load(&request).await?;
    if request.sent("confirm") != Some(subject.id.as_str()) && firing(&request, &subject).await? > 0 {
        let refusal = Refusal::at_field("confirm", format!("Type {} to confirm.", subject.id));
        return form(&request, refusal, StatusCode::BAD_REQUEST).await;
    }
    let path = [("orgId", subject.id.as_str())];
    let call = InternalCall::new(Method::DELETE, "/orgs/{orgId}", &path).with_query(&Reason::sent(&request))?;
    match request.ask(InternalCall { revision: request.revision(), ..call }, &()).await {
        Ok(()) => Ok(UiResponse::done("/orgs", format!("{} deleted. Its runs are kept.", subject.id))),
        Err(problem) => {
            let problem = correctable(problem)?;
            form(&request, refusal(Some(&problem), &["reason"]), problem.status()).await
        }
    }
}
