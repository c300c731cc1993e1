//! The form of a new job or version, with a live preview.
//!
//! ```text
//! submitted fields ──Draft──► RequestBody ──► the API
//!                                 └──► Preview (words, next runs, clock changes, errors)
//! ```
//!
//! Fields are named after the members that they set (`policies/timeout`), so errors of the API are shown at their fields.

mod breakdown;
mod changes;
mod clock_changes;
pub(crate) mod create;
mod draft;
pub(crate) mod edit;
mod form;
mod past_week;
mod preview;
mod request_body;
mod simple;
pub(super) mod suggestions;

pub(crate) use request_body::policy_value;

use crate::request::UiRequest;
use everbell_http::access::{Role, expect_role};
use everbell_http::problem::Problem;

/// Fails early if the actor is not an admin.
pub(crate) fn expect_admin(request: &UiRequest) -> Result<(), Problem> {
    expect_role(&request.actor, Role::Admin)
}
