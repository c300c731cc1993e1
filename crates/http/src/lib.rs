//! The HTTP API of the server. The tables below list every route.
//!
//! A request passes [`pipeline`] (authentication, role, validation, idempotency) and is handled by one function of [`api`],
//! which calls the client of the library and returns a document of [`everbell_wire`]. The OpenAPI document is generated from
//! the same tables (`openapi.rs`).

pub mod access;
mod admission;
pub mod api;
mod app;
mod async_routes;
pub mod audit_entry;
mod backfill_routes;
pub mod body;
mod calendar_routes;
pub mod convert;
pub mod counted;
mod defined;
mod denial_counter;
pub mod denials;
mod docs;
mod embedded;
mod examples;
pub mod excerpt;
mod hardening;
mod idempotency;
pub mod internal_call;
mod job_history_routes;
pub mod limit;
pub mod listen;
mod live;
mod notify_routes;
mod openapi;
mod options;
pub mod page;
mod pages;
pub mod pipeline;
pub mod problem;
pub mod proxy;
mod reload;
mod reload_routes;
mod report_routes;
pub mod request;
pub mod route;
mod stall;
mod streams;
pub mod target_editor;
mod target_routes;
mod unavailable;
mod user;

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::Method;
use axum::routing::{MethodFilter, on};
use everbell_wire as wire;
use everbell_wire::example::{
    created_job, rescheduled_job, restored_job, retired_job, skipped_job, skipped_run, updated_job, written_org,
    written_override,
};
use serde_json::json;

use access::Role::{Admin, Operator, Viewer};
pub use admission::Limits;
use api::{
    actions, audit, bulk, compat, cron, edits, events, instances, jobs, org_jobs, org_updates, orgs, probes, reruns,
    runs, sessions, tokens,
};
pub use app::{App, is_local};
pub use defined::{Channel, ConfiguredTarget};
pub use embedded::{Embedded, WeakToken};
use notify_routes::notify_routes;
pub use options::{ApiOptions, ApiSettings, Served};
pub use pages::Pages;
use pages::wants_page;
use pipeline::Mounted;
use problem::Kind::{
    Conflict, JobKeyExists, JobRetired, MethodNotAllowed, NotFound, OverlapSkipped, TooManyPendingRuns,
};
pub use reload::{Reload, ReloadError};
use reload_routes::reload_routes;
use route::Access::{Metrics, Open, Role, RunHistory};
use route::{Route, route};
pub use target_editor::TargetEditor;
pub use user::User;

/// Routes below each mount.
pub fn mounted_routes() -> Vec<Route> {
    [
        job_routes(),
        job_action_routes(),
        job_history_routes::job_history_routes(),
        run_routes(),
        org_routes(),
        notify_routes(),
        reload_routes(),
        async_routes::async_routes(),
        backfill_routes::backfill_routes(),
        calendar_routes::calendar_routes(),
        report_routes::report_routes(),
        target_routes::target_routes(),
        other_routes(),
    ]
    .concat()
}

/// Jobs and their versions.
#[rustfmt::skip]
fn job_routes() -> Vec<Route> {
    let (get, post, patch, delete) = (Method::GET, Method::POST, Method::PATCH, Method::DELETE);
    vec![
        route(post.clone(), "/jobs", Role(Admin), jobs::create).does("createJob", "Create a job").own_body("JobCreate", everbell_wire::body::job::NEW_JOB)
            .returns_example::<wire::Job>(201, "The new job", created_job).problems(&[JobKeyExists]),
        route(get.clone(), "/jobs", Role(Viewer), jobs::list).does("listJobs", "List jobs").query(jobs::LIST)
            .details("Retired jobs are listed only if `status` or `jobKey` asks for them.")
            .returns_page::<wire::Job>("A page of jobs"),
        route(post.clone(), "/jobs/bulk", Role(Operator), bulk::change).does("applyBulkAction", "Pause, resume, run, skip, retire or edit many jobs").body("BulkActionRequest", bulk::BULK)
            .details("Name the jobs by `jobKeys` or by `filter`. Each job is changed on its own: one that fails does not stop the others.")
            .returns::<wire::Bulk>(200, "The result for each job"),
        route(get.clone(), "/jobs/{jobId}", Role(Viewer), jobs::get).does("getJob", "Get a job")
            .returns::<wire::Job>(200, "The job").problems(&[NotFound]),
        route(patch, "/jobs/{jobId}", Role(Admin), edits::patch).does("updateJob", "Update a job")
            .details("A merge patch (RFC 7396): an absent member keeps its value, `null` resets it. Creates the next version if anything differs.")
            .own_body("JobPatch", everbell_wire::body::job::EDIT).revised()
            .returns_example::<wire::Job>(200, "The current version", updated_job).problems(&[NotFound, Conflict, JobRetired]),
        route(delete, "/jobs/{jobId}", Role(Admin), actions::retire).does("retireJob", "Retire a job").query(actions::RETIRE).revised()
            .details("A retired job never fires again. Its runs and versions are kept.")
            .returns_example::<wire::Job>(200, "The retired job", retired_job).problems(&[NotFound, Conflict, JobRetired]),
        route(get.clone(), "/jobs/{jobId}/versions", Role(Viewer), jobs::versions).does("listJobVersions", "List the versions of a job, newest first")
            .returns_items::<wire::Job>("The versions").problems(&[NotFound]),
        route(get.clone(), "/jobs/{jobId}/diff", Role(Viewer), edits::diff).does("compareJobVersions", "Compare two versions of a job").query(edits::DIFF)
            .returns_items::<wire::ChangedField>("The members that differ").problems(&[NotFound]),
        route(post, "/jobs/{jobId}/new-version", Role(Admin), edits::new_version).does("createJobVersion", "Create the next version of a job")
            .details("An absent member keeps its value, `null` resets it. Unlike `updateJob`, this creates a version even if nothing differs.")
            .own_body("JobPatch", everbell_wire::body::job::EDIT).revised()
            .returns::<wire::NewVersion>(201, "The new version and the one that it replaced").problems(&[NotFound, Conflict, JobRetired]),
        route(Method::POST, "/jobs/{jobId}/restore-declaration", Role(Admin), edits::restore_declaration).does("restoreJobDeclaration", "Restore the declaration of a job").body("ReasonRequest", org_updates::WHY).revised()
            .details("For a job that is declared in code or in a configuration file and was edited since: creates the next version, with the declared content. A pause stays.")
            .returns_example::<wire::Job>(200, "The new version", restored_job).problems(&[NotFound, Conflict, JobRetired]),
        route(get, "/jobs/{jobId}/orgs", Role(Viewer), org_jobs::of_job).does("listJobOrgs", "List the orgs of a job, and when it fires for each").query(org_jobs::OF_JOB)
            .returns::<wire::JobOrgs>(200, "A page of orgs").problems(&[NotFound]),
    ]
}

/// Actions on a job.
#[rustfmt::skip]
fn job_action_routes() -> Vec<Route> {
    let (post, patch) = (Method::POST, Method::PATCH);
    let pause = |method, id| route(method, "/jobs/{jobId}/pause", Role(Operator), actions::pause).does(id, "Pause a job").body("PauseRequest", actions::PAUSE).revised()
        .returns::<wire::Paused>(200, "The paused job").problems(&[NotFound, Conflict, JobRetired]);
    let resume = |method, id| route(method, "/jobs/{jobId}/resume", Role(Operator), actions::resume).does(id, "Resume a job").body("ResumeRequest", actions::RESUME).revised()
        .returns::<wire::Resumed>(200, "The active job").problems(&[NotFound, Conflict, JobRetired]);
    vec![
        pause(post.clone(), "pauseJob")
            .details("A paused job does not fire, and runs that have not started wait until it is resumed. Runs that have started continue."),
        pause(patch.clone(), "pauseJobWithPatch").replaced_by("pauseJob"),
        resume(post.clone(), "resumeJob")
            .details("Runs that were held by the pause can start."),
        resume(patch, "resumeJobWithPatch").replaced_by("resumeJob"),
        route(post.clone(), "/jobs/{jobId}/run-now", Role(Operator), actions::run_now).does("runJobNow", "Run a job now").body("RunNowRequest", actions::RUN_NOW).revised()
            .details("The schedule does not change. While another run is active, the `overlap` policy applies unless `force` or `queue` is set.")
            .returns::<wire::RunsNow>(202, "The run, or one run for each org").returns_example::<wire::RunNow>(200, "The skipped run, if the server is configured to return it", skipped_run)
            .problems(&[NotFound, Conflict, OverlapSkipped, JobRetired, TooManyPendingRuns]),
        route(post.clone(), "/jobs/{jobId}/reschedule", Role(Operator), actions::reschedule).does("rescheduleJob", "Move the next run of a job").body("RescheduleRequest", actions::RESCHEDULE).revised()
            .details("Moves only the next run. The schedule does not change.")
            .returns_example::<wire::Job>(200, "The job", rescheduled_job).problems(&[NotFound, Conflict, JobRetired]),
        route(post.clone(), "/jobs/{jobId}/skip-next", Role(Operator), actions::skip_next).does("skipNextRuns", "Skip the next runs of a job").body("SkipNextRequest", actions::SKIP_NEXT).revised()
            .returns_example::<wire::Job>(200, "The job", skipped_job).problems(&[NotFound, Conflict, JobRetired]),
        route(post.clone(), "/jobs/{jobId}/purge", Role(Admin), actions::purge).does("purgeJob", "Delete a job with everything about it").body("ReasonRequest", actions::PURGE)
            .details("Deletes all versions, payloads, runs, gaps and org overrides of the job. This cannot be undone. Refused while a run of the job is running; runs that have not started are deleted.")
            .returns::<wire::PurgedJob>(200, "The numbers of deleted rows").problems(&[NotFound, Conflict]),
        route(post.clone(), "/jobs/{jobId}/orgs/rebuild", Role(Admin), org_updates::rebuild).does("rebuildOrgTimers", "Rebuild the timers of a job for every org").body("ReasonRequest", org_updates::WHY)
            .returns::<wire::OrgUpdateStarted>(202, "The org update, which handles a few orgs at a time").problems(&[NotFound, JobRetired]),
        route(post, "/jobs/{jobId}/sweeps/{sweepId}/stop", Role(Operator), org_updates::stop).does("stopOrgUpdate", "Stop an org update").body("ReasonRequest", org_updates::WHY)
            .details("Stops an update that creates runs for every org of a job. Runs that it has created are kept.")
            .returns::<wire::OrgUpdate>(200, "The progress of the update").problems(&[NotFound]),
    ]
}

/// Routes of runs.
#[rustfmt::skip]
fn run_routes() -> Vec<Route> {
    let (get, post) = (Method::GET, Method::POST);
    vec![
        route(get.clone(), "/runs", RunHistory, runs::list).does("listRuns", "List runs, newest first").query(runs::LIST)
            .returns_page::<wire::Run>("A page of runs, without their outputs"),
        route(get, "/runs/{runId}", RunHistory, runs::get).does("getRun", "Get a run")
            .returns::<wire::Run>(200, "The run").problems(&[NotFound]),
        route(post.clone(), "/runs/{runId}/cancel", Role(Operator), runs::cancel).does("cancelRun", "Cancel a run").body("ReasonRequest", runs::CANCEL)
            .details("A run that has not started is canceled at once. A running handler is asked to stop.")
            .returns::<wire::Canceled>(202, "The run").problems(&[NotFound, Conflict]),
        route(post.clone(), "/runs/rerun", Role(Operator), reruns::many).does("rerunRuns", "Rerun many runs with their payloads").body("RerunRequest", reruns::RERUN)
            .details("Each run that matches is repeated on its own, the oldest first: one that fails does not stop the others. At most 1,000 runs.")
            .returns::<wire::Reruns>(200, "The result for each run"),
        route(post, "/runs/{runId}/rerun", Role(Operator), runs::rerun).does("rerunRun", "Rerun a run with the same payload").body("ReasonRequest", runs::CANCEL)
            .returns::<wire::RunNow>(202, "The new run").returns_example::<wire::RunNow>(200, "The skipped run, if the server is configured to return it", skipped_run)
            .problems(&[NotFound, Conflict, OverlapSkipped, JobRetired, TooManyPendingRuns]),
    ]
}

/// Routes of orgs.
#[rustfmt::skip]
fn org_routes() -> Vec<Route> {
    let (get, put, patch, delete) = (Method::GET, Method::PUT, Method::PATCH, Method::DELETE);
    vec![
        route(get.clone(), "/orgs", Role(Viewer), orgs::list).does("listOrgs", "List orgs").query(orgs::LIST)
            .returns_page::<wire::Org>("A page of orgs"),
        route(Method::POST, "/orgs", Role(Operator), orgs::import).does("importOrgs", "Create or update up to 10,000 orgs").query(orgs::IMPORT).lines("OrgLine", orgs::LINE)
            .details("The body has one JSON object on each line. Either all of them are written or none.")
            .returns::<wire::Imported>(200, "The numbers of created and changed orgs").problems(&[Conflict]),
        route(get.clone(), "/orgs/{orgId}", Role(Viewer), orgs::get).does("getOrg", "Get an org")
            .returns::<wire::Org>(200, "The org").problems(&[NotFound]),
        route(put.clone(), "/orgs/{orgId}", Role(Operator), orgs::put).does("putOrg", "Create or update an org").body("OrgInput", orgs::ORG).revised()
            .details("An absent member keeps its value.")
            .returns_example::<wire::Org>(200, "The org", written_org).returns_example::<wire::Org>(201, "The new org", written_org).problems(&[NotFound, Conflict]),
        route(patch, "/orgs/{orgId}", Role(Operator), orgs::patch).does("updateOrg", "Update an org").body("OrgInput", orgs::ORG).revised()
            .details("An absent member keeps its value, `null` resets it.")
            .returns_example::<wire::Org>(200, "The org", written_org).problems(&[NotFound, Conflict]),
        route(delete.clone(), "/orgs/{orgId}", Role(Operator), orgs::delete).does("deleteOrg", "Delete an org").query(orgs::DELETE).revised()
            .details("Jobs no longer fire for the org. Its runs are kept.")
            .returns_nothing(204, "The org is deleted").problems(&[NotFound, Conflict]),
        route(get.clone(), "/orgs/{orgId}/jobs", Role(Viewer), org_jobs::list).does("listOrgJobs", "List the jobs of an org, and when each fires for it")
            .returns_items::<wire::OrgJob>("The jobs").problems(&[NotFound]),
        route(get.clone(), "/orgs/{orgId}/jobs/{jobKey}", Role(Viewer), org_jobs::get).does("getOrgOverride", "Get an org's override of a job")
            .returns::<wire::OrgOverride>(200, "The override and its effect").problems(&[NotFound]),
        route(put, "/orgs/{orgId}/jobs/{jobKey}", Role(Operator), org_jobs::put).does("putOrgOverride", "Set an org's override of a job").body("OverridePut", org_jobs::OVERRIDE)
            .details("Changes the local time at which the job fires for the org, or turns the job off for it.")
            .returns_example::<wire::OrgOverride>(200, "The override and its effect", written_override).problems(&[NotFound]),
        route(delete, "/orgs/{orgId}/jobs/{jobKey}", Role(Operator), org_jobs::delete).does("deleteOrgOverride", "Remove an org's override of a job").query(org_jobs::CLEAR)
            .returns_nothing(204, "The override is removed").problems(&[NotFound]),
        route(get, "/orgs/{orgId}/what-if", Role(Viewer), org_jobs::what_if).does("previewOrgMove", "Preview a move of an org to another time zone").query(org_jobs::WHAT_IF)
            .returns::<wire::WhatIf>(200, "The runs before and after, and what happens on each local day").problems(&[NotFound]),
    ]
}

/// An event of the stream.
const EVENT: &str =
    "id: 33a83ab5-3\nevent: run.succeeded\ndata: {\"jobKey\":\"daily-report\",\"status\":\"succeeded\"}\n\n";

/// Everything else below each mount.
#[rustfmt::skip]
fn other_routes() -> Vec<Route> {
    let (get, post, delete) = (Method::GET, Method::POST, Method::DELETE);
    vec![
        route(post.clone(), "/cron/preview", Role(Viewer), cron::show).does("previewCron", "Explain a cron expression and list its next times").body("CronPreviewRequest", cron::PREVIEW)
            .returns::<wire::Preview>(200, "The meaning of the expression"),
        route(get.clone(), "/templates", Role(Viewer), cron::templates).does("listTemplates", "List cron expression templates")
            .returns_items::<wire::Template>("The templates"),
        route(get.clone(), "/instances", Role(Viewer), instances::list).does("listInstances", "List instances, oldest first")
            .returns_items::<wire::Instance>("The instances"),
        route(post.clone(), "/instances/{instanceId}/drain", Role(Admin), instances::drain).does("drainInstance", "Drain an instance")
            .returns_nothing(204, "The instance finishes its runs and accepts no new ones").problems(&[NotFound]),
        route(post.clone(), "/instances/{instanceId}/undrain", Role(Admin), instances::undrain).does("undrainInstance", "Undrain an instance")
            .returns_nothing(204, "The instance accepts work").problems(&[NotFound]),
        route(get.clone(), "/audit", Role(Operator), audit::list).does("listAuditEntries", "List audit entries, newest first").query(audit::LIST)
            .returns_page::<wire::AuditEntry>("A page of entries"),
        route(get.clone(), "/tokens", Role(Admin), tokens::list).does("listTokens", "List tokens (secrets are never shown)")
            .returns_items::<wire::Token>("The tokens"),
        route(post, "/tokens", Role(Admin), tokens::create).does("createToken", "Create a token").body("TokenCreate", tokens::CREATE).secret()
            .details("The secret is shown once, in this response.")
            .returns::<wire::NewToken>(201, "The token and its secret").problems(&[Conflict]),
        route(delete.clone(), "/tokens/{name}", Role(Admin), tokens::revoke).does("revokeToken", "Revoke a token").query(tokens::REVOKE)
            .returns_nothing(204, "The token is revoked").problems(&[NotFound, Conflict]),
        route(get.clone(), "/sessions", Role(Viewer), sessions::list).does("listSessions", "List browser sessions, newest first").query(sessions::LIST)
            .details("Lists your own sessions. Admins can list those of others.")
            .returns_items::<wire::Session>("The sessions"),
        route(delete.clone(), "/sessions", Role(Viewer), sessions::end_all).does("endSessions", "End all browser sessions of an actor").query(sessions::END_ALL)
            .details("Ends your own sessions. Admins can end those of others.")
            .returns::<wire::EndedSessions>(200, "The number of ended sessions"),
        route(delete, "/sessions/{sessionId}", Role(Viewer), sessions::end).does("endSession", "End a browser session")
            .details("Ends a session of your own. Admins can end those of others.")
            .returns_nothing(204, "The session has ended").problems(&[NotFound]),
        route(get.clone(), "/status", Role(Viewer), instances::status).does("getStatus", "Show the state of the server and its database")
            .returns::<wire::Status>(200, "The status"),
        route(get, "/events", RunHistory, events::stream).does("streamEvents", "Stream events as they happen").query(events::STREAM)
            .details("Server-Sent Events. The response does not end: read it as a stream.")
            .returns_text(200, "The events", "text/event-stream", EVENT),
    ]
}

/// Routes that are served once, regardless of mounts.
#[rustfmt::skip]
pub fn root_routes(options: &ApiOptions) -> Vec<Route> {
    let get = Method::GET;
    // With pages, theirs is the first.
    let home = route(get.clone(), "/", Open, probes::home).does("openHome", "Redirect to the API reference")
        .returns_nothing(303, "The API reference").problems(&[NotFound]);
    let home = (!options.has_pages()).then_some(home);
    home.into_iter().chain(vec![
        route(get.clone(), "/livez", Open, probes::live).does("checkLiveness", "Check whether the process responds")
            .returns_text(200, "The process responds", "text/plain", "ok\n"),
        route(get.clone(), "/readyz", Open, probes::ready).does("checkReadiness", "Check whether the server can do its work").query(probes::READY)
            .returns_text(200, "The server is ready", "text/plain", "ok\n").returns_text(503, "The server is not ready", "text/plain", "not ready\n"),
        route(get.clone(), "/healthz", Open, probes::ready).does("checkHealth", "Check whether the server can do its work").query(probes::READY).replaced_by("checkReadiness")
            .returns_text(200, "The server is ready", "text/plain", "ok\n").returns_text(503, "The server is not ready", "text/plain", "not ready\n"),
        route(get.clone(), "/metrics", Metrics, probes::metrics).does("getMetrics", "Get metrics for Prometheus")
            .details("Available from this machine, or with the metrics token.")
            .returns_text(200, "The metrics", "text/plain", "everbell_jobs_errored 0\n"),
        route(get.clone(), "/openapi.json", Open, probes::openapi).does("getOpenApi", "Get this document")
            .returns_object(200, "The OpenAPI 3.1 document", || json!({ "openapi": "3.1.0" })),
        route(get.clone(), "/docs/api", Open, probes::docs).does("getApiReference", "Get the API reference as a page")
            .returns_text(200, "The page", "text/html", "<!doctype html>").problems(&[NotFound]),
        route(get.clone(), "/docs/style.css", Open, probes::style).does("getApiReferenceStyle", "Get the style sheet of the API reference")
            .returns_text(200, "The style sheet", "text/css", ":root { color-scheme: light dark; }"),
        route(get, PROBLEM_KIND, Open, probes::problem).does("getProblemKind", "Explain a kind of problem")
            .returns::<wire::problem::ProblemKind>(200, "Its title and help").problems(&[NotFound]),
    ]).collect()
}

/// The compatibility API for programs that know schedules instead of jobs.
#[rustfmt::skip]
pub fn compat_routes() -> Vec<Route> {
    use compat::ScheduleDocument as Schedule;
    vec![
        route(Method::GET, "/api/schedules", Role(Viewer), compat::list).does("listSchedulesUnversioned", "List schedules").query(compat::LIST).replaced_by("listJobs")
            .returns_array::<Schedule>("The schedules"),
        route(Method::GET, "/api/v1/schedules", Role(Viewer), compat::list).does("listSchedules", "List schedules").query(compat::LIST).replaced_by("listJobs")
            .returns_array::<Schedule>("The schedules"),
        route(Method::POST, "/api/v1/schedules", Role(Admin), compat::create).does("createSchedule", "Create a schedule").own_body("ScheduleCreate", compat::SCHEDULE).replaced_by("createJob")
            .returns::<Schedule>(201, "The schedule").problems(&[JobKeyExists]),
        route(Method::GET, "/api/v1/schedules/{jobId}", Role(Viewer), compat::get).does("getSchedule", "Get a schedule").replaced_by("getJob")
            .returns::<Schedule>(200, "The schedule").problems(&[NotFound]),
        route(Method::PUT, "/api/v1/schedules/{jobId}", Role(Admin), compat::replace).does("replaceSchedule", "Replace a schedule").own_body("ScheduleCreate", compat::SCHEDULE).revised().replaced_by("updateJob")
            .returns::<Schedule>(200, "The schedule").problems(&[NotFound, Conflict, JobRetired]),
        route(Method::PATCH, "/api/v1/schedules/{jobId}", Role(Admin), compat::patch).does("updateSchedule", "Update a schedule").own_body("SchedulePatch", compat::PATCH).revised().replaced_by("updateJob")
            .details("An absent member keeps its value, `null` resets it.")
            .returns::<Schedule>(200, "The schedule").problems(&[NotFound, Conflict, JobRetired]),
    ]
}

/// The routes of a process that only schedules.
const PROBES: [&str; 4] = ["/livez", "/readyz", "/healthz", "/metrics"];

/// The page that the `type` of a problem names.
const PROBLEM_KIND: &str = "/docs/problems/{problem}";

/// The root routes of these paths.
fn named_root_routes(options: &ApiOptions, paths: &[&str]) -> impl Iterator<Item = Route> {
    root_routes(options).into_iter().filter(move |route| paths.contains(&route.path))
}

/// Every route with the mount below which it is.
pub fn all_routes(options: &ApiOptions) -> Vec<(String, Route)> {
    let alone = |route: Route| (String::new(), route);
    let mounts = options.settings.mounts.iter();
    let below = mounts.flat_map(|mount| mounted_routes().into_iter().map(move |route| (mount.clone(), route)));
    match options.served {
        Served::All => {}
        Served::Probes => return named_root_routes(options, &PROBES).map(alone).collect(),
        Served::Embedded => return below.chain(named_root_routes(options, &[PROBLEM_KIND]).map(alone)).collect(),
    }
    let compat = options.settings.compat.then(compat_routes).into_iter().flatten();
    below.chain(root_routes(options).into_iter().chain(compat).map(alone)).collect()
}

/// Everything that is answered over HTTP.
pub fn router(app: &Arc<App>, pages: Option<Arc<dyn Pages>>) -> Router {
    let mut router = Router::new();
    for (mount, route) in all_routes(&app.options()) {
        let path = format!("{mount}{}", route.path);
        let Ok(method) = MethodFilter::try_from(route.method.clone()) else { continue };
        let mounted = Mounted { app: Arc::clone(app), route: Arc::new(route), mount: mount.into() };
        router = router.route(&path, on(method, pipeline::handle).with_state(mounted));
    }
    if let Some(pages) = &pages {
        router = pages.mount(router);
    }
    let (lost, refused) = (Arc::clone(app), Arc::clone(app));
    router
        .fallback(move |request: Request| {
            let guarded = lost.options().is_mounted(request.uri().path());
            let app = Arc::clone(&lost);
            let pages = pages.clone().filter(|_| !guarded && wants_page(&request));
            async move {
                match pages {
                    Some(pages) => pages.not_found(request).await,
                    None => pipeline::not_found(app, NotFound, guarded, request).await,
                }
            }
        })
        .method_not_allowed_fallback(move |request: Request| {
            let guarded = refused.options().is_mounted(request.uri().path());
            pipeline::not_found(Arc::clone(&refused), MethodNotAllowed, guarded, request)
        })
        .layer(axum::middleware::from_fn_with_state(Arc::clone(app), hardening::harden))
}
