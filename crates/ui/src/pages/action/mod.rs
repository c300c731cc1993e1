//! Actions on jobs. Each is a page that shows its effect before it is confirmed. With JavaScript it opens in a dialog and
//! updates the effect live. Submitted forms go through the API.

pub(crate) mod backfill;
pub(crate) mod backfills;
pub(crate) mod bulk;
pub(crate) mod bulk_edit;
pub(crate) mod for_org;
pub(crate) mod pause;
mod payload;
mod quick;
mod refusal;
pub(crate) mod reschedule;
pub(crate) mod restore_declaration;
pub(crate) mod resume;
pub(crate) mod retire;
pub(crate) mod rollback;
pub(crate) mod run_now;
pub(crate) mod skip_next;
mod subject;

use serde::Serialize;

use crate::markup::Markup;
use crate::request::UiRequest;
use everbell_http::access::{Role, expect_role};
use everbell_http::problem::{Kind, Problem};

pub(crate) use refusal::Refusal;
pub(crate) use subject::Subject;

/// A rendered time, and its distance from now.
pub(crate) type Moment = (Markup, Markup);

/// Fails early if the actor is not an operator.
pub(crate) fn expect_operator(request: &UiRequest) -> Result<(), Problem> {
    expect_role(&request.actor, Role::Operator)
}

/// The body or the query of a request that takes a reason and nothing else.
#[derive(Serialize)]
pub(crate) struct Reason<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'a str>,
}

impl<'a> Reason<'a> {
    /// The reason of the form.
    pub(crate) fn sent(request: &'a UiRequest) -> Reason<'a> {
        Reason { reason: request.sent("reason") }
    }
}

/// Returns a problem that the form can show, or fails with one that has its own page.
pub(crate) fn correctable(problem: Problem) -> Result<Problem, Problem> {
    match problem.kind {
        Kind::InvalidInput
        | Kind::Conflict
        | Kind::RevisionMismatch
        | Kind::JobRetired
        | Kind::TooManyPendingRuns
        | Kind::IdempotencyInProgress
        | Kind::IdempotencyKeyReused => Ok(problem),
        _ => Err(problem),
    }
}

/// Returns the submitted text of a field, or an empty text.
pub(crate) fn typed(request: &UiRequest, name: &str) -> String {
    request.sent(name).unwrap_or_default().to_owned()
}
