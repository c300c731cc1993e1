//! Settings: how pages look for who is here; and tokens, for admins.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell_core::Zone;
use everbell_core::store::{Session, Token};
use serde::Serialize;
use uuid::Uuid;

use crate::choices::{Face, Theme};
use crate::clock::Clock;
use crate::markup::{Markup, url_part};
use crate::pages::action::Refusal;
use crate::session::Cookie;
use crate::{Frame, Reply, Section, Visit};
use everbell_http::access::Role;
use everbell_http::api::sessions::{self, Whose};
use everbell_http::internal_call::InternalCall;
use everbell_http::problem::Problem;
use everbell_wire as wire;

#[derive(Template)]
#[template(path = "house/settings.html")]
struct SettingsPage {
    frame: Frame,
    actor: String,
    role: &'static str,
    zones: Vec<&'static str>,
    tokens: Option<Vec<Line>>,
    /// A token that was just made: the only time that it is shown.
    made: Option<(String, String)>,
    refusal: Refusal,
    name: String,
    no_admin: Option<String>,
    /// Of who is here; of everybody for admins.
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
    fn of(session: &Session, own: Option<Uuid>, clock: &Clock) -> SessionLine {
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
    fn of(token: &Token, sessions: &[Session], clock: &Clock) -> Line {
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

pub(crate) async fn show(visit: Visit) -> Result<Reply, Problem> {
    shown(&visit, None, None).await
}

async fn shown(visit: &Visit, made: Option<(String, String)>, problem: Option<&Problem>) -> Result<Reply, Problem> {
    let no_admin = visit.barred(Role::Admin);
    let tokens = match no_admin {
        None => Some(visit.app.bell.store().list_tokens().await?),
        Some(_) => None,
    };
    let sessions =
        sessions::visible(&visit.call(), if no_admin.is_none() { Whose::Everybody } else { Whose::Own }).await?;
    let (clock, own) = (visit.clock(), visit.actor.session());
    let page = SettingsPage {
        actor: visit.actor.name.clone(),
        role: visit.actor.role.as_str(),
        zones: Zone::names().collect(),
        tokens: tokens.map(|tokens| tokens.iter().map(|token| Line::of(token, &sessions, &clock)).collect()),
        name: visit.sent("name").filter(|_| problem.is_some()).unwrap_or_default().to_owned(),
        refusal: Refusal::of(problem, &["name", "role", "expiresAt"]),
        frame: visit.frame(Section::Settings, "Settings").await,
        made,
        no_admin,
        sessions: sessions.iter().map(|session| SessionLine::of(session, own, &clock)).collect(),
    };
    Reply::refused(&page, problem.map_or(StatusCode::OK, Problem::status))
}

/// Ends one session.
pub(crate) async fn end_session(visit: Visit) -> Result<Reply, Problem> {
    let id = visit.part("id").to_owned();
    visit.perform::<()>(Method::DELETE, "/sessions/{sessionId}", &[("sessionId", &id)], &()).await?;
    if visit.actor.session().is_some_and(|own| own.to_string() == id) {
        return Ok(signed_out(&visit, "You are signed out."));
    }
    Ok(Reply::done("/settings", "The session has ended."))
}

/// The query of the request that ends sessions.
#[derive(Serialize)]
struct EndSessions<'a> {
    actor: &'a str,
}

/// Ends every session of who is here, also this one; or those of the actor that an admin names.
pub(crate) async fn end_sessions(visit: Visit) -> Result<Reply, Problem> {
    let actor = visit.sent("actor").unwrap_or(&visit.actor.name).to_owned();
    let call = InternalCall::new(Method::DELETE, "/sessions", &[]).with_query(&EndSessions { actor: &actor })?;
    visit.ask::<wire::EndedSessions>(call, &()).await?;
    if actor == visit.actor.name {
        return Ok(signed_out(&visit, "You are signed out everywhere."));
    }
    Ok(Reply::done("/settings", format!("{actor} is signed out everywhere.")))
}

fn signed_out(visit: &Visit, text: &str) -> Reply {
    Reply::done("/sign-in", text).header("set-cookie", visit.cookies.forget(Cookie::Session))
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

/// Makes a token, and shows it this once.
pub(crate) async fn make_token(visit: Visit) -> Result<Reply, Problem> {
    let body = CreateToken { name: visit.sent("name"), role: visit.sent("role"), expires_at: visit.sent("expiresAt") };
    match visit.perform::<wire::NewToken>(Method::POST, "/tokens", &[], &body).await {
        Ok(made) => shown(&visit, Some((made.about.name, made.token)), None).await,
        Err(problem) => shown(&visit, None, Some(&problem)).await,
    }
}
