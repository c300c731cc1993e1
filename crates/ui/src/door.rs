//! What happens to every request for a page: who is it, may they, is the form their own; then the page; then its headers.

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

use super::again;
use super::choices::Choices;
use super::session::{Cookie, Cookies, Session};
use super::trouble::problem_page;
use super::visit::{Content, Flash, Reply, Visit};
use super::{Page, Ui};
use everbell_http::access::{Actor, expect_role};
use everbell_http::body::read_text;
use everbell_http::call::shown;
use everbell_http::pipeline::{count_write, needed_role, path_params, request_id, usual_headers};
use everbell_http::problem::{Kind, Problem};
use everbell_http::proxy;
use everbell_http::route::Access;
use everbell_wire::form::{Form, Naming, QueryError, pairs, query};

/// Nothing comes from elsewhere, nothing goes elsewhere, nothing inline is run.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Answers a request for a page.
pub(super) async fn answer(
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
    let visit = arrived(&ui, path, parts, &id);
    let (begun, cookies, scripted) = (app.bell.clock().monotonic(), visit.cookies.clone(), visit.is_scripted());
    let reply = async {
        match invalid {
            Some(problem) => problem_page(&visit, &problem).await,
            None => match admitted(visit, &page, body).await {
                Ok(visit) => handled(&page, *visit, &id).await,
                Err(reply) => *reply,
            },
        }
    };
    let reply = with_deadline(Instant::now() + app.options.request_timeout, reply).await;
    // What was to be said is said once a page is shown.
    let said = matches!(reply.body, Content::Html(_)) && !scripted && cookies.get(Cookie::Flash).is_some();
    let mut response = rendered(reply, &cookies, scripted, &id);
    let took = app.bell.clock().monotonic().saturating_sub(begun);
    let (method, status) = (page.method.as_str(), response.status().as_u16());
    tracing::debug!(request = %id, method, page = page.path, status, took_ms = took.as_secs_f64() * 1e3, "answered");
    app.metrics.http(method, page.path, status, took.as_secs_f64());
    if said {
        set(response.headers_mut(), "set-cookie", &cookies.forget(Cookie::Flash));
    }
    response
}

/// What a browser gets where there is nothing. Who is not signed in is told the same.
pub(crate) async fn nowhere(ui: &Ui, request: Request) -> Response<Body> {
    let id = request_id(request.headers());
    let mut visit = arrived(ui, Vec::new(), request.into_parts().0, &id);
    if let Some(session) = visit.session.clone() {
        // A session that is over sees the page as a stranger does.
        if let Ok(actor) = resumed(&visit, &session).await {
            visit.actor = actor;
        }
    }
    let path = shown(visit.here.split('?').next().unwrap_or("/"));
    let reply = problem_page(&visit, &Problem::new(Kind::NotFound, format!("There is nothing at {path}."))).await;
    rendered(reply, &visit.cookies, false, &id)
}

fn arrived(ui: &Ui, path: Vec<(String, String)>, parts: Parts, id: &str) -> Visit {
    let app = &ui.app;
    let cookies = Cookies::of(&parts.headers, proxy::is_secure(&app.options, &parts.headers));
    Visit {
        app: Arc::clone(app),
        kept: Arc::clone(&ui.kept),
        actor: Actor::anonymous("nobody"),
        session: Session::of(&cookies),
        choices: Choices::of(&cookies),
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

/// Lets a visit in, with everything that it brings read; or tells what is answered instead.
async fn admitted(mut visit: Visit, page: &Page, body: Body) -> Result<Box<Visit>, Box<Reply>> {
    if let Err(problem) = enter(&mut visit, page).await {
        // Somebody who has not signed in yet is not denied anything.
        if visit.session.is_some() || problem.kind != Kind::Unauthenticated {
            visit.denied(&problem, page.method.as_str(), page.path).await;
        }
        return Err(Box::new(match problem.kind {
            Kind::Unauthenticated if is_typed(page) => told(&visit, again::ended(visit.clone(), body).await).await,
            Kind::Unauthenticated => sign_in_first(&visit, page),
            _ => problem_page(&visit, &problem).await,
        }));
    }
    let counted = if page.method == Method::POST { counted(&visit, page) } else { Ok(()) };
    let read = match counted {
        Ok(()) => read(&mut visit, page, body).await,
        Err(problem) => Err(problem),
    };
    if let Err(problem) = read {
        visit.denied(&problem, page.method.as_str(), page.path).await;
        return Err(Box::new(problem_page(&visit, &problem).await));
    }
    if page.method == Method::POST && !is_own_form(&visit, page) {
        return Err(Box::new(told(&visit, again::foreign(&visit).await).await));
    }
    Ok(Box::new(visit))
}

/// Counts a form against the limit on writes, and refuses one for signing in that another site sends: it would sign people
/// in as somebody else. Every other form carries a seal.
fn counted(visit: &Visit, page: &Page) -> Result<(), Problem> {
    if page.access != Access::Open {
        return count_write(&visit.app, &visit.actor, &mut None);
    }
    let Some(site) = proxy::foreign_site(&visit.app.options, &visit.headers) else { return Ok(()) };
    let detail = format!(
        "This form was sent by `{}`, which is not the address of this server. If it is, an admin must set \
         `server.public_url` to it.",
        shown(site)
    );
    Err(Problem::new(Kind::Forbidden, detail))
}

/// Whether somebody may have typed what is sent here.
fn is_typed(page: &Page) -> bool {
    page.method == Method::POST && !["/choices", "/sign-out"].contains(&page.path)
}

async fn told(visit: &Visit, answer: Result<Reply, Problem>) -> Reply {
    match answer {
        Ok(reply) => reply,
        Err(problem) => problem_page(visit, &problem).await,
    }
}

async fn enter(visit: &mut Visit, page: &Page) -> Result<(), Problem> {
    if matches!(page.access, Access::Open | Access::Metrics) {
        return Ok(());
    }
    let needed = needed_role(&visit.app, page.access);
    let Some(session) = &visit.session else { return Err(Problem::new(Kind::Unauthenticated, "Sign in first.")) };
    visit.actor = resumed(visit, session).await?;
    expect_role(&visit.actor, needed)
}

/// Who is signed in with this session.
async fn resumed(visit: &Visit, session: &Session) -> Result<Actor, Problem> {
    let resumed = visit.app.gate.resume(session.value(), visit.address(), &visit.app.bell).await;
    let mut actor = resumed.inspect_err(|_| visit.app.metrics.login_failed())?;
    actor.asks_from(visit.address(), &visit.id);
    Ok(actor)
}

/// Leads to the page for signing in, and back from there.
fn sign_in_first(visit: &Visit, page: &Page) -> Reply {
    let to = if page.method == Method::GET && !visit.is_scripted() { visit.here.as_str() } else { "/" };
    if visit.is_scripted() {
        return Reply {
            status: StatusCode::UNAUTHORIZED,
            ..Reply::of(Content::Text("text/plain; charset=utf-8", "Sign in first.\n".to_owned()))
        };
    }
    let reply = Reply::go(again::sign_in_place(to));
    if visit.session.is_some() { reply.header("set-cookie", visit.cookies.forget(Cookie::Session)) } else { reply }
}

async fn read(visit: &mut Visit, page: &Page, body: Body) -> Result<(), Problem> {
    let invalid = |error: QueryError| Problem::new(Kind::InvalidInput, error.0);
    let text = visit.here.split_once('?').map_or("", |(_, query)| query);
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
    visit.query = value;
    if page.method == Method::POST {
        let text = read_text(body).await?;
        visit.sent = pairs(&text).map_err(invalid)?;
    }
    Ok(())
}

/// Whether a form was made here, for who sends it.
fn is_own_form(visit: &Visit, page: &Page) -> bool {
    let site = visit.headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
    let sealed = visit.session.as_ref().is_some_and(|session| session.sealed(visit.sent("seal").unwrap_or("")));
    let is_open = page.access == Access::Open;
    !matches!(site, Some("cross-site" | "same-site")) && (sealed || is_open)
}

async fn handled(page: &Page, visit: Visit, id: &str) -> Reply {
    let asked = visit.clone();
    let work = (page.handler)(visit);
    // What was begun is finished, also if nobody waits for the answer any more.
    let handled = if page.method == Method::GET {
        work.await
    } else {
        let deadline = everbell::deadline().unwrap_or_else(Instant::now);
        let done = tokio::spawn(with_deadline(deadline, work)).await;
        asked.kept.outdated();
        done.unwrap_or_else(|error| {
            tracing::error!(request = id, %error, "a page panicked");
            Err(Problem::new(Kind::Internal, "Something is broken here; the log of the server has the details."))
        })
    };
    told(&asked, handled).await
}

fn rendered(reply: Reply, cookies: &Cookies, scripted: bool, id: &str) -> Response<Body> {
    let mut place = None;
    let (media, body) = match reply.body {
        Content::Html(html) => (Some("text/html; charset=utf-8"), Body::from(html)),
        Content::Text(media, text) => (Some(media), Body::from(text)),
        Content::Stream(media, body) => (Some(media), body),
        Content::Go { to, flash } => {
            place = Some((to, flash));
            (None, Body::empty())
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = reply.status;
    let headers = response.headers_mut();
    usual_headers(headers, id, media);
    for (name, value) in
        [("content-security-policy", POLICY), ("referrer-policy", "same-origin"), ("x-frame-options", "DENY")]
    {
        set(headers, name, value);
    }
    if let Some((to, flash)) = &place {
        // A script cannot see where a redirect leads without going there, so it is told.
        set(headers, if scripted { "x-go" } else { "location" }, to);
        if let Some(Flash { good, text }) = flash {
            set(
                headers,
                "set-cookie",
                &cookies.set(Cookie::Flash, &format!("{}{text}", if *good { '+' } else { '-' })),
            );
        }
    }
    for (name, value) in reply.headers {
        if name == "cache-control" {
            headers.remove(name);
        }
        set(headers, name, &value);
    }
    if place.is_some() {
        *response.status_mut() = if scripted { StatusCode::NO_CONTENT } else { StatusCode::SEE_OTHER };
    }
    response
}

/// A value that cannot be a header is left out: all are made here, of texts that were checked or encoded.
fn set(headers: &mut HeaderMap, name: &'static str, value: &str) {
    match HeaderValue::from_str(value) {
        Ok(value) => drop(headers.append(HeaderName::from_static(name), value)),
        Err(error) => tracing::error!(name, %error, "a header cannot be sent"),
    }
}
