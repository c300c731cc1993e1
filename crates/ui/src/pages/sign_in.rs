//! Signing in with a token, and out again.

use askama::Template;
use axum::http::StatusCode;
use everbell_core::store::SessionFilter;

use crate::session::{Cookie, Session};
use crate::visit::{Reply, Visit, safe_place};
use crate::{Frame, Section};
use everbell_http::access::Actor;
use everbell_http::api::sessions;
use everbell_http::pipeline::let_in;
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

pub(crate) async fn show(visit: Visit) -> Result<Reply, Problem> {
    form(&visit, None).await
}

async fn form(visit: &Visit, refusal: Option<(StatusCode, String)>) -> Result<Reply, Problem> {
    let frame = visit.frame(Section::Outside, "Sign in").await;
    let query = visit.query(QUERY);
    let to = safe_place(visit.sent("to").or_else(|| query.text("to")).unwrap_or("/")).to_owned();
    let status = refusal.as_ref().map_or(StatusCode::OK, |(status, _)| *status);
    Reply::refused(&SignIn { frame, to, refusal: refusal.map(|(_, text)| text) }, status)
}

pub(crate) async fn enter(visit: Visit) -> Result<Reply, Problem> {
    let Some(token) = visit.sent("token") else {
        return form(&visit, Some((StatusCode::BAD_REQUEST, "Paste a token: it begins with evb_.".to_owned()))).await;
    };
    match let_in(&visit.app, Some(&format!("Bearer {token}")), &visit.headers, visit.peer).await {
        Ok(mut actor) => {
            actor.asks_from(visit.address(), &visit.id);
            let session = begin(&visit, &actor).await?;
            let to = safe_place(visit.sent("to").unwrap_or("/")).to_owned();
            Ok(Reply::go(to).header("set-cookie", visit.cookies.set(Cookie::Session, session.value())))
        }
        Err(problem) if problem.kind == problem::Kind::NotReady => Err(problem),
        Err(problem) => {
            visit.sign_in_failed(&problem).await;
            form(&visit, Some((problem.status(), problem.detail))).await
        }
    }
}

/// Begins a session of who just proved who they are.
async fn begin(visit: &Visit, actor: &Actor) -> Result<Session, Problem> {
    let session = Session::new();
    let new = session
        .begun(actor, &visit.headers, visit.now)
        .ok_or_else(|| Problem::new(problem::Kind::Unauthenticated, "This token cannot be used for signing in."))?;
    let entry = actor.entry("session.create", format!("session:{}", new.id), visit.now);
    visit.app.bell.store().create_session(&new, &entry).await?;
    Ok(session)
}

pub(crate) async fn leave(visit: Visit) -> Result<Reply, Problem> {
    // Without an id the filter would mean every session of the actor.
    if let Some(id) = visit.actor.session() {
        let filter = SessionFilter { id: Some(id), actor: Some(visit.actor.name.clone()) };
        sessions::ended(&visit.app.bell, &visit.actor, &filter).await?;
    }
    let forget = visit.cookies.forget(Cookie::Session);
    Ok(Reply::done("/sign-in", "You are signed out.").header("set-cookie", forget))
}
