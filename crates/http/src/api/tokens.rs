//! Tokens: who may do what.

use axum::http::StatusCode;
use everbell_core::store::{LastAdmin, NewToken, StoreError};
use everbell_core::{Json, Zone};
use everbell_wire as wire;
use serde_json::json;

use crate::access::{Role, new_token, token_hash};
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResponse};
use everbell_wire::FaultCode;
use everbell_wire::body::job::time;
use everbell_wire::form::{Field, Kind as Value, optional, required};

pub(crate) const CREATE: &[Field] = &[
    required("name", Value::Text { min: 1, max: 100 }, "A unique name, which the audit trail shows."),
    required(
        "role",
        Value::Word(Role::WORDS),
        "The role. Viewers read; operators also pause, resume, run and cancel; admins also change jobs and tokens.",
    ),
    optional("expiresAt", Value::Time, "When the token expires. Default: never."),
];

pub(crate) const REVOKE: &[Field] = &[optional(
    "force",
    Value::Flag,
    "Revoke the token even if it belongs to the last admin, after which no client can create tokens.",
)];

pub(crate) async fn list(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let tokens = request.app.bell.store().list_tokens().await?;
    ApiResponse::ok(&wire::Items { items: tokens.iter().map(wire::Token::from).collect::<Vec<_>>() })
}

pub(crate) async fn create(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let mut form = request.body(CREATE);
    let now = request.app.bell.now();
    let (name, role) = (form.text("name").unwrap_or("").to_owned(), form.text("role").unwrap_or("").to_owned());
    if let Some(reason) = name_problem(&name) {
        form.fault("name", FaultCode::Invalid, reason);
    }
    let expires_at = time(&mut form, "expiresAt", &Zone::utc());
    if expires_at.is_some_and(|at| at <= now) {
        form.fault("expiresAt", FaultCode::Invalid, "must be in the future");
    }
    let faults = form.faults();
    if !faults.is_empty() {
        return Err(Problem::body(faults));
    }
    let token = new_token();
    let mut entry = request.actor.entry("token.create", format!("token:{name}"), now);
    let after = json!({ "role": role, "expiresAt": expires_at.map(|at| at.to_string()) });
    entry.after = Json::parse("audit", &after.to_string()).ok();
    let new = NewToken { name, hash: token_hash(token.reveal()), role, created_at: now, expires_at };
    let made = request.app.bell.store().create_token(&new, &entry).await?;
    let document = wire::NewToken { about: wire::Token::from(&made), token: token.reveal().to_owned() };
    ApiResponse::json(StatusCode::CREATED, &document)
}

/// Returns the fault of a token name. The audit trail shows names as actors, so no two may look alike.
fn name_problem(name: &str) -> Option<&'static str> {
    if [".", ".."].contains(&name) {
        return Some("must not be `.` or `..`");
    }
    let is_plain = name.trim() == name && name.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    (!is_plain).then_some("must be printable ASCII without leading or trailing spaces")
}

pub(crate) async fn revoke(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let name = request.part("name");
    let now = request.app.bell.now();
    // A configured admin token remains, unless the caller revokes their own token.
    let own = request.actor.name == format!("token:{name}");
    let may_go = request.query(REVOKE).flag("force") || (request.app.authenticator.has_configured() && !own);
    let last_admin = if may_go { LastAdmin::Revoke } else { LastAdmin::Refuse };
    let entry = request.actor.entry("token.revoke", format!("token:{name}"), now);
    match request.app.bell.store().revoke_token(name, now, last_admin, &entry).await {
        Err(StoreError::Conflict { .. }) => Err(last_admin_stays(name)),
        result => Ok(result.map(|()| ApiResponse::nothing())?),
    }
}

/// The problem of revoking the last admin token.
fn last_admin_stays(name: &str) -> Problem {
    let detail = format!(
        "Token `{name}` is the last admin token: without it no client can create tokens. Create another admin token first, \
         or revoke it with `force=true` and restart the server with EVERBELL_ADMIN_TOKEN to regain access."
    );
    Problem::new(Kind::Conflict, detail)
}
