//! Retiring a job, which is final. One that ran lately is named once more by who ends it.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell::RunFilter;
use everbell_core::Source;
use everbell_core::store::PageRequest;
use jiff::SignedDuration;

use super::{Moment, Reason, Refusal, Subject, mendable, typed};
use crate::equivalent::Equivalent;
use crate::visit::{Reply, Visit};
use crate::{Frame, Section};
use everbell_http::access::{Role, expect_role};
use everbell_http::internal_call::InternalCall;
use everbell_http::problem::Problem;
use everbell_wire as wire;

const FIELDS: [&str; 1] = ["reason"];
/// A job that had a run within this time is one that somebody counts on.
const LATELY: SignedDuration = SignedDuration::from_hours(7 * 24);

#[derive(Template)]
#[template(path = "action/retire.html")]
struct RetirePage {
    frame: Frame,
    subject: Subject,
    refusal: Refusal,
    confirm: String,
    reason: String,
    /// The last run, if that was lately.
    ran: Option<Moment>,
    /// Runs that are pending or running.
    active: usize,
    /// The fires that will not happen.
    coming: Vec<Moment>,
    declared: Option<&'static str>,
    same: Equivalent,
}

pub(crate) async fn show(visit: Visit) -> Result<Reply, Problem> {
    expect_role(&visit.actor, Role::Admin)?;
    let subject = Subject::living(&visit).await?;
    form(&visit, subject, Refusal::default(), StatusCode::OK).await
}

async fn form(visit: &Visit, subject: Subject, refusal: Refusal, status: StatusCode) -> Result<Reply, Problem> {
    let clock = visit.clock();
    let active = RunFilter { status: super::run_now::ACTIVE.to_vec(), ..of_job(&subject) };
    let active = visit.runs().list(&active, &PageRequest { limit: 100, after: None }).await?.items.len();
    let page = RetirePage {
        frame: visit.frame(Section::Jobs, format!("Retire {}", subject.key)).await,
        ran: ran_lately(visit, &subject).await?.map(|at| subject.moment(&clock, at)),
        coming: subject.fires(clock.now).take(3).map(|at| subject.moment(&clock, at)).collect(),
        declared: declared(subject.definition().source),
        same: same(visit, &subject),
        confirm: typed(visit, "confirm"),
        reason: typed(visit, "reason"),
        subject,
        refusal,
        active,
    };
    Reply::refused(&page, status)
}

fn of_job(subject: &Subject) -> RunFilter {
    RunFilter { job_key: Some(subject.definition().key.clone()), ..RunFilter::default() }
}

async fn ran_lately(visit: &Visit, subject: &Subject) -> Result<Option<jiff::Timestamp>, Problem> {
    let lately = RunFilter { from: visit.now.checked_sub(LATELY).ok(), ..of_job(subject) };
    let page = visit.runs().list(&lately, &PageRequest { limit: 1, after: None }).await?;
    Ok(page.items.first().map(|run| run.scheduled_at))
}

/// Who may bring it back.
fn declared(source: Source) -> Option<&'static str> {
    match source {
        Source::Api => None,
        Source::Config => Some("It is declared in the configuration file: take it out there too."),
        Source::Code => Some("It is declared in a program: take it out there too."),
    }
}

fn same(visit: &Visit, subject: &Subject) -> Equivalent {
    let path = format!("/jobs/{}", subject.name);
    Equivalent::new(&visit.api_base(), "DELETE", &path, &["jobs", "retire", &subject.key])
}

pub(crate) async fn send(visit: Visit) -> Result<Reply, Problem> {
    expect_role(&visit.actor, Role::Admin)?;
    let subject = Subject::living(&visit).await?;
    if visit.sent("confirm") != Some(subject.key.as_str()) && ran_lately(&visit, &subject).await?.is_some() {
        let refusal = Refusal::at_field("confirm", format!("Type {} to confirm.", subject.key));
        return form(&visit, subject, refusal, StatusCode::BAD_REQUEST).await;
    }
    let path = [("jobId", subject.exact.as_str())];
    let call = InternalCall::new(Method::DELETE, "/jobs/{jobId}", &path).with_query(&Reason::sent(&visit))?;
    match visit.ask::<wire::Job>(InternalCall { revision: visit.revision(), ..call }, &()).await {
        Ok(_) => Ok(Reply::done(subject.place(), format!("{} is retired. Its history stays.", subject.key))),
        Err(problem) => {
            let problem = mendable(problem)?;
            let (refusal, status) = (Refusal::of(Some(&problem), &FIELDS), problem.status());
            let subject = Subject::living(&visit).await?;
            form(&visit, subject, refusal, status).await
        }
    }
}
