//! Handles every request for a page: authenticates it, checks its role and its CSRF token, runs the handler and sets
//! the headers.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{ConnectInfo, RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use everbell::with_deadline;
use serde_json::Value;
use tokio::time::Instant;

use super::choices::Choices;
use super::prefix::Prefix;
use super::problem_page::problem_page;
use super::request::{Content, Flash, UiRequest, UiResponse};
use super::resubmit;
use super::session::{Cookie, Cookies, Session};
use super::{Page, Ui};
use super::{compression, fragments};
use everbell_http::access::{Actor, expect_role};
use everbell_http::body::read_text;
use everbell_http::excerpt::excerpt;
use everbell_http::pipeline::{count_write, needed_role, path_params, request_id, usual_headers};
use everbell_http::problem::{Kind, Problem};
use everbell_http::route::Access;
use everbell_http::{User, proxy};
use everbell_wire::form::{Form, Naming, QueryError, pairs, query};

/// The content security policy: only resources of this server, and no inline scripts.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Answers a request for a page.
pub(super) async fn handle(
    State((ui, page)): State<(Arc<Ui>, Arc<Page>)>,
    params: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
) -> Response<Body> {
    let id = request_id(request.headers());
    let (parts, body) = request.into_parts();
    let (path, invalid) = match path_params(params) {
        Ok(path) => (path, None),
        Err(problem) => (Vec::new(), Some(problem)),
    };
    let app = Arc::clone(&ui.app);
    let request = parse_request(&ui, path, parts, &id);
    let (started, cookies, scripted) = (app.bell.clock().monotonic(), request.cookies.clone(), request.is_scripted());
    let prefix = request.prefix.clone();
    let wish = Delivery::new(&request.headers, &page);
    // Files are the same for everybody, and others may keep them.
    let form_secret = if page.access == Access::Open { None } else { new_form_secret(&request) };
    let response = async {
        match invalid {
            Some(problem) => problem_page(&request, &problem).await,
            None => match authorize(request, &page, body).await {
                Ok(request) => run_handler(&page, *request, &id).await,
                Err(response) => *response,
            },
        }
    };
    let response = with_deadline(Instant::now() + app.options().request_timeout, response).await;
    // The flash message is cleared once a page has shown it.
    let clears_flash = matches!(response.body, Content::Html(_)) && !scripted && cookies.get(Cookie::Flash).is_some();
    let mut response = render(response, &prefix, &cookies, &wish, &id);
    let took = app.bell.clock().monotonic().saturating_sub(started);
    let (method, status) = (page.method.as_str(), response.status().as_u16());
    tracing::debug!(request = %id, method, page = page.path, status, took_ms = took.as_secs_f64() * 1e3, "answered");
    app.metrics.http(method, page.path, status, took.as_secs_f64());
    if clears_flash {
        append_header(response.headers_mut(), "set-cookie", &cookies.forget(Cookie::Flash));
    }
    if let Some(secret) = form_secret {
        append_header(response.headers_mut(), "set-cookie", &secret);
    }
    response
}

/// The cookie for a person of the application whose browser has no session yet. Nothing of it is stored: it only ties
/// forms to the browser that got them.
fn new_form_secret(request: &UiRequest) -> Option<String> {
    let is_new = request.user.is_some() && Session::from_cookies(&request.cookies).is_none();
    let session = request.session.as_ref().filter(|_| is_new)?;
    Some(request.cookies.set(Cookie::Session, session.value()))
}

/// Responds to a path without a page. The response is the same with and without a session.
pub(crate) async fn not_found(ui: &Ui, request: Request) -> Response<Body> {
    let id = request_id(request.headers());
    let mut request = parse_request(ui, Vec::new(), request.into_parts().0, &id);
    if let Some(user) = &request.user {
        request.actor = Actor::user(user.name(), user.role(), request.now);
    } else if let Some(session) = request.session.clone() {
        // An ended session is treated like no session.
        if let Ok(actor) = resume_session(&request, &session).await {
            request.actor = actor;
        }
    }
    let path = excerpt(request.here.split('?').next().unwrap_or("/"));
    let response = problem_page(&request, &Problem::new(Kind::NotFound, format!("There is no page at {path}."))).await;
    render(response, &request.prefix, &request.cookies, &Delivery::default(), &id)
}

/// How the client wants the response.
#[derive(Default)]
struct Delivery {
    /// Whether a script asks.
    scripted: bool,
    gzip: bool,
    /// The hashes of the parts that a page which follows what happens has already.
    have: Option<String>,
}

impl Delivery {
    fn new(headers: &HeaderMap, page: &Page) -> Delivery {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let is_live = page.method == Method::GET && text("x-everbell") == Some("live");
        Delivery {
            scripted: headers.contains_key("x-everbell"),
            gzip: if page.access == Access::Open {
                page.method == Method::GET && page.path.starts_with("/ui/") && compression::accepts_gzip(headers)
            } else {
                compression::is_wanted(headers)
            },
            have: is_live.then(|| text(fragments::HAVE).unwrap_or_default().to_owned()),
        }
    }

    /// The page, or what is new in it.
    fn html(&self, html: &str) -> String {
        match &self.have {
            Some(have) => fragments::changed(html, have),
            None if self.scripted => html.to_owned(),
            None => fragments::stamp(html),
        }
    }

    /// The body, and whether it is compressed.
    fn text(&self, text: String) -> (Body, bool) {
        match Some(&text).filter(|_| self.gzip).and_then(|text| compression::gzip(text)) {
            Some(bytes) => (Body::from(bytes), true),
            None => (Body::from(text), false),
        }
    }
}

fn parse_request(ui: &Ui, path: Vec<(String, String)>, parts: Parts, id: &str) -> UiRequest {
    let app = &ui.app;
    let cookies = Cookies::from_headers(&parts.headers, proxy::is_secure(&app.options(), &parts.headers));
    let user = parts.extensions.get::<User>().cloned();
    let session = Session::from_cookies(&cookies).or_else(|| user.as_ref().map(|_| Session::new()));
    UiRequest {
        prefix: Prefix::from_request(&parts),
        app: Arc::clone(app),
        cache: Arc::clone(&ui.cache),
        actor: Actor::anonymous("nobody"),
        session,
        user,
        choices: Choices::from_cookies(&cookies),
        cookies,
        peer: parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip()),
        id: id.to_owned(),
        headers: parts.headers,
        here: parts.uri.path_and_query().map_or("/", |here| here.as_str()).to_owned(),
        path,
        query: Value::Null,
        sent: Vec::new(),
        now: app.bell.now(),
    }
}

/// Authenticates a request and reads its input, or returns the response that refuses it.
async fn authorize(mut request: UiRequest, page: &Page, body: Body) -> Result<Box<UiRequest>, Box<UiResponse>> {
    if let Err(problem) = authenticate(&mut request, page).await {
        // A request without a session is not a denial worth recording.
        if request.session.is_some() || problem.kind != Kind::Unauthenticated {
            request.denied(&problem, page.method.as_str(), page.path).await;
        }
        return Err(Box::new(match problem.kind {
            Kind::Unauthenticated if may_hold_typed_text(page) => {
                or_problem_page(&request, resubmit::session_ended(request.clone(), body).await).await
            }
            Kind::Unauthenticated => sign_in_first(&request, page),
            _ => problem_page(&request, &problem).await,
        }));
    }
    let allowed = if page.method == Method::POST { check_form(&request, page) } else { Ok(()) };
    let read = match allowed {
        Ok(()) => read_input(&mut request, page, body).await,
        Err(problem) => Err(problem),
    };
    if let Err(problem) = read {
        request.denied(&problem, page.method.as_str(), page.path).await;
        return Err(Box::new(problem_page(&request, &problem).await));
    }
    if page.method == Method::POST && !is_own_form(&request, page) {
        return Err(Box::new(or_problem_page(&request, resubmit::other_session(&request).await).await));
    }
    Ok(Box::new(request))
}

/// Counts a form against the write limit, and refuses a form of another site that signs in, because it would sign people in
/// as someone else, or that is of a person of the application, whose cookie may come from a neighboring site. Every form but
/// that for signing in carries a CSRF token.
fn check_form(request: &UiRequest, page: &Page) -> Result<(), Problem> {
    if page.access != Access::Open {
        count_write(&request.app, &request.actor, &mut None)?;
    }
    if page.access != Access::Open && request.user.is_none() {
        return Ok(());
    }
    let Some(site) = proxy::foreign_site(&request.app.options(), &request.headers) else { return Ok(()) };
    let detail = format!(
        "This form was sent from `{}`, which is not a known address of this server. If it is correct, an admin must set \
         `server.public_url` to it.",
        excerpt(site)
    );
    Err(Problem::new(Kind::Forbidden, detail))
}

/// Whether the form may contain text that a person typed.
fn may_hold_typed_text(page: &Page) -> bool {
    page.method == Method::POST && !["/choices", "/sign-out"].contains(&page.path)
}

async fn or_problem_page(request: &UiRequest, result: Result<UiResponse, Problem>) -> UiResponse {
    match result {
        Ok(response) => response,
        Err(problem) => problem_page(request, &problem).await,
    }
}

async fn authenticate(request: &mut UiRequest, page: &Page) -> Result<(), Problem> {
    if matches!(page.access, Access::Open | Access::Metrics) {
        return Ok(());
    }
    let needed = needed_role(&request.app, page.access);
    if let Some(user) = &request.user {
        request.actor = Actor::user(user.name(), user.role(), request.now);
        request.actor.set_origin(request.address(), &request.id);
        return expect_role(&request.actor, needed);
    }
    let Some(session) = &request.session else {
        return Err(Problem::new(Kind::Unauthenticated, "Sign in to continue."));
    };
    request.actor = resume_session(request, session).await?;
    expect_role(&request.actor, needed)
}

/// Returns the actor of a session.
async fn resume_session(request: &UiRequest, session: &Session) -> Result<Actor, Problem> {
    let resume_session = request.app.authenticator.resume(session.value(), request.address(), &request.app.bell).await;
    let mut actor = resume_session.inspect_err(|_| request.app.metrics.login_failed())?;
    actor.set_origin(request.address(), &request.id);
    Ok(actor)
}

/// Redirects to the sign-in page, which leads back afterwards.
fn sign_in_first(request: &UiRequest, page: &Page) -> UiResponse {
    let to = if page.method == Method::GET && !request.is_scripted() { request.here.as_str() } else { "/" };
    if request.is_scripted() {
        return UiResponse {
            status: StatusCode::UNAUTHORIZED,
            ..UiResponse::new(Content::Text("text/plain; charset=utf-8", "Sign in to continue.\n".to_owned()))
        };
    }
    let response = UiResponse::redirect(resubmit::sign_in_url(to));
    if request.session.is_some() {
        response.header("set-cookie", request.cookies.forget(Cookie::Session))
    } else {
        response
    }
}

async fn read_input(request: &mut UiRequest, page: &Page, body: Body) -> Result<(), Problem> {
    let invalid = |error: QueryError| Problem::new(Kind::InvalidInput, error.0);
    let text = request.here.split_once('?').map_or("", |(_, query)| query);
    let mut value = query(text, page.query).map_err(invalid)?;
    if let Value::Object(members) = &mut value {
        // Forms send what was left empty, and old bookmarks what is no more.
        let known = |name: &str| page.query.iter().any(|field| field.name == name);
        let is_empty = |value: &Value| value.as_str() == Some("") || value.as_array().is_some_and(Vec::is_empty);
        members.retain(|name, value| known(name) && !is_empty(value));
    }
    let faults = Form::read(&value, page.query, Naming::Camel).faults();
    if !faults.is_empty() {
        return Err(Problem::query(faults));
    }
    request.query = value;
    if page.method == Method::POST {
        let text = read_text(body).await?;
        request.sent = pairs(&text).map_err(invalid)?;
    }
    Ok(())
}

/// Whether a form was rendered for the session that sends it.
fn is_own_form(request: &UiRequest, page: &Page) -> bool {
    let site = request.headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
    let is_verified =
        request.session.as_ref().is_some_and(|session| session.verify_csrf(request.sent("csrf").unwrap_or("")));
    let is_open = page.access == Access::Open;
    !matches!(site, Some("cross-site" | "same-site")) && (is_verified || is_open)
}

async fn run_handler(page: &Page, request: UiRequest, id: &str) -> UiResponse {
    let asked = request.clone();
    let work = (page.handler)(request);
    // A change that was started is finished even if the client disconnects.
    let result = if page.method == Method::GET {
        work.await
    } else {
        let deadline = everbell::deadline().unwrap_or_else(Instant::now);
        let done = tokio::spawn(with_deadline(deadline, work)).await;
        asked.cache.invalidate_counts();
        done.unwrap_or_else(|error| {
            tracing::error!(request = id, %error, "a page panicked");
            Err(Problem::new(Kind::Internal, "An internal error occurred. See the server log for details."))
        })
    };
    or_problem_page(&asked, result).await
}

fn render(page: UiResponse, prefix: &Prefix, cookies: &Cookies, delivery: &Delivery, id: &str) -> Response<Body> {
    let mut redirect = None;
    let scripted = delivery.scripted;
    let (media, (body, is_compressed)) = match page.body {
        Content::Html(html) => (Some("text/html; charset=utf-8"), delivery.text(prefix.html(delivery.html(&html)))),
        Content::Text(media, text) => (Some(media), delivery.text(text)),
        Content::Bytes(media, bytes) => (Some(media), (Body::from(bytes), false)),
        Content::Stream(media, body) => (Some(media), (body, false)),
        Content::Redirect { to, flash } => {
            redirect = Some((prefix.address(&to), flash));
            (None, (Body::empty(), false))
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = page.status;
    let headers = response.headers_mut();
    usual_headers(headers, id, media);
    if is_compressed {
        append_header(headers, "content-encoding", "gzip");
    }
    if media.is_some() {
        append_header(headers, "vary", "accept-encoding");
    }
    for (name, value) in
        [("content-security-policy", POLICY), ("referrer-policy", "same-origin"), ("x-frame-options", "DENY")]
    {
        append_header(headers, name, value);
    }
    if let Some((to, flash)) = &redirect {
        // A script cannot read the target of a redirect without following it, so a header names it.
        append_header(headers, if scripted { "x-go" } else { "location" }, to);
        if let Some(Flash { good, text }) = flash {
            append_header(
                headers,
                "set-cookie",
                &cookies.set(Cookie::Flash, &format!("{}{text}", if *good { '+' } else { '-' })),
            );
        }
    }
    for (name, value) in page.headers {
        if name == "cache-control" {
            headers.remove(name);
        }
        append_header(headers, name, &value);
    }
    if redirect.is_some() {
        *response.status_mut() = if scripted { StatusCode::NO_CONTENT } else { StatusCode::SEE_OTHER };
    }
    response
}

/// Adds a header. Invalid values are logged and left out; all values are checked or encoded before.
fn append_header(headers: &mut HeaderMap, name: &'static str, value: &str) {
    match HeaderValue::from_str(value) {
        Ok(value) => drop(headers.append(HeaderName::from_static(name), value)),
        Err(error) => tracing::error!(name, %error, "a header cannot be sent"),
    }
}
