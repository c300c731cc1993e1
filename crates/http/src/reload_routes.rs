//! The route that reloads the configuration.

use std::sync::Arc;

use axum::http::Method;
use everbell_wire as wire;
use everbell_wire::form::{Field, Kind as Value, optional};

use super::access::Role::Admin;
use super::problem::Kind::{Conflict, NotFound};
use super::problem::{Kind, Problem};
use super::request::{ApiRequest, ApiResponse};
use super::route::Access::Role;
use super::route::{Route, route};

const RELOAD: &[Field] = &[optional("dryRun", Value::Flag, "Only check, and report what would change.")];

/// The route that reloads the configuration: a part of the table in `lib.rs`.
#[rustfmt::skip]
pub(super) fn reload_routes() -> Vec<Route> {
    vec![
        route(Method::POST, "/config/reload", Role(Admin), reload).does("reloadConfig", "Reload the configuration of the instance that responds").query(RELOAD)
            .details("Everything is checked first: a configuration with problems changes nothing. Runs in flight are not disturbed. Other instances keep their configuration.")
            .returns::<wire::Reloaded>(200, "The changes").problems(&[NotFound, Conflict]),
    ]
}

async fn reload(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let dry_run = request.query(RELOAD).answer("dryRun").unwrap_or_default();
    let Some(reload) = request.app.reload.get().map(Arc::clone) else {
        return Err(Problem::new(Kind::NotFound, "This program has no configuration file that could be reloaded."));
    };
    ApiResponse::ok(&reload.reload(&request.actor.name, dry_run).await?)
}
