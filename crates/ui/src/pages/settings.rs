//! Settings: how pages look for who is here; and tokens, for admins.

pub(crate) mod revoke;

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell_core::Zone;
use everbell_core::store::{Session, Token};
use serde::Serialize;
use uuid::Uuid;

use crate::choices::Theme;
use crate::clock::Clock;
use crate::clock::Face;
use crate::markup::{Markup, url_part};
use crate::pages::action::Refusal;
use crate::session::Cookie;
use crate::{Frame, Section, UiRequest, UiResponse};
use everbell_http::access::Role;
use everbell_http::api::sessions::{self, Whose};
use everbell_http::internal_call::InternalCall;
use everbell_http::problem::Problem;
use everbell_wire as wire;

#[derive(Template)]
#[template(path = "settings.html")]
struct SettingsPage {
    frame: Frame,
    actor: String,
    role: &'static str,
    zones: Vec<&'static str>,
    tokens: Option<Vec<Line>>,
    /// The name and secret of a token that was just created. It is shown only once.
    made: Option<(String, String)>,
    refusal: Refusal,
    name: String,
    no_admin: Option<String>,
    /// The sessions of the actor, or all sessions for admins.
    sessions: Vec<SessionLine>,
}

/// A browser that is signed in.
struct SessionLine {
    id: String,
    actor: String,
    from: String,
    browser: String,
    began: Markup,
    used: Markup,
    ends: Markup,
    is_current: bool,
}

impl SessionLine {
    fn new(session: &Session, own: Option<Uuid>, clock: &Clock) -> SessionLine {
        SessionLine {
            id: session.id.to_string(),
            actor: session.actor.clone(),
            from: session.address.clone().unwrap_or_default(),
            browser: session.user_agent.clone().unwrap_or_default(),
            began: clock.away(session.created_at),
            used: clock.away(session.last_used_at),
            ends: clock.at(session.ends_at(), None),
            is_current: own == Some(session.id),
        }
    }
}

struct Line {
    name: String,
    part: String,
    role: String,
    made: Markup,
    used: Option<Markup>,
    ends: Option<Markup>,
    over: Option<&'static str>,
    /// How many browsers are signed in with it.
    sessions: usize,
}

impl Line {
    fn new(token: &Token, sessions: &[Session], clock: &Clock) -> Line {
        let actor = format!("token:{}", token.name);
        let expired = token.expires_at.is_some_and(|at| at <= clock.now);
        Line {
            part: url_part(&token.name),
            sessions: sessions.iter().filter(|session| session.actor == actor).count(),
            name: token.name.clone(),
            role: token.role.clone(),
            made: clock.away(token.created_at),
            used: token.last_used_at.map(|at| clock.away(at)),
            ends: token.expires_at.map(|at| clock.at(at, None)),
            over: if token.revoked_at.is_some() { Some("revoked") } else { expired.then_some("expired") },
        }
    }
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    render(&request, None, None).await
}

async fn render(
    request: &UiRequest,
    made: Option<(String, String)>,
    problem: Option<&Problem>,
) -> Result<UiResponse, Problem> {
    let no_admin = request.barred(Role::Admin);
    let tokens = match no_admin {
        None => Some(request.app.bell.store().list_tokens().await?),
        Some(_) => None,
    };
    let sessions =
        sessions::visible(&request.to_api_request(), if no_admin.is_none() { Whose::Everybody } else { Whose::Own })
            .await?;
    let (clock, own) = (request.clock(), request.actor.session());
    let page = SettingsPage {
        actor: request.actor.name.clone(),
        role: request.actor.role.as_str(),
        zones: Zone::names().collect(),
        tokens: tokens.map(|tokens| tokens.iter().map(|token| Line::new(token, &sessions, &clock)).collect()),
        name: request.sent("name").filter(|_| problem.is_some()).unwrap_or_default().to_owned(),
        refusal: Refusal::from_problem(problem, &["name", "role", "expiresAt"]),
        frame: request.frame(Section::Settings, "Settings").await,
        made,
        no_admin,
        sessions: sessions.iter().map(|session| SessionLine::new(session, own, &clock)).collect(),
    };
    UiResponse::with_status(&page, problem.map_or(StatusCode::OK, Problem::status))
}

/// Ends one session.
pub(crate) async fn end_session(request: UiRequest) -> Result<UiResponse, Problem> {
    let id = request.part("id").to_owned();
    request.perform::<()>(Method::DELETE, "/sessions/{sessionId}", &[("sessionId", &id)], &()).await?;
    if request.actor.session().is_some_and(|own| own.to_string() == id) {
        return Ok(signed_out(&request, "Signed out."));
    }
    Ok(UiResponse::done("/settings", "Session ended."))
}

/// The query of the request that ends sessions.
#[derive(Serialize)]
struct EndSessions<'a> {
    actor: &'a str,
}

/// Ends all sessions of the actor including this one, or those of another actor for admins.
pub(crate) async fn end_sessions(request: UiRequest) -> Result<UiResponse, Problem> {
    let actor = request.sent("actor").unwrap_or(&request.actor.name).to_owned();
    let call = InternalCall::new(Method::DELETE, "/sessions", &[]).with_query(&EndSessions { actor: &actor })?;
    request.ask::<wire::EndedSessions>(call, &()).await?;
    if actor == request.actor.name {
        return Ok(signed_out(&request, "Signed out everywhere."));
    }
    Ok(UiResponse::done("/settings", format!("{actor} signed out everywhere.")))
}

fn signed_out(request: &UiRequest, text: &str) -> UiResponse {
    UiResponse::done("/sign-in", text).header("set-cookie", request.cookies.forget(Cookie::Session))
}

/// The body of the request that creates a token.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CreateToken<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<&'a str>,
}

/// Creates a token and shows it once.
pub(crate) async fn create_token(request: UiRequest) -> Result<UiResponse, Problem> {
    let body =
        CreateToken { name: request.sent("name"), role: request.sent("role"), expires_at: request.sent("expiresAt") };
    match request.perform::<wire::NewToken>(Method::POST, "/tokens", &[], &body).await {
        Ok(made) => render(&request, Some((made.about.name, made.token)), None).await,
        Err(problem) => render(&request, None, Some(&problem)).await,
    }
}
