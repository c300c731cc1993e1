//! Handles every request: authentication, role, query and body, idempotency, the handler, and the response. A handler
//! sees only valid requests.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{ConnectInfo, OriginalUri, RawPathParams, Request, State};
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use everbell::with_deadline;
use serde_json::Value;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::access::{Actor, Role, basic_password, expect_role};
use super::body::read_body;
use super::denials::{Attempt, Denied};
use super::excerpt::excerpt;
use super::limit::Quota;
use super::problem::{Kind, Problem};
use super::request::{ApiRequest, ApiResponse, ResponseBody};
use super::route::{Access, Route, Shape};
use super::user::User;
use super::{App, idempotency, proxy};
use everbell_wire::form::{Form, Naming, query};

/// How much longer a request with JSON lines may take.
const LINES_TIMEOUT_FACTOR: u32 = 6;
/// The time after the deadline of the database in which the response is still sent.
const RESPONSE_GRACE: Duration = Duration::from_secs(1);

/// A route at the place where it is mounted.
#[derive(Clone)]
pub struct Mounted {
    /// The application that serves the route.
    pub app: Arc<App>,
    pub(crate) route: Arc<Route>,
    pub(crate) mount: Arc<str>,
}

/// Answers a request.
pub async fn handle(
    State(mounted): State<Mounted>,
    params: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
) -> Response<Body> {
    let id = request_id(request.headers());
    let path = path_params(params);
    let Mounted { app, route, .. } = &mounted;
    let started = app.bell.clock().monotonic();
    let (method, template) = (route.method.clone(), format!("{}{}", mounted.mount, route.path));
    let prefix = outer_prefix(request.extensions(), request.uri().path()).to_owned();
    let mut context = RequestContext { id: id.clone(), prefix, ..RequestContext::default() };
    let result = match path {
        Ok(path) => process(&mounted, path, request, &mut context).await,
        Err(problem) => Err(problem),
    };
    if let Err(problem) = &result {
        let RequestContext { address, actor, .. } = &context;
        let denied = Denied {
            attempt: Attempt::Request,
            problem,
            method: method.as_str(),
            route: &template,
            address: *address,
            request_id: &id,
            actor: actor.as_ref(),
        };
        app.denials.note(&app.bell, &denied).await;
    }
    let status = match &result {
        Ok(response) => response.status,
        Err(problem) => problem.status(),
    };
    let took = app.bell.clock().monotonic().saturating_sub(started);
    tracing::debug!(request = %id, %method, route = template, status = status.as_u16(), took_ms = took.as_secs_f64() * 1e3, "answered");
    app.metrics.http(method.as_str(), &template, status.as_u16(), took.as_secs_f64());
    let mut response = match result {
        Ok(response) => render(response, &id),
        Err(problem) => render_problem(&problem, &id, &context.prefix),
    };
    if matches!(route.access, Access::Feed(_)) && status == StatusCode::UNAUTHORIZED {
        let password = HeaderValue::from_static("Basic realm=\"everbell\", charset=\"UTF-8\"");
        response.headers_mut().append(header::WWW_AUTHENTICATE, password);
    }
    for (name, value) in context.quota.iter().flat_map(|quota| quota.headers(WRITE_LIMIT_NAME)) {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// The facts about a request that are needed after it was handled.
#[derive(Default)]
struct RequestContext {
    id: String,
    /// The path below which another program has nested the routes.
    prefix: String,
    address: Option<IpAddr>,
    actor: Option<Actor>,
    quota: Option<Quota>,
}

/// The path below which another program has nested these routes; empty if none has. Only the original address knows it.
pub fn outer_prefix<'a>(extensions: &'a Extensions, own: &str) -> &'a str {
    prefix_between(extensions.get::<OriginalUri>().map_or("", |original| original.0.path()), own)
}

fn prefix_between<'a>(original: &'a str, own: &str) -> &'a str {
    // The router of another program leads `/admin/cron` to the route `/`.
    let prefix = if own == "/" { original.strip_suffix('/').or(Some(original)) } else { original.strip_suffix(own) };
    prefix.unwrap_or("")
}

/// The name of the write limit in rate limit headers.
const WRITE_LIMIT_NAME: &str = "writes";

/// The parts of a path by their names.
pub fn path_params(params: Result<RawPathParams, RawPathParamsRejection>) -> Result<Vec<(String, String)>, Problem> {
    let params = params
        .map_err(|_| Problem::new(Kind::InvalidInput, "The path is invalid: percent-encoded parts must be UTF-8."))?;
    Ok(params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

async fn process(
    mounted: &Mounted,
    path: Vec<(String, String)>,
    request: Request,
    context: &mut RequestContext,
) -> Result<ApiResponse, Problem> {
    let Mounted { app, route, mount } = mounted;
    let (parts, body) = request.into_parts();
    let prefix = context.prefix.clone();
    let mount = format!("{prefix}{mount}");
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
    let user = parts.extensions.get::<User>();
    let limit = request_timeout(app, route);
    let started = Instant::now();
    context.address = proxy::client_address(&app.options(), &parts.headers, peer);
    let mut actor = with_deadline(started + limit, authorize(app, route.access, user, &parts.headers, peer)).await?;
    actor.set_origin(context.address, &context.id);
    context.actor = Some(actor.clone());
    expect_role(&actor, needed_role(app, route.access))?;
    if route.writes() && actor.is_user() {
        expect_own_site(app, &parts.headers)?;
    }
    let left = limit.saturating_sub(started.elapsed());
    if route.writes() {
        count_write(app, &actor, &mut context.quota)?;
    }
    let query = read_query(parts.uri.query().unwrap_or(""), route)?;
    let (text, body) = read_body(&parts.headers, body, route).await?;
    let if_match = if route.revised { revision(app, &parts.headers)? } else { None };
    let (app, headers) = (Arc::clone(app), parts.headers);
    let request =
        ApiRequest { app, actor, prefix, mount, path, query, body, text, if_match, headers, peer, request_key: None };
    // How long the body took is up to the client.
    let work = async {
        if route.writes() {
            run_to_completion(route, parts.uri.path(), request, &context.id).await
        } else {
            route.handler.call(request).await
        }
    };
    let result = tokio::time::timeout(left + RESPONSE_GRACE, with_deadline(Instant::now() + left, work)).await;
    result.unwrap_or_else(|_| Err(Problem::late(limit, route.writes())))
}

/// How long the answer may take.
fn request_timeout(app: &App, route: &Route) -> Duration {
    let most = if route.shape == Shape::Lines { LINES_TIMEOUT_FACTOR } else { 1 };
    app.options().request_timeout.saturating_mul(most)
}

/// Counts a write against the limit of who makes it.
pub fn count_write(app: &App, actor: &Actor, quota: &mut Option<Quota>) -> Result<(), Problem> {
    let (taken, wait) = match app.take_write(actor) {
        Ok(taken) => (taken, None),
        Err(refused) => (Some(refused.quota), Some(refused.wait)),
    };
    *quota = taken;
    let Some(wait) = wait else { return Ok(()) };
    let detail = format!("`{}` exceeds the write limit of `api.write_rate` and `api.write_burst`.", actor.name);
    Err(Problem { retry_after: Some(wait), ..Problem::new(Kind::RateLimited, detail) })
}

/// Calls a handler that changes something. The change is finished even if the client disconnects, and a panic affects
/// only its own request.
pub(super) async fn run_to_completion(
    route: &Arc<Route>,
    path: &str,
    request: ApiRequest,
    id: &str,
) -> Result<ApiResponse, Problem> {
    let (route, key, own) = (Arc::clone(route), path.to_owned(), id.to_owned());
    let deadline = everbell::deadline().unwrap_or_else(|| Instant::now() + request_timeout(&request.app, &route));
    let work = async move { idempotency::once(&route, &key, request, &own).await };
    // In the span of the request: an application that traces its requests finds it there.
    let work = tokio::spawn(with_deadline(deadline, work).in_current_span());
    work.await.unwrap_or_else(|error| {
        tracing::error!(request = id, %error, "a handler panicked");
        Err(Problem::new(Kind::Internal, "An internal error occurred. See the server log for details."))
    })
}

/// The role that a route needs. Everybody is a viewer.
pub fn needed_role(app: &App, access: Access) -> Role {
    match access {
        Access::Role(role) | Access::Feed(role) => role,
        Access::RunHistory => app.options().run_history,
        Access::RunToken => Role::Operator,
        Access::Open | Access::Metrics => Role::Viewer,
    }
}

/// Refuses a write that a page of another site makes in the name of a person: the browser may send the cookie of the
/// application with it. A token is never sent by itself.
fn expect_own_site(app: &App, headers: &HeaderMap) -> Result<(), Problem> {
    let fetch_site = headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
    let is_foreign = matches!(fetch_site, Some("cross-site" | "same-site"));
    if is_foreign || proxy::foreign_site(&app.options(), headers).is_some() {
        return Err(Problem::new(Kind::Forbidden, "This request was sent by a page of another site."));
    }
    Ok(())
}

/// Returns the caller of a route with this access.
async fn authorize(
    app: &App,
    access: Access,
    user: Option<&User>,
    headers: &HeaderMap,
    peer: Option<IpAddr>,
) -> Result<Actor, Problem> {
    match access {
        Access::Open => return Ok(Actor::anonymous("nobody")),
        Access::Role(_) | Access::Feed(_) | Access::RunHistory | Access::RunToken => {}
        Access::Metrics => return app.metrics_actor(headers, peer).inspect_err(|_| app.metrics.login_failed()),
    }
    if let Some(user) = user {
        return Ok(Actor::user(user.name(), user.role(), app.bell.now()));
    }
    let header = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if access == Access::RunToken {
        let from = proxy::client_address(&app.options(), headers, peer);
        let remote_side = app.authenticator.authenticate_run(header, from, &app.bell).await;
        if let Some(actor) = remote_side.inspect_err(|_| app.metrics.login_failed())? {
            return Ok(actor);
        }
    }
    let password = header.filter(|_| matches!(access, Access::Feed(_))).and_then(basic_password);
    let password = password.map(|token| format!("Bearer {token}"));
    authenticate(app, password.as_deref().or(header), headers, peer).await
}

/// Authenticates a caller by a bearer token.
pub async fn authenticate(
    app: &App,
    bearer: Option<&str>,
    headers: &HeaderMap,
    peer: Option<IpAddr>,
) -> Result<Actor, Problem> {
    let from = proxy::client_address(&app.options(), headers, peer);
    app.authenticator.authenticate(bearer, from, &app.bell).await.inspect_err(|_| app.metrics.login_failed())
}

fn read_query(text: &str, route: &Route) -> Result<Value, Problem> {
    let value = query(text, route.query).map_err(|error| Problem::new(Kind::InvalidInput, error.0))?;
    let faults = Form::read(&value, route.query, Naming::Camel).faults();
    if faults.is_empty() { Ok(value) } else { Err(Problem::query(faults)) }
}

/// The revision of `If-Match: "7"`; `*` is any.
fn revision(app: &App, headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get(header::IF_MATCH) else {
        if app.options().settings.require_if_match {
            let detail = "Send the `ETag` of the version that you have read as `If-Match`.";
            return Err(Problem::new(Kind::PreconditionRequired, detail));
        }
        return Ok(None);
    };
    let text = value.to_str().unwrap_or("").trim();
    if text == "*" {
        return Ok(None);
    }
    let number = text.trim_start_matches("W/").trim_matches('"').parse();
    number.map(Some).map_err(|_| Problem::at("header", "If-Match", "must be an `ETag`, such as \"7\""))
}

/// The id that the caller brought, if it can be shown; else a new one.
pub fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get("x-request-id").and_then(|value| value.to_str().ok());
    let fits = |id: &&str| {
        (1..=100).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:".contains(&b))
    };
    given.filter(fits).map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned)
}

fn render(ApiResponse { status, headers: own, body }: ApiResponse, id: &str) -> Response<Body> {
    let is_stream = matches!(body, ResponseBody::Events(_));
    let (media, body) = match body {
        ResponseBody::Nothing => (None, Body::empty()),
        ResponseBody::Text(media, text) => (Some(media), Body::from(text)),
        ResponseBody::Events(body) => (Some("text/event-stream"), body),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    usual_headers(headers, id, media);
    if is_stream {
        // A proxy that collects the stream would keep every event back.
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    }
    for (name, value) in own {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.append(HeaderName::from_static(name), value);
        }
    }
    response
}

/// An error answer of routes below this prefix.
pub fn render_problem(problem: &Problem, id: &str, prefix: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(problem.document(id, prefix).to_string()));
    *response.status_mut() = problem.status();
    let headers = response.headers_mut();
    usual_headers(headers, id, Some("application/problem+json"));
    if let Some(seconds) = problem.retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if problem.kind == Kind::Unauthenticated {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"everbell\""));
    }
    response
}

/// Sets the headers that every response has.
pub fn usual_headers(headers: &mut HeaderMap, id: &str, media: Option<&'static str>) {
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(media) = media {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    }
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert("x-request-id", id);
    }
}

/// Responds when no route matches. Below a mount this requires a token, too.
pub async fn not_found(app: Arc<App>, kind: Kind, guarded: bool, request: Request) -> Response<Body> {
    let id = request_id(request.headers());
    let (method, path) = (request.method().clone(), excerpt(request.uri().path()));
    let prefix = outer_prefix(request.extensions(), request.uri().path()).to_owned();
    if guarded {
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
        let (headers, user) = (request.headers(), request.extensions().get::<User>());
        let address = proxy::client_address(&app.options(), headers, peer);
        if let Err(problem) = authorize(&app, Access::Role(Role::Viewer), user, headers, peer).await {
            let (problem, method) = (&problem, method.as_str());
            let (attempt, route, request_id) = (Attempt::Request, path.as_str(), id.as_str());
            let denied = Denied { attempt, problem, method, route, address, request_id, actor: None };
            app.denials.note(&app.bell, &denied).await;
            return render_problem(problem, &id, &prefix);
        }
    }
    let detail = match kind {
        Kind::MethodNotAllowed => format!("`{path}` does not support {}.", method_shown(&method)),
        _ => format!("There is no route at `{path}`."),
    };
    render_problem(&Problem::new(kind, detail), &id, &prefix)
}

fn method_shown(method: &Method) -> String {
    excerpt(method.as_str())
}

#[cfg(test)]
mod tests {
    use super::prefix_between;

    #[test]
    fn the_original_address_tells_the_prefix() {
        for (original, own, prefix) in [
            ("/jobs/a", "/jobs/a", ""),
            ("/", "/", ""),
            ("", "/jobs", ""),
            ("/admin/cron/jobs/a", "/jobs/a", "/admin/cron"),
            ("/admin/cron", "/", "/admin/cron"),
            ("/admin/cron/", "/", "/admin/cron"),
        ] {
            assert_eq!(prefix_between(original, own), prefix, "{original} {own}");
        }
    }
}
