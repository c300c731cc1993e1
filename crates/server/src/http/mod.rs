//! The HTTP side of the server. Every route stands on this page.
//!
//! A request goes through [`pipeline`] (who, may they, what do they say, was it answered before) to one handler of
//! [`api`], which calls the client of the library once and renders a document of [`model`]. The same table makes the
//! OpenAPI document ([`openapi`]).

pub(crate) mod access;
mod admission;
pub(crate) mod api;
mod app;
pub(crate) mod body;
pub(crate) mod call;
pub(crate) mod denials;
mod docs;
mod folding;
mod hardening;
mod idempotency;
pub(crate) mod inside;
pub(crate) mod limit;
pub(crate) mod listen;
mod live;
pub(crate) mod model;
mod openapi;
pub(crate) mod page;
pub(crate) mod pipeline;
pub(crate) mod problem;
pub(crate) mod proxy;
pub(crate) mod route;
mod stall;
mod streams;
pub(crate) mod unavailable;

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::Method;
use axum::routing::{MethodFilter, on};

use access::Role::{Admin, Operator, Viewer};
pub(crate) use admission::{Beyond, Limits};
use api::{
    actions, audit, backfills, bulk, compat, cron, edits, events, instances, jobs, org_jobs, orgs, probes, questions,
    runs, sessions, sweeps, targets, tokens,
};
pub(crate) use app::{ApiOptions, App, Served, is_local};
use model::{
    AuditDocument, BackfillDocument, BackfillReportDocument, Bulk, CanceledDocument, ChangedField, ExplanationDocument,
    Fires, GapDocument, ImportedDocument, InstanceDocument, JobDocument, JobOrgsDocument, NewTokenDocument,
    NewVersionDocument, OrgDocument, OrgJobDocument, OrgOverrideDocument, PausedDocument, PreviewDocument,
    ResumedDocument, RunDocument, RunNowDocument, RunsNowDocument, SessionDocument, StatsDocument, StoppedDocument,
    SweepBegunDocument, SweepDocument, TargetsDocument, TokenDocument, WhatIfDocument,
};
use pipeline::Mounted;
use problem::Kind::{
    Conflict, JobKeyExists, JobRetired, MethodNotAllowed, NotFound, OverlapSkipped, RevisionMismatch,
    TooManyPendingRuns,
};
use route::Access::{Metrics, Open, Role, RunHistory};
use route::{Route, route};

/// What is below each mount.
pub(crate) fn mounted_routes() -> Vec<Route> {
    [job_routes(), run_routes(), org_routes(), other_routes()].concat()
}

/// Jobs.
#[rustfmt::skip]
fn job_routes() -> Vec<Route> {
    let (get, post, patch, delete) = (Method::GET, Method::POST, Method::PATCH, Method::DELETE);
    vec![
        route(post.clone(), "/jobs", Role(Admin), jobs::create).does("Make a job").own_body(crate::form::job::JOB)
            .answers::<JobDocument>(201, "The job").problems(&[JobKeyExists]),
        route(get.clone(), "/jobs", Role(Viewer), jobs::list).does("List jobs").query(jobs::LIST)
            .answers_page::<JobDocument>("A page of jobs"),
        route(post.clone(), "/jobs/bulk", Role(Operator), bulk::change).does("Pause or resume many jobs").body(bulk::BULK)
            .answers::<Bulk>(200, "What was done, or would be"),
        route(get.clone(), "/jobs/{jobId}", Role(Viewer), jobs::get).does("Read a job")
            .answers::<JobDocument>(200, "The job").problems(&[NotFound]),
        route(patch.clone(), "/jobs/{jobId}", Role(Admin), edits::patch).does("Change a job: a merge patch, which makes the next version if something differs")
            .own_body(crate::form::job::EDIT).revised()
            .answers::<JobDocument>(200, "The living version").problems(&[NotFound, Conflict, JobRetired, RevisionMismatch]),
        route(delete.clone(), "/jobs/{jobId}", Role(Admin), actions::retire).does("Retire a job; its history stays").query(actions::RETIRE).revised()
            .answers::<JobDocument>(200, "The retired job").problems(&[NotFound, Conflict, JobRetired, RevisionMismatch]),
        route(get.clone(), "/jobs/{jobId}/versions", Role(Viewer), jobs::versions).does("List the versions of a job, the newest first")
            .answers_items::<JobDocument>("The versions").problems(&[NotFound]),
        route(get.clone(), "/jobs/{jobId}/diff", Role(Viewer), edits::diff).does("Tell what differs between two versions").query(edits::DIFF)
            .answers_items::<ChangedField>("What differs").problems(&[NotFound]),
        route(post.clone(), "/jobs/{jobId}/new-version", Role(Admin), edits::new_version).does("Make the next version of a job: absent keeps, null clears")
            .own_body(crate::form::job::EDIT).revised()
            .answers::<NewVersionDocument>(201, "The new version and what it replaced").problems(&[NotFound, Conflict, JobRetired, RevisionMismatch]),
        route(patch.clone(), "/jobs/{jobId}/pause", Role(Operator), actions::pause).does("Pause a job").body(actions::PAUSE).revised()
            .answers::<PausedDocument>(200, "The paused job").problems(&[NotFound, Conflict, JobRetired, RevisionMismatch]),
        route(post.clone(), "/jobs/{jobId}/pause", Role(Operator), actions::pause).does("Pause a job").body(actions::PAUSE).revised()
            .answers::<PausedDocument>(200, "The paused job").problems(&[NotFound, Conflict, JobRetired, RevisionMismatch]),
        route(patch.clone(), "/jobs/{jobId}/resume", Role(Operator), actions::resume).does("Resume a job").body(actions::RESUME).revised()
            .answers::<ResumedDocument>(200, "The active job").problems(&[NotFound, Conflict, JobRetired, RevisionMismatch]),
        route(post.clone(), "/jobs/{jobId}/resume", Role(Operator), actions::resume).does("Resume a job").body(actions::RESUME).revised()
            .answers::<ResumedDocument>(200, "The active job").problems(&[NotFound, Conflict, JobRetired, RevisionMismatch]),
        route(post.clone(), "/jobs/{jobId}/run-now", Role(Operator), actions::run_now).does("Run a job at once").body(actions::RUN_NOW).revised()
            .answers::<RunsNowDocument>(202, "The run, or those for orgs").answers::<RunNowDocument>(200, "The skipped run, if the server is configured so")
            .problems(&[NotFound, Conflict, OverlapSkipped, JobRetired, RevisionMismatch, TooManyPendingRuns]),
        route(post.clone(), "/jobs/{jobId}/reschedule", Role(Operator), actions::reschedule).does("Move the next fire, and only that").body(actions::RESCHEDULE).revised()
            .answers::<JobDocument>(200, "The job").problems(&[NotFound, Conflict, JobRetired, RevisionMismatch]),
        route(post.clone(), "/jobs/{jobId}/skip-next", Role(Operator), actions::skip_next).does("Pass over the next slots").body(actions::SKIP_NEXT).revised()
            .answers::<JobDocument>(200, "The job").problems(&[NotFound, Conflict, JobRetired, RevisionMismatch]),
        route(post.clone(), "/jobs/{jobId}/backfills", Role(Operator), backfills::create).does("Make runs for slots that have gone by and have none").body(backfills::CREATE)
            .answers::<BackfillDocument>(202, "The backfill").answers::<BackfillDocument>(200, "What it would do").problems(&[NotFound, Conflict, JobRetired, TooManyPendingRuns]),
        route(get.clone(), "/jobs/{jobId}/backfills", RunHistory, backfills::list).does("List the backfills of a job and how far they are, the newest first")
            .answers_items::<BackfillReportDocument>("The backfills").problems(&[NotFound]),
        route(post.clone(), "/jobs/{jobId}/backfills/{backfillId}/stop", Role(Operator), backfills::stop).does("Cancel the runs of a backfill that have not begun")
            .answers::<StoppedDocument>(200, "How many").problems(&[NotFound]),
        route(get.clone(), "/jobs/{jobId}/next", Role(Viewer), questions::next).does("Tell when a job fires next").query(questions::NEXT)
            .answers::<Fires>(200, "The fires").problems(&[NotFound]),
        route(get.clone(), "/jobs/{jobId}/explain", RunHistory, questions::explain).does("Tell what became of a time").query(questions::EXPLAIN)
            .answers::<ExplanationDocument>(200, "A run, a gap, or why neither").problems(&[NotFound]),
        route(get.clone(), "/jobs/{jobId}/gaps", RunHistory, questions::gaps).does("List slots of a job that got no run").query(questions::GAPS)
            .answers_page::<GapDocument>("A page of gaps").problems(&[NotFound]),
        route(get.clone(), "/jobs/{jobId}/stats", RunHistory, questions::stats).does("Tell how a job fared lately").query(questions::STATS)
            .answers::<StatsDocument>(200, "Counts, durations and lags").problems(&[NotFound]),
        route(post.clone(), "/jobs/{jobId}/orgs/rebuild", Role(Admin), sweeps::rebuild).does("Make the timers of a job anew for every org").body(sweeps::WHY)
            .answers::<SweepBegunDocument>(202, "It is being done, a few orgs at a time").problems(&[NotFound, JobRetired]),
        route(post, "/jobs/{jobId}/sweeps/{sweepId}/stop", Role(Operator), sweeps::stop).does("Stop making runs for every org; those that were made stay").body(sweeps::WHY)
            .answers::<SweepDocument>(200, "How far it was").problems(&[NotFound]),
        route(get, "/jobs/{jobId}/orgs", Role(Viewer), org_jobs::of_job).does("List orgs as a job sees them: when it fires for each, or why not").query(org_jobs::OF_JOB)
            .answers::<JobOrgsDocument>(200, "A page of orgs").problems(&[NotFound]),
    ]
}

/// Runs.
#[rustfmt::skip]
fn run_routes() -> Vec<Route> {
    let (get, post) = (Method::GET, Method::POST);
    vec![
        route(get.clone(), "/runs", RunHistory, runs::list).does("List runs, the newest first").query(runs::LIST)
            .answers_page::<RunDocument>("A page of runs"),
        route(get.clone(), "/runs/{runId}", RunHistory, runs::get).does("Read a run")
            .answers::<RunDocument>(200, "The run").problems(&[NotFound]),
        route(post.clone(), "/runs/{runId}/cancel", Role(Operator), runs::cancel).does("Cancel a run").body(runs::CANCEL)
            .answers::<CanceledDocument>(202, "The run").problems(&[NotFound, Conflict]),
        route(post.clone(), "/runs/{runId}/rerun", Role(Operator), runs::rerun).does("Run the same again").body(runs::CANCEL)
            .answers::<RunNowDocument>(202, "The run").answers::<RunNowDocument>(200, "The skipped run, if the server is configured so")
            .problems(&[NotFound, Conflict, OverlapSkipped, JobRetired, TooManyPendingRuns]),
    ]
}

/// Orgs.
#[rustfmt::skip]
fn org_routes() -> Vec<Route> {
    let (get, put, patch, delete) = (Method::GET, Method::PUT, Method::PATCH, Method::DELETE);
    vec![
        route(get.clone(), "/orgs", Role(Viewer), orgs::list).does("List orgs").query(orgs::LIST)
            .answers_page::<OrgDocument>("A page of orgs"),
        route(Method::POST, "/orgs", Role(Operator), orgs::import).does("Make and change up to 10,000 orgs, all of them or none").query(orgs::IMPORT).lines(orgs::LINE)
            .answers::<ImportedDocument>(200, "What was done, or would be").problems(&[Conflict]),
        route(get.clone(), "/orgs/{orgId}", Role(Viewer), orgs::get).does("Read an org")
            .answers::<OrgDocument>(200, "The org").problems(&[NotFound]),
        route(put.clone(), "/orgs/{orgId}", Role(Operator), orgs::put).does("Make or change an org: absent keeps").body(orgs::ORG).revised()
            .answers::<OrgDocument>(200, "The org").answers::<OrgDocument>(201, "The new org").problems(&[NotFound, Conflict, RevisionMismatch]),
        route(patch, "/orgs/{orgId}", Role(Operator), orgs::patch).does("Change an org: absent keeps, null clears").body(orgs::ORG).revised()
            .answers::<OrgDocument>(200, "The org").problems(&[NotFound, Conflict, RevisionMismatch]),
        route(delete.clone(), "/orgs/{orgId}", Role(Operator), orgs::delete).does("Delete an org; its runs stay").query(orgs::DELETE).revised()
            .answers_nothing(204, "No job fires for it any more").problems(&[NotFound, Conflict, RevisionMismatch]),
        route(get.clone(), "/orgs/{orgId}/jobs", Role(Viewer), org_jobs::list).does("List jobs as an org sees them: when each fires, or why not")
            .answers_items::<OrgJobDocument>("The jobs").problems(&[NotFound]),
        route(get.clone(), "/orgs/{orgId}/jobs/{jobKey}", Role(Viewer), org_jobs::get).does("Read what an org wants of a job, and how they stand")
            .answers::<OrgOverrideDocument>(200, "The override and the job").problems(&[NotFound]),
        route(put, "/orgs/{orgId}/jobs/{jobKey}", Role(Operator), org_jobs::put).does("Let a job fire at another local time for an org, or not at all").body(org_jobs::OVERRIDE)
            .answers::<OrgOverrideDocument>(200, "The override and the job").problems(&[NotFound]),
        route(delete, "/orgs/{orgId}/jobs/{jobKey}", Role(Operator), org_jobs::delete).does("Let a job fire for an org as for all").query(org_jobs::CLEAR)
            .answers_nothing(204, "The override is gone").problems(&[NotFound]),
        route(get, "/orgs/{orgId}/what-if", Role(Viewer), org_jobs::what_if).does("Tell what a move of an org to another zone would do").query(org_jobs::WHAT_IF)
            .answers::<WhatIfDocument>(200, "Fires before and after, and how often each local day would fire").problems(&[NotFound]),
    ]
}

/// What is below each mount, besides jobs, runs and orgs.
#[rustfmt::skip]
fn other_routes() -> Vec<Route> {
    let (get, post, delete) = (Method::GET, Method::POST, Method::DELETE);
    vec![
        route(post.clone(), "/cron/preview", Role(Viewer), cron::show).does("Tell what an expression means and when it fires").body(cron::PREVIEW)
            .answers::<PreviewDocument>(200, "What it means"),
        route(get.clone(), "/templates", Role(Viewer), cron::templates).does("List named expressions to begin with")
            .answers_items::<cron::Template>("The templates"),
        route(get.clone(), "/targets", Role(Viewer), targets::list).does("List targets, who serves them, and who waits for one that nobody does")
            .answers::<TargetsDocument>(200, "The targets"),
        route(post.clone(), "/targets/{target}/try", Role(Operator), targets::try_once).does("Run a target once, without a job").body(targets::TRY)
            .answers::<RunNowDocument>(202, "The run").problems(&[NotFound]),
        route(get.clone(), "/instances", Role(Viewer), instances::list).does("List instances, the oldest first")
            .answers_items::<InstanceDocument>("The instances"),
        route(post.clone(), "/instances/{instanceId}/drain", Role(Admin), instances::drain).does("Ask an instance to take no more work")
            .answers_nothing(204, "It will drain").problems(&[NotFound]),
        route(post.clone(), "/instances/{instanceId}/undrain", Role(Admin), instances::undrain).does("Ask an instance to take work again")
            .answers_nothing(204, "It will take work").problems(&[NotFound]),
        route(get.clone(), "/audit", Role(Operator), audit::list).does("List what people and programs did, the newest first").query(audit::LIST)
            .answers_page::<AuditDocument>("A page of entries"),
        route(get.clone(), "/tokens", Role(Admin), tokens::list).does("List tokens, without themselves")
            .answers_items::<TokenDocument>("The tokens"),
        route(post, "/tokens", Role(Admin), tokens::create).does("Make a token, which is shown this once").body(tokens::CREATE).secret()
            .answers::<NewTokenDocument>(201, "The token").problems(&[Conflict]),
        route(delete.clone(), "/tokens/{name}", Role(Admin), tokens::revoke).does("Revoke a token").query(tokens::REVOKE)
            .answers_nothing(204, "It is revoked").problems(&[NotFound, Conflict]),
        route(get.clone(), "/sessions", Role(Viewer), sessions::list).does("List browser sessions: your own, or everybody's for admins").query(sessions::LIST)
            .answers_items::<SessionDocument>("The sessions, the newest first"),
        route(delete.clone(), "/sessions", Role(Viewer), sessions::end_all).does("Sign out everywhere: end all sessions of yours, or of another actor for admins").query(sessions::END_ALL)
            .answers::<sessions::EndedDocument>(200, "How many ended"),
        route(delete, "/sessions/{sessionId}", Role(Viewer), sessions::end).does("End a session of yours, or anybody's for admins")
            .answers_nothing(204, "It has ended").problems(&[NotFound]),
        route(get.clone(), "/status", Role(Viewer), instances::status).does("Tell what the server is, and how its database fares")
            .answers::<instances::StatusDocument>(200, "The status"),
        route(get, "/events", RunHistory, events::stream).does("Follow what happens, as Server-Sent Events").query(events::STREAM)
            .answers_text(200, "Events without an end", "text/event-stream"),
    ]
}

/// What is there once, whatever is mounted.
#[rustfmt::skip]
pub(crate) fn root_routes(options: &ApiOptions) -> Vec<Route> {
    let get = Method::GET;
    // With pages, theirs is the first.
    let home = route(get.clone(), "/", Open, probes::home).does("Lead to the documentation")
        .answers_nothing(303, "Where it is").problems(&[NotFound]);
    let home = (!options.has_pages()).then_some(home);
    home.into_iter().chain(vec![
        route(get.clone(), "/livez", Open, probes::live).does("Tell whether the process answers")
            .answers_text(200, "It does", "text/plain"),
        route(get.clone(), "/readyz", Open, probes::ready).does("Tell whether the server can do its work").query(probes::READY)
            .answers_text(200, "It can", "text/plain").answers_text(503, "It cannot", "text/plain"),
        route(get.clone(), "/healthz", Open, probes::ready).does("The same as /readyz").query(probes::READY)
            .answers_text(200, "It can", "text/plain").answers_text(503, "It cannot", "text/plain"),
        route(get.clone(), "/metrics", Metrics, probes::metrics).does("Metrics for Prometheus: from this machine, or with the token for it")
            .answers_text(200, "The metrics", "text/plain"),
        route(get.clone(), "/openapi.json", Open, probes::openapi).does("This document")
            .answers_text(200, "OpenAPI 3.1", "application/json"),
        route(get.clone(), "/docs/api", Open, probes::docs).does("This document for people")
            .answers_text(200, "A page", "text/html").problems(&[NotFound]),
        route(get.clone(), "/docs/style.css", Open, probes::style).does("What that page looks like")
            .answers_text(200, "A style sheet", "text/css"),
        route(get, "/docs/problems/{problem}", Open, probes::problem).does("What a kind of problem means")
            .answers_text(200, "Its title and help", "application/json").problems(&[NotFound]),
    ]).collect()
}

/// A facade for programs that know schedules instead of jobs.
#[rustfmt::skip]
pub(crate) fn compat_routes() -> Vec<Route> {
    use compat::ScheduleDocument as Schedule;
    vec![
        route(Method::GET, "/api/schedules", Role(Viewer), compat::list).does("List schedules").query(compat::LIST)
            .answers_array::<Schedule>("The schedules"),
        route(Method::GET, "/api/v1/schedules", Role(Viewer), compat::list).does("List schedules").query(compat::LIST)
            .answers_array::<Schedule>("The schedules"),
        route(Method::POST, "/api/v1/schedules", Role(Admin), compat::create).does("Make a schedule").own_body(compat::SCHEDULE)
            .answers::<Schedule>(201, "The schedule").problems(&[JobKeyExists]),
        route(Method::GET, "/api/v1/schedules/{jobId}", Role(Viewer), compat::get).does("Read a schedule")
            .answers::<Schedule>(200, "The schedule").problems(&[NotFound]),
        route(Method::PUT, "/api/v1/schedules/{jobId}", Role(Admin), compat::replace).does("Replace a schedule").own_body(compat::SCHEDULE).revised()
            .answers::<Schedule>(200, "The schedule").problems(&[NotFound, Conflict, JobRetired, RevisionMismatch]),
        route(Method::PATCH, "/api/v1/schedules/{jobId}", Role(Admin), compat::patch).does("Change a schedule: absent keeps, null clears").own_body(compat::PATCH).revised()
            .answers::<Schedule>(200, "The schedule").problems(&[NotFound, Conflict, JobRetired, RevisionMismatch]),
    ]
}

/// What a process answers that only schedules.
const PROBES: [&str; 4] = ["/livez", "/readyz", "/healthz", "/metrics"];

/// Every route with the mount below which it is.
pub(crate) fn all_routes(options: &ApiOptions) -> Vec<(String, Route)> {
    let alone = |route: Route| (String::new(), route);
    match options.served {
        Served::All => {}
        Served::Probes => {
            return root_routes(options).into_iter().filter(|route| PROBES.contains(&route.path)).map(alone).collect();
        }
        Served::Embedded => return mounted_routes().into_iter().map(alone).collect(),
    }
    let mounts = options.settings.mounts.iter();
    let below = mounts.flat_map(|mount| mounted_routes().into_iter().map(move |route| (mount.clone(), route)));
    let compat = options.settings.compat.then(compat_routes).into_iter().flatten();
    below.chain(root_routes(options).into_iter().chain(compat).map(alone)).collect()
}

/// Everything that is answered over HTTP.
pub(crate) fn router(app: &Arc<App>) -> Router {
    let mut router = Router::new();
    for (mount, route) in all_routes(&app.options) {
        let path = format!("{mount}{}", route.path);
        let Ok(method) = MethodFilter::try_from(route.method.clone()) else { continue };
        let mounted = Mounted { app: Arc::clone(app), route: Arc::new(route), mount: mount.into() };
        router = router.route(&path, on(method, pipeline::answer).with_state(mounted));
    }
    if app.options.has_pages() {
        router = crate::ui::mounted(router, app);
    }
    let (lost, refused) = (Arc::clone(app), Arc::clone(app));
    router
        .fallback(move |request: Request| {
            let guarded = lost.options.is_mounted(request.uri().path());
            let app = Arc::clone(&lost);
            async move {
                if !guarded && app.options.has_pages() && crate::ui::wants_page(&request) {
                    return crate::ui::nowhere(&app, request).await;
                }
                pipeline::nowhere(app, NotFound, guarded, request).await
            }
        })
        .method_not_allowed_fallback(move |request: Request| {
            let guarded = refused.options.is_mounted(request.uri().path());
            pipeline::nowhere(Arc::clone(&refused), MethodNotAllowed, guarded, request)
        })
        .layer(axum::middleware::from_fn_with_state(Arc::clone(app), hardening::harden))
}
