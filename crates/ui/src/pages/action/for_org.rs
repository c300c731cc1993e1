//! For which org something is done: of a job that fires for each, one is named first, or all.

use askama::Template;
use axum::http::StatusCode;
use everbell::{OrgFilter, OrgId, StoreError};
use everbell_core::store::PageRequest;

use super::{Refusal, Subject};
use crate::request::{UiRequest, UiResponse};
use crate::{Frame, Section};
use everbell_http::excerpt::excerpt;
use everbell_http::problem::Problem;
use everbell_wire::form::{Field, Kind, TEXT, optional};

pub(crate) const QUERY: &[Field] = &[
    optional("orgId", TEXT, "For this org, of a job that fires for each."),
    optional("orgs", Kind::Word(&["all"]), "For all of them."),
];

/// How many orgs are offered to choose from.
const MAX_SUGGESTED_ORGS: u32 = 100;

/// An action that needs an org.
#[derive(Clone, Copy)]
pub(super) struct OrgAction {
    /// The last part of the path.
    pub(super) path: &'static str,
    /// The heading, up to the key of the job.
    pub(super) verb: &'static str,
    /// Where it is done for all orgs, below the job, if it can be.
    pub(super) for_all: Option<&'static str>,
}

#[derive(Template)]
#[template(path = "action/for_org.html")]
struct AskPage {
    frame: Frame,
    subject: Subject,
    refusal: Refusal,
    action: OrgAction,
    typed: String,
    /// Ids and names to choose from.
    suggested: Vec<(String, String)>,
}

/// The job; for the org that is meant, if it fires for each. Or the page that asks which org that is.
pub(super) async fn subject(
    request: &UiRequest,
    action: OrgAction,
) -> Result<Result<Subject, Box<UiResponse>>, Problem> {
    let subject = Subject::living(request).await?;
    let query = request.query(QUERY);
    let said = |name: &str| request.sent(name).map(str::to_owned).or_else(|| query.text(name).map(str::to_owned));
    if !subject.is_for_each() || (action.for_all.is_some() && said("orgs").is_some()) {
        return Ok(Ok(subject));
    }
    let Some(typed) = said("orgId") else {
        return Ok(Err(Box::new(ask(request, subject, action, String::new()).await?)));
    };
    let Ok(id) = OrgId::new(&typed) else {
        return Ok(Err(Box::new(ask(request, subject, action, typed).await?)));
    };
    match request.orgs().get(&id).await {
        Ok(org) => {
            let jobs = request.orgs().jobs_of(&id).await?;
            Ok(Ok(subject.for_org(&org, jobs)))
        }
        Err(StoreError::NotFound { .. }) => Ok(Err(Box::new(ask(request, subject, action, typed).await?))),
        Err(error) => Err(error.into()),
    }
}

/// Asks for an org, again if there is none of this id.
async fn ask(request: &UiRequest, subject: Subject, action: OrgAction, typed: String) -> Result<UiResponse, Problem> {
    let page = PageRequest { limit: MAX_SUGGESTED_ORGS, after: None };
    let orgs = request.orgs().list(&OrgFilter::default(), &page).await?.items;
    let (refusal, status) = if typed.is_empty() {
        (Refusal::default(), StatusCode::OK)
    } else {
        let text = format!("There is no org `{}`.", excerpt(&typed));
        (Refusal::at_field("orgId", text), StatusCode::NOT_FOUND)
    };
    let page = AskPage {
        frame: request.frame(Section::Jobs, format!("{} {}", action.verb, subject.key)).await,
        suggested: orgs.into_iter().map(|org| (org.id.to_string(), org.name)).collect(),
        subject,
        refusal,
        action,
        typed,
    };
    UiResponse::with_status(&page, status)
}
