//! Retiring a job, which is final. A job that ran recently has to be confirmed by its key.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell::RunFilter;
use everbell_core::Source;
use everbell_core::store::PageRequest;
use jiff::SignedDuration;

use super::{Moment, Reason, Refusal, Subject, correctable, typed};
use crate::equivalent::Equivalent;
use crate::request::{UiRequest, UiResponse};
use crate::{Frame, Section};
use everbell_http::access::{Role, expect_role};
use everbell_http::internal_call::InternalCall;
use everbell_http::problem::Problem;
use everbell_wire as wire;

const FIELDS: [&str; 1] = ["reason"];
/// A job with a run within this time needs a confirmation.
const RECENT_RUN_WINDOW: SignedDuration = SignedDuration::from_hours(7 * 24);

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

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_role(&request.actor, Role::Admin)?;
    let subject = Subject::living(&request).await?;
    form(&request, subject, Refusal::default(), StatusCode::OK).await
}

async fn form(
    request: &UiRequest,
    subject: Subject,
    refusal: Refusal,
    status: StatusCode,
) -> Result<UiResponse, Problem> {
    let clock = request.clock();
    let active = RunFilter { status: super::run_now::ACTIVE.to_vec(), ..job_filter(&subject) };
    let active = request.runs().list(&active, &PageRequest { limit: 100, after: None }).await?.items.len();
    let page = RetirePage {
        frame: request.frame(Section::Jobs, format!("Retire {}", subject.key)).await,
        ran: last_recent_run(request, &subject).await?.map(|at| subject.moment(&clock, at)),
        coming: subject.fires(clock.now).take(3).map(|at| subject.moment(&clock, at)).collect(),
        declared: declared(subject.definition().source),
        same: same(request, &subject),
        confirm: typed(request, "confirm"),
        reason: typed(request, "reason"),
        subject,
        refusal,
        active,
    };
    UiResponse::with_status(&page, status)
}

fn job_filter(subject: &Subject) -> RunFilter {
    RunFilter { job_key: Some(subject.definition().key.clone()), ..RunFilter::default() }
}

async fn last_recent_run(request: &UiRequest, subject: &Subject) -> Result<Option<jiff::Timestamp>, Problem> {
    let lately = RunFilter { from: request.now.checked_sub(RECENT_RUN_WINDOW).ok(), ..job_filter(subject) };
    let page = request.runs().list(&lately, &PageRequest { limit: 1, after: None }).await?;
    Ok(page.items.first().map(|run| run.scheduled_at))
}

/// Returns a note if a declaration would bring the job back.
fn declared(source: Source) -> Option<&'static str> {
    match source {
        Source::Api => None,
        Source::Config => Some("It is declared in the configuration file: remove it there too."),
        Source::Code => Some("It is declared in a program: remove it there too."),
    }
}

fn same(request: &UiRequest, subject: &Subject) -> Equivalent {
    let path = format!("/jobs/{}", subject.name);
    Equivalent::new(&request.api_base(), "DELETE", &path, &["jobs", "retire", &subject.key])
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_role(&request.actor, Role::Admin)?;
    let subject = Subject::living(&request).await?;
    if request.sent("confirm") != Some(subject.key.as_str()) && last_recent_run(&request, &subject).await?.is_some() {
        let refusal = Refusal::at_field("confirm", format!("Type {} to confirm.", subject.key));
        return form(&request, subject, refusal, StatusCode::BAD_REQUEST).await;
    }
    let path = [("jobId", subject.exact.as_str())];
    let call = InternalCall::new(Method::DELETE, "/jobs/{jobId}", &path).with_query(&Reason::sent(&request))?;
    match request.ask::<wire::Job>(InternalCall { revision: request.revision(), ..call }, &()).await {
        Ok(_) => Ok(UiResponse::done(subject.path(), format!("{} is retired. Its history is kept.", subject.key))),
        Err(problem) => {
            let problem = correctable(problem)?;
            let (refusal, status) = (Refusal::from_problem(Some(&problem), &FIELDS), problem.status());
            let subject = Subject::living(&request).await?;
            form(&request, subject, refusal, status).await
        }
    }
}
