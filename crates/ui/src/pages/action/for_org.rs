//! For which org something is done: of a job that fires for each, one is named first, or all.

use askama::Template;
use axum::http::StatusCode;
use everbell::{OrgFilter, OrgId, StoreError};
use everbell_core::store::PageRequest;

use super::{Refusal, Subject};
use crate::visit::{Reply, Visit};
use crate::{Frame, Section};
use everbell_http::call::shown;
use everbell_http::problem::Problem;
use everbell_wire::form::{Field, Kind, TEXT, optional};

pub(crate) const QUERY: &[Field] = &[
    optional("orgId", TEXT, "For this org, of a job that fires for each."),
    optional("orgs", Kind::Word(&["all"]), "For all of them."),
];

/// How many orgs are offered to choose from.
const OFFERED: u32 = 100;

/// What is about to be done.
#[derive(Clone, Copy)]
pub(super) struct Doing {
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
    doing: Doing,
    typed: String,
    /// Ids and names to choose from.
    offered: Vec<(String, String)>,
}

/// The job; for the org that is meant, if it fires for each. Or the page that asks which org that is.
pub(super) async fn subject(visit: &Visit, doing: Doing) -> Result<Result<Subject, Box<Reply>>, Problem> {
    let subject = Subject::living(visit).await?;
    let query = visit.query(QUERY);
    let said = |name: &str| visit.sent(name).map(str::to_owned).or_else(|| query.text(name).map(str::to_owned));
    if !subject.is_for_each() || (doing.for_all.is_some() && said("orgs").is_some()) {
        return Ok(Ok(subject));
    }
    let Some(typed) = said("orgId") else {
        return Ok(Err(Box::new(ask(visit, subject, doing, String::new()).await?)));
    };
    let Ok(id) = OrgId::new(&typed) else {
        return Ok(Err(Box::new(ask(visit, subject, doing, typed).await?)));
    };
    match visit.orgs().get(&id).await {
        Ok(org) => {
            let jobs = visit.orgs().jobs_of(&id).await?;
            Ok(Ok(subject.for_org(&org, jobs)))
        }
        Err(StoreError::NotFound { .. }) => Ok(Err(Box::new(ask(visit, subject, doing, typed).await?))),
        Err(error) => Err(error.into()),
    }
}

/// Asks for an org, again if there is none of this id.
async fn ask(visit: &Visit, subject: Subject, doing: Doing, typed: String) -> Result<Reply, Problem> {
    let page = PageRequest { limit: OFFERED, after: None };
    let orgs = visit.orgs().list(&OrgFilter::default(), &page).await?.items;
    let (refusal, status) = if typed.is_empty() {
        (Refusal::default(), StatusCode::OK)
    } else {
        let text = format!("There is no org `{}`.", shown(&typed));
        (Refusal::at_field("orgId", text), StatusCode::NOT_FOUND)
    };
    let page = AskPage {
        frame: visit.frame(Section::Jobs, format!("{} {}", doing.verb, subject.key)).await,
        offered: orgs.into_iter().map(|org| (org.id.to_string(), org.name)).collect(),
        subject,
        refusal,
        doing,
        typed,
    };
    Reply::refused(&page, status)
}
