//! What makes jobs and versions: a form with a panel beside it that tells what it means, and the import of a crontab.
//!
//! ```text
//! what was typed ──Draft──► Assembled (the body of a request) ──► the API
//!                               └──► Panel (words, fires, clock changes, what is wrong)
//! ```
//!
//! The fields of the form have the names of the members that they become (`policies/timeout`), so what the API says about
//! a member is told at its field.

mod breakdown;
mod changes;
mod clock_changes;
pub(crate) mod create;
mod draft;
pub(crate) mod edit;
mod form;
mod preview;
mod request_body;
mod simple;
pub(super) mod suggestions;

use crate::request::UiRequest;
use everbell_http::access::{Role, expect_role};
use everbell_http::problem::Problem;

/// Refuses who may not make jobs, before they fill in a form.
pub(super) fn expect_admin(request: &UiRequest) -> Result<(), Problem> {
    expect_role(&request.actor, Role::Admin)
}
