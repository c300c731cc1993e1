//! The web UI: pages rendered on the server. The tables below list every page.
//!
//! A request passes `middleware.rs` (session, role, CSRF token) and is handled by one function of `pages/`, which reads through
//! the client of the library and renders a template. Actions go through the API (`UiRequest::perform`), so roles, checks and
//! messages are the same for people and programs. Pages work without JavaScript; with it they update live, open actions in
//! dialogs and have keyboard shortcuts.

mod assets;
mod audit_line;
pub(crate) mod badge;
pub(crate) mod cache;
mod chart;
mod choices;
pub(crate) mod clock;
mod compression;
mod equivalent;
mod fragments;
mod frame;
mod frozen;
mod hours;
mod label_groups;
mod links;
pub(crate) mod markup;
mod middleware;
mod pages;
mod prefix;
mod pretty;
mod problem_page;
mod request;
mod resubmit;
mod session;
pub(crate) mod snippets;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::extract::Request;
use axum::http::Method;
use axum::response::Response;
use axum::routing::{MethodFilter, on};

pub(crate) use frame::{Frame, Section};
pub(crate) use links::Links;
pub(crate) use request::{UiRequest, UiResponse};
pub use snippets::Snippets;

use self::cache::UiCache;
use everbell_http::access::Role::{Operator, Viewer};
use everbell_http::problem::Problem;
use everbell_http::route::Access::{self, Open, Role};
use everbell_http::{App, Embedded, Pages};
use everbell_wire::form::Field;

type ResponseFuture = Pin<Box<dyn Future<Output = Result<UiResponse, Problem>> + Send>>;

/// One method of one page.
pub(crate) struct Page {
    method: Method,
    path: &'static str,
    access: Access,
    query: &'static [Field],
    handler: Arc<dyn Fn(UiRequest) -> ResponseFuture + Send + Sync>,
}

impl Page {
    /// Sets the query parameters of the page. Others are ignored.
    fn query(self, query: &'static [Field]) -> Page {
        Page { query, ..self }
    }
}

fn page<F, A>(method: Method, path: &'static str, access: Access, handler: F) -> Page
where
    F: Fn(UiRequest) -> A + Send + Sync + 'static,
    A: Future<Output = Result<UiResponse, Problem>> + Send + 'static,
{
    Page { method, path, access, query: &[], handler: Arc::new(move |request| Box::pin(handler(request))) }
}

fn get<F, A>(path: &'static str, access: Access, handler: F) -> Page
where
    F: Fn(UiRequest) -> A + Send + Sync + 'static,
    A: Future<Output = Result<UiResponse, Problem>> + Send + 'static,
{
    page(Method::GET, path, access, handler)
}

fn post<F, A>(path: &'static str, handler: F) -> Page
where
    F: Fn(UiRequest) -> A + Send + Sync + 'static,
    A: Future<Output = Result<UiResponse, Problem>> + Send + 'static,
{
    page(Method::POST, path, Role(Viewer), handler)
}

/// Every page.
fn all() -> Vec<Page> {
    let parts = [
        frame_pages(),
        job_pages(),
        action_pages(),
        job_form_pages(),
        run_pages(),
        org_pages(),
        dashboard_pages(),
        admin_pages(),
    ];
    parts.into_iter().flatten().collect()
}

/// Signing in, choices, files, events.
#[rustfmt::skip]
fn frame_pages() -> Vec<Page> {
    vec![
        get("/sign-in", Open, pages::sign_in::show).query(pages::sign_in::QUERY),
        page(Method::POST, "/sign-in", Open, pages::sign_in::sign_in).query(pages::sign_in::QUERY),
        post("/sign-out", pages::sign_in::sign_out),
        post("/choices", pages::choices::choose),
        get("/find", Role(Viewer), pages::find::show).query(pages::find::QUERY),
        get("/ui/events", Access::RunHistory, pages::events::stream),
        get("/ui/{file}", Open, assets::serve),
    ]
}

/// The list of jobs, and a job.
#[rustfmt::skip]
fn job_pages() -> Vec<Page> {
    vec![
        get("/jobs", Role(Viewer), pages::jobs::show).query(pages::jobs::QUERY),
        get("/jobs/{key}", Role(Viewer), pages::job::show).query(pages::job::QUERY),
    ]
}

/// Actions on jobs.
#[rustfmt::skip]
fn action_pages() -> Vec<Page> {
    use pages::action;
    vec![
        get("/jobs/{key}/pause", Role(Viewer), action::pause::show),
        post("/jobs/{key}/pause", action::pause::send),
        post("/jobs/{key}/pause/preview", action::pause::show),
        get("/jobs/{key}/resume", Role(Viewer), action::resume::show),
        post("/jobs/{key}/resume", action::resume::send),
        get("/jobs/{key}/run-now", Role(Viewer), action::run_now::show).query(action::for_org::QUERY),
        post("/jobs/{key}/run-now", action::run_now::send),
        get("/jobs/{key}/reschedule", Role(Viewer), action::reschedule::show).query(action::for_org::QUERY),
        post("/jobs/{key}/reschedule", action::reschedule::send),
        post("/jobs/{key}/reschedule/preview", action::reschedule::show),
        get("/jobs/{key}/skip-next", Role(Viewer), action::skip_next::show).query(action::for_org::QUERY),
        post("/jobs/{key}/skip-next", action::skip_next::send),
        post("/jobs/{key}/skip-next/preview", action::skip_next::show),
        get("/jobs/{key}/restore-declaration", Role(Viewer), action::restore_declaration::show),
        post("/jobs/{key}/restore-declaration", action::restore_declaration::send),
        get("/jobs/{key}/rollback/{version}", Role(Viewer), action::rollback::show),
        post("/jobs/{key}/rollback/{version}", action::rollback::send),
        get("/jobs/{key}/retire", Role(Viewer), action::retire::show),
        post("/jobs/{key}/retire", action::retire::send),
        get("/jobs/{key}/backfill", Role(Viewer), action::backfill::show).query(action::backfill::QUERY),
        post("/jobs/{key}/backfill", action::backfill::send),
        get("/jobs/{key}/backfills", Access::RunHistory, action::backfills::show),
        post("/jobs/{key}/backfills/{id}/stop", action::backfills::stop),
        post("/jobs/{key}/backfills/{id}/pause", action::backfills::pause),
        post("/jobs/{key}/backfills/{id}/resume", action::backfills::resume),
        post("/jobs/{key}/backfills/{id}/set", action::backfills::set),
        get("/bulk/pause", Role(Viewer), action::bulk::pause).query(action::bulk::QUERY),
        post("/bulk/pause", action::bulk::send_pause),
        get("/bulk/resume", Role(Viewer), action::bulk::resume).query(action::bulk::QUERY),
        post("/bulk/resume", action::bulk::send_resume),
        get("/bulk/run-now", Role(Viewer), action::bulk::run_now).query(action::bulk::QUERY),
        post("/bulk/run-now", action::bulk::send_run_now),
        get("/bulk/skip-next", Role(Viewer), action::bulk::skip_next).query(action::bulk::QUERY),
        post("/bulk/skip-next", action::bulk::send_skip_next),
        get("/bulk/edit", Role(Viewer), action::bulk_edit::show).query(action::bulk::QUERY),
        post("/bulk/edit", action::bulk_edit::send),
        get("/bulk/retire", Role(Viewer), action::bulk::retire).query(action::bulk::QUERY),
        post("/bulk/retire", action::bulk::send_retire),
    ]
}

/// Forms that create jobs and versions.
#[rustfmt::skip]
fn job_form_pages() -> Vec<Page> {
    vec![
        get("/new", Role(Viewer), pages::job_form::create::show).query(pages::job_form::create::QUERY),
        post("/new", pages::job_form::create::send),
        post("/new/preview", pages::job_form::create::preview),
        get("/jobs/{key}/new-version", Role(Viewer), pages::job_form::edit::show).query(pages::job_form::edit::QUERY),
        post("/jobs/{key}/new-version", pages::job_form::edit::send),
        post("/jobs/{key}/new-version/preview", pages::job_form::edit::preview),
        get("/import", Role(Viewer), pages::import::show),
        post("/import", pages::import::send),
    ]
}

/// Routes of run pages.
#[rustfmt::skip]
fn run_pages() -> Vec<Page> {
    vec![
        get("/runs", Access::RunHistory, pages::runs::show).query(pages::runs::QUERY),
        get("/runs/export", Access::RunHistory, pages::runs::export::send).query(pages::runs::export::QUERY),
        get("/runs/picked", Access::RunHistory, pages::runs::selection::show).query(pages::runs::selection::QUERY),
        post("/runs/picked", pages::runs::selection::send),
        get("/runs/matching", Access::RunHistory, pages::runs::matching::show).query(pages::runs::matching::QUERY),
        post("/runs/matching", pages::runs::matching::send),
        get("/runs/{runId}", Access::RunHistory, pages::run::show),
        get("/runs/{runId}/output", Access::RunHistory, pages::run::output),
        get("/runs/{runId}/cancel", Access::RunHistory, pages::run::cancel::show),
        post("/runs/{runId}/cancel", pages::run::cancel::send),
        get("/runs/{runId}/rerun", Access::RunHistory, pages::run::rerun::show),
        post("/runs/{runId}/rerun", pages::run::rerun::send),
    ]
}

/// Orgs and their jobs.
#[rustfmt::skip]
fn org_pages() -> Vec<Page> {
    use pages::orgs;
    vec![
        get("/orgs", Role(Viewer), orgs::list::show).query(orgs::list::QUERY),
        get("/new-org", Role(Viewer), orgs::edit::show_new),
        post("/new-org", orgs::edit::send_new),
        get("/import-orgs", Role(Viewer), orgs::import::show),
        post("/import-orgs", orgs::import::send),
        get("/orgs/{orgId}", Role(Viewer), orgs::org::show),
        get("/orgs/{orgId}/edit", Role(Viewer), orgs::edit::show),
        post("/orgs/{orgId}/edit", orgs::edit::send),
        post("/orgs/{orgId}/edit/preview", orgs::edit::show),
        get("/orgs/{orgId}/disable", Role(Viewer), orgs::enable::show_disable),
        post("/orgs/{orgId}/disable", orgs::enable::disable),
        get("/orgs/{orgId}/enable", Role(Viewer), orgs::enable::show_enable),
        post("/orgs/{orgId}/enable", orgs::enable::enable),
        get("/orgs/{orgId}/delete", Role(Viewer), orgs::delete::show),
        post("/orgs/{orgId}/delete", orgs::delete::send),
        get("/orgs/{orgId}/jobs/{jobKey}/off", Role(Viewer), orgs::job_override::show_off),
        post("/orgs/{orgId}/jobs/{jobKey}/off", orgs::job_override::switch_off),
        get("/orgs/{orgId}/jobs/{jobKey}/on", Role(Viewer), orgs::job_override::show_on),
        post("/orgs/{orgId}/jobs/{jobKey}/on", orgs::job_override::switch_on),
        get("/orgs/{orgId}/jobs/{jobKey}/clear", Role(Viewer), orgs::job_override::show_clear),
        post("/orgs/{orgId}/jobs/{jobKey}/clear", orgs::job_override::clear),
        get("/orgs/{orgId}/jobs/{jobKey}/time", Role(Viewer), orgs::time::show),
        post("/orgs/{orgId}/jobs/{jobKey}/time", orgs::time::send),
        post("/orgs/{orgId}/jobs/{jobKey}/time/preview", orgs::time::show),
        get("/jobs/{key}/orgs", Role(Viewer), orgs::job_orgs::show).query(orgs::job_orgs::QUERY),
        get("/jobs/{key}/orgs/run-now", Role(Viewer), orgs::run_now::show).query(orgs::run_now::QUERY),
        post("/jobs/{key}/orgs/run-now", orgs::run_now::send),
        get("/jobs/{key}/sweeps/{id}/stop", Role(Viewer), orgs::stop::show),
        post("/jobs/{key}/sweeps/{id}/stop", orgs::stop::send),
    ]
}

/// Pages about all jobs.
#[rustfmt::skip]
fn dashboard_pages() -> Vec<Page> {
    vec![
        get("/", Role(Viewer), pages::overview::show).query(pages::overview::QUERY),
        get("/problems", Access::RunHistory, pages::problems::show),
        get("/problems/{id}/acknowledge", Access::RunHistory, pages::problems::acknowledge_form),
        post("/problems/{id}/acknowledge", pages::problems::acknowledge),
        get("/problems/{id}/mute", Access::RunHistory, pages::problems::mute_form),
        post("/problems/{id}/mute", pages::problems::mute),
        post("/problems/{id}/unmute", pages::problems::unmute),
        post("/problems/channels/{name}/test", pages::problems::test),
        get("/calendars", Role(Viewer), pages::calendars::show),
        get("/new-calendar", Role(Viewer), pages::calendars::edit::show),
        post("/new-calendar", pages::calendars::edit::send),
        get("/calendars/{name}", Role(Viewer), pages::calendars::edit::show),
        post("/calendars/{name}", pages::calendars::edit::send),
        post("/calendars/{name}/delete", pages::calendars::edit::delete),
        get("/freezes/new", Role(Viewer), pages::calendars::freeze::show),
        post("/freezes/new", pages::calendars::freeze::send),
        post("/freezes/{id}/end", pages::calendars::freeze::end),
        get("/top", Access::RunHistory, pages::top::show).query(pages::top::QUERY),
        get("/timeline", Role(Viewer), pages::timeline::show).query(pages::timeline::QUERY),
        get("/timeline/herd", Role(Viewer), pages::timeline::herd::show).query(pages::timeline::herd::QUERY),
        post("/timeline/herd", pages::timeline::herd::send),
        get("/timeline/month", Role(Viewer), pages::timeline::month::show).query(pages::timeline::month::QUERY),
    ]
}

/// Instances, targets, audit and settings.
#[rustfmt::skip]
fn admin_pages() -> Vec<Page> {
    vec![
        get("/cluster", Role(Viewer), pages::cluster::show),
        get("/cluster/{id}/drain", Role(Viewer), pages::cluster::drain::show),
        post("/cluster/{id}/drain", pages::cluster::drain::send),
        get("/targets", Role(Viewer), pages::targets::show),
        get("/new-target", Role(Viewer), pages::target_form::show).query(pages::target_form::QUERY),
        page(Method::POST, "/new-target", Role(Viewer), pages::target_form::send).query(pages::target_form::QUERY),
        get("/targets/{label}", Role(Viewer), pages::targets::show_one),
        get("/targets/{label}/edit", Role(Viewer), pages::target_form::show),
        post("/targets/{label}/edit", pages::target_form::send),
        get("/targets/{label}/delete", Role(Viewer), pages::target_form::delete_form),
        post("/targets/{label}/delete", pages::target_form::delete),
        get("/targets/{label}/try", Role(Viewer), pages::targets::try_form),
        post("/targets/{label}/try", pages::targets::try_now),
        get("/audit", Role(Operator), pages::audit::show).query(pages::audit::QUERY),
        get("/settings", Role(Viewer), pages::settings::show),
        get("/settings/tokens", Role(Viewer), pages::settings::show),
        post("/settings/tokens", pages::settings::create_token),
        post("/settings/sessions/end", pages::settings::end_sessions),
        post("/settings/sessions/{id}/end", pages::settings::end_session),
        get("/settings/tokens/{name}/revoke", Role(Viewer), pages::settings::revoke::show),
        post("/settings/tokens/{name}/revoke", pages::settings::revoke::send),
    ]
}

/// The first words of all paths, where no API can be mounted.
#[rustfmt::skip]
pub const RESERVED_PATHS: [&str; 24] = [
    "sign-in", "sign-out", "choices", "jobs", "runs", "new", "new-org", "import", "import-orgs", "bulk", "timeline",
    "orgs", "cluster", "targets", "audit", "settings", "ui", "problems", "find", "calendars", "freezes", "new-calendar",
    "top", "new-target",
];

/// The pages of one application.
#[derive(Clone)]
pub struct Ui {
    app: Arc<App>,
    cache: Arc<UiCache>,
}

impl Ui {
    /// The pages of this application.
    pub fn new(app: &Arc<App>) -> Ui {
        Ui { app: Arc::clone(app), cache: Arc::default() }
    }
}

/// The mount of the API beside the pages in another program.
const API_MOUNT: &str = "/api/v1";

/// The pages and, below `/api/v1`, the API of a program's own [`Everbell`](everbell::Everbell), to be nested into its
/// axum application at any path; the first page is at that path without a slash behind it. Must be called within a
/// tokio runtime. Open pages follow an event stream, which [`Embedded::with_graceful_shutdown`] ends.
///
/// The application decides who is who, as [`Embedded`] describes. A person without a
/// [`User`](everbell_http::User) of the application signs in with a token.
///
/// ```
/// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
/// use axum::{Router, extract::Request, middleware::{self, Next}, response::Response};
/// use everbell_http::{Embedded, User, access::Role};
///
/// async fn sign_in(mut request: Request, next: Next) -> Response {
///     // Here the application looks at its own session, header or certificate.
///     request.extensions_mut().insert(User::new("anna@example.com", Role::Admin));
///     next.run(request).await
/// }
///
/// let bell = everbell::Everbell::builder().database("sqlite::memory:").build().await?;
/// let embedded = Embedded::new(&bell).environment("staging").with_graceful_shutdown(everbell::shutdown_signal());
/// let pages = everbell_ui::router(embedded);
/// let app: Router = Router::new().nest("/admin/cron", pages.layer(middleware::from_fn(sign_in)));
/// # Ok(())
/// # }
/// ```
pub fn router(embedded: Embedded) -> Router {
    let app = embedded.with_pages_beside(API_MOUNT);
    let pages: Arc<dyn Pages> = Arc::new(Ui::new(&app));
    everbell_http::router(&app, Some(pages))
}

#[async_trait]
impl Pages for Ui {
    fn mount(&self, mut router: Router) -> Router {
        let ui = Arc::new(self.clone());
        for page in all() {
            let Ok(method) = MethodFilter::try_from(page.method.clone()) else { continue };
            let path = page.path;
            router = router.route(path, on(method, middleware::handle).with_state((Arc::clone(&ui), Arc::new(page))));
        }
        router
    }

    async fn not_found(&self, request: Request) -> Response {
        middleware::not_found(self, request).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_first_word_is_taken() {
        for page in all() {
            let word = page.path.split('/').nth(1).unwrap_or("");
            assert!(word.is_empty() || RESERVED_PATHS.contains(&word), "{}", page.path);
        }
    }
}
