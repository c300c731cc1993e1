//! Org updates: work for every org of a job, a few orgs at a time.

use axum::http::StatusCode;
use everbell_wire as wire;
use uuid::Uuid;

use super::actions::REASON;
use crate::convert::begun_org_update;
use crate::excerpt::excerpt;
use crate::problem::Problem;
use crate::request::{ApiRequest, ApiResponse};
use everbell_wire::form::{Field, optional};

pub(crate) const WHY: &[Field] = &[optional("reason", REASON, "The reason, for the audit trail.")];

/// Rebuilds the timers of a job.
pub async fn rebuild(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let orgs = request.orgs_because(request.body(WHY).text("reason"));
    let begun = orgs.rebuild(request.job()?).await?;
    ApiResponse::json(StatusCode::ACCEPTED, &begun_org_update(&begun))
}

/// Stops an update that creates runs.
pub async fn stop(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let name = request.part("sweepId");
    let missing = || Problem::not_found("org update", &excerpt(name));
    let id = Uuid::try_parse(name).map_err(|_| missing())?;
    let orgs = request.orgs_because(request.body(WHY).text("reason"));
    let stopped = orgs.stop_org_update(request.job()?, id).await?;
    ApiResponse::ok(&wire::OrgUpdate::from(&stopped))
}
