//! Sessions: who is signed in to the web pages.

use everbell_core::store::{Session, SessionFilter};
use everbell_wire as wire;
use uuid::Uuid;

use crate::access::{Actor, Role, expect_role};
use crate::excerpt::excerpt;
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResponse};
use everbell_wire::form::{Field, Kind as Value, optional};

pub(crate) const LIST: &[Field] = &[
    optional("all", Value::Flag, "List the sessions of all actors. Only for admins."),
    optional(
        "actor",
        Value::Text { min: 1, max: 200 },
        "List the sessions of this actor, such as `token:ops`. Default: your own. Only admins may name another actor.",
    ),
];

pub(crate) const END_ALL: &[Field] = &[optional(
    "actor",
    Value::Text { min: 1, max: 200 },
    "End the sessions of this actor, such as `token:ops`. Default: your own. Only admins may name another actor.",
)];

pub(crate) async fn list(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let form = request.query(LIST);
    let whose = match (form.text("actor"), form.flag("all")) {
        (Some(_), true) => {
            return Err(Problem::at("query", "actor", "cannot be combined with `all=true`"));
        }
        (Some(actor), false) => Whose::Actor(actor.to_owned()),
        (None, true) => Whose::Everybody,
        (None, false) => Whose::Own,
    };
    let sessions = visible(&request, whose).await?;
    let own = request.actor.session();
    ApiResponse::ok(&wire::Items {
        items: sessions.iter().map(|session| wire::Session::new(session, own == Some(session.id))).collect::<Vec<_>>(),
    })
}

/// Whose sessions are listed.
pub enum Whose {
    /// The sessions of the caller.
    Own,
    /// The sessions of one token.
    Actor(String),
    /// All sessions.
    Everybody,
}

/// The sessions that are asked for; those of others are for admins.
pub async fn visible(request: &ApiRequest, whose: Whose) -> Result<Vec<Session>, Problem> {
    let actor = match whose {
        Whose::Own => Some(request.actor.name.clone()),
        Whose::Actor(name) => Some(name),
        Whose::Everybody => None,
    };
    if actor.as_ref() != Some(&request.actor.name) {
        expect_role(&request.actor, Role::Admin)?;
    }
    Ok(request.app.bell.store().list_sessions(&SessionFilter { id: None, actor }, request.app.bell.now()).await?)
}

pub(crate) async fn end(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let name = request.part("sessionId");
    let missing = || Problem::new(Kind::NotFound, format!("You have no session `{}`.", excerpt(name)));
    let id = Uuid::parse_str(name).map_err(|_| missing())?;
    // Other callers cannot distinguish a foreign session from a missing one.
    let actor = (request.actor.role < Role::Admin).then(|| request.actor.name.clone());
    let ended = ended(&request.app.bell, &request.actor, &SessionFilter { id: Some(id), actor }).await?;
    if ended == 0 { Err(missing()) } else { Ok(ApiResponse::nothing()) }
}

pub(crate) async fn end_all(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let form = request.query(END_ALL);
    let actor = form.text("actor").unwrap_or(&request.actor.name).to_owned();
    if actor != request.actor.name {
        expect_role(&request.actor, Role::Admin)?;
    }
    let ended = ended(&request.app.bell, &request.actor, &SessionFilter { id: None, actor: Some(actor) }).await?;
    ApiResponse::ok(&wire::EndedSessions { ended })
}

/// Ends sessions, with an entry of the audit trail.
pub async fn ended(bell: &everbell::Everbell, by: &Actor, filter: &SessionFilter) -> Result<u64, Problem> {
    let object = match (filter.id, &filter.actor) {
        (Some(id), _) => format!("session:{id}"),
        (None, Some(actor)) => actor.clone(),
        (None, None) => "session:all".to_owned(),
    };
    Ok(bell.store().end_sessions(filter, &by.entry("session.end", object, bell.now())).await?)
}
