//! Reloading the configuration of the server. What that means, the server says: see [`Reload`].

use std::sync::Arc;

use async_trait::async_trait;
use axum::http::Method;
use everbell_wire as wire;
use everbell_wire::form::{Field, Kind as Value, optional};

use super::access::Role::Admin;
use super::problem::Kind::{Conflict, NotFound};
use super::problem::{Kind, Problem};
use super::request::{ApiRequest, ApiResponse};
use super::route::Access::Role;
use super::route::{Route, route};

/// Reads the configuration again.
#[async_trait]
pub trait Reload: Send + Sync {
    /// Checks all of the new configuration, and applies it unless `dry_run` is set. The audit trail names the actor.
    async fn reload(&self, actor: &str, dry_run: bool) -> Result<wire::Reloaded, ReloadError>;
}

/// Why a reload did not happen.
#[derive(Debug)]
pub enum ReloadError {
    /// The problems of the new configuration. Nothing was changed.
    Invalid(Vec<String>),
    /// The database failed.
    Store(everbell::StoreError),
}

impl From<ReloadError> for Problem {
    fn from(error: ReloadError) -> Problem {
        match error {
            ReloadError::Invalid(problems) => {
                let detail =
                    format!("The configuration was not reloaded, nothing was changed: {}", problems.join("; "));
                Problem::new(Kind::Conflict, detail).with("problems", problems)
            }
            ReloadError::Store(error) => error.into(),
        }
    }
}

const RELOAD: &[Field] = &[optional("dryRun", Value::Flag, "Only check, and report what would change.")];

/// The route that reloads the configuration: a part of the table in `lib.rs`.
#[rustfmt::skip]
pub(super) fn reload_routes() -> Vec<Route> {
    vec![
        route(Method::POST, "/config/reload", Role(Admin), reload).does("reloadConfig", "Reload the configuration of the instance that responds").query(RELOAD)
            .details("Everything is checked first: a configuration with problems changes nothing. Runs in flight are not disturbed. Other instances keep theirs.")
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
