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

pub(crate) const LIST: &[Field] =
    &[optional("all", Value::Flag, "Sessions of everybody, which only admins may see; otherwise your own.")];

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
    let sessions = visible(&call, call.query(LIST).flag("all")).await?;
    let own = call.actor.session();
    Answer::ok(&Items { items: sessions.iter().map(|session| SessionDocument::of(session, own)).collect::<Vec<_>>() })
}

/// The sessions of who asks, or of everybody.
pub(crate) async fn visible(call: &Call, all: bool) -> Result<Vec<Session>, Problem> {
    if all {
        expect_role(&call.actor, Role::Admin)?;
    }
    let actor = (!all).then(|| call.actor.name.clone());
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
