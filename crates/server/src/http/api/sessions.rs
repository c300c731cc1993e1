//! Sessions: who is signed in to the web pages.

use everbell_core::store::{Session, SessionFilter};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::form::{Field, Kind as Value, optional};
use crate::http::access::{Actor, Role, expect_role};
use crate::http::call::{Answer, Call, shown};
use crate::http::model::{Items, SessionDocument};
use crate::http::problem::{Kind, Problem};

pub(crate) const LIST: &[Field] = &[
    optional("all", Value::Flag, "Sessions of everybody, which only admins may see; otherwise your own."),
    optional(
        "actor",
        Value::Text { min: 1, max: 200 },
        "Sessions of this actor, such as `token:ops`; those of others only admins may see.",
    ),
];

pub(crate) const END_ALL: &[Field] = &[optional(
    "actor",
    Value::Text { min: 1, max: 200 },
    "End the sessions of this actor, such as `token:ops`, which only admins may do; otherwise your own.",
)];

/// How many sessions ended.
#[derive(Serialize, ToSchema)]
#[schema(as = EndedSessions)]
pub(crate) struct EndedDocument {
    pub(crate) ended: u64,
}

pub(crate) async fn list(call: Call) -> Result<Answer, Problem> {
    let form = call.query(LIST);
    let whose = match (form.text("actor"), form.flag("all")) {
        (Some(_), true) => {
            return Err(Problem::at("query", "actor", "cannot be sent with `all=true`: send one of the two"));
        }
        (Some(actor), false) => Whose::Actor(actor.to_owned()),
        (None, true) => Whose::Everybody,
        (None, false) => Whose::Own,
    };
    let sessions = visible(&call, whose).await?;
    let own = call.actor.session();
    Answer::ok(&Items { items: sessions.iter().map(|session| SessionDocument::of(session, own)).collect::<Vec<_>>() })
}

/// Whose sessions are listed.
pub(crate) enum Whose {
    Own,
    Actor(String),
    Everybody,
}

/// The sessions that are asked for; those of others are for admins.
pub(crate) async fn visible(call: &Call, whose: Whose) -> Result<Vec<Session>, Problem> {
    let actor = match whose {
        Whose::Own => Some(call.actor.name.clone()),
        Whose::Actor(name) => Some(name),
        Whose::Everybody => None,
    };
    if actor.as_ref() != Some(&call.actor.name) {
        expect_role(&call.actor, Role::Admin)?;
    }
    Ok(call.app.bell.store().list_sessions(&SessionFilter { id: None, actor }, call.app.bell.now()).await?)
}

pub(crate) async fn end(call: Call) -> Result<Answer, Problem> {
    let name = call.part("sessionId");
    let missing = || Problem::new(Kind::NotFound, format!("There is no session `{}` of yours.", shown(name)));
    let id = Uuid::parse_str(name).map_err(|_| missing())?;
    // Others cannot tell a session that is not theirs from none.
    let actor = (call.actor.role < Role::Admin).then(|| call.actor.name.clone());
    let ended = ended(&call.app.bell, &call.actor, &SessionFilter { id: Some(id), actor }).await?;
    if ended == 0 { Err(missing()) } else { Ok(Answer::nothing()) }
}

pub(crate) async fn end_all(call: Call) -> Result<Answer, Problem> {
    let form = call.query(END_ALL);
    let actor = form.text("actor").unwrap_or(&call.actor.name).to_owned();
    if actor != call.actor.name {
        expect_role(&call.actor, Role::Admin)?;
    }
    let ended = ended(&call.app.bell, &call.actor, &SessionFilter { id: None, actor: Some(actor) }).await?;
    Answer::ok(&EndedDocument { ended })
}

/// Ends sessions, with an entry of the audit trail.
pub(crate) async fn ended(bell: &everbell::Everbell, by: &Actor, filter: &SessionFilter) -> Result<u64, Problem> {
    let object = match (filter.id, &filter.actor) {
        (Some(id), _) => format!("session:{id}"),
        (None, Some(actor)) => actor.clone(),
        (None, None) => "session:all".to_owned(),
    };
    Ok(bell.store().end_sessions(filter, &by.entry("session.end", object, bell.now())).await?)
}
