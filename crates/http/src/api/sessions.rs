//! Sessions: who is signed in to the web pages.

use everbell_core::store::{Session, SessionFilter};
use everbell_wire as wire;
use uuid::Uuid;

use crate::access::{Actor, Role, expect_role};
use crate::call::{Answer, Call, shown};
use crate::problem::{Kind, Problem};
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
    Answer::ok(&wire::Items {
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
pub async fn visible(call: &Call, whose: Whose) -> Result<Vec<Session>, Problem> {
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
    Answer::ok(&wire::EndedSessions { ended })
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
