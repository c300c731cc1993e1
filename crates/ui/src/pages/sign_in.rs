//! Signing in with a token, and out again.

use askama::Template;
use axum::http::StatusCode;
use everbell_core::store::SessionFilter;

use crate::request::{UiRequest, UiResponse, safe_return_path};
use crate::session::{Cookie, Session};
use crate::{Frame, Section};
use everbell_http::access::Actor;
use everbell_http::api::sessions;
use everbell_http::pipeline::authenticate;
use everbell_http::problem::{self, Problem};
use everbell_wire::form::{Field, Kind, optional};

pub(crate) const QUERY: &[Field] = &[optional("to", Kind::Text { min: 1, max: 2_000 }, "Where to go afterwards.")];

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignIn {
    frame: Frame,
    to: String,
    refusal: Option<String>,
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    form(&request, None).await
}

async fn form(request: &UiRequest, refusal: Option<(StatusCode, String)>) -> Result<UiResponse, Problem> {
    let frame = request.frame(Section::Outside, "Sign in").await;
    let query = request.query(QUERY);
    let to = safe_return_path(request.sent("to").or_else(|| query.text("to")).unwrap_or("/")).to_owned();
    let status = refusal.as_ref().map_or(StatusCode::OK, |(status, _)| *status);
    UiResponse::with_status(&SignIn { frame, to, refusal: refusal.map(|(_, text)| text) }, status)
}

pub(crate) async fn sign_in(request: UiRequest) -> Result<UiResponse, Problem> {
    let Some(token) = request.sent("token") else {
        return form(&request, Some((StatusCode::BAD_REQUEST, "Enter a token. It starts with evb_.".to_owned()))).await;
    };
    match authenticate(&request.app, Some(&format!("Bearer {token}")), &request.headers, request.peer).await {
        Ok(mut actor) => {
            actor.set_origin(request.address(), &request.id);
            let session = start_session(&request, &actor).await?;
            let to = safe_return_path(request.sent("to").unwrap_or("/")).to_owned();
            Ok(UiResponse::redirect(to).header("set-cookie", request.cookies.set(Cookie::Session, session.value())))
        }
        Err(problem) if problem.kind == problem::Kind::NotReady => Err(problem),
        Err(problem) => {
            request.sign_in_failed(&problem).await;
            form(&request, Some((problem.status(), problem.detail))).await
        }
    }
}

/// Begins a session of who just proved who they are.
async fn start_session(request: &UiRequest, actor: &Actor) -> Result<Session, Problem> {
    let session = Session::new();
    let new = session
        .to_new_session(actor, &request.headers, request.now)
        .ok_or_else(|| Problem::new(problem::Kind::Unauthenticated, "This token cannot be used to sign in."))?;
    let entry = actor.entry("session.create", format!("session:{}", new.id), request.now);
    request.app.bell.store().create_session(&new, &entry).await?;
    Ok(session)
}

pub(crate) async fn sign_out(request: UiRequest) -> Result<UiResponse, Problem> {
    // Without an id the filter would mean every session of the actor.
    if let Some(id) = request.actor.session() {
        let filter = SessionFilter { id: Some(id), actor: Some(request.actor.name.clone()) };
        sessions::ended(&request.app.bell, &request.actor, &filter).await?;
    }
    let forget = request.cookies.forget(Cookie::Session);
    Ok(UiResponse::done("/sign-in", "Signed out.").header("set-cookie", forget))
}
